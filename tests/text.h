/* text: what tests compare: prints, messages, random numbers that are the same everywhere. */
#ifndef DTSIM_TEXT_H
#define DTSIM_TEXT_H

#include <stdint.h>

#include "conf.h"

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

/* splitmix64 */
static inline uint64_t next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

#endif
