#include "base/text.h"
#include "config/field_value.h"

#include <string.h>

/* A table may contain itself: help stops at this depth. */
enum { HELP_DEPTH = 8 };

/* The values that a field accepts: "integer, 1 or more", "one of ring, tree". */
static const char *kind_text(struct arena *arena, const struct field *field)
{
    char *bounds = NULL;

    switch (field->kind) {
    case FIELD_INT:
        bounds = bounds_text(arena, field);
        return arena_printf(arena, "integer%s%s%s", bounds ? ", " : "", bounds ? bounds : "", field->may_be_auto ? ", or auto" : "");
    case FIELD_BOOL:
        return "true or false";
    case FIELD_QUANTITY:
        /* Help does not say "0 or more" of every quantity. */
        if (field->min != 0 || field->max != 0 || field->positive)
            bounds = bounds_text(arena, field);
        return bounds ? arena_printf(arena, "%s, %s", unit_expectation(field->unit), bounds)
                      : unit_expectation(field->unit);
    case FIELD_STRING:
        return "text";
    case FIELD_CHOICE:
        return field->choice ? "a name" : arena_printf(arena, "one of %s", choices_text(arena, field));
    case FIELD_CHOICES:
        return arena_printf(arena, "%sa list of %s", field->single ? "one, or " : "", choices_text(arena, field));
    case FIELD_INTS:
        bounds = bounds_text(arena, field);
        return arena_printf(arena, "a list of integers%s%s%s", bounds ? ", " : "", bounds ? bounds : "",
                            field->may_be_auto ? ", or auto" : "");
    case FIELD_LIST:
        return field->single ? "a mapping or a list of mappings" : "a list of mappings";
    case FIELD_RECORD:
    case FIELD_OPTIONAL:
        if (!field->table->count)            /* only the function that reads it knows more */
            return field->table->brief;
        return field->table->shorthand ? arena_printf(arena, "a mapping, or its %s alone", field->table->shorthand)
                                       : "a mapping";
    }
    BUG("'%s' is of no kind", field->key);
}

/* A name, padded to `width`, and what there is to say of it, in lines. */
static void name_and_text(int indent, int width, const char *name, const char *text, FILE *out)
{
    int column = fprintf(out, "%*s%-*s ", indent, "", width, name);

    text_wrap(text, column, indent + width + 1, text_width(out, 100), out);
}

/* A line or more for each value of a choice that has a text of its own. */
static void choices_help(const struct field *field, int depth, FILE *out)
{
    for (size_t i = 0; field->choice_briefs && field->choice_briefs[i]; i++)
        name_and_text(2 * depth + 25, 19, field->choices[i], field->choice_briefs[i], out);
}

/* Whether it may be left out, and what holds then: "; default 1". */
static const char *need_text(struct arena *arena, const struct table *table, const struct field *field)
{
    if (field->fallback)
        return arena_printf(arena, "; default %s", field->fallback);
    if (field->required)
        return field->dispensable ? "; mostly required" : "; required";
    return word_in(table->exactly_one, field->key) ? "; exactly one of these" : "";
}

void field_help(const struct table *table, int depth, FILE *out)
{
    struct arena arena = {0};

    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        const char *need = need_text(&arena, table, field);

        if (word_in(table->delegated, field->key))
            continue;
        name_and_text(2 * depth + 2, 20 - 2 * depth > 0 ? 20 - 2 * depth : 0, field->key,
                      arena_printf(&arena, "%s (%s%s)", field->brief ? field->brief : "", kind_text(&arena, field),
                                   need), out);
        choices_help(field, depth, out);
        if (field->table && !field->table->partial && depth < HELP_DEPTH)     /* partial: another table prints it */
            field_help(field->table, depth + 1, out);
    }
    arena_release(&arena);
}

