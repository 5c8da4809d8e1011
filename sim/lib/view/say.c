#include "view/say.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "base/words.h"

enum { WORD = 96, CELL = 64 };

/* A line that is said. */
struct saying { const json_t *of; const char *at; };

/* What is written between the signs in `ends`, into a buffer of WORD bytes. */
static const char *word_of(struct saying *saying, const char *ends, char *word)
{
    size_t length = strcspn(saying->at, ends);

    BUG_IF(length >= WORD);
    snprintf(word, WORD, "%.*s", (int)length, saying->at);
    saying->at += length;
    return word;
}

/* What stands under the path; NULL: nothing, or null. */
static const json_t *value_at(const json_t *of, const char *path)
{
    char key[WORD];
    size_t length = strcspn(path, ".");
    const json_t *value;

    snprintf(key, sizeof key, "%.*s", (int)length, path);
    value = json_object_get(of, key);
    if (value && path[length])
        return value_at(value, path + length + 1);
    return json_is_null(value) ? NULL : value;
}

/* A number, or the one under a path; NaN: there is none. */
static double number_at(const json_t *of, const char *path)
{
    const json_t *value = value_at(of, path);

    if (isdigit((unsigned char)*path) || *path == '-')
        return strtod(path, NULL);
    return json_is_number(value) ? json_number_value(value) : json_is_boolean(value) ? json_is_true(value) : NAN;
}

static bool holds(struct saying *saying)
{
    char word[WORD], other[WORD];
    const json_t *value = value_at(saying->of, word_of(saying, "<>=! ", word));
    char sign = *saying->at++;
    double number = number_at(saying->of, word), second;

    if (sign == ' ')
        return json_is_string(value) ? *json_string_value(value) != '\0' :
               json_is_array(value) ? json_array_size(value) > 0 : value && (isnan(number) || number != 0);
    second = number_at(saying->of, word_of(saying, " ", other));
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
    enum unit unit = unit_of(key);

    for (size_t i = 0; i < COUNT(units); i++)
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

/* The text of a value; the caller frees it. */
static char *value_text(const json_t *value, const char *key, const char *format, double number, double like)
{
    char text[CELL];

    if (json_is_string(value))
        return text_made(strcmp(format, "cell") ? TEXT_LINE : TEXT_MARKDOWN, json_string_value(value));
    write_number(key, format, number, like, text);
    return xstrdup(text);
}

/* What {} asks for, behind its bracket. Returns whether there is a value. */
static bool say_value(struct saying *saying, FILE *out)
{
    char key[WORD], word[WORD], format[WORD] = "", noun[WORD] = "", *text;
    const json_t *value = value_at(saying->of, word_of(saying, "*/~:@ }", key));
    double number = number_at(saying->of, key), like = number;
    int width = 0;

    for (char sign; (sign = *saying->at++) != '}';) {
        word_of(saying, sign == ' ' ? "}" : "*/~:@ }", sign == ':' ? format : sign == ' ' ? noun : word);
        number = sign == '*' ? number * strtod(word, NULL) : sign == '/' ? number / strtod(word, NULL) : number;
        like = sign == '~' ? number_at(saying->of, word) : sign == '*' || sign == '/' ? number : like;
        width = sign == '@' ? atoi(word) : width;
    }
    if (!value || (isnan(number) && !json_is_string(value)))
        return false;
    text = value_text(value, key, format, number, like);
    fprintf(out, "%*s", width, text);
    if (*noun)
        fprintf(out, " %s%s", noun, number < 1 || number > 1 ? "s" : "");
    free(text);
    return true;
}

static bool say_choices(struct saying *saying, FILE *out);

/* Up to one of the signs in `ends`, which is at hand behind it, or the end of the line. */
static bool say_part(struct saying *saying, const char *ends, FILE *out)
{
    bool all = true;

    for (char c; (c = *saying->at) && !strchr(ends, c);) {
        saying->at++;
        if (c == '{')
            all &= say_value(saying, out);
        else if (c == '[')
            all &= say_choices(saying, out);
        else
            putc(c == '\\' ? *saying->at++ : c, out);
    }
    return all;
}

/* The first of several parts whose values are all there. */
static bool say_choices(struct saying *saying, FILE *out)
{
    bool said = false;

    for (char c = '|'; c == '|'; c = *saying->at++) {
        bool may = *saying->at != '?' || (saying->at++, holds(saying));
        char *text = NULL;
        size_t size;
        FILE *part = text_open(&text, &size);

        may &= say_part(saying, "|]", part);
        text_close(part, &text);
        fputs(may && !said ? text : "", out);
        said |= may;
        free(text);
        BUG_IF(!*saying->at);
    }
    return true;
}

/* The line; NULL where a key outside of [] is null or missing. The caller frees it. */
static char *said(const json_t *of, const char *line)
{
    struct saying saying = {of, line};
    char *text = NULL;
    size_t size;
    FILE *part = text_open(&text, &size);
    bool all = say_part(&saying, "", part);

    text_close(part, &text);
    if (all)
        return text;
    free(text);
    return NULL;
}

void say(const json_t *of, const char *line, FILE *out)
{
    char *text = said(of, line);

    fputs(text ? text : "", out);
    free(text);
}

void say_table(const json_t *list, const struct say_column *columns, size_t count, struct sheet *sheet, bool markdown, FILE *out)
{
    size_t i;
    const json_t *item;

    for (size_t c = 0; c < count; c++)
        if (columns[c].head)
            sheet_head(sheet, columns[c].head, columns[c].unit);
    json_array_foreach(list, i, item) {
        bool rest = false;

        for (size_t c = 0; c < count && !rest; c++) {
            char *text = said(item, columns[c].cell);

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
