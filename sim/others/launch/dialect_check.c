#include "launch/dialect_check.h"

#include "base/base.h"
#include "config/conf.h"
#include "expression/expression.h"
#include "launch/dialect.h"
#include "scenario/scenario.h"

static int refuse(const struct node *node, const char *expected, struct error *err)
{
    return error_add(err, EXIT_INPUT, node->loc, "expected %s; platforms/dialects/README.md says what a dialect has", expected);
}

/* Whether texts alone stand below that many lists and mappings. */
static int check_depth(const struct node *node, int depth, struct error *err)
{
    if (node->kind != NODE_SCALAR && !depth)
        return refuse(node, "text", err);
    for (size_t i = 0; i < node->count; i++)
        if (check_depth(node->items[i], depth - 1, err))
            return -1;
    return 0;
}

/* A mapping whose values are of a kind: of texts, of mappings, of lists. */
static int check_mapping(const struct node *mapping, enum node_kind kind, int depth, struct error *err)
{
    if (!mapping)
        return 0;
    if (mapping->kind != NODE_MAPPING)
        return refuse(mapping, "a mapping", err);
    for (size_t i = 0; i < mapping->count; i++)
        if (mapping->items[i]->kind != kind)
            return refuse(mapping->items[i], kind == NODE_SCALAR ? "text" : kind == NODE_MAPPING ? "a mapping" : "a list", err);
    return check_depth(mapping, depth, err);
}

static int check_arguments(const struct node *arguments, struct error *err)
{
    if (check_mapping(arguments, NODE_MAPPING, 3, err))
        return -1;
    for (size_t i = 0; arguments && i < arguments->count; i++) {
        const struct node *argument = arguments->items[i], *words = node_get(argument, "words"), *path = node_get(argument, "is");
        const struct node *kind = node_get(argument, "kind");

        if (!kind || kind->kind != NODE_SCALAR)
            return refuse(argument, "a kind: flag, int, number, word, list, any or bool", err);
        if (words && words->kind != NODE_MAPPING)
            return refuse(words, "a mapping", err);
        for (size_t k = 0; words && k < words->count; k++)
            if (strpbrk(words->keys[k], " =") || strchr(words->items[k]->text, ' ') || !*words->items[k]->text)
                return refuse(words, "words without blanks", err);
        if (path && path->kind != NODE_SCALAR)
            return refuse(path, "a key of a scenario", err);
        if (path && !strcmp(kind->text, "flag") && !node_get(argument, "gives"))
            return refuse(argument, "gives, of a flag with a key", err);
    }
    return 0;
}

static int check_rows(const struct node *rows, struct error *err)
{
    if (check_mapping(rows, NODE_SEQUENCE, 5, err))
        return -1;
    for (size_t p = 0; rows && p < rows->count; p++)
        for (size_t i = 0; i < rows->items[p]->count; i++) {
            const struct node *row = rows->items[p]->items[i];
            static const char *const texts[] = {"where", "only", "at", "given", "unless", "missing", "warn", "refuse", "cannot"};

            if (row->kind != NODE_MAPPING)
                return refuse(row, "a row: a mapping", err);
            for (size_t k = 0; k < COUNT(texts); k++)
                if (node_get(row, texts[k]) && node_get(row, texts[k])->kind != NODE_SCALAR)
                    return refuse(node_get(row, texts[k]), "text", err);
        }
    return 0;
}

int dialect_check_form(const struct node *root, struct error *err)
{
    static const char *const mappings[] = {"releases", "keys", "moved", "printed"}, *const lists[] = {"idle", "lacks"};

    if (root->kind != NODE_MAPPING)
        return refuse(root, "a mapping", err);
    for (size_t i = 0; i < COUNT(mappings); i++)
        if (check_mapping(node_get(root, mappings[i]), NODE_SCALAR, 1, err))
            return -1;
    for (size_t i = 0; i < COUNT(lists); i++) {
        const struct node *list = node_get(root, lists[i]);

        if (list && (list->kind != NODE_SEQUENCE || check_depth(list, 1, err)))
            return refuse(list, "a list of names", err);
    }
    for (size_t i = 0; i < root->count; i++)
        if (check_depth(root->items[i], !strcmp(root->keys[i], "rows") ? 5 : 3, err))
            return -1;
    if (check_mapping(node_get(root, "idle_below"), NODE_SEQUENCE, 2, err) ||
        (node_get(root, "refused") && node_get(root, "refused")->kind != NODE_MAPPING))
        return refuse(root, "idle_below: a mapping of lists, refused: a mapping", err);
    return check_arguments(node_get(root, "arguments"), err) || check_rows(node_get(root, "rows"), err) ? -1 : 0;
}

