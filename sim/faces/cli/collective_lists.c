#include "cli/collective_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

enum { RANKS_MOST = 1 << 20 };

/* Reads one number of a list; ARGS_DONE, or EXIT_USAGE. */
typedef int read_number(const struct command *command, const char *text, double *number);

/* Adds the item's numbers, each twice its predecessor. */
static int add_item(const struct command *command, const char *option, char *item, read_number *read,
                    struct number_list *list)
{
    char *colon = strchr(item, ':');
    double from, to;
    int code;

    if (colon)
        *colon = '\0';
    code = read(command, item, &from);
    to = from;
    if (code == ARGS_DONE && colon)
        code = read(command, colon + 1, &to);
    if (code != ARGS_DONE)
        return code;
    if (to < from)
        return usage_error(command, "%s: %s:%s: expected the smaller one first", option, item, colon + 1);
    for (; from <= to; from *= 2) {
        if (list->count == LIST_MOST)
            return usage_error(command, "%s: more than %d values", option, LIST_MOST);
        list->items[list->count++] = from;
    }
    return ARGS_DONE;
}

static int parse(const struct command *command, const char *option, const char *text, read_number *read,
                 struct number_list *list)
{
    struct arena arena = {0};
    char *next = NULL, *items = arena_strdup(&arena, text);
    int code = ARGS_DONE;

    list->count = 0;
    for (char *item = strtok_r(items, ",", &next); item && code == ARGS_DONE; item = strtok_r(NULL, ",", &next))
        code = add_item(command, option, item, read, list);
    if (code == ARGS_DONE && !list->count)
        code = usage_error(command, "%s: expected a value", option);
    arena_release(&arena);
    return code;
}

static int read_rank(const struct command *command, const char *text, double *number)
{
    char *end;
    long long value = strtoll(text, &end, 10);

    *number = (double)value;
    if (end != text && !*end && value >= 1 && value <= RANKS_MOST)
        return ARGS_DONE;
    return usage_error(command, "--ranks: expected a number from 1 to %d, found '%s'", RANKS_MOST, text);
}

static int read_bytes(const struct command *command, const char *text, double *number)
{
    static const char *const letters = "KMG";
    size_t digits = strspn(text, "0123456789");
    const char *letter = digits && text[digits] ? strchr(letters, text[digits]) : NULL;
    char why[256];

    if (digits && (!text[digits] || (letter && !text[digits + 1])))      /* as nccl-tests writes them */
        *number = strtod(text, NULL) * (letter ? (double)(1LL << (10 * (letter - letters + 1))) : 1);
    else if (unit_parse(UNIT_BYTES, text, number, why, sizeof why))
        return usage_error(command, "--bytes: %s", why);
    if (*number < 1)
        return usage_error(command, "--bytes: '%s' is out of range; expected 1 B or more", text);
    return unit_plausible(UNIT_BYTES, *number, text, why, sizeof why) ? usage_error(command, "--bytes: %s", why) :
           ARGS_DONE;
}

int ranks_parse(const struct command *command, const char *text, struct number_list *list)
{
    return parse(command, "--ranks", text, read_rank, list);
}

int bytes_parse(const struct command *command, const char *text, struct number_list *list)
{
    return parse(command, "--bytes", text, read_bytes, list);
}
