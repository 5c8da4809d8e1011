/* shared: files that many scenarios name, read once where the arena has a cache. */
#include <string.h>
#include <sys/stat.h>

#include "cache/cache.h"
#include "config/field.h"

/* A tree that is remembered, and when its file was as it says. */
struct tree {
    struct stat status;
    struct node *root;
};

static bool unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the file into the cache, or into the arena where that has no room. */
static int remember(struct arena *arena, const char *path, const struct stat *status, const struct node **root,
                    struct error *err)
{
    struct arena own = {0};
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
    const struct tree *tree;
    struct stat status;
    struct node *loaded;
    int rc;

    if (!arena->cache || stat(path, &status) || !S_ISREG(status.st_mode)) {
        rc = conf_load(arena, path, &loaded, err);
        *root = loaded;
        return rc;
    }
    tree = cache_find(arena->cache, CACHE_TREE, path, strlen(path));
    if (!tree || !unchanged(&tree->status, &status))
        return remember(arena, path, &status, root, err);
    *root = tree->root;
    return 0;
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
    struct arena own = {.cache = arena->cache};

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
