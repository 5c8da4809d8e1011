#include "model/transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

double transformer_parameters(const struct transformer *shape)
{
    struct cut cut = cut_of(shape, &(struct shard){.micro = 1, .tensor = 1});
    struct tensors first = embedding_tensors(&cut), last = output_tensors(&cut), blocks[2], prediction;
    double total = tensors_sum(&first, false) + tensors_sum(&last, false);

    for (int kind = 0; kind < 2; kind++) {
        cut.has_experts = kind;
        blocks[kind] = block_tensors(&cut);
    }
    for (int i = 0; i < shape->layers; i++)
        total += tensors_sum(&blocks[transformer_has_experts(shape, i)], false);
    cut.has_experts = transformer_has_experts(shape, shape->layers - 1);
    prediction = prediction_tensors(&cut);
    return total + shape->mtp * tensors_sum(&prediction, false);
}

double transformer_active_parameters(const struct transformer *shape)
{
    struct transformer active = *shape;
    int routers = 0;

    for (int i = 0; i < shape->layers; i++)
        routers += transformer_has_experts(shape, i);
    routers += shape->mtp * transformer_has_experts(shape, shape->layers - 1);
    active.experts = shape->experts_per_token;
    return transformer_parameters(&active) +
           (double)routers * (shape->experts - shape->experts_per_token) * shape->hidden;
}

/* The divisors of n as text: "1, 2, 4 or 8". */
static const char *divisors(int n, char *buffer, size_t size)
{
    size_t used = 0;
    int last = 0;

    for (int d = 1; d <= n; d++) {
        if (n % d || used + 16 > size)
            continue;
        if (last)
            used += (size_t)snprintf(buffer + used, size - used, "%s%d", used ? ", " : "", last);
        last = d;
    }
    snprintf(buffer + used, size - used, "%s%d", used ? " or " : "", last);
    return buffer;
}

static int check_tensor(const struct transformer *shape, const struct shard *shard, struct loc loc, struct error *err)
{
    const struct { int size; const char *what; bool split; } parts[] = {
        {shape->heads, "attention heads", true},
        {shape->kv_heads, "heads of keys and values", !may_gather_qkv(shape, shard->tensor)},
        {shape->ffn, "columns of the MLP", true},
        {shape->expert_ffn, "columns of an expert", shape->experts > 0},
        {shape->sequence / (shard->context ? shard->context : 1), "tokens of a sample that sequence_parallel splits",
         shard->sequence_parallel},
    };
    int common = 0;
    char buffer[160];

    for (size_t i = 0; i < COUNT(parts); i++)
        common = parts[i].split ? gcd(common, parts[i].size) : common;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i].split && parts[i].size % shard->tensor)
            return error_add(err, EXIT_INFEASIBLE, loc, "strategy: tensor: %d does not divide the %d %s; try %s%s",
                             shard->tensor, parts[i].size, parts[i].what, divisors(common, buffer, sizeof buffer),
                             i == 1 && shard->tensor % shape->kv_heads == 0 && !shape->gathered_qkv ?
                                 ", or software whose release gathers them ('software: {gathered_qkv: true}')" : "");
    return 0;
}

static void fill(struct arena *arena, struct layer *layer, const struct tensors *tensors, struct kernels *kernels)
{
    struct kernel *copy = ARENA_ARRAY(arena, struct kernel, kernels->count + 1);
    double *sizes = ARENA_ARRAY(arena, double, tensors->count + 1);
    double *rows = ARENA_ARRAY(arena, double, tensors->count + 1);
    struct linear *linears = ARENA_ARRAY(arena, struct linear, tensors->count + 1);
    struct matrix *matrices = ARENA_ARRAY(arena, struct matrix, tensors->count + 1);

    for (size_t i = 0; i < tensors->count; i++) {
        if (tensors->items[i].frozen)
            continue;
        if (tensors->items[i].linear.out > 0)
            linears[layer->nlinears++] = tensors->items[i].linear;
        if (tensors->items[i].elements == 0)
            continue;
        if (i + tensors->nexperts >= tensors->count)
            layer->divided_parameters += tensors->items[i].elements;
        sizes[layer->ntensors] = tensors->items[i].elements;
        matrices[layer->ntensors] = tensors->items[i].matrix;
        rows[layer->ntensors++] = tensors->items[i].rows;
    }
    if (kernels->count)
        memcpy(copy, kernels->items, kernels->count * sizeof *copy);
    layer->parameters = tensors_sum(tensors, false);
    layer->frozen = tensors_sum(tensors, true);
    layer->packed = tensors->packed;
    layer->tensors = sizes, layer->rows = rows, layer->matrices = matrices;
    layer->linears = linears;
    layer->ndivided = tensors->nexperts;
    layer->kernels = copy, layer->nkernels = kernels->count;
    free(kernels->items);
}

