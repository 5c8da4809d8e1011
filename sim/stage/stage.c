#include "stage/layer_cost.h"
#include "stage/stage_exchange.h"
#include "stage/stage_kernels.h"
#include "stage/stage_memory.h"

#include <math.h>

#include "stage/compression.h"
#include "stage/split.h"

void work_counts_add(struct work_counts *sum, const struct work_counts *more)
{
    for (int i = 0; i < EXCHANGE_COUNT; i++)
        sum->exchanges[i] += more->exchanges[i];
    sum->hidden_gathers += more->hidden_gathers;
    sum->flop += more->flop;
}

void work_times_add(struct work_times *sum, const struct work_times *more)
{
    sum->seconds += more->seconds;
    sum->starved += more->starved;
    sum->dispatching.shared += more->dispatching.shared;
    sum->dispatching.before += more->dispatching.before;
    sum->dispatching.others += more->dispatching.others;
    sum->extrapolated += more->extrapolated;
    cost_bases_add(&sum->bases, &more->bases);
}

void work_times_note(struct work_times *times, const struct cost *cost)
{
    times->extrapolated += cost->extrapolated;
    times->bases.seconds[cost->kind][cost->basis] += cost->seconds;
}

void work_cost_add(struct work_cost *sum, const struct work_cost *more)
{
    work_counts_add(&sum->counts, &more->counts);
    work_times_add(&sum->times, &more->times);
}

static struct outside outside_of(const struct scenario *scenario, const struct layer *last)
{
    const struct transformer *transformer = scenario->model.transformer;

    return (struct outside){
        .input = transformer ? 8.0 * scenario->batch.micro * transformer->sequence : 0,      /* 64-bit integers */
        .output = transformer ? last->output : last->boundary, .activation = last->loss_activation,
    };
}

/* Whether each GPU of the tensor group sends its share of a boundary only: it has no more (sequence parallelism), or
 * the receivers gather the shares (Narayanan et al. 2021, section 4.1, scatter/gather optimization). */
static bool boundary_divided(const struct parallelism *spec)
{
    return spec->sequence_parallel || spec->scatter_gather;
}

/* All layers that take part in an exchange exchange the same number of bytes. */
static void add_exchange_sizes(struct stage *stage, const struct layer *layer)
{
    const double bytes[EXCHANGE_COUNT] = {
        [EXCHANGE_TENSOR] = layer->all_reduce_bytes, [EXCHANGE_ROWS] = layer->row_all_reduce_bytes,
        [EXCHANGE_DISPATCH] = layer->dispatch_bytes, [EXCHANGE_ATTENTION] = layer->key_value_bytes,
        [EXCHANGE_ATTENTION_BACKWARD] = layer->key_value_bytes, [EXCHANGE_HEADS] = layer->head_bytes,
        [EXCHANGE_QKV] = layer->qkv_bytes,
    };

    for (int i = 0; i < EXCHANGE_COUNT; i++)
        stage->bytes[i] = fmax(stage->bytes[i], bytes[i]);
    stage->delivered = fmax(stage->delivered, layer->delivered_bytes);
}

/* Whether replicas divide some parameters of layers, which are PARAMETERS_APART then. */
static bool divides_parameters(const struct scenario *scenario)
{
    return group_members(&scenario->groups.of[exchange_groups[EXCHANGE_DISPATCH]]) > 1;
}

size_t slice_piece(const struct slice *slice, enum parameter_class class, size_t from, double *parameters)
{
    /* DeepSpeed gathers no smaller ones, every GPU keeps them (param_persistence_threshold, runtime/zero/config.py).
     * Here they go with a large one. */
    enum { SMALL = 100000 };
    bool large = false;

    *parameters = 0;
    for (; from < slice->ntensors; from++) {
        if (slice_class(slice, from) != class)
            continue;
        if (large && slice->tensors[from] > SMALL)
            break;
        large |= slice->tensors[from] > SMALL;
        *parameters += slice->tensors[from];
    }
    return from;
}

struct by_class layer_trained(const struct scenario *scenario, const struct layer *layer)
{
    double apart = divides_parameters(scenario) ? layer->divided_parameters : 0;

    return (struct by_class){{[PARAMETERS_COMMON] = layer->parameters - apart, [PARAMETERS_APART] = apart}};
}

/* Whether a plan may choose to recompute the core of the layer's attention alone. */
static bool chooses_core(const struct scenario *scenario, const struct layer *layer)
{
    return scenario->memory.recompute.mode == RECOMPUTE_OPTIMAL && layer->selective_activation < layer->activation;
}

