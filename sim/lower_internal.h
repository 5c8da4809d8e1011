/* What lower.c (work and boundary transfers) and lower_sync.c (gradient all-reduce, update) share. */
#ifndef DTSIM_LOWER_INTERNAL_H
#define DTSIM_LOWER_INTERNAL_H

#include "lower.h"

#define NO_OP UINT32_MAX

/* The gradients of a global stage that are all-reduced together, in the order in which they become ready. */
struct bucket {
    double bytes;
    size_t slice;            /* of the stage's backward that completes it */
};
struct buckets { struct bucket *items; size_t count, capacity; };

/* Operations after which something has arrived: `count` ids from `first` (one a flow). */
struct arrival { uint32_t first, count; };

/* What the tensor group's all-reduces of one stage cost on one rank. */
struct tensor_cost { double seconds, bytes_sent; };

/* What has been lowered of one micro-batch on one global stage; NO_OP: nothing yet. */
struct cell {
    struct arrival activation, gradient;     /* of what its forward and its backward wait for */
    uint32_t forwarded, recomputed, backwarded;
    uint32_t due;                    /* the piece of the next stage's backward after which a recomputation may begin */
    bool recomputes;                 /* the row recomputes it */
    bool split;                      /* its backward for the weights comes later */
};

/* A chunk of a rank, in one replica. */
struct holder {
    struct tensor_cost tensor;
    uint32_t *ready;                 /* the id after which each bucket is ready */
    int completed;                   /* how often its gradients have been complete */
    uint32_t *synced;                /* a flow: the end of its last all-reduce */
};

struct lowering {
    const struct scenario *scenario;
    const struct plan *plan;
    const struct stage *stages;      /* global stages */
    struct measure *measure;
    struct lowered *out;
    struct program *program;
    struct error *err;
    struct arena arena;              /* everything below */
    struct row *rows;                /* a pipeline rank */
    bool **completes;                /* a pipeline rank and cell of its row: it completes its chunk's gradients */
    struct buckets *buckets;         /* a global stage; empty without data parallelism */
    int *syncs;                      /* a global stage: all-reduces of all its gradients so far */
    struct cell *cells;              /* lowering_cell */
    struct holder *holders;          /* a program rank and chunk */
    size_t *cursor;                  /* a program rank: the next cell of its row */
    int *updates;                    /* a program rank: so far */
    uint32_t *compute_lane;          /* a program rank */
    uint32_t *next_lane, *previous_lane;     /* a program rank and flow */
    int channels;                    /* of gradient all-reduces */
    uint32_t *collective_lane;       /* a program rank, flow and channel */
    uint32_t *scratch;               /* ids that one operation waits for */
    bool whole;                      /* the iteration, not the compute alone */
    bool failed;
};

/* Where a cell of a row stands. */
struct place {
    int replica, rank, stage, direction;
    struct cell *cell;
    struct holder *holder;
};

/* lower_work.c */
struct cell *lowering_cell(const struct lowering *lowering, int replica, int direction, int stage, int mb);
struct place lowering_place(const struct lowering *lowering, int replica, int rank, struct work work);
/* Lowers the next cell of a rank's row, with those that it overlaps with, if all they wait for has been lowered. */
bool lower_cell(struct lowering *lowering, int replica, int rank);

/* lower_sync.c */
void buckets_build(struct lowering *lowering);
void make_collective_lanes(struct lowering *lowering);
/* The update of a rank and, if it is the first to need them, the all-reduces of its gradients; false while some of
 * these gradients have not been lowered. */
bool lower_update(struct lowering *lowering, int replica, int rank);
/* Remembers, for the result, that this all-reduce was used. */
void lowering_use(struct lowering *lowering, const struct collective *used);

/* lower_tensor.c: what the all-reduces of each rank's tensor group cost; how many flows stand for a tensor group;
 * whether all replicas are alike, so that one stands for all. */
int tensor_costs(struct lowering *lowering, struct error *err);
int tensor_flows(const struct scenario *scenario);
bool private_links(const struct cluster *cluster);
bool replicas_alike(const struct scenario *scenario);

static inline struct holder *holder_of(const struct lowering *lowering, int program_rank, int chunk)
{
    return &lowering->holders[program_rank * lowering->plan->chunks + chunk];
}

static inline int program_rank(const struct lowering *lowering, int replica, int rank)
{
    return replica * lowering->plan->stages + rank;
}

#endif
