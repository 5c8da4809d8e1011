#include "auto/bound.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "exchange/exchange.h"
#include "hardware/cluster.h"
#include "kernels/contention.h"
#include "recompute/stage_plan.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/exchange_cost.h"
#include "workload/lockstep.h"
#include "workload/row_counts.h"
#include "workload/workload.h"

/* What is looked at, and what is found. */
struct bounding {
    const struct workload *workload;
    struct measure *measure;
    struct parameter_bytes bytes;
    struct { struct measured_move *items; size_t count, capacity; } moves;   /* so far */
    struct arena *arena;             /* of their GPUs */
    struct dispatching_times beside; /* the longest of any work: what hides dispatches */
    bool overlaps;                   /* a forward may run beside a backward */
    struct { int place; double byte; } sums;     /* the last byte_seconds, of a group whose first GPU has this place */
    double (*works)[WORK_KIND_COUNT];    /* a virtual stage: s of its works, on the first rank that has it */
    double *forwards, *backwards;    /* of a virtual stage: sums over the stages before it, of a micro-batch's forwards,
                                        and of the shortest time of its backwards */
    int *members, *stages;           /* scratch: the GPUs of a group; the virtual stages of a rank, by chunk */
    bool *marked;                    /* the same, by node */
};

/* A move that was measured: of a group in one node, for all in the same places; else for that rank. */
struct measured_move { struct move move; int rank, *gpus; bool inside; struct exchange_cost cost; };

/* Whether two groups, each in one node, have the same places there. */
static bool same_places(const struct cluster *cluster, const int *a, const int *b, int n)
{
    int node = cluster_node_of(cluster, a[0]), other = cluster_node_of(cluster, b[0]);

    if (cluster_kind_of(cluster, node) != cluster_kind_of(cluster, other))
        return false;
    for (int i = 0; i < n; i++)
        if (cluster_place_of(cluster, a[i]) != cluster_place_of(cluster, b[i]))
            return false;
    return true;
}

/* s of a byte that passes from one node to the next one, at least; 0: the rank's group is in one node. */
static double hop_byte(struct bounding *bounding, const struct process_group *group, int rank)
{
    const struct scenario *scenario = bounding->workload->scenario;
    const struct cluster *cluster = &scenario->cluster;
    double fastest = 0;

    group_gpus(scenario, group, 0, 0, rank, bounding->members);
    if (cluster_within_node(cluster, bounding->members, group_members(group)))
        return 0;
    for (int i = 0; i < group_members(group); i++) {
        int node = cluster_node_of(cluster, bounding->members[i]);

        fastest = fmax(fastest, cluster_bandwidth(cluster, node, false) * cluster_nics_together(cluster, node));
    }
    return fastest > 0 ? 1 / fastest : 0;
}

struct bounded { struct pricing pricing; struct bounding *bounding; };

/* What the move takes at least: measured in a group in one node, whose links no other group uses, and of dispatches beside
 * their siblings; of a ring through several nodes its blocks pass from node to node. Other moves, and those that cannot be
 * measured, take no time. */
static struct exchange_cost price_bounded(const struct pricing *pricing, const struct move *move)
{
    struct bounding *bounding = ((const struct bounded *)pricing)->bounding;
    const struct cluster *cluster = &pricing->scenario->cluster;
    const struct process_group *group = &pricing->scenario->groups.of[move->kind];
    int n = group_members(group), *gpus = bounding->members;
    struct measured_move own = {.move = *move, .rank = pricing->rank};
    struct exchanges exchanges;
    struct error ignored = {0};

    if (n <= 1 || !bounding->measure)
        return own.cost;
    group_gpus(pricing->scenario, group, 0, 0, pricing->rank, gpus);
    own.inside = cluster_within_node(cluster, gpus, n);
    if (!own.inside && move->kind != GROUP_EXPERT)
        return (struct exchange_cost){.seconds = move->step && bounding->measure->engine != ENGINE_IDEAL ? hop_byte(bounding, group, pricing->rank) * move->bytes / n : 0};
    for (size_t i = 0; i < bounding->moves.count; i++) {
        const struct measured_move *known = &bounding->moves.items[i];

        if (same_move(&known->move, move) && known->inside == own.inside &&
            (own.inside ? same_places(cluster, known->gpus, gpus, n) : known->rank == own.rank))
            return known->cost;
    }
    own.gpus = ARENA_ARRAY(bounding->arena, int, n);
    memcpy(own.gpus, gpus, (size_t)n * sizeof *gpus);
    exchanges = (struct exchanges){
        .workload = bounding->workload, .scenario = pricing->scenario, .measure = bounding->measure, .err = &ignored,
        .alike.flows = 1,
    };
    if (move_measure(&exchanges, pricing->rank, move, gpus, bounding->marked, &own.cost))
        own.cost = (struct exchange_cost){0};
    error_release(&ignored);
    *GROW(&bounding->moves) = own;
    return own.cost;
}

