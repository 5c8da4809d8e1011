/* first: the errors that predictions of published times had before anybody worked on their tables. Nothing computes them
 * again: scenarios/paper/first.tsv is kept by hand, and rows are only added to it. `dtsim validate --errors` joins them to
 * today's errors (scenarios/paper/errors.tsv). */
#ifndef DTSIM_FIRST_H
#define DTSIM_FIRST_H

#include "base/base.h"

struct first_error {
    const char *table, *row;         /* row: ""; the table's first errors are unknown, and this is its only row */
    int permille;                    /* of predicted / measured - 1 */
    const char *software, *family;   /* that the row named when it was asked first */
};
struct first_errors { struct first_error *items; size_t count, capacity; };

/* Reads such a file into the arena. Rows of a table stand together, so that none is added once the table was worked on. */
int first_errors_read(struct arena *arena, const char *path, struct first_errors *firsts, struct error *err);
/* The file that came with the program. It is an error that there is none. */
int first_errors_load(struct arena *arena, struct first_errors *firsts, struct error *err);
/* The first error of a row of a table; NULL: unknown. */
const struct first_error *first_error_find(const struct first_errors *firsts, const char *table, const char *row);
/* Whether the file has a row of the table. */
bool first_errors_have(const struct first_errors *firsts, const char *table);
/* Prints a row. `row` NULL: the one of a table whose first errors are unknown. */
void first_error_print(FILE *out, const char *table, const char *row, double error, const char *software,
                       const char *family);

#endif
