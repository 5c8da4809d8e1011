#include "software/software_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "expression/expression.h"
#include "files/data.h"

static int keep_values(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    ((struct node_holder *)object)->node = value;
    if (value->kind == NODE_MAPPING)
        return 0;
    return error_add(err, EXIT_INPUT, value->loc, "software: values: expected a mapping of keys and values");
}

static int keep_list(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    ((struct node_holder *)object)->node = value;
    if (value->kind == NODE_SEQUENCE)
        return 0;
    return error_add(err, EXIT_INPUT, value->loc, "software: expected a list of mappings, each with 'if'");
}

/* software_has_check looks at it. */
static int keep_has(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    (void)arena;
    (void)err;
    ((struct node_holder *)object)->node = value;
    return 0;
}

/* The file that it stands for has them. */
static bool is_alias(const struct node *file)
{
    return node_get(file, "alias") != NULL;
}

static int keep_axes(struct arena *arena, const struct node *value, void *object, struct error *err)
{
    int rc = 0;

    (void)arena;
    ((struct node_holder *)object)->node = value;
    if (value->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, value->loc, "software: axes: expected a mapping such as {strategy.tensor: "
                         "--tensor-model-parallel-size}");
    for (size_t i = 0; i < value->count; i++)
        if (value->items[i]->kind != NODE_SCALAR &&
            (!node_get(value->items[i], "argument") || !node_get(value->items[i], "values")))
            rc = error_add(err, EXIT_INPUT, value->items[i]->loc, "software: axes: %s: expected the argument that sets it, or "
                           "{argument: ARGUMENT, values: [VALUE, ...]}", value->keys[i]);
    return rc;
}

static const struct table mapping_table = {.name = "software", .brief = "keys and values",
                                           .size = sizeof(struct node_holder)};
static const struct field software_file_fields[] = {
    {KEY(software_file, alias), .kind = FIELD_STRING,
     .brief = "another software file of the list, for which this name stands; then there is nothing else here"},
    {KEY(software_file, title), .kind = FIELD_STRING, .required = true, .dispensable = is_alias,
     .brief = "the framework and its release"},
    {KEY(software_file, runtime), .kind = FIELD_STRING,
     .brief = "what runs the step below it, whose frameworks are predicted similarly well: megatron, pytorch, deepspeed, xla or "
              "another word; left out: the one of 'like', or its own"},
    {KEY(software_file, source), .kind = FIELD_STRING, .required = true, .dispensable = is_alias,
     .brief = "where its code or documentation is published, and at which version"},
    {KEY(software_file, like), .kind = FIELD_STRING,
     .brief = "another software file, whose values hold but for those given here"},
    {KEY(software_file, values), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_values,
     .brief = "what it always does: keys of 'dtsim help software', strategy's data_parallel, all_reduce and "
              "context_attention, and costs' host_launch and launch_blocking"},
    {KEY(software_file, has), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_has,
     .brief = "which values of a key the release has, by the key's path: {strategy.schedule: [1f1b, interleaved], "
              "strategy.zero: [0, 1], memory.recompute: [none, full]}; [] where it has none. A key that is left out: "
              "nobody looked it up, and nothing is said of it"},
    {KEY(software_file, lacks), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_list,
     .brief = "what the release cannot run though it has each value: a list of mappings with 'if', an expression over "
              "the scenario, and 'why', the reason in words; it replaces the one of 'like'"},
    {KEY(software_file, axes), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_axes,
     .brief = "what 'dtsim plan' searches where nobody names a layout, and the argument that sets each: {strategy.zero: "
              "--use-distributed-optimizer}, or {argument: ..., values: [...]} where it searches not all that it 'has'; a key that is "
              "null takes one of 'like' away"},
    {KEY(software_file, when), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_list,
     .brief = "what it does under a condition: a list of such keys, each with 'if', an expression over the scenario "
              "such as 'strategy.zero == 3', and 'has' too; later ones replace earlier ones"},
};
const struct table software_file_table = {
    TABLE("software", "what a release of a training framework does", software_file, software_file_fields),
};

/* All that a parsed condition follows from, and what its messages say. */
static void condition_key(const struct node *text, const struct key_parts *parts, struct cache_key *key)
{
    cache_key_text(key, text->text);
    cache_key_text(key, text->loc.file);
    cache_key_add(key, &text->loc.line, sizeof text->loc.line);
    cache_key_add(key, &text->loc.column, sizeof text->loc.column);
    for (size_t p = 0; p < parts->count; p++)
        cache_key_add(key, &parts->items[p].table, sizeof parts->items[p].table);
}

