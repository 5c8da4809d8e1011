/* Declarations that the files of chain share: the tables of the dynamic programme. */
#ifndef DTSIM_CHAIN_INTERNAL_H
#define DTSIM_CHAIN_INTERNAL_H

#include "recompute/chain.h"
#include "recompute/tensors.h"

#include <math.h>
#include <stdint.h>

/* The choice for a segment s..t-1: to save all of layer s, to save it selectively, or (the number j) to run forward to
 * layer j and come back. */
enum { SAVE_ALL = -1, SAVE_SELECTIVE = -2 };

/* A choice of the first pass at a layer s. */
struct way {
    int next;                    /* the layer that it reaches, whose input it keeps; 0: no choice fits */
    bool saves, selective;       /* saves layer s, all of it or selectively; else layers s..next-1 are recomputed */
    bool offloads_rest, offloads_input;  /* offloads the saved part of layer s; the input of layer `next` */
};

struct planner {
    const struct chain_layer *layers;
    int n, slots;
    int rounding;                /* slots by which the sum of rounded sizes may be off */
    double slot;                 /* B */
    double host_bandwidth;       /* B/s */
    bool recompute;
    int *input;                  /* a layer: slots of its input */
    int *rest, *selective;       /* a layer: slots of its other saved tensors, and if it is saved selectively (or -1) */
    struct { int forward, backward, selective; } *space; /* a layer: slots of workspace while each of them runs */
    double *sum;                 /* [s]: s of the forward steps before layer s */
    double *time;                /* [segment][m]: least s to compute a segment forward and backward in m slots */
    int *how;                    /* [segment][m]: the choice that takes this time */
    double *first;               /* [s][budget]: least s from the first forward of layer s to its backward */
    uint32_t *ways;              /* [s][budget]: the choice that takes this time (chain_way) */
    struct progress *progress;
    struct structures *structures; /* of all plans that are written; NULL: nobody asks for them */
    struct arena *noted;           /* which holds these */
    int offloaded;               /* number of first layers whose activations may be offloaded */
    double price;                /* s for a byte offloaded */
    int spare;                   /* slots that working memory has beyond the budget of the first pass */
};

/* Rounds sizes to slots, and fills the table of segments; everything lives in the arena. -1: the budget is spent. */
int chain_tables(struct planner *planner, struct arena *arena, double memory);
/* Fills the table of the first pass up to `budget` slots; working memory has `spare` slots more. */
void chain_first(struct planner *planner, int spare, int budget);
/* The choice at layer s for that budget. */
struct way chain_way(const struct planner *planner, int s, int budget);
/* Activations of layer s that a way keeps in addition to its input, in bytes and in slots. */
double way_rest(const struct planner *planner, int s, struct way way);
int way_slots(const struct planner *planner, int s, struct way way);
/* The index in `time` and `how` of segment s..t-1 with m slots. */
size_t chain_at(const struct planner *planner, int s, int t, int m);

static inline double rest_of(const struct chain_layer *layer)
{
    return fmax(layer->saved - layer->input, 0);
}

/* s of a forward step, of a backward step, and of a backward right after a forward of the layer. */
static inline double step_forward(const struct chain_layer *layer)
{
    return fmax(layer->forward + layer->exchange, layer->gather);
}

static inline double step_backward(const struct chain_layer *layer, bool selective)
{
    return fmax(layer->backward + (selective ? layer->recompute : 0), layer->gather + layer->scatter);
}

static inline double step_both(const struct chain_layer *layer, bool selective)
{
    return fmax(layer->forward + layer->exchange + layer->backward + (selective ? layer->recompute : 0),
                layer->gather + layer->scatter);
}

static inline double selective_of(const struct chain_layer *layer)
{
    return fmax(layer->selective - layer->input, 0);
}

#endif