/* Under recompute: operators a block keeps its input and some results. Those that its backward does not need it keeps
 * in eager mode alone: torch.compile saves what the backward reads (torch/_functorch/partitioners.py). In its backward
 * it holds all that it would keep without recomputation; what is kept of the tail is no part of that. */
static void keep_results(struct layer *layer, const struct cut *cut, const struct kernels *kernels)
{
    double input = cut->own_tokens * cut->hidden * cut->value, all = layer->activation;

    layer->activation = input + kept_results(kernels, cut, cut->shape->fused_kernels);
    layer->workspace.backward += fmax(0, all - input - kept_results(kernels, cut, true));
}

/* Under recompute: modules the backward of a block holds all that it would keep without. */
static void hold_modules(struct layer *layer, const struct cut *cut)
{
    struct cut none = *cut;

    none.recomputed = 0;
    layer->workspace.backward += block_activation(&none) - layer->activation;
}

/* What modules that run again exchange again. */
static void count_recomputed_exchanges(struct layer *layer, const struct cut *cut, int split)
{
    unsigned modules = cut->recomputed;
    bool experts = cut->has_experts && modules >> MODULE_EXPERTS & 1;
    bool sums = cut->has_experts ? experts || (modules >> MODULE_SHARED & 1 && cut->sends_own_rows) :
                                   modules >> MODULE_MLP & 1;

    layer->recomputed = (struct recomputed_exchanges){
        .all_reduces = sums ? layer->all_reduces[PHASE_FORWARD] - split : 0,
        .dispatches = experts ? layer->dispatches[PHASE_FORWARD] : 0,
        .row_all_reduces = experts ? layer->row_all_reduces[PHASE_FORWARD] : 0,
        .core = modules >> MODULE_CORE & 1,
    };
}

/* What a block of multi-token prediction keeps and exchanges in addition to its transformer block. The tensor group
 * gathers the results of the product, which is divided by columns. Under sequence parallelism it also gathers the
 * product's inputs, which are twice as wide, and divides the results again. The backward does the reverse, and gathers
 * the inputs once more. A gather of results is half an all-reduce of them, and counts as one. The block has two inputs:
 * the hidden states and the embedding. */
static void add_prediction(struct layer *layer, const struct cut *cut, int split)
{
    bool shares = cut->own_tokens < cut->tokens;

    layer->name = "prediction";
    layer->role = LAYER_PREDICTION;
    layer->saved = NULL, layer->nsaved = 0;
    layer->activation += prediction_activation(cut);
    layer->selective_activation += prediction_activation(cut);
    layer->within += layer->checkpoint;
    layer->checkpoint *= 2;
    layer->all_reduces[PHASE_FORWARD] += split * (shares ? 2 : 1);
    layer->all_reduces[PHASE_BACKWARD_INPUT] += 2 * split;
    layer->input_gathers += cut->lora ? 0 : 2 * split;
}

/* All-reduces of a tensor-parallel group: Megatron's f and g (Shoeybi et al. 2019, figure 3), two per block in forward
 * and in backward; one for the output of the vocabulary-parallel embedding; one for the gradient of the output layer's
 * input. Each has s b h values.
 *
 * A block with experts keeps the first all-reduce. If every GPU of the tensor group has all tokens, each GPU sends all
 * tokens to its share of the experts, and the second all-reduce sums the results. If each GPU has a share of the tokens
 * (sequence parallelism), it sends only this share, and the tensor group gathers the rows of its experts and scatters
 * the sums (Megatron-LM's all-to-all dispatcher), unless each GPU has whole experts; the shared experts then have an
 * all-reduce of their own. */
