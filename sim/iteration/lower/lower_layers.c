/* A stage computed layer by layer, under a plan (stage_plan.h) or under ZeRO 3. Exchanges and copies to and from the
 * host overlap with kernels.
 *
 * ZeRO 3 (Rajbhandari et al. 2020, section 7.2.2; PyTorch FSDP): every replica keeps its share of each layer's
 * parameters. A layer's parameters are gathered while the layer before it is computed. Its gradients are scattered as
 * soon as they are ready. All replicas do the same at the same time, so their collectives are measured durations. One
 * stream does both, and the gather for the next layer goes before the scatter of this one (FSDP's BACKWARD_PRE).
 * Without reshard_after_forward a backward finds the weights that its forward gathered; with sums_once a forward finds
 * the weights of the backward before it. With both a chunk's first forward gathers for the iteration, and all other
 * works are as without ZeRO. Without `flatten` weights come tensor by tensor (lower_zero.c, tensors_work), but layer by
 * layer where there is a plan. With `data_parallel: synchronous` no kernels run during collectives (XLA of 2024 put the
 * collectives of a loop over recomputed layers on the stream that computes: openxla/xla issue 14397).
 *
 * The host: activations go there after their layer's forward and come back before its backward, when the plan says.
 * Weights come before each layer (L2L: Pudipeddi et al. 2020; ZeRO-Infinity: Rajbhandari et al. 2021), double-buffered.
 * Under ZeRO 3 a layer's weights are gathered from shares that come from the host (ZeRO-Infinity, section 5.1), once for
 * a recomputation and the backward right after it. A copy takes its latency, and its bytes at the bandwidth that every
 * GPU of a node gets while all of them copy. So copies of different GPUs do not contend.
 *
 * Reads a place, and the plan of its stage.
 * Adds the operations of its layers, gathers, scatters and copies. */
#include "lower/lower_internal.h"
#include "recompute/stage_plan.h"

#include "base/base.h"
#include "engine/event.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "stage/stage.h"

/* The state of lowering an entry layer by layer. */
struct walk {
    struct lowering *lowering;
    const struct place *here;
    const struct stage *stage;
    struct rank_host *host;
    struct new_op op;        /* memory and communication of the next operation, in addition to its layer's */
    uint32_t id;             /* the last operation */
    bool gathers, scatters;  /* ZeRO 3: weights of layers before their kernels; their gradients after them */
    const struct slice *current;     /* ZeRO 3: the layer of the current step */
    struct event gathered, next;     /* the gather of its weights; the gather for the next layer */
};

/* A copy's operation, for host_copy: its micro-batch and stage, and the memory that it takes or frees. */
static struct new_op copy_op(const struct walk *walk, double takes, double frees)
{
    return (struct new_op){.mb = walk->here->work.mb, .stage = walk->here->stage, .takes = takes, .frees = frees};
}

/* Copies a layer's weights, under ZeRO 3 the rank's share of them, from the host. Returns the end; `after` if the host
 * does not hold them. */
static struct event fetch(struct walk *walk, const struct slice *layer, struct event after)
{
    const struct scenario *scenario = walk->lowering->scenario;
    double held = recipe_share(&scenario->recipe, HELD_WEIGHTS, slice_weights(layer));
    double bytes = held * scenario_parameter_bytes(scenario).weights;

    if (!scenario_offloads(scenario, OFFLOAD_WEIGHTS) || bytes == 0)
        return after;
    return host_copy(walk->lowering, false, bytes, true, walk->here->prank, copy_op(walk, 0, 0), after);
}

/* Gathers a layer's weights, after their copy from the host if it holds them. Returns the end. */
static struct event gather(struct walk *walk, const struct slice *layer, struct event after)
{
    struct event fetched = fetch(walk, layer, after), whole = gather_layer(walk->lowering, walk->here, layer, fetched);

    return whole.count ? whole : fetched;
}

/* While a layer is computed the next layer's weights are gathered, as soon as the layer before it has been computed.
 * The first layer's gather waits for all earlier operations. `again`: also if the layer's were there for the operation before. */
static void gather_weights(struct walk *walk, const struct slice *layer, const struct slice *next, bool again)
{
    struct contention *contention = &walk->lowering->ranks[walk->here->prank].overlapped;
    struct event none = {0}, before = event_of(walk->lowering->ranks[walk->here->prank].latest);

    if (again || walk->current != layer) {
        if (!walk->current) {
            walk->next = gather(walk, layer, before);
            *contention = (struct contention){0}; /* its kernels wait for the gather */
        }
        walk->gathered = walk->next;
        walk->next = next ? gather(walk, next, walk->current ? before : none) : none;
        walk->current = layer;
    }
    wait_for(&walk->lowering->waits, walk->gathered);
    if (zero_in_turn(walk->lowering)) {
        wait_for(&walk->lowering->waits, walk->next);
        *contention = (struct contention){0};
    }
}

