/* Exchanges among the ranks that hold a stage, and between neighbouring stages: their members, the emitter, sums of gradients,
 * and exchanges within works. */
#ifndef DTSIM_EXCHANGE_INTERNAL_H
#define DTSIM_EXCHANGE_INTERNAL_H

#include "lower/lower_internal.h"

/* What follows from the degrees of pipeline ranks, which may differ. */
/* Whether two pipeline ranks have unequal degrees. */
static inline bool ranks_differ(const struct lowering *lowering, int rank, int other)
{
    const struct rank_view *const *views = lowering->scenario->views;

    return views && views[rank] != views[other];
}
/* What the replicas of a stage's rank exchange. */
static inline const struct recipe *stage_recipe(const struct lowering *lowering, int stage)
{
    return scenario_recipe(lowering->scenario, plan_rank(lowering->plan, 0, stage, 0, NULL));
}
/* The replicas of another rank that have samples in common with a work, of those in the program. */
static inline struct partners partners_on(const struct lowering *lowering, const struct place *here, int rank)
{
    struct partners all = layout_partners(here->replica, scenario_rank_replicas(lowering->scenario, here->rank),
                                          scenario_rank_replicas(lowering->scenario, rank));

    if (all.last >= lowering->out->alike.replicas)
        all.last = lowering->out->alike.replicas - 1;
    return all;
}
/* Flows that are lowered of each tensor group of a pipeline rank. */
static inline int rank_flows(const struct lowering *lowering, int rank)
{
    return lowering->program->flows == 1 ? 1 : scenario_tensor(lowering->scenario, rank);
}

/* lower_members.c */
/* A collective, its purpose and its size in B. */
struct emission { const struct collective *collective; enum op_what what; double bytes; };
/* A group and the groups that share links with it. Their GPUs follow in the group's array, group by group and flow by
 * flow. */
struct siblings { int groups; struct placed_group group; };
/* All members that hold a virtual stage: in each replica one rank, or all sharers, in both directions. They are sorted
 * by group, and all groups are of one size: a process group of replicas, with all ranks of these that hold the
 * stage. */
struct members {
    enum group_kind kind;
    int stage, all, here;    /* members in the cluster, and in the program (fewer if one replica stands for all) */
    int size, channels;      /* members of each group; channels of its collectives */
    int tensors, flows;      /* GPUs of a member, and those whose transfers are operations of their own; of a sum of tied
                              * gradients on ranks of unequal tensor degrees the pieces that both copies consist of */
    int *gpus;               /* [tensor index * all + member] */
    int *ranks;              /* a member: its program rank */
    int *chunks;             /* a member: its chunk on that rank */
    int *first;              /* a replica: the first member of its group */
    struct event *after;     /* a member of the program: its next exchange waits for this; */
    struct event *done;      /* the end of its last exchange; empty if it had none */
    int exchanged;           /* exchanges lowered message by message so far */
    struct siblings *siblings;       /* a group; without GPUs until it is asked for */
    struct placed_group *placed;     /* [flow * groups + group]; the same */
    uint32_t *lanes, *ready, *ends;  /* scratch: [member * channels + channel], a member, [flow * all + member] */
};
/* Made once for each kind of group and stage. */
struct members *members_of(struct lowering *lowering, enum group_kind kind, int stage);
/* The two members that hold the copies of tied weights, of the sum of that number. */
struct members *members_tied(struct lowering *lowering, int number);
/* Sums of tied gradients: one in each replica; where the two ranks have unequal numbers of replicas, as many as the
 * larger, and a replica of the other rank takes part in several. */
static inline int tied_sums(const struct lowering *lowering)
{
    const struct process_group *group = &lowering->scenario->groups.of[GROUP_EMBEDDING];
    int first, last;

    if (!lowering->scenario->views || !group->exchanges)
        return lowering->out->alike.replicas;
    first = scenario_rank_replicas(lowering->scenario, group_index(group, 0, 0));
    last = scenario_rank_replicas(lowering->scenario, group_index(group, 0, 1));
    return first > last ? first : last;
}
/* Of these sums those that a replica of a rank with a copy takes part in. */
static inline struct partners tied_sums_of(const struct lowering *lowering, int rank, int replica)
{
    if (!lowering->scenario->views)
        return (struct partners){replica, replica};
    int replicas = scenario_rank_replicas(lowering->scenario, rank), sums = tied_sums(lowering);
    /* number * replicas / sums == replica */
    return (struct partners){(replica * sums + replicas - 1) / replicas, ((replica + 1) * sums - 1) / replicas};
}
/* The equal pieces in which the gradients of each copy are summed: one for each flow of a tensor group; of tensor groups
 * of t1 and t2 GPUs the least common multiple. */
int tied_pieces(const struct lowering *lowering);
/* One flow of the group that begins at member `first`. */
const struct placed_group *members_group(const struct lowering *lowering, struct members *members, int flow,
                                         int first);
