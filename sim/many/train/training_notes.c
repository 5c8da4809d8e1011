/* What a reader should know before believing a training's numbers. */
#include "train/training.h"

#include <math.h>

#include "base/base.h"
#include "hardware/cluster.h"
#include "run/energy.h"
#include "scenario/scenario.h"
#include "train/closed_form.h"
#include "train/course_steps.h"

static const char *elastic_note(const struct training *training)
{
    static const char *const notes[] = {
        [ELASTIC_VARUNA] =
            "on fewer nodes the batch stays as it is, idle nodes do not fail, GPU-hours are of the nodes that train, "
            "and nodes that come back are taken when the next checkpoint is finished",
        [ELASTIC_REDUNDANCY] =
            "redundancy: the neighbour of a lost node does the work of both, and all wait for it; holes are filled "
            "after the step in which nodes come back; the work since the last checkpoint is lost where two "
            "neighbours are",
        [ELASTIC_TEMPLATES] =
            "templates: a loss costs the step under way, not the work since the last checkpoint, unless all replicas "
            "lose the same layers at once; at most two numbers of stages stand side by side",
        [ELASTIC_LIVEPUT] =
            "liveput: the nodes of the time ahead are known exactly, where Parcae predicts them; a loss costs the "
            "step under way, unless all replicas lose the same stage at once",
    };

    return notes[training->scenario->train->elastic->system];
}

bool training_keeps_work(const struct training *training)
{
    const struct elastic_spec *elastic = training->scenario->train->elastic;

    return elastic && elastic->system != ELASTIC_VARUNA;
}

static int faster_shape(const struct training *training)
{
    const struct shapes *shapes = &training->course.shapes;

    for (int nodes = 1; training->course.shrunk && nodes < shapes->nodes; nodes++)
        if (shapes->on[nodes].nodes == nodes && shapes->on[nodes].seconds < shapes->on[shapes->nodes].seconds)
            return nodes;
    return 0;
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
    const struct step *step = steps_of(&training->steps, training->main);

    if (isnan(scenario->price))
        note(notes, "no cost: the scenario says no price of a GPU-hour (price: '2 $/h')");
    if (isnan(training->energy.mean) && training->ended[TRIAL_FINISHED])
        note(notes, "no energy: nothing published says what this GPU and its node take; expected 'train: energy'");
    else if (training->ended[TRIAL_FINISHED] && !isnan(step->energy_error))
        note(notes, arena_printf(notes->arena, "energy may be off by %.0f %% at most, besides the time's error: nodes differ, GPUs that wait "
                                 "may take less, and a facility takes 1 to %g times its computers' (%g unless train.energy.pue says "
                                 "another); 'train: energy' says measured ones", 100 * step->energy_error, ENERGY_PUE_MOST, energy_pue(scenario)));
    const char *names = scenario_gpu_names(notes->arena, scenario, -1);

    const struct gpu_power *power = cluster_sheet(&scenario->cluster, 0)->power;

    if (!isnan(training->energy.mean) && !(scenario->train->energy && scenario->train->energy->gpu))
        note(notes, !power || !power->node ? "energy is estimated from the board's power on the GPU's data sheet" :
                    arena_printf(notes->arena,
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
        note(&notes, elastic_note(training));
    if (faster_shape(training))
        note(&notes,
             arena_printf(arena,
                          "a step takes less time on %d nodes than on all of them: the scenario's own shape is not "
                          "the fastest, and fewer nodes may be a gain",
                          faster_shape(training)));
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
