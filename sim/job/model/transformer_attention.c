/* The kernels of attention: the products for queries, keys and values, and what follows up to the projection. */
#include "kernels/kernel_time.h"
#include "model/transformer.h"

#include <math.h>

#include "base/base.h"

/* The norm of a latent vector. */
static void latent_norm(struct kernels *list, const struct cut *cut, const char *name, double rank)
{
    size_t first = list->count;

    memory_kernel(list, cut, name, PHASE_FORWARD, CLASS_RMSNORM_FORWARD, 2 * cut->tokens * rank * cut->value);
    memory_kernel(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_RMSNORM_BACKWARD, 3 * cut->tokens * rank * cut->value);
    mark_recomputed(list, cut, 1u << MODULE_NORMS | 1u << MODULE_LATENT, first);
}

/* Latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1): queries are computed from one narrow latent vector,
 * keys and values from another one. Every GPU of the tensor group computes the whole latent vectors, for all tokens. */
static void latent_inputs(struct kernels *list, const struct cut *cut)
{
    const struct transformer *shape = cut->shape;

    if (shape->q_rank > 0) {
        block_product(list, cut, PRODUCT_Q_DOWN, 0, cut->tokens, shape->q_rank, cut->hidden);
        latent_norm(list, cut, "q-norm", shape->q_rank);
    }
    block_product(list, cut, PRODUCT_Q_UP, 0, cut->tokens, cut->query, shape->q_rank > 0 ? shape->q_rank : cut->hidden);
    block_product(list, cut, PRODUCT_KV_DOWN, 0, cut->tokens, shape->kv_rank + shape->rope_head_size, cut->hidden);
    latent_norm(list, cut, "kv-norm", shape->kv_rank);
    block_product(list, cut, PRODUCT_KV_UP, 0, cut->tokens, cut->heads * (shape->head_size + shape->value_head_size),
                   shape->kv_rank);
}

/* One product computes Q, K and V, and its backward needs their gradients concatenated. Or there are three products,
 * and the gradients of their common input are added. */
static void qkv(struct kernels *list, const struct cut *cut)
{
    double width = cut->projected;

    if (cut->shape->fused_qkv) {
        adapted_product(list, cut, LORA_QKV, PRODUCT_QKV);
        memory_kernel(list, cut, "qkv-concatenate", PHASE_BACKWARD_INPUT, CLASS_COPY,
                      2 * cut->tokens * width * cut->value);
    } else {
        block_product(list, cut, PRODUCT_Q, 0, cut->tokens, cut->query, cut->hidden);
        block_product(list, cut, PRODUCT_K, 0, cut->tokens, cut->key, cut->hidden);
        block_product(list, cut, PRODUCT_V, 0, cut->tokens, cut->values, cut->hidden);
        adapter_kernels(list, cut, LORA_QKV);
        plain_kernels(list, cut, "qkv-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 2,
                      6 * cut->tokens * cut->hidden * cut->value);
    }
    if (cut->shape->qkv_bias)
        bias_kernels(list, cut, "qkv-bias", cut->tokens, width, false);
}

void attention_inputs(struct kernels *list, const struct cut *cut)
{
    (cut->shape->kv_rank > 0 ? latent_inputs : qkv)(list, cut);
}

/* What turns queries and keys to their positions: for each value, what unvectorized kernels compute, read and write, v
 * bytes in the format of activations, and what contiguous ones read and write; and how many kernels do it (of queries
 * and keys together), forward and backward.
 *
 * fused: one kernel reads and writes them.
 * complex: they are converted to fp32, multiplied as complex numbers, and converted back (Meta's Llama, model.py:
 *     apply_rotary_emb); so are their gradients. torch.compile leaves it so: its Inductor has no code for complex
 *     numbers (torch/_inductor/lowering.py, unsupported_input_tensor).
 * halves: in the format of activations (Hugging Face Transformers, modeling_llama.py: apply_rotary_pos_emb,
 *     rotate_half). Forward: a product with the cosines; a half negated, and both halves put together; a product with
 *     the sines; the sum. Backward, by autograd: the two products; the negation of a half; of each half a gradient of
 *     the whole, which is cleared and of which half is copied (slice_backward); and two sums of the three gradients.
 *     Heads and tokens are transposed, so that only what clears and the sum of these two gradients are contiguous.
 * matrices: converted to fp32, multiplied by matrices of 2 x 2, which writes each value twice, summed, and converted
 *     back (IBM's foundation-model-stack, fms/modules/positions.py: adjusted_qk); the gradients take as much. */
