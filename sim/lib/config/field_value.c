#include "config/field_value.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf_text.h"

bool word_in(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = words; at && length && (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

const struct field *field_find(const struct table *table, const char *key)
{
    for (size_t i = 0; table && i < table->count; i++)
        if (text_same(table->fields[i].key, key))
            return &table->fields[i];
    return NULL;
}

static bool same_word(const char *a, size_t length, const char *b)
{
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)a[i]) != (b[i] == '-' ? '_' : tolower((unsigned char)b[i])))
            return false;
    return b[length] == '\0';
}

bool field_is_also(const struct field *field, const char *word)
{
    for (const char *also = field->also; also && *also;) {
        size_t length = strcspn(also, " ");

        if (same_word(also, length, word))
            return true;
        also += length + strspn(also + length, " ");
    }
    return false;
}

const struct field *field_hosted(const struct table *table, size_t i)
{
    for (size_t t = 0; table->hosts && table->hosts(t); t++)
        for (size_t k = 0; k < table->hosts(t)->count; k++)
            if (word_in(table->hosts(t)->delegated, table->hosts(t)->fields[k].key) && i-- == 0)
                return &table->hosts(t)->fields[k];
    return NULL;
}

const struct field *field_standing(const struct table *table, size_t i)
{
    for (size_t k = 0; k < table->count; k++)
        if (!word_in(table->delegated, table->fields[k].key) && i-- == 0)
            return &table->fields[k];
    return field_hosted(table, i);
}

static const struct field *of_length(const struct table *table, const char *key, size_t length)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strncmp(table->fields[i].key, key, length) && !table->fields[i].key[length])
            return &table->fields[i];
    return NULL;
}

const struct field *field_at(const struct table *table, const char *key, size_t length)
{
    const struct field *field = of_length(table, key, length);

    if (field && !word_in(table->delegated, field->key))
        return field;
    for (size_t t = 0; table->hosts && table->hosts(t); t++) {
        field = of_length(table->hosts(t), key, length);
        if (field && word_in(table->hosts(t)->delegated, field->key))
            return field;
    }
    return NULL;
}

const char *key_candidate(size_t i, const void *context)
{
    const struct key_tables *keys = context;
    const struct field *field;

    for (int t = 0; t < 2 && keys->tables[t]; t++)
        for (size_t k = 0; (field = field_standing(keys->tables[t], k)); k++)
            if (i-- == 0)
                return field->key;
    return NULL;
}

char *keys_text(struct arena *arena, const struct key_tables *keys)
{
    char *text = arena_strdup(arena, "");
    const char *key;

    for (size_t i = 0; (key = key_candidate(i, keys)); i++)
        text = arena_printf(arena, "%s%s%s", text, i > 0 ? ", " : "", key);
    return text;
}

bool key_known(const struct key_tables *keys, const char *key)
{
    for (int t = 0; t < 2 && keys->tables[t]; t++)
        if (field_at(keys->tables[t], key, strlen(key)))
            return true;
    return field_find(keys->tables[0], key) != NULL;         /* a delegated key: whoever reads the object refuses it */
}

const char *key_meant(const struct key_tables *keys, const char *word)
{
    for (int t = 0; t < 2 && keys->tables[t]; t++)
        for (size_t i = 0; i < keys->tables[t]->count; i++)
            if (field_is_also(&keys->tables[t]->fields[i], word))
                return keys->tables[t]->fields[i].key;
    return nearest(word, key_candidate, keys);
}

const char *key_below(struct arena *arena, const struct table *table, const char *key)
{
    const char *found = NULL;

    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        const struct field *below = NULL, *one;

        for (size_t k = 0; field->table && field->kind != FIELD_LIST && (one = field_standing(field->table, k)); k++)
            if (text_same(one->key, key) || (!below && field_is_also(one, key)))
                below = one;
        if (below && found)
            return NULL;
        if (below)
            found = arena_printf(arena, "%s.%s", field->key, below->key);
    }
    return found;
}

/* The table of the values at a dotted path's next part. */
static const struct table *table_below(const struct table *table, const char *key)
{
    const struct field *field = field_find(table, key);

    return field ? field->table : NULL;
}

