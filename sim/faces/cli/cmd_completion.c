/* completion: scripts that complete command lines of dtsim, made of the tables that parse them. */
#include <string.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "collective/collective.h"
#include "engine/replay.h"
#include "files/data.h"
#include "scenario/scenario.h"
#include "sweep/paths.h"

/* Words that an option's value, or a path of --set, may be. */
struct values { const char *name, *const *words; choice_name *choice; const char *folder; };

static const char *all_collective_names(size_t index)
{
    return collective_at(index) ? collective_at(index)->name : NULL;
}

static const struct values option_values[] = {
    {"--engine=", engine_names, NULL, NULL},
    {"--op=", collective_op_names, NULL, NULL},
    {"--algorithm=", NULL, all_collective_names, NULL},
    {"--format=", NAMES("png", "svg", "pdf"), NULL, NULL},
    {"--color=", NAMES("auto", "always", "never"), NULL, NULL},
};
/* Paths whose values are names of files. */
static const struct values path_values[] = {
    {"cluster", NULL, NULL, "platforms"},
    {"cluster.platform", NULL, NULL, "platforms"},
    {"cluster.gpu", NULL, NULL, "platforms/gpus"},
    {"cluster.network", NULL, NULL, "platforms/networks"},
    {"cluster.network.name", NULL, NULL, "platforms/networks"},
    {"model.preset", NULL, NULL, "scenarios/models"},
};

static void put_values(const struct values *values, FILE *out, struct error *err)
{
    struct arena arena = {0};
    const char **names = values->folder ? data_names(&arena, values->folder, err) : NULL, *before = "";

    for (size_t i = 0; values->words && values->words[i]; i++, before = " ")
        fprintf(out, "%s%s", before, values->words[i]);
    for (size_t i = 0; values->choice && values->choice(i); i++, before = " ")
        fprintf(out, "%s%s", before, values->choice(i));
    for (size_t i = 0; names && names[i]; i++, before = " ")
        fprintf(out, "%s%s", before, names[i]);
    arena_release(&arena);
}

/* What the table of the path's key knows of its values; .name NULL: nothing. */
static struct values values_of_path(const char *path)
{
    static const char *const booleans[] = {"true", "false", NULL};
    const struct field *field = scenario_field(path);

    for (size_t i = 0; i < COUNT(path_values); i++)
        if (!strcmp(path, path_values[i].name))
            return path_values[i];
    /* `strategy.schedule` stands for strategy.schedule.name */
    for (size_t i = 0; field && field->table && field->table->shorthand && i < field->table->count; i++)
        if (!strcmp(field->table->fields[i].key, field->table->shorthand)) {
            field = &field->table->fields[i];
            break;
        }
    if (field && field->kind == FIELD_BOOL)
        return (struct values){path, booleans, NULL, NULL};
    if (field && (field->kind == FIELD_CHOICE || field->kind == FIELD_CHOICES))
        return (struct values){path, field->choices, field->choices ? NULL : field->choice, NULL};
    return (struct values){0};
}

static bool takes_sets(const struct command *command)
{
    return strstr(command->usage, "--set");
}

/* "NAME) words="..." ;;" of each command: its options. */
static void put_options(FILE *out)
{
    for (size_t i = 0; command_at(i); i++) {
        const struct command *command = command_at(i);

        fprintf(out, "    %s) found=\"", command->name);
        for (size_t k = 0; k < command->naccepts; k++)
            fprintf(out, "%.*s ", (int)strcspn(command->accepts[k], "="), command->accepts[k]);
        fprintf(out, "%s--color --help\" ;;\n", takes_sets(command) ? "--set " : "");
    }
}

static void put_first(FILE *out, struct error *err)
{
    struct arena arena = {0};

    for (size_t i = 0; command_at(i); i++) {
        const char **words = command_at(i)->words ? command_at(i)->words(&arena, err) : NULL;

        if (!words)
            continue;
        fprintf(out, "    %s) found=\"", command_at(i)->name);
        for (size_t k = 0; words[k]; k++)
            fprintf(out, "%s%s", k ? " " : "", words[k]);
        fputs("\" ;;\n", out);
    }
    arena_release(&arena);
}

