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

/* Measures the slowest of the rank's groups; if the GPUs of its tensor group differ, each has a group. */
static int group_cost(const struct group_member *member, enum group_kind kind, const struct collective *collective,
                      double bytes, int channels, struct exchange_cost *cost)
{
    struct exchanges *exchanges = member->exchanges;
    const struct cluster *cluster = &exchanges->scenario->cluster;
    const struct process_group *group = &scenario_groups(exchanges->scenario, member->rank)->of[kind];
    bool whole = kind == GROUP_TENSOR || group->tensors > 1;     /* it has all GPUs of a tensor group */

    *cost = (struct exchange_cost){0};
    for (int t = 0; t < (whole ? 1 : rank_flows(exchanges, member->rank)); t++) {
        int groups = group_and_siblings(member, group, t);
        struct placed_group placed = placed_group_of(cluster, member->gpus, group_members(group));
        struct collective_call call = {collective, &placed, bytes, channels};
        struct measured measured;

        if (measure_collective(exchanges->measure, &call, groups, &measured, exchanges->err))
            return -1;
        exchanges_measured(exchanges, kind, &measured);
        cost->seconds = fmax(cost->seconds, measured.seconds);
        cost->bytes_sent = measured.bytes_sent;
        cost->vector = bytes;
        cost->index = measured.index;
        cost->first = t == 0 ? measured.first : cost->first;
        cost->share = contention_share(cluster, member->gpus, placed.n);
    }
    return 0;
}

static int ring_group(const struct group_member *member, enum group_kind kind, enum collective_op op, double bytes,
                      struct exchange_cost *cost)
{
    return group_cost(member, kind, collective_usual(op, false), bytes,
                      member->exchanges->scenario->parallelism.channels, cost);
}

/* A reduce-scatter and an all-gather in an all-reduce's place. */
static int halves_cost(const struct group_member *member, enum group_kind kind, double bytes, struct exchange_cost *cost)
{
    struct exchange_cost gather;

    if (ring_group(member, kind, COLLECTIVE_ALL_GATHER, bytes, &gather) ||
        ring_group(member, kind, COLLECTIVE_REDUCE_SCATTER, bytes, cost))
        return -1;
    cost->seconds += gather.seconds;
    cost->bytes_sent += gather.bytes_sent;
    return 0;
}

/* The tensor group's exchange as part of column-parallel products, whose kernels hide some of it. */
static struct exchange_cost column_cost(const struct exchange_cost *both, double seconds)
{
    return (struct exchange_cost){
        .seconds = seconds, .bytes_sent = both->bytes_sent, .vector = both->vector, .index = both->index,
        .first = both->first,
    };
}

void column_costs(const struct parallelism *spec, const struct hiding *hiding, int n, struct exchange_cost *costs)
{
    const struct exchange_cost both = costs[EXCHANGE_TENSOR];
    double gather = spec->sequence_parallel ? costs[EXCHANGE_GATHER].seconds : 0;
    const struct column_exchange exchange = {gather, both.seconds - gather, both.share, n};

    for (int c = 0; c < COLUMN_COUNT; c++) {
        if (spec->overlap_tensor)
            costs[EXCHANGE_OVERLAPPED + c] =
                column_cost(&both, column_overlapped(&exchange, &hiding->columns[c]));
        if (spec->overlap_products)
            costs[EXCHANGE_PIECES + c] =
                column_cost(&both, column_pieces(&exchange, &hiding->columns[c]));
    }
}

/* What an update exchanges for a matrix: products are summed, or the momentum is gathered. */
static int matrix_cost(const struct group_member *member, double bytes, struct exchange_cost *cost)
{
    const struct scenario *scenario = member->exchanges->scenario;

    if (scenario->memory.precision.muon_tensor == MUON_TENSOR_DISTRIBUTED)
        return group_cost(member, GROUP_TENSOR, scenario_all_reduce(scenario), bytes,
                          scenario->parallelism.channels, cost);
    return ring_group(member, GROUP_TENSOR, COLLECTIVE_ALL_GATHER, bytes, cost);
}

