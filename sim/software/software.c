#include "software/software_internal.h"

#include <stdlib.h>
#include <string.h>

#include "expression/expression.h"
#include "files/data.h"

enum { MOST_LIKE = 4 };      /* a file may be like another file */

struct node_holder { const struct node *node; };

struct software_file {
    const struct node *node;
    const char *alias, *title, *source, *like;
    struct node_holder values, has, lacks, when;
};

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

static const struct table mapping_table = {.name = "software", .brief = "keys and values",
                                           .size = sizeof(struct node_holder)};
static const struct field software_file_fields[] = {
    {KEY(software_file, alias), .kind = FIELD_STRING,
     .brief = "another software file of the list, for which this name stands; then there is nothing else here"},
    {KEY(software_file, title), .kind = FIELD_STRING, .required = true, .dispensable = is_alias,
     .brief = "the framework and its release"},
    {KEY(software_file, source), .kind = FIELD_STRING, .required = true, .dispensable = is_alias,
     .brief = "where its code or documentation is published, and at which version"},
    {KEY(software_file, like), .kind = FIELD_STRING,
     .brief = "another software file, whose values hold but for those given here"},
    {KEY(software_file, values), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_values,
     .brief = "what it always does: keys of 'dtsim help software', strategy's data_parallel, all_reduce and "
              "context_attention, and costs' launch_blocking"},
    {KEY(software_file, has), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_has,
     .brief = "which values of a key the release has, by the key's path: {strategy.schedule: [1f1b, interleaved], "
              "strategy.zero: [0, 1], memory.recompute: [none, full]}; [] where it has none. A key that is left out: "
              "nobody looked it up, and nothing is said of it"},
    {KEY(software_file, lacks), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_list,
     .brief = "what the release cannot run though it has each value: a list of mappings with 'if', an expression over "
              "the scenario, and 'why', the reason in words; it replaces that of 'like'"},
    {KEY(software_file, when), .kind = FIELD_RECORD, .table = &mapping_table, .load = keep_list,
     .brief = "what it does under a condition: a list of such keys, each with 'if', an expression over the scenario "
              "such as 'strategy.zero == 3', and 'has' too; later ones replace earlier ones"},
};
const struct table software_file_table = {
    TABLE("software", "what a release of a training framework does", software_file, software_file_fields),
};

/* A condition while it is read and evaluated: the members that it names, by their numbers. */
struct condition {
    struct arena *arena;
    const struct software_parts *parts;
    struct member members[16];
    int count;
};

static int find_name(void *context, const char *name, const char **why)
{
    struct condition *condition = context;
    struct member member = software_member(condition->parts, name);

    (void)why;
    if (!member.field || condition->count == COUNT(condition->members))
        return -1;
    condition->members[condition->count] = member;
    return condition->count++;
}

static const char *name_at(size_t i, const void *context)
{
    const struct condition *condition = context;

    return software_path_at(condition->arena, condition->parts, i);
}

static int value_of(void *context, int name, struct value *value, struct error *err)
{
    struct condition *condition = context;
    const struct member *member = &condition->members[name];
    const struct software_part *part = member->part;
    const struct node *node = part->object ? field_dump_key(condition->arena, part->table, part->object,
                                                            member->field->key) : NULL;

    (void)err;
    if (!node || node->kind != NODE_SCALAR)
        *value = (struct value){.kind = VALUE_NONE};
    else if (member->field->kind == FIELD_INT)
        *value = value_number(atoi(node->text));
    else if (member->field->kind == FIELD_BOOL)
        *value = value_boolean(!strcmp(node->text, "true"));
    else
        *value = value_text(node->text);
    return 0;
}

int software_holds(struct arena *arena, const struct node *text, const struct software_parts *parts, struct error *err)
{
    struct condition condition = {.arena = arena, .parts = parts};
    const struct names names = {find_name, name_at, &condition};
    const struct expression_text written = {"software: if", text->text, text->loc, NULL};
    struct expression *expression;
    struct value value;

    if (expression_parse(arena, &written, &names, &expression, err) ||
        expression_holds(expression, value_of, &condition, &value, err))
        return -1;
    return value.kind == VALUE_BOOLEAN && value.boolean;
}

/* Whether files may give the part's key. */
static bool may_give(const struct software_part *part, const char *key)
{
    return word_in(part->table->lent, key) || word_in(part->also, key);
}

/* The field that files may give by that key; NULL: none. */
static const struct field *given_field(const struct software_parts *parts, const char *key)
{
    for (size_t i = 0; i < parts->count; i++)
        if (may_give(&parts->items[i], key))
            return field_find(parts->items[i].table, key);
    return NULL;
}

struct candidates { const struct software_parts *parts; };

static const char *key_at(size_t i, const void *context)
{
    const struct candidates *candidates = context;

    for (size_t p = 0; p < candidates->parts->count; p++) {
        const struct software_part *part = &candidates->parts->items[p];

        for (size_t k = 0; k < part->table->count; k++)
            if (may_give(part, part->table->fields[k].key) && i-- == 0)
                return part->table->fields[k].key;
    }
    return NULL;
}

/* Keys and values of a mapping, whether it applies to the scenario or not. */
static int check_keys(const struct node *values, const struct software_parts *parts, struct error *err)
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
        meant = nearest(key, key_at, &candidates);
        rc = error_add(err, EXIT_INPUT, values->key_locs[i], "software: unknown key '%s'%s%s%s", key,
                       meant ? "; did you mean '" : "", meant ? meant : "",
                       meant ? "'?" : "; 'dtsim help software' lists the keys");
    }
    return rc;
}

