/* shell_builtin: commands of the shell's own, and calls of functions. Another program cannot set the script's variables;
 * these can. */
#include "launch/shell_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "config/field.h"

/* A command that is read: its words, where it begins, whether it runs, whether it succeeds. */
struct call {
    struct shell *shell;
    const struct fields *fields;
    size_t begin;
    enum life life, *status;
};

static const char *word(const struct call *call, size_t index)
{
    return index < call->fields->count ? shell_text(call->shell->arena, &call->fields->items[index]) : "";
}

/* A word that is not known may be several, and any. */
static bool has_unknown(const struct call *call, size_t first)
{
    for (size_t i = first; i < call->fields->count; i++)
        if (strchr(word(call, i), MARK_BEGIN))
            return true;
    return false;
}

static int always(const struct call *call)
{
    *call->status = text_same(word(call, 0), "false") ? LIFE_DEAD : LIFE_SURE;
    return 1;
}

/* read NAME ..., and what else fills variables: all words that may be names. */
static int fill(const struct call *call)
{
    static const char *const others[] = {"REPLY", "MAPFILE", "OPTARG", "OPTIND"};
    bool prints = text_same(word(call, 0), "printf");

    *call->status = prints ? LIFE_SURE : LIFE_MAYBE;
    if (prints && strcmp(word(call, 1), "-v"))
        return 1;
    for (size_t i = 1; i < call->fields->count; i++)
        if (shell_is_name(word(call, i), strlen(word(call, i))))
            shell_doubt(call->shell, call->begin, word(call, i), call->life);
    for (size_t i = 0; !prints && i < COUNT(others); i++)
        shell_doubt(call->shell, call->begin, others[i], call->life);
    return 1;
}

static int let(const struct call *call)
{
    for (size_t i = 1; i < call->fields->count; i++)
        shell_doubt_arithmetic(call->shell, call->begin, word(call, i), call->life);
    *call->status = LIFE_MAYBE;
    return 1;
}

/* Another file, which is not read. */
static int source(const struct call *call)
{
    shell_doubt(call->shell, call->begin, NULL, call->life);
    return 1;
}

/* trap 'COMMANDS' DEBUG: they run between others. */
static int trap(const struct call *call)
{
    for (size_t i = 2; i < call->fields->count; i++)
        if (word_in("DEBUG ERR RETURN", word(call, i)))
            shell_doubt(call->shell, call->begin, NULL, call->life);
    return 1;
}

/* The words are a script. */
static int eval(const struct call *call)
{
    struct shell *shell = call->shell;
    struct shell_cells text = {0};

    for (size_t i = 1; i < call->fields->count; i++) {
        const struct shell_cells *part = &call->fields->items[i];

        for (size_t c = 0; c < part->count; c++)
            if (shell_push(shell, &text, part->items[c]))
                return -1;
        if (part->count && shell_push(shell, &text, (struct cell){' ', part->items[0].line, part->items[0].column}))
            return -1;
    }
    if (has_unknown(call, 1))
        shell_doubt(shell, call->begin, NULL, call->life);
    if (shell->inner(shell, text.items, text.count, call->life))
        return -1;
    *call->status = shell->last;
    return 1;
}

static int unset(const struct call *call)
{
    bool functions = text_same(word(call, 1), "-f");
    struct functions *all = &call->shell->functions;

    for (size_t i = 1; i < call->fields->count; i++) {
        const char *name = word(call, i);
        size_t length = strcspn(name, "[");

        if (!functions && name[length])
            shell_doubt(call->shell, call->begin, arena_strndup(call->shell->arena, name, length), call->life);
        else if (!functions && shell_unset(call->shell, name, call->life))
            return -1;
        for (size_t f = 0; functions && f < all->count && call->life == LIFE_SURE; f++)
            if (text_same(all->items[f].name, name))
                all->items[f].name = "";
    }
    if (has_unknown(call, 1))
        shell_doubt(call->shell, call->begin, NULL, call->life);
    return 1;
}