struct checking { struct arena *arena; const struct dialect *dialect; row_finder *find; struct error *err; };

/* Whether all names between spaces are arguments. */
static int check_names(const struct checking *c, const char *names, struct loc loc)
{
    for (const char *at = names; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const char *name = arena_strndup(c->arena, at, strcspn(at, " ="));

        if (!c->find(c->dialect, name, false))
            return error_add(c->err, EXIT_INPUT, loc, "a row, or the code that reads it, asks for '%s', which is no argument", name);
    }
    return 0;
}

/* The letters of an expression, a bit each. */
static unsigned letters_of(const struct expression *expression)
{
    unsigned letters = 0;

    for (int i = 0; expression && i < LETTERS; i++)
        letters |= expression_uses(expression, i) ? 1u << i : 0;
    return letters;
}

static unsigned side_letters(const struct dialect_side *side)
{
    unsigned letters = 0;

    for (size_t i = 0; i < side->count; i++)
        for (size_t k = 0; k < side->terms[i].count; k++)
            letters |= letters_of(side->terms[i].items[k].value);
    return letters;
}

/* The letters <L> of a message. */
static unsigned message_letters(const char *message)
{
    unsigned letters = 0;

    for (const char *at = message; at && (at = strchr(at, '<')); at++)
        letters |= at[1] >= 'A' && at[1] <= 'Z' && at[2] == '>' ? 1u << (at[1] - 'A') : 0;
    return letters;
}

/* Each letter of what is written, of conditions and of messages stands on the side that is read. */
static int check_letters(const struct dialect_row *row, struct error *err)
{
    unsigned say = side_letters(&row->say), is = side_letters(&row->is);
    unsigned asked = letters_of(row->where) | message_letters(row->message);
    unsigned unknown = (row->importing ? (is | asked) & ~say : 0) | (row->emitting ? ((row->tells ? 0 : say) | asked) & ~is : 0);

    for (int i = 0; i < LETTERS; i++)
        if (unknown & 1u << i)
            return error_add(err, EXIT_INPUT, row->loc, "nothing says what %c is; expected each letter on the side that is read: "
                             "'only: import' or 'only: emit' reads one alone", 'A' + i);
    return 0;
}

static int check_paths(const struct dialect_row *row, struct error *err)
{
    for (size_t k = 0; k < row->is.count; k++)
        if (!scenario_field(row->is.terms[k].key))
            return error_add(err, EXIT_INPUT, row->loc, "scenarios have no '%s'; expected a key such as strategy.tensor",
                             row->is.terms[k].key);
    return 0;
}

static int check_row(const struct checking *c, const struct dialect_row *row)
{
    bool imports = row->tells && row->tells != TELLS_CANNOT;

    for (size_t k = 0; k < row->say.count; k++)
        if (check_names(c, row->say.terms[k].key, row->loc))
            return -1;
    if (row->tells && (!row->message || !row->at))
        return error_add(c->err, EXIT_INPUT, row->loc, "expected text of a message, and the argument or key at which it stands");
    return check_names(c, row->unless, row->loc) || check_names(c, row->given, row->loc) ||
           (imports && check_names(c, row->at, row->loc)) || check_letters(row, c->err) || check_paths(row, c->err) ? -1 : 0;
}

/* What the code of TrainingArguments asks for. */
static const char trainer[] = "per_device_train_batch_size gradient_accumulation_steps optim deepspeed fsdp fsdp_config.reshard_after_forward "
                              "max_grad_norm max_length max_seq_length lora_target_modules";
static const char trainer_parts[] = "plain memory recompute adapters quantized switches";

int dialect_check_rows(struct arena *arena, const struct dialect *dialect, row_finder *find, const struct node *root, struct error *err)
{
    const struct checking c = {arena, dialect, find, err};

    if (dialect->reader && check_names(&c, trainer, root->loc))
        return -1;
    for (size_t i = 0; i < dialect->pairs.count; i++) {
        const struct dialect_row *row = &dialect->pairs.items[i];

        if (check_row(&c, row))
            return -1;
        if (dialect->reader && !word_in(trainer_parts, row->part))
            return error_add(err, EXIT_INPUT, row->loc, "rows: nobody reads the part '%s'; expected one of %s", row->part,
                             trainer_parts);
    }
    for (size_t i = 0; i < dialect->own; i++)
        if (check_names(&c, dialect->rows[i].needs, dialect->rows[i].loc))
            return -1;
    return 0;
}