/* Adds the lists of what the release has. */
static int collect_has(struct arena *arena, const struct node *has, const struct software_parts *parts,
                       struct software_names *names, struct error *err)
{
    if (!has)
        return 0;
    if (software_has_check(arena, has, parts, err))
        return -1;
    names->has = node_merge(arena, names->has ? names->has : node_mapping(arena), has);
    return 0;
}

/* What the release cannot run. The conditions are read here, so that mistakes in them are found whether they hold or not. */
static int collect_lacks(struct arena *arena, const struct node *lacks, const struct software_parts *parts,
                         struct software_names *names, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; lacks && i < lacks->count; i++) {
        const struct node *condition = node_get(lacks->items[i], "if"), *why = node_get(lacks->items[i], "why");

        if (!condition || condition->kind != NODE_SCALAR || !why || why->kind != NODE_SCALAR || !*why->text ||
            node_is_null(why))
            rc = error_add(err, EXIT_INPUT, lacks->items[i]->loc, "software: lacks: expected a mapping with 'if', a "
                           "condition, and 'why', a text");
        else if (software_holds(arena, condition, parts, err) < 0)
            rc = -1;
    }
    names->lacks = lacks ? lacks : names->lacks;
    return rc;
}

/* Adds what the file does under its conditions. */
static int collect_when(struct arena *arena, const struct node *when, const struct software_parts *parts,
                        const struct node **values, struct software_names *names, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; when && i < when->count; i++) {
        const struct node *item = when->items[i], *condition = node_get(item, "if");
        int applies;

        if (!condition || condition->kind != NODE_SCALAR) {
            rc = error_add(err, EXIT_INPUT, item->loc, "software: when: expected a mapping with 'if', a condition");
            continue;
        }
        applies = check_keys(item, parts, err) ? -1 : software_holds(arena, condition, parts, err);
        if (applies > 0) {
            *values = node_merge(arena, *values, item);
            applies = collect_has(arena, node_get(item, "has"), parts, names, err);
        }
        rc = applies < 0 ? -1 : rc;
    }
    return rc;
}

static const struct data_kind file_kind = {"platforms/software", "software", "none"};

/* Reads the file of that name, or the one that it stands for, whose name *name then is. */
static int load_file(struct arena *arena, const char **name, struct loc loc, struct software_file *file,
                     struct error *err)
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

int software_list(struct arena *arena, const char *like, struct loc loc, const char *path, const char **title,
                  const struct node **list, struct error *err)
{
    struct software_file file;

    *list = NULL;
    for (int depth = 0; like && !*list && depth <= MOST_LIKE; depth++) {
        if (load_file(arena, &like, loc, &file, err))
            return -1;
        *title = depth ? *title : file.title;
        *list = file.has.node ? node_get(file.has.node, path) : NULL;
        loc = field_loc(&software_file_table, &file, "like");
        like = file.like;
    }
    return 0;
}

static int collect(struct arena *arena, const char *like, struct loc loc, const struct software_parts *parts, int depth,
                   const struct node **values, struct software_names *names, struct error *err)
{
    struct software_file file;

    if (depth == MOST_LIKE)
        return error_add(err, EXIT_INPUT, loc, "software: like: more than %d files, each like the next", MOST_LIKE);
    if (load_file(arena, &like, loc, &file, err))
        return -1;
    names->family = like;
    names->name = depth ? names->name : like;
    names->title = depth ? names->title : file.title;
    if (file.like && collect(arena, file.like, field_loc(&software_file_table, &file, "like"), parts, depth + 1, values,
                             names, err))
        return -1;
    if (file.values.node && check_keys(file.values.node, parts, err))
        return -1;
    if (file.values.node)
        *values = node_merge(arena, *values, file.values.node);
    if (collect_has(arena, file.has.node, parts, names, err) ||
        collect_lacks(arena, file.lacks.node, parts, names, err))
        return -1;
    return collect_when(arena, file.when.node, parts, values, names, err);
}

/* `loc`: where the parts are that the scenario leaves out. */
static int lay(struct arena *arena, const struct node *values, struct loc loc, const struct software_parts *parts,
               bool laid, struct error *err)
{
    int rc = 0;

    for (size_t p = 0; p < parts->count; p++) {
        const struct software_part *part = &parts->items[p];
        struct node *own = node_mapping(arena);

        own->loc = loc;
        for (size_t i = 0; part->object && i < values->count; i++)
            if (may_give(part, values->keys[i]))
                node_put(arena, own, values->keys[i], values->items[i]);
        if (own->count && field_lay(arena, part->table, part->object, own, (struct laying){"software", laid}, err))
            rc = -1;
    }
    return rc;
}

int software_lay(struct arena *arena, const char *like, struct loc loc, const struct software_parts *parts,
                 struct software_names *names, struct error *err)
{
    const struct node *values = node_mapping(arena);

    if (collect(arena, like, loc, parts, 0, &values, names, err))
        return -1;
    return lay(arena, values, loc, parts, true, err);
}

/* Refuses what stands in a part and not where the part lends it to. */
static int refuse_misplaced(const struct software_part *part, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; part->object && i < part->table->count; i++) {
        const char *key = part->table->fields[i].key;

        if (field_given(part->table, part->object, key) && word_in(part->table->lent, key))
            rc = error_add(err, EXIT_INPUT, field_loc(part->table, part->object, key), "%s: '%s' stands under "
                           "'software': expected software: {%s: ...} ('dtsim help software')", part->path, key, key);
    }
    return rc;
}

int software_lay_own(struct arena *arena, const struct node *own, const struct software_parts *parts, struct error *err)
{
    int rc = 0;

    for (size_t p = 0; p < parts->count; p++)
        if (refuse_misplaced(&parts->items[p], err))
            rc = -1;
    return rc || !own ? rc : lay(arena, own, own->loc, parts, false, err);
}
