/* What result.json says of a run. */
#include "chart.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "files/digest.h"
#include "files/look.h"

enum { LONGEST_NAME = 90, LONGEST_MODEL = 60 };

/* The member that keys joined by dots lead to; NULL: there is none. */
static const json_t *find(const json_t *json, const char *keys)
{
    char key[64];

    for (size_t length; json && *keys; keys += keys[length] ? length + 1 : length) {
        length = strcspn(keys, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, keys);
        json = json_object_get(json, key);
    }
    return json;
}

static int share(const struct headline *headline, const char *key, double *value, struct error *err)
{
    const double slack = 1e-6;       /* sums of many shares round */

    if (headline_number(headline, key, value, err))
        return -1;
    if (*value < -slack || *value > 1 + slack)
        return error_add(err, EXIT_INPUT, (struct loc){.file = headline->path}, "'%s' is %g, not between 0 and 1",
                         key, *value);
    return 0;
}

/* "tensor 8, pipeline 64": the degrees above 1. */
static const char *degrees_of(struct arena *arena, const json_t *strategy)
{
    static const char *const names[] = {"tensor", "context", "expert", "pipeline", "data"};
    const char *text = "";

    for (size_t i = 0; i < COUNT(names); i++) {
        json_int_t degree = json_integer_value(json_object_get(strategy, names[i]));

        if (degree > 1)
            text = arena_printf(arena, "%s%s%s %lld", text, *text ? ", " : "", names[i], (long long)degree);
    }
    return text;
}

static const char *schedule_of(const json_t *strategy)
{
    const json_t *schedule = json_object_get(strategy, "schedule");

    return json_is_string(schedule) ? json_string_value(schedule) : json_is_object(schedule) ? "own order" : "";
}

/* "1f1b, 512 micro-batches", of a pipeline. */
static const char *order_of(struct arena *arena, const json_t *scenario)
{
    const json_t *strategy = json_object_get(scenario, "strategy");
    long long chunks = json_integer_value(json_object_get(strategy, "chunks"));
    long long micro_batches = json_integer_value(find(scenario, "batch.micro_batches"));
    const char *text = schedule_of(strategy);

    if (json_integer_value(json_object_get(strategy, "pipeline")) < 2)
        return "";
    if (chunks > 1)
        text = arena_printf(arena, "%s, %lld chunks", text, chunks);
    return arena_printf(arena, "%s, %lld micro-batch%s", text, micro_batches, micro_batches == 1 ? "" : "es");
}

static const char *model_of(struct arena *arena, const json_t *model)
{
    const json_t *title = json_object_get(model, "title");

    return !model ? "" : json_is_string(title) ? text_clean(arena, json_string_value(title), LONGEST_MODEL) :
           json_object_get(model, "stages") ? "given stages" :
           json_object_get(model, "layers") ? "given layers" : "transformer";
}

/* "Megatron-LM GPT 1T, 3072 GPUs: tensor 8, pipeline 64, data 6; 1f1b, 512 micro-batches". */
static const char *system_of(struct arena *arena, const json_t *result)
{
    const json_t *scenario = json_object_get(result, "scenario"), *strategy = json_object_get(scenario, "strategy");
    const json_t *model = json_object_get(scenario, "model");
    long long gpus = json_integer_value(json_object_get(result, "gpus"));
    long long zero = json_integer_value(json_object_get(strategy, "zero"));
    const char *name = model_of(arena, model);
    const char *degrees = degrees_of(arena, strategy), *order = order_of(arena, scenario);

    if (!strategy || !model || gpus < 1)
        return "";
    if (zero > 0)
        degrees = arena_printf(arena, "%s%sZeRO-%lld", degrees, *degrees ? ", " : "", zero);
    return text_clean(arena, arena_printf(arena, "%s, %lld GPU%s%s%s%s%s", name, gpus, gpus == 1 ? "" : "s",
                                          *degrees ? ": " : "", degrees, *order ? "; " : "", order), 120);
}

/* What a run and a training have in common: the scenario. */
static int read_scenario(struct arena *arena, struct headline *headline, struct error *err)
{
    const json_t *result = headline->result, *name = find(result, "scenario.name");
    struct loc loc = {.file = headline->path};
    int failed = 0;

    headline->memory = NAN;
    if (json_is_number(json_object_get(result, "memory_limit_bytes")))
        headline->memory = json_number_value(json_object_get(result, "memory_limit_bytes"));
    if (!json_is_string(name))
        failed |= error_add(err, EXIT_INPUT, loc, "'scenario.name' is missing or no string");
    else
        headline->name = text_clean(arena, json_string_value(name), LONGEST_NAME);
    headline->model = model_of(arena, find(result, "scenario.model"));
    headline->system = system_of(arena, result);
    headline->other_build = is_other_build(json_string_value(json_object_get(result, "build")));
    headline->pipeline = (int)json_integer_value(find(result, "scenario.strategy.pipeline"));
    return failed ? -1 : 0;
}

