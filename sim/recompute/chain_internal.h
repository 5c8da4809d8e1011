/* What the files of chain share: the tables of the dynamic programme, and its reading. */
#ifndef DTSIM_CHAIN_INTERNAL_H
#define DTSIM_CHAIN_INTERNAL_H

#include "recompute/chain.h"

#include <math.h>

/* How a segment s..t-1 goes on: by saving all of s, or most of it, or by running forward to j and coming back. */
enum { SAVE_ALL = -1, SAVE_SELECTIVE = -2 };

/* One way of the first pass on from a layer. */
struct way {
    int next;                    /* the layer that it reaches, whose input it keeps; 0: none is possible */
    bool saves, selective;       /* all of the layer, or most of it; else layers s..next-1 are computed again */
    bool offloads_rest, offloads_input;  /* of what is saved of the layer; of layer `next` */
};

struct planner {
    const struct chain_layer *layers;
    int n, slots;
    int rounding;                /* slots by which rounded sizes may be off, in all */
    double slot;                 /* B */
    double host_bandwidth;
    bool recompute;
    int *input, *rest, *selective; /* slots of a layer's input, of what else its backward needs, and of most of that */
    struct { int forward, backward, selective; } *space; /* and on top while that runs */
    double *sum;                 /* [s]: s of the steps forward before layer s */
    double *time;                /* [segment][m]: least s to compute a segment forward and backward in m slots */
    int *how;                    /* [segment][m] */
    double *first;               /* [s][budget]: least s from the first forward of layer s to its backward */
    struct way *ways;            /* [s][budget] */
    int offloaded;               /* what the first so many layers leave may be offloaded */
    double price;                /* s for a byte offloaded */
    int spare;                   /* slots that working memory has beyond the budget of the first pass */
};

/* Sizes become slots, and the table of segments is filled; everything lives in the arena. */
void chain_tables(struct planner *planner, struct arena *arena, double memory);
/* Fills the table of the first pass up to `budget` slots; working memory has `spare` slots more. */
void chain_first(struct planner *planner, int spare, int budget);
/* What a way keeps of layer s beside its input, in bytes and in slots. */
double way_rest(const struct planner *planner, int s, struct way way);
int way_slots(const struct planner *planner, int s, struct way way);
/* Where the table of segments tells of s..t-1 in m slots. */
size_t chain_at(const struct planner *planner, int s, int t, int m);

static inline double rest_of(const struct chain_layer *layer)
{
    return fmax(layer->saved - layer->input, 0);
}

/* s of a step forward, of a step backward, and of one right after the other. */
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
