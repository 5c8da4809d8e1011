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
};

struct measure {
    enum engine engine;
    const struct cluster *cluster;
    struct measurements { struct measurement *items; size_t count, capacity; } done;
};
void measure_init(struct measure *measure, enum engine engine, const struct cluster *cluster);
void measure_release(struct measure *measure);

/* GPUs of `ngroups` groups of `n` that run the collective at the same time: gpus[group * n + member]. channels 0:
 * collective_channels decides. Groups of one take no time. */
int measure_collective(struct measure *measure, const struct collective *collective, const int *gpus, int ngroups,
                       int n, double bytes, int channels, struct measured *result, struct error *err);

#endif
