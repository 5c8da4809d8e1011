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

/* What works take on average, and so what WHAT_IF_BALANCED makes of them. */
struct loads;
/* The loads of a program; `timeline`: of this program, for what it repeats; or NULL. loads_release when done. */
struct loads *program_loads(const struct program *program, const struct timeline *timeline);
void loads_release(struct loads *loads);
/* Whether WHAT_IF_BALANCED would change anything in the program that the loads are of. */
bool program_uneven(const struct program *program, const struct loads *loads);
/* `which`: several of the above; `loads`: of this program, or of one with more of the same works; NULL: its own. Call it
 * before jitter is applied, so that jitter does not count as imbalance. */
void program_what_if(struct program *program, unsigned which, const struct loads *loads);

#endif
