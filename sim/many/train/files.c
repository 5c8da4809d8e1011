/* A training as JSON, and its folder. */
#include "train/training.h"

#include <math.h>

#include "base/cells.h"
#include "base/units.h"
#include "engine/replay.h"
#include "files/digest.h"
#include "report/result.h"
#include "scenario/scenario.h"
#include "train/course.h"
#include "train/course_steps.h"

/* key, key_p10, key_p50, key_p90. */
static void put_estimate(json_t *json, struct arena *arena, const char *key, const struct estimate *estimate)
{
    json_put(json, key, json_finite(estimate->mean));
    json_put(json, arena_printf(arena, "%s_p10", key), json_finite(estimate->p10));
    json_put(json, arena_printf(arena, "%s_p50", key), json_finite(estimate->p50));
    json_put(json, arena_printf(arena, "%s_p90", key), json_finite(estimate->p90));
}

/* Shares of the mean wall time. */
static json_t *shares_json(const struct training *training)
{
    double wall = training->days.mean * SECONDS_A_DAY, ramp = steps_ramp(&training->steps);
    json_t *json = json_object();

    json_put(json, "steps", json_finite((training->course.useful - ramp) / wall));
    json_put(json, "ramp", json_finite(ramp / wall));
    json_put(json, "checkpoint_stall", json_finite(training->course.stalls / wall));
    json_put(json, "validation", json_finite(training->course.validations / wall));
    for (int loss = 0; loss < training_losses(training); loss++)
        json_put(json, loss_names[loss], json_finite(training->losses[loss] / wall));
    return json;
}

static json_t *optimum_json(struct optimum optimum)
{
    json_t *json = json_object();

    json_put(json, "interval_s", json_finite(optimum.interval));
    json_put(json, "goodput", json_finite(optimum.goodput));
    return json;
}

static json_t *checkpoint_json(const struct training *training)
{
    const struct step *step = steps_of(&training->steps, training->main);
    json_t *json;

    if (!training->scenario->train->checkpoint)
        return json_null();
    json = json_object();
    json_put(json, "bytes", json_finite(training->cost.bytes));
    json_put(json, "stall_s", json_finite(training->cost.block));
    json_put(json, "finished_s", json_finite(training->cost.write));
    json_put(json, "load_s", json_finite(training->cost.load));
    json_put(json, "count", json_integer((json_int_t)training->course.checkpoints));
    json_put(json, "interval_s", json_finite(training->chosen.interval));
    json_put(json, "interval_steps", json_finite(training->chosen.interval / step->seconds));
    return json;
}

/* Of blocking checkpoints and exponential failures, where nodes are replaced at once. */
static json_t *closed_form_json(const struct training *training)
{
    json_t *json;

    if (isnan(training->exact.interval))
        return json_null();
    json = json_object();
    json_put(json, "young", optimum_json(training->young));
    json_put(json, "daly", optimum_json(training->daly));
    json_put(json, "exact", optimum_json(training->exact));
    json_put(json, "chosen", optimum_json(training->chosen));
    json_put(json, "days", json_finite(training->expected_wall / SECONDS_A_DAY));
    json_put(json, "goodput", json_finite(training->course.useful / training->expected_wall));
    return json;
}

/* The shapes of the training on fewer nodes, the largest first; where holes are possible, also its shape on all
 * nodes. */
static json_t *shapes_json(const struct training *training)
{
    const struct course *course = &training->course;
    json_t *list = json_array();

    for (int nodes = course->shapes.nodes - !course->holed; nodes > 0; nodes--) {
        const struct shape *shape = &course->shapes.on[nodes];
        const struct zone *zone = nodes == course->shapes.nodes ? course->zones.items : &course->shrunk[nodes];
        json_t *json;

        if (shape->nodes != nodes)
            continue;
        json = json_object();
        json_put(json, "nodes", json_integer(nodes));
        json_put(json, "gpus", json_integer(shape->gpus));
        json_put(json, "replicas", json_integer(shape->replicas));
        json_put(json, "pipeline", json_integer(shape->pipeline));
        if (shape->deep) {
            json_put(json, "deep_replicas", json_integer(shape->deep));
            json_put(json, "deep_pipeline", json_integer(shape->deep_pipeline));
        }
        json_put(json, "iteration_time_s", json_finite(shape->seconds));
        if (shape->holed_seconds > 0)
            json_put(json, "holed_iteration_time_s", json_finite(shape->holed_seconds));
        json_put(json, "pace", json_finite(zone->pace));
        json_append(list, json);
    }
    return list;
}

