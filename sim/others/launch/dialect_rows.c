#include "launch/dialect_rows.h"

#include <ctype.h>
#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "expression/expression.h"

/* A row at work: the values of its letters, and the word of `same`. */
struct trial {
    struct arena *arena;
    const struct dialect_ways *ways;
    const char *const *paths;
    const char *letters[LETTERS], *same;
};

static int name_of(void *context, int name, struct value *value, struct error *err)
{
    const struct trial *t = context;

    (void)err;
    *value = value_of_word(name < LETTERS ? t->letters[name] : t->ways->path(t->ways->context, t->paths[name - LETTERS]));
    return 0;
}

static bool evaluate(struct trial *t, const struct expression *expression, double *number)
{
    struct value value;
    struct error err = {0};
    bool good = !expression_evaluate(expression, name_of, t, &value, &err) && value.kind == VALUE_NUMBER;

    error_release(&err);
    *number = good ? value.number : 0;
    return good;
}

static bool same_text(const char *a, const char *b)
{
    struct value x = value_of_word(a), y = value_of_word(b);

    return !strcmp(a, b) || (x.kind == VALUE_NUMBER && value_equal(&x, &y));
}

/* The value of an expression at a number in the place of a letter. */
static bool at_number(struct trial *t, const struct expression *expression, int letter, double number, double *value)
{
    bool good;

    t->letters[letter] = arena_printf(t->arena, "%.17g", number);
    good = evaluate(t, expression, value);
    t->letters[letter] = NULL;
    return good;
}

/* The whole number in the place of a letter with which an expression, a line or a hyperbola of it, has that value. */
static bool solve(struct trial *t, const struct expression *expression, int letter, double wanted)
{
    double zero, one, two, found, check;

    if (!at_number(t, expression, letter, 1, &one) || !at_number(t, expression, letter, 2, &two))
        return false;
    if (at_number(t, expression, letter, 0, &zero))
        found = one != zero ? round((wanted - zero) / (one - zero)) : NAN;
    else
        found = round(2 * (one - two) / (wanted - one + 2 * (one - two)));
    if (!isfinite(found) || !at_number(t, expression, letter, found, &check) || check != wanted)
        return false;
    t->letters[letter] = arena_printf(t->arena, "%.0f", found);
    return true;
}

enum fits { FITS, FITS_NOT, FITS_LATER };

static enum fits match_expression(struct trial *t, const struct expression *expression, const char *plain, const char *text)
{
    int letter = -1;
    double number;
    struct value value = value_of_word(text);

    for (int i = 0; i < LETTERS; i++)
        if (expression_uses(expression, i) && !t->letters[i]) {
            if (letter >= 0)
                return FITS_LATER;
            letter = i;
        }
    if (!plain[1]) {                                         /* a letter alone */
        if (letter >= 0)
            t->letters[letter] = text;
        return letter >= 0 || same_text(t->letters[*plain - 'A'], text) ? FITS : FITS_NOT;
    }
    if (value.kind != VALUE_NUMBER)
        return FITS_NOT;
    if (letter >= 0)
        return solve(t, expression, letter, value.number) ? FITS : FITS_NOT;
    return evaluate(t, expression, &number) && number == value.number ? FITS : FITS_NOT;
}

/* "[a, b]" as "a,b". */
static const char *plain_list(struct arena *arena, const char *text)
{
    const char *plain = "";

    for (const char *at = text + 1; *at; at += strcspn(at, " ]"), at += strspn(at, " ]"))
        plain = arena_printf(arena, "%s%.*s", plain, (int)strcspn(at, " ]"), at);
    return plain;
}

/* Whether a value is one of a term, of which it says letters. `other`: the term with words that a `same` means. */
static enum fits match(struct trial *t, const struct dialect_term *term, const char *words, const char *text)
{
    enum fits all = FITS;

    if (term->words || term->same) {
        if (!word_in(term->words ? term->words : words, text) || (t->same && strcmp(t->same, text) != 0))
            return FITS_NOT;
        t->same = text;
        return FITS;
    }
    if (term->list)
        text = *text == '[' ? plain_list(t->arena, text) : text;
    for (size_t i = 0; i < term->count; i++) {
        size_t length = term->between ? strcspn(text, ",") : strlen(text);
        const char *item = arena_strndup(t->arena, text, length);
        enum fits one = term->items[i].value ? match_expression(t, term->items[i].value, term->items[i].text, item) :
                        same_text(term->items[i].text, item) ? FITS : FITS_NOT;

        if (one == FITS_NOT || (i + 1 < term->count) != (text[length] == ','))
            return FITS_NOT;
        all = one == FITS_LATER ? one : all;
        text += length + (text[length] == ',');
    }
    return all;
}

