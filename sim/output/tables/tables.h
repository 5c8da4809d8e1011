/* tables: the tab-separated files of a run, each with a header line. Charts, traces and reports read them. */
#ifndef DTSIM_TABLES_H
#define DTSIM_TABLES_H

#include "run/run.h"

/* What ran when on which lane, and for what it waited. */
void spans_write(const struct run *run, FILE *out);
/* The process groups that exchange something, as ranks of spans.tsv, of all replicas, folded or not. */
void groups_write(const struct run *run, FILE *out);
/* Bytes held by each rank, a line a change. */
void memory_write(const struct run *run, FILE *out);
/* Shares of all ranks' time by kind, over whole periods where there are any. */
void utilization_write(const struct run *run, FILE *out);
/* All bytes over each link, including measured collectives and folded replicas. */
void links_write(const struct run *run, FILE *out);

enum { RUN_TABLES = 5 };
extern const char *const run_table_names[];      /* of NAME.tsv; NULL behind the last */
extern void (*const run_tables[RUN_TABLES])(const struct run *, FILE *);

/* Refuses a folder whose files are not all of one run. Returns 1 where they are, and another build of the program wrote
 * them, which may have left out what this one writes. */
int result_check(const char *dir, struct error *err);

#endif
