#include <math.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cmd.h"
#include "cli/plan_methods.h"
#include "cli/plan_print.h"
#include "emit/emit.h"
#include "files/folder.h"
#include "plan/plan.h"
#include "plan/space.h"
#include "process/pool.h"
#include "process/ranks.h"
#include "results/results.h"
#include "scenario/scenario.h"
#include "scenario/search.h"
#include "validate/anchors.h"

enum { OPT_OUT, OPT_JOBS, OPT_GPUS, OPT_OBJECTIVE, OPT_LIMITS, OPT_TOP, OPT_VERIFY, OPT_LIMIT, OPT_EXHAUSTIVE, OPT_RETRY, OPT_ANCHOR,
       OPT_EMIT, OPT_JSON, OPT_MARKDOWN, OPT_METHOD };
enum { TOP = 10, VERIFIED = 3 };
#define UNSAID SIZE_MAX

/* The values of the scenario's own plan, where no option replaces them. */
static void take_asked(const struct search_spec *asked, struct plan_options *plan)
{
    plan->top = plan->top ? plan->top : asked->top > 0 ? (size_t)asked->top : TOP;
    if (plan->verify == UNSAID)
        plan->verify = asked->verify >= 0 ? (size_t)asked->verify : VERIFIED;
    if (!(plan->time_limit > 0) && asked->time_limit > 0)
        plan->time_limit = asked->time_limit;
    plan->exhaustive |= asked->method == SEARCH_EXHAUSTIVE;
}

/* An agent's call prints what it found before its process is killed, so long before that as the table may take. */
static void keep_budget(double held, double spent, struct plan_options *plan)
{
    double left = held - fmax(held / 10, fmin(held / 2, 2)) - spent;

    if (held > 0 && !(plan->time_limit > 0 && plan->time_limit < left))
        plan->time_limit = fmax(left, 0.1);
}

static struct plan_options options_of(const struct arguments *arguments)
{
    const char *const *values = arguments->values;

    return (struct plan_options){
        .folder = values[OPT_OUT], .exhaustive = values[OPT_EXHAUSTIVE], .retry_failed = values[OPT_RETRY],
        .jobs = (size_t)arguments->numbers[OPT_JOBS], .top = (size_t)arguments->numbers[OPT_TOP],
        .verify = values[OPT_VERIFY] ? (size_t)arguments->numbers[OPT_VERIFY] : UNSAID,
        .time_limit = arguments->numbers[OPT_LIMIT],
    };
}

/* How it is told: as JSON; the first one as arguments of a framework, NULL: not. */
struct printing { bool json; const struct emitted *emitted; };

/* What to launch for the first configuration, on stdout; its notes go to stderr. */
static int emit_first(const struct emitted *emitted, const char *folder, struct error *err)
{
    struct arena arena = {0};
    struct scenario scenario;
    int rc = scenario_load(arena_printf(&arena, "%s/rank-01.yaml", folder), NULL, 0, NULL, &scenario, err) ||
             emitted->emit(&scenario, stdout, stderr, err) ? -1 : 0;

    scenario_release(&scenario);
    arena_release(&arena);
    return rc;
}

/* Where the table goes: stdout, unless that is for what is launched. */
static FILE *table_out(const struct printing *printing)
{
    return printing->emitted ? stderr : stdout;
}

/* A planner of a paper makes one choice: it has no axes, no rows and no limits. `space`: of the scenario that names the
 * planner; NULL: an option does. */
static int run_method(const struct arguments *arguments, struct space *space)
{
    const char *const *values = arguments->values;
    const char *method = space ? search_method_names[space->asked.method] : values[OPT_METHOD];
    struct scenario scenario = {0};
    struct error err = {0};
    struct arena arena = {0};

    for (int i = 0; i < OPT_JSON; i++)
        if (values[i])
            return usage_error(arguments->command, "the scenario's plan.method does not go with %s",
                               arguments->command->options[i].name);
    if (space)
        scenario_read(&arena, space->sweep.points.base, arguments->sets, arguments->nsets, space->sweep.name, &scenario,
                      &err);
    else
        scenario_load(arguments->positional[0], arguments->sets, arguments->nsets, NULL, &scenario, &err);
    return plan_methods(&scenario, method,
                        values[OPT_JSON] ? METHODS_JSON : values[OPT_MARKDOWN] ? METHODS_MARKDOWN : METHODS_TEXT, &err);
}

