#include "transformer.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const norm_names[] = {"layernorm", "rmsnorm", NULL};
const char *const mlp_names[] = {"gelu", "swiglu", NULL};
const char *const head_names[] = {"language-model", "masked-language-model", "none", NULL};

enum { MAX_LAYERS = 100000, MAX_WIDTH = 1 << 24, MAX_SEQUENCE = 1 << 28 };

#define AT(member) .offset = offsetof(struct transformer, member)
static const struct field transformer_fields[] = {
    {"layers", FIELD_INT, AT(layers), .brief = "blocks", .required = true, .min = 1, .max = MAX_LAYERS},
    {"hidden", FIELD_INT, AT(hidden), .brief = "width of the hidden states", .required = true, .min = 1,
     .max = MAX_WIDTH / 4},
    {"heads", FIELD_INT, AT(heads), .brief = "attention heads", .required = true, .min = 1, .max = MAX_WIDTH},
    {"kv_heads", FIELD_INT, AT(kv_heads), .brief = "heads of keys and values; without it: heads", .min = 1,
     .max = MAX_WIDTH},
    {"head_size", FIELD_INT, AT(head_size), .brief = "width of a head; without it: hidden / heads", .min = 1,
     .max = MAX_WIDTH},
    {"ffn", FIELD_INT, AT(ffn), .brief = "width inside the MLP; without it: 4 x hidden", .min = 1, .max = MAX_WIDTH},
    {"sequence", FIELD_INT, AT(sequence), .brief = "tokens a sample", .required = true, .min = 1, .max = MAX_SEQUENCE},
    {"vocabulary", FIELD_INT, AT(vocabulary), .brief = "tokens known (not padded)", .required = true, .min = 1,
     .max = MAX_SEQUENCE},
    {"positions", FIELD_INT, AT(positions),
     .brief = "learned position embeddings, 0 for rotary ones; without it: sequence", .min = 0, .max = MAX_SEQUENCE},
    {"token_types", FIELD_INT, AT(token_types), .brief = "learned segment embeddings (BERT)", .fallback = "0", .min = 0,
     .max = MAX_WIDTH},
    {"norm", FIELD_CHOICE, AT(norm), .brief = "normalisation", .fallback = "layernorm", .choices = norm_names},
    {"mlp", FIELD_CHOICE, AT(mlp), .brief = "gelu: two products; swiglu: three", .fallback = "gelu",
     .choices = mlp_names},
    {"qkv_bias", FIELD_BOOL, AT(qkv_bias), .brief = "queries, keys and values have biases", .fallback = "true"},
    {"bias", FIELD_BOOL, AT(bias), .brief = "the projection and the MLP have biases", .fallback = "true"},
    {"tied", FIELD_BOOL, AT(tied), .brief = "the output layer shares the embedding's weights", .fallback = "true"},
    {"final_norm", FIELD_BOOL, AT(final_norm), .brief = "a norm after the last block", .fallback = "true"},
    {"embedding_norm", FIELD_BOOL, AT(embedding_norm), .brief = "a norm after the embeddings (BERT)",
     .fallback = "false"},
    {"causal", FIELD_BOOL, AT(causal), .brief = "a decoder; its attention products are counted whole all the same",
     .fallback = "true"},
    {"head", FIELD_CHOICE, AT(head), .brief = "what follows the last block", .fallback = "language-model",
     .choices = head_names},
    {"dropout", FIELD_QUANTITY, AT(dropout), .brief = "probability; 0: no masks are kept", .fallback = "0.1",
     .unit = UNIT_NUMBER, .min = 0, .max = 0.99},
    {"attention_dropout", FIELD_QUANTITY, AT(attention_dropout),
     .brief = "of the attention probabilities; without it: dropout", .unit = UNIT_NUMBER, .min = 0, .max = 0.99},
    {"flash_attention", FIELD_BOOL, AT(flash_attention), .brief = "fused attention that stores no scores",
     .fallback = "false"},
};
#undef AT

const struct table transformer_table = {
    .name = "transformer", .brief = "a transformer by its shape (GPT's unless said otherwise)",
    .fields = transformer_fields, .count = COUNT(transformer_fields), .size = sizeof(struct transformer),
    .node_offset = offsetof(struct transformer, node),
};

