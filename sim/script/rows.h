/* rows: the entries that a workload's rows have when they are lowered, and what is known of each. The table of works says
 * which work waits for which, and what it does with memory.
 *
 * Reads the workload's rows and its recipe.
 * Adds the entries of every local step, updates and gathers of weights; and the marks of each. */
#ifndef DTSIM_ROWS_H
#define DTSIM_ROWS_H

#include "schedule/schedule.h"
#include "workload/workload.h"

/* The tensors that a work waits for from a neighbouring stage and sends on: activations from the previous stage to the
 * next, or gradients the other way. */
enum arrival { ACTIVATIONS, GRADIENTS, ARRIVAL_COUNT, NO_ARRIVAL = ARRIVAL_COUNT };
/* What a work leaves on its stage for later works of the same micro-batch. */
enum result { FORWARDED, RECOMPUTED, BACKWARDED, RESULT_COUNT, NO_RESULT = RESULT_COUNT };
/* Bytes that a work takes or frees: what the forward keeps for the backward, and what a recomputation adds to it. */
enum { MEMORY_NONE, MEMORY_KEPT = 1, MEMORY_WORKING = 2, MEMORY_ALL = MEMORY_KEPT | MEMORY_WORKING };

/* The table of works: which work waits for which, and how it uses memory. */
struct work_rule {
    enum arrival waits;              /* a recomputation: as its schedule says (work_arrival) */
    enum result after;               /* RECOMPUTED: FORWARDED if the row does not recompute the micro-batch */
    enum result leaves;
    enum arrival sends;
    int slice;                       /* the slice of the micro-batch, the previous (-1) or the next (1), that has to
                                      * leave its result first; 0: none */
    int takes, frees;
    bool backward;                   /* it holds the workspace of a backward */
};
extern const struct work_rule work_rules[WORK_KIND_COUNT];

/* What is known of an entry. */
enum {
    ENTRY_COMPLETES = 1,             /* it completes its chunk's gradients before an update */
    ENTRY_RECOMPUTED = 2,            /* the row recomputes its micro-batch, */
    ENTRY_SPLIT = 4,                 /* and does the backward for weights apart */
    ENTRY_LAYERS = 8,                /* under ZeRO 3 it gathers layers: not once its chunk's weights stay for the iteration */
};

/* The rows, and what holds for all of them. */
struct rows {
    const struct workload *workload;
    const struct scenario *scenario; /* the workload's, */
    const struct plan *plan;         /* and its plan */
    bool whole;                      /* of an iteration; else for figures: of works alone */
    bool update_last, gather_last;   /* an update ends each row, and then a gather of updated weights */
    bool replicates;                 /* PyTorch's DataParallel: replicas exchange before every entry */
    bool zero;                       /* ZeRO 3: works gather their layers */
    enum recompute_rule recompute;   /* the schedule's */
    int opportunistic;               /* micro-batches in flight up to which forwards overtake recomputations; 0: none */
    int steps;                       /* local steps: the number of batches in the rows */
    int micro_batches;               /* of each direction, over all batches and local steps */
    int sums;                        /* sums of each stage's gradients before an update */
    bool sums_late;                  /* they wait until their members have come to their updates */
    uint8_t **marks;                 /* a pipeline rank and entry */
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

/* One of them. A local step has micro-batches of its own. */
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

/* What a work on a stage waits for from a neighbouring stage. */
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
