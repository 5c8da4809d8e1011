/* computed: what the page gets for a question, as one line of JSON:
 *
 *     {"numbers": {as result.json}, "yaml": "model: ...", "ties": false, "exit_code": 0}
 *     {"timeline": "base64 of deflate of parts, as in a report", "exit_code": 0}
 *     {"errors": [{"file", "line", "column", "message", "rule"}], "exit_code": 5}
 *
 * Where memory is short, errors stand there, and numbers without any time. */
#ifndef DTSIM_COMPUTED_H
#define DTSIM_COMPUTED_H

#include <stdio.h>

#include "base/progress.h"

enum { COMPUTED_SPANS = 400000 };    /* of a timeline, at most */

struct cache;
/* Answers a question. The cache, which has names_only, holds what the next one will need again. */
void computed_write(struct cache *cache, const char *text, size_t length, struct budget budget, FILE *out);
/* The answer that has errors alone; the caller frees it. */
char *computed_errors(const struct error *err);

#endif
