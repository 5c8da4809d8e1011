#include "sweep/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf_text.h"
#include "expression/expression.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

enum { PATH_DEPTH = 6 };         /* tables inside one another; a table may hold itself */

bool path_meant(const char *text)
{
    return strchr(text, '.') || field_at(&scenario_table, text, strlen(text));
}

struct list_of_paths {
    const char **items;
    size_t count, capacity;
};

static void collect(struct arena *arena, const struct table *table, const char *before, int depth,
                    struct list_of_paths *list)
{
    const struct field *field;

    for (size_t i = 0; (field = field_standing(table, i)); i++) {
        const char *path = arena_printf(arena, "%s%s", before, field->key);

        *GROW(list) = path;
        if (field->table && !field->table->partial && field->kind != FIELD_LIST && depth > 0)
            collect(arena, field->table, arena_printf(arena, "%s.", path), depth - 1, list);
    }
    for (size_t i = 0; table->extension && schedule_at(i); i++)
        if (schedule_at(i)->options)
            collect(arena, schedule_at(i)->options, before, 0, list);
}

const char **path_list(struct arena *arena)
{
    struct list_of_paths list = {0};
    const char **paths;

    collect(arena, &scenario_table, "", PATH_DEPTH, &list);
    *GROW(&list) = NULL;
    paths = ARENA_ARRAY(arena, const char *, list.count);
    memcpy(paths, list.items, list.count * sizeof *paths);
    free(list.items);
    return paths;
}

static const char *path_candidate(size_t i, const void *context)
{
    return ((const char *const *)context)[i];
}

int path_check(const char *what, const char *path, const char *expected, struct loc loc, struct error *err)
{
    struct arena arena = {0};
    const char *meant;
    char shown[CLIP_SIZE];
    int rc = 0;

    if (!scenario_field(path)) {
        meant = error_shows(err, &loc) ? nearest(path, path_candidate, path_list(&arena)) : NULL;
        text_clip(path, shown, sizeof shown);
        rc = meant ? error_add(err, EXIT_INPUT, loc, "%s: scenarios have no '%s'; did you mean '%s'?", what, shown, meant) :
             error_add(err, EXIT_INPUT, loc, "%s: scenarios have no '%s'; expected %s", what, shown, expected);
    }
    arena_release(&arena);
    return rc;
}

struct value path_value(const char *path, const struct node *node)
{
    const struct field *field = scenario_field(path);
    char why[256];
    double number;

    if (!node || node_is_null(node))
        return (struct value){.kind = VALUE_NONE};
    if (node->kind != NODE_SCALAR)
        return (struct value){.kind = node->kind == NODE_SEQUENCE ? VALUE_LIST : VALUE_MAPPING};
    if (field && field->kind == FIELD_QUANTITY && !unit_parse(field->unit, node->text, &number, why, sizeof why))
        return value_number(number);
    if (node->quoted || (field && (field->kind == FIELD_STRING || field->kind == FIELD_CHOICE)))
        return value_text(node->text);
    if (!strcmp(node->text, "true") || !strcmp(node->text, "false"))
        return value_boolean(node->text[0] == 't');
    if (!unit_parse(UNIT_NUMBER, node->text, &number, why, sizeof why))
        return value_number(number);
    return value_text(node->text);
}

int path_value_check(const char *path, const struct node *node, struct error *err)
{
    const struct field *field = scenario_field(path);
    const char *dot = strrchr(path, '.');
    struct arena arena = {0};
    int rc = 0;

    if (field && !strcmp(field->key, dot ? dot + 1 : path))
        rc = field_check(field, dot ? arena_strndup(&arena, path, (size_t)(dot - path)) : "", node, err);
    arena_release(&arena);
    return rc;
}

int path_values_check(const char *what, const char *path, const struct node *node, struct error *err)
{
    struct error refused = {0};
    bool list = node->kind == NODE_SEQUENCE && node->count;
    bool whole = list && !path_value_check(path, node, &refused);        /* a value that is a list itself */
    int rc = 0;

    error_release(&refused);
    if (node_is_null(node) || (node->kind != NODE_SCALAR && !node->count))
        return error_add(err, EXIT_INPUT, node->loc, "%s: %s: expected a value or a list of values, found nothing", what,
                         path);
    for (size_t i = 0; list && i < node->count; i++)
        if ((!whole || node_is_null(node->items[i])) && path_values_check(what, path, node->items[i], err))
            rc = -1;
    return list ? rc : path_value_check(path, node, err);
}

/* The values below a mapping of a table. */
static int check_below(struct arena *arena, const struct node *mapping, const char *before, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; i < mapping->count; i++) {
        const char *path = arena_printf(arena, "%s%s", before, mapping->keys[i]);
        const struct node *value = mapping->items[i];

        if (path_check("base", path, "a key of 'dtsim help scenario'", mapping->key_locs[i], err))
            rc = -1;
        else if (node_is_null(value))
            rc = error_add(err, EXIT_INPUT, value->loc, "%s: expected a value, found nothing", path);
        else if (path_value_check(path, value, err))
            rc = -1;
        else if (value->kind == NODE_MAPPING && scenario_field(path)->table &&
                 check_below(arena, value, arena_printf(arena, "%s.", path), err))
            rc = -1;
    }
    return rc;
}

int paths_check(const struct node *scenario, struct error *err)
{
    struct arena arena = {0};
    int rc = check_below(&arena, scenario, "", err);

    arena_release(&arena);
    return rc;
}

struct node *path_node(struct arena *arena, const char *path, const struct value *value, struct loc loc)
{
    const struct field *field = scenario_field(path);
    enum unit unit = field && field->kind == FIELD_QUANTITY ? field->unit : UNIT_NUMBER;
    struct node *node = NULL;
    char text[48];

    if (value->kind == VALUE_TEXT)
        node = node_scalar(arena, value->text, text_is_special(value->text));
    else if (value->kind == VALUE_BOOLEAN)
        node = node_scalar(arena, value->boolean ? "true" : "false", false);
    else if (value->kind == VALUE_NUMBER && value->number == floor(value->number) && fabs(value->number) < 1e15 &&
             unit == UNIT_NUMBER)
        node = node_scalar(arena, arena_printf(arena, "%.0f", value->number + 0.0), false);
    else if (value->kind == VALUE_NUMBER)
        node = node_scalar(arena, unit_format(unit, value->number, text, sizeof text), false);
    else
        BUG("a value of no kind for '%s'", path);
    node->loc = loc;
    return node;
}