static void put_option_values(FILE *out, struct error *err)
{
    for (size_t i = 0; i < COUNT(option_values); i++) {
        fprintf(out, "    %.*s) found=\"", (int)strcspn(option_values[i].name, "="), option_values[i].name);
        put_values(&option_values[i], out, err);
        fputs("\" ;;\n", out);
    }
}

/* Every path once: schedules share names of options. */
static const char **distinct_paths(struct arena *arena)
{
    const char **paths = path_list(arena);
    size_t count = 0;

    for (size_t i = 0; paths[i]; i++) {
        size_t before = 0;

        while (before < count && strcmp(paths[before], paths[i]))
            before++;
        if (before == count)
            paths[count++] = paths[i];
    }
    paths[count] = NULL;
    return paths;
}

static void put_paths(FILE *out, struct error *err)
{
    struct arena arena = {0};
    const char **paths = distinct_paths(&arena);

    fputs("_dtsim_paths=\"", out);
    for (size_t i = 0; paths[i]; i++)
        if (!scenario_field(paths[i])->table || scenario_field(paths[i])->table->shorthand)
            fprintf(out, "%s%s=", i ? " " : "", paths[i]);
    fputs("\"\n\n# What --set PATH= may be set to.\n_dtsim_values()\n{\n    case $1 in\n", out);
    for (size_t i = 0; paths[i]; i++) {
        struct values values = values_of_path(paths[i]);

        if (!values.name)
            continue;
        fprintf(out, "    %s) found=\"", paths[i]);
        put_values(&values, out, err);
        fputs("\" ;;\n", out);
    }
    fputs("    *) found= ;;\n    esac\n}\n", out);
    arena_release(&arena);
}

/* The values that are valid with the rest of a typed scenario, where they can be listed. */
static const char going[] =
    "\n# _dtsim_going DTSIM SCENARIO PATH\n"
    "_dtsim_going()\n"
    "{\n"
    "    local going=\n"
    "    [[ -f $2 ]] || return\n"
    "    going=$(\"$1\" check \"$2\" --values \"$3\" --json 2>/dev/null |\n"
    "        sed -n '/^ *\"value\": \"/{s///;s/\",$//;h;};/^ *\"goes\": true/{x;p;}')\n"
    "    [[ -n $going ]] && found=$going\n"
    "}\n";

/* Both shells read this part: functions that put what may come into `found`. */
static void put_tables(FILE *out, struct error *err)
{
    fputs("_dtsim_commands=\"", out);
    for (size_t i = 0; command_at(i); i++)
        fprintf(out, "%s%s", i ? " " : "", command_at(i)->name);
    fputs("\"\n", out);
    put_paths(out, err);
    fputs("\n# The options of a command.\n_dtsim_options()\n{\n    case $1 in\n", out);
    put_options(out);
    fputs("    *) found= ;;\n    esac\n}\n\n# What the first argument of a command may be.\n_dtsim_first()\n{\n"
          "    case $1 in\n", out);
    put_first(out, err);
    fputs("    *) found= ;;\n    esac\n}\n\n# What the value of an option may be.\n_dtsim_option_values()\n{\n"
          "    case $1 in\n", out);
    put_option_values(out, err);
    fputs("    *) found= ;;\n    esac\n}\n", out);
    fputs(going, out);
}

/* Readline ends words at '='; here a word ends at a blank alone, and what stands before its '=' is left out of the
 * replies. */
