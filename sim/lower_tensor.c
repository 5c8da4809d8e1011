/* The tensor-parallel group of a rank: its GPUs act in lockstep, so its collectives are part of the work's duration,
 * and where its GPUs use links of their own one flow stands for all. */
#include "lower_internal.h"

#include <stdlib.h>

/* Every GPU has links of its own all the way to every other: flows of different GPUs never meet. */
bool private_links(const struct cluster *cluster)
{
    return cluster->ideal || cluster->nodes == 1 ||
           (cluster->network.topology.kind == TOPOLOGY_NONBLOCKING && cluster->network.nics == cluster->gpus_per_node);
}

static bool same_way(const struct cluster *cluster, int a, int b, int c, int d)
{
    struct route one = cluster_route(cluster, a, b), other = cluster_route(cluster, c, d);

    return one.count == other.count && one.latency == other.latency && one.bandwidth == other.bandwidth;
}

/* Whether all flows from rank p to rank q of replica d take the same way as flow 0 of replica 0. */
static bool flows_alike(const struct scenario *scenario, int d, int p, int q)
{
    for (int t = 0; p != q && t < scenario->strategy.tensor; t++)
        if (!same_way(&scenario->cluster, scenario_gpu(scenario, 0, 0, p), scenario_gpu(scenario, 0, 0, q),
                      scenario_gpu(scenario, t, d, p), scenario_gpu(scenario, t, d, q)))
            return false;
    return true;
}

/* Whether the boundary transfers of replica d take the same way, flow by flow, as those of flow 0 of replica 0. Rules
 * place the next stage on the next rank, or on the same; a table anywhere. */
static bool boundaries_alike(const struct scenario *scenario, int d)
{
    const struct plan *plan = &scenario->plan;

    if (plan->placement != PLACEMENT_TABLE) {
        for (int p = 0; p < plan->stages; p++)
            if (!flows_alike(scenario, d, p, (p + 1) % plan->stages))
                return false;
        return true;
    }
    for (int direction = 0; direction < plan_directions(plan); direction++)
        for (int stage = 0; stage + 1 < plan_global_stages(plan); stage++)
            for (int pair = 0; pair < plan_sharers(plan, stage) * plan_sharers(plan, stage + 1); pair++)
                if (!flows_alike(scenario, d,
                                 plan_rank(plan, direction, stage, pair / plan_sharers(plan, stage + 1), NULL),
                                 plan_rank(plan, direction, stage + 1, pair % plan_sharers(plan, stage + 1), NULL)))
                    return false;
    return true;
}

static int node_of(const struct scenario *scenario, int t, int d, int p)
{
    return cluster_node_of(&scenario->cluster, scenario_gpu(scenario, t, d, p));
}

/* Whether the tensor groups of a stage are spread over nodes like one another; its data groups then are so too. */
static bool groups_alike(const struct scenario *scenario)
{
    const struct strategy_spec *spec = &scenario->strategy;

    for (int p = 0; p < spec->pipeline && !scenario->cluster.ideal; p++)
        for (int d = 1; d < spec->data; d++)
            for (int t = 1; t < spec->tensor; t++)
                if (node_of(scenario, t, d, p) - node_of(scenario, 0, d, p) !=
                    node_of(scenario, t, 0, p) - node_of(scenario, 0, 0, p))
                    return false;
    return true;
}

/* Whether the groups of replicas that share states are spread over nodes like one another. */
static bool shards_alike(const struct scenario *scenario)
{
    const struct strategy_spec *spec = &scenario->strategy;

    for (int p = 0; p < spec->pipeline && scenario_hybrid(scenario) && !scenario->cluster.ideal; p++)
        for (int d = spec->shard; d < spec->data; d++)
            if (node_of(scenario, 0, d, p) - node_of(scenario, 0, d - d % spec->shard, p) !=
                node_of(scenario, 0, d % spec->shard, p) - node_of(scenario, 0, 0, p))
                return false;
    return true;
}

int tensor_flows(const struct scenario *scenario)
{
    if (scenario->strategy.tensor == 1)
        return 1;
    if (!groups_alike(scenario))
        return scenario->strategy.tensor;
    for (int d = 0; d < scenario->strategy.data; d++)
        if (!private_links(&scenario->cluster) || !boundaries_alike(scenario, d))
            return scenario->strategy.tensor;
    return 1;
}