/* s that dispatches add to a work, at least, of `all` s. Where works overlap in phases, any work may be the other one
 * (lower_compute.c, hidden_in_phases). Beside other works that overlap they take multiprocessors at least. */
static double dispatch_seconds(const struct bounding *bounding, const struct work_times *times, double all, double share)
{
    int overlap = bounding->workload->scenario->parallelism.overlap_dispatch;
    const struct dispatching_times *beside = &bounding->beside;

    if (overlap != OVERLAP_DISPATCH_NONE && plan_slices(&bounding->workload->plan) > 1)
        return share * all;
    if (overlap == OVERLAP_DISPATCH_MICRO_BATCHES)
        return contention_exposed(all / 2, beside->before, share) + contention_exposed(all / 2, beside->others, share);
    if (bounding->overlaps)
        return share * all;
    return overlap == OVERLAP_DISPATCH_SHARED ? contention_exposed(all, times->dispatching.shared, share) : all;
}

/* s of each kind of work of a virtual stage on a rank: of the first slice of a micro-batch, or of the mean of all slices.
 * Where the GPU waits for launches, exchanges that overlap go on (lower_compute.c, exposed_share). What kernels do not hide is
 * a convex function of their time: of the mean slice it is at most the mean. */
static void stage_seconds(struct bounding *bounding, int rank, int virtual_stage, bool first,
                          double seconds[WORK_KIND_COUNT])
{
    const struct scenario *scenario = bounding->workload->scenario;
    const struct gpu_class *class = workload_class(bounding->workload, 0, rank);
    struct token_slice of = first ? class_slice(&bounding->workload->plan, class, 0)
                                  : (struct token_slice){class->stages, class->times};
    const struct stage *stage = &of.stages[virtual_stage];
    const struct stage_times *times = &of.times[virtual_stage];
    struct bounded bounded = {
        {scenario, rank, scenario->cluster.ideal ? NULL : cluster_sheet(&scenario->cluster, scenario_gpu(scenario, 0, 0, rank)),
         price_bounded}, bounding};
    struct exchange_cost costs[EXCHANGES_MAX] = {{0}};

    for (int i = 0; bounding->measure && i < stage->exchanges->count; i++)
        if (stage_exchanges(stage, i))
            costs[i] = exchange_cost(&bounded.pricing, &stage->exchanges->items[i], times->hidings);
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const struct work_counts *counts = &stage->work[kind];
        double hidden = exchange_gathers_exposed(stage, counts, &times->work[kind], costs), dispatches = 0, share = 0;

        seconds[kind] = times->work[kind].seconds + (kind == BACKWARD ? times->recomputed.seconds : 0);
        for (int i = 0; i < stage->exchanges->count; i++) {
            double own = counts->exchanges[i] * costs[i].seconds;

            switch (stage->exchanges->items[i].by) {
            case HIDDEN_BY_NOTHING:
                seconds[kind] += own;
                break;
            case HIDDEN_BY_OTHERS:
                dispatches += own;
                share = costs[i].share;
                break;
            case HIDDEN_BY_WORK:
                break;
            case HIDDEN_BY_GRADIENTS:
            case HIDDEN_BY_PIECES:
            case HIDDEN_BY_STEPS:
                hidden += own;
            }
        }
        seconds[kind] += fmax(0, hidden - times->work[kind].starved) +
                         dispatch_seconds(bounding, &times->work[kind], dispatches, share);
    }
}

/* What may run beside a work. */
static void find_beside(struct bounding *bounding, const struct row_counts *counts)
{
    const struct workload *workload = bounding->workload;
    struct dispatching_times *beside = &bounding->beside;

    for (int rank = 0; rank < workload->plan.stages; rank++)
        bounding->overlaps |= counts[rank].overlaps;
    for (size_t c = 0; c < workload->nclasses; c++)
        for (int v = 0; v < plan_virtual_stages(&workload->plan); v++)
            for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
                const struct dispatching_times *times = &workload->classes[c].times[v].work[kind].dispatching;

                beside->before = fmax(beside->before, times->before);
                beside->others = fmax(beside->others, times->others);
            }
}

