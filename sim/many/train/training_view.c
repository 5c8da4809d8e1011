/* What a training says: its result.json and the tables of its folder. */
#include "train/training.h"

#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "engine/replay.h"
#include "files/digest.h"
#include "files/json.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "train/course.h"
#include "train/course_steps.h"
#include "train/training_view.h"
#include "view/view.h"

static const struct step *step_of(const struct training *training)
{
    return steps_of(&training->steps, training->main);
}

static double wall_of(const struct training *training)
{
    return training->days.mean * SECONDS_A_DAY;
}

/* NULL: the training has no such losses. */
static json_t *share_lost(const struct training *training, enum loss loss)
{
    return (int)loss < training_losses(training) ? json_finite(training->losses[loss] / wall_of(training)) : NULL;
}

#define SHARES(ROW) \
    ROW(steps, json_finite((it->course.useful - steps_ramp(&it->steps)) / wall_of(it)), "without what the ramp adds") \
    ROW(ramp, json_finite(steps_ramp(&it->steps) / wall_of(it)), \
        "what smaller batches of a ramp take more than their samples would at its end", .words = "steps of the ramp, slower") \
    ROW(checkpoint_stall, json_finite(it->course.stalls / wall_of(it)), "the training stands still for checkpoints", \
        .words = "checkpoints") \
    ROW(validation, json_finite(it->course.validations / wall_of(it)), "validations") \
    ROW(lost_work, share_lost(it, LOSS_WORK), "work since the last finished checkpoint, at each failure") \
    ROW(detection, share_lost(it, LOSS_DETECTION), "until failures are noticed") \
    ROW(waiting, share_lost(it, LOSS_WAITING), "for a node, where there is no spare one") \
    ROW(replacement, share_lost(it, LOSS_REPLACEMENT), "of nodes; none where the training goes on with fewer") \
    ROW(initialisation, share_lost(it, LOSS_INITIALISATION), "of the job") \
    ROW(loading, share_lost(it, LOSS_LOADING), "of checkpoints") \
    ROW(fewer_nodes, share_lost(it, LOSS_FEWER), "what steps on fewer nodes take longer; of trainings with 'elastic' alone") \
    ROW(redundant_work, share_lost(it, LOSS_REDUNDANT), \
        "what steps take longer because nodes do the work of others too; of 'elastic: redundancy' alone")
VIEW_SHARED(training_shares, struct training, it, SHARES)

#define OPTIMUM(ROW) \
    ROW(interval_s, json_finite(it->interval), "time between checkpoints") \
    ROW(goodput, json_finite(it->goodput), "with blocking checkpoints")
VIEW(optimum_view, struct optimum, it, OPTIMUM)

#define CLOSED_FORM(ROW) \
    ROW(young, view_json(&optimum_view, &it->young), "of the interval by Young", .of = &optimum_view) \
    ROW(daly, view_json(&optimum_view, &it->daly), "of the interval by Daly", .of = &optimum_view) \
    ROW(exact, view_json(&optimum_view, &it->exact), "of the best interval", .of = &optimum_view) \
    ROW(chosen, view_json(&optimum_view, &it->chosen), "of the training's interval", .of = &optimum_view) \
    ROW(days, json_finite(it->expected_wall / SECONDS_A_DAY), "of this training; null: it has spare nodes") \
    ROW(goodput, json_finite(it->course.useful / it->expected_wall), "the same")
VIEW(closed_form_view, struct training, it, CLOSED_FORM)

#define CHECKPOINT(ROW) \
    ROW(bytes, json_finite(it->cost.bytes), "of one") \
    ROW(stall_s, json_finite(it->cost.block), "for which one stops the training") \
    ROW(finished_s, json_finite(it->cost.write), "from its beginning until it is finished") \
    ROW(load_s, json_finite(it->cost.load), "loading one") \
    ROW(count, json_integer((json_int_t)it->course.checkpoints), "without failures") \
    ROW(interval_s, json_finite(it->chosen.interval), "between two") \
    ROW(interval_steps, json_finite(it->chosen.interval / step_of(it)->seconds), "the same in steps")
