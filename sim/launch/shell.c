/* shell: statements, one after the other: assignments, commands, and the words of if, for and case that decide whether
 * commands run. */
#include "launch/shell_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"

/* The length of NAME= or NAME+= at the reader's place; 0: there is none. */
static size_t assignment_length(const struct shell *shell)
{
    size_t n = 0;

    while (isalnum((unsigned char)shell_peek(shell, n)) || shell_peek(shell, n) == '_')
        n++;
    if (!n || isdigit((unsigned char)shell_peek(shell, 0)))
        return 0;
    if (shell_peek(shell, n) == '+' && shell_peek(shell, n + 1) == '=')
        return n + 2;
    return shell_peek(shell, n) == '=' ? n + 1 : 0;
}

static int read_array(struct shell *shell, struct fields *fields, struct loc opened)
{
    for (shell->at++;;) {
        shell_skip_blanks(shell, true);
        if (shell_peek(shell, 0) == ')') {
            shell->at++;
            return 0;
        }
        size_t before = shell->at;

        if (shell->at >= shell->length)
            return error_add(shell->err, EXIT_INPUT, opened, "the list is never closed; expected ')'");
        if (shell_word(shell, fields, false))
            return -1;
        if (shell->at == before)
            shell->at++;
    }
}

static int read_assignment(struct shell *shell, size_t length, enum life life)
{
    struct cells name = {(struct cell *)shell->source + shell->at, length, 0};
    const char *text = shell_text(shell->arena, &name);
    bool add = text[length - 2] == '+';
    struct fields value = {0};
    int rc;

    shell->at += length;
    struct loc opened = shell_loc(shell);

    if (shell_peek(shell, 0) == '(') {
        rc = read_array(shell, &value, opened);
    } else {
        rc = shell_word(shell, &value, true);
        if (!value.count)
            *GROW(&value) = (struct cells){0};
    }
    if (!rc)
        rc = shell_assign(shell, arena_strndup(shell->arena, text, length - 1 - add), &value, add, life);
    free(value.items);
    return rc;
}

static int read_source(struct shell *shell, const struct cell *source, size_t length);

/* A script in quotes: bash -c "...", or a variable that holds a command. */
static int read_inner(struct shell *shell, const struct cells *cells, enum life life)
{
    struct shell outer = *shell;
    int rc;

    if (++shell->depth > SHELL_MAX_DEPTH)
        return error_add(shell->err, EXIT_INPUT, shell_loc(shell), "scripts in quotes are nested more than %d deep",
                         SHELL_MAX_DEPTH);
    shell->life = life;
    rc = read_source(shell, cells->items, cells->count);
    shell->source = outer.source;
    shell->at = outer.at;
    shell->length = outer.length;
    shell->depth = outer.depth;
    shell->life = outer.life;
    shell->nframes = outer.nframes;
    return rc;
}

static bool holds_script(const char *text)
{
    const char *script = strstr(text, ".py");

    return script && strpbrk(text, " \t\n") && strstr(script, " -");
}

/* Commands whose words are text. */
static bool prints(const char *command)
{
    return !strcmp(command, "echo") || !strcmp(command, "printf") || !strcmp(command, "cat");
}

/* The words of a command that is over: a test, or a command to keep. */
static int keep_command(struct shell *shell, const struct fields *fields, enum life life)
{
    struct shell_command command = {.certain = life == LIFE_SURE};
    struct frame *top = shell->nframes ? &shell->frames[shell->nframes - 1] : NULL;

    if (!fields->count)
        return 0;
    command.words = ARENA_ARRAY(shell->arena, struct shell_word, fields->count);
    for (size_t i = 0; i < fields->count; i++) {
        const struct cells *cells = &fields->items[i];
        const char *text = shell_text(shell->arena, cells);

        if (!i && prints(text))
            return 0;
        if (life != LIFE_DEAD && holds_script(text) && read_inner(shell, cells, life))
            return -1;
        if (cells->count && !holds_script(text))
            command.words[command.count++] = (struct shell_word){
                text, {shell->file, cells->items[0].line, cells->items[0].column}};
    }
    bool test = command.count > 1 && (!strcmp(command.words[0].text, "[") || !strcmp(command.words[0].text, "[["));

    shell->chain = test ? shell_test(shell, command.words + 1, command.count - 2) : LIFE_MAYBE;
    if (top && top->kind == FRAME_LOOP && command.count > 1 && !strcmp(command.words[1].text, "in"))
        return shell_assign(shell, command.words[0].text, fields, false, life);         /* for NAME in ... */
    if (top && top->condition) {
        top->tests++;
        top->result = shell->chain;
    } else if (!test && life != LIFE_DEAD && command.count) {
        *GROW(shell->commands) = command;
        shell->chain = LIFE_SURE;
    }
    return 0;
}

