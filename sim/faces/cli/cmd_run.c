#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "cli/cmd.h"
#include "engine/replay.h"
#include "files/folder.h"
#include "files/json.h"
#include "report/result.h"
#include "run/certainty.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "validate/anchors.h"
#include "workload/workload.h"

enum { OPT_OUT, OPT_ENGINE, OPT_VERIFY, OPT_JSON, OPT_NO_ADVICE, OPT_ANCHOR };

/* What was simulated, for people or programs, and into the folder, if any. Whether it was printed. */
static bool print_run(const struct run *run, bool json, struct folder *folder, struct error *err)
{
    int failed = folder->path && result_write(run, folder, err);

    if (json && !failed) {
        json_t *result = result_json(run);

        json_print(result, stdout);
        json_decref(result);
    } else if (!json) {
        run_print(run, stdout);
    }
    if (folder->path && !failed) {
        fputs("wrote ", stderr);
        text_write(TEXT_LINE, folder->path, stderr);
        fputs("/result.json and its tables\n", stderr);
    }
    return !json || !failed;
}

/* Verifies on simgrid, or a run on simgrid on fast. */
static void verify(const struct run *run, struct error *err)
{
    enum engine own = (enum engine)run->workload->scenario->simulation.engine;
    enum engine other = own == ENGINE_SIMGRID ? ENGINE_FAST : ENGINE_SIMGRID;
    double difference;
    size_t met;

    if (run_verify(run, other, &difference, &met, err))
        return;
    fprintf(stderr, "%zu operations replayed on %s, of which SimGrid computed %zu: transfers that meet others; ", run->lowered.program.ops.count,
            engine_names[other], met);
    if (difference > 0)
        fprintf(stderr, "starts and ends differ by at most %.2g of the iteration time\n", difference);
    else
        fprintf(stderr, "every start and end is the same\n");
}

/* Corrects the metrics by one's own measured runs; of none that is alike it says why. */
static int correct(struct run *run, const struct anchors *anchors, struct error *err)
{
    struct arena arena = {0};
    const char *why = certainty_anchor(&arena, &run->metrics, run->workload->scenario, anchors);
    int rc = why ? error_add(err, EXIT_INPUT, (struct loc){.file = anchors->file}, "--anchor: no anchor is like the "
                             "scenario: %s; expected runs of its software, GPU and model", why) : 0;

    arena_release(&arena);
    return rc;
}

/* Simulates the scenario and prints the run, also if the budget was spent before all causes were found. Whether it was
 * printed. */
static bool run_scenario(const struct scenario *scenario, const struct arguments *arguments, const struct anchors *anchors,
                         struct workload *workload, struct run *run, struct folder *folder, struct error *err)
{
    struct simulate_options options = simulate_options_of(scenario);
    bool printed = false;
    int rc;

    options.links = folder->path || arguments->values[OPT_JSON];
    options.numbers = !options.links && !arguments->values[OPT_VERIFY];
    options.no_advice = arguments->values[OPT_NO_ADVICE];
    rc = simulate_scenario(scenario, options, workload, run, err);
    progress_end(scenario->progress);
    if (!rc && anchors && correct(run, anchors, err))
        return false;
    if (!rc)
        printed = print_run(run, arguments->values[OPT_JSON], folder, err);
    if (!err->count && arguments->values[OPT_VERIFY])
        verify(run, err);
    return printed;
}

static int run_main(const struct arguments *arguments)
{
    struct error err = {0};
    struct scenario scenario;
    struct workload workload = {0};
    struct run run = {0};
    struct folder folder = {0};
    const struct anchors *anchors = NULL;
    struct arena arena = {0};
    struct progress progress;
    bool printed = false;
    int code, rc;

    if (arguments->values[OPT_OUT] && !strcmp(arguments->values[OPT_OUT], "-"))
        return usage_error(arguments->command, "-o: expected a folder, found '-'; --json prints the result on standard output");
    progress_begin(&progress, "--budget", arguments->budget.seconds, arguments->budget.bytes);
    rc = scenario_load(arguments->positional[0], arguments->sets, arguments->nsets, &progress, &scenario, &err);
    if (arguments->values[OPT_ENGINE])
        scenario.simulation.engine = (int)arguments->numbers[OPT_ENGINE];
    if (!rc)
        rc = anchors_load(&arena, arguments->values[OPT_ANCHOR], processors(), &anchors, &err);
    /* A folder that cannot be had is better known before a long simulation than after it. */
    if (!rc && (!arguments->values[OPT_OUT] || !folder_open(&folder, arguments->values[OPT_OUT], &err)))
        printed = run_scenario(&scenario, arguments, anchors, &workload, &run, &folder, &err);
    folder_release(&folder);
    run_release(&run);
    workload_release(&workload);
    code = report_as(&err, arguments->values[OPT_JSON] && !printed);
    scenario_release(&scenario);
    arena_release(&arena);
    return code;
}

static const struct option options[] = {
    [OPT_OUT] = {"-o", "DIR",
        .help = "write result.json, spans.tsv, groups.tsv, memory.tsv, utilization.tsv and links.tsv, all of them or none: a run "
        "that ends early leaves no half of a result"},
    [OPT_ENGINE] = ENGINE_OPTION(ENGINE_HELP),
    [OPT_VERIFY] = {"--verify",
        .help = "replay on simgrid too (or on fast, if the run is on simgrid), and say by how much starts and ends of operations "
        "differ at most"},
    [OPT_JSON] = {"--json", .help = "print all metrics and the resolved scenario; errors are JSON too"},
    [OPT_NO_ADVICE] = {"--no-advice", .help = "where memory is short, do not look for what would make the scenario fit"},
    [OPT_ANCHOR] = {"--anchor", "MINE.yaml|SCENARIO.yaml=TIME",
        .help = "correct all times by your own measured runs of this software, GPU and model: a table as 'dtsim help paper' has it; "
        "or one run: its scenario, and how long an iteration took ('12.5 s')"},
    SET_OPTION("PATH=VALUE", "change the scenario, e.g. --set strategy.tensor=4"),
    BUDGET_OPTION(BUDGET_HELP " and a message of how far it came"),
    {"SCENARIO", .help = "a file, or - for standard input"},
};

const struct command cmd_run = {
    .name = "run",
    .arguments = "SCENARIO",
    .least = 1, .most = 1,
    .brief = "Simulates one training iteration.",
    .examples = "  dtsim run scenarios/tour/03-gpipe.yaml\n"
                "  dtsim run scenario.yaml -o out --set strategy.pipeline=8 --set batch.micro=2\n"
                "  dtsim run tensor-8.yaml --anchor tensor-4.yaml='12.5 s'\n"
                "  dtsim run scenario.yaml --json | jq .bubble_fraction\n",
    .options = options, .noptions = COUNT(options),
    .more = "Without -o, --json and --verify, fewer micro-batches of a long pipeline may be simulated. Between its fill and "
            "its drain a pipeline repeats itself, so the numbers stay the same but for rounding. The first line says how "
            "many micro-batches were simulated.\n",
    .main = run_main,
};
