/* mutants: the values that replace another one, for mutate.c, and which of them no key of that kind may have. */
#ifndef DTSIM_MUTANTS_H
#define DTSIM_MUTANTS_H

#include <math.h>
#include <stdlib.h>

#include "config/field.h"

enum { HUGE_LENGTH = 5000 };

enum shape { NOTHING, EMPTY_MAPPING, EMPTY_LIST, EMPTY_TEXT, LONG_TEXT, COUNT_7, NEGATIVE, BOOLEAN, A_WORD, A_MAPPING,
             LIST_IN_LIST, LIST_OF_NULL, MAPPING_TO_NULL, TINY, LARGE, LEAST, MOST, BELOW_LEAST, ABOVE_MOST, SHAPES };
static const char *const shapes[SHAPES] = {
    "null", "{}", "[]", "\"\"", "huge", "7", "-1e300", "true", "word", "{a: 1}", "[[1]]", "[null]", "{a: null}",
    "5e-324", "1e308",           /* with the unit of the number */
    "least", "most", "below", "above",       /* of a number whose field is known */
};

static inline const char *mutant_at(size_t m)
{
    return m < SHAPES ? shapes[m] : NULL;
}

/* Of words of files that are no trees. */
static inline const char *word_at(size_t m)
{
    static char huge[HUGE_LENGTH + 1];
    static const char *const words[] = {"", "null", huge, "7", "-1", "-1e300", "1e999", "nan", "5e-324", "0x7f", "\x1b[31m",
                                        "\xff\xfe", "99999999999999999999", "a b", "\n", "0"};

    if (!*huge)
        memset(huge, 'x', HUGE_LENGTH);
    return m < COUNT(words) ? words[m] : NULL;
}

static inline bool is_number(const struct field *field)
{
    return field && (field->kind == FIELD_INT || field->kind == FIELD_QUANTITY);
}

/* The bounds of a number; infinite where there is none. */
static inline void number_bounds(const struct field *field, double bounds[2])
{
    bool bounded = field->min != 0 || field->max != 0;

    bounds[0] = 0, bounds[1] = 2147483647;
    if (field->kind == FIELD_QUANTITY)
        unit_bounds(field->unit, &bounds[0], &bounds[1]);
    bounds[0] = bounded && (field->min != 0 || field->kind == FIELD_INT) ? field->min : bounds[0];
    bounds[1] = bounded && field->max >= field->min && field->max < bounds[1] ? field->max : bounds[1];
}

static inline const char *number_text(struct arena *arena, size_t shape, const struct field *field)
{
    bool whole = field->kind == FIELD_INT;
    double bounds[2], value;
    char text[64];

    number_bounds(field, bounds);
    value = bounds[shape == MOST || shape == ABOVE_MOST];
    if (shape == BELOW_LEAST)
        value = whole || value < 0 ? value - 1 : value / 1.5;
    else if (shape == ABOVE_MOST)
        value = whole ? value + 1 : value * 1.5;
    if (whole)
        return arena_printf(arena, "%.0f", value);
    return arena_strdup(arena, unit_format(field->unit, value, text, sizeof text));
}

/* The mutant that replaces `own`; NULL where it is the same, or makes no sense there. */
static inline struct node *mutant_node(struct arena *arena, size_t m, const struct node *own, const struct field *field)
{
    char huge[HUGE_LENGTH + 1], *unit = NULL;
    struct error err = {0};
    struct node *root;

    if (m >= LEAST)
        return is_number(field) ? node_scalar(arena, number_text(arena, m, field), false) : NULL;
    if (m == LONG_TEXT) {
        memset(huge, 'x', HUGE_LENGTH);
        huge[HUGE_LENGTH] = '\0';
        return node_scalar(arena, arena_strdup(arena, huge), true);
    }
    if (m == TINY || m == LARGE) {
        if (own->kind != NODE_SCALAR || own->quoted || (strtod(own->text, &unit), unit == own->text))
            return NULL;
        return node_scalar(arena, arena_printf(arena, "%s%s", shapes[m], unit), false);
    }
    if (conf_parse(arena, "mutant", shapes[m], strlen(shapes[m]), &root, &err))
        BUG("%s", err.messages[0].text);
    return node_equal(root, own) ? NULL : root;
}

/* Whether the mutant is no value of the field's kind: whoever takes it has not looked. */
static inline bool mutant_is_none(size_t m, const struct node *own, const struct node *mutant, const struct field *field)
{
    bool list = mutant->kind == NODE_SEQUENCE, mapping = mutant->kind == NODE_MAPPING;
    bool text = mutant->kind == NODE_SCALAR && m != COUNT_7 && m != NEGATIVE && m < TINY;

    if (m == NOTHING)
        return true;
    if (!field)                  /* a number or a truth stays one */
        return own->kind == NODE_SCALAR && !own->quoted && *own->text && strspn(own->text, "0123456789.") ==
               strlen(own->text) && (m == EMPTY_MAPPING || m == EMPTY_LIST || m == EMPTY_TEXT || m == LIST_OF_NULL);
    switch (field->kind) {
    case FIELD_INT:
    case FIELD_QUANTITY:
        return list || mapping || text || m == BELOW_LEAST || m == ABOVE_MOST;
    case FIELD_BOOL:
        return m != BOOLEAN;
    case FIELD_STRING:
        return list || mapping;
    case FIELD_CHOICE:
        return list || mapping || (m != A_WORD && m != BOOLEAN);
    case FIELD_CHOICES:
    case FIELD_INTS:
        return mapping || (list && m != EMPTY_LIST) || m == EMPTY_TEXT || m == LONG_TEXT;
    default:
        return m == LIST_OF_NULL || m == EMPTY_TEXT || m == MAPPING_TO_NULL;
    }
}

#endif
