#include "results/compared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/progress.h"
#include "files/look.h"
#include "report/caveats.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "store/tie.h"
#include "sweep/sweep.h"
#include "tables/tables.h"

static json_t *add_row(struct compared *compared, const char *name, const char *path)
{
    json_t *row = json_object();

    *GROW(&compared->rows) = (struct compared_row){
        .name = arena_strdup(&compared->arena, name), .path = path, .row = row,
    };
    return row;
}

/* Rows of two files that are called alike get their paths. */
static void distinguish(struct compared *compared)
{
    struct compared_row *rows = compared->rows.items;
    size_t count = compared->rows.count;
    bool *alike = xcalloc(count, sizeof *alike);

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && !alike[i]; j++)
            alike[i] = rows[i].path != rows[j].path && !strcmp(rows[i].name, rows[j].name);
    for (size_t i = 0; i < count; i++)
        if (alike[i] && strcmp(rows[i].name, rows[i].path))
            rows[i].name = arena_printf(&compared->arena, "%s (%s)", rows[i].name, rows[i].path);
    free(alike);
}

/* Ranks all rows anew. */
static void rank(struct compared *compared)
{
    size_t count = compared->rows.count;
    struct tie_number *numbers = xcalloc(count + 1, sizeof *numbers);
    struct tie_rank *ranks = xcalloc(count + 1, sizeof *ranks);

    for (size_t i = 0; i < count; i++) {
        const json_t *row = compared->rows.items[i].row;
        const json_t *rate = json_object_get(json_object_get(row, "metrics"), "samples_per_s");

        numbers[i] = tie_number_of(row, "samples_per_s", json_is_number(rate) ? json_number_value(rate) : NAN);
    }
    tie_ranks(numbers, count, true, ranks);
    for (size_t i = 0; i < count; i++) {
        compared->rows.items[i].rank = ranks[i];
        compared->rows.items[i].number = numbers[i];
    }
    free(numbers);
    free(ranks);
}

/* A run has metrics by the same names as a row. */
static int add_run(struct compared *compared, const char *folder, struct error *err)
{
    const char *path = arena_printf(&compared->arena, "%s/result.json", folder), *name;
    json_t *result, *row;

    if (result_check(folder, err) < 0)
        return -1;
    result = json_of_file(path, "the result of a run", err);
    if (!result)
        return -1;
    name = json_string_value(json_object_get(json_object_get(result, "scenario"), "name"));
    row = add_row(compared, name ? name : folder, folder);
    json_object_set(row, "engine", json_object_get(result, "engine"));
    json_object_set(row, "setup", json_object_get(result, "setup"));
    json_object_set(row, "software", json_object_get(result, "software"));
    json_object_set(row, "model", json_object_get(result, "model"));
    json_object_set(row, "gpu", json_object_get(result, "gpu"));
    json_put(row, "status", json_words(outcome_names[OUTCOME_OK]));
    json_object_set(row, "notes", json_object_get(result, "notes"));
    json_put(row, "metrics", result);
    return 0;
}

/* How a path is called within one point: by its last part, where no other setting has the same. */
static const char *short_name(const struct point *point, size_t setting)
{
    const char *whole = point->items[setting].name, *dot = strrchr(whole, '.'), *last = dot ? dot + 1 : whole;

    for (size_t i = 0; i < point->count; i++) {
        const char *other = strrchr(point->items[i].name, '.');

        if (i != setting && !strcmp(other ? other + 1 : point->items[i].name, last))
            return whole;
    }
    return last;
}

/* Whether the values of that name differ from point to point. */
static bool varies(const struct points *points, const char *name)
{
    for (size_t i = 0; i < points->axes.count; i++)
        if (!strcmp(points->axes.items[i].name, name))
            return points->axes.items[i].count > 1 || points->nincluded;
    return true;
}

static const char *point_name(struct arena *arena, const struct points *points, const struct point *point)
{
    const char *name = "";

    for (size_t i = 0; i < point->count; i++) {
        json_t *json = varies(points, point->items[i].name) ? node_json(point->items[i].node) : NULL;
        char *text = json ? json_text(json) : NULL;

        if (text)
            name = arena_printf(arena, "%s%s%s=%s", name, *name ? ", " : "", short_name(point, i),
                                json_is_string(json) ? json_string_value(json) : text);
        free(text);
        json_decref(json);
    }
    return name;
}