/* Parses into *condition, which the cache may keep, or else the arena. */
static int parse(struct arena *arena, const struct node *text, const struct key_parts *parts,
                 const struct cache_key *key, const struct condition **condition, struct error *err)
{
    struct arena own = {.cache = arena->cache};
    struct condition *parsed = ARENA_ARRAY(&own, struct condition, 1);
    const struct expression_text written = {"software: if", arena_strdup(&own, text->text), text->loc, NULL};
    int rc = condition_parse(&own, &written, parts, parsed, err);

    *condition = parsed;
    if (rc || !arena->cache || !cache_put(arena->cache, CACHE_CONDITION, key->items, key->count, parsed, &own))
        arena_join(arena, &own);
    return rc;
}

int software_holds(struct arena *arena, const struct node *text, const struct key_parts *parts, struct error *err)
{
    const struct condition *condition = NULL;
    struct cache_key key = {0};
    struct value value;
    int rc = 0;

    if (arena->cache) {
        condition_key(text, parts, &key);
        condition = cache_find(arena->cache, CACHE_CONDITION, key.items, key.count);
    }
    if (!condition)
        rc = parse(arena, text, parts, &key, &condition, err);
    free(key.items);
    if (rc || condition_holds(arena, condition, parts, &value, err))
        return -1;
    return value.kind == VALUE_BOOLEAN && value.boolean;
}

bool software_may_give(const struct key_part *part, const char *key)
{
    return word_in(part->table->delegated, key) || word_in(part->also, key);
}

/* The field that files may give by that key; NULL: none. */
static const struct field *given_field(const struct key_parts *parts, const char *key)
{
    for (size_t i = 0; i < parts->count; i++)
        if (software_may_give(&parts->items[i], key))
            return field_find(parts->items[i].table, key);
    return NULL;
}

struct candidates { const struct key_parts *parts; };

static const char *key_at(size_t i, const void *context)
{
    const struct candidates *candidates = context;

    for (size_t p = 0; p < candidates->parts->count; p++) {
        const struct key_part *part = &candidates->parts->items[p];

        for (size_t k = 0; k < part->table->count; k++)
            if (software_may_give(part, part->table->fields[k].key) && i-- == 0)
                return part->table->fields[k].key;
    }
    return NULL;
}

/* Keys and values of a mapping, whether it applies to the scenario or not. */
int software_check_keys(const struct node *values, const struct key_parts *parts, struct error *err)
{
    struct candidates candidates = {parts};
    int rc = 0;

    for (size_t i = 0; i < values->count; i++) {
        const char *key = values->keys[i], *meant;
        const struct field *field = given_field(parts, key);

        if (field && field_check(field, "software", values->items[i], err))
            rc = -1;
        if (field || word_in("if has", key))
            continue;
        meant = error_shows(err, &values->key_locs[i]) ? nearest(key, key_at, &candidates) : NULL;
        rc = error_add(err, EXIT_INPUT, values->key_locs[i], "software: unknown key '%s'%s%s%s", key,
                       meant ? "; did you mean '" : "", meant ? meant : "",
                       meant ? "'?" : "; 'dtsim help software' lists the keys");
    }
    return rc;
}

static const struct data_kind file_kind = {"platforms/software", "software", "none"};

int software_load(struct arena *arena, const char **name, struct loc loc, struct software_file *file, struct error *err)
{
    const char *path = data_resolve(arena, &file_kind, *name, loc, err);

    if (!path || field_load(arena, &software_file_table, path, file, err))
        return -1;
    if (!file->alias)
        return 0;
    loc = field_loc(&software_file_table, file, "alias");
    if (file->node->count > 1)
        return error_add(err, EXIT_INPUT, loc, "software: alias: %s has all that there is to say: expected no other key here",
                         file->alias);
    *name = file->alias;
    if (data_is_path(*name))
        return error_add(err, EXIT_INPUT, loc, "software: alias: '%s' is a path; expected a name (dtsim list software)", *name);
    if (!(path = data_resolve(arena, &file_kind, *name, loc, err)) || field_load(arena, &software_file_table, path, file, err))
        return -1;
    return !file->alias ? 0 : error_add(err, EXIT_INPUT, loc, "software: alias: '%s' is an alias itself; expected the name of "
                                        "a file with 'values', such as '%s'", *name, file->alias);
}

/* The file's list for a path; for path NULL the list of what it lacks. */
static const struct node *list_of(const struct software_file *file, const char *path)
{
    return !path ? file->lacks.node : file->has.node ? node_get(file->has.node, path) : NULL;
}

int software_list(struct arena *arena, const char *like, struct loc loc, const char *path, const char **title,
                  const struct node **list, struct error *err)
{
    struct software_file file;

    *list = NULL;
    for (int depth = 0; like && !*list && depth <= MOST_LIKE; depth++) {
        if (software_load(arena, &like, loc, &file, err))
            return -1;
        *title = depth ? *title : file.title;
        *list = list_of(&file, path);
        loc = field_loc(&software_file_table, &file, "like");
        like = file.like;
    }
    return 0;
}
