#include "config/field_value.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "base/units.h"
#include "config/conf_text.h"

static struct node *object_dump(struct arena *arena, const struct table *table, const void *object);

static struct node *choice_dump(struct arena *arena, const struct field *field, int index)
{
    const char *name;

    for (size_t i = 0; (name = choice_at(field, i)); i++)
        if ((int)i == index)
            return node_scalar(arena, name, text_is_null(name));
    BUG("'%s' has no choice %d", field->key, index);
}

/* Whether the mapping has all keys that reading it back would demand. */
static bool complete(const struct table *table, const struct node *mapping)
{
    size_t exclusive = 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        bool there = node_get(mapping, field->key) != NULL;

        if (field->required && !field->fallback && !there)
            return false;
        exclusive += there && word_in(table->exactly_one, field->key);
    }
    return !table->exactly_one || exclusive == 1;
}

/* A record that was not written is printed with its defaults, unless it lacks a key that a written one must have. */
static struct node *record_dump(struct arena *arena, const struct field *field, const void *record, bool given)
{
    struct node *mapping;

    if (!given && field->load && !*object_node(field->table, record))
        return NULL;    /* `load` was not called: the record holds zeros, not defaults */
    mapping = object_dump(arena, field->table, record);
    if (field->table->bare && mapping->count == 1 && !strcmp(mapping->keys[0], field->table->shorthand))
        return mapping->items[0];
    return given || (mapping->count > 0 && complete(field->table, mapping)) ? mapping : NULL;
}

static struct node *int_dump(struct arena *arena, int value)
{
    return node_scalar(arena, arena_printf(arena, "%d", value), false);
}

/* In its bare form where the table has one. */
static struct node *item_dump(struct arena *arena, const struct table *table, const void *item)
{
    struct node *mapping = object_dump(arena, table, item);

    return table->bare && mapping->count == 1 && !strcmp(mapping->keys[0], table->shorthand) ? mapping->items[0] : mapping;
}

static struct node *list_dump(struct arena *arena, const struct field *field, const struct list *list, bool given)
{
    struct node *sequence = node_sequence(arena);

    if (list_is_auto(list))
        return node_scalar(arena, list->node->text, false);
    for (size_t i = 0; i < list->count; i++) {
        if (field->kind == FIELD_CHOICES)
            node_append(arena, sequence, choice_dump(arena, field, ((const int *)list->items)[i]));
        else if (field->kind == FIELD_INTS)
            node_append(arena, sequence, int_dump(arena, ((const int *)list->items)[i]));
        else
            node_append(arena, sequence, item_dump(arena, field->table,
                                                   (const char *)list->items + i * field->table->size));
    }
    return list->count > 0 || given || field->fallback ? sequence : NULL;
}

static struct node *quantity_dump(struct arena *arena, const struct field *field, double value)
{
    char text[48];

    return isfinite(value) ? node_scalar(arena, unit_format(field->unit, value, text, sizeof text), false) : NULL;
}

/* The value as a node; NULL if it is left out. */
static struct node *field_value_dump(struct arena *arena, const struct field *field, const void *member, bool given)
{
    bool zero_counts = given || field->fallback || field->required;
    const char *text;
    int value;

    switch (field->kind) {
    case FIELD_INT:
    case FIELD_CHOICE:
        value = *(const int *)member;
        if (value == 0 && !zero_counts)
            return NULL;
        return field->kind == FIELD_CHOICE ? choice_dump(arena, field, value) :
               value == FIELD_AUTO ? node_scalar(arena, "auto", false) : int_dump(arena, value);
    case FIELD_BOOL:
        if (!*(const bool *)member && !zero_counts)
            return NULL;
        return node_scalar(arena, *(const bool *)member ? "true" : "false", false);
    case FIELD_QUANTITY:
        return quantity_dump(arena, field, *(const double *)member);
    case FIELD_STRING:
        text = *(const char *const *)member;
        return text ? node_scalar(arena, text, text_is_special(text)) : NULL;
    case FIELD_RECORD:
        return record_dump(arena, field, member, given);
    case FIELD_OPTIONAL:
        return *(void *const *)member ? record_dump(arena, field, *(void *const *)member, true) : NULL;
    case FIELD_LIST:
    case FIELD_CHOICES:
    case FIELD_INTS:
        return list_dump(arena, field, member, given);
    }
    BUG("'%s' is of no kind", field->key);
}