static void put_failures(json_t *json, const struct training *training)
{
    json_put(json, "failures", json_finite(training->failed));
    json_put(json, "nodes_lost", json_finite(training->lost));
    json_put(json, "memory_lost", json_finite(training->memory_lost));
    json_put(json, "mtbf_s", json_finite(training->mtbf));
    json_put(json, "recovery_s", json_finite(training->recovery));
    json_put(json, "trials", json_integer((json_int_t)training->options.trials));
    json_put(json, "seed", json_integer((json_int_t)training->options.seed));
    for (int end = 0; end <= TRIAL_STUCK; end++)
        json_put(json, trial_end_names[end], json_integer((json_int_t)training->ended[end]));
}

static json_t *notes_json(const struct training *training)
{
    struct arena arena = {0};
    const char **notes = training_notes(&arena, training);
    json_t *json = json_array();

    for (size_t i = 0; notes[i]; i++)
        json_append(json, json_words(notes[i]));
    arena_release(&arena);
    return json;
}

json_t *training_json(const struct training *training)
{
    const struct step *step = steps_of(&training->steps, training->main);
    struct arena arena = {0};
    json_t *json = json_object();

    put_estimate(json, &arena, "days", &training->days);
    put_estimate(json, &arena, "goodput", &training->goodput);
    put_estimate(json, &arena, "gpu_hours", &training->gpu_hours);
    put_estimate(json, &arena, "cost", &training->price);
    put_estimate(json, &arena, "energy_j", &training->energy);
    json_put(json, "goodput_standard_error", json_finite(training->goodput_error));
    json_put(json, "steady_days", json_finite(training->course.useful / SECONDS_A_DAY));
    json_put(json, "steps", json_integer((json_int_t)training->course.steps));
    json_put(json, "samples", json_finite(training->samples));
    json_put(json, "tokens", json_finite(training->tokens));
    json_put(json, "tokens_per_day", json_finite(training->tokens / training->days.mean));
    json_put(json, "parameters", json_finite(training->steps.parameters));
    json_put(json, "gpus", json_integer(step->gpus));
    json_put(json, "nodes", json_integer(step->nodes));
    json_put(json, "iteration_time_s", json_finite(step->seconds));
    json_put(json, "expected_error_share", json_finite(step->expected_error));
    json_put(json, "mfu", json_finite(training->mfu));
    json_put(json, "mfu_all_in", json_finite(training->mfu_all_in));
    json_put(json, "time_shares", shares_json(training));
    put_failures(json, training);
    json_put(json, "checkpoint", checkpoint_json(training));
    json_put(json, "closed_form", closed_form_json(training));
    if (training->course.shrunk)
        json_put(json, "shapes", shapes_json(training));
    json_put(json, "notes", notes_json(training));
    json_put(json, "engine", json_words(engine_names[training->scenario->simulation.engine]));
    json_put(json, "version", json_words(DTSIM_VERSION));
    json_put(json, "scenario", node_json(scenario_dump(&arena, training->scenario)));
    arena_release(&arena);
    return json;
}

static void write_trials(const struct training *training, struct cells *cells)
{
    cells_text(cells, "trial");
    cells_text(cells, "end");
    cells_text(cells, "wall_s");
    cells_text(cells, "gpu_s");
    cells_text(cells, "energy_j");
    cells_text(cells, "failures");
    cells_text(cells, "nodes_lost");
    for (int loss = 0; loss < training_losses(training); loss++) {
        char name[64];

        snprintf(name, sizeof name, "%s_s", loss_names[loss]);
        cells_text(cells, name);
    }
    cells_end_line(cells);
    for (size_t i = 0; i < training->options.trials; i++) {
        const struct trial *trial = &training->trials[i];

        cells_integer(cells, (long long)i);
        cells_text(cells, trial_end_names[trial->end]);
        cells_number(cells, trial->wall);
        cells_number(cells, trial->gpu_seconds);
        cells_number(cells, training_energy(training, trial));
        cells_number(cells, trial->failures);
        cells_number(cells, trial->nodes_lost);
        for (int loss = 0; loss < training_losses(training); loss++)
            cells_number(cells, trial->losses[loss]);
        cells_end_line(cells);
    }
}

static void write_event(void *context, const struct trial_event *event)
{
    struct cells *cells = context;

    cells_number(cells, event->time);
    cells_text(cells, trial_event_names[event->kind]);
    cells_integer(cells, event->node);
    cells_text(cells, event->cause ? event->cause : "");
    cells_number(cells, event->steps_lost);
    cells_end_line(cells);
}

