/* caveats: what a reader of a result should know of its scenario before relying on its numbers. */
#ifndef DTSIM_CAVEATS_H
#define DTSIM_CAVEATS_H

#include <jansson.h>

#include "scenario/scenario.h"

struct caveats {
    const char *items[14];       /* a sentence each, without a full stop; in the arena */
    size_t count;
};

struct caveats caveats_of(struct arena *arena, const struct scenario *scenario);
/* As a list for `notes`; the caller owns the reference. */
json_t *caveats_json(const struct scenario *scenario);
/* "note: ...", a line each. */
void caveats_print(const struct scenario *scenario, FILE *out);

#endif
