/* Boundaries between stages: their transfers, and the copies that sockets need.
 *
 * Reads a place whose work has ended, and the degrees of the rank that holds the neighbouring stage.
 * Adds transfers, and the event of their end for which the neighbouring stage waits. */
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
#include "lower/script_rows.h"
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

/* Adds the copy of a boundary between a GPU and the buffers of sockets, after `after`: on the sender if `sends`, else
 * on the receiver. The sends and receives of a rank take turns: NCCL runs a communicator's operations one after
 * another, on whatever streams they were launched (NCCL, src/enqueue.cc: a launch waits for the last one). NO_OP: the
 * message needs no copy. */
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

/* The way of a boundary: from a place to the next stage or to the previous one, which pipeline rank `dst` holds. `up`:
 * it uses the lanes to higher ranks; in a loop of ranks, those to the next stage. */
struct way { const struct place *from; bool next, up; int dst; };

/* The stage that computes the activations which cross the boundary, or whose gradients do. */
static int boundary_stage(struct way way)
{
    return way.next ? way.from->stage : way.from->stage - 1;
}

/* The transfers of all micro-batches from one chunk of a program rank, forward or backward: their common values. */
struct boundary {
    int dst;                         /* pipeline rank: one of the sharers of the stage there */
    double bytes;
    uint32_t last[];                 /* a flow: its last transfer; NO_OP: none yet */
};

/* The way's boundary, made once, and again where the last transfer went to another sharer. */
static struct boundary *boundary_of(struct lowering *lowering, struct way way)
{
    size_t flows = (size_t)lowering->program->flows;
    struct boundary **slot = &way.from->chunk_state->boundaries[way.next], *boundary = *slot;

    if (boundary && boundary->dst == way.dst)
        return boundary;
    if (!boundary)
        *slot = boundary = arena_alloc(&lowering->arena, sizeof *boundary + flows * sizeof *boundary->last);
    boundary->dst = way.dst;
    boundary->bytes = lowering->ranks[way.from->prank].class->stages[boundary_stage(way)].boundary;
    memset(boundary->last, 0xff, flows * sizeof *boundary->last);        /* NO_OP */
    return boundary;
}

/* A transfer from one GPU to another. The caller sets its micro-batch. */
static struct new_op transfer_of(const struct lowering *lowering, struct way way, int gpu, int peer, uint32_t lane,
                                 double bytes)
{
    const struct scenario *scenario = lowering->scenario;
    struct extra extra = cluster_send(&scenario->cluster, gpu, peer);

    return (struct new_op){
        .kind = OP_TRANSFER, .what = way.next ? WHAT_ACTIVATION : WHAT_GRADIENT, .amount = bytes,
        .exchange = exchange_number(GROUP_PIPELINE, COLLECTIVE_OP_COUNT), .stage = way.from->stage, .lane = lane,
        .transfer = {
            .src = (uint32_t)gpu, .dst = (uint32_t)peer, .delay = extra.delay + host_send(scenario),
            .overhead = extra.overhead, .buffered = !isinf(cluster_copy(&scenario->cluster, gpu, peer)),
        },
    };
}

/* The pipeline rank that an entry's activations or gradients come from. */
static int sender_of(const struct lowering *lowering, const struct place *here, enum arrival arrival)
{
    int stage = arrival == ACTIVATIONS ? here->stage - 1 : here->stage + 1;

    return plan_rank(lowering->plan, here->direction, stage, here->work.mb, NULL);
}

/* A gather is of the first layer's hidden states. The boundary of an encoder-decoder is of one side, or of both. */
static double gathers_of_boundary(const struct lowering *lowering, const struct place *here, enum arrival arrival)
{
    const struct transformer *shape = lowering->scenario->model.transformer;
    const struct stage *stages = lowering->ranks[here->prank].class->stages;

    if (!shape || !shape->encoder)
        return 1;
    return stages[here->stage - (arrival == ACTIVATIONS)].boundary * scenario_tensor(lowering->scenario, here->rank) /
           stages->exchanges->items[EXCHANGE_GATHER].bytes;
}

double boundary_gathers(const struct lowering *lowering, const struct place *here)
{
    const struct parallelism *spec = &lowering->scenario->parallelism;
    enum work_kind kind = here->work.kind;
    enum arrival arrival;
    int rank;

    if (scenario_tensor(lowering->scenario, here->rank) == 1 || spec->sequence_parallel || kind == RECOMPUTE)
        return 0;
    arrival = work_arrival(&lowering->rows, kind, here->stage);
    if (arrival == NO_ARRIVAL)
        return 0;
    rank = sender_of(lowering, here, arrival);
    if (rank == here->rank || (!spec->scatter_gather && !ranks_differ(&lowering->exchanges, rank, here->rank)))
        return 0;
    return (spec->partitioned_outputs && kind != FORWARD ? 2 : 1) * gathers_of_boundary(lowering, here, arrival);
}

