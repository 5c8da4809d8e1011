#include "cli/cmd.h"
#include "report/outcome.h"
#include "store/store.h"
#include "sweep/paths.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/collective.h"
#include "engine/replay.h"
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

    for (size_t k = 0; k < command->naccepts; k++)
        knows |= !strcmp(command->accepts[k], "--json");
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        given |= !strcmp(argv[i], "--json");
    return knows && given;
}

int command_run(const struct command *command, int argc, char **argv)
{
    struct command called = *command;

    called.json = wants_json(command, argc, argv);
    return called.main(&called, argc, argv);
}

void command_help(const struct command *command, FILE *out)
{
    fprintf(out, "%s\n\n%s\nusage: dtsim %s%s%s\n", command->brief, command->examples, command->name,
            *command->usage ? " " : "", command->usage);
    if (command->options)
        fprintf(out, "\n%s", command->options);
}

static const char *engine_candidate(size_t i, const void *context)
{
    (void)context;
    return engine_names[i];
}

int engine_parse(const struct command *command, const char *name, enum engine *engine)
{
    const char *meant = nearest(name, engine_candidate, NULL);

    for (int i = 0; engine_names[i]; i++)
        if (!strcmp(engine_names[i], name)) {
            *engine = (enum engine)i;
            return ARGS_DONE;
        }
    if (meant)
        return usage_error(command, "--engine: unknown engine '%s'; did you mean '%s'?", name, meant);
    return usage_error(command, "--engine: unknown engine '%s'; expected simgrid, fast or ideal", name);
}

static const char *op_candidate(size_t i, const void *context)
{
    (void)context;
    return collective_op_names[i];
}

int op_parse(const struct command *command, const char *operation, enum collective_op *op)
{
    const char *meant;

    for (*op = 0; *op < COLLECTIVE_OP_COUNT; ++*op)
        if (!strcmp(collective_op_names[*op], operation))
            return ARGS_DONE;
    meant = nearest(operation, op_candidate, NULL);
    return meant ? usage_error(command, "--op: unknown operation '%s'; did you mean '%s'?", operation, meant) :
           usage_error(command, "--op: unknown operation '%s'; expected all_reduce, reduce_scatter, all_gather, "
                       "broadcast, reduce or all_to_all", operation);
}

int count_parse(const struct command *command, const char *option, const char *text, size_t most, size_t *value)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || number < 1 || number > most)
        return usage_error(command, "%s: expected a whole number from 1 to %zu, found '%s'", option, most, text);
    *value = (size_t)number;
    return ARGS_DONE;
}

int jobs_parse(const struct command *command, const char *text, size_t *jobs)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    *jobs = processors > 0 ? (size_t)processors : 1;
    return text ? count_parse(command, "-j", text, 1024, jobs) : ARGS_DONE;
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

/* `own`: the message is this program's alone, and may have several lines. */
static int usage_say(const struct command *command, const char *message, bool own)
{
    struct error err = {0};

    if (command->json) {
        error_add(&err, EXIT_USAGE, (struct loc){0}, "%s", message);
        print_errors_json(&err);
        error_release(&err);
        fflush(stdout);
    }
    fprintf(stderr, "dtsim %s: ", command->name);
    if (own)
        fputs(message, stderr);
    else
        text_write(TEXT_LINE, message, stderr);
    fprintf(stderr, "; see 'dtsim help %s'\n", command->name);
    return EXIT_USAGE;
}

