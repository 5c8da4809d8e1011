/* Members of exchanges: the ranks that hold a stage, by group, and which groups share links.
 *
 * Reads process groups, the layout and the cluster.
 * Adds members, each once for a kind of group and a stage. */
#include "lower/exchange_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void lowering_use(struct lowering *lowering, const struct collective *used, int protocol)
{
    if (protocol != PROTOCOL_NONE)
        lowering->out->protocols |= 1u << protocol;
    for (size_t i = 0; collective_of(COLLECTIVE_ALL_REDUCE, i); i++)
        if (collective_of(COLLECTIVE_ALL_REDUCE, i) == used)
            lowering->out->all_reduces |= (uint64_t)1 << i;
}

void lowering_measured(struct lowering *lowering, enum group_kind kind, const struct measured *measured)
{
    if (measured->used->op == COLLECTIVE_ALL_REDUCE)
        lowering_use(lowering, measured->used, measured->protocol);
    alike_note(&lowering->out->alike, kind, measured);
}

/* A rank of a replica that holds a virtual stage, and its chunk; its group, and its place there. */
struct position { int group, place, chunk, replica, rank; };

static int by_place(const void *a, const void *b)
{
    const struct position *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* All members of a stage, by group, then in the replicas' order or, `by_gpu`, in the order of their GPUs, so that
 * members of a node are next to each other. */
static struct position *find_positions(const struct lowering *lowering, enum group_kind kind, int stage, int all,
                                       bool by_gpu)
{
    const struct scenario *scenario = lowering->scenario;
    int directions = plan_directions(lowering->plan), chunk_states = plan_holders(lowering->plan, stage);
    struct position *positions = xcalloc((size_t)all, sizeof *positions);

    for (int i = 0; i < all; i++) {
        struct position *position = &positions[i];

        position->replica = i / chunk_states;
        position->rank =
            plan_rank(lowering->plan, i % directions, stage, i % chunk_states / directions, &position->chunk);
        position->group = group_of(&scenario_groups(scenario, position->rank)->of[kind], position->replica);
        position->place = by_gpu ? scenario_gpu(scenario, 0, position->replica, position->rank) : i;
    }
    qsort(positions, (size_t)all, sizeof *positions, by_place);
    return positions;
}

const struct placed_group *members_group(const struct lowering *lowering, struct members *members, int flow,
                                         int first)
{
    struct placed_group *group = &members->placed[(flow * members->all + first) / members->size];

    if (!group->gpus)
        *group = placed_group_of(&lowering->scenario->cluster, members->gpus + flow * members->all + first,
                                 members->size);
    return group;
}

/* `all` members in groups of `size`. `positions`: the first `here` are in the program; `ring`: the same members, each
 * group in the order of its collectives. */
static struct members *members_make(struct lowering *lowering, struct members like, const struct position *positions,
                                    const struct position *ring)
{
    const struct scenario *scenario = lowering->scenario;
    struct arena *arena = &lowering->arena;
    struct members *members = ARENA_ARRAY(arena, struct members, 1);
    int all = like.all;

    *members = like;
    members->gpus = ARENA_ARRAY(arena, int, all * members->tensors);
    members->ranks = ARENA_ARRAY(arena, int, all);
    members->first = ARENA_ARRAY(arena, int, scenario_replicas(scenario));
    members->chunks = ARENA_ARRAY(arena, int, all);
    for (int i = 0; i < all; i++) {
        members->ranks[i] = program_rank(lowering, positions[i].replica, positions[i].rank);
        members->first[positions[i].replica] = i - i % like.size;
        members->chunks[i] = positions[i].chunk;
        for (int t = 0; t < members->tensors; t++)
            members->gpus[t * all + i] = scenario_gpu(
                scenario, layout_partners(t, members->tensors, scenario_tensor(scenario, ring[i].rank)).first,
                ring[i].replica, ring[i].rank);
    }
    members->placed = ARENA_ARRAY(arena, struct placed_group, all / like.size * members->flows);
    if (!members->channels)
        members->channels = scenario->parallelism.channels;
    if (!members->channels)
        members->channels = placed_group_channels(members_group(lowering, members, 0, 0));
    members->lanes = ARENA_ARRAY(arena, uint32_t, all * members->channels);
    members->after = ARENA_ARRAY(arena, struct event, all);
    members->done = ARENA_ARRAY(arena, struct event, all);
    members->ready = ARENA_ARRAY(arena, uint32_t, all);
    members->ends = ARENA_ARRAY(arena, uint32_t, all * members->flows);
    members->siblings = ARENA_ARRAY(arena, struct siblings, all / like.size);
    return members;
}

struct members *members_of(struct lowering *lowering, enum group_kind kind, int stage)
{
    const struct scenario *scenario = lowering->scenario;
    struct members **known = &lowering->sums.members[stage * GROUP_KIND_COUNT + (int)kind];

    if (!*known) {
        int rank = plan_rank(lowering->plan, 0, stage, 0, NULL), replicas = scenario_rank_replicas(scenario, rank);
        int holders = plan_holders(lowering->plan, stage), all = replicas * holders, here = lowering->out->alike.replicas;
        struct position *ring = find_positions(lowering, kind, stage, all, holders > 1), *positions = ring;

        if (lowering->out->alike.folded)       /* the first replica's members stand for all; nothing is lowered to messages */
            positions = find_positions(lowering, kind, stage, all, false);
        *known = members_make(lowering, (struct members){
            .kind = kind, .stage = stage, .all = all, .here = (here < replicas ? here : replicas) * holders,
            .size = all / (replicas / scenario_groups(scenario, rank)->of[kind].size),
            .tensors = scenario_tensor(scenario, rank), .flows = rank_flows(lowering, rank),
        }, positions, ring);
        if (positions != ring)
            free(positions);
        free(ring);
    }
    return *known;
}

int tied_pieces(const struct lowering *lowering)
{
    const struct process_group *group = &lowering->scenario->groups.of[GROUP_EMBEDDING];
    int first = scenario_tensor(lowering->scenario, group_index(group, 0, 0));
    int last = group->exchanges ? scenario_tensor(lowering->scenario, group_index(group, 0, 1)) : first;

    return first == last ? rank_flows(lowering, 0) : lcm(first, last, INT_MAX);
}

struct members *members_tied(struct lowering *lowering, int number)
{
    const struct scenario *scenario = lowering->scenario;
    const struct process_group *group = &scenario->groups.of[GROUP_EMBEDDING];
    int stages[] = {0, plan_virtual_stages(lowering->plan) - 1}, pieces = tied_pieces(lowering);
    struct position positions[2];

    if (lowering->sums.tied[number])
        return lowering->sums.tied[number];
    for (int i = 0; i < 2; i++) {
        int rank = group_index(group, 0, i);

        positions[i] = (struct position){.rank = rank, .replica = layout_partners(number, tied_sums(lowering),
                                                                                  scenario_rank_replicas(scenario, rank)).first};
        plan_rank(lowering->plan, 0, stages[i], 0, &positions[i].chunk);
    }
    return lowering->sums.tied[number] = members_make(lowering, (struct members){
        .kind = GROUP_EMBEDDING, .stage = -1, .all = 2, .here = 2, .size = 2, .channels = 1,
        .tensors = scenario->views ? pieces : scenario->parallelism.tensor, .flows = pieces,
    }, positions, positions);
}

/* Whether two groups share links: those of a node, or the uplinks of a leaf. */
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

/* The group that begins at member `first`, and the groups that share links with it; all flows of each. */
static const struct siblings *find_siblings(struct lowering *lowering, struct members *members, int first)
{
    const struct cluster *cluster = &lowering->scenario->cluster;
    struct siblings *siblings = &members->siblings[first / members->size];
    int size = members->size, flows = members->flows, *gpus, *kept;

    if (siblings->groups)
        return siblings;
    gpus = xcalloc((size_t)members->all * (size_t)flows, sizeof *gpus);
    for (int i = 0; i < members->all; i += size) {
        int other = i == 0 ? first : i == first ? 0 : i;     /* the group itself comes first */

        if (i && (lowering->out->alike.private_links || !share_links(cluster, members->gpus + first, members->gpus + other, size)))
            continue;
        for (int t = 0; t < flows; t++)
            memcpy(gpus + siblings->groups++ * size, members->gpus + t * members->all + other,
                   (size_t)size * sizeof *gpus);
    }
    kept = ARENA_ARRAY(&lowering->arena, int, siblings->groups * size);
    memcpy(kept, gpus, (size_t)(siblings->groups * size) * sizeof *gpus);
    free(gpus);
    siblings->group = placed_group_of(cluster, kept, size);
    return siblings;
}

struct measured members_measure(struct lowering *lowering, struct members *members, int first,
                                const struct emission *exchange)
{
    const struct siblings *siblings = find_siblings(lowering, members, first);
    struct collective_call call = {exchange->collective, &siblings->group, exchange->bytes, members->channels};
    struct measured measured;

    if (lowering->measure->failed ||         /* once is enough */
        measure_collective(lowering->measure, &call, siblings->groups, &measured, lowering->err))
        return (struct measured){.index = -1};
    lowering_measured(lowering, members->kind, &measured);
    return measured;
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
    const struct cluster *cluster = &member->lowering->scenario->cluster;
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
    const struct scenario *scenario = member->lowering->scenario;
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
