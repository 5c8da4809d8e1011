/* A run for people: what ran, how fast, where the time goes, and on what the numbers rest. */
#include "cli/cluster_line.h"
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "evidence/evidence.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "hardware/precision.h"
#include "layout/layout.h"
#include "model/model.h"
#include "model/pattern.h"
#include "report/caveats.h"
#include "report/result.h"
#include "run/account.h"
#include "run/certainty.h"
#include "scenario/scenario.h"

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
        part(m, what == WHAT_UPDATE ? "optimizer step" : op_what_names[what],
             m->seconds[account_of((enum op_what)what)], false, out);
    part(m, "exposed communication", m->exposed_communication, true, out);
    for (int kind = ACCOUNT_COMMUNICATION_FIRST; kind <= ACCOUNT_COMMUNICATION_LAST; kind++) {
        char name[32];

        snprintf(name, sizeof name, "  %s", account_names[kind] + strlen("exposed_"));
        part(m, name, m->seconds[kind], false, out);
    }
    part(m, "exposed offload", m->seconds[ACCOUNT_EXPOSED_OFFLOAD], false, out);
    part(m, "bubble", m->seconds[ACCOUNT_BUBBLE], true, out);
    part(m, "  of which imbalance", m->imbalance, false, out);
    part(m, "  of which reading samples", m->reading, false, out);
    part(m, "  of which slow replicas", m->replica_wait, false, out);
    part(m, "of all, jitter adds", m->jitter, false, out);
}

/* "attention 12 % (measured 9 %, at other sizes 3 %)": shares of the compute time. Returns their seconds. */
static double print_bases(int kind, const double *seconds, double compute, FILE *out)
{
    static const char *const kinds[] = {
        [KERNEL_MATMUL] = "GEMMs",
        [KERNEL_GROUPED] = "grouped GEMMs",
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

/* What the compute of a kind of GPU rests on. Returns whether that is a profile. */
static bool print_source(const struct scenario *scenario, int kind, FILE *out)
{
    const struct kernel_costs *costs = &scenario->kernels[kind];

    if (costs->model.source == COST_ROOFLINE) {
        fputs("roofline of ", out);
        text_write(TEXT_LINE, cluster_sheet(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind))->title, out);
        fputs(" (data sheet and achievable shares, no measured kernels)", out);
        return false;
    }
    fputs("profile ", out);
    text_write(TEXT_LINE, costs->model.profile->name, out);
    fputs(", fitted to kernels of ", out);
    text_write(TEXT_LINE, costs->model.profile->gpu, out);
    return true;
}

/* What the compute rests on. */
static void print_costs(const struct run *run, FILE *out)
{
    const struct scenario *scenario = run->workload->scenario;
    const struct metrics *m = &run->metrics;
    double compute = m->utilization * m->iteration_time, launches = compute;
    const char *before = "compute costs: ";
    bool profile = false;

    if (model_is_timed(&scenario->model))
        return;
    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        if (!layout_kind_seats(&scenario->layout, kind))
            continue;
        fputs(before, out);
        profile |= print_source(scenario, kind, out);
        before = "; ";
    }
    fputs(profile ? "; of the compute time\n" : "\n", out);
    if (!profile)
        return;
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        launches -= print_bases(kind, m->bases.seconds[kind], compute, out);
    if (launches > 0.005 * compute)
        fprintf(out, "  %-24s %.0f %%\n", "waits for launches", 100 * launches / compute);
}

static void print_model(const struct model *model, FILE *out)
{
    double parameters = model_parameters(model);
    struct arena arena = {0};
    char text[48];

    fprintf(out, "  %-24s ", "model");
    text_write(TEXT_LINE, model->title ? model->title : model->transformer ? transformer_kind(&arena, model->transformer) :
               model->stages.count ? "stages with given times" : "given layers", out);
    arena_release(&arena);
    if (parameters > 0)
        fprintf(out, ", %s parameters", unit_format_short(UNIT_COUNT, parameters, text, sizeof text));
    if (model->transformer)
        fprintf(out, ", %d tokens a sample", model->sequence);
    fputc('\n', out);
}

/* Where ranks need not wait for each other at the end of an iteration, only the bubble between a rank's first and last
 * work counts. */
static void print_span_bubble(const struct scenario *scenario, const struct metrics *m, FILE *out)
{
    if (scenario_schedule(scenario)->own_spans && !isnan(m->span_utilization))
        fprintf(out, "    %-22s %.2f %% (from a rank's first work to its last, as the schedule's paper counts it)\n",
                "in ranks' own spans", 100 * (1 - m->span_utilization) + 0.0);
}

