/* Trees of files; those of the release are made when the program is built (files/made.h). */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/progress.h"
#include "config/conf.h"
#include "files/look.h"
#include "files/made.h"

/* By what the tree of a file's text is found. */
static const char *key_of(const char *text, size_t length, char key[DIGEST_HEX])
{
    struct digest digest;

    made_key_begin(&digest, "yaml");
    digest_add(&digest, text, length);
    return digest_end(&digest, key);
}

static size_t put_loc(struct made_image *image, size_t at)
{
    made_name(image, at + offsetof(struct loc, file));
    return at;
}

static size_t put_node(struct made_image *image, const struct node *node)
{
    struct node own;
    size_t at, items, keys = 0, locs = 0;

    memcpy(&own, node, sizeof own);
    own.text = NULL;
    own.items = NULL;
    own.keys = NULL;
    own.key_locs = NULL;
    own.places = NULL;
    own.capacity = own.count;
    at = put_loc(image, made_put(image, &own, sizeof own) + offsetof(struct node, loc)) - offsetof(struct node, loc);
    made_text(image, at + offsetof(struct node, text), node->text);
    if (!node->count)
        return at;
    items = made_point(image, at + offsetof(struct node, items), made_put(image, NULL, node->count * sizeof *node->items));
    if (node->kind == NODE_MAPPING) {
        keys = made_point(image, at + offsetof(struct node, keys), made_put(image, NULL, node->count * sizeof *node->keys));
        locs = made_point(image, at + offsetof(struct node, key_locs),
                          made_put(image, node->key_locs, node->count * sizeof *node->key_locs));
    }
    for (size_t i = 0; i < node->count; i++) {
        made_point(image, items + i * sizeof *node->items, put_node(image, node->items[i]));
        if (node->kind == NODE_MAPPING) {
            made_text(image, keys + i * sizeof *node->keys, node->keys[i]);
            put_loc(image, locs + i * sizeof *node->key_locs);
        }
    }
    return at;
}

int conf_make(struct made *made, const char *path, struct error *err)
{
    enum { MIB = 1 << 20 };
    struct arena arena = {0};
    struct made_image image = {0};
    struct node *root = NULL;
    char key[DIGEST_HEX];
    size_t length;
    char *text = file_read(path, "the file", CONF_MAX_BYTES / MIB * MIB, (struct loc){.file = path}, &length, err);
    int rc = text ? conf_parse(&arena, path, text, length, &root, err) : -1;

    if (!rc) {
        put_node(&image, root);
        made_add(made, key_of(text, length, key), &image);
    }
    free(text);
    arena_release(&arena);
    return rc;
}

/* Reads the file to its end, or to one byte more than is allowed, and no longer than the budget allows: whoever writes a pipe may
 * never do so. -1: errno says why, or the budget is spent. */
static int read_within(int file, char **text, size_t *length, struct progress *progress, struct error *err)
{
    struct pollfd wait = {.fd = file, .events = POLLIN};
    struct stat status;
    bool regular = !fstat(file, &status) && S_ISREG(status.st_mode) && status.st_size < CONF_MAX_BYTES;
    size_t capacity = regular ? (size_t)status.st_size + 1 : CONF_MAX_BYTES + 1;
    ssize_t count = 1;

    *length = 0;
    *text = xmalloc(capacity);
    while (count && *length <= CONF_MAX_BYTES && !progress_look(progress, err)) {
        int ready = poll(&wait, 1, progress_patience(progress));

        if (*length == capacity)             /* it grows */
            *text = xrealloc(*text, capacity = CONF_MAX_BYTES + 1, 1);
        if (!ready)
            continue;
        count = ready > 0 ? read(file, *text + *length, capacity - *length) : -1;
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        *length += count > 0 ? (size_t)count : 0;
    }
    return progress && progress->over ? -1 : 0;
}

static bool find_made(struct arena *arena, const char *path, const char *text, size_t length, struct node **root)
{
    char key[DIGEST_HEX];

    *root = made_find(arena, key_of(text, length, key), arena_strdup(arena, path));
    return *root != NULL;
}

int conf_load(struct arena *arena, const char *path, struct node **root, struct error *err)
{
    bool piped = strcmp(path, "-") == 0;
    struct loc loc = {piped ? "stdin" : path, 0, 0};
    size_t length;
    char *text;
    int file, result = 0;

    *root = NULL;
    if (!*path)
        return error_add(err, EXIT_INPUT, (struct loc){0}, "the name of the file is empty");
    file = piped ? STDIN_FILENO : look_open_any(path, err);
    if (file < 0)
        return -1;
    if (!read_within(file, &text, &length, arena->progress, err))
        result = find_made(arena, loc.file, text, length, root) ? 0 : conf_parse(arena, loc.file, text, length, root, err);
    else if (!(result = progress_check(arena->progress, err)))
        result = errno == EISDIR ? error_add(err, EXIT_INPUT, loc, "this is a directory; expected a file") :
                 error_system(err, loc, "cannot read");
    free(text);
    if (!piped)
        close(file);
    return result;
}
