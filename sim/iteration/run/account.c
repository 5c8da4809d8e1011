#include "run/account.h"

#include "base/progress.h"

#include <stdlib.h>

#include "engine/program.h"
#include "kernels/cost.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

const char *const account_names[] = ENUM_NAMES(ACCOUNT_KINDS);

enum account_kind account_of(enum op_what what)
{
    static const enum account_kind kinds[WHAT_COUNT] = {
        [WHAT_FORWARD] = ACCOUNT_FORWARD, [WHAT_BACKWARD] = ACCOUNT_BACKWARD,
        [WHAT_BACKWARD_INPUT] = ACCOUNT_BACKWARD_INPUT, [WHAT_BACKWARD_WEIGHT] = ACCOUNT_BACKWARD_WEIGHT,
        [WHAT_RECOMPUTE] = ACCOUNT_RECOMPUTE, [WHAT_PACK] = ACCOUNT_PACK, [WHAT_UPDATE] = ACCOUNT_UPDATE,
        [WHAT_SYNC] = ACCOUNT_EXPOSED_DATA,      /* where replicas meet; takes no time */
    };

    return kinds[what];
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Whether it is one of the lanes between a GPU and its host. */
static bool on_host(const struct lane *lane)
{
    return lane->kind == LANE_TO_HOST || lane->kind == LANE_FROM_HOST || lane->kind == LANE_HOST;
}

/* Whether `op` waited longer for `dep` than for `than`. If both ended together, the one on another lane counts, so that
 * rounding does not decide. */
static bool awaited_longer(const struct timeline *timeline, const struct op *op, const struct op *dep,
                           const struct op *than)
{
    const struct op *ops = timeline->program->ops.items;
    double end = timeline->end[dep - ops], other = timeline->end[than - ops];

    return than->lane == op->lane ? end >= other * (1 - ROUNDING) : end > other * (1 + ROUNDING);
}

/* The dependency that ended last, among operations on compute lanes or on all lanes but the host's; NULL: there is
 * none. */
static const struct op *latest(const struct timeline *timeline, const struct op *op, bool computed)
{
    const struct program *program = timeline->program;
    struct dep_list deps = program_deps(program, op);
    const struct op *last = NULL;

    for (size_t d = 0; d < deps.count; d++) {
        const struct op *dep = &program->ops.items[deps.items[d]];

        if (computed ? program->lanes.items[dep->lane].kind != LANE_COMPUTE : on_host(&program->lanes.items[dep->lane]))
            continue;
        if (!last || awaited_longer(timeline, op, dep, last))
            last = dep;
    }
    return last;
}

/* When it ended; 0 for none. */
static double ended(const struct timeline *timeline, const struct op *op)
{
    return op ? timeline->end[op - timeline->program->ops.items] : 0;
}

static bool uses_host(const struct program *program)
{
    for (size_t i = 0; i < program->lanes.count; i++)
        if (on_host(&program->lanes.items[i]))
            return true;
    return false;
}

static bool waits_for_host(const struct timeline *timeline, const struct op *op)
{
    const struct program *program = timeline->program;
    struct dep_list deps = program_deps(program, op);

    for (size_t d = 0; d < deps.count; d++)
        if (on_host(&program->lanes.items[program->ops.items[deps.items[d]].lane]))
            return true;
    return false;
}

static enum lane_kind lane_kind_of(const struct timeline *timeline, const struct op *op)
{
    return timeline->program->lanes.items[op->lane].kind;
}

/* What was copied to or from sockets: what that waited for. */
static const struct op *beyond_copies(const struct timeline *timeline, const struct op *op)
{
    return op && lane_kind_of(timeline, op) == LANE_COPY ? latest(timeline, op, false) : op;
}

/* The last kernel before the operation `awaited`, which `op` waits for last, has been all communication: what that one
 * itself waited for last; where that is a collective, and of an update, the last kernel that `op` waits for (of ZeRO 3 one
 * of its own: a wait for a gather is communication all along). NULL: there is none. */
static const struct op *kernel_before(const struct timeline *timeline, const struct op *op, const struct op *awaited)
{
    if (op->what == WHAT_UPDATE || lane_kind_of(timeline, awaited) == LANE_COLLECTIVE)
        return latest(timeline, op, true);
    return awaited->kind != OP_TRANSFER ? awaited : beyond_copies(timeline, latest(timeline, awaited, false));
}

/* `hosts`: any operation may wait for a host. */
static struct account_step step_of(const struct timeline *timeline, uint32_t id, int rank, double from, bool hosts)
{
    const struct op *op = &timeline->program->ops.items[id];
    struct account_step step = {
        .rank = rank, .op = op, .compute = &op_traits(timeline->program, op)->compute, .from = from,
        .start = timeline->start[id], .end = timeline->end[id], .awaited = ACCOUNT_EXPOSED_PIPELINE,
    };
    const struct op *awaited;

