#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cli/cmd.h"
#include "files/look.h"
#include "report/explanation.h"
#include "run/memory_advice.h"

enum { OPT_ENGINE, OPT_JSON, OPT_MARKDOWN, OPT_BUDGET };
static const char *const options[] = {
    [OPT_ENGINE] = "--engine=", [OPT_JSON] = "--json", [OPT_MARKDOWN] = "--markdown", [OPT_BUDGET] = BUDGET_OPTION,
};

/* What the explanation of a folder must agree with. Zero: nothing. */
struct expected {
    double seconds;
    struct loc loc;              /* in result.json */
    bool other_build;            /* another build of the program wrote it */
};

/* Whether a build that is not this one wrote the result; builds before this key wrote none. */
static bool by_other_build(const struct node *result)
{
    const struct node *build = node_get(result, "build");

    return is_other_build(build && build->kind == NODE_SCALAR ? build->text : NULL);
}

/* What the result itself says, where this build cannot simulate its scenario. */
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
 * another build and this one does not know the scenario, `out` (or NULL) gets what the result says. */
static int load_result(const char *dir, const struct arguments *arguments, struct scenario *scenario,
                       struct expected *expected, FILE *out, struct error *err)
{
    struct arena arena = {0};
    struct node *root = NULL, *node = NULL, *time;
    const char *path = arena_printf(&arena, "%s/result.json", dir);
    int rc = -1;

    memset(scenario, 0, sizeof *scenario);
    if (!refuse_sweep(dir, err) && !conf_load(&arena, path, &root, err) && !(node = node_get(root, "scenario")))
        error_add(err, EXIT_INPUT, root->loc, "there is no 'scenario' in it; expected what 'dtsim run -o DIR' wrote");
    if (node) {
        time = node_get(root, "iteration_time_s");
        if (time && time->kind == NODE_SCALAR)
            *expected = (struct expected){strtod(time->text, NULL), time->loc, by_other_build(root)};
        rc = scenario_read(&arena, node, arguments->sets, arguments->nsets, dir, scenario, err);
        if (rc && expected->other_build && !arguments->nsets) {
            fputs("note: another build of dtsim wrote the folder, and this one cannot simulate its scenario\n", stderr);
            if (out)
                print_written(root, dir, out);
        }
    }
    arena_release(&arena);
    return rc;
}

/* Says which numbers follow where another build wrote the folder. Refuses a folder of this build whose run now takes
 * another time: readers would take the explanation for one of its numbers. */
static int check_time(const struct expected *expected, const struct run *run, struct error *err)
{
    double seconds = run->metrics.iteration_time;
    bool same = fabs(seconds - expected->seconds) <= 1e-9 * expected->seconds;
    char found[48], now[48];

    if (expected->seconds <= 0 && expected->other_build)
        fputs("note: another build of dtsim wrote the folder\n", stderr);
    if (expected->seconds <= 0 || (same && !expected->other_build))
        return 0;
    unit_format(UNIT_TIME, expected->seconds, found, sizeof found);
    unit_format(UNIT_TIME, seconds, now, sizeof now);
    if (!expected->other_build)
        return error_add(err, EXIT_INPUT, expected->loc, "the iteration took %s, and takes %s in this program, with its "
                         "platforms and profiles: these changed since, or the folder was edited; run the scenario "
                         "again", found, now);
    if (same)
        fputs("note: another build of dtsim wrote the folder; in this one its iteration takes as long\n", stderr);
    else
        fprintf(stderr, "warning: another build of dtsim wrote the folder, where the iteration takes %s. In this build it "
                "takes %s, and that is what is explained; the folder's own numbers are others\n", found, now);
    return 0;
}

static int load(const char *path, const struct arguments *arguments, struct scenario *scenario,
                struct expected *expected, struct error *err)
{
    enum look there;

    memset(scenario, 0, sizeof *scenario);
    if (look_at(path, &there, err))
        return -1;
    if (there == LOOK_FOLDER)
        return load_result(path, arguments, scenario, expected,
                           arguments->values[OPT_JSON] || arguments->values[OPT_MARKDOWN] ? NULL : stdout, err);
    return scenario_load(path, arguments->sets, arguments->nsets, scenario, err);
}

