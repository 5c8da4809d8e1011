#include "explain/idle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "run/account.h"
#include "scenario/scenario.h"

#define NAME(value, name, text) [value] = name,
#define TEXT(value, name, text) [value] = text,
const char *const idle_cause_names[] = {IDLE_CAUSES(NAME)};
const char *const idle_cause_texts[] = {IDLE_CAUSES(TEXT)};

/* A work's exchanges: IDLE_TENSOR and the causes after it, in the order of peers. */
_Static_assert(IDLE_OVERLAPPED - IDLE_TENSOR == (int)PEERS_DATA && IDLE_CONTEXT - IDLE_TENSOR == (int)PEERS_CONTEXT,
               "causes in the order of peers");

struct collector {
    const struct run *run;
    struct idle *idle;
    int nranks;
    double replicas;
    double (*sums)[2];       /* by rank, cause and rank waited for + 1: bubble, exposed */
};

static void add(struct collector *collector, int rank, enum idle_cause cause, int on, double bubble, double exposed)
{
    size_t at = (size_t)(rank * IDLE_CAUSE_COUNT + (int)cause) * (size_t)(collector->nranks + 1) + (size_t)(on + 1);

    double replicas = fmin(collector->replicas, scenario_rank_replicas(collector->run->workload->scenario, rank));

    collector->sums[at][0] += bubble / replicas;
    collector->sums[at][1] += exposed / replicas;
}

/* The kind of a wait for that operation, by its lane and purpose. Sets the rank where it waits for one. */
static enum idle_cause cause_of(const struct collector *collector, const struct account_step *step, int *on)
{
    const struct op *op = step->on;
    const struct lane *lane = op ? &collector->run->lowered.program.lanes.items[op->lane] : NULL;

    *on = -1;
    if (!lane)
        return IDLE_END;
    if (lane->kind == LANE_COLLECTIVE && op->what == WHAT_SYNC)
        return op->stage < 0 ? IDLE_TIED : IDLE_SUM;
    if (lane->kind == LANE_COLLECTIVE)
        return op->what == WHAT_WEIGHTS ? IDLE_WEIGHTS : IDLE_REPLICAS;
    if (lane->kind == LANE_COMPUTE && (op->what == WHAT_SYNC || step->op->what == WHAT_UPDATE ||
                                       lane->rank / collector->nranks != step->rank / collector->nranks))
        return IDLE_REPLICAS;
    if (lane->rank == step->rank && lane->kind != LANE_COMPUTE)
        return IDLE_SENT;
    *on = lane->rank % collector->nranks;
    return op->what == WHAT_ACTIVATION ? IDLE_ACTIVATION : op->what == WHAT_GRADIENT ? IDLE_GRADIENT : IDLE_TURN;
}

static void take_step(void *context, const struct account_step *step)
{
    struct collector *collector = context;
    const struct window *window = &collector->run->metrics.window;
    int rank = step->rank % collector->nranks, on;
    enum idle_cause cause = cause_of(collector, step, &on);

    if (!scenario_has_rank(collector->run->workload->scenario, step->rank))
        return;
    add(collector, rank, cause, on, window_part(window, step->from, step->since),
        window_part(window, step->since, step->ready));
    add(collector, rank, IDLE_HOST, -1, 0, window_part(window, step->ready, step->start));
    for (int with = 0; step->op && step->op->amount > 0 && with < PEERS_COUNT; with++)
        add(collector, rank, (enum idle_cause)(IDLE_TENSOR + with), -1, 0,
            window_part(window, step->start, step->end) * step->compute->with[with] / step->op->amount);
}

static int by_rank_and_length(const void *a, const void *b)
{
    const struct idle_wait *x = a, *y = b;
    double longer = (y->bubble + y->exposed) - (x->bubble + x->exposed);

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (longer != 0)
        return longer > 0 ? 1 : -1;
    return x->cause != y->cause ? (x->cause < y->cause ? -1 : 1) : x->on < y->on ? -1 : x->on > y->on;
}

void idle_init(struct idle *idle, const struct run *run)
{
    int nranks = run->workload->plan.stages;
    size_t each = (size_t)nranks + 1, slots = (size_t)nranks * IDLE_CAUSE_COUNT * each;
    struct collector collector = {run, idle, nranks, run->lowered.alike.replicas, xcalloc(slots, sizeof(double[2]))};

    *idle = (struct idle){0};
    account_walk(&run->timeline, take_step, &collector, NULL);
    for (size_t i = 0; i < slots; i++)
        if (collector.sums[i][0] > 0 || collector.sums[i][1] > 0)
            *GROW(idle) = (struct idle_wait){
                .rank = (int)(i / each / IDLE_CAUSE_COUNT), .on = (int)(i % each) - 1,
                .cause = (enum idle_cause)(i / each % IDLE_CAUSE_COUNT), .bubble = collector.sums[i][0],
                .exposed = collector.sums[i][1],
            };
    array_sort(idle->items, idle->count, sizeof *idle->items, by_rank_and_length);
    free(collector.sums);
}

void idle_release(struct idle *idle)
{
    free(idle->items);
    memset(idle, 0, sizeof *idle);
}
