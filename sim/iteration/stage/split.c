#include "stage/split.h"

#include <math.h>

#include "base/base.h"
#include "base/progress.h"
#include "config/conf.h"
#include "model/model.h"
#include "scenario/memory_policy.h"
#include "schedule/schedule.h"
#include "stage/stage_exchange.h"
#include "stage/stage_memory.h"

/* Every stage computes something: a stage without blocks has the embedding or the output layer. */
static int check_split(const struct list *split, const struct layer *layers, size_t count, size_t blocks,
                       struct error *err)
{
    const int *shares = split->items;
    size_t sum = 0;
    int rc = 0;

    for (size_t s = 0; s < split->count; s++) {
        bool other = (s == 0 && layers[0].role == LAYER_FIRST) ||
                     (s + 1 == split->count && layers[count - 1].role == LAYER_LAST);

        sum += (size_t)shares[s];
        if (shares[s] == 0 && !other)
            rc = error_add(err, EXIT_INFEASIBLE, split->node->items[s]->loc,
                           "strategy: split: stage %zu has 0 layers; expected 1 or more: only %s", s,
                           layers[0].role == LAYER_FIRST ? "the first and the last stage may hold no more than the "
                                                           "embedding and the output layer" :
                                                           "a transformer has something else to compute");
    }
    if (sum != blocks)
        rc = error_add(err, EXIT_INFEASIBLE, split->node->loc,
                       "strategy: %s: %zu layers in all, the model has %zu",
                       split->node->items[0]->kind == NODE_MAPPING ? "stages" : "split", sum, blocks);
    return rc;
}

/* Even shares; the remaining blocks go to the last stage but one and downwards. The first stage has the embedding, and
 * holds most micro-batches under 1F1B. The last stage has the output layer and the loss. Llama 3 405B leaves a block
 * out of both (Grattafiori et al. 2024, arXiv 2407.21783, section 3.3.2), as do the runs of Zero Bubble (Qi et al.
 * 2024, arXiv 2401.10241). */
static size_t even_share(size_t blocks, size_t nstages, size_t stage)
{
    return blocks / nstages + ((2 * nstages - 2 - stage) % nstages < blocks % nstages);
}

static size_t count_role(const struct layer *layers, size_t count, enum layer_role role)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += layers[i].role == role;
    return n;
}

/* Blocks of multi-token prediction count as blocks of the last stage, unless they are more than its share. */
static void split_evenly(const struct layer *layers, size_t count, size_t nstages, size_t *begins)
{
    size_t blocks = count_role(layers, count, LAYER_BLOCK), more = count_role(layers, count, LAYER_PREDICTION);
    size_t all = even_share(blocks + more, nstages, nstages - 1) < more ? blocks : blocks + more;

    for (size_t s = 0; s < nstages; s++)
        begins[s + 1] = s + 1 < nstages ? begins[s] + even_share(all, nstages, s) : blocks;
}

/* The blocks to be divided: costs[b] sums the costs of all blocks before block b. The first block's cost includes the
 * embedding's, the last block's the output layer's. */
struct blocks_to_share { const struct split_cost *costs; size_t blocks, nstages; const struct plan *plan; };

/* What a stage takes for each micro-batch. The m ranks that share it have as many micro-batches at once, so each takes
 * its share of the seconds. After each of its micro-batches a rank sends and receives 2 (m - 1) / m of the gradients;
 * PipeDream's optimizer counts both directions and hides nothing (msr-fiddle/pipedream 11c40c01,
 * optimizer/optimizer_graph_hierarchical.py, compute_partitioning). */
static double stage_seconds(const struct blocks_to_share *shares, size_t stage, size_t begin, size_t end)
{
    const struct split_cost *from = &shares->costs[begin], *to = &shares->costs[end];
    double m = plan_sharers(shares->plan, (int)stage);

    return (to->seconds - from->seconds + 4 * (m - 1) / m * (to->sending - from->sending)) / m;
}

/* rest[s * (blocks + 1) + b]: the least that the longest of the stages from s on can take of the blocks from b on, each
 * with one block at least; infinite where there are too few blocks. */
static double *least_rests(struct arena *arena, const struct blocks_to_share *shares)
{
    size_t width = shares->blocks + 1;
    double *rests = ARENA_ARRAY(arena, double, (shares->nstages + 1) * width);

    for (size_t b = 0; b < width; b++)
        rests[shares->nstages * width + b] = b == shares->blocks ? 0 : INFINITY;
    for (size_t s = shares->nstages; s-- > 0;)
        for (size_t b = 0; b < width; b++) {
            double *least = &rests[s * width + b];

            *least = INFINITY;
            for (size_t end = b + 1; end < width && stage_seconds(shares, s, b, end) < *least; end++)
                *least = fmin(*least, fmax(stage_seconds(shares, s, b, end), rests[(s + 1) * width + end]));
        }
    return rests;
}