/* The value that a term has; NULL: a letter is not known. */
static const char *made(struct trial *t, const struct dialect_term *term)
{
    const char *text = "";
    double number;

    if (term->same || term->words)
        return t->same ? t->same : term->words ? arena_strndup(t->arena, term->words, strcspn(term->words, " ")) : NULL;
    for (size_t i = 0; i < term->count; i++) {
        const char *plain = term->items[i].text, *item = plain;

        if (term->items[i].value && !plain[1])
            item = t->letters[*plain - 'A'];
        else if (term->items[i].value)
            item = evaluate(t, term->items[i].value, &number) ? arena_printf(t->arena, "%.15g", number) : NULL;
        if (!item)
            return NULL;
        text = arena_printf(t->arena, "%s%s%s", text, i ? "," : "", item);
    }
    return term->list ? arena_printf(t->arena, "[%s]", text) : text;
}

/* A message with the values of its letters and paths. */
static const char *message_of(struct trial *t, const char *text)
{
    const char *made = "", *end;

    for (const char *at; (at = strchr(text, '<')) && (end = strchr(at, '>')); text = end + 1) {
        const char *name = arena_strndup(t->arena, at + 1, (size_t)(end - at) - 1), *value = NULL;

        if (isupper((unsigned char)name[0]) && !name[1])
            value = t->letters[*name - 'A'];
        else if (strchr(name, '.'))
            value = t->ways->path(t->ways->context, name);
        made = arena_printf(t->arena, value ? "%s%.*s%s" : "%s%.*s<%s>", made, (int)(at - text), text, value ? value : name);
    }
    return arena_printf(t->arena, "%s%s", made, text);
}

static const char *words_of(const struct dialect_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->terms[i].words)
            return side->terms[i].words;
    return NULL;
}

/* Matches what is read, and what stands on the other side already. */
static bool match_sides(struct trial *t, const struct dialect_side *from, const struct dialect_side *to)
{
    const struct dialect_ways *ways = t->ways;
    bool later = true;

    for (int pass = 0; pass < 3 && later; pass++) {
        later = false;
        for (size_t i = 0; i < from->count + to->count; i++) {
            const struct dialect_term *term = i < from->count ? &from->terms[i] : &to->terms[i - from->count];
            const char *text = (i < from->count ? ways->read : ways->written)(ways->context, term->key);
            enum fits fits = text ? match(t, term, words_of(i < from->count ? to : from), text) :
                             i < from->count ? FITS_NOT : FITS;

            if (fits == FITS_NOT)
                return false;
            later |= fits == FITS_LATER;
        }
    }
    return !later;
}

static bool has_written(const struct dialect_ways *ways, const char *keys)
{
    char key[128];

    for (const char *at = keys; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, " "), at);
        if (ways->written(ways->context, key))
            return true;
    }
    return false;
}

static void apply(struct trial *t, const struct dialect_row *row)
{
    const struct dialect_ways *ways = t->ways;
    const struct dialect_side *from = ways->emits ? &row->is : &row->say, *to = ways->emits ? &row->say : &row->is;
    const char *texts[TERMS];
    struct value holds = value_boolean(true);
    struct error err = {0};
    bool anything = false;

    if (has_written(ways, row->missing) || !match_sides(t, from, to))
        return;
    if (row->where && expression_holds(row->where, name_of, t, &holds, &err))
        holds = value_boolean(false);                        /* values of two kinds */
    error_release(&err);
    if (holds.kind != VALUE_BOOLEAN || !holds.boolean)
        return;
    if (ways->tell && row->message)
        ways->tell(ways->context, row, message_of(t, row->message));
    for (size_t i = 0; i < to->count; i++) {
        texts[i] = made(t, &to->terms[i]);
        if (!texts[i])
            return;
        anything |= !ways->written(ways->context, to->terms[i].key);
    }
    for (size_t i = 0; anything && i < to->count; i++)
        if (!ways->written(ways->context, to->terms[i].key))
            ways->write(ways->context, row, to->terms[i].key, texts[i]);
}

bool dialect_rows_take(struct arena *arena, const struct dialect_rows *rows, const char *argument, const char *text,
                       const struct dialect_ways *ways, const char **words)
{
    *words = NULL;
    for (size_t i = 0; i < rows->count; i++)
        for (size_t k = 0; k < rows->items[i].say.count && rows->items[i].importing; k++) {
            const struct dialect_term *term = &rows->items[i].say.terms[k];
            struct trial trial = {.arena = arena, .ways = ways, .paths = rows->paths};
            const char *one = term->words ? term->words : term->same ? words_of(&rows->items[i].is) : term->items[0].text;

            if (strcmp(term->key, argument))
                continue;
            if (match(&trial, term, words_of(&rows->items[i].is), text) != FITS_NOT)
                return true;
            if (!*words || !strstr(*words, one))
                *words = arena_printf(arena, "%s%s%s", *words ? *words : "", *words ? ", " : "", one);
        }
    return false;
}

void dialect_rows_apply(struct arena *arena, const struct dialect_rows *rows, const char *part, const struct dialect_ways *ways)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct dialect_row *row = &rows->items[i];
        struct trial trial = {.arena = arena, .ways = ways, .paths = rows->paths};

        if (!strcmp(row->part, part) && (ways->emits ? row->emitting : row->importing) && ways->wanted(ways->context, row))
            apply(&trial, row);
    }
}
