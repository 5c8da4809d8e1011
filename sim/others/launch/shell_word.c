/* shell_word: words, quotes and expansions. */
#include "launch/shell_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/field.h"

static void open_field(struct fields *fields)
{
    if (!fields->open)
        *GROW(fields) = (struct shell_cells){0};
    fields->open = true;
}

static int put_cell(struct shell *shell, struct fields *fields, struct cell cell)
{
    open_field(fields);
    return shell_push(shell, &fields->items[fields->count - 1], cell);
}

/* One character of an expansion: where it is not quoted a blank ends the field. */
static int put_expanded(struct shell *shell, struct fields *fields, struct cell cell, bool quoted)
{
    if (!quoted && isspace((unsigned char)cell.c)) {
        fields->open = false;
        return 0;
    }
    return put_cell(shell, fields, cell);
}

static int put_text(struct shell *shell, struct fields *fields, const char *text, struct cell place, bool quoted)
{
    for (int rc = 0; *text && !rc; text++) {
        place.c = *text;
        rc = put_expanded(shell, fields, place, quoted);
        if (rc)
            return rc;
    }
    return 0;
}

static int put_unknown(struct shell *shell, struct fields *fields, const char *name, struct cell place)
{
    return put_text(shell, fields, arena_printf(shell->arena, "%c%s%c", MARK_BEGIN, name, MARK_END), place, true);
}

/* [first, end) of the source, for names of what is not known. */
static const char *source_text(struct shell *shell, size_t first, size_t end)
{
    struct shell_cells part = {(struct cell *)shell->source + first, end - first, 0};
    const char *text = shell_text(shell->arena, &part);
    char shown[CLIP_SIZE];

    return arena_strdup(shell->arena, text_clip(text, shown, sizeof shown));
}

/* Goes behind the bracket that closes the one just read; quotes and nested brackets are skipped. */
static int skip_brackets(struct shell *shell, char open, char close, struct loc opened)
{
    char quote = 0;

    for (int depth = 1; shell->at < shell->length; shell->at++) {
        char c = shell_peek(shell, 0);

        if (c == '\\' && quote != '\'')
            shell->at++;
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == open)
            depth++;
        else if (c == close && --depth == 0) {
            shell->at++;
            return 0;
        }
    }
    shell->at = shell->length;
    return error_add(shell->err, EXIT_INPUT, opened, "'%c' is never closed; expected '%c'", open, close);
}

static int put_variable(struct shell *shell, struct fields *fields, const struct variable *variable, bool quoted,
                        bool all)
{
    const struct fields *value = &variable->value;
    int rc = 0;

    for (size_t i = 0; i < value->count && (all || i < 1) && !rc; i++) {
        if (i && fields->whole)
            rc = put_cell(shell, fields, (struct cell){' ', shell_loc(shell).line, shell_loc(shell).column});
        else if (i)
            fields->open = false;
        for (size_t c = 0; c < value->items[i].count && !rc; c++)
            rc = put_expanded(shell, fields, value->items[i].items[c], quoted);
    }
    return rc;
}

static bool name_char(char c, bool first)
{
    return isalpha((unsigned char)c) || c == '_' || (!first && isdigit((unsigned char)c));
}

static const char *read_name(struct shell *shell)
{
    size_t first = shell->at;

    if (isdigit((unsigned char)shell_peek(shell, 0)) || (shell_peek(shell, 0) && strchr("@*#?$!-", shell_peek(shell, 0))))
        shell->at++;
    else
        while (name_char(shell_peek(shell, 0), shell->at == first))
            shell->at++;
    return source_text(shell, first, shell->at);
}

static int put_named(struct shell *shell, struct fields *fields, const char *name, struct cell place, bool quoted,
                     bool all)
{
    const struct variable *variable = shell_variable(shell, name);

    shell_used(shell, name, variable);
    if (variable)
        return put_variable(shell, fields, variable, quoted, all || *name == '@' || *name == '*');
    return put_unknown(shell, fields, name_char(*name, true) ? name : arena_printf(shell->arena, "$%s", name), place);
}

static bool is_empty(const struct variable *variable)
{
    return variable->value.count == 0 || (variable->value.count == 1 && variable->value.items[0].count == 0);
}

/* Variables that the shell itself sets, or the login. */
static bool is_given(const char *name)
{
    return word_in("BASH BASHPID BASH_SOURCE BASH_VERSION EPOCHSECONDS EUID FUNCNAME GROUPS HOME HOSTNAME HOSTTYPE IFS LINENO "
                   "MACHTYPE OLDPWD OSTYPE PATH PPID PWD RANDOM SECONDS SHELL SHLVL UID USER", name);
}

