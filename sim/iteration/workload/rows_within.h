/* rows_within: the rows of a schedule, within the time that a command has. A schedule sees no budget, and some search for
 * long for the rows of many ranks and micro-batches (the V schedules move works one by one). Under a budget such rows are
 * written by a child process, which is ended when the time is over. */
#ifndef DTSIM_ROWS_WITHIN_H
#define DTSIM_ROWS_WITHIN_H

#include "base/progress.h"
#include "schedule/schedule.h"

/* As rows_of(). `progress`: or NULL. NULL after an error: EXIT_STOPPED where the time is over or the memory has no room
 * for as many operations as there are forwards, EXIT_UNEXPECTED where the child could not be had or failed. */
struct row *rows_within(const struct schedule *schedule, const struct plan *plan, struct progress *progress,
                        struct error *err);

#endif