/* Of all splits whose longest stage is as short as can be, the one that gives each stage in turn the most blocks. */
static void balance_stages(struct arena *arena, const struct blocks_to_share *shares, size_t *begins)
{
    const double *rests = least_rests(arena, shares);
    size_t width = shares->blocks + 1;
    double limit = rests[0] * (1 + 1e-12);

    begins[0] = 0;
    for (size_t s = 0; s < shares->nstages; s++)
        for (size_t end = begins[s] + 1; end < width && stage_seconds(shares, s, begins[s], end) <= limit; end++)
            if (rests[(s + 1) * width + end] <= limit)
                begins[s + 1] = end;
}

static void split_by_costs(struct arena *arena, const struct plan *plan, const struct layer *layers,
                           const struct split_cost *costs, size_t count, size_t nstages, size_t *begins)
{
    size_t first = layers[0].role == LAYER_FIRST, blocks = count_role(layers, count, LAYER_BLOCK);
    struct split_cost *before = ARENA_ARRAY(arena, struct split_cost, blocks + 1);

    for (size_t i = 0; i < count; i++) {
        size_t b = i < first ? 0 : i - first < blocks ? i - first : blocks - 1;

        before[b + 1].seconds += costs[i].seconds;
        before[b + 1].sending += costs[i].sending;
    }
    for (size_t b = 0; b < blocks; b++) {
        before[b + 1].seconds += before[b].seconds;
        before[b + 1].sending += before[b].sending;
    }
    balance_stages(arena, &(struct blocks_to_share){before, blocks, nstages, plan}, begins);
}

/* As nanotron does (src/nanotron/models/base.py, build_model): stage s, counted from 1, ends with the block with which
 * the first s stages have more than s / nstages of all weights, without the embedding's. Returns false where a stage
 * would be left with nothing, which nanotron would not run. */
static bool split_by_weights(const struct layer *layers, size_t count, size_t nstages, size_t *begins)
{
    double all = 0, so_far = 0;
    size_t stage = 0, block = 0;

    for (size_t i = 0; i < count; i++)
        all += layers[i].role == LAYER_FIRST ? 0 : layers[i].parameters + layers[i].tied;
    begins[0] = 0;
    for (size_t i = 0; i < count; i++) {
        if (layers[i].role != LAYER_BLOCK)
            continue;
        block++;
        so_far += layers[i].parameters;
        if (stage + 1 < nstages && so_far > all * (double)(stage + 1) / (double)nstages)
            begins[++stage] = block;
    }
    begins[nstages] = block;
    return stage + 1 == nstages && (begins[stage] < block || layers[count - 1].role == LAYER_LAST);
}

int split_blocks(struct arena *arena, const struct scenario *scenario, const struct layer *layers,
                 const struct split_cost *costs, size_t count, size_t **begins, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct plan *plan = &scenario->plan;
    bool first = layers[0].role == LAYER_FIRST, last = layers[count - 1].role == LAYER_LAST;
    size_t nstages = (size_t)plan_virtual_stages(plan), blocks = count_role(layers, count, LAYER_BLOCK);
    const int *said = spec->layers ? spec->layers : spec->split.count ? spec->split.items : NULL;
    char product[64];

    if (said && !spec->layers && check_split(&spec->split, layers, count, blocks, err))
        return -1;
    snprintf(product, sizeof product, " (pipeline %d x chunks %d)", plan->stages, plan->chunks);
    if (!said && nstages > blocks + first + last)
        return error_add(err, EXIT_INFEASIBLE, node_loc(spec->node, "pipeline"),
                         "strategy: pipeline: %zu stages%s for a model of %zu layers; expected at most one a layer%s",
                         nstages, nstages > (size_t)plan->stages ? product : "", blocks,
                         first || last ? ", and two more for input and output" : "");
    *begins = ARENA_ARRAY(arena, size_t, nstages + 1);
    for (size_t s = 0; said && s < nstages; s++)
        (*begins)[s + 1] = (*begins)[s] + (size_t)said[s];
    if (!said && costs && blocks >= nstages)
        split_by_costs(arena, plan, layers, costs, count, nstages, *begins);
    else if (!said && (spec->balance != BALANCE_WEIGHTS || !split_by_weights(layers, count, nstages, *begins)))
        split_evenly(layers, count, nstages, *begins);
    return 0;
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
    static const struct work_cost nothing;
    const struct work_cost *works[WORK_KIND_COUNT] = {
        [FORWARD] = &cost->forward, [BACKWARD_INPUT] = &cost->input, [BACKWARD_WEIGHT] = &cost->weight,
        [BACKWARD] = &cost->backward, [UPDATE] = &nothing, [GATHER] = &nothing,
        [RECOMPUTE] = slice->recompute ? &cost->recompute : &nothing,
    };

    if (cost->hides >= 0)
        times->hidings[cost->hides] = cost->hiding;
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        slice->work[kind] = &works[kind]->counts;
        layer_times->work[kind] = &works[kind]->times;
        if (works[kind] == &nothing)
            continue;
        work_counts_add(&stage->work[kind], slice->work[kind]);
        work_times_add(&times->work[kind], &works[kind]->times);
    }
    if (chooses_core(scenario, layer)) {
        slice->selective.core = &cost->core.counts;
        layer_times->core = &cost->core.times;
    }
}

