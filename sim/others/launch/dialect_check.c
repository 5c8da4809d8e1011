#include "launch/dialect_check.h"

#include "base/base.h"
#include "config/conf.h"
#include "launch/dialect.h"

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

/* Whether all names between spaces are arguments. */
struct checking { struct arena *arena; const struct dialect *dialect; row_finder *find; const struct node *root; struct error *err; };

static int check_names(const struct checking *c, const char *names)
{
    for (const char *at = names; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const char *name = arena_strndup(c->arena, at, strcspn(at, " "));

        if (!c->find(c->dialect, name, false))
            return error_add(c->err, EXIT_INPUT, c->root->loc, "a row, or the code that reads it, asks for '%s', which is no argument", name);
    }
    return 0;
}

/* What the code of TrainingArguments asks for. */
static const char trainer[] = "per_device_train_batch_size gradient_accumulation_steps optim deepspeed fsdp fsdp_config.reshard_after_forward "
                              "max_grad_norm max_length max_seq_length lora_target_modules";

int dialect_check_rows(struct arena *arena, const struct dialect *dialect, row_finder *find, const struct node *root, struct error *err)
{
    const struct checking c = {arena, dialect, find, root, err};

    if (dialect->reader && check_names(&c, trainer))
        return -1;
    for (size_t i = 0; i < dialect->pairs.count; i++) {
        const struct dialect_row *row = &dialect->pairs.items[i];

        for (size_t k = 0; k < row->say.count; k++)
            if (check_names(&c, row->say.terms[k].key))
                return -1;
        if (check_names(&c, row->unless) || check_names(&c, row->given) ||
            (row->tells && row->tells != TELLS_CANNOT && check_names(&c, row->at ? row->at : "no argument")))
            return -1;
        if (row->tells && (!row->message || !row->at))
            return refuse(root, "text of a message, and the argument or key at which it stands", err);
    }
    for (size_t i = 0; i < dialect->own; i++)
        for (const char *at = dialect->rows[i].needs; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
            if (check_names(&c, arena_strndup(arena, at, strcspn(at, " ="))))
                return -1;
    return 0;
}
