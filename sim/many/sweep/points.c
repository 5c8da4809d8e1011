#include "sweep/points_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "config/conf.h"
#include "expression/expression.h"
#include "scenario/scenario.h"

void moment_init(struct moment *moment, const struct points *points)
{
    *moment = (struct moment){.points = points, .chosen = points->zips.count};
    moment->choice = xcalloc(points->zips.count, sizeof *moment->choice);
    moment->derived = xcalloc(points->nderived, sizeof *moment->derived);
    moment->known = xcalloc(points->nderived, sizeof *moment->known);
}

void moment_release(struct moment *moment)
{
    arena_release(&moment->arena);
    free(moment->choice);
    free(moment->derived);
    free(moment->known);
}

void moment_set(struct moment *moment, uint64_t number)
{
    const struct points *points = moment->points;
    uint64_t combinations = points_combinations(points);

    arena_release(&moment->arena);
    moment->asked = false;
    moment->resolved = NULL;
    moment->chosen = points->zips.count;
    if (points->nderived)
        memset(moment->known, 0, points->nderived * sizeof *moment->known);
    moment->included = number < combinations ? NULL : &points->included[number - combinations];
    for (size_t d = points->zips.count; d-- > 0 && !moment->included;) {
        moment->choice[d] = (size_t)(number % points->zips.items[d].length);
        number /= points->zips.items[d].length;
    }
}

uint64_t points_combinations(const struct points *points)
{
    uint64_t count = points->zips.count || !points->nincluded;

    for (size_t d = 0; d < points->zips.count; d++)
        if (__builtin_mul_overflow(count, (uint64_t)points->zips.items[d].length, &count))
            return UINT64_MAX;
    return count;
}

size_t points_zip_of(const struct points *points, size_t axis)
{
    size_t d = 0;

    while (axis >= points->zips.items[d].first + points->zips.items[d].count)
        d++;
    return d;
}

/* What is included of that name, also in the place of what follows; NULL: nothing. */
static const struct axis *included_axis(const struct moment *moment, const char *name)
{
    for (size_t i = 0; moment->included && i < moment->included->count; i++)
        if (!strcmp(moment->included->axes[i].name, name))
            return &moment->included->axes[i];
    return NULL;
}

/* The place of the point's value for an axis, in that axis or in what is included; NULL: it has none. */
static const struct axis *axis_value(const struct moment *moment, size_t a, size_t *choice)
{
    const struct axis *axis = &moment->points->axes.items[a];

    *choice = moment->included ? 0 : moment->choice[points_zip_of(moment->points, a)];
    return moment->included ? included_axis(moment, axis->name) : axis;
}

struct value moment_axis(const struct moment *moment, size_t a)
{
    const char *path = moment->points->axes.items[a].name;
    size_t choice;
    const struct axis *axis = axis_value(moment, a, &choice);

    if (!moment->included && points_zip_of(moment->points, a) >= moment->chosen)
        return (struct value){.kind = VALUE_NONE};
    return axis && axis->values ? axis->values[choice] : path_value(path, node_at(moment->points->base, path));
}

bool moment_number(const struct moment *moment, const bool *axes, uint64_t *number)
{
    const struct points *points = moment->points;

    *number = 0;
    for (size_t d = 0; d < points->zips.count; d++) {
        bool takes = axes[points->zips.items[d].first];

        if (moment->included || (takes && d >= moment->chosen))
            return false;
        *number = *number * points->zips.items[d].length + (takes ? moment->choice[d] : 0);
    }
    return true;
}

static int settings_make(struct moment *moment, struct arena *arena, struct point *point, struct error *err);

/* The value at a path of the whole scenario of the point; none where the scenario is refused, as its row will say. */
static int resolved_value(struct moment *moment, const char *path, struct value *value, struct error *err)
{
    struct scenario scenario = {0};
    struct error found = {0};
    struct point point;
    int rc = 0;

    if (!moment->asked) {
        moment->asked = true;
        if (!settings_make(moment, &moment->arena, &point, &found)) {
            if (!scenario_read(&moment->arena, point.root, NULL, 0, moment->points->name, &scenario, &found))
                moment->resolved = scenario_dump(&scenario.arena, &scenario);
            moment->arena = scenario.arena;
        }
        rc = error_pass_system(&found, err);
        error_release(&found);
    }
    *value = path_value(path, moment->resolved ? node_at(moment->resolved, path) : NULL);
    return rc;
}

/* name_value of expressions: axes by number, then derived values, then what they look up. */
static int value_of(void *context, int name, struct value *value, struct error *err)
{
    struct moment *moment = context;
    const struct points *points = moment->points;
    size_t i = (size_t)name;

    if (i < points->axes.count) {
        *value = moment_axis(moment, i);
        return 0;
    }
    i -= points->axes.count;
    if (i < points->nderived) {
        if (moment_derived(moment, i, err))
            return -1;
        *value = moment->derived[i];
        return 0;
    }
    const struct looked_up *lookup = &points->lookups.items[i - points->nderived];

    if (lookup->resolved)
        return resolved_value(moment, lookup->path, value, err);
    *value = lookup->value;
    return 0;
}

static const char *name_of(const struct points *points, int name)
{
    size_t i = (size_t)name, axes = points->axes.count;

    return i < axes ? points->axes.items[i].name : i - axes < points->nderived ? points->derived[i - axes].name :
           points->lookups.items[i - axes - points->nderived].path;
}