/* Adds a layer's costs to the stage and to its newest slice. */
static void add_cost(struct stage *stage, struct stage_times *times, const struct scenario *scenario,
                     const struct layer *layer, const struct layer_cost *cost)
{
    struct slice *slice = stage->slices;
    struct slice_times *layer_times = --times->slices;
    const struct work_cost *works[WORK_KIND_COUNT] = {
        [FORWARD] = &cost->forward, [BACKWARD_INPUT] = &cost->input, [BACKWARD_WEIGHT] = &cost->weight,
        [BACKWARD] = &cost->backward, [RECOMPUTE] = slice->recompute ? &cost->again : NULL,
    };

    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        if (works[kind]) {
            slice->work[kind] = works[kind]->counts;
            layer_times->work[kind] = works[kind]->times;
            work_counts_add(&stage->work[kind], &works[kind]->counts);
            work_times_add(&times->work[kind], &works[kind]->times);
        }
    if (chooses_core(scenario, layer)) {
        slice->selective.core = cost->core.counts;
        layer_times->core = cost->core.times;
    }
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        times->attention[phase] = fmax(times->attention[phase], cost->attention[phase]);
    columns_add(times->columns, &scenario->parallelism, layer, cost->columns);
}

static void add_layer(struct stage *stage, const struct scenario *scenario, const struct layer *layer,
                      struct stage_peaks *peaks)
{
    const struct parallelism *spec = &scenario->parallelism;
    struct slice *slice = --stage->slices;

    stage->nslices++;
    slice->layer = layer;
    slice->tensors = layer->tensors;
    slice->rows = layer->rows;
    slice->ntensors = layer->ntensors;
    slice->linears = layer->linears;
    slice->nlinears = layer->nlinears;
    slice->ncommon = layer->ntensors - (divides_parameters(scenario) ? layer->ndivided : 0);
    slice->parameters = layer->parameters;
    slice->trained = layer_trained(scenario, layer);
    slice->frozen = layer->frozen;
    slice->activation = layer->activation;
    slice->input = layer->role == LAYER_BLOCK ? layer->checkpoint : 0;
    slice->workspace = layer->workspace;
    slice->block = layer->role == LAYER_BLOCK;
    slice->recompute = slice->block && recompute_covers(&scenario->memory.recompute, peaks->blocks);
    if (chooses_core(scenario, layer)) {
        slice->selective.activation = layer->selective_activation;
        slice->selective.workspace = layer->selective_workspace;
    }
    stage->parameters += layer->parameters;
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        stage->trained.of[class] += slice->trained.of[class];
    stage->frozen += layer->frozen, stage->packed += layer->packed;
    stage_peaks_add(peaks, stage, scenario, layer);
    add_exchange_sizes(stage, layer);
    stage->boundary = layer->boundary / (boundary_divided(spec) ? spec->tensor : 1);
}

/* The output layer of a tied model holds a copy of the embedding's weights if it is on another rank (Megatron-LM). */
static void add_tied_copy(struct arena *arena, const struct scenario *scenario, struct stage *stage,
                          const struct layer *layer, const struct layer *embedding)
{
    struct slice *slice = &stage->slices[0];
    double *tensors = ARENA_ARRAY(arena, double, slice->ntensors + 1);
    double *rows = ARENA_ARRAY(arena, double, slice->ntensors + 1);

    if (scenario->memory.lora) {
        slice->frozen += layer->tied;
        stage->frozen += layer->tied;
        return;
    }
    for (size_t i = 0; i < slice->ntensors; i++) {
        tensors[i] = slice->tensors[i];
        rows[i] = slice->rows[i];
    }
    rows[slice->ntensors] = embedding->rows[0];
    tensors[slice->ntensors++] = layer->tied;
    slice->ncommon = slice->ntensors;
    slice->tensors = tensors;
    slice->rows = rows;
    slice->parameters += layer->tied;
    slice->trained.of[PARAMETERS_COMMON] += layer->tied;
    stage->parameters += layer->tied;
    stage->trained.of[PARAMETERS_COMMON] += layer->tied;
    stage->tied = layer->tied;
}

/* The stage of every layer: layers before the blocks go to the first, layers after them to the last. begins: the first
 * block of every stage, then the number of blocks. */
static size_t *place_layers(struct arena *arena, const struct layer *layers, size_t count, const size_t *begins,
                            size_t nstages)
{
    size_t *places = ARENA_ARRAY(arena, size_t, count), block = 0, of_block = 0;

    for (size_t i = 0; i < count; i++) {
        while (layers[i].role == LAYER_BLOCK && begins[of_block + 1] <= block)
            of_block++;
        places[i] = layers[i].role == LAYER_FIRST ? 0 : layers[i].role == LAYER_LAST ? nstages - 1 : of_block;
        block += layers[i].role == LAYER_BLOCK;
    }
    return places;
}

