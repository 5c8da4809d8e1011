/* Exchanges among the ranks that hold a stage. */
#ifndef DTSIM_PARTY_H
#define DTSIM_PARTY_H

#include "lower/lower_internal.h"

/* Members that exchange together, several times in an iteration. */
struct party {
    struct members *members;
    struct event *after;     /* [member]: its next exchange waits for this */
    struct event *done;      /* [member]: the end of its last exchange; empty if it had none */
    int exchanged;           /* exchanges lowered message by message so far */
    uint32_t *lanes, *ready, *ends;  /* scratch: [member * lanes + lane], a member, [flow * all + member] */
};
/* The party of members_of a kind of group and stage, and the party of members_tied of a sum. Each is made once. */
struct party *party_of(struct lowering *lowering, enum group_kind kind, int stage);
struct party *party_tied(struct lowering *lowering, int number);
/* The member's chunk. */
static inline struct chunk_state *member_chunk(const struct lowering *lowering, const struct party *party, int i)
{
    return chunk_state_of(lowering, party->members->ranks[i], party->members->chunks[i]);
}
/* An exchange of a party: its collective, its purpose and its size in B, as collective.h counts it. */
struct emission { const struct collective *collective; enum op_what what; double bytes; };

/* lower_exchange.c */
/* Lowers an exchange of all groups of the party: each member begins after its `after` and sets its `done`. Adds nothing if
 * groups have one member, or if there are no bytes. */
void exchange_all(struct lowering *lowering, struct party *party, struct emission exchange);
/* Lowers a replica's part of an exchange after `after`: a measured duration on the replica's stream, which overlaps
 * with its kernels. Returns its end; empty if there are no bytes. */
struct event exchange_alone(struct lowering *lowering, const struct place *here, enum group_kind kind,
                            struct emission exchange, struct event after);
/* Makes lanes of collectives over replicas for each stream, program rank and flow; then returns one of them. */
void make_collective_lanes(struct lowering *lowering);
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow, int lane);

#endif
