/* What a block of a transformer keeps from its forward to its backward on one GPU for one micro-batch, tensor by
 * tensor, and the form in which it keeps it: as it is, as the index of a piece of a derivative, as a random projection,
 * or quantized. */
#include "model/transformer.h"

#include "base/base.h"

/* ---- what is saved ---- */

static void save(struct saved_list *list, struct saved saved)
{
    BUG_IF(list->count == COUNT(list->items));
    if (saved.tensors == 0)
        saved.tensors = 1;
    list->items[list->count++] = saved;
}

/* Tensors that the backward of the operation reads that made them, or that reads them. */
static void save_values(struct saved_list *list, const char *name, enum saved_part part, double rows, double width,
                        double bytes)
{
    save(list, (struct saved){.name = name, .kind = SAVED_VALUES, .part = part, .rows = rows, .width = width,
                              .bytes = bytes});
}

/* Masks, and what has a value a row. */
static void save_small(struct saved_list *list, const char *name, enum saved_part part, double values, double bytes)
{
    save(list, (struct saved){.name = name, .kind = SAVED_AS_IT_IS, .part = part, .rows = values, .width = 1,
                              .bytes = bytes});
}

/* The one input of `readers` linear layers, for the gradients of their weights. */
static void save_input(struct saved_list *list, const struct cut *cut, const char *name, enum saved_part part,
                       double rows, double width, int readers)
{
    if (readers > 0)
        save(list, (struct saved){.name = name, .kind = SAVED_INPUT, .part = part, .rows = rows, .width = width,
                                  .bytes = cut->saved, .tensors = readers});
}

static bool recomputes(const struct cut *cut, enum recompute_module module)
{
    return cut->recomputed >> module & 1;
}

/* Rajbhandari et al. 2020, section 3.2, footnote: 12 x hidden x batch x sequence x layers values. They are the query,
 * the key, the value, the attention's output, and the input and output of the GELU; tensor parallelism divides them
 * all. */
static void save_rajbhandari(struct saved_list *list, const struct cut *cut)
{
    save_small(list, "12 values a token", SAVED_ATTENTION, 12 * cut->tokens * cut->hidden * cut->value / cut->tensor,
               1);
}

/* The attention core, in the paper's table the rows "softmax", "dropout" and "attention over values": 5 a s^2 b / t
 * bytes with 2-byte values. If Megatron-LM's softmax cannot be fused, its output is kept in fp32, and a converted copy
 * for the product with the values. FlashAttention keeps one fp32 sum per row of scores. */
static void save_core(struct saved_list *list, const struct cut *cut)
{
    struct cut core = attention_cut(cut);
    bool wide = cut->shape->fused_kernels && cut->value < 4 && !softmax_fuses(&core);
    bool drops = cut->shape->attention_dropout > 0;

    if (cut->shape->flash_attention) {
        save_small(list, "sums of scores", SAVED_CORE, cut->scores / cut->sequence, 4);
        return;
    }
    save_values(list, "softmax", SAVED_CORE, cut->scores, 1, wide ? 4 : cut->value);
    if (drops)
        save_small(list, "attention mask", SAVED_CORE, cut->scores, 1);
    if (drops || wide)
        save_values(list, "probabilities", SAVED_CORE, cut->scores, 1, cut->value);      /* the values' other factor */
}

/* The inputs of the activation function (with its gate) and, unless it runs again, of the second product; in plain
 * PyTorch then also the SiLU's output, the other factor of the gate, or of a GELU operation by operation the factors of
 * its three products of two values, the tanh's result and the input: seven. Separate clamps keep their inputs too. */
static void save_mlp(struct saved_list *list, const struct cut *cut, double rows, double ffn)
{
    bool recomputed = recomputes(cut, MODULE_ACTIVATION), gated = cut->shape->mlp == MLP_SWIGLU;
    bool clamps = !recomputed && gated && cut->shape->swiglu_limit > 0 && !cut->shape->fused_clamp;
    int gelu = recomputed || cut->shape->fused_gelu || cut->shape->mlp != MLP_GELU ? 1 : 7,
        factors = recomputed || cut->shape->fused_kernels ? 1 : 2;
    struct saved function = {.name = "function input", .kind = SAVED_FUNCTION, .part = SAVED_MLP, .rows = rows,
                             .width = ffn, .bytes = cut->value, .tensors = gated ? 1 : gelu};

    save(list, function);
    function.kind = SAVED_VALUES;
    function.name = "gate";
    function.tensors = factors + 2 * clamps;
    if (gated)
        save(list, function);
    save_input(list, cut, "down input", SAVED_MLP, rows, ffn, !recomputed && lora_trains(cut, LORA_MLP_DOWN));
}

