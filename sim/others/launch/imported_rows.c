/* imported_rows: rows of a dialect, read from left to right. */
#include "launch/imported.h"

#include "config/conf.h"
#include "config/field.h"

#include <stdlib.h>

#include "base/base.h"
#include "launch/dialect.h"
#include "launch/dialect_rows.h"
#include "launch/launch.h"

static bool is_wanted(void *context, const struct dialect_row *row)
{
    const struct imported *m = context;

    for (const char *at = row->given; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (!imported_given(m, arena_strndup(m->arena, at, strcspn(at, " "))))
            return false;
    for (const char *at = row->unless; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (imported_given(m, arena_strndup(m->arena, at, strcspn(at, " "))))
            return false;
    for (size_t i = 0; i < row->say.count; i++)
        if (imported_given(m, row->say.terms[i].key))
            return true;
    return row->always || m->whole;
}

/* The values of an argument, with commas between them, without brackets. */
static const char *listed(struct arena *arena, const struct argument_row *row, const struct launch_argument *argument)
{
    const char *text = "";

    for (size_t i = 0; i < argument->count; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? "," : "", dialect_word(arena, row, argument->values[i].text, false));
    text += strspn(text, "(");
    return arena_strndup(arena, text, strcspn(text, ")"));
}

/* The value of an argument, or its default; of a flag true or false. NULL: it has none. */
static const char *value_of(void *context, const char *name)
{
    struct imported *m = context;
    const struct launch_argument *argument = imported_given(m, name);
    const struct argument_row *row = dialect_row(m->dialect, name, false);
    const char *word = imported_word(m, name);

    if (row->kind == KIND_FLAG)
        return argument ? "true" : "false";
    if (row->kind == KIND_INT && word)
        return arena_printf(m->arena, "%lld", strtoll(word, NULL, 10));
    if (row->kind == KIND_NUMBER && word)
        return arena_printf(m->arena, "%.15g", strtod(word, NULL));
    if (row->kind == KIND_LIST && argument)
        return listed(m->arena, row, argument);
    return row->kind == KIND_LIST && word ? dialect_word(m->arena, row, word, false) : word;
}

static const char *at_path(void *context, const char *path)
{
    struct imported *m = context;
    const struct node *node = node_at(m->root, path);

    if (!strcmp(path, "log"))
        return m->launch->log ? "true" : "false";
    if (!node && word_in("strategy.tensor strategy.pipeline strategy.context strategy.expert", path))
        return "1";
    return !node ? NULL : node->text ? node->text : node_flow(m->arena, node);
}

/* What the launch said of it: a shape of another file gives way. */
static const char *was_put(void *context, const char *path)
{
    return word_in(((struct imported *)context)->put, path) ? at_path(context, path) : NULL;
}

static void put(void *context, const struct dialect_row *row, const char *path, const char *value)
{
    struct imported *m = context;

    imported_put(m, path, "%s", value);
    for (size_t i = row->say.count; i-- > 0;)
        if (imported_given(m, row->say.terms[i].key) && node_at(m->root, path))
            node_at(m->root, path)->loc = imported_loc(m, row->say.terms[i].key);
}

/* <NAME> in a message is what it calls an argument, or the software. */
static void tell(void *context, const struct dialect_row *row, const char *message)
{
    struct imported *m = context;
    const char *text = "";

    if (m->quiet)
        return;
    for (const char *at; (at = strchr(message, '<')) && strchr(at, '>'); message = strchr(at, '>') + 1) {
        const char *name = arena_strndup(m->arena, at + 1, strcspn(at + 1, ">"));

        text = arena_printf(m->arena, "%s%.*s%s", text, (int)(at - message), message, !strcmp(name, "software") ? m->software :
                            imported_shown(m, name));
    }
    text = arena_printf(m->arena, "%s%s", text, message);
    if (row->tells == TELLS_WARNING)
        imported_warn(m, row->at, "%s", text);
    else
        imported_refuse(m, row->at, "%s", text);
}

static struct dialect_ways ways_of(struct imported *m)
{
    return (struct dialect_ways){false, is_wanted, value_of, was_put, put, at_path, tell, m};
}

void imported_rows(struct imported *m, const char *part)
{
    const struct dialect *dialect = m->dialect->like ? m->dialect->like : m->dialect;
    const struct dialect_ways ways = ways_of(m);

    dialect_rows_apply(m->arena, &dialect->pairs, part, &ways);
}

void imported_unread(struct imported *m)
{
    const struct dialect_ways ways = ways_of(m);

    for (size_t i = 0; i < m->dialect->own; i++) {
        const struct argument_row *row = &m->dialect->rows[i];
        const char *words, *text = m->given[i] ? value_of(m, row->name) : NULL;

        if (!text || row->class != ARGUMENT_MAPPED || row->path || (row->fallback && !strcmp(text, row->fallback)) ||
            !imported_has_needs(m, row) || dialect_rows_take(m->arena, &m->dialect->pairs, row->name, text, &ways, &words))
            continue;
        if (!words)
            imported_warn(m, row->name, "is not read, and %.60s of it is not simulated", text);
        else if (row->kind != KIND_NUMBER)       /* whose rows may be about one number alone */
            imported_refuse(m, row->name, "'%.60s' is not simulated; expected one of %.200s", text, words);
    }
}

/* Words that stand for no value here. */
static void refuse_words(struct imported *m)
{
    for (size_t i = 0; i < m->dialect->count; i++) {
        const struct argument_row *row = &m->dialect->rows[i];

        for (size_t k = 0; m->given[i] && row->kind == KIND_LIST && row->words && k < m->given[i]->count; k++)
            if (dialect_knows(row, m->given[i]->values[k].text))
                continue;
            else if (row->lenient)
                imported_warn(m, row->name, "%.60s is not simulated", m->given[i]->values[k].text);
            else if (imported_has_needs(m, row))
                imported_refuse(m, row->name, "%s is not simulated; expected some of %s", m->given[i]->values[k].text,
                                dialect_words(m->arena, row));
        if (m->given[i] && row->path && row->kind == KIND_WORD && row->words && !word_in(m->put, row->path))
            imported_refuse(m, row->name, "'%.60s' is not simulated; expected one of (theirs=here) %s",
                            m->given[i]->values[0].text, row->words);
    }
}

static void warn_lacking(struct imported *m)
{
    for (size_t i = 0; i < m->dialect->count; i++) {
        const struct argument_row *row = &m->dialect->rows[i];

        if (m->given[i] && row->class == ARGUMENT_LACKS)
            launch_warn(m->launch, m->arena, m->given[i]->loc, "%s is not simulated%s%s",
                        imported_shown(m, row->name), row->why ? ": " : "", row->why ? row->why : "");
        else if (m->given[i] && row->class == ARGUMENT_REFUSED &&
                 !(row->words && m->given[i]->count && word_in(row->words, m->given[i]->values[0].text)))
            imported_refuse(m, row->name, "%s, which is not simulated", row->why);
    }
}

void imported_plain(struct imported *m)
{
    imported_rows(m, "plain");
    refuse_words(m);
    warn_lacking(m);
}
