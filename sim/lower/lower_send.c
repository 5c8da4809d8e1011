/* Boundaries between stages: their transfers, and the copies that sockets need. */
#include "lower/lower_internal.h"

#include <math.h>

/* One end's copy of a boundary between the GPU and the buffers of sockets, after `after`. The sends and receives of a
 * rank take turns: NCCL runs a communicator's operations one after another, on whatever streams they were launched
 * (NCCL, src/enqueue.cc: a launch waits for the last one). NO_OP: there is no copy, or it delays no other. */
static uint32_t copy_boundary(struct lowering *lowering, int from, int to, bool sends, struct new_op like, double bytes,
                              struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    int stages = lowering->plan->stages, at = sends ? from : to;
    double rate;

    if (!lowering->copy_lane)
        return NO_OP;
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

struct event lower_send(struct lowering *lowering, struct place from, int to, int mb, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    int dst = plan_rank(lowering->plan, from.direction, to, mb, NULL), flows = lowering->program->flows;
    int sender = program_rank(lowering, from.replica, from.rank);
    bool next = to > from.stage, up = lowering->plan->placement == PLACEMENT_LOOP ? next : dst > from.rank;
    const uint32_t *lanes = (up ? lowering->next_lane : lowering->previous_lane) + (size_t)sender * (size_t)flows;
    struct new_op like = {.what = next ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = mb, .stage = from.stage};
    double bytes = lowering->stages[next ? from.stage : to].boundary;
    struct event back = lowering->sent[2 * program_rank(lowering, from.replica, dst) + !up];
    uint32_t copied, *arrivals;

    if (from.rank == dst)
        return event_of(after);
    copied = copy_boundary(lowering, sender, program_rank(lowering, from.replica, dst), true, like, bytes,
                           event_of(after));
    after = copied == NO_OP ? after : copied;
    arrivals = lowering->flow_ids;
    for (int t = 0; t < flows; t++) {
        int gpu = scenario_gpu(scenario, t, from.replica, from.rank);
        int peer = scenario_gpu(scenario, t, from.replica, dst);
        struct extra extra = cluster_send(&scenario->cluster, gpu, peer);
        uint32_t deps[] = {after, back.count ? event_flow(&back, t) : NO_OP};
        struct new_op op = like;

        op.kind = OP_TRANSFER;
        op.lane = lanes[t];
        op.transfer.buffered = !isinf(cluster_copy(&scenario->cluster, gpu, peer));
        op.amount = bytes;
        op.transfer.src = (uint32_t)gpu;
        op.transfer.dst = (uint32_t)peer;
        op.transfer.delay = extra.delay + host_send(scenario);
        op.transfer.overhead = extra.overhead;
        arrivals[t] = program_add(lowering->program, op, deps, back.count && !scenario->parallelism.duplex_p2p ? 2 : 1);
    }
    return lowering->sent[2 * sender + up] = event_all(&lowering->arena, arrivals, (size_t)flows);
}

void lower_arrival(struct lowering *lowering, struct place here, struct work work)
{
    bool forward = work.kind == FORWARD;
    bool backward = work.kind == BACKWARD || work.kind == BACKWARD_INPUT ||
                    (work.kind == RECOMPUTE &&
                     scenario_schedule(lowering->scenario)->recompute == RECOMPUTE_WITH_GRADIENT);
    int from = forward ? here.stage - 1 : here.stage + 1, rank, to = program_rank(lowering, here.replica, here.rank);
    struct new_op like = {.what = forward ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = work.mb, .stage = here.stage};
    struct event arrival = *arrival_of(here.state, work.kind);
    uint32_t id;

    if (!lowering->copy_lane || (!forward && !backward) || from < 0 || from >= plan_virtual_stages(lowering->plan) ||
        (backward && here.state->copied))
        return;
    rank = plan_rank(lowering->plan, here.direction, from, work.mb, NULL);
    if (rank == here.rank)
        return;
    id = copy_boundary(lowering, program_rank(lowering, here.replica, rank), to, false, like,
                       lowering->stages[forward ? from : here.stage].boundary, arrival);
    here.state->copied |= backward && id != NO_OP;
    wait_for(&lowering->waits, id != NO_OP ? event_of(id) : arrival);
}
