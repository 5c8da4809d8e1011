#include "cli/sweep_plan.h"

#include <stdlib.h>
#include <time.h>

#include "base/text.h"
#include "cli/said.h"
#include "files/json.h"
#include "process/pool.h"
#include "report/result.h"
#include "sweep/row.h"
#include "view/view.h"

enum { FIRST = 5,                /* points that are shown */
       TRIED = 3 };              /* points that are simulated */
static const double TRY_SECONDS = 10;    /* for each of them */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print_point(const struct points *points, uint64_t number)
{
    struct arena arena = {0};
    struct error err = {0};
    struct point point;

    if (!point_make(points, number, &arena, &point, &err))
        for (size_t i = 0; i < point.count; i++) {
            json_t *json = node_json(point.items[i].node);
            char *text = json_text(json);

            fputs(i ? ", " : "  ", stdout);
            text_write(TEXT_LINE, point.items[i].name, stdout);
            putchar(' ');
            text_write(TEXT_LINE, point.items[i].node->kind == NODE_SCALAR ? point.items[i].node->text : text, stdout);
            free(text);
            json_decref(json);
        }
    putchar('\n');
    error_release(&err);
    arena_release(&arena);
}

void sweep_plan_print(const struct points *points, const struct selection *selection)
{
    for (size_t z = 0; z < points->zips.count; z++) {
        const struct zip *zip = &points->zips.items[z];

        for (size_t a = zip->first; a < zip->first + zip->count; a++) {
            fputs(a > zip->first ? ", " : "  ", stdout);
            text_write(TEXT_LINE, points->axes.items[a].name, stdout);
        }
        printf(": %zu value%s\n", zip->length, zip->length == 1 ? "" : "s");
    }
    printf("%llu combination%s", (unsigned long long)selection->looked, selection->looked == 1 ? "" : "s");
    for (size_t i = 0; i < points->constraints.count; i++) {
        printf("\n  %llu dropped by ", (unsigned long long)selection->dropped[i]);
        text_write(TEXT_LINE, points->constraints.items[i].text, stdout);
    }
    if (points->nincluded)
        printf("\n  %zu included", points->nincluded);
    printf("\n%zu point%s\n", selection->count, selection->count == 1 ? "" : "s");
    for (size_t i = 0; i < selection->count && i < FIRST; i++)
        print_point(points, selection->items[i]);
    if (selection->count > FIRST)
        puts("  ...");
}

struct dry { const struct points *points; const struct selection *selection; };

static json_t *paths_json(const struct points *points, const struct zip *zip)
{
    json_t *paths = json_array();

    for (size_t a = zip->first; a < zip->first + zip->count; a++)
        json_append(paths, json_words(points->axes.items[a].name));
    return paths;
}

#define ZIP(ROW) \
    ROW(paths, paths_json(it, &it->zips.items[i]), "a list: keys that change together") \
    ROW(values, json_count(it->zips.items[i].length), "how many they have")
VIEW(zip_view, struct points, it, ZIP)

#define DROPPED(ROW) \
    ROW(where, json_words(it->points->constraints.items[i].text), "what must hold") \
    ROW(points, json_count(it->selection->dropped[i]), "combinations that it drops")
VIEW(dropped_view, struct dry, it, DROPPED)

#define DRY(ROW) \
    ROW(axes, view_each(&zip_view, it->points, it->points->zips.count), "of the sweep", .form = VIEW_LIST, .of = &zip_view) \
    ROW(combinations, json_count(it->selection->looked), "of their values") \
    ROW(dropped, view_each(&dropped_view, it, it->points->constraints.count), "by 'where'", .form = VIEW_LIST, \
        .of = &dropped_view) \
    ROW(included, json_count(it->points->nincluded), "points that 'include' adds") \
    ROW(points, json_count(it->selection->count), "that are left")
VIEW_SHARED(sweep_plan_view, struct dry, it, DRY)

void sweep_plan_print_json(const struct points *points, const struct selection *selection)
{
    view_print(&sweep_plan_view, &(struct dry){points, selection}, stdout);
}

/* A dry run simulates a few points to tell how long all will take. */
struct trial {
    struct row_maker maker;
    const struct selection *selection;
    size_t next, tried, late;
};

static bool trial_next(void *context, uint64_t *piece)
{
    struct trial *trial = context;
    size_t count = trial->selection->count, tried = count < TRIED ? count : TRIED;

    if (trial->next == tried)
        return false;
    *piece = trial->selection->items[tried < 2 ? 0 : trial->next * (count - 1) / (tried - 1)];
    trial->next++;
    return true;
}

static void trial_work(void *context, uint64_t piece, char *note, FILE *reply)
{
    row_make(&((const struct trial *)context)->maker, piece, note, reply);
}

static int trial_done(void *context, uint64_t piece, const char *reply, size_t length, struct error *err)
{
    struct row_head head;

    (void)piece;
    ((struct trial *)context)->tried++;
    return row_split(reply, length, &head, err) ? 0 : -1;
}

static int trial_lost(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                      struct error *err)
{
    (void)piece;
    (void)note;
    (void)how;
    (void)err;
    ((struct trial *)context)->tried++;
    ((struct trial *)context)->late += why == POOL_TIMEOUT;
    return 0;
}

void sweep_estimate_print(const struct sweep *sweep, const struct selection *selection,
                           const struct sweep_options *options, struct error *err)
{
    const struct store none = {.fd = -1};
    struct trial trial = {.maker = {.points = &sweep->points, .store = &none}, .selection = selection};
    const struct pool pool = {.jobs = 1, .timeout = TRY_SECONDS, .what = "the simulation", .context = &trial,
                              .work = trial_work, .next = trial_next, .done = trial_done, .lost = trial_lost};
    char engine[64], all[48], one[48];
    double begun = now(), each;

    snprintf(engine, sizeof engine, "simulation.engine=%s", options->engine ? options->engine : "");
    trial.maker.engine = options->engine ? engine : NULL;
    if (!selection->count || row_maker_init(&trial.maker, err) || pool_run(&pool, err) != POOL_ALL)
        return;
    each = (now() - begun) / (double)trial.tried;
    printf("estimate: %s%s on %zu process%s, as %zu point%s took %s%s\n", trial.late ? "more than " : "",
           unit_format_short(UNIT_TIME, each * (double)selection->count / (double)options->jobs, all, sizeof all),
           options->jobs, options->jobs == 1 ? "" : "es", trial.tried, trial.tried == 1 ? "" : "s",
           unit_format_short(UNIT_TIME, each, one, sizeof one), trial.tried == 1 ? "" : " each");
}
