#include "config/field.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "config/field_value.h"

const struct node **object_node(const struct table *table, const void *object)
{
    return (const struct node **)(uintptr_t)((const char *)object + table->node_offset);
}

static int object_parse(const struct reading *reading, const struct table *table, const struct node *node,
                        void *object);

/* What a message expects instead: a mapping with its first key as an example. */
static char *mapping_expected(struct arena *arena, const struct table *table)
{
    const char *key = table->shorthand ? table->shorthand : table->fields[0].key;

    return arena_printf(arena, "%sa mapping such as '{%s: ...}'", table->shorthand ? "a name or " : "", key);
}

static int record_parse(const struct reading *reading, const struct field *field, const struct node *node,
                        void *object)
{
    struct reading inner = {reading->arena, field->table->name, reading->err, NULL, reading->partial};

    if (!field->load)
        return object_parse(&inner, field->table, node, object);
    if (node_is_null(node) && !field->table->count)      /* a table that says no keys: only the function knows more */
        return reading_unexpected(reading, node, field->key, field->required ? "a value" : "a value, or no such key");
    if (node_is_null(node))
        return reading_unexpected(&inner, node, NULL, mapping_expected(inner.arena, field->table));
    return field->load(reading->arena, node, object, reading->err);
}

bool list_has(const struct list *list, int value)
{
    const int *items = list->items;

    for (size_t i = 0; i < list->count; i++)
        if (items[i] == value)
            return true;
    return false;
}

/* Refuses an empty list. The message names the allowed values, and the default without the key. */
static int list_empty(const struct reading *reading, const struct field *field, const struct node *node)
{
    struct arena *arena = reading->arena;
    const char *of = field->kind == FIELD_CHOICES ? " of " : "", *without = "";

    if (field->fallback)
        without = arena_printf(arena, "; left out, it is %s", field->fallback);
    else if (!field->required && field->kind != FIELD_LIST)
        without = ", or the key left out";
    return reading_fail(reading, node->loc, field->key, "found an empty list; expected at least one%s%s%s", of,
                        *of ? choices_text(arena, field) : "", without);
}

static int list_parse(const struct reading *reading, const struct field *field, const struct node *node,
                      struct list *list)
{
    const size_t size = field->kind == FIELD_LIST ? field->table->size : sizeof(int);
    const struct node *const *items = (const struct node *const *)node->items;
    bool scalar = node->kind == NODE_SCALAR && !node_is_null(node);
    bool lone = field->kind == FIELD_CHOICES ? scalar : node->kind == NODE_MAPPING ||
                (scalar && field->table && field->table->shorthand);
    int result = 0;

    list->node = node;
    list->count = node->count;
    if (field->may_be_auto && scalar && text_same(node->text, "auto"))
        return 0;
    if (field->single && lone) {
        items = &node;
        list->count = 1;
    } else if (node->kind != NODE_SEQUENCE) {
        return reading_unexpected(reading, node, field->key,
                                  field->may_be_auto ? "a list or auto" : !field->single ? "a list" :
                                  field->kind == FIELD_CHOICES ? "a name or a list" : "a mapping or a list");
    }
    if (list->count == 0 && !field->may_be_empty)
        return list_empty(reading, field, node);
    list->items = arena_alloc(reading->arena, list->count * size);
    for (size_t i = 0; i < list->count; i++) {
        void *item = (char *)list->items + i * size;
        int failed = field->kind == FIELD_CHOICES ? choice_parse(reading, field, items[i], item)
                     : field->kind == FIELD_INTS  ? value_parse(reading, field, items[i], item)
                                                  : record_parse(reading, field, items[i], item);

        result = failed ? -1 : result;
    }
    return result;
}

int field_value(const struct reading *reading, const struct field *field, const struct node *node, void *member)
{
    void *object;

    switch (field->kind) {
    case FIELD_RECORD:
        return record_parse(reading, field, node, member);
    case FIELD_OPTIONAL:
        object = arena_alloc(reading->arena, field->table->size);
        *(void **)member = object;
        return record_parse(reading, field, node, object);
    case FIELD_LIST:
    case FIELD_CHOICES:
    case FIELD_INTS:
        return list_parse(reading, field, node, member);
    default:
        return value_parse(reading, field, node, member);
    }
}

/* The default as a node, as if the user had written it. */
static struct node *fallback_node(const struct reading *reading, const struct field *field)
{
    struct node *node;

    if (!strchr("[{\"'", *field->fallback) || !*field->fallback)
        return node_scalar(reading->arena, field->fallback, false);
    if (conf_parse(reading->arena, "default", field->fallback, strlen(field->fallback), &node, reading->err))
        BUG("the default of '%s' is no YAML: %s", field->key, field->fallback);
    return node;
}

