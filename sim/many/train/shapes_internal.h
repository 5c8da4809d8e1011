/* Shapes while they are simulated. */
#ifndef DTSIM_SHAPES_INTERNAL_H
#define DTSIM_SHAPES_INTERNAL_H

#include "train/shapes.h"

enum { MOST_SHAPES = 2000 }; /* that are simulated at most */

/* Shapes in the making. */
struct making {
    const struct scenario *scenario;
    struct shapes *shapes;
    int micro_batches; /* of the batch, over all replicas */
    int stage_gpus;
    size_t simulated;
    int *layers; /* of each stage of the shape that was simulated last; 0: stages are given */
};

/* Simulates equal replicas with that many micro-batches each; `set`: one more change of the scenario, or NULL. Fills in
 * `seconds` and `power`. 1: it does not run. -1: an error. */
int shape_simulate(struct making *making, struct shape *shape, int micro_batches, const char *set, struct error *err);
/* Keeps the shape for its number of nodes and for more nodes, where it is the fastest so far. */
void shape_take(struct shapes *shapes, const struct shape *shape);

/* holes.c: fills in the shape's `holed_seconds`; it was simulated just now, with that number of micro-batches a
 * replica. */
int shape_add_holes(struct making *making, struct shape *shape, int micro_batches, struct error *err);

/* templates.c: the shapes of Oobleck. */
int shapes_add_templates(struct making *making, struct error *err);

#endif
