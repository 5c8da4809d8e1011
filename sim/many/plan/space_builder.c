/* A space while it is built: its axes and rules; what the model, the cluster and the batch are in its points, as axes may
 * change them; numbers of GPUs as numbers of nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "plan/space_internal.h"
#include "run/automatic_axis.h"
#include "run/facts.h"
#include "sweep/paths.h"
#include "sweep/points.h"

enum { VARIANTS_MOST = 256 };    /* that are looked at; of more than that nothing is the same in all */

void add_axis(struct builder *builder, const char *path, struct node *values, const char *why)
{
    node_put(builder->arena, builder->grid, path, values);
    *GROW(&builder->axes) = (struct space_axis){path, node_flow(builder->arena, values), why, values->kind != NODE_SEQUENCE || values->count > 1};
}

void add_rule(struct builder *builder, const char *why, const char *format, ...)
{
    va_list arguments;
    char text[2000];

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *GROW(&builder->rules) = (struct space_rule){.why = why, .expression = arena_strdup(builder->arena, text)};
    node_append(builder->arena, builder->where, node_scalar(builder->arena, arena_strdup(builder->arena, text), true));
}

/* Whether the path stands in the text, as a whole. */
static bool names_path(const char *text, const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789.";
    size_t length = strlen(path);
    const char *at = text;

    while ((at = strstr(at, path)) && (strspn(at, letters) != length || (at > text && strchr(letters, at[-1]))))
        at += length;
    return at;
}

bool axes_are_ours(const struct space_axis *axes, size_t count, const char *text)
{
    static const char software[] = "software.";
    char said[128];

    for (size_t i = 0; i < count; i++) {
        bool switches = !strncmp(axes[i].path, software, sizeof software - 1);

        /* conditions of a release know its switches as what they are in a strategy */
        snprintf(said, sizeof said, "strategy.%s", axes[i].path + (switches ? sizeof software - 1 : 0));
        if (axes[i].why && (names_path(text, axes[i].path) || (switches && names_path(text, said))))
            return true;
    }
    return false;
}

/* Whether the path leads through the other one. */
static bool is_above(const char *above, const char *path)
{
    size_t length = strlen(above);

    return !strncmp(above, path, length) && path[length] == '.';
}

bool axes_change(const struct builder *builder, const char *path)
{
    for (size_t i = 0; i < builder->grid->count; i++)
        if (is_above(builder->grid->keys[i], path) || is_above(path, builder->grid->keys[i]))
            return true;
    return false;
}

/* Whether the path is that part of the scenario, or in it. */
static bool is_of(const char *path, const char *part)
{
    return !strcmp(path, part) || is_above(part, path);
}

bool plan_is_hardware(const char *path)
{
    const char *dot = strrchr(path, '.');

    return is_of(path, "cluster") && !(dot && !strcmp(dot, ".nodes"));
}

/* The named axes that the facts follow from, but for the number of nodes, which rules and lists take as an axis. */
static struct node *axes_of_facts(const struct builder *builder)
{
    struct node *grid = node_mapping(builder->arena);

    grid->loc = builder->root->loc;
    for (size_t i = 0; i < builder->named.count; i++) {
        const struct named_axis *axis = &builder->named.items[i];
        bool is_auto = axis->values->kind == NODE_SCALAR && !strcmp(axis->values->text, "auto");

        if (is_auto || !strcmp(axis->path, "cluster.nodes") || (axis->values->kind == NODE_SEQUENCE && !axis->values->count))
            continue;
        if (is_of(axis->path, "model") || is_of(axis->path, "cluster") || !strcmp(axis->path, "batch.global")) {
            node_put(builder->arena, grid, axis->path, axis->values);
            grid->key_locs[grid->count - 1] = axis->loc;
        }
    }
    return grid;
}

/* The point's values of the cluster, as an expression; NULL: none, or one is no word or number. */
static const char *condition_of(struct builder *builder, const struct point *point)
{
    const char *text = NULL;

    for (size_t i = 0; i < point->count; i++) {
        const char *path = point->items[i].name, *before = text ? arena_printf(builder->arena, "%s && ", text) : "";
        struct value value = path_value(path, point->items[i].node);

        if (!is_of(path, "cluster"))
            continue;
        if (value.kind == VALUE_TEXT && !strchr(value.text, '\''))
            text = arena_printf(builder->arena, "%s%s == '%s'", before, path, value.text);
        else if (value.kind == VALUE_NUMBER)
            text = arena_printf(builder->arena, "%s%s == %.17g", before, path, value.number);
        else
            return NULL;
    }
    return text;
}

