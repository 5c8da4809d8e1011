#include "view/say.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "files/json.h"

enum { WORD = 96, CELL = 64, LINE = 512 };

/* A line that is said, and what of it is written. */
struct saying {
    json_t *of;
    const struct say_source *source;         /* or NULL */
    const char *at;
    bool silent;                 /* it is only passed over */
    struct { char *items; size_t count, capacity; } text;
};

static void write_bytes(struct saying *saying, const char *text, size_t length)
{
    while (saying->text.capacity < saying->text.count + length + 1) {
        saying->text.capacity = 2 * saying->text.capacity + LINE;
        saying->text.items = xrealloc(saying->text.items, saying->text.capacity, 1);
    }
    memcpy(saying->text.items + saying->text.count, text, length);
    saying->text.count += length;
    saying->text.items[saying->text.count] = '\0';
}

static void write_text(struct saying *saying, const char *text)
{
    write_bytes(saying, text, strlen(text));
}

/* A number of a line: most have few digits. */
static double number_in(const char *text)
{
    double number = 0;
    const char *c = text;

    for (; isdigit((unsigned char)*c); c++)
        number = 10 * number + (*c - '0');
    return *c ? strtod(text, NULL) : number;
}

/* What is written between the signs in `ends`, into a buffer of WORD bytes. */
static const char *word_of(struct saying *saying, const char *ends, char *word)
{
    size_t length = strcspn(saying->at, ends);

    BUG_IF(length >= WORD);
    memcpy(word, saying->at, length);
    word[length] = '\0';
    saying->at += length;
    return word;
}

/* What stands under the path; NULL: nothing, or null. */
static const json_t *value_at(struct saying *saying, const char *path)
{
    json_t *value = saying->of;

    for (const char *end; value && *path; path = end + (*end == '.')) {
        json_t *object = value;
        char key[WORD];

        end = strchrnul(path, '.');
        memcpy(key, path, (size_t)(end - path));
        key[end - path] = '\0';
        value = json_object_get(object, key);
        if (!value && object == saying->of && saying->source && (value = saying->source->find(saying->source->context, key)))
            json_put(object, key, value);
    }
    return json_is_null(value) ? NULL : value;
}

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : json_is_boolean(value) ? json_is_true(value) : NAN;
}

/* A number, or the one under a path; NaN: there is none. */
static double number_at(struct saying *saying, const char *path)
{
    return isdigit((unsigned char)*path) || *path == '-' ? number_in(path) : number_of(value_at(saying, path));
}

static bool holds(struct saying *saying)
{
    char word[WORD], other[WORD];
    const json_t *value = value_at(saying, word_of(saying, "<>=! ", word));
    char sign = *saying->at++;
    double number = number_of(value), second;

    if (sign == ' ')
        return json_is_string(value) ? *json_string_value(value) != '\0' :
               json_is_array(value) ? json_array_size(value) > 0 : value && (isnan(number) || number != 0);
    second = number_at(saying, word_of(saying, " ", other));
    saying->at++;
    return sign == '<' ? number < second : sign == '>' ? number > second : sign == '=' ? number <= second && number >= second :
           number < second || number > second;
}

static const struct { const char *name; enum unit unit; } units[] = {
    {"count", UNIT_COUNT}, {"time", UNIT_TIME}, {"bytes", UNIT_BYTES}, {"flop", UNIT_FLOP}, {"flops", UNIT_FLOP_RATE},
};

/* The number under the key as `format` says, else in its own unit with the prefix of `like`. */
static void write_number(const char *key, const char *format, double number, double like, char *text)
{
    enum unit unit = *format == '%' ? UNIT_NUMBER : unit_of(key);

    for (size_t i = 0; i < COUNT(units) && *format; i++)
        unit = strcmp(format, units[i].name) ? unit : units[i].unit;
    if (*format == '%')
        snprintf(text, CELL, format, number + 0.0);
    else if (!strcmp(format, "share"))
        percent_text(number, text, CELL);
    else if (unit == UNIT_NUMBER)
        snprintf(text, CELL, number < 9999.5 ? "%.4g" : "%.0f", number);
    else
        unit_format_like(unit, like, number, text, CELL);
}

/* Writes a text of others. */
static void write_harmless(struct saying *saying, enum text_place place, const char *text)
{
    bool plain = place == TEXT_LINE;
    char *made = NULL;

    for (const char *c = text; *c && plain; c++)
        plain = *c >= ' ' && *c <= '~';
    if (!plain)
        made = text_made(place, text);
    write_text(saying, plain ? text : made);
    free(made);
}