/* The part of the brief before its first semicolon, colon or parenthesis. */
static const char *short_brief(struct arena *arena, const struct field *field)
{
    const char *brief = field->brief ? field->brief : "";
    size_t end = strlen(brief);

    for (size_t i = 0; i < end; i++)
        if (!strncmp(brief + i, "; ", 2) || !strncmp(brief + i, ": ", 2) || !strncmp(brief + i, " (", 2))
            end = i;
    return arena_strndup(arena, brief, end);
}

/* Adds the values that the key accepts, or its default alone, where the line has room. */
static void summary_line(struct arena *arena, const struct table *table, const struct field *field, int indent,
                         FILE *out)
{
    const char *brief = short_brief(arena, field), *need = need_text(arena, table, field);
    const char *all = arena_printf(arena, "%s (%s%s)", brief, kind_text(arena, field), need);
    const char *some = *need ? arena_printf(arena, "%s (%s)", brief, need + 2) : brief;
    size_t room = (size_t)(text_width(out, 100) - indent - 21);

    name_and_text(indent, 20, field->key, strlen(all) <= room ? all : strlen(some) <= room ? some : brief, out);
}

void field_summary(const struct table *table, FILE *out)
{
    struct arena arena = {0};

    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];

        fprintf(out, "%s", i && field->table ? "\n" : "");
        summary_line(&arena, table, field, 0, out);
        for (size_t k = 0; field->table && k < field->table->count; k++)
            if (!word_in(field->table->delegated, field->table->fields[k].key))
                summary_line(&arena, field->table, &field->table->fields[k], 2, out);
    }
    arena_release(&arena);
}

static void help_alone(const struct table *table, const struct field *field, FILE *out)
{
    struct table alone = *table;

    alone.fields = field;
    alone.count = 1;
    alone.delegated = NULL;
    field_help(&alone, 0, out);
}

void field_help_hosted(const struct table *table, FILE *out)
{
    const struct field *field;

    for (size_t i = 0; (field = field_hosted(table, i)); i++)
        help_alone(table, field, out);
}

/* Whether an earlier extension is the same. */
static bool seen(const struct table *table, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (table->extension_at(i) == table->extension_at(index))
            return true;
    return false;
}

bool field_help_at(const struct table *table, const char *path, FILE *out)
{
    size_t length = strcspn(path, ".");
    const struct field *field = field_at(table, path, length);
    bool found = false;

    if (field && path[length])
        return field->table && field_help_at(field->table, path + length + 1, out);
    if (field) {
        help_alone(table, field, out);
        return true;
    }
    for (size_t i = 0; table->extension_at && table->extension_at(i); i++)
        if (!seen(table, i) && field_find(table->extension_at(i), path)) {
            fprintf(out, "%s\n", table->extension_at(i)->brief);
            found |= field_help_at(table->extension_at(i), path, out);
        }
    return found;
}

/* `where`: the path down to this table, with a dot at its end. */
static bool help_everywhere(struct arena *arena, const struct table *table, const char *where, const char *key,
                            int depth, FILE *out)
{
    const struct field *field;
    bool found = false;

    for (size_t i = 0; (field = field_standing(table, i)); i++) {
        if (!strcmp(field->key, key) || field_is_also(field, key)) {
            fprintf(out, "%s%s\n", where, field->key);
            help_alone(table, field, out);
            found = true;
        }
        if (field->table && !field->table->partial && depth < HELP_DEPTH)
            found |= help_everywhere(arena, field->table, arena_printf(arena, "%s%s.", where, field->key), key,
                                     depth + 1, out);
    }
    for (size_t i = 0; table->extension_at && table->extension_at(i); i++)
        if (!seen(table, i))
            found |= help_everywhere(arena, table->extension_at(i),
                                     arena_printf(arena, "%s: %s", table->extension_at(i)->brief, where), key, depth,
                                     out);
    return found;
}

bool field_help_everywhere(const struct table *table, const char *key, FILE *out)
{
    struct arena arena = {0};
    bool found = help_everywhere(&arena, table, "", key, 0, out);

    arena_release(&arena);
    return found;
}
