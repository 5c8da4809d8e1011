/* Failures of a trial: when the next one comes, which nodes it takes, and what work and time it costs. */
#include "train/trial_internal.h"

#include <math.h>

#include "base/base.h"
#include "train/course.h"

void trial_tell(struct going *going, enum trial_event_kind kind, int node, const char *cause, double steps_lost)
{
    struct trial_event event = {going->trial.wall, kind, node, cause, steps_lost};

    if (going->observe)
        going->observe(going->context, &event);
}

/* The last finished checkpoint. Its clock may be behind the time at which it was finished, once more: it stays
 * finished. */
size_t trial_last_mark(struct going *going)
{
    return going->mark = course_mark(going->rules->course, going->mark, going->clock);
}

/* Takes the training back on its clock by that much work, which was done at that pace. */
static void lose(struct going *going, const struct zone *zone, double lost, double pace)
{
    const struct course *course = going->rules->course;
    double redundant = lost * (1 / course->zones.items->pace - 1);

    going->clock -= lost;
    going->trial.losses[LOSS_WORK] += lost / pace;
    going->trial.losses[LOSS_FEWER] -= lost / pace - lost - redundant;
    going->trial.losses[LOSS_REDUNDANT] -= redundant;
    going->trial.gpu_seconds += lost * zone_whole(going, zone)->paid;
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

static int warm_spares(const struct going *going)
{
    return going->rules->spares && going->rules->spares->warm ? going->rules->spares->nodes : 0;
}

/* Nodes that fail, or are away and would: all of the whole training, or none while they wait. */
static int nodes_at_work(const struct going *going, const struct zone *zone)
{
    return going->waits ? 0 : zone_whole(going, zone)->nodes;
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

static bool is_lost(const struct going *going, int node)
{
    for (int i = 0; i < going->nlost; i++)
        if (going->lost[i] == node)
            return true;
    return false;
}

/* A node is lost that holds copies of checkpoints: whether all copies of a share are. `copies` nodes are a group, whose
 * members hold each other's shares. Nodes that are left over join the last group: there a node's share is also on those
 * that follow it around a ring. */
static bool copies_lost(struct going *going, int node, int nodes)
{
    int copies = going->rules->copies, last = copies ? (nodes / copies - 1) * copies : 0, run = 1;
    int first = copies && node < last ? node / copies * copies : last, size = node < last ? copies : nodes - last;

    if (!copies || is_lost(going, node))
        return false;
    if (going->nlost < LOST_MOST)
        going->lost[going->nlost++] = node;
    for (int i = 1; i < size && is_lost(going, first + (node - first + i) % size); i++)
        run++;
    for (int i = 1; i < size && is_lost(going, first + (node - first + size - i) % size); i++)
        run++;
    return run >= copies;
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

/* Nodes that train or stand still for a recovery: the nodes of the shape without nodes that were lost since. */
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

/* s until the next failure of any of the nodes, or `limit` where that comes first (*fails: false). Uses up that part of
 * the random time. */
double trial_until_failure(struct going *going, const struct zone *zone, double limit, bool *fails)
{
    const struct node_trace *trace = going->rules->failures->trace;
    double rate = going->rules->failures->rate * (nodes_at_work(going, zone) + warm_spares(going)), seconds = limit;

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

/* A node's time to fail has come: the cause, if the training fails with it. The node may be a warm spare, or one that
 * is away: NULL then. */
const struct cause *trial_node_fails(struct going *going, const struct zone *zone)
{
    const struct trial_rules *rules = going->rules;

    if (rules->failures->trace)
        return trace_goes_on(going, zone);

    int nodes = zone_whole(going, zone)->nodes, away = nodes - nodes_at_work(going, zone);
    int node = away + (int)(random_failures_share(&going->random) * (nodes - away + warm_spares(going)));
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

/* Adds wall time in which the training stands still. */
void trial_stand(struct going *going, const struct zone *zone, double seconds, enum loss loss)
{
    going->trial.wall += seconds;
    going->trial.losses[loss] += seconds;
    going->trial.gpu_seconds += seconds * zone->paid * share_there(going, zone);
    going->trial.joules += seconds * zone->idle_power * share_there(going, zone);
}

/* Adds a part of a recovery. Returns the cause of a failure that interrupts it. */
const struct cause *trial_spend(struct going *going, const struct zone *zone, double seconds, enum loss loss)
{
    const struct cause *cause = NULL;
    bool fails = true;

    while (fails && !cause) {
        double passed = trial_until_failure(going, zone, seconds, &fails);

        seconds -= passed;
        trial_stand(going, zone, passed, loss);
        if (fails)
            cause = trial_node_fails(going, zone);
    }
    return cause;
}
