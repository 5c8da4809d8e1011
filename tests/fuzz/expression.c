/* Whatever the expression: no crash, no leak, no hang; a mistake is one message at a place inside the text; a result is
 * finite, and a second evaluation gives the same. The bytes are a YAML file: its text, or what stands under `x`. */
#include <math.h>
#include <string.h>

#include "expression/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const known[] = {"a", "strategy.tensor", "strategy.schedule", "on", "list", "none"};

static int find(void *context, const char *name, const char **why)
{
    (void)context;
    (void)why;
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i], name))
            return (int)i;
    return -1;
}

static const char *name_at(size_t i, const void *context)
{
    (void)context;
    return i < COUNT(known) ? known[i] : NULL;
}

static int value_of(void *context, int name, struct value *value, struct error *err)
{
    const struct value values[] = {value_number(0.5), value_number(8), value_text("1f1b"), value_boolean(true),
                                   {.kind = VALUE_LIST}, {.kind = VALUE_NONE}};

    (void)context;
    (void)err;
    *value = values[name];
    return 0;
}

/* One line that can be printed, at a place inside the file, of whose bytes some may end a line. */
static void message_check(struct error *err, const char *file)
{
    int lines = 1;

    for (const char *c = file; *c; c++)
        lines += strchr("\n\r\x85\xA8\xA9", *c) != NULL;
    BUG_IF(err->count != 1 || err->messages[0].loc.line < 1 || err->messages[0].loc.line > lines ||
           err->messages[0].loc.column < 1);
    for (const char *c = err->messages[0].text; *c; c++)
        BUG_IF((unsigned char)*c < 0x20 || *c == 0x7F);
    error_release(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct names names = {find, name_at, NULL};
    struct arena arena = {0};
    struct error err = {0};
    struct expression *expression;
    struct value value, again;
    struct node *root;
    char *file = arena_strndup(&arena, (const char *)data, size);

    if (!conf_parse(&arena, "f", file, size, &root, &err)) {
        const struct node *node = root->kind == NODE_MAPPING ? node_get(root, "x") : root;
        struct expression_text text = {"e", node && node->text ? node->text : "", node ? node->loc : root->loc, file};

        if (expression_parse(&arena, &text, &names, &expression, &err) ||
            expression_evaluate(expression, value_of, NULL, &value, &err)) {
            message_check(&err, file);
        } else {
            BUG_IF(err.count || (value.kind == VALUE_NUMBER && !isfinite(value.number)));
            BUG_IF(expression_evaluate(expression, value_of, NULL, &again, &err) || !value_equal(&value, &again));
        }
    }
    error_release(&err);
    arena_release(&arena);
    return 0;
}
