/* shell_doubt: what a statement that is not evaluated leaves in doubt. */
#include "launch/shell_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

enum { MOST_NAMES = 400 };               /* characters of the names of a doubt */

void shell_doubt(struct shell *shell, size_t begin, const char *name, enum life life)
{
    struct shell_doubts *doubts = &shell->commands->doubts;
    struct shell_cells part = {(struct cell *)shell->source + begin, shell->at - begin, 0};
    const struct cell *first = &shell->source[begin < shell->length ? begin : shell->length - 1];
    char shown[CLIP_SIZE];

    if (life == LIFE_DEAD || !shell->length)
        return;
    if (doubts->count == SHELL_MAX_DOUBTS) {
        error_add(shell->err, EXIT_INPUT, shell_loc(shell), "more than %d statements are not evaluated", SHELL_MAX_DOUBTS);
        return;
    }
    *GROW(doubts) = (struct shell_doubt){
        .loc = {shell->file, first->line, first->column}, .names = "", .any = !name,
        .what = arena_strdup(shell->arena, text_clip(shell_text(shell->arena, &part), shown, sizeof shown))};
    if (!name)
        return;
    shell_spoil(shell, name, life);
    for (size_t i = 0; i < shell->nvariables; i++)
        if (text_same(shell->variables[i].name, name) && !shell->variables[i].fixed)
            shell->variables[i].doubt = doubts->count;
}

static bool holds(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = names; (at = strstr(at, name)); at++)
        if ((at == names || at[-1] == ' ') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

static void tell(struct shell *shell, struct shell_doubt *doubt, const char *name)
{
    if (!holds(doubt->names, name) && strlen(doubt->names) < MOST_NAMES)
        doubt->names = arena_printf(shell->arena, "%s%s%s", doubt->names, *doubt->names ? ", " : "", name);
}

void shell_used(struct shell *shell, const char *name, const struct variable *variable)
{
    struct shell_doubts *doubts = &shell->commands->doubts;

    if (shell->now == LIFE_DEAD || (variable && variable->fixed) || !shell_is_name(name, strlen(name)))
        return;
    if (variable && variable->doubt)
        tell(shell, &doubts->items[variable->doubt - 1], name);
    for (size_t i = variable ? variable->since : 0; i < doubts->count; i++)
        if (doubts->items[i].any)
            tell(shell, &doubts->items[i], name);
}

/* Names before =, +=, ++, ... or behind ++ and --. */
void shell_doubt_arithmetic(struct shell *shell, size_t begin, const char *text, enum life life)
{
    for (const char *at = text; *at;) {
        size_t length = 0, sign;
        const char *end;

        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
        if (!length) {
            at++;
            continue;
        }
        end = at + length + strspn(at + length, " \t");
        sign = strspn(end, "+-*/%&|^<>");
        if (shell_is_name(at, length) &&
            ((end[sign] == '=' && end[sign + 1] != '=' && !(sign == 1 && strchr("<>", *end))) ||
             !strncmp(end, "++", 2) || !strncmp(end, "--", 2) ||
             (at - text >= 2 && (!strncmp(at - 2, "++", 2) || !strncmp(at - 2, "--", 2)))))
            shell_doubt(shell, begin, arena_strndup(shell->arena, at, length), life);
        at += length;
    }
}
