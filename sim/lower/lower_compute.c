/* One operation on a rank's compute lane: the rules of works, the places of rows' entries, and what exchanges within a
 * work add to its operation. Copies between a rank and its host.
 *
 * Reads a place and its costs. Adds the operation after all of `waits`, and counts the bytes of the exchanges. */
#include "lower/lower_internal.h"
#include "recompute/stage_plan.h"

#include "base/base.h"
#include "engine/program.h"
#include "hardware/cluster.h"
#include "hardware/contention.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"

const struct work_rule work_rules[WORK_KIND_COUNT] = {
    [FORWARD] = {ACTIVATIONS, NO_RESULT, FORWARDED, ACTIVATIONS, .slice = -1, .takes = MEMORY_KEPT},
    [RECOMPUTE] = {GRADIENTS, FORWARDED, RECOMPUTED, NO_ARRIVAL, .takes = MEMORY_WORKING, .backward = true},
    [BACKWARD] = {GRADIENTS, RECOMPUTED, BACKWARDED, GRADIENTS, .slice = 1, .frees = MEMORY_ALL, .backward = true},
    [BACKWARD_INPUT] = {GRADIENTS, RECOMPUTED, BACKWARDED, GRADIENTS, .slice = 1, .backward = true},
    [BACKWARD_WEIGHT] = {NO_ARRIVAL, BACKWARDED, NO_RESULT, NO_ARRIVAL, .frees = MEMORY_ALL, .backward = true},
};

struct micro_batch_state *lowering_state(const struct lowering *lowering, int replica, int direction, int stage, int mb)
{
    const struct plan *plan = lowering->plan;
    size_t at = (size_t)replica * (size_t)plan_directions(plan) + (size_t)direction;

    at = at * (size_t)plan_virtual_stages(plan) + (size_t)stage;
    return lowering->states + at * (size_t)lowering->rules.micro_batches + (size_t)mb;
}

enum op_what work_what(enum work_kind kind)
{
    static const enum op_what whats[WORK_KIND_COUNT] = {
        [FORWARD] = WHAT_FORWARD, [BACKWARD] = WHAT_BACKWARD, [BACKWARD_INPUT] = WHAT_BACKWARD_INPUT,
        [BACKWARD_WEIGHT] = WHAT_BACKWARD_WEIGHT, [RECOMPUTE] = WHAT_RECOMPUTE, [UPDATE] = WHAT_UPDATE,
    };

    return whats[kind];
}

static void communicate(struct new_op *op, enum peers with, double seconds)
{
    op->compute.communication += seconds;
    op->compute.with[with] += seconds;
}

void exchanges_count(const struct lowering *lowering, const struct place *here, const struct work_counts *counts)
{
    struct chunk_state *own = here->chunk_state;

    for (int i = 0; lowering->exchanges.within && i < EXCHANGE_COUNT; i++)
        own->exchanged[i] += counts->exchanges[i] * own->exchanges[i].bytes_sent;
    own->gathered += counts->hidden_gathers * own->exchanges[EXCHANGE_GATHER].bytes_sent;
}

/* Seconds of an exchange of the work, as often as it runs. */
static double exchange_seconds(const struct place *here, const struct work_counts *counts, int exchange)
{
    return counts->exchanges[exchange] * here->chunk_state->exchanges[exchange].seconds *
           (exchange == EXCHANGE_DISPATCH ? 1 - here->hidden : 1);
}

/* Of hidden gathers that no EXCHANGE_OVERLAPPED includes, which overlap with all kernels of the work. */
static double exposed_gathers(const struct place *here, const struct work_cost *cost)
{
    const struct exchange_cost *gather = &here->chunk_state->exchanges[EXCHANGE_GATHER];
    double kernels = cost->times.seconds - cost->times.starved;
    int gathers = cost->counts.hidden_gathers;

    for (int c = 0; c < COLUMN_COUNT; c++)
        gathers -= cost->counts.exchanges[EXCHANGE_OVERLAPPED + c];
    return gathers > 0 ? contention_exposed(gathers * gather->seconds, kernels, gather->share) : 0;
}

/* Whether kernels of the work overlap with the exchange, so that its seconds are those which they do not hide. */
static bool overlaps(const struct lowering *lowering, int exchange)
{
    const struct parallelism *spec = &lowering->scenario->parallelism;
    bool blocks = spec->context_attention != CONTEXT_ALL_GATHER || spec->context_blocks;

    return (exchange >= EXCHANGE_OVERLAPPED && exchange < EXCHANGE_ROWS) ||
           (blocks && spec->overlap_context && (exchange == EXCHANGE_ATTENTION || exchange == EXCHANGE_ATTENTION_BACKWARD));
}

/* The share of what kernels do not hide of overlapped exchanges that is longer than the GPU's waits for launches. The
 * kernels that would hide an exchange are short there, and nothing else on the GPU waits for its end meanwhile. */