static struct layer block_layer(struct arena *arena, const struct cut *cut, const struct shard *shard)
{
    int split = shard->tensor > 1, dispatches = cut->has_experts && shard->dispatch_group > 1 ? 2 : 0;
    int rows = cut->has_experts && cut->gathers_rows, all_reduces = 2 * split;
    bool own_rows = cut->has_experts && cut->sends_own_rows;
    struct tensors tensors = cut->predicts ? prediction_tensors(cut) : block_tensors(cut);
    struct kernels kernels = {0};
    /* Under full recomputation a block keeps its input, 2 s b h bytes (Korthikanti et al. 2022, table 2); with sequence
     * parallelism only this GPU's tokens. */
    struct cut selective = *cut;
    struct layer layer = {.name = "block", .role = LAYER_BLOCK, .activation = block_activation(cut),
                          .checkpoint = cut->own_tokens * cut->hidden * cut->value,
                          .workspace = block_workspace(cut)};

    selective.recompute = RECOMPUTE_SELECTIVE;
    layer.within = block_input(cut);
    layer.selective_activation = block_activation(&selective);
    layer.selective_workspace = block_workspace(&selective);

    if (own_rows && cut->shape->shared_experts == 0)
        all_reduces = split;
    layer.input_gathers = split * lora_trains(cut, LORA_QKV) + (all_reduces - split) * lora_trains(cut, LORA_MLP_UP);
    if (!cut->lora && all_reduces > 0)
        layer.columns[COLUMN_ATTENTION] = cut->shape->kv_rank > 0 ? PRODUCT_Q_UP :
                                         cut->shape->fused_qkv ? PRODUCT_QKV : PRODUCT_Q;
    if (!cut->lora && all_reduces > 1)
        layer.columns[COLUMN_MLP] = !cut->has_experts ? PRODUCT_MLP_UP
                                    : own_rows        ? PRODUCT_SHARED_UP
                                                      : PRODUCT_NONE;
    if (layer.columns[COLUMN_ATTENTION] && cut->shape->kv_rank == 0)
        layer.behind[COLUMN_ATTENTION] = PRODUCT_PROJECTION;
    if (layer.columns[COLUMN_MLP] && !cut->has_experts)
        layer.behind[COLUMN_MLP] = PRODUCT_MLP_DOWN;
    tensors_adapt(&tensors, cut, true);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        layer.all_reduces[phase] = all_reduces;
        layer.dispatches[phase] = dispatches;
        layer.row_all_reduces[phase] = rows;
    }
    layer.dispatch_bytes = dispatches ? cut->travelling * cut->hidden * cut->value : 0;
    layer.delivered_bytes = dispatches ? cut->arriving * cut->hidden * cut->value : 0;
    layer.row_all_reduce_bytes =
        rows ? (shard->dispatch_gathers && dispatches ? cut->arriving : cut->received) * cut->hidden * cut->value : 0;
    /* the context group takes the place of the attention kernel, and gets what that would: copies (torchtitan 1283) */
    layer.key_value_bytes = cut->tokens * (repeats_groups(cut) ? 2 * cut->query : cut->key + cut->values) * cut->value;
    layer.qkv_bytes = cut->gathers_qkv ? cut->tokens * cut->projected * cut->tensor * cut->value : 0;
    layer.head_bytes = cut->ulysses > 1 ? cut->tokens * (cut->query + cut->attended) * cut->value : 0;
    (cut->predicts ? prediction_kernels : block_kernels)(&kernels, cut);
    if (cut->recompute != RECOMPUTE_OPERATORS)           /* which keeps results of kernels */
        layer.saved = block_tensors_saved(arena, cut, &layer.nsaved);
    if (cut->recompute == RECOMPUTE_OPERATORS)
        keep_results(&layer, cut, &kernels);
    else
        hold_modules(&layer, cut);
    count_recomputed_exchanges(&layer, cut, split);
    if (cut->predicts)
        add_prediction(&layer, cut, split);
    fill(arena, &layer, &tensors, &kernels);
    return layer;
}

/* Blocks of a kind are alike. */
enum { BLOCK_EXPERTS = 1, BLOCK_WINDOW = 2, BLOCK_KINDS = 4 };

static int block_kind(const struct transformer *shape, int block)
{
    return (transformer_has_experts(shape, block) ? BLOCK_EXPERTS : 0) |
           (transformer_has_window(shape, block) ? BLOCK_WINDOW : 0);
}

