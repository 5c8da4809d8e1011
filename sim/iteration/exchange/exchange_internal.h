/* Declarations that the files of exchange share. */
#ifndef DTSIM_EXCHANGE_INTERNAL_H
#define DTSIM_EXCHANGE_INTERNAL_H

#include "exchange/exchange.h"

/* siblings.c: groups that share links. */
/* A group and the groups that share links with it. Their GPUs follow in the group's array, group by group and flow by
 * flow. */
struct siblings { int groups; struct placed_group group; };
/* The group that begins at member `first`, and the groups that share links with it; all flows of each. */
const struct siblings *find_siblings(struct exchanges *exchanges, struct members *members, int first);

/* A rank, with scratch: room for the GPUs of all groups, and a mark for each node. */
struct group_member {
    struct exchanges *exchanges;
    int replica, rank, *gpus;
    bool *marked;
};
/* Lists the GPUs of the rank's group, and of the groups of its kind that share NICs or uplinks with it, if it spans
 * nodes: these are at the same point of their work. Returns the number of groups. */
int group_and_siblings(const struct group_member *member, const struct process_group *group, int t);

/* members.c: notes how a collective was measured, and how much of it was simulated. */
void exchanges_measured(struct exchanges *exchanges, enum group_kind kind, const struct measured *measured);
/* within.c: measures the exchanges within each rank's works. */
int within_measure(struct exchanges *exchanges);
/* sums.c */
void sums_build(struct exchanges *exchanges);
/* Whether all members of each sum and of each gather of weights end it together, and so measured durations give the times
 * of messages. */
bool sums_together(struct exchanges *exchanges);
/* How the sums of buckets slow down the kernels that overlap with them. */
void sums_contend(struct exchanges *exchanges);

#endif
