/* ZeRO 3 (Rajbhandari et al. 2020, section 7.2.2; PyTorch FSDP): every replica keeps its share of each layer's
 * parameters. All of a layer's are gathered before it is computed, while the layer before it is; its gradients are
 * scattered as soon as they are ready. All replicas do the same at the same time, so their collectives are measured
 * durations. One stream does both, and the gather for the next layer goes before the scatter of this one (FSDP's
 * BACKWARD_PRE). */
#include "lower_internal.h"

bool zero_applies(const struct lowering *lowering)
{
    return lowering->whole && lowering->scenario->strategy.zero == 3 && scenario_replicas(lowering->scenario) > 1;
}

/* A measured collective over a layer's parameters, at `each` bytes, on the rank's stream: over all replicas, and then
 * over those that hold the same experts. */
static uint32_t stream(struct lowering *lowering, struct place here, enum collective_op op, const struct slice *layer,
                       double each, uint32_t after)
{
    double bytes[2] = {(layer->parameters - layer->expert_parameters) * each, layer->expert_parameters * each};
    int prank = program_rank(lowering, here.replica, here.rank);
    struct measured measured[2] = {0};

    for (int experts = 0; experts < 2 && !lowering->failed; experts++)
        if (bytes[experts] > 0)
            lowering->failed |= stage_collective(lowering, here.stage, experts, collective_find(op, "ring"),
                                                 bytes[experts], &measured[experts]) != 0;
    if (layer->parameters == 0 || lowering->failed)
        return NO_OP;
    double seconds = measured[0].seconds + measured[1].seconds;
    return program_add(lowering->program, (struct op){
        .kind = OP_COMPUTE, .what = WHAT_SYNC, .lane = collective_lane(lowering, prank, 0, 0),
        .amount = seconds, .communication = seconds, .sent = measured[0].bytes_sent + measured[1].bytes_sent,
        .mb = -1, .stage = here.stage,
    }, &after, after == NO_OP ? 0 : 1);
}

/* The k-th layer that the work computes: slices are in the order of the backward. */
static const struct slice *layer_of(const struct stage *stage, enum work_kind kind, size_t k)
{
    bool forwards = kind == FORWARD || kind == RECOMPUTE;

    return &stage->slices[forwards ? stage->nslices - 1 - k : k];
}

/* Recomputed layer by layer with its backward, a layer's parameters are gathered once for both (FSDP with activation
 * checkpointing): the recomputation then has its place in the backward. */
static bool fused(const struct lowering *lowering, struct place here)
{
    return here.cell->recomputes && scenario_strategy(lowering->scenario)->recompute == RECOMPUTE_WITH_GRADIENT;
}

/* One layer of the work, after its parameters have arrived. */
static uint32_t layer_work(struct lowering *lowering, struct place here, struct work work, const struct slice *layer,
                           struct op *op, struct waits *first)
{
    bool again = fused(lowering, here) && (work.kind == BACKWARD || work.kind == BACKWARD_INPUT);
    double frees = op->frees;
    uint32_t id;

    if (again) {
        op->frees = 0;
        if (!op->continues)      /* the span begins as a backward */
            lower_compute(lowering, here, work, (struct stage_work){0}, *op, first);
        *op = (struct op){.continues = true};
        lower_compute(lowering, here, (struct work){.kind = RECOMPUTE, .chunk = work.chunk, .mb = work.mb},
                      layer->work[RECOMPUTE], *op, first);
        first->count = 0;
        op->frees = frees;
    }
    id = lower_compute(lowering, here, work, layer->work[work.kind], *op, first);
    *op = (struct op){.continues = true};
    return id;
}

uint32_t zero_work(struct lowering *lowering, struct place here, struct work work, struct op op,
                   const struct waits *waits)
{
    const struct stage *stage = &lowering->stages[here.stage];
    struct parameter_bytes each = scenario_parameter_bytes(lowering->scenario);
    bool gathers = work.kind != BACKWARD_WEIGHT, scatters = work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT;
    uint32_t id = lowering->latest[program_rank(lowering, here.replica, here.rank)], next = NO_OP, ids[2];
    struct waits first = *waits;
    double frees = op.frees;

    if (work.kind == RECOMPUTE && fused(lowering, here))
        return lower_compute(lowering, here, work, (struct stage_work){0}, op, waits);
    op.frees = 0;
    if (gathers)
        next = stream(lowering, here, COLLECTIVE_ALL_GATHER, layer_of(stage, work.kind, 0), each.weights, id);
    for (size_t k = 0; k < stage->nslices; k++) {
        const struct slice *layer = layer_of(stage, work.kind, k);
        uint32_t gathered = next;

        if (gathers && k + 1 < stage->nslices)
            next = stream(lowering, here, COLLECTIVE_ALL_GATHER, layer_of(stage, work.kind, k + 1), each.weights,
                          k ? id : NO_OP);
        if (gathered != NO_OP)
            first.ids[first.count++] = gathered;
        op.frees = k + 1 == stage->nslices ? frees : 0;
        id = layer_work(lowering, here, work, layer, &op, &first);
        first = (struct waits){.ids = ids};
        if (scatters) {
            uint32_t scattered = stream(lowering, here, COLLECTIVE_REDUCE_SCATTER, layer, each.gradients, id);

            for (int t = 0; scattered != NO_OP && t < lowering->program->flows; t++)
                here.holder->synced[t] = scattered;
        }
    }
    return id;
}
