/* mcmc: FlexFlow's search by a Markov chain (Jia et al. 2019, MLSys, section 6.2; flexflow/flexflow-train, src/runtime/
 * model.cc of 6a1544d). A state gives each operator a configuration. Each step proposes another configuration of one
 * operator, both uniform, and takes it if it is cheaper, else with chance exp(-alpha (next - current)). Every
 * min(1000, max(1, budget / 100)) steps the best state becomes the current one. */
#ifndef DTSIM_MCMC_H
#define DTSIM_MCMC_H

#include "base/base.h"

struct mcmc {
    size_t operators;
    const int *configurations; /* of each operator, how many */
    double (*cost)(const void *context, const int *state);
    const void *context;
    double alpha; /* over the unit of costs; FlexFlow: 1.2 a millisecond */
    long long budget;  /* as many steps, and one */
    uint64_t seed;
    bool best;  /* as the program has it since: a proposal is compared with the best state */
    bool stays; /* the chain never goes back to the best state */
    void (*visit)(void *visitor, const int *state); /* each current state; or NULL */
    void *visitor;
};

/* state: where the chain begins; then the best that it saw, whose cost is returned. */
double mcmc_search(const struct mcmc *chain, int *state);

#endif