/* Room for the slices of every stage, from its end on: the last layer's is the first one. */
static void make_slices(struct arena *arena, const size_t *places, size_t count, struct stage *stages,
                        struct stage_times *times, size_t nstages)
{
    size_t *counts = ARENA_ARRAY(arena, size_t, nstages);

    for (size_t i = 0; i < count; i++)
        counts[places[i]]++;
    for (size_t s = 0; s < nstages; s++) {
        stages[s].slices = ARENA_ARRAY(arena, struct slice, counts[s]) + counts[s];
        times[s].slices = ARENA_ARRAY(arena, struct slice_times, counts[s]) + counts[s];
    }
}

static void fill_stages(struct arena *arena, struct layer_costs *costs, const struct layer *layers, size_t count,
                        const size_t *begins, struct stage *stages, struct stage_times *times)
{
    const struct scenario *scenario = costs->scenario;
    size_t nstages = (size_t)plan_virtual_stages(&scenario->plan);
    size_t *places = place_layers(arena, layers, count, begins, nstages);
    int first_rank = plan_rank(&scenario->plan, 0, 0, 0, NULL);
    struct stage_peaks *peaks = ARENA_ARRAY(arena, struct stage_peaks, nstages);

    make_slices(arena, places, count, stages, times, nstages);
    for (size_t i = 0; i < count; i++) {
        struct stage *stage = &stages[places[i]];

        add_layer(stage, scenario, &layers[i], &peaks[places[i]]);
        add_cost(stage, &times[places[i]], scenario, &layers[i], layer_cost(costs, &layers[i]));
        if (layers[i].tied > 0 && first_rank != plan_rank(&scenario->plan, 0, (int)places[i], 0, NULL))
            add_tied_copy(arena, scenario, stage, &layers[i], &layers[0]);
    }
    for (size_t s = 0; s < nstages; s++) {
        stage_peaks_settle(&peaks[s], &stages[s], scenario);
        stages[s].layers = (int)(begins[s + 1] - begins[s]);
    }
}

/* What each layer adds to its stage, where costs balance the stages; else NULL. */
static const struct split_cost *split_costs(struct arena *arena, struct layer_costs *costs,
                                            const struct layer *layers, size_t count)
{
    const struct scenario *scenario = costs->scenario;
    struct split_cost *splits = ARENA_ARRAY(arena, struct split_cost, count);
    int balance = scenario->parallelism.balance;
    double sent = precision_bytes(&scenario->memory.precision, false).sent;
    double sending = scenario->cluster.ideal ? 0 : sent * (1 / cluster_slowest_link(&scenario->cluster));

    if (balance != BALANCE_TIMES && balance != BALANCE_EXCHANGES)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const struct layer_cost *cost = layer_cost(costs, &layers[i]);

        splits[i].seconds = cost->forward.times.seconds + cost->backward.times.seconds;
        splits[i].sending = balance == BALANCE_EXCHANGES ? layers[i].parameters * sending : 0;
    }
    return splits;
}

static int from_layers(struct arena *arena, const struct scenario *scenario, const struct kernel_costs *kernels,
                       struct stage *stages, struct stage_times *times, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct precision_spec *precision = &scenario->memory.precision;
    struct shard shard = {
        .micro = scenario->batch.micro,
        .tensor = spec->tensor,
        .sequence_parallel = spec->sequence_parallel,
        .gathers_apart = !spec->overlap_products,
        .dtype = precision_dtype(precision),
        .fp8 = precision_is_narrow(precision),
        .narrow = precision_products(precision),
        .fp8_kept = precision->fp8_weights != FP8_WEIGHTS_CAST,
        .recompute = (enum recompute)scenario->memory.recompute.mode,
        .again = recompute_again(&scenario->memory.recompute),
        .context = spec->context,
        .ulysses = scenario_ulysses(spec),
        .blocks_apart = spec->context_blocks,
        .ring = spec->context_attention == CONTEXT_RING || spec->context_attention == CONTEXT_HYBRID,
        .expert_tensor = spec->expert_tensor,
        .dispatch_group = group_members(&scenario->groups.of[exchange_groups[EXCHANGE_DISPATCH]]),
        .dispatch_nodes = group_nodes(scenario, exchange_groups[EXCHANGE_DISPATCH]),
        .dispatch_once = dispatcher_sends_once((enum token_dispatcher)spec->dispatcher),
        .dispatch_gathers = spec->dispatcher == DISPATCHER_ALLGATHER,
        .capacity = spec->capacity_factor,
        .lora = scenario->memory.lora,
        .formula = (enum activation_formula)scenario->memory.activations,
        .saved = scenario->memory.saved,
        .cross_entropy = (enum cross_entropy)scenario->memory.cross_entropy,
        .measured = scenario->memory.logits == LOGITS_HELD,
    };
    struct layer_costs costs = {.scenario = scenario, .kernels = kernels};
    const struct layer *layers;
    size_t count, *begins = NULL, last = (size_t)plan_virtual_stages(&scenario->plan) - 1;

    if (model_layers(arena, &scenario->model, &shard, node_loc(spec->node, "tensor"), &layers, &count,
                     err) ||
        split_blocks(arena, scenario, layers, split_costs(arena, &costs, layers, count), count, &begins, err))
        return -1;
    fill_stages(arena, &costs, layers, count, begins, stages, times);
    if (spec->partitioned_outputs && spec->tensor > 1)
        assembly_add(times, stages, scenario, kernels);
    stages[last].outside = outside_of(scenario, &layers[count - 1]);
    times[last].loss = stage_loss(scenario, kernels, &layers[count - 1]);
    return 0;
}

