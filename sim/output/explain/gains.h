/* gains: what an iteration would take if something cost less, found by simulating it; and the change of the scenario
 * that comes nearest to that. */
#ifndef DTSIM_GAINS_H
#define DTSIM_GAINS_H

#include "explain/critical_path.h"

struct gain {
    const char *name;            /* "network_free", ... for programs */
    const char *title;           /* for people */
    double time;                 /* s, of an iteration if so; */
    /* and of what can be gained the critical path holds: exchanges and transfers, all seconds off the rank that it
     * visits most, recomputations, what works take beyond the mean rank, kernels. Without contention and choices at run
     * time no gain is more than this, which is s too. */
    double held;
    /* The change that comes nearest, of those that were tried: "strategy.schedule=zb-h1", a line each. NULL: none is
     * known, or none makes the iteration shorter. What it takes, and whether it fits in memory. */
    const char *sets;
    double sets_time;
    bool fits;
};
struct gains {
    struct gain items[8];        /* the largest gain first; what-ifs that cannot change the scenario are left out */
    size_t count;
};

/* Simulates all of it with the options that `run` had, `causes` among them; texts are in the arena. Variations that
 * cannot be simulated are left out, unless the system did not let a file be read (error_system): that is an error. */
int gains_init(struct gains *gains, struct arena *arena, const struct run *run, const struct critical_path *path,
               struct simulate_options options, struct error *err);

#endif
