/* error: the messages of base.h, collected, put in order and printed. */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

const char *const error_kind_names[] = ENUM_NAMES(ERROR_KINDS);

static char *duplicate(const char *text)
{
    char *copy = xrealloc(NULL, strlen(text) + 1, 1);

    return strcpy(copy, text);
}

static int file_compare(const char *a, const char *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static int loc_compare(const struct loc *a, const struct loc *b)
{
    int files = file_compare(a->file, b->file);

    if (files)
        return files;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

/* The index of the message at the last place. When the list is full, a message at an earlier place replaces that one: the
 * user then sees the first mistakes of a file, in whatever order they were found. */
static int last_message(const struct error *err)
{
    int last = 0;

    for (int i = 1; i < err->count; i++)
        if (loc_compare(&err->messages[i].loc, &err->messages[last].loc) >= 0)
            last = i;
    return last;
}

bool error_shows(const struct error *err, const struct loc *loc)
{
    return err->count < ERROR_MAX || loc_compare(loc, &err->messages[last_message(err)].loc) <= 0;
}

/* Makes room in a full list. False: the new message does not stand earlier. */
static bool room_before(struct error *err, const struct loc *loc)
{
    int last = last_message(err);

    err->dropped++;
    if (loc_compare(loc, &err->messages[last].loc) >= 0)
        return false;
    free(err->messages[last].text);
    free((char *)err->messages[last].loc.file);
    err->count--;
    memmove(&err->messages[last], &err->messages[last + 1], (size_t)(err->count - last) * sizeof *err->messages);
    return true;
}

/* The message is {loc, code, kind}; its text is written here. */
static void add(struct error *err, struct error_message message, const char *format, va_list args)
{
    char *raw;

    if (!error_shows(err, &message.loc)) {
        err->dropped++;
        return;
    }
    raw = xvprintf(format, args);
    message.text = text_made(TEXT_LINE, raw);         /* one line, whatever the user's file contains */
    free(raw);
    for (int i = 0; i < err->count; i++)
        if (loc_compare(&err->messages[i].loc, &message.loc) == 0 && strcmp(err->messages[i].text, message.text) == 0) {
            free(message.text);
            return;
        }
    if (err->count == ERROR_MAX && !room_before(err, &message.loc)) {
        free(message.text);
        return;
    }
    /* The file's name is copied: it often lives in an arena that is released before the messages are printed. */
    if (message.loc.file)
        message.loc.file = duplicate(message.loc.file);
    err->messages[err->count++] = message;
}

int error_add(struct error *err, enum exit_code code, struct loc loc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(err,
        (struct error_message){.loc = loc, .code = code, .kind = code == EXIT_INFEASIBLE ? ERROR_DEGREES : ERROR_PLAIN},
        format, args);
    va_end(args);
    return -1;
}

int error_infeasible(struct error *err, enum error_kind kind, struct loc loc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(err, (struct error_message){.loc = loc, .code = EXIT_INFEASIBLE, .kind = kind}, format, args);
    va_end(args);
    return -1;
}

int error_clash(struct error *err, struct loc loc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add(err, (struct error_message){.loc = loc, .code = EXIT_INFEASIBLE, .kind = ERROR_VALUES}, format, args);
    va_end(args);
    return -1;
}

/* Whether there is no such file. This is the only failure that repeats whenever it is tried. */
static bool is_missing(int why)
{
    return why == ENOENT || why == ENOTDIR;
}

/* What to try. */
static const char *remedy(int why)
{
    if (is_missing(why) || why == ELOOP || why == ENAMETOOLONG || why == EISDIR)
        return "";
    if (why == EACCES || why == EPERM)
        return "; expected one that you may read";
    if (why == EMFILE)
        return "; raise the limit of open files ('ulimit -n') and try again";
    if (why == ENFILE || why == ENOMEM)
        return "; end other programs and try again";
    return "; check the disk or the network and try again";
}

int error_system(struct error *err, struct loc loc, const char *format, ...)
{
    int why = errno;
    bool path = !*remedy(why) || why == EACCES || why == EPERM;
    va_list args;
    char *text;

    va_start(args, format);
    text = xvprintf(format, args);
    va_end(args);
    error_add(err, path ? EXIT_INPUT : EXIT_UNEXPECTED, loc, "%s: %s%s", text, strerror(why), remedy(why));
    err->system |= !is_missing(why);
    free(text);
    return -1;
}

void error_copy(const struct error *from, struct error *err)
{
    for (int i = 0; i < from->count; i++)
        error_add(err, from->messages[i].code, from->messages[i].loc, "%s", from->messages[i].text);
    err->system |= from->system;
}

int error_pass_system(const struct error *from, struct error *err)
{
    if (from->system)
        error_copy(from, err);
    return from->system ? -1 : 0;
}

/* Whether the variable is set and not empty (no-color.org; bixense.com/clicolors). */
static bool asked(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value;
}

static bool colored(FILE *out)
{
    int fd = fileno(out);            /* -1: text in memory */

    return fd >= 0 && !asked("NO_COLOR") && (asked("CLICOLOR_FORCE") || isatty(fd));
}

static void message_print(const struct error_message *message, bool color, FILE *out)
{
    static const char bold[] = "\033[1m", red[] = "\033[1;31m", plain[] = "\033[0m";
    const struct loc *loc = &message->loc;

    fputs(color && loc->file ? bold : "", out);
    if (loc->file)
        text_write(TEXT_LINE, loc->file, out);
    if (loc->file && loc->line > 0)
        fprintf(out, ":%d:%d: ", loc->line, loc->column);
    else if (loc->file)
        fputs(": ", out);
    fprintf(out, "%serror:%s %s\n", color ? red : "", color ? plain : "", message->text);
}

int clashes_add(struct error *err, const struct clash *clashes, size_t count)
{
    int status = 0;

    for (size_t i = 0; i < count; i++)
        if (clashes[i].found)
            status = error_clash(err, clashes[i].loc, clashes[i].text, clashes[i].numbers[0], clashes[i].numbers[1],
                                 clashes[i].numbers[2]);
    return status;
}

void error_print(const struct error *err, FILE *out)
{
    bool color = colored(out);
    int order[ERROR_MAX];

    /* Insertion sort is stable: messages at the same place stay in the order in which they were found. */
    for (int i = 0; i < err->count; i++) {
        int at = i;

        for (; at > 0 && loc_compare(&err->messages[i].loc, &err->messages[order[at - 1]].loc) < 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < err->count; i++)
        message_print(&err->messages[order[i]], color, out);
    if (err->dropped > 0)
        fprintf(out, "error: %d more %s not shown\n", err->dropped, err->dropped == 1 ? "error is" : "errors are");
}

enum exit_code error_exit_code(const struct error *err)
{
    for (int i = 0; i < err->count; i++)
        if (err->messages[i].code == EXIT_INPUT)
            return EXIT_INPUT;
    return err->count > 0 ? err->messages[0].code : EXIT_OK;
}

void error_release(struct error *err)
{
    for (int i = 0; i < err->count; i++) {
        free(err->messages[i].text);
        free((char *)err->messages[i].loc.file);
    }
    memset(err, 0, sizeof *err);
}
