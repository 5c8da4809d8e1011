/* tally: how the points of sweeps ended, and why some cannot be, counted row by row. */
#ifndef DTSIM_TALLY_H
#define DTSIM_TALLY_H

#include "report/outcome.h"

/* The rows that one rule made infeasible. */
struct tally_rule {
    char *rule;
    size_t count;
    char *first;                 /* the first of their points */
    double margin;               /* B: the least that is missing, negative; -INFINITY: no row says so */
    char *point, *reason;        /* of the row with that margin, else of the first */
};

/* Zero-initialise. */
struct tally {
    size_t rows, ended[OUTCOME_COUNT + 1];
    struct { struct tally_rule *items; size_t count, capacity; } rules;
};

/* `point`: the row's point as text; points are ordered as strverscmp does. */
void tally_add(struct tally *tally, const json_t *row, const char *point);
/* How many rows ended how; of those that are infeasible by which rule, and by how much at least. */
void tally_print(struct tally *tally, FILE *out);
void tally_release(struct tally *tally);

#endif
