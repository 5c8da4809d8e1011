/* import_nccl: reads the output of NVIDIA/nccl-tests into a table of measured collectives (published.h). */
#ifndef DTSIM_IMPORT_NCCL_H
#define DTSIM_IMPORT_NCCL_H

#include "config/conf.h"

enum { IMPORT_NCCL_MAX_BYTES = 16 << 20 };

/* What the user says of runs that do not say it themselves. */
struct nccl_hints {
    const char *op;                  /* of runs that do not name their program; NULL: unknown */
    int ranks, per_node;             /* of runs without a full list of ranks; 0: unknown */
};

/* The table as a tree; NULL after errors, each at its line and column.
 *
 * A file may hold several runs, one after the other or, behind marks of their own, line by line (nccl_log.h). A run's
 * operation comes from its program's name in a comment ("# Collective test starting: all_reduce_perf"), which versions
 * before June 2025 do not print; its ranks and hosts come from the lines "#  Rank  0 ...". nccl-tests measures each
 * size twice: out of place (results go to another buffer), which is read, and in place. Its algbw is bytes over time,
 * busbw that times a factor of the operation (collective_bus_factor), #wrong the number of wrong results.
 *
 * Errors: GPUs of several kinds, a time that does not agree with its bandwidth, wrong results, a list of ranks that is
 * shortened, an operation or a number of ranks that the user says and busbw / algbw does not have, no rows at all. Runs
 * of programs that are not known and rows without a time are left out. `notes` gets lines with names and counts: of
 * rows that were left out, and of rows that were read in spite of a doubt, such as a busbw / algbw that does not fit
 * the ranks in the file's list.
 * The cluster is left out if no platform is known to have such GPUs. */
struct node *import_nccl_parse(struct arena *arena, const char *file, const char *text, size_t length,
                               const struct nccl_hints *hints, FILE *notes, struct error *err);
struct node *import_nccl_load(struct arena *arena, const char *path, const struct nccl_hints *hints, FILE *notes,
                              struct error *err);

#endif