int field_open(struct arena *arena, const struct table *table, struct node *root, const char *path, struct error *err)
{
    const char *part = path;

    for (const char *dot; (dot = strchr(part, '.')); part = dot + 1) {
        const char *way = arena_strndup(arena, path, (size_t)(dot - path));
        struct node *node, *mapping;

        if (strspn(part, "0123456789") != (size_t)(dot - part))      /* an item of a list has the list's table */
            table = table_below(table, way + (part - path));
        node = table && table->shorthand ? node_at(root, way) : NULL;
        if (!node || node->kind != NODE_SCALAR || node_is_null(node))
            continue;
        mapping = node_mapping(arena);
        mapping->loc = node->loc;
        node_put(arena, mapping, table->shorthand, node);
        if (conf_put(arena, root, way, mapping, node->loc, err))
            return -1;
    }
    return 0;
}

int reading_fail(const struct reading *reading, struct loc loc, const char *key, const char *format, ...)
{
    const char *name = reading->name ? reading->name : "";
    va_list args;
    char *text;

    if (key && reading->unsaid && !strcmp(key, reading->unsaid))
        key = NULL;
    va_start(args, format);
    text = xvprintf(format, args);
    va_end(args);
    error_add(reading->err, EXIT_INPUT, loc, "%s%s%s%s%s", name, *name ? ": " : "", key ? key : "", key ? ": " : "",
              text);
    free(text);
    return -1;
}

int reading_unexpected(const struct reading *reading, const struct node *node, const char *key, const char *expected)
{
    char shown[CLIP_SIZE];

    if (node->kind != NODE_SCALAR)
        return reading_fail(reading, node->loc, key, "expected %s, found a %s", expected,
                            node->kind == NODE_SEQUENCE ? "list" : "mapping");
    if (node_is_null(node))
        return reading_fail(reading, node->loc, key, "expected %s, found nothing", expected);
    return reading_fail(reading, node->loc, key, "expected %s, found '%s'%s", expected,
                        text_clip(node->text, shown, sizeof shown), node->quoted ? " in quotes" : "");
}

/* Whether the field holds one integer or a list of integers. */
static bool integral(const struct field *field)
{
    return field->kind == FIELD_INT || field->kind == FIELD_INTS;
}

bool field_min(const struct field *field, double *min)
{
    bool bounded = field->min != 0 || field->max != 0;

    *min = bounded ? field->min : 0;
    if (integral(field))
        return bounded && field->min > INT_MIN;
    return isfinite(*min);
}

bool field_max(const struct field *field, double *max)
{
    *max = field->max;
    if (integral(field) && field->max >= INT_MAX)
        return false;
    /* A maximum below the minimum was left out: {.min = 1}. */
    return (field->min != 0 || field->max != 0) && field->max >= field->min && isfinite(field->max);
}

char *bounds_text(struct arena *arena, const struct field *field)
{
    enum unit unit = integral(field) ? UNIT_NUMBER : field->unit;
    double min, max;
    bool has_min = field_min(field, &min), has_max = field_max(field, &max);
    char low[48], high[48];

    unit_format(unit, min, low, sizeof low);
    unit_format(unit, max, high, sizeof high);
    if (field->positive && has_min && min <= 0)
        return arena_printf(arena, "more than 0%s%s", has_max ? " and at most " : "", has_max ? high : "");
    if (has_min && has_max)
        return arena_printf(arena, "%s to %s", low, high);
    if (has_min)
        return arena_printf(arena, "%s or more", low);
    return has_max ? arena_printf(arena, "at most %s", high) : NULL;
}

static int int_parse(const struct reading *reading, const struct field *field, const struct node *node, int *value)
{
    const char *digits = node->text + (*node->text == '-' || *node->text == '+');
    double min, max, number;
    bool decimal = strspn(digits, "0123456789") == strlen(digits) && *digits && (*digits != '0' || !digits[1]);
    char shown[CLIP_SIZE];

    if (node->quoted || !decimal)
        return reading_unexpected(reading, node, field->key, *digits >= '0' && *digits <= '9' && !node->quoted ?
                                  "an integer in plain decimal digits" : value_expectation(field));
    number = strtod(node->text, NULL);
    text_clip(node->text, shown, sizeof shown);
    if (number < INT_MIN || number > INT_MAX) {
        /* The number does not fit in an int. The message gives both bounds: "expected 1 or more" would not help. */
        int low = field_min(field, &min) ? (int)min : INT_MIN, high = field_max(field, &max) ? (int)max : INT_MAX;

        return reading_fail(reading, node->loc, field->key, "%s is out of range; expected %d to %d", shown, low, high);
    }
    if ((field_min(field, &min) && number < min) || (field_max(field, &max) && number > max))
        return reading_fail(reading, node->loc, field->key, "%s is out of range; expected %s", shown,
                            bounds_text(reading->arena, field));
    *value = (int)number;
    return 0;
}

