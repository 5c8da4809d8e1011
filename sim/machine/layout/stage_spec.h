/* stages: the scenario's description of each pipeline rank (`strategy.stages`): its number of layers, its part of the
 * cluster, and its degrees. */
#ifndef DTSIM_STAGE_SPEC_H
#define DTSIM_STAGE_SPEC_H

#include "layout/layout.h"

/* The name of a part. */
struct on_part {
    const struct node *node;
    const char *part;
};

/* One for each pipeline rank, whose chunks share it. */
struct stage_spec {
    const struct node *node;
    int layers;                      /* of the model's blocks, of all its chunks; 0: not said */
    int tensor, data;                /* its degrees; 0: not said */
    struct list on;                  /* of struct on_part: one for all replicas or one for each; empty: not said */
};
extern const struct table stage_spec_table;

/* Whether any stage says on which part it is; then all do (stages_parts checks it). */
bool stages_say_parts(const struct list *stages);
/* Whether any stage says a degree of its own. */
bool stages_say_degrees(const struct list *stages);
/* "ranks 0-1: tensor 4 x data 2; rank 2: tensor 8 x data 1", with "..." for those that do not fit; returns buffer. */
char *rank_degrees_text(const struct rank_degrees *ranks, int count, char *buffer, size_t size);
/* The number of the part, among those that the cluster says, of each pipeline rank of each replica: [rank * data +
 * replica], with the largest `data` of all ranks, in the arena. NULL after an error: a stage that does not say it, an
 * unknown part, another number of parts than replicas. The layout has its degrees. */
const int *stages_parts(struct arena *arena, const struct list *stages, const struct cluster *cluster,
                        const struct layout *layout, struct error *err);
/* Puts the seats of each rank and replica on GPUs of their part, in the order of seats and of GPUs. The layout has its
 * degrees. -1 where a part has too few GPUs: at `loc`. */
int stages_place(struct arena *arena, const int *parts, struct loc loc, const struct cluster *cluster,
                 struct layout *layout, struct error *err);

#endif
