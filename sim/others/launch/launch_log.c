/* launch_log: "  num_layers ............... 32". */
#include "launch/launch_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

/* The first line that begins or ends the list; NULL: none. */
static const char *find_title(const char *text, size_t length, const char *title)
{
    for (const char *at = text, *end = text + length; (at = memmem(at, (size_t)(end - at), title, strlen(title))); at++)
        if (at - text >= 4 && !memcmp(at - 4, "--- ", 4) && (size_t)(end - at) > strlen(title) + 3 &&
            !memcmp(at + strlen(title), " ---", 4))
            return at;
    return NULL;
}

bool launch_log_is(const char *text, size_t length)
{
    return find_title(text, length, "arguments") != NULL;
}

/* Python prints a list as ['a', 'b'] or [1, 2]: its items are values. */
static void put_values(struct arena *arena, const char *value, struct loc loc, struct launch_argument *argument)
{
    size_t length = strlen(value);

    argument->values = ARENA_ARRAY(arena, struct launch_word, length + 1);
    if (*value != '[') {
        argument->values[argument->count++] = (struct launch_word){value, loc};
        return;
    }
    for (const char *at = value + 1; *at && *at != ']';) {
        size_t n = strcspn(at, "',] ");

        if (n)
            argument->values[argument->count++] = (struct launch_word){arena_strndup(arena, at, n), loc};
        at += n;
        at += strspn(at, "', ");
    }
}

/* One line: the name stands before dots, or before two spaces where it is too long for dots. */
static void read_line(struct arena *arena, const char *line, size_t length, int number, struct launch *launch)
{
    const char *text = arena_strndup(arena, line, length), *dots = strstr(text, " ..."), *name, *end, *value;
    struct launch_argument *argument;
    char *copy;

    if (!dots)
        dots = strstr(text + strspn(text, " "), "  ");
    if (!dots)
        return;
    for (end = name = dots; name > text && (isalnum((unsigned char)name[-1]) || name[-1] == '_' || name[-1] == '-');)
        name--;
    value = dots + 1 + strspn(dots + 1, ". ");
    if (name == end || !strpbrk(name, "_abcdefghijklmnopqrstuvwxyz"))
        return;
    /* a value such as .5 has a dot of its own */
    if (value > dots + 1 && value[-1] == '.' && isdigit((unsigned char)*value))
        value--;
    copy = arena_strndup(arena, name, (size_t)(end - name));
    for (char *c = copy; *c; c++)
        *c = *c == '_' ? '-' : *c;
    for (size_t n = strlen(value); n && isspace((unsigned char)value[n - 1]); n--)
        ((char *)value)[n - 1] = '\0';
    argument = GROW(&launch->arguments);
    *argument = (struct launch_argument){.name = copy, .loc = {launch->file, number, (int)(name - text) + 1}};
    put_values(arena, value, (struct loc){launch->file, number, (int)(value - text) + 1}, argument);
}

int launch_log_read(struct arena *arena, const char *text, size_t length, struct launch *launch, struct error *err)
{
    const char *begin = find_title(text, length, "arguments"), *end, *stop = text + length;
    const char *close = find_title(begin, (size_t)(stop - begin), "end of arguments");
    int line = 1;

    for (const char *c = text; c < begin; c++)
        line += *c == '\n';
    launch->loc = (struct loc){launch->file, line, 1};
    if (memchr(begin, 0, (size_t)((close ? close : stop) - begin)))
        return error_add(err, EXIT_INPUT, launch->loc, "found a zero byte in the arguments; expected a text file");
    for (const char *at = memchr(begin, '\n', (size_t)(stop - begin)); at && ++at < stop; at = end) {
        size_t n;

        line++;
        end = memchr(at, '\n', (size_t)(stop - at));
        if (close && (end ? end : stop) > close)
            return 0;
        n = (size_t)((end ? end : stop) - at);
        read_line(arena, at, n && at[n - 1] == '\r' ? n - 1 : n, line, launch);
    }
    return close ? 0 : error_add(err, EXIT_INPUT, launch->loc, "the list of arguments is cut; expected a line "
                                 "'--- end of arguments ---'");
}
