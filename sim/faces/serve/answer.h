/* answer: what `dtsim serve` says to a request: the metrics that `dtsim run --json` prints, or its errors.
 *
 *     {"id": 1, "metrics": {"iteration_time_s": 1.25, ...}, "exit_code": 0}
 *     {"id": 2, "errors": [{"file", "line", "column", "message", "rule"}], "exit_code": 5}
 *
 * Where the budget was spent before all was found, both stand there. */
#ifndef DTSIM_ANSWER_H
#define DTSIM_ANSWER_H

#include <stdio.h>

#include "base/progress.h"

/* Simulates what the line asks for (request_read), and writes the answer behind its id: all but `{"id": ID, `. The
 * cache holds what the next line will need again. */
struct cache;
void answer_write(struct cache *cache, const char *text, size_t length, int line, struct budget budget, FILE *out);
/* The same part of an answer that has errors alone; the caller frees it. */
char *answer_errors(const struct error *err);

#endif
