#include "cache/cache.h"

#include <stdlib.h>
#include <string.h>

struct cache_entry {
    struct cache_entry *next;    /* of the same hash; the newest of a key stands first */
    struct arena arena;          /* of the value, and of this entry */
    enum cache_kind kind;
    const void *value;
    size_t size;
    unsigned char key[];
};

void cache_init(struct cache *cache, size_t limit)
{
    *cache = (struct cache){.limit = limit};
}

/* FNV-1a (Fowler, Noll and Vo). */
static struct cache_entry **chain_of(struct cache *cache, enum cache_kind kind, const void *key, size_t size)
{
    uint32_t hash = 2166136261u ^ (uint32_t)kind;

    for (const unsigned char *at = key, *end = at + size; at < end; at++)
        hash = (hash ^ *at) * 16777619u;
    return &cache->entries[hash % COUNT(cache->entries)];
}

const void *cache_find(struct cache *cache, enum cache_kind kind, const void *key, size_t size)
{
    const struct cache_entry *entry = *chain_of(cache, kind, key, size);

    while (entry && !(entry->kind == kind && entry->size == size && !memcmp(entry->key, key, size)))
        entry = entry->next;
    cache->found[kind] += entry != NULL;
    cache->missed[kind] += entry == NULL;
    return entry ? entry->value : NULL;
}

bool cache_put(struct cache *cache, enum cache_kind kind, const void *key, size_t size, const void *value,
               struct arena *arena)
{
    struct cache_entry **chain = chain_of(cache, kind, key, size), *entry;

    if (cache->bytes + arena_bytes(arena) + sizeof *entry + size > cache->limit)
        return false;
    entry = arena_alloc(arena, sizeof *entry + size);
    *entry = (struct cache_entry){.next = *chain, .kind = kind, .value = value, .size = size};
    memcpy(entry->key, key, size);
    entry->arena = *arena;
    *arena = (struct arena){.cache = arena->cache};
    cache->bytes += arena_bytes(&entry->arena);
    *chain = entry;
    return true;
}

void cache_release(struct cache *cache)
{
    for (size_t i = 0; i < COUNT(cache->entries); i++)
        for (struct cache_entry *entry = cache->entries[i], *next; entry; entry = next) {
            struct arena arena = entry->arena;

            next = entry->next;
            arena_release(&arena);
        }
    *cache = (struct cache){.limit = cache->limit};
}
