/* Whatever a script makes its sandbox write: records of commands, parted by lines. No crash, no leak; a record that is taken has a
 * kind, a place in a file, an earlier record as its outer one, and its own words; and the marks in these are told. */
#include <stdlib.h>
#include <string.h>

#include "launch/bash_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct arena *arena, const struct bash_command *command, const struct bash_commands *earlier)
{
    bool known = !command->outer;

    for (size_t i = 0; i < earlier->count; i++)
        known |= earlier->items[i] == command->outer;
    BUG_IF(!known || command->kind > BASH_HEADER || !command->loc.file || command->loc.line < 1 || !command->count);
    for (size_t i = 0; i < command->count; i++) {
        const char *word = command->words[i].text, *unknown = launch_unknown(arena, word);

        BUG_IF((unknown && !strchr(word, MARK_BEGIN)) || command->words[i].loc.line != command->loc.line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    const struct bash_script script = {.file = "fuzz.sh", .text = ""};
    const struct bash_reader reader = {.script = &script, .arena = &arena, .path = "/fuzz.sh"};
    struct bash_commands commands = {0};
    const char *at = (const char *)data, *end = at + size, *stop;

    for (; at < end; at = stop + 1) {
        const char *name = arena_printf(&arena, "%zu", commands.count);
        struct bash_command *command;
        char *text;

        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        text = memcpy(xcalloc((size_t)(stop - at) + 1, 1), at, (size_t)(stop - at));
        command = bash_record(&reader, name, text, (size_t)(stop - at), &commands);
        free(text);
        if (!command)
            continue;
        check(&arena, command, &commands);
        *GROW(&commands) = command;
    }
    bash_commands_release(&commands);
    arena_release(&arena);
    return 0;
}
