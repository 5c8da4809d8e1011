/* compression: what replicas send instead of a bucket of gradients, and the kernels that make it. */
#ifndef DTSIM_COMPRESSION_H
#define DTSIM_COMPRESSION_H

#include "stage/stage.h"

/* The tensors of a bucket: what a compression sees of them. Zero-initialise. */
struct pile {
    double values;           /* all of them */
    double matrices;         /* of these, in matrices that become factors */
    double left, right;      /* values of the factors: rank times rows and columns, over these matrices */
    int count;               /* matrices that become factors */
};
void pile_add(struct pile *pile, const struct scenario *scenario, double values, double rows);

/* An exchange of a bucket: kernels, then a collective of `bytes`, and an all-reduce of what is summed as it is. */
enum { LEGS_MAX = 2 };
struct leg {
    double seconds;
    const struct collective *collective;
    double bytes, plain;     /* 0: no such collective */
};
struct compressed {
    struct leg legs[LEGS_MAX];
    double seconds;          /* of the kernels after the last exchange */
};
/* What becomes of the bucket's sum over n replicas; without compression, the collective of the recipe.
 * Kernels are memory-bound, and take no time where the model's times are given. */
struct compressed compress(const struct scenario *scenario, const struct pile *pile, int n);

/* B that each of the n GPUs of a stage keeps of it from one iteration to the next: what was not sent, and factors
 * to start from. */
double compression_memory(const struct scenario *scenario, const struct stage *stage, int n);

#endif