/* The rows of the outcome, ordered, and a scenario of each that is shown. */
static int print_rows(struct space *space, const struct plan_options *said, struct plan_outcome *outcome,
                      const struct printing *printing, struct error *err)
{
    struct results results;
    const char *folder = said->folder;
    struct plan_options placed = *said, *options = &placed;
    bool front = false;
    int rc = results_open(&folder, 1, &results, err) || plan_order(&results, outcome, &space->goal, &front, err) ? -1 : 0;

    placed.folder = plan_place(&space->sweep.arena, folder, &results, front);
    placed.beside = placed.folder != folder;
    if (!rc)
        rc = make_folder(placed.folder, err);

    if (!results.rows.count && outcome->status == PLAN_PROVEN)     /* nothing has the metrics that the goal names */
        outcome->status = PLAN_NONE_FEASIBLE;
    if (!rc && results.rows.count)
        rc = plan_write_scenarios(space, options, outcome, &results, err);
    if (!rc && results.rows.count && !outcome->interrupted && !outcome->counts.left)
        plan_halve(options->folder, plan_shown(options, &results), outcome);
    if (!rc)
        rc = plan_write_summary(space, options, outcome, &results, front, err);
    if (!rc && printing->json)
        plan_print_json(space, options, outcome, &results, front, table_out(printing));
    else if (!rc)
        plan_print(space, options, outcome, &results, front, table_out(printing));
    if (!rc && printing->emitted && results.rows.count)
        rc = emit_first(printing->emitted, placed.folder, err);
    results_release(&results);
    return rc;
}

/* The same where nothing was replayed. */
static int print_none(struct space *space, const struct plan_options *said, const struct plan_outcome *outcome,
                      const struct printing *printing, struct error *err)
{
    struct plan_options placed = *said, *options = &placed;

    placed.folder = plan_place(&space->sweep.arena, said->folder, NULL, false);
    if (printing->json)
        plan_print_json(space, options, outcome, NULL, false, table_out(printing));
    else
        plan_print(space, options, outcome, NULL, false, table_out(printing));
    return plan_write_summary(space, options, outcome, NULL, false, err);
}

/* Progress on stderr: a line that is written over on a terminal, else a line now and then. */
struct progress_shown { bool terminal; double said; };

static void show_progress(void *context, const struct plan_state *state)
{
    struct progress_shown *shown = context;

    if (pool_now() - shown->said < (shown->terminal ? 0.2 : 30))
        return;
    shown->said = pool_now();
    fprintf(stderr, "%s%zu of %zu configurations %s%s", shown->terminal ? "\r\033[K" : "", state->done, state->points,
            state->doing, shown->terminal ? "" : "\n");
    fflush(stderr);
}

/* The exit code of a search that ended. */
static int run(struct space *space, const struct plan_question *question, const struct plan_options *options,
               const struct printing *printing, struct error *err)
{
    struct plan_outcome outcome;
    double began = pool_now();
    int code = EXIT_OK;

    if (plan_search(space, options, &outcome, err)) {
        plan_release(&outcome);
        return EXIT_UNEXPECTED;
    }
    if (outcome.status == PLAN_NONE_FEASIBLE && isfinite(outcome.nearest.lacks))
        outcome.fewest = plan_fewest(question, space, options, pool_now() - began);
    if (outcome.located.count ? print_rows(space, options, &outcome, printing, err) :
        print_none(space, options, &outcome, printing, err))
        code = EXIT_UNEXPECTED;
    if (code == EXIT_OK)
        code = outcome.interrupted ? EXIT_INTERRUPTED : outcome.status == PLAN_NONE_FEASIBLE ? EXIT_INFEASIBLE :
               outcome.counts.failed || outcome.verified.failed ? EXIT_SOME_FAILED : EXIT_OK;
    plan_release(&outcome);
    return code;
}

