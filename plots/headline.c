/* What result.json says of a run. */
#include "chart.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { LONGEST_NAME = 90 };

static int number(const json_t *result, const char *key, struct loc loc, double *value, struct error *err)
{
    const json_t *member = json_object_get(result, key);

    if (!member)
        return error_add(err, EXIT_INPUT, loc, "'%s' is missing", key);
    if (!json_is_number(member))
        return error_add(err, EXIT_INPUT, loc, "'%s' is not a number", key);
    *value = json_number_value(member);
    return 0;
}

static int share(const json_t *result, const char *key, struct loc loc, double *value, struct error *err)
{
    const double slack = 1e-6;       /* sums of many shares round */

    if (number(result, key, loc, value, err))
        return -1;
    if (*value < -slack || *value > 1 + slack)
        return error_add(err, EXIT_INPUT, loc, "'%s' is %g, not between 0 and 1", key, *value);
    return 0;
}

static int read_result(struct arena *arena, const json_t *result, struct loc loc, struct headline *headline,
                       struct error *err)
{
    const json_t *name = json_object_get(json_object_get(result, "scenario"), "name");
    int failed = 0;

    if (!json_is_object(result))
        return error_add(err, EXIT_INPUT, loc, "not an object");
    failed |= number(result, "iteration_time_s", loc, &headline->iteration, err);
    if (!failed && headline->iteration < 0)
        failed = error_add(err, EXIT_INPUT, loc, "'iteration_time_s' is negative");
    failed |= share(result, "bubble_fraction", loc, &headline->bubble, err);
    failed |= share(result, "utilization", loc, &headline->utilization, err);
    headline->memory = NAN;
    if (json_is_number(json_object_get(result, "memory_limit_bytes")))
        headline->memory = json_number_value(json_object_get(result, "memory_limit_bytes"));
    if (!json_is_string(name))
        failed |= error_add(err, EXIT_INPUT, loc, "'scenario.name' is missing or no string");
    else
        headline->name = text_clean(arena, json_string_value(name), LONGEST_NAME);
    return failed ? -1 : 0;
}

int headline_load(struct arena *arena, const char *path, struct headline *headline, struct error *err)
{
    struct loc loc = {.file = path};
    json_error_t bad;
    json_t *result = json_load_file(path, JSON_REJECT_DUPLICATES, &bad);
    int failed;

    if (!result) {
        loc.line = bad.line > 0 ? bad.line : 0;
        loc.column = bad.line > 0 && bad.column > 0 ? bad.column : 0;
        return error_add(err, EXIT_INPUT, loc, "%s", text_clean(arena, bad.text, JSON_ERROR_TEXT_LENGTH));
    }
    failed = read_result(arena, result, loc, headline, err);
    json_decref(result);
    return failed;
}
