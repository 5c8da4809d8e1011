/* shared: what many scenarios have in common is read once: files that they name, where the arena has a cache, and values
 * of mappings that differ in others. */
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/field_value.h"

/* A tree that is remembered, and when its file was as it says. */
struct tree {
    struct stat status;
    struct node *root;
};

static bool unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Reads the file into the cache, or into the arena where that has no room. */
static int remember(struct arena *arena, const char *path, const struct stat *status, const struct node **root,
                    struct error *err)
{
    struct arena own = {.progress = arena->progress};
    struct tree *tree = ARENA_ARRAY(&own, struct tree, 1);

    tree->status = *status;
    if (conf_load(&own, path, &tree->root, err)) {
        arena_release(&own);
        return -1;
    }
    *root = tree->root;
    if (!cache_put(arena->cache, CACHE_TREE, path, strlen(path), tree, &own))
        arena_join(arena, &own);
    return 0;
}

int conf_shared(struct arena *arena, const char *path, const struct node **root, struct error *err)
{
    const struct tree *tree = arena->cache ? cache_find(arena->cache, CACHE_TREE, path, strlen(path)) : NULL;
    struct stat status;
    struct node *loaded;
    int rc;

    if (tree && arena->cache->files_stay) {
        *root = tree->root;
        return 0;
    }
    if (stat(path, &status))
        status.st_mode = 0;              /* what keeps it from being looked at keeps it from being read, which says so */
    if (S_ISFIFO(status.st_mode))
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "this is a pipe; expected a file");
    if (!arena->cache || !S_ISREG(status.st_mode)) {
        rc = conf_load(arena, path, &loaded, err);
        *root = loaded;
        return rc;
    }
    if (!tree || !unchanged(&tree->status, &status))
        return remember(arena, path, &status, root, err);
    *root = tree->root;
    return 0;
}

int conf_title(struct arena *arena, const char *path, const char **title, struct error *err)
{
    static const struct { const char *key, *before; } said[] = {{"title", ""}, {"source", ""}, {"alias", "the same as "}};
    struct error found = {0};
    struct node *root = NULL;
    int rc;

    *title = "";
    if (!conf_load(arena, path, &root, &found))
        for (size_t i = 0; i < COUNT(said) && !**title; i++)
            if (node_get(root, said[i].key) && node_get(root, said[i].key)->text)
                *title = arena_printf(arena, "%s%s", said[i].before, node_get(root, said[i].key)->text);
    rc = error_pass_system(&found, err);
    error_release(&found);
    return rc;
}

/* What a tree was parsed to. */
struct record {
    const struct node *root;
    void *object;
};

int field_load(struct arena *arena, const struct table *table, const char *path, void *object, struct error *err)
{
    const char *key = arena_printf(arena, "%s:%s", table->name, path);
    const struct node *root;
    const struct record *known;
    const struct tree *tree;
    struct record *record;
    struct arena own = {.cache = arena->cache, .progress = arena->progress};

    if (conf_shared(arena, path, &root, err))
        return -1;
    tree = arena->cache ? cache_find(arena->cache, CACHE_TREE, path, strlen(path)) : NULL;
    if (!tree || tree->root != root)     /* it goes with the arena */
        return field_parse(arena, table, root, object, err);
    known = cache_find(arena->cache, CACHE_RECORD, key, strlen(key));
    if (known && known->root == root) {
        memcpy(object, known->object, table->size);
        return 0;
    }
    record = ARENA_ARRAY(&own, struct record, 1);
    *record = (struct record){root, arena_alloc(&own, table->size)};
    if (field_parse(&own, table, root, record->object, err)) {
        arena_join(arena, &own);         /* messages may point to what was read */
        return -1;
    }
    memcpy(object, record->object, table->size);
    if (!cache_put(arena->cache, CACHE_RECORD, key, strlen(key), record, &own))
        arena_join(arena, &own);
    return 0;
}

/* B of the member that holds the field's value; 0: nobody knows, as only its function reads it. */
static size_t member_size(const struct field *field)
{
    switch (field->kind) {
    case FIELD_INT:
    case FIELD_CHOICE:
        return sizeof(int);
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_QUANTITY:
        return sizeof(double);
    case FIELD_STRING:
    case FIELD_OPTIONAL:
        return sizeof(void *);
    case FIELD_RECORD:
        BUG_IF(!field->table);
        return field->table->size;
    default:
        return sizeof(struct list);
    }
}

/* Reads a value that differs from the other object's. This object's member holds a copy of the other's until then. */
static bool read_other(const struct reading *reading, const struct field *field, const struct node *value, void *member)
{
    const struct reading inner = {reading->arena, field->table ? field->table->name : NULL, reading->err, NULL, false};
    size_t size = member_size(field);

    if (!size)
        return false;
    if (field->kind == FIELD_RECORD && !field->load && value->kind == NODE_MAPPING) {
        void *like = arena_alloc(reading->arena, size);

        return field_parse_like(inner.arena, field->table, value, memcpy(like, member, size), member);
    }
    memset(member, 0, size);
    return !field_value(reading, field, value, member);
}

/* Whether the mapping has all keys of the other one, and all that it must have. */
static bool comparable(const struct table *table, const struct node *node, const struct node *other)
{
    if (node->kind != NODE_MAPPING || table->exactly_one)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];

        if (field->required && !field->fallback && (field->dispensable ? !node_get(node, field->key) : !other))
            return false;
    }
    for (size_t i = 0; other && i < other->count; i++)
        if (!node_get(node, other->keys[i]))
            return false;
    return true;
}

/* The keys of the table's extension, which are read anew. False where the other object has some. */
static bool read_extension(const struct reading *reading, const struct table *table, const struct node *node,
                           void *object, const struct table **extension)
{
    void *extra = NULL;

    *extension = table->extension ? table->extension(reading->arena, object, &extra) : NULL;
    return !*extension || !fields_parse(reading, *extension, node, extra);
}

bool field_parse_like(struct arena *arena, const struct table *table, const struct node *node, const void *like,
                      void *object)
{
    const struct node *other = *object_node(table, like);
    struct error ignored = {0};
    const struct reading reading = {arena, table->name, &ignored, NULL, false};
    struct key_tables keys = {{table, NULL}};
    void *extra;
    bool same = comparable(table, node, other) &&
                !(table->extension && table->extension(arena, (void *)(uintptr_t)like, &extra));

    if (same)
        memcpy(object, like, table->size);
    for (size_t i = 0; same && i < node->count; i++) {
        const struct field *field = field_find(table, node->keys[i]);

        if (field && node_get(other, field->key) != node->items[i])
            same = read_other(&reading, field, node->items[i], (char *)object + field->offset);
    }
    same = same && read_extension(&reading, table, node, object, &keys.tables[1]);
    for (size_t i = 0; same && i < node->count; i++)
        same = node_get(other, node->keys[i]) == node->items[i] || key_known(&keys, node->keys[i]);
    if (same)
        *object_node(table, object) = node;
    error_release(&ignored);
    return same;
}
