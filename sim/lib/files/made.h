/* made: what follows from files of the release is computed when the program is built, and stands beside it in dtsim.made.
 * It is found by a digest of the program's sources and of the files' bytes. Of a file that somebody changed nothing is
 * found, and neither is anything where dtsim.made is missing or cut short: then it is computed, with the same result. Whoever
 * can write dtsim.made can write the program: its content is not checked. */
#ifndef DTSIM_MADE_H
#define DTSIM_MADE_H

#include "base/base.h"
#include "files/digest.h"

/* Digest of what something is made of; begins with the program's sources and what kind of thing it is. */
void made_key_begin(struct digest *digest, const char *kind);

/* What stands there under the key, which has DIGEST_HEX characters; NULL: nothing. In the arena. Pointers of made_name() get
 * `name`, which lives as long. */
void *made_find(struct arena *arena, const char *key, const char *name);
/* The same of such a file. */
void *made_find_in(struct arena *arena, const char *path, const char *key, const char *name);

/* Structs and what they point to, wherever in memory they will stand. The first one is what made_find() gives. Zero-initialise;
 * made_add() releases it. */
struct made_bytes { char *items; size_t count, capacity; };
struct made_image {
    struct made_bytes bytes;
    struct made_places { uint32_t *items; size_t count, capacity; } pointers, names;
    void *texts;                     /* that it has, each once */
};
/* Adds a copy (of NULL: zeros), aligned for any type of the program; returns its place. */
size_t made_put(struct made_image *image, const void *bytes, size_t size);
/* The pointer that stands at a place points to another place. Returns that one. */
size_t made_point(struct made_image *image, size_t pointer, size_t to);
/* The same to a copy of the text, which lives until made_add(); NULL stays. */
void made_text(struct made_image *image, size_t pointer, const char *text);
/* The pointer there points to the name that made_find() is given. */
void made_name(struct made_image *image, size_t pointer);

/* All that is made. Zero-initialise; made_write() releases it. */
struct made {
    struct { struct made_entry *items; size_t count, capacity; } entries;
    struct made_bytes bytes;
};
void made_add(struct made *made, const char *key, struct made_image *image);
/* Writes the file. -1: it cannot be written (errno). */
int made_write(struct made *made, const char *path);

#endif
