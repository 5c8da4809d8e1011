/* exchange: what the GPUs of a workload exchange, and what that costs: who the members are, how many bytes each sends, by
 * which collective, and how long it takes while nothing but groups alike exchanges. No operation is written here. */
#ifndef DTSIM_EXCHANGE_H
#define DTSIM_EXCHANGE_H

#include "schedule/schedule.h"
#include "stage/exchange_cost.h"
#include "workload/buckets.h"

/* The exchange that an operation is part of: of a kind of process group, a collective's operation, or
 * COLLECTIVE_OP_COUNT: transfers from one rank to another. */
static inline uint8_t exchange_number(enum group_kind kind, enum collective_op op)
{
    return (uint8_t)(1 + (int)kind * (COLLECTIVE_OP_COUNT + 1) + (int)op);
}
static inline enum group_kind exchange_group(uint8_t exchange)
{
    return (enum group_kind)((exchange - 1) / (COLLECTIVE_OP_COUNT + 1));
}
static inline enum collective_op exchange_op(uint8_t exchange)
{
    return (enum collective_op)((exchange - 1) % (COLLECTIVE_OP_COUNT + 1));
}

/* Of the collectives so far: how all-reduces ran. */
struct exchanges_used {
    uint32_t protocols;              /* bit i: with protocol i of the communication profile */
    uint64_t all_reduces;            /* bit i: as collective_of(COLLECTIVE_ALL_REDUCE, i) */
};

/* All exchanges of a workload. */
struct exchanges {
    const struct workload *workload;
    const struct scenario *scenario; /* the workload's, */
    const struct plan *plan;         /* and its plan */
    bool whole;                      /* of an iteration; else of the works of one ordinary replica alone */
    struct measure *measure;
    struct error *err;               /* why one of them could not be measured */
    struct arena *arena;             /* holds everything below but for items of buckets */
    struct alike alike;              /* which members stand for others; it notes how collectives were measured */
    struct exchanges_used used;
    int lockstep;                    /* size of a lockstep group: consecutive replicas that exchange in their works */
    bool within;                     /* works have exchanges within */
    int most;                        /* the length of the longest list of a stage's exchanges: */
    struct exchange_cost *costs;     /* has so many places for each program rank and chunk */
    struct buckets *buckets;         /* a virtual stage; empty where no gradients are summed by buckets */
    struct members **members;        /* a virtual stage and kind of group: members_of */
    struct members **tied;           /* a sum of tied gradients: members_tied */
};

/* Finds what replicas sum, and which members stand for others. Where members of a sum end it at different times, but
 * durations would have to be exact, messages take their place. measure->failed: a collective could not be measured. The
 * arena outlives the exchanges; exchanges_release in any case. */
void exchanges_find(struct exchanges *exchanges, const struct workload *workload, bool whole, struct measure *measure,
                    struct arena *arena, struct error *err);
/* Then measures the exchanges within works, and how sums slow down the kernels that overlap with them. */
int exchanges_measure(struct exchanges *exchanges);
void exchanges_release(struct exchanges *exchanges);
/* Notes that this all-reduce was used. */
void exchanges_use(struct exchanges *exchanges, const struct collective *used, int protocol);
/* Counts on links the bytes that each GPU of a program rank sent for a chunk in each exchange within works. */
void exchanges_carry(const struct exchanges *exchanges, int program_rank, int chunk, const double *sent);
/* What replicas exchange, and what works exchange within, for people. */
void exchanges_print(const struct exchanges *exchanges, FILE *out);