/* The arguments $1, $2, ... are the words from `first` on. */
static int set_arguments(const struct call *call, size_t first)
{
    struct fields value = {0};
    int rc;

    for (size_t i = first; i < call->fields->count; i++)
        *GROW(&value) = call->fields->items[i];
    rc = shell_assign(call->shell, "@", &value, false, call->life);
    free(value.items);
    return rc ? -1 : 1;
}

/* alias NAME=COMMANDS: a word that may be these, or not. */
static int alias(const struct call *call)
{
    for (size_t i = 1; i < call->fields->count; i++) {
        const char *text = word(call, i), *equals = strchr(text, '=');
        size_t length = equals ? (size_t)(equals - text) + 1 : 0;
        const struct shell_cells *cells = &call->fields->items[i];

        if (length > 1 && call->life > LIFE_DEAD)
            *GROW(&call->shell->functions) = (struct shell_function){
                arena_strndup(call->shell->arena, text, length - 1), cells->items + length, cells->count - length, false, false};
    }
    return 1;
}

/* Switches under which the same words mean something else. */
static int shopt(const struct call *call)
{
    for (size_t i = 1; i < call->fields->count && call->life > LIFE_DEAD; i++)
        if (word_in("nocasematch lastpipe posix keyword noexec", word(call, i)))
            return error_add(call->shell->err, EXIT_INPUT, shell_loc(call->shell), "%s %s: a script with it is not read here",
                             word(call, 0), word(call, i));
    return 1;
}

/* set -e ...: options; set [--] WORDS: arguments. */
static int set(const struct call *call)
{
    size_t i = 1;

    if (shopt(call) < 0)
        return -1;
    for (; i < call->fields->count && strcmp(word(call, i), "--") && strchr("-+", *word(call, i)); i++)
        i += word(call, i)[1] && word(call, i)[strlen(word(call, i)) - 1] == 'o';
    if (i < call->fields->count)
        return set_arguments(call, i + text_same(word(call, i), "--"));
    return 1;
}

static int shift(const struct call *call)
{
    const struct variable *all = shell_variable(call->shell, "@");
    size_t count = call->fields->count > 1 ? (size_t)strtoul(word(call, 1), NULL, 10) : 1;
    struct fields rest = {0};
    int rc;

    if (!all || count > all->value.count)
        return 1;
    if (has_unknown(call, 1)) {
        shell_spoil(call->shell, "@", call->life);
        return 1;
    }
    for (size_t i = count; i < all->value.count; i++)
        *GROW(&rest) = all->value.items[i];
    rc = shell_assign(call->shell, "@", &rest, false, call->life);
    free(rest.items);
    return rc ? -1 : 1;
}

/* exit, return: what stands behind is not run. A script that may have ended has no training to import. */
static int leave(const struct call *call)
{
    struct shell *shell = call->shell;
    bool returns = text_same(word(call, 0), "return");

    if (call->life == LIFE_DEAD)
        return 1;
    if (call->life == LIFE_SURE)
        shell->reach = LIFE_DEAD;
    else if (returns && shell->reach > LIFE_MAYBE)
        shell->reach = LIFE_MAYBE;
    shell->ended |= !returns && call->life == LIFE_SURE;
    return 1;
}

/* exec PROGRAM: the script ends with it; exec >file goes on. */
static int replace(const struct call *call)
{
    if (call->fields->count > 1)
        leave(call);
    return 0;
}

static int test(const struct call *call)
{
    size_t count = call->fields->count, ends = strcmp(word(call, 0), "test") ? 2 : 1;
    struct shell_word *words = ARENA_ARRAY(call->shell->arena, struct shell_word, count + 1);

    for (size_t i = 1; i < count; i++)
        words[i - 1].text = word(call, i);
    *call->status = count > ends ? shell_test(call->shell, words, count - ends, text_same(word(call, 0), "[[")) : LIFE_MAYBE;
    return 1;
}

