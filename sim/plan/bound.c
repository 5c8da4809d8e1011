#include "plan/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Exchanges of the tensor group that no kernel hides: their seconds are a part of works. */
static const enum exchange plain[] = {EXCHANGE_TENSOR, EXCHANGE_ROWS, EXCHANGE_QKV};

/* The tensor group of a rank in the first replica, and how long each of its exchanges takes. */
struct tensor_group {
    int *gpus;
    const struct stage *of;          /* whose bytes it exchanges; NULL: nothing is known yet */
    double seconds[EXCHANGE_COUNT];
};

/* Sums over the stages before each virtual stage of the same micro-batch's forwards, and of the shortest that its backwards
 * may be; and the seconds of the works of one rank, by chunk. */
struct bounding {
    const struct workload *workload;
    struct measure *measure;
    struct tensor_group group, asked;        /* the last one whose exchanges were measured; scratch */
    double *forwards, *backwards;
    double (*works)[WORK_KIND_COUNT];
};

/* s of a collective of the group; 0 where it cannot be measured. */
static double measured(const struct bounding *bounding, const struct collective *collective, double bytes)
{
    const struct scenario *scenario = bounding->workload->scenario;
    struct placed_group placed = placed_group_of(&scenario->cluster, bounding->asked.gpus, scenario->parallelism.tensor);
    struct collective_call call = {collective, &placed, bytes, scenario->parallelism.channels};
    struct error ignored = {0};
    struct measured result;
    int rc = bytes > 0 ? measure_collective(bounding->measure, &call, 1, &result, &ignored) : -1;

    error_release(&ignored);
    return rc ? 0 : result.seconds;
}

/* The same of an all-gather and a reduce-scatter. */
static double measured_halves(const struct bounding *bounding, double bytes)
{
    return measured(bounding, collective_usual(COLLECTIVE_ALL_GATHER, false), bytes) +
           measured(bounding, collective_usual(COLLECTIVE_REDUCE_SCATTER, false), bytes);
}

/* Whether two groups, each in one node, have the same places there. */
static bool same_places(const struct cluster *cluster, const int *a, const int *b, int n)
{
    if (cluster_kind_of(cluster, cluster_node_of(cluster, a[0])) != cluster_kind_of(cluster, cluster_node_of(cluster, b[0])))
        return false;
    for (int i = 0; i < n; i++)
        if (cluster_place_of(cluster, a[i]) != cluster_place_of(cluster, b[i]))
            return false;
    return true;
}

static bool same_bytes(const struct stage *a, const struct stage *b)
{
    for (size_t i = 0; i < COUNT(plain); i++)
        if (a->bytes[plain[i]] < b->bytes[plain[i]] || a->bytes[plain[i]] > b->bytes[plain[i]])
            return false;
    return true;
}

/* How long each exchange of the rank's tensor group takes on such a stage, as lower_group.c measures it; 0 of a group on
 * several nodes, whose links others use too. */
static const double *exchange_seconds(struct bounding *bounding, int rank, const struct stage *stage)
{
    const struct scenario *scenario = bounding->workload->scenario;
    struct tensor_group *group = &bounding->group, *asked = &bounding->asked;
    int n = scenario->parallelism.tensor;

    group_gpus(scenario, &scenario->groups.of[GROUP_TENSOR], 0, 0, rank, asked->gpus);
    if (!cluster_within_node(&scenario->cluster, asked->gpus, n))
        return asked->seconds;
    if (group->of && same_places(&scenario->cluster, asked->gpus, group->gpus, n) && same_bytes(stage, group->of))
        return group->seconds;
    memcpy(group->gpus, asked->gpus, (size_t)n * sizeof *group->gpus);
    group->of = stage;
    group->seconds[EXCHANGE_QKV] = measured(bounding, collective_usual(COLLECTIVE_ALL_GATHER, false),
                                            stage->bytes[EXCHANGE_QKV]);
    group->seconds[EXCHANGE_TENSOR] = scenario->parallelism.sequence_parallel ?
                                      measured_halves(bounding, stage->bytes[EXCHANGE_TENSOR]) :
                                      measured(bounding, scenario_all_reduce(scenario), stage->bytes[EXCHANGE_TENSOR]);
    group->seconds[EXCHANGE_ROWS] = scenario->parallelism.sequence_parallel ?
                                    measured_halves(bounding, stage->bytes[EXCHANGE_ROWS]) : 0;
    return group->seconds;
}

