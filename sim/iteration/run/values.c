#include "run/values.h"

#include <string.h>

#include "auto/auto.h"
#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "config/field.h"
#include "run/automatic_axis.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "software/software.h"
#include "workload/workload.h"

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
static int ask(struct arena *arena, const struct node *root, const char *set, const char *name,
               struct asked_value *asked, struct error *err)
{
    const struct scenario written = {.node = root, .name = name, .arena.cache = arena->cache};
    struct scenario varied = {0};
    struct workload workload = {0};
    struct software_lack lack;
    struct error found = {0};
    int rc;

    if (scenario_vary(&written, &set, 1, &varied, &found) || workload_init(&workload, &varied, &found))
        asked->why = arena_strdup(arena, found.messages[0].text);
    else if (memory_is_short(&workload))
        asked->but = "what a GPU holds all the time is more than its memory";
    else if ((asked->foreign = scenario_in_framework(arena, &varied, &lack) == SOFTWARE_LACKS))
        asked->but = software_lack_text(arena, &varied.software.names, &lack);
    workload_release(&workload);
    scenario_release(&varied);
    rc = error_pass_system(&found, err);
    error_release(&found);
    return rc;
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
    values->items = ARENA_ARRAY(arena, struct asked_value, list->count + 1);
    values->count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = node_flow(arena, list->items[i]);
        const char *set = arena_printf(arena, "%s=%s", values->path, text);

        values->items[i] = (struct asked_value){.value = text, .said = is_said(root, values->path, field, text)};
        if (ask(arena, root, set, name, &values->items[i], err))
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