/* Makes what stands behind `before` as wide: to the right, or, of a negative width, to the left. */
static void pad(struct saying *saying, size_t before, int width)
{
    size_t length = saying->text.count - before, wide = (size_t)abs(width);

    if (length >= wide)
        return;
    for (size_t i = length; i < wide; i++)
        write_bytes(saying, " ", 1);
    if (width > 0) {
        memmove(saying->text.items + before + wide - length, saying->text.items + before, length);
        memset(saying->text.items + before, ' ', wide - length);
    }
}

/* What {} asks for, behind its bracket. Returns whether there is a value. */
static bool say_value(struct saying *saying)
{
    if (saying->silent) {
        saying->at = strchr(saying->at, '}') + 1;
        return false;
    }
    char key[WORD], word[WORD], format[WORD] = "", noun[WORD] = "", text[CELL];
    const json_t *value = value_at(saying, word_of(saying, "*/~:@ }", key));
    double number = number_of(value), like = number;
    size_t before;
    int width = 0;

    for (char sign; (sign = *saying->at++) != '}';) {
        word_of(saying, sign == ' ' ? "}" : "*/~:@ }", sign == ':' ? format : sign == ' ' ? noun : word);
        number = sign == '*' ? number * number_in(word) : sign == '/' ? number / number_in(word) : number;
        like = sign == '~' ? number_at(saying, word) : sign == '*' || sign == '/' ? number : like;
        width = sign == '@' ? atoi(word) : width;
    }
    if (!value || (isnan(number) && !json_is_string(value)))
        return false;
    before = saying->text.count;
    if (json_is_string(value)) {
        write_harmless(saying, *format ? TEXT_MARKDOWN : TEXT_LINE, json_string_value(value));
    } else {
        write_number(key, format, number, like, text);
        write_text(saying, text);
    }
    pad(saying, before, width);
    write_text(saying, *noun ? " " : "");
    write_text(saying, noun);
    write_text(saying, *noun && (number < 1 || number > 1) ? "s" : "");
    return true;
}

static void say_choices(struct saying *saying);

/* Up to one of the signs in `ends`, which is at hand behind it, or the end of the line. */
static bool say_part(struct saying *saying, const char *ends)
{
    bool all = true;

    for (char c; (c = *saying->at) && !strchr(ends, c);) {
        saying->at++;
        if (c == '{') {
            all &= say_value(saying);
        } else if (c == '[') {
            say_choices(saying);
        } else {
            size_t length = c == '\\' ? 1 : 1 + strcspn(saying->at, "{[]|\\");

            saying->at -= c != '\\';
            write_bytes(saying, saying->at, length);
            saying->at += length;
        }
    }
    return all;
}

/* The first of several parts whose values are all there. */
static void say_choices(struct saying *saying)
{
    bool said = false;

    for (char c = '|'; c == '|'; c = *saying->at++) {
        size_t before = saying->text.count;
        bool silent = saying->silent, may = *saying->at != '?' || (saying->at++, holds(saying));

        saying->silent |= !may || said;
        may &= say_part(saying, "|]");
        saying->silent = silent;
        saying->text.count = may && !said ? saying->text.count : before;
        said |= may;
        BUG_IF(!*saying->at);
    }
}

/* The line; NULL where a key outside of [] is null or missing. The caller frees it. */
static char *said(json_t *of, const struct say_source *source, const char *line)
{
    struct saying saying = {.of = of, .source = source, .at = line};
    bool all = say_part(&saying, "");

    write_text(&saying, "");             /* which ends the text where it is now */
    if (all)
        return saying.text.items;
    free(saying.text.items);
    return NULL;
}

void say_from(json_t *of, const struct say_source *source, const char *line, FILE *out)
{
    char *text = said(of, source, line);

    fputs(text ? text : "", out);
    free(text);
}

void say(const json_t *of, const char *line, FILE *out)
{
    say_from((json_t *)(uintptr_t)of, NULL, line, out);
}

void say_table(const json_t *list, const struct say_column *columns, size_t count, struct sheet *sheet, bool markdown, FILE *out)
{
    size_t i;
    json_t *item;

    for (size_t c = 0; c < count; c++)
        if (columns[c].head)
            sheet_head(sheet, columns[c].head, columns[c].unit);
    json_array_foreach(list, i, item) {
        bool rest = false;

        for (size_t c = 0; c < count && !rest; c++) {
            char *text = said(item, NULL, columns[c].cell);

            rest = !columns[c].head && text;
            if (rest)
                sheet_add_rest(sheet, text);
            else if (columns[c].head)
                sheet_add(sheet, text ? text : "-");
            free(text);
        }
    }
    sheet_print(sheet, markdown, out);
    sheet_release(sheet);
}

void say_all(const json_t *of, const char *const *lines, FILE *out)
{
    for (size_t i = 0; lines[i]; i++)
        say(of, lines[i], out);
}

void say_each(const json_t *list, const char *line, FILE *out)
{
    size_t i;
    const json_t *item;

    json_array_foreach(list, i, item)
        say(item, line, out);
}
