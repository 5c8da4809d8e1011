#include "config/field_value.h"

#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf_text.h"

enum { SCHEMA_DEPTH = 16 };     /* a table may contain itself: the schema stops at this depth */

static struct node *object_schema(struct arena *arena, const struct table *table, int depth);

static void text_put(struct arena *arena, struct node *mapping, const char *key, const char *text)
{
    if (text)
        node_put(arena, mapping, key, node_scalar(arena, text, true));
}

static void number_put(struct arena *arena, struct node *mapping, const char *key, double value)
{
    char text[48];

    node_put(arena, mapping, key, node_scalar(arena, unit_format(UNIT_NUMBER, value, text, sizeof text), false));
}

static struct node *typed(struct arena *arena, const char *type)
{
    struct node *schema = node_mapping(arena);

    text_put(arena, schema, "type", type);
    return schema;
}

/* {key: [a, b]}; b may be NULL. */
static struct node *combine(struct arena *arena, const char *key, struct node *a, struct node *b)
{
    struct node *schema = node_mapping(arena), *list = node_sequence(arena);

    node_append(arena, list, a);
    if (b)
        node_append(arena, list, b);
    node_put(arena, schema, key, list);
    return schema;
}

static struct node *number_schema(struct arena *arena, const struct field *field)
{
    struct node *schema = typed(arena, field->kind == FIELD_QUANTITY ? "number" : "integer");
    double min, max;

    if (field_min(field, &min))
        number_put(arena, schema, field->positive && min <= 0 ? "exclusiveMinimum" : "minimum",
                   field->positive && min <= 0 ? 0 : min);
    if (field_max(field, &max))
        number_put(arena, schema, "maximum", max);
    return schema;
}

/* Text with a unit is always allowed. A count may also be a number, any other quantity a bare 0 if that is in
 * bounds. */
static struct node *quantity_schema(struct arena *arena, const struct field *field)
{
    struct node *text, *zero;
    double min, max;

    if (field->unit == UNIT_NUMBER)
        return number_schema(arena, field);
    text = typed(arena, "string");
    text_put(arena, text, "pattern", unit_pattern(field->unit));
    if (field->unit == UNIT_COUNT)
        return combine(arena, "anyOf", number_schema(arena, field), text);
    if (field->positive || (field_min(field, &min) && min > 0) || (field_max(field, &max) && max < 0))
        return text;
    zero = node_mapping(arena);
    node_put(arena, zero, "const", node_scalar(arena, "0", false));
    text = combine(arena, "anyOf", text, zero);
    if (field->by_name) {
        struct node *named = typed(arena, "object");

        node_put(arena, named, "additionalProperties", text);
        text = combine(arena, "anyOf", text, named);
    }
    return text;
}

/* The names of a choice. A name that YAML reads as a number or a boolean is listed as text and as that value. */
static struct node *choice_schema(struct arena *arena, const struct field *field)
{
    struct node *schema = node_mapping(arena), *names = node_sequence(arena);
    const char *name;

    for (size_t i = 0; (name = choice_at(field, i)); i++) {
        node_append(arena, names, node_scalar(arena, name, true));
        if (strspn(name, "0123456789") == strlen(name) || strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
            node_append(arena, names, node_scalar(arena, name, false));
    }
    node_put(arena, schema, "enum", names);
    return schema;
}

/* What the schema allows, or the word auto. */
static struct node *or_auto(struct arena *arena, struct node *schema)
{
    struct node *word = node_mapping(arena);

    text_put(arena, word, "const", "auto");
    return combine(arena, "anyOf", schema, word);
}

static struct node *list_schema(struct arena *arena, const struct field *field, int depth)
{
    struct node *schema = typed(arena, "array");

    node_put(arena, schema, "items", field->kind == FIELD_CHOICES ? choice_schema(arena, field)
                                     : field->kind == FIELD_INTS  ? number_schema(arena, field)
                                                                  : object_schema(arena, field->table, depth + 1));
    if (!field->may_be_empty)
        node_put(arena, schema, "minItems", node_scalar(arena, "1", false));
    if (field->may_be_auto)
        return or_auto(arena, schema);
    if (field->kind == FIELD_CHOICES && field->single)
        return combine(arena, "anyOf", schema, choice_schema(arena, field));
    if (field->kind == FIELD_LIST && field->single)
        return combine(arena, "anyOf", schema, object_schema(arena, field->table, depth + 1));
    return schema;
}

static struct node *value_schema(struct arena *arena, const struct field *field, int depth)
{
    switch (field->kind) {
    case FIELD_INT:
        return field->may_be_auto ? or_auto(arena, number_schema(arena, field)) : number_schema(arena, field);
    case FIELD_BOOL:
        return typed(arena, "boolean");
    case FIELD_QUANTITY:
        return quantity_schema(arena, field);
    case FIELD_STRING:
        return typed(arena, "string");
    case FIELD_CHOICE:
        return choice_schema(arena, field);
    case FIELD_LIST:
    case FIELD_CHOICES:
    case FIELD_INTS:
        return list_schema(arena, field, depth);
    case FIELD_RECORD:
    case FIELD_OPTIONAL:
        return object_schema(arena, field->table, depth + 1);
    }
    BUG("'%s' is of no kind", field->key);
}

static struct node *default_node(struct arena *arena, const struct field *field)
{
    struct error err = {0};    /* stays empty: reading any object checks the default */
    struct node *node;

