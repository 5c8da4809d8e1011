/* import_nccl: reads the output of NVIDIA/nccl-tests into a table of measured collectives (published.h). */
#ifndef DTSIM_IMPORT_NCCL_H
#define DTSIM_IMPORT_NCCL_H

#include "config/conf.h"

enum { IMPORT_NCCL_MAX_BYTES = 16 << 20 };

/* The table as a tree; NULL after errors, each at its line and column. The operation comes from the program's name in a
 * comment ("# Collective test starting: all_reduce_perf"); runs without
 * one, as of older versions, are of `op` (NULL: an error). Ranks and hosts come from the lines "#  Rank  0 ..."; a rank
 * 0 begins another run in the same file. Lines that are neither a comment nor a row are ignored. Errors: GPUs of
 * several kinds, a time that does not agree with its bandwidth, wrong results.
 * nccl-tests measures each size twice: out of place (results go to another buffer), which is read, and in place. Its
 * algbw is bytes over time, busbw that times a factor of the operation, #wrong the number of wrong results.
 * The cluster is left out if no platform is known to have such GPUs. */
struct node *import_nccl_parse(struct arena *arena, const char *file, const char *text, size_t length,
                               const char *op, struct error *err);
struct node *import_nccl_load(struct arena *arena, const char *path, const char *op, struct error *err);

#endif
