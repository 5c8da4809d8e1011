#include "train/trial_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "train/course.h"

const char *const loss_names[] = ENUM_NAMES(LOSSES);
const char *const trial_end_names[] = ENUM_NAMES(TRIAL_ENDS);
const char *const trial_event_names[] = ENUM_NAMES(TRIAL_EVENTS);

/* The training goes back to the last checkpoint that is whole in the storage, or to its beginning. */
static void go_back_to_stored(struct going *going, const struct zone *zone)
{
    const struct trial_rules *rules = going->rules;
    const struct mark *marks = rules->course->marks.items;
    size_t every = (size_t)rules->stored, stored = every ? going->mark / every * every : 0;
    double lost;

    while (stored && marks[stored].resumes + zone->cost.write_stored > marks[going->mark].safe)
        stored -= every;
    lost = going->clock - marks[stored].resumes;
    going->mark = stored;
    going->clock -= lost;
    going->stored = true;
    going->trial.losses[LOSS_WORK] += lost;
    going->trial.gpu_seconds += lost * zone->paid;
    going->trial.joules += lost * zone->power;
    going->trial.memory_lost++;
}

/* The training goes on for a number of seconds, up to a time on the clock. Where it passes a part of the clock once
 * more after a failure, the last time counts. The course has the GPUs and the energy of the whole training. */
static void advance(struct going *going, const struct zone *zone, double seconds, double to)
{
    const struct course *course = going->rules->course;
    double part = course->end / TRIAL_PARTS, behind = going->trial.wall - going->clock, passed = to - going->clock;
    int first = part > 0 ? (int)(going->clock / part) : TRIAL_PARTS;

    for (int i = first; i <= TRIAL_PARTS && i * part <= to; i++)
        if (i * part >= going->clock)
            going->trial.passed[i] = zone->pace == 1 ? behind + i * part :
                                     going->trial.wall + (i * part - going->clock) / zone->pace;
    if (going->fewer || zone->pace != 1) {
        double redundant = passed * (1 / course->zones.items->pace - 1), share = share_there(going, zone);

        going->trial.losses[LOSS_REDUNDANT] += redundant;
        going->trial.losses[LOSS_FEWER] += seconds - passed - redundant;
        going->trial.gpu_seconds += seconds * zone->paid * share - passed * course->zones.items->paid;
        going->trial.joules += seconds * zone->power * share - passed * course->joules / course->end;
    }
    going->clock = to;
    going->trial.wall += seconds;
}

/* The training goes on until it ends (NULL) or a failure ends it, whose work since the last checkpoint is lost then. */
static const struct cause *go_on(struct going *going)
{
    const struct course *course = going->rules->course;
    const struct zone *zone = zone_now(going), *last = course->zones.items + course->zones.count - 1;
    const struct cause *cause = NULL;

    while (!cause) {
        struct growth growth = trial_next_growth(going, zone);
        double left = (zone->end - going->clock) / zone->pace, seconds;
        bool looks = growth.seconds < left, fails;

        seconds = trial_until_failure(going, zone, looks ? growth.seconds : left, &fails);
        advance(going, zone, seconds, fails ? going->clock + seconds * zone->pace : looks ? growth.clock : zone->end);
        if (!fails && !looks && (course->shrunk || zone == last))
            return NULL;
        if (!fails && growth.grows && looks && (cause = trial_grow(going)))
            return cause;
        zone = course->shrunk ? zone_now(going) : zone + !fails;
        if (!fails || !(cause = trial_node_fails(going, zone)))
            continue;
        if (!going->kept)
            trial_lose_work(going, zone);
        else if (going->rules->elastic->system != ELASTIC_REDUNDANCY)
            trial_lose_step(going, zone);
    }
    return cause;
}

/* Whether a node takes the place of a lost one: a training on fewer nodes may have none. */
static bool replaces(const struct going *going, const struct cause *of, const struct zone *zone)
{
    return !going->rules->elastic || !of->loses_node || zone->nodes > going->held - going->nlost;
}

/* What follows once the nodes are there. */
static const struct cause *restart(struct going *going, const struct cause *of, const struct zone *zone)
{
    const struct cause *cause;

    if ((replaces(going, of, zone) && (cause = trial_spend(going, zone, of->replace, LOSS_REPLACEMENT))) ||
        (cause = trial_spend(going, zone, of->init, LOSS_INITIALISATION)))
        return cause;
    return trial_spend(going, zone, going->stored ? zone->cost.load_stored : zone->cost.load, LOSS_LOADING);
}

/* From a failure until the training goes on; a failure on the way begins it anew. */
static void recover(struct going *going, const struct cause *cause)
{
    going->recovers = true;
    while (cause && going->trial.end == TRIAL_FINISHED) {
        const struct cause *of = cause;
        const struct zone *zone = zone_now(going);

        if (going->gone)
            go_back_to_stored(going, zone);
        going->gone = false;
        zone = zone_now(going);
        if (going->trial.wall > going->rules->most)
            going->trial.end = TRIAL_STUCK;
        else if (!(cause = trial_spend(going, zone, of->detect, LOSS_DETECTION)) && going->kept)
            cause = trial_reroute(going);
        else if (!cause && !(cause = trial_take_spares(going, zone)) && (trial_wait_for_trace(going, zone), true) &&
                 going->trial.end == TRIAL_FINISHED)
            cause = restart(going, of, zone_now(going));
    }
    going->recovers = going->stored = going->kept = false;
    trial_settle(going);
    if (going->trial.end == TRIAL_FINISHED)
        trial_tell(going, EVENT_RESUMED, -1, NULL, 0);
}

struct trial trial_run(const struct trial_rules *rules, uint64_t number,
                       void (*observe)(void *context, const struct trial_event *event), void *context)
{
    struct going going = {
        .rules = rules, .observe = observe, .context = context,
        .trial = {.gpu_seconds = rules->course->gpu_seconds, .joules = rules->course->joules, .end = TRIAL_FINISHED},
        .random = {.seed = random_bits(rules->seed, number)},
        .pool = rules->spares ? rules->spares->nodes : 0,
    };
    static const enum trial_event_kind ends[] = {EVENT_FINISHED, EVENT_STOPPED, EVENT_STUCK};
    const struct cause *cause;

    if (rules->failures->count)
        random_failures_next(&going.random, rules->failures);
    else
        going.random.left = INFINITY;
    trial_wait_for_trace(&going, rules->course->zones.items);
    trial_settle(&going);
    while (going.trial.end == TRIAL_FINISHED && (cause = go_on(&going)))
        recover(&going, cause);
    if (going.trial.end == TRIAL_FINISHED) {
        double lost = 0;

        for (int loss = 0; loss < LOSS_COUNT; loss++)
            lost += going.trial.losses[loss];
        going.trial.wall = rules->course->end + lost;        /* without the rounding of many small sums */
        going.trial.passed[TRIAL_PARTS] = going.trial.wall;
    }
    trial_tell(&going, ends[going.trial.end], -1, NULL, 0);
    free(going.repairs.items);
    return going.trial;
}
