/* Which values of a key a release has: `has` of its file. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "expression/condition.h"
#include "software/software_internal.h"

struct candidates { struct arena *arena; const struct key_parts *parts; };

static const char *path_at(size_t i, const void *context)
{
    const struct candidates *candidates = context;

    return parts_path_at(candidates->arena, candidates->parts, i);
}

/* The field that a scalar sets: the shorthand's field where a mapping has one. */
static const struct field *scalar_field(const struct field *field)
{
    return field->table && field->table->shorthand ? field_find(field->table, field->table->shorthand) : field;
}

static const char *choice_at(size_t i, const void *context)
{
    const struct field *field = context;

    return field->choices ? field->choices[i] : field->choice(i);
}

static int check_value(const struct node *value, const char *path, const struct field *field, struct error *err)
{
    const char *text = value->kind == NODE_SCALAR && value->text ? value->text : "", *meant;
    char *end;
    long long number = strtoll(text, &end, 10);

    if (field->kind == FIELD_INT && *text && !*end && (double)number >= field->min && (double)number <= field->max)
        return 0;
    if (field->kind == FIELD_INT)
        return error_add(err, EXIT_INPUT, value->loc, "software: has: %s: expected %g to %g, found '%s'", path, field->min,
                         field->max, text);
    for (size_t i = 0; field->kind == FIELD_CHOICE && choice_at(i, field); i++)
        if (!strcmp(choice_at(i, field), text))
            return 0;
    meant = field->kind == FIELD_CHOICE && error_shows(err, &value->loc) ? nearest(text, choice_at, field) : NULL;
    return error_add(err, EXIT_INPUT, value->loc, "software: has: %s: unknown value '%s'%s%s%s", path, text,
                     meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

static int check_list(struct arena *arena, const struct node *has, size_t i, const struct key_parts *parts,
                      struct error *err)
{
    const char *path = has->keys[i], *meant;
    const struct node *values = has->items[i];
    struct member member = parts_member(parts, path);
    const struct field *field = member.field ? scalar_field(member.field) : NULL;
    int rc = 0;

    if (!field) {
        meant = error_shows(err, &has->key_locs[i]) ? nearest(path, path_at, &(struct candidates){arena, parts}) : NULL;
        return error_add(err, EXIT_INPUT, has->key_locs[i], "software: has: unknown key '%s'%s%s%s", path,
                         meant ? "; did you mean '" : "; expected one such as strategy.schedule", meant ? meant : "",
                         meant ? "'?" : "");
    }
    if (field->kind != FIELD_CHOICE && field->kind != FIELD_INT)
        return error_add(err, EXIT_INPUT, has->key_locs[i], "software: has: the values of '%s' are no names and no whole "
                         "numbers, so that no list can hold them", path);
    if (values->kind != NODE_SEQUENCE)
        return error_add(err, EXIT_INPUT, values->loc, "software: has: %s: expected a list of values; [] where the "
                         "release has none", path);
    for (size_t v = 0; v < values->count; v++)
        rc = check_value(values->items[v], path, field, err) ? -1 : rc;
    return rc;
}

int software_has_check(struct arena *arena, const struct node *has, const struct key_parts *parts,
                       struct error *err)
{
    int rc = 0;

    if (has->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, has->loc, "software: has: expected a mapping such as {strategy.zero: [0, 1]}");
    for (size_t i = 0; i < has->count; i++)
        rc = check_list(arena, has, i, parts, err) ? -1 : rc;
    return rc;
}

/* The part's value as text; NULL: it has none, or one that is no name and no number. */
static const char *value_at(struct arena *arena, const struct key_parts *parts, const char *path)
{
    struct member member = parts_member(parts, path);
    const struct node *value = member.field && member.part->object ?
        field_dump_key(arena, member.part->table, member.part->object, member.field->key) : NULL;

    if (value && value->kind == NODE_MAPPING && member.field->table && member.field->table->shorthand)
        value = node_get(value, member.field->table->shorthand);
    return value && value->kind == NODE_SCALAR ? value->text : NULL;
}

static bool in_list(const struct node *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->items[i]->text, text))
            return true;
    return false;
}

static const struct software_ask *ask_of(const struct software_ask *asks, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(asks[i].path, path))
            return &asks[i];
    return NULL;
}

static const char *list_text(struct arena *arena, const struct node *list)
{
    const char *text = "";

    for (size_t i = 0; i < list->count; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? ", " : "", list->items[i]->text);
    return text;
}

/* The first combination whose condition holds; NULL: none does. */
static const struct node *cannot(struct arena *arena, const struct node *lacks, const struct key_parts *parts)
{
    const struct node *found = NULL;
    struct error err = {0};

    for (size_t i = 0; lacks && i < lacks->count && !found; i++)
        if (software_holds(arena, node_get(lacks->items[i], "if"), parts, &err) > 0)
            found = lacks->items[i];
    error_release(&err);
    return found;
}

enum software_has software_has(struct arena *arena, const struct software_names *names,
                               const struct key_parts *parts, const struct software_ask *asks, size_t count,
                               struct software_lack *lack)
{
    const struct node *has = names->has;
    enum software_has found = SOFTWARE_HAS;
    const struct node *combination;

    for (size_t i = 0; has && i < has->count; i++) {
        const struct software_ask *ask = ask_of(asks, count, has->keys[i]);
        const char *value = value_at(arena, parts, has->keys[i]);

        if (!value || (ask && ask->idle) || in_list(has->items[i], value))
            continue;
        *lack = (struct software_lack){has->keys[i], value, list_text(arena, has->items[i]), NULL, NULL};
        return SOFTWARE_LACKS;
    }
    if ((combination = cannot(arena, names->lacks, parts))) {
        *lack = (struct software_lack){.why = node_get(combination, "why")->text,
                                       .condition = node_get(combination, "if")->text};
        return SOFTWARE_LACKS;
    }
    for (size_t i = 0; i < count; i++)
        if (asks[i].asks && !asks[i].idle &&
            (!has || !node_get(has, asks[i].path) || !value_at(arena, parts, asks[i].path)))
            found = SOFTWARE_UNKNOWN;
    return found;
}

const char *software_lack_text(struct arena *arena, const struct software_names *names, const struct software_lack *lack)
{
    if (lack->why)
        return arena_printf(arena, "%s cannot run this: %s", names->title, lack->why);
    return arena_printf(arena, "%s: %s does not have '%s'; it has %s", lack->path, names->title, lack->value,
                        *lack->has ? lack->has : "none");
}
