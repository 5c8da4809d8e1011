#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"

/* The character at `at`, and its length in bytes; a byte that begins none is a length of 1 and UINT32_MAX. */
static uint32_t character(const char *at, size_t *length)
{
    static const struct { unsigned char mask, lead; uint32_t least; } forms[] = {
        {0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000},
    };
    unsigned char first = (unsigned char)*at;
    uint32_t value;
    size_t form = 0;

    *length = 1;
    while (form < COUNT(forms) && (first & forms[form].mask) != forms[form].lead)
        form++;
    if (form == COUNT(forms))
        return UINT32_MAX;
    value = first & (uint32_t)(unsigned char)~forms[form].mask;
    for (size_t i = 1; i <= form; i++) {
        unsigned char next = (unsigned char)at[i];

        if ((next & 0xC0) != 0x80)
            return UINT32_MAX;
        value = value << 6 | (next & 0x3F);
    }
    if (value < forms[form].least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return UINT32_MAX;
    *length = form + 1;
    return value;
}

/* Controls of ASCII and of Latin-1, ends of lines and paragraphs, and marks that turn the direction of writing. */
bool text_harmful(uint32_t value)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1F}, {0x7F, 0x9F}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}, {UINT32_MAX, UINT32_MAX},
    };

    for (size_t i = 0; i < COUNT(ranges); i++)
        if (value >= ranges[i][0] && value <= ranges[i][1])
            return true;
    return false;
}

static void write_escape(const char *at, size_t length, FILE *out)
{
    if (*at == '\n' || *at == '\t')
        fputs(*at == '\n' ? "\\n" : "\\t", out);
    else
        for (size_t i = 0; i < length; i++)
            fprintf(out, "\\x%02X", (unsigned char)at[i]);
}

void text_write(enum text_place place, const char *text, FILE *out)
{
    bool formula = place == TEXT_CSV && *text && strchr("=+-@", *text);
    bool quoted = formula || (place == TEXT_CSV && strpbrk(text, "\","));
    size_t length;

    fputs(quoted ? "\"" : "", out);
    fputs(formula ? "'" : "", out);
    for (; *text; text += length) {
        if (text_harmful(character(text, &length))) {
            write_escape(text, length, out);
            continue;
        }
        if (place == TEXT_MARKDOWN && strchr("|\\`*_<>[]", *text))
            fputc('\\', out);
        if (quoted && *text == '"')
            fputc('"', out);
        fwrite(text, 1, length, out);
    }
    fputs(quoted ? "\"" : "", out);
}

void text_write_lines(const char *text, FILE *out)
{
    char *rest = xstrdup(text), *left = rest;

    for (char *line; (line = strsep(&rest, "\n"));) {
        text_write(TEXT_LINE, line, out);
        if (rest)
            fputc('\n', out);
    }
    free(left);
}

char *text_made(enum text_place place, const char *text)
{
    char *made = NULL;
    size_t size;
    FILE *out = text_open(&made, &size);
    text_write(place, text, out);
    text_close(out, &made);
    return made;
}

void text_wrap(const char *words, int column, int indent, int width, FILE *out)
{
    bool first = true;

    for (const char *word = words + strspn(words, " "); *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");

        while (word[length] == ' ' && word[length + 1] == '%')       /* a number and its sign stay together */
            length += 2 + (int)strcspn(word + length + 2, " ");
        if (!first && column + 1 + length > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", length, word);
        column += length;
        word += length;
        first = false;
    }
    putc('\n', out);
}

int text_width(FILE *out, int otherwise)
{
    enum { LEAST = 60 };
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    struct winsize window;

    if (width <= 0 && fileno(out) >= 0 && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &window))
        width = window.ws_col;
    return width <= 0 ? otherwise : width < LEAST ? LEAST : width;
}
