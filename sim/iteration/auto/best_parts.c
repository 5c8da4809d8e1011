/* strategy.stages_on: auto: on which part of the cluster each pipeline rank is. All distinct orders are replayed in
 * which a rank, with all its replicas, is on one part. Where the split or shares are to be found too, they are replayed with
 * even stages and equal shares, and the best of them once more, each with the split and shares that are best for it. */
#include "auto/auto_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "hardware/cluster.h"
#include "layout/stage_spec.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"

enum { ORDERS_MOST = 10000, FINALISTS = 8 };

/* An order that is one of the best with even stages. */
struct finalist {
    size_t number;                   /* of the order, from 1; 0: there is none here */
    struct lowered_end end;
    int *order;
};

struct ordering {
    const struct scenario *scenario;
    int ranks, parts;
    int room[PARTS_MAX];             /* pipeline ranks that a part has GPUs for */
    size_t count, most;              /* orders that were visited; no more than that */
    int *order, *best;               /* a rank: its part */
    struct finalist finalists[FINALISTS]; /* where more is to be found: the best first */
    struct lowered_end end;          /* of the best */
    bool replays;                    /* or counts only */
    lowered_end_function *ends;
};

/* The scenario with its ranks so, `even`: with even stages and equal shares, where these are to be found; in the arena. NULL
 * where they cannot be. */
static const struct scenario *placed(struct arena *arena, const struct scenario *scenario, const int *order, bool even)
{
    struct layout layout = scenario->layout;
    int data = scenario->parallelism.data, ranks = scenario->parallelism.pipeline;
    int *parts = arena_alloc(arena, (size_t)ranks * (size_t)data * sizeof *parts);
    struct error none = {0};
    int rc;

    for (int i = 0; i < ranks * data; i++)
        parts[i] = order[i / data];
    rc = stages_place(arena, parts, (struct loc){0}, &scenario->cluster, &layout, &none);
    error_release(&none);
    return rc ? NULL : keep_settled(arena, scenario, (struct settled){.layout = &layout, .closed = even});
}

/* Whether more is to be found for each order. */
static bool leaves_more(const struct scenario *scenario)
{
    return list_is_auto(&scenario->parallelism.split) || list_is_auto(&scenario->batch.shares);
}

/* How the iteration ends with that order. */
static struct lowered_end end_of(const struct ordering *ordering, const int *order, bool even)
{
    struct arena arena = {0};
    const struct scenario *scenario = placed(&arena, ordering->scenario, order, even);
    struct lowered_end end = {INFINITY, INFINITY};

    if (scenario)
        end = ordering->ends(scenario, INFINITY, NULL);
    arena_release(&arena);
    return end;
}

static void take_better(struct ordering *ordering, const int *order, struct lowered_end end)
{
    if (!lowered_better(end, ordering->end))
        return;
    ordering->end = end;
    memcpy(ordering->best, order, (size_t)ordering->ranks * sizeof *order);
}

/* Puts the order in its place among the finalists, if it is one; of equal ones the first stays in front. */
static void enter_final(struct ordering *ordering, struct lowered_end end)
{
    struct finalist *at = ordering->finalists + FINALISTS, last = at[-1];

    if (!lowered_better(end, last.end))
        return;
    while (--at > ordering->finalists && lowered_better(end, at[-1].end))
        *at = at[-1];
    *at = (struct finalist){ordering->count, end, last.order};
    memcpy(at->order, ordering->order, (size_t)ordering->ranks * sizeof *ordering->order);
}

static int by_number(const void *a, const void *b)
{
    const struct finalist *one = a, *other = b;

    return one->number < other->number ? -1 : one->number > other->number;
}

/* The best of the finalists, each with its own split and shares; of equal ones the one that was visited first. */
static void find_winner(struct ordering *ordering)
{
    array_sort(ordering->finalists, FINALISTS, sizeof *ordering->finalists, by_number);
    for (int i = 0; i < FINALISTS; i++)
        if (ordering->finalists[i].number)
            take_better(ordering, ordering->finalists[i].order, end_of(ordering, ordering->finalists[i].order, false));
}