/* Adds the facts of a point. -1: its model or its cluster is refused. */
static int add_variant(struct builder *builder, const struct points *points, uint64_t number, struct error *err)
{
    struct point point;
    struct variant variant = {0};

    if (point_make(points, number, builder->arena, &point, err) ||
        facts_find(builder->arena, point.root, "plan", &variant.facts, err))
        return -1;
    variant.facts.root = builder->root;
    variant.condition = condition_of(builder, &point);
    *GROW(&builder->variants) = variant;
    return 0;
}

/* What is the same in all variants. */
static void compare(struct builder *builder, bool all)
{
    const struct facts *first = builder->facts = &builder->variants.items[0].facts;

    builder->same_nodes = builder->same_count = builder->same_layers = all;
    for (size_t i = 1; i < builder->variants.count; i++) {
        const struct facts *facts = &builder->variants.items[i].facts;

        builder->same_nodes &= facts->per_node == first->per_node && facts->in_parts == first->in_parts;
        builder->same_count &= facts->nodes == first->nodes;
        builder->same_layers &= facts->layers == first->layers && facts->transformer == first->transformer;
    }
}

int find_variants(struct builder *builder)
{
    struct node *section = node_mapping(builder->arena), *grid = axes_of_facts(builder);
    struct points points;
    uint64_t count;
    int rc;

    section->loc = builder->root->loc;
    node_put(builder->arena, section, "grid", grid);
    rc = points_read(builder->arena, grid->count ? section : NULL, NULL, builder->root, "plan", &points, builder->err);
    count = rc ? 0 : points_combinations(&points);
    for (uint64_t i = 0; i < count && i < VARIANTS_MOST && !rc; i++) {
        struct error refused = {0};

        if (add_variant(builder, &points, i, &refused))
            rc = error_pass_system(&refused, builder->err);
        error_release(&refused);
    }
    if (!rc && !builder->variants.count)
        rc = add_variant(builder, &points, 0, builder->err);         /* for its messages */
    points_release(&points);
    if (!rc)
        compare(builder, count <= VARIANTS_MOST);
    return rc;
}

void add_new(struct builder *builder, struct node *values, struct node *value)
{
    for (size_t i = 0; i < values->count; i++)
        if (!strcmp(values->items[i]->text, value->text))
            return;
    node_append(builder->arena, values, value);
}

static int by_number(const void *left, const void *right)
{
    const struct node *a = *(struct node *const *)left, *b = *(struct node *const *)right;

    return atoi(a->text) - atoi(b->text);
}

struct node *variants_values(struct builder *builder, const struct automatic *automatic, bool asked)
{
    struct node *values = node_sequence(builder->arena);

    for (size_t v = 0; v < builder->variants.count; v++) {
        struct node *own = automatic_values(builder->arena, automatic, &builder->variants.items[v].facts, asked);

        for (size_t i = 0; i < own->count; i++)
            add_new(builder, values, own->items[i]);
    }
    if (automatic->values)
        array_sort(values->items, values->count, sizeof *values->items, by_number);
    return values;
}

static void add_nodes(struct builder *builder, struct node *nodes, int count)
{
    node_append(builder->arena, nodes, node_scalar(builder->arena, arena_printf(builder->arena, "%d", count), false));
}

/* All numbers of nodes up to 8, then four between one power of two and the next, as people buy them (10, 12, 14, 16, 20),
 * up to the cluster's; up to 128 where it does not say how many it has. */
void add_all_gpus(struct builder *builder)
{
    int nodes = builder->facts->nodes, most = nodes ? nodes : 128, last = 0;
    struct node *values = node_sequence(builder->arena);

    for (int count = 1, step = 1; count <= most; count += step) {
        add_nodes(builder, values, count);
        last = count;
        step = count >= 8 && !(count & (count - 1)) ? count / 4 : step;
    }
    if (last < most)
        add_nodes(builder, values, most);
    values->loc = builder->root->loc;
    add_axis(builder, "cluster.nodes", values, nodes ? "up to the cluster's" : "up to 128");
}

