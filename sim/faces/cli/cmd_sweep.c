#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmd.h"
#include "store/claim.h"
#include "process/ranks.h"
#include "cli/sweep_plan.h"
#include "engine/replay.h"
#include "process/pool.h"
#include "report/outcome.h"
#include "results/results_table.h"
#include "sweep/sweep.h"
#include "validate/anchors.h"

enum { OPT_OUT, OPT_JOBS, OPT_DRY_RUN, OPT_SHARD, OPT_ENGINE, OPT_TIMEOUT, OPT_MAX, OPT_VERIFY, OPT_RETRY, OPT_FORCE, OPT_FAIL_FAST,
       OPT_ANCHOR };

/* Progress on stderr: a line that is written over on a terminal, else a line now and then. */
struct progress_shown {
    bool terminal;
    double begun, said;          /* s */
    size_t said_done;
};

static void show_progress(void *context, const struct sweep_state *state)
{
    struct progress_shown *progress = context;
    double time = pool_now(), elapsed = time - progress->begun, rate = (double)(state->done - state->before) / elapsed;
    size_t more = state->done - progress->said_done;
    bool due = progress->terminal ? time - progress->said > 0.2 :
               time - progress->said > 30 || (time - progress->said > 10 && 10 * more >= state->points);
    double seconds = round((double)(state->points - state->done) / rate);
    bool tokens = state->best.tokens > 0;
    char left[48], best[80] = "";

    if (due && state->verify.chosen)
        fprintf(stderr, "%s%zu of %zu of the best points verified on simgrid%s", progress->terminal ? "\r\033[K" : "",
                state->verify.done, state->verify.chosen, progress->terminal ? "" : "\n");
    if (due)
        progress->said = time;
    if (!due || state->done == state->points)
        return;
    progress->said_done = state->done;
    if (tokens || state->best.samples > 0)
        snprintf(best, sizeof best, ", best %.4g %s", tokens ? state->best.tokens : state->best.samples,
                 tokens ? "tokens/s" : "samples/s");
    fprintf(stderr, "%s%zu of %zu points, %.3g/s%s, %s left%s", progress->terminal ? "\r\033[K" : "", state->done,
            state->points, rate, best,
            rate > 0 ? unit_format_short(UNIT_TIME, seconds, left, sizeof left) : "unknown time",
            progress->terminal ? "" : "\n");
    fflush(stderr);
}