static const char bash_script[] =
    "\n_dtsim()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} typed cur= prev= found= before=\n"
    "\n"
    "    read -ra typed <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && typed+=(\"\")\n"
    "    cur=${typed[-1]} prev=${typed[-2]}\n"
    "    if [[ $cur == --*=* ]]; then\n"
    "        prev=${cur%%=*} before=$prev= cur=${cur#*=}\n"
    "    fi\n"
    "    if [[ ${#typed[@]} -eq 2 ]]; then\n"
    "        found=$_dtsim_commands\n"
    "    elif [[ $prev == --set && $cur == *=* ]]; then\n"
    "        _dtsim_values \"${cur%%=*}\"\n"
    "        _dtsim_going \"${typed[0]}\" \"${typed[2]}\" \"${cur%%=*}\"\n"
    "        before=$before${cur%%=*}= cur=${cur#*=}\n"
    "    elif [[ $prev == --set || $prev == --values ]]; then\n"
    "        found=$_dtsim_paths\n"
    "        compopt -o nospace 2>/dev/null\n"
    "    elif [[ $prev == -o ]]; then\n"
    "        COMPREPLY=($(compgen -d -- \"$cur\"))\n"
    "        return\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _dtsim_options \"${typed[1]}\"\n"
    "    else\n"
    "        _dtsim_option_values \"$prev\"\n"
    "        [[ -z $found && ${#typed[@]} -eq 3 ]] && _dtsim_first \"${typed[1]}\"\n"
    "    fi\n"
    "    COMPREPLY=($(compgen -W \"$found\" -- \"$cur\"))\n"
    "    if [[ $COMP_WORDBREAKS != *=* ]]; then\n"
    "        COMPREPLY=(\"${COMPREPLY[@]/#/$before}\")\n"
    "    fi\n"
    "}\n"
    "complete -o default -F _dtsim dtsim\n";

static const char zsh_script[] =
    "\n_dtsim()\n"
    "{\n"
    "    local cur=$words[CURRENT] prev=$words[CURRENT-1] command=$words[2] position=$CURRENT\n"
    "\n"
    "    local found=\n"
    "    if [[ $cur == --*=* ]]; then\n"
    "        prev=${cur%%=*} cur=${cur#*=}\n"
    "        compset -P 1 '*='\n"
    "    fi\n"
    "    if (( position == 2 )); then\n"
    "        found=$_dtsim_commands\n"
    "    elif [[ $prev == --set && $cur == *=* ]]; then\n"
    "        compset -P 1 '*='\n"
    "        _dtsim_values \"${cur%%=*}\"\n"
    "        _dtsim_going \"$words[1]\" \"$words[3]\" \"${cur%%=*}\"\n"
    "    elif [[ $prev == --set || $prev == --values ]]; then\n"
    "        compadd -S '' -- ${=_dtsim_paths}\n"
    "        return\n"
    "    elif [[ $prev == -o ]]; then\n"
    "        _files -/\n"
    "        return\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        _dtsim_options \"$command\"\n"
    "    else\n"
    "        _dtsim_option_values \"$prev\"\n"
    "        [[ -z $found ]] && (( position == 3 )) && _dtsim_first \"$command\"\n"
    "    fi\n"
    "    [[ -n $found ]] && compadd -- ${=found} && return\n"
    "    [[ $cur == -* || $position == 2 ]] || _files\n"
    "}\n"
    "compdef _dtsim dtsim\n";

static const char **words(struct arena *arena, struct error *err)
{
    static const char *shells[] = {"bash", "zsh", NULL};

    (void)arena;
    (void)err;
    return shells;
}

static int completion_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments);
    const char *shell = arguments.positional[0];

    if (code != ARGS_DONE)
        return code;
    if (arguments.nsets)
        return usage_error(command, "--set: there is no scenario to change");
    if (strcmp(shell, "bash") && strcmp(shell, "zsh"))
        return usage_error(command, "unknown shell '%s'; expected bash or zsh", shell);
    if (!strcmp(shell, "zsh"))
        fputs("#compdef dtsim\n", stdout);
    put_tables(stdout, &err);
    fputs(!strcmp(shell, "bash") ? bash_script : zsh_script, stdout);
    return report(&err);
}

const struct command cmd_completion = {
    .name = "completion",
    .usage = "bash | zsh",
    .brief = "Prints a script that completes command lines: commands, options, names, paths of --set.",
    .examples = "  . <(dtsim completion bash)          in ~/.bashrc; an installed dtsim needs no such line\n"
                "  . <(dtsim completion zsh)           in ~/.zshrc, after compinit\n",
    .words = words,
    .main = completion_main,
};
