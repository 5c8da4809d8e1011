/* The parameter tensors of a transformer's layers on one GPU. Biases of column-parallel products are split, biases of
 * row-parallel products are whole (Shoeybi et al. 2019, section 3). One tensor holds Q, K and V, unless fused_qkv is
 * false; one tensor holds the two column-parallel products of SwiGLU; one tensor holds the same product of all experts
 * of a GPU. */
#include "model/transformer.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"

/* ---- LoRA: which products have adapters, and the widths of these products on this GPU ---- */

static const char *const target_names[] = {
    [LORA_QKV] = "qkv", [LORA_PROJECTION] = "projection", [LORA_MLP_UP] = "mlp-up", [LORA_MLP_DOWN] = "mlp-down", NULL,
};
_Static_assert(COUNT(target_names) == LORA_TARGET_COUNT + 1, "a name for every target");
static const char *const weights_names[] = ENUM_NAMES(LORA_WEIGHTS);
static const struct field lora_fields[] = {
    {KEY(lora, rank), .kind = FIELD_INT, .required = true, .min = 1, .max = 65536,
     .brief = "rank of the adapters"},
    {KEY(lora, targets), .kind = FIELD_CHOICES, .choices = target_names,
     .fallback = "[qkv]", .brief = "the GEMMs of every block that get an adapter"},
    {KEY(lora, weights), .kind = FIELD_CHOICE, .choices = weights_names, .fallback = "full",
     .choice_briefs = NAMES("the model's number format", "four bits with quantized scales (QLoRA), converted before each "
                            "GEMM (bitsandbytes)"),
     .brief = "how blocks keep the weights of their GEMMs, which are frozen"},
};
const struct table lora_table = {
    TABLE("memory: lora", "low-rank adapters are trained and the model's own weights are frozen", lora, lora_fields),
};

bool lora_adapts(const struct cut *cut, enum lora_target target, struct adapted *adapted)
{
    const struct adapted widths[LORA_TARGET_COUNT] = {
        [LORA_QKV] = {cut->hidden, cut->projected},
        [LORA_PROJECTION] = {cut->attended, cut->hidden},
        [LORA_MLP_UP] = {cut->hidden, (cut->shape->mlp == MLP_SWIGLU ? 2 : 1) * cut->ffn},
        [LORA_MLP_DOWN] = {cut->ffn, cut->hidden},
    };
    const int *targets = cut->lora ? cut->lora->targets.items : NULL;
    bool adapts = false;

    *adapted = widths[target];
    for (size_t i = 0; targets && i < cut->lora->targets.count; i++)
        adapts |= targets[i] == (int)target;
    return adapts;
}

bool lora_trains(const struct cut *cut, enum lora_target target)
{
    struct adapted adapted;

    return !cut->lora || lora_adapts(cut, target, &adapted);
}

/* Dettmers et al. 2023, section 3, "Double Quantization": 4 bits a value, 8 for the scale of 64 values, 32 for that of 256
 * of these scales. */
static const double packed_bytes = 4 / 8. + 1 / 64. + 4 / (64. * 256);

bool weights_packed(const struct cut *cut)
{
    return cut->lora && cut->lora->weights == LORA_WEIGHTS_NF4;
}

double unpacked_weight(const struct cut *cut)
{
    double most = 0;

    for (int target = 0; weights_packed(cut) && target < LORA_TARGET_COUNT; target++) {
        struct adapted width;

        lora_adapts(cut, (enum lora_target)target, &width);
        if (target == LORA_MLP_UP && cut->shape->mlp == MLP_SWIGLU && !cut->shape->fused_gate)
            width.out /= 2;
        most = fmax(most, width.in * width.out);
    }
    return most * cut->value;
}

/* ---- tensors ---- */

static void add_tensor(struct tensors *list, struct tensor tensor)
{
    BUG_IF(list->count == COUNT(list->items));
    list->items[list->count++] = tensor;
}

static void add_vector(struct tensors *list, double elements)
{
    add_tensor(list, (struct tensor){.elements = elements});
}

static void add_norm(struct tensors *list, const struct cut *cut)
{
    add_vector(list, cut->hidden);
    if (cut->shape->norm_bias)
        add_vector(list, cut->hidden);
}

/* One norm for queries and one for keys. */
static void add_qk_norms(struct tensors *list, const struct cut *cut)
{
    bool head = cut->shape->qk_norm == QK_NORM_HEAD;
    double widths[] = {head ? cut->query_size : cut->query, head ? cut->query_size : cut->key};

    for (size_t i = 0; i < COUNT(widths) && cut->shape->qk_norm; i++) {
        add_vector(list, widths[i]);
        if (cut->shape->norm_bias)
            add_vector(list, widths[i]);
    }
}

