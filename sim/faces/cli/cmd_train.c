
#include "base/text.h"
#include "cli/cmd.h"
#include "engine/replay.h"
#include "files/folder.h"
#include "scenario/scenario.h"
#include "train/training_view.h"
#include "view/view.h"

enum { OPT_TRIALS, OPT_SEED, OPT_OUT, OPT_JOBS, OPT_ENGINE, OPT_JSON, OPT_MARKDOWN };

/* How to train, and where to. */
struct request {
    const struct arguments *arguments;
    struct training_options how;
    struct progress progress;
    bool printed;                   /* anything was printed */
};

/* Prints the training. */
static void print_training(struct request *request, const struct training *training, struct error *err)
{
    const struct arguments *arguments = request->arguments;

    if (arguments->values[OPT_MARKDOWN])
        training_row(training, !request->printed, stdout);
    else if (arguments->values[OPT_JSON])
        view_print(&training_view, training, stdout);
    else
        training_print(training, stdout);
    request->printed = true;
    if (!training->ended[TRIAL_FINISHED])
        error_clash(err, training->scenario->train->node->loc,
                    "train: no trial finished: %zu ended for lack of spare nodes, "
                    "%zu did not progress",
                    training->ended[TRIAL_STOPPED], training->ended[TRIAL_STUCK]);
}

/* A folder that cannot be had is better known before the simulations than after them. */
static int train(struct request *request, const struct scenario *scenario, struct folder *folder, struct error *err)
{
    const char *path = request->arguments->values[OPT_OUT];
    struct training training = {0};
    int rc = path ? folder_open(folder, path, err) : 0;

    if (!rc)
        rc = training_init(&training, scenario, request->how, err);
    progress_end(&request->progress);
    if (!rc && path)
        rc = training_write(&training, folder, err);
    if (!rc) {
        print_training(request, &training, err);
        if (path) {
            fputs("wrote ", stderr);
            text_write(TEXT_LINE, path, stderr);
            fputs("/result.json and its tables\n", stderr);
        }
    }
    training_release(&training);
    return rc;
}

static int train_file(struct request *request, const char *file, struct error *err)
{
    const struct arguments *arguments = request->arguments;
    struct scenario scenario;
    struct folder folder = {0};
    int rc = scenario_load(file, arguments->sets, arguments->nsets, &request->progress, &scenario, err);

    if (!rc) {
        scenario_prefer(&scenario, ENGINE_FAST);
        if (arguments->values[OPT_ENGINE])
            scenario.simulation.engine = (int)arguments->numbers[OPT_ENGINE];
        rc = train(request, &scenario, &folder, err);
    }
    folder_release(&folder);
    scenario_release(&scenario);
    return rc;
}

static int train_main(const struct arguments *arguments)
{
    struct error err = {0};
    struct request request = {
        .arguments = arguments,
        .how = {.trials = (size_t)arguments->numbers[OPT_TRIALS], .seed = (uint64_t)arguments->numbers[OPT_SEED],
                .jobs = (size_t)arguments->numbers[OPT_JOBS]},
    };

    if (arguments->npositional > 1 && !arguments->values[OPT_MARKDOWN])
        return usage_error(arguments->command, "unexpected argument '%s'; several scenarios need --markdown",
                           arguments->positional[1]);
    progress_begin(&request.progress, "--budget", arguments->budget.seconds, arguments->budget.bytes);
    for (int i = 0; i < arguments->npositional && !train_file(&request, arguments->positional[i], &err);)
        i++;
    progress_end(&request.progress);
    return report_as(&err, arguments->values[OPT_JSON] && !request.printed);
}

static const struct option options[] = {
    [OPT_TRIALS] = {"--trials", "N",
        .help = "number of simulated trainings, each with other random failures", OPTION_COUNT, 1, 1000000, .usual = "1000"},
    [OPT_SEED] = {"--seed", "S",
        .help = "of the random failures; trial k of a seed is the same in 10 trials and in 1000",
        OPTION_COUNT, 1, 2147483647, .usual = "1"},
    [OPT_OUT] = {"-o", "DIR",
        .help = "write result.json, trials.tsv, events.tsv (of trial 0), phases.tsv and progress.tsv, all of them or none; 'dtsim "
        "plot training DIR' draws them"},
    [OPT_JOBS] = JOBS_OPTION("processes for the trials; the numbers are the same for any N; left out: one a processor"),
    [OPT_ENGINE] = ENGINE_OPTION("fast or simgrid (flows share links), or ideal (nothing contends)"),
    [OPT_JSON] = {"--json", .help = "for programs; its keys: dtsim help result", .one_of = 1},
    [OPT_MARKDOWN] = {"--markdown",
        .help = "a line of a table for each of several scenarios, next to the values that were reported of the real training "
        "(train.reported)", .one_of = 1, .without = "-o"},
    SET_OPTION("PATH=VALUE", "change the scenario"),
    BUDGET_OPTION(BUDGET_HELP),
    {"SCENARIO", .help = "a file, or - for standard input"},
};

const struct command cmd_train = {
    .name = "train",
    .arguments = "SCENARIO...",
    .least = 1, .most = ARGS_MAX,
    .brief = "How long a training takes, how sure that is, and what it costs: days, goodput, GPU-hours, energy.",
    .examples = "  dtsim train llama3-8b.yaml                       its section 'train': dtsim help training\n"
                "  dtsim train scenario.yaml --set train.tokens='15 T' --set price='2 $/h'\n"
                "  dtsim train llama3-405b.yaml --set train.checkpoint.every=auto\n"
                "  dtsim train scenario.yaml --trials 200 --seed 1 -o out --json | jq .days_p90\n",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "Each batch, sequence and number of GPUs of the training is simulated once, as 'dtsim run --engine fast' does. "
            "A failure loses the work since the last finished checkpoint; detection, replacement, initialisation and "
            "loading follow, and a failure during these starts them anew. P10 to P90 span the random failures alone; "
            "expected_error_share is the error of the predicted time of an iteration.\n",
    .main = train_main,
};
