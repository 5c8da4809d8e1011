/* Boundaries between stages: their transfers, and the copies that sockets need. */
#include "lower/lower_internal.h"

#include <math.h>
#include <string.h>

/* One end's copy of a boundary between the GPU and the buffers of sockets, after `after`. The sends and receives of a
 * rank take turns: NCCL runs a communicator's operations one after another, on whatever streams they were launched
 * (NCCL, src/enqueue.cc: a launch waits for the last one). NO_OP: there is no copy, or it delays no other. */
static uint32_t copy_boundary(struct lowering *lowering, int from, int to, bool sends, struct new_op like, double bytes,
                              struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    int stages = lowering->plan->stages, at = sends ? from : to;
    double rate;

    rate = cluster_copy(&scenario->cluster, scenario_gpu(scenario, 0, from / stages, from % stages),
                        scenario_gpu(scenario, 0, to / stages, to % stages));
    if (isinf(rate))
        return NO_OP;
    like.kind = OP_COMPUTE;
    like.lane = lowering->copy_lane[at];
    like.amount = bytes / rate;
    return lower_after(lowering, like, after);
}

/* Seconds of the host for a send, if stages wait for their sends; 0 if the model's times are given. */
static double host_send(const struct scenario *scenario)
{
    return scenario->parallelism.overlap_p2p || model_is_timed(&scenario->model) ? 0 : scenario->costs.host_send;
}

/* What the transfers of all micro-batches from one chunk of a program rank, forward or backward, have in common. */
struct boundary {
    int dst;                         /* pipeline rank: one of the sharers of the stage there */
    bool up;                         /* the lanes to higher ranks (of a loop: to the next stage) */
    double bytes;
    uint32_t last[];                 /* a flow: its last transfer; NO_OP: none yet */
};

/* The boundary to the next stage, or to the one before, on that rank. */
static struct boundary *boundary_to(struct lowering *lowering, const struct place *from, bool next, int dst)
{
    size_t flows = (size_t)lowering->program->flows, chunk = (size_t)(from->chunk_state - lowering->chunk_states);
    struct boundary **slot = &lowering->boundaries[2 * chunk + next], *boundary = *slot;

    if (boundary && boundary->dst == dst)
        return boundary;
    if (!boundary)
        *slot = boundary = arena_alloc(&lowering->arena, sizeof *boundary + flows * sizeof *boundary->last);
    boundary->dst = dst;
    boundary->up = lowering->plan->placement == PLACEMENT_LOOP ? next : dst > from->rank;
    boundary->bytes = lowering->stages[next ? from->stage : from->stage - 1].boundary;
    memset(boundary->last, 0xff, flows * sizeof *boundary->last);        /* NO_OP */
    return boundary;
}

/* The transfer of a flow, of any micro-batch. */
static struct new_op transfer_of(const struct lowering *lowering, const struct place *from, bool next,
                                 const struct boundary *boundary, int t)
{
    const struct scenario *scenario = lowering->scenario;
    int gpu = scenario_gpu(scenario, t, from->replica, from->rank);
    int peer = scenario_gpu(scenario, t, from->replica, boundary->dst);
    struct extra extra = cluster_send(&scenario->cluster, gpu, peer);
    const uint32_t *lanes = boundary->up ? lowering->next_lane : lowering->previous_lane;

    return (struct new_op){
        .kind = OP_TRANSFER, .what = next ? WHAT_ACTIVATION : WHAT_GRADIENT, .exchange = exchange_number(GROUP_PIPELINE, COLLECTIVE_OP_COUNT),
        .stage = from->stage, .lane = lanes[from->prank * lowering->program->flows + t], .amount = boundary->bytes,
        .transfer = {
            .src = (uint32_t)gpu, .dst = (uint32_t)peer, .delay = extra.delay + host_send(scenario),
            .overhead = extra.overhead, .buffered = !isinf(cluster_copy(&scenario->cluster, gpu, peer)),
        },
    };
}