/* Under sequence parallelism every all-reduce is a reduce-scatter and an all-gather (Korthikanti et al. 2022, section
 * 4.2.2). Boundaries that are sent in shares need all-gathers too. */
static int tensor_cost(const struct group_member *member, const struct stage *stage, struct exchange_cost *costs)
{
    const struct scenario *scenario = member->exchanges->scenario;
    const struct parallelism *spec = &scenario->parallelism;
    double bytes = stage->bytes[EXCHANGE_TENSOR];

    if (scenario_tensor(scenario, member->rank) == 1)
        return 0;
    if ((spec->sequence_parallel || ((spec->scatter_gather || scenario->views) && spec->pipeline > 1)) &&
        ring_group(member, GROUP_TENSOR, COLLECTIVE_ALL_GATHER, bytes, &costs[EXCHANGE_GATHER]))
        return -1;
    if (stage->bytes[EXCHANGE_QKV] > 0 && ring_group(member, GROUP_TENSOR, COLLECTIVE_ALL_GATHER, stage->bytes[EXCHANGE_QKV],
                                                     &costs[EXCHANGE_QKV]))
        return -1;
    if (stage->bytes[EXCHANGE_MATRICES] > 0 &&
        matrix_cost(member, stage->bytes[EXCHANGE_MATRICES], &costs[EXCHANGE_MATRICES]))
        return -1;
    if (!spec->sequence_parallel)
        return group_cost(member, GROUP_TENSOR, scenario_all_reduce(scenario), bytes, spec->channels,
                          &costs[EXCHANGE_TENSOR]);
    if (halves_cost(member, GROUP_TENSOR, bytes, &costs[EXCHANGE_TENSOR]))
        return -1;
    return stage->bytes[EXCHANGE_ROWS] == 0 ? 0 : halves_cost(member, GROUP_TENSOR, stage->bytes[EXCHANGE_ROWS],
                                                              &costs[EXCHANGE_ROWS]);
}

int tensor_costs(struct exchanges *exchanges, int rank, const struct stage *stage, int *gpus, struct exchange_cost *costs)
{
    return tensor_cost(&(struct group_member){.exchanges = exchanges, .rank = rank, .gpus = gpus}, stage, costs);
}

/* The cost of two dispatches, there and back, as an all-gather and a reduce-scatter: each counts as half of both. */
static int gathered_dispatch(const struct group_member *member, double bytes, struct exchange_cost *cost)
{
    if (halves_cost(member, exchange_groups[EXCHANGE_DISPATCH], bytes, cost))
        return -1;
    cost->seconds /= 2;
    cost->bytes_sent /= 2;
    return 0;
}

/* One channel is enough: every GPU sends and receives through a NIC of its own, or through its share of one. */
static int dispatch_cost(const struct group_member *member, const struct stage *stage, struct exchange_cost *costs)
{
    const struct scenario *scenario = member->exchanges->scenario;
    const struct cluster *cluster = &scenario->cluster;
    enum token_dispatcher dispatcher = (enum token_dispatcher)scenario->parallelism.dispatcher;
    enum group_kind kind = exchange_groups[EXCHANGE_DISPATCH];
    struct exchange_cost *cost = &costs[EXCHANGE_DISPATCH];
    double bytes = stage->bytes[EXCHANGE_DISPATCH];
    int multiprocessors, own;
    bool spans;

    if (bytes == 0)
        return 0;
    if (dispatcher == DISPATCHER_ALLGATHER)
        return gathered_dispatch(member, bytes, cost);
    if (group_cost(member, kind, collective_usual(COLLECTIVE_ALL_TO_ALL, false), bytes, 1, cost))
        return -1;
    spans = !cluster_within_node(cluster, member->gpus, group_members(&scenario->groups.of[kind]));
    multiprocessors = dispatcher_multiprocessors(dispatcher, spans);
    own = cluster_sheet(cluster, member->gpus[0])->multiprocessors;
    if (!cluster->ideal)
        cost->seconds = fmax(cost->seconds, dispatcher_floor(dispatcher, stage->delivered, spans));
    if (multiprocessors && own)
        cost->share = fmin(1, 1.0 * multiprocessors / own);
    return 0;
}

