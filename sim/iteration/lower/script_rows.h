/* rows: the entries of a workload's rows when they are lowered, and marks of each entry. The table of works says which
 * work waits for which, and which memory a work takes and frees.
 *
 * Reads the workload's rows and its recipe.
 * Adds the entries of every local step, updates and gathers of weights, and the marks of each entry. */
#ifndef DTSIM_SCRIPT_ROWS_H
#define DTSIM_SCRIPT_ROWS_H

#include "schedule/schedule.h"
#include "workload/workload.h"

/* The tensors that a work waits for from a neighbouring stage and sends on: activations from the previous stage to the
 * next, or gradients the other way. */
enum arrival { ACTIVATIONS, GRADIENTS, ARRIVAL_COUNT, NO_ARRIVAL = ARRIVAL_COUNT };
/* The result that a work leaves on its stage. Later works of the same micro-batch wait for it. */
enum result { FORWARDED, RECOMPUTED, BACKWARDED, RESULT_COUNT, NO_RESULT = RESULT_COUNT };
/* Memory that a work takes or frees: activations that the forward keeps for the backward, and activations that a
 * recomputation adds to these. */
enum { MEMORY_NONE, MEMORY_KEPT = 1, MEMORY_WORKING = 2, MEMORY_ALL = MEMORY_KEPT | MEMORY_WORKING };

/* The table of works: which work waits for which, and how it uses memory. */
struct work_rule {
    enum arrival waits;              /* the tensors that it waits for; a recomputation: as its schedule says
                                      * (work_arrival) */
    enum result after;               /* the result that it waits for; RECOMPUTED: FORWARDED if the row does not
                                      * recompute the micro-batch */
    enum result leaves;              /* the result that it leaves */
    enum arrival sends;              /* the tensors that it sends on */
    int slice;                       /* it also waits for the result `leaves` of another slice of its micro-batch: of
                                      * the slice before (-1) or behind (1); 0: of none */
    int takes, frees;                /* memory: MEMORY_KEPT, MEMORY_WORKING */
    bool backward;                   /* it holds the workspace of a backward; else of a forward */
};
extern const struct work_rule work_rules[WORK_KIND_COUNT];

/* Marks of an entry. */
enum {
    ENTRY_COMPLETES = 1,             /* it completes its chunk's gradients before an update */
    ENTRY_RECOMPUTED = 2,            /* the row recomputes its micro-batch in its chunk */
    ENTRY_SPLIT = 4,                 /* the row does the micro-batch's backward for weights apart */
    ENTRY_LAYERS = 8,                /* ZeRO 3: its layers' weights are gathered. Not set where the recipe lets a
                                      * chunk's weights stay and an earlier entry has gathered them */
};

/* The rows, and what holds for all of them. */
struct rows {
    const struct workload *workload;
    const struct scenario *scenario; /* the workload's, */
    const struct plan *plan;         /* and its plan */
    bool whole;                      /* the rows of an iteration; false: the rows of one replica's works, for figures */
    bool update_last, gather_last;   /* an update ends each row, and then a gather of updated weights */
    bool replicates;                 /* PyTorch's DataParallel: replicas exchange before every entry */
    bool zero;                       /* ZeRO 3: works gather their layers */
    enum recompute_rule recompute;   /* the schedule's */
    int opportunistic;               /* micro-batches in flight up to which forwards overtake recomputations; 0: none */
    int steps;                       /* local steps: the number of batches in the rows */
    int micro_batches;               /* of each direction, over all batches and local steps */
    int sums;                        /* sums of each stage's gradients before an update */
    bool sums_late;                  /* these sums wait until all their members have come to their updates */
    uint8_t **marks;                 /* [pipeline rank][entry]: ENTRY_ bits */
};

/* In the arena. */
void rows_find(struct rows *rows, const struct workload *workload, bool whole, struct arena *arena);
/* For people: the entries of one replica. */
void rows_print(const struct rows *rows, FILE *out);

/* The number of entries of a rank's row: the works of every local step, updates between the steps and at the end, and
 * the gather at the end. */
static inline size_t row_entries(const struct rows *rows, int rank)
{
    size_t steps = (size_t)rows->steps;

    return steps * (rows->workload->rows[rank].count + 1) - !rows->update_last + rows->gather_last;
}

/* An entry of a rank's row. Local step k has its own micro-batches, numbered on from the last one of step k - 1. */
static inline struct work row_entry(const struct rows *rows, int rank, size_t entry)
{
    const struct row *row = &rows->workload->rows[rank];
    size_t step = entry / (row->count + 1), at = entry % (row->count + 1);
    struct work work;

    if (entry < row->count)
        return row->items[entry];
    if (step == (size_t)rows->steps || (at == row->count && step + 1 == (size_t)rows->steps && !rows->update_last))
        return (struct work){.kind = GATHER};
    if (at == row->count)
        return (struct work){.kind = UPDATE};
    work = row->items[at];
    work.mb += (int)step * plan_micro_batches(rows->plan);
    return work;
}

/* The tensors that a work on a stage waits for from a neighbouring stage. */
static inline enum arrival work_arrival(const struct rows *rows, enum work_kind kind, int stage)
{
    enum arrival arrival = work_rules[kind].waits;

    if ((kind == RECOMPUTE && rows->recompute == RECOMPUTE_EARLY) || (arrival == ACTIVATIONS && stage == 0) ||
        (arrival == GRADIENTS && stage == plan_virtual_stages(rows->plan) - 1))
        return NO_ARRIVAL;
    return arrival;
}

/* The neighbouring stage to which it sends its result; -1: none. */
static inline int work_sends(const struct rows *rows, enum work_kind kind, int stage)
{
    switch (work_rules[kind].sends) {
    case ACTIVATIONS: return stage + 1 < plan_virtual_stages(rows->plan) ? stage + 1 : -1;
    case GRADIENTS: return stage - 1;
    case NO_ARRIVAL: break;
    }
    return -1;
}

#endif