/* An expression failed: its message says at which values. */
static int explain_failure(struct moment *moment, const struct expression *expression, const struct error *found,
                           struct error *err)
{
    const struct points *points = moment->points;
    const char *at = "";
    struct arena arena = {0};

    for (int name = 0; name < (int)(points->axes.count + points->nderived); name++) {
        struct error ignored = {0};
        struct value value;

        if (!expression_uses(expression, name) || value_of(moment, name, &value, &ignored) ||
            value.kind == VALUE_NONE || value.kind > VALUE_TEXT) {
            error_release(&ignored);
            continue;
        }
        at = arena_printf(&arena, "%s%s%s = %s", at, *at ? ", " : "", name_of(points, name),
                          path_node(&arena, name_of(points, name), &value, (struct loc){0})->text);
    }
    for (int i = 0; i < found->count; i++)
        error_add(err, found->messages[i].code, found->messages[i].loc, "%s%s%s%s", found->messages[i].text,
                  *at ? " (at " : "", at, *at ? ")" : "");
    err->system |= found->system;
    arena_release(&arena);
    return -1;
}

int moment_derived(struct moment *moment, size_t d, struct error *err)
{
    const struct derived *derived = &moment->points->derived[d];
    const struct axis *given = included_axis(moment, moment->points->derived[d].name);
    struct error found = {0};
    int rc = 0;

    if (moment->known[d])
        return 0;
    if (given)
        moment->derived[d] = given->values[0];
    else if (expression_evaluate(derived->expression, value_of, moment, &moment->derived[d], &found))
        rc = explain_failure(moment, derived->expression, &found, err);
    else if (moment->derived[d].kind == VALUE_NONE || moment->derived[d].kind > VALUE_TEXT)
        rc = error_add(err, EXIT_INPUT, expression_loc(expression_source(derived->expression), 0),
                       "%s: the expression gives no value", expression_source(derived->expression)->what);
    moment->known[d] = !rc;
    error_release(&found);
    return rc;
}

/* Whether the point's value for the name is that node, or one of its items. */
static int matches(struct moment *moment, size_t name, const struct node *node, bool *match, struct error *err)
{
    const struct points *points = moment->points;
    struct value value, wanted = path_value(name_of(points, (int)name), node);
    size_t choice;

    if (value_of(moment, (int)name, &value, err))
        return -1;
    if (value.kind > VALUE_TEXT && name < points->axes.count) {
        const struct axis *axis = axis_value(moment, name, &choice);

        *match = axis && node_equal(axis->nodes[choice], node);
    } else {
        *match = value.kind != VALUE_NONE && value.kind <= VALUE_TEXT && value_equal(&value, &wanted);
    }
    for (size_t i = 0; !*match && node->kind == NODE_SEQUENCE && i < node->count; i++)
        if (node->items[i]->kind != NODE_SEQUENCE && matches(moment, name, node->items[i], match, err))
            return -1;
    return 0;
}

int moment_drops(struct moment *moment, const struct constraint *constraint, bool *dropped, struct error *err)
{
    struct error found = {0};
    struct value value;
    int rc = 0;

    *dropped = constraint->asks ? constraint->asks(constraint->rule, moment) : true;
    for (size_t i = 0; *dropped && !constraint->asks && i < constraint->count; i++)
        if (matches(moment, constraint->names[i], constraint->nodes[i], dropped, err))
            return -1;
    if (!constraint->expression)
        return 0;
    if (expression_holds(constraint->expression, value_of, moment, &value, &found))
        rc = explain_failure(moment, constraint->expression, &found, err);
    *dropped = !rc && value.kind == VALUE_BOOLEAN && value.boolean == constraint->drops;
    error_release(&found);
    return rc;
}

/* The settings of the point and its scenario. */
static int settings_make(struct moment *moment, struct arena *arena, struct point *point, struct error *err)
{
    const struct points *points = moment->points;
    size_t most = points->axes.count + points->nderived + (moment->included ? moment->included->count : 0), choice = 0;

    *point = (struct point){.items = ARENA_ARRAY(arena, struct setting, most), .root = node_mapping(arena)};
    *point->root = *points->base;
    for (size_t i = 0; i < (moment->included ? moment->included->count : points->axes.count); i++) {
        const struct axis *axis = moment->included ? &moment->included->axes[i] : axis_value(moment, i, &choice);

        point->items[point->count++] = (struct setting){axis->name, axis->loc, axis->put, axis->nodes[choice]};
    }
    for (size_t d = 0; d < points->nderived; d++) {
        const struct derived *of = &points->derived[d];

        if (included_axis(moment, moment->points->derived[d].name))
            continue;
        if (moment_derived(moment, d, err))
            return -1;
        point->items[point->count++] = (struct setting){of->name, of->loc, of->put, path_node(arena, of->name,
            &moment->derived[d], expression_loc(expression_source(of->expression), 0))};
    }
    for (size_t i = 0; i < point->count; i++)
        if (point->items[i].put &&
            conf_put(arena, point->root, point->items[i].name, point->items[i].node, point->items[i].loc, err))
            return -1;
    return 0;
}

int point_make(const struct points *points, uint64_t number, struct arena *arena, struct point *point,
               struct error *err)
{
    struct moment moment;
    int rc;

    moment_init(&moment, points);
    moment_set(&moment, number);
    rc = settings_make(&moment, arena, point, err);
    moment_release(&moment);
    return rc;
}

void points_release(struct points *points)
{
    free(points->axes.items);
    free(points->zips.items);
    free(points->constraints.items);
    free(points->lookups.items);
}