static int slurm_number(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

/* The tasks that srun started of this program, which divide the shard among them, and which of them this is. What mpirun started
 * divides points itself. */
static int step_tasks(int *task)
{
    int tasks = ranks_there() ? 1 : slurm_number("SLURM_STEP_NUM_TASKS", 1);

    *task = tasks > 1 ? slurm_number("SLURM_PROCID", 0) : 0;
    return tasks > 1 ? tasks : 1;
}

/* The shard of a task of a job array of Slurm, or of its step; shard 0: its folder has to say it (store/claim.h), as the ids of the
 * array are not all of a step. */
static void shard_of_slurm(struct sweep_options *sweep)
{
    int id = slurm_number("SLURM_ARRAY_TASK_ID", -1), count = slurm_number("SLURM_ARRAY_TASK_COUNT", 0);
    int least = slurm_number("SLURM_ARRAY_TASK_MIN", 0), most = slurm_number("SLURM_ARRAY_TASK_MAX", least + count - 1);
    int by = slurm_number("SLURM_ARRAY_TASK_STEP", 1), task, tasks = step_tasks(&task);

    if (id >= 0 && count > 0) {
        sweep->shard = by > 0 && (most - least) / by + 1 == count && (id - least) % by == 0 ? (id - least) / by + 1 : 0;
        sweep->shards = count;
    }
    sweep->shard = sweep->shard ? (sweep->shard - 1) * tasks + task + 1 : 0;
    sweep->shards *= tasks;
}

static int claim_shard(struct sweep_options *sweep, struct error *err)
{
    const char *job = getenv("SLURM_ARRAY_JOB_ID"), *id = getenv("SLURM_ARRAY_TASK_ID");
    int task, tasks = step_tasks(&task);

    if (sweep->shard)
        return 0;
    if (shard_claim(sweep->folder, job ? job : "", id ? id : "", sweep->shards / tasks, &sweep->shard, err))
        return -1;
    sweep->shard = (sweep->shard - 1) * tasks + task + 1;
    return 0;
}

/* "3/8" or what Slurm's variables say; left out: the only one. */
static int shard_parse(const struct command *command, const char *text, struct sweep_options *sweep)
{
    int end = 0;

    sweep->shard = sweep->shards = 1;
    if (!text)
        shard_of_slurm(sweep);
    else if (sscanf(text, "%d/%d%n", &sweep->shard, &sweep->shards, &end) != 2 || text[end])
        return usage_error(command, "--shard: expected I/N such as 1/4, found '%s'", text);
    if (sweep->shard >= !!text && sweep->shard <= sweep->shards)
        return ARGS_DONE;
    return usage_error(command, "--shard: there is no shard %d of %d; they are numbered from 1", sweep->shard,
                       sweep->shards);
}

static int options_parse(const struct arguments *arguments, struct sweep_options *sweep)
{
    const char *const *values = arguments->values;

    *sweep = (struct sweep_options){
        .folder = values[OPT_OUT], .engine = values[OPT_ENGINE], .retry_failed = values[OPT_RETRY],
        .force = values[OPT_FORCE], .fail_fast = values[OPT_FAIL_FAST], .ranks = !values[OPT_SHARD],
        .bytes = arguments->budget.bytes, .jobs = (size_t)arguments->numbers[OPT_JOBS],
        .timeout = arguments->numbers[OPT_TIMEOUT], .verify = (size_t)arguments->numbers[OPT_VERIFY],
    };
    if (arguments->budget.seconds > 0)
        return usage_error(arguments->command, "--budget: expected memory such as '4 GiB'; --timeout limits the time of a point");
    return shard_parse(arguments->command, values[OPT_SHARD], sweep);
}

static int dry_run(const struct sweep *sweep, const struct selection *selection, const struct sweep_options *options,
                   struct error *err)
{
    sweep_plan_print(&sweep->points, selection);
    fflush(stdout);
    sweep_estimate_print(sweep, selection, options, err);
    return EXIT_OK;
}

/* How many of the best points have been verified, and which engine will verify them. */
static void print_verified(const struct sweep_options *options, const struct sweep_state *state)
{
    size_t before = state->verify.best - state->verify.chosen, now_done = state->verify.done - state->verify.failed;

    if (options->verify && options->shards > 1)
        fputs("; the same command without a shard verifies the best of all", stderr);
    if (state->verify.best)
        fprintf(stderr, "; of the %zu best %zu verified on simgrid", state->verify.best, now_done);
    if (state->verify.best && before)
        fprintf(stderr, ", %zu ran on it before", before);
    if (state->verify.failed)
        fprintf(stderr, ", %zu could not be: %s", state->verify.failed, state->verify.why);
}

/* Runs the points; what they gave goes to stdout, how they ended to stderr. */
static int run(const struct sweep *sweep, const struct selection *selection, struct sweep_options *options,
               struct error *err)
{
    struct progress_shown progress = {.terminal = isatty(STDERR_FILENO), .begun = pool_now()};
    struct sweep_state state = {0};
    struct arena arena = {0};
    int rc;

    progress.said = progress.begun;
    if (!options->verify)
        options->verify = (size_t)sweep->verify;
    if (!options->folder)
        options->folder = arena_printf(&arena, "%s.sweep", sweep->stem);
    rc = claim_shard(options, err) ? -1 : sweep_run(sweep, selection, options, show_progress, &progress, &state, err);
    if (progress.terminal)
        fputs("\r\033[K", stderr);
    if (!rc && !state.serves) {
        if (state.done > 0)
            rc = results_summary(options->folder, (size_t)sweep->report.top, err);
        fflush(stdout);
        text_write(TEXT_LINE, options->folder, stderr);
        fprintf(stderr, ": %zu of %zu points done", state.done, state.points);
        for (int status = OUTCOME_OK; status < OUTCOME_COUNT; status++)
            if (state.rows[status])
                fprintf(stderr, ", %zu %s", state.rows[status], outcome_names[status]);
        if (state.before)
            fprintf(stderr, "; %zu of them were there before", state.before);
        if (state.alike)
            fprintf(stderr, "; %zu are the same scenario as another point", state.alike);
        print_verified(options, &state);
        fputs(state.interrupted ? "; interrupted: the same command goes on\n" : "\n", stderr);
    }
    arena_release(&arena);
    if (rc || state.interrupted)
        return rc ? rc : EXIT_INTERRUPTED;
    return state.failed || state.verify.failed ? EXIT_SOME_FAILED : EXIT_OK;
}

static int sweep_main(const struct arguments *arguments)
{
    struct sweep_options options;
    struct selection selection = {0};
    struct sweep sweep = {0};
    struct error err = {0};
    struct arena arena = {0};
    int code = options_parse(arguments, &options), ended = EXIT_OK, rc;

    if (code != ARGS_DONE)
        return code;
    rc = sweep_load(arguments->positional[0], arguments->sets, arguments->nsets, NULL, &sweep, &err) ||
         points_select(&sweep.points, (size_t)arguments->numbers[OPT_MAX], &selection, &err) ? -1 : 0;
    if (!rc)
        rc = anchors_load(&arena, arguments->values[OPT_ANCHOR], options.jobs, &options.anchors, &err);
    if (!rc)
        ended = arguments->values[OPT_DRY_RUN] ? dry_run(&sweep, &selection, &options, &err)
                                              : run(&sweep, &selection, &options, &err);
    selection_release(&selection);
    code = report(&err);
    sweep_release(&sweep);
    arena_release(&arena);
    return code ? code : ended;
}

static const struct option options[] = {
    [OPT_OUT] = {"-o", "DIR", .help = "where rows are kept (JSON Lines); left out: NAME.sweep, after the file"},
    [OPT_JOBS] = JOBS_OPTION("points simulated at once; left out: one a processor; under mpirun (Open MPI), unless --shard is given: one less "
        "than its processes, of which the first writes"),
    [OPT_DRY_RUN] = {"--dry-run", .help = "print how many points there are, the first ones and an estimate of time"},
    [OPT_SHARD] = {"--shard", "I/N",
        .help = "every N-th point from the I-th on (from 1), for N machines with one DIR; left out: as Slurm's variables say, of a "
        "job array (also --array=2,5,9: the tasks then take shards 1, 2 and 3) and of what srun -n starts"},
    [OPT_ENGINE] = ENGINE_OPTION("simgrid, fast or ideal, whatever the scenarios say (if they say nothing: fast)"),
    [OPT_TIMEOUT] = {"--timeout", "T",
        .help = "end a point after this time ('90 s', or 90); its row says how far it came; left out: never",
        OPTION_TIME, 1, .bare = true},
    [OPT_MAX] = {"--max", "N", .help = "refuse more points than this", OPTION_COUNT, 1, 1000000000, .usual = "100000"},
    [OPT_VERIFY] = {"--verify", "K",
        .help = "simulate the best K points by the first objective on simgrid too, with all points that cannot be told apart from "
        "them, for verified_iteration_time_s", OPTION_COUNT, 1, 1000000},
    [OPT_RETRY] = {"--retry-failed", .help = "run points again that ended with an error, a crash or the timeout"},
    [OPT_FORCE] = {"--force", .help = "run all points again"},
    [OPT_FAIL_FAST] = {"--fail-fast", .help = "stop at the first such failure"},
    [OPT_ANCHOR] = {"--anchor", "MINE.yaml|SCENARIO.yaml=TIME",
        .help = "correct the times of all points by your own measured runs of their software, GPU and model, as 'dtsim run' does; "
        "the row of a point that none is like says why. Rows with other anchors are other rows: give each its own DIR"},
    SET_OPTION("PATH=V1,V2,...", "a further path with its values, or others for a path of the grid"),
    {"--budget", "MEMORY", .help = "end a point before its process needs more ('4 GiB'), as --timeout does", OPTION_BUDGET},
    {"SWEEP",
        .help = "a file with 'base' and 'sweep' (dtsim help sweep-file), or - for standard input; a scenario is a sweep of one point"},
};

const struct command cmd_sweep = {
    .name = "sweep",
    .arguments = "SWEEP|SCENARIO",
    .least = 1, .most = 1,
    .brief = "Simulates many scenarios in worker processes and keeps a row of each.",
    .examples = "  dtsim sweep sweep.yaml --dry-run\n"
                "  dtsim sweep sweep.yaml -o llama.sweep -j 8\n"
                "  dtsim sweep scenario.yaml --set strategy.tensor=1,2,4,8 --set 'strategy.pipeline={pow2: [1, 16]}'\n"
                "  dtsim sweep sweep.yaml -o llama.sweep --shard 3/16\n"
                "  mpirun -n 64 dtsim sweep sweep.yaml -o llama.sweep       # or srun -n 64: a shard each\n",
    .options = options, .noptions = COUNT(options),
    .more = "A point that has a row already is skipped: the same command goes on after an interruption, and after a change "
            "of the sweep it runs the new points. Ctrl-C waits for running points, a second one kills them. Points that are "
            "impossible (memory, degrees that do not divide, values that exclude each other) get a row 'infeasible' with "
            "the rule that forbids them. The exit code is 3 if a point ended with an error, a crash or the timeout.\n",
    .main = sweep_main,
};
