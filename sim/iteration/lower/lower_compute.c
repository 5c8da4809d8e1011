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

    for (int i = 0; lowering->exchanges.within && i < here->held->exchanges->count; i++)
        chunk_state->exchanged[i] += counts->exchanges[i] * chunk_state->exchanges[i].bytes_sent;
}

/* The seconds of a work's exchanges, by what hides them: dispatches beside another work are shorter by the share that it hides. */
static double exchange_seconds(const struct place *here, const struct work_counts *counts, int i)
{
    enum hidden_by by = here->held->exchanges->items[i].by;

    return counts->exchanges[i] * here->chunk_state->exchanges[i].seconds * (by == HIDDEN_BY_OTHERS ? 1 - here->hidden : 1);
}

/* Whether kernels of the work overlap with the exchange; its seconds are then only those that no kernel hides. */
static bool overlaps(enum hidden_by by)
{
    return by == HIDDEN_BY_GRADIENTS || by == HIDDEN_BY_PIECES || by == HIDDEN_BY_STEPS;
}

/* Overlapped exchanges also run while the GPU waits for launches, where the kernels are too short to hide them. Returns
 * the share of their exposed seconds (those that no kernel hides) that is left beyond these waits. */
static double exposed_share(const struct place *here, const struct work_cost *cost, double gathers)
{
    double all = gathers;

    for (int i = 0; i < here->held->exchanges->count; i++)
        all += overlaps(here->held->exchanges->items[i].by) ? exchange_seconds(here, &cost->counts, i) : 0;
    return all > cost->times.starved ? 1 - cost->times.starved / all : 0;
}

/* The part of a work's kernels that are matrix products. */
static double products(const struct work_times *times)
{
    double all = cost_bases_total(&times->bases);

    return all > 0 ? (cost_bases_of(&times->bases, KERNEL_MATMUL) + cost_bases_of(&times->bases, KERNEL_GROUPED)) / all : 0;
}

/* Adds the communication within a work to the work's operation. */
static void exchange_within(const struct lowering *lowering, const struct place *here, const struct work_cost *cost,
                            struct new_op *op)
{
    struct contention *contention = &lowering->ranks[here->prank].overlapped;
    const struct exchange_cost *exchanges = here->chunk_state->exchanges;
    double gathers = exchange_gathers_exposed(here->held, &cost->counts, &cost->times, exchanges);
    double share = exposed_share(here, cost, gathers);

    add_communication(op, PEERS_TENSOR, gathers * share);
    op->compute.activations = 0;
    for (int i = 0; i < here->held->exchanges->count; i++) {
        const struct exchange *exchange = &here->held->exchanges->items[i];
        int count = cost->counts.exchanges[i];

        if (!count)
            continue;
        if (exchange->by != HIDDEN_BY_WORK)
            add_communication(op, sending_peers[exchange->what],
                              exchange_seconds(here, &cost->counts, i) * (overlaps(exchange->by) ? share : 1));
        op->compute.sent += count * exchanges[i].bytes_sent;
        op->compute.vector += count * exchanges[i].vector;
        op->compute.activations += count * exchanges[i].activations;
    }
    if (contention->collective == 0)
        return;
    contention_pass(contention, op->compute.communication);
    add_communication(op, PEERS_DATA, contention_stretch(contention, cost->times.seconds, products(&cost->times)));
}

/* s of the dispatches of a work, of any share that is hidden; *share receives what they take of the multiprocessors. */
static double dispatch_seconds(const struct place *here, double *share)
{
    double seconds = 0;

    for (int i = 0; i < here->held->exchanges->count; i++) {
        int count = here->held->work[here->work.kind].exchanges[i];

        if (here->held->exchanges->items[i].by != HIDDEN_BY_OTHERS)
            continue;
        seconds += count * here->chunk_state->exchanges[i].seconds;
        *share = here->chunk_state->exchanges[i].share;
    }
    return seconds;
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
        const struct dispatching_times *kernels = &other->times->work[other->work.kind].dispatching;
        double share = 0, half = dispatch_seconds(here, &share) / 2;

        all += 2 * half;
        exposed += contention_exposed(half, kernels->before, share) + contention_exposed(half, kernels->others, share);
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
        enum work_kind kind = here->work.kind;

        kernels += other ? here->times->work[kind].seconds : here->times->work[kind].dispatching.shared;
        dispatches += dispatch_seconds(here, &share);
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
