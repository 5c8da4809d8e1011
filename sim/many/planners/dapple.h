/* dapple: DAPPLE's plans of stages with replicas (Fan et al. 2021, PPoPP, sections 4 and 5; AlibabaPAI/DAPPLE fd75dcf).
 * With M micro-batches, stage i of L_i s (F_i + B_i) on r_i devices, and transfers 2 a / (bandwidth p2p) between
 * stages:
 *
 *     released   block = the longest stage or transfer, T = the whole network's time on one device:
 *                    L = block (M - 1) + T + transfers + max over i of max(0, AR_i - i block)
 *     paper      computation and transfers alternate as stages, a transfer with F = B = a / p2p. Q is the pivot: from
 * the last stage down, s takes its place where (M-1)(F_s+B_s) > (M-1)(F_Q+B_Q) + sum of F + B between them. L = sum of
 * F up to Q + (M - 1)(F_Q + B_Q) + max over s of AR_s + (sum of B from s to Q where s is not behind Q, less the sum of
 * B from Q to s - 1 where it is) The plan of the first layers on some devices is the one whose L, with the other layers
 * as one further stage on all other devices, is the least; a plan ends with such a stage.
 *
 * AR_i = 2 w (r - 1) / r / bandwidth. */
#ifndef DTSIM_DAPPLE_H
#define DTSIM_DAPPLE_H

#include "planners/planned.h"

struct dapple {
    const struct planner_layer *layers;
    size_t count;
    int devices, micro_batches;
    double p2p;             /* B/s between stages */
    const double *exchange; /* B/s of an all-reduce, by replicas; entries 2 to `devices` */
    double forward;         /* share of a layer's time that is its forward */
    bool paper;
    int data; /* replicas of every stage; 0: any */
};

/* L of a plan in the question's form. */
double dapple_score(const struct dapple *question, const struct planned *plan);
void dapple_plan(const struct dapple *question, struct planned *planned);

#endif
