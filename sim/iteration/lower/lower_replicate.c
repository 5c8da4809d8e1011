/* PyTorch's DataParallel (torch/nn/parallel/data_parallel.py): GPU 0 has the model. Every forward scatters its samples,
 * copies the weights to all GPUs and gathers their outputs. GPU 0 computes the loss of all replicas and scatters the
 * gradients of the outputs. Every backward ends with the sum of the replicas' gradients on GPU 0, which alone updates.
 *
 * One process launches all kernels and exchanges on the GPUs' default streams, so nothing overlaps: each entry of the
 * rows begins when all GPUs have come to it, after the exchanges before it. Weights and gradients travel in buffers
 * (exchange/buffers.h), by NCCL's broadcast and reduce. A kernel fills a buffer of several tensors. The time of the
 * process itself (threads, Python) is not modelled.
 *
 * Reads an entry of the rows, when all GPUs have come to it.
 * Adds the exchanges before it, for which its works wait (`awaited`). */
#include "lower/party.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/buffers.h"
#include "hardware/precision.h"
#include "kernels/costs.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"

/* A copy on one GPU: `bytes` are read and written. */
static uint32_t pack(struct lowering *lowering, int replica, double bytes, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    struct kernel kernel = {
        .name = "pack", .kind = KERNEL_MEMORY, .dtype = precision_dtype(&scenario->memory.precision),
        .launches = 1, .bytes = 2 * bytes,
    };

    if (model_is_timed(&scenario->model) || bytes == 0)
        return lowering->ranks[replica].latest;
    const struct kernel_costs *costs = &scenario->kernels[scenario_seat(scenario, 0, replica, 0).kind];
    return lower_pack(lowering, replica, 0, costs_kernel(costs, &kernel).seconds, after);
}

/* Exchanges all buffers, one collective after another. Each GPU begins after its latest work. */
static struct party *exchange_buffers(struct lowering *lowering, const struct buffers *buffers,
                                      const struct collective *collective, enum op_what what)
{
    struct party *party = party_of(lowering, GROUP_DATA, 0);

    for (int d = 0; d < party->members->all; d++) {
        party->done[d] = event_of(NO_OP);
        party->after[d] = event_of(lower_after(lowering, (struct new_op){
            .kind = OP_COMPUTE, .what = (uint8_t)what, .lane = collective_lane(lowering, GROUP_DATA, d, 0, 0), .mb = -1,
        }, event_of(lowering->ranks[d].latest)));
    }
    for (size_t b = 0; b < buffers->count; b++)
        exchange_all(lowering, party, (struct emission){collective, what, buffers->items[b]});
    return party;
}

/* A point-to-point copy on the sender's stream. */
static struct event copy_over(struct lowering *lowering, int from, int to, enum op_what what, double bytes, int mb,
                              struct event after)
{
    return event_of(lower_after(lowering, (struct new_op){
        .kind = OP_TRANSFER, .what = (uint8_t)what, .exchange = exchange_number(GROUP_DATA, COLLECTIVE_OP_COUNT),
        .lane = collective_lane(lowering, GROUP_DATA, from, 0, 0), .amount = bytes, .mb = mb,
        .transfer.src = (uint32_t)scenario_gpu(lowering->scenario, 0, from, 0),
        .transfer.dst = (uint32_t)scenario_gpu(lowering->scenario, 0, to, 0),
    }, after));
}

/* Lets the replica's next entry wait for an event. */
static void wait_before_next(struct lowering *lowering, int replica, struct event event)
{
    wait_for(&chunk_state_of(lowering, replica, 0)->awaited, event);
}

/* Before a forward: sends its samples and all weights. */
static void hand_out(struct lowering *lowering, int mb)
{
    const struct stage *stage = &lowering->workload->stages[0];
    double each = scenario_parameter_bytes(lowering->scenario).weights;
    struct buffers buffers = buffers_of(stage, each, true);
    struct event first = event_of(lowering->ranks[0].latest);
    const struct party *party;

    for (int d = 1; stage->io.input > 0 && d < lowering->exchanges.alike.replicas; d++)
        wait_before_next(lowering, d, copy_over(lowering, 0, d, WHAT_ACTIVATION, stage->io.input, mb, first));
    first = event_of(pack(lowering, 0, buffers.packed, chunk_state_of(lowering, 0, 0)->synced));
    party = exchange_buffers(lowering, &buffers, lowering->scenario->recipe.weights.collective, WHAT_WEIGHTS);
    for (int d = 0; d < lowering->exchanges.alike.replicas; d++) {
        wait_before_next(lowering, d, party->done[d]);
        wait_before_next(lowering, d, first);
    }
    free(buffers.items);
}

