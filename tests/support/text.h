/* text: what tests compare: prints, messages, random numbers that are the same everywhere. */
#ifndef DTSIM_TESTS_TEXT_H
#define DTSIM_TESTS_TEXT_H

#include <stdint.h>
#include <string.h>

#include "config/conf.h"

/* What a function prints of a tree; free it. */
static inline char *printed(const struct node *root, void (*print)(const struct node *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    print(root, out);
    fclose(out);
    return text;
}

/* What error_print prints; free it. */
static inline char *messages_of(const struct error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    error_print(err, out);
    fclose(out);
    return text;
}

/* A tree as one line, with kinds and quotes but without places: {a: [1, "2"]}. */
static inline void dump(const struct node *node, FILE *out)
{
    if (node->kind == NODE_SCALAR) {
        fprintf(out, node->quoted ? "\"%s\"" : "%s", node->text);
        return;
    }
    fputc(node->kind == NODE_MAPPING ? '{' : '[', out);
    for (size_t i = 0; i < node->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        if (node->kind == NODE_MAPPING)
            fprintf(out, "%s: ", node->keys[i]);
        dump(node->items[i], out);
    }
    fputc(node->kind == NODE_MAPPING ? '}' : ']', out);
}

/* `count` times the text, between two others. */
static inline char *repeated(const char *before, const char *text, size_t count, const char *after)
{
    size_t length = strlen(text);
    char *all = xcalloc(strlen(before) + count * length + strlen(after) + 1, 1), *at = stpcpy(all, before);

    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, text);
    strcpy(at, after);
    return all;
}

/* splitmix64 */
static inline uint64_t next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

#endif