/* Adds the numbers of nodes of that many GPUs, once for each kind of node. -1: these are no whole nodes of any. */
static int add_count(struct builder *builder, struct node *nodes, int count, struct loc loc)
{
    size_t fitting = 0;

    for (size_t v = 0; v < builder->variants.count; v++) {
        int per_node = builder->variants.items[v].facts.per_node;
        const char *text = arena_printf(builder->arena, "%d", count / per_node);

        if (count % per_node)
            continue;
        fitting++;
        add_new(builder, nodes, node_scalar(builder->arena, text, false));
    }
    if (!fitting && builder->same_nodes)
        return error_add(builder->err, EXIT_USAGE, loc, "%d GPUs are no whole nodes of %d; expected a multiple of %d",
                         count, builder->facts->per_node, builder->facts->per_node);
    return fitting ? 0 : error_add(builder->err, EXIT_USAGE, loc, "%d GPUs are no whole nodes of any of the clusters", count);
}

/* Where nodes have different numbers of GPUs, each kind of node goes with its own numbers of nodes. */
static int match_nodes(struct builder *builder, const int *counts, size_t n, struct loc loc)
{
    for (size_t v = 0; v < builder->variants.count; v++) {
        const struct variant *variant = &builder->variants.items[v];
        const char *rule;

        if (!variant->condition)
            return error_add(builder->err, EXIT_USAGE, loc, "nodes have different numbers of GPUs by an axis whose values "
                             "are no words; expected cluster.nodes as an axis instead, such as --set cluster.nodes=8,16");
        rule = arena_printf(builder->arena, "!(%s)", variant->condition);
        for (size_t i = 0; i < n; i++)
            if (counts[i] % variant->facts.per_node == 0)
                rule = arena_printf(builder->arena, "%s || cluster.nodes == %d", rule, counts[i] / variant->facts.per_node);
        add_rule(builder, "nodes of the cluster make the GPUs that are asked for", "%s", rule);
    }
    return 0;
}

/* The numbers of GPUs in the list, or the one that stands alone. */
static int read_counts(struct builder *builder, const struct node *gpus, int *counts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct node *item = gpus->kind == NODE_SCALAR ? gpus : gpus->items[i];
        const char *text = item->kind == NODE_SCALAR ? item->text : "";
        char *end;
        long long count = strtoll(text, &end, 10);

        if (end == text || *end || count < 1 || count > 1000000)
            return error_add(builder->err, EXIT_USAGE, item->loc, "expected numbers of GPUs such as 64,128, found "
                             "'%s'", text);
        counts[i] = (int)count;
    }
    return 0;
}

int add_gpus(struct builder *builder, const struct node *gpus)
{
    bool one = gpus->kind == NODE_SCALAR;
    size_t n = one ? 1 : gpus->count;
    int *counts = ARENA_ARRAY(builder->arena, int, n + 1);
    struct node *nodes = node_sequence(builder->arena);

    for (size_t v = 0; v < builder->variants.count; v++)
        if (builder->variants.items[v].facts.in_parts)
            return error_clash(builder->err, gpus->loc, "plan: gpus: the cluster says 'parts', whose numbers of nodes are "
                               "axes of their own: expected 'cluster.parts.0.nodes: [2, 4]', or no gpus");
    if (gpus->kind == NODE_MAPPING || !n)
        return error_add(builder->err, EXIT_INPUT, gpus->loc, "plan: gpus: expected numbers such as [64, 128], or auto");
    if (n == 1 && (one || gpus->items[0]->kind == NODE_SCALAR) && !strcmp((one ? gpus : gpus->items[0])->text, "auto")) {
        add_all_gpus(builder);
        return 0;
    }
    nodes->loc = gpus->loc;
    if (read_counts(builder, gpus, counts, n))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (add_count(builder, nodes, counts[i], one ? gpus->loc : gpus->items[i]->loc))
            return -1;
    add_axis(builder, "cluster.nodes", nodes, NULL);
    return builder->same_nodes ? 0 : match_nodes(builder, counts, n, gpus->loc);
}