static int read_result(struct arena *arena, struct headline *headline, struct error *err)
{
    struct loc loc = {.file = headline->path};
    int failed;

    if (!json_is_object(headline->result))
        return error_add(err, EXIT_INPUT, loc, "not an object");
    failed = headline_number(headline, "iteration_time_s", &headline->iteration, err);
    if (!failed && headline->iteration < 0)
        failed = error_add(err, EXIT_INPUT, loc, "'iteration_time_s' is negative");
    failed |= share(headline, "bubble_fraction", &headline->bubble, err);
    failed |= share(headline, "utilization", &headline->utilization, err);
    failed |= read_scenario(arena, headline, err);
    return failed ? -1 : 0;
}

int headline_of(struct arena *arena, json_t *result, const char *path, struct headline *headline, struct error *err)
{
    headline->result = result;
    headline->path = path;
    return read_result(arena, headline, err);
}

/* The JSON of a folder that 'dtsim COMMAND -o' writes; NULL: an error. */
static json_t *load(const char *path, const char *command, struct error *err)
{
    struct loc loc = {.file = path};
    json_error_t bad;
    json_t *result;
    enum look there;
    FILE *in;

    if (look_at(path, &there, err))
        return NULL;
    if (there == LOOK_NOTHING) {
        error_add(err, EXIT_INPUT, loc, "cannot open: %s; expected the folder of one %s, which 'dtsim %s -o' writes",
                  strerror(ENOENT), strcmp(command, "run") ? "training" : "run", command);
        return NULL;
    }
    in = look_open(path, err);
    if (!in)
        return NULL;
    errno = 0;
    result = json_loadf(in, JSON_REJECT_DUPLICATES, &bad);
    if (ferror(in)) {                    /* jansson takes it for the end of the file */
        error_system(err, loc, "cannot read");
        json_decref(result);
        fclose(in);
        return NULL;
    }
    fclose(in);
    if (!result) {
        struct arena arena = {0};

        loc.line = bad.line > 0 ? bad.line : 0;
        loc.column = bad.line > 0 && bad.column > 0 ? bad.column : 0;
        error_add(err, EXIT_INPUT, loc, "%s", text_clean(&arena, bad.text, JSON_ERROR_TEXT_LENGTH));
        arena_release(&arena);
    }
    return result;
}

int headline_load(struct arena *arena, const char *path, struct headline *headline, struct error *err)
{
    json_t *result = load(path, "run", err);

    return result ? headline_of(arena, result, path, headline, err) : -1;
}

int headline_load_training(struct arena *arena, const char *path, struct headline *headline, struct error *err)
{
    json_t *result = load(path, "train", err);

    if (!result)
        return -1;
    *headline = (struct headline){.result = result, .path = path};
    if (!json_is_object(result))
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "not an object");
    return read_scenario(arena, headline, err);
}

void headline_release(struct headline *headline)
{
    json_decref(headline->result);
    headline->result = NULL;
}

int headline_number(const struct headline *headline, const char *key, double *value, struct error *err)
{
    const json_t *member = find(headline->result, key);
    struct loc loc = {.file = headline->path};

    if (!member)
        return error_add(err, EXIT_INPUT, loc, "'%s' is missing", key);
    if (!json_is_number(member))
        return error_add(err, EXIT_INPUT, loc, "'%s' is not a number", key);
    *value = json_number_value(member);
    return 0;
}

double headline_number_or(const struct headline *headline, const char *key, double missing)
{
    const json_t *member = find(headline->result, key);

    return json_is_number(member) ? json_number_value(member) : missing;
}

const char *headline_text(struct arena *arena, const struct headline *headline, const char *key)
{
    const json_t *member = find(headline->result, key);

    if (json_is_string(member))
        return text_clean(arena, json_string_value(member), LONGEST_NAME);
    return json_is_number(member) ? arena_printf(arena, "%.15g", json_number_value(member)) : NULL;
}

const char *headline_unfit(struct arena *arena, const struct headline *headline)
{
    double peak = headline_number_or(headline, "peak_memory_bytes", NAN);
    char need[48], have[48];

    return !(peak > headline->memory) ? "" :
           arena_printf(arena, ", does not fit: %s in %s", unit_format_short(UNIT_BYTES, peak, need, sizeof need),
                        unit_format_short(UNIT_BYTES, headline->memory, have, sizeof have));
}