/* What stands between the operator of ${NAME:-DEFAULT} and its bracket: expanded, then added or thrown away. name: the
 * variable that gets it; or NULL. */
static int put_default(struct shell *shell, struct fields *fields, bool quoted, bool add, const char *name,
                       struct loc opened)
{
    struct fields value = {.whole = true};
    int rc = shell_quoted(shell, &value, '}', opened);

    if (name && !rc)
        rc = shell_assign(shell, name, &value, false, shell->now);

    for (size_t i = 0; add && i < value.count && !rc; i++)
        for (size_t c = 0; c < value.items[i].count && !rc; c++)
            rc = put_expanded(shell, fields, value.items[i].items[c], quoted);
    free(value.items);
    return rc;
}

/* ${...}, behind its bracket. */
static int expand_braces(struct shell *shell, struct fields *fields, struct cell place, bool quoted, struct loc opened)
{
    size_t first = shell->at;
    const char *name = read_name(shell);
    const struct variable *variable = *name ? shell_variable(shell, name) : NULL;
    bool colon, all = false;
    char sign;

    if (shell_peek(shell, 0) == '[' && strchr("@*", shell_peek(shell, 1)) && shell_peek(shell, 2) == ']') {
        all = true;
        shell->at += 3;
    }
    if (*name && shell_peek(shell, 0) == '}') {
        shell->at++;
        return put_named(shell, fields, name, place, quoted, all);
    }
    colon = shell_peek(shell, 0) == ':';
    sign = shell_peek(shell, colon);
    if (*name && sign && strchr("-=+?", sign)) {
        bool present = variable && !(colon && is_empty(variable)), given = !variable && is_given(name);

        shell_used(shell, name, variable);
        shell->at += 1 + (size_t)colon;
        if (sign == '+')
            return given && put_named(shell, fields, name, place, quoted, all) ? -1 :
                   put_default(shell, fields, quoted, present, NULL, opened);
        if (present && put_variable(shell, fields, variable, quoted, all || *name == '@' || *name == '*'))
            return -1;
        if ((given || (!present && sign == '?')) && put_named(shell, fields, name, place, quoted, all))
            return -1;
        present |= given || sign == '?';
        return put_default(shell, fields, quoted, !present, sign == '=' && !present ? name : NULL, opened);
    }
    if (skip_brackets(shell, '{', '}', opened))
        return -1;
    return put_unknown(shell, fields, arena_printf(shell->arena, "${%s", source_text(shell, first, shell->at)), place);
}

/* $((...)) behind both brackets. What is inside is expanded first. */
static int expand_arithmetic(struct shell *shell, struct fields *fields, struct cell place, bool quoted, size_t start,
                             struct loc opened)
{
    struct fields inner = {0};
    long long value;
    int rc = shell_quoted(shell, &inner, ')', opened);

    if (!rc && shell_peek(shell, 0) == ')') {
        const char *text = inner.count ? shell_text(shell->arena, &inner.items[0]) : "";

        shell->at++;
        if (shell_arithmetic(shell, text, &value)) {
            rc = put_text(shell, fields, arena_printf(shell->arena, "%lld", value), place, quoted);
        } else {
            shell_doubt_arithmetic(shell, start, text, shell->now);
            rc = put_unknown(shell, fields, source_text(shell, start, shell->at), place);
        }
    } else if (!rc) {
        rc = error_add(shell->err, EXIT_INPUT, opened, "'$((' is never closed; expected '))'");
    }
    free(inner.items);
    return rc;
}

/* $'...': what a backslash begins is not read. */
static int ansi_quotes(struct shell *shell, struct fields *fields, struct cell place, size_t start)
{
    bool plain = true;
    size_t end = shell->at + 1;

    for (; end < shell->length && shell->source[end].c != '\''; end++)
        if (shell->source[end].c == '\\') {
            plain = false;
            end++;
        }
    if (plain || end >= shell->length)
        return 0;                                            /* as in single quotes */
    shell->at = end + 1;
    return put_unknown(shell, fields, source_text(shell, start, shell->at), place);
}

