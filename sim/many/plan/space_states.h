/* space_states: what GPUs hold all the time, as a rule of a space (space_states.c). */
#ifndef DTSIM_SPACE_STATES_H
#define DTSIM_SPACE_STATES_H

#include "plan/space.h"

/* Has the points asked, after all other constraints, whether weights, gradients and optimizer states alone exceed the memory of
 * a GPU: a rule of the space, whose points count as such that do not fit. Not where reading a point may be a search of its own. */
void ask_states(struct space *space, struct points *points);
/* From now on those are kept that lack least, for whoever wants to know what is nearest where nothing fits. False: none was
 * dropped. */
bool states_spare(struct space *space);
/* The point that lacks least of those that were dropped: B of a GPU, at least; INFINITY: none was. */
double states_nearest(const struct space *space, uint64_t *number);
void states_release(struct space *space);

#endif
