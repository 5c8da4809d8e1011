/* Reads a type of the table, and computes what its expressions say of a configuration. */
#include "huggingface/hf_family.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "expression/expression.h"
#include "files/data.h"

enum { KEYS = 64, TRIED = 4 };
/* The names of expressions: words that the table defines, then keys of the configuration. */
struct hf_names {
    struct arena *arena;
    const struct node *table;
    size_t defined;
    struct hf_word { struct expression *tried[TRIED]; size_t count; } *words;
    const char *keys[KEYS];
    int count;
};
/* A block of which an expression is asked. */
struct asking { const struct hf_reading *reading; int block; };

static int find_name(void *context, const char *name, const char **why)
{
    struct hf_names *names = context;

    (void)why;
    for (size_t i = 0; i < names->defined; i++)
        if (!strcmp(names->table->keys[i], name))
            return (int)i;
    for (int i = 0; i < names->count; i++)
        if (!strcmp(names->keys[i], name))
            return (int)names->table->count + i;
    if (names->count == KEYS)
        return -1;
    names->keys[names->count] = arena_strdup(names->arena, name);
    return (int)names->table->count + names->count++;
}

static const char *no_name(size_t i, const void *context)
{
    (void)i, (void)context;
    return NULL;
}

static int parse(const struct hf_reading *reading, const struct node *node, struct expression **expression)
{
    const struct expression_text text = {.what = "huggingface", .text = node->text ? node->text : "", .loc = {.file = node->loc.file}};
    const struct names names = {find_name, no_name, reading->names};

    return expression_parse(reading->arena, &text, &names, expression, reading->err);
}

/* The condition that a key of the type says; NULL: it has none. */
static int parse_key(struct hf_reading *reading, const char *key, const struct expression **condition)
{
    const struct node *node = node_get(reading->family, key);
    struct expression *expression = NULL;

    if (node && parse(reading, node, &expression))
        return -1;
    *condition = expression;
    return 0;
}

static int define_names(struct hf_reading *reading)
{
    struct hf_names *names = arena_alloc(reading->arena, sizeof *names);

    names->arena = reading->arena;
    names->table = node_get(reading->table, "names");
    names->words = ARENA_ARRAY(reading->arena, struct hf_word, names->table->count + 1);
    reading->names = names;
    for (size_t i = 0; i < names->table->count; i++) {
        const struct node *list = names->table->items[i];

        for (size_t k = 0; k < list->count && k < TRIED; k++)
            if (parse(reading, list->items[k], &names->words[i].tried[names->words[i].count++]))
                return -1;
        names->defined = i + 1;
    }
    return 0;
}

static const struct hf_rule *rules_of(struct arena *arena, const struct node *mapping)
{
    struct hf_rule *rules = ARENA_ARRAY(arena, struct hf_rule, mapping ? mapping->count + 1 : 1);

    for (size_t i = 0; mapping && i < mapping->count; i++) {
        const struct node *to = mapping->items[i];

        rules[i] = to->text ? (struct hf_rule){mapping->keys[i], to->text, NULL} :
                              (struct hf_rule){mapping->keys[i], to->keys[0], to->items[0]->text};
    }
    return rules;
}

int hf_table(struct hf_reading *reading)
{
    const char *path = NULL;

    if (data_file(reading->arena, "platforms/families", "huggingface", &path, reading->err))
        return -1;
    if (!path)
        return error_add(reading->err, EXIT_INPUT, reading->whole->loc, "hf_config: platforms/families/huggingface.yaml is missing");
    return conf_shared(reading->arena, path, &reading->table, reading->err);
}

bool hf_lists(const struct node *list, const char *name)
{
    bool found = list && list->text && !strcmp(list->text, name);

    for (size_t i = 0; list && list->kind == NODE_SEQUENCE && i < list->count; i++)
        found |= !strcmp(list->items[i]->text, name);
    return found;
}

const struct node *hf_type(const struct hf_reading *reading, const char *type)
{
    const struct node *types = node_get(reading->table, "types");

    for (size_t i = 0; i < types->count; i++)
        if (!strcmp(types->keys[i], type) || hf_lists(node_get(types->items[i], "also"), type) ||
            hf_lists(node_get(types->items[i], "whole"), type))
            return types->items[i];
    return NULL;
}

const char *hf_said(const struct hf_reading *reading, const char *key)
{
    const struct node *node = node_get(reading->family, key);

    return node ? node->text : NULL;
}

int hf_family(struct hf_reading *reading)
{
    const char *linear = hf_said(reading, "linear");

    reading->linear = linear ? *linear : '\0';
    reading->common = rules_of(reading->arena, node_get(reading->table, "keys"));
    reading->own = rules_of(reading->arena, node_get(reading->family, "keys"));
    reading->defaults = node_get(reading->family, "defaults");
    return define_names(reading) || parse_key(reading, "full", &reading->full) || parse_key(reading, "experts", &reading->experts) ?
           -1 : 0;
}

static struct value value_of(const struct node *node)
{
    if (!node || node_is_null(node))
        return (struct value){.kind = VALUE_NONE};
    if (node->kind != NODE_SCALAR)
        return (struct value){.kind = node->kind == NODE_SEQUENCE ? VALUE_LIST : VALUE_MAPPING};
    return node->quoted ? value_text(node->text) : value_of_word(node->text);
}

