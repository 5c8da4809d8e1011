#include "train/training.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "hardware/cluster.h"
#include "run/energy.h"
#include "scenario/scenario.h"
#include "train/closed_form.h"
#include "train/course_steps.h"

/* "15 T", at most so long. */
static const char *count(double value, char text[48])
{
    return unit_format_short(UNIT_COUNT, value, text, 48);
}

static const char *seconds(double value, char text[48])
{
    return unit_format_short(UNIT_TIME, value, text, 48);
}

/* " (P10 38.4, P90 39.6)", where the trials differ. */
static void print_spread(const struct estimate *estimate, double unit, const char *format, FILE *out)
{
    char low[48], high[48];

    if (estimate->p10 == estimate->p90)
        return;
    snprintf(low, sizeof low, format, estimate->p10 / unit);
    snprintf(high, sizeof high, format, estimate->p90 / unit);
    fprintf(out, " (P10 %s, P90 %s)", low, high);
}

/* A number that a sentence begins or goes on with. */
static void print_estimate(const struct estimate *estimate, double unit, const char *format, const char *noun,
                           FILE *out)
{
    char mean[48];

    snprintf(mean, sizeof mean, format, estimate->mean / unit);
    fprintf(out, "%s%s", mean, noun);
    print_spread(estimate, unit, format, out);
}

/* What is trained, on what. */
static void print_subject(const struct training *training, FILE *out)
{
    const struct step *step = steps_of(&training->steps, training->main);
    char text[48];

    text_write(TEXT_LINE, training->scenario->name, out);
    if (isnan(training->tokens))
        fprintf(out, ": %s samples", count(training->samples, text));
    else
        fprintf(out, ": %s tokens", count(training->tokens, text));
    fprintf(out, " on %d GPU%s of %d node%s, in %.0f step%s; ", step->gpus, step->gpus == 1 ? "" : "s", step->nodes,
            step->nodes == 1 ? "" : "s", training->course.steps, training->course.steps == 1 ? "" : "s");
    fprintf(out, "a step of %g sample%s takes %s", step->samples, step->samples == 1 ? "" : "s",
            seconds(step->seconds, text));
    fputs(training->steps.kinds.count > 1 ? ", in the longest part of the training\n" : "\n", out);
}

static void print_sentences(const struct training *training, FILE *out)
{
    char text[48];

    if (isnan(training->days.mean)) {
        fputs("  no trial finished\n", out);
        return;
    }
    fputs("  takes ", out);
    print_estimate(&training->days, 1, "%.4g", " days", out);
    if (!isnan(training->tokens))
        fprintf(out, ", %s tokens a day", count(training->tokens / training->days.mean, text));
    fputs("\n  uses ", out);
    print_estimate(&training->gpu_hours, 1, "%.0f", " GPU-hours", out);
    fputs("\n  has a goodput (time of steps over wall time) of ", out);
    print_estimate(&training->goodput, 1, "%.4f", "", out);
    if (!isnan(training->mfu))
        fprintf(out, "\n  has an MFU of %.1f %% in steps, %.1f %% all in", 100 * training->mfu,
                100 * training->mfu_all_in);
    if (!isnan(training->energy.mean)) {
        fputs("\n  takes ", out);
        print_estimate(&training->energy, 3.6e9, "%.5g", " MWh", out);
        fprintf(out, ", %.0f W a GPU", training->energy.mean / (training->gpu_hours.mean * SECONDS_AN_HOUR));
    }
    if (!isnan(training->price.mean)) {
        fputs("\n  costs ", out);
        print_estimate(&training->price, 1, "%.0f", " $", out);
    }
    fputc('\n', out);
}

/* A row of the table of the wall time, unless it is zero. */
static void row(const struct training *training, const char *name, double value, FILE *out)
{
    char text[48];

    if (value != 0)
        fprintf(out, "  %-26s %8.3f %%  %s\n", name, 100 * value / (training->days.mean * SECONDS_A_DAY),
                seconds(value, text));
}

