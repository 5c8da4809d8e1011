#include "workload/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alike/alike.h"
#include "base/base.h"
#include "hardware/cluster.h"
#include "model/model.h"
#include "recompute/stage_plan.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/rows_within.h"

/* s of each kind of work before the update on each virtual stage, on the average GPU that holds the stage. */
typedef double stage_seconds[UPDATE];

static stage_seconds *average_seconds(const struct workload *workload)
{
    const struct plan *plan = &workload->plan;
    int count = plan_virtual_stages(plan), replicas = workload_timed_replicas(workload);
    stage_seconds *seconds = xcalloc((size_t)count, sizeof *seconds);
    int *holders = xcalloc((size_t)count, sizeof *holders);

    for (int r = 0; r < replicas; r++)
        for (int p = 0; p < plan->stages; p++)
            for (int chunk = 0; chunk < plan_chunks(plan, p) && scenario_rank_replicas(workload->scenario, p) > r; chunk++) {
                int s = plan_virtual_stage(plan, p, chunk);

                holders[s]++;
                for (int kind = 0; kind < UPDATE; kind++)    /* a running mean: equal times give their very value */
                    seconds[s][kind] +=
                        (workload_times(workload, r, p)[s].work[kind].seconds - seconds[s][kind]) / holders[s];
            }
    free(holders);
    return seconds;
}

/* Times for schedules whose order depends on them: the mean of all stages, and a boundary between neighbouring ranks.
 * All these schedules split their backwards, which excludes plans layer by layer: so the times need no such plan. */
static void take_times(struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    struct plan_times *times = &workload->plan.times;
    int count = plan_virtual_stages(&workload->plan);
    stage_seconds *seconds = average_seconds(workload);

    for (int s = 0; s < count; s++) {
        times->forward += seconds[s][FORWARD] / count;
        times->backward_input += seconds[s][BACKWARD_INPUT] / count;
        if (workload->plan.recompute)
            times->backward_input += seconds[s][RECOMPUTE] / count;
        times->backward_weight += seconds[s][BACKWARD_WEIGHT] / count;
    }
    free(seconds);
    if (workload->plan.stages > 1 && !scenario->cluster.ideal) {
        struct route route =
            cluster_route(&scenario->cluster, scenario_gpu(scenario, 0, 0, 0), scenario_gpu(scenario, 0, 0, 1));

        times->communication = route.latency + workload->stages[0].boundary / route.bandwidth;
    }
}

static void count_versions(struct workload *workload)
{
    const struct schedule *schedule = scenario_schedule(workload->scenario);
    const struct plan *plan = &workload->plan;

    for (int s = 0; s < plan_virtual_stages(plan); s++)
        workload->stages[s].versions =
            rows_versions(schedule, plan, workload->rows, plan_rank(plan, 0, s, 0, NULL));
}

/* Adds the times of GPUs like those, whose kernels take `slower` times as long; what the host launches does not. Their
 * stages have the layers that the stages of ordinary GPUs have. */
static int add_class(struct workload *workload, struct gpu_class like, struct error *err)
{
    struct kernel_costs kernels = workload->scenario->kernels[like.kind];
    int count = plan_virtual_stages(&workload->plan), *layers = ARENA_ARRAY(&workload->arena, int, count);

    for (int s = 0; s < count; s++)
        layers[s] = workload->stages[s].layers;
    kernels.speed /= like.slower;
    if (class_cost(&workload->arena, workload->scenario, layers, &kernels, &like, err))
        return -1;
    if (like.samples == workload->scenario->batch.micro)
        like.stages = workload->stages;
    workload->classes[workload->nclasses++] = like;
    return 0;
}

/* NULL: there is no such class. */
static const struct gpu_class *find_class(const struct workload *workload, struct gpu_class like)
{
    for (size_t i = 0; i < workload->nclasses; i++) {
        const struct gpu_class *class = &workload->classes[i];

        if (class->kind == like.kind && class->slower == like.slower && class->samples == like.samples)
            return class;
    }
    return NULL;
}

/* How many times as long the slowest of a tensor group's GPUs of that kind takes. */
static double slower_of(const struct scenario *scenario, int kind, int replica, int p)
{
    double slowest = 1;

    if (!scenario->layout.mixed)
        return scenario_slower(scenario, replica, p);
    for (int t = 0; t < scenario_tensor(scenario, p); t++) {
        struct seat seat = scenario_seat(scenario, t, replica, p);

        slowest = seat.kind == kind ? fmax(slowest, seat.slower) : slowest;
    }
    return slowest;
}