int boundary_gathers(const struct lowering *lowering, const struct place *here, struct work work)
{
    const struct parallelism *spec = &lowering->scenario->parallelism;
    int from = work.kind == FORWARD ? here->stage - 1 : here->stage + 1;

    if (spec->tensor == 1 || !spec->scatter_gather || spec->sequence_parallel ||
        (work.kind != FORWARD && work.kind != BACKWARD && work.kind != BACKWARD_INPUT) ||
        from < 0 || from >= plan_virtual_stages(lowering->plan) ||
        plan_rank(lowering->plan, here->direction, from, work.mb, NULL) == here->rank)
        return 0;
    return spec->partitioned_outputs && work.kind != FORWARD ? 2 : 1;
}

struct new_op received(const struct place *here, int gathers)
{
    const struct exchange_cost *gather = &here->chunk_state->exchanges[EXCHANGE_GATHER];

    return (struct new_op){.compute = {.communication = gathers * gather->seconds,
                                       .with[PEERS_TENSOR] = gathers * gather->seconds,
                                       .sent = gathers * gather->bytes_sent,
                                       .vector = gathers * gather->vector}};
}

struct event lower_send(struct lowering *lowering, const struct place *from, bool next, int mb, uint32_t after)
{
    int to = next ? from->stage + 1 : from->stage - 1, flows = lowering->program->flows;
    int dst = plan_rank(lowering->plan, from->direction, to, mb, NULL), receiver;
    bool duplex = lowering->scenario->parallelism.duplex_p2p;
    struct boundary *boundary;
    struct event back;
    uint32_t copied;

    if (from->rank == dst)
        return event_of(after);
    boundary = boundary_to(lowering, from, next, dst);
    receiver = program_rank(lowering, from->replica, dst);
    back = lowering->sent[2 * receiver + !boundary->up];
    if (lowering->copy_lane) {
        struct new_op like = {.what = next ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = mb, .stage = from->stage};

        copied = copy_boundary(lowering, from->prank, receiver, true, like, boundary->bytes, event_of(after));
        after = copied == NO_OP ? after : copied;
    }
    for (int t = 0; t < flows; t++) {
        uint32_t deps[] = {after, back.count ? event_flow(&back, t) : NO_OP};
        size_t ndeps = back.count && !duplex ? 2 : 1;
        struct new_op first;

        if (boundary->last[t] != NO_OP) {
            boundary->last[t] = program_repeat(lowering->program, boundary->last[t], mb, deps, ndeps);
            continue;
        }
        first = transfer_of(lowering, from, next, boundary, t);
        first.mb = mb;
        boundary->last[t] = program_append(lowering->program, &first, deps, ndeps);
    }
    return lowering->sent[2 * from->prank + boundary->up] =
        event_all(&lowering->arena, boundary->last, (size_t)flows);
}

void lower_arrival(struct lowering *lowering, const struct place *here, struct work work)
{
    bool forward = work.kind == FORWARD;
    bool backward = work.kind == BACKWARD || work.kind == BACKWARD_INPUT ||
                    (work.kind == RECOMPUTE &&
                     lowering->rule == RECOMPUTE_WITH_GRADIENT);
    int from = forward ? here->stage - 1 : here->stage + 1, rank, to = here->prank;
    struct new_op like;
    struct event arrival;
    uint32_t id;

    if (!lowering->copy_lane || (!forward && !backward) || from < 0 || from >= plan_virtual_stages(lowering->plan) ||
        (backward && here->state->copied))
        return;
    rank = plan_rank(lowering->plan, here->direction, from, work.mb, NULL);
    if (rank == here->rank)
        return;
    like = (struct new_op){.what = forward ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = work.mb, .stage = here->stage};
    arrival = *arrival_of(here->state, work.kind);
    id = copy_boundary(lowering, program_rank(lowering, here->replica, rank), to, false, like,
                       lowering->stages[forward ? from : here->stage].boundary, arrival);
    here->state->copied |= backward && id != NO_OP;
    wait_for(&lowering->waits, id != NO_OP ? event_of(id) : arrival);
}
