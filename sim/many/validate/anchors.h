/* anchors: a person's own measured runs, by which predictions are corrected (evidence/anchor.h). */
#ifndef DTSIM_ANCHORS_H
#define DTSIM_ANCHORS_H

#include "evidence/anchor.h"

/* Simulates the runs that `text` names, as they are configured, `jobs` at once: MINE.yaml, a table in the papers' format
 * (`dtsim help paper`), whose rows with a measured time or rate are anchors; or SCENARIO.yaml=TIME, a scenario and the time of
 * its iteration. All is in the arena. `text` NULL: *anchors is NULL. -1: mistakes of the file, each at its place; rows that
 * cannot be simulated; no measured time. */
int anchors_load(struct arena *arena, const char *text, size_t jobs, const struct anchors **anchors, struct error *err);

#endif