    if (field->kind == FIELD_STRING)
        return node_scalar(arena, field->fallback, true);
    if (conf_parse(arena, "default", field->fallback, strlen(field->fallback), &node, &err))
        BUG("the default of '%s' is no YAML: %s", field->key, field->fallback);
    return node;
}

/* The brief, then a line for each value of a choice that has a text of its own: editors show it. */
static const char *description(struct arena *arena, const struct field *field)
{
    const char *text = field->brief;

    for (size_t i = 0; field->choice_briefs && field->choice_briefs[i]; i++)
        text = arena_printf(arena, "%s\n%s: %s", text ? text : "", field->choices[i], field->choice_briefs[i]);
    return text;
}

static struct node *field_schema_of(struct arena *arena, const struct field *field, int depth)
{
    struct node *schema = value_schema(arena, field, depth);

    text_put(arena, schema, "description", description(arena, field));
    text_put(arena, schema, "x-files", field->files);
    text_put(arena, schema, "x-names", field->names);
    if (field->fallback)
        node_put(arena, schema, "default", default_node(arena, field));
    return schema;
}

/* [{required: [a]}, {required: [b]}] */
static struct node *exactly_one_schema(struct arena *arena, const char *words)
{
    struct node *list = node_sequence(arena);

    while (*words) {
        size_t n = strcspn(words, " ");
        struct node *key = node_scalar(arena, arena_strndup(arena, words, n), true);

        node_append(arena, list, combine(arena, "required", key, NULL));
        words += n + strspn(words + n, " ");
    }
    return list;
}

/* Adds a field to the properties; a key that is there already may be either. */
static void property_put(struct arena *arena, struct node *properties, const struct field *field, int depth)
{
    struct node *schema = field_schema_of(arena, field, depth), *before = node_get(properties, field->key);

    if (before && !node_equal(before, schema))
        schema = combine(arena, "anyOf", before, schema);
    node_put(arena, properties, field->key, schema);
}

static void properties_put(struct arena *arena, struct node *properties, const struct table *table, int depth)
{
    const struct field *field;

    for (size_t i = 0; (field = field_standing(table, i)); i++)
        property_put(arena, properties, field, depth);
}

static struct node *mapping_schema(struct arena *arena, const struct table *table, int depth)
{
    struct node *schema = typed(arena, "object"), *properties = node_mapping(arena), *required = node_sequence(arena);

    properties_put(arena, properties, table, depth);
    for (size_t i = 0; table->extension_at && table->extension_at(i); i++)
        properties_put(arena, properties, table->extension_at(i), depth);
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];

        if (field->required && !field->fallback && !field->dispensable && !table->partial)
            node_append(arena, required, node_scalar(arena, field->key, true));
    }
    node_put(arena, schema, "properties", properties);
    if (required->count > 0)
        node_put(arena, schema, "required", required);
    if (table->exactly_one)
        node_put(arena, schema, "oneOf", exactly_one_schema(arena, table->exactly_one));
    if (!table->extension || table->extension_at)
        node_put(arena, schema, "additionalProperties", node_scalar(arena, "false", false));
    return schema;
}

static struct node *object_schema(struct arena *arena, const struct table *table, int depth)
{
    struct node *schema;

    if (depth > SCHEMA_DEPTH)
        return node_mapping(arena);
    /* A table without keys has a function that reads the value and alone knows what is valid: the schema allows any
     * value. */
    schema = table->count ? mapping_schema(arena, table, depth) : node_mapping(arena);
    for (size_t i = 0; table->shorthand && i < table->count; i++)
        if (strcmp(table->fields[i].key, table->shorthand) == 0)
            schema = combine(arena, "anyOf", schema, value_schema(arena, &table->fields[i], depth));
    if (table->name && *table->name)
        text_put(arena, schema, "title", table->name);
    text_put(arena, schema, "description", table->brief);
    return schema;
}

struct node *field_schema(struct arena *arena, const struct table *table)
{
    struct node *schema = node_mapping(arena), *object = object_schema(arena, table, 0);

    text_put(arena, schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
    for (size_t i = 0; i < object->count; i++)
        node_put(arena, schema, object->keys[i], object->items[i]);
    return schema;
}
