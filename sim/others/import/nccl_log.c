#include "import/nccl_log.h"

#include <ctype.h>

static const struct { enum nccl_comment comment; const char *begin; } comments[] = {
    {NCCL_STARTING, "Collective test starting:"}, {NCCL_CONCLUDED, "Collective test concluded:"},
    {NCCL_VERSION, "nccl-tests version "}, {NCCL_ARGUMENTS, "nThread "}, {NCCL_DEVICES, "Using devices"},
    {NCCL_RANK, "Rank "}, {NCCL_HEADER, "size "}, {NCCL_HEADER, "size\t"}, {NCCL_FOOTER, "Out of bounds values"},
    {NCCL_FOOTER, "Avg bus bandwidth"},
};

/* Types of NCCL, as nccl-tests (test_typenames in src/common.cu) and rccl-tests (fp8_*) call them. */
static const char *const types[] = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2",
    "fp8_e4m3", "fp8_e5m2", "char", "int",
};

/* Control sequences of a terminal: ESC [, parameters, a letter (ECMA-48, section 5.4). */
void nccl_log_clean(char *line)
{
    for (char *at = line; *at; at++) {
        if (*at == '\r')
            *at = ' ';
        if (*at != '\x1B')
            continue;
        *at++ = ' ';
        if (*at == '[')
            for (*at++ = ' '; *at && !isalpha((unsigned char)*at); at++)
                *at = ' ';
        if (!*at)
            return;
        *at = ' ';
    }
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

enum nccl_comment nccl_comment_at(const char *text, const char **words)
{
    *words = text + strspn(text, "# \t");
    for (size_t i = 0; i < COUNT(comments); i++) {
        size_t length = strlen(comments[i].begin);

        if (!strncmp(*words, comments[i].begin, length) &&
            (comments[i].comment != NCCL_RANK || digits(*words + length + strspn(*words + length, " "))))
            return comments[i].comment;
    }
    return NCCL_OTHER;
}

/* The length of a whole number and the spaces behind it; 0: there is none. */
static size_t number_and_space(const char *text)
{
    size_t length = digits(text), space = strspn(text + length, " \t");

    return length && space ? length + space : 0;
}

/* "1048576  262144  float": a size in bytes, the count of elements and their type. */
static bool row_at(const char *text)
{
    size_t size = number_and_space(text), count = size ? number_and_space(text + size) : 0;
    const char *type = text + size + count;

    for (size_t i = 0; count && i < COUNT(types); i++)
        if (strcspn(type, " \t") == strlen(types[i]) && !strncmp(type, types[i], strlen(types[i])))
            return true;
    return false;
}

char *nccl_log_content(char *line)
{
    const char *words;

    for (char *at = line; *at; at++) {
        if (*at == '#' && nccl_comment_at(at, &words) != NCCL_OTHER)
            return at;
        if (*at == '#') {
            at += words - at - 1;
            continue;
        }
        /* a row stands at the beginning, or behind a space or the sign that ends a mark */
        if (isdigit((unsigned char)*at) && (at == line || strchr(" \t:>]|", at[-1])) && row_at(at))
            return at;
    }
    return NULL;
}

bool nccl_log_ellipsis(const char *text)
{
    text += strspn(text, "# \t[(<");
    return !strncmp(text, "..", 2) || !strncmp(text, "\xE2\x80\xA6", 3) || !strncmp(text, "snip", 4);
}

/* The length of "03:04", "03:04:05" or "03:04:05.678Z", with a time zone or without; 0: there is none. */
static size_t clock_length(const char *text)
{
    size_t length = digits(text), more;

    if (length < 1 || length > 2 || text[length] != ':' || digits(text + length + 1) != 2)
        return 0;
    length += 3;
    if (text[length] == ':' && digits(text + length + 1) == 2)
        length += 3;
    if ((text[length] == '.' || text[length] == ',') && (more = digits(text + length + 1)))
        length += 1 + more;
    if (text[length] == 'Z')
        return length + 1;
    if ((text[length] == '+' || text[length] == '-') && digits(text + length + 1) >= 2)
        length += 1 + strspn(text + length + 1, "0123456789:");
    return length;
}

/* The length of "2026-01-02", alone or with a time behind 'T'; 0: there is none. */
static size_t date_length(const char *text)
{
    size_t time;

    if (digits(text) != 4 || (text[4] != '-' && text[4] != '/') || digits(text + 5) != 2 || text[7] != text[4] ||
        digits(text + 8) != 2)
        return 0;
    time = text[10] == 'T' ? clock_length(text + 11) : 0;
    return time ? 11 + time : 10;
}

/* The length of "Jan  2", "Fri Jan  2" or the year behind a time of ctime; 0: there is none. */
static size_t day_length(const char *text)
{
    static const char days[] = "Mon Tue Wed Thu Fri Sat Sun ";
    static const char months[] = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ";
    size_t day = 0, number;
    char name[5] = "";

    snprintf(name, sizeof name, "%.4s", text);
    if (strlen(name) == 4 && strstr(days, name)) {
        day = 4;
        snprintf(name, sizeof name, "%.4s", text + day);
    }
    if (strlen(name) < 4 || !strstr(months, name))
        return 0;
    day += 4 + strspn(text + day + 4, " ");
    number = digits(text + day);
    return number >= 1 && number <= 2 ? day + number : 0;
}

/* The length of "1767323045.678", s since 1970 or since the machine's start; 0: there is none. */
static size_t seconds_length(const char *text)
{
    size_t whole = digits(text), part = whole && text[whole] == '.' ? digits(text + whole + 1) : 0;

    return part >= 3 && text[whole + 1 + part] != '.' ? whole + 1 + part : 0;
}

static size_t timestamp_length(const char *text)
{
    size_t length = date_length(text);

    length = length ? length : clock_length(text);
    length = length ? length : day_length(text);
    return length ? length : seconds_length(text);
}

void nccl_log_source(const char *line, size_t length, char *source, size_t size)
{
    size_t written = 0;

    for (size_t at = 0; at < length && written + 2 < size;) {
        bool begins = at == 0 || !isalnum((unsigned char)line[at - 1]);
        size_t stamp = begins ? timestamp_length(line + at) : 0;

        if (stamp && at + stamp <= length) {
            at += stamp;
            /* of ctime's "Fri Jan  2 03:04:05 2026" */
            if (at + 5 <= length && line[at] == ' ' && digits(line + at + 1) == 4)
                at += 5;
        } else if (line[at] == ' ' || line[at] == '\t') {
            if (written && source[written - 1] != ' ')
                source[written++] = ' ';
            at++;
        } else {
            source[written++] = line[at++];
        }
    }
    written -= written && source[written - 1] == ' ';
    source[written] = '\0';
}
