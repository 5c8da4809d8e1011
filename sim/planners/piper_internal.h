/* What the parts of Piper share: one stage, and the knapsack of its recomputed layers. */
#ifndef DTSIM_PIPER_INTERNAL_H
#define DTSIM_PIPER_INTERNAL_H

#include "planners/piper.h"

/* A set of layers. */
struct set { uint64_t words[PIPER_NODES / 64]; };

static inline bool set_has(const struct set *set, size_t node)
{
    return set->words[node / 64] >> node % 64 & 1;
}

/* The layers of a stage with the cost and the memory of each of their options on one data and tensor degree. */
struct stage_items {
    size_t count;
    struct stage_item { double seconds[PIPER_OPTIONS], held[PIPER_OPTIONS], fixed[PIPER_OPTIONS]; } items[PIPER_NODES];
};
void stage_items(const struct piper *question, const struct set *stage, size_t tensor, int data,
                 struct stage_items *items);
/* TPS with so many micro-batches in flight; INFINITY: it does not fit. *recomputed: how many take their second option. */
double stage_knapsack(const struct piper *question, const struct stage_items *items, int flying, size_t *recomputed);

#endif
