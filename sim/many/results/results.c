#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "expression/expression.h"
#include "results/results_internal.h"
#include "store/ids.h"
#include "store/tally.h"
#include "sweep/paths.h"

void results_release(struct results *results)
{
    for (size_t i = 0; i < results->rows.count; i++)
        json_decref(results->rows.items[i]);
    for (size_t i = 0; i < results->first.count; i++)
        json_decref(results->first.items[i]);
    free(results->first.items);
    free(results->rows.items);
    free(results->keys.items);
    ids_release(&results->ids);
    tally_release(&results->tally);
    json_decref(results->header);
    json_decref(results->objectives);
    arena_release(&results->arena);
    *results = (struct results){0};
}

static const char *key_candidate(size_t i, const void *context)
{
    const struct results *results = context;

    return i < results->keys.count ? results->keys.items[i].name : NULL;
}

int results_find(const struct results *results, const char *name)
{
    for (size_t i = 0; i < results->keys.count; i++)
        if (!strcmp(results->keys.items[i].name, name))
            return (int)i;
    return -1;
}

int results_key(const struct results *results, const char *name, const char *option, struct error *err)
{
    int key = results_find(results, name);
    const char *meant = nearest(name, key_candidate, results);
    char shown[CLIP_SIZE];

    if (key < 0)
        error_add(err, EXIT_USAGE, (struct loc){0}, "%s: the rows have no '%s'%s%s%s", option,
                  text_clip(name, shown, sizeof shown), meant ? "; did you mean '" : "", meant ? meant : "",
                  meant ? "'?" : "; expected a path that the sweep sets, or a metric such as iteration_time_s");
    return key;
}

const json_t *results_json(const struct results *results, size_t row, int key)
{
    static const char *const parts[] = {[KEY_POINT] = "point", [KEY_METRIC] = "metrics"};
    const struct row_key *of = &results->keys.items[key];
    const json_t *json = results->rows.items[row];
    const char *dot;

    if (of->from != KEY_ROW)
        json = json_object_get(json, parts[of->from]);
    dot = of->from == KEY_METRIC ? strchr(of->name, '.') : NULL;
    if (!dot)
        return json_object_get(json, of->name);
    return json_object_get(json_object_getn(json, of->name, (size_t)(dot - of->name)), dot + 1);
}

struct value results_value(const struct results *results, size_t row, int key)
{
    const struct row_key *of = &results->keys.items[key];
    const json_t *json = results_json(results, row, key);

    if (json_is_number(json))
        return value_number(json_number_value(json));
    if (json_is_boolean(json))
        return value_boolean(json_is_true(json));
    if (json_is_string(json) && of->from == KEY_POINT) {
        struct node node = {.kind = NODE_SCALAR, .text = json_string_value(json)};

        return path_value(of->name, &node);
    }
    if (json_is_string(json))
        return value_text(json_string_value(json));
    return (struct value){.kind = json_is_array(json) ? VALUE_LIST : json_is_object(json) ? VALUE_MAPPING : VALUE_NONE};
}

/* names and values of expressions: the keys of one row */
struct asked { struct results *results; size_t row; };

static int name_find(void *context, const char *name, const char **why)
{
    (void)why;
    return results_find(((const struct asked *)context)->results, name);
}

static const char *name_at(size_t i, const void *context)
{
    return key_candidate(i, ((const struct asked *)context)->results);
}

static int name_value_of(void *context, int name, struct value *value, struct error *err)
{
    const struct asked *asked = context;

    (void)err;
    *value = results_value(asked->results, asked->row, name);
    return 0;
}

/* The command line is wrong, not a file. */
static int blame_command(const struct error *found, struct error *err)
{
    for (int i = 0; i < found->count; i++)
        error_add(err, EXIT_USAGE, found->messages[i].loc, "%s", found->messages[i].text);
    return -1;
}

int results_condition(struct results *results, const char *expression, struct expression **parsed, struct error *err)
{
    struct asked asked = {results, 0};
    const struct expression_text text = {"the condition", expression, {"--where", 1, 1}, NULL};
    const struct names names = {name_find, name_at, &asked};
    struct error found = {0};
    int rc = expression_parse(&results->arena, &text, &names, parsed, &found) ? blame_command(&found, err) : 0;

    error_release(&found);
    return rc;
}

int results_holds(struct results *results, struct expression *condition, size_t row, bool *holds, bool *unknown,
                  struct error *err)
{
    struct asked asked = {results, row};
    struct error found = {0};
    struct value value;
    int rc = expression_holds(condition, name_value_of, &asked, &value, &found) ? blame_command(&found, err) : 0;

    *holds = !rc && value.kind == VALUE_BOOLEAN && value.boolean;
    *unknown = !rc && value.kind == VALUE_NONE;
    error_release(&found);
    return rc;
}