    step.ready = step.start;
    if (hosts && waits_for_host(timeline, op))
        step.ready = later(from, ended(timeline, latest(timeline, op, false)));
    step.ready = step.ready < step.start ? step.ready : step.start;
    step.since = step.ready;
    if (step.ready <= from)
        return step;
    awaited = step.on = beyond_copies(timeline, latest(timeline, op, false));
    if (awaited && lane_kind_of(timeline, awaited) == LANE_COLLECTIVE)
        step.awaited = ACCOUNT_EXPOSED_DATA;
    step.kernel = awaited ? kernel_before(timeline, op, awaited) : NULL;
    step.since = step.kernel == awaited ? step.ready : later(from, ended(timeline, step.kernel));
    step.since = step.since < step.ready ? step.since : step.ready;
    return step;
}

void account_walk(const struct timeline *timeline, account_visit *visit, void *context, struct progress *progress)
{
    const struct program *program = timeline->program;
    double *reached = xcalloc((size_t)program->ranks + 1, sizeof *reached);
    uint32_t *order = timeline_order(timeline);
    bool hosts = uses_host(program);

    for (int r = 0; r < program->ranks; r++)
        reached[r] = timeline_repeat(timeline, r).begins;
    for (size_t k = 0; k < program->ops.count; k++) {
        uint32_t id = order_at(order, k);
        const struct lane *lane = &program->lanes.items[program->ops.items[id].lane];

        if (k % PROGRESS_OPERATIONS == 0 &&
            progress_step(progress, "adding up", k, program->ops.count, timeline->makespan))
            break;
        if (lane->kind != LANE_COMPUTE)
            continue;
        struct account_step step = step_of(timeline, id, lane->rank, reached[lane->rank], hosts);
        visit(context, &step);
        reached[lane->rank] = step.end;
    }
    for (int r = 0; r < program->ranks; r++) {
        double end = timeline->makespan;

        visit(context, &(struct account_step){
            .rank = r, .from = reached[r], .since = end, .ready = end, .start = end, .end = end,
            .awaited = ACCOUNT_EXPOSED_PIPELINE,
        });
    }
    free(order);
    free(reached);
}

double window_part(const struct window *window, double from, double to)
{
    double lo = from > window->from ? from : window->from, hi = to < window->to ? to : window->to;

    return hi > lo ? (hi - lo) / window->updates : 0;
}

bool account_awaits_replica(const struct account_step *step, const struct program *program, int stages, bool unequal)
{
    int other = step->kernel ? program->lanes.items[step->kernel->lane].rank : step->rank;

    return other / stages != step->rank / stages && (!unequal || other % stages == step->rank % stages);
}

double account_add(const struct account_step *step, const struct window *window, double *seconds)
{
    const struct op *op = step->op;
    double waited = window_part(window, step->since, step->ready), busy, communication;

    seconds[ACCOUNT_BUBBLE] += window_part(window, step->from, step->since);
    seconds[step->awaited] += waited;
    seconds[ACCOUNT_EXPOSED_OFFLOAD] += window_part(window, step->ready, step->start);
    busy = op ? window_part(window, step->start, step->end) : 0;
    if (!op || busy == 0)
        return waited;
    communication = busy * step->compute->communication / op->amount;
    seconds[account_of((enum op_what)op->what)] += busy - communication;
    for (int with = 0; with < PEERS_COUNT && communication > 0; with++)
        seconds[account_of_peers((enum peers)with)] += busy * step->compute->with[with] / op->amount;
    return waited + communication;
}

/* What the times of a rank's kernels stand on, an update: of each work as often as it is in the row, and of updates. */
static struct cost_bases rank_bases(const struct workload *workload, int replica, int rank, double *extrapolated)
{
    const struct plan *plan = &workload->plan;
    const struct row *row = &workload->rows[rank];
    const struct stage_times *times = workload_times(workload, replica, rank);
    double each = 1.0 / rows_updates(workload->rows);
    int (*counts)[WORK_KIND_COUNT] = xcalloc((size_t)plan->chunks, sizeof *counts);
    struct cost_bases bases = {0};

    for (size_t i = 0; i < row->count; i++)
        counts[row->items[i].chunk][row->items[i].kind]++;
    for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++) {
        int s = plan_virtual_stage(plan, rank, chunk);
        const int *works = counts[chunk];

        for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
            cost_bases_add(&bases, &times[s].work[kind].bases, works[kind] * each);
            *extrapolated += works[kind] * each * times[s].work[kind].extrapolated;
        }
        cost_bases_add(&bases, &times[s].recomputed.bases, works[BACKWARD] * each);
        cost_bases_add(&bases, &times[s].update.bases, 1);
        *extrapolated += works[BACKWARD] * each * times[s].recomputed.extrapolated + times[s].update.extrapolated;
    }
    free(counts);
    return bases;
}

struct cost_bases account_bases(const struct workload *workload, double *extrapolated)
{
    int replicas = workload_timed_replicas(workload), ranks = workload->plan.stages;
    double mean = scenario_rank_weights(workload->scenario, ranks * replicas) / ranks / replicas;
    struct cost_bases all = {0};

    *extrapolated = 0;
    for (int r = 0; r < replicas; r++)
        for (int rank = 0; rank < ranks; rank++) {
            double own = scenario_rank_weight(workload->scenario, r * ranks + rank) / mean, part = 0;
            struct cost_bases bases = rank_bases(workload, r, rank, &part);

            cost_bases_add(&all, &bases, own / ranks / replicas);
            *extrapolated += own * part;
        }
    *extrapolated = *extrapolated / ranks / replicas;
    return all;
}
