#include <stdlib.h>

#include "base/text.h"
#include "cli/cmd.h"
#include "files/folder.h"
#include "scenario/scenario.h"
#include "train/training_view.h"
#include "view/view.h"

enum { OPT_OUT, OPT_TRIALS, OPT_SEED, OPT_JOBS, OPT_ENGINE, OPT_JSON, OPT_MARKDOWN, OPT_BUDGET };
static const char *const options[] = {
    [OPT_OUT] = "-o=", [OPT_TRIALS] = "--trials=", [OPT_SEED] = "--seed=", [OPT_JOBS] = "-j=",
    [OPT_ENGINE] = "--engine=", [OPT_JSON] = "--json",
    [OPT_MARKDOWN] = "--markdown", [OPT_BUDGET] = BUDGET_OPTION,
};

enum { MOST_TRIALS = 1000000 };

/* How to train, and where to. */
struct request {
    const struct arguments *arguments;
    struct training_options how;
    enum engine engine;
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
            scenario.simulation.engine = (int)request->engine;
        rc = train(request, &scenario, &folder, err);
    }
    folder_release(&folder);
    scenario_release(&scenario);
    return rc;
}

static int parse(const struct command *command, const struct arguments *arguments, struct training_options *how,
                 enum engine *engine)
{
    size_t seed = 1;
    int code = ARGS_DONE;

    *how = (struct training_options){.trials = 1000};
    if (arguments->values[OPT_TRIALS])
        code = count_parse(command, "--trials", arguments->values[OPT_TRIALS], MOST_TRIALS, &how->trials);
    if (code == ARGS_DONE && arguments->values[OPT_SEED])
        code = count_parse(command, "--seed", arguments->values[OPT_SEED], 2147483647, &seed);
    if (code == ARGS_DONE)
        code = jobs_parse(command, arguments->values[OPT_JOBS], &how->jobs);
    if (code == ARGS_DONE && arguments->values[OPT_ENGINE])
        code = engine_parse(command, arguments->values[OPT_ENGINE], engine);
    how->seed = seed;
    return code;
}

static int train_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct request request = {.arguments = &arguments};
    int code = arguments_parse(command, argc, argv, 1, ARGS_MAX, &arguments);

    if (code == ARGS_DONE)
        code = parse(command, &arguments, &request.how, &request.engine);
    if (code == ARGS_DONE && arguments.values[OPT_MARKDOWN] &&
        (arguments.values[OPT_JSON] || arguments.values[OPT_OUT]))
        return usage_error(command, "--markdown: expected neither --json nor -o with it");
    if (code == ARGS_DONE && arguments.npositional > 1 && !arguments.values[OPT_MARKDOWN])
        return usage_error(command, "unexpected argument '%s'; several scenarios need --markdown",
                           arguments.positional[1]);
    if (code != ARGS_DONE)
        return code;
    progress_begin(&request.progress, "--budget", arguments.budget.seconds, arguments.budget.bytes);
    for (int i = 0; i < arguments.npositional && !train_file(&request, arguments.positional[i], &err);)
        i++;
    progress_end(&request.progress);
    code = report_as(&err, arguments.values[OPT_JSON] && !request.printed);
    return code;
}

const struct command cmd_train = {
    .name = "train",
    .usage = "SCENARIO... [--trials N] [--seed S] [-o DIR] [-j N] [--engine ENGINE] [--set PATH=VALUE]...\n"
             "       [--budget LIMIT]... [--json | --markdown]",
    .brief = "How long a training takes, how sure that is, and what it costs: days, goodput, GPU-hours, energy.",
    .examples = "  dtsim train llama3-8b.yaml                       its section 'train': dtsim help training\n"
                "  dtsim train scenario.yaml --set train.tokens='15 T' --set price='2 $/h'\n"
                "  dtsim train llama3-405b.yaml --set train.checkpoint.every=auto\n"
                "  dtsim train scenario.yaml --trials 200 --seed 1 -o out --json | jq .days_p90\n",
    .options =
        "  SCENARIO            a file, or - for standard input\n"
        "  --trials N          number of simulated trainings, each with other random failures (1000)\n"
        "  --seed S            of the random failures (1); trial k of a seed is the same in 10 trials and in 1000\n"
        "  -o DIR              write result.json, trials.tsv, events.tsv (of trial 0), phases.tsv and\n"
        "                      progress.tsv, all of them or none; 'dtsim plot training DIR' draws them\n"
        "  -j N                processes for the trials (all processors); the numbers are the same for any N\n"
        "  --engine ENGINE     fast or simgrid (flows share links), or ideal (nothing contends)\n"
        "  --set PATH=VALUE    change the scenario; may be repeated\n"
        "  --budget LIMIT      end after this wall time ('30 s') or before this process needs more memory\n"
        "                      ('4 GiB') with exit code 7; may be given twice\n"
        "  --json              days, goodput, gpu_hours, cost and energy_j, each with _p10 _p50 _p90 over the\n"
        "                      trials, shares of the wall time, closed forms, the scenario\n"
        "  --markdown          a line of a table for each of several scenarios, next to the values that were\n"
        "                      reported of the real training (train.reported)\n"
        "\n"
        "Each batch, sequence and number of GPUs of the training is simulated once, as 'dtsim run --engine fast'\n"
        "does. A failure loses the work since the last finished checkpoint; detection, replacement,\n"
        "initialisation and loading follow, and a failure during these starts them anew. P10 to P90 span the\n"
        "random failures alone; expected_error_share is the error of the predicted time of an iteration.\n",
    .accepts = options,
    .naccepts = COUNT(options),
    .main = train_main,
};