static void sum_stages(struct bounding *bounding)
{
    const struct plan *plan = &bounding->workload->plan;

    for (int v = 0; v < plan_virtual_stages(plan); v++) {
        double seconds[WORK_KIND_COUNT], input;
        int rank = plan_rank(plan, 0, v, 0, NULL);

        stage_seconds(bounding, rank, v, false, bounding->works[v]);
        memcpy(seconds, bounding->works[v], sizeof seconds);
        if (plan_slices(plan) > 1)           /* a rank's first forward and last backward are of the first slice */
            stage_seconds(bounding, rank, v, true, seconds);
        input = seconds[BACKWARD_INPUT];
        bounding->forwards[v + 1] = bounding->forwards[v] + seconds[FORWARD];
        bounding->backwards[v + 1] = bounding->backwards[v] + (input > 0 ? fmin(seconds[BACKWARD], input) : 0);
    }
}

/* s of a byte that each member of the rank's group has, and that each other node gets or sums once: the NICs of all
 * members together carry it as often as there are nodes, less 1. 0: the group is in one node. */
static double byte_seconds(struct bounding *bounding, const struct process_group *group, int rank)
{
    const struct scenario *scenario = bounding->workload->scenario;
    const struct cluster *cluster = &scenario->cluster;
    int members = group_members(group), nodes = 1, *gpus = bounding->members;
    int place = cluster_place_of(cluster, scenario_gpu(scenario, 0, 0, rank));
    double fastest = 0, rate = 0;

    if (place == bounding->sums.place && !scenario->layout.mixed)        /* ranks stand equally far apart */
        return bounding->sums.byte;
    group_gpus(scenario, group, 0, 0, rank, gpus);
    for (int i = 0; i < members; i++) {
        int node = cluster_node_of(cluster, gpus[i]);
        bool new_nic = i == 0 || cluster_nic_of(cluster, gpus[i]) != cluster_nic_of(cluster, gpus[i - 1]);

        if (i > 0 && node < cluster_node_of(cluster, gpus[i - 1]))
            return 0;                            /* nodes could be counted twice */
        nodes += i > 0 && node != cluster_node_of(cluster, gpus[i - 1]);
        fastest = cluster_bandwidth(cluster, node, false) * cluster_nics_together(cluster, node);
        rate += new_nic ? fastest : 0;
    }
    bounding->sums.place = place;
    return bounding->sums.byte = nodes > 1 && rate > 0 ? (nodes - 1) / rate : 0;
}

/* Whether nothing hides the rank's last sums of gradients: they are not compressed, and begin when it has computed
 * everything. *one: this is sure of the sums of one chunk only, as each chunk's sums begin when that chunk is ready. */
static bool sums_follow(const struct scenario *scenario, bool *one)
{
    const struct recipe *recipe = &scenario->recipe;

    *one = !recipe->gradients.flush;
    return recipe->gradients.unit != SUM_NOTHING && recipe->gradients.unit != SUM_LAYERS && !recipe->gradients.every &&
           scenario->parallelism.compression.method == COMPRESSION_NONE &&
           (recipe->gradients.flush || isinf(recipe->gradients.first_bucket));
}

/* s behind the rank's works, at least: sums of its gradients over the replicas, its update, unless its host does that,
 * and the gathers of its weights. */
static double tail_seconds(struct bounding *bounding, int rank)
{
    const struct workload *workload = bounding->workload;
    const struct scenario *scenario = workload->scenario;
    const struct process_group *group = &scenario->groups.of[scenario->groups.sums[PARAMETERS_COMMON]];
    const struct parameter_bytes *each = &bounding->bytes;
    bool known = bounding->measure && bounding->measure->engine != ENGINE_IDEAL && group_members(group) > 1, one;
    bool sums = sums_follow(scenario, &one), gathers = scenario->recipe.weights.when == WEIGHTS_UPDATED;
    double update = 0, all = 0, least = INFINITY, bytes;

    for (int chunk = 0; chunk < plan_chunks(&workload->plan, rank); chunk++) {
        const struct gpu_class *class = workload_class(workload, 0, rank);
        int stage = plan_virtual_stage(&workload->plan, rank, chunk);
        double trained = class->stages[stage].trained.of[PARAMETERS_COMMON];

        update += class->times[stage].update.seconds;
        all += trained;
        least = fmin(least, trained);
    }
    if (scenario_offloads(scenario, OFFLOAD_OPTIMIZER))
        update = 0;
    if (!known || scenario->parallelism.local_steps > 1 || plan_directions(&workload->plan) > 1)
        return update;
    bytes = sums ? (one ? least : all) * each->sent : 0;
    if (scenario->recipe.gradients.collective->op == COLLECTIVE_ALL_REDUCE)
        bytes *= 2;                          /* a sum of all, and it goes back to all */
    bytes += gathers ? all * fmin(each->weights, each->gathered) : 0;
    return update + bytes * byte_seconds(bounding, group, rank);
}

