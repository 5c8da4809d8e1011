/* launch: finds the one command that runs a training program, and divides its words into arguments. */
#include "launch/launch.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-' && isalpha((unsigned char)word[2]);
}

static bool is_program(const char *word)
{
    size_t length = strlen(word);

    return length > 3 && !strcmp(word + length - 3, ".py") && *word != '-';
}

/* Divides words into arguments: --NAME VALUE ..., --NAME=VALUE. What stands before the first one belongs to nobody. */
static void divide(struct arena *arena, const struct shell_word *words, size_t count,
                   struct launch_arguments *arguments, struct launch *launch)
{
    struct launch_argument *last = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *text = words[i].text, *equals = strchr(text, '=');

        if (is_option(text)) {
            last = GROW(arguments);
            *last = (struct launch_argument){.loc = words[i].loc, .values = ARENA_ARRAY(arena, struct shell_word, count + 1)};
            last->name = equals ? arena_strndup(arena, text + 2, (size_t)(equals - text - 2)) : text + 2;
            if (equals)
                last->values[last->count++] = (struct shell_word){equals + 1, words[i].loc};
        } else if (last) {
            last->values[last->count++] = words[i];
        } else if (launch) {
            const char *unknown = shell_unknown(arena, text);

            launch_warn(launch, arena, words[i].loc, unknown ?
                        "%s is not known here, and what it holds is left out; set it by --set NAME=VALUE" :
                        "'%s' stands before the first argument and is left out", unknown ? unknown : text);
        }
    }
}

static size_t program_of(const struct shell_command *command)
{
    for (size_t i = 0; i < command->count; i++)
        if (is_program(command->words[i].text))
            return i;
    return command->count;
}

/* How much a command looks like the training: 0: not at all. */
static int likeness(const struct shell_command *command)
{
    size_t program = program_of(command);
    int options = 0;

    for (size_t i = program + 1; i < command->count; i++)
        options += is_option(command->words[i].text);
    if (!options)
        return 0;
    return 1 + (command->certain ? 1 : 0) + (strstr(command->words[program].text, "train") ? 2 : 0);
}

static bool same_words(const struct shell_command *a, const struct shell_command *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!text_same(a->words[i].text, b->words[i].text))
            return false;
    return true;
}

static int choose_command(const struct shell_commands *commands, const struct shell_command **chosen, struct error *err)
{
    const struct shell_command *best = NULL, *second = NULL;

    for (size_t i = 0; i < commands->count; i++) {
        const struct shell_command *command = &commands->items[i];
        int rank = likeness(command), most = best ? likeness(best) : 0;

        if (rank > most) {
            best = command;
            second = NULL;
        } else if (rank && rank == most && !same_words(command, best)) {
            second = command;
        }
    }
    *chosen = best;
    if (second)
        return error_add(err, EXIT_INPUT, second->words[0].loc, "a second command runs a program, besides line %d; expected "
                         "one: keep the one that you mean, or say by --set NAME=VALUE which branch is taken",
                         best->words[0].loc.line);
    return 0;
}

/* Statements that are not evaluated, and may have set what is used behind them. */
static void warn_doubts(struct arena *arena, const struct shell_doubts *doubts, struct launch *launch)
{
    for (size_t i = 0; i < doubts->count; i++)
        if (*doubts->items[i].names)
            launch_warn(launch, arena, doubts->items[i].loc, "'%s' is not evaluated here; it may set variables that are used "
                        "behind it: %s; give --set NAME=VALUE for those that it sets", doubts->items[i].what,
                        doubts->items[i].names);
}

static int read_script(struct arena *arena, const struct shell_commands *commands, const struct launch_slurm *slurm,
                       struct launch *launch, struct error *err)
{
    const struct shell_command *chosen;
    size_t options = 0, program;

    warn_doubts(arena, &commands->doubts, launch);
    if (choose_command(commands, &chosen, err))
        return -1;
    for (size_t i = 0; i < commands->count; i++) {
        const struct shell_command *command = &commands->items[i];

        if (!is_option(command->words[0].text))
            continue;
        options++;
        if (chosen)
            launch_warn(launch, arena, command->words[0].loc, "the shell takes '%s' for a command of its own, and so it "
                        "is left out: the line before ends without '\\', or is a comment", command->words[0].text);
        else
            divide(arena, command->words, command->count, &launch->arguments, launch);
        if (options == 1)
            launch->loc = command->words[0].loc;
    }
    if (!chosen && !options)
        return error_add(err, EXIT_INPUT, (struct loc){launch->file, 1, 1}, "found no command that runs a program with "
                         "arguments (... pretrain_gpt.py --num-layers ...), no list of arguments, and no log with a line "
                         "'--- arguments ---'");
    if (chosen) {
        program = program_of(chosen);
        launch->program = chosen->words[program].text;
        launch->loc = chosen->words[program].loc;
        launch_ranks(arena, chosen, program, slurm, launch);
        divide(arena, chosen->words + program + 1, chosen->count - program - 1, &launch->arguments, launch);
    }
    return 0;
}

int launch_parse(struct arena *arena, const char *file, const char *text, size_t length, const struct shell_set *sets,
                 size_t nsets, struct launch *launch, struct error *err)
{
    struct shell_given given[LAUNCH_SLURM_VARIABLES];
    struct shell_commands commands = {0};
    struct launch_slurm slurm = {0};
    size_t ngiven;
    int rc;

    launch->file = file;
    if (launch_log_is(text, length)) {
        launch->log = true;
        return launch_log_read(arena, text, length, launch, err);
    }
    launch_slurm_read(arena, file, text, length, &slurm);
    ngiven = launch_slurm_variables(arena, &slurm, given);
    rc = shell_read(arena, &(struct shell_script){file, text, length, sets, nsets, given, ngiven}, &commands, err);
    if (!rc)
        rc = read_script(arena, &commands, &slurm, launch, err);
    shell_commands_release(&commands);
    return rc;
}

int launch_load(struct arena *arena, const char *path, const struct shell_set *sets, size_t nsets,
                struct launch *launch, struct error *err)
{
    bool standard = !strcmp(path, "-");
    const char *file = standard ? "standard input" : path;
    size_t length;
    char *text = file_read(standard ? "/dev/stdin" : path, "launch script", LAUNCH_MAX_BYTES, (struct loc){.file = file},
                           &length, err);
    int rc;

    launch->file = file;
    if (!text)
        return -1;
    if (length > SHELL_MAX_BYTES && !launch_log_is(text, length))
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = file}, "holds more than 1 MiB; expected a launch script");
    else
        rc = launch_parse(arena, file, text, length, sets, nsets, launch, err);
    free(text);
    return rc;
}
