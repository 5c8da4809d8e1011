/* completion: what may come on a command line, by the tables that parse it, and the scripts by which shells ask. */
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/help.h"
#include "files/data.h"
#include "scenario/scenario.h"
#include "sweep/paths.h"

/* The word that is completed, and what may stand in its place so far. */
struct completion {
    struct arena arena;
    struct error err;
    const char *before, *begun;      /* "--engine=" and "fa" of --engine=fa */
    FILE *out;
};

static void offer(struct completion *completion, const char *word)
{
    if (!strncmp(word, completion->begun, strlen(completion->begun)))
        fprintf(completion->out, "%s%s\n", completion->before, word);
}

static void offer_all(struct completion *completion, const char *const *words)
{
    for (size_t i = 0; words && words[i]; i++)
        offer(completion, words[i]);
}

static void offer_words(struct completion *completion, const struct words *words)
{
    for (size_t i = 0; words_at(words, i); i++)
        offer(completion, words_at(words, i));
}

/* The text behind '=' is what is completed. */
static void step_behind(struct completion *completion, const char *value)
{
    completion->before = arena_printf(&completion->arena, "%s%.*s", completion->before,
                                      (int)(value - completion->begun), completion->begun);
    completion->begun = value;
}

/* Every path once: schedules share names of options. */
static void offer_paths(struct completion *completion, const char *behind)
{
    const char **paths = path_list(&completion->arena);

    for (size_t i = 0; paths[i]; i++) {
        const struct field *field = scenario_field(paths[i]);
        size_t before = 0;

        while (strcmp(paths[before], paths[i]))
            before++;
        if (before == i && (!field->table || field->table->shorthand))
            offer(completion, arena_printf(&completion->arena, "%s%s", paths[i], behind));
    }
}

/* What the table of the path's key knows of its values. */
static void offer_known(struct completion *completion, const char *path)
{
    static const char *const booleans[] = {"true", "false", NULL};
    const struct field *field = scenario_field(path);

    /* `strategy.schedule` stands for strategy.schedule.name */
    for (size_t i = 0; field && field->table && field->table->shorthand && i < field->table->count; i++)
        if (!strcmp(field->table->fields[i].key, field->table->shorthand)) {
            field = &field->table->fields[i];
            break;
        }
    if (field && field->files)
        offer_all(completion, data_names(&completion->arena, field->files, &completion->err));
    for (const char *name = field && field->names ? field->names : ""; *name; name += strcspn(name, " "))
        if (*(name += strspn(name, " ")))
            offer(completion, arena_strndup(&completion->arena, name, strcspn(name, " ")));
    if (field && field->kind == FIELD_BOOL)
        offer_all(completion, booleans);
    if (field && (field->kind == FIELD_CHOICE || field->kind == FIELD_CHOICES))
        offer_words(completion, &(struct words){NULL, field->choices, field->choice});
}

/* The values that go with the rest of the scenario and what --set has changed before, where they can be listed; else what the
 * key's table knows. */
static void offer_values(struct completion *completion, const char *const *others, int count, const char *path)
{
    const char *sets[ARGS_MAX];
    struct error ignored = {0};
    struct asked asked = {0};
    size_t nsets = 0;

    for (int i = 1; i + 1 < count; i++)
        if (!strcmp(others[i], "--set") && strchr(others[i + 1], '='))
            sets[nsets++] = others[++i];
    if (count > 0 && *others[0] != '-' && !access(others[0], R_OK))
        asked_find(&asked, others[0], sets, nsets, path, &ignored);
    for (size_t i = 0; i < asked.values.count && !ignored.count; i++)
        if (!asked.values.items[i].why)
            offer(completion, asked.values.items[i].value);
    if (!asked.values.going || ignored.count)
        offer_known(completion, path);
    error_release(&ignored);
    asked_release(&asked);
}

/* What may stand behind the option. */
static void offer_behind(struct completion *completion, const struct option *option, const char *const *others, int count)
{
    const char *equals = strchr(completion->begun, '=');

    if (option->kind == OPTION_SET && equals) {
        const char *path = arena_strndup(&completion->arena, completion->begun, (size_t)(equals - completion->begun));

        step_behind(completion, equals + 1);
        offer_values(completion, others, count, path);
    } else if (option->kind == OPTION_SET || !strcmp(option->name, "--values")) {
        offer_paths(completion, "=");
    } else {
        offer_words(completion, &option->words);
    }
}

static const struct option *option_named(const struct command *command, const char *word, size_t length)
{
    for (size_t k = 0; word[0] == '-' && k < command->noptions; k++)
        if (strlen(command->options[k].name) == length && !strncmp(command->options[k].name, word, length))
            return &command->options[k];
    return NULL;
}

