/* launch_script: which command of a script is the launch, and which of its words are known. The script is run once for the
 * words, and again for what nobody knows: with marks for the variables that are not set, with other words for what other
 * programs print, and with these programs failing. */
#include "launch/launch_search.h"

#include <stdlib.h>

#include "base/base.h"
#include "launch/imported.h"

/* The commands around know where their options stand, too. */
static void place_around(const struct launch_search *s)
{
    for (const struct bash_command *outer = s->chosen->outer; outer; outer = outer->outer)
        for (size_t i = 0; i < outer->count; i++)
            outer->words[i].loc = bash_place(&s->script, outer->words[i].text, outer->loc);
}

/* What the launch has of other programs that run before it. */
static void doubt_programs(struct launch_search *s, const struct launch_words *words)
{
    const char *prints = "", *fails = "";
    struct launch_words other;

    for (size_t i = 0; i < s->place; i++) {
        const struct bash_command *command = s->commands.items[i], *outer = s->chosen->outer;
        const char *said = arena_printf(s->arena, "'%s' in line %d", command->words[0].text, command->loc.line);

        while (outer && outer != command)
            outer = outer->outer;
        if (outer || command->kind > BASH_ABSENT || command->kind == BASH_EXIT || strstr(fails, said))
            continue;
        fails = arena_printf(s->arena, "%s%s%s", fails, *fails ? ", " : "", said);
        if (command->kind == BASH_CAPTURED)
            prints = arena_printf(s->arena, "%s%s%s", prints, *prints ? ", " : "", said);
    }
    if (*prints && launch_elsewhere(s, &(struct bash_world){.prints = "8191\n127 x", .marks = s->marks, .nmarks = s->nmarks}, &other)) {
        launch_compare(s->arena, words, &other, s->chosen->loc,
                       arena_printf(s->arena, "depends on what other programs print (%.200s), which is not known here", prints),
                       s->launch);
        free(other.items);
    }
    if (*fails && launch_elsewhere(s, &(struct bash_world){.fails = true, .marks = s->marks, .nmarks = s->nmarks}, &other)) {
        launch_compare(s->arena, words, &other, s->chosen->loc,
                       arena_printf(s->arena, "depends on whether other programs succeed (%.200s), which is not known here", fails),
                       s->launch);
        free(other.items);
    }
}

/* Launches of a model besides the chosen one: where they differ, a person says which. */
static void doubt_launches(struct launch_search *s, const struct launch_words *words)
{
    const struct bash_command *command;
    size_t at;

    for (size_t n = 0; !s->options->launch && (command = launch_nth(&s->commands, n, &at)); n++) {
        struct launch_words other = {0};

        if (n == s->index || launch_likeness(command) < launch_likeness(s->chosen))
            continue;
        other = launch_words_of(s, command);
        launch_compare(s->arena, words, &other, command->loc,
                       arena_printf(s->arena, "differs between the launches in lines %d and %d; give --launch N, the one that "
                                    "you mean", s->chosen->loc.line, command->loc.line), s->launch);
        free(other.items);
    }
}

/* A variable that is not set, and that ends the script: it gets a mark. Whether there is one. */
static bool mark_unbound(struct launch_search *s)
{
    static const char what[] = ": unbound variable", says[] = "bash says: ";

    for (size_t i = 0; i < s->commands.remarks.count && s->nmarks < MOST_NAMES; i++) {
        const char *text = s->commands.remarks.items[i].text, *end = strstr(text, what);

        if (!end || strncmp(text, says, sizeof says - 1))
            continue;
        text = arena_strndup(s->arena, text + sizeof says - 1, (size_t)(end - text) - (sizeof says - 1));
        if (*text == '$')
            s->script.arguments = launch_marked_arguments(s);
        else
            s->marks[s->nmarks] = (struct launch_set){text, arena_printf(s->arena, "%c%s%c", MARK_BEGIN, text, MARK_END)};
        s->nmarks += *text != '$';
        return true;
    }
    return false;
}

/* Runs the script for its words: as it is; with exit passed over; for the variables that it fills, where it starts nothing;
 * with marks for all that nobody sets. */
static int find_launch(struct launch_search *s)
{
    struct bash_world worlds[] = {{0}, {.passes = true}, {.arrays = true}, {.passes = true}};
    bool starts_nothing = false;

    for (size_t i = 0; i < COUNT(worlds) && !s->chosen; i++) {
        if (worlds[i].arrays)
            starts_nothing = !s->commands.count && !s->commands.remarks.count;
        if (i + 1 == COUNT(worlds) ? starts_nothing : worlds[i].arrays && !starts_nothing)
            continue;
        if (i + 1 == COUNT(worlds))
            launch_mark_all(s);
        for (int runs = 0; runs <= MOST_NAMES && !s->chosen && (!runs || mark_unbound(s)); runs++) {
            worlds[i].marks = s->marks;
            worlds[i].nmarks = s->nmarks;
            bash_commands_release(&s->commands);
            if (bash_run(&s->reader, &worlds[i], &s->commands, s->err))
                return -1;
            if (s->commands.killed)
                return error_add(s->err, EXIT_INPUT, (struct loc){.file = s->script.file}, "the script was ended: it reached "
                                 "its limit of %s", s->commands.killed);
            s->passes = worlds[i].passes;
            launch_choose(s);
        }
    }
    return 0;
}

