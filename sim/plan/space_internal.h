/* What the parts of a space share while it is built: axes (space.c, space_framework.c), rules (space_rules.c). */
#ifndef DTSIM_SPACE_INTERNAL_H
#define DTSIM_SPACE_INTERNAL_H

#include "plan/space.h"
#include "values/automatic.h"

/* What is built: the section of a sweep, and the words for it. */
struct builder {
    struct arena *arena;
    const struct facts *facts;
    const struct plan_question *question;
    const struct search_spec *asked;         /* by the scenario's own `plan` */
    struct node *grid, *where;
    struct { struct space_axis *items; size_t count, capacity; } axes;
    struct { struct space_rule *items; size_t count, capacity; } rules;
    const char *micro_batches;               /* of a replica, as an expression; NULL: the scenario says them, or nothing tells */
    struct error *err;
};

static inline bool has_axis(const struct builder *builder, const char *path)
{
    return node_get(builder->grid, path) != NULL;
}

/* The names of the software: of the axis, or the scenario's, or the assumed one; empty: there is none. */
const struct node *framework_names(struct builder *builder);
/* What the named software, or each of the axis' several, has of a path, each value once; *title: the software's, or NULL
 * where several are named. NULL: nobody looked it up for one of them, or an error. */
struct node *framework_values(struct builder *builder, const char *path, const char **title);

/* The mapping without a key. */
struct node *space_without(struct arena *arena, const struct node *mapping, const char *key);
/* Where the file names no software, all configurations get the same: the search compares configurations, not
 * frameworks. It is the usual software of a pipeline. Where no configuration may have a pipeline or a tensor group, and
 * where the scenario's ZeRO divides gradients too, it is the usual software of that ZeRO stage. Only where ZeRO alone
 * is searched, each configuration has the usual software of its stage, as in 'dtsim run'. Returns the root as it is, or
 * with that software. */
struct node *space_with_software(struct space *space, struct node *root, const struct plan_question *question);

/* Adds what axes must keep together, and what the software's release cannot run, as far as the axes and what the scenario
 * says tell. -1: a software file cannot be read. */
int add_rules(struct builder *builder);

#endif
