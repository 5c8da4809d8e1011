#include "config/conf_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
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

/* Keys of large mappings are found by hash. Copies of a node share it: it may hold keys that one of them lacks. Who takes a key
 * away makes a new mapping. */
enum { LARGE = 64 };             /* keys */
struct key_places {
    size_t room;
    uint32_t at[];               /* 1 + the index of a key, or 0 */
};

static size_t first_place(const struct key_places *places, const char *key)
{
    return hash_more(HASH_START, key, strlen(key)) % places->room;
}

static void place_add(struct key_places *places, const char *key, size_t index)
{
    size_t at = first_place(places, key);

    while (places->at[at])
        at = (at + 1) % places->room;
    places->at[at] = (uint32_t)index + 1;
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
        node->places = NULL;
        if (capacity >= LARGE) {
            node->places = arena_alloc(arena, sizeof *node->places + 2 * capacity * sizeof *node->places->at);
            node->places->room = 2 * capacity;
            for (size_t i = 0; i < node->count; i++)
                place_add(node->places, keys[i], i);
        }
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
    if (mapping->places)
        place_add(mapping->places, key, mapping->count);
    mapping->keys[mapping->count] = key;
    mapping->key_locs[mapping->count] = key_loc;
    mapping->items[mapping->count++] = value;
}

size_t node_key(const struct node *mapping, const char *key)
{
    const struct key_places *places = mapping->places;
    size_t i = 0;

    if (places) {
        for (size_t at = first_place(places, key); (i = places->at[at]); at = (at + 1) % places->room)
            if (i <= mapping->count && text_same(mapping->keys[i - 1], key))
                return i - 1;
        return mapping->count;
    }
    while (i < mapping->count && !text_same(mapping->keys[i], key))
        i++;
    return i;
}

static void put_at(struct arena *arena, struct node *mapping, const char *key, struct loc key_loc, struct node *value)
{
    size_t i = node_key(mapping, key);

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
    i = node_key(mapping, key);
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

static int merge_refuse(const struct node *value, const char *expected, struct error *err)
{
    static const char *const kinds[] = {"text", "a list", "a mapping"};

    return error_add(err, EXIT_INPUT, value->loc, "'<<' merges mappings; expected %s, found %s", expected,
                     kinds[value->kind]);
}

/* Adds the keys that the mapping lacks. */
static void merge_keys(struct arena *arena, struct node *mapping, const struct node *other)
{
    for (size_t i = 0; i < other->count; i++)
        if (node_key(mapping, other->keys[i]) == mapping->count)
            node_push(arena, mapping, other->keys[i], other->key_locs[i], other->items[i]);
}

static int merge(struct arena *arena, struct node *mapping, const struct node *merged, struct error *err)
{
    int result = 0;

    if (merged->kind == NODE_SCALAR)
        return merge_refuse(merged, "a mapping or a list of mappings", err);
    if (merged->kind == NODE_MAPPING)
        merge_keys(arena, mapping, merged);
    for (size_t i = 0; merged->kind == NODE_SEQUENCE && i < merged->count; i++) {
        if (merged->items[i]->kind == NODE_MAPPING)
            merge_keys(arena, mapping, merged->items[i]);
        else
            result = merge_refuse(merged->items[i], "a mapping", err);
    }
    return result;
}

int node_settle(struct arena *arena, struct node *mapping, const struct node *merged, struct error *err)
{
    int result = 0;

    for (size_t i = 1; i < mapping->count; i++) {
        size_t first = node_key(mapping, mapping->keys[i]);
        struct loc loc = mapping->key_locs[i];
        char shown[CLIP_SIZE];

        if (i % 1024 == 0 && progress_look(arena->progress, err))
            return -1;
        if (first == i)
            continue;
        text_clip(mapping->keys[i], shown, sizeof shown);
        result = loc.line == 0 ?         /* on the command line */
            error_add(err, EXIT_INPUT, loc, "duplicate key '%s'", shown) :
            error_add(err, EXIT_INPUT, loc, "duplicate key '%s'; first given at line %d", shown,
                      mapping->key_locs[first].line);
    }
    return merged && merge(arena, mapping, merged, err) ? -1 : result;
}