/* `word` of a command, behind others of it. */
static void complete(struct completion *completion, const struct command *command, const char *const *others, int count)
{
    static const char *const common[] = {"--color", "--help", NULL};
    static const char *const colors[] = {"auto", "always", "never", NULL};
    const char *word = completion->begun, *equals = strchr(word, '='), *before = count ? others[count - 1] : "";
    const struct option *option = option_named(command, before, strlen(before));

    if (*word == '-' && word[1] == '-' && equals) {
        option = option_named(command, word, (size_t)(equals - word));
        before = !strncmp(word, "--color=", 8) ? "--color" : "";
        step_behind(completion, equals + 1);
    }
    if (option && option->value)
        offer_behind(completion, option, others, count);
    else if (!strcmp(before, "--color") && completion->begun != word)
        offer_all(completion, colors);
    else if (*word == '-' && !equals) {
        for (size_t k = 0; k < command->noptions; k++)
            if (command->options[k].name[0] == '-')
                offer(completion, command->options[k].name);
        offer_all(completion, common);
    } else if (!count && command->topics)
        offer_all(completion, command->topics(&completion->arena, &completion->err));
    else if (!count)
        offer_words(completion, &command->first);
}

int completion_print(const char *const *typed, int count, FILE *out, struct error *err)
{
    struct completion completion = {.before = "", .begun = count ? typed[count - 1] : "", .out = out};

    for (size_t i = 0; command_at(i); i++)
        if (count < 2)
            offer(&completion, command_at(i)->name);
        else if (!strcmp(typed[0], command_at(i)->name))
            complete(&completion, command_at(i), typed + 1, count - 2);
    *err = completion.err;
    arena_release(&completion.arena);
    return err->count ? -1 : 0;
}

/* Each shell asks the program what may come, a word a line, behind the words that were typed; the last of them may be
 * begun or empty. Where nothing comes they offer files. Readline ends words at '='; here a word ends at a blank alone, and
 * what stands before its '=' is left out of the replies. */
static const char *const shells[] = {"bash", "zsh", "fish", "words", NULL};
static const char *const scripts[] = {
    "_dtsim()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} typed word\n"
    "\n"
    "    read -ra typed <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && typed+=(\"\")\n"
    "    word=${typed[-1]}\n"
    "    mapfile -t COMPREPLY < <(\"${typed[0]/#\\~/$HOME}\" completion words -- \"${typed[@]:1}\" 2>/dev/null)\n"
    "    [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    [[ $word == *=* && $COMP_WORDBREAKS == *=* ]] && COMPREPLY=(\"${COMPREPLY[@]#\"${word%=*}\"=}\")\n"
    "}\n"
    "complete -o default -F _dtsim dtsim\n",
    "#compdef dtsim\n"
    "_dtsim()\n"
    "{\n"
    "    local found=(\"${(@f)$(\"${(Q)words[1]/#\\~/$HOME}\" completion words -- \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "\n"
    "    [[ -n $found ]] || { _files; return }\n"
    "    compadd -S '' -- ${(M)found:#*=}\n"
    "    compadd -- ${found:#*=}\n"
    "}\n"
    "compdef _dtsim dtsim\n",
    "function __dtsim\n"
    "    set -l typed (commandline -opc) (commandline -ct)\n"
    "    set -l found ($typed[1] completion words -- $typed[2..-1] 2>/dev/null)\n"
    "\n"
    "    if test -n \"$found\"\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path (commandline -ct)\n"
    "    end\n"
    "end\n"
    "complete -c dtsim -f -a '(__dtsim)'\n",
};

static int completion_main(const struct arguments *arguments)
{
    struct error err = {0};

    if (arguments->first == COUNT(scripts)) {
        completion_print(arguments->positional + 1, arguments->npositional - 1, stdout, &err);
        return report(&err);
    }
    if (arguments->npositional > 1)
        return usage_error(arguments->command, "unexpected argument '%s'", arguments->positional[1]);
    fputs(scripts[arguments->first], stdout);
    return EXIT_OK;
}

static const struct option options[] = {
    {"SHELL", .help = "bash, zsh or fish"},
    {"words", .help = "what may come behind these words of a command line, a line each; the last WORD may be begun or empty. The "
        "scripts ask this"},
};

const struct command cmd_completion = {
    .name = "completion",
    .arguments = "SHELL|words [WORD...]",
    .least = 1, .most = ARGS_MAX,
    .brief = "Prints a script that completes command lines: commands, options, names, paths of --set.",
    .examples = "  . <(dtsim completion bash)          in ~/.bashrc; an installed dtsim needs no such line\n"
                "  . <(dtsim completion zsh)           in ~/.zshrc, after compinit\n"
                "  dtsim completion fish | source      in ~/.config/fish/config.fish\n",
    .options = options, .noptions = COUNT(options),
    .first = {"shell", shells, NULL},
    .main = completion_main,
};
