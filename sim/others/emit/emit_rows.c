#include "emit/emit_rows.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "launch/dialect.h"
#include "launch/dialect_rows.h"
#include "scenario/scenario.h"

static const char *text_at(const struct emit *e, const struct node *tree, const char *path)
{
    const struct node *node = node_at(tree, path);

    return !node ? "" : node->text ? node->text : node_flow(e->arena, node);
}

const char *emit_text(const struct emit *e, const char *path)
{
    return text_at(e, strcmp(path, "model.preset") ? e->tree : e->scenario->node, path);
}

long long emit_number(const struct emit *e, const char *path)
{
    return strtoll(emit_text(e, path), NULL, 10);
}

bool emit_is(const struct emit *e, const char *path, const char *value)
{
    return !strcmp(emit_text(e, path), value);
}

bool emit_differs(const struct emit *e, const char *path)
{
    return e->base && strcmp(text_at(e, e->base, path), emit_text(e, path)) != 0;
}

bool emit_has(const struct emit *e, const char *argument)
{
    const struct argument_row *row = dialect_row(e->dialect->like ? e->dialect->like : e->dialect, argument, false);

    BUG_IF(!row);
    return !row->fork && (!row->until || row->until >= e->release.last) && (!row->until || e->release.last) &&
           (!e->release.last || row->since <= e->release.last);
}

int emit_gradient_bytes(const struct emit *e)
{
    return emit_is(e, "software.gradients", "half") && !emit_is(e, "memory.precision", "fp32") ? 2 : 4;
}

static const struct dialect *arguments_of(const struct emit *e)
{
    return e->dialect->like ? e->dialect->like : e->dialect;
}

void emit_say_text(struct emit *e, const char *name, const char *text)
{
    if (!e->said)
        e->said = node_mapping(e->arena);
    node_put(e->arena, e->said, name, node_scalar(e->arena, text, true));
}

void emit_say(struct emit *e, const char *name, const char *format, ...)
{
    char text[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    emit_say_text(e, name, arena_strdup(e->arena, text));
}

/* Where the release lacks an argument of a row, others may say the same; where none does, the row is written, and who writes the
 * release refuses the argument by its name. */
static bool is_wanted(void *context, const struct dialect_row *row)
{
    const struct emit *e = context;
    bool differs = !row->needed;

    for (size_t i = 0; i < row->say.count; i++) {
        const struct dialect_term *term = &row->say.terms[i];
        bool has = emit_has(e, term->key) || (term->count && !strcmp(term->items[0].text, "false"));

        if (!has && !e->release.last)
            return false;
        differs &= has;
    }
    for (size_t i = 0; i < row->is.count; i++)
        differs |= emit_differs(e, row->is.terms[i].key);
    return row->is.count && differs;
}

static const char *at_path(void *context, const char *path)
{
    const char *text = emit_text(context, path);

    return *text ? text : NULL;
}

/* What was said already of an argument. */
static const char *said(void *context, const char *name)
{
    const struct node *node = node_get(((const struct emit *)context)->said, name);

    return node ? node->text : NULL;
}

static void say_row(void *context, const struct dialect_row *row, const char *name, const char *value)
{
    (void)row;
    emit_say_text(context, name, value);
}

void emit_forget(struct emit *e, struct node *mapping, const char *key)
{
    struct node *kept = node_mapping(e->arena);

    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i], key))
            node_put(e->arena, kept, mapping->keys[i], mapping->items[i]);
    kept->loc = mapping->loc;
    *mapping = *kept;
}

void emit_say_rows(struct emit *e, const char *part)
{
    const struct dialect_ways ways = {true, is_wanted, at_path, said, say_row, at_path, NULL, e};

    dialect_rows_apply(e->arena, &arguments_of(e)->pairs, part, &ways);
}

