#include "sweep/points.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "expression/expression.h"
#include "scenario/scenario.h"

/* What stands under `sweep`, before it is understood. */
struct keep { const struct node *node; };
struct sections {
    const struct node *node;
    struct keep grid, zip, let, where, include, exclude;
    struct sample { const struct node *node; int n, seed; } sample;
};

static int keep(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct keep *)object)->node = value;
    return 0;
}

static const struct field sample_fields[] = {
    {KEY(sample, n), .kind = FIELD_INT, .min = 1, .max = POINTS_LOOKED, .required = true,
     .brief = "number of points; all where fewer remain"},
    {KEY(sample, seed), .kind = FIELD_INT, .min = 0, .max = INT_MAX, .fallback = "1",
     .brief = "another seed draws others"},
};
static const struct table sample_table = {
    TABLE("sweep: sample", "points drawn at random", sample, sample_fields),
    .shorthand = "n",
};
static const struct table keep_table = {.name = "sweep", .brief = "paths", .size = sizeof(struct keep)};
#define SECTION(name, help) \
    {KEY(sections, name), .kind = FIELD_RECORD, .table = &keep_table, \
     .load = keep, .brief = help}
static const struct field sections_fields[] = {
    SECTION(grid, "PATH: VALUES; every combination of values is a point, the last path varies the fastest"),
    SECTION(zip, "PATH: VALUES, or a list of such mappings; the paths of one take their values together"),
    SECTION(let, "PATH: EXPRESSION; a path, or a name of your own, that follows from others"),
    SECTION(where, "an expression or a list; points for which one is false are dropped"),
    SECTION(include, "a list of PATH: VALUE; further points, which where and exclude do not drop"),
    SECTION(exclude, "a list of PATH: VALUE, or of expressions; points that have all values, or for which one is true, "
                     "are dropped"),
    {KEY(sections, sample), .kind = FIELD_RECORD, .table = &sample_table,
     .brief = "number of points, drawn at random from those that remain"},
};
const struct table points_table = {TABLE("sweep", "which scenarios", sections, sections_fields)};

struct reader {
    struct arena *arena;
    const char *file;
    struct points *points;
    size_t nderived;             /* read so far; their numbers are reserved before the first is */
    bool derives;                /* an expression of `let` is being read */
    const char **paths;          /* for suggestions; NULL: not listed yet */
    struct error *err;
};

#define FAIL(reader, loc, ...) error_add((reader)->err, EXIT_INPUT, loc, __VA_ARGS__)

/* Whether one path leads through the other: both cannot be set. */
static bool leads_through(const char *path, const char *other)
{
    size_t length = strlen(path);

    return !strncmp(path, other, length) && other[length] == '.';
}

/* The number of an axis or of a derived value in expressions; -1: the sweep sets no such path. */
static int number_of(const struct reader *reader, const char *name)
{
    for (size_t i = 0; i < reader->points->axes.count; i++)
        if (!strcmp(reader->points->axes.items[i].name, name))
            return (int)i;
    for (size_t i = 0; i < reader->nderived; i++)
        if (!strcmp(reader->points->derived[i].name, name))
            return (int)(reader->points->axes.count + i);
    return -1;
}

static const char *set_name(const struct reader *reader, size_t i)
{
    size_t axes = reader->points->axes.count;

    return i < axes ? reader->points->axes.items[i].name : i - axes < reader->nderived ?
           reader->points->derived[i - axes].name : NULL;
}

/* A name that is set must be set once, and no path inside another. */
static int name_check(struct reader *reader, const char *what, const char *name, struct loc loc)
{
    const char *other;

    if (axis_name_check(what, name, loc, reader->err))
        return -1;
    for (size_t i = 0; (other = set_name(reader, i)); i++) {
        if (!strcmp(other, name))
            return FAIL(reader, loc, "%s: '%s' is set twice", what, name);
        if (leads_through(other, name) || leads_through(name, other))
            return FAIL(reader, loc, "%s: '%s' and '%s' cannot both be set, as one is a part of the other", what, name,
                        other);
    }
    return 0;
}

static int expected(struct reader *reader, const char *what, const struct node *node, const char *form)
{
    char shown[CLIP_SIZE];

    if (node->kind == NODE_SCALAR && !node_is_null(node))
        return FAIL(reader, node->loc, "sweep: %s: expected %s, found '%s'", what, form,
                    text_clip(node->text, shown, sizeof shown));
    return FAIL(reader, node->loc, "sweep: %s: expected %s, found %s", what, form,
                node->kind == NODE_SEQUENCE ? "a list" : node->kind == NODE_MAPPING ? "a mapping" : "nothing");
}

/* Adds the axis of a mapping's key. */
static int read_axis(struct reader *reader, const char *what, const struct node *node, size_t i)
{
    struct axis axis;

    if (name_check(reader, what, node->keys[i], node->key_locs[i]) ||
        axis_read(reader->arena, what, node->keys[i], node->key_locs[i], node->items[i], &axis, reader->err))
        return -1;
    *GROW(&reader->points->axes) = axis;
    return 0;
}

