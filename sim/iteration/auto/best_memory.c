/* memory.recompute: optimal, and activations that go to the host: plans of layers are made from estimates, before
 * anything is replayed (recompute/). So several plans are replayed, and the one is taken whose iteration ends first, of
 * those that fit:
 *
 * - plans for a ladder of limits, whose rungs are the same whatever the scenario's own limit is;
 * - the same without activations or tensors on the host;
 * - with `optimal`: what `full` and `selective` do;
 * - plans for limits between the two rungs around the scenario's limit, by halving.
 *
 * More memory is never slower. What fits of the first three fits into more memory, too. A limit that halves is tried for
 * all limits between the two that it halves. Beyond them nobody tries it, so its plan is only taken if it is no faster
 * than some plan that fits into the upper one of the two.
 *
 * The rungs are tried downwards, until the works of one rank, or its copies to the host, take longer than the best so
 * far. Nothing is tried where the plan for all memory keeps everything on the GPU, and nothing more where an iteration
 * takes no longer than one that recomputes and moves nothing. */
#include "auto/auto_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL           /* short pieces: the call would cost as much as the hash */
#include <xxhash.h>

#include "auto/bound.h"
#include "base/base.h"
#include "base/cache.h"
#include "base/progress.h"
#include "hardware/cluster.h"
#include "recompute/stage_plan.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* Rungs between a size and its double, and how often the distance of two rungs is halved: 1.1 % of the memory, and 0.02 %.
 * So many rungs without plans end the ladder: as plans round the sizes of layers, fewer may be a hole in it. */
enum { RUNGS = 64, HALVINGS = 6, HOLES = 8 };

/* What the scenario's keys may be instead. NULL: as it is. */
struct way { const char *recompute, *offload; };
enum { WAYS = 5 };

/* How a candidate is written down in the cache: the number of its way, and B that its plans are made for; 0: what the
 * scenario's GPUs may hold. */
struct chosen { size_t way; double planned; };

struct candidate {
    struct chosen chosen;
    struct lowered_end end;
    int halvings;                    /* after which its limit is tried; 0: whatever the scenario's limit is */
    double above;                    /* B by which the upper of the limits that its own halves is above the scenario's */
    bool taken;                      /* it does not make more memory slower */
};

struct planning_memory {
    struct arena *arena;
    const struct scenario *scenario;
    const char *staying;             /* memory.offload without activations and tensors */
    double room;                     /* B that the GPUs of the rank with most may hold */
    double least;                    /* s that no plan is faster than */
    double best;                     /* s of the best that fits and is tried whatever the limit is; INFINITY: none */
    struct { struct candidate *items; size_t count, capacity; } candidates;
};

static size_t ways_of(const struct planning_memory *planning, struct way *ways)
{
    bool optimal = planning->scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    bool moves = scenario_moves_activations(planning->scenario);
    const char *staying = moves ? planning->staying : NULL;
    size_t count = 0;

    ways[count++] = (struct way){0};
    if (moves)
        ways[count++] = (struct way){NULL, staying};
    if (!optimal)
        return count;
    ways[count++] = (struct way){"full", staying};
    ways[count++] = (struct way){"selective", staying};
    if (moves)
        ways[count++] = (struct way){"full", NULL};
    return count;
}

/* The list for memory.offload without what activations do. */
static const char *staying_of(struct arena *arena, const struct scenario *scenario)
{
    bool weights = scenario_offloads(scenario, OFFLOAD_WEIGHTS), states = scenario_offloads(scenario, OFFLOAD_OPTIMIZER);

    if (!weights && !states)
        return "none";
    return arena_printf(arena, "[%s%s%s]", weights ? "weights" : "", weights && states ? ", " : "",
                        states ? "optimizer" : "");
}

static const struct scenario *on_way(const struct planning_memory *planning, struct arena *arena, struct way way)
{
    return scenario_with_memory(arena, planning->scenario, way.recompute, way.offload);
}

static bool is_over(const struct scenario *scenario)
{
    return scenario->progress && scenario->progress->over;
}

/* Whether its stages' plans keep everything on the GPU. */
static bool keeps_all(const struct workload *workload)
{
    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        const struct stage *stage = &workload->stages[s];

        if (!stage->plan || stage->plan->offloaded > 0 || stage->plan->nsteps > stage->plan->count)
            return false;
        for (size_t k = 0; k < stage->plan->nsteps; k++)
            if (stage->plan->steps[k].selective)
                return false;
    }
    return true;
}

