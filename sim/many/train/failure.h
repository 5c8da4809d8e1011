/* failure: when nodes fail and from which cause, and the time of a recovery. */
#ifndef DTSIM_FAILURE_H
#define DTSIM_FAILURE_H

#include "train/course.h"

enum { FAILURE_CAUSES = 64 };        /* at most, of one training */
struct cause {
    const char *name;
    double rate;                     /* failures a second of a node */
    bool loses_node;
    double detect, replace, init;    /* s */
};

struct failures {
    struct cause causes[FAILURE_CAUSES];
    size_t count;                    /* 0: nothing fails */
    double rate;                     /* of all causes together */
    double shape;                    /* of the Weibull distribution */
    const struct node_trace *trace;       /* when nodes are lost, instead of a rate; NULL: there is none */
};

/* The failures of the scenario. Errors: failures without checkpoints or without 'restart', too many causes. */
int failures_init(struct failures *failures, const struct scenario *scenario, struct error *err);
/* Mean s between two failures on that number of nodes; INFINITY: there are none. */
double failures_mtbf(const struct failures *failures, int nodes);
/* The mean of exp(-R/M) over the causes, where R is the time of an undisturbed recovery: the probability that nothing
 * fails in it. With one cause it is exp(-R/M). */
double failures_survival(const struct failures *failures, double load, double mtbf);
/* The mean of R. */
double failures_recovery(const struct failures *failures, double load);
/* s of wall time, the mean over random exponential failures, of a course whose nodes are always replaced at
 * once: a segment between checkpoints that takes s takes M / q (exp(s/M) - 1), q = failures_survival()
 * (closed_form_wall() with several causes). Of checkpoints that are written while the training goes on, the way from
 * one to the next begins where the earlier one was finished, and begins anew where its stall ended. */
double failures_wall(const struct failures *failures, const struct course *course);

/* The same where a failure costs the step under way, its detection and the pause of the course's own zone, and nodes
 * are always replaced: each step is an interval without a stall. */
double failures_step_wall(const struct failures *failures, const struct course *course);

/* Random numbers of a trial, each by its index, and the time until the next failure in units of the mean time between
 * failures. */
struct random_failures { uint64_t seed, index; double left; };
double random_failures_share(struct random_failures *random);        /* from 0 to below 1 */
/* Draws `left` anew: Weibull with mean 1. */
void random_failures_next(struct random_failures *random, const struct failures *failures);
/* Which cause it is. */
const struct cause *random_failures_cause(struct random_failures *random, const struct failures *failures);

#endif
