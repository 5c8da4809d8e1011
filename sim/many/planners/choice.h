/* choice: what a paper's planner chooses for a scenario's model and cluster, and what this simulator says of the
 * choice.
 *
 * A planner may give stages unequal degrees. PipeDream's schedule runs such stages; no other schedule here does. DAPPLE
 * and Alpa let the replicas of a stage divide a micro-batch; of one whose times are given they cannot. Then a second
 * choice is made, the best by the planner's objective that runs here, and that one is simulated. */
#ifndef DTSIM_CHOICE_H
#define DTSIM_CHOICE_H

#include "planners/profiled.h"

enum { CHOICE_SETS = 12 };
struct planner_choice {
    const char *method;  /* "piper" */
    const char *form;    /* "paper", "released", or "" where they are one; "runs here" */
    double objective;    /* the planner's, s; INFINITY: it found no plan */
    const char *meaning; /* of the objective */
    const char *stages;  /* "4 stages of 12, 12, 12, 12 layers on 2 replicas" */
    const char *sets[CHOICE_SETS];
    size_t nsets;       /* 0: it is not simulated */
    const char *reason; /* why it was not simulated, or how that ended; NULL: it fits */
    int gpus;
    double seconds, samples_per_s, memory; /* of the simulation: s an iteration, B of the fullest GPU; NaN */
};

struct planner_choices {
    struct arena arena;
    struct planner_choice *items;
    size_t count, capacity;
};

/* The planners by name, and the papers; NULL past the last. */
struct planner_method {
    const char *name, *paper;
    int (*choose)(struct planner_choices *choices, const struct profiled *profiled, struct error *err);
};
const struct planner_method *planner_method_at(size_t i);

/* Adds the choices of the planner and simulates them on engine fast; method NULL: of all planners. Keys of the scenario
 * that a planner chooses are ignored: schedule, pipeline, data, split, chunks. A tensor degree that the scenario says
 * is held. Errors as profiled_read has; a model whose stages are given, or of more than
 * PLANNED_MOST layers. Release in either case. */
int planners_choose(const struct scenario *scenario, const char *method, struct planner_choices *choices,
                    struct error *err);
void planners_release(struct planner_choices *choices);

#endif