/* A number for what the plans of a workload do: equal plans have equal ones. Not 0. */
static uint64_t plans_number(const struct workload *workload)
{
    uint64_t number = 0;

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
        const struct stage_plan *plan = workload->stages[s].plan;

        number = XXH3_64bits_withSeed(plan->kept, plan->count * sizeof *plan->kept, number);
        for (size_t k = 0; k < plan->nsteps; k++) {
            const double step[] = {(double)plan->steps[k].layer, plan->steps[k].backward, plan->steps[k].selective,
                                   plan->step_room[k].bytes, (double)plan->step_room[k].copies};

            number = XXH3_64bits_withSeed(step, sizeof step, number);
        }
        for (size_t c = 0; c < plan->ncopies; c++) {
            const struct plan_copy *copy = &plan->copies[c];
            const double moved[] = {(double)copy->layer, copy->bytes, copy->step, copy->room.bytes,
                                    (double)copy->room.copies};

            number = XXH3_64bits_withSeed(moved, sizeof moved, number);
        }
    }
    return number ? number : 1;
}

/* A way's workload, whose plans are made again and again. */
struct trying {
    struct planning_memory *planning;
    size_t way;
    struct scenario scenario;        /* its workload's */
    struct workload workload;
    bool worse;                      /* the last plans that were tried are surely no better than the best */
};

/* Nothing that is tried from here on is better. */
static bool is_settled(const struct planning_memory *planning)
{
    return planning->best <= planning->least * (1 + ROUNDING) || is_over(planning->scenario);
}

/* Replays the workload unless it is surely no better than the best. */
static void consider(struct trying *trying, int halvings, double above)
{
    struct planning_memory *planning = trying->planning;
    struct candidate candidate = {.chosen = {trying->way, trying->scenario.memory.planned}, .halvings = halvings,
                                  .above = above};

    trying->worse = workload_bound(&trying->workload, NULL, NULL) >= planning->best;
    if (trying->worse)
        return;
    candidate.end = workload_end(&trying->workload, NULL);
    if (!halvings && candidate.end.lacks <= 0)
        planning->best = fmin(planning->best, candidate.end.seconds);
    *GROW(&planning->candidates) = candidate;
}

/* Makes plans for a limit of 2 to the power of `exponent` B, and replays them unless they equal the plans that `one` or
 * `other` is the number of (plans_number; 0: of none). Returns the number of these plans; 0: there is no plan. */
static uint64_t try_limit(struct trying *trying, double exponent, int halvings, double above, uint64_t one,
                          uint64_t other)
{
    uint64_t number = 0;
    struct error none = {0};

    trying->scenario = scenario_settled(&trying->scenario, (struct settled){.planned = exp2(exponent)});
    if (!workload_replan(&trying->workload, &none)) {
        number = plans_number(&trying->workload);
        if (number != one && number != other)
            consider(trying, halvings, above);
    }
    error_release(&none);
    return number;
}

/* Tries the limit in the middle of two around the scenario's own, and so on in the half that has this. `below` and
 * `above`: the numbers of their plans. */
static void halve(struct trying *trying, double low, double high, uint64_t below, uint64_t above)
{
    double room = trying->planning->room;

    for (int i = 1; i <= HALVINGS && below != above && !is_settled(trying->planning); i++) {
        double middle = (low + high) / 2;
        uint64_t number = try_limit(trying, middle, i, exp2(high) - room, below, above);

        if (exp2(middle) < room)
            low = middle, below = number;
        else
            high = middle, above = number;
    }
}

/* Tries the rungs from the first one at or above the scenario's limit, and limits between this and the next. */
static void try_limits(struct trying *trying)
{
    double top = ceil(log2(trying->planning->room) * RUNGS), rung = top - 1;
    uint64_t above = try_limit(trying, top / RUNGS, 0, 0, 0, 0);
    uint64_t below = try_limit(trying, rung / RUNGS, 0, 0, above, 0), number = below, next;

    for (int without = 0; without < HOLES && !trying->worse && !is_settled(trying->planning); number = next) {
        next = try_limit(trying, --rung / RUNGS, 0, 0, number, 0);
        without = next ? 0 : without + 1;
    }
    halve(trying, (top - 1) / RUNGS, top / RUNGS, below, above);
}

/* Tries what the scenario may be on its way. Whether nothing else is to be tried: its plan for all memory keeps everything
 * on the GPU, or it is refused for something else than memory. */
