/* imported_sort: each argument finds its row. */
#include "launch/imported.h"

#include "config/field.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/base.h"
#include "launch/launch.h"
#include "launch/bash.h"

static size_t row_index(const struct imported *m, const struct argument_row *row)
{
    return (size_t)(row - m->dialect->rows);
}

const struct launch_argument *imported_given(const struct imported *m, const char *name)
{
    const struct argument_row *row = dialect_row(m->dialect, name, false);

    BUG_IF(!row);
    return m->given[row_index(m, row)];
}

const char *imported_word(const struct imported *m, const char *name)
{
    const struct launch_argument *argument = imported_given(m, name);

    return argument && argument->count ? argument->values[0].text : dialect_row(m->dialect, name, false)->fallback;
}

long long imported_number(const struct imported *m, const char *name)
{
    const char *text = imported_word(m, name);

    return text ? strtoll(text, NULL, 10) : 0;
}

struct loc imported_loc(const struct imported *m, const char *name)
{
    const struct launch_argument *argument = imported_given(m, name);

    return !argument ? m->launch->loc : argument->count ? argument->values[0].loc : argument->loc;
}

const char *imported_shown(const struct imported *m, const char *name)
{
    const struct launch_argument *argument = m->given ? imported_given(m, name) : NULL;

    if (argument && m->dialect->like && strchr(argument->name, '.'))
        return argument->name;                               /* several keys may say the argument */
    if (argument && !m->dialect->like && !m->launch->log && !text_same(argument->name, name))
        name = argument->name;                               /* another name of it */
    return arena_printf(m->arena, "%s%s", m->dialect->dashes, dialect_shown(m->arena, m->dialect, name));
}

void imported_warn(struct imported *m, const char *name, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    launch_warn(m->launch, m->arena, imported_loc(m, name), "%s: %s", imported_shown(m, name), text);
}

int imported_refuse(struct imported *m, const char *name, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_add(m->err, EXIT_INPUT, imported_loc(m, name), "%s: %s", imported_shown(m, name), text);
}

static bool is_unknown(const char *text)
{
    return *text == MARK_BEGIN && strchr(text, MARK_END) == text + strlen(text) - 1;
}

/* Values that are not known: what would make them known. */
static int refuse_unknown(struct imported *m, const struct argument_row *row, const struct launch_word *value)
{
    const char *name = launch_unknown(m->arena, value->text);
    bool variable = isalpha((unsigned char)*name) || *name == '_';

    if (*name == '$' && isdigit((unsigned char)name[1]))
        return error_add(m->err, EXIT_INPUT, value->loc, "%s: the script's argument %s is not given; give the arguments behind "
                         "the script's name, or --set %s=VALUE", imported_shown(m, row->name), name, row->name);
    return error_add(m->err, EXIT_INPUT, value->loc, "%s: %s is not known here: the file alone does not say it; give "
                     "%s %s=VALUE", imported_shown(m, row->name), name, variable ? "--env" : "--set", variable ? name : row->name);
}

/* A value of the row's kind? */
static int check_value(struct imported *m, const struct argument_row *row, const struct launch_word *value)
{
    char *end, shown[CLIP_SIZE];

    if (launch_unknown(m->arena, value->text))
        return refuse_unknown(m, row, value);
    if (row->kind == KIND_INT) {
        long long number = strtoll(value->text, &end, 10);

        if (end == value->text || *end || number < -1000000000000LL || number > 1000000000000LL)
            return error_add(m->err, EXIT_INPUT, value->loc, "%s: expected a whole number, found '%s'",
                             imported_shown(m, row->name), text_clip(value->text, shown, sizeof shown));
    } else if (row->kind == KIND_BOOL && strcmp(value->text, "true") && strcmp(value->text, "false")) {
        return error_add(m->err, EXIT_INPUT, value->loc, "%s: expected true or false, found '%s'", imported_shown(m, row->name), text_clip(value->text, shown, sizeof shown));
    } else if (row->kind == KIND_NUMBER) {
        double number = strtod(value->text, &end);

        if (end == value->text || *end || !(number > -1e300 && number < 1e300))
            return error_add(m->err, EXIT_INPUT, value->loc, "%s: expected a number, found '%s'", imported_shown(m, row->name), text_clip(value->text, shown, sizeof shown));
    }
    return 0;
}

/* What a variable in the end holds may be further arguments, or nothing. */
static void drop_unknown_end(struct imported *m, const struct argument_row *row, struct launch_argument *argument)
{
    size_t least = row->kind == KIND_FLAG ? 0 : 1;

    while (argument->count > least && is_unknown(argument->values[argument->count - 1].text)) {
        const struct launch_word *value = &argument->values[--argument->count];

        launch_warn(m->launch, m->arena, value->loc, "%s is not known here, and what it holds is left out; if it holds "
                    "arguments give --env NAME=VALUE", launch_unknown(m->arena, value->text));
    }
}

