/* tally: how the points of sweeps ended, and why some cannot be, counted row by row. */
#ifndef DTSIM_TALLY_H
#define DTSIM_TALLY_H

#include "report/outcome.h"

/* The rows that have no numbers for one cause: the rule that made them infeasible, or what became of them. */
struct tally_cause {
    char *name;
    size_t count;
    char *first;                 /* the first of their points */
    double margin;               /* B: the least that is missing, negative; -INFINITY: no row says so */
    char *point, *reason;        /* of the row with that margin, else of the first */
};

struct tally_causes { struct tally_cause *items; size_t count, capacity; };

/* Zero-initialise. */
struct tally {
    size_t rows, ended[OUTCOME_COUNT + 1];
    struct tally_causes rules;       /* of infeasible rows */
    struct tally_causes failures;    /* of all others without numbers: "error", "crash", ... */
};

/* `point`: the row's point as text; points are ordered as strverscmp does. */
void tally_add(struct tally *tally, const json_t *row, const char *point);
/* How many rows ended how; of those that are infeasible by which rule, and by how much at least; an example of each. */
void tally_print(struct tally *tally, FILE *out);
/* How many points failed, so that nobody knows their numbers (outcome_failed), and words for people about what follows: nothing
 * that is said of the others holds of all points. */
size_t tally_failed(const struct tally *tally);
void tally_print_failed(const struct tally *tally, FILE *out);
void tally_release(struct tally *tally);

#endif