static struct loc loc_of(const struct transformer *shape, const char *key)
{
    return field_loc(&transformer_table, shape, key);
}

static bool given(const struct transformer *shape, const char *key)
{
    return field_given(&transformer_table, shape, key);
}

int transformer_finish(struct transformer *shape, struct error *err)
{
    int before = err->count + err->dropped;

    if (!given(shape, "kv_heads"))
        shape->kv_heads = shape->heads;
    if (!given(shape, "ffn"))
        shape->ffn = 4 * shape->hidden;
    if (!given(shape, "positions"))
        shape->positions = shape->sequence;
    if (!given(shape, "attention_dropout"))
        shape->attention_dropout = shape->dropout;
    if (!given(shape, "head_size")) {
        if (shape->hidden % shape->heads)
            error_add(err, EXIT_INPUT, loc_of(shape, "heads"),
                      "transformer: heads: %d does not divide hidden %d; give head_size where that is meant",
                      shape->heads, shape->hidden);
        shape->head_size = shape->hidden / shape->heads;
    }
    if (shape->heads % shape->kv_heads)
        error_add(err, EXIT_INPUT, loc_of(shape, "kv_heads"), "transformer: kv_heads: %d does not divide the %d heads",
                  shape->kv_heads, shape->heads);
    if (shape->positions > 0 && shape->sequence > shape->positions)
        error_add(err, EXIT_INPUT, loc_of(shape, "sequence"),
                  "transformer: sequence: %d is longer than the %d learned positions", shape->sequence,
                  shape->positions);
    return err->count + err->dropped > before ? -1 : 0;
}

static struct cut cut_of(const struct transformer *shape, const struct shard *shard)
{
    double t = shard->tensor, tokens = (double)shard->micro * shape->sequence;
    struct cut cut = {
        .shape = shape,
        .dtype = shard->dtype,
        .recompute = shard->recompute,
        .lora = shard->lora,
        .formula = shard->formula,
        .cross_entropy = shard->cross_entropy,
        .tensor = shard->tensor,
        .value = dtype_bytes(shard->dtype),
        .batch = shard->micro,
        .sequence = shape->sequence,
        .hidden = shape->hidden,
        .head_size = shape->head_size,
        .tokens = tokens,
        .own_tokens = shard->sequence_parallel ? tokens / t : tokens,
        .heads = shape->heads / t,
        .query = shape->heads / t * shape->head_size,
        .key = shape->kv_heads / t * shape->head_size,
        .ffn = shape->ffn / t,
        /* Megatron pads the vocabulary to a multiple of 128 t for speed. A scenario that wants that writes the padded
         * vocabulary, as the published tables do; otherwise the last GPU's share is filled up to the others' size. */
        .vocabulary = ceil(shape->vocabulary / t),
        .scores = shard->micro * (shape->heads / t) * shape->sequence * shape->sequence,
    };

    return cut;
}

/* Parameter tensors of one layer. */
struct tensors {
    struct tensor {
        double elements;
        double rows;             /* of a matrix; else 0 */
        bool frozen;
    } items[24];
    size_t count;
};

static void add_tensor(struct tensors *list, double rows, double columns)
{
    BUG_IF(list->count == COUNT(list->items));
    list->items[list->count++] =
        (struct tensor){.elements = rows * columns, .rows = columns > 1 ? rows : 0};
}

static void add_norm(struct tensors *list, const struct cut *cut)
{
    add_tensor(list, cut->hidden, 1);
    if (cut->shape->norm == NORM_LAYERNORM)
        add_tensor(list, cut->hidden, 1);
}

/* A weight and its bias; `bias` 0: none. */
static void add_product(struct tensors *list, double rows, double columns, double bias)
{
    add_tensor(list, rows, columns);
    if (bias > 0)
        add_tensor(list, bias, 1);
}

static struct tensors embedding_tensors(const struct cut *cut)
{
    struct tensors list = {0};