/* Whether one of the unknown keys that are reported is this one misspelt: then it is not also reported as missing. */
static bool misspelt_key(const struct table *table, const struct node *node, const char *key)
{
    const struct key_tables keys = {{table, NULL}};

    for (size_t i = 0, unknown = 0; i < node->count && unknown < ERROR_MAX; i++) {
        const char *near = field_find(table, node->keys[i]) ? NULL : key_meant(&keys, node->keys[i]);

        if (near && strcmp(near, key) == 0)
            return true;
        unknown += !field_find(table, node->keys[i]);
    }
    return false;
}

static int field_absent(const struct reading *reading, const struct table *table, const struct field *field,
                        const struct node *node, void *member)
{
    struct reading inner;

    if (reading->partial)
        return 0;
    if (field->required && !field->fallback && node && !(field->dispensable && field->dispensable(node)))
        return misspelt_key(table, node, field->key) ? -1 :
               reading_fail(reading, node->loc, NULL, "missing key '%s'", field->key);
    if (field->fallback) {
        struct progress *progress = reading->arena->progress;

        reading->arena->progress = NULL;     /* a default is never refused */
        if (field_value(reading, field, fallback_node(reading, field), member))
            BUG("the default of '%s' is refused: %s", field->key, field->fallback);
        reading->arena->progress = progress;
        if (field->kind == FIELD_LIST || field->kind == FIELD_CHOICES || field->kind == FIELD_INTS)
            ((struct list *)member)->node = NULL;
        return 0;
    }
    if (field->kind == FIELD_QUANTITY)
        *(double *)member = NAN;
    if (field->kind != FIELD_RECORD || field->load)
        return 0;
    inner = (struct reading){reading->arena, field->table->name, reading->err, NULL, false};
    return object_parse(&inner, field->table, NULL, member);
}

int fields_parse(const struct reading *reading, const struct table *table, const struct node *node, void *object)
{
    int result = 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        const struct node *value = node_get(node, field->key);
        void *member = (char *)object + field->offset;
        int failed = value ? field_value(reading, field, value, member)
                           : field_absent(reading, table, field, node, member);

        result = failed ? -1 : result;
    }
    *object_node(table, object) = node;
    return result;
}

/* Refuses keys that no table has; those that no message has room for are counted. With only_near: only misspelt ones. */
static int unknown_keys(const struct reading *reading, const struct key_tables *keys, const struct node *node,
                        const void *object, bool only_near)
{
    const char *expected = NULL;
    int result = 0, refused = 0;

    for (size_t i = 0; i < node->count; i++) {
        const char *near, *below, *misplaced = NULL;
        char shown[CLIP_SIZE];

        if (key_known(keys, node->keys[i]))
            continue;
        if (++refused > ERROR_MAX || !error_shows(reading->err, &node->key_locs[i])) {
            reading->err->dropped += !only_near;
            result = only_near ? result : -1;
            continue;
        }
        below = only_near ? NULL : key_below(reading->arena, keys->tables[0], node->keys[i]);
        near = below ? below : key_meant(keys, node->keys[i]);
        text_clip(node->keys[i], shown, sizeof shown);
        if (keys->tables[0]->misplaced && !only_near)
            misplaced = keys->tables[0]->misplaced(reading->arena, object, node->keys[i]);
        if (misplaced)
            result = error_clash(reading->err, node->key_locs[i], "%s: %s", reading->name, misplaced);
        else if (near)
            result = reading_fail(reading, node->key_locs[i], NULL, "unknown key '%s'; did you mean '%s'?", shown, near);
        else if (!only_near)
            result = reading_fail(reading, node->key_locs[i], NULL, "unknown key '%s'; expected one of %s", shown,
                                  expected ? expected : (expected = keys_text(reading->arena, keys)));
    }
    return result;
}

/* "a b c" as "a, b, c" */
static char *words_list(struct arena *arena, const char *words)
{
    char *list = arena_strdup(arena, "");

    while (*words) {
        size_t n = strcspn(words, " ");

        list = arena_printf(arena, "%s%s%.*s", list, *list ? ", " : "", (int)n, words);
        words += n + strspn(words + n, " ");
    }
    return list;
}

static int exactly_one_check(const struct reading *reading, const struct table *table, const struct node *node)
{
    const char *first = NULL;
    int result = 0;

    for (size_t i = 0; i < node->count; i++) {
        if (!word_in(table->exactly_one, node->keys[i]))
            continue;
        if (first)
            result = reading_fail(reading, node->key_locs[i], NULL, "'%s' and '%s' exclude each other", first,
                                  node->keys[i]);
        else
            first = node->keys[i];
    }
    if (first)
        return result;
    return reading_fail(reading, node->loc, NULL, "expected exactly one of %s",
                        words_list(reading->arena, table->exactly_one));
}

/* The mapping that a scalar stands for: its shorthand key with this value. */
static const struct node *shorthand_expand(struct arena *arena, const struct table *table, const struct node *node)
{
    struct node *mapping = node_mapping(arena);

    mapping->loc = node->loc;
    node_put(arena, mapping, table->shorthand, (struct node *)(uintptr_t)node);
    return mapping;
}

