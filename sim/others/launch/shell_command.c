/* shell_command: simple commands: assignments, words, and what becomes of them. */
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

/* `own`: the variable is the function's. *named: its name. */
static int read_assignment(struct shell *shell, size_t length, enum life life, bool own, const char **named)
{
    struct shell_cells part = {(struct cell *)shell->source + shell->at, length, 0};
    const char *text = shell_text(shell->arena, &part), *name;
    bool add = text[length - 2] == '+';
    struct fields value = {0};
    int rc;

    name = *named = arena_strndup(shell->arena, text, length - 1 - add);
    size_t begin = shell->at;

    shell->at += length;
    struct loc opened = shell_loc(shell);

    if (shell_peek(shell, 0) == '(') {
        rc = read_array(shell, &value, opened);
    } else {
        rc = shell_word(shell, &value, true);
        if (!value.count)
            *GROW(&value) = (struct shell_cells){0};
    }
    if (own)
        shell_local(shell, name);
    if (!rc)
        rc = shell_assign(shell, name, &value, add, life);
    if (text_same(name, "IFS") || (shell_variable(shell, name) && shell_variable(shell, name)->odd))
        shell_doubt(shell, begin, NULL, life);               /* how words are split; what a reference refers to */
    free(value.items);
    return rc;
}

static bool holds_script(const char *text)
{
    const char *script = strstr(text, ".py");

    return script && strpbrk(text, " \t\n") && strstr(script, " -");
}

/* bash -c "...": another shell, which has what is exported alone. The commands know the words that run it. */
static int read_quoted(struct shell *shell, const struct shell_cells *cells, size_t begin, const struct shell_command *command,
                       enum life life)
{
    size_t first = shell->commands->count, snapshots = shell->undo.count;
    enum life reach = shell->reach;
    int rc;

    shell_doubt(shell, begin, NULL, life);
    rc = shell->inner(shell, cells->items, cells->count, life);
    shell_undo(shell, snapshots);
    shell->reach = reach;
    for (; first < shell->commands->count; first++)
        if (!shell->commands->items[first].outer) {
            shell->commands->items[first].outer = command->words;
            shell->commands->items[first].nouter = command->count;
        }
    return rc;
}

/* A command of another program: its words, and scripts among them. */
static int keep_other(struct shell *shell, const struct fields *fields, size_t begin, enum life life)
{
    struct shell_command command = {.certain = life >= LIFE_LIKELY};
    struct frame *top = shell_top(shell);

    command.words = ARENA_ARRAY(shell->arena, struct shell_word, fields->count);
    for (size_t i = 0; i < fields->count; i++) {
        const struct shell_cells *cells = &fields->items[i];
        const char *text = shell_text(shell->arena, cells);

        if (cells->count && !holds_script(text))
            command.words[command.count++] = (struct shell_word){
                text, {shell->file, cells->items[0].line, cells->items[0].column}};
        else if (cells->count && life != LIFE_DEAD && read_quoted(shell, cells, begin, &command, life))
            return -1;
    }
    if (life != LIFE_DEAD && command.count && !(top && top->condition))
        *GROW(shell->commands) = command;
    return 0;
}

/* Commands whose words are text. */
static bool prints(const char *command)
{
    return !strcmp(command, "echo") || !strcmp(command, "printf") || !strcmp(command, "cat");
}

/* The words of a command that is over: a command of the shell's own, a function, or a command to keep. `before`:
 * assignments stand before it. */
static int keep_command(struct shell *shell, const struct fields *fields, size_t begin, bool before)
{
    enum life status = LIFE_LIKELY, life = shell->now;
    const char *name;
    int rc;

    name = shell_text(shell->arena, &fields->items[0]);
    if (shell->loop_name || shell->case_word) {
        if (shell->loop_name)
            shell_spoil(shell, name, life);
        shell->loop_name = shell->case_word = false;
        return 0;
    }
    rc = shell_builtin(shell, fields, begin, life, &status);
    if (!rc)
        rc = shell_call(shell, fields, begin, before, &status);
    if (!rc && !prints(name))
        rc = keep_other(shell, fields, begin, life);
    shell_succeeded(shell, status);
    return rc < 0 ? -1 : 0;
}

/* What stands between [[ and ]] is one command, whatever its signs. */
static int read_test(struct shell *shell, struct fields *fields)
{
    static const char signs[] = "&|()<>;";
    int rc = 0;

    while (!rc && shell->at < shell->length) {
        size_t before = shell->at;

        shell_skip_blanks(shell, true);
        if (shell_peek(shell, 0) && strchr(signs, shell_peek(shell, 0))) {
            struct shell_cells sign = {0};

            do
                rc = shell_push(shell, &sign, shell->source[shell->at++]);
            while (!rc && sign.items[0].c != '(' && sign.items[0].c != ')' && shell_peek(shell, 0) == sign.items[0].c);
            *GROW(fields) = sign;
        } else {
            size_t words = fields->count;

            rc = shell_word(shell, fields, true);
            if (!rc && words == fields->count && shell->at > before)
                *GROW(fields) = (struct shell_cells){0};           /* an empty word stays one */
            else if (!rc && words < fields->count && text_same(shell_text(shell->arena, &fields->items[words]), "]]"))
                return 0;
        }
        if (shell->at == before)
            shell->at++;
    }
    return rc;
}

