#include <string.h>

#include "base/progress.h"
#include "cli/cmd.h"
#include "cli/sweep_plan.h"
#include "report/caveats.h"
#include "run/memory_advice.h"

/* A lower probability that a scenario fits is said. */
static const double SURE = 0.99;

enum { OPT_MEMORY, OPT_BUDGET };
static const char *const options[] = {[OPT_MEMORY] = "--memory", [OPT_BUDGET] = BUDGET_OPTION};

/* Whether it fits: with advice an error, else a warning. */
static void check_memory(const struct workload *workload, bool strict, struct error *err)
{
    struct simulate_options how = memory_options_of(workload->scenario);
    struct run run = {0};
    char shortage[160];
    int rc = strict ? simulate_advised(workload, how, &run, err) : simulate(workload, how, &run, err);

    progress_end(workload->scenario->progress);
    if (!rc && !strict && run.metrics.peak_memory > memory_limit(workload->scenario))
        fprintf(stderr, "warning: %s; 'dtsim run' refuses it, 'dtsim check --memory' says what would help\n",
                memory_shortage(&run, shortage, sizeof shortage));
    if (run.metrics.ranks && run.metrics.fits >= 0.005 && run.metrics.fits < SURE && !err->count)
        fprintf(stderr, "note: memory: it fits with a probability of %.0f %%, by how far off published peaks are\n",
                100 * run.metrics.fits);
    run_release(&run);
}

/* Of standard input, which cannot be read twice, it is not known. */
static int is_sweep(const char *path, bool *is, struct error *err)
{
    struct arena arena = {0};
    struct node *root = NULL;
    int rc = strcmp(path, "-") ? conf_load(&arena, path, &root, err) : 0;

    *is = root && node_get(root, "sweep");
    arena_release(&arena);
    return rc;
}

/* The sweep itself and every value of an axis; what a dry run says of its points. */
static int check_sweep(const struct arguments *arguments)
{
    struct sweep sweep = {0};
    struct selection selection = {0};
    struct error err = {0};
    int code;

    if (!sweep_load(arguments->positional[0], arguments->sets, arguments->nsets, &sweep, &err) &&
        !points_select(&sweep.points, POINTS_MOST, &selection, &err))
        sweep_plan_print(&sweep.points, &selection);
    selection_release(&selection);
    code = report(&err);
    sweep_release(&sweep);
    return code;
}

/* What is read counts too. */
static int loaded_in_time(struct progress *progress, struct error *err)
{
    progress_step(progress, "loading", 0, 0, 0);
    progress_end(progress);
    return progress_check(progress, err);
}

static int check_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct scenario scenario;
    struct workload workload = {0};
    struct arena arena = {0};
    struct progress progress;
    bool sweep;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments), rc;

    if (code != ARGS_DONE)
        return code;
    progress_begin(&progress, "--budget", arguments.budget.seconds, arguments.budget.bytes);
    if (is_sweep(arguments.positional[0], &sweep, &err))
        return report(&err);
    if (sweep)
        return check_sweep(&arguments);
    rc = scenario_load(arguments.positional[0], arguments.sets, arguments.nsets, &scenario, &err);
    scenario.progress = &progress;
    if (!rc && !loaded_in_time(&progress, &err) && !workload_init(&workload, &scenario, &err) &&
        !loaded_in_time(&progress, &err)) {
        node_print_origins(scenario_dump(&arena, &scenario), stdout);
        caveats_print(&scenario, stderr);
        check_memory(&workload, arguments.values[OPT_MEMORY], &err);
    }
    arena_release(&arena);
    code = report(&err);
    workload_release(&workload);
    scenario_release(&scenario);
    return code;
}

const struct command cmd_check = {
    .name = "check",
    .usage = "SCENARIO | SWEEP [--memory] [--budget LIMIT]... [--set PATH=VALUE]...",
    .brief = "Checks a scenario and prints every value and where it comes from, or a sweep and prints its points.",
    .examples = "  dtsim check scenario.yaml\n"
                "  dtsim check scenario.yaml --set strategy.tensor=4 > resolved.yaml\n",
    .options = "  SCENARIO            a file, or - for standard input\n"
               "  SWEEP               a file of 'dtsim sweep': how many points it has, and what dropped others\n"
               "  --memory            a scenario that does not fit in memory is an error that says what would help\n"
               "                      (exit code 5), not a warning\n"
               "  --budget LIMIT      of a scenario: end after this wall time ('30 s') or before this process needs more\n"
               "                      memory ('4 GiB') with exit code 7; may be given twice\n"
               "  --set PATH=VALUE    change the scenario; may be repeated\n",
    .accepts = options,
    .naccepts = COUNT(options),
    .main = check_main,
};