bool emit_prints(const struct emit *e, size_t i)
{
    const struct argument_row *row = dialect_row(arguments_of(e), e->said->keys[i], false);
    const char *value = e->said->items[i]->text;
    bool number = row->kind == KIND_INT || row->kind == KIND_NUMBER;
    const char *usual = row->fallback ? row->fallback : number ? "0" : "";

    if (row->kind == KIND_FLAG)
        return !strcmp(value, "true");
    return row->told || (number ? strtod(value, NULL) != strtod(usual, NULL) : strcmp(value, usual) != 0);
}

bool emit_said(const struct emit *e, const char *name)
{
    for (size_t i = 0; e->said && i < e->said->count; i++)
        if (!strcmp(e->said->keys[i], name))
            return emit_prints(e, i);
    return false;
}

/* A value as one word of a shell's. */
static const char *word(const struct emit *e, const char *text)
{
    const char *made = "";

    if (text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:+=-")] == '\0')
        return text;
    for (; strchr(text, '\''); text = strchr(text, '\'') + 1)
        made = arena_printf(e->arena, "%s%.*s'\\''", made, (int)strcspn(text, "'"), text);
    return arena_printf(e->arena, "'%s%s'", made, text);
}

/* The items of a list, each by the framework's word. */
static struct node *items_of(const struct emit *e, const struct argument_row *row, const char *list)
{
    struct node *items = node_sequence(e->arena);

    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        node_append(e->arena, items, node_scalar(e->arena, dialect_word(e->arena, row, arena_strndup(e->arena, at, strcspn(at, ",")),
                                                                        true), true));
    return items;
}

void emit_print_arguments(const struct emit *e)
{
    for (size_t i = 0; i < e->said->count; i++) {
        const struct argument_row *row = dialect_row(e->dialect, e->said->keys[i], false);
        const char *value = e->said->items[i]->text;
        const struct node *items;

        if (!emit_prints(e, i))
            continue;
        fprintf(e->out, " \\\n    --%s", e->said->keys[i]);
        if (row->kind == KIND_ANY ? strcmp(value, "true") : row->kind == KIND_LIST && !row->joined)
            for (size_t k = 0; (items = items_of(e, row, value)) && k < items->count; k++)
                fprintf(e->out, " %s", items->items[k]->text);
        else if (row->kind != KIND_FLAG && row->kind != KIND_ANY)
            fprintf(e->out, " %s", word(e, value));
    }
}

/* What was said as a tree: the dots of names are its levels. */
static struct node *tree_of(const struct emit *e)
{
    struct node *root = node_mapping(e->arena);
    struct error err = {0};

    for (size_t i = 0; i < e->said->count; i++) {
        const struct argument_row *row = dialect_row(e->dialect, e->said->keys[i], false);
        const char *text = e->said->items[i]->text;

        if (emit_prints(e, i))
            BUG_IF(conf_put(e->arena, root, e->said->keys[i], row->kind == KIND_LIST ? items_of(e, row, text) :
                            node_scalar(e->arena, text, row->kind == KIND_WORD), (struct loc){.file = "emit"}, &err));
    }
    return root;
}

/* A value, as TOML and Python write it. */
static void print_value(const struct node *value, bool python, FILE *out)
{
    for (size_t i = 0; value->kind == NODE_SEQUENCE && i < value->count; i++)
        fprintf(out, "%s\"%s\"%s", i ? ", " : "[", value->items[i]->text, i + 1 < value->count ? "" : "]");
    if (value->kind == NODE_SCALAR && value->quoted)
        fprintf(out, "\"%s\"", value->text);
    else if (value->kind == NODE_SCALAR)
        fputs(!python ? value->text : !strcmp(value->text, "true") ? "True" : !strcmp(value->text, "false") ? "False" : value->text,
              out);
}

/* Lines above keys, with the values of the keys that they name. */
static bool is_above(const struct emit *e, const char *key)
{
    return e->dialect->begin && strstr(e->dialect->begin, arena_printf(e->arena, "<%s>", key));
}

static void print_above(const struct emit *e)
{
    for (const char *at = e->dialect->begin ? e->dialect->begin : ""; *at;) {
        size_t plain = strcspn(at, "<"), name = strcspn(at + plain, ">");
        const char *key = at[plain] ? arena_strndup(e->arena, at + plain + 1, name - 1) : NULL;

        fprintf(e->out, "%.*s", (int)plain, at);
        if (key)
            fputs(node_get(e->said, key) ? node_get(e->said, key)->text : arena_printf(e->arena, "your_%s", key), e->out);
        at += plain + (key ? name + 1 : 0);
    }
}

static void print_sections(const struct emit *e, const struct node *mapping, const char *prefix, bool python)
{
    bool begun = python;

    for (size_t i = 0; i < mapping->count; i++) {
        if (mapping->items[i]->kind == NODE_MAPPING || (!*prefix && is_above(e, mapping->keys[i])))
            continue;
        if (!begun && *prefix)
            fprintf(e->out, "%s[%s]\n", ftell(e->out) ? "\n" : "", prefix);
        begun = true;
        if (python)
            fprintf(e->out, "    config.%s%s%s = ", prefix, *prefix ? "." : "", mapping->keys[i]);
        else
            fprintf(e->out, "%s = ", mapping->keys[i]);
        print_value(mapping->items[i], python, e->out);
        fputc('\n', e->out);
    }
    for (size_t i = 0; i < mapping->count; i++)
        if (mapping->items[i]->kind == NODE_MAPPING)
            print_sections(e, mapping->items[i], arena_printf(e->arena, "%s%s%s", prefix, *prefix ? "." : "", mapping->keys[i]),
                           python);
}

void emit_print(const struct emit *e)
{
    const char *form = e->dialect->form;
    int gpus = scenario_gpus(e->scenario), per_node = cluster_node_gpus(&e->scenario->cluster, 0);
    int nodes = per_node > 0 ? (gpus + per_node - 1) / per_node : 1;

    if (!strcmp(form, "arguments")) {
        fprintf(e->out, "torchrun --nnodes %d --nproc_per_node %d %s", nodes, gpus / nodes,
                e->dialect->programs ? arena_strndup(e->arena, e->dialect->programs, strcspn(e->dialect->programs, " ")) : "train.py");
        emit_print_arguments(e);
        fputc('\n', e->out);
    } else if (!strcmp(form, "json")) {
        node_print_json(tree_of(e), e->out);
    } else if (!strcmp(form, "yaml")) {
        node_print(tree_of(e), e->out);
    } else {
        print_above(e);
        print_sections(e, tree_of(e), "", !strcmp(form, "python"));
        fputs(!strcmp(form, "python") ? "    return config\n" : "", e->out);
    }
}

struct refusal { struct emit *e; const struct framework *framework; struct error *err; };

/* What is left out is 0. */
static const char *number_at(void *context, const char *path)
{
    const char *text = emit_text(((struct refusal *)context)->e, path);

    return *text ? text : "0";
}

static const char *nothing(void *context, const char *name)
{
    (void)context, (void)name;
    return NULL;
}

static bool all(void *context, const struct dialect_row *row)
{
    (void)context, (void)row;
    return true;
}

static void tell(void *context, const struct dialect_row *row, const char *message)
{
    const struct refusal *refusal = context;
    const struct node *node = node_at(refusal->e->scenario->node, row->at);

    error_add(refusal->err, EXIT_INFEASIBLE, node ? node->loc : (struct loc){.file = refusal->e->scenario->name},
              "%s cannot be told to %s: %s", row->at, refusal->framework->title, message);
}

void emit_refuse(struct emit *e, const struct framework *framework, struct error *err)
{
    const struct dialect_ways ways = {true, all, number_at, nothing, NULL, number_at, tell, &(struct refusal){e, framework, err}};

    dialect_rows_apply(e->arena, &arguments_of(e)->pairs, "cannot", &ways);
}
