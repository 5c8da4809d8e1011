/* options: reads a command line by the rows of its command. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/units.h"
#include "cli/cmd.h"
#include "sweep/paths.h"

const char *words_at(const struct words *words, size_t i)
{
    return words->names ? words->names[i] : words->name ? words->name(i) : NULL;
}

size_t processors(void)
{
    cpu_set_t own;               /* srun and containers give a process some of a machine's */
    long long count = sched_getaffinity(0, sizeof own, &own) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&own);

    return count > 0 ? (size_t)count : 1;
}

static const char *word_candidate(size_t i, const void *words)
{
    return words_at(words, i);
}

int word_parse(const struct command *command, const char *option, const struct words *words, const char *text,
                 int *which)
{
    const char *meant, *colon = *option ? ": " : "", *name;
    struct arena arena = {0};
    const char *all = "";

    for (*which = 0; (name = words_at(words, (size_t)*which)); ++*which)
        if (!strcmp(name, text))
            return ARGS_DONE;
    for (size_t i = 0; (name = words_at(words, i)); i++)
        all = arena_printf(&arena, "%s%s%s", all, !i ? "" : words_at(words, i + 1) ? ", " : " or ", name);
    meant = nearest(text, word_candidate, words);
    if (meant)
        usage_error(command, "%s%sunknown %s '%s'; did you mean '%s'?", option, colon, words->what, text, meant);
    else
        usage_error(command, "%s%sunknown %s '%s'; expected %s", option, colon, words->what, text, all);
    arena_release(&arena);
    return EXIT_USAGE;
}

static int count_parse(const struct command *command, const struct option *option, const char *text, double *number)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    *number = (double)value;
    return *text >= '0' && *text <= '9' && !*end && value >= option->least && value <= option->most
               ? ARGS_DONE
               : usage_error(command, "%s: expected a whole number from %zu to %zu, found '%s'", option->name,
                             option->least, option->most, text);
}

static int time_parse(const struct command *command, const struct option *option, const char *text, double *seconds)
{
    char why[256], *end;

    *seconds = option->bare ? strtod(text, &end) : 0;
    if (option->bare && end != text && !*end && *seconds > 0 && *seconds < 1e9)
        return ARGS_DONE;
    return !unit_parse(UNIT_TIME, text, seconds, why, sizeof why) && *seconds >= 0 && (*seconds > 0 || !option->least)
               ? ARGS_DONE
               : usage_error(command, "%s: expected a time such as '30 s', found '%s'", option->name, text);
}

/* Reads the value, which was given or is the usual one. */
static int value_parse(const struct command *command, size_t k, const char *value, struct arguments *arguments)
{
    const struct option *option = &command->options[k];
    int which, code;

    switch (option->kind) {
    case OPTION_COUNT:
    case OPTION_JOBS: return count_parse(command, option, value, &arguments->numbers[k]);
    case OPTION_TIME: return time_parse(command, option, value, &arguments->numbers[k]);
    case OPTION_CHOICE:
        code = word_parse(command, option->name, &option->words, value, &which);
        arguments->numbers[k] = which;
        return code;
    case OPTION_BUDGET:
        return budget_parse(value, &arguments->budget)
                   ? usage_error(command, "--budget: expected a time such as '30 s', or memory such as '4 GiB', found '%s'",
                                 value)
                   : ARGS_DONE;
    case OPTION_SET:
        if (arguments->nsets == COUNT(arguments->sets))
            return usage_error(command, "--set: at most %zu", COUNT(arguments->sets));
        arguments->sets[arguments->nsets++] = value;
        return ARGS_DONE;
    case OPTION_TEXT: break;
    }
    return ARGS_DONE;
}

static const char *option_candidate(size_t i, const void *context)
{
    const struct command *command = context;
    static const char *const common[] = {"--help", "--color"};

    if (i < command->noptions)           /* of short ones each resembles each */
        return command->options[i].name[1] == '-' ? command->options[i].name : common[0];
    return i - command->noptions < COUNT(common) ? common[i - command->noptions] : NULL;
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
    bool sets = false;

    for (size_t k = 0; k < command->noptions; k++) {
        const char *name = command->options[k].name;

        sets |= command->options[k].kind == OPTION_SET;
        if (!strncmp(word, name, strlen(name)) && word[strlen(name)] == '=')
            return usage_error(command, "%s takes no value, found '%s'", name, word);
    }
    if (!strncmp(word, "--set", 5) && (!word[5] || word[5] == '='))
        return usage_error(command, "%s", command->no_set ? command->no_set : "--set: there is no scenario to change");
    if (!meant && sets)
        return unknown_setting(command, word);
    if (!meant)
        return usage_error(command, "unknown option '%s'", word);
    return usage_error(command, "unknown option '%s'; did you mean '%s'?", word, meant);
}

/* Whether argv[*i] is this option; its value then, from the same word or the next. NULL value: none follows. */
static bool match(const struct option *option, int argc, char **argv, int *i, const char **value)
{
    size_t length = strlen(option->name);
    const char *word = argv[*i];
    bool takes = option->value;

    if (option->name[0] != '-' || strncmp(word, option->name, length))
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
    for (size_t k = 0; k < command->noptions; k++) {
        const struct option *option = &command->options[k];

        if (!match(option, argc, argv, i, &value))
            continue;
        if (!value)
            return usage_error(command, "%s: expected %s after it", word, option->kind == OPTION_SET ? option->value : "a value");
        if (arguments->ngiven == COUNT(arguments->given) && option->kind != OPTION_SET)
            return usage_error(command, "%s: at most %zu options", word, COUNT(arguments->given));
        if (option->value && !option->many && option->kind != OPTION_SET && arguments->values[k] && strcmp(arguments->values[k], value))
            return usage_error(command, "%s: given twice, as '%s' and as '%s'; expected one of them", option->name, arguments->values[k], value);
        arguments->values[k] = value;
        if (option->kind != OPTION_SET) {
            arguments->given[arguments->ngiven].option = k;
            arguments->given[arguments->ngiven++].value = value;
        }
        return value_parse(command, k, value, arguments);
    }
    return unknown_option(command, word);
}