/* The axes of a mapping, each alone. */
static int read_grid(struct reader *reader, const struct node *node)
{
    int rc = 0;

    if (node->kind != NODE_MAPPING)
        return expected(reader, "grid", node, "a mapping such as {strategy.tensor: [1, 2, 4]}");
    for (size_t i = 0; i < node->count; i++) {
        size_t first = reader->points->axes.count;

        if (read_axis(reader, "sweep: grid", node, i))
            rc = -1;
        else
            *GROW(&reader->points->zips) = (struct zip){first, 1, reader->points->axes.items[first].count};
    }
    return rc;
}

/* The axes of a mapping, together. */
static int read_zip(struct reader *reader, const struct node *node)
{
    struct points *points = reader->points;
    struct zip zip = {points->axes.count, 0, 0};
    int rc = 0;

    if (node->kind != NODE_MAPPING || !node->count)
        return expected(reader, "zip", node, "a mapping such as {cluster.nodes: [8, 16], batch.global: [512, 1024]}");
    for (size_t i = 0; i < node->count; i++) {
        const struct axis *axis;

        if (read_axis(reader, "sweep: zip", node, i)) {
            rc = -1;
            continue;
        }
        axis = &points->axes.items[points->axes.count - 1];
        if (zip.count++ && axis->count != zip.length)
            rc = FAIL(reader, node->items[i]->loc, "sweep: zip: %s: %zu values, '%s' has %zu; expected as many",
                      axis->name, axis->count, points->axes.items[zip.first].name, zip.length);
        zip.length = axis->count;
    }
    *GROW(&points->zips) = zip;
    return rc;
}

static int read_zips(struct reader *reader, const struct node *node)
{
    int rc = 0;

    if (node->kind != NODE_SEQUENCE)
        return read_zip(reader, node);
    for (size_t i = 0; i < node->count; i++)
        rc = read_zip(reader, node->items[i]) ? -1 : rc;
    return rc;
}

/* names: find. A path that the sweep does not set has the base's value where that is written and nothing on the way to
 * it changes; else it follows from the point's whole scenario. */
static int find_name(void *context, const char *name, const char **why)
{
    struct reader *reader = context;
    struct points *points = reader->points;
    const struct node *node = node_at(points->base, name);
    int number = number_of(reader, name);
    const char *other;
    struct looked_up lookup = {.path = name, .resolved = !node || node->kind != NODE_SCALAR || node_is_null(node)};

    if (number >= 0 || !scenario_field(name))
        return number;
    for (size_t i = 0; (other = set_name(reader, i)); i++)
        lookup.resolved |= leads_through(other, name) || leads_through(name, other);
    if (lookup.resolved && reader->derives) {
        *why = "is not written in the base, and 'let' is worked out before defaults are; expected a value in the base, "
               "in the grid, or in a 'let' above";
        return -1;
    }
    if (!lookup.resolved)
        lookup.value = path_value(name, node);
    *GROW(&points->lookups) = lookup;
    return (int)(reader->points->axes.count + points->nderived + points->lookups.count - 1);
}

/* names: at */
static const char *name_at(size_t i, const void *context)
{
    struct reader *reader = (struct reader *)(uintptr_t)context;
    size_t set = reader->points->axes.count + reader->nderived;

    if (!reader->paths)
        reader->paths = path_list(reader->arena);
    return i < set ? set_name(reader, i) : reader->paths[i - set];
}

static int read_expression(struct reader *reader, const char *what, const struct node *node,
                           struct expression **expression)
{
    struct expression_text text = {arena_printf(reader->arena, "sweep: %s", what), node->text, node->loc, reader->file};
    const struct names names = {find_name, name_at, reader};

    if (node->kind != NODE_SCALAR || node_is_null(node))
        return expected(reader, what, node, "an expression");
    return expression_parse(reader->arena, &text, &names, expression, reader->err);
}

/* One after another: an expression sees those above it. */
static int read_let(struct reader *reader, const struct node *node)
{
    struct points *points = reader->points;
    int rc = 0;

    if (node->kind != NODE_MAPPING)
        return expected(reader, "let", node, "a mapping such as {strategy.data: 64 / strategy.tensor}");
    points->derived = ARENA_ARRAY(reader->arena, struct derived, node->count);
    points->nderived = node->count;
    reader->derives = true;
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->keys[i];
        struct derived derived = {name, node->key_locs[i], path_meant(name), NULL};

        if (name_check(reader, "sweep: let", name, derived.loc) ||
            read_expression(reader, arena_printf(reader->arena, "let: %s", name), node->items[i], &derived.expression))
            rc = -1;
        else
            points->derived[reader->nderived++] = derived;
    }
    reader->derives = false;
    return rc;
}

