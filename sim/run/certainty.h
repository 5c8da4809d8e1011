/* certainty: how far off the numbers of an iteration may be. */
#ifndef DTSIM_CERTAINTY_H
#define DTSIM_CERTAINTY_H

#include "run/metrics.h"

/* What makes the errors of other predictions say something about this one. */
struct likeness likeness_of(const struct scenario *scenario, const struct metrics *metrics);
/* Whether somebody could measure the scenario: not on the network that takes no time. */
bool likeness_exists(const struct scenario *scenario);
/* Sets stated_error, expected_error and expected_longer, when all other numbers are there. */
void certainty_state(struct metrics *metrics, const struct scenario *scenario);

#endif
