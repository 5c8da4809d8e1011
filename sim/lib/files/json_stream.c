#include "files/json_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static int get(struct json_stream *stream)
{
    int c = getc_unlocked(stream->file);

    if (c == EOF)
        return c;
    stream->column++;
    if (c == '\n') {
        stream->last = stream->column - 1;
        stream->line++;
        stream->column = 0;
    }
    return c;
}

/* Gives the byte back that was read last. */
static void unget(struct json_stream *stream, int c)
{
    if (c == EOF)
        return;
    ungetc(c, stream->file);
    if (c == '\n')
        stream->line--;
    stream->column = c == '\n' ? stream->last : stream->column - 1;
}

static int peek(struct json_stream *stream)
{
    int c;

    do
        c = get(stream);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    unget(stream, c);
    return c;
}

static struct loc here(const struct json_stream *stream)
{
    return (struct loc){stream->name, stream->line + 1, stream->column + 1};
}

struct loc json_stream_loc(struct json_stream *stream)
{
    peek(stream);
    return here(stream);
}

static int fail(struct json_stream *stream, const char *expected)
{
    int c = stream->failed ? 0 : peek(stream);

    if (stream->failed)
        return -1;
    stream->failed = true;
    if (ferror(stream->file))
        return error_system(stream->err, (struct loc){.file = stream->name}, "cannot read");
    if (c == EOF)
        return error_add(stream->err, EXIT_INPUT, here(stream), "expected %s, found the end of the file: it seems to "
                         "be cut off", expected);
    if (c == 0x1f && !stream->begun)
        return error_add(stream->err, EXIT_INPUT, here(stream), "expected %s, found compressed data; try zcat, and '-' "
                         "as the file", expected);
    return error_add(stream->err, EXIT_INPUT, here(stream), c > ' ' && c <= '~' ? "expected %s, found '%c'" :
                     "expected %s, found byte %d", expected, c);
}

static int take(struct json_stream *stream, char c, const char *expected)
{
    if (stream->failed || peek(stream) != c)
        return fail(stream, expected);
    get(stream);
    return 0;
}

/* Copies a byte unless the value is passed over. */
static void keep(struct json_stream *stream, bool kept, int c)
{
    if (kept)
        *GROW(&stream->text) = (char)c;
}

/* The rest of a string, behind its first quote. */
static int scan_string(struct json_stream *stream, bool kept)
{
    for (int c; (c = get(stream)) != EOF;) {
        keep(stream, kept, c);
        if (c == '"')
            return 0;
        if (c == '\\') {
            c = get(stream);
            keep(stream, kept, c);
        }
        if (kept && stream->text.count > JSON_STREAM_MOST)
            break;
    }
    return feof(stream->file) || ferror(stream->file) ? fail(stream, "the end of a string") : 0;
}

/* Finds where a value ends by its brackets and strings; what is between them, jansson checks. */
static int scan(struct json_stream *stream, bool kept)
{
    int depth = 0, c = stream->failed ? EOF : peek(stream), next;

    if (c == EOF || strchr("}],:", c))
        return fail(stream, "a value");
    stream->text.count = 0;
    do {
        c = get(stream);
        if (c == EOF)
            return fail(stream, "the end of a value");
        keep(stream, kept, c);
        if (c == '"' && scan_string(stream, kept))
            return -1;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (kept && stream->text.count > JSON_STREAM_MOST) {
            stream->failed = true;
            return error_add(stream->err, EXIT_INPUT, here(stream), "a value of more than %d MiB",
                             JSON_STREAM_MOST >> 20);
        }
        next = depth ? 0 : get(stream);
        if (!depth)
            unget(stream, next);
    } while (depth || !(strchr("\"}]", c) || next == EOF || strchr("{}[],:\" \t\r\n", next)));
    stream->first = false;
    return 0;
}

int json_stream_skip(struct json_stream *stream)
{
    return scan(stream, false) ? -1 : 1;
}

json_t *json_stream_value(struct json_stream *stream)
{
    struct loc loc = json_stream_loc(stream);
    json_error_t error;
    json_t *value;

    if (stream->failed || scan(stream, true))
        return NULL;
    value = json_loadb(stream->text.items, stream->text.count, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value) {
        stream->failed = true;
        error_add(stream->err, EXIT_INPUT, loc, "expected JSON: %s", error.text);
    }
    return value;
}

int json_stream_key(struct json_stream *stream, const char **key)
{
    if (!stream->begun) {
        if (take(stream, '{', stream->expected))
            return -1;
        stream->begun = stream->first = true;
    }
    if (stream->failed)
        return -1;
    if (peek(stream) == '}') {
        get(stream);
        return peek(stream) == EOF ? 0 : fail(stream, "the end of the file");
    }
    if (!stream->first && take(stream, ',', "',' and the next key, or '}'"))
        return -1;
    if (take(stream, '"', "a key in quotes"))
        return -1;
    stream->text.count = 0;
    if (scan_string(stream, true))
        return -1;
    stream->text.items[stream->text.count - 1] = '\0';
    *key = stream->text.items;
    return take(stream, ':', "':' and a value") ? -1 : 1;
}

bool json_stream_array(struct json_stream *stream)
{
    if (stream->failed || peek(stream) != '[')
        return false;
    get(stream);
    stream->first = true;
    return true;
}

int json_stream_item(struct json_stream *stream)
{
    if (stream->failed)
        return -1;
    if (peek(stream) == ']') {
        get(stream);
        stream->first = false;
        return 0;
    }
    return !stream->first && take(stream, ',', "',' and the next item, or ']'") ? -1 : 1;
}

void json_stream_release(struct json_stream *stream)
{
    free(stream->text.items);
    stream->text.items = NULL;
    stream->text.count = stream->text.capacity = 0;
}