/* export, declare, local, ...: how the assignments behind the word are to be read. */
struct declaring { bool on, own, outside, odd, fixed; };

static void declare_word(struct shell *shell, const char *word, bool first, struct declaring *declaring)
{
    bool declare = !strcmp(word, "declare") || !strcmp(word, "typeset"), local = !strcmp(word, "local");

    if (first) {
        declaring->on = declare || local || !strcmp(word, "export") || !strcmp(word, "readonly");
        declaring->own = (declare || local) && shell->inside;
        declaring->outside = local && !shell->inside;
        declaring->fixed = !strcmp(word, "readonly");
    } else if (*word == '-' || *word == '+') {
        declaring->odd |= strpbrk(word, "ilunA") != NULL;
        declaring->own &= !strchr(word, 'g');
        declaring->fixed |= *word == '-' && strchr(word, 'r');
    }
}

/* A simple command while it is read. */
struct command {
    struct fields fields;
    struct declaring declaring;
    size_t begin, snapshots;             /* where it begins, and how many snapshots there were */
    bool set, before;                    /* it has assignments; words stand behind them */
};

/* One assignment of a command: before its words, or behind export. */
static int read_setting(struct shell *shell, size_t length, struct command *command)
{
    const struct declaring *declaring = &command->declaring;
    enum life life = declaring->outside ? LIFE_DEAD : shell->now;
    const char *name;

    if (read_assignment(shell, length, life, declaring->own && life != LIFE_DEAD, &name))
        return -1;
    if (declaring->odd && life != LIFE_DEAD) {
        shell_doubt(shell, command->begin, name, life);
        shell_doubt(shell, command->begin, NULL, life);
        shell_make(shell, name)->odd = true;
    }
    if (declaring->fixed && life == LIFE_SURE && shell_variable(shell, name))
        shell_variable(shell, name)->fixed = true;
    command->set = true;
    return 0;
}

static int read_words(struct shell *shell, struct command *command)
{
    size_t words = command->fields.count;

    if (!words && command->set) {                            /* NAME=VALUE COMMAND: for the command alone */
        shell_undo(shell, command->snapshots);
        command->before = true;
    }
    if (shell_word(shell, &command->fields, false))
        return -1;
    for (size_t i = words; i < command->fields.count; i++) {
        const char *word = shell_text(shell->arena, &command->fields.items[i]);

        if (!i && !strcmp(word, "[["))
            return read_test(shell, &command->fields);
        declare_word(shell, word, !i, &command->declaring);
    }
    return 0;
}

/* 2>file, <file, &>file: the length of the digits before the sign; -1: it is none. */
static int redirection(const struct shell *shell)
{
    int digits = 0;

    while (isdigit((unsigned char)shell_peek(shell, (size_t)digits)))
        digits++;
    char c = shell_peek(shell, (size_t)digits);

    return c == '<' || c == '>' || (!digits && c == '&' && shell_peek(shell, 1) == '>') ? digits : -1;
}

static int end_command(struct shell *shell, struct command *command)
{
    const struct frame *top = shell_top(shell);
    char c = shell_peek(shell, 0);

    if (c == '(' && command->fields.count == 1 && !command->set)
        return shell_function(shell, shell_text(shell->arena, &command->fields.items[0]), command->begin);
    if (c == ')' && top && top->kind == FRAME_CASE) {        /* a pattern */
        shell->case_word = false;
        shell_end_list(shell);
        return 0;
    }
    if (command->declaring.on)
        return shell_declared(shell, &command->fields, command->begin, shell->now);
    if (command->fields.count)
        return keep_command(shell, &command->fields, command->begin, command->before);
    if (command->set)
        shell_succeeded(shell, LIFE_SURE);
    return 0;
}

int shell_simple(struct shell *shell)
{
    struct command command = {.begin = shell->at, .snapshots = shell->undo.count};
    int rc = 0;

    while (!rc) {
        shell_skip_blanks(shell, false);
        size_t at = shell->at, length = !command.fields.count || command.declaring.on ? assignment_length(shell) : 0;
        int digits = redirection(shell);

        if (digits >= 0) {
            shell->at += (size_t)digits;
            rc = shell_skip_redirection(shell);
        } else if (at >= shell->length || strchr("\n;&|()", shell_peek(shell, 0))) {
            rc = end_command(shell, &command);
            break;
        } else {
            rc = length ? read_setting(shell, length, &command) : read_words(shell, &command);
        }
        if (shell->at == at)
            shell->at++;
    }
    free(command.fields.items);
    return rc;
}
