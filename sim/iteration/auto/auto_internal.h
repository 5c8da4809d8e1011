/* Declarations that the files of auto share. */
#ifndef DTSIM_AUTO_INTERNAL_H
#define DTSIM_AUTO_INTERNAL_H

#include "base/cache.h"
#include "scenario/settled.h"
#include "workload/workload.h"

/* How an iteration ends: s until all is done, and B that a GPU lacks at its peak, 0: all fit; INFINITY both: it cannot
 * be. */
struct lowered_end { double seconds, lacks; };
/* `works`, unless it is NULL: s of an iteration's works on the slowest rank of each replica (of `data`), with the exchanges
 * within them; left alone where it cannot be. `most`: an iteration that surely takes more s is not replayed; the result is
 * then what it takes at least (bound.h), as if it did fit. */
typedef struct lowered_end lowered_end_function(const struct scenario *scenario, double most, double *works);
/* On engine fast, of a workload with its rows and plans. */
struct lowered_end workload_end(const struct workload *workload, double *works);
/* Whether the first is the better: it lacks less memory or, where both fit, ends sooner. */
static inline bool lowered_better(struct lowered_end one, struct lowered_end other)
{
    if (one.lacks > 0 || other.lacks > 0)
        return one.lacks < other.lacks * (1 - ROUNDING);
    return one.seconds < other.seconds * (1 - ROUNDING);
}

/* The scenario with each pipeline rank on one part of the cluster, in the order that is best; in the arena. `ends`: of an
 * order. NULL: errors: no order, or too many. */
const struct scenario *auto_parts(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends,
                                  struct error *err);
/* The scenario with the samples of each replica's micro-batches with which the iteration ends first; in the arena. NULL on
 * errors, which are the errors of auto_split. */
const struct scenario *auto_shares(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends,
                                   struct error *err);
/* The scenario with the layers of each virtual stage with which the iteration ends first, of the splits that fit into the GPUs'
 * memory; where none does, of the splits that lack least. In the arena. NULL: errors, the same as workload_build's. */
const struct scenario *auto_split(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends,
                                  struct error *err);
/* The scenario with the plans of layers with which the iteration ends first, of those that best_memory.c tries: with its
 * memory.planned and memory.offload, or another memory.recompute. In the arena. Where none fits the scenario itself:
 * workload_order says why. */
const struct scenario *auto_memory(struct arena *arena, const struct scenario *scenario);
/* A settled scenario in the arena. */
static inline const struct scenario *keep_settled(struct arena *arena, const struct scenario *scenario, struct settled settled)
{
    struct scenario *kept = ARENA_ARRAY(arena, struct scenario, 1);

    *kept = scenario_settled(scenario, settled);
    return kept;
}

/* Under which the cache has what was found for the scenario: also by the GPUs of all seats, the samples of replicas and
 * the layers of stages, which may have been found before. free(items). */
struct cache_key auto_key(const struct scenario *scenario);

#endif
