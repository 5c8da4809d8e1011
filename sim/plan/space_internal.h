/* What the parts of a space share while it is built: facts of the scenario, axes (space_axes.c), rules (space_rules.c). */
#ifndef DTSIM_SPACE_INTERNAL_H
#define DTSIM_SPACE_INTERNAL_H

#include "plan/space.h"

/* What the rules know of the scenario. */
struct facts {
    const struct node *root;
    int layers, heads, kv_heads, experts;    /* 1 where the model has none */
    int per_node, nodes;                     /* GPUs of a node, the fewest; 0 nodes: the cluster does not say how many */
    int in_parts;                            /* the GPUs of a cluster that says `parts`; else 0 */
    int batch;                               /* samples an iteration; 0: not said */
    bool transformer;
};

/* What is built: the section of a sweep, and the words for it. */
struct builder {
    struct arena *arena;
    const struct facts *facts;
    const struct plan_question *question;
    const struct search_spec *asked;         /* by the scenario's own `plan` */
    struct node *grid, *where;
    struct { struct space_axis *items; size_t count, capacity; } axes;
    struct { struct space_rule *items; size_t count, capacity; } rules;
    struct error *err;
};

static inline bool has_axis(const struct builder *builder, const char *path)
{
    return node_get(builder->grid, path) != NULL;
}

/* An axis that has an `auto`. One of numbers has a function, another one a list of words. `usual`: searched where nobody
 * names an axis and the scenario does not say it. */
enum { NUMBERS = 64 };           /* values of an axis */
struct numbers { int items[NUMBERS]; int count; };
struct automatic {
    const char *path;
    struct numbers (*values)(const struct facts *facts);
    const char *words;
    const char *why;
    struct numbers (*asked)(const struct facts *facts);      /* where a person asks for this axis by name; NULL: the same */
    const char *asked_why;
    bool usual;
    bool framework;              /* the values are those that the framework's release has, where that is known */
};
const struct automatic *automatic_at(size_t i);          /* NULL past the last */
const struct automatic *automatic_of(const char *path);  /* NULL: it has none */

/* What the named software, or each of the axis' several, has of a path, each value once; *title: the software's, or NULL
 * where several are named. NULL: nobody looked it up for one of them, or an error. */
struct node *framework_values(struct builder *builder, const char *path, const char **title);

/* The mapping without a key. */
struct node *space_without(struct arena *arena, const struct node *mapping, const char *key);
/* Where nobody names a software, all configurations have one: what is compared are they, not frameworks. It is what most
 * people run who have a pipeline; where none may have a pipeline or a tensor group, and where the scenario's ZeRO divides
 * gradients too, the software of that. Only where ZeRO alone is searched each has that of its stage, as 'dtsim run' does.
 * The root as it is, or with that software. */
struct node *space_with_software(struct space *space, struct node *root, const struct plan_question *question);

/* Adds what axes must keep together. */
void add_rules(struct builder *builder);

#endif