/* The first of a stage's layers that read the encoder's output holds it, recomputed or not. */
static struct layer with_source(const struct layer *layer, const struct layer *before)
{
    struct layer own = *layer;
    double source = before && before->source > 0 ? 0 : layer->source;

    own.activation += source, own.selective_activation += source, own.checkpoint += source, own.within += source;
    return own;
}

static void add_layer(struct stage *stage, const struct scenario *scenario, const struct layer *given,
                      struct stage_peaks *peaks)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct layer own = with_source(given, stage->nslices ? stage->slices[0].layer : NULL), *layer = &own;
    struct slice *slice = --stage->slices;

    stage->nslices++;
    slice->layer = given;
    slice->tensors = layer->tensors;
    slice->rows = layer->rows;
    slice->ntensors = layer->ntensors;
    slice->linears = layer->linears;
    slice->nlinears = layer->nlinears;
    slice->ncommon = layer->ntensors - (stage_divides_parameters(scenario) ? layer->ndivided : 0);
    slice->parameters = layer->parameters;
    slice->trained = layer_trained(scenario, layer);
    slice->frozen = layer->frozen;
    slice->frozen_apart = stage_divides_parameters(scenario) ? layer->divided_frozen : 0;
    slice->activation = layer->activation;
    slice->input = layer_is_block(layer) ? layer->checkpoint : 0;
    slice->workspace = layer->workspace;
    slice->block = layer_is_block(layer);
    slice->recompute = slice->block && recompute_covers(&scenario->memory.recompute, peaks->blocks);
    if (chooses_core(scenario, layer)) {
        slice->selective.activation = layer->selective_activation;
        slice->selective.workspace = layer->selective_workspace;
    }
    stage->parameters += layer->parameters;
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++)
        stage->trained.of[class] += slice->trained.of[class];
    stage->frozen += layer->frozen, stage->packed += layer->packed, stage->frozen_apart += slice->frozen_apart;
    stage_peaks_add(peaks, stage, scenario, layer);
    stage->boundary = layer->boundary / (boundary_divided(spec) ? scenario_most_tensor(scenario) : 1);
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
        places[i] = layers[i].role == LAYER_FIRST ? 0 : layers[i].role == LAYER_BLOCK ? of_block : nstages - 1;
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

int stages_fill(struct arena *arena, struct layer_costs *costs, const struct layer *layers, size_t count,
                const size_t *begins, struct stage *stages, struct stage_times *times, struct error *err)
{
    const struct scenario *scenario = costs->scenario;
    size_t nstages = (size_t)plan_virtual_stages(&scenario->plan);
    size_t *places = place_layers(arena, layers, count, begins, nstages);
    const bool *repeats = find_repeats(arena, scenario, layers, places, count, begins);
    size_t owner = 0;            /* of the embedding */
    struct stage_peaks *peaks = ARENA_ARRAY(arena, struct stage_peaks, nstages);

    for (size_t i = count; i-- > 0;)
        owner = layers[i].embeds ? i : owner;
    make_slices(arena, places, count, repeats, stages, times, nstages);
    for (size_t i = 0; i < count; i++) {
        struct stage *stage = &stages[places[i]];

        if (repeats[places[i]])
            continue;
        if (i % 1024 == 0 && progress_look(scenario->progress, err))
            return -1;
        add_layer(stage, scenario, &layers[i], &peaks[places[i]]);
        add_cost(stage, &times[places[i]], scenario, &layers[i], layer_cost(costs, &layers[i]));
        if (layers[i].tied > 0 && stage->tied == 0 && plan_rank(&scenario->plan, 0, (int)places[owner], 0, NULL) !=
                                                          plan_rank(&scenario->plan, 0, (int)places[i], 0, NULL))
            add_tied_copy(arena, scenario, stage, &layers[i], &layers[owner]);
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
    return 0;
}

bool stages_repeat(const struct plan *plan, const struct stage *stages, int s)
{
    return s > 0 && stages[s].nslices && stages[s].slices == stages[s - 1].slices &&
           stages[s].nslices == stages[s - 1].nslices && plan_holders(plan, s) == plan_holders(plan, s - 1);
}
