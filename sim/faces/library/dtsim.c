#include "library/dtsim.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/conf.h"
#include "engine/replay.h"
#include "files/data.h"
#include "files/json.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "serve/requested.h"
#include "tables/tables.h"

struct dtsim {
    struct cache cache;
    locale_t point;                  /* numbers have a point */
    char *data, *name, *yaml;
    struct { char **items; size_t count, capacity; } changes;
    struct requested is;             /* what was simulated; its err.count: why not */
    bool simulated;
    json_t *numbers;                 /* the metrics */
    char *metrics, *timeline, *errors, *errors_json;
};

int dtsim_abi(void)
{
    return DTSIM_ABI;
}

const char *dtsim_version(void)
{
    return DTSIM_VERSION;
}

/* Keeps the errors of a call in the context, as text and as JSON. */
static void tell(struct dtsim *dtsim)
{
    json_t *errors = errors_json(&dtsim->is.err);
    size_t size;
    FILE *out = text_open(&dtsim->errors, &size);

    error_print(&dtsim->is.err, out);
    text_close(out, &dtsim->errors);
    dtsim->errors_json = json_text(errors);
    json_decref(errors);
    dtsim->numbers = dtsim->simulated ? result_metrics_json(&dtsim->is.run) : json_object();
    dtsim->metrics = dtsim->simulated ? json_text(dtsim->numbers) : xstrdup("");
}

static void forget(struct dtsim *dtsim)
{
    requested_release(&dtsim->is, &dtsim->cache);
    json_decref(dtsim->numbers);
    free(dtsim->metrics);
    free(dtsim->timeline);
    free(dtsim->errors);
    free(dtsim->errors_json);
    dtsim->timeline = NULL;
    dtsim->simulated = false;
    dtsim->is = requested_begin(&dtsim->cache);
}

static void take_changes_back(struct dtsim *dtsim)
{
    for (size_t i = 0; i < dtsim->changes.count; i++)
        free(dtsim->changes.items[i]);
    dtsim->changes.count = 0;
}

struct dtsim *dtsim_open(const char *data)
{
    struct dtsim *dtsim = xcalloc(1, sizeof *dtsim);

    dtsim->point = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!dtsim->point)
        memory_ran_out();
    dtsim->data = data ? xstrdup(data) : NULL;
    cache_init(&dtsim->cache, CACHE_BYTES);
    dtsim->is = requested_begin(&dtsim->cache);
    tell(dtsim);
    return dtsim;
}

void dtsim_scenario(struct dtsim *dtsim, const char *name, const char *yaml)
{
    char *own_name = xstrdup(name ? name : "scenario"), *own_yaml = xstrdup(yaml);

    free(dtsim->name);
    free(dtsim->yaml);
    dtsim->name = own_name;
    dtsim->yaml = own_yaml;
    take_changes_back(dtsim);
}

void dtsim_set(struct dtsim *dtsim, const char *change)
{
    *GROW(&dtsim->changes) = xstrdup(change);
}

static int engine_of(const char *name, int *engine, struct error *err)
{
    *engine = ENGINE_FAST;
    if (name && !strcmp(name, engine_names[ENGINE_IDEAL]))
        *engine = ENGINE_IDEAL;
    else if (name && strcmp(name, engine_names[ENGINE_FAST]))
        return error_add(err, EXIT_USAGE, (struct loc){0}, "engine: found '%s'; expected fast or ideal, which simulate in the process "
                         "itself", name);
    return 0;
}

static int simulate_said(struct dtsim *dtsim, const char *engine_name)
{
    struct requested *is = &dtsim->is;
    struct node *root;
    int engine;

    if (dtsim->data)
        data_belongs(&dtsim->cache, dtsim->data);
    if (engine_of(engine_name, &engine, &is->err))
        return -1;
    if (!dtsim->yaml)
        return error_add(&is->err, EXIT_USAGE, (struct loc){0}, "expected a scenario: dtsim_scenario() says it");
    if (conf_parse(&is->arena, dtsim->name, dtsim->yaml, strlen(dtsim->yaml), &root, &is->err) ||
        scenario_read(&is->arena, root, (const char *const *)dtsim->changes.items, dtsim->changes.count,
                      data_stem(&is->own, dtsim->name), &is->scenario, &is->err))
        return -1;
    return requested_simulate(is, engine, false);
}

int dtsim_simulate(struct dtsim *dtsim, const char *engine)
{
    locale_t before = uselocale(dtsim->point);
    int code;

    forget(dtsim);
    dtsim->simulated = !simulate_said(dtsim, engine);
    tell(dtsim);
    code = (int)error_exit_code(&dtsim->is.err);
    uselocale(before);
    return code;
}

double dtsim_metric(const struct dtsim *dtsim, const char *key)
{
    const json_t *value = dtsim->numbers;

    while (value && *key) {
        size_t length = strcspn(key, ".");

        value = json_object_getn(value, key, length);
        key += length + (key[length] == '.');
    }
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *dtsim_metrics(const struct dtsim *dtsim)
{
    return dtsim->metrics;
}

const char *dtsim_timeline(struct dtsim *dtsim)
{
    locale_t before = uselocale(dtsim->point);
    size_t size;
    FILE *out = dtsim->timeline || !dtsim->simulated ? NULL : text_open(&dtsim->timeline, &size);

    if (out) {
        spans_write(&dtsim->is.run, out);
        text_close(out, &dtsim->timeline);
    }
    uselocale(before);
    return dtsim->timeline ? dtsim->timeline : "";
}

const char *dtsim_errors(const struct dtsim *dtsim)
{
    return dtsim->errors;
}

const char *dtsim_errors_json(const struct dtsim *dtsim)
{
    return dtsim->errors_json;
}

void dtsim_close(struct dtsim *dtsim)
{
    if (!dtsim)
        return;
    forget(dtsim);
    requested_release(&dtsim->is, &dtsim->cache);
    take_changes_back(dtsim);
    free(dtsim->changes.items);
    free(dtsim->data);
    free(dtsim->name);
    free(dtsim->yaml);
    cache_release(&dtsim->cache);
    freelocale(dtsim->point);
    free(dtsim);
}
