#include <math.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cli/cmd.h"
#include "report/figure.h"
#include "run/memory_advice.h"
#include "report/caveats.h"

enum { OPT_OUT, OPT_ENGINE, OPT_JSON, OPT_VERIFY, OPT_NO_ADVICE, OPT_BUDGET };
static const char *const run_options[] = {
    [OPT_OUT] = "-o=", [OPT_ENGINE] = "--engine=", [OPT_JSON] = "--json", [OPT_VERIFY] = "--verify",
    [OPT_NO_ADVICE] = "--no-advice", [OPT_BUDGET] = BUDGET_OPTION,
};

static void line(FILE *out, const char *what, enum unit unit, double value)
{
    char text[48];

    if (isnan(value))
        return;
    fprintf(out, "  %-24s %s\n", what, unit_format_short(unit, value, text, sizeof text));
}

static void rate(FILE *out, const char *what, double value)
{
    if (!isnan(value))
        fprintf(out, value < 9999.5 ? "  %-24s %.4g\n" : "  %-24s %.0f\n", what, value);
}

static void percent(FILE *out, const char *what, double value)
{
    if (!isnan(value))
        fprintf(out, "  %-24s %.2f %%\n", what, 100 * value);
}

/* A row of the table of times, which has one unit; `always`: though it is zero. */
static void part(const struct metrics *m, const char *name, double seconds, bool always, FILE *out)
{
    char text[48];

    if (always ? !isnan(seconds) : seconds != 0 && !isnan(seconds))
        fprintf(out, "  %-24s %s\n", name,
                unit_format_like(UNIT_TIME, m->iteration_time, seconds, text, sizeof text));
}

static void print_breakdown(const struct metrics *m, FILE *out)
{
    fputs("where the average rank's time goes\n", out);
    for (int what = 0; what <= WHAT_UPDATE; what++)
        part(m, op_what_names[what], m->seconds[account_of((enum op_what)what)], false, out);
    part(m, "exposed communication", m->exposed_communication, true, out);
    for (int kind = ACCOUNT_COMMUNICATION_FIRST; kind <= ACCOUNT_COMMUNICATION_LAST; kind++) {
        char name[32];

        snprintf(name, sizeof name, "  %s", account_names[kind] + strlen("exposed_"));
        part(m, name, m->seconds[kind], false, out);
    }
    part(m, "exposed offload", m->seconds[ACCOUNT_EXPOSED_OFFLOAD], false, out);
    part(m, "bubble", m->seconds[ACCOUNT_BUBBLE], true, out);
    part(m, "  of which imbalance", m->imbalance, false, out);
    part(m, "of all, jitter adds", m->jitter, false, out);
}

/* "attention 12 % (measured 9 %, at other sizes 3 %)": shares of the compute time. Returns their seconds. */
static double print_bases(int kind, const double *seconds, double compute, FILE *out)
{
    static const char *const kinds[] = {
        [KERNEL_MATMUL] = "products",
        [KERNEL_GROUPED] = "grouped products",
        [KERNEL_ATTENTION] = "attention",
        [KERNEL_MEMORY] = "memory-bound kernels",
    };
    static const char *const bases[] = {
        [BASIS_MEASURED] = "measured", [BASIS_SIZES] = "at other sizes",
        [BASIS_LAYOUT] = "in another layout or format", [BASIS_KERNELS] = "scaled from other kernels",
        [BASIS_GPU] = "scaled to the changed GPU",
        [BASIS_DATA_SHEET] = "data sheet",
    };
    const char *before = " (";
    double sum = 0;

    for (int basis = 0; basis < BASIS_COUNT; basis++)
        sum += seconds[basis];
    if (sum == 0)
        return 0;
    fprintf(out, "  %-24s %.0f %%", kinds[kind], 100 * sum / compute);
    for (int basis = 0; basis < BASIS_COUNT; basis++) {
        if (seconds[basis] == 0)
            continue;
        fprintf(out, "%s%s %.0f %%", before, bases[basis], 100 * seconds[basis] / compute);
        before = ", ";
    }
    fputs(")\n", out);
    return sum;
}

/* What the compute rests on. */
static void print_costs(const struct run *run, FILE *out)
{
    const struct scenario *scenario = run->workload->scenario;
    const struct metrics *m = &run->metrics;
    double compute = m->utilization * m->iteration_time, launches = compute;

    if (model_is_timed(&scenario->model))
        return;
    if (scenario->costs.gpu == COST_ROOFLINE) {
        fprintf(out, "compute costs: roofline of %s (data sheet and achievable shares, no measured kernels)\n",
                scenario->cluster.gpu.title);
        return;
    }
    fprintf(out, "compute costs: profile %s, fitted to kernels of %s; of the compute time\n",
            scenario->costs.loaded->name, scenario->costs.loaded->gpu);
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        launches -= print_bases(kind, m->bases.seconds[kind], compute, out);
    if (launches > 0.005 * compute)
        fprintf(out, "  %-24s %.0f %%\n", "waits for launches", 100 * launches / compute);
}

