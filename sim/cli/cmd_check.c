#include "cli/cmd.h"
#include "report/caveats.h"
#include "run/memory_advice.h"

enum { OPT_MEMORY };
static const char *const options[] = {[OPT_MEMORY] = "--memory"};

/* Whether it fits: with advice an error, else a warning. */
static void check_memory(const struct workload *workload, bool strict, struct error *err)
{
    struct simulate_options how = memory_options_of(workload->scenario);
    struct run run = {0};
    char shortage[160];

    if (strict)
        simulate_advised(workload, how, &run, err);
    else if (!simulate(workload, how, &run, err) && run.metrics.peak_memory > memory_limit(workload->scenario))
        fprintf(stderr, "warning: %s; 'dtsim run' refuses it, 'dtsim check --memory' says what would help\n",
                memory_shortage(&run, shortage, sizeof shortage));
    run_release(&run);
}

static int check_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct scenario scenario;
    struct workload workload = {0};
    struct arena arena = {0};
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments);

    if (code != ARGS_DONE)
        return code;
    if (!scenario_load(arguments.positional[0], arguments.sets, arguments.nsets, &scenario, &err) &&
        !workload_init(&workload, &scenario, &err)) {
        node_print(field_dump(&arena, &scenario_table, &scenario), stdout);
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
    .usage = "SCENARIO [--memory] [--set PATH=VALUE]...",
    .brief = "Checks a scenario and prints it with every default filled in.",
    .examples = "  dtsim check scenario.yaml\n"
                "  dtsim check scenario.yaml --set strategy.tensor=4 > resolved.yaml\n",
    .options = "  SCENARIO            a file, or - for standard input\n"
               "  --memory            a scenario that does not fit in memory is an error that says what would help\n"
               "                      (exit code 5), not a warning\n"
               "  --set PATH=VALUE    change the scenario; may be repeated\n",
    .accepts = options,
    .naccepts = COUNT(options),
    .main = check_main,
};