/* s of each kind of work of a virtual stage on a rank. */
static void stage_seconds(struct bounding *bounding, int rank, int virtual_stage, double seconds[WORK_KIND_COUNT])
{
    const struct gpu_class *class = workload_class(bounding->workload, 0, rank);
    const struct stage *stage = &class->stages[virtual_stage];
    bool exchanges = bounding->measure && bounding->workload->scenario->parallelism.tensor > 1;
    const double *each = exchanges ? exchange_seconds(bounding, rank, stage) : NULL;

    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        seconds[kind] = class->times[virtual_stage].work[kind].seconds;
        for (size_t i = 0; each && i < COUNT(plain); i++)
            seconds[kind] += stage->work[kind].exchanges[plain[i]] * each[plain[i]];
    }
}

static void sum_stages(struct bounding *bounding)
{
    const struct plan *plan = &bounding->workload->plan;

    for (int v = 0; v < plan_virtual_stages(plan); v++) {
        double seconds[WORK_KIND_COUNT], input;

        stage_seconds(bounding, plan_rank(plan, 0, v, 0, NULL), v, seconds);
        input = seconds[BACKWARD_INPUT];
        bounding->forwards[v + 1] = bounding->forwards[v] + seconds[FORWARD];
        bounding->backwards[v + 1] = bounding->backwards[v] + (input > 0 ? fmin(seconds[BACKWARD], input) : 0);
    }
}

static bool is_backward(const struct work *work)
{
    return work->kind == BACKWARD || work->kind == BACKWARD_INPUT;
}

/* s of the rank's update of its chunks; 0: its host does that. */
static double update_seconds(const struct workload *workload, int rank)
{
    double seconds = 0;

    for (int chunk = 0; chunk < plan_chunks(&workload->plan, rank); chunk++)
        seconds += workload_times(workload, 0, rank)[plan_virtual_stage(&workload->plan, rank, chunk)].update.seconds;
    return scenario_offloads(workload->scenario, OFFLOAD_OPTIMIZER) ? 0 : seconds;
}

static double rank_bound(struct bounding *bounding, int rank, bool flushed)
{
    const struct workload *workload = bounding->workload;
    int first = plan_rank(&workload->plan, 0, 0, 0, NULL);       /* where the drain ends */
    const struct row *row = &workload->rows[rank];
    double before = 0, behind = 0, fill = 0, drain = 0;
    size_t last = row->count ? row->count - 1 : 0;

    for (int chunk = 0; chunk < plan_chunks(&workload->plan, rank); chunk++)
        stage_seconds(bounding, rank, plan_virtual_stage(&workload->plan, rank, chunk), bounding->works[chunk]);
    while (last > 0 && !is_backward(&row->items[last]))
        last--;
    for (size_t i = 0; i < row->count; i++)
        *(i <= last ? &before : &behind) += bounding->works[row->items[i].chunk][row->items[i].kind];
    if (flushed && row->count) {
        fill = bounding->forwards[plan_virtual_stage(&workload->plan, rank, row->items[0].chunk)];
        drain = bounding->backwards[plan_virtual_stage(&workload->plan, rank, row->items[last].chunk)] +
                update_seconds(workload, first);
    }
    return fill + before + fmax(behind + update_seconds(workload, rank), drain);
}

double workload_bound(const struct workload *workload, struct measure *measure)
{
    const struct scenario *scenario = workload->scenario;
    const struct schedule *schedule = scenario_schedule(scenario);
    size_t stages = (size_t)plan_virtual_stages(&workload->plan), ranks = (size_t)workload->plan.stages;
    size_t tensor = (size_t)scenario->parallelism.tensor, chunks = 1;
    struct bounding bounding = {.workload = workload, .measure = measure};
    double most = 0;

    if (scenario->simulation.jitter > 0 || scenario->recipe.rooted || schedule->asynchronous ||
        plan_shares(&workload->plan) || plan_opportunistic(schedule, &workload->plan))
        return 0;
    for (size_t rank = 0; rank < ranks; rank++)
        if (plan_chunks(&workload->plan, (int)rank) > (int)chunks)
            chunks = (size_t)plan_chunks(&workload->plan, (int)rank);
    bounding.forwards = xcalloc(stages + 1, sizeof *bounding.forwards);
    bounding.backwards = xcalloc(stages + 1, sizeof *bounding.backwards);
    bounding.works = xcalloc(chunks, sizeof *bounding.works);
    bounding.group.gpus = xcalloc(tensor, sizeof *bounding.group.gpus);
    bounding.asked.gpus = xcalloc(tensor, sizeof *bounding.asked.gpus);
    sum_stages(&bounding);
    for (size_t rank = 0; rank < ranks; rank++)
        most = fmax(most, rank_bound(&bounding, (int)rank, plan_directions(&workload->plan) == 1));
    free(bounding.forwards);
    free(bounding.backwards);
    free(bounding.works);
    free(bounding.group.gpus);
    free(bounding.asked.gpus);
    return most * (1 - ROUNDING);        /* engines add in another order */
}