static void print_model(const struct model *model, FILE *out)
{
    double parameters = model_parameters(model);
    char text[48];

    fprintf(out, "  %-24s ", "model");
    text_write(TEXT_LINE, model->title ? model->title : model->transformer ? "a transformer" :
               model->stages.count ? "stages with given times" : "given layers", out);
    if (parameters > 0)
        fprintf(out, ", %s parameters", unit_format_short(UNIT_COUNT, parameters, text, sizeof text));
    if (model->transformer)
        fprintf(out, ", %d tokens a sample", model->sequence);
    fputc('\n', out);
}

/* "4 nodes of 8 NVIDIA H100-SXM5-80GB; NVIDIA DGX H100". */
static void print_cluster(const struct scenario *scenario, FILE *out)
{
    const struct cluster *cluster = &scenario->cluster;
    int taken = scenario->gpus_taken;
    struct arena arena = {0};
    const char *changes = cluster->gpu_spec ? gpu_changes(&arena, cluster->gpu_spec) : "";

    fprintf(out, "  %-24s ", "cluster");
    if (cluster->ideal)
        fputs(cluster->gpu_name ? "GPUs on a network that takes no time, each " : "a network that takes no time", out);
    else
        fprintf(out, "%d node%s of %d ", cluster->nodes, cluster->nodes == 1 ? "" : "s", cluster->gpus_per_node);
    if (cluster->gpu_name)
        text_write(TEXT_LINE, cluster->gpu.title, out);
    else if (!cluster->ideal)
        fputs(cluster->gpus_per_node == 1 ? "GPU" : "GPUs", out);
    if (*changes)
        fprintf(out, " with %s", changes);
    if (!cluster->ideal && taken < cluster->gpus_per_node && scenario_gpus(scenario) > taken)
        fprintf(out, ", %d of each used", taken);
    if (cluster->title) {
        fputs("; ", out);
        text_write(TEXT_LINE, cluster->title, out);
    }
    fputc('\n', out);
    arena_release(&arena);
}

/* Where ranks need not wait for each other at the end of an iteration, only the bubble between a rank's first and last
 * work counts. */
static void print_span_bubble(const struct scenario *scenario, const struct metrics *m, FILE *out)
{
    if (scenario_schedule(scenario)->own_spans && !isnan(m->span_utilization))
        fprintf(out, "    %-22s %.2f %% (from a rank's first work to its last, as the schedule's paper counts it)\n",
                "in ranks' own spans", 100 * (1 - m->span_utilization) + 0.0);
}

/* What was simulated for all that is like it. */
static void print_alike(const struct run *run, FILE *out)
{
    bool folded = run->lowered.folded, shorter = run->micro_batches < run->workload->scenario->plan.micro_batches;

    if (folded || shorter)
        fprintf(out, ", %s%s", folded ? "one replica" : "", folded && shorter ? " and " : "");
    if (shorter)
        fprintf(out, "%d micro-batches", run->micro_batches);
    fputs(folded || shorter ? " simulated for all\n" : "\n", out);
}

/* Or why none is known. */
static void print_expected_error(const struct run *run, FILE *out)
{
    const struct metrics *m = &run->metrics;
    struct arena arena = {0};
    const struct scenario *scenario = run->workload->scenario;
    const char *unlike = certainty_unlike(&arena, scenario, m);
    struct expectation expectation = certainty_expect(scenario, m);

    if (unlike)
        fprintf(out, "  %-24s %s\n", "expected error", unlike);
    else if (!isnan(m->expected_error))
        fprintf(out, "  %-24s %.0f %%: 6 of 10 published times of %s are nearer, 9 of 10 within %.0f %%; %.0f of 10 are "
                "longer\n", "expected error", 100 * m->expected_error,
                expectation.alike > 0 ? "similar work" : "other work, when first predicted,", 200 * m->expected_error,
                10 * m->expected_longer);
    if (!unlike && expectation.alike == 0)
        fprintf(out, "  %-24s no published run is alike; %s\n", "", certainty_nearest(&arena, scenario, m));
    arena_release(&arena);
}

