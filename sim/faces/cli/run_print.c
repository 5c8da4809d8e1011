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
#include "files/json.h"
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
#include "view/view.h"

/* Facts for sentences alone. */
struct told { const struct run *run; struct arena *arena; const char *unlike; };

static const struct scenario *scenario_of(const struct told *told)
{
    return told->run->workload->scenario;
}

/* Whether the expected error is that of published times as they are. */
static bool is_plain(const struct told *told)
{
    return isnan(told->run->metrics.anchored.factor) && !told->unlike;
}

static const char *model_text(const struct told *told)
{
    const struct model *model = &scenario_of(told)->model;

    return model->title ? model->title : model->transformer ? transformer_kind(told->arena, model->transformer) :
           model->stages.count ? "stages with given times" : "given layers";
}

/* Micro-batches that stand for more. */
static json_t *shorter(const struct told *told)
{
    int simulated = told->run->lowered.alike.micro_batches;

    return simulated < scenario_of(told)->plan.micro_batches ? json_integer(simulated) : json_null();
}

static json_t *said_if(bool is, const char *text)
{
    return json_words_or_null(is ? text : NULL);
}

static const char *degrees_text(const struct told *told)
{
    char text[128];

    return arena_strdup(told->arena, scenario_degrees(scenario_of(told), text, sizeof text));
}

/* How many times as long a class of time would have to take, so that the simulated iteration took the measured time; null: no
 * anchor is this run, or none of it is left. */
static json_t *times_of(const struct told *told, enum anchor_class class)
{
    const struct metrics *metrics = &told->run->metrics;
    double shares[ANCHOR_CLASSES], times;

    certainty_shares(metrics, shares);
    times = 1 + (metrics->anchored.factor - 1) / shares[class];
    return json_finite(metrics->anchored.same == 1 && shares[class] > 0.01 && times > 0 ? times : NAN);
}

#define FACTS(ROW) \
    ROW(name, json_words(scenario_of(it)->name), NULL) \
    ROW(schedule, json_words(scenario_schedule(scenario_of(it))->name), NULL) \
    ROW(degrees, json_words(degrees_text(it)), NULL) \
    ROW(micro_batches, json_integer(scenario_of(it)->plan.micro_batches), NULL) ROW(shorter, shorter(it), NULL) \
    ROW(setup_words, json_words_or_null(setup_text(it->arena, scenario_of(it))), NULL) \
    ROW(model_words, json_words(model_text(it)), NULL) \
    ROW(parameters, json_finite(model_parameters(&scenario_of(it)->model)), NULL) \
    ROW(sequence, scenario_of(it)->model.transformer ? json_integer(scenario_of(it)->model.sequence) : json_null(), NULL) \
    ROW(cluster, json_words(cluster_line(it->arena, scenario_of(it))), NULL) \
    ROW(software_title, json_words_or_null(scenario_of(it)->software.names.title), NULL) \
    ROW(unlike, said_if(isnan(it->run->metrics.anchored.factor), it->unlike), NULL) \
    ROW(plain, json_boolean(is_plain(it)), NULL) \
    ROW(sheets, said_if(is_plain(it), certainty_sheets(it->arena, scenario_of(it), &it->run->metrics)), NULL) \
    ROW(links, said_if(is_plain(it), certainty_links(it->arena, scenario_of(it))), NULL) \
    ROW(unproven, said_if(is_plain(it), certainty_model(it->arena, scenario_of(it), &it->run->metrics)), NULL) \
    ROW(alike, json_finite(it->run->metrics.expected_alike), NULL) \
    ROW(nearest, it->run->metrics.expected_alike == 0 && is_plain(it) ? \
        json_words(certainty_nearest(it->arena, scenario_of(it), &it->run->metrics)) : json_null(), NULL) \
    ROW(anchored, json_boolean(!isnan(it->run->metrics.anchored.factor)), NULL) \
    ROW(compute_times, times_of(it, ANCHOR_COMPUTE), NULL) ROW(communication_times, times_of(it, ANCHOR_COMMUNICATION), NULL) \
    ROW(runs, scenario_of(it)->simulation.jitter > 0 ? json_integer(scenario_of(it)->simulation.repeat) : json_null(), NULL) \
    ROW(local_steps, json_integer(scenario_of(it)->parallelism.local_steps), NULL) \
    ROW(asynchronous, json_boolean(scenario_schedule(scenario_of(it))->asynchronous), NULL) \
    ROW(mixed, json_boolean(scenario_of(it)->layout.mixed), NULL) \
    ROW(peak_flops, json_finite(scenario_mean_peak(scenario_of(it), precision_products(&scenario_of(it)->memory.precision))), NULL) \
    ROW(dtype, json_words(dtype_names[precision_products(&scenario_of(it)->memory.precision)]), NULL) \
    ROW(span_bubble, scenario_schedule(scenario_of(it))->own_spans ? \
        json_finite(1 - it->run->metrics.span_utilization) : json_null(), NULL) \
    ROW(peak_rank, json_integer(it->run->metrics.peak_rank % scenario_of(it)->plan.stages), NULL) \
    ROW(peak_gpus, said_if(scenario_of(it)->layout.mixed, scenario_gpu_names(it->arena, scenario_of(it), \
        it->run->metrics.peak_rank % scenario_of(it)->plan.stages)), NULL) \
    ROW(peaks_alike, json_boolean(it->run->metrics.peaks[0].alike), NULL)
