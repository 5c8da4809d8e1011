#include "files/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/decimal.h"
#include "base/text.h"
#include "files/look.h"

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value))
        BUG("'%s' has no value", key);
}

void json_append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        BUG("an item has no value");
}

json_t *json_words(const char *text)
{
    json_t *json = json_string(text);
    char *clean;

    if (json)
        return json;
    clean = text_made(TEXT_LINE, text);
    json = json_string(clean);
    free(clean);
    return json;
}

enum { ONE_LINE = -1 };          /* a level: nothing is indented */

/* Whole numbers that are real keep a point, so that they are read back as real. */
static void print_real(double value, FILE *out)
{
    char text[DECIMAL_SIZE];

    BUG_IF(!isfinite(value));
    fputs(decimal_text(value, text), out);
    if (!strpbrk(text, ".e"))
        fputs(".0", out);
}

static bool is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
            return false;
    return true;
}

static void print_string(const char *text, size_t length, FILE *out)
{
    if (is_plain(text, length)) {
        putc_unlocked('"', out);
        fwrite(text, 1, length, out);
        putc_unlocked('"', out);
        return;
    }
    json_t *string = json_stringn(text, length);
    char *dumped = json_dumps(string, JSON_ENCODE_ANY), *clean = text_made(TEXT_LINE, dumped ? dumped : "");

    /* JSON lets what steers a terminal or turns the direction of writing stand as it is; \u is the same to its reader. */
    if (dumped && strcmp(clean, dumped)) {
        free(dumped);
        dumped = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    }
    BUG_IF(!dumped);
    for (const char *c = dumped; *c; c++)
        if (*c == '\x7F')        /* ASCII's last control, which jansson leaves */
            fputs("\\u007F", out);
        else
            putc_unlocked(*c, out);
    free(dumped);
    free(clean);
    json_decref(string);
}

/* Before an item, and, with `last`, before the bracket that closes. */
static void print_break(int level, bool first, bool last, FILE *out)
{
    if (!first && !last)
        putc_unlocked(',', out);
    if (level == ONE_LINE || (first && last))
        return;
    putc_unlocked('\n', out);
    for (int i = last ? 0 : -1; i < level; i++)
        fputs("  ", out);
}

static void print(const json_t *json, int level, FILE *out)
{
    int inner = level == ONE_LINE ? ONE_LINE : level + 1;
    bool first = true;
    const char *key;
    size_t i;
    json_t *item;

    switch (json_typeof(json)) {
    case JSON_OBJECT:
        putc_unlocked('{', out);
        json_object_foreach((json_t *)(uintptr_t)json, key, item) {
            print_break(level, first, false, out);
            print_string(key, strlen(key), out);
            fputs(level == ONE_LINE ? ":" : ": ", out);
            print(item, inner, out);
            first = false;
        }
        print_break(level, first, true, out);
        putc_unlocked('}', out);
        return;
    case JSON_ARRAY:
        putc_unlocked('[', out);
        json_array_foreach(json, i, item) {
            print_break(level, first, false, out);
            print(item, inner, out);
            first = false;
        }
        print_break(level, first, true, out);
        putc_unlocked(']', out);
        return;
    case JSON_STRING:
        print_string(json_string_value(json), json_string_length(json), out);
        return;
    case JSON_INTEGER:
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        return;
    case JSON_REAL:
        print_real(json_real_value(json), out);
        return;
    case JSON_TRUE:
        fputs("true", out);
        return;
    case JSON_FALSE:
        fputs("false", out);
        return;
    case JSON_NULL:
        fputs("null", out);
    }
}

void json_print(const json_t *json, FILE *out)
{
    print(json, 0, out);
    putc_unlocked('\n', out);
}

void json_line(const json_t *json, FILE *out)
{
    print(json, ONE_LINE, out);
}

char *json_text(const json_t *json)
{
    char *text = NULL;
    size_t size;
    FILE *out = text_open(&text, &size);
    json_line(json, out);
    text_close(out, &text);
    return text;
}

/* A file that is read, and why that failed: jansson takes an error for the end of the file, and sets errno while it reads
 * the number that ends there. */
struct source { FILE *file; int why; };

static size_t read_some(void *buffer, size_t size, void *data)
{
    struct source *source = data;
    size_t count = fread(buffer, 1, size, source->file);

    if (ferror(source->file) && !source->why)
        source->why = errno;
    return count;
}

json_t *json_of_file(const char *path, const char *what, struct error *err)
{
    struct loc loc = {.file = path};
    FILE *file = look_open(path, err);
    json_error_t why;
    json_t *json;

    if (!file)
        return NULL;
    struct source source = {file, 0};
    json = json_load_callback(read_some, &source, 0, &why);
    if (ferror(file)) {
        errno = source.why;
        error_system(err, loc, "cannot read");
        json_decref(json);
        json = NULL;
    } else if (!json) {
        error_add(err, EXIT_INPUT, loc, "cannot read %s: %s", what, why.text);
    }
    fclose(file);
    return json;
}

json_t *json_finite(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_json(const char *text)
{
    return text && *text ? json_words(text) : json_null();
}

json_t *errors_json(const struct error *err)
{
    json_t *list = json_array();

    for (int i = 0; i < err->count; i++) {
        const struct error_message *message = &err->messages[i];
        const struct loc *loc = &message->loc;

        json_append(list, json_pack(
            "{s:o, s:o, s:o, s:s, s:o}", "file", text_json(loc->file), "line",
            loc->line ? json_integer(loc->line) : json_null(), "column",
            loc->line ? json_integer(loc->column) : json_null(), "message", message->text, "rule",
            text_json(error_kind_names[message->kind])));
    }
    return json_pack("{s:o, s:i}", "errors", list, "exit_code", (int)error_exit_code(err));
}