static void print_run(const struct run *run, FILE *out)
{
    const struct metrics *m = &run->metrics;
    const struct scenario *scenario = run->workload->scenario;
    char text[2][48], degrees[128];
    int micro_batches = scenario->plan.micro_batches;

    text_write(TEXT_LINE, scenario->name, out);
    fprintf(out, ": %s, %s = %d GPU%s, %d micro-batch%s a replica, engine %s",
            scenario_schedule(scenario)->name, scenario_degrees(scenario, degrees, sizeof degrees),
            scenario_gpus(scenario), scenario_gpus(scenario) == 1 ? "" : "s", micro_batches,
            micro_batches == 1 ? "" : "es", engine_names[scenario->simulation.engine]);
    print_alike(run, out);
    print_model(&scenario->model, out);
    print_cluster(scenario, out);
    if (scenario->software.names.title) {
        fprintf(out, "  %-24s ", "software");
        text_write(TEXT_LINE, scenario->software.names.title, out);
        fprintf(out, "%s\n", scenario->software.assumed ? " (assumed)" : "");
    }
    if (scenario->simulation.jitter > 0)
        fprintf(out, "  %-24s %.4g %% of the time of each work, seed %lld\n", "jitter",
                100 * scenario->simulation.jitter, run->seed);
    line(out, "iteration time", UNIT_TIME, m->iteration_time);
    print_expected_error(run, out);
    if (scenario->simulation.repeat > 1 && scenario->simulation.jitter > 0)
        fprintf(out, "  %-24s %s to %s from 10 to 90 %% of %d runs; this is the median one\n", "distribution",
                unit_format_short(UNIT_TIME, m->iteration_time_p10, text[0], sizeof text[0]),
                unit_format_short(UNIT_TIME, m->iteration_time_p90, text[1], sizeof text[1]),
                scenario->simulation.repeat);
    if (m->window.steady)
        fprintf(out, "  %-24s %d updates from %s on, of %s in all\n", "steady state over", m->window.updates,
                unit_format_short(UNIT_TIME, m->window.from, text[0], sizeof text[0]),
                unit_format_short(UNIT_TIME, m->makespan, text[1], sizeof text[1]));
    else if (scenario->parallelism.local_steps > 1)
        fprintf(out, "  mean of %d local steps and one average of the weights\n",
                scenario->parallelism.local_steps);
    else if (scenario_schedule(scenario)->asynchronous)
        fputs("  no steady state in so few micro-batches: means over all, fill and drain included\n", out);
    rate(out, "samples/s", m->samples_per_s);
    rate(out, "tokens/s", m->tokens_per_s);
    line(out, "model FLOP/s per GPU", UNIT_FLOP_RATE, m->model_flops_per_gpu);
    line(out, "hardware FLOP/s per GPU", UNIT_FLOP_RATE, m->hardware_flops_per_gpu);
    percent(out, "MFU", m->mfu);
    percent(out, "HFU", m->hfu);
    percent(out, "bubble", m->bubble_fraction);
    print_span_bubble(scenario, m, out);
    percent(out, "utilization", m->utilization);
    line(out, "sent by a GPU", UNIT_BYTES, m->communication_bytes_per_gpu);
    line(out, "peak memory of a GPU", UNIT_BYTES, m->peak_memory);
    print_breakdown(m, out);
    print_costs(run, out);
    caveats_print(scenario, out);
}

/* What was simulated, for people or programs, and into the folder, if any. Whether it was printed. */
static bool tell(const struct run *run, bool json, struct folder *folder, struct error *err)
{
    int failed = folder->path && result_write(run, folder, err);

    if (json && !failed) {
        json_t *result = result_json(run);

        json_print(result, stdout);
        json_decref(result);
    } else if (!json) {
        print_run(run, stdout);
    }
    if (folder->path && !failed)
        fprintf(stderr, "wrote %s/result.json and its tables\n", folder->path);
    return !json || !failed;
}

/* On simgrid, or a run on simgrid on fast. */
static void verify(const struct run *run, struct error *err)
{
    enum engine own = (enum engine)run->workload->scenario->simulation.engine;
    enum engine other = own == ENGINE_SIMGRID ? ENGINE_FAST : ENGINE_SIMGRID;
    double difference;

    if (run_verify(run, other, &difference, err))
        return;
    fprintf(stderr, "%zu operations replayed on %s: ", run->lowered.program.ops.count, engine_names[other]);
    if (difference > 0)
        fprintf(stderr, "starts and ends differ by at most %.2g of the iteration time\n", difference);
    else
        fprintf(stderr, "every start and end is the same\n");
}

/* Simulates the scenario and prints the run, also if the budget was spent before all causes were found. Whether it was
 * printed. */
