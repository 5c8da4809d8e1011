#include <stdlib.h>

#include "base/text.h"
#include "cache/cache.h"
#include "cli/cmd.h"
#include "train/training.h"

enum { OPT_OUT, OPT_TRIALS, OPT_SEED, OPT_JOBS, OPT_ENGINE, OPT_JSON, OPT_BUDGET };
static const char *const options[] = {
    [OPT_OUT] = "-o=", [OPT_TRIALS] = "--trials=", [OPT_SEED] = "--seed=", [OPT_JOBS] = "-j=",
    [OPT_ENGINE] = "--engine=", [OPT_JSON] = "--json", [OPT_BUDGET] = BUDGET_OPTION,
};

enum { MOST_TRIALS = 1000000 };

/* Prints the training, and writes its folder. Whether anything was printed. */
static bool tell(const struct training *training, bool json, struct folder *folder, struct error *err)
{
    if (folder->path && training_write(training, folder, err))
        return false;
    if (json) {
        json_t *result = training_json(training);

        json_print(result, stdout);
        json_decref(result);
    } else {
        training_print(training, stdout);
    }
    if (folder->path) {
        fputs("wrote ", stderr);
        text_write(TEXT_LINE, folder->path, stderr);
        fputs("/result.json and its tables\n", stderr);
    }
    if (!training->ended[TRIAL_FINISHED])
        error_clash(err, training->scenario->train->node->loc, "train: no trial finished: %zu ended for lack of spare nodes, "
                    "%zu did not progress", training->ended[TRIAL_STOPPED], training->ended[TRIAL_STUCK]);
    return true;
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
    struct scenario scenario;
    struct cache cache;
    struct training training = {0};
    struct training_options how;
    struct folder folder = {0};
    struct progress progress;
    enum engine engine = ENGINE_FAST;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments);
    bool told = false;

    if (code == ARGS_DONE)
        code = parse(command, &arguments, &how, &engine);
    if (code != ARGS_DONE)
        return code;
    progress_begin(&progress, "--budget", arguments.budget.seconds, arguments.budget.bytes);
    cache_init(&cache, CACHE_BYTES);
    if (!scenario_load(arguments.positional[0], arguments.sets, arguments.nsets, &scenario, &err)) {
        scenario.arena.cache = &cache;
        scenario.progress = &progress;
        scenario_prefer(&scenario, engine);
        if (arguments.values[OPT_ENGINE])
            scenario.simulation.engine = (int)engine;
        if ((!arguments.values[OPT_OUT] || !folder_open(&folder, arguments.values[OPT_OUT], &err)) &&
            !training_init(&training, &scenario, how, &err)) {
            progress_end(&progress);
            told = tell(&training, arguments.values[OPT_JSON], &folder, &err);
        }
    }
    progress_end(&progress);
    folder_release(&folder);
    training_release(&training);
    code = report_as(&err, arguments.values[OPT_JSON] && !told);
    scenario_release(&scenario);
    cache_release(&cache);
    return code;
}

const struct command cmd_train = {
    .name = "train",
    .usage = "SCENARIO [--trials N] [--seed S] [-o DIR] [-j N] [--engine ENGINE] [--set PATH=VALUE]...\n"
             "       [--budget LIMIT]... [--json]",
    .brief = "How long a training takes, how sure that is, and what it costs: days, goodput, GPU-hours, energy.",
    .examples = "  dtsim train llama3-8b.yaml                       its section 'train': dtsim help training\n"
                "  dtsim train scenario.yaml --set train.tokens='15 T' --set price='2 $/h'\n"
                "  dtsim train llama3-405b.yaml --set train.checkpoint.every=auto\n"
                "  dtsim train scenario.yaml --trials 200 --seed 1 -o out --json | jq .days_p90\n",
    .options = "  SCENARIO            a file, or - for standard input\n"
               "  --trials N          how often the training is played with its luck (1000)\n"
               "  --seed S            of the luck (1); trial k of a seed is the same in 10 trials and in 1000\n"
               "  -o DIR              write result.json, trials.tsv, events.tsv (of trial 0) and phases.tsv, all of them\n"
               "                      or none\n"
               "  -j N                processes for the trials (all processors); the numbers are the same for any N\n"
               "  --engine ENGINE     fast or simgrid (flows share links), or ideal (nothing contends)\n"
               "  --set PATH=VALUE    change the scenario; may be repeated\n"
               "  --budget LIMIT      end after this wall time ('30 s') or before this process needs more memory\n"
               "                      ('4 GiB') with exit code 7; may be given twice\n"
               "  --json              days, goodput, gpu_hours, cost and energy_j, each with _p10 _p50 _p90 over the\n"
               "                      trials, shares of the wall time, closed forms, the scenario\n"
               "\n"
               "Each batch, sequence and number of GPUs of the training is simulated once, as 'dtsim run --engine fast'\n"
               "does. A failure loses the work since the last finished checkpoint; detection, replacement,\n"
               "initialisation and loading follow, and a failure during these begins them anew. P10 to P90 are the luck\n"
               "of failures alone: that of the prediction itself is expected_error_share of an iteration.\n",
    .accepts = options,
    .naccepts = COUNT(options),
    .main = train_main,
};
