/* Settings that are found by simulating: what each replica gets of a micro-batch (batch.shares: auto), on which part of
 * the cluster each pipeline rank is (parts.c), and which layers each stage has (split.c). */
#include "settle/settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alike/alike.h"
#include "base/base.h"
#include "collective/measure.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "lower/lower.h"
#include "lower/window.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "settle/settle_internal.h"
#include "stage/memory.h"
#include "workload/workload.h"

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

/* How the scenario's iteration ends on engine fast. */
static struct lowered_end lowered_end(const struct scenario *scenario)
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
        if (!replay(ENGINE_FAST, &lowered.program, &scenario->cluster, &timeline, &found)) {
            struct window window = window_of(scenario, &timeline);

            end = (struct lowered_end){window_update(&window), lacks(&workload, &timeline)};
        }
        timeline_release(&timeline);
    }
    lowered_release(&lowered);
    measure_release(&measure);
    workload_release(&workload);
    error_release(&found);
    return end;
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

/* The scenario with the samples of each replica's micro-batches inversely to the time that its slowest rank takes for
 * batch.micro of them; in the arena. NULL: errors. */
static const struct scenario *settle_shares(struct arena *arena, const struct scenario *scenario, struct error *err)
{
    int data = scenario->parallelism.data, context = scenario->parallelism.context;
    struct scenario *copy = ARENA_ARRAY(arena, struct scenario, 1), equal = *scenario;
    double *weights = ARENA_ARRAY(arena, double, data);
    struct workload workload;
    int *samples, rc;

    *copy = *scenario;
    equal.batch.shares = (struct list){0};
    rc = settle_time(&workload, &equal, err);
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

int settle_time(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    const int *layers = NULL;

    workload_begin(workload, scenario);
    if (scenario->parallelism.stages_on == STAGES_ON_AUTO && !scenario->layout.gpus &&
        !(workload->scenario = settle_parts(&workload->arena, scenario, lowered_end, err)))
        return -1;
    if (list_is_auto(&scenario->batch.shares) && !scenario->batch.samples &&
        !(workload->scenario = settle_shares(&workload->arena, workload->scenario, err)))
        return -1;
    if (list_is_auto(&scenario->parallelism.split) &&
        !(layers = settle_split(&workload->arena, workload->scenario, lowered_end, err)))
        return -1;
    return workload_time(workload, layers, err);
}

int workload_init(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    if (settle_time(workload, scenario, err) || workload_order(workload, err))
        return -1;
    alike_make(workload->scenario, workload->stages, &workload->alike);
    return 0;
}
