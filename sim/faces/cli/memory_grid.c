#include "cli/memory_grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/sheet.h"
#include "base/text.h"
#include "base/words.h"
#include "cli/said.h"
#include "cli/sweep_plan.h"
#include "config/conf.h"
#include "files/json.h"
#include "report/result.h"
#include "run/attempt.h"
#include "run/memory_fit.h"
#include "scenario/scenario.h"
#include "sweep/points.h"
#include "view/view.h"

enum { MOST_POINTS = 1000 };

/* A point: B on its fullest GPU, NaN where it is no scenario, and what that GPU may hold. */
struct need { double peak, room; };

/* A value, and as it is written; NULL and "": the point has none. */
struct axis_value {
    const struct node *node;
    const char *text;
};

struct grid {
    const struct sweep *sweep;
    struct arena arena;
    struct selection selection;
    struct axis_value **settings; /* of each point the value of each axis */
    struct need *needs;
    bool *varies;                    /* of an axis */
    bool *heads;                     /* of a point: it is the first of its column */
    size_t axes, columns;            /* columns: the axis that has them; axes: none varies */
    const char *reason;              /* why the first point that has no memory is no scenario; NULL: all have */
    size_t without;                  /* points without */
};

/* What the point needs, whether that fits or not. */
static int find_need(struct grid *grid, size_t i, struct node *root, struct cache *cache, struct error *err)
{
    struct attempt attempt = {.anyway = true};
    struct arena arena = {.cache = cache};
    const struct metrics *metrics = &attempt.run.metrics;

    grid->needs[i] = (struct need){NAN, NAN};
    attempt.of = &attempt.varied;
    if (!scenario_read(&arena, root, NULL, 0, grid->sweep->name, &attempt.varied, &attempt.found) &&
        !attempt_run(&attempt, memory_options_of(attempt.of)))
        grid->needs[i] = (struct need){metrics->peak_memory, metrics->peak_room};
    else if (!grid->without++)
        grid->reason = arena_strdup(&grid->arena, attempt.found.count ? attempt.found.messages[0].text : "");
    return attempt_end(&attempt, err);
}

/* The value under the axis' name; an included point that does not say it has the base's. */
static struct axis_value setting_of(struct grid *grid, const struct point *point, const char *name)
{
    const struct node *node = NULL;

    for (size_t i = 0; i < point->count && !node; i++)
        node = strcmp(point->items[i].name, name) ? NULL : point->items[i].node;
    node = node ? node : node_at(point->root, name);
    return (struct axis_value){node, node ? node_flow(&grid->arena, node) : ""};
}

static int read_point(struct grid *grid, size_t i, struct cache *cache, struct error *err)
{
    struct point point;

    if (point_make(&grid->sweep->points, grid->selection.items[i], &grid->arena, &point, err))
        return -1;
    grid->settings[i] = ARENA_ARRAY(&grid->arena, struct axis_value, grid->axes + 1);
    for (size_t a = 0; a < grid->axes; a++) {
        grid->settings[i][a] = setting_of(grid, &point, grid->sweep->points.axes.items[a].name);
        grid->varies[a] |= strcmp(grid->settings[i][a].text, grid->settings[0][a].text) != 0;
    }
    return find_need(grid, i, point.root, cache, err);
}

/* Whether two points are in the same row. */
static bool same_row(const struct grid *grid, size_t one, size_t other)
{
    for (size_t a = 0; a < grid->axes; a++)
        if (a != grid->columns && strcmp(grid->settings[one][a].text, grid->settings[other][a].text) != 0)
            return false;
    return true;
}

static bool same_column(const struct grid *grid, size_t one, size_t other)
{
    return grid->columns == grid->axes ||
           !strcmp(grid->settings[one][grid->columns].text, grid->settings[other][grid->columns].text);
}

/* Whether it is the first point of its row, or column. */
static bool is_first(const struct grid *grid, size_t i, bool (*same)(const struct grid *grid, size_t one, size_t other))
{
    size_t k = 0;

    while (!same(grid, k, i))
        k++;
    return k == i;
}

static int read_points(struct grid *grid, struct error *err)
{
    struct cache cache;
    size_t count = grid->selection.count;
    int rc = 0;

    grid->axes = grid->sweep->points.axes.count;
    grid->settings = ARENA_ARRAY(&grid->arena, struct axis_value *, count + 1);
    grid->needs = ARENA_ARRAY(&grid->arena, struct need, count + 1);
    grid->varies = ARENA_ARRAY(&grid->arena, bool, grid->axes + 1);
    cache_init(&cache, CACHE_BYTES);
    for (size_t i = 0; i < count && !rc; i++)
        rc = read_point(grid, i, &cache, err);
    cache_release(&cache);
    grid->columns = grid->axes;
    for (size_t a = 0; a < grid->axes; a++)
        if (grid->varies[a])
            grid->columns = a;
    grid->heads = ARENA_ARRAY(&grid->arena, bool, count + 1);
    for (size_t i = 0; i < count && !rc; i++)
        grid->heads[i] = is_first(grid, i, same_column);
    return rc;
}

