/* rounding: whether a replay makes small differences large. Flows that share links may: a transfer that begins a little
 * later delays others by more than that, these delay others again, and after many of them which transfer goes first is
 * decided by the last digit of a time. Then two replays of the same work agree only if they round at the same times,
 * and a pipeline tells nothing about one of another length. */
#ifndef DTSIM_ROUNDING_H
#define DTSIM_ROUNDING_H

#include "engine/program.h"
#include "hardware/cluster.h"

/* Whether any transfer of the timeline took longer than it would alone. */
bool timeline_shares_links(const struct timeline *timeline, const struct cluster *cluster);
/* Whether the times of the timeline would differ by much more than the durations of its works, if these differed a little.
 * A
 * watched timeline tells it, unless it is unclear. Else the program is replayed once more, with random differences, where
 * flows shared links; where none did, a time is a sum or the later one of two, and differences do not grow. */
bool rounding_grows(const struct timeline *timeline, const struct cluster *cluster);

#endif