/* Between a forward and its backward: gathers all outputs, computes the loss, sends the gradients of the outputs. */
static void compute_loss(struct lowering *lowering, int mb)
{
    const struct model_io *io = &lowering->workload->stages[0].io;
    const struct loss_times *times = &lowering->ranks[0].class->times[0].loss;
    int n = lowering->exchanges.alike.replicas;
    double gathered = n * (io->output + io->activation), gradients = n * io->output;
    struct event last = {0}, forwarded = {0}, loss;
    struct new_op op = {.kind = OP_COMPUTE, .lane = lowering->ranks[0].compute_lane, .mb = mb};

    for (int d = 1; d < n; d++) {
        forwarded = event_of(micro_batch_state_of(lowering, d, 0, 0, mb)->done[FORWARDED]);
        last = copy_over(lowering, d, 0, WHAT_ACTIVATION, io->output, mb,
                         event_both(&lowering->arena, last, forwarded));
    }
    op.what = WHAT_FORWARD;
    op.amount = times->all_forward;
    op.takes = gathered;
    lower_after(lowering, op, event_both(&lowering->arena, last, forwarded));
    op.what = WHAT_BACKWARD;
    op.amount = times->all_backward;
    op.takes = gradients;
    op.frees = gathered + gradients;
    lowering->ranks[0].latest = program_add(lowering->program, op, NULL, 0);
    loss = event_of(lowering->ranks[0].latest);
    for (int d = 1; d < n; d++) {
        wait_before_next(lowering, d, copy_over(lowering, 0, d, WHAT_GRADIENT, io->output, mb, loss));
        wait_before_next(lowering, d, loss);
    }
}

/* After a backward: sums the gradients on GPU 0. */
static void sum_gradients(struct lowering *lowering)
{
    double each = scenario_parameter_bytes(lowering->scenario).gradients;
    struct buffers buffers = buffers_of(&lowering->workload->stages[0], each, false);
    struct waits computed = {0};
    const struct party *party;

    for (int d = 0; d < lowering->exchanges.alike.replicas; d++)
        wait_for(&computed, event_of(pack(lowering, d, buffers.packed, event_of(NO_OP))));
    lowering->sums.computed[0] = event_taken(&lowering->arena, &computed);
    party = exchange_buffers(lowering, &buffers, lowering->scenario->recipe.gradients.collective, WHAT_SYNC);
    for (int d = 0; d < party->members->here; d++)
        member_chunk(lowering, party, d)->synced = party->done[d];
    free(buffers.items);
}

void replicate_before(struct lowering *lowering, size_t entry)
{
    struct work work = row_entry(&lowering->rows, 0, entry), before = row_entry(&lowering->rows, 0, entry - (entry > 0));

    if (entry > 0 && (before.kind == BACKWARD || before.kind == BACKWARD_WEIGHT))
        sum_gradients(lowering);
    if (work.kind == FORWARD)
        hand_out(lowering, work.mb);
    else if (work.kind == BACKWARD || work.kind == BACKWARD_INPUT)
        compute_loss(lowering, work.mb);
}

uint32_t replicated_work(struct lowering *lowering, const struct place *here, struct new_op op)
{
    const struct stage *stage = &lowering->workload->stages[0];
    struct parameter_bytes each = scenario_parameter_bytes(lowering->scenario);
    enum work_kind kind = here->work.kind;
    struct work_cost cost = stage_cost(here, kind);
    /* from its forward to its backward a replica holds its output instead of the loss's activation, and copies of the
     * weights */
    double kept = stage->io.output - stage->io.activation + (here->replica > 0 ? stage->parameters * each.weights : 0);
    double gradients = stage->parameters * each.gradients, loss = 0;

    if (kind == FORWARD) {
        loss = here->times->loss.forward;
        op.takes += kept;
    } else if (kind == BACKWARD || kind == BACKWARD_INPUT) {
        loss = here->times->loss.backward;
        op.takes += gradients;
    }
    if (kind == BACKWARD || kind == BACKWARD_WEIGHT)
        op.frees += kept + gradients;
    cost.times.seconds = fmax(0, cost.times.seconds - loss);
    return lower_compute(lowering, here, kind, &cost, &op);
}
