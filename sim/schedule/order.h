/* order: the rows of a schedule that somebody wrote, in PyTorch's notation as CSV: a line a rank, cells from left to
 * right,
 * "<global stage><kind><micro-batch>" counted from 0, kinds F B I W R, "@0" or "@1" where there are two directions, an
 * overlapped pair "(1F1;0B0)O". Empty cells (idle slots) and spaces count for nothing. */
#ifndef DTSIM_ORDER_H
#define DTSIM_ORDER_H

#include "schedule/schedule.h"

/* One cell as it was written. */
struct order_cell {
    enum work_kind kind;
    int rank, direction, stage, mb;
    int chunk;                   /* of the rank: found when all is read */
    bool with_next;              /* overlaps with the cell after it */
    int line, column;
    size_t at;                   /* which cell of its rank this is */
};

struct order {
    const char *file;            /* for messages */
    struct order_cell *cells;    /* rank by rank */
    size_t count;
    size_t *first;               /* [rank]: its first cell; [ranks]: the count */
    int ranks, stages, directions, chunks;
    int micro_batches;           /* of all directions */
    bool recomputes;             /* it has R cells; else memory.recompute: full puts one before each backward */
    bool directed;               /* cells have "@" */
    const struct stage_table *table;     /* unless a rule places its stages */
    struct strategy strategy;    /* what plays it, with plan.options this order */
};

enum { ORDER_MAX_BYTES = 64 << 20 };     /* of a file */

/* Reads the text and checks it: stages and micro-batches without gaps, each forward once and backward once, a rank a
 * stage, no deadlock. `rule`: where its recomputations may begin. All of it lives in the arena. */
int order_parse(struct arena *arena, const char *file, const char *text, size_t length, enum recompute_rule rule,
                struct order *order, struct error *err);
/* The same from a file; one that cannot be opened is an error at `loc`. */
int order_load(struct arena *arena, const char *path, struct loc loc, enum recompute_rule rule, struct order *order,
               struct error *err);

#endif