static bool within_node(const struct cluster *cluster, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (cluster_node_of(cluster, gpus[i]) != cluster_node_of(cluster, gpus[0]))
            return false;
    return true;
}

bool replicas_alike(const struct scenario *scenario)
{
    if (!private_links(&scenario->cluster) || !groups_alike(scenario) || !shards_alike(scenario))
        return false;
    for (int d = 1; d < scenario->strategy.data; d++)
        if (!boundaries_alike(scenario, d))
            return false;
    return true;
}

static void group_gpus(const struct scenario *scenario, int d, int p, int *gpus)
{
    for (int t = 0; t < scenario->strategy.tensor; t++)
        gpus[t] = scenario_gpu(scenario, t, d, p);
}

static bool share_node(const struct cluster *cluster, const int *a, const int *b, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (cluster_node_of(cluster, a[i]) == cluster_node_of(cluster, b[k]))
                return true;
    return false;
}

/* The group of (d, p), and when it spans nodes the other tensor groups on these nodes, which share NICs with it and are
 * at the same point of their work: all their GPUs in a row. Returns how many groups. */
static int group_and_siblings(const struct scenario *scenario, int d, int p, int *gpus)
{
    const struct strategy_spec *spec = &scenario->strategy;
    int n = spec->tensor, groups = 1;

    group_gpus(scenario, d, p, gpus);
    if (within_node(&scenario->cluster, gpus, n))
        return 1;
    for (int i = 0; i < spec->data * spec->pipeline; i++) {
        int *other = gpus + groups * n;

        if (i == d * spec->pipeline + p)
            continue;
        group_gpus(scenario, i / spec->pipeline, i % spec->pipeline, other);
        groups += share_node(&scenario->cluster, gpus, other, n);
    }
    return groups;
}

static int tensor_cost(struct lowering *lowering, const struct collective *collective, int replica, int rank,
                       double bytes, int *gpus, struct tensor_cost *cost)
{
    const struct scenario *scenario = lowering->scenario;
    struct measured measured;

    if (measure_collective(lowering->measure, collective, gpus, group_and_siblings(scenario, replica, rank, gpus),
                           scenario->strategy.tensor, bytes, scenario->strategy.channels, &measured, lowering->err))
        return -1;
    if (collective->op == COLLECTIVE_ALL_REDUCE)
        lowering_use(lowering, measured.used, measured.protocol);
    cost->seconds += measured.seconds;
    cost->bytes_sent += measured.bytes_sent;
    return 0;
}

/* Under sequence parallelism every all-reduce is a reduce-scatter and an all-gather (Korthikanti et al. 2022, section
 * 4.2.2); all-gathers also put boundaries together that were sent in shares. */
int tensor_costs(struct lowering *lowering)
{
    const struct scenario *scenario = lowering->scenario;
    const struct strategy_spec *spec = &scenario->strategy;
    const struct collective *scatter = collective_find(COLLECTIVE_REDUCE_SCATTER, "ring");
    const struct collective *gather = collective_find(COLLECTIVE_ALL_GATHER, "ring");
    int chunks = lowering->plan->chunks, rc = 0;
    int *gpus = xcalloc((size_t)scenario_gpus(scenario) + (size_t)spec->tensor, sizeof *gpus);

    for (int i = 0; !rc && spec->tensor > 1 && i < lowering->program->ranks * chunks; i++) {
        int replica = i / chunks / lowering->plan->stages, rank = i / chunks % lowering->plan->stages;
        struct holder *holder = &lowering->holders[i];
        double bytes;

        if (i % chunks >= plan_chunks(lowering->plan, rank))
            continue;
        bytes = lowering->stages[plan_global_stage(lowering->plan, rank, i % chunks)].all_reduce_bytes;
        if (spec->sequence_parallel || (spec->scatter_gather && spec->pipeline > 1))
            rc = tensor_cost(lowering, gather, replica, rank, bytes, gpus, &holder->gather);
        if (!rc && !spec->sequence_parallel)
            rc = tensor_cost(lowering, scenario_all_reduce(scenario), replica, rank, bytes, gpus, &holder->all_reduce);
        else if (!rc)
            rc = tensor_cost(lowering, scatter, replica, rank, bytes, gpus, &holder->all_reduce);
        if (spec->sequence_parallel) {
            holder->all_reduce.seconds += holder->gather.seconds;
            holder->all_reduce.bytes_sent += holder->gather.bytes_sent;
        }
    }
    free(gpus);
    return rc;
}