static void print_time(const struct training *training, FILE *out)
{
    double ramp = steps_ramp(&training->steps);

    if (isnan(training->days.mean))
        return;
    fprintf(out, "where the wall time goes%s\n", training->failures.count ? ", mean of the trials" : "");
    row(training, "steps", training->course.useful - ramp, out);
    row(training, "steps of the ramp, slower", ramp, out);
    row(training, "checkpoints", training->course.stalls, out);
    row(training, "validation", training->course.validations, out);
    for (int loss = 0; loss < training_losses(training); loss++) {
        char name[32];

        snprintf(name, sizeof name, "%s", loss_names[loss]);
        for (char *at = name; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        row(training, name, training->losses[loss], out);
    }
}

static void print_failures(const struct training *training, FILE *out)
{
    char mtbf[48], recovery[48];

    if (!training->failures.count)
        return;
    fprintf(out, "failures: %.1f a training, one each %s; a recovery%s takes %s; %zu trials, seed %llu\n",
            training->failed, seconds(training->mtbf, mtbf), training_keeps_work(training) ? " from a checkpoint" : "",
            seconds(training->recovery, recovery), training->options.trials,
            (unsigned long long)training->options.seed);
}

static void optimum(const char *name, struct optimum optimum, FILE *out)
{
    char text[48];

    fprintf(out, "  %-26s %-12s %.4f\n", name, seconds(optimum.interval, text), optimum.goodput);
}

static void print_checkpoints(const struct training *training, FILE *out)
{
    const struct checkpoint_cost *cost = &training->cost;
    char text[48];

    if (!training->scenario->train->checkpoint)
        return;
    fprintf(out, "checkpoints: %.0f", training->course.checkpoints);
    if (!isnan(cost->bytes))
        fprintf(out, " of %s", unit_format_short(UNIT_BYTES, cost->bytes, text, sizeof text));
    fprintf(out, ", each of which stops the training for %s", seconds(cost->block, text));
    if (cost->write > cost->block)
        fprintf(out, " and is finished after %s", seconds(cost->write, text));
    if (cost->load > 0)
        fprintf(out, "; loading takes %s", seconds(cost->load, text));
    fputc('\n', out);
    if (isnan(training->exact.interval))
        return;
    fprintf(out, "  %-26s %-12s %s\n", "interval by", "time", "goodput by the closed form, with blocking checkpoints");
    optimum("Young", training->young, out);
    optimum("Daly", training->daly, out);
    optimum("exact optimum", training->exact, out);
    optimum("this training", training->chosen, out);
    if (!isnan(training->expected_wall))
        fprintf(out, "  goodput of this training by its closed form: %.4f; simulated: %.4f +- %.4f\n",
                training->course.useful / training->expected_wall, training->goodput.mean, training->goodput_error);
}

/* Prints a prediction next to the reported value; the difference of a goodput comes from hangs and restarts that nobody
 * published. */
static void print_reported(const struct training *training, FILE *out)
{
    const struct reported_spec *reported = training->scenario->train->reported;
    const struct { const char *name; double reported, predicted; } rows[] = {
        {"days", reported ? reported->days : NAN, training->days.mean},
        {"GPU-hours", reported ? reported->gpu_hours : NAN, training->gpu_hours.mean},
    };

    if (!reported)
        return;
    fputs("reported: ", out);
    text_write(TEXT_LINE, reported->source, out);
    fputc('\n', out);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!isnan(rows[i].reported))
            fprintf(out, "  %-26s %.6g; predicted %.6g, %+.1f %%\n", rows[i].name, rows[i].reported, rows[i].predicted,
                    100 * (rows[i].predicted / rows[i].reported - 1));
    if (!isnan(reported->goodput))
        fprintf(out, "  %-26s %.4f; predicted %.4f; not explained %+.4f\n", "goodput", reported->goodput,
                training->goodput.mean, reported->goodput - training->goodput.mean);
}