/* How far off the peak may be, as PyTorch or the driver measures it, and so whether it fits. */
static void print_peak(const struct scenario *scenario, const struct metrics *m, FILE *out)
{
    int rank = m->peak_rank % scenario->plan.stages;
    struct arena arena = {0};
    const char *names = scenario_gpu_names(&arena, scenario, rank), *before = "";
    char room[48];

    line(out, "peak memory of a GPU", UNIT_BYTES, m->peak_memory);
    if (scenario->layout.mixed && names)
        fprintf(out, "  %-24s of the fullest GPU, on pipeline rank %d (%s)\n", "", rank, names);
    arena_release(&arena);
    if (isnan(m->peaks[0].within))
        return;
    fprintf(out, "  %-24s ", "error of the peak");
    for (enum peak_kind kind = 0; kind < PEAK_KIND_COUNT; kind++) {
        if (!isnan(m->peaks[kind].within))
            fprintf(out, "%s%s 60 %%: within %.0f %%, 90 %%: within %.0f %%", before, peak_kind_names[kind],
                    100 * m->peaks[kind].within, 100 * m->peaks[kind].most);
        before = "; ";
    }
    fputs(m->peaks[0].alike ? "\n" : "; no published peak is alike\n", out);
    if (!isnan(m->fits))
        fprintf(out, "  %-24s with a probability of %s%.0f %%, in %s\n", "fits", m->fits > 0.995 ? "more than " : "",
                m->fits > 0.995 ? 99 : 100 * m->fits,
                unit_format_short(UNIT_BYTES, m->peak_room, room, sizeof room));
}

/* What was simulated for all that is like it. */
static void print_alike(const struct run *run, FILE *out)
{
    const struct alike *alike = &run->lowered.alike;
    bool folded = alike->folded, shorter = alike->micro_batches < run->workload->scenario->plan.micro_batches;

    if (folded || shorter)
        fprintf(out, ", %s%s", folded ? "one replica" : "", folded && shorter ? " and " : "");
    if (shorter)
        fprintf(out, "%d micro-batches", alike->micro_batches);
    fputs(folded || shorter ? " simulated for all\n" : "\n", out);
}

/* "3 alike: all times x 1.124 (10.9 s before); compute x 1.1, ...", and the error that is left. */
static void print_anchored(const struct metrics *m, FILE *out)
{
    static const char *const classes[] = {
        [ANCHOR_COMPUTE] = "compute", [ANCHOR_COMMUNICATION] = "exposed communication", [ANCHOR_HOST] = "host",
    };
    char text[48];

    fprintf(out, "  %-24s %.0f like this: all times x %.3f (simulated: %s)", "anchors", m->anchored.used, m->anchored.factor,
            unit_format_short(UNIT_TIME, m->anchored.time, text, sizeof text));
    for (int class = 0; class < ANCHOR_CLASSES && !isnan(m->anchored.classes[class]); class++)
        fprintf(out, "%s%s alone x %.3f", class ? ", " : "; ", classes[class], m->anchored.classes[class]);
    if (isnan(m->expected_error))
        fprintf(out, "\n  %-24s of the corrected time none is known: there are fewer than three anchors\n", "expected error");
    else
        fprintf(out, "\n  %-24s 60 %%: within %.0f %%, 90 %%: within %.0f %% (%s)\n", "expected error",
                100 * m->expected_error, 200 * m->expected_error,
                m->anchored.used < 2 ? "published times, corrected by another of their table" :
                "anchors corrected by the others, and published times");
}

/* Or why none is known. */
static void print_expected_error(const struct run *run, FILE *out)
{
    const struct metrics *m = &run->metrics;
    struct arena arena = {0};
    const struct scenario *scenario = run->workload->scenario;
    const char *unlike = certainty_unlike(&arena, scenario, m);
    const char *sheets = certainty_sheets(&arena, scenario, m), *links = certainty_links(&arena, scenario);
    const char *model = certainty_model(&arena, scenario, m);
    char within[32], most[32];

    if (unlike) {
        fprintf(out, "  %-24s ", "expected error");
        text_write(TEXT_LINE, unlike, out);
        fputc('\n', out);
    } else if (!isnan(m->expected_error))
        fprintf(out, "  %-24s 60 %%: within %.0f %%, 90 %%: within %.0f %% (published times of %s); %.0f of 10 are longer\n",
                "expected error", 100 * m->expected_error, 200 * m->expected_error,
                m->expected_alike > 0 ? "similar work" : "other work, when first predicted", 10 * m->expected_longer);
    if (!unlike && sheets) {
        fprintf(out, "  %-24s ", "");
        text_write(TEXT_LINE, sheets, out);
        fputs("; the error is the one that times from data sheets had\n", out);
    }
    if (!unlike && links) {
        fprintf(out, "  %-24s ", "");
        text_write(TEXT_LINE, links, out);
        fputs("; exposed communication makes the error larger\n", out);
    }
    if (!unlike && model)
        fprintf(out, "  %-24s %s; it makes the error larger\n", "", model);
    if (!unlike && m->expected_alike == 0) {
        fprintf(out, "  %-24s no published run is alike; ", "");
        text_write(TEXT_LINE, certainty_nearest(&arena, scenario, m), out);
        fputc('\n', out);
    }
    if (!isnan(m->expected_ratio))
        fprintf(out, "  %-24s 60 %%: within %s, 90 %%: within %s, of another run of this software, model and GPU "
                "over this one\n", "error of a ratio", percent_text(m->expected_ratio, within, sizeof within),
                percent_text(m->expected_ratio_most, most, sizeof most));
    arena_release(&arena);
}

