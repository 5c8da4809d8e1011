#include "files/made.h"

#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "files/look.h"

/* A file: a header, entries by key, and what they name: bytes, then the places in them of pointers and of names. Pointers are
 * written as places; places are counted in words, which are as long as a pointer. */
struct header { char magic[8]; uint64_t entries; };
struct made_entry {
    char key[DIGEST_HEX - 1];
    uint64_t at, bytes, pointers, names;         /* B, B, and how many */
};
static const char MAGIC[] = "dtsim.1";
enum { WORD = sizeof(void *), ALIGNED = sizeof(uint64_t), MOST_ENTRIES = 10000 };

/* Beside the program, or where its modules are installed. */
static const char *const folders[] = {"", DTSIM_MODULE_FOLDER "/", "dtsim/"};

void made_key_begin(struct digest *digest, const char *kind)
{
    digest_init(digest);
    digest_add(digest, sources_digest, strlen(sources_digest));
    digest_add(digest, kind, strlen(kind) + 1);
}

/* Fills the bytes from a place of the file. */
static bool fill(int fd, void *bytes, uint64_t size, uint64_t at)
{
    return pread(fd, bytes, (size_t)size, (off_t)at) == (ssize_t)size;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(((const struct made_entry *)a)->key, ((const struct made_entry *)b)->key, sizeof ((struct made_entry *)0)->key);
}

static bool find_entry(int fd, const char *key, struct made_entry *found)
{
    struct header header;
    struct made_entry *entries = NULL;
    const struct made_entry *entry = NULL;

    memcpy(found->key, key, sizeof found->key);
    if (fill(fd, &header, sizeof header, 0) && !memcmp(header.magic, MAGIC, sizeof MAGIC) && header.entries <= MOST_ENTRIES) {
        entries = xmalloc((size_t)header.entries * sizeof *entries);
        if (fill(fd, entries, header.entries * sizeof *entries, sizeof header))
            entry = array_find(found, entries, (size_t)header.entries, sizeof *entries, compare_keys);
    }
    if (entry)
        *found = *entry;
    free(entries);
    return entry != NULL;
}

/* Makes addresses of the places that pointers hold. */
static void point(uintptr_t *words, const struct made_entry *entry, const uint32_t *at, const char *name)
{
    const uint32_t *names = at + entry->pointers, *end = names + entry->names;

    for (; at < names; at++)
        words[*at] = (uintptr_t)(words + words[*at]);
    for (; at < end; at++)
        words[*at] = (uintptr_t)name;
}

static void *read_entry(struct arena *arena, int fd, const struct made_entry *entry, const char *name)
{
    uint64_t places = (entry->pointers + entry->names) * sizeof(uint32_t);
    void *bytes = arena_alloc(arena, (size_t)entry->bytes);
    uint32_t *at = xmalloc((size_t)places);

    if (fill(fd, bytes, entry->bytes, entry->at) && fill(fd, at, places, entry->at + entry->bytes))
        point(bytes, entry, at, name);
    else
        bytes = NULL;
    free(at);
    return bytes;
}

void *made_find_in(struct arena *arena, const char *path, const char *key, const char *name)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct made_entry entry;
    void *found = NULL;

    if (fd < 0)
        return NULL;
    if (find_entry(fd, key, &entry))
        found = read_entry(arena, fd, &entry, name);
    close(fd);
    return found;
}

void *made_find(struct arena *arena, const char *key, const char *name)
{
    struct error err = {0};
    const char *own = look_program(arena, &err);
    void *found = NULL;

    error_release(&err);
    for (size_t i = 0; own && i < COUNT(folders) && !found; i++)
        found = made_find_in(arena, arena_printf(arena, "%s%sdtsim.made", own, folders[i]), key, name);
    return found;
}

/* Adds a copy, with zeros behind it up to `whole` bytes (of NULL: all zeros); returns its place. */
static size_t append(struct made_bytes *to, const void *bytes, size_t size, size_t whole)
{
    size_t at = to->count;

    if (to->capacity - at < whole) {
        to->capacity = 2 * (at + whole);
        to->items = xrealloc(to->items, to->capacity, 1);
    }
    if (whole)
        memset(to->items + at, 0, whole);
    if (bytes && size)
        memcpy(to->items + at, bytes, size);
    to->count += whole;
    return at;
}

size_t made_put(struct made_image *image, const void *bytes, size_t size)
{
    return append(&image->bytes, bytes, size, (size + ALIGNED - 1) / ALIGNED * ALIGNED);
}

size_t made_point(struct made_image *image, size_t pointer, size_t to)
{
    uintptr_t place = to / WORD;

    memcpy(image->bytes.items + pointer, &place, sizeof place);
    *GROW(&image->pointers) = (uint32_t)(pointer / WORD);
    return to;
}

struct text { const char *text; size_t at; };

static int compare_texts(const void *a, const void *b)
{
    return strcmp(((const struct text *)a)->text, ((const struct text *)b)->text);
}

void made_text(struct made_image *image, size_t pointer, const char *text)
{
    struct text wanted = {text, 0}, *own;
    void *slot = text ? tfind(&wanted, &image->texts, compare_texts) : NULL;

    if (!text)
        return;
    if (!slot) {
        own = xmalloc(sizeof *own);
        *own = (struct text){text, made_put(image, text, strlen(text) + 1)};
        slot = tsearch(own, &image->texts, compare_texts);
        if (!slot)
            memory_ran_out();
    }
    made_point(image, pointer, (*(struct text **)slot)->at);
}

void made_name(struct made_image *image, size_t pointer)
{
    memset(image->bytes.items + pointer, 0, WORD);
    *GROW(&image->names) = (uint32_t)(pointer / WORD);
}

void made_add(struct made *made, const char *key, struct made_image *image)
{
    struct made_entry entry = {.at = made->bytes.count, .bytes = image->bytes.count, .pointers = image->pointers.count,
                               .names = image->names.count};
    size_t pointers = image->pointers.count * sizeof *image->pointers.items, names = image->names.count * sizeof *image->names.items;

    BUG_IF(image->bytes.count > UINT32_MAX);
    memcpy(entry.key, key, sizeof entry.key);
    append(&made->bytes, image->bytes.items, image->bytes.count, image->bytes.count);
    append(&made->bytes, image->pointers.items, pointers, pointers);
    append(&made->bytes, image->names.items, names, names);
    *GROW(&made->entries) = entry;
    free(image->bytes.items);
    free(image->pointers.items);
    free(image->names.items);
    tdestroy(image->texts, free);
    *image = (struct made_image){0};
}

int made_write(struct made *made, const char *path)
{
    FILE *out = fopen(path, "wb");
    struct header header = {.entries = made->entries.count};
    uint64_t begin = sizeof header + made->entries.count * sizeof *made->entries.items;
    int rc = -1;

    memcpy(header.magic, MAGIC, sizeof MAGIC);
    array_sort(made->entries.items, made->entries.count, sizeof *made->entries.items, compare_keys);
    for (size_t i = 0; i < made->entries.count; i++)
        made->entries.items[i].at += begin;
    if (out) {
        fwrite(&header, sizeof header, 1, out);
        fwrite(made->entries.items, sizeof *made->entries.items, made->entries.count, out);
        fwrite(made->bytes.items, 1, made->bytes.count, out);
        rc = ferror(out) ? -1 : 0;
        rc = fclose(out) ? -1 : rc;
    }
    free(made->entries.items);
    free(made->bytes.items);
    *made = (struct made){0};
    return rc;
}
