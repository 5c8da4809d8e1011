/* Exchanges within works: all GPUs of a group exchange at the same point of the same work, so the time is part of the
 * work's duration. It is measured on the simulated cluster, while the groups that share nodes with this group exchange
 * too.
 *
 * Reads the bytes of each stage's exchanges, process groups and the cluster.
 * Adds the costs of each exchange on each chunk. */
#include "exchange/exchange_internal.h"
#include "stage/stage_exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "collective/collective.h"
#include "collective/measure.h"
#include "collective/placed_group.h"
#include "collective/token_dispatcher.h"
#include "hardware/cluster.h"
#include "kernels/contention.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* Moves of a program rank that were measured so far. */
struct prices { struct priced { struct move move; struct exchange_cost cost; } *items; size_t count, capacity; };

/* Prices the moves of a member by measuring each once. Of a group that exchanges together the first replica measures;
 * the others, whose moves come in the same order, copy its costs. */
struct measuring {
    struct pricing pricing;          /* first */
    struct group_member member;
    struct prices *of;               /* a program rank */
    bool *failed;
};

/* All GPUs of a ring send at the same time: a step of the ring's all-gather. */
static double step_seconds(const struct collective_call *call, double seconds)
{
    struct collective_choice choice = collective_choose(call);
    struct collective_call chosen = collective_chosen(*call, choice.used, choice.channels);
    double launch = collective_tuning(&chosen, choice.protocol).launch;

    return launch + (seconds - launch) / (call->group->n - 1);
}

/* Measures the slowest of the rank's groups; if the GPUs of its tensor group differ, each has a group. */
static int group_cost(const struct group_member *member, const struct move *move, struct exchange_cost *cost)
{
    struct exchanges *exchanges = member->exchanges;
    const struct cluster *cluster = &exchanges->scenario->cluster;
    const struct process_group *group = &scenario_groups(exchanges->scenario, member->rank)->of[move->kind];
    bool whole = move->kind == GROUP_TENSOR || group->tensors > 1;     /* it has all GPUs of a tensor group */
    int members = group_members(group);

    *cost = (struct exchange_cost){.vector = move->bytes};
    for (int t = 0; t < (whole ? 1 : rank_flows(exchanges, member->rank)); t++) {
        int groups = group_and_siblings(member, group, t);
        struct placed_group placed = placed_group_of(cluster, member->gpus, members);
        struct collective_call call = {move->collective, &placed, move->bytes, move->channels};
        struct contention_share share = contention_share(cluster, member->gpus, members,
                                                         exchanges->scenario->parallelism.sm_margin);
        struct measured measured;

        if (measure_collective(exchanges->measure, &call, groups, &measured, exchanges->err))
            return -1;
        exchanges_measured(exchanges, move->kind, &measured);
        cost->seconds = fmax(cost->seconds, move->step ? step_seconds(&call, measured.seconds) : measured.seconds);
        cost->bytes_sent = measured.bytes_sent;
        cost->index = measured.index;
        cost->first = t == 0 ? measured.first : cost->first;
        cost->share = share.all;
        cost->products = share.products;
        cost->spans = !cluster_within_node(cluster, member->gpus, members);
    }
    return 0;
}

int move_measure(struct exchanges *exchanges, int rank, const struct move *move, int *gpus, bool *marked,
                 struct exchange_cost *cost)
{
    return group_cost(&(struct group_member){.exchanges = exchanges, .rank = rank, .gpus = gpus, .marked = marked}, move, cost);
}

static struct exchange_cost price_measured(const struct pricing *pricing, const struct move *move)
{
    const struct measuring *measuring = (const struct measuring *)pricing;
    const struct group_member *member = &measuring->member;
    const struct process_group *group = &member->exchanges->scenario->groups.of[move->kind];
    int replica = member->replica, stages = member->exchanges->plan->stages;
    int first = group->axis == AXIS_REPLICA ? replica - replica % group->size : replica;
    struct prices *own = &measuring->of[replica * stages + member->rank];
    const struct prices *others = &measuring->of[first * stages + member->rank];
    struct exchange_cost cost = {0};
    size_t i = 0;

    while (i < own->count && !same_move(&own->items[i].move, move))
        i++;
    if (i < own->count)
        return own->items[i].cost;
    if (first != replica && i < others->count)
        cost = others->items[i].cost;
    else
        *measuring->failed |= group_cost(member, move, &cost) != 0;
    *GROW(own) = (struct priced){*move, cost};
    return cost;
}

