/* What this simulator chooses where it is the objective: degrees, schedule, micro-batch, recomputation and offloading
 * together. Degrees, schedules and micro-batches have a lower bound without recomputation (auto/bound.h); they are
 * simulated from the lowest on, until no bound is below the best time. Activations that all fit are kept; else ways to
 * recompute or offload them are tried. The fastest pipelines are tried with split: auto too. */
#include <math.h>
#include <stdlib.h>

#include "auto/auto.h"
#include "auto/bound.h"
#include "base/base.h"
#include "model/model.h"
#include "planners/choice_internal.h"
#include "run/attempt.h"
#include "run/memory_fit.h"
#include "scenario/scenario.h"

enum { SETS = 8, PIPELINES_MOST = 64, SPLIT = 4 }; /* SPLIT: candidates that are tried with split: auto */
static const char *const schedules[] = {"1f1b", "interleaved"};
/* Recomputation and offloading: first nothing, then what is tried where activations do not fit. */
static const struct way {
    const char *recompute, *offload;
} ways[] = {
    {"none", "none"},
    {"optimal", "none"},
    {"optimal", "activations"},
};

struct candidate {
    int tensor, pipeline, data, micro;
    const char *schedule;
    struct way way;
    bool split;     /* auto */
    double seconds; /* as simulated; INFINITY: not yet, or it does not fit */
    double bound;   /* s an iteration */
};

struct space {
    struct planner_choices *choices;
    const struct profiled *profiled;
    struct error *err;
    struct {
        struct candidate *items;
        size_t count, capacity;
    } list;
};

static size_t candidate_sets(struct arena *arena, const struct candidate *candidate, const char **sets)
{
    sets[0] = arena_printf(arena, "strategy.tensor=%d", candidate->tensor);
    sets[1] = arena_printf(arena, "strategy.pipeline=%d", candidate->pipeline);
    sets[2] = arena_printf(arena, "strategy.data=%d", candidate->data);
    sets[3] = arena_printf(arena, "strategy.schedule=%s", candidate->schedule);
    sets[4] = arena_printf(arena, "batch.micro=%d", candidate->micro);
    sets[5] = arena_printf(arena, "memory.recompute=%s", candidate->way.recompute);
    sets[6] = arena_printf(arena, "memory.offload=%s", candidate->way.offload);
    if (candidate->split)
        sets[7] = "strategy.split=auto";
    return candidate->split ? 8 : 7;
}

/* s an iteration, at least or, with `replayed`, as simulated; INFINITY: it cannot be, or does not fit. */
static double candidate_seconds(const struct profiled *profiled, const struct candidate *candidate, bool replayed,
                                struct error *err)
{
    const struct simulate_options how = {.engine = ENGINE_FAST, .numbers = true};
    struct attempt attempt = {.of = profiled->scenario};
    double seconds = INFINITY;

    attempt.nsets = candidate_sets(&attempt.arena, candidate, attempt.sets);
    if (!attempt_build(&attempt) && !memory_is_short(&attempt.workload)) {
        if (!replayed)
            seconds = workload_bound(&attempt.workload, NULL, NULL);
        else if (!attempt_simulate(&attempt, how))
            seconds = attempt.run.metrics.iteration_time;
    }
    attempt_end(&attempt, err);
    return seconds;
}

static void add_candidates(struct space *space, struct candidate candidate)
{
    for (size_t s = 0; s < COUNT(schedules) - (candidate.pipeline == 1); s++) {
        candidate.schedule = schedules[s];
        candidate.way = ways[0];
        candidate.seconds = INFINITY;
        candidate.bound = candidate_seconds(space->profiled, &candidate, false, space->err);
        if (isfinite(candidate.bound))
            *GROW(&space->list) = candidate;
    }
}

static void find_candidates(struct space *space)
{
    const struct profiled *profiled = space->profiled;
    bool samples = model_has_samples(&profiled->scenario->model);

    for (size_t k = 0; k < profiled->ntensors; k++)
        for (int p = 1; p <= PIPELINES_MOST; p++) {
            int model = profiled->tensors[k] * p, least = samples ? 1 : profiled->micro;

            if (profiled->gpus % model)
                continue;
            for (int micro = least; micro <= (samples ? 16 : least); micro *= 2)
                if (choice_samples(profiled) % (profiled->gpus / model * micro) == 0)
                    add_candidates(space, (struct candidate){.tensor = profiled->tensors[k],
                                                             .pipeline = p,
                                                             .data = profiled->gpus / model,
                                                             .micro = micro});
        }
}

static int by_bound(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    return (a->bound > b->bound) - (a->bound < b->bound);
}

/* Simulates the candidates in one way, the lowest bound first; those that fitted before need no further way. */
static void try_way(struct space *space, size_t way, struct candidate *best)
{
    for (size_t i = 0; i < space->list.count && space->list.items[i].bound < best->seconds; i++) {
        struct candidate *candidate = &space->list.items[i];

        if (isfinite(candidate->seconds))
            continue;
        candidate->way = ways[way];
        candidate->seconds = candidate_seconds(space->profiled, candidate, true, space->err);
        if (candidate->seconds < best->seconds)
            *best = *candidate;
    }
}

static int by_seconds(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    return a->seconds < b->seconds || a->seconds > b->seconds ? (a->seconds < b->seconds ? -1 : 1) : by_bound(a, b);
}

/* The fastest pipelines also with the layers divided so that they end first. */
static void try_splits(struct space *space, struct candidate *best)
{
    size_t tried = 0;

    array_sort(space->list.items, space->list.count, sizeof *space->list.items, by_seconds);
    for (size_t i = 0; i < space->list.count && tried < SPLIT; i++) {
        struct candidate candidate = space->list.items[i];

        if (candidate.pipeline == 1 || isinf(candidate.seconds))
            continue;
        candidate.split = true;
        candidate.seconds = candidate_seconds(space->profiled, &candidate, true, space->err);
        tried++;
        if (candidate.seconds < best->seconds)
            *best = candidate;
    }
}

static void describe(struct planner_choices *choices, const struct candidate *best)
{
    struct planner_choice *choice = &choices->items[choices->count - 1];
    const char *sets[SETS];
    size_t count = candidate_sets(&choices->arena, best, sets);

    choice->stages = arena_printf(&choices->arena,
                                  "pipeline %d on %d x %d, micro-batch %d, %s, recompute %s, offload %s%s",
                                  best->pipeline, best->data, best->tensor, best->micro, best->schedule,
                                  best->way.recompute, best->way.offload, best->split ? ", split auto" : "");
    for (size_t i = 0; i < count; i++)
        choice_set(choices, "%s", sets[i]);
}

int choose_dtsim(struct planner_choices *choices, const struct profiled *profiled, struct error *err)
{
    struct space space = {.choices = choices, .profiled = profiled, .err = err};
    struct planned planned = {.objective = INFINITY};
    struct candidate best = {.seconds = INFINITY};

    find_candidates(&space);
    array_sort(space.list.items, space.list.count, sizeof *space.list.items, by_bound);
    for (size_t w = 0; w < COUNT(ways); w++)
        try_way(&space, w, &best);
    try_splits(&space, &best);
    planned.objective = best.seconds;
    planned.count = isfinite(best.seconds) ? 1 : 0;
    planned.stages[0] = (struct planned_stage){0, profiled->count, best.data, best.pipeline * best.tensor, 0};
    choice_add(choices, "dtsim", "", "of an iteration", &planned);
    if (planned.count)
        describe(choices, &best);
    free(space.list.items);
    return err->system ? -1 : 0;
}