struct rotation { double values, unvectorized, contiguous; int launches, contiguous_launches; };

static struct rotation rotation(const struct cut *cut, enum phase phase)
{
    double v = cut->value, conversions = v < 4 ? 2 * (v + 4) : 0;
    int converted = v < 4 ? 2 : 0;

    switch ((enum rotary)cut->shape->rotary) {
    case ROTARY_COMPLEX:
        return (struct rotation){converted + 0.5, conversions + 2 * 4, 0, 2 * (converted + 1), 0};
    case ROTARY_HALVES:
        if (phase == PHASE_FORWARD)
            return (struct rotation){4.5, 2 * v + v + 2 * v + 2 * v + 3 * v, 0, 2 * 5, 0};
        return (struct rotation){4.5, 2 * 2 * v + v + 2 * v + 3 * v, 2 * v + 3 * v, 2 * (2 + 1 + 2 + 1), 2 * (2 + 1)};
    case ROTARY_MATRICES:
        return (struct rotation){converted + 2 + 2, conversions + 2 * (4 + 2 * 4), 0, 2 * (converted + 2), 0};
    default:
        return (struct rotation){0, 0, 2 * v, 0, 1};
    }
}

static void rotary(struct kernels *list, const struct cut *cut)
{
    double width = cut->shape->kv_rank > 0 ? (cut->heads + 1) * cut->shape->rope_head_size : cut->query + cut->key;
    double turned = cut->tokens * width;
    size_t first = list->count;

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        struct rotation each = rotation(cut, (enum phase)phase);

        if (each.launches > 0)
            unvectorized_kernels(list, cut, "rotary", (enum phase)phase, CLASS_OTHER, each.launches,
                                 turned * each.values, turned * each.unvectorized);
        if (each.contiguous_launches > 0)
            plain_kernels(list, cut, "rotary", (enum phase)phase, CLASS_OTHER, each.contiguous_launches,
                          turned * each.contiguous);
    }
    if (cut->shape->kv_rank > 0)
        mark_recomputed(list, cut, 1u << MODULE_LATENT, first);
}

/* The backward sums the gradients of the copies. */
static void repeat_groups(struct kernels *list, const struct cut *cut)
{
    double bytes = cut->tokens * (2 * cut->query + cut->key + cut->values) * cut->value;

    if (!repeats_groups(cut))
        return;
    unvectorized_kernels(list, cut, "groups", PHASE_FORWARD, CLASS_COPY, 2, 2 * cut->tokens * cut->query, bytes);
    plain_kernels(list, cut, "groups", PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, bytes);
}

/* A product of two activations, C = A B, for each head. The gradients of A and of B both belong to the phase of the
 * input's gradient. Grouped keys and values are counted as if every head read its own copy. */
static void head_product(struct kernels *list, const struct cut *cut, enum product_id product,
                         enum matmul_layout layout, double n, double k)
{
    struct kernel kernel = {.product = product, .attention_core = true, .batch = cut->batch * cut->heads,
                            .m = cut->queries, .n = n, .k = k, .layout = layout,
                            .sliced = cut->slices > 1 ? cut->slices / (cut->before + 1) : 0};

    product_kernel(list, cut, kernel);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.n = k, kernel.k = n;                           /* dA = dC B^T */
    kernel.layout = layout == LAYOUT_NT ? LAYOUT_NN : LAYOUT_NT;
    product_kernel(list, cut, kernel);
    kernel.m = k, kernel.n = n, kernel.k = cut->queries;  /* dB = A^T dC */
    kernel.layout = LAYOUT_TN;
    product_kernel(list, cut, kernel);
}

/* Kernels around a softmax that is not fused, each of which reads and writes all scores.
 * Plain PyTorch: torch.matmul copies queries, keys and values, whose heads are not contiguous, and their gradients;
 * scores are scaled and masked. The mask of an encoder is added and has no backward. A causal mask that is multiplied
 * takes two kernels: the product, and a difference that moves hidden scores far below zero and has no backward.
 * With scores_in_place torch.baddbmm reads heads where they lie, and scales. The mask is then written into a view of
 * its result, for which autograd clears a tensor and copies the gradient into it (torch/csrc/autograd/variable.cpp:
 * AsStridedBackward0; FunctionsManual.cpp, as_strided_backward) and three times more (functions/tensor.cpp,
 * CopySlices). Megatron-LM, where its softmax cannot be fused: PyTorch's in fp32 (forward_torch_softmax; query-key
 * layer scaling, its default until 2023, sets attention_softmax_in_fp32) on scores that are converted and scaled; the
 * probabilities are converted back. The gradient of masked_fill_ is a copy that is filled
 * (ATen/native/TensorAdvancedIndexing.cpp). */
