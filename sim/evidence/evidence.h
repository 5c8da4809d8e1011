/* evidence: how far predictions were off on published measurements, and so how far off one of similar work is expected
 * to be. scenarios/paper/errors.tsv has a row for each published time, of the scenario asked plainly; `dtsim validate
 * --errors` makes it. */
#ifndef DTSIM_EVIDENCE_H
#define DTSIM_EVIDENCE_H

#include "base/base.h"

/* Where two predictions are alike in these, their errors are likely to be. */
struct likeness {
    char software[32];               /* the name of the software file; "none" */
    char costs[32];                  /* the profile of kernel times; without one "roofline"; of given times "given" */
    char format[16];                 /* of the matrix products; of given times "given" */
    double gpus;
    double exposed;                  /* share of the iteration in which GPUs wait for communication */
    double measured;                 /* share of the kernels' time that stands on kernels measured in such sizes */
    double nic;                      /* B/s of a NIC; 0: nothing goes through NICs. It says nothing about errors between
                                      * the slowest and the fastest one that a published time has */
};

/* A published time, and what makes others like it. */
struct evidence_row {
    const char *table;
    double error;                    /* predicted / measured - 1 */
    size_t kind;                     /* an index */
    double doublings;                /* log2 of the GPUs */
    double exposed, measured;
    double weight;                   /* 1 over the rows of its table: each table counts as much as any other */
};
struct evidence {
    struct { struct evidence_row *items; size_t count, capacity; } rows;     /* by the size of the error, least first */
    struct { struct likeness *items; size_t count, capacity; } kinds;        /* names alone */
    double slowest_nic, fastest_nic;     /* B/s, of rows with NICs; 0: there are none */
};

/* The columns of such a file, by name, and NULL. */
extern const char *const evidence_columns[];
/* Prints a row, without the end of a line: the shares are rounded to what evidence needs. */
void evidence_print(FILE *out, const char *table, const struct likeness *likeness, double error);
/* Reads a file of such rows into the arena. */
int evidence_read(struct arena *arena, const char *path, struct evidence *evidence, struct error *err);
/* The rows that came with the program; the arena's cache remembers them. Without a file of them: none. */
int evidence_load(struct arena *arena, const struct evidence **evidence, struct error *err);

/* What is expected of a prediction, each row weighted by how alike its work is; NaN: there is no evidence. */
struct expectation {
    double error;                    /* the share of the time that it is off by, at most, in 6 of 10 cases, and in 9 of
                                      * 10 by at most twice as much: the larger of two quantiles of the sizes of all
                                      * errors, the upper one halved */
    double longer;                   /* the share of the published times that were longer than predicted */
};
/* `without`: a table that is left out, or NULL. */
struct expectation evidence_expect(const struct evidence *evidence, const struct likeness *likeness,
                                   const char *without);

#endif