static void fields_dump(struct arena *arena, const struct table *table, const void *object, struct node *mapping)
{
    const struct node *source = *object_node(table, object);

    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        bool given = node_get(source, field->key) != NULL;
        struct node *value;

        /* A preset may have filled an alternative that was not given. Pointers are NULL then, so only records and
         * integers need this check. */
        if (source && !given && (field->kind == FIELD_RECORD || field->kind == FIELD_INT) &&
            word_in(table->exactly_one, field->key))
            continue;
        if (table->hides && table->hides(object, field->key))
            continue;
        value = field_value_dump(arena, field, (const char *)object + field->offset, given);
        if (value && given)
            value->loc = node_get(source, field->key)->loc;
        if (value)
            node_put(arena, mapping, field->key, value);
    }
}

static struct node *object_dump(struct arena *arena, const struct table *table, const void *object)
{
    struct node *mapping = node_mapping(arena);

    fields_dump(arena, table, object, mapping);
    if (table->extension) {
        void *extra = NULL;
        /* The object is not changed: the function returns the address that it kept when the object was read. */
        const struct table *more = table->extension(arena, (void *)(uintptr_t)object, &extra);

        if (more)
            fields_dump(arena, more, extra, mapping);
    }
    return mapping;
}

struct node *field_dump_key(struct arena *arena, const struct table *table, const void *object, const char *key)
{
    const struct field *field = field_find(table, key);

    return field ? field_value_dump(arena, field, (const char *)object + field->offset, true) : NULL;
}

struct node *field_dump(struct arena *arena, const struct table *table, const void *object)
{
    return object_dump(arena, table, object);
}

static void list_key(const struct field *field, const struct list *list, struct cache_key *key)
{
    cache_key_add(key, &list->count, sizeof list->count);
    cache_key_add(key, &(bool){list_is_auto(list)}, sizeof(bool));
    if (field->kind != FIELD_LIST)
        cache_key_add(key, list->items, list->count * sizeof(int));
    for (size_t i = 0; field->kind == FIELD_LIST && i < list->count; i++)
        field_key(field->table, (const char *)list->items + i * field->table->size, key);
}

static void fields_key(const struct table *table, const void *object, struct cache_key *key)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        const char *member = (const char *)object + field->offset;
        const void *optional;

        switch (field->kind) {
        case FIELD_INT:
        case FIELD_CHOICE:
            cache_key_add(key, member, sizeof(int));
            break;
        case FIELD_BOOL:
            cache_key_add(key, member, sizeof(bool));
            break;
        case FIELD_QUANTITY:
            cache_key_add(key, member, sizeof(double));
            break;
        case FIELD_STRING:
            cache_key_text(key, *(const char *const *)member);
            break;
        case FIELD_RECORD:
            field_key(field->table, member, key);
            break;
        case FIELD_OPTIONAL:
            optional = *(const void *const *)member;
            cache_key_add(key, &(bool){optional != NULL}, sizeof(bool));
            if (optional)
                field_key(field->table, optional, key);
            break;
        case FIELD_LIST:
        case FIELD_CHOICES:
        case FIELD_INTS:
            list_key(field, (const struct list *)member, key);
            break;
        }
    }
}

void field_key(const struct table *table, const void *object, struct cache_key *key)
{
    fields_key(table, object, key);
    if (table->extension) {
        struct arena none = {0};
        void *extra = NULL;
        const struct table *more = table->extension(&none, (void *)(uintptr_t)object, &extra);   /* as object_dump */

        if (more)
            fields_key(more, extra, key);
        BUG_IF(none.last);               /* the object had its extension from when it was read */
    }
}
