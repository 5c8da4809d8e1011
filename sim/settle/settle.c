/* Settings that are found by simulating: on which part of the cluster each pipeline rank is (parts.c), what each replica
 * gets of a micro-batch (shares.c), and which layers each stage has (split.c). */
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

/* s of an iteration's forwards, backwards and recomputations on each replica's slowest rank, with the exchanges within
 * them. Replicas that one stands for take as long as it. */
static void add_works(const struct workload *workload, const struct program *program, double *works)
{
    const struct parallelism *spec = &workload->scenario->parallelism;
    int stages = workload->plan.stages, replicas = program->ranks / stages;
    double *seconds = xcalloc((size_t)program->ranks, sizeof *seconds);

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];

        if (op->kind == OP_COMPUTE && lane->kind == LANE_COMPUTE && op->what < WHAT_UPDATE)
            seconds[lane->rank] += op->amount;
    }
    for (int d = 0; d < spec->data; d++)
        works[d] = 0;
    for (int r = 0; r < scenario_replicas(workload->scenario); r++)
        for (int p = 0; p < stages; p++) {
            double *slowest = &works[r / spec->context];

            *slowest = fmax(*slowest, seconds[(r < replicas ? r : 0) * stages + p]);
        }
    free(seconds);
}

/* How the scenario's iteration ends on engine fast. */
static struct lowered_end lowered_end(const struct scenario *scenario, double *works)
{
    struct workload workload = {0};
    struct lowered lowered = {0};
    struct timeline timeline = {0};
    struct measure measure = {0};
    struct error found = {0};
    struct lowered_end end = {INFINITY, INFINITY};

    if (!workload_init(&workload, scenario, &found)) {
        const struct cluster *cluster = &workload.scenario->cluster;     /* a copy where more was to be found */

        measure_init(&measure, ENGINE_FAST, cluster);
        if (scenario->arena.cache)
            measure.cache = scenario->arena.cache;
        if (!lower(&workload, LOWER_ITERATION, &measure, &lowered, &found)) {
            timeline_init(&timeline, &lowered.program);
            if (!replay(ENGINE_FAST, &lowered.program, cluster, &timeline, &found)) {
                struct window window = window_of(workload.scenario, &timeline);

                end = (struct lowered_end){window_update(&window), lacks(&workload, &timeline)};
            }
            if (works)
                add_works(&workload, &lowered.program, works);
            timeline_release(&timeline);
        }
        measure_release(&measure);
    }
    lowered_release(&lowered);
    workload_release(&workload);
    error_release(&found);
    return end;
}

int settle_time(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    const int *layers = NULL;

    workload_begin(workload, scenario);
    if (scenario->parallelism.stages_on == STAGES_ON_AUTO && !scenario->layout.gpus &&
        !(workload->scenario = settle_parts(&workload->arena, scenario, lowered_end, err)))
        return -1;
    if (list_is_auto(&scenario->batch.shares) &&
        !(workload->scenario = settle_shares(&workload->arena, workload->scenario, lowered_end, err)))
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
