/* What the parts of a space share while it is built (space_builder.c): axes (space.c, space_framework.c) and rules
 * (space_rules.c). */
#ifndef DTSIM_SPACE_INTERNAL_H
#define DTSIM_SPACE_INTERNAL_H

#include "plan/space.h"
#include "run/automatic_axis.h"

/* An axis as a person names it. */
struct named_axis { const char *path; struct node *values; struct loc loc; };

/* What the model, the cluster and the batch are in some points of the space. */
struct variant {
    struct facts facts;
    const char *condition;                   /* the expression of these points, by the axes of the cluster; NULL: all points,
                                                or a value is no word or number */
};

/* What is built: the section of a sweep, and the words for it. */
struct builder {
    struct arena *arena;
    struct node *root;                       /* the scenario */
    const struct facts *facts;               /* of the first variant */
    struct { struct named_axis *items; size_t count, capacity; } named;
    struct { struct variant *items; size_t count, capacity; } variants;      /* one where no axis changes them */
    bool same_nodes, same_count, same_layers;    /* all points have nodes of as many GPUs, or the same parts; have as
                                                many nodes, where no axis says these; have as many layers */
    const struct plan_question *question;
    const struct search_spec *asked;         /* by the scenario's own `plan` */
    const struct node *gpus;                 /* numbers of GPUs that are asked for; NULL: none */
    struct node *grid, *where;
    struct { struct space_axis *items; size_t count, capacity; } axes;
    struct { struct space_rule *items; size_t count, capacity; } rules;
    struct error *err;
};

static inline bool has_axis(const struct builder *builder, const char *path)
{
    return node_get(builder->grid, path) != NULL;
}

/* Whether an axis other than the path itself may change the value there: one above it, or one below it. */
bool axes_change(const struct builder *builder, const char *path);
void add_axis(struct builder *builder, const char *path, struct node *values, const char *why);
__attribute__((format(printf, 3, 4)))
void add_rule(struct builder *builder, const char *why, const char *format, ...);

/* Finds the variants by the axes that are named. -1: the model or the cluster cannot be read in any of them. */
int find_variants(struct builder *builder);
/* The automatic values of all variants. */
struct node *variants_values(struct builder *builder, const struct automatic *automatic, bool asked);
/* Adds a value that the list does not have. */
void add_new(struct builder *builder, struct node *values, struct node *value);

/* Adds the axis of numbers of nodes for numbers of GPUs, or `auto`; and of the numbers up to the cluster's. */
int add_gpus(struct builder *builder, const struct node *gpus);
void add_all_gpus(struct builder *builder);

/* The named axis of that path; NULL: there is none. */
const struct named_axis *named_axis(const struct builder *builder, const char *path);
/* Whether a person names a choice of the layout: several values or `auto` of a strategy's key, or of one that has an auto.
 * One value is no choice but holds what it names, and machines, precisions or models are what layouts are asked for. */
bool names_search(const struct builder *builder);

/* The axis that names the software; NULL: none does. */
const char *framework_axis(const struct builder *builder);
/* The names of the software: of the axis, or the scenario's, or the assumed one; empty: there is none. */
const struct node *framework_names(struct builder *builder);
/* What the named software, or each of the axis' several, has of a path, each value once; *title: the software's, or NULL
 * where several are named. NULL: nobody looked it up for one of them, or an error. */
struct node *framework_values(struct builder *builder, const char *path, const char **title);

/* The mapping without a key. */
struct node *space_without(struct arena *arena, const struct node *mapping, const char *key);
/* The scenario without a number of replicas that follows from its nodes and other degrees, as an import says it: axes may change
 * these. */
struct node *space_without_data(struct arena *arena, struct node *root);
/* Where the file names no software, all configurations get the same: the search compares configurations, not
 * frameworks. It is the usual software of a pipeline. Where no configuration may have a pipeline or a tensor group, and
 * where the scenario's ZeRO divides gradients too, it is the usual software of that ZeRO stage. Only where ZeRO alone
 * is searched, each configuration has the usual software of its stage, as in 'dtsim run'. Returns the root as it is, or
 * with that software. */
struct node *space_with_software(struct space *space, const struct builder *builder);

/* Whether the framework's files list the path among their default axes or, where none lists any, it is a usual one; *values:
 * a list of their own, or NULL. -1: a file cannot be read. */
int framework_searches(struct builder *builder, const struct automatic *automatic, struct node **values);

/* Adds what axes must keep together, and what the software's release cannot run, as far as the axes and what the scenario
 * says tell. -1: a software file cannot be read. */
int add_rules(struct builder *builder);
/* Has them asked of the points, after the section's own constraints. */
void ask_rules(const struct space *space, struct points *points);

#endif
