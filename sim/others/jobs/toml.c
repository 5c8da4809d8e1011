/* toml: lines of [table] and key = value, and the values. */
#include "jobs/toml.h"

#include "config/conf_text.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

struct toml {
    struct arena *arena;
    struct error *err;
    const char *file, *at, *end, *line_begin;
    int line, depth;
    struct { const struct node **items; size_t count, capacity; } headed;    /* tables that a line [table] has */
};

static struct loc here(const struct toml *toml)
{
    return (struct loc){toml->file, toml->line, (int)(toml->at - toml->line_begin) + 1};
}

static int refuse(struct toml *toml, const char *expected)
{
    char found[CLIP_SIZE], *text;
    size_t length = 0;

    while (toml->at + length < toml->end && toml->at[length] != '\n' && toml->at[length] != '\r' && length < 40)
        length++;
    text = arena_strndup(toml->arena, toml->at, length);
    return error_add(toml->err, EXIT_INPUT, here(toml), "expected %s, found %s%s%s", expected, *text ? "'" : "",
                     *text ? text_clip(text, found, sizeof found) : toml->at < toml->end ? "the end of the line" :
                     "the end of the file", *text ? "'" : "");
}

static char peek(const struct toml *toml)
{
    return toml->at < toml->end ? *toml->at : '\0';
}

static void newline(struct toml *toml)
{
    toml->line++;
    toml->line_begin = ++toml->at;
}

/* Blanks and a comment; newlines too where `lines`. */
static void skip(struct toml *toml, bool lines)
{
    for (;; ) {
        char c = peek(toml);

        if (c == ' ' || c == '\t' || (c == '\r' && toml->at + 1 < toml->end && toml->at[1] == '\n'))
            toml->at++;
        else if (c == '#')
            while (toml->at < toml->end && *toml->at != '\n')
                toml->at++;
        else if (c == '\n' && lines)
            newline(toml);
        else
            return;
    }
}