/* The router's probabilities in fp32; the inputs of the experts; their outputs, which the gradients of the
 * probabilities need; and the activations inside the MLPs of experts and shared experts. The input of the shared
 * experts is also the router's and is counted there. */
static void save_experts(struct saved_list *list, const struct cut *cut)
{
    bool operators = rows_by_operators(cut);

    if (recomputes(cut, MODULE_EXPERTS))
        return;
    save_small(list, "router", SAVED_MLP, cut->own_tokens * cut->shape->experts, 4);
    save_values(list, "expert rows", SAVED_MLP, cut->received + !operators * cut->sent, cut->hidden, cut->value);
    if (operators)               /* which keep the results in fp32 */
        save_values(list, "expert results", SAVED_MLP, cut->sent, cut->hidden, 4);
    save_mlp(list, cut, cut->received, cut->expert_ffn);
    if (cut->shared_ffn > 0 && !recomputes(cut, MODULE_SHARED))
        save_mlp(list, cut, cut->tokens, cut->shared_ffn);
}

/* Whether a norm that is one kernel keeps its input in fp32, and nobody the input itself. */
static bool keeps_widened(const struct cut *cut)
{
    return cut->shape->widened_norms && cut->value < 4 && !recomputes(cut, MODULE_NORMS) &&
           (cut->shape->norm != NORM_RMSNORM || cut->shape->fused_norm);
}

/* The first norm keeps its input, the block's input. A checkpoint already holds it, and a recomputation begins with a
 * view of the checkpoint (torch/utils/checkpoint.py, detach_variable; Megatron-LM's CheckpointFunction). But a norm in
 * plain PyTorch, or of a widened input, keeps a copy in fp32, quantized values are a copy too, and Rajbhandari et al.
 * count no input: 0. */
double block_input(const struct cut *cut)
{
    bool plain = cut->shape->norm == NORM_RMSNORM && !cut->shape->fused_norm && cut->value < 4;
    bool copies = plain || keeps_widened(cut) || cut->form.activations_bits > 0;

    return cut->formula == ACTIVATIONS_RAJBHANDARI || copies ? 0 : cut->own_tokens * cut->hidden * cut->value;
}

/* The norms' inputs; in plain PyTorch an RMSNorm keeps its input in fp32 and, instead of the input in half precision,
 * the normalised values in half precision. */
static void save_norms(struct saved_list *list, const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    int norms = shape->parallel ? 1 : 2;
    bool plain = shape->norm == NORM_RMSNORM && !shape->fused_norm;
    struct saved input = {.name = "norm input", .kind = SAVED_VALUES, .part = SAVED_ATTENTION, .rows = cut->own_tokens,
                          .width = cut->hidden, .bytes = keeps_widened(cut) ? 4 : cut->value, .tensors = norms};

    save(list, input);
    input.bytes = 4;
    input.name = "norm input in fp32";
    if (plain && !recomputes(cut, MODULE_NORMS))
        save(list, input);
    if (shape->qk_norm)                                  /* the inputs of the norms of queries and keys */
        save_values(list, "qk norm input", SAVED_ATTENTION, cut->tokens, cut->query + cut->key, cut->value);
    if (shape->qk_norm && plain)
        save_values(list, "qk norm input in fp32", SAVED_ATTENTION, cut->tokens, cut->query + cut->key, 4);
}

/* The inputs of the products that follow norms. Parallel attention and MLP have the same one. */
static void save_norm_outputs(struct saved_list *list, const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    int qkv = shape->kv_rank > 0 ? 2 : shape->fused_qkv ? 1 : 3;
    int up = cut->has_experts ? 1 + (cut->shared_ffn > 0) : shape->mlp == MLP_SWIGLU && !shape->fused_gate ? 2 : 1;

    qkv *= lora_trains(cut, LORA_QKV);
    up *= lora_trains(cut, LORA_MLP_UP);
    if (recomputes(cut, MODULE_NORMS))
        return;
    if (shape->parallel)
        qkv += up, up = 0;
    save_input(list, cut, "qkv input", SAVED_ATTENTION, cut->input_tokens, cut->hidden, qkv);
    save_input(list, cut, "up input", SAVED_MLP, cut->input_tokens, cut->hidden, up);
}

/* Queries, keys and values are computed again from the latent vectors; the keys' rotated values, which all heads share,
 * are kept beside these. */
