#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
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
struct expected { double seconds; struct loc loc; };

/* The scenario that the result of a folder repeats, as it was simulated, and the time of its iteration. */
static int load_result(const char *dir, const char *const *sets, size_t nsets, struct scenario *scenario,
                       struct expected *expected, struct error *err)
{
    struct arena arena = {0};
    struct node *root = NULL, *node = NULL, *time;
    const char *path = arena_printf(&arena, "%s/result.json", dir);

    if (!refuse_sweep(dir, err) && !conf_load(&arena, path, &root, err) && !(node = node_get(root, "scenario")))
        error_add(err, EXIT_INPUT, root->loc, "there is no 'scenario' in it; expected what 'dtsim run -o DIR' wrote");
    if (!node) {
        arena_release(&arena);
        memset(scenario, 0, sizeof *scenario);
        return -1;
    }
    time = node_get(root, "iteration_time_s");
    if (time && time->kind == NODE_SCALAR)
        *expected = (struct expected){strtod(time->text, NULL), time->loc};
    return scenario_read(&arena, node, sets, nsets, dir, scenario, err);
}

/* Refuses a folder whose run now takes another time: readers would take the explanation for one of its numbers. */
static int check_time(const struct expected *expected, const struct run *run, struct error *err)
{
    double seconds = run->metrics.iteration_time;
    char found[48], now[48];

    if (expected->seconds <= 0 || fabs(seconds - expected->seconds) <= 1e-9 * expected->seconds)
        return 0;
    return error_add(err, EXIT_INPUT, expected->loc, "the iteration took %s, and takes %s in this program, with its "
                     "platforms and profiles: another version wrote the folder, or it was edited; run the scenario "
                     "again", unit_format(UNIT_TIME, expected->seconds, found, sizeof found),
                     unit_format(UNIT_TIME, seconds, now, sizeof now));
}

static int load(const char *path, const struct arguments *arguments, struct scenario *scenario,
                struct expected *expected, struct error *err)
{
    enum look there;

    memset(scenario, 0, sizeof *scenario);
    if (look_at(path, &there, err))
        return -1;
    if (there == LOOK_FOLDER)
        return load_result(path, arguments->sets, arguments->nsets, scenario, expected, err);
    return scenario_load(path, arguments->sets, arguments->nsets, scenario, err);
}

/* Prints all that was found; an error if the budget was spent before all was. Whether anything was printed. */
static bool print(const struct run *run, struct simulate_options how, const struct arguments *arguments,
                  struct error *err)
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
    struct expected expected = {0, {0}};
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
        printed = print(&run, how, &arguments, &err);
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
               "                      the most that the critical path lets it gain)\n"
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