int dispatch_costs(struct exchanges *exchanges, int rank, const struct stage *stage, int *gpus, bool *marked,
                   struct exchange_cost *costs)
{
    return dispatch_cost(&(struct group_member){.exchanges = exchanges, .rank = rank, .gpus = gpus, .marked = marked}, stage,
                         costs);
}

/* The context group's keys and values are gathered before the attention, and once more before its backward. After the
 * backward their gradients are reduce-scattered (Grattafiori et al. 2024, The Llama 3 Herd of Models, section
 * 3.3.2). */
static int gathered_attention(const struct group_member *member, double bytes, struct exchange_cost *costs)
{
    double all = member->exchanges->scenario->parallelism.context * bytes;
    struct exchange_cost *forward = &costs[EXCHANGE_ATTENTION];
    struct exchange_cost *backward = &costs[EXCHANGE_ATTENTION_BACKWARD];

    if (ring_group(member, GROUP_CONTEXT, COLLECTIVE_ALL_GATHER, all, forward) ||
        ring_group(member, GROUP_CONTEXT, COLLECTIVE_REDUCE_SCATTER, all, backward))
        return -1;
    backward->seconds += forward->seconds;
    backward->bytes_sent += forward->bytes_sent;
    backward->vector += forward->vector;
    return 0;
}

/* Whether attention goes block by block. */
static bool has_steps(const struct parallelism *spec)
{
    return spec->context > scenario_ulysses(spec) &&
           (spec->context_attention != CONTEXT_ALL_GATHER || spec->context_blocks);
}

/* Every GPU of the ring sends to the next one at the same time: a step of a ring all-gather, launched alone. */
static int pass_cost(const struct group_member *member, double bytes, struct exchange_cost *ring)
{
    const struct collective *gather = collective_usual(COLLECTIVE_ALL_GATHER, false);
    enum group_kind kind = context_ring(&member->exchanges->scenario->parallelism);
    int n = member->exchanges->scenario->groups.of[kind].size;

    if (group_cost(member, kind, gather, n * bytes, 1, ring))
        return -1;
    struct placed_group group = placed_group_of(&member->exchanges->scenario->cluster, member->gpus, n);
    struct collective_call call = {gather, &group, n * bytes, 1};
    struct collective_choice choice = collective_choose(&call);
    struct collective_call chosen = collective_chosen(call, choice.used, choice.channels);
    double launch = collective_tuning(&chosen, choice.protocol).launch;
    ring->seconds = launch + (ring->seconds - launch) / (n - 1);
    return 0;
}

/* Heads for tokens: an all-to-all each for queries and results, which are as large, and one each for keys and values
 * (Jacobs et al. 2023, DeepSpeed Ulysses, section 3.2). Nothing overlaps with them: attention needs all of its inputs,
 * and the projection all of its results. */
static int heads_cost(const struct group_member *member, const struct stage *stage, struct exchange_cost *heads)
{
    const struct collective *exchange = collective_usual(COLLECTIVE_ALL_TO_ALL, false);
    struct exchange_cost keys;

    if (stage->bytes[EXCHANGE_HEADS] == 0)
        return 0;
    if (group_cost(member, GROUP_HEADS, exchange, stage->bytes[EXCHANGE_HEADS] / 2, 1, heads) ||
        group_cost(member, GROUP_HEADS, exchange, stage->bytes[EXCHANGE_ATTENTION] / 2, 1, &keys))
        return -1;
    heads->seconds = 2 * (heads->seconds + keys.seconds);
    heads->bytes_sent = 2 * (heads->bytes_sent + keys.bytes_sent);
    heads->vector = 2 * (heads->vector + keys.vector);
    return 0;
}

