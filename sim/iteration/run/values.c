#include "run/values.h"

#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "run/attempt.h"
#include "run/automatic_axis.h"
#include "run/memory_fit.h"
#include "scenario/scenario.h"
#include "software/software.h"

/* A key whose mapping may be one word stands for the key that this word is: strategy.schedule for its name. */
static const struct field *bare_field(const struct field *field)
{
    const struct table *table = field->table;

    return table && table->shorthand ? field_find(table, table->shorthand) : field;
}

/* Adds the names that a choice accepts, or true and false; nothing of other keys. */
static void add_words(struct arena *arena, const struct field *field, struct node *list)
{
    bool choice = field->kind == FIELD_CHOICE || field->kind == FIELD_CHOICES;
    const char *word;

    for (size_t i = 0; choice && (word = field->choices ? field->choices[i] : field->choice(i)); i++)
        node_append(arena, list, node_scalar(arena, word, false));
    for (int i = 0; field->kind == FIELD_BOOL && i < 2; i++)
        node_append(arena, list, node_scalar(arena, i ? "true" : "false", false));
}

/* All values that the key has. */
static int list_all(struct arena *arena, const struct node *root, const struct field *field, const char *path,
                    struct node **list, struct error *err)
{
    const struct automatic *automatic = automatic_of(path);
    struct facts facts;

    *list = node_sequence(arena);
    add_words(arena, bare_field(field), *list);
    if ((*list)->count)
        return 0;
    if (!automatic)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "%s has no list of values; expected those to ask for, such "
                         "as %s=1,2", path, path);
    if (facts_find(arena, root, path, &facts, err))
        return -1;
    *list = automatic_values(arena, automatic, &facts, true);
    return 0;
}

/* Reads the scenario with that value. -1: the system does not let a file be read. */
static int ask(struct arena *arena, const struct scenario *written, const char *set, struct asked_value *asked,
               struct error *err)
{
    struct attempt attempt = {.of = written, .nsets = 1, .sets = {set}};
    struct software_lack lack;

    if (attempt_build(&attempt))
        asked->why = arena_strdup(arena, attempt.found.messages[0].text);
    else if (memory_is_short(&attempt.workload))
        asked->but = "what a GPU holds all the time is more than its memory";
    else if ((asked->foreign = scenario_in_framework(arena, &attempt.varied, &lack) == SOFTWARE_LACKS))
        asked->but = software_lack_text(arena, &attempt.varied.software.names, &lack);
    return attempt_end(&attempt, err);
}

/* Whether the scenario itself says this value. */
static bool is_said(const struct node *root, const char *path, const struct field *field, const char *value)
{
    const struct node *said = node_at(root, path);

    if (said && said->kind == NODE_MAPPING && field->table && field->table->shorthand)
        said = node_get(said, field->table->shorthand);
    return said && said->kind == NODE_SCALAR && !strcmp(said->text, value);
}

static int ask_all(struct arena *arena, const struct node *root, const struct field *field, const struct node *list,
                   const char *name, struct asked_values *values, struct error *err)
{
    const struct scenario written = {.node = root, .name = name, .arena.cache = arena->cache};

    values->items = ARENA_ARRAY(arena, struct asked_value, list->count + 1);
    values->count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = node_flow(arena, list->items[i]);
        const char *set = arena_printf(arena, "%s=%s", values->path, text);

        values->items[i] = (struct asked_value){.value = text, .said = is_said(root, values->path, field, text)};
        if (ask(arena, &written, set, &values->items[i], err))
            return -1;
        values->going += !values->items[i].why;
    }
    return 0;
}

int values_ask(struct arena *arena, const struct node *root, const char *question, const char *name,
               struct asked_values *values, struct error *err)
{
    const char *equals = strchr(question, '=');
    char *path = equals ? arena_strndup(arena, question, (size_t)(equals - question)) : arena_strdup(arena, question);
    const struct field *field = scenario_field(path);
    struct node *list, *whole = node_mapping(arena);

    *values = (struct asked_values){.path = path};
    if (!field)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "scenarios have no '%s'; expected a path such as "
                         "strategy.tensor", path);
    if (equals) {
        if (conf_set(arena, whole, arena_printf(arena, "values=[%s]", equals + 1), err))
            return -1;
        list = node_get(whole, "values");
    } else if (list_all(arena, root, field, path, &list, err)) {
        return -1;
    }
    return ask_all(arena, root, field, list, name, values, err);
}
