#include <math.h>
#include <string.h>

#include "base/cache.h"
#include "base/sheet.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cmd.h"
#include "engine/replay.h"
#include "files/folder.h"
#include "files/json.h"
#include "report/outcome.h"
#include "results/compared.h"
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
    struct sheet sheet;             /* of several values of --set; the same as JSON */
    json_t *rows;
    size_t failed, refused;         /* failed: rows without a training; refused: those of them whose input is wrong, where others do not fit */
    int code;                       /* of the first that failed, or of what stopped all */
};

static void check_finished(const struct training *training, struct error *err)
{
    if (!training->ended[TRIAL_FINISHED])
        error_clash(err, training->scenario->train->node->loc,
                    "train: no trial finished: %zu ended for lack of spare nodes, "
                    "%zu did not progress",
                    training->ended[TRIAL_STOPPED], training->ended[TRIAL_STUCK]);
}

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
    check_finished(training, err);
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

static void note_failure(struct request *request, const struct error *found)
{
    int code = (int)error_exit_code(found);

    request->refused += code != EXIT_INFEASIBLE;
    if (!request->failed++ || code == EXIT_STOPPED || code == EXIT_INTERRUPTED)
        request->code = code;
}

/* A row for the training of a point of several. */
static void train_point(void *context, const char *name, struct scenario *scenario, struct error *found)
{
    struct request *request = context;
    struct training training = {0};
    json_t *row = json_object();
    bool simulated = scenario && !training_init(&training, scenario, request->how, found);

    if (simulated)
        check_finished(&training, found);
    json_put(row, "name", json_words(name));
    sheet_add(&request->sheet, name);
    if (found->count) {
        note_failure(request, found);
        outcome_refused(row, found);
        sheet_add_rest(&request->sheet, found->messages[0].text);
    } else {
        const struct { double value, scale; } cells[] = {
            {training.days.mean, 1}, {training.days.p10, 1}, {training.days.p90, 1}, {training.goodput.mean, 0.01},
            {training.gpu_hours.mean, 1}, {training.price.mean, 1}, {training.energy.mean, 1000.0 * JOULES_A_KWH},
        };

        json_put(row, "status", json_string(outcome_names[OUTCOME_OK]));
        for (size_t i = 0; i < COUNT(cells); i++) {
            char text[48];

            snprintf(text, sizeof text, "%.4g", cells[i].value / cells[i].scale);
            sheet_add(&request->sheet, isnan(cells[i].value) ? "-" : text);
        }
    }
    if (simulated)
        json_put(row, "metrics", view_json(&training_view, &training));
    json_append(request->rows, row);
    training_release(&training);
}

/* Whether --set gives several values to a path: a comma outside of brackets. Then each combination is a training of its own. */
static bool has_several(const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->nsets; i++) {
        int depth = 0;

        for (const char *at = arguments->sets[i]; *at; at++) {
            depth += strchr("[{", *at) ? 1 : strchr("]}", *at) ? -1 : 0;
            if (!depth && *at == ',')
                return true;
        }
    }
    return false;
}

/* A table of them, or a list, unless all are wrong. An exit code. */
static int train_several(struct request *request, struct error *err)
{
    static const char *const heads[] = {"days", "days, p10", "days, p90", "goodput (%)", "GPU-hours", "$", "MWh"};
    const struct arguments *arguments = request->arguments;
    struct cache cache;
    struct arena arena = {0};
    const char *engine = arguments->values[OPT_ENGINE];
    const struct compared_each each = {
        .cache = &cache, .engine = engine ? arena_printf(&arena, "simulation.engine=%s", engine) : NULL,
        .progress = &request->progress, .call = train_point, .context = request,
    };
    int code;

    request->rows = json_array();
    request->sheet.needed = 2;
    sheet_head(&request->sheet, "training", "");
    for (size_t i = 0; i < COUNT(heads); i++)
        sheet_head(&request->sheet, heads[i], "");
    cache_init(&cache, CACHE_BYTES);
    compared_visit(&each, arguments->positional[0], arguments->sets, arguments->nsets, err);
    cache_release(&cache);
    progress_end(&request->progress);
    request->printed = request->refused < json_array_size(request->rows);
    if (request->printed && arguments->values[OPT_JSON])
        json_print(request->rows, stdout);
    else if (request->printed)
        sheet_print(&request->sheet, arguments->values[OPT_MARKDOWN], stdout);
    code = report_as(err, arguments->values[OPT_JSON] && !request->printed);
    if (request->printed)
        code = request->failed == json_array_size(request->rows) || request->code == EXIT_STOPPED ||
               request->code == EXIT_INTERRUPTED ? request->code : request->failed ? EXIT_SOME_FAILED : EXIT_OK;
    json_decref(request->rows);
    sheet_release(&request->sheet);
    arena_release(&arena);
    return code;
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
    bool several;
    struct request request = {
        .arguments = arguments,
        .how = {.trials = (size_t)arguments->numbers[OPT_TRIALS], .seed = (uint64_t)arguments->numbers[OPT_SEED],
                .jobs = (size_t)arguments->numbers[OPT_JOBS]},
    };

    if (arguments->npositional > 1 && !arguments->values[OPT_MARKDOWN])
        return usage_error(arguments->command, "unexpected argument '%s'; several scenarios need --markdown",
                           arguments->positional[1]);
    several = has_several(arguments);
    if (several && (arguments->npositional > 1 || arguments->values[OPT_OUT]))
        return usage_error(arguments->command, "--set gives several values, each a training of its own; expected one scenario and no -o");
    progress_begin(&request.progress, "--budget", arguments->budget.seconds, arguments->budget.bytes);
    if (several)
        return train_several(&request, &err);
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
    SET_OPTION("PATH=V1,V2,...", "change the scenario; several values give a row each, with $ and MWh in all, as JSON "
               "a list of {name, status, rule, reason, metrics}. One that is not possible or cannot be read is a row that says why; the "
               "exit code is 3 if some are, and the first one's if all are"),
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
                "  dtsim train llama3-405b.yaml --set train.spares.nodes=0,1,2,4\n"
                "  dtsim train scenario.yaml --trials 200 --seed 1 -o out --json | jq .days_p90\n",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "Each batch, sequence and number of GPUs of the training is simulated once, as 'dtsim run --engine fast' does. "
            "A failure loses the work since the last finished checkpoint; detection, replacement, initialisation and "
            "loading follow, and a failure during these starts them anew. P10 to P90 span the random failures alone; "
            "expected_error_share is the error of the predicted time of an iteration.\n",
    .main = train_main,
};
