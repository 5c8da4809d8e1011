/* what_if: a program without something that takes time, for asking how much it costs. Operations and lanes stay as they
 * are; amounts or dependencies change. */
#ifndef DTSIM_WHAT_IF_H
#define DTSIM_WHAT_IF_H

#include "engine/program.h"

enum what_if {
    WHAT_IF_BALANCED = 1,            /* works of a kind take every rank as long, together and each of them */
    WHAT_IF_NO_BUBBLE = 2,           /* no rank waits for its pipeline neighbours */
    WHAT_IF_NO_RECOMPUTATION = 4,    /* recomputations, with their exchanges, take no time */
};

/* Whether WHAT_IF_BALANCED would change anything. `timeline`: of this program, for what it repeats; or NULL. */
bool program_uneven(const struct program *program, const struct timeline *timeline);
/* `which`: several of the above; `timeline` as there. Call it before jitter is applied, so that jitter does not count as
 * imbalance. */
void program_what_if(struct program *program, unsigned which, const struct timeline *timeline);

#endif