/* s of the works in `counts`, of each kind in each chunk of the rank. */
static double works_seconds(const struct bounding *bounding, const int *counts, int chunks)
{
    double sum = 0;

    for (int chunk = 0; chunk < chunks; chunk++)
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            sum += counts[chunk * WORK_KIND_COUNT + kind] * bounding->works[bounding->stages[chunk]][kind];
    return sum;
}

static double rank_bound(struct bounding *bounding, const struct row_counts *counts, int rank, bool flushed)
{
    const struct workload *workload = bounding->workload;
    int first = plan_rank(&workload->plan, 0, 0, 0, NULL);       /* where the drain ends */
    int chunks = plan_chunks(&workload->plan, rank);
    double before, behind, fill = 0, drain = 0, moved = 0;

    if (!counts->count)
        return tail_seconds(bounding, rank);
    for (int chunk = 0; chunk < chunks; chunk++) {
        int stage = bounding->stages[chunk] = plan_virtual_stage(&workload->plan, rank, chunk);
        const struct stage_plan *plan = workload->stages[stage].plan;
        const int forward = chunk * WORK_KIND_COUNT + FORWARD;

        if (!flushed)                        /* another rank may have it too */
            stage_seconds(bounding, rank, stage, false, bounding->works[stage]);
        moved += plan ? (counts->before[forward] + counts->behind[forward]) * plan->offloaded : 0;
    }
    before = works_seconds(bounding, counts->before, chunks);
    behind = works_seconds(bounding, counts->behind, chunks);
    if (flushed) {
        fill = bounding->forwards[bounding->stages[counts->first]];
        drain = bounding->backwards[bounding->stages[counts->last]] + tail_seconds(bounding, first);
    }
    return fmax(fill + before + fmax(behind + tail_seconds(bounding, rank), drain),
                moved > 0 ? moved / scenario_host_bandwidth(workload->scenario, rank) : 0);
}

/* Whether works follow each other in rows of their own, and are not shortened. */
static bool is_known(const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct schedule *schedule = scenario_schedule(scenario);

    return !(scenario->simulation.jitter > 0) && !scenario->recipe.rooted && !schedule->asynchronous &&
           !plan_shares(&workload->plan) && !scenario->views &&
           !plan_opportunistic(schedule, &workload->plan);
}

double workload_bound(const struct workload *workload, const struct row_counts *counts, struct measure *measure)
{
    const struct scenario *scenario = workload->scenario;
    size_t stages = (size_t)plan_virtual_stages(&workload->plan), ranks = (size_t)workload->plan.stages, works = 0;
    struct arena arena = {0};
    struct bounding bounding = {.workload = workload, .measure = measure, .sums.place = -1, .arena = &arena};
    /* local steps follow each other without a flush, and the time is the time of one step */
    bool flushed = plan_directions(&workload->plan) == 1 && scenario->parallelism.local_steps == 1;
    double most = 0;

    if (!is_known(workload))
        return 0;
    if (!counts)
        counts = rows_count(&arena, workload->rows, &workload->plan);
    bounding.bytes = scenario_parameter_bytes(scenario);
    bounding.works = arena_alloc(&arena, stages * sizeof *bounding.works);
    bounding.forwards = ARENA_ARRAY(&arena, double, stages + 1);
    bounding.backwards = ARENA_ARRAY(&arena, double, stages + 1);
    bounding.members = ARENA_ARRAY(&arena, int, scenario_gpus(scenario) + group_members(&scenario->groups.of[GROUP_EXPERT]));
    bounding.marked = ARENA_ARRAY(&arena, bool, scenario->cluster.nodes);
    bounding.stages = ARENA_ARRAY(&arena, int, stages);
    find_beside(&bounding, counts);
    sum_stages(&bounding);
    for (size_t rank = 0; rank < ranks; rank++) {
        most = fmax(most, rank_bound(&bounding, &counts[rank], (int)rank, flushed));
        works = counts[rank].count > works ? counts[rank].count : works;
    }
    free(bounding.moves.items);
    arena_release(&arena);
    most *= 1 - lockstep_shortens(workload);
    return most * (1 - ROUNDING - (double)works * DBL_EPSILON);      /* engines add one work after another */
}