static int plan_main(const struct arguments *arguments)
{
    struct plan_options options = options_of(arguments);
    struct printing printing = {
        arguments->values[OPT_JSON],
        arguments->values[OPT_EMIT] ? emitted_at((size_t)arguments->numbers[OPT_EMIT]) : NULL,
    };
    struct progress_shown shown;
    struct space space = {0};
    struct error err = {0};
    double began = pool_now();
    int ended = EXIT_OK, code, rc;

    if (ranks_there())
        return usage_error(arguments->command, "mpirun started several of this program, and a plan is one; expected -j, the workers of one "
                           "machine");
    if (arguments->values[OPT_METHOD])
        return run_method(arguments, NULL);
    const struct plan_question question = {arguments->positional[0], arguments->sets, arguments->nsets,
                                           arguments->values[OPT_GPUS], arguments->values[OPT_OBJECTIVE],
                                           arguments->values[OPT_LIMITS]};
    rc = space_load(&question, &space, &err);
    if (!rc && search_is_planner(space.asked.method)) {
        ended = run_method(arguments, &space);
        space_release(&space);
        return ended;
    }
    if (!rc)
        rc = anchors_load(&space.sweep.arena, arguments->values[OPT_ANCHOR], options.jobs, &options.anchors, &err);
    if (!rc && options.anchors && goal_trains(&space.goal))
        rc = error_add(&err, EXIT_USAGE, (struct loc){.file = "--anchor"}, "anchors correct iterations alone, and an objective or a "
                       "limit is of a training; expected other metrics, or no --anchor");
    if (!rc) {
        take_asked(&space.asked, &options);
        keep_budget(arguments->command->held, pool_now() - began, &options);
        options.exhaustive |= space_asks_largest(&space);
        if (!options.folder)
            options.folder = arena_printf(&space.sweep.arena, "%s.plan", space.sweep.stem);
        shown = (struct progress_shown){isatty(STDERR_FILENO), pool_now()};
        options.progress = show_progress;
        options.context = &shown;
        ended = run(&space, &question, &options, &printing, &err);
        fputs(shown.terminal ? "\r\033[K" : "", stderr);
    }
    code = report_as(&err, printing.json);
    space_release(&space);
    return code ? code : ended;
}

static const struct option options[] = {
    [OPT_OUT] = {"-o", "DIR",
        .help = "where replayed rows and plan.json go, for 'dtsim report DIR', results and plot heat; rank-01.yaml and so on, which "
        "'dtsim run' takes; left out: NAME.plan. Where an earlier plan of the same work left a better one there, that "
        "stays, and these go to DIR/2"},
    [OPT_JOBS] = JOBS_OPTION("points at once; left out: one a processor; on one machine"),
    [OPT_GPUS] = {"--gpus", "LIST|auto",
        .help = "numbers of GPUs (64,128), whole nodes; auto: 1 to 8 nodes, 10, 12, 14, 16, 20, ... up to the cluster's, or to 128; "
        "left out: the cluster's"},
    [OPT_OBJECTIVE] = {"--objective", "METRIC,...",
        .help = "order by this metric: iteration_time_s, cost (which needs 'price: 2.50 $/h'), mfu, ...; gpus: the fewest that fit; "
        "where the scenario has a section 'train', also days, goodput, and cost, gpu_hours and energy_j of all the training "
        "(days_p90 and so on too); of several metrics their Pareto front. Left out: time, and for several numbers of GPUs the fastest of each"},
    [OPT_LIMITS] = {"--subject-to", "METRIC=VALUE,...",
        .help = "leave out what takes more (iteration_time_s=12s, cost=0.5, peak_memory_bytes=70GiB) or, for rates, shares of use "
        "and fits_probability, gives less (mfu=0.4)"},
    [OPT_TOP] = {"--top", "K", .help = "configurations to show; left out: 10", OPTION_COUNT, 1, 1000},
    [OPT_VERIFY] = {"--verify", "K", .help = "run the first K rows on simgrid too; left out: 3", OPTION_COUNT, 0, 1000},
    [OPT_LIMIT] = {"--time-limit", "T", .help = "end after this time ('30 s'), --verify included", OPTION_TIME, 1},
    [OPT_EXHAUSTIVE] = {"--exhaustive", .help = "replay all, whatever their bounds"},
    [OPT_RETRY] = {"--retry-failed", .help = "replay rows again that ended with an error or a timeout"},
    [OPT_ANCHOR] = {"--anchor", "MINE.yaml|SCENARIO.yaml=TIME",
        .help = "correct times by your own runs, as 'dtsim sweep' does; all that fits is replayed"},
    [OPT_EMIT] = {"--emit", "FRAMEWORK",
        .help = "print the launch of the first row, as 'dtsim emit' does, and the table on stderr",
        OPTION_CHOICE, .words = {"framework", NULL, emitted_name}},
    [OPT_JSON] = {"--json", .help = "for programs; its keys: dtsim help result", .one_of = 1},
    [OPT_MARKDOWN] = {"--markdown", .help = "the table for a document", .one_of = 1, .with = "--method"},
    [OPT_METHOD] = {"--method", "NAME|all",
        .help = "the choice of a paper's planner by its own objective, with its time here: pipedream, 2bw, piper, mcmc (FlexFlow), "
        "alpa, dapple, varuna, dtsim (the same with this simulator as the objective); all: each. In a file: plan: {method: "
        "NAME}",
        OPTION_CHOICE, .words = {"planner", NULL, plan_method_name},
        .without = "-o -j --gpus --objective --subject-to --top --verify --time-limit --exhaustive --retry-failed --anchor --emit"},
    SET_OPTION("PATH=auto|V1,V2,...", "search these values of any path; auto: search this axis, whose values follow from the model and the cluster (below). Where no layout is asked for by several values of an axis below or of a strategy's key: also the axes with * that the scenario does not set. One value holds its path. Several platforms or networks are compared: the table has the best configuration of each, with $ (price: {PLATFORM: 2.50 $/h, ...}) and kWh a million tokens"),
    {"SCENARIO", .help = "its values are fixed, but for the axes of its key 'plan' (below); - for standard input"},
};

