/* outcome: how a scenario's simulation ended, as JSON, whatever became of it: what rows of sweeps and of comparisons
 * say.
 *
 *     {"engine": "ideal", "status": "ok", "metrics": {"iteration_time_s": 1.25, ...}}
 *     {"status": "infeasible", "rule": "degrees", "reason": "...", "metrics": {}}
 */
#ifndef DTSIM_OUTCOME_H
#define DTSIM_OUTCOME_H

#include "files/json.h"

#include "run/run.h"

#define OUTCOMES(X) \
    X(OUTCOME_OK, "ok") X(OUTCOME_INFEASIBLE, "infeasible") X(OUTCOME_ERROR, "error") \
    X(OUTCOME_TIMEOUT, "timeout") X(OUTCOME_CRASH, "crash")
enum outcome { OUTCOMES(ENUM_VALUE) OUTCOME_COUNT };
extern const char *const outcome_names[];        /* "ok", ... */
/* Whether it is a failure: being infeasible is an answer. */
static inline bool outcome_failed(enum outcome outcome)
{
    return outcome > OUTCOME_INFEASIBLE;
}
/* How a row ended; OUTCOME_COUNT: it does not say, or nothing that is known. */
enum outcome outcome_of(const json_t *row);

/* What else is put into the row of a scenario that ran, or whose refusal is put instead. -1: as below. */
typedef int outcome_more(json_t *row, const struct scenario *scenario, const struct run *run, struct error *err);
/* Simulates the scenario on its own engine and puts into the row how that ended, with times corrected by anchors (NULL:
 * none), or why they are not, and `more` (or NULL). -1: the system did not let a file be
 * read (error_system), and the row says nothing. */
int outcome_with(json_t *row, const struct scenario *scenario, const struct anchors *anchors, outcome_more *more,
                 struct error *err);
static inline int outcome_simulate(json_t *row, const struct scenario *scenario, const struct anchors *anchors, struct error *err)
{
    return outcome_with(row, scenario, anchors, NULL, err);
}
/* The same of a scenario that could not be read: the first mistake. */
void outcome_refused(json_t *row, const struct error *err);
/* The same of a simulation that was lost. */
void outcome_lost(json_t *row, enum outcome outcome, const char *reason);

#endif
