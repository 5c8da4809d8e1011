/* collective_rows: the table of 'dtsim collective': a row a collective that was simulated. */
#ifndef DTSIM_COLLECTIVE_ROWS_H
#define DTSIM_COLLECTIVE_ROWS_H

#include "collective/measure.h"

struct collective_row {
    struct measured measured;
    enum collective_op op;
    int ranks;
    double bytes, algbw, busbw;      /* B; B/s */
    bool automatic;                  /* auto chose the algorithm */
};

/* Zero-initialise but for `nalgorithms`; collective_rows_release when done. */
struct collective_rows {
    size_t nalgorithms;              /* that run with each number of ranks and size */
    struct { struct collective_row *items; size_t count, capacity; } held;   /* not printed yet */
    struct { const struct collective **items; size_t count, capacity; } used;
    int channels_least, channels_most;       /* of the rows that were printed; 0: none was */
};
void collective_rows_add(struct collective_rows *rows, const struct collective_row *row);
/* Prints the rows that were added since the last call, with the units of nccl-tests: a line each, below a heading.
 * Marks those that auto chose, and of as many ranks and bytes the fastest where all of several algorithms have run. */
void collective_rows_print(struct collective_rows *rows);
/* Prints what stands below the table: the formula of each algorithm that ran, and why channels differ. */
void collective_rows_end(const struct collective_rows *rows);
void collective_rows_release(struct collective_rows *rows);

#endif
