/* Members of exchanges: the ranks that hold a stage, by group. Each is made once for a kind of group and a stage.
 *
 * Reads process groups, the layout and the cluster. */
#include "exchange/exchange_internal.h"

#include <limits.h>
#include <stdlib.h>

#include "alike/alike.h"
#include "base/base.h"
#include "collective/collective.h"
#include "collective/measure.h"
#include "collective/placed_group.h"
#include "kernels/contention.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

void exchanges_use(struct exchanges *exchanges, const struct collective *used, int protocol)
{
    if (protocol != PROTOCOL_NONE)
        exchanges->used.protocols |= 1u << protocol;
    for (size_t i = 0; collective_of(COLLECTIVE_ALL_REDUCE, i); i++)
        if (collective_of(COLLECTIVE_ALL_REDUCE, i) == used)
            exchanges->used.all_reduces |= (uint64_t)1 << i;
}

void exchanges_measured(struct exchanges *exchanges, enum group_kind kind, const struct measured *measured)
{
    if (measured->used->op == COLLECTIVE_ALL_REDUCE)
        exchanges_use(exchanges, measured->used, measured->protocol);
    alike_note(&exchanges->alike, kind, measured);
}

bool is_shared(const struct exchanges *exchanges, int stage)
{
    return scenario_rank_replicas(exchanges->scenario, plan_rank(exchanges->plan, 0, stage, 0, NULL)) *
                   plan_holders(exchanges->plan, stage) > 1 &&
           exchanges->workload->stages[stage].parameters > 0;
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
static struct position *find_positions(const struct exchanges *exchanges, enum group_kind kind, int stage, int all,
                                       bool by_gpu)
{
    const struct scenario *scenario = exchanges->scenario;
    int directions = plan_directions(exchanges->plan), chunk_states = plan_holders(exchanges->plan, stage);
    struct position *positions = xcalloc((size_t)all, sizeof *positions);

    for (int i = 0; i < all; i++) {
        struct position *position = &positions[i];

        position->replica = i / chunk_states;
        position->rank =
            plan_rank(exchanges->plan, i % directions, stage, i % chunk_states / directions, &position->chunk);
        position->group = group_of(&scenario_groups(scenario, position->rank)->of[kind], position->replica);
        position->place = by_gpu ? scenario_gpu(scenario, 0, position->replica, position->rank) : i;
    }
    array_sort(positions, (size_t)all, sizeof *positions, by_place);
    return positions;
}

const struct placed_group *members_group(const struct exchanges *exchanges, struct members *members, int flow,
                                         int first)
{
    struct placed_group *group = &members->placed[(flow * members->all + first) / members->size];

    if (!group->gpus)
        *group = placed_group_of(&exchanges->scenario->cluster, members->gpus + flow * members->all + first,
                                 members->size);
    return group;
}

/* `all` members in groups of `size`. `positions`: the first `here` are in the program; `ring`: the same members, each
 * group in the order of its collectives. */
static struct members *members_make(struct exchanges *exchanges, struct members like, const struct position *positions,
                                    const struct position *ring)
{
    const struct scenario *scenario = exchanges->scenario;
    struct arena *arena = exchanges->arena;
    struct members *members = ARENA_ARRAY(arena, struct members, 1);
    int all = like.all;

    *members = like;
    members->gpus = ARENA_ARRAY(arena, int, all * members->tensors);
    members->ranks = ARENA_ARRAY(arena, int, all);
    members->first = ARENA_ARRAY(arena, int, scenario_replicas(scenario));
    members->chunks = ARENA_ARRAY(arena, int, all);
    for (int i = 0; i < all; i++) {
        members->ranks[i] = positions[i].replica * exchanges->plan->stages + positions[i].rank;
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
        members->channels = placed_group_channels(members_group(exchanges, members, 0, 0));
    members->lanes = collective_lanes(&(struct collective_call){
        scenario_all_reduce(scenario), members_group(exchanges, members, 0, 0), 0, members->channels,
    });
    members->lanes = members->lanes < members->channels ? members->channels : members->lanes;
    members->siblings = ARENA_ARRAY(arena, struct siblings, all / like.size);
    return members;
}

struct members *members_of(struct exchanges *exchanges, enum group_kind kind, int stage)
{
    const struct scenario *scenario = exchanges->scenario;
    struct members **known = &exchanges->members[stage * GROUP_KIND_COUNT + (int)kind];

    if (!*known) {
        int rank = plan_rank(exchanges->plan, 0, stage, 0, NULL), replicas = scenario_rank_replicas(scenario, rank);
        int holders = plan_holders(exchanges->plan, stage), all = replicas * holders, here = exchanges->alike.replicas;
        struct position *ring = find_positions(exchanges, kind, stage, all, holders > 1), *positions = ring;

        if (exchanges->alike.folded)       /* the first replica's members stand for all; nothing is lowered to messages */
            positions = find_positions(exchanges, kind, stage, all, false);
        *known = members_make(exchanges, (struct members){
            .kind = kind, .stage = stage, .all = all, .here = (here < replicas ? here : replicas) * holders,
            .size = all / (replicas / scenario_groups(scenario, rank)->of[kind].size),
            .tensors = scenario_tensor(scenario, rank), .flows = rank_flows(exchanges, rank),
        }, positions, ring);
        if (positions != ring)
            free(positions);
        free(ring);
    }
    return *known;
}

int tied_sums(const struct exchanges *exchanges)
{
    const struct process_group *group = &exchanges->scenario->groups.of[GROUP_EMBEDDING];
    int first, last;

    if (!exchanges->scenario->views || !group->exchanges)
        return exchanges->alike.replicas;
    first = scenario_rank_replicas(exchanges->scenario, group_index(group, 0, 0));
    last = scenario_rank_replicas(exchanges->scenario, group_index(group, 0, 1));
    return first > last ? first : last;
}

/* The pipeline rank that holds one of the two copies of tied weights, on different ranks; -1: there is none. */
static int copy_rank(const struct exchanges *exchanges, int copy)
{
    const struct process_group *group = &exchanges->scenario->groups.of[GROUP_EMBEDDING];

    return group->exchanges ? group_index(group, 0, copy) : -1;
}

int tied_copy(const struct exchanges *exchanges, int rank, int chunk)
{
    int stages[] = {0, plan_virtual_stages(exchanges->plan) - 1}, own;

    for (int i = 0; i < 2; i++)
        if (copy_rank(exchanges, i) == rank && plan_rank(exchanges->plan, 0, stages[i], 0, &own) == rank && own == chunk)
            return i;
    return -1;
}

struct partners tied_sums_of(const struct exchanges *exchanges, int rank, int replica)
{
    if (rank != copy_rank(exchanges, 0) && rank != copy_rank(exchanges, 1))
        return (struct partners){0, -1};
    if (!exchanges->scenario->views)
        return (struct partners){replica, replica};
    int replicas = scenario_rank_replicas(exchanges->scenario, rank), sums = tied_sums(exchanges);
    /* number * replicas / sums == replica */
    return (struct partners){(replica * sums + replicas - 1) / replicas, ((replica + 1) * sums - 1) / replicas};
}

int tied_pieces(const struct exchanges *exchanges)
{
    const struct process_group *group = &exchanges->scenario->groups.of[GROUP_EMBEDDING];
    int first = scenario_tensor(exchanges->scenario, group_index(group, 0, 0));
    int last = group->exchanges ? scenario_tensor(exchanges->scenario, group_index(group, 0, 1)) : first;

    return first == last ? rank_flows(exchanges, 0) : lcm(first, last, INT_MAX);
}

struct members *members_tied(struct exchanges *exchanges, int number)
{
    const struct scenario *scenario = exchanges->scenario;
    const struct process_group *group = &scenario->groups.of[GROUP_EMBEDDING];
    int stages[] = {0, plan_virtual_stages(exchanges->plan) - 1}, pieces = tied_pieces(exchanges);
    struct position positions[2];

    if (exchanges->tied[number])
        return exchanges->tied[number];
    for (int i = 0; i < 2; i++) {
        int rank = group_index(group, 0, i);

        positions[i] = (struct position){.rank = rank, .replica = layout_partners(number, tied_sums(exchanges),
                                                                                  scenario_rank_replicas(scenario, rank)).first};
        plan_rank(exchanges->plan, 0, stages[i], 0, &positions[i].chunk);
    }
    return exchanges->tied[number] = members_make(exchanges, (struct members){
        .kind = GROUP_EMBEDDING, .stage = -1, .all = 2, .here = 2, .size = 2, .channels = 1,
        .tensors = scenario->views ? pieces : scenario_most_tensor(scenario), .flows = pieces,
    }, positions, positions);
}

struct measured members_measure(struct exchanges *exchanges, struct members *members, int first,
                                const struct collective *collective, double bytes)
{
    const struct siblings *siblings = find_siblings(exchanges, members, first);
    struct collective_call call = {collective, &siblings->group, bytes, members->channels};
    struct measured measured;

    if (exchanges->measure->failed ||        /* once is enough */
        measure_collective(exchanges->measure, &call, siblings->groups, &measured, exchanges->err))
        return (struct measured){.index = -1};
    exchanges_measured(exchanges, members->kind, &measured);
    return measured;
}

struct measured exchange_overlapped(struct exchanges *exchanges, enum group_kind kind, int stage, int replica,
                                    const struct collective *collective, double bytes, struct contention *contention)
{
    struct members *members = members_of(exchanges, kind, stage);
    struct measured measured = {0};
    int first = members->first[replica];

    if (members->size > 1)
        measured = members_measure(exchanges, members, first, collective, bytes);
    contention_add(contention, measured.seconds,
                   contention_share(&exchanges->scenario->cluster, members->gpus + first, members->size,
                                    exchanges->scenario->parallelism.sm_margin));
    return measured;
}