/* The class of the GPUs of a program rank. */
static inline const struct gpu_class *exchanges_class(const struct exchanges *exchanges, int program_rank)
{
    return exchanges->whole ? workload_class(exchanges->workload, program_rank / exchanges->plan->stages,
                                             program_rank % exchanges->plan->stages) : exchanges->workload->classes;
}
/* The stage of a program rank's chunk. */
static inline const struct stage *exchanges_stage(const struct exchanges *exchanges, int program_rank, int chunk)
{
    int stage = plan_virtual_stage(exchanges->plan, program_rank % exchanges->plan->stages, chunk);

    return &exchanges_class(exchanges, program_rank)->stages[stage];
}
/* What its exchanges cost, in the order of stage.exchanges. */
static inline struct exchange_cost *costs_of(const struct exchanges *exchanges, int program_rank, int chunk)
{
    return &exchanges->costs[(size_t)(program_rank * exchanges->plan->chunks + chunk) * (size_t)exchanges->most];
}
/* Whether two pipeline ranks have unequal degrees. */
static inline bool ranks_differ(const struct exchanges *exchanges, int rank, int other)
{
    const struct rank_view *const *views = exchanges->scenario->views;

    return views && views[rank] != views[other];
}
/* The simulated replicas of another rank that share samples with a replica of a rank. */
static inline struct partners partners_on(const struct exchanges *exchanges, int replica, int rank, int other)
{
    struct partners all = layout_partners(replica, scenario_rank_replicas(exchanges->scenario, rank),
                                          scenario_rank_replicas(exchanges->scenario, other));

    if (all.last >= exchanges->alike.replicas)
        all.last = exchanges->alike.replicas - 1;
    return all;
}
/* Flows that are simulated of each tensor group of a pipeline rank. */
static inline int rank_flows(const struct exchanges *exchanges, int rank)
{
    return exchanges->alike.flows == 1 ? 1 : scenario_tensor(exchanges->scenario, rank);
}
/* The number of members, in a group of n, that a rank with `own` members stands for: all if replicas are folded. */
static inline int stands_for(const struct exchanges *exchanges, int own, int n)
{
    return exchanges->alike.folded ? n : own;
}
/* What the replicas of a stage's rank exchange. */
static inline const struct recipe *stage_recipe(const struct exchanges *exchanges, int stage)
{
    return scenario_recipe(exchanges->scenario, plan_rank(exchanges->plan, 0, stage, 0, NULL));
}
/* Whether several ranks hold the stage, and it has parameters. */
bool is_shared(const struct exchanges *exchanges, int stage);

/* within.c, for those who know the works of a rank but do not simulate them: measures a move of the rank's group in the first
 * replica, beside the groups that share links with it. `gpus`: scratch for the GPUs of all groups; `marked`: for each node,
 * false. Of the exchanges only the workload's scenario, measure, err and alike.flows need be set. Fails as measure_collective
 * does. */
int move_measure(struct exchanges *exchanges, int rank, const struct move *move, int *gpus, bool *marked,
                 struct exchange_cost *cost);

/* members.c: those who hold the same. */
/* All members that hold a virtual stage: in each replica one rank, or all sharers, in both directions. They are sorted
 * by group, and all groups are of one size: a process group of replicas, with all ranks of these that hold the
 * stage. */
struct members {
    enum group_kind kind;
    int stage, all, here;    /* members in the cluster, and simulated (fewer if one replica stands for all) */
    int size, channels;      /* members of each group; channels of its collectives */
    int lanes;               /* the most lanes that a member needs for these */
    int tensors, flows;      /* GPUs of a member, and those whose transfers are operations of their own; of a sum of tied
                              * gradients on ranks of unequal tensor degrees the pieces that both copies consist of */
    int *gpus;               /* [tensor index * all + member] */
    int *ranks;              /* a member: its program rank */
    int *chunks;             /* a member: its chunk on that rank */
    int *first;              /* a replica: the first member of its group */
    struct siblings *siblings;       /* a group; without GPUs until it is asked for */
    struct placed_group *placed;     /* [flow * groups + group]; the same */
};
/* Made once for each kind of group and stage. */
struct members *members_of(struct exchanges *exchanges, enum group_kind kind, int stage);
/* The two members that hold the copies of tied weights, of the sum of that number. */
struct members *members_tied(struct exchanges *exchanges, int number);
/* Sums of tied gradients: one in each replica. Where the two ranks have unequal numbers of replicas, there is one for
 * each replica of the rank with more, and a replica of the other rank takes part in several. */
int tied_sums(const struct exchanges *exchanges);
/* Which of the two copies of tied weights a rank's chunk has, where the copies are on different ranks; -1: none. */
int tied_copy(const struct exchanges *exchanges, int rank, int chunk);
/* The sums in which a replica of a rank takes part: none (last < first) where the rank holds no copy. */
struct partners tied_sums_of(const struct exchanges *exchanges, int rank, int replica);
/* The equal pieces in which the gradients of each copy are summed: one for each flow of a tensor group; of tensor groups
 * of t1 and t2 GPUs the least common multiple. */
int tied_pieces(const struct exchanges *exchanges);
/* One flow of the group that begins at member `first`. */
const struct placed_group *members_group(const struct exchanges *exchanges, struct members *members, int flow, int first);
/* How long a collective of `bytes` (as collective.h counts them) takes in the group that begins at member `first`,
 * while the groups that share links with it do the same. No time if it cannot be measured: measure->failed. */
struct measured members_measure(struct exchanges *exchanges, struct members *members, int first,
                                const struct collective *collective, double bytes);
/* The same for a replica's group of a kind, and adds it to the contention of the kernels that overlap with it. Zero if the
 * group has one member. */
struct measured exchange_overlapped(struct exchanges *exchanges, enum group_kind kind, int stage, int replica,
                                    const struct collective *collective, double bytes, struct contention *contention);

#endif
