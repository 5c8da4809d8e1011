#include "sweep/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "files/data.h"
#include "run/metrics.h"
#include "scenario/scenario.h"
#include "sweep/paths.h"

enum { TOP = 10 };               /* rows of the table at the end, unless the file says otherwise */

static int keep(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    *(const struct node **)object = value;
    return 0;
}

/* Metrics and whether they are to be small or large. */
static int keep_objectives(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    int rc = 0;

    (void)arena;
    *(const struct node **)object = value;
    if (value->kind != NODE_MAPPING || !value->count)
        return error_add(err, EXIT_INPUT, value->loc, "report: objectives: expected a mapping such as "
                         "{iteration_time_s: min}");
    for (size_t i = 0; i < value->count; i++) {
        const char *text = value->items[i]->text;

        if (!text || (strcmp(text, "min") && strcmp(text, "max")))
            rc = error_add(err, EXIT_INPUT, value->items[i]->loc, "report: objectives: %s: expected min or max",
                           value->keys[i]);
        if (!metric_find(value->keys[i]))
            rc = error_add(err, EXIT_INPUT, value->key_locs[i], "report: objectives: unknown metric '%s'; expected one "
                           "of result.json, such as iteration_time_s", value->keys[i]);
    }
    return rc;
}

static const struct table objectives_table = {.name = "report", .brief = "metrics", .size = sizeof(struct node *)};
static const struct field report_fields[] = {
    {KEY(sweep_report, objectives), .kind = FIELD_RECORD, .table = &objectives_table, .load = keep_objectives,
     .brief = "METRIC: min or max; the first orders the table at the end, several give their Pareto front"},
    {KEY(sweep_report, top), .kind = FIELD_INT, .min = 1, .max = 1000000, .fallback = "10",
     .brief = "rows of the table at the end"},
};
static const struct table report_table = {TABLE("report", "the table at the end", sweep_report, report_fields)};

static const struct field sweep_fields[] = {
    {KEY(sweep, base), .kind = FIELD_RECORD, .table = &scenario_table, .load = keep, .required = true,
     .brief = "the scenario that the points change, or the path of its file"},
    {KEY(sweep, sweep), .kind = FIELD_RECORD, .table = &points_table, .load = keep, .brief = "the points"},
    {KEY(sweep, report), .kind = FIELD_RECORD, .table = &report_table, .brief = "the table at the end"},
    {KEY(sweep, verify), .kind = FIELD_INT, .max = 1000000, .fallback = "0",
     .brief = "number of best points by the first objective which, with all that tie with them, run on simgrid too"},
};
const struct table sweep_table = {TABLE("sweep", "many scenarios", sweep, sweep_fields)};

/* What stands behind '=' is a list. One generator is meant itself (--set a={pow2: [1, 8]}), and so is one list where
 * the path takes no list (--set a=[1, 2]). */
static struct node *set_values(struct node *list, const char *name)
{
    const struct field *field = scenario_field(name);
    bool takes_list = field && (field->kind == FIELD_LIST || field->kind == FIELD_CHOICES || field->kind == FIELD_INTS);

    if (list->count == 1 && (axis_generates(list->items[0]) || (list->items[0]->kind == NODE_SEQUENCE && !takes_list)))
        return list->items[0];
    return list;
}

/* What --set says is written into the grid: {grid: {PATH: [VALUES]}}. */
static int add_set(struct arena *arena, struct node *section, const char *set, struct error *err)
{
    struct node *root = node_mapping(arena), *grid = node_get(section, "grid"), *values;
    const char *equals = strchr(set, '='), *name;
    struct loc loc = conf_set_place(arena, set);

    if (!equals || equals == set)
        return error_add(err, EXIT_USAGE, loc, "expected PATH=VALUES such as strategy.tensor=1,2,4");
    if (conf_set(arena, root, arena_printf(arena, "%.*s=[%s]", (int)(equals - set), set, equals + 1), err))
        return -1;
    name = arena_strndup(arena, set, (size_t)(equals - set));
    values = set_values(node_at(root, name), name);
    values->loc = loc;
    if (grid && grid->kind != NODE_MAPPING)
        return 0;                /* which is refused soon */
    if (!grid) {
        grid = node_mapping(arena);
        grid->loc = loc;
        node_put(arena, section, "grid", grid);
    }
    node_put(arena, grid, name, values);
    return 0;
}

