/* buckets: the gradients of a virtual stage that replicas sum together, in the order in which they become ready. */
#ifndef DTSIM_BUCKETS_H
#define DTSIM_BUCKETS_H

#include "kernels/contention.h"
#include "stage/compression.h"
#include "workload/workload.h"

struct bucket {
    struct compressed sum;   /* the exchanges that sum them */
    double values;           /* number of gradients */
    double weights;          /* B of the weights of these parameters, as replicas gather them */
    size_t slice;            /* the slice whose backward completes the bucket */
    struct contention overlapped;    /* the sum's contention with kernels, which lowering measures; else zero */
    enum parameter_class class;      /* class of its gradients */
};
struct buckets { struct bucket *items; size_t count, capacity; };

/* The buckets of a virtual stage; free(items). */
struct buckets buckets_of(const struct workload *workload, int index);
/* B of the weights of a class in the stage, as replicas gather them after an update. */
double buckets_weights(const struct workload *workload, int stage, enum parameter_class class);

#endif