static bool try_way(struct planning_memory *planning, const struct scenario *scenario, size_t way)
{
    struct trying trying = {.planning = planning, .way = way,
                            .scenario = scenario_settled(scenario, (struct settled){.enforced = true})};
    struct error none = {0};
    bool plans = scenario_plans_memory(scenario);
    int rc = workload_build(&trying.workload, &trying.scenario, &none);
    bool whole = !rc && plans && keeps_all(&trying.workload), refused = rc && none.messages[0].kind != ERROR_MEMORY;

    if (!rc && (!plans || whole))
        consider(&trying, 0, 0);
    else if (plans && trying.workload.rows && !refused)
        try_limits(&trying);
    workload_release(&trying.workload);
    error_release(&none);
    return whole || refused;
}

/* Takes the candidates that do not make more memory slower, those of the fewest halvings first. */
static void take(struct planning_memory *planning)
{
    struct candidate *candidates = planning->candidates.items;

    for (int halvings = 0; halvings <= HALVINGS; halvings++)
        for (size_t i = 0; i < planning->candidates.count; i++) {
            struct candidate *one = &candidates[i];

            if (one->halvings == halvings)
                one->taken = halvings == 0;
            for (size_t k = 0; k < planning->candidates.count && one->halvings == halvings && !one->taken; k++)
                one->taken = candidates[k].taken && candidates[k].halvings < halvings &&
                             candidates[k].end.lacks <= one->above && candidates[k].end.seconds <= one->end.seconds;
        }
}

/* The best of the candidates that are taken; none fits: the scenario itself. */
static struct chosen choose(const struct planning_memory *planning)
{
    struct lowered_end end = {INFINITY, INFINITY};
    struct chosen chosen = {0};

    for (size_t i = 0; i < planning->candidates.count; i++) {
        const struct candidate *candidate = &planning->candidates.items[i];

        if (candidate->taken && candidate->end.lacks <= 0 && lowered_better(candidate->end, end)) {
            end = candidate->end;
            chosen = candidate->chosen;
        }
    }
    return chosen;
}

/* s of an iteration that recomputes nothing and moves no activations, as if that did fit; 0: it cannot be. */
static double least_seconds(const struct planning_memory *planning)
{
    struct arena arena = {.cache = planning->arena->cache};
    bool optimal = planning->scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL;
    const struct scenario *scenario = on_way(planning, &arena, (struct way){optimal ? "none" : NULL, planning->staying});
    struct workload workload = {0};
    struct error none = {0};
    double seconds = INFINITY;

    if (scenario && !workload_build(&workload, scenario, &none))
        seconds = workload_end(&workload, NULL).seconds;
    workload_release(&workload);
    error_release(&none);
    arena_release(&arena);
    return isinf(seconds) ? 0 : seconds;
}

/* B that the GPUs of the rank with most may hold. */
static double most_room(const struct scenario *scenario)
{
    double most = 0;

    for (int rank = 0; rank < scenario->parallelism.pipeline; rank++)
        most = fmax(most, scenario_room(scenario, rank));
    return most;
}

static struct chosen search(struct planning_memory *planning)
{
    struct way ways[WAYS];
    size_t count = ways_of(planning, ways);
    bool all = false;
    struct chosen chosen;

    planning->room = most_room(planning->scenario);
    planning->least = least_seconds(planning);
    for (size_t i = 0; i < count && !all && !is_settled(planning); i++) {
        struct arena arena = {.cache = planning->arena->cache};
        const struct scenario *scenario = on_way(planning, &arena, ways[i]);

        all = scenario && try_way(planning, scenario, i) && i == 0;
        arena_release(&arena);
    }
    take(planning);
    chosen = choose(planning);
    free(planning->candidates.items);
    return chosen;
}

const struct scenario *auto_memory(struct arena *arena, const struct scenario *scenario)
{
    struct planning_memory planning = {.arena = arena, .scenario = scenario,
                                       .staying = staying_of(arena, scenario), .best = INFINITY};
    struct cache *cache = scenario->arena.cache;
    struct cache_key key = cache ? auto_key(scenario) : (struct cache_key){0};
    const struct chosen *known;
    struct chosen chosen;
    struct way ways[WAYS];
    const struct scenario *settled;

    known = cache ? cache_find(cache, CACHE_MEMORY, key.items, key.count) : NULL;
    chosen = known ? *known : search(&planning);
    if (cache && !known && !is_over(scenario))
        cache_copy(cache, CACHE_MEMORY, key.items, key.count, &chosen, sizeof chosen);
    free(key.items);
    ways_of(&planning, ways);
    settled = on_way(&planning, arena, ways[chosen.way]);
    if (!settled)
        BUG("a way that was replayed cannot be");
    return keep_settled(arena, settled, (struct settled){.planned = chosen.planned});
}