static void print_setup(const struct scenario *scenario, FILE *out)
{
    struct arena arena = {0};
    const char *setup = setup_text(&arena, scenario);

    if (*setup)
        fprintf(out, "  %-24s %s\n", "setup", setup);
    arena_release(&arena);
}

/* MFU and HFU, and the peak that they are shares of. */
static void print_shares_of_peak(const struct scenario *scenario, const struct metrics *m, FILE *out)
{
    enum dtype dtype = precision_products(&scenario->memory.precision);
    char text[48];

    if (isnan(m->mfu))
        return;
    fprintf(out, "  %-24s %.2f %% of the %sGPU's %s in %s\n", "MFU", 100 * m->mfu,
            scenario->layout.mixed ? "mean " : "",
            unit_format_short(UNIT_FLOP_RATE, scenario_mean_peak(scenario, dtype), text, sizeof text), dtype_names[dtype]);
    percent(out, "HFU", m->hfu);
}

void run_print(const struct run *run, FILE *out)
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
    print_setup(scenario, out);
    print_model(&scenario->model, out);
    cluster_line_print(scenario, out);
    if (scenario->software.names.title) {
        fprintf(out, "  %-24s ", "software");
        text_write(TEXT_LINE, scenario->software.names.title, out);
        fprintf(out, "%s\n", scenario->software.assumed ? " (assumed)" : "");
    }
    if (scenario->simulation.jitter > 0)
        fprintf(out, "  %-24s %.4g %% of the time of each work, seed %lld\n", "jitter",
                100 * scenario->simulation.jitter, run->seed);
    line(out, "iteration time", UNIT_TIME, m->iteration_time);
    if (!isnan(m->anchored.factor))
        print_anchored(m, out);
    else
        print_expected_error(run, out);
    if (scenario->simulation.repeat > 1 && scenario->simulation.jitter > 0)
        fprintf(out, "  %-24s %s to %s from 10 to 90 %% of %d runs; this is the median one\n", "distribution",
                unit_format_short(UNIT_TIME, m->iteration_time_p10, text[0], sizeof text[0]),
                unit_format_short(UNIT_TIME, m->iteration_time_p90, text[1], sizeof text[1]),
                scenario->simulation.repeat);
    if (m->window.steady)
        fprintf(out, "  %-24s %d optimizer steps from %s on, of %s in all\n", "steady state over", m->window.updates,
                unit_format_short(UNIT_TIME, m->window.from, text[0], sizeof text[0]),
                unit_format_short(UNIT_TIME, m->makespan, text[1], sizeof text[1]));
    else if (scenario->parallelism.local_steps > 1)
        fprintf(out, "  mean of %d local steps and one average of the weights\n",
                scenario->parallelism.local_steps);
    else if (scenario_schedule(scenario)->asynchronous)
        fputs("  no steady state in so few micro-batches: means over all, fill and drain included\n", out);
    rate(out, "samples/s", m->samples_per_s);
    rate(out, "tokens/s", m->tokens_per_s);
    rate(out, "tokens/s per GPU", m->tokens_per_s_per_gpu);
    line(out, "model FLOP/s per GPU", UNIT_FLOP_RATE, m->model_flops_per_gpu);
    line(out, "hardware FLOP/s per GPU", UNIT_FLOP_RATE, m->hardware_flops_per_gpu);
    print_shares_of_peak(scenario, m, out);
    percent(out, "bubble", m->bubble_fraction);
    print_span_bubble(scenario, m, out);
    percent(out, "utilization", m->utilization);
    line(out, "sent by a GPU", UNIT_BYTES, m->communication_bytes_per_gpu);
    print_peak(scenario, m, out);
    print_breakdown(m, out);
    print_costs(run, out);
    caveats_print(scenario, m, out);
}