/* A simple command up to what ends it. */
static int read_command(struct shell *shell, enum life life)
{
    struct fields fields = {0};
    bool exports = false;
    int rc = 0;

    while (!rc) {
        shell_skip_blanks(shell, false);
        char c = shell_peek(shell, 0);
        size_t length = !fields.count || exports ? assignment_length(shell) : 0, before = shell->at, words = fields.count;

        if (shell->at >= shell->length || strchr("\n;&|()", c)) {
            if (c == '(' && fields.count == 1)           /* NAME (): a function, whose commands are read as they stand */
                fields.count = 0;
            break;
        }
        if (length)
            rc = read_assignment(shell, length, life);
        else if (c == '<' || c == '>')
            rc = shell_skip_redirection(shell);
        else
            rc = shell_word(shell, &fields, false);
        if (!rc && words == 0 && fields.count == 1 && !length) {
            const char *word = shell_text(shell->arena, &fields.items[0]);

            exports = !strcmp(word, "export") || !strcmp(word, "local") || !strcmp(word, "declare") ||
                      !strcmp(word, "readonly");
            if (shell_keyword(shell, word)) {
                fields.count = 0;
                life = shell->life;
            }
        }
        if (shell->at == before)
            shell->at++;
    }
    if (!rc && !exports)
        rc = keep_command(shell, &fields, life);
    free(fields.items);
    return rc;
}

static int read_source(struct shell *shell, const struct cell *source, size_t length)
{
    enum life next;
    int rc = 0;

    shell->source = source;
    shell->at = 0;
    shell->length = length;
    for (next = shell->life; !rc && shell->at < shell->length;) {
        shell_skip_blanks(shell, false);
        char c = shell_peek(shell, 0), d = shell_peek(shell, 1);

        if (c == '\n' && shell->heredoc) {
            shell->at++;
            rc = shell_skip_document(shell);
        } else if (c && strchr("\n;&|()", c)) {
            bool chain = (c == '&' && d == '&') || (c == '|' && d == '|');
            enum life result = c == '&' ? shell->chain : shell->chain == LIFE_MAYBE ? LIFE_MAYBE :
                               shell->chain == LIFE_SURE ? LIFE_DEAD : LIFE_SURE;

            shell->at += chain ? 2 : 1;
            next = !chain || shell->life == LIFE_DEAD ? shell->life : result == LIFE_SURE ? shell->life : result;
        } else if (shell->at < shell->length) {
            rc = read_command(shell, next < shell->life ? next : shell->life);
            next = shell->life;
        }
    }
    return rc;
}

/* The characters with their places, without carriage returns before newlines and without a byte order mark. */
static int read_cells(struct shell *shell, const char *text, size_t length, struct cells *cells)
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

int shell_read(struct arena *arena, const char *file, const char *text, size_t length, const struct shell_set *sets,
               size_t nsets, struct shell_commands *commands, struct error *err)
{
    struct shell shell = {.arena = arena, .err = err, .file = file, .commands = commands, .life = LIFE_SURE};
    struct cells cells = {0};
    int rc = read_cells(&shell, text, length, &cells);

    for (size_t i = 0; i < nsets; i++) {
        struct fields value = {0};

        *GROW(&value) = shell_cells(&shell, sets[i].value, (struct loc){0});
        shell_assign(&shell, sets[i].name, &value, false, LIFE_SURE);
        shell_variable(&shell, sets[i].name)->fixed = true;
        free(value.items);
    }
    if (!rc)
        rc = read_source(&shell, cells.items, cells.count);
    for (size_t i = 0; i < shell.nvariables; i++)
        free(shell.variables[i].value.items);
    free(shell.variables);
    return rc;
}

void shell_commands_release(struct shell_commands *commands)
{
    free(commands->items);
    *commands = (struct shell_commands){0};
}