static bool is_bare(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

struct text { char *items; size_t count, capacity; };

static void put_code(struct text *text, unsigned long long code)
{
    static const struct { unsigned long long below; int more; unsigned char mark; } forms[] = {
        {0x80, 0, 0}, {0x800, 1, 0xc0}, {0x10000, 2, 0xe0}, {0x110000, 3, 0xf0},
    };
    size_t form = 0;

    while (code >= forms[form].below)
        form++;
    *GROW(text) = (char)(forms[form].mark | (code >> (6 * forms[form].more)));
    for (int i = forms[form].more - 1; i >= 0; i--)
        *GROW(text) = (char)(0x80 | ((code >> (6 * i)) & 0x3f));
}

/* What stands behind a backslash in "...". */
static int escape(struct toml *toml, struct text *text)
{
    static const char letters[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    char c = peek(toml), digits[9] = "";
    const char *letter = c ? strchr(letters, c) : NULL;
    size_t count = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    unsigned long long code;

    if (letter) {
        *GROW(text) = values[letter - letters];
        toml->at++;
        return 0;
    }
    for (size_t i = 0; i < count && toml->at + 1 + i < toml->end && isxdigit((unsigned char)toml->at[1 + i]); i++)
        digits[i] = toml->at[1 + i];
    code = strtoull(digits, NULL, 16);
    if (!count || strlen(digits) != count || !code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return refuse(toml, "an escape of TOML (\\n, \\\", \\\\, \\uXXXX)");
    put_code(text, code);
    toml->at += 1 + count;
    return 0;
}

/* A string in quotes, or three of them, which lines may follow. */
static int read_string(struct toml *toml, const char **value)
{
    char quote = *toml->at, three[4] = {quote, quote, quote, 0};
    bool many = toml->end - toml->at >= 3 && !memcmp(toml->at, three, 3);
    struct loc begin = here(toml);
    struct text text = {0};
    int rc = 0;

    toml->at += many ? 3 : 1;
    if (many && peek(toml) == '\r')
        toml->at++;
    if (many && peek(toml) == '\n')
        newline(toml);
    while (!rc) {
        char c = peek(toml);

        if (toml->at == toml->end || (!many && c == '\n')) {
            rc = error_add(toml->err, EXIT_INPUT, begin, "the string that begins here has no end; expected %s",
                           many ? three : three + 2);
        } else if (c == quote && (!many || (toml->end - toml->at >= 3 && !memcmp(toml->at, three, 3)))) {
            toml->at += many ? 3 : 1;
            break;
        } else if (c == '\\' && quote == '"') {
            const char *next = ++toml->at;

            while (many && next < toml->end && (*next == ' ' || *next == '\t' || *next == '\r'))
                next++;
            if (many && next < toml->end && *next == '\n')
                while (toml->at < toml->end && isspace((unsigned char)*toml->at))
                    *toml->at == '\n' ? newline(toml) : (void)toml->at++;
            else
                rc = escape(toml, &text);
        } else {
            *GROW(&text) = c;
            c == '\n' ? newline(toml) : (void)toml->at++;
        }
    }
    *value = arena_strndup(toml->arena, text.items ? text.items : "", text.count);
    free(text.items);
    return rc;
}

static int read_value(struct toml *toml, struct node **value);

/* key.key."key": the mapping that has the last one, and that one's name and place. Missing mappings are made. */
static int read_path(struct toml *toml, struct node *mapping, struct node **owner, const char **key, struct loc *loc)
{
    int parts = 0;

    for (*owner = mapping;; toml->at++) {
        char c;

        if (++parts > TOML_MAX_DEPTH)
            return error_add(toml->err, EXIT_INPUT, here(toml), "a key has more than %d parts", TOML_MAX_DEPTH);
        skip(toml, false);
        c = peek(toml);
        *loc = here(toml);
        if (c == '"' || c == '\'') {
            if (read_string(toml, key))
                return -1;
        } else if (is_bare(c)) {
            const char *begin = toml->at;

            while (toml->at < toml->end && is_bare(*toml->at))
                toml->at++;
            *key = arena_strndup(toml->arena, begin, (size_t)(toml->at - begin));
        } else {
            return refuse(toml, "a key");
        }
        skip(toml, false);
        if (peek(toml) != '.')
            return 0;
        if (!node_get(*owner, *key)) {
            struct node *made = node_mapping(toml->arena);

            made->loc = *loc;
            node_put(toml->arena, *owner, *key, made);
            (*owner)->key_locs[(*owner)->count - 1] = *loc;
        }
        *owner = node_get(*owner, *key);
        if ((*owner)->kind != NODE_MAPPING)
            return error_add(toml->err, EXIT_INPUT, *loc, "'%s' is no table: line %d gives it a value", *key,
                             (*owner)->loc.line);
    }
}

static int read_pair(struct toml *toml, struct node *mapping)
{
    struct node *owner, *value, *before;
    const char *key;
    struct loc loc;

    if (read_path(toml, mapping, &owner, &key, &loc))
        return -1;
    if (peek(toml) != '=')
        return refuse(toml, "'=' behind the key");
    toml->at++;
    skip(toml, false);
    if (read_value(toml, &value))
        return -1;
    before = node_get(owner, key);
    if (before)
        return error_add(toml->err, EXIT_INPUT, loc, "key '%s' is given twice, first in line %d", key,
                         before->loc.line);
    node_put(toml->arena, owner, key, value);
    owner->key_locs[owner->count - 1] = loc;
    return 0;
}

/* [1, 2] over several lines, or {a = 1}. */
static int read_items(struct toml *toml, struct node *list, char close)
{
    bool array = close == ']';

    for (toml->at++;; toml->at++) {
        struct node *item;

        skip(toml, array);
        if (peek(toml) == close && (array || !list->count))
            break;
        if (array ? read_value(toml, &item) : read_pair(toml, list))
            return -1;
        if (array)
            node_append(toml->arena, list, item);
        skip(toml, array);
        if (peek(toml) == close)
            break;
        if (peek(toml) != ',')
            return refuse(toml, array ? "',' or ']'" : "',' or '}'");
    }
    toml->at++;
    return 0;
}

/* A number, true, false or a date: as it is, without the '_' between digits. */
static int read_scalar(struct toml *toml, struct node **value)
{
    const char *begin = toml->at, *text;
    char *copy, *end;

    while (toml->at < toml->end && (is_bare(*toml->at) || strchr("+.:", *toml->at)))
        toml->at++;
    text = arena_strndup(toml->arena, begin, (size_t)(toml->at - begin));
    copy = arena_strdup(toml->arena, text);
    end = copy;
    for (const char *c = text; *c; c++)
        if (*c != '_')
            *end++ = *c;
    *end = '\0';
    strtod(copy, &end);
    if (!*text || (strcmp(text, "true") && strcmp(text, "false") && *end && !isdigit((unsigned char)*text))) {
        toml->at = begin;
        return refuse(toml, "a value (text in quotes, a number, true, false, [...] or {...})");
    }
    *value = node_scalar(toml->arena, copy, false);
    return 0;
}

static int read_value(struct toml *toml, struct node **value)
{
    struct loc loc = here(toml);
    char c = peek(toml);
    const char *text = NULL;
    int rc;

    *value = NULL;
    if (++toml->depth > TOML_MAX_DEPTH)
        return error_add(toml->err, EXIT_INPUT, loc, "more than %d lists and tables stand in each other",
                         TOML_MAX_DEPTH);
    if (c == '"' || c == '\'') {
        rc = read_string(toml, &text);
        *value = rc ? NULL : node_scalar(toml->arena, text, true);
    } else if (c == '[' || c == '{') {
        *value = c == '[' ? node_sequence(toml->arena) : node_mapping(toml->arena);
        rc = read_items(toml, *value, c == '[' ? ']' : '}');
    } else {
        rc = read_scalar(toml, value);
    }
    if (!rc && *value)
        (*value)->loc = loc;
    toml->depth--;
    return rc;
}

/* [table]: the mapping to which the next lines belong. */
static int read_header(struct toml *toml, struct node *root, struct node **table)
{
    struct node *owner = NULL, *found;
    struct loc loc = here(toml);
    const char *key = NULL;

    if (++toml->at < toml->end && *toml->at == '[')
        return error_add(toml->err, EXIT_INPUT, loc, "arrays of tables ([[...]]) are not read; expected [table]");
    if (read_path(toml, root, &owner, &key, &loc))
        return -1;
    if (peek(toml) != ']')
        return refuse(toml, "']' behind the table's name");
    toml->at++;
    found = node_get(owner, key);
    for (size_t i = 0; found && i < toml->headed.count; i++)
        if (toml->headed.items[i] == found)
            return error_add(toml->err, EXIT_INPUT, loc, "table '%s' is given twice, first in line %d", key,
                             found->loc.line);
    if (found && found->kind != NODE_MAPPING)
        return error_add(toml->err, EXIT_INPUT, loc, "'%s' is no table: line %d gives it a value", key,
                         found->loc.line);
    if (!found) {
        found = node_mapping(toml->arena);
        found->loc = loc;
        node_put(toml->arena, owner, key, found);
        owner->key_locs[owner->count - 1] = loc;
    }
    *GROW(&toml->headed) = *table = found;
    return 0;
}

int toml_parse(struct arena *arena, const char *name, const char *text, size_t length, struct node **root,
               struct error *err)
{
    size_t mark = text_mark(text, length);
    struct toml toml = {.arena = arena, .err = err, .file = name, .at = text + mark, .end = text + length,
                        .line_begin = text + mark, .line = 1};
    struct node *top = node_mapping(arena), *table = top;
    int rc = conf_check_text(name, text, length, false, err);

    *root = NULL;
    if (!rc && length > TOML_MAX_BYTES)
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = name},
                       "holds more than %d KiB; expected a job's file in TOML", TOML_MAX_BYTES >> 10);
    top->loc = (struct loc){name, 1, 1};
    for (skip(&toml, true); !rc && toml.at < toml.end; skip(&toml, true)) {
        rc = peek(&toml) == '[' ? read_header(&toml, top, &table) : read_pair(&toml, table);
        skip(&toml, false);
        if (!rc && toml.at < toml.end && peek(&toml) != '\n')
            rc = refuse(&toml, "the end of the line");
    }
    free(toml.headed.items);
    if (!rc)
        *root = top;
    return rc;
}
