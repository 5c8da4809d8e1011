#include "cli/explained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/text.h"
#include "cli/cmd.h"
#include "config/conf.h"
#include "files/look.h"
#include "hardware/cluster.h"
#include "report/explanation.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

/* Whether a build that is not this one wrote the result; builds before this key wrote none. */
static bool by_other_build(const struct node *result)
{
    const struct node *build = node_get(result, "build");

    return is_other_build(build && build->kind == NODE_SCALAR ? build->text : NULL);
}

/* The values in the result itself, where this build cannot simulate its scenario. */
static void print_written(const struct node *result, const char *dir, FILE *out)
{
    const struct node *breakdown = node_get(result, "breakdown_s"), *time = node_get(result, "iteration_time_s");
    double whole = time && time->kind == NODE_SCALAR ? strtod(time->text, NULL) : 0;
    char text[48];

    if (!breakdown || breakdown->kind != NODE_MAPPING || !(whole > 0))
        return;
    text_write(TEXT_LINE, dir, out);
    fprintf(out, ": iteration time %s, as its result says\n\nwhere the average rank's time goes\n",
            unit_format_short(UNIT_TIME, whole, text, sizeof text));
    for (size_t i = 0; i < breakdown->count; i++) {
        const struct node *item = breakdown->items[i];
        double seconds = item->kind == NODE_SCALAR ? strtod(item->text, NULL) : 0;

        if (!(seconds > 0))
            continue;
        fputs("  ", out);
        text_write(TEXT_LINE, breakdown->keys[i], out);
        fprintf(out, "%*s %-12s %5.1f %%\n", strlen(breakdown->keys[i]) < 24 ? 24 - (int)strlen(breakdown->keys[i]) : 0,
                "", unit_format_like(UNIT_TIME, whole, seconds, text, sizeof text), 100 * seconds / whole);
    }
}

/* The scenario that the result of a folder repeats, as it was simulated, and the time of its iteration. Where it is of
 * another build and this one does not know the scenario, request->written gets what the result says. */
static int load_result(const struct explain_request *request, struct progress *progress, struct scenario *scenario,
                       struct explain_expected *expected, struct error *err)
{
    struct arena arena = {.progress = progress};
    const struct node *root = NULL;
    struct node *node = NULL, *time;
    const char *dir = request->path, *path = arena_printf(&arena, "%s/result.json", dir);
    int rc = -1;

    memset(scenario, 0, sizeof *scenario);
    if (!refuse_sweep(dir, err) && !conf_shared(&arena, path, &root, err) && !(node = node_get(root, "scenario")))
        error_add(err, EXIT_INPUT, root->loc, "there is no 'scenario' in it; expected what 'dtsim run -o DIR' wrote");
    if (node) {
        time = node_get(root, "iteration_time_s");
        if (time && time->kind == NODE_SCALAR)
            *expected = (struct explain_expected){
                .seconds = strtod(time->text, NULL), .loc = time->loc, .other_build = by_other_build(root)};
        rc = scenario_read(&arena, node, request->sets, request->nsets, dir, scenario, err);
        if (rc && expected->other_build && !request->nsets) {
            fputs("note: another build of dtsim wrote the folder, and this one cannot simulate its scenario\n", stderr);
            if (request->written)
                print_written(root, dir, request->written);
        }
    }
    arena_release(&arena);
    return rc;
}

/* Says which numbers follow where another build wrote the folder. Refuses a folder of this build whose run now takes
 * another time: readers would take the explanation for one of its numbers. */
static int check_time(struct explain_expected *expected, const struct run *run, struct error *err)
{
    double seconds = run->metrics.iteration_time;
    char found[48], now[48];

    expected->agrees = expected->seconds > 0 && fabs(seconds - expected->seconds) <= 1e-9 * expected->seconds;
    if (expected->seconds <= 0 && expected->other_build)
        fputs("note: another build of dtsim wrote the folder\n", stderr);
    if (expected->seconds <= 0 || (expected->agrees && !expected->other_build))
        return 0;
    unit_format(UNIT_TIME, expected->seconds, found, sizeof found);
    unit_format(UNIT_TIME, seconds, now, sizeof now);
    if (!expected->other_build)
        return error_add(err, EXIT_INPUT, expected->loc, "the iteration took %s, and takes %s in this program, with its "
                         "platforms and profiles: these changed since, or the folder was edited; run the scenario "
                         "again", found, now);
    if (expected->agrees)
        fputs("note: another build of dtsim wrote the folder; in this one its iteration takes as long\n", stderr);
    else
        fprintf(stderr, "warning: another build of dtsim wrote the folder, where the iteration takes %s. In this build it "
                "takes %s, and that is what is explained; the folder's own numbers are others\n", found, now);
    return 0;
}

static int load(const struct explain_request *request, struct progress *progress, struct scenario *scenario,
                struct explain_expected *expected, struct error *err)
{
    enum look there;

    memset(scenario, 0, sizeof *scenario);
    if (look_at(request->path, &there, err))
        return -1;
    if (there == LOOK_FOLDER)
        return load_result(request, progress, scenario, expected, err);
    return scenario_load(request->path, request->sets, request->nsets, progress, scenario, err);
}

/* Finds all, and hands it over. */
static void find(const struct explain_request *request, const struct run *run, struct simulate_options how,
                 const struct explain_expected *expected, struct error *err)
{
    struct progress *progress = run->workload->scenario->progress;
    struct explanation explanation;
    bool found = !explanation_init(&explanation, run, how, err);

    progress_end(progress);
    if (found)
        request->take(&explanation, expected, request->context);
    explanation_release(&explanation);
    if (found && progress_check(progress, err))
        error_add(err, EXIT_STOPPED, (struct loc){0}, "the explanation is complete but for some of what would "
                  "gain: each question and each change takes a simulation");
}

void explain(const struct explain_request *request, struct error *err)
{
    struct scenario scenario;
    struct cache cache;
    struct explain_expected expected = {0};
    struct progress progress;
    struct workload workload = {0};
    struct run run = {0};
    int rc;

    progress_begin(&progress, "--budget", request->budget.seconds, request->budget.bytes);
    cache_init(&cache, CACHE_BYTES);
    rc = load(request, &progress, &scenario, &expected, err);
    scenario.arena.cache = &cache;       /* for its variations */
    if (request->engine >= 0)
        scenario.simulation.engine = request->engine;
    struct simulate_options how = simulate_options_of(&scenario), counted;
    how.causes = true;
    counted = how;
    counted.links = !rc && !scenario.cluster.ideal && cluster_between_links(&scenario.cluster);
    if (request->nsets || request->engine >= 0)
        expected.seconds = 0;            /* another question than the folder's */
    if (!rc && !workload_init_advised(&workload, &scenario, err) &&
        !simulate_advised(&workload, memory_is_short(&workload) ? memory_needs : counted, &run, err) &&
        !check_time(&expected, &run, err))
        find(request, &run, how, &expected, err);
    progress_end(&progress);
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    cache_release(&cache);
}
