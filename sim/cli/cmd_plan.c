#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/plan_methods.h"
#include "cli/plan_print.h"

enum { OPT_OUT, OPT_JOBS, OPT_GPUS, OPT_TOP, OPT_VERIFY, OPT_LIMIT, OPT_EXHAUSTIVE, OPT_JSON, OPT_METHOD,
       OPT_MARKDOWN };
static const char *const option_names[] = {
    [OPT_OUT] = "-o=", [OPT_JOBS] = "-j=", [OPT_GPUS] = "--gpus=", [OPT_TOP] = "--top=", [OPT_VERIFY] = "--verify=",
    [OPT_LIMIT] = "--time-limit=", [OPT_EXHAUSTIVE] = "--exhaustive", [OPT_JSON] = "--json",
    [OPT_METHOD] = "--method=", [OPT_MARKDOWN] = "--markdown",
};
enum { TOP = 10, VERIFIED = 3 };

static int options_parse(const struct command *command, const struct arguments *arguments, struct plan_options *plan)
{
    const char *const *values = arguments->values;
    char why[256];
    int code = jobs_parse(command, values[OPT_JOBS], &plan->jobs);

    plan->folder = values[OPT_OUT];
    plan->exhaustive = values[OPT_EXHAUSTIVE];
    plan->top = TOP;
    plan->verify = VERIFIED;
    if (code == ARGS_DONE && values[OPT_TOP])
        code = count_parse(command, "--top", values[OPT_TOP], 1000, &plan->top);
    if (code == ARGS_DONE && values[OPT_VERIFY] && strcmp(values[OPT_VERIFY], "0") == 0)
        plan->verify = 0;
    else if (code == ARGS_DONE && values[OPT_VERIFY])
        code = count_parse(command, "--verify", values[OPT_VERIFY], 1000, &plan->verify);
    if (code == ARGS_DONE && values[OPT_LIMIT] &&
        (unit_parse(UNIT_TIME, values[OPT_LIMIT], &plan->time_limit, why, sizeof why) || plan->time_limit <= 0))
        code = usage_error(command, "--time-limit: expected a time such as '30 s', found '%s'", values[OPT_LIMIT]);
    return code;
}

/* A planner of a paper makes one choice: it has no axes, no rows and no limits. */
static int run_method(const struct command *command, const struct arguments *arguments)
{
    const char *const *values = arguments->values;

    for (int i = 0; i <= OPT_EXHAUSTIVE; i++)
        if (values[i])
            return usage_error(command, "--method does not go with %.*s", (int)strcspn(option_names[i], "="),
                               option_names[i]);
    if (values[OPT_JSON] && values[OPT_MARKDOWN])
        return usage_error(command, "expected one of --json, --markdown");
    return plan_methods(command, arguments, values[OPT_METHOD],
                        values[OPT_JSON] ? METHODS_JSON : values[OPT_MARKDOWN] ? METHODS_MARKDOWN : METHODS_TEXT);
}

/* The rows of the outcome, ordered, and a scenario of each that is shown. */
static int tell(struct space *space, const struct plan_options *options, const struct plan_outcome *outcome, bool json,
                struct error *err)
{
    struct results results;
    const char *folder = options->folder;
    bool front = false;
    int rc = results_open(&folder, 1, &results, err) || plan_order(&results, outcome, &front, err) ? -1 : 0;

    if (!rc && results.rows.count)
        rc = plan_write_scenarios(space, options, outcome, &results, err);
    if (!rc && json)
        plan_print_json(space, options, outcome, &results, stdout);
    else if (!rc)
        plan_print(space, options, outcome, &results, front, stdout);
    results_release(&results);
    return rc;
}

/* The exit code of a search that ended. */
static int run(struct space *space, const struct plan_options *options, bool json, struct error *err)
{
    struct plan_outcome outcome;
    int code = EXIT_OK;

    if (plan_search(space, options, &outcome, err)) {
        plan_release(&outcome);
        return EXIT_UNEXPECTED;
    }
    if (outcome.located.count && tell(space, options, &outcome, json, err))
        code = EXIT_UNEXPECTED;
    else if (!outcome.located.count && json)
        plan_print_json(space, options, &outcome, NULL, stdout);
    else if (!outcome.located.count)
        plan_print(space, options, &outcome, NULL, false, stdout);
    if (code == EXIT_OK)
        code = outcome.interrupted ? EXIT_INTERRUPTED : outcome.status == PLAN_NONE_FEASIBLE ? EXIT_INFEASIBLE :
               outcome.counts.failed ? EXIT_SOME_FAILED : EXIT_OK;
    plan_release(&outcome);
    return code;
}

