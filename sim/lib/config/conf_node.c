#include "config/conf_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf_text.h"

static struct node *node_new(struct arena *arena, enum node_kind kind)
{
    struct node *node = arena_alloc(arena, sizeof *node);

    node->kind = kind;
    return node;
}

struct node *node_scalar(struct arena *arena, const char *text, bool quoted)
{
    struct node *node = node_new(arena, NODE_SCALAR);

    node->text = arena_strdup(arena, text);
    node->quoted = quoted;
    return node;
}

struct node *node_sequence(struct arena *arena)
{
    return node_new(arena, NODE_SEQUENCE);
}

struct node *node_mapping(struct arena *arena)
{
    return node_new(arena, NODE_MAPPING);
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && !node->quoted && text_is_null(node->text);
}

/* Gives the node new arrays of that capacity. Always new ones: a copy of a node can then change without the
 * original. */
static void node_reserve(struct arena *arena, struct node *node, size_t capacity)
{
    struct node **items = ARENA_ARRAY(arena, struct node *, capacity);

    if (node->count)
        memcpy(items, node->items, node->count * sizeof *items);
    node->items = items;
    node->capacity = capacity;
    if (node->kind == NODE_MAPPING) {
        const char **keys = ARENA_ARRAY(arena, const char *, capacity);
        struct loc *key_locs = ARENA_ARRAY(arena, struct loc, capacity);

        if (node->count) {
            memcpy(keys, node->keys, node->count * sizeof *keys);
            memcpy(key_locs, node->key_locs, node->count * sizeof *key_locs);
        }
        node->keys = keys;
        node->key_locs = key_locs;
    }
}

void node_append(struct arena *arena, struct node *sequence, struct node *item)
{
    BUG_IF(sequence->kind != NODE_SEQUENCE);
    if (sequence->count == sequence->capacity)
        node_reserve(arena, sequence, sequence->count ? 2 * sequence->count : 4);
    sequence->items[sequence->count++] = item;
}

void node_push(struct arena *arena, struct node *mapping, const char *key, struct loc key_loc, struct node *value)
{
    BUG_IF(mapping->kind != NODE_MAPPING);
    if (mapping->count == mapping->capacity)
        node_reserve(arena, mapping, mapping->count ? 2 * mapping->count : 4);
    mapping->keys[mapping->count] = key;
    mapping->key_locs[mapping->count] = key_loc;
    mapping->items[mapping->count++] = value;
}

/* The index of a key in a mapping, or the mapping's count if it lacks the key. */
static size_t key_index(const struct node *mapping, const char *key)
{
    size_t i = 0;

    while (i < mapping->count && !text_same(mapping->keys[i], key))
        i++;
    return i;
}

static void put_at(struct arena *arena, struct node *mapping, const char *key, struct loc key_loc, struct node *value)
{
    size_t i = key_index(mapping, key);

    if (i == mapping->count) {
        node_push(arena, mapping, arena_strdup(arena, key), key_loc, value);
    } else {
        mapping->items[i] = value;
        mapping->key_locs[i] = key_loc;
    }
}

void node_put(struct arena *arena, struct node *mapping, const char *key, struct node *value)
{
    put_at(arena, mapping, key, value->loc, value);
}

struct node *node_merge(struct arena *arena, const struct node *base, const struct node *over)
{
    struct node *merged = node_mapping(arena);

    merged->loc = over->loc;
    for (size_t i = 0; i < base->count; i++)
        put_at(arena, merged, base->keys[i], base->key_locs[i], base->items[i]);
    for (size_t i = 0; i < over->count; i++) {
        struct node *value = over->items[i];
        const struct node *below = node_get(base, over->keys[i]);

        if (below && below->kind == NODE_MAPPING && value->kind == NODE_MAPPING)
            value = node_merge(arena, below, value);
        put_at(arena, merged, over->keys[i], over->key_locs[i], value);
    }
    return merged;
}

struct node *node_get(const struct node *mapping, const char *key)
{
    size_t i;

    if (!mapping || mapping->kind != NODE_MAPPING)
        return NULL;
    i = key_index(mapping, key);
    return i < mapping->count ? mapping->items[i] : NULL;
}

/* The index in a list that a part of a path names, or the list's count if there is no such item. */
static size_t item_index(const struct node *sequence, const char *part)
{
    char *end;
    size_t index;

    if (!*part || strlen(part) > 9 || strspn(part, "0123456789") != strlen(part))
        return sequence->count;
    index = (size_t)strtoull(part, &end, 10);
    return index < sequence->count ? index : sequence->count;
}

struct node *node_at(const struct node *root, const char *path)
{
    const struct node *node = root;
    char part[CONF_MAX_KEY + 1];

