/* Names that people chose, made fit for a chart: see text_clean and text_escape in chart.h. */
#include "chart.h"

#include <string.h>
#include <unistd.h>

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

static unsigned code_point(const unsigned char *text, size_t length)
{
    unsigned code = length == 1 ? text[0] : text[0] & (0xFFu >> (length + 1));

    for (size_t i = 1; i < length; i++)
        code = code << 6 | (text[i] & 0x3F);
    return code;
}

/* Latin, Greek, Cyrillic and general punctuation: any font for text has them. */
static bool is_common(unsigned code)
{
    return code < 0x250 || (code >= 0x370 && code < 0x500) || (code >= 0x2010 && code < 0x2028);
}

/* Whether a font has the character; assumed of common ones, and when there is nothing to ask. */
static bool has_glyph(unsigned code)
{
    char pattern[32], fonts[8];
    const char *const arguments[] = {"fc-list", pattern, "family", NULL};
    const struct tool tool = {"/", arguments, STDOUT_FILENO, TOOL_SECONDS};
    int status = 0;

    if (is_common(code))
        return true;
    snprintf(pattern, sizeof pattern, ":charset=%x", code);
    return tool_run(&tool, fonts, sizeof fonts, &status) || status || *fonts;
}

static const char *replace(struct arena *arena, const char *text, bool (*keep)(unsigned code))
{
    const unsigned char *from = (const unsigned char *)text;
    char *drawable = arena_alloc(arena, strlen(text) + 1), *to = drawable;

    while (*from) {
        size_t length = utf8_length(from);

        if (keep(code_point(from, length)))
            to = mempcpy(to, from, length);
        else
            *to++ = '?';
        from += length;
    }
    *to = '\0';
    return drawable;
}

const char *text_drawable(struct arena *arena, const char *text)
{
    return replace(arena, text, has_glyph);
}

const char *text_label(struct arena *arena, const char *text)
{
    enum { LONGEST = 24 };
    size_t length = 0;

    while (text[length] >= ' ' && text[length] <= '~')
        length++;
    if (!text[length] && length <= LONGEST)
        return text;                     /* as nearly always: nothing to copy */
    return replace(arena, text_clean(arena, text, LONGEST), is_common);
}

const char *text_escape(struct arena *arena, const char *text)
{
    static const char special[] = "\"\\`'@#$";
    char *escaped, *to;

    if (!strpbrk(text, special))
        return text;
    escaped = to = arena_alloc(arena, 4 * strlen(text) + 1);
    for (; *text; text++) {
        if (strchr(special, *text))
            to += sprintf(to, "\\%03o", (unsigned)(unsigned char)*text);
        else
            *to++ = *text;
    }
    *to = '\0';
    return escaped;
}

const char *text_tic(struct arena *arena, const char *text)
{
    char *doubled = arena_alloc(arena, 2 * strlen(text) + 1), *to = doubled;

    for (; *text; text++) {
        if (*text == '%')
            *to++ = '%';
        *to++ = *text;
    }
    *to = '\0';
    return text_escape(arena, doubled);
}

double text_ems(const char *text)
{
    /* thousandths, from ' ' on: the advances of DejaVu Sans 2.37 */
    static const short advances[] = {
        318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636,
        636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656,
        557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613,
        635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818,
        592, 592, 525, 636, 337, 636, 838,
    };
    double width = 0;

    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at >= ' ' && *at <= '~')
            width += advances[*at - ' '] / 1000.0;
        else if ((*at & 0xC0) != 0x80)   /* the first byte of a longer character */
            width += *at < 0xE0 ? 0.8 : 1;
    return width;
}

const char *last_part(struct arena *arena, const char *path)
{
    size_t length = strlen(path);
    const char *slash;

    while (length > 1 && path[length - 1] == '/')
        length--;
    path = arena_strndup(arena, path, length);
    slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