static int object_parse(const struct reading *outer, const struct table *table, const struct node *node,
                        void *object)
{
    struct key_tables keys = {{table, NULL}};
    struct reading local = *outer, *reading = &local;
    void *extra = NULL;
    bool known;
    int result;

    local.partial |= table->partial;
    memset(object, 0, table->size);
    if (node && progress_look(reading->arena->progress, reading->err))
        return -1;
    if (node && node->kind == NODE_SCALAR && !node_is_null(node) && table->shorthand) {
        node = shorthand_expand(reading->arena, table, node);
        reading->unsaid = table->bare ? table->shorthand : NULL;
    }
    if (node && node->kind != NODE_MAPPING)
        return reading_unexpected(reading, node, NULL, mapping_expected(reading->arena, table));
    result = fields_parse(reading, table, node, object);
    if (node && table->exactly_one && exactly_one_check(reading, table, node))
        result = -1;
    /* The extension's keys depend on this table's values, so they are known only if these could be read. */
    known = !table->extension || !result;
    if (table->extension && known)
        keys.tables[1] = table->extension(reading->arena, object, &extra);
    if (keys.tables[1] && fields_parse(reading, keys.tables[1], node, extra))
        result = -1;
    if (node && unknown_keys(reading, &keys, node, object, !known))
        result = -1;
    return result;
}

int field_parse(struct arena *arena, const struct table *table, const struct node *node, void *object,
                struct error *err)
{
    struct reading reading = {arena, table->name, err, NULL, false};

    return object_parse(&reading, table, node, object);
}

/* The node as one that nobody wrote. */
static struct node *supplied(struct arena *arena, const struct node *value)
{
    struct node *copy = ARENA_ARRAY(arena, struct node, 1);

    *copy = *value;
    copy->supplied = true;
    return copy;
}

int field_supply(struct arena *arena, const struct table *table, void *object, const struct node *values,
                 struct supplying how, struct error *err)
{
    struct reading reading = {arena, how.name, err, NULL, false};
    const struct node **node = object_node(table, object);
    struct node *added = node_mapping(arena), empty = {.kind = NODE_MAPPING};
    int result = 0;

    for (size_t i = 0; i < values->count; i++) {
        const struct field *field = field_find(table, values->keys[i]);

        if (!field || node_get(*node, field->key))
            continue;
        if (field_value(&reading, field, values->items[i], (char *)object + field->offset))
            result = -1;
        node_put(arena, added, field->key, how.supplied ? supplied(arena, values->items[i]) : values->items[i]);
    }
    added->loc = *node ? (*node)->loc : values->loc;
    if (added->count)
        *node = node_merge(arena, *node ? *node : &empty, added);
    return result;
}

void field_withdraw(struct arena *arena, const struct table *table, void *object, const char *key)
{
    struct reading reading = {arena, table->name, NULL, NULL, false};
    const struct field *field = field_find(table, key);
    const struct node **node = object_node(table, object);
    struct node *left = node_mapping(arena);

    left->loc = (*node)->loc;
    for (size_t i = 0; i < (*node)->count; i++)
        if (strcmp((*node)->keys[i], key))
            node_put(arena, left, (*node)->keys[i], (*node)->items[i]);
    *node = left;
    if (field->kind == FIELD_BOOL)
        *(bool *)((char *)object + field->offset) = false;
    field_absent(&reading, table, field, NULL, (char *)object + field->offset);
}

bool field_supplied(const struct table *table, const void *object, const char *key)
{
    const struct node *value = node_get(*object_node(table, object), key);

    return value && value->supplied;
}

bool field_given(const struct table *table, const void *object, const char *key)
{
    return node_get(*object_node(table, object), key) != NULL;
}

struct loc field_loc(const struct table *table, const void *object, const char *key)
{
    return node_loc(*object_node(table, object), key);
}

/* What a field may fill. */
struct probe {
    const struct node *node;
    union { int number; bool boolean; double quantity; const char *text; struct list list; } member;
};

int field_check(const struct field *field, const char *name, const struct node *value, struct error *err)
{
    struct field alone = *field;
    const struct table table = {.name = name, .fields = &alone, .count = 1, .size = sizeof(struct probe),
                                .node_offset = offsetof(struct probe, node)};
    struct arena arena = {0};
    struct node *mapping;
    struct probe probe;
    int rc;

    if (field->kind == FIELD_RECORD || field->kind == FIELD_OPTIONAL || field->kind == FIELD_LIST)
        return 0;
    mapping = node_mapping(&arena);
    alone.offset = offsetof(struct probe, member);
    node_put(&arena, mapping, field->key, (struct node *)(uintptr_t)value);
    rc = field_parse(&arena, &table, mapping, &probe, err);
    arena_release(&arena);
    return rc;
}
