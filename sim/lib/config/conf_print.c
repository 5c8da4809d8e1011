#include "config/conf.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "config/conf_text.h"

enum { PRINT_WIDTH = 100 };

/* The output and its width so far; without a file the width is only measured. */
struct sink {
    FILE *out;
    size_t width;
    bool origins;       /* a comment behind every value says where it stands */
};

static void put(struct sink *sink, const char *text, size_t length)
{
    sink->width += length;
    if (sink->out)
        fwrite(text, 1, length, sink->out);
}

static void puts_to(struct sink *sink, const char *text)
{
    put(sink, text, strlen(text));
}

static void indent_put(struct sink *sink, int indent)
{
    for (int i = 0; i < indent; i++)
        put(sink, " ", 1);
}

/* Whether the text can stand without quotes, in flow style too. True for fewer texts than YAML allows. */
static bool plain_safe(const char *text)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-() *<>|^=%@~$;";
    size_t length = strlen(text), at = 0;
    const char *end = text + length;

    if (!length || text[length - 1] == ' ' || strncmp(text, "---", 3) == 0 || strncmp(text, "...", 3) == 0)
        return false;
    if (*text == '-')
        at = 1;     /* a '-' alone begins a list item */
    if (!text[at] || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+", text[at]))
        return false;
    while (text < end) {
        int32_t c = utf8_next(&text, end);

        if (c < 0 || !yaml_printable(c) || (c < 0x80 && !strchr(inside, (int)c)) || text_harmful((uint32_t)c))
            return false;
    }
    return true;
}

/* Writes the text in double quotes, for YAML or JSON. */
static void quoted_put(struct sink *sink, const char *text, bool json)
{
    const char *end = text + strlen(text);

    put(sink, "\"", 1);
    while (text < end) {
        const char *start = text;
        int32_t c = utf8_next(&text, end);
        char escape[16];

        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", (int)c);
        else if (c == '\n' || c == '\t')
            snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : 't');
        else if (c < 0)
            snprintf(escape, sizeof escape, "\\uFFFD");
        else if ((json || yaml_printable(c)) && !text_harmful((uint32_t)c))
            snprintf(escape, sizeof escape, "%.*s", (int)(text - start), start);
        else
            snprintf(escape, sizeof escape, c < 0x10000 ? "\\u%04X" : "\\U%08X", (unsigned)c);
        puts_to(sink, escape);
    }
    put(sink, "\"", 1);
}

static void scalar_put(struct sink *sink, const char *text, bool quoted)
{
    if (!quoted && !*text)
        puts_to(sink, "null");
    else if (!quoted && plain_safe(text))
        puts_to(sink, text);
    else if (!quoted && strcmp(text, "~") == 0)
        puts_to(sink, text);
    else
        quoted_put(sink, text, false);
}

/* Keys are text in any case, so only "<<" and the empty key need quotes. */
static void key_put(struct sink *sink, const char *key)
{
    scalar_put(sink, key, strcmp(key, "<<") == 0 || !*key);
}

/* Whether all items are scalars. */
static bool flat(const struct node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->items[i]->kind != NODE_SCALAR)
            return false;
    return true;
}

static void flow_put(struct sink *sink, const struct node *node)
{
    if (node->kind == NODE_SCALAR) {
        scalar_put(sink, node->text, node->quoted);
        return;
    }
    puts_to(sink, node->kind == NODE_SEQUENCE ? "[" : "{");
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            puts_to(sink, ", ");
        if (node->kind == NODE_MAPPING) {
            key_put(sink, node->keys[i]);
            puts_to(sink, ": ");
        }
        flow_put(sink, node->items[i]);
    }
    puts_to(sink, node->kind == NODE_SEQUENCE ? "]" : "}");
}

/* Whether the node is printed on one line: a scalar, an empty node, or a short list or mapping of scalars. */
static bool one_line(const struct node *node, int indent, size_t before, bool origins)
{
    struct sink measure = {.out = NULL};

    if (node->kind == NODE_SCALAR || node->count == 0)
        return true;
    if (!flat(node) || (origins && node->kind == NODE_MAPPING))
        return false;
    flow_put(&measure, node);
    return measure.width + before + (size_t)indent <= PRINT_WIDTH;
}

/* Ends a line that has reached this width. Files appear by name, without folder. Line 0 is a place on the command line;
 * its first word is enough. */
