/* schedule: rows of work, the interface of the schedules in strategies/. A paper draws a schedule as a grid: one row
 * per rank, with its work from left to right. A strategy writes such rows; it never writes times or dependencies. */
#ifndef DTSIM_SCHEDULE_H
#define DTSIM_SCHEDULE_H

#include "config/field.h"

enum work_kind { FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, RECOMPUTE, UPDATE,
                 GATHER /* of updated weights, written by lower/script_rows.h alone */, WORK_KIND_COUNT };

/* One cell of the grid: work on one micro-batch, or on one slice of it (plan.slices), in one of the rank's model chunks.
 * Both numbers count from 0. */
struct work {
    enum work_kind kind;
    int chunk, mb;
    bool with_next;          /* this cell and the next one are one action, overlapped or a pass of both: they begin and
                              * end together */
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

/* Forwards of two micro-batches as one pass of both (Chimera's forward doubling). */
void forward_both(struct row *row, int chunk, int mb, int other_mb);

/* The optimizer's step on all chunks of the rank, with the gradients of the backwards since the last step. Only
 * asynchronous schedules write it; in other schedules it follows the rows, after a flush. */
void update(struct row *row);

/* The part of the model that each of a rank's chunks is, with P ranks. */
enum placement {
    PLACEMENT_LOOP,          /* rank r holds the virtual stages r, P + r, 2P + r, ... */
    PLACEMENT_V,             /* two chunks: rank r holds r and 2P - 1 - r */
    PLACEMENT_BIDIRECTIONAL, /* two chunks, each of another copy of the whole model (a direction): r and P - 1 - r */
    PLACEMENT_TABLE,         /* as in plan.table: for an order from a file, or for stages that ranks share */
};

/* Any assignment of virtual stages to ranks. A rank's chunks are ordered by direction, then by stage. Consecutive ranks
 * may share a stage: each of them holds it, and they take turns at the micro-batches. */
struct stage_table {
    int stages, directions;
    const int *rank, *chunk;     /* [direction * stages + stage] */
    const int *stage, *direction;/* [rank * plan.chunks + chunk] */
    const int *chunks;           /* [rank]: number of its chunks, at most plan.chunks */
    const int *sharers;          /* [stage]: number of ranks, from `rank` on, that share the stage; NULL: 1 for all */
};

/* The degrees and times that a schedule sees. */
struct plan {
    int stages;              /* pipeline ranks of a replica */
    int chunks;              /* model chunks (virtual stages) per rank; the most of any rank */
    int micro_batches;       /* per replica and batch */
    int flush;               /* per replica, between two flushes; 0: all. The schedule writes the rows of one flush,
                              * which repeat: a rank goes on with the next micro-batches as soon as it has done these */
    int batches;             /* consecutive batches of asynchronous schedules; micro-batch numbers run through all */
    int slices;              /* of the tokens of each micro-batch: works are of one slice, and their numbers count slices
                              * (slice i of micro-batch m is m x slices + i); 0: 1 */
    enum placement placement;
    const struct stage_table *table;     /* with PLACEMENT_TABLE */
    bool recompute;          /* full recomputation: a forward keeps only its input */
    bool pairs;              /* a backward that the next forward follows is one action with that: each rank is a forward
                              * further ahead than the schedule says (Megatron Core, pipeline_parallel/schedules.py,
                              * get_pp_rank_microbatches: overlap_moe_expert_parallel_comm) */
    struct plan_times {      /* s, mean over the stages, for schedules whose order depends on times */
        double forward;
        double backward_input;   /* with the recomputation before it, if there is one */
        double backward_weight;
        double communication;    /* of a boundary to the next rank, without contention */
    } times;
    const void *options;     /* the struct of the schedule's options table; for an order from a file the struct order */
};

/* When a recomputation may begin; its place in the order is given by the rows. */
enum recompute_rule {
    RECOMPUTE_WITH_GRADIENT, /* when the gradient that its backward needs has arrived (fused, as in Megatron-LM) */
    RECOMPUTE_EARLY,         /* as soon as the rank comes to it (GPipe, torchgpipe) */
    RECOMPUTE_JUST_IN_TIME,  /* so late that it ends together with the backward of the next stage (Varuna) */
};

struct schedule {
    const char *name;        /* the value of strategy.schedule */
    const char *title;
    const char *paper;
    const char *brief;       /* one line */
    const char *figure;      /* the paper's grid in ASCII, for help; the tests compare it with the code's result */
    const char *formula;     /* its closed forms as text, for help */
    const struct table *options;     /* its own keys under `strategy:`, or NULL */
    enum recompute_rule recompute;
    bool asynchronous;       /* no flush: the rows hold several updates, and metrics are of the steady state */
    bool own_spans;          /* its paper counts the bubble of each rank from its first work to the end of its last */
    int batches;             /* default of batch.count, the number of batches in the rows; 0: always one batch */
    bool (*vertical_sync)(const struct plan *plan);  /* all stages use the input stage's weight version; NULL: no */
    int delay;               /* batches by which the weights of a batch lag, on all stages: batch k uses the weights
                              * after the update of batch k - 1 - delay; 0: the newest that a stage has */
    bool stashes_fp32;       /* its runtime keeps older versions in fp32; false: in the format that computes */
    bool timed;              /* its rows depend on plan.times */
    bool alternative;        /* 'dtsim explain' tries it in place of the scenario's, for its smaller bubble */
    /* The rows are an order that was computed beforehand. If a rank comes at run time to a recomputation whose gradient
     * has not arrived, it does its next forward first, as long as the micro-batches in flight on it stay at or below
     * this (INT_MAX: always). 0 or NULL: it keeps to its row. */
    int (*opportunistic)(const struct plan *plan);
    enum placement placement;
    /* The list, among the options, of how many ranks share each stage (of int; empty: one each). NULL: one each. */
    const struct list *(*sharers)(const void *options);
    int (*slices)(const void *options);      /* plan.slices; NULL: 1 */
    int min_chunks, max_chunks;  /* model chunks per rank; 0: one */
    int usual_chunks;        /* the default in a pipeline of several ranks; 0: min_chunks */
    /* Refuses plans that the schedule cannot do, with an error at `loc`; or NULL. */
    int (*check)(const struct plan *plan, struct loc loc, struct error *err);
    /* Writes the row of one rank; or, if rows depend on each other, `rows` writes the rows of all ranks at once. */
    void (*row)(struct row *row, const struct plan *plan, int rank);
    void (*rows)(struct row *rows, const struct plan *plan);
    /* Seconds of the whole iteration if communication takes no time and every stage (and chunk) takes f, b and r
     * seconds per micro-batch for forward, backward and recomputation; a backward in two halves takes b / 2 twice.
     * NULL: no closed form; NaN: none for this plan or these times. */
    double (*ideal_makespan)(const struct plan *plan, double f, double b, double r);
    /* The maximum over time of the number of micro-batches in flight on that rank, in all its chunks: the forward is
     * done and the backward (or its second half) is not. NULL: no closed form; -1: none for this plan. */
    int (*ideal_in_flight)(const struct plan *plan, int rank);
};

/* The plan of the works between two flushes, which is what a schedule sees. */
struct plan plan_of_flush(const struct plan *plan);
int plan_flushes(const struct plan *plan);
/* The rows of all ranks, an entry a rank; rows_release(rows, plan->stages) when done. */
struct row *rows_of(const struct schedule *schedule, const struct plan *plan);
void rows_release(struct row *rows, int count);
/* The same rows again, to be changed and released apart. */
struct row *rows_copy(const struct row *rows, int count);
/* Takes the updates of asynchronous schedules out: what is left is what figures, grids and orders show. */
void rows_strip_updates(struct row *rows, int count);
/* Whether the rows deadlock, whatever the times are. */
bool rows_deadlock(const struct row *rows, const struct plan *plan);

/* The value of strategy.opportunistic for the plan; 0 if it is NULL. */
int plan_opportunistic(const struct schedule *schedule, const struct plan *plan);

/* Optimizer steps in the rows: 1, or the updates that an asynchronous schedule writes. */
int rows_updates(const struct row *rows);
/* The maximum number of versions of its weights that a rank holds. A backward uses the version that its forward used.
 * Forwards use the newest version; or with vertical_sync the version that the input stage used; or with a delay the
 * version that is as many updates old, so that every rank holds one version more than the delay. */
int rows_versions(const struct schedule *schedule, const struct plan *plan, const struct row *rows, int rank);

/* The schedules of strategies/list.h, in its order. */
const struct schedule *schedule_at(size_t index);        /* NULL past the last */
const char *schedule_name(size_t index);                 /* a choice_name */

/* The virtual stages are the model's chunks in model order. A direction is one of the copies of the model that a
 * replica holds: a bidirectional placement has two, any other has one. */
int plan_virtual_stages(const struct plan *plan);
int plan_directions(const struct plan *plan);
int plan_virtual_stage(const struct plan *plan, int rank, int chunk);
int plan_direction(const struct plan *plan, int rank, int chunk);
/* The number of a rank's chunks: plan.chunks, unless a table gives another number. */
int plan_chunks(const struct plan *plan, int rank);
/* The rank that does a micro-batch's work on a virtual stage of a direction and, if `chunk` is not NULL, the chunk of
 * this rank. */
int plan_rank(const struct plan *plan, int direction, int virtual_stage, int mb, int *chunk);
/* The number of ranks that share the stage; micro-batch m is done by sharer m modulo this number. */
int plan_sharers(const struct plan *plan, int virtual_stage);
bool plan_shares(const struct plan *plan);           /* whether any ranks share a stage */
/* The number of ranks of a replica that hold the stage's weights: its sharers in both directions. */
int plan_holders(const struct plan *plan, int virtual_stage);
int plan_most_holders(const struct plan *plan);      /* the maximum over all stages */
/* Slices of a micro-batch, at least 1. */
static inline int plan_slices(const struct plan *plan)
{
    return plan->slices > 1 ? plan->slices : 1;
}
/* Micro-batches of each direction, over all batches; where they are cut into slices, these. */
int plan_micro_batches(const struct plan *plan);

/* The cell in PyTorch's notation, "2F5": virtual stage, kind (F B I W R), micro-batch from 0; "@0" or "@1" after it
 * where there are two directions. */
char *work_format(const struct plan *plan, int rank, struct work work, char *buffer, size_t size);
char work_letter(enum work_kind kind);

#endif
