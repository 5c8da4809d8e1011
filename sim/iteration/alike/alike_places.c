/* Places of GPUs: which links flows and exchanges share, and which groups are spread over nodes like each other. */
#include "alike/alike_internal.h"

#include "hardware/cluster.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

uint32_t links_shared(const struct cluster *cluster)
{
    bool shared = false;

    if (cluster->ideal || cluster->nodes == 1)
        return 0;
    for (int kind = 0; kind < cluster_kinds(cluster); kind++) {
        int node = cluster_kind_node(cluster, kind);

        shared |= cluster_node_nics(cluster, node) != cluster_node_gpus(cluster, node);
    }
    bool between = cluster_topology(cluster) != TOPOLOGY_NONBLOCKING || cluster_has_pairs(cluster);

    return (between ? WHY_TOPOLOGY : 0) | (shared ? WHY_NICS : 0);
}

uint32_t members_uneven(unsigned uneven)
{
    return (uneven & UNEVEN_WORKS ? WHY_JITTER : 0) | (uneven & UNEVEN_GPUS ? WHY_STRAGGLERS : 0) |
           (uneven & UNEVEN_SAMPLES ? WHY_SHARES : 0) | (uneven & UNEVEN_KINDS ? WHY_KINDS : 0) |
           (uneven & UNEVEN_LINKS ? WHY_SLOW_LINKS : 0);
}

static int node_of(const struct scenario *scenario, int t, int d, int p)
{
    return cluster_node_of(&scenario->cluster, scenario_gpu(scenario, t, d, p));
}

static bool same_kind(const struct cluster *cluster, int gpu, int other)
{
    return cluster_kind_of(cluster, cluster_node_of(cluster, gpu)) == cluster_kind_of(cluster, cluster_node_of(cluster, other));
}

/* Whether all routes are alike that are inside nodes, and all that are not: of nodes of one kind without slow links, on a network
 * whose links nobody shares. */
static bool routes_by_node(const struct cluster *cluster)
{
    return cluster_kinds(cluster) == 1 && !cluster->nic_shares && cluster_topology(cluster) == TOPOLOGY_NONBLOCKING &&
           !cluster_has_pairs(cluster);
}

static bool within_node(const struct cluster *cluster, int a, int b)
{
    return cluster_node_of(cluster, a) == cluster_node_of(cluster, b);
}

/* Why the route from a to b is not like that from c to d; 0: it is. The same links of another kind of node are not as
 * fast. */
static uint32_t ways_differ(const struct cluster *cluster, int a, int b, int c, int d)
{
    if (routes_by_node(cluster) && within_node(cluster, a, b) == within_node(cluster, c, d))
        return 0;

    struct route one = cluster_route(cluster, a, b), other = cluster_route(cluster, c, d);

    if (one.count == other.count && one.latency == other.latency && one.bandwidth == other.bandwidth)
        return 0;
    return one.count == other.count && !(same_kind(cluster, a, c) && same_kind(cluster, b, d)) ? WHY_KINDS : WHY_BOUNDARIES;
}

/* Why flows from rank p to rank q of replica d have routes unlike flow 0 of the replica `like`. */
static uint32_t flows_unlike(const struct scenario *scenario, int d, int p, int q, int like)
{
    uint32_t reasons = 0;

    for (int t = 0; p != q && t < scenario_most_tensor(scenario) && !reasons; t++)
        reasons = ways_differ(&scenario->cluster, scenario_gpu(scenario, 0, like, p), scenario_gpu(scenario, 0, like, q),
                              scenario_gpu(scenario, t, d, p), scenario_gpu(scenario, t, d, q));
    return reasons;
}

/* Why flows of replica d's boundaries have routes unlike flow 0 of the replica `like`. Every placement but a table puts the
 * next stage on the next rank or on the same rank. */
static uint32_t boundaries_unlike(const struct scenario *scenario, int d, int like)
{
    const struct plan *plan = &scenario->plan;
    uint32_t reasons = 0;

    if (plan->placement != PLACEMENT_TABLE) {
        for (int p = 0; p < plan->stages && !reasons; p++)
            reasons = flows_unlike(scenario, d, p, (p + 1) % plan->stages, like);
        return reasons;
    }
    for (int direction = 0; direction < plan_directions(plan); direction++)
        for (int stage = 0; stage + 1 < plan_virtual_stages(plan); stage++)
            for (int pair = 0; pair < plan_sharers(plan, stage) * plan_sharers(plan, stage + 1) && !reasons; pair++)
                reasons = flows_unlike(scenario, d,
                                       plan_rank(plan, direction, stage, pair / plan_sharers(plan, stage + 1), NULL),
                                       plan_rank(plan, direction, stage + 1, pair % plan_sharers(plan, stage + 1), NULL),
                                       like);
    return reasons;
}

/* Whether all tensor groups of a stage are spread over nodes alike; then its data groups are spread alike too. */
static bool groups_alike(const struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;

    for (int p = 0; p < spec->pipeline && !scenario->cluster.ideal; p++)
        for (int d = 1; d < scenario_rank_replicas(scenario, p); d++)
            for (int t = 1; t < scenario_tensor(scenario, p); t++)
                if (node_of(scenario, t, d, p) - node_of(scenario, 0, d, p) !=
                    node_of(scenario, t, 0, p) - node_of(scenario, 0, 0, p))
                    return false;
    return true;
}

