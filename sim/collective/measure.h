/* measure: how long a collective takes on the simulated cluster. Each distinct one (algorithm, placement of the group
 * and of its sibling groups, bytes as collective.h counts them) is replayed message by message once, alone, and
 * remembered. */
#ifndef DTSIM_MEASURE_H
#define DTSIM_MEASURE_H

#include "collective/collective.h"
#include "engine/replay.h"

struct measured {
    double seconds;          /* until the last member of the last group has its result */
    double bytes_sent;       /* by a member, mean over the first group */
    double messages;         /* of the first group */
    const struct collective *used;   /* what collective_choose made of the collective, for the first group */
    int channels;
    int protocol;            /* enum protocol; PROTOCOL_NONE where the cluster has no profile */
    int index, first;        /* in measure->done; the first GPU of the first group */
};

/* What a GPU sends another in a measured collective; `wire` is what links carry of it. */
struct pair { int src, dst; double payload, wire; };
struct pairs { struct pair *items; size_t count, capacity; };

/* A group that sends as the one measured did, which stood so many GPUs before it: `bytes` in all, by all its members.
 * `kind` is whose group that is, as the caller counts them. */
struct carried { int index, first, kind; double bytes; };

struct measure {
    enum engine engine;
    const struct cluster *cluster;
    struct measurements { struct measurement *items; size_t count, capacity; } done;
    struct carried_list { struct carried *items; size_t count, capacity; } carried;
};
void measure_init(struct measure *measure, enum engine engine, const struct cluster *cluster);
void measure_release(struct measure *measure);

/* GPUs of `ngroups` groups of `n` that run the collective at the same time: gpus[group * n + member]. channels 0:
 * collective_channels decides. Groups of one take no time. */
int measure_collective(struct measure *measure, const struct collective *collective, const int *gpus, int ngroups,
                       int n, double bytes, int channels, struct measured *result, struct error *err);
/* The group whose first GPU is `first` sends `bytes` (all members together) on the ways of that measured collective. */
void measure_carry(struct measure *measure, int index, int first, int kind, double bytes);
/* What the first group's members sent one another when it was measured, each pair once. `shift` is
 * what to add to its GPUs for those of the group that carries. */
const struct pairs *measure_pairs(const struct measure *measure, const struct carried *carried, int *shift);

#endif