VIEW(checkpoint_view, struct training, it, CHECKPOINT)

#define SHAPE(ROW) \
    ROW(nodes, json_integer(it->shape->nodes), "on which it trains") \
    ROW(gpus, json_integer(it->shape->gpus), "on which it trains") \
    ROW(replicas, json_integer(it->shape->replicas), "of the model") \
    ROW(pipeline, json_integer(it->shape->pipeline), "stages of a replica") \
    ROW(deep_replicas, it->shape->deep ? json_integer(it->shape->deep) : NULL, "of the replicas: with deep_pipeline stages") \
    ROW(deep_pipeline, it->shape->deep ? json_integer(it->shape->deep_pipeline) : NULL, "stages of these") \
    ROW(iteration_time_s, json_finite(it->shape->seconds), "of the whole batch") \
    ROW(holed_iteration_time_s, it->shape->holed_seconds > 0 ? json_finite(it->shape->holed_seconds) : NULL, \
        "while a node does its lost neighbour's work too") \
    ROW(pace, json_finite(it->pace), "its speed over that on all nodes") \
    ROW(shallow, json_integer(it->shape->replicas - it->shape->deep), NULL)
VIEW_SHARED(training_shape, struct training_on, it, SHAPE)

size_t training_shapes(const struct training *training, struct training_on *shapes)
{
    const struct course *course = &training->course;
    size_t count = 0;

    for (int nodes = course->shrunk ? course->shapes.nodes - !course->holed : 0; nodes > 0; nodes--)
        if (course->shapes.on[nodes].nodes == nodes)
            shapes[count++] = (struct training_on){
                &course->shapes.on[nodes],
                (nodes == course->shapes.nodes ? course->zones.items : &course->shrunk[nodes])->pace};
    return count;
}

static json_t *shapes_json(const struct training *training)
{
    struct training_on *shapes = xcalloc((size_t)training->course.shapes.nodes + 1, sizeof *shapes);
    json_t *list = view_list(&training_shape, shapes, training_shapes(training, shapes), sizeof *shapes);

    free(shapes);
    return list;
}

static json_t *notes_json(const struct training *training)
{
    struct arena arena = {0};
    json_t *json = json_texts(training_notes(&arena, training));

    arena_release(&arena);
    return json;
}

static json_t *scenario_json(const struct training *training)
{
    struct arena arena = {0};
    json_t *json = node_json(scenario_dump(&arena, training->scenario));

    arena_release(&arena);
    return json;
}

/* What was reported, NaN where nothing was. */
static const struct reported_spec *reported(const struct training *training)
{
    static const struct reported_spec nothing = {.days = NAN, .goodput = NAN, .gpu_hours = NAN};

    return training->scenario->train->reported ? training->scenario->train->reported : &nothing;
}

#define REPORTED(ROW) \
    ROW(source, json_words_or_null(it->source), NULL) ROW(days, json_finite(it->days), NULL) \
    ROW(gpu_hours, json_finite(it->gpu_hours), NULL) ROW(goodput, json_finite(it->goodput), NULL)
VIEW(reported_view, struct reported_spec, it, REPORTED)

