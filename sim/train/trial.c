#include "train/trial_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "course/course.h"

const char *const loss_names[] = ENUM_NAMES(LOSSES);
const char *const trial_end_names[] = ENUM_NAMES(TRIAL_ENDS);
const char *const trial_event_names[] = ENUM_NAMES(TRIAL_EVENTS);

void trial_tell(struct going *going, enum trial_event_kind kind, int node, const char *cause, double steps_lost)
{
    struct trial_event event = {going->trial.wall, kind, node, cause, steps_lost};

    if (going->observe)
        going->observe(going->context, &event);
}

static int warm_spares(const struct going *going)
{
    return going->rules->spares && going->rules->spares->warm ? going->rules->spares->nodes : 0;
}

void trial_return_repaired(struct going *going)
{
    while (going->repaired < going->repairs.count && going->repairs.items[going->repaired] <= going->trial.wall) {
        going->repaired++;
        going->pool++;
    }
}

static void send_to_repair(struct going *going)
{
    const struct spares_spec *spares = going->rules->spares;

    if (spares && !isnan(spares->repair))
        *GROW(&going->repairs) = going->trial.wall + spares->repair;
}

/* s until the next failure of any node on so many nodes, or `limit` where that comes first (*fails: false). Uses up
 * that part of the random time. */
static double until_failure(struct going *going, const struct zone *zone, double limit, bool *fails)
{
    const struct trace *trace = going->rules->failures->trace;
    double rate = going->rules->failures->rate * (zone_whole(going, zone)->nodes + warm_spares(going)), seconds = limit;

    if (trace) {
        double until = going->row < trace->count ? fmax(0, trace->rows[going->row].time - going->trial.wall) : INFINITY;

        *fails = until < limit;
        return *fails ? until : limit;
    }
    *fails = going->random.left < limit * rate;
    if (*fails)
        seconds = going->random.left / rate;
    else
        going->random.left -= limit * rate;
    return seconds;
}

/* The last finished checkpoint. Its clock may be behind the time at which it was finished, once more: it stays
 * finished. */
size_t trial_last_mark(struct going *going)
{
    return going->mark = course_mark(going->rules->course, going->mark, going->clock);
}

/* A failure has come, with its nodes. Whether the work since the last checkpoint is kept; in a recovery, still. */
static const struct cause *fail(struct going *going, const struct zone *zone, int node, const struct cause *cause)
{
    bool kept = going->kept;

    going->kept = cause->loses_node && (kept || !going->recovers) && trial_survives(going);
    going->trial.failures++;
    trial_tell(going, EVENT_FAILURE, node, cause->name,
               going->recovers || going->kept ?
                   0 :
                   course_steps_since(going->rules->course, trial_last_mark(going), going->clock));
    if (going->recovers && kept && !going->kept)
        trial_lose_work(going, zone);
    return cause;
}

/* Nodes that train or stand still for a recovery: those of its shape, without those that are lost since. */
static int training_nodes(const struct going *going, const struct zone *zone)
{
    return zone->nodes - (zone->nodes == going->held ? going->nlost : 0);
}

/* The next row of the trace: the cause, if it takes nodes away that train. Which nodes it takes is random. */
static const struct cause *trace_goes_on(struct going *going, const struct zone *zone)
{
    const struct trial_rules *rules = going->rules;
    int up = trial_nodes_up(going), lost, training = 0, there = training_nodes(going, zone);

    lost = up - rules->failures->trace->rows[going->row].nodes;
    going->row++;
    for (int i = 0; i < lost; i++, up--) {
        double index = random_failures_share(&going->random) * up;

        if (index >= there - training)
            continue;
        training++;
        trial_lose_place(going, trial_place(going, (int)index));
    }
    if (!training)
        return NULL;
    going->trial.nodes_lost += training;
    return fail(going, zone, -1, &rules->failures->causes[0]);
}

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
    going->trial.gpu_seconds += lost * zone->gpus;
    going->trial.joules += lost * zone->power;
    going->trial.memory_lost++;
}

/* A node is lost that holds copies of checkpoints: whether no other one of its group is left. */
static bool copies_lost(struct going *going, int node, int nodes)
{
    int copies = going->rules->copies, groups = nodes / (copies ? copies : 1), gone = 1;

    for (int i = 0; i < going->nlost && copies; i++) {
        if (going->lost[i] == node)
            return false;
        gone += going->lost[i] / copies == node / copies && node / copies < groups;
    }
    if (going->nlost < LOST_MOST)
        going->lost[going->nlost++] = node;
    return copies && gone == copies;
}

/* A node's time to fail has come: the cause, if the training fails with it. The node may be a warm spare, or one that
 * is away: NULL then. */
