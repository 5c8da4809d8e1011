/* shell: statements, one after the other: lists of commands, and the blocks around them. */
#include "launch/shell_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

static int read_source(struct shell *shell, const struct cell *source, size_t length);

static int read_inner(struct shell *shell, const struct cell *items, size_t count, enum life life)
{
    struct shell outer = *shell;
    int rc;

    if (++shell->depth > SHELL_MAX_DEPTH)
        return error_add(shell->err, EXIT_INPUT, shell_loc(shell), "scripts in quotes and calls are nested more than %d deep",
                         SHELL_MAX_DEPTH);
    shell->life = life;
    shell->base = shell->nframes;
    shell->heredoc = NULL;
    rc = read_source(shell, items, count);
    shell->source = outer.source;
    shell->at = outer.at;
    shell->length = outer.length;
    shell->depth = outer.depth;
    shell->life = outer.life;
    shell->now = outer.now;
    shell->nframes = outer.nframes;
    shell->base = outer.base;
    shell->list = outer.list;
    shell->heredoc = outer.heredoc;
    return rc;
}

/* (( )): names that it sets are in doubt. */
static int read_arithmetic(struct shell *shell)
{
    size_t begin = shell->at;
    int depth = 0;

    for (; shell->at < shell->length; shell->at++) {
        char c = shell_peek(shell, 0);

        depth += (c == '(') - (c == ')');
        if (!depth)
            break;
    }
    shell->at += shell->at < shell->length;
    shell_doubt_arithmetic(shell, begin, shell_text(shell->arena, &(struct shell_cells){
        (struct cell *)shell->source + begin, shell->at - begin, 0}), shell->now);
    shell->loop_name = false;
    shell_succeeded(shell, LIFE_MAYBE);
    return 0;
}

/* A reserved word at the place of a command; NULL: there is none. */
static const char *reserved(struct shell *shell)
{
    char word[16];
    size_t n = 0;

    while (n + 1 < sizeof word && shell_peek(shell, n) && !isspace((unsigned char)shell_peek(shell, n)) &&
           !strchr(";&|()<>", shell_peek(shell, n))) {
        word[n] = shell_peek(shell, n);
        n++;
    }
    word[n] = '\0';
    return n ? arena_strdup(shell->arena, word) : NULL;
}

/* function NAME ... */
static int read_function(struct shell *shell, size_t begin)
{
    struct fields name = {0};
    int rc;

    shell_skip_blanks(shell, false);
    rc = shell_word(shell, &name, true);
    if (!rc && name.count)
        rc = shell_function(shell, shell_text(shell->arena, &name.items[0]), begin);
    free(name.items);
    return rc;
}

/* Of the command that begins. */
static void set_life(struct shell *shell)
{
    shell->now = shell->list.life < shell->reach ? shell->list.life : shell->reach;
}

static int read_statement(struct shell *shell)
{
    const char *word = reserved(shell);
    size_t begin = shell->at;
    bool is = false;

    set_life(shell);
    if (!word)
        return shell_simple(shell);
    if (!strcmp(word, "function")) {
        shell->at += strlen(word);
        return read_function(shell, begin);
    }
    shell->at += strlen(word);
    if (shell_keyword(shell, word, &is) || is)
        return shell->err->count ? -1 : 0;
    shell->at = begin;
    return shell_simple(shell);
}

/* ( and ), where no word and no list of values holds them. */
static int read_bracket(struct shell *shell)
{
    const struct frame *top = shell_top(shell);
    size_t snapshots = top ? top->snapshots : 0;
    enum life reach = top ? top->reach : shell->reach;
    bool ended = top && top->ended;

    set_life(shell);
    if (shell_peek(shell, 0) == '(' && shell_peek(shell, 1) == '(')
        return read_arithmetic(shell);
    if (shell_peek(shell, 0) == '(') {
        shell->at++;
        return shell_open(shell, FRAME_SUBSHELL);
    }
    shell->at++;
    if (!top || (top->kind != FRAME_SUBSHELL && (top->kind != FRAME_FUNCTION || top->close != ')')))
        return 0;
    shell_end_list(shell);
    if (top->kind == FRAME_FUNCTION)
        shell_end_function(shell);
    shell_undo(shell, snapshots);
    shell_close(shell, shell->last);
    shell->reach = reach;
    shell->ended = ended;
    return 0;
}

