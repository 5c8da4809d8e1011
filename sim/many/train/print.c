#include "train/training_view.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/units.h"
#include "view/say.h"

static const char *const sentences[] = {
    "{name}: [{tokens:count} tokens|{samples:count} samples] on {gpus GPU} of {nodes node}, in {steps:%.0f step}; a step of "
    "{step_samples:%g sample} takes {iteration_time_s}[?kinds>1 , in the longest part of the training]\n",
    "[?finished=0   no trial finished\n]",
    "  takes {days:%.4g} days[?days_p10!days_p90  (P10 {days_p10:%.4g}, P90 {days_p90:%.4g})]"
    "[, {tokens_per_day:count} tokens a day]\n",
    "  uses {gpu_hours:%.0f} GPU-hours[?gpu_hours_p10!gpu_hours_p90  (P10 {gpu_hours_p10:%.0f}, P90 {gpu_hours_p90:%.0f})]\n",
    "  has a goodput (time of steps over wall time) of {goodput:%.4f}"
    "[?goodput_p10!goodput_p90  (P10 {goodput_p10:%.4f}, P90 {goodput_p90:%.4f})]\n",
    "[?finished>0   has an MFU of {mfu*100:%.1f} % in steps, {mfu_all_in*100:%.1f} % all in\n]",
    "  takes {energy_j/3.6e9:%.5g} MWh[?energy_j_p10!energy_j_p90  (P10 {energy_j_p10/3.6e9:%.5g}, "
    "P90 {energy_j_p90/3.6e9:%.5g})], {gpu_watts:%.0f} W a GPU\n",
    "  costs {cost:%.0f} $[?cost_p10!cost_p90  (P10 {cost_p10:%.0f}, P90 {cost_p90:%.0f})]\n",
    NULL,
}, *const failures =
    "[?causes failures: {failures:%.1f} a training, one each {mtbf_s}; a recovery[?keeps_work  from a checkpoint] takes "
    "{recovery_s}; {trials} trials, seed {seed:%.0f}\n]", *const shape =
    "  {nodes node}: {shallow replica} of {pipeline stage}[ and {deep_replicas replica} of {deep_pipeline stage}], a step takes "
    "{iteration_time_s}[, with a lost neighbour's work {holed_iteration_time_s}]\n", *const checkpoints[] = {
    "checkpoints: {checkpoint.count}[ of {checkpoint.bytes}], each of which stops the training for {checkpoint.stall_s}"
    "[?checkpoint.finished_s>checkpoint.stall_s  and is finished after {checkpoint.finished_s}]"
    "[?checkpoint.load_s>0 ; loading takes {checkpoint.load_s}]\n",
    "[?closed_form   interval by                time         goodput by the closed form, with blocking checkpoints\n]",
    "  Young                      {closed_form.young.interval_s@-12} {closed_form.young.goodput:%.4f}\n",
    "  Daly                       {closed_form.daly.interval_s@-12} {closed_form.daly.goodput:%.4f}\n",
    "  exact optimum              {closed_form.exact.interval_s@-12} {closed_form.exact.goodput:%.4f}\n",
    "  this training              {closed_form.chosen.interval_s@-12} {closed_form.chosen.goodput:%.4f}\n",
    "  goodput of this training by its closed form: {closed_form.goodput:%.4f}; simulated: {goodput:%.4f} +- "
    "{goodput_standard_error:%.4f}\n",
    /* The difference of a goodput comes from hangs and restarts that nobody published. */
    "reported: {reported.source}\n",
    "  days                       {reported.days:%.6g}; predicted {days:%.6g}, {days_error*100:%+.1f} %\n",
    "  GPU-hours                  {reported.gpu_hours:%.6g}; predicted {gpu_hours:%.6g}, {gpu_hours_error*100:%+.1f} %\n",
    "  goodput                    {reported.goodput:%.4f}; predicted {goodput:%.4f}; not explained {unexplained:%+.4f}\n",
    NULL,
}, *const markdown =
    "| {name:cell} | {gpus} | {iteration_time_s} | [{days:%.1f}|-] | [{reported.days:%.1f}|-] | [{gpu_hours:%.0f}|-] "
    "| [{reported.gpu_hours:%.0f}|-] | [{gpu_hours_error*100:%+.1f} %|-] | [{goodput:%.4f}|-] | [{reported.goodput:%.3f}|-] "
    "| [{unexplained:%+.3f}|-] |\n";

/* A line for each part of the wall time but for none. */
static void print_time(const struct training *training, const json_t *facts, FILE *out)
{
    const struct view *view = &training_shares;
    struct arena arena = {0};

    if (isnan(training->days.mean))
        return;
    fprintf(out, "where the wall time goes%s\n", training->failures.count ? ", mean of the trials" : "");
    for (size_t i = 0; i < view->count; i++) {
        double share = json_number_value(json_object_get(json_object_get(facts, "time_shares"), view->rows[i].key));
        char text[48];

        if (share != 0)
            fprintf(out, "  %-26s %8.3f %%  %s\n", view_words(&arena, &view->rows[i]), 100 * share,
                    unit_format_short(UNIT_TIME, share * training->days.mean * SECONDS_A_DAY, text, sizeof text));
    }
    arena_release(&arena);
}

/* What the training is on fewer nodes. */
static void print_shapes(const struct training *training, FILE *out)
{
    enum { SHAPES_PRINTED = 8 };
    struct training_on *shapes = xcalloc((size_t)training->course.shapes.nodes + 1, sizeof *shapes);
    size_t count = training_shapes(training, shapes);

    fputs(training->course.shrunk ? "on fewer nodes\n" : "", out);
    for (size_t i = 0; i < count && i < SHAPES_PRINTED; i++)
        view_say(&training_shape, &shapes[i], shape, out);
    if (count > SHAPES_PRINTED)
        fprintf(out, "  and %zu more shapes (--json)\n", count - SHAPES_PRINTED);
    if (training->course.shrunk && !count)
        fputs("  it waits: none of fewer replicas runs\n", out);
    free(shapes);
}

void training_row(const struct training *training, bool headed, FILE *out)
{
    if (headed)
        fputs("| training | GPUs | step | days | reported | GPU-hours | reported | error | goodput | reported | not explained |\n"
              "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", out);
    view_say(&training_view, training, markdown, out);
}

void training_print(const struct training *training, FILE *out)
{
    json_t *facts = view_facts(&training_view, training), *note;
    size_t i;

    say_all(facts, sentences, out);
    print_time(training, facts, out);
    say(facts, failures, out);
    print_shapes(training, out);
    say_all(facts, checkpoints, out);
    fputs("notes\n", out);
    json_array_foreach(json_object_get(facts, "notes"), i, note) {
        fputs("  - ", out);
        text_wrap(json_string_value(note), 4, 4, text_width(out, 100), out);
    }
    json_decref(facts);
}
