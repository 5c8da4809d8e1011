#include "train/training.h"

#include <math.h>

#include "base/units.h"

enum { MOST = 16 };

struct notes { struct arena *arena; const char **items; size_t count; };

static void add(struct notes *notes, const char *text)
{
    if (notes->count < MOST)
        notes->items[notes->count++] = text;
}

static void add_failures(struct notes *notes, const struct training *training)
{
    const struct training_spec *spec = training->scenario->train;

    if (!training->failures.count)
        add(notes, "nothing fails: the scenario says no failures (train.failures; 'dtsim list failures' has published rates)");
    else if (spec->failures->named)
        add(notes, arena_printf(notes->arena, "failures as on another system: %s (%s)", spec->failures->named->title,
                                spec->failures->named->source));
    if (training->failures.count)
        add(notes, "rates by node hold for large jobs; small jobs fail more often than their nodes do, by other causes "
                   "(1,024 GPUs of RSC-1 each 7.9 h, its nodes' rate says 28.8 h: arXiv 2410.21680)");
    if (training->failures.count && isnan(training->expected_wall))
        add(notes, "no closed form of the whole training: it has exponential failures without a limit of spare nodes only");
}

static void add_checkpoints(struct notes *notes, const struct training *training)
{
    const struct checkpoint_cost *cost = &training->cost;
    double interval = training->chosen.interval;

    if (!training->scenario->train->checkpoint)
        return;
    if (cost->block > interval)
        add(notes, "a checkpoint takes longer than the work between two of them");
    if (training->failures.count && cost->block > training->mtbf)
        add(notes, "a checkpoint takes longer than the mean time between failures");
    if (training->scenario->train->checkpoint->mode == CHECKPOINT_ASYNC && cost->write - cost->block > interval)
        add(notes, "the training waits for checkpoints: writing one takes longer than the work between two of them");
}

static void add_money(struct notes *notes, const struct training *training)
{
    const struct scenario *scenario = training->scenario;

    if (isnan(scenario->price))
        add(notes, "no cost: the scenario says no price of a GPU-hour (price: '2 $/h')");
    if (isnan(training->energy.mean) && training->ended[TRIAL_FINISHED])
        add(notes, "no energy: nothing published says what this GPU and its node take; expected 'train: energy'");
    else if (training->ended[TRIAL_FINISHED] && !scenario->train->energy)
        add(notes, "energy is that of the computers alone: the scenario says no train.energy.pue");
}

const char **training_notes(struct arena *arena, const struct training *training)
{
    struct notes notes = {.arena = arena, .items = ARENA_ARRAY(arena, const char *, MOST + 1)};
    const struct step *step = steps_of(&training->steps, training->main);

    if (!isnan(step->expected_error))
        add(&notes, arena_printf(arena, "P10 to P90 are the luck of failures alone; predicted times of like iterations were "
                                 "off by %.1f %% on average", 100 * step->expected_error));
    else
        add(&notes, "P10 to P90 are the luck of failures alone; nothing published says how far off the iteration's time may be");
    if (training->steps.over > 0)
        add(&notes, arena_printf(arena, "whole steps train on %.0f more sample%s than was asked for", training->steps.over,
                                 training->steps.over == 1 ? "" : "s"));
    add_failures(&notes, training);
    add_checkpoints(&notes, training);
    if (training->course.zones.count > 1)
        add(&notes, "a change of the number of GPUs takes no time but that of a checkpoint");
    if (training->ended[TRIAL_STOPPED])
        add(&notes, arena_printf(arena, "%zu of %zu trials ended for lack of spare nodes; all numbers are of the others",
                                 training->ended[TRIAL_STOPPED], training->options.trials));
    if (training->ended[TRIAL_STUCK])
        add(&notes, arena_printf(arena, "%zu of %zu trials did not progress; all numbers are of the others",
                                 training->ended[TRIAL_STUCK], training->options.trials));
    add_money(&notes, training);
    return notes.items;
}
