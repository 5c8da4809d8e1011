#include "base/base.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void bug_(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: BUG: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* Under the address sanitizer every allocation is a block of its own, so that the sanitizer sees an access past its
 * end. */
enum { BLOCK_SIZE = ADDRESS_SANITIZER ? 0 : 64 << 10 };

struct arena_block {
    struct arena_block *previous;
    size_t size, used;
    bool zeroed;                 /* all of it; else what is taken is zeroed then */
    max_align_t data[];
};

/* Most of a block for many allocations may never be taken. */
static struct arena_block *block_new(size_t size, bool zeroed)
{
    struct arena_block *block;

    if (size > SIZE_MAX - sizeof *block)
        memory_ran_out();
    block = zeroed ? xcalloc(1, sizeof *block + size) : xrealloc(NULL, sizeof *block + size, 1);
    block->size = size;
    block->used = 0;
    block->zeroed = zeroed;
    return block;
}

static void *take(struct arena *arena, size_t size, bool zeroed)
{
    const size_t align = _Alignof(max_align_t);
    struct arena_block *block = arena->last;
    size_t rounded = size ? size : 1;
    char *taken;

    if (rounded > SIZE_MAX - align)
        memory_ran_out();
    /* A block of its own keeps its exact size: rounding it up would hide an access past its end from the sanitizer. */
    if (BLOCK_SIZE > 0)
        rounded = (rounded + align - 1) / align * align;
    if (!block || rounded > block->size - block->used) {
        block = rounded > (size_t)BLOCK_SIZE ? block_new(rounded, zeroed) : block_new((size_t)BLOCK_SIZE, false);
        if (arena->last && rounded > (size_t)BLOCK_SIZE / 2) {
            /* A large allocation fills its block: the next ones go on in the older block, which still has room. */
            block->previous = arena->last->previous;
            arena->last->previous = block;
        } else {
            block->previous = arena->last;
            arena->last = block;
        }
    }
    taken = (char *)block->data + block->used;
    block->used += rounded;
    return block->zeroed || !zeroed ? taken : memset(taken, 0, rounded);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return take(arena, size, true);
}

void *arena_take(struct arena *arena, size_t size)
{
    return take(arena, size, false);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);

    memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args, again;
    int length;
    char *text;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    BUG_IF(length < 0);
    text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void arena_release(struct arena *arena)
{
    struct arena_block *block = arena->last;

    while (block) {
        struct arena_block *previous = block->previous;
        free(block);
        block = previous;
    }
    arena->last = NULL;
}

size_t arena_bytes(const struct arena *arena)
{
    size_t bytes = 0;

    for (const struct arena_block *block = arena->last; block; block = block->previous)
        bytes += sizeof *block + block->size;
    return bytes;
}

void arena_join(struct arena *arena, struct arena *other)
{
    struct arena_block **end = &other->last;

    while (*end)
        end = &(*end)->previous;
    *end = arena->last;
    arena->last = other->last;
    other->last = NULL;
}

size_t text_mark(const char *text, size_t length)
{
    static const char mark[] = "\xEF\xBB\xBF";

    return length >= sizeof mark - 1 && !memcmp(text, mark, sizeof mark - 1) ? sizeof mark - 1 : 0;
}

char *text_clip(const char *text, char *buffer, size_t size)
{
    size_t length = strlen(text);

    BUG_IF(size < 8);
    if (length < size)
        return memcpy(buffer, text, length + 1);
    length = size - sizeof "...";
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    memcpy(buffer, text, length);
    strcpy(buffer + length, "...");
    return buffer;
}

/* Upper and lower case count as the same letter, '-' and '_' as the same character. */
static int folded(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 'a';
    return c == '-' ? '_' : c;
}