/* The output layer with the loss; `norm`: with the norm before it, and the weights. */
static struct layer output_layer(struct arena *arena, const struct cut *cut, bool norm)
{
    const struct transformer *shape = cut->shape;
    struct cut wide = *cut;
    struct tensors tensors = norm ? output_tensors(cut) : (struct tensors){0};
    struct kernels kernels = {0};
    int split = cut->tensor > 1 && shape->head != HEAD_NONE;
    double input = norm || !shape->final_norm ? 0 : cut->own_tokens * cut->hidden * cut->value;
    struct layer layer = {.name = norm ? "output" : "prediction-output", .role = LAYER_LAST,
                          .activation = fmax(0, output_activation(cut) - input), .workspace = output_workspace(cut),
                          .input_gathers = cut->lora ? 0 : split, .all_reduces[PHASE_BACKWARD_INPUT] = split};

    wide.fp8 = false;                /* only blocks are in a narrow format */
    (norm ? output_kernels : head_kernels)(&kernels, &wide);
    tensors_adapt(&tensors, cut, false);
    if (layer.input_gathers)
        layer.columns[COLUMN_OUTPUT] = PRODUCT_LOGITS;
    if (shape->head != HEAD_NONE) {
        layer.output = cut->tokens * cut->vocabulary * cut->value;
        layer.loss_activation = loss_activation(cut);
        layer.tied = norm && shape->tied ? cut->vocabulary * shape->embedding_size : 0;
    } else {
        layer.output = cut->tokens * cut->hidden * cut->value;
    }
    layer.checkpoint = layer.activation;
    fill(arena, &layer, &tensors, &kernels);
    return layer;
}

/* Megatron Core puts the modules of multi-token prediction on the last stage (core_v0.14.0, multi_token_prediction.py,
 * get_mtp_num_layers_to_build). Each has a block like the last one and the output layer once more; they share weights
 * with it and with the embedding, of which that stage has a copy (models/gpt/gpt_model.py: mtp_process). */
static void predictions(struct arena *arena, struct cut *cut, const struct shard *shard, struct layer *layers)
{
    const struct transformer *shape = cut->shape;

    cut->predicts = true;
    cut->has_experts = transformer_has_experts(shape, shape->layers - 1);
    cut->windowed = transformer_has_window(shape, shape->layers - 1);
    for (int i = 0; i < shape->mtp; i++) {
        layers[2 * i] = i ? layers[0] : block_layer(arena, cut, shard);
        layers[2 * i + 1] = i ? layers[1] : output_layer(arena, cut, false);
    }
    if (shape->mtp && !shape->tied)
        layers[1].tied = cut->vocabulary * shape->embedding_size;
    cut->predicts = false;
}

int transformer_layers(struct arena *arena, const struct transformer *shape, const struct shard *shard,
                       struct loc tensor_loc, const struct layer **layers, size_t *count, struct error *err)
{
    int n = shape->layers + 2 * shape->mtp + 2;
    struct cut cut;
    struct tensors first;
    struct kernels list = {0};
    struct layer *all = ARENA_ARRAY(arena, struct layer, n), *end = all + n - 1, *beyond = all + shape->layers;
    struct layer blocks[BLOCK_KINDS];

    if (check_tensor(shape, shard, tensor_loc, err) < 0)
        return -1;
    cut = cut_of(shape, shard);
    first = embedding_tensors(&cut);
    tensors_adapt(&first, &cut, false);
    cut.fp8 = false; /* only blocks are in a narrow format */
    embedding_kernels(&list, &cut);
    cut.fp8 = shard->fp8;

    all[0] = (struct layer){.name = "embedding", .role = LAYER_FIRST, .activation = embedding_activation(&cut),
                            .workspace = embedding_workspace(&cut), .all_reduces[PHASE_FORWARD] = shard->tensor > 1};
    fill(arena, &all[0], &first, &list);
    all[0].checkpoint = all[0].activation;
    *end = output_layer(arena, &cut, true);
    for (int kind = 0; kind < BLOCK_KINDS; kind++) {
        cut.has_experts = kind & BLOCK_EXPERTS, cut.windowed = kind & BLOCK_WINDOW;
        if ((!cut.has_experts || shape->experts > 0) && (!cut.windowed || shape->window > 0))
            blocks[kind] = block_layer(arena, &cut, shard);
    }
    for (int i = 0; i < shape->layers; i++)
        all[i + 1] = blocks[block_kind(shape, i)];
    predictions(arena, &cut, shard, beyond + 1);
    for (struct layer *layer = all; layer <= end; layer++) {
        layer->all_reduce_bytes = cut.tokens * cut.hidden * cut.value;
        layer->boundary = layer <= beyond ? layer->all_reduce_bytes : 0;
    }
    *layers = all;
    *count = (size_t)n;
    return 0;
}
