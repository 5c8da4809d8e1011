/* The nodes that a training takes: spare nodes, nodes of a trace and, where it goes on with fewer, nodes that come
 * back. */
#include "train/trial_internal.h"

#include <math.h>

#include "train/course.h"

/* All nodes that are there, whether they train or not. */
static int nodes_there(const struct going *going)
{
    return going->rules->failures->trace ? trial_nodes_up(going) :
           going->rules->course->zones.items->nodes - going->missing + going->pool;
}

/* Takes the nodes that are there; false: they are too few. */
bool trial_resize(struct going *going)
{
    const struct course *course = going->rules->course;
    int whole = course->zones.items->nodes, there = nodes_there(going), before = zone_now(going)->nodes, nodes = whole;

    if (there < whole && !course->shrunk[there].gpus)
        return false;
    if (going->rules->elastic->system == ELASTIC_LIVEPUT)
        there = trial_foresee(going, there);
    going->fewer = there < whole ? there : 0;
    if (going->fewer)
        nodes = course->shrunk[there].nodes;
    going->holes = 0;
    going->missing = whole - nodes;
    going->pool = there - nodes;
    if (nodes != before)
        trial_tell(going, EVENT_RESIZED, nodes, NULL, 0);
    return true;
}

/* Whether more of the nodes that are there would train, or fill holes. */
static bool grows(const struct going *going, const struct zone *zone, int there)
{
    const struct course *course = going->rules->course;
    int whole = course->zones.items->nodes, may = there >= whole ? whole : course->shrunk[there].nodes;

    if (going->rules->elastic->system == ELASTIC_REDUNDANCY)
        return may > zone->nodes || (going->holes && may == zone->nodes);
    if (going->rules->elastic->system == ELASTIC_LIVEPUT)
        return may > zone->nodes && trial_foresee(going, there) > zone->nodes;
    return there >= whole || course->shrunk[there].pace > zone->pace;
}

/* When a training that begins again from a checkpoint has the next one, or another one its next step. */
static double next_change(struct going *going)
{
    const struct course *course = going->rules->course;
    size_t mark = trial_last_mark(going);

    if (!trial_restarts(going))
        return course_step_begin(course, mark, going->clock) + course->step;
    return mark + 1 < course->marks.count ? course->marks.items[mark + 1].safe : INFINITY;
}

struct growth trial_next_growth(struct going *going, const struct zone *zone)
{
    struct growth growth = {.seconds = INFINITY};

    if (!going->fewer && !going->holes)
        return growth;
    trial_return_repaired(going);
    if (grows(going, zone, nodes_there(going))) {
        growth.clock = next_change(going);
        growth.grows = isfinite(growth.clock);
        growth.seconds = (growth.clock - going->clock) / zone->pace;
    } else if (going->repaired < going->repairs.count) {
        /* a millisecond later it is there, however times round */
        growth.seconds = fmax(0, going->repairs.items[going->repaired] - going->trial.wall) + 1e-3;
        growth.clock = going->clock + growth.seconds * zone->pace;
    }
    return growth;
}

/* The training goes on from the checkpoint, or the step, that is finished now, on more nodes. The cause, where a
 * failure comes before.
 */
const struct cause *trial_grow(struct going *going)
{
    const struct cause *cause;

    if (!trial_restarts(going)) {
        int nodes = zone_now(going)->nodes, holes = going->holes;

        trial_resize(going);
        if (!holes && zone_now(going)->nodes == nodes)
            return NULL;
        cause = trial_spend(going, zone_now(going), zone_now(going)->reroute, LOSS_INITIALISATION);
        if (!cause)
            trial_settle(going);
        return cause;
    }
    trial_lose_work(going, zone_now(going));
    trial_resize(going);
    trial_settle(going);
    cause = trial_spend(going, zone_now(going), going->rules->init, LOSS_INITIALISATION);
    return cause ? cause : trial_spend(going, zone_now(going), zone_now(going)->cost.load, LOSS_LOADING);
}

/* Takes spare nodes for those that are missing, once there are enough, or goes on with fewer. The cause of a failure
 * that comes before. */
const struct cause *trial_take_spares(struct going *going, const struct zone *zone)
{
    const struct spares_spec *spares = going->rules->spares;
    bool shrinks = spares && spares->empty == SPARES_SHRINK;
    const struct cause *cause = NULL;

    trial_return_repaired(going);
    while (spares && !cause && (shrinks ? !trial_resize(going) : going->missing > going->pool)) {
        if (spares->empty == SPARES_STOP || going->repaired == going->repairs.count) {
            going->trial.end = TRIAL_STOPPED;
            return NULL;
        }
        going->waits = true;
        cause = trial_spend(going, zone, fmax(0, going->repairs.items[going->repaired] - going->trial.wall),
                            LOSS_WAITING);
        going->waits = false;
        trial_return_repaired(going);
    }
    if (cause || shrinks)
        return cause;
    going->pool -= going->missing;
    going->missing = 0;
    return NULL;
}

/* The same of nodes that a trace has up: waits until they are enough. A trace that ends before never has them. */
void trial_wait_for_trace(struct going *going, const struct zone *zone)
{
    const struct node_trace *trace = going->rules->failures->trace;
    bool shrinks = going->rules->course->shrunk != NULL;

    while (trace && (shrinks ? !trial_resize(going) : trial_nodes_up(going) < zone->nodes) &&
           going->trial.end == TRIAL_FINISHED) {
        if (going->row == trace->count) {
            going->trial.end = TRIAL_STUCK;
            return;
        }
        trial_stand(going, zone, fmax(0, trace->rows[going->row].time - going->trial.wall), LOSS_WAITING);
        going->row++;
    }
}

const struct cause *trial_reroute(struct going *going)
{
    const struct cause *cause;

    if (going->rules->elastic->system == ELASTIC_REDUNDANCY) {
        going->holes = going->nlost;
    } else {
        if ((cause = trial_take_spares(going, zone_now(going))))
            return cause;
        trial_wait_for_trace(going, zone_now(going));
        if (going->trial.end != TRIAL_FINISHED)
            return NULL;
    }
    return trial_spend(going, zone_now(going), zone_now(going)->reroute, LOSS_INITIALISATION);
}