/* What is asked of the class of a GPU. */
static struct gpu_class class_like(const struct scenario *scenario, int t, int replica, int p)
{
    int kind = scenario_seat(scenario, t, replica, p).kind;

    return (struct gpu_class){.kind = kind, .samples = scenario_samples(scenario, replica),
                              .slower = slower_of(scenario, kind, replica, p)};
}

/* The number of different sizes of micro-batches, batch.micro among them. */
static size_t count_samples(const struct scenario *scenario)
{
    const int *samples = scenario->batch.samples;
    size_t count = 1;

    for (int d = 0; samples && d < scenario->parallelism.data; d++) {
        bool known = samples[d] == scenario->batch.micro;

        for (int i = 0; i < d; i++)
            known |= samples[i] == samples[d];
        count += !known;
    }
    return count;
}

/* s of a forward and its backward. */
static double both_works(const struct stage_times *times)
{
    return times->work[FORWARD].seconds + times->work[BACKWARD].seconds;
}

/* The class of the slowest of the rank's GPUs. */
static const struct gpu_class *slowest_class(const struct workload *workload, int replica, int p)
{
    const struct scenario *scenario = workload->scenario;
    const struct gpu_class *slowest = NULL;
    int stage = plan_virtual_stage(&workload->plan, p, 0);

    for (int t = 0; t < (scenario->layout.mixed ? scenario_tensor(scenario, p) : 1); t++) {
        const struct gpu_class *own = find_class(workload, class_like(scenario, t, replica, p));

        if (!slowest || both_works(&own->times[stage]) > both_works(&slowest->times[stage]))
            slowest = own;
    }
    return slowest;
}

static void note_classes(struct workload *workload)
{
    int replicas = scenario_replicas(workload->scenario), stages = workload->plan.stages;

    if (workload->nclasses == 1)
        return;
    workload->of = ARENA_ARRAY(&workload->arena, const struct gpu_class *, replicas * stages);
    for (int i = 0; i < replicas * stages; i++)
        workload->of[i] = scenario_has_rank(workload->scenario, i) ? slowest_class(workload, i / stages, i % stages)
                                                                   : workload->classes;
}

static int build_classes(struct workload *workload, struct error *err)
{
    const struct scenario *scenario = workload->scenario;
    size_t most = (1 + scenario->simulation.stragglers.count) * (size_t)(1 + cluster_given_parts(&scenario->cluster)) *
                  (size_t)cluster_kinds(&scenario->cluster) * count_samples(scenario);
    int usual = scenario_seat(scenario, 0, 0, 0).kind;

    workload->classes = arena_alloc(&workload->arena, most * sizeof *workload->classes);
    workload->classes[workload->nclasses++] = (struct gpu_class){
        .kind = usual, .samples = scenario->batch.micro, .slower = 1,
    };
    if (class_cost(&workload->arena, scenario, NULL, &scenario->kernels[usual], &workload->classes[0], err))
        return -1;
    workload->stages = workload->classes[0].stages;
    for (int r = 0; (scenario->uneven & (UNEVEN_GPUS | UNEVEN_SAMPLES) || scenario->layout.mixed) &&
                    r < scenario_replicas(scenario); r++)
        for (int p = 0; p < workload->plan.stages; p++)
            for (int t = 0; t < scenario_tensor(scenario, p) && r < scenario_rank_replicas(scenario, p); t++) {
                struct gpu_class like = class_like(scenario, t, r, p);

                if (!find_class(workload, like) && add_class(workload, like, err))
                    return -1;
                if (!scenario->layout.mixed)
                    break;
            }
    note_classes(workload);
    return 0;
}

/* All ranks follow the plans that were made from the times of ordinary GPUs. */
static void time_plans(const struct workload *workload)
{
    for (size_t i = 0; i < workload->nclasses; i++)
        for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
            const struct gpu_class *class = &workload->classes[i];

            class->times[s].recomputed = stage_plan_recomputed(&class->stages[s], &class->times[s]);
        }
}