/* Lets the next operation wait for its layer's weights: a gather, or a copy from the host. The copy goes into the
 * buffer of the layer before the last one, so it may run while the operation before it runs. */
static void weights_for(struct walk *walk, const struct slice *layer, const struct slice *next)
{
    struct rank_host *host = walk->host;

    if (walk->gathers) {
        gather_weights(walk, layer, next, false);
        return;
    }
    if (!scenario_offloads(walk->lowering->scenario, OFFLOAD_WEIGHTS) || layer->parameters + layer->frozen == 0)
        return;
    if (host->loaded != layer)
        host->fetched = fetch(walk, layer, host->before);
    host->loaded = layer;
    wait_for(&walk->lowering->waits, host->fetched);
}

static void compute_layer(struct walk *walk, enum work_kind kind, const struct slice *layer, bool selective,
                          double takes, double frees)
{
    struct lowering *lowering = walk->lowering;
    const struct workspace *workspace = selective ? &layer->selective.workspace : &layer->workspace;
    struct work_cost cost = slice_cost(walk->here, layer, kind);
    struct new_op op = walk->op;

    if (selective)
        work_cost_add(&cost, &(struct work_cost){
            *layer->selective.core, *slice_times(walk->stage, walk->here->times, layer)->core,
        });
    op.takes = takes;
    op.frees = frees;
    op.workspace = kind == FORWARD || kind == RECOMPUTE ? workspace->forward : workspace->backward;
    walk->host->before = event_of(lowering->ranks[walk->here->prank].latest);
    walk->id = lower_compute(lowering, walk->here, kind, &cost, &op);
    walk->op = (struct new_op){.continues = true};
}

/* No collective so far overlaps with the next layer: its kernels wait for the gather of their weights. */
static void leave_layer(struct walk *walk)
{
    if (walk->gathers || walk->scatters)
        walk->lowering->ranks[walk->here->prank].overlapped = (struct contention){0};
}

/* Adds one of a plan's copies. The copies of one layer follow each other: the first of them pays the link's latency. */
static struct event copy_tensor(struct walk *walk, bool to_host, const struct plan_copy *copy, bool first,
                                struct event after)
{
    double bytes = copy->bytes;

    return host_copy(walk->lowering, to_host, bytes, first, walk->here->prank,
                        copy_op(walk, to_host ? 0 : bytes, to_host ? bytes : 0), after);
}

/* Copies the tensors of layer `l` that the plan sends to the host; `copy`: the plan's next copy. */
static void send_layer(struct walk *walk, size_t l, size_t *copy)
{
    const struct stage_plan *plan = walk->stage->plan;

    for (bool first = true; *copy < plan->ncopies && plan->copies[*copy].layer == l; ++*copy, first = false) {
        struct event event = copy_tensor(walk, true, &plan->copies[*copy], first, event_of(walk->id));

        walk->here->state->moved[*copy] = event;
        host_note_copy(walk->lowering, walk->host, event, plan->copies[*copy].bytes);
    }
}

/* A forward under a plan, layer by layer. */
static void forward_layers(struct walk *walk)
{
    const struct stage_plan *plan = walk->stage->plan;
    struct micro_batch_state *state = walk->here->state;
    size_t copy = 0;

    if (plan->offloaded > 0 && !state->moved)
        state->moved = ARENA_ARRAY(&walk->lowering->arena, struct event, plan->ncopies);
    for (size_t l = 0; l < plan->count; l++) {
        const struct slice *layer = stage_layer(walk->stage, l);

        weights_for(walk, layer, l + 1 < plan->count ? stage_layer(walk->stage, l + 1) : NULL);
        wait_for(&walk->lowering->waits, host_drained(walk->host, &plan->forward_room[l]));
        compute_layer(walk, FORWARD, layer, false, plan->forward[l], 0);
        leave_layer(walk);
        send_layer(walk, l, &copy);
    }
}

/* Copies back, after `after`, the tensors that may return before step `step`, the last copy first; `below`: how many
 * copies are still on the host. The state's event of a copy is then the end of its way back. */
