/* Boundaries between stages: their transfers, and the copies that sockets need.
 *
 * Reads a place whose work has ended, and the degrees of the rank that holds the neighbouring stage.
 * Adds transfers, and what the stage there waits for. */
#include "lower/lower_internal.h"
#include "stage/stage_exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/event.h"
#include "engine/program.h"
#include "hardware/cluster.h"
#include "layout/layout.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

void make_send_lanes(struct lowering *lowering, int prank)
{
    int flows = lowering->program->flows;

    if (lowering->lanes.copy)
        lowering->lanes.copy[prank] = program_lane(lowering->program, prank, LANE_COPY, 0);
    for (int t = 0; t < flows && lowering->plan->stages > 1; t++)
        for (int up = 1; up >= 0; up--)
            lowering->lanes.send[up][prank * flows + t] =
                program_lane(lowering->program, prank, up ? LANE_SEND_NEXT : LANE_SEND_PREVIOUS, t);
}

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
    like.lane = lowering->lanes.copy[at];
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

/* Whether the lanes to higher ranks are taken. */
static bool goes_up(const struct lowering *lowering, const struct place *from, bool next, int dst)
{
    return lowering->plan->placement == PLACEMENT_LOOP ? next : dst > from->rank;
}

/* The boundary to the next or the previous stage, on that rank. */
static struct boundary *boundary_to(struct lowering *lowering, const struct place *from, bool next, int dst)
{
    size_t flows = (size_t)lowering->program->flows;
    struct boundary **slot = &from->chunk_state->boundaries[next], *boundary = *slot;

    if (boundary && boundary->dst == dst)
        return boundary;
    if (!boundary)
        *slot = boundary = arena_alloc(&lowering->arena, sizeof *boundary + flows * sizeof *boundary->last);
    boundary->dst = dst;
    boundary->up = goes_up(lowering, from, next, dst);
    boundary->bytes = lowering->ranks[from->prank].class->stages[next ? from->stage : from->stage - 1].boundary;
    memset(boundary->last, 0xff, flows * sizeof *boundary->last);        /* NO_OP */
    return boundary;
}

/* A transfer from one GPU to another, of any micro-batch. */
static struct new_op transfer_of(const struct lowering *lowering, const struct place *from, bool next, int gpu, int peer,
                                 uint32_t lane, double bytes)
{
    const struct scenario *scenario = lowering->scenario;
    struct extra extra = cluster_send(&scenario->cluster, gpu, peer);

    return (struct new_op){
        .kind = OP_TRANSFER, .what = next ? WHAT_ACTIVATION : WHAT_GRADIENT,
        .exchange = exchange_number(GROUP_PIPELINE, COLLECTIVE_OP_COUNT), .stage = from->stage, .lane = lane, .amount = bytes,
        .transfer = {
            .src = (uint32_t)gpu, .dst = (uint32_t)peer, .delay = extra.delay + host_send(scenario),
            .overhead = extra.overhead, .buffered = !isinf(cluster_copy(&scenario->cluster, gpu, peer)),
        },
    };
}

