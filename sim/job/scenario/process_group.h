/* process_group: who communicates with whom. One table, made once from the degrees. All code reads it that exchanges
 * something, counts communicators or shows groups. */
#ifndef DTSIM_PROCESS_GROUP_H
#define DTSIM_PROCESS_GROUP_H

#include "base/base.h"

/* A GPU's place is its tensor index, its replica and its pipeline rank. The members of a group differ in one of these
 * alone, where they stand as far apart as the table says. Where the GPUs of a tensor group hold different experts
 * (`expert_tensor: 1`), an expert group has tensor groups as its members, all GPUs of each:
 *
 *   kind          members                                         size                apart    exchange
 *   tensor        all tensor indices                              tensor              1        inside works
 *   pipeline      all pipeline ranks                              pipeline            1        boundaries
 *   context       replicas that share samples                     context             1        keys and values
 *   heads         neighbours of a hybrid context group            ulysses             1        heads for tokens
 *   ring          members of a hybrid context group with the      context / ulysses   ulysses  keys and values
 *                 same heads
 *   expert        neighbouring replicas that divide the experts   expert, or          1        tokens
 *                                                                 expert / tensor
 *   same-experts  replicas that hold the same experts             replicas / those    those    gradients of experts
 *   data          all replicas                                    replicas            1        all other gradients
 *   shard         neighbouring replicas that share one copy of    shard               1        those, in the place of
 *                 what ZeRO divides, where not all do                                          data groups
 *   same-share    replicas that hold the same share of it         replicas / shard    shard    sums of that share
 *   embedding     the first and the last stage of a tied model    2                            gradients of the
 *                                                                                              tied weights */
enum group_kind {
    GROUP_TENSOR, GROUP_PIPELINE, GROUP_CONTEXT, GROUP_HEADS, GROUP_RING, GROUP_EXPERT, GROUP_SAME_EXPERTS, GROUP_DATA,
    GROUP_SHARD, GROUP_SAME_SHARE, GROUP_EMBEDDING, GROUP_KIND_COUNT
};
enum group_axis { AXIS_TENSOR, AXIS_REPLICA, AXIS_PIPELINE, AXIS_COUNT };

struct process_group {
    const char *name;
    enum group_axis axis;    /* the index in which members differ */
    int size;                /* indices of its members on the axis; 1 where the scenario has no such groups */
    int tensors;             /* GPUs of each of these replicas' tensor groups that are members: 1 or all */
    int stride;              /* how far members stand apart on the axis */
    int first;               /* the first member of the first group there */
    bool exchanges;          /* the scenario has such groups, and they exchange something */
};

/* Classes of parameters, by the group that sums their gradients and divides their states. Experts are a class of their
 * own where replicas divide them. */
enum parameter_class { PARAMETERS_COMMON, PARAMETERS_APART, PARAMETER_CLASS_COUNT };

/* An amount of parameters, or of their bytes, by class. */
struct by_class { double of[PARAMETER_CLASS_COUNT]; };

struct process_groups {
    struct process_group of[GROUP_KIND_COUNT];
    enum group_kind holds[PARAMETER_CLASS_COUNT];    /* the replicas that hold the same parameters of a class */
    enum group_kind sums[PARAMETER_CLASS_COUNT];     /* the groups that sum a class's gradients */
};

struct scenario;
/* The degrees, ZeRO's share and the plan are resolved. */
void process_groups_make(struct scenario *scenario);

/* Whether the all-reduce runs in all groups that may ask for it. After rank_views_make. */
struct error;
int process_groups_check(const struct scenario *scenario, struct error *err);

/* In which respects members of groups may differ although their places are alike; a set of bits. Where they differ, no
 * member may stand for others in that respect: neither a replica for all, nor a flow for a tensor group. */
enum uneven {
    UNEVEN_WORKS = 1,        /* every work takes another time (jitter) */
    UNEVEN_GPUS = 2,         /* a GPU of the scenario computes slower */
    UNEVEN_LINKS = 4,        /* a NIC of such a GPU has less bandwidth and the scenario has several nodes */
    UNEVEN_SAMPLES = 8,      /* replicas have micro-batches of unequal size */
    UNEVEN_KINDS = 16,       /* GPUs that do the same for the same stage are on nodes of several kinds, which differ in
                              * how fast they compute and in their links */
};
/* The bits of the scenario; made once, as scenario->uneven. */
unsigned scenario_uneven(const struct scenario *scenario);
/* The factor on the time of computations of a pipeline rank of a replica: of its slowest GPU. */
double scenario_slower(const struct scenario *scenario, int replica, int p);

/* Which of the groups on its axis the index is in; a replica's, say. Not of embedding groups. */
static inline int group_of(const struct process_group *group, int index)
{
    return index / (group->size * group->stride) * group->stride + index % group->stride;
}
/* The index of a group's member. */
static inline int group_index(const struct process_group *group, int number, int member)
{
    return group->first + number / group->stride * group->stride * group->size + number % group->stride +
           member * group->stride;
}
/* The number of GPUs in a group. */
static inline int group_members(const struct process_group *group)
{
    return group->size * group->tensors;
}
/* The GPUs of the group that the GPU at (t, replica, p) is in, group_members of them. */
void group_gpus(const struct scenario *scenario, const struct process_group *group, int t, int replica, int p,
                int *gpus);
/* How many nodes the members of the kind's first group are on, which stand in the order of their GPUs: the first group of
 * the first rank, or, where ranks differ in their degrees, of the rank with the most. */
int group_nodes(const struct scenario *scenario, enum group_kind kind);
/* How many groups of the kind there are on its axis. */
int group_count(const struct scenario *scenario, const struct process_group *group);

#endif