/* Behind a '$' or at a '`'. */
static int expand(struct shell *shell, struct fields *fields, bool quoted)
{
    struct loc opened = shell_loc(shell);
    struct cell place = shell->source[shell->at];
    size_t start = shell->at++;

    if (++shell->depth > SHELL_MAX_DEPTH)
        return error_add(shell->err, EXIT_INPUT, opened, "expansions are nested more than %d deep", SHELL_MAX_DEPTH);
    int rc = 0;
    char c = shell_peek(shell, 0);

    if (place.c == '`') {
        while (shell->at < shell->length && shell_peek(shell, 0) != '`')
            shell->at++;
        rc = shell->at++ < shell->length ? put_unknown(shell, fields, source_text(shell, start, shell->at), place) :
             error_add(shell->err, EXIT_INPUT, opened, "'`' is never closed");
        shell->at = shell->at < shell->length ? shell->at : shell->length;
    } else if (c == '(' && shell_peek(shell, 1) == '(') {
        shell->at += 2;
        rc = expand_arithmetic(shell, fields, place, quoted, start, opened);
    } else if (c == '(') {
        shell->at++;
        rc = skip_brackets(shell, '(', ')', opened);
        if (!rc)
            rc = put_unknown(shell, fields, source_text(shell, start, shell->at), place);
    } else if (c == '{') {
        shell->at++;
        rc = expand_braces(shell, fields, place, quoted, opened);
    } else if (name_char(c, false) || (c && strchr("@*#?$!-", c))) {
        const char *name = read_name(shell);

        rc = put_named(shell, fields, name, place, quoted, false);
    } else if (c == '\'' && !quoted) {
        rc = ansi_quotes(shell, fields, place, start);
    } else if (!(c == '"' && !quoted)) {
        rc = put_cell(shell, fields, place);
    }
    shell->depth--;
    return rc;
}

/* A backslash: the next character is what it is; before a newline both are nothing. */
static int escaped(struct shell *shell, struct fields *fields, bool quoted)
{
    char next = shell_peek(shell, 1);

    if (next == '\n') {
        shell->at += 2;
        return 0;
    }
    if (quoted && !(next && strchr("$`\"\\", next)))
        return put_cell(shell, fields, shell->source[shell->at++]);
    shell->at++;
    return shell->at < shell->length ? put_cell(shell, fields, shell->source[shell->at++]) : 0;
}

int shell_quoted(struct shell *shell, struct fields *fields, char end, struct loc opened)
{
    int rc = 0, round = 0;

    open_field(fields);
    while (!rc && shell->at < shell->length) {
        char c = shell_peek(shell, 0);

        if (c == end && round == 0) {
            shell->at++;
            return 0;
        }
        round += end == ')' && c == '(' ? 1 : end == ')' && c == ')' ? -1 : 0;
        if (c == '\\')
            rc = escaped(shell, fields, true);
        else if (c == '$' || c == '`')
            rc = expand(shell, fields, true);
        else if (c == '"' && end == '}')
            shell->at++;
        else
            rc = put_cell(shell, fields, shell->source[shell->at++]);
    }
    return rc ? rc : error_add(shell->err, EXIT_INPUT, opened, "the quote or bracket is never closed; expected '%c'", end);
}

static int single_quotes(struct shell *shell, struct fields *fields)
{
    struct loc opened = shell_loc(shell);
    int rc = 0;

    open_field(fields);
    for (shell->at++; !rc && shell->at < shell->length; shell->at++) {
        if (shell_peek(shell, 0) == '\'') {
            shell->at++;
            return 0;
        }
        rc = put_cell(shell, fields, shell->source[shell->at]);
    }
    return rc ? rc : error_add(shell->err, EXIT_INPUT, opened, "the quote is never closed; expected \"'\"");
}

int shell_word(struct shell *shell, struct fields *fields, bool whole)
{
    int rc = 0;

    fields->open = false;
    fields->whole = whole;
    while (!rc && shell->at < shell->length) {
        char c = shell_peek(shell, 0);
        struct loc loc = shell_loc(shell);

        if (isspace((unsigned char)c) || strchr(";&|()<>", c))
            break;
        if (c == '\\')
            rc = escaped(shell, fields, false);
        else if (c == '\'')
            rc = single_quotes(shell, fields);
        else if (c == '"') {
            shell->at++;
            rc = shell_quoted(shell, fields, '"', loc);
        } else if (c == '$' || c == '`')
            rc = expand(shell, fields, whole);
        else
            rc = put_cell(shell, fields, shell->source[shell->at++]);
    }
    fields->open = false;
    return rc;
}
