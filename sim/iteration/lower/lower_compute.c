/* How long works take, and their operations on compute lanes: the last pass.
 *
 * Reads a place with the kernels' times of its work, the costs of the exchanges within the work, what hides them, and the
 * collectives over replicas that overlap with its kernels.
 * Adds the operation's seconds, kernels and communication, and the bytes of the exchanges. */
#include "lower/lower_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "engine/program.h"
#include "kernels/contention.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"

enum op_what work_what(enum work_kind kind)
{
    static const enum op_what whats[WORK_KIND_COUNT] = {
        [FORWARD] = WHAT_FORWARD, [BACKWARD] = WHAT_BACKWARD, [BACKWARD_INPUT] = WHAT_BACKWARD_INPUT,
        [BACKWARD_WEIGHT] = WHAT_BACKWARD_WEIGHT, [RECOMPUTE] = WHAT_RECOMPUTE, [UPDATE] = WHAT_UPDATE,
    };

    return whats[kind];
}

static void add_communication(struct new_op *op, enum peers with, double seconds)
{
    op->compute.communication += seconds;
    op->compute.with[with] += seconds;
}

void count_exchanges(const struct lowering *lowering, const struct place *here, const struct work_counts *counts)
{
    struct chunk_state *chunk_state = here->chunk_state;
    const struct exchange_cost *exchanges = chunk_state->exchanges;

    for (int i = 0; lowering->exchanges.within && i < EXCHANGE_COUNT; i++)
        chunk_state->exchanged[i] += counts->exchanges[i] * exchanges[i].bytes_sent;
    chunk_state->gathered += counts->hidden_gathers * exchanges[EXCHANGE_GATHER].bytes_sent;
}

/* Seconds of all runs of one exchange in the work. Each layer's kernels hide the layer's own exchanges. */
static double exchange_seconds(const struct lowering *lowering, const struct place *here,
                               const struct work_counts *counts, int exchange)
{
    const struct exchange_cost *cost = &here->chunk_state->exchanges[exchange];
    double seconds = 0;

    if (exchange == EXCHANGE_MATRICES)           /* of no layer */
        return counts->exchanges[exchange] * cost->seconds;
    for (int h = 0; h < lowering->exchanges.hidings; h++)
        seconds += counts->hidden[h][exchange] * cost[h * MEASURED_COUNT].seconds;
    return seconds * (exchange == EXCHANGE_DISPATCH ? 1 - here->hidden : 1);
}

/* Seconds of the work's hidden gathers that its kernels do not hide. These gathers overlap with all kernels of the
 * work. An EXCHANGE_OVERLAPPED includes a gather; it is not counted here. */
static double exposed_gathers(const struct place *here, const struct work_cost *cost)
{
    const struct exchange_cost *gather = &here->chunk_state->exchanges[EXCHANGE_GATHER];
    double kernels = cost->times.seconds - cost->times.starved;
    int gathers = cost->counts.hidden_gathers;

    for (int c = 0; c < COLUMN_COUNT; c++)
        gathers -= cost->counts.exchanges[EXCHANGE_OVERLAPPED + c];
    return gathers > 0 ? contention_exposed(gathers * gather->seconds, kernels, gather->share) : 0;
}

/* Whether kernels of the work overlap with the exchange; its seconds are then only those that no kernel hides. */
static bool overlaps(const struct lowering *lowering, int exchange)
{
    const struct parallelism *spec = &lowering->scenario->parallelism;
    bool blocks = spec->context_attention != CONTEXT_ALL_GATHER || spec->context_blocks;

    return (exchange >= EXCHANGE_OVERLAPPED && exchange < EXCHANGE_ROWS) ||
           (blocks && spec->overlap_context && (exchange == EXCHANGE_ATTENTION || exchange == EXCHANGE_ATTENTION_BACKWARD));
}

/* Overlapped exchanges also run while the GPU waits for launches, where the kernels are too short to hide them. Returns
 * the share of their exposed seconds (those that no kernel hides) that is left beyond these waits. */
static double exposed_share(const struct lowering *lowering, const struct place *here, const struct work_cost *cost)
{
    double all = exposed_gathers(here, cost);

    for (int i = 0; i < EXCHANGE_COUNT; i++)
        all += overlaps(lowering, i) ? exchange_seconds(lowering, here, &cost->counts, i) : 0;
    return all > cost->times.starved ? 1 - cost->times.starved / all : 0;
}

/* Adds the communication within a work to the work's operation. */
static void exchange_within(const struct lowering *lowering, const struct place *here, const struct work_cost *cost,
                            struct new_op *op)
{
    struct contention *contention = &lowering->ranks[here->prank].overlapped;
    const struct exchange_cost *exchanges = here->chunk_state->exchanges, *gather = &exchanges[EXCHANGE_GATHER];
    double share = exposed_share(lowering, here, cost);