static void add_matrix(struct tensors *list, double rows, double columns)
{
    add_tensor(list, (struct tensor){.elements = rows * columns, .rows = rows, .matrix = {rows, columns, .count = 1}});
}

/* The weight of a linear layer. */
static void add_weight(struct tensors *list, double rows, double columns)
{
    add_tensor(list, (struct tensor){.elements = rows * columns, .rows = rows, .linear = {LINEAR_BLOCK, rows, columns},
                                     .matrix = {rows, columns, .count = 1}});
}

/* Says of the last weight which of its dimensions the tensor group divides. */
static void cut_weight(struct tensors *list, enum matrix_cut cut)
{
    list->items[list->count - 1].matrix.cut = cut;
}

/* A weight and its bias; with `bias` 0 it has none. */
static struct matrix *add_product(struct tensors *list, double rows, double columns, enum matrix_cut cut, double bias)
{
    struct matrix *matrix;

    add_weight(list, rows, columns);
    cut_weight(list, cut);
    matrix = &list->items[list->count - 1].matrix;
    if (bias > 0)
        add_vector(list, bias);
    return matrix;
}

struct tensors embedding_tensors(const struct cut *cut)
{
    struct tensors list = {0};

    add_matrix(&list, cut->vocabulary, cut->shape->embedding_size);
    if (cut->shape->embedding_size != cut->shape->hidden)
        add_matrix(&list, cut->hidden, cut->shape->embedding_size);
    if (cut->shape->positions > 0)
        add_matrix(&list, cut->shape->positions, cut->hidden);
    if (cut->shape->token_types > 0)
        add_matrix(&list, cut->shape->token_types, cut->hidden);
    if (cut->shape->embedding_norm)
        add_norm(&list, cut);
    return list;
}

/* Latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1, equations 9 to 19): the compressing matrices are whole
 * on every GPU of the tensor group, the expanding ones are split by heads; each latent vector has a norm. */
static void add_latent_inputs(struct tensors *list, const struct cut *cut)
{
    const struct transformer *shape = cut->shape;

    if (shape->q_rank > 0) {
        add_weight(list, shape->q_rank, cut->hidden);
        add_vector(list, shape->q_rank);
    }
    add_weight(list, cut->query, shape->q_rank > 0 ? shape->q_rank : cut->hidden);
    cut_weight(list, MATRIX_ROWS);
    add_weight(list, shape->kv_rank + shape->rope_head_size, cut->hidden);
    add_vector(list, shape->kv_rank);
    add_weight(list, cut->heads * (shape->head_size + shape->value_head_size), shape->kv_rank);
    cut_weight(list, MATRIX_ROWS);
}

/* `copies` MLPs of that width, with one tensor for each product of all copies. A gated MLP whose two inputs are
 * products of their own has a matrix for each. */
static void add_mlp(struct tensors *list, const struct cut *cut, double ffn, double copies)
{
    double inputs = cut->shape->mlp == MLP_SWIGLU ? 2 : 1, up = inputs * ffn;
    double apart = cut->shape->fused_gate ? 1 : inputs;
    struct matrix *matrix;

    matrix = add_product(list, copies * up, cut->hidden, MATRIX_ROWS, cut->shape->bias ? copies * up : 0);
    matrix->out = up / apart;
    matrix->count = copies * apart;
    matrix = add_product(list, cut->hidden, copies * ffn, MATRIX_COLUMNS, cut->shape->bias ? copies * cut->hidden : 0);
    matrix->in = ffn;
    matrix->count = copies;
}

