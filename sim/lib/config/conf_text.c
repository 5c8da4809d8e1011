#include "config/conf_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int32_t utf8_next(const char **at, const char *end)
{
    static const int32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *text = (const unsigned char *)*at;
    int more = text[0] < 0x80 ? 0 : (text[0] & 0xE0) == 0xC0 ? 1 : (text[0] & 0xF0) == 0xE0 ? 2 :
               (text[0] & 0xF8) == 0xF0 ? 3 : -1;
    int32_t c = text[0];

    (*at)++;
    if (more < 0 || more > end - *at)
        return -1;
    if (more > 0)
        c = text[0] & (0x3F >> more);
    for (int i = 1; i <= more; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return -1;
        c = c << 6 | (text[i] & 0x3F);
    }
    if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return -1;
    *at += more;
    return c;
}

bool yaml_printable(int32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c <= 0x7E) || c == 0x85 || (c >= 0xA0 && c <= 0xD7FF) ||
           (c >= 0xE000 && c <= 0xFFFD && c != 0xFEFF) || (c >= 0x10000 && c <= 0x10FFFF);
}

static bool line_break(int32_t c)
{
    return c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/* UTF-16 begins with a byte order mark, or one of the first two bytes is zero, as an ASCII character follows. */
static bool utf16(const char *text, size_t length)
{
    const unsigned char *byte = (const unsigned char *)text;

    if (length < 2)
        return false;
    return (byte[0] == 0xFF && byte[1] == 0xFE) || (byte[0] == 0xFE && byte[1] == 0xFF) ||
           (byte[0] == 0) != (byte[1] == 0);
}

int conf_check_text(const char *name, const char *text, size_t length, bool placeless, struct error *err)
{
    struct loc loc = {name, placeless ? 0 : 1, 1};
    const char *at = text, *end = text + length;

    if (utf16(text, length))
        return error_add(err, EXIT_INPUT, loc, "the file is UTF-16; expected UTF-8");
    while (at < end) {
        const char *start = at;
        int32_t c = utf8_next(&at, end);

        if (c < 0)
            return error_add(err, EXIT_INPUT, loc, "the byte 0x%02X is not UTF-8", (unsigned char)*start);
        if (!yaml_printable(c))
            return error_add(err, EXIT_INPUT, loc, "the control character U+%04X is not allowed", (unsigned)c);
        if (placeless || (c == '\r' && at < end && *at == '\n'))
            continue;
        if (line_break(c)) {
            loc.line++;
            loc.column = 1;
        } else {
            loc.column++;
        }
    }
    return 0;
}

static bool one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

bool text_is_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

    return one_of(text, words);
}

bool text_is_special(const char *text)
{
    static const char *const words[] = {
        "true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON",
        "off", "Off", "OFF", "y", "Y", "n", "N", "=", "<<", NULL,
    };
    const char *digits = text + (*text == '+' || *text == '-');

    /* Some YAML readers take text that begins with a digit and has no space for a number or a date: 1_000, 0x1F, 1:30,
     * 2024-01-01. */
    if (*digits == '.')
        digits++;
    if (*digits >= '0' && *digits <= '9' && !strchr(text, ' '))
        return true;
    return text_is_null(text) || one_of(text, words) || strncasecmp(digits, "inf", 4) == 0 ||
           strncasecmp(digits, "nan", 4) == 0;
}

/* Messages of libyaml, and the message for the author of the file. */
static const struct {
    const char *problem, *text;
} problems[] = {
    {"mapping values are not allowed in this context",
     "a ':' is not allowed here; is the indentation right? Text that holds ': ' goes in quotes"},
    {"did not find expected key", "expected a key with the indentation of its neighbours"},
    {"did not find expected '-' indicator", "expected '-' with the indentation of the other items"},
    {"did not find expected ',' or '}'", "expected ',' or '}'"},
    {"did not find expected ',' or ']'", "expected ',' or ']'"},
    {"did not find expected node content", "expected a value"},
    {"found unexpected end of stream", "the file ends inside quotes"},
    {"found unexpected document indicator", "a document ends inside quotes"},
    {"found a tab character where an indentation space is expected", "a tab cannot indent; use spaces"},
    {"found a tab character that violates indentation", "a tab cannot indent; use spaces"},
    {"block sequence entries are not allowed in this context",
     "a list cannot begin here; put '- ' on a line of its own"},
    {"mapping keys are not allowed in this context", "a key cannot begin here"},
    {"found unknown escape character", "unknown escape behind '\\' in double quotes; single quotes keep '\\' as it is"},
    {"found invalid Unicode character escape code", "the escape names no Unicode character"},
    {"did not find expected hexdecimal number", "expected hexadecimal digits in the escape"},
    {"did not find expected <document start>", "expected the end of the file; is the indentation right?"},
    {"found unexpected ':'", "a ':' is not allowed here; put the text in quotes"},
    {"found duplicate %YAML directive", "a second %YAML directive"},
    {"found incompatible YAML document", "the YAML version is not 1.1 or 1.2"},
    {"found undefined tag handle", "tags are not supported"},
    {"invalid leading UTF-8 octet", "the text is not UTF-8"},
};

char *conf_syntax_message(struct arena *arena, const char *problem, const char *context, int begun, int line, int c)
{
    const char *text = problem ? problem : "not YAML";
    char *since = begun > 0 && begun != line ? arena_printf(arena, " (in the value that begins at line %d)", begun)
                                             : arena_strdup(arena, "");

    if (strcmp(text, "found character that cannot start any token") == 0) {
        if (c == '\t')
            return arena_strdup(arena, "a tab cannot indent; use spaces");
        if (c > 0x20 && c < 0x7F)
            return arena_printf(arena, "'%c' cannot begin a value; put the text in quotes", c);
    }
    if (strcmp(text, "could not find expected ':'") == 0)
        return arena_printf(arena, begun > 0 ? "expected a ':' and a space behind the key at line %d"
                                             : "expected a ':' and a space behind the key", begun);
    if (strcmp(text, "did not find expected node content") == 0 && c == 0)
        return arena_printf(arena, "expected a value, found the end%s", since);
    for (size_t i = 0; i < COUNT(problems); i++)
        if (strcmp(text, problems[i].problem) == 0)
            return arena_printf(arena, "%s%s", problems[i].text, since);
    return arena_printf(arena, "%s%s%s%s", text, context ? " " : "", context ? context : "", since);
}
