#include "steady/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/replay.h"
#include "lower/lower.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* The search for a period in the timeline. */
struct search {
    const struct timeline *timeline;
    struct lane_ops by;      /* its program's operations */
    uint32_t *place;         /* an operation: where in by.ids it is */
    size_t *each;            /* a lane: its operations in a period */
    double *held;            /* a rank: B that it holds more at the end of a period than at its beginning */
    double from, to;         /* s: all ranks are in the stretch of their rows that repeats */
    double length;           /* s: the period that is tried */
    int micro_batches;       /* and by how many its works are later */
};

struct lane_ops lane_ops_of(const struct program *program)
{
    size_t lanes = program->lanes.count;
    size_t *next = xcalloc(lanes + 1, sizeof *next);
    struct lane_ops by = {xcalloc(lanes + 2, sizeof *by.first), xcalloc(program->ops.count + 1, sizeof *by.ids)};

    for (size_t i = 0; i < program->ops.count; i++)
        by.first[program->ops.items[i].lane + 1]++;
    for (size_t lane = 0; lane < lanes; lane++)
        by.first[lane + 1] += by.first[lane];
    memcpy(next, by.first, lanes * sizeof *next);
    for (uint32_t i = 0; i < program->ops.count; i++)
        by.ids[next[program->ops.items[i].lane]++] = i;
    free(next);
    return by;
}

void lane_ops_release(struct lane_ops *by)
{
    free(by->first);
    free(by->ids);
    *by = (struct lane_ops){0};
}

/* The works that begin and end the stretch of a program rank's row, as operations have them. */
struct bounds { int what[2], stage[2], mb[2]; bool seen[2]; };

static void note_bound(struct bounds *bounds, int which, const struct plan *plan, int rank, struct work work)
{
    bounds->what[which] = (int)work_what(work.kind);
    bounds->stage[which] = plan_virtual_stage(plan, rank, work.chunk);
    bounds->mb[which] = work.mb;
}

/* Sets the time in which all ranks are in the stretches of their rows: from the last one's first work to the first one's
 * last work. False: there is none. */
static bool find_stretch(struct search *search, const struct shorter *shorter)
{
    const struct program *program = search->timeline->program;
    const struct plan *plan = &shorter->workload.plan;
    struct bounds *bounds = xcalloc((size_t)program->ranks, sizeof *bounds);
    bool all = true;

    for (int r = 0; r < program->ranks; r++) {
        int rank = r % plan->stages;
        const struct work *items = shorter->workload.rows[rank].items;

        note_bound(&bounds[r], 0, plan, rank, items[shorter->period.rows[rank].first]);
        note_bound(&bounds[r], 1, plan, rank, items[period_end(&shorter->period, rank, shorter->taken) - 1]);
    }
    search->from = 0;
    search->to = INFINITY;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];
        struct bounds *own = &bounds[lane->rank];

        for (int which = 0; which < 2 && lane->kind == LANE_COMPUTE; which++) {
            if (op->what != own->what[which] || op->stage != own->stage[which] || op->mb != own->mb[which])
                continue;
            own->seen[which] = true;
            if (which == 0)
                search->from = fmax(search->from, search->timeline->start[i]);
            else
                search->to = fmin(search->to, search->timeline->start[i]);
        }
    }
    for (int r = 0; r < program->ranks; r++)
        all = all && (!scenario_has_rank(shorter->workload.scenario, r) || (bounds[r].seen[0] && bounds[r].seen[1]));
    free(bounds);
    return all && search->to > search->from;
}