static void line_end(struct sink *sink, const struct node *item, size_t width)
{
    const char *file = item->loc.file, *slash = file ? strrchr(file, '/') : NULL;

    if (sink->origins && (item->kind != NODE_MAPPING || item->count == 0)) {
        fprintf(sink->out, "%*s# ", width < 40 ? (int)(40 - width) : 1, "");
        if (file && item->loc.line == 0)
            fprintf(sink->out, "%.*s", (int)strcspn(file, " \n"), file);
        else
            text_write(TEXT_LINE, !file ? "default" : slash ? slash + 1 : file, sink->out);
        if (file && item->loc.line)
            fprintf(sink->out, ":%d", item->loc.line);
    }
    puts_to(sink, "\n");
}

/* The caller has already indented the first line. */
static void block_put(struct sink *sink, const struct node *node, int indent)
{
    for (size_t i = 0; i < node->count; i++) {
        const struct node *item = node->items[i];
        size_t before;

        if (i > 0)
            indent_put(sink, indent);
        before = sink->width;
        if (node->kind == NODE_MAPPING) {
            key_put(sink, node->keys[i]);
            puts_to(sink, ":");
        } else {
            puts_to(sink, "-");
        }
        if (one_line(item, indent, sink->width - before + 1, sink->origins)) {
            puts_to(sink, " ");
            flow_put(sink, item);
            line_end(sink, item, (size_t)indent + sink->width - before);
        } else if (node->kind == NODE_MAPPING) {
            puts_to(sink, "\n");
            indent_put(sink, indent + 2);
            block_put(sink, item, indent + 2);
        } else {
            puts_to(sink, " ");
            block_put(sink, item, indent + 2);
        }
    }
}

static void print(const struct node *root, bool origins, FILE *out)
{
    struct sink sink = {.out = out, .origins = origins};

    if (root->kind == NODE_SCALAR || root->count == 0) {
        flow_put(&sink, root);
        puts_to(&sink, "\n");
    } else {
        block_put(&sink, root, 0);
    }
}

void node_print(const struct node *root, FILE *out)
{
    print(root, false, out);
}

const char *node_flow(struct arena *arena, const struct node *node)
{
    char *text = NULL;
    size_t size = 0;
    struct sink sink = {.out = text_open(&text, &size)};
    const char *copy;
    flow_put(&sink, node);
    text_close(sink.out, &text);
    copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

void node_print_origins(const struct node *root, FILE *out)
{
    print(root, true, out);
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool json_number(const char *text)
{
    size_t digits;

    text += *text == '-';
    digits = strspn(text, "0123456789");
    if (digits == 0 || (digits > 1 && *text == '0'))
        return false;
    text += digits;
    if (*text == '.') {
        digits = strspn(++text, "0123456789");
        if (digits == 0)
            return false;
        text += digits;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        digits = strspn(text, "0123456789");
        if (digits == 0)
            return false;
        text += digits;
    }
    return *text == '\0';
}

static void json_scalar_put(struct sink *sink, const struct node *node)
{
    if (node->quoted)
        quoted_put(sink, node->text, true);
    else if (text_is_null(node->text))
        puts_to(sink, "null");
    else if (json_number(node->text) || strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)
        puts_to(sink, node->text);
    else
        quoted_put(sink, node->text, true);
}

static void json_put(struct sink *sink, const struct node *node, int indent, bool line)
{
    bool mapping = node->kind == NODE_MAPPING;

    if (node->kind == NODE_SCALAR) {
        json_scalar_put(sink, node);
        return;
    }
    if (!line) {
        struct sink measure = {.out = NULL};

        if (flat(node))
            json_put(&measure, node, indent, true);
        line = node->count == 0 || (flat(node) && measure.width + (size_t)indent <= PRINT_WIDTH);
    }
    puts_to(sink, mapping ? "{" : "[");
    for (size_t i = 0; i < node->count; i++) {
        puts_to(sink, i > 0 ? "," : "");
        puts_to(sink, !line ? "\n" : i > 0 ? " " : "");
        indent_put(sink, line ? 0 : indent + 2);
        if (mapping) {
            quoted_put(sink, node->keys[i], true);
            puts_to(sink, ": ");
        }
        json_put(sink, node->items[i], indent + 2, line);
    }
    puts_to(sink, line ? "" : "\n");
    indent_put(sink, line ? 0 : indent);
    puts_to(sink, mapping ? "}" : "]");
}

void node_print_json(const struct node *root, FILE *out)
{
    struct sink sink = {.out = out};

    json_put(&sink, root, 0, false);
    puts_to(&sink, "\n");
}