static bool run_scenario(const struct scenario *scenario, const struct arguments *arguments, struct workload *workload,
                         struct run *run, struct folder *folder, struct error *err)
{
    bool no_advice = arguments->values[OPT_NO_ADVICE];
    struct simulate_options options = memory_needs;
    int rc = (no_advice ? workload_init : workload_init_advised)(workload, scenario, err);

    if (!rc && !memory_is_short(workload)) {
        options = simulate_options_of(scenario);
        options.causes = true;
        options.links = folder->path || arguments->values[OPT_JSON];
        options.numbers = !options.links && !arguments->values[OPT_VERIFY];
    }
    options.no_advice = no_advice;
    rc = rc || simulate_advised(workload, options, run, err) ? -1 : 0;
    bool stopped = rc && error_exit_code(err) == EXIT_STOPPED && run->metrics.ranks, told = false;

    progress_end(scenario->progress);
    if (stopped)
        error_add(err, EXIT_STOPPED, (struct loc){0}, "the results are complete but for imbalance and jitter, each of "
                  "which takes another replay");
    if (!rc || stopped)
        told = tell(run, arguments->values[OPT_JSON], folder, err);
    if (!err->count && arguments->values[OPT_VERIFY])
        verify(run, err);
    return told;
}

static int run_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct scenario scenario;
    struct cache cache;
    struct workload workload = {0};
    struct run run = {0};
    struct folder folder = {0};
    struct progress progress;
    enum engine engine;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments), rc;
    bool told = false;

    if (code == ARGS_DONE && arguments.values[OPT_ENGINE])
        code = engine_parse(command, arguments.values[OPT_ENGINE], &engine);
    if (code != ARGS_DONE)
        return code;
    progress_begin(&progress, "--budget", arguments.budget.seconds, arguments.budget.bytes);
    cache_init(&cache, CACHE_BYTES);
    rc = scenario_load(arguments.positional[0], arguments.sets, arguments.nsets, &scenario, &err);
    scenario.arena.cache = &cache;       /* for its variations */
    scenario.progress = &progress;
    if (arguments.values[OPT_ENGINE])
        scenario.simulation.engine = (int)engine;
    /* A folder that cannot be had is better known before a long simulation than after it. */
    if (!rc && (!arguments.values[OPT_OUT] || !folder_open(&folder, arguments.values[OPT_OUT], &err)))
        told = run_scenario(&scenario, &arguments, &workload, &run, &folder, &err);
    folder_release(&folder);
    run_release(&run);
    workload_release(&workload);
    code = report_as(&err, arguments.values[OPT_JSON] && !told);
    scenario_release(&scenario);
    cache_release(&cache);
    return code;
}

const struct command cmd_run = {
    .name = "run",
    .usage = "SCENARIO [-o DIR] [--engine simgrid|fast|ideal] [--verify] [--set PATH=VALUE]... [--json]\n"
             "       [--budget LIMIT]... [--no-advice]",
    .brief = "Simulates one training iteration.",
    .examples = "  dtsim run scenarios/tour/03-gpipe.yaml\n"
                "  dtsim run scenario.yaml -o out --set strategy.pipeline=8 --set batch.micro=2\n"
                "  dtsim run scenario.yaml --json | jq .bubble_fraction\n",
    .options = "  SCENARIO            a file, or - for standard input\n"
               "  -o DIR              write result.json, spans.tsv, memory.tsv, utilization.tsv and links.tsv, all of\n"
               "                      them or none: a run that ends early leaves no half of a result\n"
               "  --engine ENGINE     simgrid or fast (flows share links), or ideal (nothing contends)\n"
               "  --verify            replay on simgrid too (or on fast, if the run is on simgrid), and say by how much\n"
               "                      starts and ends of operations differ at most\n"
               "  --set PATH=VALUE    change the scenario, e.g. --set strategy.tensor=4; may be repeated\n"
               "  --json              print all metrics and the resolved scenario; errors are JSON too\n"
               "  --budget LIMIT      end after this wall time ('30 s') or before this process needs more memory\n"
               "                      ('4 GiB') with exit code 7 and a message of how far it came; may be given twice\n"
               "  --no-advice         where memory is short, do not look for what would make the scenario fit\n"
               "Without -o, --json and --verify, fewer micro-batches of a long pipeline may be simulated. Between its\n"
               "fill and its drain a pipeline repeats itself, so the numbers stay the same but for rounding. The first\n"
               "line says how many micro-batches were simulated.\n",
    .accepts = run_options,
    .naccepts = COUNT(run_options),
    .main = run_main,
};