const struct command cmd_plan = {
    .name = "plan",
    .arguments = "SCENARIO",
    .least = 1, .most = 1,
    .brief = "Searches for the fastest configurations that fit, and says how sure that is.",
    .examples = "  dtsim plan llama3-70b.yaml\n"
                "  dtsim plan llama3-70b.yaml --gpus 64,128,256\n"
                "  dtsim plan llama3-70b.yaml --set strategy.tensor=auto --set strategy.pipeline=auto --set batch.micro=1,2\n"
                "  dtsim plan llama3-70b.yaml --objective gpus --subject-to iteration_time_s=12s\n"
                "  dtsim plan training.yaml --gpus 64,128,256 --objective cost --subject-to days=30\n"
                "  dtsim plan llama3-70b.yaml --emit megatron > args.txt\n"
                "  dtsim run llama3-70b.plan/rank-01.yaml\n"
                "  dtsim plan bert.yaml --method piper\n",
    .options = options, .noptions = COUNT(options),
    .more = "The scenario may say all of this itself, under 'plan' ('dtsim help plan.top'); options go before it:\n"
            "  plan: {strategy.tensor: auto, batch.micro: [1, 2], gpus: [64, 128], objective: [iteration_time_s, cost]}\n"
            "axes that have an auto, whose values and reasons are printed; * unless the file of the software lists others "
            "as its axes ('dtsim show software'): strategy.tensor*, pipeline*, schedule* with chunks*, context, expert, "
            "expert_tensor, zero, sequence_parallel, data_parallel, dispatcher, overlap_dispatch; batch.micro* (up to 16, "
            "asked for by name without this limit; as the only axis: the output names the largest that fits); "
            "memory.recompute*, memory.offload; software.overlap_gathers\n"
            "The search drops what is invalid, cannot fit in memory, or has an auto value that the framework's release "
            "lacks ('dtsim help software-file'). It replays the others on engine fast, the lowest bound of the time first, "
            "until no bound is below the time of the last row shown. That proves the order of what was searched: no other "
            "is faster here, unless its replay failed. 'held, not searched' names axes left as they are. Exit code 5: none "
            "is feasible. The same command goes on after an interruption.\n",
    .main = plan_main,
};
