/* Elastic trainings that keep their work when nodes are lost: other nodes hold the same parts of the model. */
#include "train/trial_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "train/course.h"
#include "train/shapes.h"

static const struct shape *shape_held(const struct going *going)
{
    return &going->rules->course->shapes.on[going->held];
}

int trial_place(const struct going *going, int index)
{
    int place = index;

    if (!going->held)
        return -1;
    for (int i = 0; i < going->nlost && going->lost[i] <= place; i++)
        place++;
    return place < going->held ? place : -1;
}

void trial_lose_place(struct going *going, int place)
{
    int at = going->nlost;

    if (place < 0 || going->nlost == LOST_MOST)
        return;
    while (at > 0 && going->lost[at - 1] > place)
        at--;
    memmove(going->lost + at + 1, going->lost + at, (size_t)(going->nlost - at) * sizeof *going->lost);
    going->lost[at] = place;
    going->nlost++;
}

/* More losses than are remembered are none that are survived. */
bool trial_survives(const struct going *going)
{
    if (trial_restarts(going) || going->nlost == LOST_MOST)
        return false;
    if (going->rules->elastic->system == ELASTIC_REDUNDANCY)
        return going->rules->course->holed[going->held].gpus &&
               shape_keeps_neighbours(shape_held(going), going->lost, going->nlost);
    return shape_keeps(shape_held(going), going->lost, going->nlost);
}

void trial_settle(struct going *going)
{
    const struct course *course = going->rules->course;

    if (going->holes)
        return;
    going->nlost = 0;
    going->held = course->shrunk ? zone_now(going)->nodes : 0;
}

/* A part of the time ahead in which as many nodes are up. */
struct segment {
    double seconds;
    int nodes, lost;
};
enum { SEGMENTS = 256 };

static int segments_of(const struct going *going, int there, struct segment segments[SEGMENTS])
{
    const struct node_trace *trace = going->rules->failures->trace;
    double now = going->trial.wall, end = now + going->rules->elastic->ahead;
    int count = 0, before = there;

    for (size_t row = going->row; count < SEGMENTS; row++) {
        double until = row < trace->count ? fmin(end, trace->rows[row].time) : end;

        if (until > now) {
            segments[count++] = (struct segment){until - now, there, before > there ? before - there : 0};
            before = there;
            now = until;
        }
        if (until >= end)
            return count;
        there = trace->rows[row].nodes;
    }
    return count;
}

/* The probability that a lost node is one of the nodes that train. */
static double is_hit(int nodes, const struct segment *segment)
{
    double misses = 1;
    int up = segment->nodes + segment->lost;

    for (int i = 0; i < segment->lost; i++)
        misses *= fmax(0, (double)(up - nodes - i) / (up - i));
    return 1 - misses;
}

/* s on the clock that a part of the time ahead brings on a number of nodes, when the training changes to it from
 * another number. */
static double good_for(const struct going *going, const struct segment *segment, int from, int to)
{
    const struct course *course = going->rules->course;
    const struct zone *zone = to == course->shapes.nodes ? course->zones.items : &course->shrunk[to];
    double stands = (from != to ? 1 : is_hit(to, segment)) * zone->reroute;

    return zone->pace * fmax(0, segment->seconds - stands);
}

/* Of all ways to change its shape when nodes come or go the one that gets furthest in the time ahead, by dynamic
 * programming (Duan et al. 2024, section 7), where Parcae predicts the nodes and here the trace is known. */
int trial_foresee(const struct going *going, int there)
{
    const struct shapes *shapes = &going->rules->course->shapes;
    struct segment segments[SEGMENTS];
    int whole = shapes->nodes, count = segments_of(going, there < whole ? there : whole, segments), best = 0;
    double *after = xcalloc(2 * (size_t)(whole + 1), sizeof *after), *before = after + whole + 1, furthest = -1;

    for (int s = count - 1; s >= 0; s--) {
        int first = s ? 0 : going->held, last = s ? whole : going->held;

        for (int from = first; from <= last; from++) {
            if (from != going->held && shapes->on[from].nodes != from)
                continue;
            before[from] = 0;
            for (int to = segments[s].nodes < whole ? segments[s].nodes : whole; to > 0; to--) {
                double far;

                if (shapes->on[to].nodes != to)
                    continue;
                far = good_for(going, &segments[s], from, to) + after[to];
                before[from] = fmax(before[from], far);
                if (!s && far > furthest) {
                    furthest = far;
                    best = to;
                }
            }
        }
        memcpy(after, before, ((size_t)whole + 1) * sizeof *after);
    }
    free(after);
    return best;
}
