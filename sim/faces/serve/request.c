#include "serve/request.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "base/progress.h"
#include "config/conf_text.h"
#include "engine/replay.h"

static int keep(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct request_value *)object)->node = value;
    return 0;
}

static const struct table value_table = {.name = "request", .brief = "a value", .size = sizeof(struct request_value)};
#define VALUE(name, member, help) \
    {.key = name, AT(request, member), .kind = FIELD_RECORD, .table = &value_table, .load = keep, .brief = help}
static const struct field request_fields[] = {
    VALUE("id", id, "a text or a number, which the answer has too"),
    VALUE("scenario", scenario, "a scenario: the mapping that its file would hold"),
    {KEY(request, base), .kind = FIELD_STRING, .brief = "or the file of a scenario, which is read once"},
    VALUE("set", set, "PATH: VALUE; changes of the scenario, as after --set"),
    {KEY(request, engine), .kind = FIELD_CHOICE, .choices = CHOICES(ENGINES),
     .brief = "left out: as the scenario says, else simgrid, as of 'dtsim run'; fast is many times faster"},
    VALUE("budget", limits, "a time such as '30 s', or memory such as '4 GiB', or a list of both; as --budget"),
    {KEY(request, advice), .kind = FIELD_BOOL, .fallback = "true",
     .brief = "where memory is short, look for what would make the scenario fit; false: as --no-advice"},
    VALUE("cancel", cancel, "the id of requests to cancel, in a line of its own"),
};
const struct table request_table = {
    TABLE("request", "a line of 'dtsim serve'", request, request_fields),
    .exactly_one = "scenario base cancel",
};

/* Puts the tree, which was read as if it were line 1, where it stands. */
static void move_to_line(struct node *node, int line)
{
    node->loc.line = line;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_MAPPING)
            node->key_locs[i].line = line;
        move_to_line(node->items[i], line);
    }
}

/* YAML has no surrogates, with which JSON writes characters beyond U+FFFF: such a text is written anew without. The
 * caller frees it; NULL: the text needs none. */
static char *without_surrogates(const char *text, size_t length)
{
    char *written = NULL;
    json_t *json;

    if (!memmem(text, length, "\\ud", 3) && !memmem(text, length, "\\uD", 3))
        return NULL;
    json = json_loadb(text, length, 0, NULL);
    written = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return written;
}

int request_tree(struct arena *arena, const char *name, const char *text, size_t length, int line, struct node **root,
                 struct error *err)
{
    char *plain = without_surrogates(text, length);
    int before = err->count, rc;

    rc = plain ? conf_parse(arena, name, plain, strlen(plain), root, err)
               : conf_parse(arena, name, text, length, root, err);
    free(plain);
    for (int i = before; i < err->count; i++)
        if (err->messages[i].loc.file)           /* else it is of no place: a budget is spent */
            err->messages[i].loc.line = line;
    if (!rc)
        move_to_line(*root, line);
    return rc;
}

/* Text that means the same without quotes stands without, as a person would write it behind --set. */
static const char *set_value(struct arena *arena, const struct node *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+ ";
    const char *text = value->text;

    return value->kind == NODE_SCALAR && *text && !text_is_special(text) && !strchr("-_./+ ", *text) &&
           text[strlen(text) - 1] != ' ' && !text[strspn(text, plain)] ? text : node_flow(arena, value);
}

int request_sets(struct arena *arena, const struct node *set, const char *const **all, size_t *count, struct error *err)
{
    const char **sets = ARENA_ARRAY(arena, const char *, set->count);

    if (set->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, set->loc, "request: set: expected a mapping such as "
                         "{\"strategy.tensor\": 8}");
    for (size_t i = 0; i < set->count; i++) {
        if (strchr(set->keys[i], '='))
            return error_add(err, EXIT_INPUT, set->key_locs[i], "request: set: a path has no '='; expected a mapping "
                             "such as {\"strategy.tensor\": 8}");
        if (progress_look(arena->progress, err))
            return -1;
        sets[i] = arena_printf(arena, "%s=%s", set->keys[i], set_value(arena, set->items[i]));
    }
    *all = sets;
    *count = set->count;
    return 0;
}

static int check_limit(const struct node *limit, struct error *err)
{
    struct budget budget;
    const char *quote = limit->kind == NODE_SCALAR ? "'" : "";
    char shown[CLIP_SIZE];

    if (limit->kind == NODE_SCALAR && !budget_parse(limit->text, &budget))
        return 0;
    return error_add(err, EXIT_INPUT, limit->loc, "request: budget: expected a time such as '30 s', or memory such as "
                     "'4 GiB', or a list of both; found %s%s%s", quote, limit->kind == NODE_SEQUENCE ? "a list" :
                     limit->kind == NODE_MAPPING ? "a mapping" : text_clip(limit->text, shown, sizeof shown), quote);
}

static int check_limits(const struct node *limits, struct error *err)
{
    if (limits->kind != NODE_SEQUENCE)
        return check_limit(limits, err);
    for (size_t i = 0; i < limits->count; i++)
        if (check_limit(limits->items[i], err))
            return -1;
    return 0;
}

int request_read(struct arena *arena, const char *text, size_t length, int line, struct request *request,
                 struct error *err)
{
    struct node *root;
    int rc;

    if (request_tree(arena, REQUESTS, text, length, line, &root, err) || field_parse(arena, &request_table, root, request, err))
        return -1;
    if (!field_given(&request_table, request, "engine"))
        request->engine = ENGINE_OF_SCENARIO;
    if (request->cancel.node)
        return error_add(err, EXIT_INPUT, request->cancel.node->loc, "request: cancel: expected a line of its own, "
                         "such as {\"cancel\": 1}");
    rc = request->set.node ? request_sets(arena, request->set.node, &request->sets, &request->nsets, err) : 0;
    return (request->limits.node && check_limits(request->limits.node, err)) || rc ? -1 : 0;
}