static int check_values(struct imported *m, const struct argument_row *row, struct launch_argument *argument)
{
    bool one = row->kind == KIND_INT || row->kind == KIND_NUMBER || row->kind == KIND_WORD || row->kind == KIND_BOOL;
    char shown[CLIP_SIZE];
    int rc = 0;

    drop_unknown_end(m, row, argument);
    if (row->kind == KIND_FLAG && argument->count)
        return error_add(m->err, EXIT_INPUT, argument->values[0].loc, "%s takes no value, found '%s'",
                         imported_shown(m, row->name), text_clip(argument->values[0].text, shown, sizeof shown));
    if (one && argument->count == 0)
        return error_add(m->err, EXIT_INPUT, argument->loc, "%s: expected a value, found none", imported_shown(m, row->name));
    if (one && argument->count > 1)
        return error_add(m->err, EXIT_INPUT, argument->values[1].loc, "%s takes one value, found a second, '%s'",
                         imported_shown(m, row->name), text_clip(argument->values[1].text, shown, sizeof shown));
    for (size_t i = 0; row->kind != KIND_ANY && i < argument->count && !rc; i++)
        rc = check_value(m, row, &argument->values[i]);
    return rc;
}

static bool truth(const char *text, bool *value)
{
    *value = !strcmp(text, "True") || !strcmp(text, "true");
    return *value || !strcmp(text, "False") || !strcmp(text, "false");
}

/* What a log (or --set) says of an argument: whether it is switched on or has a value. */
static bool is_on(const struct argument_row *row, const char *name, struct launch_argument *argument)
{
    bool inverse = row->logged && *row->logged == '!' && strcmp(name, row->name), value;

    if (!argument->count || !strcmp(argument->values[0].text, "None"))
        return false;
    if (row->kind != KIND_BOOL && row->kind != KIND_WORD && argument->count == 1 &&
        truth(argument->values[0].text, &value)) {
        argument->count = 0;
        return value != inverse;
    }
    return true;
}

static int keep(struct imported *m, const struct argument_row *row, struct launch_argument *argument)
{
    const struct launch_argument **place = &m->given[row_index(m, row)];
    /* one row stands for all names that have no effect on the time, or the same one */
    bool another = row->class != ARGUMENT_MAPPED && *place && strcmp((*place)->name, argument->name);

    if (check_values(m, row, argument))
        return -1;
    if (*place && !another && (argument->count != (*place)->count ||
                   (argument->count && strcmp(argument->values[0].text, (*place)->values[0].text))))
        launch_warn(m->launch, m->arena, argument->loc, "%s is given again, first in line %d; the last value holds",
                    imported_shown(m, row->name), (*place)->loc.line);
    if (!*place)
        m->counts[row->class]++;
    *place = argument;
    return 0;
}

/* The key of each row as a file has it, up to NULL. */
static const char **row_names(const struct imported *m, size_t rows)
{
    const char **names = ARENA_ARRAY(m->arena, const char *, rows + 1);

    for (size_t i = 0; i < rows; i++)
        names[i] = dialect_shown(m->arena, m->dialect, m->dialect->rows[i].name);
    return names;
}

static const char *row_name(size_t index, const void *context)
{
    return ((const char *const *)context)[index];
}

/* What a row stands for in messages. */
static const char *noun(const struct imported *m)
{
    return *m->dialect->dashes ? "argument" : "key";
}

bool imported_is_other(const struct imported *m)
{
    const char *slash = m->launch->program ? strrchr(m->launch->program, '/') : NULL;

    return m->launch->program && m->dialect->programs && !word_in(m->dialect->programs, slash ? slash + 1 : m->launch->program);
}

/* An argument that is none of the framework's. Where the program is not the framework's own, it may be the program's. */
static int sort_other(struct imported *m, const struct launch_argument *argument, size_t rows)
{
    bool others = imported_is_other(m);
    const char *dashes = m->dialect->dashes, *meant;
    char shown[CLIP_SIZE];

    text_clip(argument->name, shown, sizeof shown);
    if (others && dialect_is_shape(m->dialect, argument->name))
        return error_add(m->err, EXIT_INPUT, argument->loc, "%s%s is no argument of %s but of %s, and what it does to the "
                         "model is not simulated", dashes, shown, m->dialect->framework, m->launch->program);
    if (others) {
        m->others = arena_printf(m->arena, "%s%s%s%s", m->others ? m->others : "", m->others ? ", " : "", dashes, shown);
        return 0;
    }
    if (!m->names)
        m->names = row_names(m, rows);
    meant = error_shows(m->err, &argument->loc) ? nearest(argument->name, row_name, m->names) : NULL;
    return meant ? error_add(m->err, EXIT_INPUT, argument->loc, "unknown %s '%s%s'; did you mean '%s%s'?",
                             noun(m), dashes, shown, dashes, meant) :
           error_add(m->err, EXIT_INPUT, argument->loc, "unknown %s '%s%s'; expected one of %s's", noun(m), dashes,
                     shown, m->dialect->framework);
}

