/* launch_search: which commands of a script are launches, and their words. */
#include "launch/launch_search.h"

#include <stdlib.h>

#include "base/base.h"

static const char *const sizes[] = {"--num-layers", "--hidden-size"};

int launch_likeness(const struct bash_command *command)
{
    size_t program = launch_program(command->words, command->count);
    int options = 0, model = 0;

    if (command->kind != BASH_COMMAND && command->kind != BASH_CAPTURED)
        return 0;
    for (size_t i = program + 1; i < command->count; i++) {
        options += launch_is_option(command->words[i].text) || *command->words[i].text == MARK_BEGIN;
        for (size_t k = 0; k < COUNT(sizes); k++)
            model |= !strncmp(command->words[i].text, sizes[k], strlen(sizes[k]));
    }
    return !options ? 0 : 1 + (strstr(command->words[program].text, "train") ? 2 : 0) + (model ? 4 : 0);
}

const struct bash_command *launch_nth(const struct bash_commands *commands, size_t n, size_t *at)
{
    for (size_t i = 0; i < commands->count; i++)
        if (launch_likeness(commands->items[i]) && !n--) {
            *at = i;
            return commands->items[i];
        }
    return NULL;
}

void launch_choose(struct launch_search *s)
{
    const struct bash_command *command;
    size_t wanted = s->options->launch > 0 ? (size_t)s->options->launch - 1 : 0, at;

    s->chosen = NULL;
    for (size_t n = 0; (command = launch_nth(&s->commands, n, &at)); n++)
        if (s->options->launch > 0 ? n == wanted : !s->chosen || launch_likeness(command) > launch_likeness(s->chosen)) {
            s->chosen = command;
            s->index = n;
            s->place = at;
        }
}

struct launch_words launch_words_of(const struct launch_search *s, const struct bash_command *command)
{
    struct launch_words words = {0};
    struct loc last = command->loc;

    for (size_t i = 0; i < command->count; i++) {
        const char *text = command->words[i].text;
        bool option = *text == '-' && text[1];

        if (option || i <= launch_program(command->words, command->count))
            last = bash_place(&s->script, arena_strndup(s->arena, text, option ? strcspn(text, "=") : strlen(text)),
                                command->loc);
        *GROW(&words) = (struct launch_word){text, last};
    }
    return words;
}

bool launch_elsewhere(struct launch_search *s, const struct bash_world *world, struct launch_words *words)
{
    struct bash_world own = *world;
    struct bash_commands commands = {0};
    const struct bash_command *command = NULL;
    struct error unheard = {0};
    size_t at;

    own.passes = s->passes;
    if (!bash_run(&s->reader, &own, &commands, &unheard))
        command = launch_nth(&commands, s->index, &at);
    *words = command ? launch_words_of(s, command) : (struct launch_words){0};
    bash_commands_release(&commands);
    error_release(&unheard);
    return command != NULL;
}