static void separate_scores(struct kernels *list, const struct cut *cut)
{
    bool plain = !cut->shape->fused_kernels, causal = cut->shape->causal, multiplied = cut->shape->multiplied_mask;
    bool placed = plain && cut->shape->scores_in_place, fills = causal && (!plain || (placed && !multiplied));
    double inputs = cut->tokens * (cut->query + cut->key + cut->values), half = cut->scores * cut->value;
    double values = 2 * cut->scores * (plain ? cut->value : 4);

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        int masks = plain && phase == PHASE_FORWARD ? 1 + (causal && multiplied) : causal, copies = placed ? 5 : 1;

        if (plain && !placed)
            unvectorized_kernels(list, cut, "heads", (enum phase)phase, CLASS_COPY, 3, inputs, 2 * inputs * cut->value);
        if (!plain && cut->value < 4)
            unvectorized_kernels(list, cut, "convert", (enum phase)phase, CLASS_COPY, 2, 2 * cut->scores,
                                 2 * half + values);
        if (!placed)
            memory_kernel(list, cut, "scale", (enum phase)phase, CLASS_OTHER, values);
        if (placed && fills && phase == PHASE_BACKWARD_INPUT)
            memory_kernel(list, cut, "mask-zeros", (enum phase)phase, CLASS_OTHER, values / 2);
        if (fills && phase == PHASE_BACKWARD_INPUT)
            plain_kernels(list, cut, "mask-copies", (enum phase)phase, CLASS_COPY, copies, copies * values);
        if (masks > 0)
            unvectorized_kernels(list, cut, "mask", (enum phase)phase, CLASS_OTHER, masks, masks * cut->scores,
                                 masks * values);
    }
}

/* Attention that is not fused: scores, softmax, dropout, values.
 * Softmax with scale and mask is one kernel. Forward: reads scores, writes probabilities. Backward: reads the
 * probabilities and their gradient, writes the gradient of the scores. Megatron-LM's causal softmax
 * (scaled_upper_triang_masked_softmax.h) reads only up to the diagonal and writes all.
 * Dropout reads and writes the probabilities, with a mask of one byte per value. */
static void plain_attention(struct kernels *list, const struct cut *cut)
{
    size_t first = list->count;
    bool fuses = softmax_fuses(cut), plain = !cut->shape->fused_kernels;
    double values = cut->scores * cut->value, written = fuses || plain ? values : cut->scores * 4;
    double share = cut->shape->causal && fuses ? (cut->before + 0.5) / (cut->before + 1) : 1, read = written * share;
    double output = cut->tokens * cut->attended;

    head_product(list, cut, PRODUCT_SCORES, LAYOUT_NT, cut->sequence, cut->query_size);
    if (cut->shape->alibi)
        memory_kernel(list, cut, "alibi", PHASE_FORWARD, CLASS_OTHER, 2 * values);
    if (!fuses)
        separate_scores(list, cut);
    memory_kernel(list, cut, "softmax", PHASE_FORWARD, CLASS_SOFTMAX_FORWARD, read + written);
    memory_kernel(list, cut, "softmax", PHASE_BACKWARD_INPUT, CLASS_SOFTMAX_BACKWARD, 2 * read + written);
    if (cut->shape->attention_dropout > 0) {
        memory_kernel(list, cut, "attention-dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
                      2 * values + cut->scores);
        memory_kernel(list, cut, "attention-dropout", PHASE_BACKWARD_INPUT, CLASS_DROPOUT_RESIDUAL_BACKWARD,
               2 * values + cut->scores);
    }
    head_product(list, cut, PRODUCT_VALUES, LAYOUT_NN, cut->value_size, cut->sequence);
    for (size_t i = first; i < list->count; i++)
        list->items[i].attention_core = true;
    /* The projection needs the result in the order of tokens, not of heads: it is copied (Megatron-LM:
     * context_layer.permute.contiguous). Its gradient is copied back if the sample is the first dimension, as in BERT;
     * in Megatron-LM the token is, and a view suffices. */
    unvectorized_kernels(list, cut, "transpose", PHASE_FORWARD, CLASS_COPY, 1, output, 2 * output * cut->value);
    if (plain && !cut->shape->scores_in_place)
        unvectorized_kernels(list, cut, "transpose", PHASE_BACKWARD_INPUT, CLASS_COPY, 1, output,
                             2 * output * cut->value);
}

