/* ZeRO 3 (Rajbhandari et al. 2020, section 7.2.2; PyTorch FSDP): every replica keeps its share of each layer's
 * parameters. All of a layer's are gathered before it is computed, while the layer before it is; its gradients are
 * scattered as soon as they are ready. All replicas do the same at the same time, so their collectives are measured
 * durations. One stream does both, and the gather for the next layer goes before the scatter of this one (FSDP's
 * BACKWARD_PRE). Or, `data_parallel: synchronous`, nothing is computed while they run (XLA of 2024 put the collectives
 * of a loop over recomputed layers on the stream that computes: openxla/xla issue 14397). */
#include "lower/lower_internal.h"

bool zero_applies(const struct lowering *lowering)
{
    return lowering->whole && lowering->scenario->recipe.weights.when == WEIGHTS_LAYER &&
           scenario_replicas(lowering->scenario) > 1;
}

bool zero_in_turn(const struct lowering *lowering)
{
    return zero_applies(lowering) && lowering->scenario->recipe.in_turn;
}

/* A measured collective in the replica's group, on its stream. */
static uint32_t stream(struct lowering *lowering, struct place here, enum group_kind kind,
                       const struct collective *collective, double bytes, uint32_t after)
{
    int prank = program_rank(lowering, here.replica, here.rank);
    struct measured measured;

    if (bytes == 0 || lowering->failed ||
        group_collective(lowering, kind, here.stage, here.replica, collective, bytes, &measured,
                         &lowering->beside[prank])) {
        lowering->failed |= bytes > 0;
        return NO_OP;
    }
    if (collective->op == COLLECTIVE_ALL_REDUCE)
        lowering_use(lowering, measured.used, measured.protocol);
    return program_add(lowering->program, (struct op){
        .kind = OP_COMPUTE, .what = collective->op == COLLECTIVE_ALL_GATHER ? WHAT_WEIGHTS : WHAT_SYNC,
        .lane = collective_lane(lowering, kind, prank, 0, 0),
        .amount = measured.seconds, .communication = measured.seconds, .sent = measured.bytes_sent, .mb = -1,
        .stage = here.stage,
    }, &after, after == NO_OP ? 0 : 1);
}

/* The k-th layer that the work computes: slices are in the order of the backward. */
static const struct slice *layer_of(const struct stage *stage, enum work_kind kind, size_t k)
{
    bool forwards = kind == FORWARD || kind == RECOMPUTE;

    return &stage->slices[forwards ? stage->nslices - 1 - k : k];
}

/* The work's next layer from the k-th on; a recomputation leaves out those that keep what they need. */
static size_t next_layer(const struct stage *stage, enum work_kind kind, size_t k)
{
    while (kind == RECOMPUTE && k < stage->nslices && !layer_of(stage, kind, k)->again)
        k++;
    return k;
}

/* Recomputed layer by layer with its backward, a layer's parameters are gathered once for both (FSDP with activation
 * checkpointing): the recomputation then has its place in the backward. In segments of several layers they are gathered
 * for each. */
static bool fused(const struct lowering *lowering, struct place here)
{
    return here.cell->recomputes && lowering->scenario->memory.recompute.every <= 1 &&
           scenario_strategy(lowering->scenario)->recompute == RECOMPUTE_WITH_GRADIENT;
}

/* One layer of the work, after its parameters have arrived. */
static uint32_t layer_work(struct lowering *lowering, struct place here, struct work work, const struct slice *layer,
                           struct op *op)
{
    bool again = fused(lowering, here) && (work.kind == BACKWARD || work.kind == BACKWARD_INPUT);
    double frees = op->frees;
    uint32_t id;

    if (again) {
        op->frees = 0;
        if (!op->continues)      /* the span begins as a backward */
            lower_compute(lowering, here, work, (struct stage_work){0}, *op);
        *op = (struct op){.continues = true};
        lower_compute(lowering, here, (struct work){.kind = RECOMPUTE, .chunk = work.chunk, .mb = work.mb},
                      layer->work[RECOMPUTE], *op);
        op->frees = frees;
    }
    id = lower_compute(lowering, here, work, layer->work[work.kind], *op);
    *op = (struct op){.continues = true};
    return id;
}

uint32_t zero_gather(struct lowering *lowering, struct place here, const struct slice *layer, uint32_t after)
{
    double each = scenario_parameter_bytes(lowering->scenario).weights;
    uint32_t last = NO_OP;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        uint32_t id = stream(lowering, here, lowering->scenario->groups.sums[class],
                             lowering->scenario->recipe.weights.collective, slice_weights(layer).of[class] * each,
                             after);

        last = id != NO_OP ? id : last;
    }
    return last;
}

uint32_t zero_scatter(struct lowering *lowering, struct place here, const struct slice *layer, bool last,
                      uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    double each = scenario_parameter_bytes(scenario).sent;
    uint32_t end = after;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        double bytes = layer->trained.of[class] * each;
        uint32_t id = stream(lowering, here, scenario->groups.sums[class], scenario->recipe.gradients.collective,
                             bytes, after);

        if (scenario->recipe.gradients.across && last && id != NO_OP)
            id = stream(lowering, here, GROUP_SAME_SHARE, scenario->recipe.gradients.across,
                        bytes / scenario->recipe.divided[HELD_STATES][class], id);
        if (id != NO_OP)
            here.holder->synced = event_of(id);
        end = id != NO_OP ? id : end;
    }
    return end;
}

uint32_t zero_work(struct lowering *lowering, struct place here, struct work work, bool completes, struct op op)
{
    const struct stage *stage = &lowering->stages[here.stage];
    bool gathers = work.kind != BACKWARD_WEIGHT, scatters = work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT;
    int prank = program_rank(lowering, here.replica, here.rank);
    bool in_turn = zero_in_turn(lowering);
    uint32_t id = lowering->latest[prank], next = NO_OP;
    struct waits *waits = &lowering->waits;
    double frees = op.frees;
    size_t begin = next_layer(stage, work.kind, 0);

    if (work.kind == RECOMPUTE && (fused(lowering, here) || begin == stage->nslices))
        return lower_compute(lowering, here, work, (struct stage_work){0}, op);
    op.frees = 0;
    if (gathers) {
        next = zero_gather(lowering, here, layer_of(stage, work.kind, begin), id);
        lowering->beside[prank] = (struct contention){0};    /* its kernels wait for all of that */
    }
    for (size_t k = begin, after; k < stage->nslices; k = after) {
        const struct slice *layer = layer_of(stage, work.kind, k);
        uint32_t gathered = next, scattered = NO_OP;

        after = next_layer(stage, work.kind, k + 1);
        if (gathers && after < stage->nslices)
            next = zero_gather(lowering, here, layer_of(stage, work.kind, after), k > begin ? id : NO_OP);
        wait_for(waits, event_of(gathered));
        if (in_turn) {
            wait_for(waits, event_of(next));
            lowering->beside[prank] = (struct contention){0};
        }
        op.frees = after == stage->nslices ? frees : 0;
        id = layer_work(lowering, here, work, layer, &op);
        if (gathers)
            lowering->beside[prank] = (struct contention){0};    /* the next layer waits for its parameters */
        if (scatters)
            scattered = zero_scatter(lowering, here, layer, completes, id);
        if (in_turn)
            wait_for(waits, event_of(scattered));
    }
    waits->count = 0;        /* the last scatter holds up none of this work */
    return id;
}