/* A cell of a table: a number, or "-" where there is none. */
static void cell(const char *format, double value, FILE *out)
{
    char text[48];

    snprintf(text, sizeof text, format, value);
    fprintf(out, " %s |", isnan(value) ? "-" : text);
}

void training_row_head(FILE *out)
{
    fputs("| training | GPUs | step | days | reported | GPU-hours | reported | error | goodput | reported | not "
          "explained |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
          out);
}

void training_row(const struct training *training, FILE *out)
{
    static const struct reported_spec nothing = {.days = NAN, .goodput = NAN, .gpu_hours = NAN};
    const struct step *step = steps_of(&training->steps, training->main);
    const struct reported_spec *reported = training->scenario->train->reported;
    char text[48];

    reported = reported ? reported : &nothing;
    fputs("| ", out);
    text_write(TEXT_MARKDOWN, training->scenario->name, out);
    fprintf(out, " | %d | %s |", step->gpus, seconds(step->seconds, text));
    cell("%.1f", training->days.mean, out);
    cell("%.1f", reported->days, out);
    cell("%.0f", training->gpu_hours.mean, out);
    cell("%.0f", reported->gpu_hours, out);
    cell("%+.1f %%", 100 * (training->gpu_hours.mean / reported->gpu_hours - 1), out);
    cell("%.4f", training->goodput.mean, out);
    cell("%.3f", reported->goodput, out);
    cell("%+.3f", reported->goodput - training->goodput.mean, out);
    fputc('\n', out);
}

enum { NOTES = 20 };

/* Notes in the making. */
struct notes { struct arena *arena; const char **items; size_t count; };

static void note(struct notes *notes, const char *text)
{
    if (notes->count < NOTES)
        notes->items[notes->count++] = text;
}

static void add_failures(struct notes *notes, const struct training *training)
{
    const struct training_spec *spec = training->scenario->train;
    const struct node_trace *trace = training->failures.trace;

    if (!training->failures.count)
        note(
            notes,
            "nothing fails: the scenario says no failures (train.failures; 'dtsim list failures' has published rates)");
    else if (spec->failures->named)
        note(notes, arena_printf(notes->arena, "failures as on another system: %s (%s)", spec->failures->named->title,
                                spec->failures->named->source));
    if (trace)
        note(notes, arena_printf(notes->arena,
                                 "the trace has %.1f nodes up on average, gains %.0f and loses %.0f; after its last "
                                 "row %d stay up",
                                 trace->mean, trace->gained, trace->lost, trace->rows[trace->count - 1].nodes));
    else if (training->failures.count)
        note(notes,
             "rates by node hold for large jobs; small jobs fail more often than their nodes do, by other causes "
             "(1,024 GPUs of RSC-1 each 7.9 h, its nodes' rate says 28.8 h: arXiv 2410.21680)");
    if (training->failures.count && isnan(training->expected_wall))
        note(notes,
             "no closed form of the whole training: it has exponential failures without a limit of spare nodes, and "
             "checkpoints in a storage, only");
}

static void add_checkpoints(struct notes *notes, const struct training *training)
{
    const struct checkpoint_spec *spec = training->scenario->train->checkpoint;
    const struct checkpoint_cost *cost = &training->cost;
    double interval = training->chosen.interval;
    int nodes = steps_of(&training->steps, training->main)->nodes;

    if (!spec)
        return;
    if (spec->mode == CHECKPOINT_MEMORY)
        note(notes,
             arena_printf(notes->arena,
                          "%d nodes that are lost in one recovery are a whole group, with all its copies, in "
                          "%.3g %% of cases; a trial had %.3g such losses on average",
                          spec->copies, 100 * closed_form_group_lost(nodes, spec->copies), training->memory_lost));
    if (cost->block > interval)
        note(notes, "a checkpoint takes longer than the work between two of them");
    if (training->failures.count && cost->block > training->mtbf)
        note(notes, "a checkpoint takes longer than the mean time between failures");
    if (spec->mode != CHECKPOINT_BLOCKING && cost->write - cost->block > interval)
        note(notes, "the training waits for checkpoints: writing one takes longer than the work between two of them");
}