/* FlashAttention (Dao et al. 2022, algorithms 1 and 4): the scores never leave the chip.
 * Products: two in the forward; five in the backward, the scores again and four gradients.
 * Traffic: the forward reads Q, K, V and writes O; the backward reads Q, K, V, O, dO and writes dQ, dK, dV, with sums
 * of dQ in fp32; both have one fp32 sum per row of scores.
 * Causal: blocks above the diagonal are skipped, equally many on each GPU of a context group (the zigzag split); with a
 * window also the scores below its band. Chunks and documents are shorter samples. A slice sees all keys before it:
 * this takes as long as without a mask, with as many scores. */
static void flash_attention(struct kernels *list, const struct cut *cut)
{
    bool causal = cut->shape->causal;
    double limit = cut->windowed ? cut->shape->window : 0;
    double documents = cut->shape->documents > 0 ? fmax(1, cut->sequence / cut->shape->documents) : 1;
    double chunks = fmax(documents, cut->shape->chunked && limit > 0 ? cut->sequence / limit : 1);
    double window = cut->shape->chunked ? 0 : limit, keys = cut->sequence / chunks, scores = cut->scores / chunks;
    double own = attention_share(keys / (cut->before + 1), causal, window);
    double share = causal ? (cut->before + own) / (cut->before + 1) : 1, rows = 4 * cut->scores / cut->sequence;
    bool masked = causal && cut->before == 0;
    double in_out = cut->tokens * cut->value * (cut->query + cut->attended);
    double keys_values = cut->batch * cut->sequence * cut->value * (cut->key + cut->values);
    struct kernel kernel = {
        .name = "flash-attention", .kind = KERNEL_ATTENTION, .dtype = cut->dtype, .launches = 1, .attention_core = true,
        .causal = masked, .window = window, .batch = cut->batch * cut->heads * chunks, .m = cut->queries / chunks,
        .n = masked ? keys : keys * share,
        .sliced = cut->slices > 1 ? cut->slices / (masked ? 1 : cut->before + own) : 0,
    };

    /* queries and values may have different sizes: k is then the common size that gives the same FLOPs */
    kernel.k = (cut->query_size + cut->value_size) / 2;
    kernel.flop = 4 * scores * kernel.k * share;
    kernel.bytes = in_out + keys_values + rows;
    *GROW(list) = kernel;
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.k = (3 * cut->query_size + 2 * cut->value_size) / 5;
    kernel.flop = 10 * scores * kernel.k * share;
    kernel.bytes = 2 * in_out + 2 * keys_values + 8 * cut->tokens * cut->query + rows;
    *GROW(list) = kernel;
}

/* PyTorch's context parallelism (torch/distributed/tensor/experimental/_attention.py of 2.6, _SDPAMerger,
 * _templated_ring_attention and its backward). Forward: each block's result is converted to fp32; from the second on
 * out - sigmoid(block_lse - lse) * (out - block_out) is three kernels over all values, and five over a value a row; the
 * last result is converted back. Keys and values of a block are put into one tensor before it is sent. Backward: the
 * sums are cleared; a block's gradients are added to sums in fp32, of keys and values to those that came from the
 * neighbour, which go on in one tensor; the sums are converted back. Of the two halves of a GPU's tokens some steps
 * change one alone; the slowest GPU's are counted. Traced by torch.compile, the operations on a result are one kernel a
 * block. What is put together to be gathered it does once, since nobody reads the rest. */
static void merge_apart(struct kernels *list, const struct cut *cut)
{
    double n = cut->blocks, v = cut->value, result = cut->tokens * cut->attended, query = cut->tokens * cut->query;
    double keys = cut->tokens * (repeats_groups(cut) ? 2 * cut->query : cut->key + cut->values), half = 4 + v;
    bool compiled = cut->shape->fused_kernels;
    double packs = compiled && cut->gathers_keys ? 1 : n - 1;
    double merge = compiled ? 4 + 4 + v : half + (4 + 4 + 4) + (4 + 4) + (4 + 4 + 4);

    plain_kernels(list, cut, "context-pack", PHASE_FORWARD, CLASS_COPY, (int)packs, packs * 2 * v * keys);
    plain_kernels(list, cut, "context-pack", PHASE_BACKWARD_INPUT, CLASS_COPY, (int)packs, packs * 2 * v * keys);
    plain_kernels(list, cut, "context-merge", PHASE_FORWARD, CLASS_OTHER, (int)((compiled ? 1 : 9) * (n - 1)) + 2,
                  result * (half + (n - 1) * merge + half));
    plain_kernels(list, cut, "context-sums", PHASE_BACKWARD_INPUT, CLASS_OTHER, (int)(compiled ? 3 * n : 4 * n) + 6,
                  (4 + n * (4 + 4 + v) + half) * (query + keys) + (compiled ? 0 : n * (4 + 4) * keys));
}