static const struct { const char *names; int (*read)(const struct call *call); } builtins[] = {
    {"true false : echo", always}, {"read mapfile readarray getopts printf wait", fill}, {"let", let}, {"source .", source},
    {"trap", trap}, {"eval", eval}, {"unset", unset}, {"set", set}, {"alias", alias}, {"shopt", shopt},
    {"shift", shift}, {"exit return", leave},
    {"exec", replace}, {"test [ [[", test},
};

int shell_builtin(struct shell *shell, const struct fields *fields, size_t begin, enum life life, enum life *status)
{
    struct call call = {shell, fields, begin, life, status};
    const char *name = word(&call, 0);
    size_t length = strcspn(name, "[");

    if (text_same(name, "command") || text_same(name, "builtin"))
        return fields->count < 2 ? 1 : shell_builtin(shell, &(struct fields){.items = fields->items + 1,
                                                                            .count = fields->count - 1}, begin, life, status);
    if (name[length] && shell_is_name(name, length) && (strstr(name, "]=") || strstr(name, "]+="))) {   /* NAME[I]=VALUE */
        shell_doubt(shell, begin, arena_strndup(shell->arena, name, length), life);
        return 1;
    }
    for (size_t i = 0; i < COUNT(builtins); i++)
        if (word_in(builtins[i].names, name))
            return builtins[i].read(&call);
    return 0;
}

int shell_declared(struct shell *shell, const struct fields *fields, size_t begin, enum life life)
{
    struct call call = {shell, fields, begin, life, &(enum life){0}};
    bool local = text_same(word(&call, 0), "local"), fixed = text_same(word(&call, 0), "readonly");

    if (has_unknown(&call, 1))
        shell_doubt(shell, begin, NULL, life);
    for (size_t i = 1; i < fields->count; i++) {
        const char *text = word(&call, i), *equals = strchr(text, '=');
        size_t length = equals ? (size_t)(equals - text) : strlen(text);
        struct fields value = {.whole = true};

        if (!shell_is_name(text, length))
            continue;
        if (local && shell->inside && life != LIFE_DEAD)
            shell_local(shell, arena_strndup(shell->arena, text, length));
        if (!equals && local && shell->inside && shell_unset(shell, text, life))
            return -1;
        if (!equals && fixed && life == LIFE_SURE)
            shell_make(shell, text)->fixed = true;
        if (!equals || (local && !shell->inside))
            continue;
        *GROW(&value) = (struct shell_cells){fields->items[i].items + length + 1, fields->items[i].count - length - 1, 0};
        int rc = shell_assign(shell, arena_strndup(shell->arena, text, length), &value, false, life);

        free(value.items);
        if (rc)
            return -1;
    }
    shell_succeeded(shell, local && !shell->inside ? LIFE_DEAD : LIFE_SURE);
    return 0;
}

int shell_call(struct shell *shell, const struct fields *fields, size_t begin, bool before, enum life *status)
{
    struct call call = {shell, fields, begin, LIFE_SURE, status};
    enum life life = shell->now, reach = shell->reach;
    const struct shell_function *function = NULL;
    size_t locals = shell->locals.count, snapshots = shell->undo.count;

    for (size_t i = 0; i < shell->functions.count; i++)
        if (text_same(shell->functions.items[i].name, word(&call, 0)))
            function = &shell->functions.items[i];
    if (!function)
        return 0;
    if (life == LIFE_DEAD)
        return 1;
    if (++shell->calls > SHELL_MAX_CALLS)
        return error_add(shell->err, EXIT_INPUT, shell_loc(shell), "functions are called more than %d times", SHELL_MAX_CALLS);
    if (before)                                              /* NAME=VALUE FUNCTION: for this call alone */
        shell_doubt(shell, begin, NULL, life);
    shell_local(shell, "@");
    shell->inside++;
    if (set_arguments(&call, 1) < 0 ||
        shell->inner(shell, function->source, function->length, function->certain ? life : life < LIFE_MAYBE ? life : LIFE_MAYBE))
        return -1;
    shell->inside--;
    *status = shell->last;
    shell->reach = shell->ended ? LIFE_DEAD : reach;
    shell_end_locals(shell, locals);
    if (function->subshell)
        shell_undo(shell, snapshots);
    return 1;
}
