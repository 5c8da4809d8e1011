/* How an iteration ends, by which 'auto' chooses.
 *
 * batch.shares: auto: what each replica gets of a micro-batch.
 *
 * strategy.stages_on: auto: on which part of the cluster each pipeline rank is. All distinct orders are replayed in
 * which a rank, with all its replicas, is on one part. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower/lower.h"
#include "lower/workload.h"
#include "stage/memory.h"

/* B that the GPU lacks that lacks most. */
static double lacks(const struct workload *workload, const struct timeline *timeline)
{
    struct memory_peak *peaks = memory_peaks(workload->scenario, workload->stages, timeline);
    double most = 0;

    for (int r = 0; r < timeline->program->ranks; r++)
        most = fmax(most, memory_total(&peaks[r].memory) -
                          memory_limit_of(workload->scenario, r % workload->plan.stages));
    free(peaks);
    return most;
}

struct lowered_end lowered_end(const struct scenario *scenario)
{
    struct workload workload = {0};
    struct lowered lowered = {0};
    struct timeline timeline = {0};
    struct measure measure;
    struct error found = {0};
    struct lowered_end end = {INFINITY, INFINITY};

    measure_init(&measure, ENGINE_FAST, &scenario->cluster);
    if (scenario->arena.cache)
        measure.cache = scenario->arena.cache;
    if (!workload_init(&workload, scenario, &found) &&
        !lower(&workload, LOWER_ITERATION, &measure, &lowered, &found)) {
        timeline_init(&timeline, &lowered.program);
        if (!replay(ENGINE_FAST, &lowered.program, &scenario->cluster, &timeline, &found))
            end = (struct lowered_end){timeline.makespan, lacks(&workload, &timeline)};
        timeline_release(&timeline);
    }
    lowered_release(&lowered);
    measure_release(&measure);
    workload_release(&workload);
    error_release(&found);
    return end;
}

bool lowered_better(struct lowered_end one, struct lowered_end other)
{
    if (one.lacks > 0 || other.lacks > 0)
        return one.lacks < other.lacks * (1 - ROUNDING);
    return one.seconds < other.seconds * (1 - ROUNDING);
}

enum { ORDERS_MOST = 10000 };

struct ordering {
    const struct scenario *scenario;
    int ranks, parts;
    int room[PARTS_MAX];             /* pipeline ranks that a part has GPUs for */
    size_t count, most;              /* orders that were visited; no more than that */
    int *order, *best;               /* a rank: its part */
    struct lowered_end end;          /* of the best */
    bool replays;                    /* or counts only */
};

/* The scenario with its ranks so; in the arena. NULL where they cannot be. */
static struct scenario *placed(struct arena *arena, const struct scenario *scenario, const int *order)
{
    struct scenario *copy = ARENA_ARRAY(arena, struct scenario, 1);
    int data = scenario->parallelism.data, ranks = scenario->parallelism.pipeline;
    int *parts = arena_alloc(arena, (size_t)ranks * (size_t)data * sizeof *parts);
    struct error none = {0};
    int rc;

    *copy = *scenario;
    for (int i = 0; i < ranks * data; i++)
        parts[i] = order[i / data];
    rc = stages_place(arena, parts, (struct loc){0}, &copy->cluster, &copy->layout, &none);
    error_release(&none);
    copy->uneven = scenario_uneven(copy);
    return rc ? NULL : copy;
}

static void try_order(struct ordering *ordering)
{
    struct arena arena = {0};
    struct scenario *scenario = placed(&arena, ordering->scenario, ordering->order);
    struct lowered_end end = {INFINITY, INFINITY};

    if (scenario && list_is_auto(&scenario->parallelism.split))
        scenario->parallelism.split = (struct list){0};      /* it is found for the best order */
    if (scenario)
        end = lowered_end(scenario);
    if (lowered_better(end, ordering->end)) {
        ordering->end = end;
        memcpy(ordering->best, ordering->order, (size_t)ordering->ranks * sizeof *ordering->order);
    }
    arena_release(&arena);
}