/* The number, with a star where it is more than there is; "-" where it is no scenario, "" where there is no point. */
static void add_cell(const struct grid *grid, struct sheet *sheet, const struct number_style *style, size_t row,
                     size_t column)
{
    char text[48], number[40];

    for (size_t i = 0; i < grid->selection.count; i++)
        if (same_row(grid, i, row) && same_column(grid, i, column)) {
            snprintf(text, sizeof text, "%s%s", number_text(style, grid->needs[i].peak, number, sizeof number),
                     grid->needs[i].peak > grid->needs[i].room ? "*" : "");
            sheet_add(sheet, text);
            return;
        }
    sheet_add(sheet, "");
}

/* What a star means: more than the limit, which is named where all points have the same. */
static void print_note(const struct grid *grid, const char *unit, FILE *out)
{
    double least = INFINITY, most = 0;
    char number[48] = "there is";
    bool stars = false;

    for (size_t i = 0; i < grid->selection.count; i++) {
        stars |= grid->needs[i].peak > grid->needs[i].room;
        least = fmin(least, grid->needs[i].room);
        most = fmax(most, grid->needs[i].room);
    }
    if (least >= most && isfinite(most))
        unit_format_short(UNIT_BYTES, most, number, sizeof number);
    fprintf(out, "\npeak memory of the fullest GPU%s%s%s%s\n", unit, stars ? "; * more than " : "", stars ? number : "",
            stars && least < most ? " on its GPU" : "");
    if (grid->without) {
        fprintf(out, "- no scenario, %zu of %zu; the first: ", grid->without, grid->selection.count);
        text_write(TEXT_LINE, grid->reason, out);
        fputc('\n', out);
    }
}

static const char *axis_word(struct grid *grid, size_t a)
{
    return words_of(&grid->arena, grid->sweep->points.axes.items[a].name);
}

static void print_table(struct grid *grid, FILE *out)
{
    size_t count = grid->selection.count;
    double *numbers = ARENA_ARRAY(&grid->arena, double, count + 1);
    struct sheet sheet = {.all = true};
    struct number_style style;
    char unit[24], note[32];

    for (size_t i = 0; i < count; i++)
        numbers[i] = grid->needs[i].peak;
    style = number_style_of("peak_memory_bytes", numbers, count);
    number_unit(&style, unit, sizeof unit);
    for (size_t a = 0; a < grid->axes; a++)
        if (grid->varies[a] && a != grid->columns) {
            sheet_head(&sheet, axis_word(grid, a), "");
            sheet.needed++;
        }
    for (size_t i = 0; i < count; i++)
        if (grid->heads[i])
            sheet_head(&sheet,
                       grid->columns == grid->axes ? "peak memory" :
                                                     arena_printf(&grid->arena, "%s %s", axis_word(grid, grid->columns),
                                                                  grid->settings[i][grid->columns].text),
                       "");
    for (size_t i = 0; i < count; i++) {
        if (!is_first(grid, i, same_row))
            continue;
        for (size_t a = 0; a < grid->axes; a++)
            if (grid->varies[a] && a != grid->columns)
                sheet_add(&sheet, grid->settings[i][a].text);
        for (size_t k = 0; k < count; k++)
            if (grid->heads[k])
                add_cell(grid, &sheet, &style, i, k);
    }
    sheet_print(&sheet, false, out);
    sheet_release(&sheet);
    snprintf(note, sizeof note, *unit ? " in %s" : "%s", unit);
    print_note(grid, note, out);
}

static json_t *settings_json(const struct grid *grid, size_t point)
{
    json_t *json = json_object();

    for (size_t a = 0; a < grid->axes; a++)
        if (grid->settings[point][a].node)
            json_put(json, grid->sweep->points.axes.items[a].name, node_json(grid->settings[point][a].node));
    return json;
}

#define NEED(ROW) \
    ROW(point, settings_json(it, i), "its values, by path", .form = VIEW_MAP) \
    ROW(peak_memory_bytes, json_finite(it->needs[i].peak), "of the fullest GPU; null: it is no scenario") \
    ROW(memory_margin_bytes, json_finite(it->needs[i].room - it->needs[i].peak), "left on it; negative: it does not fit")
VIEW(need_view, struct grid, it, NEED)

#define POINTS(ROW) \
    ROW(points, view_each(&need_view, it, it->selection.count), "of the sweep", .form = VIEW_LIST, .of = &need_view)
VIEW_SHARED(memory_grid_view, struct grid, it, POINTS)

int memory_grid_print(const struct sweep *sweep, bool json, FILE *out, struct error *err)
{
    struct grid grid = {.sweep = sweep};
    int rc = points_select(&sweep->points, POINTS_MOST, &grid.selection, err);

    if (!rc && grid.selection.count > MOST_POINTS)
        rc = error_add(err, EXIT_USAGE, (struct loc){.file = sweep->file}, "show --memory of %zu points; expected %d "
                       "at most, or 'dtsim sweep'", grid.selection.count, MOST_POINTS);
    if (!rc)
        rc = read_points(&grid, err);
    if (!rc && json)
        view_print(&memory_grid_view, &grid, out);
    else if (!rc)
        print_table(&grid, out);
    selection_release(&grid.selection);
    arena_release(&grid.arena);
    return rc;
}