int boundary_gathers(const struct lowering *lowering, const struct place *here)
{
    const struct parallelism *spec = &lowering->scenario->parallelism;
    struct work work = here->work;
    int from = work.kind == FORWARD ? here->stage - 1 : here->stage + 1, rank;

    if (scenario_tensor(lowering->scenario, here->rank) == 1 || spec->sequence_parallel ||
        (work.kind != FORWARD && work.kind != BACKWARD && work.kind != BACKWARD_INPUT) ||
        from < 0 || from >= plan_virtual_stages(lowering->plan))
        return 0;
    rank = plan_rank(lowering->plan, here->direction, from, work.mb, NULL);
    if (rank == here->rank || (!spec->scatter_gather && !ranks_differ(&lowering->exchanges, rank, here->rank)))
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

/* What a stage sends to a stage of other degrees: each GPU sends each GPU there the part that both hold. All parts are
 * under way at once (torch.distributed.batch_isend_irecv: one group of NCCL's). */
struct reshard {
    bool up;
    size_t count;
    struct part {
        int replica;                 /* of the receiver */
        struct new_op transfer;
        uint32_t last;               /* NO_OP: none yet */
    } parts[];
};

/* Adds the parts for one replica there. */
static void add_parts(struct lowering *lowering, const struct place *from, bool next, int dst, int replica,
                      struct reshard *reshard)
{
    const struct scenario *scenario = lowering->scenario;
    int tensor = scenario_tensor(scenario, from->rank), there = scenario_tensor(scenario, dst);
    double whole = boundary_whole(scenario, lowering->ranks[from->prank].class->stages,
                                  next ? from->stage : from->stage - 1);
    double samples = layout_common(from->replica, scenario_rank_replicas(scenario, from->rank), replica,
                                   scenario_rank_replicas(scenario, dst));

    for (int t = 0; t < tensor; t++) {
        struct partners partners = layout_partners(t, tensor, there);

        for (int u = partners.first; u <= partners.last; u++) {
            uint32_t lane = program_lane(lowering->program, from->prank, reshard->up ? LANE_SEND_NEXT : LANE_SEND_PREVIOUS,
                                         lowering->program->flows + (int)reshard->count);

            reshard->parts[reshard->count++] = (struct part){
                replica, transfer_of(lowering, from, next, scenario_gpu(scenario, t, from->replica, from->rank),
                                     scenario_gpu(scenario, u, replica, dst), lane,
                                     whole * samples * layout_common(t, tensor, u, there)), NO_OP,
            };
        }
    }
}

static struct reshard *reshard_to(struct lowering *lowering, const struct place *from, bool next, int dst,
                                  struct partners replicas)
{
    const struct scenario *scenario = lowering->scenario;
    struct reshard **slot = &from->chunk_state->reshards[next], *reshard = *slot;
    size_t most = (size_t)(scenario_tensor(scenario, from->rank) + scenario_tensor(scenario, dst));

    if (reshard)
        return reshard;
    most *= (size_t)(replicas.last - replicas.first + 1);
    *slot = reshard = arena_alloc(&lowering->arena, sizeof *reshard + most * sizeof *reshard->parts);
    *reshard = (struct reshard){.up = goes_up(lowering, from, next, dst)};
    for (int replica = replicas.first; replica <= replicas.last; replica++)
        add_parts(lowering, from, next, dst, replica, reshard);
    return reshard;
}

/* Sends a boundary to a rank of other degrees; each of its replicas has what all of its senders sent. */
static void send_resharded(struct lowering *lowering, const struct place *from, bool next, int dst, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    struct partners replicas = partners_on(&lowering->exchanges, from->replica, from->rank, dst);
    struct reshard *reshard = reshard_to(lowering, from, next, dst, replicas);
    int to = next ? from->stage + 1 : from->stage - 1, mb = from->work.mb;
    struct waits sent = {0};

    for (size_t i = 0; i < reshard->count; i++) {
        struct part *part = &reshard->parts[i];
        struct micro_batch_state *there = lowering_state(lowering, part->replica, from->direction, to, mb);
        struct event *arrived = &there->arrived[next ? ACTIVATIONS : GRADIENTS];
        struct waits *waits = &lowering->waits;      /* the entry's operations are written */

        wait_for(waits, event_of(after));
        if (!scenario->parallelism.duplex_p2p)
            wait_for(waits, lowering->ranks[program_rank(lowering, part->replica, dst)].sent[!reshard->up]);
        part->transfer.mb = mb;
        part->last = part->last == NO_OP ? program_append(lowering->program, &part->transfer, waits->items, waits->count)
                                         : program_repeat(lowering->program, part->last, mb, waits->items, waits->count);
        waits->count = 0;
        *arrived = event_both(&lowering->arena, *arrived, event_of(part->last));
        wait_for(&sent, event_of(part->last));
    }
    lowering->ranks[from->prank].sent[reshard->up] = event_taken(&lowering->arena, &sent);
}

/* Sends a boundary to a rank of the same degrees. */
static struct event send_alike(struct lowering *lowering, const struct place *from, bool next, int dst, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    int flows = rank_flows(&lowering->exchanges, dst), receiver = program_rank(lowering, from->replica, dst);
    int mb = from->work.mb;
    bool duplex = scenario->parallelism.duplex_p2p;
    struct boundary *boundary = boundary_to(lowering, from, next, dst);
    struct event back = lowering->ranks[receiver].sent[!boundary->up];
    const uint32_t *lanes = lowering->lanes.send[boundary->up] + from->prank * lowering->program->flows;
    struct waits *waits = &lowering->waits;      /* the entry's operations are written */

    if (lowering->lanes.copy) {
        struct new_op like = {.what = next ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = mb, .stage = from->stage};
        uint32_t copied = copy_boundary(lowering, from->prank, receiver, true, like, boundary->bytes, event_of(after));

        after = copied == NO_OP ? after : copied;
    }
    for (int t = 0; t < flows; t++) {
        *GROW(waits) = after;
        if (!duplex && scenario->views)              /* that may have been to a rank of other degrees */
            wait_for(waits, back);
        else if (!duplex && back.count)
            *GROW(waits) = event_flow(&back, t);
        if (boundary->last[t] == NO_OP) {
            int gpu = scenario_gpu(scenario, t, from->replica, from->rank), peer = scenario_gpu(scenario, t, from->replica, dst);
            struct new_op first = transfer_of(lowering, from, next, gpu, peer, lanes[t], boundary->bytes);

            first.mb = mb;
            boundary->last[t] = program_append(lowering->program, &first, waits->items, waits->count);
        } else {
            boundary->last[t] = program_repeat(lowering->program, boundary->last[t], mb, waits->items, waits->count);
        }
        waits->count = 0;
    }
    return lowering->ranks[from->prank].sent[boundary->up] =
        event_all(&lowering->arena, boundary->last, (size_t)flows);
}

void lower_send(struct lowering *lowering, const struct place *from, bool next, uint32_t after)
{
    int dst = plan_rank(lowering->plan, from->direction, next ? from->stage + 1 : from->stage - 1, from->work.mb, NULL);
    struct event *arrived = &on_neighbour(lowering, from, next ? 1 : -1)->arrived[next ? ACTIVATIONS : GRADIENTS];

    if (from->rank == dst)
        *arrived = event_of(after);
    else if (ranks_differ(&lowering->exchanges, from->rank, dst))
        send_resharded(lowering, from, next, dst, after);
    else
        *arrived = send_alike(lowering, from, next, dst, after);
}

void lower_arrival(struct lowering *lowering, const struct place *here)
{
    struct work work = here->work;
    bool forward = work.kind == FORWARD;
    bool backward = work.kind == BACKWARD || work.kind == BACKWARD_INPUT ||
                    (work.kind == RECOMPUTE && lowering->rows.recompute == RECOMPUTE_WITH_GRADIENT);
    int from = forward ? here->stage - 1 : here->stage + 1, rank;
    struct new_op like;
    struct event arrival;
    uint32_t id;

    if (!lowering->lanes.copy || (!forward && !backward) || from < 0 || from >= plan_virtual_stages(lowering->plan) ||
        (backward && here->state->copied))
        return;
    rank = plan_rank(lowering->plan, here->direction, from, work.mb, NULL);
    if (rank == here->rank)
        return;
    like = (struct new_op){.what = forward ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = work.mb, .stage = here->stage};
    arrival = here->state->arrived[forward ? ACTIVATIONS : GRADIENTS];
    id = copy_boundary(lowering, program_rank(lowering, here->replica, rank), here->prank, false, like,
                       lowering->ranks[here->prank].class->stages[forward ? from : here->stage].boundary, arrival);
    here->state->copied |= backward && id != NO_OP;
    wait_for(&lowering->waits, id != NO_OP ? event_of(id) : arrival);
}
