/* nccl_log: finds the lines of nccl-tests in a log whose lines others have marked.
 *
 *   mpirun --tag-output          [1,0]<stdout>:# nThread 1 nGpus 1 ...
 *   srun --label                 0: # nThread 1 nGpus 1 ...
 *   mpiexec -l                   [0] # nThread 1 nGpus 1 ...
 *   kubectl logs --prefix        [pod/launcher-x7/nccl] # nThread 1 nGpus 1 ...
 *   kubectl logs --timestamps    2026-01-02T03:04:05.678901234Z # nThread 1 nGpus 1 ...
 *   docker compose logs          worker-1  | # nThread 1 nGpus 1 ...
 *   syslog                       Jan  2 03:04:05 node-1 job[77]: # nThread 1 nGpus 1 ...
 *
 * What nccl-tests writes shows where its part of a line begins, whatever stands before it: a '#' and the first words of
 * one of its comments, or a size, a count and the name of a type. */
#ifndef DTSIM_NCCL_LOG_H
#define DTSIM_NCCL_LOG_H

#include "base/base.h"

/* Comments of nccl-tests (NVIDIA/nccl-tests, src/util.cu; before October 2025 src/common.cu), as they begin. */
enum nccl_comment {
    NCCL_STARTING, NCCL_CONCLUDED, NCCL_VERSION, NCCL_ARGUMENTS, NCCL_DEVICES, NCCL_RANK, NCCL_HEADER, NCCL_FOOTER,
    NCCL_OTHER                       /* none of these */
};

/* Overwrites what steers a terminal (colours) and carriage returns with spaces. */
void nccl_log_clean(char *line);
/* Which comment begins at a '#'; *words: its first character behind the '#' and spaces. */
enum nccl_comment nccl_comment_at(const char *text, const char **words);
/* Where a comment of a known kind or a row of results begins in a line; NULL: in none. */
char *nccl_log_content(char *line);
/* Whether the line continues at `text` with "..." or something else that stands for lines that were left away. */
bool nccl_log_ellipsis(const char *text);
/* What the first `length` characters of a line say of where it comes from: without timestamps, with single spaces. The
 * same for all lines of one process. Cut after size - 1 characters. */
void nccl_log_source(const char *line, size_t length, char *source, size_t size);

#endif
