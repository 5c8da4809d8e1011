/* What the tests of V-shaped and bidirectional schedules and of Varuna share: their list, and a run of each. */
#ifndef DTSIM_TEST_SCHEDULE_V_H
#define DTSIM_TEST_SCHEDULE_V_H

#include "simulated.h"

static const char *const shapes[] = {
    "schedule: varuna", "schedule: dualpipe", "schedule: dualpipe-v", "schedule: chimera", "schedule: zb-v",
    "schedule: zb-v, variant: fixed", "schedule: v-half", "schedule: v-min",
    "schedule: chimera, concatenation: forward-doubling",
};
enum shape { VARUNA, DUALPIPE, DUALPIPE_V, CHIMERA, ZB_V, ZB_V_FIXED, V_HALF, V_MIN, CHIMERA_DOUBLING, SCHEDULE_COUNT };

/* Seconds of the kinds of work; a full backward takes input + weight. */
struct times { double forward, input, weight, recompute; };
static const struct times even = {1, 1, 1, 1};

/* Simulates p stages and m micro-batches on an ideal cluster; simulated_release when done. */
static inline void run_shape(struct simulated *simulated, enum shape schedule, int p, int m, bool recompute,
                             const struct times *t)
{
    run_text(simulated,
             "model: {stages: {forward: %g s, backward_input: %g s, backward_weight: %g s, recompute: %g s,\n"
             "    activation: 1 B}}\n"
             "cluster: ideal\nbatch: {micro_batches: %d}\nstrategy: {%s, pipeline: %d}\nmemory: {recompute: %s}\n"
             "simulation: {engine: ideal}\n", t->forward, t->input, t->weight, t->recompute, m, shapes[schedule], p,
             recompute ? "full" : "none");
}

#endif
