/* settled: what follows beside a scenario, which stays as it was said: what was found of what it leaves open (`auto`), how one
 * of its ranks sees it, or on which network it is simulated. */
#ifndef DTSIM_SETTLED_H
#define DTSIM_SETTLED_H

#include "scenario/scenario.h"

/* 0: as the scenario has it. */
struct settled {
    const struct layout *layout;         /* strategy.stages_on */
    const int *samples;                  /* batch.shares: a replica: samples of its micro-batches */
    const int *layers;                   /* strategy.split: of each virtual stage */
    bool closed;                         /* shares and a split that are not found are as if nobody asked for them */
    double planned;                      /* B that layers are planned for, instead of what the GPUs may hold */
    bool enforced;                       /* memory.enforce */
    bool free_network;                   /* no transfer takes time */
    int micro, slice;                    /* samples of a micro-batch, and which slice of its tokens */
    const struct rank_view *view;        /* all ranks have the degrees of this one */
};
struct scenario scenario_settled(const struct scenario *scenario, struct settled settled);
/* The same as if all ranks had the degrees of that one: with its groups, its recipe, and its samples as batch.micro. */
struct scenario scenario_seen(const struct scenario *scenario, int p);

#endif
