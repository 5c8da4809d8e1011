/* measure: the time of collectives on the simulated cluster. Each distinct collective (algorithm, placement of the
 * group and of its sibling groups, bytes as collective.h counts them) is replayed once, message by message and alone,
 * and its time is remembered: in a cache that many scenarios share, or else for this scenario. */
#ifndef DTSIM_MEASURE_H
#define DTSIM_MEASURE_H

#include "base/cache.h"
#include "collective/collective.h"
#include "engine/replay.h"

struct measured {
    double seconds;          /* until the last member of the last group has its result */
    double bytes_sent;       /* B that a member of the first group sends, on average */
    double messages;         /* messages of the first group */
    const struct collective *used;   /* the choice of collective_choose for the first group */
    int channels;
    int protocol;            /* enum protocol; PROTOCOL_NONE if the cluster has no profile */
    bool alike;              /* all members send as many bytes, and all have their results at the same time */
    struct extent of_nodes, of_channels; /* how many of all were replayed */
    int index, first;        /* index in measure->counted, -1: pairs are not counted; first GPU of the first group */
};

/* B that a GPU sends to another one in a measured collective; `wire`: with what the protocol adds. */
struct pair { int src, dst; double payload, wire; };
struct pairs { struct pair *items; size_t count, capacity; };

/* The pairs of the first group of a measured collective, each once; `first` is the group's first GPU. */
struct counted { struct pairs pairs; int first; };

/* A group, whose first GPU is `first`, that sends like measured collective `index`: `bytes` by all its members
 * together. `kind`: the kind of its process group, by the caller's numbers. */
struct carried { int index, first, kind; double bytes; };

struct measure {
    enum engine engine;
    const struct cluster *cluster;   /* of all calls */
    struct progress *progress;   /* how far a command is, or NULL; none after measure_init() */
    struct cache *cache;             /* of many scenarios; at first `own` */
    struct cache own;
    bool counts;                     /* pairs are counted; with the own cache only: their GPUs are of this scenario */
    bool failed;                     /* a collective could not be measured: for those who ask after many calls */
    struct cache_key where;          /* the cluster's key, and behind it the places of GPUs */
    size_t of_cluster;               /* bytes of the cluster's key */
    struct dags dags;
    struct last_places { int *gpus; size_t count; uint64_t number; } placed;      /* the last GPUs that were asked for */
    struct counted_list { struct counted *items; size_t count, capacity; } counted;
    struct carried_list { struct carried *items; size_t count, capacity; } carried;
};
/* Remembers what it measures until the release, and counts no pairs. */
void measure_init(struct measure *measure, enum engine engine, const struct cluster *cluster);
void measure_release(struct measure *measure);

/* Measures a collective that `ngroups` groups run at the same time: the call's group, and others of as many members,
 * whose GPUs follow in its array: gpus[group * n + member]. `channels` 0: placed_group_channels decides. Groups of one
 * member take no time. */
int measure_collective(struct measure *measure, const struct collective_call *call, int ngroups,
                       struct measured *result, struct error *err);
/* Counts `bytes`, of all members together, that the group with first GPU `first` sends like measured collective
 * `index`. */
void measure_carry(struct measure *measure, int index, int first, int kind, double bytes);
/* The pairs of GPUs of the first group of the measured collective, each pair once. Adding `shift` to their GPUs gives
 * the pairs of this group. */
const struct pairs *measure_pairs(const struct measure *measure, const struct carried *carried, int *shift);

#endif