static void try_order(struct ordering *ordering)
{
    struct lowered_end end = end_of(ordering, ordering->order, true);

    if (leaves_more(ordering->scenario))
        enter_final(ordering, end);
    else
        take_better(ordering, ordering->order, end);
}

/* All orders whose ranks before `rank` are as in the order. */
static void visit(struct ordering *ordering, int rank)
{
    if (ordering->count > ordering->most)
        return;
    if (rank == ordering->ranks) {
        if (ordering->count++ == 0)      /* stays where no order can be simulated: the next step says why of this one */
            memcpy(ordering->best, ordering->order, (size_t)ordering->ranks * sizeof *ordering->order);
        if (ordering->replays)
            try_order(ordering);
        return;
    }
    for (int part = 0; part < ordering->parts; part++) {
        if (!ordering->room[part])
            continue;
        ordering->room[part]--;
        ordering->order[rank] = part;
        visit(ordering, rank + 1);
        ordering->room[part]++;
    }
}

static int search(struct ordering *ordering, struct error *err)
{
    const struct scenario *scenario = ordering->scenario;
    int each = scenario_gpus(scenario) / ordering->ranks;
    struct loc loc = node_loc(scenario->parallelism.node, "stages_on");

    for (int i = 0; i < ordering->parts; i++) {
        struct given_part part = cluster_given_part(&scenario->cluster, i);

        ordering->room[i] = part.nodes * cluster_node_gpus(&scenario->cluster, part.first) / each;
    }
    visit(ordering, 0);
    if (!ordering->parts)
        return error_clash(err, loc, "strategy: stages_on: auto, but the cluster says no parts; expected 'parts' in the "
                           "cluster, or no stages_on");
    if (!ordering->count)
        return error_infeasible(err, ERROR_GPUS, loc, "strategy: stages_on: auto: the parts have no GPUs for %d ranks of %d "
                                "each; expected fewer ranks or smaller ones", ordering->ranks, each);
    if (ordering->count > ordering->most)
        return error_clash(err, loc, "strategy: stages_on: auto: %d pipeline ranks on %d parts have more than %d orders; "
                           "expected 'stages' with 'on'", ordering->ranks, ordering->parts, (int)ORDERS_MOST);
    ordering->count = 0;
    ordering->replays = true;
    visit(ordering, 0);
    find_winner(ordering);
    return 0;
}

const struct scenario *auto_parts(struct arena *arena, const struct scenario *scenario, lowered_end_function *ends,
                                  struct error *err)
{
    int ranks = scenario->parallelism.pipeline, parts = cluster_given_parts(&scenario->cluster);
    struct cache *cache = scenario->arena.cache;
    struct cache_key key = {0};
    const int *known = NULL;
    struct ordering ordering = {
        .scenario = scenario, .ranks = ranks, .parts = parts, .most = ORDERS_MOST, .end = {INFINITY, INFINITY}, .ends = ends,
        .order = ARENA_ARRAY(arena, int, ranks), .best = ARENA_ARRAY(arena, int, ranks),
    };
    const struct scenario *settled = NULL;

    for (int i = 0; i < FINALISTS; i++)
        ordering.finalists[i] = (struct finalist){0, {INFINITY, INFINITY}, ARENA_ARRAY(arena, int, ranks)};
    if (cache) {
        key = auto_key(scenario);
        known = cache_find(cache, CACHE_ORDER, key.items, key.count);
    }
    if (known)
        memcpy(ordering.best, known, (size_t)ranks * sizeof *known);
    if (known || !search(&ordering, err))
        settled = placed(arena, scenario, ordering.best, false);
    if (settled && cache && !known)
        cache_copy(cache, CACHE_ORDER, key.items, key.count, ordering.best, (size_t)ranks * sizeof *ordering.best);
    free(key.items);
    return settled;
}