static bool recomputes_latent(const struct cut *cut)
{
    return cut->shape->kv_rank > 0 && recomputes(cut, MODULE_LATENT);
}

/* Queries, keys, values, and the attention's output. Keys and values are kept once for every head that reads them. A
 * linear layer that keeps its input in another form than attention has a copy of its own. */
static void save_attention(struct saved_list *list, const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    bool apart = cut->fp8 || !shape->flash_attention || projects(cut) || cut->form.activations_bits > 0;

    save_values(list, "qkv", SAVED_ATTENTION, cut->tokens,
                recomputes_latent(cut) ? shape->rope_head_size : cut->query + cut->key + cut->values, cut->value);
    if (repeats_groups(cut))
        save_values(list, "repeated kv", SAVED_ATTENTION, cut->tokens, 2 * cut->query - cut->key - cut->values,
                    cut->value);
    if (cut->gathers_qkv)                                                /* V is a view of what was gathered */
        save_values(list, "gathered qkv", SAVED_ATTENTION, cut->tokens, cut->projected * cut->tensor - cut->values,
                    cut->value);
    if (shape->flash_attention)
        save_values(list, "attention output", SAVED_ATTENTION, cut->tokens, cut->attended, cut->value);
    save_input(list, cut, "projection input", SAVED_ATTENTION, cut->tokens, cut->attended,
               apart && lora_trains(cut, LORA_PROJECTION));
    if (shape->kv_rank > 0)                                              /* inputs and outputs of the latent norms */
        save(list, (struct saved){.name = "latent",
                                  .kind = SAVED_VALUES,
                                  .part = SAVED_ATTENTION,
                                  .rows = cut->tokens,
                                  .width = (double)shape->q_rank + shape->kv_rank,
                                  .bytes = cut->value,
                                  .tensors = recomputes(cut, MODULE_NORMS) || recomputes_latent(cut) ? 1 : 2});
}

/* Korthikanti et al. 2022, section 4.1 and table 2, part by part, so that it holds for other shapes. For a GPT with
 * 2-byte values: s b h (10 + 24/t + 5 a s/(h t)) bytes, all divided by t with sequence parallelism. The input of a
 * product is kept for the gradient of its weights, so under LoRA only if the product has an adapter. */
static struct saved_list block_saved(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    struct saved_list list = {.count = 0};

    if (cut->formula == ACTIVATIONS_RAJBHANDARI) {
        save_rajbhandari(&list, cut);
        return list;
    }
    save_norms(&list, cut);
    save_norm_outputs(&list, cut);
    if (shape->shared_gate && cut->has_experts && !recomputes(cut, MODULE_EXPERTS)) /* the shared experts' result */
        save_values(&list, "shared result", SAVED_MLP, cut->own_tokens, cut->hidden, cut->value);
    if (shape->dropout > 0)                                              /* masks before both residual sums */
        save_small(&list, "dropout masks", SAVED_MLP, 2 * cut->own_tokens * cut->hidden, 1);
    save_attention(&list, cut);
    if (cut->has_experts)
        save_experts(&list, cut);
    else if (!recomputes(cut, MODULE_MLP))
        save_mlp(&list, cut, cut->tokens, cut->ffn);
    for (int target = 0; cut->lora && target < LORA_TARGET_COUNT; target++)
        if (lora_trains(cut, (enum lora_target)target) && (target < LORA_MLP_UP || !recomputes(cut, MODULE_MLP)))
            save_values(&list, "adapter", SAVED_ATTENTION, cut->tokens, cut->lora->rank, cut->value);
    save_core(&list, cut);
    return list;
}

/* ---- the form in which it is kept ---- */

/* ActNN (Chen et al. 2021) and GACT (Liu et al. 2022) quantize groups of 256 values, each with its least value and its
 * scale, which have 2 bytes each (ucbrise/actnn, actnn/conf.py: group_size; actnn/ops.py: quantize_activation). */
static double quantized_bytes(const struct cut *cut)
{
    enum { GROUP = 256, GROUP_BYTES = 2 * 2 };

    return cut->form.activations_bits / 8. + (double)GROUP_BYTES / GROUP;
}

static bool is_index(const struct cut *cut, const struct saved *saved)
{
    return saved->kind == SAVED_FUNCTION && cut->form.few_bit > 0;
}

static bool is_quantized(const struct cut *cut, const struct saved *saved)
{
    return cut->form.activations_bits > 0 && saved->kind != SAVED_AS_IT_IS && !is_index(cut, saved);
}