VIEW(facts_view, struct told, it, FACTS)

#define REST "                           "
static const char *const lines[] = {
    "{name}: {schedule}, {degrees} = {gpus GPU}, {micro_batches} micro-batch[?micro_batches!1 es] a replica, engine {engine}"
    "[?folded , one replica[ and {shorter} micro-batches] simulated for all|, {shorter} micro-batches simulated for all]\n",
    "  setup                    {setup_words}\n",
    "  model                    {model_words}[?parameters>0 , {parameters:count} parameters][, {sequence} tokens a sample]\n",
    "  cluster                  {cluster}\n",
    "  software                 {software_title}[?software_assumed  (assumed)]\n",
    "[?jitter>0   jitter                   {jitter*100} % of the time of each work, seed {seed:%.0f}\n]",
    "  iteration time           {iteration_time_s}\n",
    "[?anchor_is_this_run=1   anchors                  this run was measured; simulated: {uncorrected_iteration_time_s}"
    "[, as if compute took {compute_times:%.2f} times as long[, or exposed communication {communication_times:%.2f} times]]\n]",
    "[?anchor_is_this_run=0   anchors                  {anchors:%.0f} like this: all times x {anchor_factor:%.3f} (simulated: "
    "{uncorrected_iteration_time_s})[; compute alone x {anchor_factor_compute:%.3f}[, exposed communication alone x "
    "{anchor_factor_exposed_communication:%.3f}[, host alone x {anchor_factor_host:%.3f}]]]\n]",
    "[?anchored   expected error           [60 %: within {expected_error_share*100:%.0f} %, 90 %: within "
    "{expected_error_share*200:%.0f} % ([?anchor_is_this_run=1 of another measurement, by published ratios|?anchors<2 published times, corrected by another of their table|anchors corrected by "
    "the others, and published times])|of the corrected time none is known: there are fewer than three anchors]\n]",
    "  expected error           {unlike}\n",
    "[?plain [  expected error           60 %: within {expected_error_share*100:%.0f} %, 90 %: within "
    "{expected_error_share*200:%.0f} % (published times of [?alike>0 similar work|other work, when first predicted]); "
    "{expected_longer_share*10:%.0f} of 10 are longer\n]]",
    REST "{sheets}; the error is the one that times from data sheets had\n",
    REST "{links}; exposed communication makes the error larger\n",
    REST "{unproven}; it makes the error larger\n",
    REST "no published run is alike; {nearest}\n",
    "[?anchored=0 [  error of a ratio         60 %: within {expected_ratio_error_share:share}, 90 %: within "
    "{expected_ratio_error_share_p90:share}, of another run of this software, model and GPU over this one\n]]",
    "[?runs>1   distribution             {iteration_time_s_p10} to {iteration_time_s_p90} from 10 to 90 % of {runs} runs; this is "
    "the median one\n]",
    "[?steady_state   steady state over        {steady_state.updates} optimizer steps from {steady_state.from_s} on, of "
    "{makespan_s} in all\n|?local_steps>1   mean of {local_steps} local steps and one average of the weights\n|?asynchronous "
    "  no steady state in so few micro-batches: means over all, fill and drain included\n]",
    "  samples/s                {samples_per_s}\n",
    "  tokens/s                 {tokens_per_s}\n",
    "  tokens/s per GPU         {tokens_per_s_per_gpu}\n",
    "  model FLOP/s per GPU     {model_tflops_per_gpu*1e12:flops}\n",
    "  hardware FLOP/s per GPU  {hardware_tflops_per_gpu*1e12:flops}\n",
    "  MFU                      {mfu*100:%.2f} % of the [?mixed mean ]GPU's {peak_flops:flops} in {dtype}\n",
    "  HFU                      {hfu*100:%.2f} %\n",
    "  bubble                   {bubble_fraction*100:%.2f} %\n",
    "    in ranks' own spans    {span_bubble*100:%.2f} % (from a rank's first work to its last, as the schedule's paper counts it)\n",
    "  utilization              {utilization*100:%.2f} %\n",
    "  sent by a GPU            {communication_bytes_per_gpu}\n",
    "  peak memory of a GPU     {peak_memory_bytes}\n",
    REST "of the fullest GPU, on pipeline rank {peak_rank} ({peak_gpus})\n",
    "  error of the peak        allocated 60 %: within {expected_peak_allocated_error_share*100:%.0f} %, 90 %: within "
    "{expected_peak_allocated_error_share_p90*100:%.0f} %[; reserved 60 %: within {expected_peak_reserved_error_share*100:%.0f} %, "
    "90 %: within {expected_peak_reserved_error_share_p90*100:%.0f} %][; driver 60 %: within "
    "{expected_peak_memory_error_share*100:%.0f} %, 90 %: within {expected_peak_memory_error_share_p90*100:%.0f} %]"
    "[?peaks_alike |; no published peak is alike]\n",
    "[?fits_probability>-1   fits                     with a probability of [?fits_probability>0.995 more than 99|"
    "{fits_probability*100:%.0f}] %, in {memory_limit_bytes}\n]",
    "where the average rank's time goes\n",
    "[?breakdown_s.forward   forward                  {breakdown_s.forward~iteration_time_s}\n]",
    "[?breakdown_s.backward   backward                 {breakdown_s.backward~iteration_time_s}\n]",
    "[?breakdown_s.backward_input   backward-input           {breakdown_s.backward_input~iteration_time_s}\n]",
    "[?breakdown_s.backward_weight   backward-weight          {breakdown_s.backward_weight~iteration_time_s}\n]",
    "[?breakdown_s.recompute   recompute                {breakdown_s.recompute~iteration_time_s}\n]",
    "[?breakdown_s.pack   pack                     {breakdown_s.pack~iteration_time_s}\n]",
    "[?breakdown_s.update   optimizer step           {breakdown_s.update~iteration_time_s}\n]",
    "  exposed communication    {exposed_communication_s~iteration_time_s}\n",
    "[?breakdown_s.exposed_tensor     tensor                 {breakdown_s.exposed_tensor~iteration_time_s}\n]",
    "[?breakdown_s.exposed_pipeline     pipeline               {breakdown_s.exposed_pipeline~iteration_time_s}\n]",
    "[?breakdown_s.exposed_data     data                   {breakdown_s.exposed_data~iteration_time_s}\n]",
    "[?breakdown_s.exposed_context     context                {breakdown_s.exposed_context~iteration_time_s}\n]",
    "[?breakdown_s.exposed_expert     expert                 {breakdown_s.exposed_expert~iteration_time_s}\n]",
    "[?breakdown_s.exposed_offload   exposed offload          {breakdown_s.exposed_offload~iteration_time_s}\n]",
    "  bubble                   {breakdown_s.bubble~iteration_time_s}\n",
    "[?imbalance_s     of which imbalance     {imbalance_s~iteration_time_s}\n]",
    "[?reading_s     of which reading samples {reading_s~iteration_time_s}\n]",
    "[?replica_wait_s     of which slow replicas {replica_wait_s~iteration_time_s}\n]",
    "[?jitter_s   of all, jitter adds      {jitter_s~iteration_time_s}\n]",
    NULL,
};

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

void run_print(const struct run *run, FILE *out)
{
    struct arena arena = {0};
    const char *unlike = certainty_unlike(&arena, run->workload->scenario, &run->metrics);
    const struct told told = {run, &arena, unlike};
    const struct view_of views[] = {{&metrics_view, &run->metrics, 0}, {&run_view, run, 0}, {&facts_view, &told, 0}};

    view_say_all(views, COUNT(views), lines, out);
    print_costs(run, out);
    caveats_print(run->workload->scenario, &run->metrics, out);
    arena_release(&arena);
}
