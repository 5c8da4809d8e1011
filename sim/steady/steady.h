/* steady: a long pipeline, simulated short. Between its fill and its drain a pipeline comes again and again to the same
 * state: after some micro-batches every rank does the works that it did before, so many micro-batches later, each just
 * as long after the one before. Then a pipeline of fewer micro-batches tells the times of the long one: what it does in
 * one such period is repeated (struct repeat in engine/program.h). That is exact but for rounding. It is not assumed but
 * seen: in the short timeline, the last period before the first rank drains must be the one before it, operation by
 * operation, on every lane, with the same dependencies. Whatever an operation does from then on follows from what is
 * under way at that time, so that further periods would be the same. The times of the drain follow from it too, unless
 * rounding errors grow there: rounding.h finds that out. */
#ifndef DTSIM_STEADY_H
#define DTSIM_STEADY_H

#include "lower/lower.h"
#include "steady/shorter.h"

/* Fills timeline->repeat of the short workload's timeline. False: it does not come to a steady state, or to one that
 * repeats itself in other numbers of micro-batches than were taken out, which shorter->found then says. */
bool steady_find(struct timeline *timeline, struct shorter *shorter);

#endif
