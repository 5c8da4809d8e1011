/* recipe: what replicas exchange, when, and who holds which share: data parallelism as data. Lowering, memory,
 * compression and the count of messages read it. A further form is a row of this table, its name in parallelism.h, its
 * help in strategy_table.c, and its row and what it does not go with in data_parallel.c.
 *
 *   form              gradients are summed                    weights come            a replica holds
 *   ddp               by bucket, as the last backward makes   -                       all
 *                     them ready
 *   synchronous       by stage or by tensor, before the       -                       all
 *                     update
 *   parameter-server  by stage, to replica 0                  after its update, from  all but states, which
 *                                                             replica 0               replica 0 has
 *   dataparallel      in buffers after every backward, to     before every forward,   all while it computes, replica 0
 *                     replica 0                               from replica 0          for good
 *
 * ZeRO (Rajbhandari et al. 2020) changes the first two, a reduce-scatter and an all-gather in an all-reduce's place:
 *   zero 1            as the form says                        after the update        a share of states,
 *   zero 2            as the form says, after every backward  after the update        of these and gradients,
 *   with overlap_gathers                                      beside the forwards
 *                                                             of the next iteration
 *   zero 3            by layer, in every backward             before each layer       of these and weights
 *   without           as above                                before each layer of    of these, and whole weights from
 *   reshard_after_                                            a forward               a forward to its backward
 *   forward
 *   with sums_once    in the last backward; in a pipeline     as above; in a pipeline all gradients; in a pipeline
 *                     by stage, before the update             not between a backward  weights of zero 3 whole from a
 *                                                             and the next forward    backward to the next forward
 * Where it divides among some of the replicas, every share's sum is summed on over those that hold it (`across`), once
 * an update (Zhang et al., MiCS, VLDB 2022: 2-hop gradient synchronization).
 *
 * Local steps (Lin et al. 2020, "Don't use large mini-batches, use local SGD") change the first two as well:
 *   local steps       never                                   after the update, the   all
 *                                                             mean of all replicas */
#ifndef DTSIM_RECIPE_H
#define DTSIM_RECIPE_H

#include "scenario/process_group.h"

/* Which gradients are summed together. */
enum sum_unit {
    SUM_NOTHING,
    SUM_BUCKETS,             /* DDP's, as they fill */
    SUM_TENSORS,             /* each by itself */
    SUM_STAGES,              /* all of a stage */
    SUM_LAYERS,              /* all of a layer, as soon as they are ready */
    SUM_BUFFERS,             /* DataParallel's */
};
enum weights_moment {
    WEIGHTS_STAY,            /* every replica updates them itself, and keeps them */
    WEIGHTS_UPDATED,         /* they come after the update */
    WEIGHTS_NEXT,            /* each chunk's weights come before its first forward, while the chunks before it are
                                computed */
    WEIGHTS_LAYER,           /* a layer's come before it is computed, unless they stayed */
    WEIGHTS_FORWARD,         /* all come before every forward */
};
/* What is held of each parameter. */
enum held { HELD_WEIGHTS, HELD_GRADIENTS, HELD_STATES, HELD_COUNT };

struct collective;
struct recipe {
    struct {
        enum sum_unit unit;
        bool flush;          /* sums begin when a rank has computed all that comes before its update, and, without
                              * overlap_p2p, has sent all of that to other stages */
        bool every;          /* buckets, tensors, stages: of every micro-batch, not of the whole batch */
        bool once;           /* of the whole batch, although a replica keeps a share alone */
        double first_bucket, bucket;     /* B of buckets; INFINITY: there are none */
        const struct collective *collective;     /* in the groups that sum a class of parameters */
        const struct collective *across;         /* then of every share, over the replicas that hold it; NULL: no such
                                                    sum */
    } gradients;
    struct {
        enum weights_moment when;
        bool stay_forward, stay_backward;        /* a layer's weights, after a forward and after a backward */
        const struct collective *collective;
    } weights;
    int divided[HELD_COUNT][PARAMETER_CLASS_COUNT];     /* among how many replicas; 1: each holds all */
    bool rooted;             /* replica 0 alone has the states, and updates */
    bool in_turn;            /* nothing is computed while a layer's weights come and its gradients go */
};

/* The scenario is resolved and its process groups are made. */
void recipe_make(struct scenario *scenario);

/* The part of an amount of parameters, or of their bytes, that one replica holds. */
double recipe_share(const struct recipe *recipe, enum held held, struct by_class amount);
/* The part of such an amount that the replicas that divide it exchange: without the part that one replica alone
 * holds. */
double recipe_exchanged(const struct scenario *scenario, struct by_class amount);

#endif
