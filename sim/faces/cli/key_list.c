#include "cli/key_list.h"

#include <string.h>

#include "base/base.h"
#include "results/results.h"
#include "results/results_table.h"

int key_list_read(const struct results *results, const char *text, const char *option, struct key_list *list,
                  struct error *err)
{
    struct arena arena = {0};
    char *names = arena_strdup(&arena, text), *next = NULL;
    int rc = 0;

    list->count = 0;
    for (char *name = strtok_r(names, ",", &next); name && !rc; name = strtok_r(NULL, ",", &next)) {
        char *colon = strchr(name, ':');
        bool largest = false;

        if (colon) {
            *colon++ = '\0';
            largest = !strcmp(colon, "max");
        }
        if (colon && !largest && strcmp(colon, "min"))
            rc = error_add(err, EXIT_USAGE, (struct loc){0}, "%s: expected min or max behind '%s:', found '%s'", option,
                           name, colon);
        else if (list->count == KEYS_MOST)
            rc = error_add(err, EXIT_USAGE, (struct loc){0}, "%s: more than %d keys", option, KEYS_MOST);
        else if ((list->keys[list->count] = results_key(results, name, option, err)) < 0)
            rc = -1;
        else
            list->largest[list->count++] = colon ? largest : results_wants_most(name);
    }
    if (!rc && !list->count)
        rc = error_add(err, EXIT_USAGE, (struct loc){0}, "%s: expected a key such as iteration_time_s", option);
    arena_release(&arena);
    return rc;
}

void key_list_objectives(const struct results *results, struct key_list *list)
{
    const char *name;
    json_t *value;

    list->count = 0;
    json_object_foreach(results->objectives, name, value) {
        if (results_find(results, name) < 0 || list->count == KEYS_MOST)
            continue;
        list->keys[list->count] = results_find(results, name);
        list->largest[list->count++] = json_string_value(value) && !strcmp(json_string_value(value), "max");
    }
}

void key_list_throughput(const struct results *results, struct key_list *list)
{
    static const struct { const char *name; bool largest; } fast[] = {
        {"days", false}, {"tokens_per_s", true}, {"samples_per_s", true},
    };

    list->count = 0;
    for (size_t i = 0; i < COUNT(fast); i++) {
        int key = results_find(results, fast[i].name);

        if (key < 0 || !results->keys.items[key].number)
            continue;
        list->keys[list->count] = key;
        list->largest[list->count++] = fast[i].largest;
        if (!fast[i].largest)
            return;
    }
}