/* Whether any tensor group is on nodes of several kinds. */
static bool tensor_groups_mixed(const struct scenario *scenario)
{
    for (int p = 0; p < scenario->parallelism.pipeline; p++)
        for (int d = 0; d < scenario_rank_replicas(scenario, p); d++)
            for (int t = 1; t < scenario_tensor(scenario, p); t++)
                if (scenario_seat(scenario, t, d, p).kind != scenario_seat(scenario, 0, d, p).kind)
                    return true;
    return false;
}

uint32_t flows_differ(const struct scenario *scenario, unsigned uneven)
{
    uint32_t reasons = links_shared(&scenario->cluster) | members_uneven(uneven & UNEVEN_LINKS);

    if (scenario->views)
        return scenario_most_tensor(scenario) == 1 ? 0 : reasons | WHY_DEGREES;
    if (scenario_most_tensor(scenario) == 1)
        return 0;
    if (uneven & UNEVEN_KINDS && tensor_groups_mixed(scenario))
        reasons |= WHY_KINDS;
    for (int d = 0; d < scenario_replicas(scenario) && !reasons; d++)
        reasons |= boundaries_unlike(scenario, d, d);
    return reasons | (groups_alike(scenario) ? 0 : WHY_TENSOR_NODES);
}

/* The size of the groups of a kind if their members are neighbouring replicas, but not all replicas; else 1. */
static int neighbours(const struct scenario *scenario, enum group_kind kind)
{
    const struct process_group *group = &scenario->groups.of[kind];
    bool sums = kind == GROUP_DATA || kind == GROUP_SAME_EXPERTS, all = group->size == scenario_replicas(scenario);

    return group->axis == AXIS_REPLICA && group->stride == 1 && !(sums && all) ? group->size : 1;
}

/* Whether all groups of n consecutive replicas are spread over nodes alike. */
static bool neighbours_alike(const struct scenario *scenario, int n)
{
    for (int p = 0; n > 1 && p < scenario->parallelism.pipeline && !scenario->cluster.ideal; p++)
        for (int r = n; r < scenario_rank_replicas(scenario, p); r++)
            if (node_of(scenario, 0, r, p) - node_of(scenario, 0, r - r % n, p) !=
                node_of(scenario, 0, r % n, p) - node_of(scenario, 0, 0, p))
                return false;
    return true;
}

/* Whether each group of n consecutive replicas is within a node, with the tensor groups of its members. */
static bool within_nodes(const struct scenario *scenario, int n)
{
    for (int r = 0; r < scenario_rank_replicas(scenario, 0); r++)
        for (int t = 0; t < scenario_tensor(scenario, 0); t++)
            if (node_of(scenario, t, r, 0) != node_of(scenario, 0, r - r % n, 0))
                return false;
    return true;
}

/* Replicas of one stage exchange on NICs only the sums and gathers of all replicas, so that every replica waits equally
 * long, wherever it is in its node, if tensor groups and the groups of neighbouring replicas are within nodes, where
 * every GPU has a port of its own: all replicas are ready at once. All other groups reach over all nodes; they begin
 * together and are measured together. */
uint32_t sums_meet_others(const struct scenario *scenario)
{
    uint32_t reasons = scenario->parallelism.pipeline > 1 ? WHY_PIPELINE : 0;

    if (!within_nodes(scenario, 1))
        return reasons | WHY_SPREAD;
    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++)
        if (neighbours(scenario, kind) > 1 && !within_nodes(scenario, neighbours(scenario, kind)))
            return reasons | WHY_SPREAD;
    return reasons;
}

/* A collective begins on all ranks at once, after the one before it, but for two cases. PARAMETERS_APART are summed in
 * groups of their own, after all others: a group that is done early begins early. Hybrid sharding has two streams: a
 * bucket's shares are summed across the copies of the states while the next bucket is scattered within each copy. These
 * never meet if a node has one copy, because the former then uses NICs only and the latter ports only; nor if there is
 * no next bucket. */
uint32_t sums_overlap(const struct scenario *scenario)
{
    const struct process_groups *groups = &scenario->groups;
    uint32_t reasons = groups->of[groups->sums[PARAMETERS_APART]].exchanges ? WHY_EXPERTS : 0;
    int shard = groups->of[GROUP_SHARD].size;

    if (!scenario->recipe.gradients.across || scenario->recipe.gradients.unit == SUM_STAGES)
        return reasons;
    for (int r = shard; r < scenario_rank_replicas(scenario, 0); r += shard)
        if (node_of(scenario, 0, r, 0) <= node_of(scenario, 0, r - shard, 0))
            return reasons | WHY_COPIES;
    return reasons;
}

uint32_t replicas_differ(const struct scenario *scenario)
{
    uint32_t reasons = links_shared(&scenario->cluster);

    if (scenario->views)
        return reasons | WHY_DEGREES;
    if (reasons) {
        uint32_t others = sums_meet_others(scenario);

        return others ? reasons | others : 0;
    }
    reasons = groups_alike(scenario) ? 0 : WHY_TENSOR_NODES;
    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT && !(reasons & WHY_NEIGHBOURS); kind++)
        reasons |= neighbours_alike(scenario, neighbours(scenario, kind)) ? 0 : WHY_NEIGHBOURS;
    for (int d = 1; d < scenario_replicas(scenario) && !(reasons & WHY_BOUNDARIES); d++)
        reasons |= boundaries_unlike(scenario, d, 0);
    return reasons;
}
