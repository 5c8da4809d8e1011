#include "train/trial.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"

const char *const loss_names[] = ENUM_NAMES(LOSSES);
const char *const trial_end_names[] = ENUM_NAMES(TRIAL_ENDS);
const char *const trial_event_names[] = ENUM_NAMES(TRIAL_EVENTS);

/* Nodes that are remembered until a recovery has ended; further ones are as rare as they are many. */
enum { LOST_MOST = 32 };

/* A trial under way. */
struct going {
    const struct trial_rules *rules;
    void (*observe)(void *context, const struct trial_event *event);
    void *context;
    struct trial trial;
    struct luck luck;
    double clock;                    /* of the course */
    size_t mark;                     /* the last finished checkpoint */
    bool recovers;
    int pool;                        /* spare nodes that are there */
    int missing;                     /* nodes that were lost and are not replaced yet */
    struct {
        double *items;
        size_t count, capacity;
    } repairs;                       /* s of wall time at which nodes come back, ascending */
    size_t repaired;                 /* of these, how many have */
    size_t row;                      /* of a trace: that will be next */
    int lost[LOST_MOST], nlost;      /* nodes that were lost since the training stands still */
    bool gone;                       /* all copies of a share in memory */
    bool stored;                     /* what is loaded comes from the storage, because copies in memory are lost */
};

static void tell(struct going *going, enum trial_event_kind kind, int node, const char *cause, double steps_lost)
{
    struct trial_event event = {going->trial.wall, kind, node, cause, steps_lost};

    if (going->observe)
        going->observe(going->context, &event);
}

static int warm_spares(const struct going *going)
{
    return going->rules->spares && going->rules->spares->warm ? going->rules->spares->nodes : 0;
}

static void return_repaired(struct going *going)
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

/* s until the next failure of any node on so many nodes, or `limit` where that comes first (*fails: false). The luck is
 * used up so far. */
static double until_failure(struct going *going, const struct zone *zone, double limit, bool *fails)
{
    const struct trace *trace = going->rules->failures->trace;
    double rate = going->rules->failures->rate * (zone->nodes + warm_spares(going)), seconds = limit;

    if (trace) {
        double until = going->row < trace->count ? fmax(0, trace->rows[going->row].time - going->trial.wall) : INFINITY;

        *fails = until < limit;
        return *fails ? until : limit;
    }
    *fails = going->luck.left < limit * rate;
    if (*fails)
        seconds = going->luck.left / rate;
    else
        going->luck.left -= limit * rate;
    return seconds;
}

/* The last finished checkpoint. Its clock may be behind the time at which it was finished, once more: it stays
 * finished. */
static size_t last_mark(struct going *going)
{
    return going->mark = course_mark(going->rules->course, going->mark, going->clock);
}

/* Nodes that the trace has up. */
static int nodes_up(const struct going *going)
{
    return going->row ? going->rules->failures->trace->rows[going->row - 1].nodes : 0;
}

/* The next row of the trace: the cause, if it takes nodes away that train. Which nodes it takes is luck. */
static const struct cause *trace_goes_on(struct going *going, const struct zone *zone)
{
    const struct trial_rules *rules = going->rules;
    const struct cause *cause = &rules->failures->causes[0];
    int up = nodes_up(going), lost, training = 0;

    lost = up - rules->failures->trace->rows[going->row].nodes;
    going->row++;
    for (int i = 0; i < lost; i++, up--)
        training += luck_share(&going->luck) * up < zone->nodes - training;
    if (!training)
        return NULL;
    going->trial.failures++;
    going->trial.nodes_lost += training;
    tell(going, EVENT_FAILURE, -1, cause->name,
         going->recovers ? 0 : course_steps_since(rules->course, last_mark(going), going->clock));
    return cause;
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

    int node = (int)(luck_share(&going->luck) * (zone->nodes + warm_spares(going)));
    const struct cause *cause = luck_cause(&going->luck, rules->failures);

    luck_draw(&going->luck, rules->failures);
    return_repaired(going);
    if (node >= zone->nodes && node - zone->nodes < going->pool && cause->loses_node) {
        tell(going, EVENT_SPARE_FAILURE, node, cause->name, 0);
        going->pool--;
        send_to_repair(going);
    }
    if (node >= zone->nodes - going->missing)
        return NULL;
    going->trial.failures++;
    tell(going, EVENT_FAILURE, node, cause->name,
         going->recovers ? 0 : course_steps_since(rules->course, last_mark(going), going->clock));
    if (cause->loses_node) {
        going->trial.nodes_lost++;
        send_to_repair(going);
        going->missing += rules->spares != NULL;
        going->gone |= copies_lost(going, node, zone->nodes);
    }
    return cause;
}

/* The training goes on for so many seconds, up to a time on the clock. A part that it passes once more, after a
 * failure, it passes later. */
static void advance(struct going *going, double seconds, double to)
{
    double part = going->rules->course->end / TRIAL_PARTS, behind = going->trial.wall - going->clock;
    int first = part > 0 ? (int)(going->clock / part) : TRIAL_PARTS;

    for (int i = first; i <= TRIAL_PARTS && i * part <= to; i++)
        if (i * part >= going->clock)
            going->trial.passed[i] = behind + i * part;
    going->clock = to;
    going->trial.wall += seconds;
}

