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
#include "recompute/stage_plan.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
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

/* The least s of a stage's work on any class of GPUs. */
static double least_work(const struct workload *workload, int stage, enum work_kind kind)
{
    double least = INFINITY;

    for (size_t i = 0; i < workload->nclasses; i++) {
        const struct stage_times *times = &workload->classes[i].times[stage];

        least = fmin(least, times->work[kind].seconds + (kind == BACKWARD ? times->recomputed.seconds : 0));
    }
    return least;
}

/* s of a rank's works, and of the copies to its host. */
struct busy { double works, copies; };

static struct busy busy_of(const struct workload *workload, int rank)
{
    const struct row *row = &workload->rows[rank];
    struct busy busy = {0};
    double moved = 0;

    for (size_t i = 0; i < row->count; i++) {
        int stage = plan_virtual_stage(&workload->plan, rank, row->items[i].chunk);
        const struct stage_plan *plan = workload->stages[stage].plan;

        if (row->items[i].kind != FORWARD && row->items[i].kind != BACKWARD)
            continue;
        busy.works += least_work(workload, stage, row->items[i].kind) / plan_slices(&workload->plan);
        moved += row->items[i].kind == FORWARD && plan ? plan->offloaded : 0;
    }
    busy.copies = moved > 0 ? moved / scenario_host_bandwidth(workload->scenario, rank) : 0;
    return busy;
}

double workload_least(const struct workload *workload)
{
    const struct plan *plan = &workload->plan;
    bool filled = !scenario_schedule(workload->scenario)->asynchronous && plan_directions(plan) == 1 &&
                  !plan_shares(plan) && plan_slices(plan) == 1;
    double most = 0;

    for (int rank = 0; rank < plan->stages; rank++) {
        struct busy busy = busy_of(workload, rank);
        int first = plan_virtual_stage(plan, rank, 0);

        for (int c = 1; c < plan_chunks(plan, rank); c++) {
            int stage = plan_virtual_stage(plan, rank, c);

            first = stage < first ? stage : first;
        }
        for (int s = 0; filled && s < first; s++)
            busy.works += least_work(workload, s, FORWARD) + least_work(workload, s, BACKWARD);
        most = fmax(most, fmax(busy.works, busy.copies));
    }
    return most;
}
