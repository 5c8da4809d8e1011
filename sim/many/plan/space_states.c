/* What a GPU holds all the time, asked before points are enumerated: where weights, gradients and optimizer states alone exceed
 * its memory, no micro-batch and no recomputation helps. */
#include <math.h>
#include <string.h>

#include "auto/auto.h"
#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "plan/space_states.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "sweep/points.h"
#include "workload/workload.h"

enum { REMEMBERED = 4096 };

struct states_known { uint64_t next; double lacks; };        /* next: the number, plus 1 */

struct asked_states {
    const struct points *points;
    struct scenario_common common;
    struct cache cache;
    bool *decides;               /* by axis: what is held depends on it */
    struct states_known nearest; /* of what is dropped the one that lacks least */
    bool spares;                 /* keeps it */
    struct states_known known[REMEMBERED];
};

/* Whether weights, gradients and states are the same whatever the axis says. */
static bool is_free(const struct space_axis *axis)
{
    static const char paths[] = "batch.micro memory.recompute memory.recompute.mode software.overlap_gathers strategy.dispatcher "
                                "strategy.overlap_dispatch";

    return word_in(paths, axis->path) || (!strcmp(axis->path, "strategy.data_parallel") && !strstr(axis->values, "server") &&
                                          !strstr(axis->values, "dataparallel"));
}

/* Whether is_free is true of all its axes: the size of a micro-batch says whether a step has one, whose gradients are then
 * divided (data_parallel.c, sum_once); and where stages are as long as each other, what they hold follows from their times. */
static bool holds_for_all(const struct parallelism *spec)
{
    bool timed = spec->balance == BALANCE_TIMES || spec->balance == BALANCE_EXCHANGES;

    return !timed && !(spec->sums_once && spec->zero > 1);
}

/* B that a GPU of the point lacks for them; 0 or less: it may fit, or cannot be told. */
static double lacks_of(struct asked_states *asked, uint64_t number)
{
    struct arena arena = {.cache = &asked->cache};
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct error found = {0};
    struct point point;
    double lacks = 0;

    if (!point_make(asked->points, number, &arena, &point, &found) &&
        !scenario_read_like(&arena, point.root, &asked->common, asked->points->name, &scenario, &found) &&
        holds_for_all(&scenario.parallelism) && !scenario_schedule(&scenario)->asynchronous && !auto_time(&workload, &scenario, &found))
        lacks = memory_states_lack(&workload);
    workload_release(&workload);
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&found);
    cache_renew(&asked->cache);
    return lacks;
}

/* The point whose other axes have their first values stands for all with these values of the axes that decide. */
static bool drops(const void *rule, const struct moment *moment)
{
    struct asked_states *asked = (struct asked_states *)(uintptr_t)rule;
    struct states_known *known;
    uint64_t number;

    if (!moment_number(moment, asked->decides, &number))
        return false;
    known = &asked->known[(number * 0x9E3779B97F4A7C15u >> 32) % REMEMBERED];
    if (known->next != number + 1)
        *known = (struct states_known){number + 1, lacks_of(asked, number)};
    if (known->lacks > 0 && known->lacks < asked->nearest.lacks)
        asked->nearest = *known;
    return known->lacks > 0 && !(asked->spares && asked->nearest.next == number + 1);
}

bool space_is_open(const struct space *space)
{
    static const char *const keys[] = {"strategy.split", "strategy.stages_on", "batch.shares", "memory.recompute",
                                       "memory.recompute.mode"};
    bool open = false;

    for (size_t k = 0; k < COUNT(keys) && !open; k++) {
        const struct node *said = node_at(space->sweep.points.base, keys[k]);

        open = said && said->kind == NODE_SCALAR && word_in("auto optimal", said->text);
        for (size_t i = 0; i < space->naxes; i++)
            open |= !strcmp(space->axes[i].path, keys[k]) &&
                    (strstr(space->axes[i].values, "auto") || strstr(space->axes[i].values, "optimal"));
    }
    return open;
}

void ask_states(struct space *space, struct points *points)
{
    struct arena *arena = &space->sweep.arena;
    struct asked_states *asked;
    size_t *axes = ARENA_ARRAY(arena, size_t, space->naxes + 1), count = 0;

    if (space_is_open(space))
        return;
    asked = space->states = ARENA_ARRAY(arena, struct asked_states, 1);
    *asked = (struct asked_states){.points = points, .decides = ARENA_ARRAY(arena, bool, space->naxes + 1),
                                   .nearest.lacks = INFINITY};
    for (size_t i = 0; i < space->naxes; i++) {
        asked->decides[i] = !is_free(&space->axes[i]);
        if (asked->decides[i])
            axes[count++] = i;
    }
    cache_init(&asked->cache, CACHE_BYTES);
    asked->cache.files_stay = true;
    scenario_common_make(&asked->common, NULL, points->base);
    space->rules[space->nrules++] = (struct space_rule){
        .why = "weights, gradients and optimizer states alone exceed the memory of a GPU", .expression = "", .of_states = true};
    *GROW(&points->constraints) = (struct constraint){.text = "", .asks = drops, .rule = asked, .names = axes, .count = count};
}

bool states_spare(struct space *space)
{
    return space->states && isfinite(space->states->nearest.lacks) && (space->states->spares = true);
}

double states_nearest(const struct space *space, uint64_t *number)
{
    if (!space->states || !isfinite(space->states->nearest.lacks))
        return INFINITY;
    *number = space->states->nearest.next - 1;
    return space->states->nearest.lacks;
}

void states_release(struct space *space)
{
    if (!space->states)
        return;
    arena_release(&space->states->common.arena);
    cache_release(&space->states->cache);
}