/* The training goes on until it ends (NULL) or a failure ends it, whose work since the last checkpoint is lost then. */
static const struct cause *go_on(struct going *going)
{
    const struct course *course = going->rules->course;
    const struct zone *zone = course_zone(course, going->clock), *last = course->zones.items + course->zones.count - 1;
    const struct cause *cause = NULL;

    while (!cause) {
        bool fails;
        double seconds = until_failure(going, zone, zone->end - going->clock, &fails), lost;

        advance(going, seconds, fails ? going->clock + seconds : zone->end);
        if (!fails && zone == last)
            return NULL;
        zone += !fails;
        if (!fails || !(cause = node_fails(going, zone)))
            continue;
        lost = going->clock - course->marks.items[last_mark(going)].resumes;
        going->clock -= lost;
        going->trial.losses[LOSS_WORK] += lost;
        going->trial.gpu_seconds += lost * zone->gpus;
        going->trial.joules += lost * zone->power;
    }
    return cause;
}

/* So much wall time in which the training stands still. */
static void stand(struct going *going, const struct zone *zone, double seconds, enum loss loss)
{
    going->trial.wall += seconds;
    going->trial.losses[loss] += seconds;
    going->trial.gpu_seconds += seconds * zone->gpus;
    going->trial.joules += seconds * zone->idle_power;
}

/* So much of a recovery. The cause, where a failure comes into it. */
static const struct cause *spend(struct going *going, const struct zone *zone, double seconds, enum loss loss)
{
    const struct cause *cause = NULL;
    bool fails = true;

    while (fails && !cause) {
        double passed = until_failure(going, zone, seconds, &fails);

        seconds -= passed;
        stand(going, zone, passed, loss);
        if (fails)
            cause = node_fails(going, zone);
    }
    return cause;
}

/* Takes spare nodes for those that are missing, once there are enough. The cause of a failure that comes before. */
static const struct cause *take_spares(struct going *going, const struct zone *zone)
{
    const struct spares_spec *spares = going->rules->spares;
    const struct cause *cause = NULL;

    return_repaired(going);
    while (spares && !cause && going->missing > going->pool) {
        if (spares->empty == SPARES_STOP) {
            going->trial.end = TRIAL_STOPPED;
            return NULL;
        }
        cause = spend(going, zone, fmax(0, going->repairs.items[going->repaired] - going->trial.wall), LOSS_WAITING);
        return_repaired(going);
    }
    if (cause)
        return cause;
    going->pool -= going->missing;
    going->missing = 0;
    return NULL;
}

/* The same of nodes that a trace has up: waits until they are enough. A trace that ends before never has them. */
static void wait_for_trace(struct going *going, const struct zone *zone)
{
    const struct trace *trace = going->rules->failures->trace;

    while (trace && nodes_up(going) < zone->nodes && going->trial.end == TRIAL_FINISHED) {
        if (going->row == trace->count) {
            going->trial.end = TRIAL_STUCK;
            return;
        }
        stand(going, zone, fmax(0, trace->rows[going->row].time - going->trial.wall), LOSS_WAITING);
        going->row++;
    }
}

/* From a failure until the training goes on; a failure on the way begins it anew. */
static void recover(struct going *going, const struct cause *cause)
{
    const struct course *course = going->rules->course;

    going->recovers = true;
    while (cause && going->trial.end == TRIAL_FINISHED) {
        const struct cause *of = cause;
        const struct zone *zone = course_zone(course, going->clock);

        if (going->gone)
            go_back_to_stored(going, zone);
        going->gone = false;
        zone = course_zone(course, going->clock);
        if (going->trial.wall > going->rules->most)
            going->trial.end = TRIAL_STUCK;
        else if (!(cause = spend(going, zone, of->detect, LOSS_DETECTION)) && !(cause = take_spares(going, zone)) &&
                 (wait_for_trace(going, zone), true) &&
                 going->trial.end == TRIAL_FINISHED && !(cause = spend(going, zone, of->replace, LOSS_REPLACEMENT)) &&
                 !(cause = spend(going, zone, of->init, LOSS_INITIALISATION)))
            cause = spend(going, zone, going->stored ? zone->cost.load_stored : zone->cost.load, LOSS_LOADING);
    }
    going->recovers = going->stored = false;
    going->nlost = 0;
    if (going->trial.end == TRIAL_FINISHED)
        tell(going, EVENT_RESUMED, -1, NULL, 0);
}

struct trial trial_run(const struct trial_rules *rules, uint64_t number,
                       void (*observe)(void *context, const struct trial_event *event), void *context)
{
    struct going going = {
        .rules = rules, .observe = observe, .context = context,
        .trial = {.gpu_seconds = rules->course->gpu_seconds, .joules = rules->course->joules, .end = TRIAL_FINISHED},
        .luck = {.seed = random_bits(rules->seed, number)},
        .pool = rules->spares ? rules->spares->nodes : 0,
    };
    static const enum trial_event_kind ends[] = {EVENT_FINISHED, EVENT_STOPPED, EVENT_STUCK};
    const struct cause *cause;

    if (rules->failures->count)
        luck_draw(&going.luck, rules->failures);
    else
        going.luck.left = INFINITY;
    wait_for_trace(&going, rules->course->zones.items);
    while (going.trial.end == TRIAL_FINISHED && (cause = go_on(&going)))
        recover(&going, cause);
    if (going.trial.end == TRIAL_FINISHED) {
        double lost = 0;

        for (int loss = 0; loss < LOSS_COUNT; loss++)
            lost += going.trial.losses[loss];
        going.trial.wall = rules->course->end + lost;        /* without the rounding of many small sums */
        going.trial.passed[TRIAL_PARTS] = going.trial.wall;
    }
    tell(&going, ends[going.trial.end], -1, NULL, 0);
    free(going.repairs.items);
    return going.trial;
}
