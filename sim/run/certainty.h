/* certainty: how far off the numbers of an iteration may be. */
#ifndef DTSIM_CERTAINTY_H
#define DTSIM_CERTAINTY_H

#include "run/metrics.h"

/* What makes the errors of other predictions say something about this one. */
struct likeness likeness_of(const struct scenario *scenario, const struct metrics *metrics);
/* Whether somebody could measure the scenario: not on the network that takes no time. */
bool likeness_exists(const struct scenario *scenario);
/* "no published run is like this: ..." with all that no published run has, in the arena; NULL: some may be like it. Of a
 * run that is not simulated `metrics` is NULL; then it does not say what times of kernels stand on. */
const char *certainty_unlike(struct arena *arena, const struct scenario *scenario, const struct metrics *metrics);
/* Sets stated_error, expected_error and expected_longer, when all other numbers are there. */
void certainty_state(struct metrics *metrics, const struct scenario *scenario);

#endif