/* The place of the lane's first operation that does not start before then. */
static size_t first_since(const struct search *search, size_t lane, double time)
{
    size_t low = search->by.first[lane], high = search->by.first[lane + 1];

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (search->timeline->start[search->by.ids[middle]] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool apart(const struct search *search, double a, double b)
{
    return fabs(b - a - search->length) <= ROUNDING * search->to;
}

/* Whether operation b is operation a, a period later. */
static bool repeats(const struct search *search, uint32_t a, uint32_t b)
{
    const struct timeline *timeline = search->timeline;
    const struct program *program = timeline->program;
    const struct op *x = &program->ops.items[a], *y = &program->ops.items[b];
    struct dep_list of_x = program_deps(program, x), of_y = program_deps(program, y);
    bool same = x->kind == y->kind && x->what == y->what && x->stage == y->stage && x->traits == y->traits &&
                x->amount == y->amount && x->continues == y->continues && x->overlapped == y->overlapped &&
                y->mb == (x->mb < 0 ? x->mb : x->mb + search->micro_batches) && of_x.count == of_y.count;

    for (size_t d = 0; d < of_x.count && same; d++) {
        uint32_t p = of_x.items[d], q = of_y.items[d], lane = program->ops.items[p].lane;

        same = lane == program->ops.items[q].lane &&
               (p == q || search->place[q] - search->place[p] == search->each[lane]);
    }
    return same && apart(search, timeline->start[a], timeline->start[b]) &&
           apart(search, timeline->end[a], timeline->end[b]) && timeline->end[b] - timeline->start[b] <= search->length;
}

/* Whether the lane repeats the operations of the period before the last one in the last one, and the operation that was
 * under way when the former began. An idle lane must have nothing under way. */
static bool lane_repeats(const struct search *search, size_t lane, double end)
{
    const struct program *program = search->timeline->program;
    size_t from = first_since(search, lane, end - 2 * search->length), each = search->each[lane];
    bool under_way = from > search->by.first[lane] &&
                     search->timeline->end[search->by.ids[from - 1]] > end - 2 * search->length;

    if (under_way && (!each || !repeats(search, search->by.ids[from - 1], search->by.ids[from - 1 + each])))
        return false;
    for (size_t i = from; i < from + each; i++) {
        const struct op *op = &program->ops.items[search->by.ids[i]];
        const struct traits *traits = op_traits(program, op);

        if (!repeats(search, search->by.ids[i], search->by.ids[i + each]))
            return false;
        search->held[program->lanes.items[lane].rank] += traits->takes - traits->frees;
    }
    return true;
}

/* Whether the last period before `end` has the same events as the period before it. */
static bool period_repeats(struct search *search, double end)
{
    const struct program *program = search->timeline->program;
    bool same = true;

    for (size_t lane = 0; lane < program->lanes.count && same; lane++) {
        size_t middle = first_since(search, lane, end - search->length);

        search->each[lane] = first_since(search, lane, end) - middle;
        same = middle - first_since(search, lane, end - 2 * search->length) == search->each[lane];
    }
    memset(search->held, 0, (size_t)program->ranks * sizeof *search->held);
    for (size_t lane = 0; lane < program->lanes.count && same; lane++)
        same = lane_repeats(search, lane, end);
    for (int rank = 0; rank < program->ranks && same; rank++)
        same = fabs(search->held[rank]) < 1;
    return same;
}

/* Tries the periods of the first rank's last work in the stretch, from the shortest one on. Notes the shortest one of
 * those that the micro-batches which were taken out are no multiple of. */
static bool find_period(struct search *search, struct shorter *shorter, struct repeat *repeat)
{
    const struct timeline *timeline = search->timeline;
    const struct op *ops = timeline->program->ops.items;
    /* What begins together with the first work beyond the stretch is beyond it too, whatever rounding says. */
    double end = search->to * (1 - 10 * ROUNDING);
    size_t lane = 0, last;

    while (timeline->program->lanes.items[lane].kind != LANE_COMPUTE)
        lane++;
    last = first_since(search, lane, end);
    for (size_t i = last; last > search->by.first[lane] && i-- > search->by.first[lane];) {
        const struct op *op = &ops[search->by.ids[i]], *of = &ops[search->by.ids[last - 1]];

        search->length = timeline->start[search->by.ids[last - 1]] - timeline->start[search->by.ids[i]];
        search->micro_batches = of->mb - op->mb;
        if (end - 2 * search->length < search->from)
            return false;
        if (search->micro_batches <= 0 || op->what != of->what || op->stage != of->stage ||
            (shorter->found && shorter->taken % search->micro_batches) || !period_repeats(search, end))
            continue;
        if (shorter->taken % search->micro_batches) {
            shorter->found = search->micro_batches;
            continue;
        }
        shorter->found = 0;
        *repeat = (struct repeat){.from = end - search->length, .to = end,
                                  .times = shorter->taken / search->micro_batches};
        return true;
    }
    return false;
}

bool steady_find(const struct timeline *timeline, struct shorter *shorter, struct repeat *repeat)
{
    const struct program *program = timeline->program;
    struct search search = {.timeline = timeline, .by = lane_ops_of(program)};
    bool found = false;

    search.place = xcalloc(program->ops.count + 1, sizeof *search.place);
    for (size_t at = 0; at < program->ops.count; at++)
        search.place[search.by.ids[at]] = (uint32_t)at;
    search.each = xcalloc(program->lanes.count + 1, sizeof *search.each);
    search.held = xcalloc((size_t)program->ranks + 1, sizeof *search.held);
    if (!program->choices.count && find_stretch(&search, shorter))
        found = find_period(&search, shorter, repeat);
    free(search.held);
    free(search.each);
    free(search.place);
    lane_ops_release(&search.by);
    return found;
}