/* The exchanges of a context group's attention. */
static int attention_cost(const struct group_member *member, const struct stage *stage, struct exchange_cost *costs)
{
    const struct parallelism *spec = &member->exchanges->scenario->parallelism;
    double bytes = stage->bytes[EXCHANGE_ATTENTION];
    double next = context_next_bytes(member->exchanges->scenario, bytes);
    struct exchange_cost *one = &costs[EXCHANGE_PASS];

    if (spec->context == 1 || bytes == 0)
        return 0;
    if (heads_cost(member, stage, &costs[EXCHANGE_HEADS]))
        return -1;
    if (!has_steps(spec))
        return spec->context_attention == CONTEXT_ALL_GATHER ? gathered_attention(member, bytes, costs) : 0;
    if (spec->context_attention != CONTEXT_ALL_GATHER ? pass_cost(member, bytes, one) :
        ring_group(member, GROUP_CONTEXT, COLLECTIVE_ALL_GATHER, spec->context * bytes, one))
        return -1;
    return pass_cost(member, next, &costs[EXCHANGE_PASS_BOTH]);
}

/* Of attention block by block. */
static void step_costs(const struct exchanges *exchanges, const struct stage *stage, const struct hiding *hiding,
                       struct exchange_cost *costs)
{
    const struct parallelism *spec = &exchanges->scenario->parallelism;
    struct exchange_cost *forward = &costs[EXCHANGE_ATTENTION], *backward = &costs[EXCHANGE_ATTENTION_BACKWARD];
    struct exchange_cost one = costs[EXCHANGE_PASS];
    struct context_steps steps = context_steps_of(exchanges->scenario, hiding);
    double n = steps.n, bytes = stage->bytes[EXCHANGE_ATTENTION];
    double both = costs[EXCHANGE_PASS_BOTH].vector / n;      /* B that a GPU passes on: gradients alone, or both */

    steps.pass = one.seconds;
    steps.next = costs[EXCHANGE_PASS_BOTH].seconds;
    *forward = *backward = one;
    forward->seconds = steps_forward(&steps);
    forward->bytes_sent = (n - 1) * bytes;
    backward->seconds = steps_backward(&steps);
    backward->bytes_sent = spec->context_blocks ? (n - 1) * bytes + n * both : 2 * (n - 1) * bytes;
    backward->vector = spec->context_blocks ? one.vector + n * both : 2 * one.vector;
}

/* Replicas of a lockstep group exchange in every layer, so each exchange takes as long as the slowest of them. */
static void keep_step(const struct exchanges *exchanges, int first, int rank, int chunk)
{
    int stages = exchanges->plan->stages, end = first + exchanges->lockstep;

    for (int i = 0; i < MEASURED_COUNT; i++) {
        double slowest = 0;

        for (int r = first; r < end; r++)
            slowest = fmax(slowest, costs_of(exchanges, r * stages + rank, chunk)[i].seconds);
        for (int r = first; r < end; r++)
            costs_of(exchanges, r * stages + rank, chunk)[i].seconds = slowest;
    }
}

/* The first replica of the group that takes part in an exchange; the replica itself if it has its own. */
static int sharing_first(const struct group_member *member, int exchange)
{
    enum group_kind kind = exchange < EXCHANGE_COUNT    ? exchange_groups[exchange] :
                           exchange == EXCHANGE_GATHER  ? GROUP_TENSOR : GROUP_CONTEXT;
    const struct process_group *group = &member->exchanges->scenario->groups.of[kind];

    return group->axis == AXIS_REPLICA ? member->replica - member->replica % group->size : member->replica;
}