struct new_op op_with_gathers(const struct place *here, double gathers)
{
    const struct exchange_cost *gather = &here->chunk_state->exchanges[EXCHANGE_GATHER];

    return (struct new_op){.compute = {.communication = gathers * gather->seconds,
                                       .with[PEERS_TENSOR] = gathers * gather->seconds,
                                       .sent = gathers * gather->bytes_sent,
                                       .vector = gathers * gather->vector}};
}

/* A boundary to a rank of other degrees: each GPU sends each GPU there the part that both hold. All parts are under way
 * at once (torch.distributed.batch_isend_irecv: one group of NCCL's). */
struct reshard {
    size_t count;
    struct part {
        int replica;                 /* of the receiver */
        struct new_op transfer;
        uint32_t last;               /* NO_OP: none yet */
    } parts[];
};

/* Adds the parts that one replica there receives. */
static void add_parts(struct lowering *lowering, struct way way, int replica, struct reshard *reshard)
{
    const struct scenario *scenario = lowering->scenario;
    const struct place *from = way.from;
    int tensor = scenario_tensor(scenario, from->rank), there = scenario_tensor(scenario, way.dst);
    double whole = boundary_whole(scenario, lowering->ranks[from->prank].class->stages, boundary_stage(way));
    double samples = layout_common(from->replica, scenario_rank_replicas(scenario, from->rank), replica,
                                   scenario_rank_replicas(scenario, way.dst));

    for (int t = 0; t < tensor; t++) {
        struct partners partners = layout_partners(t, tensor, there);

        for (int u = partners.first; u <= partners.last; u++) {
            uint32_t lane = program_lane(lowering->program, from->prank, way.up ? LANE_SEND_NEXT : LANE_SEND_PREVIOUS,
                                         lowering->program->flows + (int)reshard->count);

            reshard->parts[reshard->count++] = (struct part){
                replica, transfer_of(lowering, way, scenario_gpu(scenario, t, from->replica, from->rank),
                                     scenario_gpu(scenario, u, replica, way.dst), lane,
                                     whole * samples * layout_common(t, tensor, u, there)), NO_OP,
            };
        }
    }
}

/* The way's parts for these replicas, made once. */
static struct reshard *reshard_of(struct lowering *lowering, struct way way, struct partners replicas)
{
    const struct scenario *scenario = lowering->scenario;
    struct reshard **slot = &way.from->chunk_state->reshards[way.next], *reshard = *slot;
    size_t most = (size_t)(scenario_tensor(scenario, way.from->rank) + scenario_tensor(scenario, way.dst));

    if (reshard)
        return reshard;
    most *= (size_t)(replicas.last - replicas.first + 1);
    *slot = reshard = arena_alloc(&lowering->arena, sizeof *reshard + most * sizeof *reshard->parts);
    reshard->count = 0;
    for (int replica = replicas.first; replica <= replicas.last; replica++)
        add_parts(lowering, way, replica, reshard);
    return reshard;
}

/* Sends a boundary to a rank of other degrees. A replica there waits for the parts of all its senders. */
static void send_resharded(struct lowering *lowering, struct way way, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    const struct place *from = way.from;
    struct partners replicas = partners_on(&lowering->exchanges, from->replica, from->rank, way.dst);
    struct reshard *reshard = reshard_of(lowering, way, replicas);
    int to = way.next ? from->stage + 1 : from->stage - 1, mb = from->work.mb;
    struct waits sent = {0};

    for (size_t i = 0; i < reshard->count; i++) {
        struct part *part = &reshard->parts[i];
        struct micro_batch_state *there = micro_batch_state_of(lowering, part->replica, from->direction, to, mb);
        struct event *arrived = &there->arrived[way.next ? ACTIVATIONS : GRADIENTS];
        struct waits *waits = &lowering->waits;      /* empty: the entry's operations are written */

        wait_for(waits, event_of(after));
        if (!scenario->parallelism.duplex_p2p)
            wait_for(waits, lowering->ranks[program_rank(lowering, part->replica, way.dst)].sent[!way.up]);
        part->transfer.mb = mb;
        part->last = part->last == NO_OP ? program_append(lowering->program, &part->transfer, waits->items, waits->count)
                                         : program_repeat(lowering->program, part->last, mb, waits->items, waits->count);
        waits->count = 0;
        *arrived = event_both(&lowering->arena, *arrived, event_of(part->last));
        wait_for(&sent, event_of(part->last));
    }
    lowering->ranks[from->prank].sent[way.up] = event_taken(&lowering->arena, &sent);
}

