/* Groups that exchange at the same time as a group over the same links, and so slow it down.
 *
 * Reads process groups, the layout and the cluster. */
#include "exchange/exchange_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "collective/placed_group.h"
#include "hardware/cluster.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"

/* Whether two groups share links: links of a node, or the uplinks of a leaf. */
static bool share_links(const struct cluster *cluster, const int *a, const int *b, int n)
{
    bool uplinks = !cluster_within_leaf(cluster, a, n) && !cluster_within_leaf(cluster, b, n);

    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            int one = cluster_node_of(cluster, a[i]), other = cluster_node_of(cluster, b[k]);

            if (one == other || (uplinks && cluster_leaves_meet(cluster, cluster_leaf_of(cluster, one),
                                                                cluster_leaf_of(cluster, other))))
                return true;
        }
    return false;
}

const struct siblings *find_siblings(struct exchanges *exchanges, struct members *members, int first)
{
    const struct cluster *cluster = &exchanges->scenario->cluster;
    struct siblings *siblings = &members->siblings[first / members->size];
    int size = members->size, flows = members->flows, *gpus, *kept;

    if (siblings->groups)
        return siblings;
    gpus = xcalloc((size_t)members->all * (size_t)flows, sizeof *gpus);
    for (int i = 0; i < members->all; i += size) {
        int other = i == 0 ? first : i == first ? 0 : i;     /* the group itself comes first */

        if (i && (exchanges->alike.private_links || !share_links(cluster, members->gpus + first, members->gpus + other, size)))
            continue;
        for (int t = 0; t < flows; t++)
            memcpy(gpus + siblings->groups++ * size, members->gpus + t * members->all + other,
                   (size_t)size * sizeof *gpus);
    }
    kept = ARENA_ARRAY(exchanges->arena, int, siblings->groups * size);
    memcpy(kept, gpus, (size_t)(siblings->groups * size) * sizeof *gpus);
    free(gpus);
    siblings->group = placed_group_of(cluster, kept, size);
    return siblings;
}

static bool on_marked_node(const struct cluster *cluster, const struct group_member *member, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (member->marked[cluster_node_of(cluster, gpus[i])])
            return true;
    return false;
}

/* Marks the nodes whose GPUs share links with the group, or clears these marks: the group's nodes; if it spans leaf
 * switches, and so uses their uplinks, all nodes below these; all nodes where the uplinks of others may be the same. */
static void mark_nodes(const struct group_member *member, const int *gpus, int n, bool mark)
{
    const struct cluster *cluster = &member->exchanges->scenario->cluster;
    int each = cluster_within_leaf(cluster, gpus, n) ? 1 :
               cluster_leaves_meet(cluster, 0, 1) ? cluster->nodes : cluster_leaf_nodes(cluster);

    for (int i = 0; i < n; i++) {
        int first = cluster_node_of(cluster, gpus[i]) / each * each;

        for (int node = first; node < first + each && node < cluster->nodes; node++)
            member->marked[node] = mark;
    }
}

int group_and_siblings(const struct group_member *member, const struct process_group *group, int t)
{
    const struct scenario *scenario = member->exchanges->scenario;
    bool replicas = group->axis == AXIS_REPLICA;
    int own = scenario_tensor(scenario, member->rank), tensors = replicas ? own / group->tensors : 1;
    int *gpus = member->gpus, size = group_members(group), groups = 1;

    group_gpus(scenario, group, t, member->replica, member->rank, gpus);
    if (cluster_within_node(&scenario->cluster, gpus, size))
        return 1;
    mark_nodes(member, gpus, size, true);        /* ranks of another degree are not at the same point of their works */
    for (int r = 0; r < (replicas ? group_count(scenario, group) : scenario_replicas(scenario)); r++)
        for (int q = 0; q < scenario->parallelism.pipeline; q++)
            for (int u = 0; u < tensors && scenario_tensor(scenario, q) == own && r < scenario_rank_replicas(scenario, q);
                 u++) {
                int *other = gpus + groups * size;

                group_gpus(scenario, group, u, replicas ? group_index(group, r, 0) : r, q, other);
                groups += other[0] != gpus[0] && on_marked_node(&scenario->cluster, member, other, size);
            }
    mark_nodes(member, gpus, size, false);
    return groups;
}