static void add_money(struct notes *notes, const struct training *training)
{
    const struct scenario *scenario = training->scenario;

    if (isnan(scenario->price))
        note(notes, "no cost: the scenario says no price of a GPU-hour (price: '2 $/h')");
    if (isnan(training->energy.mean) && training->ended[TRIAL_FINISHED])
        note(notes, "no energy: nothing published says what this GPU and its node take; expected 'train: energy'");
    else if (training->ended[TRIAL_FINISHED] && !isnan(energy_error(scenario)))
        note(notes, "energy is estimated from the board's power on the GPU's data sheet, and may be off by a quarter; 'train: "
                    "energy' says a measured one");
    if (training->ended[TRIAL_FINISHED] && !isnan(training->energy.mean) && !scenario->train->energy)
        note(notes, "energy is of the nodes alone, without switches, storage and cooling: the scenario says no "
                    "train.energy.pue");
    const char *names = scenario_gpu_names(notes->arena, scenario, -1);

    if (!isnan(training->energy.mean) && !(scenario->train->energy && scenario->train->energy->gpu))
        note(notes, arena_printf(notes->arena,
                                 "energy rests on the few nodes of %s whose power is published: its file says which "
                                 "('dtsim help %s')",
                                 names, cluster_gpu_name(&scenario->cluster, 0)));
}

const char **training_notes(struct arena *arena, const struct training *training)
{
    struct notes notes = {.arena = arena, .items = ARENA_ARRAY(arena, const char *, NOTES + 1)};
    const struct step *step = steps_of(&training->steps, training->main);

    if (!isnan(step->expected_error))
        note(&notes, arena_printf(arena,
                                  "P10 to P90 span random failures alone; 6 of 10 published times of similar "
                                  "iterations were nearer to their predictions than %.1f %%",
                                  100 * step->expected_error));
    else
        note(&notes, "P10 to P90 span random failures alone; nothing published says how far off the iteration's "
                     "time may be");
    if (training->steps.over > 0)
        note(&notes, arena_printf(arena, "whole steps train on %.0f more sample%s than was asked for",
                                  training->steps.over, training->steps.over == 1 ? "" : "s"));
    add_failures(&notes, training);
    add_checkpoints(&notes, training);
    if (training->course.shrunk)
        note(&notes, training_elastic_note(training));
    if (training_faster_shape(training))
        note(&notes,
             arena_printf(arena,
                          "a step takes less time on %d nodes than on all of them: the scenario's own shape is not "
                          "the fastest, and fewer nodes may be a gain",
                          training_faster_shape(training)));
    if (training->course.zones.count > 1)
        note(&notes, "a change of the number of GPUs takes only the time of a checkpoint");
    if (training->ended[TRIAL_STOPPED])
        note(&notes,
             arena_printf(arena, "%zu of %zu trials ended for lack of spare nodes; all numbers are of the others",
                          training->ended[TRIAL_STOPPED], training->options.trials));
    if (training->ended[TRIAL_STUCK])
        note(&notes, arena_printf(arena, "%zu of %zu trials did not progress; all numbers are of the others",
                                 training->ended[TRIAL_STUCK], training->options.trials));
    add_money(&notes, training);
    return notes.items;
}

void training_print(const struct training *training, FILE *out)
{
    struct arena arena = {0};
    const char **notes = training_notes(&arena, training);

    print_subject(training, out);
    print_sentences(training, out);
    print_time(training, out);
    print_failures(training, out);
    training_print_elastic(training, out);
    print_checkpoints(training, out);
    print_reported(training, out);
    fputs("notes\n", out);
    for (size_t i = 0; notes[i]; i++) {
        fputs("  - ", out);
        text_wrap(notes[i], 4, 4, text_width(out, 100), out);
    }
    arena_release(&arena);
}