    add_tensor(&list, cut->vocabulary, cut->hidden);
    if (cut->shape->positions > 0)
        add_tensor(&list, cut->shape->positions, cut->hidden);
    if (cut->shape->token_types > 0)
        add_tensor(&list, cut->shape->token_types, cut->hidden);
    if (cut->shape->embedding_norm)
        add_norm(&list, cut);
    return list;
}

/* Column-parallel biases are split, row-parallel ones whole (Shoeybi et al. 2019, section 3). Q, K and V are one
 * tensor, and so are the two column-parallel products of SwiGLU. */
static struct tensors block_tensors(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    double qkv = cut->query + 2 * cut->key, up = (shape->mlp == MLP_SWIGLU ? 2 : 1) * cut->ffn;
    struct tensors list = {0};

    add_norm(&list, cut);
    add_product(&list, qkv, cut->hidden, shape->qkv_bias ? qkv : 0);
    add_product(&list, cut->query, cut->hidden, shape->bias ? cut->hidden : 0);
    add_norm(&list, cut);
    add_product(&list, up, cut->hidden, shape->bias ? up : 0);
    add_product(&list, cut->ffn, cut->hidden, shape->bias ? cut->hidden : 0);
    return list;
}

static struct tensors output_tensors(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    bool masked = shape->head == HEAD_MASKED_LANGUAGE_MODEL;
    struct tensors list = {0};

    if (shape->final_norm)
        add_norm(&list, cut);
    if (masked) {
        add_product(&list, cut->hidden, cut->hidden, cut->hidden);
        add_norm(&list, cut);
        add_tensor(&list, cut->vocabulary, 1);    /* the output layer's bias */
    }
    if (shape->head != HEAD_NONE && !shape->tied)
        add_tensor(&list, cut->vocabulary, cut->hidden);
    return list;
}

/* LoRA: what the layer has is frozen, and every target gets two thin matrices (Hu et al. 2021, section 4.1). */
static void adapt(struct tensors *list, const struct cut *cut, bool block)
{
    for (size_t i = 0; cut->lora && i < list->count; i++)
        list->items[i].frozen = true;
    for (int target = 0; block && target < LORA_TARGET_COUNT; target++) {
        struct adapted adapted;

        if (!lora_adapts(cut, (enum lora_target)target, &adapted))
            continue;
        add_tensor(list, adapted.in, cut->lora->rank);
        add_tensor(list, cut->lora->rank, adapted.out);
    }
}

static double sum(const struct tensors *list, bool frozen)
{
    double total = 0;

    for (size_t i = 0; i < list->count; i++)
        total += list->items[i].frozen == frozen ? list->items[i].elements : 0;
    return total;
}

double transformer_parameters(const struct transformer *shape)
{
    struct cut cut = cut_of(shape, &(struct shard){.micro = 1, .tensor = 1});
    struct tensors first = embedding_tensors(&cut), block = block_tensors(&cut), last = output_tensors(&cut);

    return sum(&first, false) + shape->layers * sum(&block, false) + sum(&last, false);
}

/* "1, 2, 4 or 8": the divisors of n. */
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

static int gcd(int a, int b)
{
    return b ? gcd(b, a % b) : a;
}

static int check_tensor(const struct transformer *shape, const struct shard *shard, struct loc loc, struct error *err)
{
    const struct { int size; const char *what; bool split; } parts[] = {
        {shape->heads, "attention heads", true},
        {shape->kv_heads, "heads of keys and values", true},
        {shape->ffn, "columns of the MLP", true},
        {shape->sequence, "tokens of a sample that sequence_parallel splits", shard->sequence_parallel},
    };
    int common = 0;
    char buffer[160];

    for (size_t i = 0; i < COUNT(parts); i++)
        common = parts[i].split ? gcd(common, parts[i].size) : common;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i].split && parts[i].size % shard->tensor)
            return error_add(err, EXIT_INFEASIBLE, loc, "strategy: tensor: %d does not divide the %d %s; try %s",
                             shard->tensor, parts[i].size, parts[i].what, divisors(common, buffer, sizeof buffer));
    return 0;
}