/* Measures the exchanges of a rank's chunk. The first rank of a group measures them; the others copy its costs. */
static int measure_chunk(const struct group_member *member, int chunk)
{
    const struct exchanges *exchanges = member->exchanges;
    const struct plan *plan = exchanges->plan;
    int prank = member->replica * plan->stages + member->rank;
    const struct stage *stage = &exchanges_class(exchanges, prank)->stages[plan_virtual_stage(plan, member->rank, chunk)];
    struct exchange_cost *costs = costs_of(exchanges, prank, chunk);

    if (tensor_cost(member, stage, costs) ||
        (sharing_first(member, EXCHANGE_DISPATCH) == member->replica && dispatch_cost(member, stage, costs)) ||
        (sharing_first(member, EXCHANGE_ATTENTION) == member->replica && attention_cost(member, stage, costs)))
        return -1;
    for (int i = 0; i < MEASURED_COUNT; i++)
        costs[i] = costs_of(exchanges, sharing_first(member, i) * plan->stages + member->rank, chunk)[i];
    return 0;
}

/* Of exchanges that overlap with kernels: the part that the kernels of the same layer do not hide, on the rank's own
 * GPUs. */
static void expose_chunk(const struct exchanges *exchanges, int prank, int chunk)
{
    const struct parallelism *spec = &exchanges->scenario->parallelism;
    const struct gpu_class *class = exchanges_class(exchanges, prank);
    int rank = prank % exchanges->plan->stages, stage = plan_virtual_stage(exchanges->plan, rank, chunk);
    int tensor = scenario_tensor(exchanges->scenario, rank);
    struct exchange_cost *all = costs_of(exchanges, prank, chunk);

    for (int h = exchanges->hidings - 1; h >= 0; h--) {
        const struct hiding *hiding = &class->times[stage].hidings[h];
        struct exchange_cost *costs = all + h * MEASURED_COUNT;

        memmove(costs, all, MEASURED_COUNT * sizeof *costs);     /* the first ones are exposed last */
        if (has_steps(spec))
            step_costs(exchanges, &class->stages[stage], hiding, costs);
        if (tensor > 1)
            column_costs(spec, hiding, tensor, costs);
    }
}

/* The most hidings of a stage of any class. */
static int most_hidings(const struct exchanges *exchanges)
{
    const struct workload *workload = exchanges->workload;
    int most = 1;

    for (size_t c = 0; c < workload->nclasses; c++)
        for (int s = 0; s < plan_virtual_stages(exchanges->plan); s++)
            most = (int)fmax(most, workload->classes[c].times[s].nhidings);
    return most;
}

int within_measure(struct exchanges *exchanges)
{
    const struct scenario *scenario = exchanges->scenario;
    const struct plan *plan = exchanges->plan;
    int stages = plan->stages, ranks = exchanges->alike.replicas * stages, rc = 0, most = 1, *gpus;
    bool *marked = xcalloc((size_t)scenario->cluster.nodes, sizeof *marked);

    for (enum exchange i = 0; i < EXCHANGE_COUNT; i++)
        most = (int)fmax(most, group_members(&scenario->groups.of[exchange_groups[i]]));
    exchanges->within = most > 1;
    exchanges->hidings = most_hidings(exchanges);
    exchanges->costs = arena_alloc(exchanges->arena, (size_t)(ranks * plan->chunks) * (size_t)exchanges->hidings *
                                                     sizeof *exchanges->costs);
    gpus = xcalloc((size_t)scenario_gpus(scenario) + (size_t)most, sizeof *gpus);
    for (int i = 0; most > 1 && i < ranks; i++) {
        struct group_member member = {exchanges, i / stages, i % stages, gpus, marked};

        for (int chunk = 0; !rc && scenario_has_rank(scenario, i) && chunk < plan_chunks(plan, member.rank); chunk++)
            rc = measure_chunk(&member, chunk);
    }
    for (int first = 0; !rc && exchanges->lockstep > 1 && first < exchanges->alike.replicas; first += exchanges->lockstep)
        for (int rank = 0; rank < stages; rank++)
            for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++)
                keep_step(exchanges, first, rank, chunk);
    for (int i = 0; most > 1 && !rc && i < ranks; i++)
        for (int chunk = 0; scenario_has_rank(scenario, i) && chunk < plan_chunks(plan, i % stages); chunk++)
            expose_chunk(exchanges, i, chunk);
    free(gpus);
    free(marked);
    return rc;
}
