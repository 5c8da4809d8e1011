/* Exchanges among the ranks that hold a stage, and between neighbouring stages: the emitter, and sums of gradients. */
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
/* The replicas of another rank that have samples in common with a work, of those in the program. */
static inline struct partners partners_on(const struct lowering *lowering, const struct place *here, int rank)
{
    struct partners all = layout_partners(here->replica, scenario_rank_replicas(lowering->scenario, here->rank),
                                          scenario_rank_replicas(lowering->scenario, rank));

    if (all.last >= lowering->exchanges.alike.replicas)
        all.last = lowering->exchanges.alike.replicas - 1;
    return all;
}
/* Members that exchange together, again and again. */
struct party {
    struct members *members;
    struct event *after;     /* a member of the program: its next exchange waits for this; */
    struct event *done;      /* the end of its last exchange; empty if it had none */
    int exchanged;           /* exchanges lowered message by message so far */
    uint32_t *lanes, *ready, *ends;  /* scratch: [member * channels + channel], a member, [flow * all + member] */
};
/* Of the members_of a kind of group and stage, and of the members_tied of a sum. */
struct party *party_of(struct lowering *lowering, enum group_kind kind, int stage);
struct party *party_tied(struct lowering *lowering, int number);
/* The member's chunk. */
static inline struct chunk_state *member_chunk(const struct lowering *lowering, const struct party *party, int i)
{
    return chunk_state_of(lowering, party->members->ranks[i], party->members->chunks[i]);
}
/* A collective, its purpose and its size in B. */
struct emission { const struct collective *collective; enum op_what what; double bytes; };

/* lower_exchange.c */
/* Lowers an exchange of all groups of the party: each member begins after its `after` and sets its `done`. Adds nothing if
 * groups have one member, or if there are no bytes. */
void exchange_all(struct lowering *lowering, struct party *party, struct emission exchange);
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
void make_collective_lanes(struct lowering *lowering);
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow,
                         int channel);

/* lower_sync.c */
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

#endif
