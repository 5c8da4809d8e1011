/* attempt: "what if": a scenario with other keys, built and simulated, and what came of it. */
#ifndef DTSIM_ATTEMPT_H
#define DTSIM_ATTEMPT_H

#include "run/run.h"
#include "scenario/scenario.h"

enum attempted {
    ATTEMPT_RAN,
    ATTEMPT_SHORT,                   /* a GPU may hold less than it needs; `found` says by how much */
    ATTEMPT_REFUSED,                 /* the scenario cannot be so; `found` says why */
    ATTEMPT_FAILED,                  /* the system lets a file not be read, which attempt_end passes on */
};

enum { ATTEMPT_SETS = 16 };
/* Begin with {.of = SCENARIO}, which must outlive it; say the changes; end it in any case. */
struct attempt {
    const struct scenario *of;
    bool anyway;                     /* whatever memory it needs: it is not ATTEMPT_SHORT, unless no plan of layers fits */
    size_t nsets;
    const char *sets[ATTEMPT_SETS];  /* "PATH=VALUE"; without any of them the scenario is simulated as it is */
    struct arena arena;              /* of these */
    struct scenario varied;          /* has the engine of the first */
    struct workload workload;        /* its scenario is the one that is simulated */
    struct run run;                  /* where memory is short perhaps of memory alone, or of nothing */
    struct error found;
};
/* Adds changes, a line each. */
void attempt_set(struct attempt *attempt, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads the scenario and makes its workload. */
enum attempted attempt_build(struct attempt *attempt);
/* Simulates it then. The memory is looked at first, where that says sooner that it is short. */
enum attempted attempt_simulate(struct attempt *attempt, struct simulate_options how);
/* Both. */
enum attempted attempt_run(struct attempt *attempt, struct simulate_options how);
/* Releases all of it. -1: it failed; `err` then has why. */
int attempt_end(struct attempt *attempt, struct error *err);

#endif