/* Whether the list, whose words stand between blanks, has the word. */
static bool has_word(const char *list, const char *word)
{
    for (size_t length; list && (length = strcspn(list, " ")); list += length + (list[length] == ' '))
        if (strlen(word) == length && !strncmp(list, word, length))
            return true;
    return false;
}

/* The first option of the list that was given; NULL: none. */
static const char *given_of(const struct command *command, const struct arguments *arguments, const char *list)
{
    for (size_t k = 0; k < command->noptions; k++)
        if (arguments->values[k] && has_word(list, command->options[k].name))
            return command->options[k].name;
    return NULL;
}

/* Whether an option that was given excludes this one. */
static bool is_excluded(const struct command *command, const struct arguments *arguments, const char *name)
{
    for (size_t k = 0; k < command->noptions; k++)
        if (arguments->values[k] && has_word(command->options[k].without, name))
            return true;
    return false;
}

/* "expected one of --json, --csv", where two of them were given. */
static int check_one_of(const struct command *command, const struct arguments *arguments, size_t k)
{
    const struct option *options = command->options;
    struct arena arena = {0};
    const char *all = "";
    int count = 0;

    for (size_t i = 0; i < command->noptions && options[k].one_of; i++)
        if (options[i].one_of == options[k].one_of) {
            all = arena_printf(&arena, "%s%s%s", all, *all ? ", " : "", options[i].name);
            count += arguments->values[i] != NULL;
        }
    if (count > 1)
        usage_error(command, "expected one of %s", all);
    arena_release(&arena);
    return count > 1 ? EXIT_USAGE : ARGS_DONE;
}

/* What goes with what, and what must be there. */
static int check_together(const struct command *command, struct arguments *arguments)
{
    struct arena arena = {0};
    const char *lacks = "";
    int code = ARGS_DONE;

    for (size_t k = 0; k < command->noptions && code == ARGS_DONE; k++) {
        const struct option *option = &command->options[k];
        const char *clash = given_of(command, arguments, option->without);
        bool goes = !option->with || given_of(command, arguments, option->with) ||
                    (arguments->npositional && has_word(option->with, arguments->positional[0])) ||
                    (command->other && !words_at(&command->first, (size_t)arguments->first) && has_word(option->with, "OTHER"));

        if (!arguments->values[k]) {
            if (option->needed && !is_excluded(command, arguments, option->name))
                lacks = arena_printf(&arena, "%s%s%s", lacks, *lacks ? " and " : "", option_head(&arena, option));
            continue;
        }
        if (!goes)
            code = usage_error(command, "%s goes with %s", option->name, words_or(&arena, option->with));
        else if (clash)
            code = usage_error(command, "%s does not go with %s", option->name, clash);
        else
            code = check_one_of(command, arguments, k);
    }
    if (code == ARGS_DONE && *lacks)
        code = usage_error(command, "expected %s", lacks);
    arena_release(&arena);
    return code;
}

static int check_positional(const struct command *command, struct arguments *arguments)
{
    char *text = NULL;
    size_t size;
    FILE *out;

    while (command->other && words_at(&command->first, (size_t)arguments->first) &&
           strcmp(words_at(&command->first, (size_t)arguments->first), arguments->positional[0] ? arguments->positional[0] : "") != 0)
        arguments->first++;
    if (arguments->npositional >= command->least && command->other && command->other(arguments->positional[0]))
        return ARGS_DONE;
    if (arguments->npositional >= command->least)
        return arguments->npositional && command->first.what
                   ? word_parse(command, "", &command->first, arguments->positional[0], &arguments->first)
                   : ARGS_DONE;
    out = text_open(&text, &size);
    command_usage(command, 0, INT_MAX, out);
    text_close(out, &text);
    usage_error(command, "expected: %s", text);
    free(text);
    return EXIT_USAGE;
}

int arguments_parse(const struct command *command, int argc, char **argv, struct arguments *arguments)
{
    bool only_positional = false;
    int code = ARGS_DONE;

    *arguments = (struct arguments){.command = command};
    for (size_t k = 0; k < command->noptions; k++)
        if (command->options[k].usual)
            value_parse(command, k, command->options[k].usual, arguments);
        else if (command->options[k].kind == OPTION_JOBS)
            arguments->numbers[k] = (double)processors();
    for (int i = 1; i < argc && code == ARGS_DONE; i++) {
        if (!only_positional && !strcmp(argv[i], "--"))
            only_positional = true;
        else if (!only_positional && argv[i][0] == '-' && argv[i][1])
            code = parse_option(command, argc, argv, &i, arguments);
        else if (arguments->npositional == command->most)
            code = command->most == ARGS_MAX ? usage_error(command, "at most %d arguments", ARGS_MAX)
                                             : usage_error(command, "unexpected argument '%s'", argv[i]);
        else
            arguments->positional[arguments->npositional++] = argv[i];
    }
    code = code == ARGS_DONE ? check_positional(command, arguments) : code;
    return code == ARGS_DONE ? check_together(command, arguments) : code;
}