/* The text of the file, where it can be read again: the columns of expressions follow from it. */
static int copy_text(struct arena *arena, const char *path, const char **copy, struct error *err)
{
    struct stat status;
    size_t length;
    char *text;

    *copy = NULL;
    if (stat(path, &status))
        return errno == ENOENT ? 0 : error_system(err, (struct loc){.file = path}, "cannot find out what it is");
    if (!S_ISREG(status.st_mode))
        return 0;
    text = file_read(path, "sweep file", CONF_MAX_BYTES, (struct loc){0}, &length, err);
    if (!text)
        return -1;
    *copy = arena_strdup(arena, text);
    free(text);
    return 0;
}

static int load_base(struct sweep *sweep, struct node **base, struct error *err)
{
    struct arena *arena = &sweep->arena;
    const struct node *tree = sweep->base;

    if (tree->kind == NODE_SCALAR && !node_is_null(tree)) {
        const char *path = data_relative(arena, (struct loc){.file = sweep->file}, sweep->base->text, err);

        if (!path || conf_shared(arena, path, &tree, err))
            return -1;
        sweep->name = data_stem(arena, path);
    }
    *base = ARENA_ARRAY(arena, struct node, 1);
    **base = *tree;
    if ((*base)->kind == NODE_MAPPING)
        return 0;
    return error_add(err, EXIT_INPUT, (*base)->loc, "sweep: base: expected a scenario, or the path of its file");
}

/* The mapping under `sweep` and what the command line adds to it. */
static int read_section(struct sweep *sweep, const struct node *root, const char *const *sets, size_t nsets,
                        const struct node **section, struct error *err)
{
    struct arena *arena = &sweep->arena;
    struct node *changed = node_mapping(arena);
    const struct node *grid;

    *section = sweep->sweep;
    if (sweep->sweep && sweep->sweep->kind != NODE_MAPPING)
        return 0;                /* which is refused soon */
    changed->loc = root->loc;
    if (sweep->sweep)
        changed = node_merge(arena, changed, sweep->sweep);
    grid = node_get(changed, "grid");
    if (grid && grid->kind == NODE_MAPPING)
        node_put(arena, changed, "grid", node_merge(arena, node_mapping(arena), grid));
    for (size_t i = 0; i < nsets; i++)
        if (add_set(arena, changed, sets[i], err))
            return -1;
    *section = changed;
    return 0;
}

int sweep_load(const char *path, const char *const *sets, size_t nsets, struct progress *progress, struct sweep *sweep,
               struct error *err)
{
    const struct node *section;
    const char *text;
    struct node *root, *base;
    struct arena arena = {.progress = progress};
    int rc = scenario_tree(&arena, path, &root, err);

    memset(sweep, 0, sizeof *sweep);
    if (!rc && (node_get(root, "base") || node_get(root, "sweep")))
        rc = field_parse(&arena, &sweep_table, root, sweep, err);
    else if (!rc)
        sweep->base = root;
    sweep->arena = arena;
    sweep->file = path;
    sweep->stem = sweep->name = strcmp(path, "-") ? data_stem(&sweep->arena, path) : "stdin";
    if (!sweep->report.top)
        sweep->report.top = TOP;
    if (rc || read_section(sweep, root, sets, nsets, &section, err) || load_base(sweep, &base, err) ||
        paths_check(base, err) || copy_text(&sweep->arena, path, &text, err))
        return -1;
    return points_read(&sweep->arena, section, text, base, sweep->name, &sweep->points, err);
}

int sweep_is(const char *path, struct progress *progress, bool *is, struct error *err)
{
    struct arena arena = {.progress = progress};
    struct node *root = NULL;
    int rc = strcmp(path, "-") ? scenario_tree(&arena, path, &root, err) : 0;

    *is = root && node_get(root, "sweep");
    arena_release(&arena);
    return rc;
}

void sweep_release(struct sweep *sweep)
{
    points_release(&sweep->points);
    arena_release(&sweep->arena);
    memset(sweep, 0, sizeof *sweep);
}
