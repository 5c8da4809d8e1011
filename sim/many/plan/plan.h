/* plan: which configuration to launch. The points of a space are tried best first:
 *
 * 1. Each is read, and its stages are timed. What cannot be is refused, by the rule that forbids it; what surely does not
 *    fit is dropped (memory_surely_lacks); the others get a bound (bound.h).
 * 2. In the order of their bounds they are replayed, as rows of a sweep's store, which so may be interrupted, goes on, and
 *    is read by results and charts. No point whose bound is above the threshold can be among the best, so it is not
 *    replayed: then the order is proven, unless a replay below the threshold failed. The threshold is the time of the first that is not shown, among points of one
 *    size and batch. Those that are not replayed may still tie with the first (tie.h): how many is known at most.
 * 3. Of those that are shown the best, and those that tie with them, are replayed on simgrid too (verify.h). */
#ifndef DTSIM_PLAN_H
#define DTSIM_PLAN_H

#include "plan/space.h"
#include "results/results.h"

/* How far a search is: of which points how many have been looked at. */
struct plan_state { const char *doing; size_t done, points; };

struct plan_options {
    const char *folder;              /* of the store */
    bool beside;                     /* what is printed: the folder is in one that keeps a better result of an earlier plan */
    size_t jobs, top, verify;
    double time_limit;               /* s for bounds, replays and the verification; 0: any time */
    bool exhaustive;                 /* all are replayed: an oracle; objectives without a bound, and times that anchors
                                        correct, need that too */
    bool retry_failed;               /* rows that ended with an error, a crash or a timeout are made again */
    const struct anchors *anchors;   /* that correct the times of points alike; NULL: none */
    void (*progress)(void *context, const struct plan_state *state);     /* about once a second; NULL: nobody asks */
    void *context;
};

enum plan_status { PLAN_PROVEN, PLAN_NOT_PROVEN, PLAN_NONE_FEASIBLE };

/* How many points ended how; they add up to `considered`. */
struct plan_counts {
    uint64_t considered;             /* combinations of the axes */
    uint64_t by_rule;                /* dropped by the rules of the space */
    size_t refused;                  /* by the scenario */
    uint64_t memory;                 /* they hold too much, whatever happens, or their replay said so */
    size_t pruned;                   /* their bound is above the threshold */
    size_t left;                     /* not reached within the time limit */
    size_t replayed;                 /* and fit, and keep the goal's limits */
    size_t outside;                  /* they miss a limit: by their replay or, of the time, by their bound */
    size_t failed;                   /* of rows that ended with an error, a crash or a timeout */
};

/* A point whose row failed: its number, and how and why that was. */
struct plan_failure { uint64_t number; const char *status, *reason; };

/* Why points are refused: the rule of error_kind_names, how many, and the message of the first; how many of them only after their
 * replay, as a training that cannot progress. */
struct plan_refusal { const char *rule, *example; size_t count, replayed; };

/* The row that comes nearest to a limit that it misses. */
struct plan_miss { const struct goal_limit *limit; double value, share; };    /* share: of the limit; INFINITY: none */

struct plan_outcome {
    enum plan_status status;
    bool interrupted;
    double gap;                      /* not proven: share of the time by which a point that was not reached, or that failed,
                                        may be faster than the best of as many GPUs and samples, at most; 1: nothing is
                                        known of it */
    struct plan_counts counts;
    struct { struct plan_refusal *items; size_t count, capacity; } refusals;
    struct { struct plan_failure *items; size_t count, capacity; } failures;
    struct { uint64_t number; double lacks; } nearest;   /* the point, among points that do not fit, that lacks least:
                                                            its number, and B of a GPU; INFINITY: none */
    struct plan_miss miss;
    size_t may_tie;                  /* pruned points that may tie with the fastest of as many GPUs and samples, at most */
    struct sweep_verified verified;      /* of the rows that are shown */
    int fewest;                      /* GPUs on which one fits, where none does on these (plan_fewest of cli); 0: not looked for */
    struct { size_t row; double seconds, first; bool splits; } halved;    /* s on a network half as fast or, where nodes are of several
                                        kinds, with layers by their speed (splits; plan_halve of cli): of the shown rows the
                                        fastest, and of the first one; NaN: not known */
    size_t numberless;               /* rows that run and keep the limits, but have no number of what is ordered by (plan_order) */
    const char *without;             /* the compared hardware that all of them are of: "cluster.platform p5, ..."; "": none is compared */
    bool unverified;                 /* the time ran out before the first of them began */
    struct locations located;        /* the points that were replayed, with the ids of their rows */
    double seconds[3];               /* of bounds, of replays, of the verification */
    struct arena arena;
};

/* Searches the space. -1: the store cannot be written, or workers cannot be had. Release in either case. */
int plan_search(struct space *space, const struct plan_options *options, struct plan_outcome *outcome,
                struct error *err);
void plan_release(struct plan_outcome *outcome);

/* Below this probability it is said that a row may not fit. */
#define PLAN_LIKELY 0.8
/* Rows that share a place and differ by less than this share are ordered by how plain they are. */
#define PLAN_NEAR 0.01

/* Keeps the rows of the outcome's points that ran and keep the goal's limits, best first, and those that share a place in the
 * order in which a person chooses among them: those that likely fit before others; of these, those within 1 % of the best first,
 * by whether they surely fit and then by how few exotic degrees they have. They are ranked by the goal's
 * first objective; without one by iteration time or, where batches differ, by throughput. *front: there are several
 * objectives, and only rows are kept that no other row betters in all of them. Without objectives several numbers of
 * GPUs are one. Of hardware that is compared (plan_is_hardware) the best of each is kept. Rows that have no number
 * of an objective are dropped, and the outcome tells of them. */
int plan_order(struct results *results, struct plan_outcome *outcome, const struct goal *goal, bool *front,
               struct error *err);
/* Whether the ordered rows are of several pieces of hardware. */
bool plan_compares(const struct results *results);
/* The hardware of rows from the first on, each piece once, and what is the same in all left out: "cluster.platform p5, ...". */
const char *plan_hardware(struct arena *arena, const struct results *results, const bool *which);

#endif
