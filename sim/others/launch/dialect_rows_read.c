/* Rows of a dialect, parsed. */
#include "launch/dialect_rows.h"

#include <ctype.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "expression/expression.h"
#include "scenario/scenario.h"

enum { PATHS = 128 };
/* The names of all expressions: letters, then paths of a scenario. */
struct paths { struct arena *arena; const char *items[PATHS]; int count; };

static int find_name(void *context, const char *name, const char **why)
{
    struct paths *paths = context;

    if (isupper((unsigned char)name[0]) && !name[1])
        return name[0] - 'A';
    if (!scenario_field(name) && strcmp(name, "log")) {
        *why = "is no key of a scenario";
        return -1;
    }
    for (int i = 0; i < paths->count; i++)
        if (!strcmp(paths->items[i], name))
            return LETTERS + i;
    if (paths->count == PATHS)
        return -1;
    paths->items[paths->count] = arena_strdup(paths->arena, name);
    return LETTERS + paths->count++;
}

static const char *no_name(size_t i, const void *context)
{
    (void)i;
    (void)context;
    return NULL;
}

/* Whether a text has a letter that stands for a value. */
static bool has_letter(const char *text)
{
    for (const char *at = text; *at; at++)
        if (isupper((unsigned char)*at) && (at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[1]) &&
            at[1] != '_')
            return true;
    return false;
}

static int parse(struct paths *paths, const struct node *node, const char *text, struct expression **value, struct error *err)
{
    struct expression_text source = {.what = "row", .text = text, .loc = node->loc};
    struct names names = {find_name, no_name, paths};

    return expression_parse(paths->arena, &source, &names, value, err);
}

static int read_term(struct paths *paths, const char *key, const struct node *node, struct dialect_term *term, struct error *err)
{
    const char *text = node->text;

    term->key = key;
    for (size_t i = 0; node->kind == NODE_SEQUENCE && i < node->count; i++)
        term->words = arena_printf(paths->arena, "%s%s%s", term->words ? term->words : "", term->words ? " " : "",
                                   node->items[i]->text);
    if (node->kind == NODE_SEQUENCE)
        return 0;
    if (!text)
        return error_add(err, EXIT_INPUT, node->loc, "%s: expected a word, words or an expression", key);
    term->same = !strcmp(text, "same");
    term->list = *text == '[' && text[strlen(text) - 1] == ']' && has_letter(text);
    if (term->list)
        text = arena_strndup(paths->arena, text + 1, strlen(text) - 2);
    term->between = has_letter(text) && strchr(text, ',') ? ',' : '\0';
    while (text && term->count < TERM_ITEMS) {
        size_t length = term->between ? strcspn(text, ",") : strlen(text);
        char *item = arena_strndup(paths->arena, text, length);

        term->items[term->count].text = item;
        if (has_letter(item) && parse(paths, node, item, &term->items[term->count].value, err))
            return -1;
        term->count++;
        text = text[length] ? text + length + 1 : NULL;
    }
    return text ? error_add(err, EXIT_INPUT, node->loc, "%s: expected at most %d items", key, TERM_ITEMS) : 0;
}

static int read_side(struct paths *paths, const struct node *node, struct dialect_side *side, struct error *err)
{
    if (node && (node->kind != NODE_MAPPING || node->count > TERMS))
        return error_add(err, EXIT_INPUT, node->loc, "expected a mapping with at most %d keys", TERMS);
    for (size_t i = 0; node && i < node->count; i++)
        if (read_term(paths, node->keys[i], node->items[i], &side->terms[side->count++], err))
            return -1;
    return 0;
}

static const char *text_of(const struct node *row, const char *key)
{
    const struct node *node = node_get(row, key);

    return node ? node->text : NULL;
}

static int read_row(struct paths *paths, const struct node *node, struct dialect_row *row, struct error *err)
{
    static const char known[] = "say is where only always needed given unless missing warn refuse cannot at";
    static const char *const tellings[] = {"warn", "refuse", "cannot"};
    const char *only = text_of(node, "only");
    const struct node *where;
    struct expression *condition = NULL;

    row->loc = node->loc;
    for (size_t i = 0; i < node->count; i++)
        if (node->kind != NODE_MAPPING || !word_in(known, node->keys[i]))
            return error_add(err, EXIT_INPUT, node->loc, "expected a row with some of %s", known);
    if (only && !word_in("import emit", only))
        return error_add(err, EXIT_INPUT, node_loc(node, "only"), "expected import or emit");
    where = node_get(node, "where");
    for (size_t i = 0; i < COUNT(tellings); i++)
        if (node_get(node, tellings[i])) {
            row->tells = (enum tells)(i + 1);
            row->message = text_of(node, tellings[i]);
        }
    row->importing = row->tells != TELLS_CANNOT && (!only || !strcmp(only, "import"));
    row->emitting = (!row->tells || row->tells == TELLS_CANNOT) && (!only || !strcmp(only, "emit"));
    row->always = node_get(node, "always") != NULL;
    row->needed = node_get(node, "needed") != NULL;
    row->given = text_of(node, "given");
    row->unless = text_of(node, "unless");
    row->missing = text_of(node, "missing");
    if (read_side(paths, node_get(node, "say"), &row->say, err) || read_side(paths, node_get(node, "is"), &row->is, err) ||
        (where && parse(paths, where, where->text, &condition, err)))
        return -1;
    row->where = condition;
    row->at = text_of(node, "at");
    if (!row->at && row->say.count)
        row->at = row->say.terms[0].key;
    return 0;
}

int dialect_rows_read(struct arena *arena, const struct node *parts, struct dialect_rows *rows, struct error *err)
{
    struct paths *paths = arena_alloc(arena, sizeof *paths);

    paths->arena = arena;
    rows->paths = paths->items;
    for (size_t p = 0; p < parts->count; p++)
        rows->count += parts->items[p]->count;
    rows->items = ARENA_ARRAY(arena, struct dialect_row, rows->count + 1);
    rows->count = 0;
    for (size_t p = 0; p < parts->count; p++)
        for (size_t i = 0; i < parts->items[p]->count; i++) {
            rows->items[rows->count].part = parts->keys[p];
            if (read_row(paths, parts->items[p]->items[i], &rows->items[rows->count++], err))
                return -1;
        }
    return 0;
}
