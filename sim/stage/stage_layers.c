#include "stage/stage_layers.h"

#include <math.h>

#include "stage/stage_exchange.h"
#include "stage/stage_memory.h"

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
    slice->ncommon = layer->ntensors - (stage_divides_parameters(scenario) ? layer->ndivided : 0);
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
    stage->frozen += layer->frozen;
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

/* Whether these are copies of one block each: those share their arrays. */
static bool are_copies(const struct layer *a, const struct layer *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].role != LAYER_BLOCK || b[i].role != LAYER_BLOCK || a[i].kernels != b[i].kernels ||
            a[i].tensors != b[i].tensors || a[i].name != b[i].name)
            return false;
    return true;
}

/* Which stages have the layers of the stage before, and nothing else. */
static bool *find_repeats(struct arena *arena, const struct scenario *scenario, const struct layer *layers,
                          const size_t *places, size_t count, const size_t *begins)
{
    bool *repeats = ARENA_ARRAY(arena, bool, plan_virtual_stages(&scenario->plan));
    size_t before = 0;           /* the first layer of the stage before */

    if (scenario->parallelism.partitioned_outputs)       /* which add to layers of their own at the ends of stages */
        return repeats;
    for (size_t i = 0, next; i < count; i = next) {
        size_t s = places[i];

        for (next = i; next < count && places[next] == s; next++);
        repeats[s] = i > before && places[before] + 1 == s && next - i == i - before &&
                     next - i == begins[s + 1] - begins[s] && i - before == begins[s] - begins[s - 1] &&
                     are_copies(&layers[before], &layers[i], next - i);
        before = i;
    }
    return repeats;
}

/* Room for the slices of every stage that does not repeat another, from its end on: the last layer's is the first one. */
static void make_slices(struct arena *arena, const size_t *places, size_t count, const bool *repeats,
                        struct stage *stages, struct stage_times *times, size_t nstages)
{
    size_t *counts = ARENA_ARRAY(arena, size_t, nstages);

    for (size_t i = 0; i < count; i++)
        counts[places[i]]++;
    for (size_t s = 0; s < nstages; s++)
        if (!repeats[s]) {
            stages[s].slices = ARENA_ARRAY(arena, struct slice, counts[s]) + counts[s];
            times[s].slices = ARENA_ARRAY(arena, struct slice_times, counts[s]) + counts[s];
        }
}

void stages_fill(struct arena *arena, struct layer_costs *costs, const struct layer *layers, size_t count,
                 const size_t *begins, struct stage *stages, struct stage_times *times)
{
    const struct scenario *scenario = costs->scenario;
    size_t nstages = (size_t)plan_virtual_stages(&scenario->plan);
    size_t *places = place_layers(arena, layers, count, begins, nstages);
    const bool *repeats = find_repeats(arena, scenario, layers, places, count, begins);
    int first_rank = plan_rank(&scenario->plan, 0, 0, 0, NULL);
    struct stage_peaks *peaks = ARENA_ARRAY(arena, struct stage_peaks, nstages);

    make_slices(arena, places, count, repeats, stages, times, nstages);
    for (size_t i = 0; i < count; i++) {
        struct stage *stage = &stages[places[i]];

        if (repeats[places[i]])
            continue;
        add_layer(stage, scenario, &layers[i], &peaks[places[i]]);
        add_cost(stage, &times[places[i]], scenario, &layers[i], layer_cost(costs, &layers[i]));
        if (layers[i].tied > 0 && first_rank != plan_rank(&scenario->plan, 0, (int)places[i], 0, NULL))
            add_tied_copy(arena, scenario, stage, &layers[i], &layers[0]);
    }
    for (size_t s = 0; s < nstages; s++) {
        if (repeats[s]) {
            stages[s] = stages[s - 1];
            times[s] = times[s - 1];
            continue;
        }
        stage_peaks_settle(&peaks[s], &stages[s], scenario);
        stages[s].layers = (int)(begins[s + 1] - begins[s]);
    }
}

bool stages_repeat(const struct plan *plan, const struct stage *stages, int s)
{
    return s > 0 && stages[s].nslices && stages[s].slices == stages[s - 1].slices &&
           stages[s].nslices == stages[s - 1].nslices && plan_holders(plan, s) == plan_holders(plan, s - 1);
}