int usage_error(const struct command *command, const char *format, ...)
{
    char *message;
    va_list args;

    va_start(args, format);
    message = xvprintf(format, args);
    va_end(args);
    usage_say(command, message, false);
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

static const char *option_candidate(size_t i, const void *context)
{
    const struct command *command = context;
    static const char *const common[] = {"--set", "--help", "--color"};

    if (i < command->naccepts)
        return command->accepts[i];
    return i - command->naccepts < COUNT(common) ? common[i - command->naccepts] : NULL;
}

/* "--tensor" may be meant as a key of the scenario. */
static int unknown_setting(const struct command *command, const char *word)
{
    struct arena arena = {0};
    const char **paths = path_list(&arena), *key = word + strspn(word, "-"), *found = NULL;
    size_t length = strcspn(key, "=");
    int code;

    for (size_t i = 0; paths[i] && !found; i++) {
        const char *dot = strrchr(paths[i], '.');

        if (dot && strlen(dot + 1) == length && !strncmp(dot + 1, key, length))
            found = paths[i];
    }
    if (found)
        code = usage_error(command, "unknown option '%s'; did you mean '--set %s=...'?", word, found);
    else
        code = usage_error(command, "unknown option '%s'", word);
    arena_release(&arena);
    return code;
}

static int unknown_option(const struct command *command, const char *word)
{
    const char *meant = nearest(word, option_candidate, command);

    for (size_t k = 0; k < command->naccepts; k++)
        if (!strncmp(word, command->accepts[k], strlen(command->accepts[k])) &&
            word[strlen(command->accepts[k])] == '=')
            return usage_error(command, "%s takes no value, found '%s'", command->accepts[k], word);
    if (!meant && strstr(command->usage, "--set"))
        return unknown_setting(command, word);
    if (!meant)
        return usage_error(command, "unknown option '%s'", word);
    return usage_error(command, "unknown option '%s'; did you mean '%.*s'?", word, (int)strcspn(meant, "="), meant);
}

/* Whether argv[*i] is this option; its value then, from the same word or the next. NULL value: none follows. */
static bool match(const char *option, int argc, char **argv, int *i, const char **value)
{
    size_t length = strcspn(option, "=");
    const char *word = argv[*i];
    bool takes = option[length] == '=';

    if (strncmp(word, option, length))
        return false;
    *value = "";
    if (!word[length] && takes)
        *value = *i + 1 < argc ? argv[++*i] : NULL;
    else if (takes && word[1] == '-' && word[length] == '=')
        *value = word + length + 1;
    else if (takes && word[1] != '-')
        *value = word + length;
    else
        return !word[length];
    return true;
}

bool color_option(const char *word, const char **wrong)
{
    static const char option[] = "--color";
    const char *when = word + strlen(option);
    bool always, never;

    *wrong = NULL;
    if (strncmp(word, option, strlen(option)) || (*when && *when != '='))
        return false;
    when = *when ? when + 1 : "always";
    always = !strcmp(when, "always");
    never = !strcmp(when, "never");
    if (!always && !never && strcmp(when, "auto"))
        *wrong = when;
    if (never)
        setenv("NO_COLOR", "1", 1);
    else if (always)
        unsetenv("NO_COLOR"), setenv("CLICOLOR_FORCE", "1", 1);
    return true;
}

/* A time or an amount of memory; both may be given, in two options. */
static int parse_budget(const struct command *command, const char *text, struct arguments *arguments)
{
    return budget_parse(text, &arguments->budget)
               ? usage_error(command, "--budget: expected a time such as '30 s', or memory such as '4 GiB', found '%s'",
                             text)
               : ARGS_DONE;
}

static int parse_option(const struct command *command, int argc, char **argv, int *i, struct arguments *arguments)
{
    const char *value, *word = argv[*i], *wrong;

    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        command_help(command, stdout);
        return EXIT_OK;
    }
    if (color_option(word, &wrong))
        return !wrong ? ARGS_DONE :
               usage_error(command, "--color: expected auto, always or never, found '%s'", wrong);
    if (match("--set=", argc, argv, i, &value)) {
        if (!value)
            return usage_error(command, "--set: expected PATH=VALUE after it");
        if (arguments->nsets == COUNT(arguments->sets))
            return usage_error(command, "--set: at most %zu", COUNT(arguments->sets));
        arguments->sets[arguments->nsets++] = value;
        return ARGS_DONE;
    }
    for (size_t k = 0; k < command->naccepts; k++) {
        if (!match(command->accepts[k], argc, argv, i, &value))
            continue;
        if (!value)
            return usage_error(command, "%s: expected a value after it", word);
        if (arguments->ngiven == COUNT(arguments->given))
            return usage_error(command, "%s: at most %zu options", word, COUNT(arguments->given));
        arguments->values[k] = value;
        arguments->given[arguments->ngiven].option = k;
        arguments->given[arguments->ngiven++].value = value;
        return strcmp(command->accepts[k], BUDGET_OPTION) ? ARGS_DONE : parse_budget(command, value, arguments);
    }
    return unknown_option(command, word);
}

int arguments_parse(const struct command *command, int argc, char **argv, int min_positional, int max_positional,
                    struct arguments *arguments)
{
    bool only_positional = false;

    *arguments = (struct arguments){0};
    for (int i = 1; i < argc; i++) {
        if (!only_positional && !strcmp(argv[i], "--")) {
            only_positional = true;
        } else if (!only_positional && argv[i][0] == '-' && argv[i][1]) {
            int code = parse_option(command, argc, argv, &i, arguments);

            if (code != ARGS_DONE)
                return code;
        } else if (arguments->npositional == max_positional) {
            return usage_error(command, "unexpected argument '%s'", argv[i]);
        } else {
            arguments->positional[arguments->npositional++] = argv[i];
        }
    }
    if (arguments->npositional < min_positional) {
        char *expected = xprintf("expected: dtsim %s %s", command->name, command->usage);

        usage_say(command, expected, true);
        free(expected);
        return EXIT_USAGE;
    }
    return ARGS_DONE;
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
