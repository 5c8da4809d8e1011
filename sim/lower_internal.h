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

struct lowering {
    const struct scenario *scenario;
    const struct plan *plan;
    const struct stage *stages;      /* global stages */
    struct measure *measure;
    struct lowered *out;
    struct program *program;
    struct row *rows;                /* a pipeline rank */
    struct buckets *buckets;         /* a global stage; empty without data parallelism */
    uint32_t *compute_lane;          /* a program rank */
    uint32_t *next_lane, *previous_lane;     /* a program rank and flow */
    uint32_t **ready;                /* a program rank and chunk: the id after which each bucket is ready */
    struct tensor_cost *tensor;      /* a program rank and chunk */
    int channels;                    /* of gradient all-reduces */
    uint32_t *collective_lane;       /* a program rank, flow and channel */
    uint32_t *synced;                /* a program rank, chunk and flow: the end of its last all-reduce */

    /* Of the replica being lowered, by direction, global stage and micro-batch (lowering_cell). */
    struct arrival *activation, *gradient;
    uint32_t *forwarded, *recomputed, *backwarded;
    uint32_t *due;                   /* the piece of the next stage's backward after which a recomputation may begin */
    bool *recomputes;                /* the row recomputes it */
    size_t *cursor;                  /* a pipeline rank: the next cell of its row */
    size_t *last_backward;           /* a pipeline rank and chunk: the cell that completes its weight gradients */
};

/* Where a cell of a row stands in the model. */
struct place {
    int rank, stage, direction;
    size_t at;               /* lowering_cell */
};

/* lower_work.c */
size_t lowering_cell(const struct lowering *lowering, int direction, int stage, int mb);
struct place lowering_place(const struct lowering *lowering, int rank, struct work work);
/* Lowers the next cell of a rank's row, with those that it overlaps with, if all they wait for has been lowered.
 * `scratch` holds 2 (flows + 1) ids. */
bool lower_cell(struct lowering *lowering, int replica, int rank, uint32_t *scratch);

/* lower_sync.c */
void buckets_build(struct lowering *lowering);
/* Remembers, for the result, that this all-reduce was used. */
void lowering_use(struct lowering *lowering, const struct collective *used);
int lower_sync(struct lowering *lowering, struct error *err);

/* lower_tensor.c: what the all-reduces of each rank's tensor group cost; how many flows stand for a tensor group; whether
 * all replicas are alike, so that one stands for all. */
int tensor_costs(struct lowering *lowering, struct error *err);
int tensor_flows(const struct scenario *scenario);
bool replicas_alike(const struct scenario *scenario);

static inline int program_rank(const struct lowering *lowering, int replica, int rank)
{
    return replica * lowering->plan->stages + rank;
}

#endif
