/* compression: the bytes that replicas send in place of a bucket of gradients, and the kernels that compress it. */
#ifndef DTSIM_COMPRESSION_H
#define DTSIM_COMPRESSION_H

#include "stage/stage.h"

/* Sizes of a bucket's tensors. Zero-initialise. */
struct bucket_sizes {
    double values;           /* gradients in the bucket */
    double matrices;         /* gradients in matrices that become factors */
    double left, right;      /* values of these matrices' factors: rank times rows, rank times columns */
    int count;               /* matrices that become factors */
};
void bucket_sizes_add(struct bucket_sizes *sizes, const struct scenario *scenario, double values, double rows);

/* One exchange of a bucket: kernels, then a collective of `bytes` and an all-reduce of the tensors that are not
 * compressed. */
enum { LEGS_MAX = 2 };
struct leg {
    double seconds;
    const struct collective *collective;
    double bytes, plain;     /* B of the collective, B of the all-reduce; 0: there is none */
};
struct compressed {
    struct leg legs[LEGS_MAX];
    double seconds;          /* s of the kernels after the last exchange */
};
/* How n replicas on nodes of these kinds (layout_kinds) sum a bucket; without compression, by the recipe's collective.
 * Kernels are memory-bound, and as slow as on the slowest kind. They take no time where the model's times are given. */
struct compressed compress_bucket(const struct scenario *scenario, unsigned kinds, const struct bucket_sizes *sizes,
                                  int n);

/* B that compression keeps from one iteration to the next on each of a stage's n GPUs: gradients that were not sent,
 * and factors to start from. */
double compression_memory(const struct scenario *scenario, const struct stage *stage, int n);

#endif
