#include "cli/cmd.h"
#include "store/store.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "collective/collective.h"
#include "files/json.h"

static const struct command *const commands[] = {
    &cmd_run, &cmd_show, &cmd_check, &cmd_compare, &cmd_explain, &cmd_sweep, &cmd_plan, &cmd_train, &cmd_results, &cmd_serve, &cmd_app,
    &cmd_validate, &cmd_collective, &cmd_plot, &cmd_report, &cmd_trace, &cmd_import, &cmd_emit, &cmd_calibrate, &cmd_list, &cmd_schema,
    &cmd_completion, &cmd_help,
};

const struct command *command_at(size_t index)
{
    return index < COUNT(commands) ? commands[index] : NULL;
}

/* Whether the command knows --json and is given it. */
static bool wants_json(const struct command *command, int argc, char **argv)
{
    bool knows = false, given = false;

    for (size_t k = 0; k < command->noptions; k++)
        knows |= !strcmp(command->options[k].name, "--json");
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        given |= !strcmp(argv[i], "--json");
    return knows && given;
}

int command_run(const struct command *command, int argc, char **argv)
{
    struct command called = *command;
    struct arguments arguments;
    int code;

    called.json = wants_json(command, argc, argv);
    code = arguments_parse(&called, argc, argv, &arguments);
    return code == ARGS_DONE ? called.main(&arguments) : code;
}

const char *words_or(struct arena *arena, const char *words)
{
    const char *list = "";

    for (size_t length; (length = strcspn(words, " ")); words += length + (words[length] == ' '))
        list = arena_printf(arena, "%s%s%.*s", list, !*list ? "" : words[length] ? ", " : " or ", (int)length, words);
    return list;
}

const char *option_head(struct arena *arena, const struct option *option)
{
    return option->value ? arena_printf(arena, "%s %s", option->name, option->value) : option->name;
}

const char *option_help(struct arena *arena, const struct option *option)
{
    const char *with = option->with ? words_or(arena, option->with) : "";
    const char *many = option->kind == OPTION_BUDGET ? "; may be given twice" : "; may be repeated";

    return arena_printf(arena, "%s%s%s%s%s%s%s%s%s", *with ? "with " : "", with, *with ? ": " : "", option->help,
                        option->many ? many : "", option->usual ? "; left out: " : "",
                        option->usual ? option->usual : "", option->without ? "; not with " : "",
                        option->without ? words_or(arena, option->without) : "");
}

/* "[--json | --csv]": the option, and all others of its group, of which a command takes one. *k is the number of the last. */
static const char *usage_part(struct arena *arena, const struct command *command, size_t *k)
{
    const struct option *options = command->options, *first = &options[*k];
    const char *text = option_head(arena, first);

    for (; first->one_of && *k + 1 < command->noptions && options[*k + 1].one_of == first->one_of; ++*k)
        text = arena_printf(arena, "%s | %s", text, option_head(arena, &options[*k + 1]));
    return first->needed ? text : arena_printf(arena, "[%s]%s", text, first->many ? "..." : "");
}

void command_usage(const struct command *command, int column, int width, FILE *out)
{
    struct arena arena = {0};
    int indent = column;

    column += fprintf(out, "dtsim %s%s%s", command->name, *command->arguments ? " " : "", command->arguments);
    for (size_t k = 0; k < command->noptions; k++) {
        const char *part = command->options[k].name[0] == '-' ? usage_part(&arena, command, &k) : "";
        int length = (int)strlen(part);

        if (length && column + 1 + length > width)
            column = fprintf(out, "\n%*s%s", indent, "", part) - 1;
        else if (length)
            column += fprintf(out, " %s", part);
    }
    arena_release(&arena);
}

/* Paragraphs, a line each; lines that begin with a blank stay as they are. */
static void print_more(const char *more, int width, FILE *out)
{
    struct arena arena = {0};

    for (size_t length; *more; more += length + (more[length] == '\n')) {
        const char *line = arena_strndup(&arena, more, length = strcspn(more, "\n"));

        if (*line == ' ' || !*line)
            fprintf(out, "%s\n", line);
        else
            text_wrap(line, 0, 0, width, out);
    }
    arena_release(&arena);
}

void command_help(const struct command *command, FILE *out)
{
    enum { MARGIN = 22 };
    struct arena arena = {0};
    int width = text_width(out, 100);

    fprintf(out, "%s\n\n%s\nusage: ", command->brief, command->examples);
    command_usage(command, (int)strlen("usage: "), width, out);
    fputs(command->noptions || command->more ? "\n\n" : "\n", out);
    for (size_t i = 0; i < 2 * command->noptions; i++) {         /* words of the usage, then options */
        const struct option *option = &command->options[i % command->noptions];
        int column;

        if ((option->name[0] == '-') != (i >= command->noptions))
            continue;
        column = fprintf(out, "  %s", option_head(&arena, option));
        fprintf(out, column > MARGIN - 2 ? "\n%*s" : "%*s", column > MARGIN - 2 ? MARGIN : MARGIN - column, "");
        text_wrap(option_help(&arena, option), MARGIN, MARGIN, width, out);
    }
    if (command->more)
        print_more(command->more, width, out);
    arena_release(&arena);
}

static const struct exit_text exit_texts[] = {
    {EXIT_OK, "done"},
    {EXIT_UNEXPECTED, "something failed that is not the user's fault"},
    {EXIT_USAGE, "the command line is wrong"},
    {EXIT_SOME_FAILED, "some of several scenarios failed, or a bar is missed"},
    {EXIT_INPUT, "an input file is wrong"},
    {EXIT_INFEASIBLE, "the scenario is not possible: out of memory, degrees that do not divide, values that do not go "
                      "together"},
    {EXIT_NO_TOOL, "a helper program is missing (gnuplot)"},
    {EXIT_STOPPED, "--budget ended the command"},
    {EXIT_INTERRUPTED, "Ctrl-C ended a sweep"},
};

const struct exit_text *exit_text_at(size_t index)
{
    return index < COUNT(exit_texts) ? &exit_texts[index] : NULL;
}

static void print_errors_json(const struct error *err)
{
    json_t *whole = errors_json(err);

    json_print(whole, stdout);
    json_decref(whole);
}

int usage_error(const struct command *command, const char *format, ...)
{
    struct error err = {0};
    char *message;
    va_list args;

    va_start(args, format);
    message = xvprintf(format, args);
    va_end(args);
    if (command->json) {
        error_add(&err, EXIT_USAGE, (struct loc){0}, "%s", message);
        print_errors_json(&err);
        error_release(&err);
        fflush(stdout);
    }
    fprintf(stderr, "dtsim %s: ", command->name);
    text_write(TEXT_LINE, message, stderr);
    fprintf(stderr, "; see 'dtsim help %s'\n", command->name);
    free(message);
    return EXIT_USAGE;
}

int report_as(struct error *err, bool json)
{
    if (json && err->count)
        print_errors_json(err);
    return report(err);
}

int report(struct error *err)
{
    int code = (int)error_exit_code(err);

    fflush(stdout);
    error_print(err, stderr);
    error_release(err);
    return code;
}

int refuse_sweep(const char *folder, struct error *err)
{
    bool rows;

    if (store_holds_rows(folder, &rows, err))
        return -1;
    return !rows ? 0 :
           error_add(err, EXIT_INPUT, (struct loc){.file = folder}, "the folder holds the rows of a sweep; expected the "
                     "folder of one run, which 'dtsim run -o' writes");
}
