/* Names that people chose, made fit for a chart: see text_clean and text_escape in chart.h. */
#include "chart.h"

#include <string.h>

/* How many bytes the UTF-8 character at `text` takes; 0 when it is none (overlong, surrogate, cut short). */
static size_t utf8_length(const unsigned char *text)
{
    static const struct { unsigned char low, high, second_low, second_high, length; } forms[] = {
        {0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };

    for (size_t i = 0; i < COUNT(forms); i++) {
        size_t length = forms[i].length;

        if (text[0] < forms[i].low || text[0] > forms[i].high)
            continue;
        if (length > 1 && (text[1] < forms[i].second_low || text[1] > forms[i].second_high))
            return 0;
        for (size_t k = 2; k < length; k++)
            if ((text[k] & 0xC0) != 0x80)
                return 0;
        return length;
    }
    return 0;
}

/* C0 and C1 controls, line and paragraph separators, and the marks that turn the direction of writing. */
static bool is_control(const unsigned char *text, size_t length)
{
    if (length == 1)
        return text[0] < 0x20 || text[0] == 0x7F;
    if (length == 2)
        return text[0] == 0xC2 && text[1] < 0xA0;
    return length == 3 && text[0] == 0xE2 &&
           ((text[1] == 0x80 && text[2] >= 0xA8 && text[2] <= 0xAE) || (text[1] == 0x81 && text[2] >= 0xA6));
}

const char *text_clean(struct arena *arena, const char *text, size_t longest)
{
    const unsigned char *from = (const unsigned char *)text;
    char *clean = arena_alloc(arena, 3 * strlen(text) + 4), *to = clean, *cut = clean;

    for (size_t characters = 0; *from; characters++) {
        size_t length = utf8_length(from);

        if (characters + 1 == longest)
            cut = to;
        if (characters == longest) {
            strcpy(cut, "…");
            return clean;
        }
        if (length == 0)
            to = stpcpy(to, "\xEF\xBF\xBD");
        else if (is_control(from, length))
            *to++ = ' ';
        else
            to = mempcpy(to, from, length);
        from += length ? length : 1;
    }
    *to = '\0';
    return clean;
}

const char *text_escape(struct arena *arena, const char *text)
{
    char *escaped = arena_alloc(arena, 4 * strlen(text) + 1), *to = escaped;

    for (; *text; text++) {
        if (strchr("\"\\`'@#$", *text))
            to += sprintf(to, "\\%03o", (unsigned)(unsigned char)*text);
        else
            *to++ = *text;
    }
    *to = '\0';
    return escaped;
}
