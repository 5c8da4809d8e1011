/* layer_cost: what a layer costs on a GPU, on whichever stage it stands. */
#ifndef DTSIM_LAYER_COST_H
#define DTSIM_LAYER_COST_H

#include "stage/stage.h"

struct layer_cost {
    struct work_cost forward, input, weight;    /* input, weight: the two parts of the backward */
    struct work_cost backward;      /* in one piece: exchanges may overlap with products */
    struct work_cost recompute;     /* the forward in a recomputation */
    struct work_cost core;          /* the part of the backward that selective recomputation adds */
    struct hiding hiding;            /* of exchanges of layers alike */
    int hides;                       /* its place in stage_times.hidings; -1: it hides nothing */
};

/* A network has many layers, and most of them are alike: the last different ones are found again. */
enum { LAYERS_KEPT = 4 };
struct layer_costs {
    struct arena *arena;             /* of the costs */
    const struct scenario *scenario;
    const struct kernel_costs *kernels;
    struct exchange_list *list;      /* what layers exchange, so far */
    const struct layer *layers[LAYERS_KEPT];
    struct layer_cost *costs[LAYERS_KEPT];
    size_t count;                    /* of different layers so far */
};
/* The layer's cost. Initialise with an arena, with the scenario, with what its kernels take, and with an empty list. */
const struct layer_cost *layer_cost(struct layer_costs *costs, const struct layer *layer);
/* A phase of a layer: its kernels, with what a backward computes again of the forward, and its exchanges. */
struct work_cost layer_phase(const struct layer_costs *costs, const struct layer *layer, enum phase phase);

#endif