/* The member's chunk. */
static inline struct chunk_state *member_chunk(const struct lowering *lowering, const struct members *members, int i)
{
    return chunk_state_of(lowering, members->ranks[i], members->chunks[i]);
}
/* How long an exchange of the group that begins at member `first` takes, while the groups that share links with it do
 * the same. No time if it cannot be measured: measure->failed. */
struct measured members_measure(struct lowering *lowering, struct members *members, int first,
                                const struct emission *exchange);

/* Notes for the result that this all-reduce was used. */
void lowering_use(struct lowering *lowering, const struct collective *used, int protocol);
/* The same of a measured collective of any operation, and how much of it was simulated. */
void lowering_measured(struct lowering *lowering, enum group_kind kind, const struct measured *measured);

/* A rank, with scratch: room for the GPUs of all groups, and a mark for each node. */
struct group_member {
    struct lowering *lowering;
    int replica, rank, *gpus;
    bool *marked;
};

/* Lists the GPUs of the rank's group, and of the groups of its kind that share NICs or uplinks with it, if it spans
 * nodes: these are at the same point of their work. Returns the number of groups. */
int group_and_siblings(const struct group_member *member, const struct process_group *group, int t);

/* lower_exchange.c */
/* Lowers an exchange of all groups of the members: each begins after its `after` and sets its `done`. Adds nothing if
 * groups have one member, or if there are no bytes. */
void exchange_all(struct lowering *lowering, struct members *members, struct emission exchange);
/* Lowers a replica's part of an exchange, as a measured duration on its stream that overlaps with its kernels. */
struct event exchange_alone(struct lowering *lowering, struct place here, enum group_kind kind,
                            struct emission exchange, struct event after);
/* Gathers a layer's weights; empty if there are none to gather. */
struct event gather_layer(struct lowering *lowering, struct place here, const struct slice *layer, struct event after);
/* Reduce-scatters a layer's gradients. If these are the iteration's last ones, it then sums each share over the
 * replicas that hold it. Returns the last sum, or `after` if there is none. */
struct event scatter_layer(struct lowering *lowering, struct place here, const struct slice *layer, bool last,
                           struct event after);
/* A work of a stage under ZeRO 3 that gathers tensor by tensor; `fused`: a layer is recomputed right before its
 * backward. Returns its last operation. */
uint32_t tensors_work(struct lowering *lowering, struct place here, struct work work, bool fused, bool completes,
                      struct new_op op);
/* Measures an exchange of a replica's group, and adds it to the contention of the kernels that overlap with it. Zero if
 * the group has one member. */
struct measured exchange_overlapped(struct lowering *lowering, enum group_kind kind, int stage, int replica,
                                    struct emission exchange, struct contention *contention);
void make_collective_lanes(struct lowering *lowering);
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow,
                         int channel);

/* lower_sync.c */
void buckets_build(struct lowering *lowering);
/* How the sums of buckets slow down the kernels beside them. */
void buckets_contend(struct lowering *lowering);
/* Whether all members of each sum and of each gather of weights end it together, and so measured durations give the times
 * of messages. */
bool exchanges_together(struct lowering *lowering);
/* Notes that a rank's gradients of the bucket are ready after operation `id`. */
void bucket_ready(struct lowering *lowering, struct place here, const struct bucket *bucket, uint32_t id);

/* Cuts a chunk's last backward where gradient buckets become ready, so that their all-reduce overlaps with the rest;
 * with `in_time` also where the stage before begins to recompute. */
uint32_t sliced_backward(struct lowering *lowering, const struct place *here, struct work work, bool in_time,
                         struct new_op op);
/* Cuts a backward where the stage before begins to recompute just in time. */
uint32_t timed_backward(struct lowering *lowering, const struct place *here, struct work work, struct new_op op);
/* Adds kernels that pack or unpack an exchange's tensors to a rank's compute lane. */
uint32_t lower_pack(struct lowering *lowering, int program_rank, int stage, double seconds, struct event after);
/* How many sums of a stage there are before so many updates. */
int sums_of(const struct lowering *lowering, int updates);
/* Whether sums wait until their members have come to their updates. */
bool sums_late(const struct lowering *lowering);
/* Lowers one of the sums of a stage's gradients, numbered from 0. */
void lower_sum(struct lowering *lowering, int stage, int number);
/* If a tied model's embedding and output layer are on different ranks: sums the gradients of the two copies (tied_sums). */
void lower_tie(struct lowering *lowering, int number);
/* Whether a pipeline rank holds one of the two copies of tied weights. */
bool tied_rank(const struct lowering *lowering, int rank);

/* lower_group.c: measures the exchanges within each rank's works. */
int exchange_costs(struct lowering *lowering);
/* Counts the bytes of all these exchanges on links, after all works have been lowered. */
void exchanges_carry(struct lowering *lowering);
/* The number of members, in a group of n, that a rank with `own` members stands for: all if replicas are folded. */
static inline int stood_for(const struct lowering *lowering, int own, int n)
{
    return lowering->out->alike.folded ? n : own;
}

#endif
