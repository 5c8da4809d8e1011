/* window: the part of a timeline that is measured. */
#ifndef DTSIM_WINDOW_H
#define DTSIM_WINDOW_H

#include "engine/program.h"
#include "scenario/scenario.h"

/* Of a synchronous schedule that is the whole iteration, or local steps. An asynchronous one is measured in its steady
 * state: whole iterations (updates), from the end of one update of rank 0 to the end of a later one, after the fill and
 * before its last forward. Seconds are means over its updates. Bytes and FLOPs are the same in every iteration, and
 * means over `all` of the timeline. */
struct window { double from, to; int updates, all; bool steady; };

struct window window_of(const struct scenario *scenario, const struct timeline *timeline);
/* s of an iteration: the window over its updates. */
double window_update(const struct window *window);

#endif