enum { NEAREST_MAX = 64 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Edits between two words (optimal string alignment). Both are at most NEAREST_MAX long. */
static int edits(const char *a, size_t na, const char *b, size_t nb)
{
    int rows[3][NEAREST_MAX + 1];

    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *row = rows[i % 3];
        const int *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int same = folded(a[i - 1]) == folded(b[j - 1]);

            row[j] = smaller(smaller(up[j], row[j - 1]) + 1, up[j - 1] + !same);
            if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]))
                row[j] = smaller(row[j], up2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

int gcd(int a, int b)
{
    return b ? gcd(b, a % b) : a;
}

int lcm(int a, int b, int most)
{
    long long multiple = (long long)(a / gcd(a, b)) * b;

    return multiple <= most ? (int)multiple : 0;
}

/* Whether the word is a part of the name, between its ends and separators: "h100" of "dgx-h100". `first`: the first. */
static bool is_part(const char *word, size_t length, const char *name, bool first)
{
    for (const char *at = name;; at++) {
        size_t n = strcspn(at, "-_."), i = 0;

        while (i < n && i < length && folded(at[i]) == folded(word[i]))
            i++;
        if (i == n && n == length)
            return true;
        at += n;
        if (!*at || first)
            return false;
    }
}

/* The first candidate that begins with the word as a part, else the first that has it as one; short words are parts of
 * too many. */
static const char *with_part(const char *word, const char *(*candidate)(size_t i, const void *context),
                             const void *context)
{
    size_t length = strlen(word);
    const char *name;

    for (int first = 1; first >= 0 && length > 1; first--)
        for (size_t i = 0; (name = candidate(i, context)); i++)
            if (is_part(word, length, name, first))
                return name;
    return NULL;
}

const char *nearest(const char *word, const char *(*candidate)(size_t i, const void *context), const void *context)
{
    const char *best = NULL, *name;
    size_t length = strlen(word);
    int limit = length >= 9 ? (int)(length / 3) : length >= 5 ? 2 : 1;

    if (length == 0 || length > NEAREST_MAX)
        return NULL;
    /* A word that differs in every letter is another word, not a misspelt one. */
    limit = smaller(limit, (int)length - 1);
    for (size_t i = 0; (name = candidate(i, context)); i++) {
        size_t n = strlen(name), apart = n > length ? n - length : length - n;
        int distance;

        if (n > NEAREST_MAX || (int)apart > limit)       /* each letter that is missing is an edit */
            continue;
        distance = edits(word, length, name, n);
        if (distance <= limit) {
            best = name;
            limit = distance - 1;
        }
    }
    return best ? best : with_part(word, candidate, context);
}

/* `pipes`: it may be one, whose writer is waited for. */
static char *read_whole(const char *path, const char *what, size_t most, struct loc loc, bool pipes, size_t *length,
                        struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | (pipes ? 0 : O_NONBLOCK));
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    struct stat status;
    char *text = NULL;
    size_t got, capacity = 0;
    int rc = 0;

    *length = 0;
    if (!file) {
        error_system(err, loc, "cannot open the %s '%s'", what, path);
        return NULL;
    }
    if (fstat(fd, &status) == 0 && !S_ISREG(status.st_mode) && !(pipes && S_ISFIFO(status.st_mode))) {
        fclose(file);
        error_add(err, EXIT_INPUT, loc, "the %s '%s' is not a file", what, path);
        return NULL;
    }
    do {
        if (*length == capacity) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            text = xrealloc(text, capacity, 1);
        }
        got = fread(text + *length, 1, capacity - *length, file);
        *length += got;
    } while (got && *length <= most);
    if (ferror(file))
        rc = error_system(err, loc, "cannot read the %s '%s'", what, path);
    else if (*length > most)
        rc = error_add(err, EXIT_INPUT, loc, "the %s '%s' is larger than %zu MiB", what, path, most >> 20);
    fclose(file);
    if (rc) {
        free(text);
        return NULL;
    }
    text[*length] = '\0';        /* the last read returned no bytes, so there is room */
    return text;
}

char *file_read(const char *path, const char *what, size_t most, struct loc loc, size_t *length, struct error *err)
{
    return read_whole(path, what, most, loc, false, length, err);
}

char *file_read_stream(const char *path, const char *what, size_t most, struct loc loc, size_t *length, struct error *err)
{
    return read_whole(path, what, most, loc, true, length, err);
}