struct tensors block_tensors(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    double qkv = cut->projected, key = (qkv - cut->query) * cut->query_size / (cut->query_size + cut->value_size);
    double parts[MATRIX_PARTS] = {cut->query, cut->gathers_qkv ? key : cut->key,
                                  cut->gathers_qkv ? qkv - cut->query - key : cut->values};
    const double widths[MATRIX_PARTS] = {cut->query, cut->key, cut->values};
    struct tensors list = {0};
    size_t before;

    add_norm(&list, cut);
    if (shape->kv_rank > 0)
        add_latent_inputs(&list, cut);
    else if (shape->fused_qkv)
        memcpy(add_product(&list, qkv, cut->hidden, MATRIX_ROWS, shape->qkv_bias ? qkv : 0)->parts, parts,
               sizeof parts);
    else
        for (int i = 0; i < MATRIX_PARTS; i++)
            add_product(&list, widths[i], cut->hidden, MATRIX_ROWS, shape->qkv_bias ? widths[i] : 0);
    add_qk_norms(&list, cut);
    add_product(&list, cut->hidden, cut->attended, MATRIX_COLUMNS, shape->projection_bias ? cut->hidden : 0);
    for (int norm = 1; norm < (shape->parallel ? 1 : 2) + (shape->post_norms ? 2 : 0); norm++)
        add_norm(&list, cut);
    if (!cut->has_experts) {
        add_mlp(&list, cut, cut->ffn, 1);
        return list;
    }
    add_matrix(&list, shape->experts, cut->hidden);      /* the router, whole on every GPU */
    if (shape->shared_experts > 0)
        add_mlp(&list, cut, cut->shared_ffn, 1);
    if (shape->shared_gate)
        add_matrix(&list, 1, cut->hidden);
    before = list.count;
    add_mlp(&list, cut, cut->expert_ffn, cut->experts);
    list.nexperts = list.count - before;
    for (size_t i = before; i < list.count; i++) {
        struct tensor *tensor = &list.items[i];

        tensor->linear.place = LINEAR_EXPERT;      /* up, then down: one expert's share of the tensor */
        tensor->linear.out /= i == before ? cut->experts : 1;
        tensor->linear.in /= i == before ? 1 : cut->experts;
        tensor->matrix.expert = true;
    }
    return list;
}

/* DeepSeek-AI 2024, DeepSeek-V3, section 2.2: a norm of the hidden states and one of the embedding, a product of both
 * side by side, a block, and a norm before the output layer. That layer and the embedding are the model's own. Megatron
 * Core divides the product by its columns (core_v0.14.0, multi_token_prediction.py, MultiTokenPredictionLayer). */
struct tensors prediction_tensors(const struct cut *cut)
{
    struct tensors list = {0}, block = block_tensors(cut);

    for (int norm = 0; norm < 3; norm++)
        add_norm(&list, cut);
    add_weight(&list, cut->hidden / cut->tensor, 2 * cut->hidden);
    cut_weight(&list, MATRIX_ROWS);
    for (size_t i = 0; i < block.count; i++)
        add_tensor(&list, block.items[i]);
    list.nexperts = block.nexperts;
    return list;
}

struct tensors output_tensors(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    bool masked = shape->head == HEAD_MASKED_LANGUAGE_MODEL;
    struct tensors list = {0};

    if (shape->final_norm)
        add_norm(&list, cut);
    if (masked) {
        add_matrix(&list, cut->hidden, cut->hidden);      /* Megatron-LM's BertLMHead: PyTorch's linear layer */
        add_vector(&list, cut->hidden);
        add_norm(&list, cut);
        add_vector(&list, cut->vocabulary);       /* the output layer's bias */
    }
    if (shape->head != HEAD_NONE && shape->embedding_size != shape->hidden)
        add_matrix(&list, shape->embedding_size, cut->hidden);
    if (shape->head != HEAD_NONE)      /* a tied weight has no elements of its own */
        add_tensor(&list, (struct tensor){.elements = shape->tied ? 0 : cut->vocabulary * shape->embedding_size,
                                          .rows = shape->tied ? 0 : cut->vocabulary,
                                          .linear = {LINEAR_OUTPUT, cut->vocabulary, shape->embedding_size}});
    if (shape->head == HEAD_LANGUAGE_MODEL && shape->head_bias)
        add_vector(&list, cut->vocabulary);
    return list;
}

void tensors_adapt(struct tensors *list, const struct cut *cut, bool block)
{
    for (size_t i = 0; cut->lora && i < list->count; i++) {
        struct tensor *item = &list->items[i];
        double kept = block && weights_packed(cut) && item->linear.out > 0 ? packed_bytes / cut->value : 1;

        item->frozen = true;
        list->packed += item->elements * (1 - kept);
        item->elements *= kept;
    }
    for (int target = 0; block && cut->lora && target < LORA_TARGET_COUNT; target++) {
        struct adapted adapted;

        if (!lora_adapts(cut, (enum lora_target)target, &adapted))
            continue;
        add_matrix(list, adapted.in, cut->lora->rank);
        add_matrix(list, cut->lora->rank, adapted.out);
    }
}

double tensors_sum(const struct tensors *list, bool frozen)
{
    double total = 0;

    for (size_t i = 0; i < list->count; i++)
        total += list->items[i].frozen == frozen ? list->items[i].elements : 0;
    return total;
}