static const struct cause *node_fails(struct going *going, const struct zone *zone)
{
    const struct trial_rules *rules = going->rules;

    if (rules->failures->trace)
        return trace_goes_on(going, zone);

    int nodes = zone_whole(going, zone)->nodes;
    int node = (int)(random_failures_share(&going->random) * (nodes + warm_spares(going)));
    const struct cause *cause = random_failures_cause(&going->random, rules->failures);

    random_failures_next(&going->random, rules->failures);
    trial_return_repaired(going);
    if (node >= nodes && node - nodes < going->pool && cause->loses_node) {
        trial_tell(going, EVENT_SPARE_FAILURE, node, cause->name, 0);
        going->pool--;
        send_to_repair(going);
    }
    if (node >= nodes - going->missing)
        return NULL;
    if (cause->loses_node) {
        going->trial.nodes_lost++;
        send_to_repair(going);
        going->missing += rules->spares != NULL;
        if (rules->elastic)
            trial_lose_place(going, trial_place(going, node));
        else
            going->gone |= copies_lost(going, node, nodes);
    }
    return fail(going, zone, node, cause);
}

/* The training goes on for so many seconds, up to a time on the clock. A part that it passes once more, after a
 * failure, it passes later. Of GPUs and energy the course has what the whole training takes. */
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
        going->trial.gpu_seconds += seconds * zone->gpus * share - passed * course->zones.items->gpus;
        going->trial.joules += seconds * zone->power * share - passed * course->joules / course->end;
    }
    going->clock = to;
    going->trial.wall += seconds;
}

/* The training goes back on its clock by so much work, which was done at that pace. */
static void lose(struct going *going, const struct zone *zone, double lost, double pace)
{
    const struct course *course = going->rules->course;
    double redundant = lost * (1 / course->zones.items->pace - 1);

    going->clock -= lost;
    going->trial.losses[LOSS_WORK] += lost / pace;
    going->trial.losses[LOSS_FEWER] -= lost / pace - lost - redundant;
    going->trial.losses[LOSS_REDUNDANT] -= redundant;
    going->trial.gpu_seconds += lost * zone_whole(going, zone)->gpus;
    going->trial.joules += lost * (going->fewer || zone->pace != 1 ? course->joules / course->end : zone->power);
}

/* The work since the last checkpoint is lost. Where it was done by several shapes, it counts with the pace of the
 * whole. */
void trial_lose_work(struct going *going, const struct zone *zone)
{
    const struct course *course = going->rules->course;

    lose(going, zone, going->clock - course->marks.items[trial_last_mark(going)].resumes,
         trial_restarts(going) ? zone->pace : course->zones.items->pace);
}

void trial_lose_step(struct going *going, const struct zone *zone)
{
    const struct course *course = going->rules->course;

    lose(going, zone, going->clock - course_step_begin(course, trial_last_mark(going), going->clock), zone->pace);
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

        seconds = until_failure(going, zone, looks ? growth.seconds : left, &fails);
        advance(going, zone, seconds, fails ? going->clock + seconds * zone->pace : looks ? growth.clock : zone->end);
        if (!fails && !looks && (course->shrunk || zone == last))
            return NULL;
        if (!fails && growth.grows && looks && (cause = trial_grow(going)))
            return cause;
        zone = course->shrunk ? zone_now(going) : zone + !fails;
        if (!fails || !(cause = node_fails(going, zone)))
            continue;
        if (!going->kept)
            trial_lose_work(going, zone);
        else if (going->rules->elastic->system != ELASTIC_REDUNDANCY)
            trial_lose_step(going, zone);
    }
    return cause;
}

/* So much wall time in which the training stands still. */
void trial_stand(struct going *going, const struct zone *zone, double seconds, enum loss loss)
{
    going->trial.wall += seconds;
    going->trial.losses[loss] += seconds;
    going->trial.gpu_seconds += seconds * zone->gpus * share_there(going, zone);
    going->trial.joules += seconds * zone->idle_power * share_there(going, zone);
}

/* So much of a recovery. The cause, where a failure comes into it. */
const struct cause *trial_spend(struct going *going, const struct zone *zone, double seconds, enum loss loss)
{
    const struct cause *cause = NULL;
    bool fails = true;

    while (fails && !cause) {
        double passed = until_failure(going, zone, seconds, &fails);

        seconds -= passed;
        trial_stand(going, zone, passed, loss);
        if (fails)
            cause = node_fails(going, zone);
    }
    return cause;
}

/* What follows once the nodes are there. */
static const struct cause *restart(struct going *going, const struct cause *of, const struct zone *zone)
{
    const struct cause *cause;

    if ((cause = trial_spend(going, zone, of->replace, LOSS_REPLACEMENT)) ||
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