#define TRAINING(ROW) \
    ESTIMATE(ROW, days, it->days, "wall time: mean of the trials that finished; null: none finished") \
    ESTIMATE(ROW, goodput, it->goodput, "time of the steps that count over wall time") \
    ESTIMATE(ROW, gpu_hours, it->gpu_hours, \
             "of the GPUs that train and of those that are idle beside them, recoveries included; nodes that a trace does not have up do " \
             "not count") \
    ESTIMATE(ROW, cost, it->price, "$ of the GPUs that train and of spare nodes; null: the scenario says no price") \
    ESTIMATE(ROW, energy_j, it->energy, "of all nodes, warm spare ones too, times train.energy.pue, or 1.2; null: the GPU's file has no " \
             "power, nor has train.energy") \
    ROW(goodput_standard_error, json_finite(it->goodput_error), "of goodput, over the trials") \
    ROW(steady_days, json_finite(it->course.useful / SECONDS_A_DAY), "of steps alone") \
    ROW(steps, json_integer((json_int_t)it->course.steps), "iterations with an update, of all phases") \
    ROW(samples, json_finite(it->samples), "that are trained on") \
    ROW(tokens, json_finite(it->tokens), "the same; null: the model has none") \
    ROW(tokens_per_day, json_finite(it->tokens / it->days.mean), "tokens over days") \
    ROW(parameters, json_finite(it->steps.parameters), "of the model; null: not known") \
    ROW(gpus, json_integer(step_of(it)->gpus), "of the longest part of the training; so nodes and iteration_time_s") \
    ROW(nodes, json_integer(step_of(it)->nodes), "on which these GPUs are") \
    ROW(spare_nodes, it->spares ? json_integer(it->spares->nodes) : NULL, \
        "that replace lost ones: as the scenario says, or as 'auto' finds; left out: there is always one") \
    ROW(iteration_time_s, json_finite(step_of(it)->seconds), "of a step") \
    ROW(expected_error_share, json_finite(step_of(it)->expected_error), "of iteration_time_s, as dtsim run has it") \
    ROW(mfu, json_finite(it->mfu), "of steps; null: times are given") \
    ROW(mfu_all_in, json_finite(it->mfu_all_in), "of the wall time") \
    ROW(time_shares, view_json(&training_shares, it), "of the mean wall time; they add up to 1", .of = &training_shares) \
    ROW(failures, json_finite(it->failed), "of a trial, mean") \
    ROW(nodes_lost, json_finite(it->lost), "failures that lose a node") \
    ROW(memory_lost, json_finite(it->memory_lost), \
        "times that all copies in memory of a share of a checkpoint were lost, mean") \
    ROW(mtbf_s, json_finite(it->mtbf), "mean time between failures; null: nothing fails") \
    ROW(recovery_s, json_finite(it->recovery), "an undisturbed recovery, mean over the causes") \
    ROW(trials, json_count(it->options.trials), "that were played") \
    ROW(seed, json_integer((json_int_t)it->options.seed), "of their random failures") \
    ROW(finished, json_count(it->ended[TRIAL_FINISHED]), "trials that did") \
    ROW(stopped, json_count(it->ended[TRIAL_STOPPED]), "trials that ended for lack of spare nodes") \
    ROW(stuck, json_count(it->ended[TRIAL_STUCK]), "trials that were given up, because they did not progress") \
    ROW(checkpoint, it->scenario->train->checkpoint ? view_json(&checkpoint_view, it) : json_null(), "null: there are none", \
        .of = &checkpoint_view) \
    ROW(closed_form, isnan(it->exact.interval) ? json_null() : view_json(&closed_form_view, it), \
        "null: nothing fails, or not exponentially, or there are no checkpoints", .of = &closed_form_view) \
    ROW(shapes, it->course.shrunk ? shapes_json(it) : NULL, "with 'elastic' alone: what it is on fewer nodes", \
        .form = VIEW_LIST, .of = &training_shape) \
    ROW(notes, notes_json(it), "what to know before relying on the numbers") \
    ROW(engine, json_words(engine_names[it->scenario->simulation.engine]), "that simulated the steps") \
    ROW(version, json_words(DTSIM_VERSION), "of dtsim") \
    ROW(scenario, scenario_json(it), "with every default") \
    ROW(name, json_words(it->scenario->name), NULL) ROW(step_samples, json_finite(step_of(it)->samples), NULL) \
    ROW(kinds, json_count(it->steps.kinds.count), NULL) \
    ROW(gpu_watts, json_finite(it->energy.mean / (it->gpu_hours.mean * SECONDS_AN_HOUR)), NULL) \
    ROW(causes, json_count(it->failures.count), NULL) ROW(keeps_work, json_boolean(training_keeps_work(it)), NULL) \
    ROW(reported, view_facts(&reported_view, reported(it)), NULL) \
    ROW(days_error, json_finite(it->days.mean / reported(it)->days - 1), NULL) \
    ROW(gpu_hours_error, json_finite(it->gpu_hours.mean / reported(it)->gpu_hours - 1), NULL) \
    ROW(unexplained, json_finite(reported(it)->goodput - it->goodput.mean), NULL)