/* Values that a point must have to be dropped. */
static int read_values(struct reader *reader, const struct node *node)
{
    struct constraint constraint = {.count = node->count};
    const char *text = "";

    constraint.names = ARENA_ARRAY(reader->arena, size_t, node->count);
    constraint.nodes = ARENA_ARRAY(reader->arena, const struct node *, node->count);
    for (size_t i = 0; i < node->count; i++) {
        int number = number_of(reader, node->keys[i]);

        if (number < 0)
            return FAIL(reader, node->key_locs[i], "sweep: exclude: the sweep does not set '%s'; expected a path of "
                        "the grid, a zip or 'let'", node->keys[i]);
        if (path_values_check("sweep: exclude", node->keys[i], node->items[i], reader->err))
            return -1;
        constraint.names[i] = (size_t)number;
        constraint.nodes[i] = node->items[i];
        text = arena_printf(reader->arena, "%s%s%s: %s", text, i ? ", " : "", node->keys[i],
                            node->items[i]->text ? node->items[i]->text : "...");
    }
    constraint.text = text;
    *GROW(&reader->points->constraints) = constraint;
    return 0;
}

static int read_constraint(struct reader *reader, const char *what, const struct node *node, bool drops)
{
    struct constraint constraint = {.text = node->text, .drops = drops};

    if (drops && node->kind == NODE_MAPPING && node->count)
        return read_values(reader, node);
    if (read_expression(reader, what, node, &constraint.expression))
        return -1;
    *GROW(&reader->points->constraints) = constraint;
    return 0;
}

static int read_constraints(struct reader *reader, const char *what, const struct node *node, bool drops)
{
    int rc = 0;

    if (node->kind != NODE_SEQUENCE)
        return read_constraint(reader, what, node, drops);
    for (size_t i = 0; i < node->count; i++)
        rc = read_constraint(reader, what, node->items[i], drops) ? -1 : rc;
    return rc;
}

static int read_included(struct reader *reader, const struct node *node, struct included *included)
{
    int rc = 0;

    if (node->kind != NODE_MAPPING || !node->count)
        return expected(reader, "include", node, "a mapping such as {strategy.tensor: 8, strategy.pipeline: 12}");
    *included = (struct included){ARENA_ARRAY(reader->arena, struct axis, node->count), node->count};
    for (size_t i = 0; i < node->count; i++) {
        struct node *value = node_sequence(reader->arena);

        value->loc = node->items[i]->loc;
        node_append(reader->arena, value, node->items[i]);
        if (axis_read(reader->arena, "sweep: include", node->keys[i], node->key_locs[i], value, &included->axes[i],
                      reader->err))
            rc = -1;
    }
    return rc;
}

static int read_include(struct reader *reader, const struct node *node)
{
    struct points *points = reader->points;
    int rc = 0;

    if (node->kind != NODE_SEQUENCE)
        return expected(reader, "include", node, "a list of mappings");
    points->included = ARENA_ARRAY(reader->arena, struct included, node->count);
    for (size_t i = 0; i < node->count; i++)
        rc = read_included(reader, node->items[i], &points->included[points->nincluded++]) ? -1 : rc;
    return rc;
}

/* So that every path that is set can be. */
static int open_ways(struct reader *reader)
{
    const struct points *points = reader->points;
    const char *name;
    int rc = 0;

    for (size_t i = 0; (name = set_name(reader, i)); i++)
        rc = field_open(reader->arena, &scenario_table, points->base, name, reader->err) ? -1 : rc;
    for (size_t i = 0; i < points->nincluded; i++)
        for (size_t k = 0; k < points->included[i].count; k++)
            rc = field_open(reader->arena, &scenario_table, points->base, points->included[i].axes[k].name,
                            reader->err) ? -1 : rc;
    return rc;
}

/* Sections in the order in which later ones may name what earlier ones set. */
static int read_sections(struct reader *reader, const struct sections *sections)
{
    int rc = 0;

    if (sections->grid.node && read_grid(reader, sections->grid.node))
        rc = -1;
    if (sections->zip.node && read_zips(reader, sections->zip.node))
        rc = -1;
    if (sections->let.node && read_let(reader, sections->let.node))
        rc = -1;
    if (sections->include.node && read_include(reader, sections->include.node))
        rc = -1;
    if (rc || open_ways(reader))
        return -1;
    if (sections->where.node && read_constraints(reader, "where", sections->where.node, false))
        rc = -1;
    if (sections->exclude.node && read_constraints(reader, "exclude", sections->exclude.node, true))
        rc = -1;
    return rc;
}

int points_read(struct arena *arena, const struct node *node, const char *file, struct node *base, const char *name,
                struct points *points, struct error *err)
{
    struct reader reader = {.arena = arena, .file = file, .points = points, .err = err};
    struct sections sections;
    int rc;

    *points = (struct points){.base = base, .name = name, .loc = node ? node->loc : base->loc};
    rc = field_parse(arena, &points_table, node, &sections, err) || read_sections(&reader, &sections) ? -1 : 0;
    points->sample = sections.sample.n;
    points->seed = sections.sample.seed;
    return rc;
}