    for (int i = 0; i < EXCHANGE_COUNT; i++) {
        if (!cost->counts.exchanges[i])
            continue;
        add_communication(op, exchange_peers[i],
                          exchange_seconds(lowering, here, &cost->counts, i) * (overlaps(lowering, i) ? share : 1));
        op->compute.sent += cost->counts.exchanges[i] * exchanges[i].bytes_sent;
        op->compute.vector += cost->counts.exchanges[i] * exchanges[i].vector;
    }
    add_communication(op, PEERS_TENSOR, exposed_gathers(here, cost) * share);
    op->compute.sent += cost->counts.hidden_gathers * gather->bytes_sent;
    op->compute.vector += cost->counts.hidden_gathers * gather->vector;
    /* hidden gathers, and the keys and values of a backward of attention, whose other bytes are gradients */
    op->compute.activations =
        cost->counts.hidden_gathers * gather->bytes_sent +
        cost->counts.exchanges[EXCHANGE_ATTENTION_BACKWARD] * exchanges[EXCHANGE_ATTENTION].bytes_sent;
    if (contention->collective == 0)
        return;
    contention_pass(contention, op->compute.communication);
    add_communication(op, PEERS_DATA, contention_stretch(contention, cost->times.seconds));
}

/* The share of all-to-alls that kernels hide where a forward and a backward overlap as in Megatron Core
 * (models/common/model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run). Each block has four phases, in each
 * of which an all-to-all of one work overlaps with kernels of the other:
 *
 *     the backward's first all-to-all     the forward up to the router
 *     the forward's to the experts        the experts' backward
 *     the backward's second one           the experts' forward
 *     the forward's from the experts      the rest of the backward */
static double hidden_in_phases(const struct places *places)
{
    double exposed = 0, all = 0;

    for (size_t i = 0; i < 2; i++) {
        const struct place *here = &places->items[i], *other = &places->items[1 - i];
        const struct exchange_cost *dispatch = &here->chunk_state->exchanges[EXCHANGE_DISPATCH];
        const struct dispatching_times *kernels = &other->times->work[other->work.kind].dispatching;
        double half = here->held->work[here->work.kind].exchanges[EXCHANGE_DISPATCH] * dispatch->seconds / 2;

        all += 2 * half;
        exposed += contention_exposed(half, kernels->before, dispatch->share) +
                   contention_exposed(half, kernels->others, dispatch->share);
    }
    return all > 0 ? 1 - exposed / all : 0;
}

/* The share of all-to-alls that kernels hide: in two overlapped works the other work's kernels (DeepSeek-AI 2024,
 * DeepSeek-V3, section 3.2.1), in a single work the kernels of its shared experts. contention_exposed says which
 * seconds are exposed. */
static double hidden_share(const struct lowering *lowering)
{
    const struct places *places = &lowering->places;
    int overlap = lowering->scenario->parallelism.overlap_dispatch;
    bool other = places->items[0].work.kind != places->items[places->count - 1].work.kind;
    double kernels = 0, dispatches = 0, share = 0;

    if (other && overlap == OVERLAP_DISPATCH_MICRO_BATCHES)
        return hidden_in_phases(places);
    if (!other && overlap != OVERLAP_DISPATCH_SHARED)
        return 0;            /* one work, or a pass of two, with which no other kernels overlap */
    for (size_t i = 0; i < places->count; i++) {
        const struct place *here = &places->items[i];
        const struct exchange_cost *dispatch = &here->chunk_state->exchanges[EXCHANGE_DISPATCH];
        enum work_kind kind = here->work.kind;

        kernels += other ? here->times->work[kind].seconds : here->times->work[kind].dispatching.shared;
        dispatches += here->held->work[kind].exchanges[EXCHANGE_DISPATCH] * dispatch->seconds;
        share = dispatch->share;
    }
    return dispatches > 0 ? 1 - contention_exposed(dispatches, kernels, share) / dispatches : 0;
}

void hide_dispatches(struct lowering *lowering)
{
    double hidden = hidden_share(lowering);

    for (size_t i = 0; i < lowering->places.count; i++)
        lowering->places.items[i].hidden = hidden;
}

void set_duration(const struct lowering *lowering, const struct place *here, const struct work_cost *cost,
                  struct new_op *op)
{
    exchange_within(lowering, here, cost, op);
    op->amount = cost->times.seconds + op->compute.communication;
}

uint32_t lower_compute(struct lowering *lowering, const struct place *here, enum work_kind kind,
                       const struct work_cost *cost, struct new_op *op)
{
    uint32_t id;

    op->kind = OP_COMPUTE;
    op->what = (uint8_t)work_what(kind);
    op->lane = lowering->ranks[here->prank].compute_lane;
    count_exchanges(lowering, here, &cost->counts);
    set_duration(lowering, here, cost, op);
    op->mb = here->work.mb;
    op->stage = here->stage;
    id = lowering->ranks[here->prank].latest =
        program_append(lowering->program, op, lowering->waits.items, lowering->waits.count);
    lowering->waits.count = 0;
    return id;
}

uint32_t lower_after(struct lowering *lowering, struct new_op op, struct event after)
{
    return program_add(lowering->program, op, event_ids(&after), after.count);
}

uint32_t lower_after_all(struct lowering *lowering, struct new_op op, struct waits *all)
{
    uint32_t id = program_add(lowering->program, op, all->items, all->count);

    free(all->items);
    return id;
}