static void tell(struct launch_search *s)
{
    for (size_t i = 0; i < s->commands.remarks.count; i++)
        launch_warn(s->launch, s->arena, s->commands.remarks.items[i].loc, "%s", s->commands.remarks.items[i].text);
    for (size_t i = 0; i < s->commands.count; i++) {
        const struct bash_command *command = s->commands.items[i];

        if (s->chosen && command->kind == BASH_EXIT && i < s->place)
            launch_warn(s->launch, s->arena, command->loc, "'exit' is passed over, as no launch stands before it");
        if (s->chosen && command->kind == BASH_ABSENT && !strcmp(command->words[0].text, "source"))
            launch_warn(s->launch, s->arena, command->loc, "%s is not here, or outside of the folders that are read, and so what it "
                        "sets is not known; give --read FOLDER, or --env NAME=VALUE", command->count > 1 ? command->words[1].text : "a file");
        if (s->chosen && launch_is_option(command->words[0].text))
            launch_warn(s->launch, s->arena, bash_place(&s->script, command->words[0].text, command->loc),
                        "the shell takes '%s' for a command of its own, and so it is left out: the line before ends without "
                        "'\\', or is a comment", command->words[0].text);
    }
}

/* Whether a variable's words are a launcher's, not the program's. */
static bool starts(struct arena *arena, const struct bash_command *command)
{
    bool any = false;

    for (size_t i = 1; i < command->count; i++) {
        const char *text = command->words[i].text, *name = text + strspn(text, "- ");

        any |= name > text && launch_is_count(arena_strndup(arena, name, strcspn(name, "= ")));
    }
    return any;
}

/* The words of variables that hold arguments. */
static struct launch_words words_of_arrays(struct launch_search *s)
{
    struct launch_words words = {0};
    bool model = false;

    for (size_t i = 0; i < s->commands.count; i++) {
        const struct bash_command *command = s->commands.items[i];

        for (size_t k = 1; command->kind == BASH_ARRAY && !starts(s->arena, command) && k < command->count; k++) {
            size_t first = words.count;
            struct error unheard = {0};
            const char *text = command->words[k].text;

            if (command->count == 2)                         /* one text: its words */
                launch_words_read(s->arena, s->script.file, text, strlen(text), &words, &unheard);
            else
                *GROW(&words) = command->words[k];
            for (; first < words.count; first++)
                words.items[first].loc = bash_place(&s->script, words.items[first].text, (struct loc){s->script.file, 1, 1});
            model |= strstr(text, "--num-layers") || strstr(text, "--hidden-size");
            error_release(&unheard);
        }
    }
    words.count = model ? words.count : 0;
    return words;
}

static int read_launch(struct launch_search *s)
{
    struct launch_words words = {0};
    int mistakes = s->err->count;

    if (find_launch(s))
        return -1;
    tell(s);
    if (s->options->launch && !s->chosen)
        return error_add(s->err, EXIT_INPUT, (struct loc){.file = s->script.file}, "--launch %d: the script has fewer launches",
                         s->options->launch);
    words = s->chosen ? launch_words_of(s, s->chosen) : words_of_arrays(s);
    if (s->chosen) {
        place_around(s);
        launch_take_unset(s, &words);
        doubt_programs(s, &words);
        doubt_launches(s, &words);
    }
    if (words.count)
        launch_take(s->arena, &words, s->chosen, s->launch);
    for (size_t i = 0; !words.count && i < s->commands.remarks.count; i++)
        error_add(s->err, EXIT_INPUT, s->commands.remarks.items[i].loc, "%s", s->commands.remarks.items[i].text);
    if (!s->launch->arguments.count && s->err->count == mistakes && launch_unset_list(s))
        error_add(s->err, EXIT_INPUT, (struct loc){s->script.file, 1, 1}, "found no command that runs a program with arguments "
                  "(... pretrain_gpt.py --num-layers ...); nobody sets what the script uses: %s; give --env NAME=VALUE",
                  launch_unset_list(s));
    free(words.items);
    return s->err->count > mistakes ? -1 : 0;
}

int launch_script(struct arena *arena, const char *file, const char *text, size_t length, const struct import_options *options,
                  struct launch *launch, struct error *err)
{
    struct launch_search s = {.arena = arena, .options = options, .launch = launch, .err = err};
    int rc = 0;

    s.script = (struct bash_script){file, text, length, options->arguments, options->environment, options->nenvironment,
                               options->folders, options->trust, imported_node_gpus(arena, options->cluster, err), launch_variables};
    if (!s.script.gpus || bash_reader_open(&s.reader, arena, &s.script, err))
        rc = -1;
    if (!rc)
        rc = read_launch(&s);
    bash_commands_release(&s.commands);
    bash_reader_close(&s.reader);
    return rc;
}