static int plan_layers(struct workload *workload, struct error *err)
{
    const struct scenario *scenario = workload->scenario;

    if (scenario_by_layers(scenario) &&
        stage_plans_build(&workload->arena, scenario, workload->stages, ordinary_times(workload), workload->rows, err))
        return -1;
    time_plans(workload);
    return 0;
}

const struct gpu_class *workload_class(const struct workload *workload, int replica, int p)
{
    return workload->of ? workload->of[replica * workload->plan.stages + p] : workload->classes;
}

const struct stage_times *workload_times(const struct workload *workload, int replica, int p)
{
    return workload_class(workload, replica, p)->times;
}

int workload_timed_replicas(const struct workload *workload)
{
    return workload->nclasses > 1 ? scenario_replicas(workload->scenario) : 1;
}

void workload_begin(struct workload *workload, const struct scenario *scenario)
{
    *workload = (struct workload){.scenario = scenario, .plan = scenario->plan,
                                   .arena = {.cache = scenario->arena.cache}};
}

int workload_time(struct workload *workload, struct error *err)
{
    if (build_classes(workload, err))
        return -1;
    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++)
        workload->stages[s].versions = 1;
    return 0;
}

int workload_order(struct workload *workload, struct error *err)
{
    const struct scenario *scenario = workload->scenario;

    take_times(workload);
    workload->rows = rows_within(scenario_schedule(scenario), &workload->plan, scenario->progress, err);
    if (!workload->rows)
        return -1;
    count_versions(workload);
    return plan_layers(workload, err);
}

int workload_replan(struct workload *workload, struct error *err)
{
    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++)
        workload->stages[s].plan = NULL;
    if (plan_layers(workload, err))
        return -1;
    alike_make(workload->scenario, workload->stages, &workload->alike);
    return 0;
}

int workload_build(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    workload_begin(workload, scenario);
    if (workload_time(workload, err) || workload_order(workload, err))
        return -1;
    alike_make(workload->scenario, workload->stages, &workload->alike);
    return 0;
}

double workload_given_work(const struct workload *workload)
{
    double seconds = 0;

    for (int s = 0; s < plan_virtual_stages(&workload->plan); s++)
        seconds += ordinary_times(workload)[s].work[FORWARD].seconds + ordinary_times(workload)[s].work[BACKWARD].seconds;
    return model_is_timed(&workload->scenario->model) ? seconds : NAN;
}

/* s of the mean stage for one work of each kind before the update. */
static void mean_works(const struct workload *workload, double *mean)
{
    int count = plan_virtual_stages(&workload->plan);
    stage_seconds *seconds = average_seconds(workload);

    for (int kind = 0; kind < UPDATE; kind++) {
        mean[kind] = 0;
        for (int s = 0; s < count; s++)
            mean[kind] += seconds[s][kind] / count;
    }
    free(seconds);
}

double workload_ideal_bubble(const struct workload *workload)
{
    const struct schedule *schedule = scenario_schedule(workload->scenario);
    const struct plan *plan = &workload->plan, part = plan_of_flush(plan);
    double seconds[UPDATE], busy = 0, whole;
    bool split = false;

    if (!schedule->ideal_makespan || schedule->asynchronous || plan->pairs)
        return NAN;
    mean_works(workload, seconds);
    for (int rank = 0; rank < plan->stages; rank++)
        for (size_t i = 0; i < workload->rows[rank].count; i++) {
            enum work_kind kind = workload->rows[rank].items[i].kind;

            split |= kind == BACKWARD_INPUT;
            busy += kind < UPDATE ? seconds[kind] / plan->stages : 0;
        }
    if (split && plan_flushes(plan) > 1)     /* the next forwards begin together with the last halves of backwards */
        return NAN;
    whole = plan_flushes(plan) *
            schedule->ideal_makespan(&part, seconds[FORWARD], split ? seconds[BACKWARD_INPUT] + seconds[BACKWARD_WEIGHT]
                                                                   : seconds[BACKWARD], seconds[RECOMPUTE]);
    return whole > 0 ? fmax(0, 1 - busy / whole) : NAN;     /* rounding may make them differ below 0 */
}

void workload_release(struct workload *workload)
{
    if (workload->rows)
        rows_release(workload->rows, workload->plan.stages);
    arena_release(&workload->arena);
    memset(workload, 0, sizeof *workload);
}
