/* space_ground: what facts and settled keys of a point follow from, before the point is loaded (space_rules.c). What neither the
 * axes nor the scenario tell is open: VALUE_NONE. */
#ifndef DTSIM_SPACE_GROUND_H
#define DTSIM_SPACE_GROUND_H

#include "plan/space_internal.h"
#include "sweep/points.h"

/* Where a value comes from: an axis by its number, or, where that is -1, the scenario; none: it is open. */
struct source {
    int axis;
    struct value value;
};

/* What facts and settled keys follow from in a point. */
struct ground {
    struct source tensor, pipeline, context, expert_tensor, data, schedule, data_parallel, micro, global, micro_batches, nodes;
    struct value gpus, per_node;             /* all of them, where no axis says the nodes; of a node where one does */
    struct value transformer, layers, experts, shared_experts;
};

/* A fact, or a key whose value follows where nobody says it. */
struct following {
    const char *name;
    struct value (*of)(const struct ground *g, const struct moment *m);
    int from;                    /* bits of ground_axes */
};

enum { GROUNDS = 11 };
/* The axes from which anything follows, -1 where there is none, in the order of the bits. */
void ground_axes(const struct ground *ground, int axes[GROUNDS]);
void ground_find(const struct builder *builder, struct ground *found);
/* NULL: nothing follows there. */
const struct following *following_of(const char *name);
/* The value in a point; before there is one (NULL) nothing of the axes is known. */
struct value source_value(const struct source *source, const struct moment *moment);
/* Where the scenario says a key, or what it has where nobody does; `supplied`: software may say it then. */
struct source source_of(const struct builder *builder, const char *path, const char *fallback, bool supplied);
/* Whether pipeline ranks may have degrees of their own, or an order from a file or a list says how many there are. */
bool has_own_degrees(const struct builder *builder);
int axis_number(const struct builder *builder, const char *path);     /* -1: there is none */

#endif
