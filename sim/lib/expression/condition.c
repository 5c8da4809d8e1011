#include "expression/condition.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

struct member parts_member(const struct key_parts *parts, const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < parts->count; i++) {
        const struct key_part *part = &parts->items[i];
        size_t length = (size_t)(dot - path);
        const struct field *field;

        if (*part->path == *path && !strncmp(part->path, path, length) && !part->path[length] &&
            (field = field_find(part->table, dot + 1)))
            return (struct member){part, field};
    }
    return (struct member){NULL, NULL};
}

const char *parts_path_at(struct arena *arena, const struct key_parts *parts, size_t i)
{
    for (size_t p = 0; p < parts->count; p++) {
        const struct key_part *part = &parts->items[p];

        if (i < part->table->count)
            return arena_printf(arena, "%s.%s", part->path, part->table->fields[i].key);
        i -= part->table->count;
    }
    return NULL;
}

static const char *choice_text(const struct field *field, int i)
{
    return field->choices ? field->choices[i] : field->choice((size_t)i);
}

static struct value list_value(struct arena *arena, const struct field *field, const struct list *list)
{
    const char *text = list->count ? choice_text(field, ((const int *)list->items)[0]) : "";

    for (size_t i = 1; i < list->count; i++)
        text = arena_printf(arena, "%s %s", text, choice_text(field, ((const int *)list->items)[i]));
    return value_text(text);
}

static struct value member_value(struct arena *arena, const struct field *field, const void *object);

/* Of a mapping that may stand as a word: this word. */
static struct value word_value(struct arena *arena, const struct table *table, const void *object)
{
    bool other = table->exactly_one && !field_given(table, object, table->shorthand);

    return table->shorthand && !other ? member_value(arena, field_find(table, table->shorthand), object) :
           (struct value){.kind = VALUE_NONE};
}

/* The value of a field of the object. Of a list of names: these, with a space between them. */
static struct value member_value(struct arena *arena, const struct field *field, const void *object)
{
    const void *member = (const char *)object + field->offset;

    switch (field->kind) {
    case FIELD_INT:
        return value_number(*(const int *)member);
    case FIELD_BOOL:
        return value_boolean(*(const bool *)member);
    case FIELD_QUANTITY:
        return isnan(*(const double *)member) ? (struct value){.kind = VALUE_NONE} : value_number(*(const double *)member);
    case FIELD_STRING:
        return *(const char *const *)member ? value_text(*(const char *const *)member) : (struct value){.kind = VALUE_NONE};
    case FIELD_CHOICE:
        return value_text(choice_text(field, *(const int *)member));
    case FIELD_RECORD:
        return word_value(arena, field->table, member);
    case FIELD_OPTIONAL:
        return value_boolean(*(const void *const *)member != NULL);
    case FIELD_CHOICES:
        return list_value(arena, field, member);
    default:
        return (struct value){.kind = VALUE_NONE};
    }
}

/* One condition while it is parsed or evaluated. */
struct asking {
    struct arena *arena;
    const struct key_parts *parts;
    struct condition *condition;
};

static int find_fact(const struct key_parts *parts, const char *name)
{
    for (int i = 0; parts->facts && parts->facts[i].name; i++)
        if (text_same(parts->facts[i].name, name))
            return i;
    return -1;
}

static int find_name(void *context, const char *name, const char **why)
{
    static const char prefix[] = "said.";
    const struct asking *asking = context;
    bool said = !strncmp(name, prefix, strlen(prefix));
    const char *path = name + (said ? strlen(prefix) : 0);
    struct member member;
    int fact;

    (void)why;
    for (int i = 0; i < asking->condition->count; i++)
        if (text_same(asking->condition->names[i].path, path) && asking->condition->names[i].said == said)
            return i;
    member = parts_member(asking->parts, path);
    fact = member.field ? -1 : find_fact(asking->parts, name);
    if ((!member.field && fact < 0) || asking->condition->count == CONDITION_NAMES)
        return -1;
    asking->condition->names[asking->condition->count] = (struct condition_name){
        path, member.field, member.field ? (int)(member.part - asking->parts->items) : -1, fact, said};
    return asking->condition->count++;
}

static const char *name_at(size_t i, const void *context)
{
    const struct asking *asking = context;

    return parts_path_at(asking->arena, asking->parts, i);
}

/* Whether nobody has said the key's value yet. */
static bool is_open(const struct key_part *part, const struct field *field)
{
    const void *member = (const char *)part->object + field->offset;
    bool number = field->kind == FIELD_INT || field->kind == FIELD_CHOICE;

    return !field->fallback && (number ? !*(const int *)member : field->kind == FIELD_BOOL && !*(const bool *)member) &&
           !field_given(part->table, part->object, field->key);
}

static int value_of(void *context, int number, struct value *value, struct error *err)
{
    const struct asking *asking = context;
    const struct condition_name *name = &asking->condition->names[number];
    const struct key_parts *parts = asking->parts;
    const struct key_part *part = name->part < 0 ? NULL : &parts->items[name->part];

    (void)err;
    if (!part)
        *value = parts->facts[name->fact].of(parts->subject);
    else if (name->said)
        *value = value_boolean(part->object && field_given(part->table, part->object, name->field->key));
    else if (!part->object || (!parts->settled && is_open(part, name->field)))
        *value = (struct value){.kind = VALUE_NONE};
    else
        *value = member_value(asking->arena, name->field, part->object);
    return 0;
}

int condition_parse(struct arena *arena, const struct expression_text *text, const struct key_parts *parts,
                    struct condition *condition, struct error *err)
{
    struct condition_name read[CONDITION_NAMES];
    struct asking asking = {arena, parts, condition};
    const struct names names = {find_name, name_at, &asking};

    *condition = (struct condition){.names = read};
    if (expression_parse(arena, text, &names, &condition->expression, err))
        return -1;
    condition->names = ARENA_ARRAY(arena, struct condition_name, condition->count + 1);
    memcpy(condition->names, read, (size_t)condition->count * sizeof *read);
    return 0;
}

int condition_evaluate(struct arena *arena, const struct condition *condition, const struct key_parts *parts,
                       struct value *value, struct error *err)
{
    struct asking asking = {arena, parts, (struct condition *)(uintptr_t)condition};

    return expression_evaluate(condition->expression, value_of, &asking, value, err);
}

int condition_holds(struct arena *arena, const struct condition *condition, const struct key_parts *parts,
                    struct value *value, struct error *err)
{
    struct asking asking = {arena, parts, (struct condition *)(uintptr_t)condition};

    return expression_holds(condition->expression, value_of, &asking, value, err);
}