/* Values that are kept: an input that is not kept as it is by each linear layer that reads it; of a function, however
 * many values it would keep, one index. */
static double kept_values(const struct cut *cut, const struct saved *saved)
{
    double values = saved->rows * saved->width;

    if (saved->kind == SAVED_INPUT && projects(cut))
        return saved->tensors * projected_rows(cut, saved->rows) * saved->width;
    if (is_index(cut, saved) || (saved->kind == SAVED_INPUT && !is_quantized(cut, saved)))
        return values;
    return saved->tensors * values;
}

static double kept_bytes(const struct cut *cut, const struct saved *saved)
{
    double each = is_index(cut, saved)      ? cut->form.few_bit / 8.
                  : is_quantized(cut, saved) ? quantized_bytes(cut)
                                             : saved->bytes;

    return kept_values(cut, saved) * each;
}

double block_activation(const struct cut *cut)
{
    bool core = cut->recompute != RECOMPUTE_SELECTIVE && !recomputes(cut, MODULE_CORE);
    struct saved_list list = block_saved(cut);
    double bytes = 0;

    for (size_t i = 0; i < list.count; i++)              /* table 2, selective: without the core */
        if (list.items[i].part != SAVED_CORE || core)
            bytes += kept_bytes(cut, &list.items[i]);
    return bytes;
}

/* An item as the tensors that it is kept as: each linear layer's own projection or packed input, each factor. */
static void list_tensors(const struct cut *cut, const struct saved *saved, struct saved_tensor *tensors, size_t *count)
{
    bool one = is_index(cut, saved) ||
               (saved->kind == SAVED_INPUT && !projects(cut) && !is_quantized(cut, saved));
    int parts = one ? 1 : saved->tensors;
    double bytes = kept_bytes(cut, saved) / parts;

    for (int i = 0; bytes > 0 && i < parts; i++)
        tensors[(*count)++] = (struct saved_tensor){saved->name, bytes, saved->part == SAVED_CORE};
}

const struct saved_tensor *block_tensors_saved(struct arena *arena, const struct cut *cut, size_t *count)
{
    enum { MOST_PARTS = 8 };
    bool core = cut->recompute != RECOMPUTE_SELECTIVE && !recomputes(cut, MODULE_CORE);
    struct saved_list list = block_saved(cut);
    struct saved_tensor *tensors = ARENA_ARRAY(arena, struct saved_tensor, list.count * MOST_PARTS);

    *count = 0;
    for (int of_core = 0; of_core <= core; of_core++)
        for (size_t i = 0; i < list.count; i++)
            if ((list.items[i].part == SAVED_CORE) == of_core) {
                BUG_IF(list.items[i].tensors > MOST_PARTS);
                list_tensors(cut, &list.items[i], tensors, count);
            }
    return tensors;
}

double core_activation(const struct cut *cut)
{
    struct saved_list list = {.count = 0};
    double bytes = 0;

    save_core(&list, cut);
    for (size_t i = 0; i < list.count; i++)
        bytes += kept_bytes(cut, &list.items[i]);
    return bytes;
}

/* A pass over the values finds the least and the largest one of each group; another one rounds and packs them (ActNN,
 * cpp_extension/minimax_cuda_kernel.cu, quantization_cuda_kernel.cu). The backward unpacks them before it reads them.
 * Such layers pack in every forward, also in one that is computed again later. */
void quantization_kernels(struct kernels *list, const struct cut *cut, enum saved_part part)
{
    struct saved_list saved = block_saved(cut);
    size_t first = list->count;

    for (size_t i = 0; i < saved.count; i++) {
        const struct saved *item = &saved.items[i];
        double packed = kept_bytes(cut, item), whole = kept_values(cut, item) * item->bytes;
        enum phase phase = item->kind == SAVED_INPUT ? PHASE_BACKWARD_WEIGHT : PHASE_BACKWARD_INPUT;

        if (item->part != part || !is_quantized(cut, item))
            continue;
        plain_kernels(list, cut, "least-largest", PHASE_FORWARD, CLASS_REDUCTION, item->tensors, whole);
        plain_kernels(list, cut, "quantize", PHASE_FORWARD, CLASS_OTHER, item->tensors, whole + packed);
        plain_kernels(list, cut, "dequantize", phase, CLASS_OTHER, item->tensors, packed + whole);
    }
    for (size_t i = first; i < list->count; i++)
        list->items[i].attention_core = part == SAVED_CORE;
}
