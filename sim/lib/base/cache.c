#include "base/cache.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/base.h"

struct cache_entry {
    struct cache_entry *next;    /* of the same chain */
    uint64_t hash;
    enum cache_kind kind;
    const void *value;
    struct arena arena;          /* of the value, where that was not copied */
    size_t size;
    unsigned char key[];
};

enum { CHAINS = 64 };            /* at first */

void cache_init(struct cache *cache, size_t limit)
{
    *cache = (struct cache){.limit = limit};
}

static uint64_t hash_of(enum cache_kind kind, const void *key, size_t size)
{
    return XXH3_64bits_withSeed(key, size, (XXH64_hash_t)kind);
}

const void *cache_find(struct cache *cache, enum cache_kind kind, const void *key, size_t size)
{
    uint64_t hash = hash_of(kind, key, size);
    const struct cache_entry *entry = cache->nchains ? cache->chains[hash % cache->nchains] : NULL;

    while (entry && !(entry->hash == hash && entry->kind == kind && entry->size == size &&
                      !memcmp(entry->key, key, size)))
        entry = entry->next;
    cache->found[kind] += entry != NULL;
    cache->missed[kind] += entry == NULL;
    return entry ? entry->value : NULL;
}

static void grow(struct cache *cache)
{
    size_t count = cache->nchains ? 2 * cache->nchains : CHAINS;
    struct cache_entry **chains = xcalloc(count, sizeof *chains);

    for (size_t i = 0; i < cache->nchains; i++) {
        struct cache_entry *reversed = NULL;

        for (struct cache_entry *entry = cache->chains[i], *next; entry; entry = next) {
            next = entry->next;
            entry->next = reversed;
            reversed = entry;
        }
        while (reversed) {               /* the oldest first, so that the newest stands first again */
            struct cache_entry *entry = reversed, **chain = &chains[entry->hash % count];

            reversed = entry->next;
            entry->next = *chain;
            *chain = entry;
        }
    }
    free(cache->chains);
    cache->chains = chains;
    cache->nchains = count;
}

/* A new entry for a value of that many bytes; NULL: there is no room. */
static struct cache_entry *add(struct cache *cache, enum cache_kind kind, const void *key, size_t size, size_t bytes)
{
    struct cache_entry *entry;

    if (cache->bytes + bytes + sizeof *entry + size > cache->limit) {
        cache->refused = true;
        return NULL;
    }
    if (cache->count == cache->nchains)
        grow(cache);
    entry = arena_alloc(&cache->own, sizeof *entry + size);
    *entry = (struct cache_entry){.hash = hash_of(kind, key, size), .kind = kind, .size = size};
    memcpy(entry->key, key, size);
    entry->next = cache->chains[entry->hash % cache->nchains];
    cache->chains[entry->hash % cache->nchains] = entry;
    cache->count++;
    cache->bytes += bytes + sizeof *entry + size;
    return entry;
}

bool cache_put(struct cache *cache, enum cache_kind kind, const void *key, size_t size, const void *value,
               struct arena *arena)
{
    struct cache_entry *entry = add(cache, kind, key, size, arena_bytes(arena));

    if (!entry)
        return false;
    entry->value = value;
    entry->arena = *arena;
    *arena = (struct arena){.cache = arena->cache};
    return true;
}

bool cache_copy(struct cache *cache, enum cache_kind kind, const void *key, size_t size, const void *value,
                size_t bytes)
{
    struct cache_entry *entry = add(cache, kind, key, size, bytes);

    if (entry)
        entry->value = memcpy(arena_alloc(&cache->own, bytes), value, bytes);
    return entry != NULL;
}

void cache_key_add(struct cache_key *key, const void *bytes, size_t size)
{
    if (!size)
        return;
    if (key->capacity - key->count < size) {
        key->capacity = 2 * (key->count + size);
        key->items = xrealloc(key->items, key->capacity, 1);
    }
    memcpy(key->items + key->count, bytes, size);
    key->count += size;
}

void cache_key_text(struct cache_key *key, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;

    cache_key_add(key, &size, sizeof size);
    if (size)
        cache_key_add(key, text, size);
}

void cache_release(struct cache *cache)
{
    for (size_t i = 0; i < cache->nchains; i++)
        for (struct cache_entry *entry = cache->chains[i]; entry; entry = entry->next)
            arena_release(&entry->arena);
    free(cache->chains);
    arena_release(&cache->own);
    *cache = (struct cache){.limit = cache->limit, .files_stay = cache->files_stay, .names_only = cache->names_only};
}

void cache_renew(struct cache *cache)
{
    if (cache->refused)
        cache_release(cache);
}
