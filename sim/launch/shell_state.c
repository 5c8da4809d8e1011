/* shell_state: where the reader is, the characters that it copies, the variables that it knows. */
#include "launch/shell_internal.h"

#include <stdlib.h>

#include "base/base.h"

struct loc shell_loc(const struct shell *shell)
{
    size_t at = shell->at < shell->length ? shell->at : shell->length ? shell->length - 1 : 0;

    return shell->length ? (struct loc){shell->file, shell->source[at].line, shell->source[at].column} :
           (struct loc){shell->file, 1, 1};
}

char shell_peek(const struct shell *shell, size_t ahead)
{
    return shell->at + ahead < shell->length ? shell->source[shell->at + ahead].c : 0;
}

int shell_push(struct shell *shell, struct cells *cells, struct cell cell)
{
    if (++shell->cells > SHELL_MAX_CELLS)
        return error_add(shell->err, EXIT_INPUT, (struct loc){shell->file, cell.line, cell.column},
                         "variables expand to more than %d characters", SHELL_MAX_CELLS);
    if (cells->count == cells->capacity) {
        struct cell *old = cells->items;

        cells->capacity = cells->capacity ? 2 * cells->capacity : 16;
        cells->items = ARENA_ARRAY(shell->arena, struct cell, cells->capacity);
        if (cells->count)
            memcpy(cells->items, old, cells->count * sizeof *old);
    }
    cells->items[cells->count++] = cell;
    return 0;
}

const char *shell_text(struct arena *arena, const struct cells *cells)
{
    char *text = arena_alloc(arena, cells->count + 1);

    for (size_t i = 0; i < cells->count; i++)
        text[i] = cells->items[i].c;
    return text;
}

const char *shell_unknown(struct arena *arena, const char *text)
{
    const char *begin = strchr(text, MARK_BEGIN), *end = begin ? strchr(begin, MARK_END) : NULL;

    return end ? arena_strndup(arena, begin + 1, (size_t)(end - begin - 1)) : NULL;
}

struct variable *shell_variable(struct shell *shell, const char *name)
{
    for (size_t i = 0; i < shell->nvariables; i++)
        if (text_same(shell->variables[i].name, name))
            return &shell->variables[i];
    return NULL;
}

struct cells shell_cells(struct shell *shell, const char *text, struct loc loc)
{
    struct cells cells = {0};

    for (; *text; text++)
        shell_push(shell, &cells, (struct cell){*text, loc.line, loc.column});
    return cells;
}

int shell_assign(struct shell *shell, const char *name, const struct fields *value, bool add, enum life life)
{
    struct variable *variable = shell_variable(shell, name);
    struct fields mark = {0};

    if (life == LIFE_DEAD || (variable && variable->fixed))
        return 0;
    if (life == LIFE_MAYBE) {
        *GROW(&mark) = shell_cells(shell, arena_printf(shell->arena, "%c%s%c", MARK_BEGIN, name, MARK_END),
                                shell_loc(shell));
        value = &mark;
        add = false;
    }
    if (!variable) {
        if (shell->nvariables == shell->capacity) {
            shell->capacity = shell->capacity ? 2 * shell->capacity : 16;
            shell->variables = xrealloc(shell->variables, shell->capacity, sizeof *shell->variables);
        }
        variable = &shell->variables[shell->nvariables++];
        *variable = (struct variable){.name = name};
    }
    if (!add)
        variable->value.count = 0;
    if (add && variable->value.count == 1 && value->whole && value->count) {
        struct cells joined = {0};

        for (int part = 0; part < 2; part++) {
            const struct cells *from = part ? &value->items[0] : &variable->value.items[0];

            for (size_t i = 0; i < from->count; i++)
                if (shell_push(shell, &joined, from->items[i]))
                    return -1;
        }
        variable->value.items[0] = joined;
    } else {
        for (size_t i = 0; i < value->count; i++)
            *GROW(&variable->value) = value->items[i];
    }
    free(mark.items);
    return 0;
}

void shell_skip_blanks(struct shell *shell, bool lines)
{
    for (;;) {
        char c = shell_peek(shell, 0);

        if (c == ' ' || c == '\t' || (lines && c == '\n'))
            shell->at++;
        else if (c == '\\' && shell_peek(shell, 1) == '\n')
            shell->at += 2;
        else if (c == '#')
            while (shell->at < shell->length && shell_peek(shell, 0) != '\n')
                shell->at++;
        else
            return;
    }
}
