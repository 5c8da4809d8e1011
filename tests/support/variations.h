/* variations: "--set" assignments that change every key of a scenario, found in its table: a key that is added is varied
 * without a line here. */
#ifndef DTSIM_VARIATIONS_H
#define DTSIM_VARIATIONS_H

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/scenario.h"

struct variations { char **items; size_t count, capacity; };

static inline __attribute__((format(printf, 2, 3))) void variation_add(struct variations *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    BUG_IF(vasprintf(GROW(list), format, args) < 0);
    va_end(args);
}

static inline void vary_quantity(const char *path, const struct field *field, double value, struct variations *list)
{
    static const double factors[] = {0.5, 1.25, 3};
    char text[64];

    for (size_t i = 0; i < COUNT(factors); i++)
        variation_add(list, "%s=%s", path,
                      unit_format(field->unit, isfinite(value) && value > 0 ? value * factors[i] : factors[i], text,
                                  sizeof text));
}

static inline void vary_choices(const char *path, const struct field *field, struct variations *list)
{
    const char *name;

    for (size_t i = 0; (name = field->choices ? field->choices[i] : field->choice(i)); i++)
        variation_add(list, "%s=%s", path, name);
}

static inline void vary_fields(const char *path, const struct table *table, const void *object,
                               struct variations *list);

/* The first item of a list, where it has any. */
static inline void vary_first(const char *path, const struct table *table, const struct list *found,
                              struct variations *list)
{
    char *first = NULL;

    BUG_IF(asprintf(&first, "%s.0", path) < 0);
    if (found->count && found->node && found->node->kind == NODE_SEQUENCE)
        vary_fields(first, table, found->items, list);
    free(first);
}

static inline void vary_field(const char *path, const struct field *field, const char *member,
                              struct variations *list)
{
    int value = 0;

    switch (field->kind) {
    case FIELD_INT:
        memcpy(&value, member, sizeof value);
        for (int more = 1; more <= 4; more *= 2)
            variation_add(list, "%s=%d", path, value > 2 ? value * more / 2 : value + more);
        break;
    case FIELD_BOOL:
        variation_add(list, "%s=%s", path, *(const bool *)member ? "false" : "true");
        break;
    case FIELD_QUANTITY:
        vary_quantity(path, field, *(const double *)member, list);
        break;
    case FIELD_CHOICE:
    case FIELD_CHOICES:
        vary_choices(path, field, list);
        break;
    case FIELD_RECORD:
        vary_fields(path, field->table, member, list);
        break;
    case FIELD_OPTIONAL:
        if (*(const void *const *)member)
            vary_fields(path, field->table, *(const void *const *)member, list);
        break;
    case FIELD_LIST:
        vary_first(path, field->table, (const struct list *)member, list);
        break;
    case FIELD_STRING:
    case FIELD_INTS:
        break;                   /* what they may be no table says */
    }
}

static inline void vary_each(const char *path, const struct table *table, const void *object, struct variations *list)
{
    for (size_t i = 0; i < table->count; i++) {
        char *below = NULL;

        BUG_IF(asprintf(&below, "%s%s%s", path, *path ? "." : "", table->fields[i].key) < 0);
        vary_field(below, &table->fields[i], (const char *)object + table->fields[i].offset, list);
        free(below);
    }
}

static inline void vary_fields(const char *path, const struct table *table, const void *object,
                               struct variations *list)
{
    struct arena arena = {0};
    void *extra = NULL;

    vary_each(path, table, object, list);
    if (table->extension) {
        const struct table *more = table->extension(&arena, (void *)(uintptr_t)object, &extra);

        if (more)
            vary_each(path, more, extra, list);
    }
    arena_release(&arena);
}

/* Of every key that the scenario has. Free the items. */
static inline struct variations variations_of(const struct scenario *scenario)
{
    struct variations list = {0};

    vary_fields("", &scenario_table, scenario, &list);
    return list;
}

#endif