/* Passes on what is wrong; what is infeasible is no mistake. */
static int pass_on(const struct error *found, struct error *err)
{
    if (error_exit_code(found) == EXIT_INFEASIBLE && !found->system)
        return 0;
    error_copy(found, err);
    return -1;
}

/* Gives a point to `each`, and passes on what is wrong with it. */
static int visit(const struct compared_each *each, const struct sweep *sweep, uint64_t number, struct error *err)
{
    const struct points *points = &sweep->points;
    struct scenario scenario = {0};
    struct arena arena = {.cache = each->cache, .progress = each->progress};
    struct error found = {0};
    struct point point = {0};
    const char *settings = "", *own = sweep->name;
    int rc = point_make(points, number, &arena, &point, &found);

    if (!rc) {
        settings = point_name(&arena, points, &point);
        rc = scenario_read(&arena, point.root, &each->engine, each->engine != NULL, points->name, &scenario, &found);
        own = scenario.name ? scenario.name : own;
    }
    if (*settings)
        own = each->prefix ? arena_printf(&arena, "%s: %s", own, settings) : settings;
    scenario_prefer(&scenario, ENGINE_FAST);
    each->call(each->context, own, rc ? NULL : &scenario, &found);
    rc = found.count ? pass_on(&found, err) : 0;
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&found);
    cache_renew(each->cache);
    return rc;
}

int compared_visit(const struct compared_each *each, const char *path, const char *const *sets, size_t nsets,
                   struct error *err)
{
    struct selection selection = {0};
    struct error found = {0};
    struct sweep sweep;
    int rc = 0;

    if (sweep_load(path, sets, nsets, each->progress, &sweep, &found)) {
        each->call(each->context, path, NULL, &found);
        rc = pass_on(&found, err);
    } else {
        rc = points_select(&sweep.points, COMPARED_MOST, &selection, err);
        for (size_t i = 0; i < selection.count; i++)
            rc |= visit(each, &sweep, selection.items[i], err);
    }
    selection_release(&selection);
    sweep_release(&sweep);
    error_release(&found);
    return rc ? -1 : 0;
}

/* Why a row is added. */
struct adding { struct compared *compared; const char *path; };

static void add_scenario(void *context, const char *name, struct scenario *scenario, struct error *found)
{
    const struct adding *adding = context;
    struct compared *compared = adding->compared;
    json_t *row = add_row(compared, name, adding->path);

    if (!scenario) {
        outcome_refused(row, found);
        return;
    }
    json_put(row, "setup", setup_json(scenario));
    if (compared->progress && compared->progress->over)
        outcome_lost(row, OUTCOME_TIMEOUT, "the budget was spent before");
    else if (outcome_simulate(row, scenario, NULL, found))
        return;
    json_put(row, "notes", caveats_json(scenario, NULL));
}

int compared_add(struct compared *compared, const char *path, const char *const *sets, size_t nsets,
                 const char *engine, bool prefix, struct error *err)
{
    const struct compared_each each = {
        .cache = &compared->cache, .engine = engine, .prefix = prefix, .progress = compared->progress,
        .call = add_scenario,
        .context = &(struct adding){compared, path},
    };
    enum look there;
    int rc;

    if (!compared->cache.limit)
        cache_init(&compared->cache, CACHE_BYTES);
    if (look_at(path, &there, err))
        return -1;
    rc = there == LOOK_FOLDER ? add_run(compared, path, err) : compared_visit(&each, path, sets, nsets, err);
    distinguish(compared);
    rank(compared);
    return rc;
}

void compared_release(struct compared *compared)
{
    for (size_t i = 0; i < compared->rows.count; i++)
        json_decref(compared->rows.items[i].row);
    free(compared->rows.items);
    arena_release(&compared->arena);
    cache_release(&compared->cache);
    *compared = (struct compared){0};
}
