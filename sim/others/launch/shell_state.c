/* shell_state: where the reader is, the characters that it copies, the variables that it knows. */
#include "launch/shell_internal.h"

#include <ctype.h>
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

int shell_push(struct shell *shell, struct shell_cells *cells, struct cell cell)
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

const char *shell_text(struct arena *arena, const struct shell_cells *cells)
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

bool shell_is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return length && !isdigit((unsigned char)*text);
}

static struct variable *find(struct shell *shell, const char *name)
{
    for (size_t i = 0; i < shell->nvariables; i++)
        if (text_same(shell->variables[i].name, name))
            return &shell->variables[i];
    return NULL;
}

/* $1, $2, ...: an item of "@". */
static struct variable *argument(struct shell *shell, const char *name)
{
    const struct variable *all = find(shell, "@");
    size_t index = (size_t)strtoul(name, NULL, 10);

    if (!all || !all->present || index < 1)
        return NULL;
    for (size_t i = 0; i < index && i < all->value.count; i++)   /* what is not known may be several */
        if (all->value.items[i].count && all->value.items[i].items[0].c == MARK_BEGIN)
            index = i + 1;
    if (index > all->value.count)
        return NULL;
    shell->argument = *all;
    shell->argument.value.items = &all->value.items[index - 1];
    shell->argument.value.count = 1;
    return &shell->argument;
}

/* $#: how many arguments there are. */
static struct variable *arguments(struct shell *shell)
{
    const struct variable *all = find(shell, "@");
    struct shell_cells *count;

    if (!all || !all->present)
        return NULL;
    count = arena_alloc(shell->arena, sizeof *count);
    *count = shell_cells(shell, arena_printf(shell->arena, "%zu", all->value.count), shell_loc(shell));
    shell->argument = *all;
    shell->argument.value.items = count;
    shell->argument.value.count = 1;
    return &shell->argument;
}

struct variable *shell_variable(struct shell *shell, const char *name)
{
    struct variable *variable = isdigit((unsigned char)*name) ? argument(shell, name) :
                                text_same(name, "#") ? arguments(shell) : find(shell, text_same(name, "*") ? "@" : name);

    return variable && variable->present ? variable : NULL;
}

struct shell_cells shell_cells(struct shell *shell, const char *text, struct loc loc)
{
    struct shell_cells cells = {0};

    for (; *text; text++)
        shell_push(shell, &cells, (struct cell){*text, loc.line, loc.column});
    return cells;
}

struct variable *shell_make(struct shell *shell, const char *name)
{
    struct variable *variable = find(shell, name);

    if (variable)
        return variable;
    if (shell->nvariables == shell->capacity) {
        shell->capacity = shell->capacity ? 2 * shell->capacity : 16;
        shell->variables = xrealloc(shell->variables, shell->capacity, sizeof *shell->variables);
    }
    variable = &shell->variables[shell->nvariables++];
    *variable = (struct variable){.name = name};
    return variable;
}

static int remember(struct shell *shell, size_t variable, struct snapshots *snapshots)
{
    struct snapshot *snapshot = GROW(snapshots);
    const struct fields *value = &shell->variables[variable].value;

    *snapshot = (struct snapshot){variable, shell->variables[variable]};
    snapshot->was.value.items = ARENA_ARRAY(shell->arena, struct shell_cells, value->count + 1);
    if (value->count)
        memcpy(snapshot->was.value.items, value->items, value->count * sizeof *value->items);
    shell->cells += value->count;
    if (shell->cells > SHELL_MAX_CELLS)
        return error_add(shell->err, EXIT_INPUT, shell_loc(shell), "variables expand to more than %d characters",
                         SHELL_MAX_CELLS);
    return 0;
}

int shell_remember(struct shell *shell, size_t variable)
{
    return remember(shell, variable, &shell->undo);
}

static void give_back(struct shell *shell, const struct snapshot *snapshot)
{
    struct variable *variable = &shell->variables[snapshot->variable];
    struct fields value = variable->value;

    value.count = 0;
    *variable = snapshot->was;
    variable->value = value;
    for (size_t i = 0; i < snapshot->was.value.count; i++)
        *GROW(&variable->value) = snapshot->was.value.items[i];
}

void shell_undo(struct shell *shell, size_t count)
{
    while (shell->undo.count > count)
        give_back(shell, &shell->undo.items[--shell->undo.count]);
}

void shell_local(struct shell *shell, const char *name)
{
    remember(shell, (size_t)(shell_make(shell, name) - shell->variables), &shell->locals);
}

void shell_end_locals(struct shell *shell, size_t count)
{
    while (shell->locals.count > count) {
        const struct snapshot *local = &shell->locals.items[--shell->locals.count];

        remember(shell, local->variable, &shell->undo);
        give_back(shell, local);
    }
}

static bool is_mark(const struct fields *value)
{
    return value->count == 1 && value->items[0].count && value->items[0].items[0].c == MARK_BEGIN;
}

/* Adds a text to the end of the value. */
static int append(struct shell *shell, struct shell_cells *to, const struct shell_cells *value)
{
    struct shell_cells joined = {0};

    for (int part = 0; part < 2; part++) {
        const struct shell_cells *from = part ? value : to;

        for (size_t i = 0; i < from->count; i++)
            if (shell_push(shell, &joined, from->items[i]))
                return -1;
    }
    *to = joined;
    return 0;
}

int shell_assign(struct shell *shell, const char *name, const struct fields *value, bool add, enum life life)
{
    struct variable *variable = find(shell, name);

    if (life == LIFE_DEAD || (variable && variable->fixed))
        return 0;
    if (life < LIFE_SURE || (variable && variable->odd && !is_mark(value))) {
        shell_spoil(shell, name, life);
        return 0;
    }
    variable = shell_make(shell, name);
    if (shell_remember(shell, (size_t)(variable - shell->variables)))
        return -1;
    add &= variable->present;
    variable->present = true;
    if (!add) {
        variable->value.count = 0;
        variable->doubt = 0;
        variable->since = shell->commands->doubts.count;
    }
    if (add && variable->value.count == 1 && value->whole && value->count)
        return append(shell, &variable->value.items[0], &value->items[0]);
    for (size_t i = 0; i < value->count; i++)
        *GROW(&variable->value) = value->items[i];
    return 0;
}

void shell_spoil(struct shell *shell, const char *name, enum life life)
{
    struct fields mark = {0};
    const struct variable *variable = find(shell, name);

    if (life == LIFE_DEAD || (variable && variable->fixed))
        return;
    *GROW(&mark) = shell_cells(shell, arena_printf(shell->arena, "%c%s%c", MARK_BEGIN, name, MARK_END), shell_loc(shell));
    shell_assign(shell, name, &mark, false, LIFE_SURE);
    free(mark.items);
}

int shell_unset(struct shell *shell, const char *name, enum life life)
{
    struct variable *variable = find(shell, name);

    if (!variable || life == LIFE_DEAD || variable->fixed)
        return 0;
    if (life < LIFE_SURE) {
        shell_spoil(shell, name, life);
        return 0;
    }
    if (shell_remember(shell, (size_t)(variable - shell->variables)))
        return -1;
    variable->present = false;
    variable->since = shell->commands->doubts.count;
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
