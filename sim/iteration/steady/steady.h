/* steady: a long pipeline, simulated short. Between its fill and its drain a pipeline returns to the same state every
 * few micro-batches: every rank then does the works of the period before, on later micro-batches, all later by the same
 * time. Then a pipeline of fewer micro-batches gives the times of the long one: its operations of one period are
 * repeated (struct repeat in engine/program.h). That is exact but for rounding. It is not assumed but seen: in the
 * short timeline, the last period before the first rank drains must be the one before it, operation by operation, on
 * every lane, with the same dependencies. Whatever an operation does from then on follows from what is under way at
 * that time, so that further periods would be the same. The times of the drain follow from it too, unless rounding
 * errors grow there: rounding.h finds that out. Replicas of several kinds each have a period: apart.h. Where flows of
 * several replicas meet in NICs, most pipelines come to no steady state, or rounding decides which flow goes first. These
 * are simulated whole, which takes time in proportion to their micro-batches. */
#ifndef DTSIM_STEADY_H
#define DTSIM_STEADY_H

#include "engine/replay.h"
#include "steady/shorter.h"

/* No errors: this shorter workload does not tell the times of the whole one; none does. */
enum { UNSTEADY = 1, UNPREDICTABLE = 2 };

/* Replays the short workload's program, whose timeline is initialised, and fills timeline->repeats. Returns 0, -1, UNSTEADY
 * or UNPREDICTABLE. Amounts of the program change while it runs. Errors: as replay. */
int steady_replay(enum engine engine, struct program *program, struct timeline *timeline, struct shorter *shorter,
                  struct error *err);

/* The operations of each lane, in their order: ids[first[lane]] to before ids[first[lane + 1]]. */
struct lane_ops { size_t *first; uint32_t *ids; };
struct lane_ops lane_ops_of(const struct program *program);
void lane_ops_release(struct lane_ops *by);

/* The period of the timeline, which is of the short workload's program or of the ranks of one replica. False: it does not
 * come to a steady state, or to one that repeats itself in other numbers of micro-batches than were taken out, which
 * shorter->found then says. */
bool steady_find(const struct timeline *timeline, struct shorter *shorter, struct repeat *repeat);

#endif
