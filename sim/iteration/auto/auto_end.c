/* How an iteration ends that is only tried, and what it takes at least. */
#include "auto/auto_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "collective/measure.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "lower/lower.h"
#include "lower/window.h"
#include "scenario/scenario.h"
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

struct lowered_end workload_end(const struct workload *workload, double *works)
{
    const struct scenario *scenario = workload->scenario;
    struct lowered lowered = {0};
    struct timeline timeline = {0};
    struct measure measure;
    struct error found = {0};
    struct lowered_end end = {INFINITY, INFINITY};

    measure_init(&measure, ENGINE_FAST, &scenario->cluster);
    if (scenario->arena.cache)
        measure.cache = scenario->arena.cache;
    if (!lower(workload, LOWER_ITERATION, &measure, &lowered, &found)) {
        timeline_init(&timeline, &lowered.program);
        if (!replay(ENGINE_FAST, &lowered.program, &scenario->cluster, &timeline, &found)) {
            struct window window = window_of(scenario, &timeline);

            end = (struct lowered_end){window_update(&window), lacks(workload, &timeline)};
        }
        if (works)
            add_works(workload, &lowered.program, works);
        timeline_release(&timeline);
    }
    lowered_release(&lowered);
    measure_release(&measure);
    error_release(&found);
    return end;
}