static void fill(struct arena *arena, struct layer *layer, const struct tensors *tensors, struct kernels *kernels)
{
    struct kernel *copy = ARENA_ARRAY(arena, struct kernel, kernels->count + 1);
    double *sizes = ARENA_ARRAY(arena, double, tensors->count + 1);
    double *rows = ARENA_ARRAY(arena, double, tensors->count + 1);

    for (size_t i = 0; i < tensors->count; i++) {
        if (tensors->items[i].frozen)
            continue;
        sizes[layer->ntensors] = tensors->items[i].elements;
        rows[layer->ntensors++] = tensors->items[i].rows;
    }
    if (kernels->count)
        memcpy(copy, kernels->items, kernels->count * sizeof *copy);
    layer->parameters = sum(tensors, false);
    layer->frozen = sum(tensors, true);
    layer->tensors = sizes;
    layer->rows = rows;
    layer->kernels = copy;
    layer->nkernels = kernels->count;
    free(kernels->items);
}

/* All-reduces of a tensor-parallel group: Megatron's f and g (Shoeybi et al. 2019, figure 3), two a block and
 * direction; the vocabulary-parallel embedding's output; the gradient of the output layer's input. Each s b h. */
int transformer_layers(struct arena *arena, const struct transformer *shape, const struct shard *shard,
                       struct loc tensor_loc, const struct layer **layers, size_t *count, struct error *err)
{
    struct cut cut;
    struct tensors first, block, last;
    struct kernels list[3] = {0};
    struct layer *all = ARENA_ARRAY(arena, struct layer, shape->layers + 2), *end = all + shape->layers + 1;
    int split = shard->tensor > 1;

    if (check_tensor(shape, shard, tensor_loc, err) < 0)
        return -1;
    cut = cut_of(shape, shard);
    first = embedding_tensors(&cut), block = block_tensors(&cut), last = output_tensors(&cut);
    adapt(&first, &cut, false);
    adapt(&block, &cut, true);
    adapt(&last, &cut, false);
    embedding_kernels(&list[0], &cut);
    block_kernels(&list[1], &cut);
    output_kernels(&list[2], &cut);

    all[0] = (struct layer){.name = "embedding", .role = LAYER_FIRST, .activation = embedding_activation(&cut),
                            .workspace = embedding_workspace(&cut), .all_reduces[PHASE_FORWARD] = split};
    fill(arena, &all[0], &first, &list[0]);
    /* Under full recomputation a block keeps its input, 2 s b h (table 2), as it arrived: with sequence parallelism
     * only this GPU's tokens of it. */
    all[1] = (struct layer){.name = "block", .role = LAYER_BLOCK, .activation = block_activation(&cut),
                            .checkpoint = cut.own_tokens * cut.hidden * cut.value,
                            .workspace = block_workspace(&cut),
                            .input_gathers = split * (lora_trains(&cut, LORA_QKV) + lora_trains(&cut, LORA_MLP_UP)),
                            .all_reduces = {[PHASE_FORWARD] = 2 * split, [PHASE_BACKWARD_INPUT] = 2 * split}};
    fill(arena, &all[1], &block, &list[1]);
    *end = (struct layer){.name = "output", .role = LAYER_LAST, .activation = output_activation(&cut),
                          .workspace = output_workspace(&cut),
                          .tied = shape->tied && shape->head != HEAD_NONE ? cut.vocabulary * cut.hidden : 0,
                          .input_gathers = shape->head != HEAD_NONE && !shard->lora ? split : 0,
                          .all_reduces[PHASE_BACKWARD_INPUT] = shape->head != HEAD_NONE ? split : 0};
    fill(arena, end, &last, &list[2]);
    if (shape->head != HEAD_NONE) {
        end->output = cut.tokens * cut.vocabulary * cut.value;
        end->loss_activation = loss_activation(&cut);
    } else {
        end->output = cut.tokens * cut.hidden * cut.value;
    }
    all[0].checkpoint = all[0].activation;
    end->checkpoint = end->activation;
    for (struct layer *layer = all; layer <= end; layer++) {
        if (layer > all + 1 && layer < end)
            *layer = all[1];
        layer->all_reduce_bytes = cut.tokens * cut.hidden * cut.value;
        layer->boundary = layer < end ? layer->all_reduce_bytes : 0;
    }
    *layers = all;
    *count = (size_t)(shape->layers + 2);
    return 0;
}