static void write_events(const struct training *training, struct cells *cells)
{
    static const char *const columns[] = {"time_s", "kind", "node", "cause", "steps_lost"};
    struct trial_rules rules = training_rules(training);

    for (size_t i = 0; i < COUNT(columns); i++)
        cells_text(cells, columns[i]);
    cells_end_line(cells);
    trial_run(&rules, 0, write_event, cells);
}

static void write_phases(const struct training *training, struct cells *cells)
{
    static const char *const columns[] = {"phase", "ramp",   "batch",   "sequence", "gpus", "nodes",
                                          "steps", "step_s", "samples", "tokens",   "mfu",  "power_w"};

    for (size_t i = 0; i < COUNT(columns); i++)
        cells_text(cells, columns[i]);
    cells_end_line(cells);
    for (size_t i = 0; i < training->steps.stretches.count; i++) {
        const struct stretch *stretch = &training->steps.stretches.items[i];
        const struct step *step = steps_of(&training->steps, stretch);

        cells_integer(cells, stretch->phase);
        cells_integer(cells, stretch->ramp);
        cells_integer(cells, step->batch);
        cells_integer(cells, step->sequence);
        cells_integer(cells, step->gpus);
        cells_integer(cells, step->nodes);
        cells_number(cells, stretch->steps);
        cells_number(cells, step->seconds);
        cells_number(cells, stretch->steps * step->samples);
        cells_number(cells, stretch->steps * step->tokens);
        cells_number(cells, step->mfu);
        cells_number(cells, step->power);
        cells_end_line(cells);
    }
}

/* How far the training is, and after how much wall time it is so far for good: without failures, and over the trials.
 */
static void write_progress(const struct training *training, struct cells *cells)
{
    static const char *const columns[] = {"steps", "samples", "tokens", "uninterrupted_s", "p10_s", "p50_s", "p90_s"};

    for (size_t i = 0; i < COUNT(columns); i++)
        cells_text(cells, columns[i]);
    cells_end_line(cells);
    for (int part = 0; part <= TRIAL_PARTS && training->ended[TRIAL_FINISHED]; part++) {
        double clock = training->course.end * part / TRIAL_PARTS;
        struct milestone milestone = course_at(&training->course, clock);
        const struct estimate *passed = &training->passed[part];

        cells_number(cells, milestone.steps);
        cells_number(cells, milestone.samples);
        if (isnan(milestone.tokens))
            cells_text(cells, "");
        else
            cells_number(cells, milestone.tokens);
        cells_number(cells, clock);
        cells_number(cells, passed->p10);
        cells_number(cells, passed->p50);
        cells_number(cells, passed->p90);
        cells_end_line(cells);
    }
}

static const struct { const char *name, *file; void (*write)(const struct training *, struct cells *);
} tables[] = {
    {"trials", "trials.tsv", write_trials},
    {"events", "events.tsv", write_events},
    {"phases", "phases.tsv", write_phases},
    {"progress", "progress.tsv", write_progress},
};

/* A file while it is written. */
struct writing {
    const struct training *training;
    size_t table;
    const json_t *digests;       /* of the tables that are written */
};

static void write_table(const void *context, FILE *out)
{
    const struct writing *writing = context;
    struct cells cells = {.out = out};

    tables[writing->table].write(writing->training, &cells);
    cells_flush(&cells);
}

/* The id is a digest of all that the training is. */
static void write_result(const void *context, FILE *out)
{
    const struct writing *writing = context;
    json_t *json = training_json(writing->training);

    digests_identify(json, writing->digests);
    json_put(json, "build", json_words(sources_digest));
    json_print(json, out);
    json_decref(json);
}

int training_check(const char *dir, struct error *err)
{
    const char *names[COUNT(tables) + 1] = {0};

    for (size_t i = 0; i < COUNT(tables); i++)
        names[i] = tables[i].name;
    return digests_check(dir, &(struct digests_kind){"train", "training", names, NULL}, err);
}

int training_write(const struct training *training, struct folder *folder, struct error *err)
{
    json_t *digests = json_object();
    struct writing writing = {.training = training, .digests = digests};
    int rc = 0;

    for (size_t i = 0; i < COUNT(tables) && !rc; i++) {
        char digest[DIGEST_HEX] = "";

        writing.table = i;
        rc = folder_write(folder, tables[i].file, write_table, &writing, digest, err);
        json_put(digests, tables[i].name, json_words(digest));
    }
    if (!rc && (folder_write(folder, "result.json", write_result, &writing, NULL, err) || folder_commit(folder, err)))
        rc = -1;
    json_decref(digests);
    return rc;
}
