/* conf_set: changes of a tree by paths. */
#include "config/conf_node.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf_text.h"

static struct node *node_copy(struct arena *arena, const struct node *node, const void *changes)
{
    struct node *copy = arena_alloc(arena, sizeof *copy);

    *copy = *node;
    copy->changes = changes;
    /* The capacity is used up, so that adding a key gives the copy new arrays. Arrays whose entries are changed in
     * place are copied here. */
    copy->capacity = copy->count;
    copy->items = ARENA_ARRAY(arena, struct node *, copy->count);
    if (copy->count)
        memcpy(copy->items, node->items, copy->count * sizeof *copy->items);
    if (copy->kind == NODE_MAPPING) {
        copy->key_locs = ARENA_ARRAY(arena, struct loc, copy->count);
        if (copy->count)
            memcpy(copy->key_locs, node->key_locs, copy->count * sizeof *copy->key_locs);
    }
    return copy;
}

void conf_change(struct arena *arena, struct node *root)
{
    if (root->kind != NODE_SCALAR)       /* which no change takes */
        *root = *node_copy(arena, root, arena_alloc(arena, 1));
}

void conf_changed(struct node *root)
{
    root->changes = NULL;
}

static int height(const struct node *node)
{
    int highest = 0;

    for (size_t i = 0; i < node->count; i++) {
        int h = height(node->items[i]);
        highest = h > highest ? h : highest;
    }
    return node->kind == NODE_SCALAR ? 0 : highest + 1;
}

/* The parts of a dotted path. */
struct path {
    const char *parts[CONF_MAX_DEPTH];
    int count;
};

static int path_split(struct arena *arena, const char *text, size_t length, struct loc loc, struct path *path,
                      struct error *err)
{
    char *at = arena_strndup(arena, text, length);

    for (path->count = 0; at;) {
        char *next = strchr(at, '.');

        if (next)
            *next++ = '\0';
        if (!*at)
            return error_add(err, EXIT_USAGE, loc, "the path has an empty part; expected PATH=VALUE such as "
                             "strategy.tensor=8");
        if (path->count == CONF_MAX_DEPTH || strlen(at) > CONF_MAX_KEY)
            return error_add(err, EXIT_USAGE, loc, "the path is too long");
        path->parts[path->count++] = at;
        at = next;
    }
    return 0;
}

/* The first `count` parts with dots, for messages: "model.layers.0". */
static char *path_text(struct arena *arena, const struct path *path, int count)
{
    char *text = arena_strdup(arena, path->parts[0]);

    for (int i = 1; i < count; i++)
        text = arena_printf(arena, "%s.%s", text, path->parts[i]);
    return text;
}

/* The pointer to the value in `parent` that part number `part` of the path names; NULL after an error. No other path
 * may share `parent`. If it is a mapping without the key, the key is added, with a NULL value. */
static struct node **slot(struct arena *arena, struct node *parent, const struct path *path, int part, struct loc loc,
                          struct error *err)
{
    const char *name = path->parts[part];
    size_t i;

    BUG_IF(part >= path->count || !name);
    if (parent->kind == NODE_SEQUENCE) {
        bool number = strlen(name) <= 9 && strspn(name, "0123456789") == strlen(name);

        if (number && strtoull(name, NULL, 10) < parent->count)
            return &parent->items[strtoull(name, NULL, 10)];
        error_add(err, EXIT_INPUT, loc, "'%s' is a list of %zu, numbered from 0; it has no '%s'",
                  path_text(arena, path, part), parent->count, name);
        return NULL;
    }
    i = node_key(parent, name);
    if (i == parent->count)
        node_push(arena, parent, name, loc, NULL);
    parent->key_locs[i] = loc;
    return &parent->items[i];
}

static int value_put(struct arena *arena, struct node *root, const struct path *path, struct node *value,
                     struct loc loc, struct error *err)
{
    struct node *parent = root;

    for (int part = 0;; part++) {
        struct node **child = slot(arena, parent, path, part, loc, err);

        if (!child)
            return -1;
        if (part == path->count - 1) {
            *child = value;
            return 0;
        }
        if (!*child || node_is_null(*child)) {
            *child = node_mapping(arena);
            (*child)->loc = loc;
            (*child)->changes = root->changes;
        } else if ((*child)->kind == NODE_SCALAR) {
            char shown[CLIP_SIZE];

            return error_add(err, EXIT_INPUT, loc, "'%s' is '%s', not a mapping; it has no '%s'",
                             path_text(arena, path, part + 1), text_clip((*child)->text, shown, sizeof shown),
                             path->parts[part + 1]);
        } else if (!root->changes || (*child)->changes != root->changes) {
            *child = node_copy(arena, *child, root->changes);
        }
        parent = *child;
    }
}

/* Changes copies of the nodes along the path, so that a failure changes nothing; the copies of many changes at once. */
static int change(struct arena *arena, struct node *root, const struct path *path, struct node *value, struct loc loc,
                  struct error *err)
{
    struct node *changed;

    if (path->count + height(value) > CONF_MAX_DEPTH)
        return error_add(err, EXIT_INPUT, loc, "nested more than %d deep", CONF_MAX_DEPTH);
    if (root->kind == NODE_SCALAR)
        return error_add(err, EXIT_INPUT, loc, "the file holds no mapping to change");
    if (root->changes)
        return value_put(arena, root, path, value, loc, err);
    changed = node_copy(arena, root, NULL);
    if (value_put(arena, changed, path, value, loc, err))
        return -1;
    *root = *changed;
    return 0;
}

int conf_put(struct arena *arena, struct node *root, const char *path, struct node *value, struct loc loc,
             struct error *err)
{
    struct path parts = {.count = 0};

    return path_split(arena, path, strlen(path), loc, &parts, err) || change(arena, root, &parts, value, loc, err) ? -1
                                                                                                                  : 0;
}

struct loc conf_set_place(struct arena *arena, const char *assignment)
{
    char shown[4 * CLIP_SIZE];

    return (struct loc){.file = arena_printf(arena, "--set %s", text_clip(assignment, shown, sizeof shown))};
}

int conf_set(struct arena *arena, struct node *root, const char *assignment, struct error *err)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+";
    struct loc loc = conf_set_place(arena, assignment);
    const char *equals = strchr(assignment, '=');
    struct node *value;
    struct path path = {.count = 0};

    if (conf_check_text(loc.file, assignment, strlen(assignment), true, err))
        return -1;
    if (!equals || equals == assignment)
        return error_add(err, EXIT_USAGE, loc, "expected PATH=VALUE such as strategy.tensor=8");
    if (path_split(arena, assignment, (size_t)(equals - assignment), loc, &path, err))
        return -1;
    /* Most values are words or numbers, for which no reader of YAML is needed. */
    if (equals[1 + strspn(equals + 1, " ")] == '\0')
        value = node_scalar(arena, "", false);
    else if (isalnum((unsigned char)equals[1]) && !equals[1 + strspn(equals + 1, word)])
        value = node_scalar(arena, equals + 1, false);
    else if (conf_read(arena, loc.file, equals + 1, strlen(equals + 1), true, &value, err))
        return -1;
    value->loc = loc;
    return change(arena, root, &path, value, loc, err);
}