/* Ring attention adds the result of each block of keys and values to the result of the blocks before (Liu et al. 2023,
 * Ring Attention, section 3); the sums of the softmax are not counted. */
static void merge_blocks(struct kernels *list, const struct cut *cut)
{
    double values = cut->tokens * cut->attended * cut->value;

    if (cut->blocks > 1 && cut->blocks_apart)
        merge_apart(list, cut);
    else if (cut->blocks > 1)
        memory_kernel(list, cut, "ring-merge", PHASE_FORWARD, CLASS_OTHER, 3 * values * (cut->blocks - 1));
}

/* Of a slice of a sample's tokens: its keys and values are put behind the keys and values of earlier slices. The
 * backward adds the gradients of the earlier ones to the gradients that later slices gave them. */
static void join_slices(struct kernels *list, const struct cut *cut)
{
    double own = cut->tokens * (cut->key + cut->values) * cut->value;

    if (cut->before == 0)
        return;
    plain_kernels(list, cut, "slices-join", PHASE_FORWARD, CLASS_COPY, 2, 2 * (cut->before + 1) * own);
    plain_kernels(list, cut, "slices-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, 3 * cut->before * own);
}

/* Queries, keys, values and results are put into the order in which GPUs exchange them, and after it into the order of
 * tokens, in a kernel each; so are their gradients (DeepSpeed, sequence/layer.py, single_all_to_all; Transformer Engine,
 * flash_attn_a2a_communicate). */
static void exchange_heads(struct kernels *list, const struct cut *cut)
{
    double widths = repeats_groups(cut) ? 3 * cut->query : cut->query + cut->key + cut->values;
    double values = 2 * cut->tokens * (widths + cut->attended);

    for (int phase = PHASE_FORWARD; cut->ulysses > 1 && phase <= PHASE_BACKWARD_INPUT; phase++)
        unvectorized_kernels(list, cut, "exchanged-heads", (enum phase)phase, CLASS_COPY, 2 * 4, values,
                             2 * values * cut->value);
}

/* The norms of queries and of keys, whichever of their values share a mean. */
static void head_norms(struct kernels *list, const struct cut *cut)
{
    const double widths[] = {cut->query, cut->key};
    struct cut norm = *cut;

    norm.own_tokens = cut->tokens;
    for (size_t i = 0; cut->shape->qk_norm && i < COUNT(widths); i++) {
        norm.hidden = widths[i];
        norm_kernels(list, &norm, i == 0 ? "q-norm" : "k-norm");
    }
}

/* What the tensor group gathered stands GPU by GPU, and is copied into columns; its gradient is copied back, after the
 * gradient of a head's slice was copied into zeros (Megatron Core, tensor_parallel/mappings.py, _gather_along_last_dim,
 * _reduce_scatter_along_last_dim; autograd's slice). */
static void gather_qkv(struct kernels *list, const struct cut *cut)
{
    double all = cut->tokens * cut->projected * cut->tensor * cut->value;

    if (!cut->gathers_qkv)
        return;
    memory_kernel(list, cut, "qkv-gather", PHASE_FORWARD, CLASS_COPY, 2 * all);
    plain_kernels(list, cut, "qkv-gather", PHASE_BACKWARD_INPUT, CLASS_COPY, 2, 3 * all);
}

void attention_kernels(struct kernels *list, const struct cut *cut)
{
    struct cut core = attention_cut(cut);

    gather_qkv(list, cut);
    head_norms(list, cut);
    if (cut->shape->positions == 0 && !cut->shape->alibi)
        rotary(list, cut);
    repeat_groups(list, cut);
    join_slices(list, cut);
    exchange_heads(list, cut);
    if (cut->shape->flash_attention)
        flash_attention(list, &core);
    else
        plain_attention(list, &core);
    merge_blocks(list, cut);
    for (size_t i = 0; cut->recomputed >> MODULE_CORE & 1 && i < list->count; i++)
        list->items[i].recomputed |= list->items[i].attention_core && list->items[i].phase == PHASE_FORWARD;
}