    while (node) {
        size_t length = strcspn(path, ".");

        if (length > CONF_MAX_KEY)
            return NULL;
        memcpy(part, path, length);
        part[length] = '\0';
        if (node->kind == NODE_SEQUENCE) {
            size_t i = item_index(node, part);
            node = i < node->count ? node->items[i] : NULL;
        } else {
            node = node_get(node, part);
        }
        if (!path[length])
            break;
        path += length + 1;
    }
    return (struct node *)node;
}

bool node_equal(const struct node *a, const struct node *b)
{
    bool equal = a->kind == b->kind && a->count == b->count;

    if (a->kind == NODE_SCALAR)
        return equal && !strcmp(a->text, b->text);
    for (size_t i = 0; equal && i < a->count; i++)
        equal = (a->kind == NODE_SEQUENCE || !strcmp(a->keys[i], b->keys[i])) && node_equal(a->items[i], b->items[i]);
    return equal;
}

struct loc node_loc(const struct node *mapping, const char *key)
{
    const struct node *value = node_get(mapping, key);

    if (value)
        return value->loc;
    return mapping ? mapping->loc : (struct loc){NULL, 0, 0};
}

/* A key of a mapping in node_settle. Ranks number the mapping's own keys first, then the keys that `<<` merges in. */
struct entry {
    const char *key;
    struct loc key_loc;
    struct node *value;
    size_t rank;
};
struct entries {
    struct entry *items;
    size_t count, capacity;
};

static int entry_by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int entry_by_rank(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void entries_add(struct entries *entries, const struct node *mapping)
{
    for (size_t i = 0; i < mapping->count; i++) {
        size_t rank = entries->count;

        *GROW(entries) = (struct entry){mapping->keys[i], mapping->key_locs[i], mapping->items[i], rank};
    }
}

static int merge_refuse(const struct node *value, const char *expected, struct error *err)
{
    static const char *const kinds[] = {"text", "a list", "a mapping"};

    return error_add(err, EXIT_INPUT, value->loc, "'<<' merges mappings; expected %s, found %s", expected,
                     kinds[value->kind]);
}

static int entries_merge(struct entries *entries, const struct node *merge, struct error *err)
{
    int result = 0;

    if (merge->kind == NODE_SCALAR)
        return merge_refuse(merge, "a mapping or a list of mappings", err);
    if (merge->kind == NODE_MAPPING) {
        entries_add(entries, merge);
        return 0;
    }
    for (size_t i = 0; i < merge->count; i++) {
        if (merge->items[i]->kind != NODE_MAPPING)
            result = merge_refuse(merge->items[i], "a mapping", err);
        else
            entries_add(entries, merge->items[i]);
    }
    return result;
}

static int duplicate_refuse(const struct entry *first, const struct entry *second, struct error *err)
{
    char shown[CLIP_SIZE];

    text_clip(second->key, shown, sizeof shown);
    if (second->key_loc.line == 0)    /* on the command line */
        return error_add(err, EXIT_INPUT, second->key_loc, "duplicate key '%s'", shown);
    return error_add(err, EXIT_INPUT, second->key_loc, "duplicate key '%s'; first given at line %d", shown,
                     first->key_loc.line);
}

/* Keeps the first of sorted entries with equal keys. Two equal keys among the first `own` ranks are a mistake. */
static int entries_unique(struct entries *entries, size_t own, struct error *err)
{
    size_t kept = 0;
    int result = 0;

    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->items[i];

        if (kept > 0 && strcmp(entries->items[kept - 1].key, entry->key) == 0) {
            if (entry->rank < own)
                result = duplicate_refuse(&entries->items[kept - 1], entry, err);
            continue;
        }
        entries->items[kept++] = *entry;
    }
    entries->count = kept;
    return result;
}

int node_settle(struct arena *arena, struct node *mapping, const struct node *merge, struct error *err)
{
    struct entries entries = {0};
    size_t own = mapping->count;
    int result = 0;

    if (!merge && own < 2)
        return 0;
    entries_add(&entries, mapping);
    if (merge)
        result = entries_merge(&entries, merge, err);
    array_sort(entries.items, entries.count, sizeof *entries.items, entry_by_key);
    if (entries_unique(&entries, own, err))
        result = -1;
    if (merge && !result && entries.count) {
        array_sort(entries.items, entries.count, sizeof *entries.items, entry_by_rank);
        for (size_t i = own; i < entries.count; i++)
            node_push(arena, mapping, entries.items[i].key, entries.items[i].key_loc, entries.items[i].value);
    }
    free(entries.items);
    return result;
}