VIEW_SHARED(training_view, struct training, it, TRAINING)

static json_t *lost(const struct training *training, size_t trial, enum loss loss)
{
    return (int)loss < training_losses(training) ? json_finite(training->trials[trial].losses[loss]) : NULL;
}

#define TRIAL(ROW) \
    ROW(trial, json_count(i), "from 0") \
    ROW(end, json_words(trial_end_names[it->trials[i].end]), "finished, stopped or stuck") \
    ROW(wall_s, json_finite(it->trials[i].wall), "wall time") \
    ROW(gpu_s, json_finite(it->trials[i].gpu_seconds), "of the GPUs that train") \
    ROW(energy_j, json_finite(training_energy(it, &it->trials[i])), \
        "of the computers: as in result.json without train.energy.pue") \
    ROW(failures, json_finite(it->trials[i].failures), "of the trial") \
    ROW(nodes_lost, json_finite(it->trials[i].nodes_lost), "failures that lose a node") \
    ROW(lost_work_s, lost(it, i, LOSS_WORK), "as in time_shares; so all further columns") \
    ROW(detection_s, lost(it, i, LOSS_DETECTION), "") ROW(waiting_s, lost(it, i, LOSS_WAITING), "") \
    ROW(replacement_s, lost(it, i, LOSS_REPLACEMENT), "") ROW(initialisation_s, lost(it, i, LOSS_INITIALISATION), "") \
    ROW(loading_s, lost(it, i, LOSS_LOADING), "") ROW(fewer_nodes_s, lost(it, i, LOSS_FEWER), "") \
    ROW(redundant_work_s, lost(it, i, LOSS_REDUNDANT), "")
VIEW(trial_view, struct training, it, TRIAL)

static void write_trials(const struct training *training, struct cells *cells)
{
    view_columns(&trial_view, training, cells);
    for (size_t i = 0; i < training->options.trials; i++)
        view_cells(&trial_view, training, i, cells);
}

#define EVENT(ROW) \
    ROW(time_s, json_finite(it->time), "of wall time") \
    ROW(kind, json_words(trial_event_names[it->kind]), "what happens") \
    ROW(node, json_integer(it->node), "-1: none; from the number of nodes on: spare ones; resized: how many train from then on") \
    ROW(cause, json_words(it->cause ? it->cause : ""), "of a failure") \
    ROW(steps_lost, json_finite(it->steps_lost), "by a failure")
VIEW(event_view, struct trial_event, it, EVENT)

static void write_event(void *context, const struct trial_event *event)
{
    view_cells(&event_view, event, 0, context);
}

static void write_events(const struct training *training, struct cells *cells)
{
    struct trial_rules rules = training_rules(training);

    view_columns(&event_view, &(struct trial_event){0}, cells);
    trial_run(&rules, 0, write_event, cells);
}

