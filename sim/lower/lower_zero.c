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

struct event zero_gather(struct lowering *lowering, struct place here, const struct slice *layer, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    double each = scenario_parameter_bytes(scenario).weights;
    struct event last = {0};

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct event done = exchange_alone(lowering, here, scenario->groups.sums[class], (struct emission){
            scenario->recipe.weights.collective, WHAT_WEIGHTS, slice_weights(layer).of[class] * each,
        }, after);

        last = done.count ? done : last;
    }
    return last;
}

struct event zero_scatter(struct lowering *lowering, struct place here, const struct slice *layer, bool last,
                          struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    const struct recipe *recipe = &scenario->recipe;
    double each = scenario_parameter_bytes(scenario).sent;
    struct event end = after;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        double bytes = layer->trained.of[class] * each;
        struct event done = exchange_alone(lowering, here, scenario->groups.sums[class], (struct emission){
            recipe->gradients.collective, WHAT_SYNC, bytes,
        }, after);

        if (recipe->gradients.across && last && done.count)
            done = exchange_alone(lowering, here, GROUP_SAME_SHARE, (struct emission){
                recipe->gradients.across, WHAT_SYNC, bytes / recipe->divided[HELD_STATES][class],
            }, done);
        if (done.count)
            here.holder->synced = end = done;
    }
    return end;
}

uint32_t zero_work(struct lowering *lowering, struct place here, struct work work, bool completes, struct op op)
{
    const struct stage *stage = &lowering->stages[here.stage];
    bool gathers = work.kind != BACKWARD_WEIGHT, scatters = work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT;
    int prank = program_rank(lowering, here.replica, here.rank);
    bool in_turn = zero_in_turn(lowering);
    uint32_t id = lowering->latest[prank];
    struct event next = {0};
    struct waits *waits = &lowering->waits;
    double frees = op.frees;
    size_t begin = next_layer(stage, work.kind, 0);

    if (work.kind == RECOMPUTE && (fused(lowering, here) || begin == stage->nslices))
        return lower_compute(lowering, here, work, (struct stage_work){0}, op);
    op.frees = 0;
    if (gathers) {
        next = zero_gather(lowering, here, layer_of(stage, work.kind, begin), event_of(id));
        lowering->beside[prank] = (struct contention){0};    /* its kernels wait for all of that */
    }
    for (size_t k = begin, after; k < stage->nslices; k = after) {
        const struct slice *layer = layer_of(stage, work.kind, k);
        struct event gathered = next, scattered = {0};

        after = next_layer(stage, work.kind, k + 1);
        if (gathers && after < stage->nslices)
            next = zero_gather(lowering, here, layer_of(stage, work.kind, after),
                               event_of(k > begin ? id : NO_OP));
        wait_for(waits, gathered);
        if (in_turn) {
            wait_for(waits, next);
            lowering->beside[prank] = (struct contention){0};
        }
        op.frees = after == stage->nslices ? frees : 0;
        id = layer_work(lowering, here, work, layer, &op);
        if (gathers)
            lowering->beside[prank] = (struct contention){0};    /* the next layer waits for its parameters */
        if (scatters)
            scattered = zero_scatter(lowering, here, layer, completes, event_of(id));
        if (in_turn)
            wait_for(waits, scattered);
    }
    waits->count = 0;        /* the last scatter holds up none of this work */
    return id;
}
