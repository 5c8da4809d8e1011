/* steps: what a training consists of without failures: stretches of steps that are alike, each simulated once. */
#ifndef DTSIM_COURSE_STEPS_H
#define DTSIM_COURSE_STEPS_H

#include "run/run.h"

/* A step, simulated: an iteration of the scenario with another batch, sequence or number of GPUs. */
struct step {
    int batch, sequence, gpus;       /* 0: the scenario's; after the simulation none is */
    int nodes;
    int paid;                        /* GPUs: also those of its nodes that are idle */
    double seconds;
    double samples, tokens;          /* NaN tokens: the model has none */
    double flop;                     /* model FLOP of all GPUs; NaN: times are given */
    double mfu;
    double expected_error;           /* share of `seconds`; NaN: not known */
    double energy_error;             /* share of the energy, but for that of `seconds`; NaN: 0, or not known */
    double power, idle_power;        /* W of all nodes, mean over the step, and where all GPUs wait; NaN: not known */
};

/* Steps alike, one after the other. */
struct stretch {
    size_t step;                     /* which of the steps */
    double steps;                    /* how many */
    int phase;                       /* from 0 */
    bool ramp;                       /* its batch has not grown to the last one's yet */
};

struct steps {
    struct { struct step *items; size_t count, capacity; } kinds;
    struct { struct stretch *items; size_t count, capacity; } stretches;
    const struct run *run;           /* an iteration of the scenario itself; NULL: none is known */
    double parameters;               /* of the model; NaN: not known */
    double over;                     /* samples by which whole steps exceed what was asked for */
};

/* Simulates every kind of step of the training that the scenario describes, but for its own iteration where that is known
 * (`run`, or NULL). What does not run (memory, batches that do
 * not divide) is an error that names its phase. Release in either case. */
int steps_init(struct steps *steps, const struct scenario *scenario, const struct run *run, struct error *err);
void steps_release(struct steps *steps);
static inline const struct step *steps_of(const struct steps *steps, const struct stretch *stretch)
{
    return &steps->kinds.items[stretch->step];
}
/* s by which the ramp's steps take longer than their samples would at the last batch. */
double steps_ramp(const struct steps *steps);

#endif