static int plan_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct plan_options options = {0};
    struct space space = {0};
    struct error err = {0};
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments), ended = EXIT_OK;

    if (code == ARGS_DONE && arguments.values[OPT_METHOD])
        return run_method(command, &arguments);
    if (code == ARGS_DONE && arguments.values[OPT_MARKDOWN])
        code = usage_error(command, "--markdown goes with --method");
    if (code == ARGS_DONE)
        code = options_parse(command, &arguments, &options);
    if (code != ARGS_DONE)
        return code;
    const struct plan_question question = {arguments.positional[0], arguments.sets, arguments.nsets,
                                           arguments.values[OPT_GPUS]};
    bool json = arguments.values[OPT_JSON];
    if (!space_load(&question, &space, &err)) {
        if (!options.folder)
            options.folder = arena_printf(&space.sweep.arena, "%s.plan", space.sweep.stem);
        ended = run(&space, &options, json, &err);
    }
    code = report_as(&err, json);
    space_release(&space);
    return code ? code : ended;
}

const struct command cmd_plan = {
    .name = "plan",
    .usage = "SCENARIO [--set PATH=auto|V1,V2,...]... [--gpus LIST] [-o DIR] [-j N] [--top K] [--verify K]\n"
             "       [--time-limit T] [--exhaustive] [--json]\n"
             "SCENARIO --method NAME|all [--set PATH=VALUE]... [--json | --markdown]",
    .brief = "Searches for the fastest configurations that fit, and says how sure that is.",
    .examples = "  dtsim plan llama3-70b.yaml\n"
                "  dtsim plan llama3-70b.yaml --gpus 64,128,256\n"
                "  dtsim plan llama3-70b.yaml --set strategy.tensor=auto --set strategy.pipeline=auto --set batch.micro=1,2\n"
                "  dtsim run llama3-70b.plan/rank-01.yaml\n"
                "  dtsim plan bert.yaml --method piper\n",
    .options = "  SCENARIO            what it says is held; - for standard input\n"
               "  --set PATH=auto     search this axis: the values follow from the model and the cluster (below)\n"
               "  --set PATH=V1,V2    search these values of any path; may be repeated. Left out: all axes with * that\n"
               "                      the scenario does not say\n"
               "  --gpus LIST         numbers of GPUs (64,128), whole nodes; left out: the cluster's\n"
               "  -o DIR              rows of all that was replayed, as of a sweep (dtsim results DIR, dtsim plot heat\n"
               "                      DIR), and rank-01.yaml and so on, which 'dtsim run' takes; left out: NAME.plan\n"
               "  -j N                points at once; left out: one a processor\n"
               "  --top K             configurations that are shown; left out: 10\n"
               "  --verify K          the best K, and those that tie with them, run on simgrid too; left out: 3; 0: none\n"
               "  --time-limit T      end the search after this time ('30 s'); what is proven is said\n"
               "  --exhaustive        replay every configuration, whatever its bound\n"
               "  --json              the outcome for programs\n"
               "  --method NAME       what a paper's planner chooses by its own objective, and what this simulator says of\n"
               "                      it: pipedream, 2bw, piper, mcmc (FlexFlow), alpa, dapple, varuna; dtsim: with this\n"
               "                      simulator as the objective; all: each of them. They choose stages, replicas and\n"
               "                      schedule; piper, mcmc, alpa and dtsim also the tensor degree unless the scenario says\n"
               "                      one; varuna and dtsim the micro-batch; piper, 2bw (paper) and dtsim recomputation;\n"
               "                      dtsim offloading. Where a released program differs from its paper, both are shown.\n"
               "                      On 100 GPUs and more piper, alpa, dapple and dtsim take minutes\n"
               "  --markdown          with --method: the table for a document\n"
               "axes that have an auto:\n"
               "  strategy.tensor*    divisors of a node's GPUs that divide the attention and key-value heads\n"
               "  strategy.pipeline*  divisors of the layers\n"
               "  strategy.schedule*  1f1b and interleaved, those of Megatron Core\n"
               "  strategy.chunks     model chunks of a rank: divisors of the layers, at most 8; with the schedules\n"
               "  batch.micro*        powers of two up to 16 that divide the batch\n"
               "  memory.recompute*   none, selective, full\n"
               "  strategy.zero       0, 1\n"
               "  strategy.context    powers of two up to 8\n"
               "  strategy.expert     divisors of the experts\n"
               "  strategy.sequence_parallel  false, true\n"
               "Every configuration is read, and its stages are timed. One that cannot be or cannot fit is dropped; the\n"
               "others have a lower bound of their time and are replayed on engine fast, the lowest bound first, until\n"
               "no bound is below the time of the last that is shown and of those that tie with the first. Then the\n"
               "order is proven: no other configuration of these axes is faster in this simulator. The exit code is 5 if\n"
               "none is feasible. The same command goes on after an interruption.\n",
    .accepts = option_names,
    .naccepts = COUNT(option_names),
    .main = plan_main,
};
