#include "run/what_if.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/program.h"

/* Whether it is a work, or a part of one: what computes on a compute lane. */
static bool is_work(const struct program *program, const struct op *op)
{
    return op->kind == OP_COMPUTE && op->what <= WHAT_UPDATE && op->stage >= 0 &&
           program->lanes.items[op->lane].kind == LANE_COMPUTE;
}

/* Of a program's works: what one of a stage takes on average, by kind (0 s: the stage has none of that kind); how many
 * forwards each rank does; and what a mean rank takes for the works of a kind that go with them. */
enum { KINDS = WHAT_UPDATE + 1 };
struct loads {
    int stages;
    double (*each)[KINDS];           /* s, by stage */
    double *forwards;                /* by rank */
    double mean[KINDS];              /* s; of updates and packs: for one of them */
};

/* Whether it begins a work: pieces of one follow one another, among pieces of other kinds. `last`: by rank and kind,
 * the operation before. */
static bool begins(const struct op *op, const struct op **last)
{
    const struct op *before = *last;

    *last = op;
    return !before || before->mb != op->mb || before->stage != op->stage || (op->mb < 0 && !op->continues);
}

/* How often an operation happens in the timeline, if there is one. */
static int times_of(const struct timeline *timeline, size_t id)
{
    return timeline ? timeline_times(timeline, id) : 1;
}

/* Fills `each` and `forwards`; counts[stage * KINDS + kind]: works. `seconds`, by rank and kind, is what the works of
 * the second pass take that go with the rank's forwards. */
static void walk_works(const struct program *program, const struct timeline *timeline, struct loads *loads,
                       double *counts, double (*seconds)[KINDS])
{
    const struct op **last = xcalloc((size_t)program->ranks * KINDS, sizeof *last);

    BUG_IF(!counts && !seconds);
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (!is_work(program, op))
            continue;
        int rank = program->lanes.items[op->lane].rank, times = times_of(timeline, i);
        bool first = begins(op, &last[rank * KINDS + op->what]);
        if (counts) {
            loads->each[op->stage][op->what] += times * op->amount;
            counts[op->stage * KINDS + op->what] += first ? times : 0;
            continue;
        }
        if (op->what != WHAT_FORWARD || !first)
            continue;
        loads->forwards[rank] += times;
        for (int what = 0; what < WHAT_PACK; what++)
            seconds[rank][what] += times * loads->each[op->stage][what];
    }
    free(last);
}

/* The mean of the values that are not 0; 0 where all are. Values are `step` apart. */
static double mean_of(const double *values, int count, int step)
{
    double sum = 0, some = 0;

    for (int i = 0; i < count; i++) {
        sum += values[i * step];
        some += values[i * step] > 0;
    }
    return some > 0 ? sum / some : 0;
}

struct loads *program_loads(const struct program *program, const struct timeline *timeline)
{
    int stages = program->stages;
    struct loads *loads = xcalloc(1, sizeof *loads);
    double *counts = xcalloc((size_t)stages * KINDS + 1, sizeof *counts);
    double (*seconds)[KINDS] = xcalloc((size_t)program->ranks + 1, sizeof *seconds);

    *loads = (struct loads){
        .stages = stages, .each = xcalloc((size_t)stages + 1, sizeof *loads->each),
        .forwards = xcalloc((size_t)program->ranks + 1, sizeof *loads->forwards),
    };
    walk_works(program, timeline, loads, counts, NULL);
    for (int i = 0; i < stages * KINDS; i++)
        if (counts[i] > 0)
            loads->each[i / KINDS][i % KINDS] /= counts[i];
    walk_works(program, timeline, loads, NULL, seconds);
    for (int what = 0; what < KINDS; what++)
        loads->mean[what] = what < WHAT_PACK ? mean_of(&seconds[0][what], program->ranks, KINDS) :
                                              mean_of(&loads->each[0][what], stages, KINDS);
    free(seconds);
    free(counts);
    return loads;
}

void loads_release(struct loads *loads)
{
    free(loads->each);
    free(loads->forwards);
    free(loads);
}

/* The factor that gives a work its share of what the mean rank takes. The mean is over the ranks that have such works:
 * one that a schedule spares them (the last one under Varuna does not recompute) is spared them still. */
static double factor_of(const struct program *program, const struct loads *loads, const struct op *op)
{
    BUG_IF(!loads);
    double forwards = op->what < WHAT_PACK ? loads->forwards[program->lanes.items[op->lane].rank] : 1;
    double each = loads->each[op->stage][op->what];

    return each > 0 && forwards > 0 ? loads->mean[op->what] / forwards / each : 1;
}

bool program_uneven(const struct program *program, const struct loads *loads)
{
    bool uneven = false;

    for (size_t i = 0; i < program->ops.count && !uneven; i++)
        if (is_work(program, &program->ops.items[i]))    /* sums of equal numbers differ by rounding */
            uneven = fabs(factor_of(program, loads, &program->ops.items[i]) - 1) > 1e-9;
    return uneven;
}

/* Most works of a rank and kind equal their predecessor, and so do their results. */
static void balance(struct program *program, const struct loads *loads)
{
    struct { double factor; uint32_t before, after; } *last = xcalloc((size_t)program->ranks * KINDS, sizeof *last);

    for (uint32_t i = 0; i < program->ops.count; i++) {
        struct op *op = &program->ops.items[i];
        uint32_t before = op->traits;

        if (!is_work(program, op))
            continue;
        size_t like = (size_t)program->lanes.items[op->lane].rank * KINDS + op->what;
        double factor = factor_of(program, loads, op);

        if (last[like].factor == factor && last[like].before == before) {
            op->amount *= factor;
            op->traits = last[like].after;
            continue;
        }
        program_scale(program, i, factor);
        last[like].factor = factor;
        last[like].before = before;
        last[like].after = op->traits;
    }
    free(last);
}

/* Whether a work waits for it because a pipeline neighbour does the work that it comes from. */
static bool from_neighbour(const struct program *program, const struct op *op, int rank)
{
    const struct lane *lane = &program->lanes.items[op->lane];

    return lane->kind == LANE_SEND_NEXT || lane->kind == LANE_SEND_PREVIOUS || lane->kind == LANE_COPY ||
           (lane->kind == LANE_COMPUTE && lane->rank != rank && op->what <= WHAT_UPDATE);
}

/* Updates keep what they wait for: that is replicas, and holders of tied weights. */
static void detach(struct program *program)
{
    struct deps *deps = &program->deps;
    uint32_t kept = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        struct op *op = &program->ops.items[i];
        bool keeps = !is_work(program, op) || op->what == WHAT_UPDATE;
        struct dep_list own = program_deps(program, op);
        int rank = program->lanes.items[op->lane].rank;

        op->first_dep = kept;
        for (size_t d = 0; d < own.count; d++)
            if (keeps || !from_neighbour(program, &program->ops.items[own.items[d]], rank))
                deps->items[kept++] = own.items[d];
    }
    deps->count = kept;
}

void program_what_if(struct program *program, unsigned which, const struct loads *loads)
{
    struct loads *own = which & WHAT_IF_BALANCED && !loads ? program_loads(program, NULL) : NULL;

    if (which & WHAT_IF_BALANCED)
        balance(program, own ? own : loads);
    if (own)
        loads_release(own);
    if (which & WHAT_IF_NO_BUBBLE)
        detach(program);
    for (uint32_t i = 0; which & WHAT_IF_NO_RECOMPUTATION && i < program->ops.count; i++)
        if (program->ops.items[i].what == WHAT_RECOMPUTE)
            program_scale(program, i, 0);
}