static int sort_one(struct imported *m, struct launch_argument *argument, size_t rows, const char **strangers)
{
    const struct argument_row *row = dialect_row(m->dialect, argument->name, m->launch->log);
    bool log = m->launch->log, plain = row && !row->why && row->class == ARGUMENT_LACKS;
    const char *value = argument->count ? argument->values[0].text : "";

    if (log &&
        (word_in(m->dialect->inner, argument->name) || (row && !is_on(row, argument->name, argument))))
        return 0;
    if (log && row && row->class == ARGUMENT_LACKS && row->fallback && !strcmp(value, row->fallback))
        return 0;
    if (log && !m->launch->keys &&
        (!row || plain)) { /* its default is not known here, and a log prints each argument */
        if (argument->count && !word_in("False false None 0 0.0", value))
            *strangers = arena_printf(m->arena, "%s%s%s", *strangers, **strangers ? ", " : "", argument->name);
        return 0;
    }
    return row ? keep(m, row, argument) : sort_other(m, argument, rows);
}

/* --set num-layers=32 is as if the last argument were --num-layers 32. */
static int sort_set(struct imported *m, const struct launch_set *set)
{
    const char *name = set->name + (strncmp(set->name, "--", 2) ? 0 : 2);
    const struct argument_row *row = dialect_row(m->dialect, name, false);
    struct launch_argument *argument = arena_alloc(m->arena, sizeof *argument);

    if (!row)
        return !m->launch->program || launch_is_count(name) || launch_same_name(name, "world-size") ? 0 :
               error_add(m->err, EXIT_INPUT, (struct loc){.file = "--set"}, "'%s' is no argument of %s; a variable of the script is "
                         "given by --env %s=%s", name, m->dialect->framework, name, set->value);
    *argument = (struct launch_argument){name, {.file = "--set"}, ARENA_ARRAY(m->arena, struct launch_word, 1), 1};
    argument->values[0] = (struct launch_word){set->value, argument->loc};
    if (m->given[row_index(m, row)])
        m->counts[row->class]--;
    m->given[row_index(m, row)] = NULL;
    return row->kind == KIND_FLAG && !is_on(row, name, argument) ? 0 : keep(m, row, argument);
}

/* Whether an argument is given: "optimizer=dist_muon" with that value. */
static bool is_there(const struct imported *m, char *name)
{
    char *value = strchr(name, '=');

    if (value)
        *value++ = '\0';
    return imported_given(m, name) && (!value || !strcmp(imported_word(m, name), value));
}

bool imported_has_needs(const struct imported *m, const struct argument_row *row)
{
    for (const char *at = row->needs; at && *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");

        if (is_there(m, arena_strndup(m->arena, at, length)))
            return true;
        at += length;
    }
    return !row->needs;
}

/* Arguments that wait for others. A log prints them all the same. */
static void warn_alone(struct imported *m)
{
    for (size_t i = 0; !m->launch->log && i < m->dialect->count; i++) {
        const struct argument_row *row = &m->dialect->rows[i];

        if (m->given[i] && !imported_has_needs(m, row))
            imported_warn(m, row->name, "has no effect without %s",
                          imported_shown(m, arena_strndup(m->arena, row->needs, strcspn(row->needs, " "))));
    }
}

bool imported_is_set(const struct imported *m, const char *name)
{
    for (size_t i = 0; i < m->options->nsets; i++)
        if (launch_same_name(m->options->sets[i].name, name))
            return true;
    return false;
}

/* Options whose values are not known, where they decide something. */
static int refuse_doubts(struct imported *m)
{
    int rc = 0;

    for (size_t i = 0; i < m->launch->doubts.count; i++) {
        const struct launch_doubt *doubt = &m->launch->doubts.items[i];
        const struct argument_row *row = dialect_row(m->dialect, doubt->name, false);

        if ((row ? row->class != ARGUMENT_IDLE : launch_is_count(doubt->name)) && !imported_is_set(m, doubt->name))
            rc = error_add(m->err, EXIT_INPUT, doubt->loc, "--%s: %s", doubt->name, doubt->why);
    }
    return rc;
}

int imported_sort(struct imported *m)
{
    const char *strangers = "";
    size_t rows = m->dialect->count;
    int rc = 0;

    m->given = ARENA_ARRAY(m->arena, const struct launch_argument *, rows);
    for (size_t i = 0; i < m->launch->arguments.count; i++)
        if (sort_one(m, &m->launch->arguments.items[i], rows, &strangers))
            rc = -1;
    for (size_t i = 0; i < m->options->nsets; i++)
        if (sort_set(m, &m->options->sets[i]))
            rc = -1;
    if (refuse_doubts(m))
        rc = -1;
    if (*strangers)
        launch_warn(m->launch, m->arena, m->launch->loc, "what these do is not simulated, and whether they have their "
                    "defaults is not known here: %s", strangers);
    if (m->others)
        launch_warn(m->launch, m->arena, m->launch->loc, "%s has arguments of its own, and what they do is not simulated: "
                    "%s; it may also set some of %s's by itself",
                    m->launch->program, m->others, m->dialect->framework);
    warn_alone(m);
    return rc;
}