#define PHASE(ROW) \
    ROW(phase, json_integer(it->stretches.items[i].phase), "of train.phases, from 0") \
    ROW(ramp, json_integer(it->stretches.items[i].ramp), "1: its batch still grows") \
    ROW(batch, json_integer(it->kinds.items[it->stretches.items[i].step].batch), "samples a step") \
    ROW(sequence, json_integer(it->kinds.items[it->stretches.items[i].step].sequence), "tokens a sample") \
    ROW(gpus, json_integer(it->kinds.items[it->stretches.items[i].step].gpus), "that train") \
    ROW(nodes, json_integer(it->kinds.items[it->stretches.items[i].step].nodes), "on which they are") \
    ROW(steps, json_finite(it->stretches.items[i].steps), "that are alike") \
    ROW(step_s, json_finite(it->kinds.items[it->stretches.items[i].step].seconds), "of one of them") \
    ROW(samples, json_finite(it->stretches.items[i].steps * it->kinds.items[it->stretches.items[i].step].samples), "of all of them") \
    ROW(tokens, json_finite(it->stretches.items[i].steps * it->kinds.items[it->stretches.items[i].step].tokens), "of all of them; nan: the model has none") \
    ROW(mfu, json_finite(it->kinds.items[it->stretches.items[i].step].mfu), "of them") \
    ROW(power_w, json_finite(it->kinds.items[it->stretches.items[i].step].power), "of the computers")
VIEW(phase_view, struct steps, it, PHASE)

static void write_phases(const struct training *training, struct cells *cells)
{
    view_columns(&phase_view, &training->steps, cells);
    for (size_t i = 0; i < training->steps.stretches.count; i++)
        view_cells(&phase_view, &training->steps, i, cells);
}

/* When that part of the training's clock has passed. */
static double clock_of(const struct training *training, size_t part)
{
    return training->course.end * (double)part / TRIAL_PARTS;
}

static struct milestone at(const struct training *training, size_t part)
{
    return course_at(&training->course, clock_of(training, part));
}

#define PROGRESS(ROW) \
    ROW(steps, json_finite(at(it, i).steps), "how far the training is") \
    ROW(samples, json_finite(at(it, i).samples), "the same") \
    ROW(tokens, isnan(at(it, i).tokens) ? json_words("") : json_real(at(it, i).tokens), "the same") \
    ROW(uninterrupted_s, json_finite(clock_of(it, i)), "wall time after which it is so far, without failures") \
    ROW(p10_s, json_finite(it->passed[i].p10), "the same for good, of the trials that finished: 10 % take no longer") \
    ROW(p50_s, json_finite(it->passed[i].p50), "50 %") \
    ROW(p90_s, json_finite(it->passed[i].p90), "90 %")
VIEW(progress_view, struct training, it, PROGRESS)

/* Without failures, and over the trials. */
static void write_progress(const struct training *training, struct cells *cells)
{
    view_columns(&progress_view, training, cells);
    for (size_t part = 0; part <= TRIAL_PARTS && training->ended[TRIAL_FINISHED]; part++)
        view_cells(&progress_view, training, part, cells);
}

static const char *const names[] = {"trials", "events", "phases", "progress", NULL};
static const struct { void (*write)(const struct training *, struct cells *); const struct view *columns; } tables[] = {
    {write_trials, &trial_view}, {write_events, &event_view}, {write_phases, &phase_view}, {write_progress, &progress_view},
};

static void write_table(const void *training, size_t table, FILE *out)
{
    struct cells cells = {.out = out};

    tables[table].write(training, &cells);
    cells_flush(&cells);
}

static json_t *write_result(const void *training)
{
    return view_json(&training_view, training);
}

int training_check(const char *dir, struct error *err)
{
    return digests_check(dir, &(struct digests_kind){"train", "training", names, NULL}, err);
}

int training_write(const struct training *training, struct folder *folder, struct error *err)
{
    return result_files(&(struct result_files){names, write_table, write_result, training}, folder, err);
}

void training_help(FILE *out)
{
    fputs("\nresult.json of dtsim train, and the tables in its folder\n\n", out);
    view_help(&training_view, "", out);
    view_help(&folder_view, "", out);
    for (size_t i = 0; i < COUNT(tables); i++) {
        char above[40];

        snprintf(above, sizeof above, "%s.tsv: ", names[i]);
        view_help(tables[i].columns, above, out);
    }
}