/* All orders whose ranks before `rank` are as in the order. */
static void visit(struct ordering *ordering, int rank)
{
    if (ordering->count > ordering->most)
        return;
    if (rank == ordering->ranks) {
        ordering->count++;
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
        struct said_part part = cluster_said_part(&scenario->cluster, i);

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
    return 0;
}

const struct scenario *parts_settle(struct arena *arena, const struct scenario *scenario, struct error *err)
{
    int ranks = scenario->parallelism.pipeline, parts = cluster_said_parts(&scenario->cluster);
    struct cache *cache = scenario->arena.cache;
    struct cache_key key = {0};
    const int *known = NULL;
    struct ordering ordering = {
        .scenario = scenario, .ranks = ranks, .parts = parts, .most = ORDERS_MOST, .end = {INFINITY, INFINITY},
        .order = ARENA_ARRAY(arena, int, ranks), .best = ARENA_ARRAY(arena, int, ranks),
    };
    const struct scenario *settled = NULL;

    if (cache) {
        field_key(&scenario_table, scenario, &key);
        cluster_key(&scenario->cluster, &key);
        known = cache_find(cache, CACHE_ORDER, key.items, key.count);
    }
    if (known)
        memcpy(ordering.best, known, (size_t)ranks * sizeof *known);
    if (known || !search(&ordering, err))        /* where none can be the next step says why of the first */
        settled = placed(arena, scenario, ordering.best);
    if (settled && cache && !known)
        cache_copy(cache, CACHE_ORDER, key.items, key.count, ordering.best, (size_t)ranks * sizeof *ordering.best);
    free(key.items);
    return settled;
}

/* s of a micro-batch's forwards and backwards on a replica's slowest rank. */
static double slowest_rank(const struct workload *workload, int replica)
{
    const struct plan *plan = &workload->plan;
    double slowest = 0;

    for (int p = 0; p < plan->stages; p++) {
        const struct stage_times *times = workload_times(workload, replica, p);
        double seconds = 0;

        for (int chunk = 0; chunk < plan_chunks(plan, p); chunk++) {
            const struct work_times *work = times[plan_virtual_stage(plan, p, chunk)].work;

            seconds += work[FORWARD].seconds + work[BACKWARD].seconds + (plan->recompute ? work[RECOMPUTE].seconds : 0);
        }
        slowest = fmax(slowest, seconds);
    }
    return slowest;
}

/* Every replica needs a sample: one without takes it of the replica that has most, of equal ones the last. */
static void give_all(int *samples, int data)
{
    for (int d = 0; d < data; d++) {
        int most = 0;

        for (int other = 1; other < data && samples[d] == 0; other++)
            most = samples[other] >= samples[most] ? other : most;
        if (samples[d] == 0) {
            samples[most]--;
            samples[d]++;
        }
    }
}

const struct scenario *shares_settle(struct arena *arena, const struct scenario *scenario, struct error *err)
{
    int data = scenario->parallelism.data, context = scenario->parallelism.context;
    struct scenario *copy = ARENA_ARRAY(arena, struct scenario, 1), equal = *scenario;
    double *weights = ARENA_ARRAY(arena, double, data);
    struct workload workload;
    int *samples, rc;

    *copy = *scenario;
    equal.batch.shares = (struct list){0};
    rc = workload_time(&workload, &equal, err);
    for (int r = 0; !rc && r < data * context; r++)
        weights[r / context] = fmax(weights[r / context], slowest_rank(&workload, r));
    workload_release(&workload);
    if (rc)
        return NULL;
    for (int d = 0; d < data; d++)
        weights[d] = weights[d] > 0 ? 1 / weights[d] : 1;
    copy->batch.samples = samples = scenario_share(arena, scenario, weights);
    if (samples)
        give_all(samples, data);
    copy->uneven = scenario_uneven(copy);
    return copy;
}