/* What ends a command. */
static int read_separator(struct shell *shell)
{
    char c = shell_peek(shell, 0), d = shell_peek(shell, 1);

    if (c == '(' || c == ')')
        return read_bracket(shell);
    shell->at++;
    if (c == '\n' && shell->heredoc) {
        shell_end_list(shell);
        return shell_skip_document(shell);
    }
    if ((c == '&' || c == '|') && d == c) {
        shell->at++;
        shell_join(shell, c == '&' ? JOINT_AND : JOINT_OR);
        shell_skip_blanks(shell, !shell->heredoc);
        return 0;
    }
    if (c == '|') {                                          /* each command of a pipe runs in a subshell */
        shell->at += d == '&';
        shell_undo(shell, shell->list.element);
        shell->list.piped = true;
        shell_skip_blanks(shell, !shell->heredoc);
        return 0;
    }
    if (c == '&')
        shell_undo(shell, shell->list.begin);
    shell_end_list(shell);
    return 0;
}

static int read_source(struct shell *shell, const struct cell *source, size_t length)
{
    int rc = 0;

    shell->source = source;
    shell->at = 0;
    shell->length = length;
    shell->list = (struct chain){.life = shell->life, .before = LIFE_SURE, .status = LIFE_SURE,
                                .begin = shell->undo.count, .element = shell->undo.count};
    while (!rc && shell->at < shell->length) {
        shell_skip_blanks(shell, false);
        if (shell->at < shell->length)
            rc = strchr("\n;&|()", shell_peek(shell, 0)) ? read_separator(shell) : read_statement(shell);
    }
    if (!rc)
        shell_end_list(shell);
    return rc;
}

/* The characters with their places, without carriage returns before newlines and without a byte order mark. */
static int read_cells(struct shell *shell, const char *text, size_t length, struct shell_cells *cells)
{
    int line = 1, column = 1;

    for (size_t i = text_mark(text, length); i < length; i++) {
        char c = text[i];

        if (c == '\r' && i + 1 < length && text[i + 1] == '\n')
            continue;
        if ((unsigned char)c < ' ' && !strchr("\t\n\r\f\v", c ? c : 'x'))
            return error_add(shell->err, EXIT_INPUT, (struct loc){shell->file, line, column},
                             "found a control character (%d); expected a text file", c);
        if (shell_push(shell, cells, (struct cell){c, line, column}))
            return -1;
        line += c == '\n';
        column = c == '\n' ? 1 : column + 1;
    }
    return 0;
}

static void set_variable(struct shell *shell, const struct shell_set *set, struct loc loc)
{
    struct fields value = {0};

    *GROW(&value) = shell_cells(shell, set->value, loc);
    shell_assign(shell, set->name, &value, false, LIFE_SURE);
    free(value.items);
}

int shell_read(struct arena *arena, const struct shell_script *script, struct shell_commands *commands, struct error *err)
{
    struct shell shell = {.arena = arena, .err = err, .file = script->file, .commands = commands, .life = LIFE_SURE,
                          .reach = LIFE_SURE, .inner = read_inner, .now = LIFE_SURE, .last = LIFE_SURE};
    struct shell_cells cells = {0};
    int mistakes = err->count, rc = read_cells(&shell, script->text, script->length, &cells);

    for (size_t i = 0; i < script->ngiven; i++)
        set_variable(&shell, &script->given[i].set, script->given[i].loc);
    for (size_t i = 0; i < script->nsets; i++) {
        set_variable(&shell, &script->sets[i], (struct loc){0});
        shell_variable(&shell, script->sets[i].name)->fixed = true;
    }
    if (!rc)
        rc = read_source(&shell, cells.items, cells.count);
    for (size_t i = 0; i < shell.nvariables; i++)
        free(shell.variables[i].value.items);
    free(shell.variables);
    free(shell.undo.items);
    free(shell.locals.items);
    free(shell.functions.items);
    return rc || err->count > mistakes ? -1 : 0;
}

void shell_commands_release(struct shell_commands *commands)
{
    free(commands->items);
    free(commands->doubts.items);
    *commands = (struct shell_commands){0};
}