/* Whether a list, or a text of numbers with commas, has the number. */
static struct value has_number(const struct node *list, int number)
{
    bool found = false;

    if (!list)
        return (struct value){.kind = VALUE_NONE};
    for (size_t i = 0; list->kind == NODE_SEQUENCE && i < list->count; i++)
        found |= list->items[i]->kind == NODE_SCALAR && atoi(list->items[i]->text) == number;
    for (const char *at = list->kind == NODE_SCALAR ? list->text : ""; *at; at += strcspn(at, ","), at += *at == ',')
        found |= atoi(at) == number;
    return value_boolean(found);
}

static const struct node *first_of(const struct node *node)
{
    return node && node->kind == NODE_SEQUENCE ? node->count ? node->items[0] : NULL : node;
}

/* How many keys a mapping has. */
static struct value size_of(const struct node *mapping)
{
    return mapping && mapping->kind == NODE_MAPPING && mapping->count ? value_number((double)mapping->count) :
           (struct value){.kind = VALUE_NONE};
}

/* Whether the file names a class with that part. */
static struct value names_class(const struct node *classes, const char *part)
{
    bool found = false;

    if (!classes || classes->kind != NODE_SEQUENCE || !classes->count)
        return (struct value){.kind = VALUE_NONE};
    for (size_t i = 0; i < classes->count; i++)
        found |= classes->items[i]->kind == NODE_SCALAR && strstr(classes->items[i]->text, part);
    return value_boolean(found);
}

static struct value key_value(const struct asking *asking, const char *name)
{
    const struct hf_reading *reading = asking->reading;
    const char *dot = strchr(name, '.'), *key = dot ? dot + 1 : name;

    if (!strcmp(name, "block"))
        return value_number(asking->block);
    if (!strncmp(name, "at.", 3))
        return value_of(hf_of_block(reading, key, asking->block));
    if (!strncmp(name, "in.", 3) || !strncmp(name, "next.", 5))
        return has_number(node_at(reading->config, key), asking->block + (*name == 'n'));
    if (!strncmp(name, "first.", 6))
        return value_of(first_of(node_at(reading->config, key)));
    if (!strncmp(name, "for.", 4))
        return names_class(node_get(reading->whole, "architectures"), key);
    if (!strncmp(name, "count.", 6))
        return size_of(node_at(reading->whole, key));
    return value_of(!strncmp(name, "shape.", 6) ? node_at(reading->shape, key) : node_at(reading->config, name));
}

static int name_value_of(void *context, int name, struct value *value, struct error *err);

static struct value evaluate(const struct asking *asking, const struct expression *expression)
{
    struct value value = {.kind = VALUE_NONE};
    struct error err = {0};

    if (expression_evaluate(expression, name_value_of, (void *)(uintptr_t)asking, &value, &err))
        value = (struct value){.kind = VALUE_NONE};
    error_release(&err);
    return value;
}

static int name_value_of(void *context, int name, struct value *value, struct error *err)
{
    const struct asking *asking = context;
    const struct hf_names *names = asking->reading->names;

    (void)err;
    *value = (struct value){.kind = VALUE_NONE};
    if (name >= (int)names->table->count)
        *value = key_value(asking, names->keys[name - (int)names->table->count]);
    else
        for (size_t i = 0; i < names->words[name].count && value->kind == VALUE_NONE; i++)
            *value = evaluate(asking, names->words[name].tried[i]);
    return 0;
}

bool hf_holds(const struct hf_reading *reading, const struct expression *expression, int block)
{
    struct value value = evaluate(&(struct asking){reading, block}, expression);

    return value.kind == VALUE_BOOLEAN && value.boolean;
}

/* A value that the file says keeps its place. */
static void derive_key(struct hf_reading *reading, const char *to, const struct node *said, const struct expression *expression)
{
    const struct node *own = node_at(reading->config, said->text);
    struct value value = evaluate(&(struct asking){reading, 0}, expression);

    if (own)
        hf_put_node(reading, to, own);
    else if (value.kind == VALUE_NUMBER)
        hf_put_number(reading, to, value.number);
    else if (value.kind == VALUE_BOOLEAN)
        hf_put(reading, to, value.boolean ? "true" : "false");
    else if (value.kind == VALUE_TEXT)
        hf_put(reading, to, value.text);
}

void hf_derive(struct hf_reading *reading)
{
    const struct node *rows = node_get(reading->family, "derive");

    for (size_t i = 0; rows && i < rows->count; i++) {
        const struct node *where = node_get(rows->items[i], "where"), *is = node_get(rows->items[i], "is");
        const struct node *refuse = node_get(rows->items[i], "refuse");
        struct expression *expression;

        if (where && (parse(reading, where, &expression) || !hf_holds(reading, expression, 0)))
            continue;
        if (refuse)
            error_add(reading->err, EXIT_INPUT, node_loc(reading->file, refuse->keys[0]), "hf_config: %s: %s", refuse->keys[0],
                      refuse->items[0]->text);
        for (size_t k = 0; is && k < is->count; k++)
            if (!parse(reading, is->items[k], &expression))
                derive_key(reading, is->keys[k], is->items[k], expression);
    }
}
