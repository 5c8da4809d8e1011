/* Which values the framework leaves an axis. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "plan/space_internal.h"
#include "run/automatic_axis.h"
#include "run/facts.h"
#include "scenario/scenario.h"
#include "software/software.h"

const struct named_axis *named_axis(const struct builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->named.count; i++)
        if (!strcmp(builder->named.items[i].path, path))
            return &builder->named.items[i];
    return NULL;
}

bool names_search(const struct builder *builder)
{
    for (size_t i = 0; i < builder->named.count; i++) {
        const struct named_axis *axis = &builder->named.items[i];
        bool one = axis->values->kind == NODE_SEQUENCE ? axis->values->count == 1 :
                   strcmp(axis->values->text ? axis->values->text : "", "auto") != 0 || !automatic_of(axis->path);

        if (!one && (automatic_of(axis->path) || !strncmp(axis->path, "strategy.", strlen("strategy."))))
            return true;
    }
    return false;
}

const char *framework_axis(const struct builder *builder)
{
    return named_axis(builder, "software") ? "software" : named_axis(builder, "software.like") ? "software.like" : NULL;
}

const struct node *framework_names(struct builder *builder)
{
    const struct node *root = builder->root, *said = node_at(root, "software.like");
    struct node *one = node_sequence(builder->arena);
    const char *axis = framework_axis(builder);

    if (axis && named_axis(builder, axis)->values->kind != NODE_SCALAR)
        return named_axis(builder, axis)->values;
    if (axis)
        said = named_axis(builder, axis)->values;
    else if (!said && node_get(root, "software") && node_get(root, "software")->kind == NODE_SCALAR)
        said = node_get(root, "software");
    if (said)
        node_append(builder->arena, one, (struct node *)(uintptr_t)said);
    return one;
}

struct node *framework_values(struct builder *builder, const char *path, const char **title)
{
    const struct node *names = framework_names(builder);
    struct node *values = node_sequence(builder->arena);

    *title = NULL;
    for (size_t i = 0; i < names->count; i++) {
        const struct node *list = NULL, *name = names->items[i];

        if (name->kind != NODE_SCALAR || !strcmp(name->text, "none") ||
            software_list(builder->arena, name->text, name->loc, path, title, &list, builder->err) || !list ||
            list->kind != NODE_SEQUENCE)
            return NULL;
        for (size_t v = 0; v < list->count; v++)
            if (list->items[v]->kind == NODE_SCALAR)
                add_new(builder, values, list->items[v]);
    }
    *title = names->count == 1 ? *title : NULL;
    return values->count ? values : NULL;
}

int framework_searches(struct builder *builder, const struct automatic *automatic, struct node **values)
{
    const struct node *names = framework_names(builder);
    bool listed = false, searched = false;

    *values = NULL;
    for (size_t i = 0; i < names->count && !searched; i++) {
        const struct node *axes = NULL, *name = names->items[i], *own;

        if (name->kind != NODE_SCALAR || !strcmp(name->text, "none"))
            continue;
        if (software_axes(builder->arena, name->text, name->loc, &axes, builder->err))
            return -1;
        own = axes ? node_get(axes, automatic->path) : NULL;
        listed |= axes != NULL;
        searched = own && !node_is_null(own);
        *values = searched && own->kind == NODE_MAPPING ? node_get(own, "values") : NULL;
    }
    return listed ? searched : automatic->usual;
}

struct node *space_without(struct arena *arena, const struct node *mapping, const char *key)
{
    struct node *left = node_mapping(arena);

    left->loc = mapping->loc;
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i], key)) {
            node_put(arena, left, mapping->keys[i], mapping->items[i]);
            left->key_locs[left->count - 1] = mapping->key_locs[i];
        }
    return left;
}

/* Whether the degree may be more than 1, as an axis or as the scenario says. */
static bool may_divide(const struct builder *builder, const char *path, int degree)
{
    const struct named_axis *asked = named_axis(builder, path);

    if (asked)
        return word_in("1 [1]", node_flow(builder->arena, asked->values)) == 0;
    return degree > 1 || (!names_search(builder) && !node_at(builder->root, path));
}

/* The root with that software, whose own values stay. */
static struct node *named(struct arena *arena, const struct node *root, const char *name)
{
    const struct node *own = node_get(root, "software");
    struct node *like = node_scalar(arena, name, false), *software = like, *whole;

    if (own && own->kind == NODE_MAPPING) {
        software = space_without(arena, own, "like");
        node_put(arena, software, "like", like);
    }
    whole = space_without(arena, root, "software");
    node_put(arena, whole, "software", software);
    return whole;
}

struct node *space_with_software(struct space *space, const struct builder *builder)
{
    struct arena *arena = builder->arena;
    struct scenario_common common;
    const char *usual = NULL;

    if (framework_axis(builder))
        return builder->root;
    scenario_common_make(&common, NULL, builder->root);
    if (common.parsed) {
        const struct parallelism *spec = &common.parsed->parallelism;
        bool divides = may_divide(builder, "strategy.tensor", scenario_most_tensor(common.parsed)) ||
                       may_divide(builder, "strategy.pipeline", spec->pipeline);

        usual = scenario_usual_software(common.parsed, divides && spec->zero < 2);
        space->software_by_zero = usual && !divides && named_axis(builder, "strategy.zero");
        space->software = usual && !space->software_by_zero ? arena_strdup(arena, usual) : NULL;
    }
    arena_release(&common.arena);
    return space->software ? named(arena, builder->root, space->software) : builder->root;
}

/* A degree that the tree says; 1: it does not. */
static int degree_of(const struct node *root, const char *path)
{
    const struct node *said = node_at(root, path);

    return said && said->kind == NODE_SCALAR ? atoi(said->text) : 1;
}

struct node *space_without_data(struct arena *arena, struct node *root)
{
    static const char *const owns[] = {"strategy.stages", "strategy.stage_replicas", "strategy.schedule.csv", "cluster.parts"};
    const struct node *strategy = node_get(root, "strategy");
    struct error ignored = {0};
    struct facts facts;
    struct node *whole;
    bool free = node_at(root, "strategy.data") && !facts_find(arena, root, "plan", &facts, &ignored);

    error_release(&ignored);
    for (size_t i = 0; i < COUNT(owns); i++)
        free &= !node_at(root, owns[i]);
    if (!free || (long long)degree_of(root, "strategy.data") * degree_of(root, "strategy.tensor") * degree_of(root, "strategy.pipeline") *
                 degree_of(root, "strategy.context") != (long long)facts.nodes * facts.per_node)
        return root;
    whole = space_without(arena, root, "strategy");
    node_put(arena, whole, "strategy", space_without(arena, strategy, "data"));
    return whole;
}