/* The given stage that stands for virtual stage s: the only one, that of its rank, or its own. */
static const struct given_layer *given_of(const struct model *model, const struct plan *plan, int s)
{
    const struct given_layer *items = model->stages.items;

    if (model->stages.count == 1)
        return items;
    return items + (model_is_per_rank(model) ? plan_rank(plan, 0, s, 0, NULL) : s);
}

/* How many virtual stages share its numbers, in equal parts: those of the rank that a micro-batch visits. */
static int given_parts(const struct model *model, const struct plan *plan, int s)
{
    int rank = plan_rank(plan, 0, s, 0, NULL), parts = 0;

    if (!model_is_per_rank(model))
        return 1;
    for (int chunk = 0; chunk < plan_chunks(plan, rank); chunk++)
        parts += plan_direction(plan, rank, chunk) == 0;
    return parts;
}

/* Stages whose times are given: one for all, or a list. Full recomputation keeps the stage's input: the boundary of the
 * stage before it. */
static void from_given(struct arena *arena, const struct model *model, const struct plan *plan, double speed,
                       struct stage *stages, struct stage_times *times)
{
    int count = plan_virtual_stages(plan);

    for (int s = 0; s < count; s++) {
        const struct given_layer *given = given_of(model, plan, s), *before = given_of(model, plan, s > 0 ? s - 1 : 0);
        int parts = given_parts(model, plan, s);
        struct stage *stage = &stages[s];
        const double seconds[WORK_KIND_COUNT] = {
            [FORWARD] = given->forward, [BACKWARD] = given->backward, [BACKWARD_INPUT] = given->backward_input,
            [BACKWARD_WEIGHT] = given->backward_weight, [RECOMPUTE] = given->recompute,
        };

        stage->parameters = given->parameters / parts;
        stage->trained = (struct by_class){{stage->parameters}};
        stage->activation = stage->working = stage->working_split = given->activation / parts;
        stage->checkpoint = before->boundary;
        stage->boundary = stage->outside.output = given->boundary;
        stage->slices = ARENA_ARRAY(arena, struct slice, 1);
        stage->slices[0] = (struct slice){
            .tensors = &stage->parameters, .ntensors = 1, .ncommon = 1, .parameters = stage->parameters,
            .trained = stage->trained,
            .input = s > 0 ? stage->checkpoint : 0, .activation = stage->activation, .block = true, .recompute = true,
        };
        stage->nslices = 1;
        times[s].slices = ARENA_ARRAY(arena, struct slice_times, 1);
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            times[s].work[kind].seconds = times[s].slices[0].work[kind].seconds = seconds[kind] / (parts * speed);
    }
}

int stages_cost(struct arena *arena, const struct scenario *scenario, const struct kernel_costs *kernels,
                struct stage **stages, struct stage_times **times, struct error *err)
{
    int count = plan_virtual_stages(&scenario->plan);

    *stages = ARENA_ARRAY(arena, struct stage, count);
    *times = ARENA_ARRAY(arena, struct stage_times, count);
    if (scenario->model.stages.count)
        from_given(arena, &scenario->model, &scenario->plan, kernels->speed, *stages, *times);
    else if (from_layers(arena, scenario, kernels, *stages, *times, err))
        return -1;
    for (int s = 0; s < count; s++) {
        stage_update(scenario, kernels, &(*stages)[s], &(*times)[s]);
        (*stages)[s].compression = compression_memory(
            scenario, &(*stages)[s], scenario_replicas(scenario) * plan_holders(&scenario->plan, s));
        stage_whole_layers(&(*stages)[s], scenario);
    }
    return 0;
}