static double exposed_share(const struct lowering *lowering, const struct place *here, const struct work_cost *cost)
{
    double all = exposed_gathers(here, cost);

    for (int i = 0; i < EXCHANGE_COUNT; i++)
        all += overlaps(lowering, i) ? exchange_seconds(here, &cost->counts, i) : 0;
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
        communicate(op, exchange_peers[i],
                    exchange_seconds(here, &cost->counts, i) * (overlaps(lowering, i) ? share : 1));
        op->compute.sent += cost->counts.exchanges[i] * exchanges[i].bytes_sent;
        op->compute.vector += cost->counts.exchanges[i] * exchanges[i].vector;
    }
    communicate(op, PEERS_TENSOR, exposed_gathers(here, cost) * share);
    op->compute.sent += cost->counts.hidden_gathers * gather->bytes_sent;
    op->compute.vector += cost->counts.hidden_gathers * gather->vector;
    /* keys and values come again for the backward; the rest of its bytes are their gradients */
    op->compute.activations =
        cost->counts.hidden_gathers * gather->bytes_sent +
        cost->counts.exchanges[EXCHANGE_ATTENTION_BACKWARD] * exchanges[EXCHANGE_ATTENTION].bytes_sent;
    if (contention->collective == 0)
        return;
    contention_pass(contention, op->compute.communication);
    communicate(op, PEERS_DATA, contention_stretch(contention, cost->times.seconds));
}

uint32_t lower_compute(struct lowering *lowering, const struct place *here, struct work work,
                       const struct work_cost *cost, struct new_op *op)
{
    uint32_t id;

    op->kind = OP_COMPUTE;
    op->what = (uint8_t)work_what(work.kind);
    op->lane = lowering->ranks[here->prank].compute_lane;
    exchanges_count(lowering, here, &cost->counts);
    exchange_within(lowering, here, cost, op);
    op->amount = cost->times.seconds + op->compute.communication;
    op->mb = work.mb;
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

void make_host_lanes(struct lowering *lowering)
{
    int ranks = lowering->program->ranks;

    for (int r = 0; r < ranks; r++)
        lowering->ranks[r].host = (struct rank_host){
            .to = program_lane(lowering->program, r, LANE_TO_HOST, 0),
            .from = program_lane(lowering->program, r, LANE_FROM_HOST, 0),
            .cpu = program_lane(lowering->program, r, LANE_HOST, 0),
        };
}

struct seat host_seat(const struct lowering *lowering, int prank)
{
    return scenario_seat(lowering->scenario, 0, prank / lowering->plan->stages, prank % lowering->plan->stages);
}

struct event host_copy_of(struct lowering *lowering, bool to_host, double bytes, bool latency, int prank,
                          struct new_op op, struct event after)
{
    const struct cluster *cluster = &lowering->scenario->cluster;
    int node = host_seat(lowering, prank).node;

    op.kind = OP_COMPUTE;
    op.what = to_host ? WHAT_OFFLOAD : WHAT_PREFETCH;
    op.lane = to_host ? lowering->ranks[prank].host.to : lowering->ranks[prank].host.from;
    op.amount = latency ? cluster_host_copy(cluster, node, bytes) : bytes / cluster_host_bandwidth(cluster, node);
    op.compute.sent = bytes;
    return event_of(lower_after(lowering, op, after));
}

struct event host_copy(struct lowering *lowering, bool to_host, double bytes, int prank, struct new_op op,
                       struct event after)
{
    return host_copy_of(lowering, to_host, bytes, true, prank, op, after);
}

/* Whether copies to the host behind the first `done` of them are within the room. */
static bool within(const struct outs *outs, size_t done, const struct room *room)
{
    double before = done > 0 ? outs->items[done - 1].sum : 0;

    return done == outs->count ||
           (outs->count - done <= room->copies && outs->items[outs->count - 1].sum - before <= room->bytes);
}

struct event host_drained(const struct rank_host *host, const struct room *room)
{
    size_t low = 0, high = host->outs.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (within(&host->outs, middle, room))
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 ? host->outs.items[low - 1].event : event_of(NO_OP);
}

void host_sends(struct lowering *lowering, struct rank_host *host, struct event event, double bytes)
{
    struct outs *outs = &host->outs;
    double sum = outs->count ? outs->items[outs->count - 1].sum : 0;

    if (outs->count == outs->capacity) {
        struct sent *items = outs->items;

        outs->capacity = 2 * outs->capacity + 64;
        outs->items = ARENA_ARRAY(&lowering->arena, struct sent, outs->capacity);
        if (outs->count)
            memcpy(outs->items, items, outs->count * sizeof *items);
    }
    outs->items[outs->count++] = (struct sent){event, sum + bytes};
}
