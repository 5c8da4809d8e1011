/* schedule: what a pipeline schedule writes, all that its file in strategies/ sees. A paper draws a schedule as a grid:
 * a row a rank, work from left to right. A strategy writes such rows; it never writes times or dependencies. */
#ifndef DTSIM_SCHEDULE_H
#define DTSIM_SCHEDULE_H

#include "config/field.h"

enum work_kind { FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, RECOMPUTE, UPDATE,
                 GATHER /* of updated weights, written by lower.c alone */, WORK_KIND_COUNT };

/* One cell of the grid: work on one micro-batch in one of the rank's model chunks. Both count from 0. */
struct work {
    enum work_kind kind;
    int chunk, mb;
    bool with_next;          /* one overlapped action with the cell after it, which begins and ends with it */
};
struct row { struct work *items; size_t count, capacity; };      /* zero-initialise; free(items) */

/* Append one cell. */
void forward(struct row *row, int chunk, int mb);
void backward(struct row *row, int chunk, int mb);
void backward_input(struct row *row, int chunk, int mb);
void backward_weight(struct row *row, int chunk, int mb);
void recompute(struct row *row, int chunk, int mb);
/* A forward and a backward of different micro-batches as one overlapped action (DualPipe). */
void overlapped(struct row *row, int forward_chunk, int forward_mb, int backward_chunk, int backward_mb);

/* The optimizer's step on all chunks of the rank, with the gradients of the backwards since the last one. Only
 * asynchronous schedules write it; the rows of the others end with it, after a flush. */
void update(struct row *row);

/* Which part of the model a rank's chunk is, with P ranks and V chunks a rank. */
enum placement {
    PLACEMENT_LOOP,          /* rank r holds the global stages r, P + r, 2P + r, ... */
    PLACEMENT_V,             /* two chunks: rank r holds r and 2P - 1 - r */
    PLACEMENT_BIDIRECTIONAL, /* two chunks, each of another copy of the whole model (a direction): r and P - 1 - r */
    PLACEMENT_TABLE,         /* as plan.table says: of an order that somebody wrote, or of stages that ranks share */
};

/* Any assignment of global stages to ranks. A rank's chunks are in the order of directions, then of stages. Ranks in a
 * row may share a stage: they hold it each, and take turns at the micro-batches. */
struct stage_table {
    int stages, directions;
    const int *rank, *chunk;     /* [direction * stages + stage] */
    const int *stage, *direction;/* [rank * plan.chunks + chunk] */
    const int *chunks;           /* [rank]: how many it has, at most plan.chunks */
    const int *sharers;          /* [stage]: on so many ranks from `rank` on; NULL: on one each */
};

/* The degrees that a schedule sees. */
struct plan {
    int stages;              /* pipeline ranks of a replica */
    int chunks;              /* model chunks (virtual stages) per rank; the most of any rank */
    int micro_batches;       /* per replica and batch */
    int batches;             /* in a row, of asynchronous schedules; micro-batches are numbered through all of them */
    enum placement placement;
    const struct stage_table *table;     /* with PLACEMENT_TABLE */
    bool recompute;          /* full recomputation: a forward keeps its input alone */
    struct plan_times {      /* s of the mean stage, for schedules whose order depends on them */
        double forward;
        double backward_input;   /* with the recomputation before it, where there is one */
        double backward_weight;
        double communication;    /* of a boundary to the next rank, without contention */
    } times;
    const void *options;     /* of the schedule: the struct of its options table; or the struct order of a file */
};

/* Where a recomputation may begin (rows fix its place in the order). */
enum recompute_rule {
    RECOMPUTE_WITH_GRADIENT, /* once the gradient that its backward needs has arrived (fused, as in Megatron) */
    RECOMPUTE_EARLY,         /* as soon as the rank comes to it (GPipe, torchgpipe) */
    RECOMPUTE_JUST_IN_TIME,  /* when the next stage's backward has come so far that both end together (Varuna) */
};

