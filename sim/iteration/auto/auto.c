/* Settings that are found by simulating: on which part of the cluster each pipeline rank is (best_parts.c), which samples of
 * a micro-batch each replica gets (best_shares.c), which layers each stage has (best_split.c), and which plans of layers
 * (best_memory.c). */
#include "auto/auto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alike/alike.h"
#include "auto/auto_internal.h"
#include "auto/bound.h"
#include "base/base.h"
#include "collective/measure.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "lower/lower.h"
#include "lower/window.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "workload/workload.h"

/* s that no replay on engine fast is shorter than. */
static double bound_on_fast(const struct workload *workload)
{
    struct measure measure;
    double seconds;

    measure_init(&measure, ENGINE_FAST, &workload->scenario->cluster);
    if (workload->scenario->arena.cache)
        measure.cache = workload->scenario->arena.cache;
    seconds = workload_bound(workload, NULL, &measure);
    measure_release(&measure);
    return seconds;
}

/* How the scenario's iteration ends, with layers planned for all the memory that there is. */
static struct lowered_end lowered_end(const struct scenario *scenario, double most, double *works)
{
    struct workload workload = {0};
    struct error found = {0};
    struct lowered_end end = {INFINITY, INFINITY};

    if (!auto_time(&workload, scenario, &found) && !workload_order(&workload, &found)) {
        alike_make(workload.scenario, workload.stages, &workload.alike);
        end = (struct lowered_end){isfinite(most) ? bound_on_fast(&workload) : 0, 0};
        if (end.seconds <= most)
            end = workload_end(&workload, works);
    }
    workload_release(&workload);
    error_release(&found);
    return end;
}

/* Begins the workload, and finds all but the plans of its layers. */
static int find_places(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    workload_begin(workload, scenario);
    if (scenario->parallelism.stages_on == STAGES_ON_AUTO && !scenario->layout.gpus &&
        !(workload->scenario = auto_parts(&workload->arena, scenario, lowered_end, err)))
        return -1;
    if (list_is_auto(&scenario->batch.shares) && !scenario->batch.samples &&
        !(workload->scenario = auto_shares(&workload->arena, workload->scenario, lowered_end, err)))
        return -1;
    if (list_is_auto(&scenario->parallelism.split) && !scenario->parallelism.layers &&
        !(workload->scenario = auto_split(&workload->arena, workload->scenario, lowered_end, err)))
        return -1;
    return 0;
}

int auto_time(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    return find_places(workload, scenario, err) || workload_time(workload, err) ? -1 : 0;
}

int workload_init(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    if (find_places(workload, scenario, err))
        return -1;
    if (scenario_plans_memory(workload->scenario)) {
        workload->scenario = auto_memory(&workload->arena, workload->scenario);
        workload->plan = workload->scenario->plan;
    }
    if (workload_time(workload, err) || workload_order(workload, err))
        return -1;
    alike_make(workload->scenario, workload->stages, &workload->alike);
    return 0;
}
