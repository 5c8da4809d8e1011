/* launch: the words of one command, or of a list, become arguments. */
#include "launch/launch_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

bool launch_is_option(const char *word)
{
    return word[0] == '-' && word[1] == '-' && isalpha((unsigned char)word[2]);
}

/* Divides words into arguments: --NAME VALUE ..., --NAME=VALUE. What stands before the first one belongs to nobody. */
static void divide(struct arena *arena, const struct launch_word *words, size_t count, struct launch *launch)
{
    struct launch_argument *last = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *text = words[i].text, *equals = strchr(text, '=');

        if (launch_is_option(text)) {
            last = GROW(&launch->arguments);
            *last = (struct launch_argument){.loc = words[i].loc, .values = ARENA_ARRAY(arena, struct launch_word, count + 1)};
            last->name = equals ? arena_strndup(arena, text + 2, (size_t)(equals - text - 2)) : text + 2;
            if (equals)
                last->values[last->count++] = (struct launch_word){equals + 1, words[i].loc};
        } else if (last) {
            last->values[last->count++] = words[i];
        } else {
            const char *unknown = launch_unknown(arena, text);

            launch_warn(launch, arena, words[i].loc, unknown ?
                        "%s is not known here, and what it holds is left out" :
                        "'%s' stands before the first argument and is left out", unknown ? unknown : text);
        }
    }
}

/* package.module behind -m, where it is none that starts others. */
static bool is_module(const struct launch_word *words, size_t i)
{
    const char *text = words[i].text;

    return i > 0 && !strcmp(words[i - 1].text, "-m") && isalpha((unsigned char)*text) && strchr(text, '.') &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == strlen(text) &&
           strncmp(text, "torch.distributed.", sizeof "torch.distributed." - 1);
}

size_t launch_program(const struct launch_word *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i].text);

        if ((length > 3 && !strcmp(words[i].text + length - 3, ".py") && *words[i].text != '-') || is_module(words, i))
            return i;
    }
    return count;
}

void launch_take(struct arena *arena, const struct launch_words *words, const struct bash_command *command,
                 struct launch *launch)
{
    size_t program = launch_program(words->items, words->count);

    launch->loc = words->items[program < words->count ? program : 0].loc;
    if (program == words->count) {
        divide(arena, words->items, words->count, launch);
        return;
    }
    launch->program = words->items[program].text;
    launch_ranks(arena, words, program, command, launch);
    divide(arena, words->items + program + 1, words->count - program - 1, launch);
}

int launch_refuse_empty(const struct launch *launch, struct error *err)
{
    return error_add(err, EXIT_INPUT, (struct loc){launch->file, 1, 1}, "found no command that runs a program with "
                     "arguments (... pretrain_gpt.py --num-layers ...), no list of arguments, and no log with a line "
                     "'--- arguments ---'");
}

int launch_check_text(const char *file, const char *text, size_t length, struct error *err)
{
    struct loc loc = {file, 1, 1};

    for (size_t i = text_mark(text, length); i < length; i++) {
        if ((unsigned char)text[i] < ' ' && !strchr("\t\n\r\f\v", text[i] ? text[i] : 'x'))
            return error_add(err, EXIT_INPUT, loc, "found a control character (%d); expected a text file", text[i]);
        loc.line += text[i] == '\n';
        loc.column = text[i] == '\n' ? 1 : loc.column + 1;
    }
    return 0;
}

int launch_parse(struct arena *arena, const char *file, const char *text, size_t length, struct launch *launch,
                 struct error *err)
{
    struct launch_words words = {0};
    int rc;

    launch->file = file;
    launch->log = launch_log_is(text, length);
    if (launch->log)
        return launch_log_read(arena, text, length, launch, err);
    rc = launch_check_text(file, text, length, err) || launch_words_read(arena, file, text, length, &words, err) ? -1 : 0;
    if (!rc && !words.count)
        rc = launch_refuse_empty(launch, err);
    if (!rc)
        launch_take(arena, &words, NULL, launch);
    free(words.items);
    return rc;
}