/* Prints all that was found; an error if the budget was spent before all was. Whether anything was printed. */
static bool print(const struct run *run, struct simulate_options how, const struct arguments *arguments,
                  const struct expected *expected, struct error *err)
{
    struct explanation explanation;
    bool found = !explanation_init(&explanation, run, how, err);

    progress_end(run->workload->scenario->progress);
    if (!found) {
        explanation_release(&explanation);
        return false;
    }
    if (arguments->values[OPT_JSON]) {
        json_t *json = explanation_json(&explanation);

        if (expected->other_build && expected->seconds > 0)      /* that folder's numbers may be others */
            json_put(json, "folder_iteration_time_s", json_real(expected->seconds));
        json_print(json, stdout);
        json_decref(json);
    } else if (arguments->values[OPT_MARKDOWN]) {
        explanation_markdown(&explanation, stdout);
    } else {
        explanation_print(&explanation, stdout);
    }
    explanation_release(&explanation);
    if (progress_check(run->workload->scenario->progress, err))
        error_add(err, EXIT_STOPPED, (struct loc){0}, "the explanation is complete but for some of what would "
                  "gain: each question and each change takes a simulation");
    return true;
}

static int explain_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct scenario scenario;
    struct cache cache;
    struct expected expected = {0};
    struct progress progress;
    struct workload workload = {0};
    struct run run = {0};
    enum engine engine;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments), rc;
    bool printed = false;

    if (code == ARGS_DONE && arguments.values[OPT_ENGINE])
        code = engine_parse(command, arguments.values[OPT_ENGINE], &engine);
    if (code != ARGS_DONE)
        return code;
    if (arguments.values[OPT_JSON] && arguments.values[OPT_MARKDOWN])
        return usage_error(command, "expected one of --json, --markdown");
    progress_begin(&progress, "--budget", arguments.budget.seconds, arguments.budget.bytes);
    cache_init(&cache, CACHE_BYTES);
    rc = load(arguments.positional[0], &arguments, &scenario, &expected, &err);
    scenario.arena.cache = &cache;       /* for its variations */
    if (arguments.values[OPT_ENGINE])
        scenario.simulation.engine = (int)engine;
    struct simulate_options how = simulate_options_of(&scenario);
    how.causes = true;
    scenario.progress = &progress;
    if (arguments.nsets || arguments.values[OPT_ENGINE])
        expected.seconds = 0;            /* another question than the folder's */
    if (!rc && !workload_init_advised(&workload, &scenario, &err) &&
        !simulate_advised(&workload, memory_is_short(&workload) ? memory_needs : how, &run, &err) &&
        !check_time(&expected, &run, &err))
        printed = print(&run, how, &arguments, &expected, &err);
    progress_end(&progress);
    run_release(&run);
    workload_release(&workload);
    code = report_as(&err, arguments.values[OPT_JSON] && !printed);
    scenario_release(&scenario);
    cache_release(&cache);
    return code;
}

const struct command cmd_explain = {
    .name = "explain",
    .usage = "DIR | SCENARIO [--engine simgrid|fast|ideal] [--set PATH=VALUE]... [--json | --markdown]\n"
             "       [--budget LIMIT]...",
    .brief = "Says where the time went: why ranks wait, the critical path, and what would gain how much.",
    .examples = "  dtsim explain scenarios/tour/04-1f1b.yaml\n"
                "  dtsim explain out --engine ideal          the scenario of 'dtsim run -o out' once more\n"
                "  dtsim explain scenario.yaml --json | jq '.what_if[0]'\n",
    .options = "  DIR                 a folder that 'dtsim run -o DIR' wrote: its scenario is simulated again, and must\n"
               "                      take as long as its result says\n"
               "  SCENARIO            a file, or - for standard input\n"
               "  --engine ENGINE     simgrid or fast (flows share links), or ideal (nothing contends)\n"
               "  --set PATH=VALUE    change the scenario; may be repeated\n"
               "  --json              for programs, in SI units: idle (each rank's waits: of which the other rank\n"
               "                      computes, bubble_s, and of which nothing hides communication, exposed_s),\n"
               "                      critical_path (by kind, by rank, every piece), what_if (critical_path_s:\n"
               "                      the most that the critical path lets it gain); of a folder of another build also\n"
               "                      folder_iteration_time_s, which its result says\n"
               "  --markdown          the tables for a document\n"
               "  --budget LIMIT      end after this wall time ('30 s') or before this process needs more memory\n"
               "                      ('4 GiB') with exit code 7 and a message of how far it came; may be given twice\n"
               "\n"
               "Each 'what if' is simulated: about twenty simulations in all. The lines below one are changes of the\n"
               "scenario that come nearest to it, of a short list, and what an iteration takes with them.\n",
    .accepts = options,
    .naccepts = COUNT(options),
    .main = explain_main,
};