/* Sends a boundary to a rank of the same degrees. Returns the end of its transfers. */
static struct event send_alike(struct lowering *lowering, struct way way, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    const struct place *from = way.from;
    int flows = rank_flows(&lowering->exchanges, way.dst), receiver = program_rank(lowering, from->replica, way.dst);
    int mb = from->work.mb;
    bool duplex = scenario->parallelism.duplex_p2p;
    struct boundary *boundary = boundary_of(lowering, way);
    struct event back = lowering->ranks[receiver].sent[!way.up];   /* what the receiver last sent this way */
    const uint32_t *lanes = lowering->lanes.send[way.up] + from->prank * lowering->program->flows;
    struct waits *waits = &lowering->waits;      /* empty: the entry's operations are written */

    if (lowering->lanes.copy) {
        struct new_op like = {.what = way.next ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = mb, .stage = from->stage};
        uint32_t copied = copy_boundary(lowering, from->prank, receiver, true, like, boundary->bytes, event_of(after));

        after = copied == NO_OP ? after : copied;
    }
    for (int t = 0; t < flows; t++) {
        *GROW(waits) = after;
        if (!duplex && scenario->views)              /* `back` may have gone to a rank of other degrees, in other
                                                      * flows */
            wait_for(waits, back);
        else if (!duplex && back.count)
            *GROW(waits) = event_flow(&back, t);
        if (boundary->last[t] == NO_OP) {
            int gpu = scenario_gpu(scenario, t, from->replica, from->rank);
            int peer = scenario_gpu(scenario, t, from->replica, way.dst);
            struct new_op first = transfer_of(lowering, way, gpu, peer, lanes[t], boundary->bytes);

            first.mb = mb;
            boundary->last[t] = program_append(lowering->program, &first, waits->items, waits->count);
        } else {
            boundary->last[t] = program_repeat(lowering->program, boundary->last[t], mb, waits->items, waits->count);
        }
        waits->count = 0;
    }
    return lowering->ranks[from->prank].sent[way.up] =
        event_all(&lowering->arena, boundary->last, (size_t)flows);
}

void lower_send(struct lowering *lowering, const struct place *from, bool next, uint32_t after)
{
    int dst = plan_rank(lowering->plan, from->direction, next ? from->stage + 1 : from->stage - 1, from->work.mb, NULL);
    struct event *arrived = &on_neighbour(lowering, from, next ? 1 : -1)->arrived[next ? ACTIVATIONS : GRADIENTS];
    struct way way = {from, next, lowering->plan->placement == PLACEMENT_LOOP ? next : dst > from->rank, dst};

    if (from->rank == dst)
        *arrived = event_of(after);
    else if (ranks_differ(&lowering->exchanges, from->rank, dst))
        send_resharded(lowering, way, after);
    else
        *arrived = send_alike(lowering, way, after);
}

void lower_arrival(struct lowering *lowering, const struct place *here)
{
    struct work work = here->work;
    enum arrival arrival = work_arrival(&lowering->rows, work.kind, here->stage);
    bool activations = arrival == ACTIVATIONS;
    struct new_op like;
    struct event arrived;
    uint32_t id;
    int rank;

    if (!lowering->lanes.copy || arrival == NO_ARRIVAL || (!activations && here->state->copied) ||
        (work.kind == RECOMPUTE && lowering->rows.recompute != RECOMPUTE_WITH_GRADIENT))
        return;
    rank = sender_of(lowering, here, arrival);
    if (rank == here->rank)
        return;
    like = (struct new_op){.what = activations ? WHAT_ACTIVATION : WHAT_GRADIENT, .mb = work.mb, .stage = here->stage};
    arrived = here->state->arrived[arrival];
    id = copy_boundary(lowering, program_rank(lowering, here->replica, rank), here->prank, false, like,
                       lowering->ranks[here->prank].class->stages[here->stage - activations].boundary, arrived);
    here->state->copied |= !activations && id != NO_OP;
    wait_for(&lowering->waits, id != NO_OP ? event_of(id) : arrived);
}