struct strategy {
    const char *name;        /* as under strategy.schedule */
    const char *title;
    const char *paper;
    const char *brief;       /* one line */
    const char *figure;      /* the paper's grid in ASCII, for help; the tests compare it with what the code does */
    const char *formula;     /* its closed forms, as text */
    const struct table *options;     /* its own keys under `strategy:`, or NULL */
    enum recompute_rule recompute;
    bool asynchronous;       /* no flush: the rows hold several updates, and metrics are those of the steady state */
    int batches;             /* how many batches the rows hold when batch.count does not say; 0: always one */
    bool (*vertical_sync)(const struct plan *plan);  /* all stages use the input stage's weight version; NULL: no */
    /* The rows are what was computed beforehand; at run time a rank whose recomputation comes before its gradient does
     * its next forward instead, while that leaves at most so many micro-batches in flight on it (INT_MAX: always). 0 or
     * NULL: it keeps to its row. */
    int (*opportunistic)(const struct plan *plan);
    enum placement placement;
    /* Of the options: how many ranks share each stage (of int; empty: one each). NULL: one each. */
    const struct list *(*sharers)(const void *options);
    int min_chunks, max_chunks;  /* model chunks a rank; 0: one */
    /* What the schedule cannot do, as errors at `loc`; or NULL. */
    int (*check)(const struct plan *plan, struct loc loc, struct error *err);
    /* The row of one rank; or, where rows depend on each other, the rows of all ranks at once. */
    void (*row)(struct row *row, const struct plan *plan, int rank);
    void (*rows)(struct row *rows, const struct plan *plan);
    /* Seconds of the whole iteration on a free network, every stage (and chunk) taking f, b and r seconds a
     * micro-batch; a backward that is split takes b / 2 twice. NULL: no closed form; NaN: none for such a plan or such
     * times. */
    double (*ideal_makespan)(const struct plan *plan, double f, double b, double r);
    /* Most micro-batches (in all chunks) whose forward is done and backward (or its second half) is not, on that rank.
     * NULL: no closed form; -1: none for such a plan. */
    int (*ideal_in_flight)(const struct plan *plan, int rank);
};

/* The rows of all ranks, an entry a rank; rows_release(rows, plan->stages) when done. */
struct row *rows_of(const struct strategy *strategy, const struct plan *plan);
void rows_release(struct row *rows, int count);
/* The same rows again, to be changed and released apart. */
struct row *rows_copy(const struct row *rows, int count);
/* Takes the updates of asynchronous schedules out: what is left is what figures, grids and orders show. */
void rows_strip_updates(struct row *rows, int count);
/* Whether the rows wait for each other forever, however fast they are. */
bool rows_deadlock(const struct row *rows, const struct plan *plan);

/* strategy.opportunistic of the plan. */
int plan_opportunistic(const struct strategy *strategy, const struct plan *plan);

/* Optimizer steps in the rows: 1, or the updates that an asynchronous schedule writes. */
int rows_updates(const struct row *rows);
/* How many versions of its weights a rank holds at most: a backward uses the version that its forward used, and
 * forwards use the newest, or with vertical_sync that of the input stage. */
int rows_versions(const struct strategy *strategy, const struct plan *plan, const struct row *rows, int rank);

/* All of strategies/list.h, in its order. */
const struct strategy *strategy_at(size_t index);        /* NULL past the last */
const char *strategy_name(size_t index);                 /* a choice_name */

/* The model's chunks in model order are its global stages. A direction is one of the copies of the model that a replica
 * holds: two where the placement is bidirectional, else one. */
int plan_global_stages(const struct plan *plan);
int plan_directions(const struct plan *plan);
int plan_global_stage(const struct plan *plan, int rank, int chunk);
int plan_direction(const struct plan *plan, int rank, int chunk);
/* How many chunks a rank has: plan.chunks, unless a table says otherwise. */
int plan_chunks(const struct plan *plan, int rank);
/* Where a micro-batch meets a global stage of a direction: the rank and, if `chunk` is not NULL, the rank's chunk. */
int plan_rank(const struct plan *plan, int direction, int global_stage, int mb, int *chunk);
/* How many ranks share the stage: micro-batches 0, 1, ... less than that meet it on them, one each. */
int plan_sharers(const struct plan *plan, int global_stage);
bool plan_shares(const struct plan *plan);           /* whether any ranks share a stage */
/* How many ranks of a replica hold the stage's weights: its sharers, in both directions. */
int plan_holders(const struct plan *plan, int global_stage);
int plan_most_holders(const struct plan *plan);      /* of any stage */
/* Micro-batches of each direction, over all batches. */
int plan_micro_batches(const struct plan *plan);

/* The cell in PyTorch's notation, "2F5": global stage, kind (F B I W R), micro-batch from 0; "@0" or "@1" after it
 * where there are two directions. */
char *work_format(const struct plan *plan, int rank, struct work work, char *buffer, size_t size);
char work_letter(enum work_kind kind);

#endif