static void load(struct walk *walk, int step, struct event after, size_t *below)
{
    const struct stage_plan *plan = walk->stage->plan;
    struct arena *arena = &walk->lowering->arena;

    for (; *below > 0 && plan->copies[*below - 1].step <= step; --*below) {
        const struct plan_copy *copy = &plan->copies[*below - 1];
        bool first = *below == plan->ncopies || copy[1].layer != copy->layer;
        struct event *moved = &walk->here->state->moved[*below - 1], computed = event_both(arena, *moved, after);

        *moved = copy_tensor(walk, false, copy, first,
                             event_both(arena, computed, host_drained(walk->host, &copy->room)));
    }
}

/* The end of the last copy back of a layer's tensors: of the copy that went to the host first. */
static struct event loaded_last(const struct walk *walk, size_t layer)
{
    const struct stage_plan *plan = walk->stage->plan;
    size_t low = 0, high = plan->ncopies;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (plan->copies[middle].layer < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return walk->here->state->moved[low];
}

/* Scatters a layer's gradients under ZeRO 3. Returns the event after which they are summed. */
static struct event scatter(struct walk *walk, const struct slice *layer)
{
    struct event done = event_of(walk->id);

    if (walk->scatters)
        done = scatter_layer(walk->lowering, walk->here, layer, done);
    if (zero_in_turn(walk->lowering))
        wait_for(&walk->lowering->waits, done);
    return done;
}

/* Ends the backward of a layer under a plan: scatters its gradients, and notes the buckets that they complete. */
static void finish_layer(struct walk *walk, size_t slice)
{
    const struct buckets *buckets = &walk->lowering->exchanges.buckets[walk->here->stage];
    struct chunk_state *chunk_state = walk->here->chunk_state;
    struct event done = scatter(walk, &walk->stage->slices[slice]);

    if (!(walk->here->marks & ENTRY_COMPLETES))
        return;
    if (chunk_state->layers)
        chunk_state->layers[slice] = done;
    for (size_t b = 0; b < buckets->count; b++)
        if (buckets->items[b].slice == slice)
            bucket_ready(walk->lowering, walk->here, &buckets->items[b], walk->id);
}

/* The layer of the next step of another layer; NULL: there is none. */
static const struct slice *other_layer(const struct walk *walk, size_t step)
{
    const struct stage_plan *plan = walk->stage->plan;

    for (size_t i = step + 1; i < plan->nsteps; i++)
        if (plan->steps[i].layer != plan->steps[step].layer)
            return stage_layer(walk->stage, plan->steps[i].layer);
    return NULL;
}

/* A backward under a plan: its steps are recomputations and backwards of layers. */
static void backward_layers(struct walk *walk)
{
    const struct stage_plan *plan = walk->stage->plan;
    size_t below = plan->count, left = plan->ncopies; /* layers from here on have been used, copies not copied back */

    load(walk, -1, walk->host->before, &left);
    for (size_t i = 0; i < plan->nsteps; i++) {
        const struct plan_step *step = &plan->steps[i];
        const struct slice *layer = stage_layer(walk->stage, step->layer);
        enum work_kind kind = step->backward ? BACKWARD : RECOMPUTE;

        weights_for(walk, layer, walk->gathers ? other_layer(walk, i) : NULL);
        load(walk, (int)i, event_of(walk->lowering->ranks[walk->here->prank].latest), &left);
        if (step->layer < below && plan->moved[step->layer] > 0)
            wait_for(&walk->lowering->waits, loaded_last(walk, step->layer));
        wait_for(&walk->lowering->waits, host_drained(walk->host, &plan->step_room[i]));
        below = step->layer < below ? step->layer : below;
        walk->op.continues = i > 0 && plan->steps[i - 1].backward == step->backward;
        compute_layer(walk, kind, layer, step->selective, step->takes, step->frees);
        if (i + 1 == plan->nsteps || plan->steps[i + 1].layer != step->layer)
            leave_layer(walk);
        if (step->backward)
            finish_layer(walk, walk->stage->nslices - 1 - step->layer);
    }
}

/* The k-th layer in the order of the work: slices are in the order of the backward. */
static const struct slice *layer_of(const struct stage *stage, enum work_kind kind, size_t k)
{
    bool forwards = kind == FORWARD || kind == RECOMPUTE;

    return &stage->slices[forwards ? stage->nslices - 1 - k : k];
}

/* The work's next layer from the k-th on; a recomputation leaves out layers that keep their activations. */
static size_t next_layer(const struct stage *stage, enum work_kind kind, size_t k)
{
    while (kind == RECOMPUTE && k < stage->nslices && !layer_of(stage, kind, k)->recompute)
        k++;
    return k;
}

/* Whether a layer is recomputed right before its backward, with one gather of its parameters for both (FSDP with
 * activation checkpointing). Segments of several layers need a gather for each. */
static bool fused(const struct lowering *lowering, const struct place *here)
{
    return here->marks & ENTRY_RECOMPUTED && lowering->scenario->memory.recompute.every <= 1 &&
           scenario_schedule(lowering->scenario)->recompute == RECOMPUTE_WITH_GRADIENT;
}

/* Adds an operation of the work, and of one of its layers if it has a cost; the next operation continues the work. */
static void add_piece(struct walk *walk, enum work_kind kind, struct work_cost cost)
{
    walk->id = lower_compute(walk->lowering, walk->here, kind, &cost, &walk->op);
    walk->op = (struct new_op){.continues = true};
}

static void compute_again(struct walk *walk, const struct slice *layer)
{
    if (!walk->op.continues)         /* the span begins as a backward */
        add_piece(walk, walk->here->work.kind, (struct work_cost){0});
    add_piece(walk, RECOMPUTE, slice_cost(walk->here, layer, RECOMPUTE));
}

/* Computes one layer; `recomputes`: after its recomputation (fused). Its last operation frees `frees` bytes. */
static void compute_gathered_layer(struct walk *walk, const struct slice *layer, bool recomputes, double frees)
{
    if (recomputes)
        compute_again(walk, layer);
    walk->op.frees = frees;
    add_piece(walk, walk->here->work.kind, slice_cost(walk->here, layer, walk->here->work.kind));
}

/* ZeRO 3 without a plan: one layer after another. */
static void compute_gathered(struct walk *walk)
{
    const struct stage *stage = walk->stage;
    enum work_kind kind = walk->here->work.kind;
    bool needs_weights = kind != BACKWARD_WEIGHT, fuses = fused(walk->lowering, walk->here);
    bool recomputes = fuses && (kind == BACKWARD || kind == BACKWARD_INPUT);
    double frees = walk->op.frees;
    size_t begin = next_layer(stage, kind, 0);
    const struct slice *next;
    bool apart;

    if (kind == RECOMPUTE && (fuses || begin == stage->nslices)) {       /* there is nothing to compute here */
        add_piece(walk, kind, (struct work_cost){0});
        return;
    }
    if (!walk->lowering->scenario->parallelism.flatten) {
        walk->id = tensors_work(walk->lowering, walk->here, recomputes, walk->op);
        return;
    }
    walk->op.frees = 0;
    for (size_t k = begin, after; k < stage->nslices; k = after) {
        const struct slice *layer = layer_of(stage, kind, k);

        after = next_layer(stage, kind, k + 1);
        next = after < stage->nslices ? layer_of(stage, kind, after) : NULL;
        apart = recomputes && layer->recompute && walk->gathers && walk->lowering->scenario->parallelism.small_units;
        if (needs_weights && walk->gathers)
            gather_weights(walk, layer, apart ? layer : next, false);
        if (apart) {
            compute_again(walk, layer);
            leave_layer(walk);
            gather_weights(walk, layer, next, true);
        }
        compute_gathered_layer(walk, layer, recomputes && !apart, after == stage->nslices ? frees : 0);
        if (needs_weights)
            leave_layer(walk);
        if (kind == BACKWARD || kind == BACKWARD_WEIGHT)
            scatter(walk, layer);
        if (zero_in_turn(walk->lowering))
            leave_layer(walk);
    }
}

uint32_t layers_work(struct lowering *lowering, const struct place *here, struct new_op op)
{
    const struct recipe *recipe = &lowering->scenario->recipe;
    enum work_kind kind = here->work.kind;
    struct walk walk = {
        .lowering = lowering, .here = here, .stage = here->held, .host = &lowering->ranks[here->prank].host, .op = op,
        .id = NO_OP, .gathers = lowering->rows.zero && !here->chunk_state->weights_stay,
        .scatters = lowering->rows.zero && recipe->gradients.unit == SUM_LAYERS &&
                    (here->marks & ENTRY_COMPLETES || !recipe->gradients.once),
    };

    if (scenario_offloads(lowering->scenario, OFFLOAD_OPTIMIZER) && !here->chunk_state->layers)
        here->chunk_state->layers = ARENA_ARRAY(&lowering->arena, struct event, walk.stage->nslices);
    if (!walk.stage->plan)
        compute_gathered(&walk);
    else if (kind == FORWARD)
        forward_layers(&walk);
    else
        backward_layers(&walk);
    if (kind == FORWARD)
        here->chunk_state->weights_stay = recipe->weights.stay_forward;
    else if (kind == BACKWARD || kind == BACKWARD_INPUT)
        here->chunk_state->weights_stay = recipe->weights.stay_backward;
    lowering->waits.count = 0;       /* the work does not wait for its last scatter */
    return walk.id;
}
