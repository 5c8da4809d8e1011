/* layout: on which GPU of the cluster each seat of a job is. A seat is what one process of the job does: it has a
 * replica, a pipeline rank and a tensor index. Seats are numbered as the placement says and given to GPUs in this
 * order, node by node; a job may take fewer GPUs of each node than the node has. */
#ifndef DTSIM_LAYOUT_H
#define DTSIM_LAYOUT_H

#include "hardware/cluster.h"

enum dimension { DIMENSION_TENSOR, DIMENSION_DATA, DIMENSION_PIPELINE, DIMENSION_CONTEXT, DIMENSION_COUNT };

/* The degrees of a pipeline rank, where ranks have unequal degrees (strategy.stages). */
struct rank_degrees {
    int tensor, data;                /* GPUs of each of its tensor groups, and its replicas */
    int first_seat;                  /* the seats of a rank follow one another */
};

struct layout {
    int degree[DIMENSION_COUNT];     /* where ranks differ: of tensor and data the largest of all ranks */
    const struct rank_degrees *ranks;    /* a pipeline rank; NULL: all have the same degrees */
    bool data_first;                 /* of such a rank: replicas vary before tensor indices */
    int stride[DIMENSION_COUNT];     /* how far seats stand apart that follow each other in the dimension */
    int seats;                       /* the product of the degrees, or the sum over the ranks */
    bool mixed;                      /* seats are on nodes of several kinds */
    bool spans;                      /* seats are on several nodes */
    const int *gpus;                 /* a seat: its GPU, where stages say on which part they are (stages.h); else NULL */
    const bool *has;                 /* a GPU: whether a seat is on it; else NULL */
    int part_count;
    struct layout_part {             /* a part of the cluster, in the order of its nodes */
        int first, first_gpu;        /* its first seat and its first GPU */
        int each, taken;             /* GPUs of each of its nodes, and how many of them the job takes */
        int kind;
    } parts[PARTS_MAX];
};

/* Lays the job out. `order` has each dimension once, the one that varies fastest first. Settles how many GPUs of each
 * node the job takes, and the cluster's size where that was left out: equal numbers on all nodes, as a job is launched
 * with as many processes on each, on the fewest nodes on which that works, up to an eighth more than the GPUs need (1,024
 * GPUs are 16 racks of 72 with 64 each). It fills one node after another where equal numbers do not exist, where they
 * cut groups of the innermost degree that a node has room for, and where nodes are of several kinds. `ranks`: the degrees
 * of each pipeline rank, which layout_make numbers the seats of and which stay the caller's, with `degree` the largest of
 * them, a context degree of 1 and `order` with pipeline after tensor and data; NULL: all ranks have `degree`. */
void layout_make(struct layout *layout, struct cluster *cluster, const int degree[DIMENSION_COUNT],
                 const int order[DIMENSION_COUNT], struct rank_degrees *ranks);

/* Puts each seat on a GPU: gpus and has, which stay the caller's. */
void layout_take(struct layout *layout, const struct cluster *cluster, const int *gpus, const bool *has);

/* The GPU with the seat of that number, from 0. */
int layout_nth_gpu(const struct layout *layout, int seat);
/* GPUs in each tensor group of a pipeline rank, its replicas without and with the GPUs of their context groups. */
int layout_tensor(const struct layout *layout, int p);
int layout_data(const struct layout *layout, int p);
int layout_replicas(const struct layout *layout, int p);
/* The pipeline rank of a seat, and its replica of `data` replicas. */
struct rank_replica { int rank, data; };
struct rank_replica layout_rank_replica(const struct layout *layout, int seat);
/* The GPU of tensor index t of pipeline rank p of a replica. The GPUs of a context group count as replicas: the i-th of
 * the group of replica d has number d * context + i. */
int layout_gpu(const struct layout *layout, int t, int replica, int p);
/* Whether a seat is on that GPU. */
bool layout_has(const struct layout *layout, int gpu);
/* How many GPUs the job takes of a full node of that GPU's part. */
int layout_node_seats(const struct layout *layout, int gpu);
/* The number of seats on nodes of the kind. */
int layout_kind_seats(const struct layout *layout, int kind);

/* One part of `parts` equal parts of a whole overlaps parts of another division into `others`: the first and the last
 * of these. Replicas of two ranks divide the samples so, GPUs of tensor groups the tokens. */
struct partners { int first, last; };
static inline struct partners layout_partners(int part, int parts, int others)
{
    return (struct partners){(int)((long long)part * others / parts), (int)(((long long)(part + 1) * others - 1) / parts)};
}
/* The share of the whole that part i of n has in common with part k of m. */
double layout_common(int i, int n, int k, int m);

/* The GPU of a seat. */
struct seat {
    int gpu, node, kind;
    double slower;                   /* how many times as long its computations take */
};
struct seat layout_seat(const struct layout *layout, const struct cluster *cluster, int t, int replica, int p);
/* The kinds of node (bit k: kind k) on which the seats of a pipeline rank are, in all replicas. */
unsigned layout_kinds(const struct layout *layout, int p);

#endif
