/* results_table: rows of sweeps printed for people and programs. */
#ifndef DTSIM_RESULTS_TABLE_H
#define DTSIM_RESULTS_TABLE_H

#include "results/results.h"

enum results_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_MARKDOWN, FORMAT_JSON };

/* The keys of the columns that people want to see if they do not say which: what the sweep sets, and the metrics that
 * choices are made by. All keys for programs. `columns` has room for all keys; returns how many. */
size_t results_columns(const struct results *results, enum results_format format, int *columns);

/* How rows are printed. */
struct results_look {
    enum results_format format;
    const int *columns;          /* keys */
    size_t count;                /* of them */
    size_t most;                 /* rows that are printed, the first */
    bool all;                    /* people see the columns in which all rows have the same in the table too */
    bool keys;                   /* people read the names of keys, not the words for them */
};
/* Text and Markdown have numbers with the unit that stands in the head, CSV and JSON Lines SI units, and JSON whole
 * rows. */
void results_print(const struct results *results, const struct results_look *look, FILE *out);
/* Whether more of it is better, as far as its name tells. */
bool results_wants_most(const char *key);
/* What `dtsim results FOLDER` prints (cmd_results.c). */
int results_summary(const char *folder, size_t most, struct error *err);

#endif
