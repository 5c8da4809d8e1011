/* goal: what a plan looks for: the metrics by which configurations are ordered, and limits that they must keep. */
#ifndef DTSIM_GOAL_H
#define DTSIM_GOAL_H

#include "results/results.h"

enum { GOAL_OBJECTIVES = 4, GOAL_LIMITS = 8 };
struct goal {
    /* Without an objective the least time counts; with several numbers of GPUs, the fastest of each. */
    struct objective { const char *name; bool most; } objectives[GOAL_OBJECTIVES];    /* most: more of it is better */
    size_t nobjectives;
    struct goal_limit { const char *name; bool most; double value; } limits[GOAL_LIMITS];    /* most: at least, not at most */
    size_t nlimits;
    bool steady;                 /* the scenario's training has equal steps on all its nodes, */
    bool same_steps;             /* as many for all candidates */
};

/* What metrics need: whether a price is said; a GPU without power, "" where none is named, NULL: power is known of all;
 * whether the scenario has a training, and of equal steps on all its nodes, as many for all candidates. */
struct goal_needs { bool priced; const char *powerless; bool trained, steady, same_steps; };
/* Reads the metrics' names (a name or a list, NULL: none) and the limits ({METRIC: VALUE}, or NULL). Errors: a metric that
 * there is not, or that needs what nobody says. */
int goal_read(const struct node *objective, const struct node *subject_to, struct goal_needs needs, struct goal *goal,
              struct error *err);
/* The value of --subject-to, "iteration_time_s=12 s,cost=0.5", as such a mapping. */
int goal_limits(struct arena *arena, const char *text, struct node **limits, struct error *err);

/* s of an iteration that the limits allow; INFINITY: any. */
double goal_longest(const struct goal *goal);
/* Whether an objective or a limit is a metric of a training. */
bool goal_trains(const struct goal *goal);
/* Whether of one number of GPUs and samples the fastest configurations are the best: then bounds of the time prove it. */
bool goal_is_timely(const struct goal *goal);
/* s that the bound of a candidate of the same GPUs and samples must exceed, so that the candidate is surely worse than a row
 * with these metrics: those of the iteration or, where objectives are of a training, of a step with all that delays the
 * training, or costs as much. */
double goal_seconds(const struct goal *goal, const json_t *metrics);
/* s of an iteration beyond which a training takes longer than the limits allow, by the steps of a row with these metrics;
 * INFINITY: no limit is on days, or other candidates may have other steps. */
double goal_longest_step(const struct goal *goal, const json_t *metrics);
/* 0: the row, of a point that ran, keeps the limits. Else by which share of its value it misses a limit, at most; *limit is
 * that one and *value the row's; INFINITY: the row has no such number. */
double goal_miss(const struct goal *goal, const json_t *row, const struct goal_limit **limit, double *value);

#endif