/* Replicas of a lockstep group exchange in every layer, so each exchange takes as long as the slowest of them. */
static void keep_step(const struct exchanges *exchanges, struct prices *prices, int first, int rank)
{
    int stages = exchanges->plan->stages, end = first + exchanges->lockstep;

    for (size_t i = 0; i < prices[first * stages + rank].count; i++) {
        double slowest = 0;

        for (int r = first; r < end; r++)
            slowest = fmax(slowest, i < prices[r * stages + rank].count ? prices[r * stages + rank].items[i].cost.seconds : 0);
        for (int r = first; r < end; r++)
            if (i < prices[r * stages + rank].count)
                prices[r * stages + rank].items[i].cost.seconds = slowest;
    }
}

/* The costs of a rank's exchanges, beside the kernels of its own GPUs. */
static void cost_rank(struct measuring *measuring)
{
    const struct exchanges *exchanges = measuring->member.exchanges;
    const struct scenario *scenario = exchanges->scenario;
    int rank = measuring->member.rank, prank = measuring->member.replica * exchanges->plan->stages + rank;

    bool boundaries = scenario->parallelism.pipeline > 1 && (scenario->parallelism.scatter_gather || scenario->views);

    measuring->pricing.rank = rank;
    measuring->pricing.sheet = scenario->cluster.ideal ? NULL : cluster_sheet(&scenario->cluster,
                                                                              scenario_gpu(scenario, 0, measuring->member.replica, rank));
    for (int chunk = 0; chunk < plan_chunks(exchanges->plan, rank); chunk++) {
        const struct stage *stage = exchanges_stage(exchanges, prank, chunk);
        const struct gpu_class *class = exchanges_class(exchanges, prank);
        const struct hiding *hidings = class->times[stage - class->stages].hidings;

        for (int i = 0; i < stage->exchanges->count; i++)
            if (stage_exchanges(stage, i) || (i == EXCHANGE_GATHER && boundaries))
                costs_of(exchanges, prank, chunk)[i] =
                    exchange_cost(&measuring->pricing, &stage->exchanges->items[i], hidings);
    }
}

int within_measure(struct exchanges *exchanges)
{
    const struct scenario *scenario = exchanges->scenario;
    const struct plan *plan = exchanges->plan;
    int stages = plan->stages, ranks = exchanges->alike.replicas * stages, most = 1;
    bool failed = false, again = exchanges->lockstep > 1;
    struct measuring measuring = {
        .pricing = {.scenario = scenario, .price = price_measured}, .failed = &failed, .member.exchanges = exchanges,
    };

    for (enum sending i = 0; i < SENT_COUNT; i++)
        most = (int)fmax(most, group_members(&scenario->groups.of[sending_groups[i]]));
    exchanges->within = most > 1;
    exchanges->most = 1;
    for (int v = 0; v < plan_virtual_stages(plan); v++)
        exchanges->most = (int)fmax(exchanges->most, exchanges->workload->stages[v].exchanges->count);
    exchanges->costs = ARENA_ARRAY(exchanges->arena, struct exchange_cost, ranks * plan->chunks * exchanges->most);
    if (!exchanges->within)
        return 0;
    measuring.of = ARENA_ARRAY(exchanges->arena, struct prices, ranks);
    measuring.member.marked = xcalloc((size_t)scenario->cluster.nodes, sizeof(bool));
    measuring.member.gpus = xcalloc((size_t)scenario_gpus(scenario) + (size_t)most, sizeof(int));
    for (int pass = 0; pass < 1 + again && !failed; pass++) {
        for (int i = 0; i < ranks && !failed; i++) {
            measuring.member.replica = i / stages;
            measuring.member.rank = i % stages;
            if (scenario_has_rank(scenario, i))
                cost_rank(&measuring);
        }
        for (int first = 0; again && pass == 0 && !failed && first < exchanges->alike.replicas; first += exchanges->lockstep)
            for (int rank = 0; rank < stages; rank++)
                keep_step(exchanges, measuring.of, first, rank);
    }
    for (int i = 0; i < ranks; i++)
        free(measuring.of[i].items);
    free(measuring.member.gpus);
    free(measuring.member.marked);
    return failed ? -1 : 0;
}
