/* Which values the framework leaves an axis. */
#include <string.h>

#include "plan/space_internal.h"
#include "software/software.h"

/* The names: those of the axis, or the scenario's, or what most people run who have a pipeline. */
static const struct node *software_names(struct builder *builder)
{
    const struct node *root = builder->facts->root, *said = node_at(root, "software.like");
    struct node *one = node_sequence(builder->arena);

    if (has_axis(builder, "software"))
        return node_get(builder->grid, "software");
    if (!said && node_get(root, "software") && node_get(root, "software")->kind == NODE_SCALAR)
        said = node_get(root, "software");
    if (said || builder->facts->transformer)
        node_append(builder->arena, one, said ? (struct node *)(uintptr_t)said :
                    node_scalar(builder->arena, "megatron-core", false));
    return one;
}

static void add_new(struct builder *builder, struct node *values, struct node *value)
{
    for (size_t i = 0; i < values->count; i++)
        if (!strcmp(values->items[i]->text, value->text))
            return;
    node_append(builder->arena, values, value);
}

struct node *framework_values(struct builder *builder, const char *path, const char **title)
{
    const struct node *names = software_names(builder);
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
