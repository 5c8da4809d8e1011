/* The scenarios of what a plan shows, as files. */
#include "cli/plan_print.h"

#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "files/folder.h"
#include "scenario/scenario.h"
#include "store/store.h"
#include "sweep/points.h"

static uint64_t number_of(const struct plan_outcome *outcome, const json_t *row)
{
    for (size_t i = 0; i < outcome->located.count; i++)
        if (strcmp(outcome->located.items[i].id, store_id(row)) == 0)
            return outcome->located.items[i].number;
    BUG_IF(true);
    return 0;
}

struct ranked { const struct node *root; size_t rank; };

static void write_ranked(const void *context, FILE *out)
{
    const struct ranked *ranked = context;

    fprintf(out, "# rank %zu of 'dtsim plan'; every default is written down\n", ranked->rank);
    node_print(ranked->root, out);
}

static int write_scenario(const struct space *space, uint64_t number, const char *path, size_t rank, struct error *err)
{
    const char *const engine[] = {"simulation.engine=fast"};
    struct arena arena = {0}, dumped = {0};
    struct scenario scenario = {0};
    struct point point;
    int rc = point_make(&space->sweep.points, number, &arena, &point, err) ||
             scenario_read(&arena, point.root, engine, 1, space->sweep.points.name, &scenario, err) ? -1 : 0;

    if (!rc) {
        const struct ranked ranked = {scenario_dump(&dumped, &scenario), rank};

        rc = file_replace(path, write_ranked, &ranked, err);
    }
    arena_release(&dumped);
    scenario_release(&scenario);
    arena_release(&arena);
    return rc;
}

int plan_write_scenarios(const struct space *space, const struct plan_options *options,
                         const struct plan_outcome *outcome, const struct results *results, struct error *err)
{
    struct arena arena = {0};
    int rc = 0;

    for (size_t i = 0; i < plan_shown(options, results) && !rc; i++)
        rc = write_scenario(space, number_of(outcome, results->rows.items[i]),
                            arena_printf(&arena, PLAN_RANKED, options->folder, i + 1), i + 1, err);
    arena_release(&arena);
    return rc;
}