static int bool_parse(const struct reading *reading, const struct field *field, const struct node *node, bool *value)
{
    if (node->quoted || (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0))
        return reading_unexpected(reading, node, field->key, "true or false");
    *value = node->text[0] == 't';
    return 0;
}

static int quantity_parse(const struct reading *reading, const struct field *field, const struct node *node,
                          double *value)
{
    char why[256], shown[CLIP_SIZE];
    double min, max, number;

    /* Text in quotes may be a quantity with a unit, since JSON must quote it, but not a bare number. */
    if (node->quoted && unit_parse(UNIT_NUMBER, node->text, &number, why, sizeof why) == 0)
        return reading_unexpected(reading, node, field->key, unit_expectation(field->unit));
    if (unit_parse(field->unit, node->text, &number, why, sizeof why) ||
        unit_plausible(field->unit, number, node->text, why, sizeof why))
        return reading_fail(reading, node->loc, field->key, "%s", why);
    if ((field_min(field, &min) && number < min) || (field_max(field, &max) && number > max) ||
        (field->positive && number == 0))
        return reading_fail(reading, node->loc, field->key, "%s is out of range; expected %s",
                            text_clip(node->text, shown, sizeof shown), bounds_text(reading->arena, field));
    *value = number;
    return 0;
}

const char *choice_at(const struct field *field, size_t i)
{
    return field->choices ? field->choices[i] : field->choice(i);
}

static const char *choice_candidate(size_t i, const void *context)
{
    return choice_at(context, i);
}

char *choices_text(struct arena *arena, const struct field *field)
{
    char *text = arena_strdup(arena, "");
    const char *name;

    for (size_t i = 0; (name = choice_at(field, i)); i++)
        text = arena_printf(arena, "%s%s%s", text, i > 0 ? ", " : "", name);
    return text;
}

int choice_parse(const struct reading *reading, const struct field *field, const struct node *node, int *index)
{
    const char *name, *near;
    char shown[CLIP_SIZE];

    if (node->kind != NODE_SCALAR || node_is_null(node))
        return reading_unexpected(reading, node, field->key,
                                  arena_printf(reading->arena, "one of %s", choices_text(reading->arena, field)));
    for (size_t i = 0; (name = choice_at(field, i)); i++)
        if (strcmp(name, node->text) == 0) {
            *index = (int)i;
            return 0;
        }
    text_clip(node->text, shown, sizeof shown);
    near = error_shows(reading->err, &node->loc) ? nearest(node->text, choice_candidate, field) : NULL;
    if (near)
        return reading_fail(reading, node->loc, field->key, "unknown value '%s'; did you mean '%s'?", shown, near);
    return reading_fail(reading, node->loc, field->key, "unknown value '%s'; expected one of %s", shown,
                        choices_text(reading->arena, field));
}

const char *value_expectation(const struct field *field)
{
    switch (field->kind) {
    case FIELD_INT:
    case FIELD_INTS: return field->may_be_auto && field->kind == FIELD_INT ? "an integer or auto" : "an integer";
    case FIELD_BOOL: return "true or false";
    case FIELD_QUANTITY: return unit_expectation(field->unit);
    default: return "text";
    }
}

int value_parse(const struct reading *reading, const struct field *field, const struct node *node, void *member)
{
    if (field->kind == FIELD_CHOICE)
        return choice_parse(reading, field, node, member);
    for (size_t i = 0; field->by_name && node->kind == NODE_MAPPING && i < node->count; i++)
        if (value_parse(reading, field, node->items[i], member))
            return -1;
    if (field->by_name && node->kind == NODE_MAPPING && node->count)
        return 0;
    if (node->kind != NODE_SCALAR || node_is_null(node))
        return reading_unexpected(reading, node, field->key, value_expectation(field));
    switch (field->kind) {
    case FIELD_INT:
        if (field->may_be_auto && text_same(node->text, "auto")) {
            *(int *)member = FIELD_AUTO;
            return 0;
        }
        return int_parse(reading, field, node, member);
    case FIELD_INTS:
        return int_parse(reading, field, node, member);
    case FIELD_BOOL:
        return bool_parse(reading, field, node, member);
    case FIELD_QUANTITY:
        return quantity_parse(reading, field, node, member);
    case FIELD_STRING:
        *(const char **)member = node->text;
        return 0;
    default:
        BUG("field '%s' is no scalar", field->key);
    }
}
