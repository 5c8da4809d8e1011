/* order: the rows of a schedule from a CSV file in PyTorch's notation: one line per rank, with its cells from left to
 * right. A cell is "<virtual stage><kind><micro-batch>", with numbers from 0 and the kinds F B I W R, followed by "@0"
 * or "@1" if there are two directions. An overlapped pair is "(1F1;0B0)OVERLAP_F_B", or "O". Empty cells (idle slots)
 * and spaces are ignored. */
#ifndef DTSIM_ORDER_H
#define DTSIM_ORDER_H

#include "schedule/schedule.h"

/* One cell as it was written. */
struct order_cell {
    enum work_kind kind;
    int rank, direction, stage, mb;
    int chunk;                   /* of the rank: set after all cells are read */
    bool with_next;              /* overlaps with the next cell */
    int line, column;
    size_t at;                   /* its index among the cells of its rank */
};

struct order {
    const char *file;            /* for messages */
    struct order_cell *cells;    /* rank by rank */
    size_t count;
    size_t *first;               /* [rank]: its first cell; [ranks]: the count */
    int ranks, stages, directions, chunks;
    int micro_batches;           /* of all directions */
    bool recomputes;             /* it has R cells; else memory.recompute: full adds one before each backward */
    bool directed;               /* cells have "@" */
    const struct stage_table *table;     /* NULL: its stages are placed as by another enum placement */
    struct schedule schedule;    /* the schedule that writes its rows, with this order as plan.options */
};

enum { ORDER_MAX_BYTES = 64 << 20 };     /* of a file */

/* Reads and checks the text: stages and micro-batches without gaps, each forward and each backward once, each stage on
 * one rank, no deadlock. `rule` says when its recomputations may begin. The order lives in the arena. */
int order_parse(struct arena *arena, const char *file, const char *text, size_t length, enum recompute_rule rule,
                struct order *order, struct error *err);
/* Reads and checks a file; a file that cannot be opened is an error at `loc`. */
int order_load(struct arena *arena, const char *path, struct loc loc, enum recompute_rule rule, struct order *order,
               struct error *err);

#endif
