/* The word `core`: what stands between the products for queries, keys and values and the projection. Norms of heads,
 * positions, scores, softmax, values; and what slices, context groups and GPUs that exchange heads do around them. */
#include "kernels/kernel_time.h"
#include "model/operator_internal.h"

#include <math.h>

#include "base/base.h"

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

    switch ((enum rotary)cut->shape->ways.rotary) {
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

static void rotary(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double width = cut->shape->kv_rank > 0 ? (cut->heads + 1) * cut->shape->rope_head_size : cut->query + cut->key;
    double turned = cut->tokens * width;

    operator_begin(ops, "rotary", cut->shape->kv_rank > 0 ? 1u << MODULE_LATENT : 0);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        struct rotation each = rotation(cut, (enum phase)phase);

        if (each.launches > 0)
            unvectorized_kernels(ops, "rotary", (enum phase)phase, CLASS_OTHER, each.launches,
                                 turned * each.values, turned * each.unvectorized);
        if (each.contiguous_launches > 0)
            plain_kernels(ops, "rotary", (enum phase)phase, CLASS_OTHER, each.contiguous_launches,
                          turned * each.contiguous);
    }
}

/* The backward sums the gradients of the copies. */
static void repeat_groups(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double bytes = cut->tokens * (2 * cut->query + cut->key + cut->values) * cut->value;

    if (!repeats_groups(cut))
        return;
    operator_begin(ops, "groups", 0);
    unvectorized_kernels(ops, "groups", PHASE_FORWARD, CLASS_COPY, 2, 2 * cut->tokens * cut->query, bytes);
    plain_kernels(ops, "groups", PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, bytes);
}

/* A product of two activations, C = A B, for each head. The gradients of A and of B both belong to the phase of the
 * input's gradient. Grouped keys and values are counted as if every head read its own copy. */
static void head_product(struct operators *ops, const struct cut *cut, enum product_id product,
                         enum matmul_layout layout, double n, double k)
{
    struct kernel kernel = {.product = product, .dtype = cut->dtype, .batch = cut->batch * cut->heads,
                            .m = cut->queries, .n = n, .k = k, .layout = layout,
                            .sliced = cut->slices > 1 ? cut->slices / (cut->before + 1) : 0};

    product_kernel(ops, kernel);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.n = k, kernel.k = n;                           /* dA = dC B^T */
    kernel.layout = layout == LAYOUT_NT ? LAYOUT_NN : LAYOUT_NT;
    product_kernel(ops, kernel);
    kernel.m = k, kernel.n = n, kernel.k = cut->queries;  /* dB = A^T dC */
    kernel.layout = LAYOUT_TN;
    product_kernel(ops, kernel);
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
static void separate_scores(struct operators *ops, const struct cut *cut)
{
    bool plain = !cut->shape->ways.fused_kernels, causal = cut->shape->causal, multiplied = cut->shape->ways.multiplied_mask;
    bool placed = plain && cut->shape->ways.scores_in_place, fills = causal && (!plain || (placed && !multiplied));
    double inputs = cut->tokens * (cut->query + cut->key + cut->values), half = cut->scores * cut->value;
    double values = 2 * cut->scores * (plain ? cut->value : 4);

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        int masks = plain && phase == PHASE_FORWARD ? 1 + (causal && multiplied) : causal, copies = placed ? 5 : 1;

        if (plain && !placed)
            unvectorized_kernels(ops, "heads", (enum phase)phase, CLASS_COPY, 3, inputs, 2 * inputs * cut->value);
        if (!plain && cut->value < 4)
            unvectorized_kernels(ops, "convert", (enum phase)phase, CLASS_COPY, 2, 2 * cut->scores,
                                 2 * half + values);
        if (!placed)
            memory_kernel(ops, "scale", (enum phase)phase, CLASS_OTHER, values);
        if (placed && fills && phase == PHASE_BACKWARD_INPUT)
            memory_kernel(ops, "mask-zeros", (enum phase)phase, CLASS_OTHER, values / 2);
        if (fills && phase == PHASE_BACKWARD_INPUT)
            plain_kernels(ops, "mask-copies", (enum phase)phase, CLASS_COPY, copies, copies * values);
        if (masks > 0)
            unvectorized_kernels(ops, "mask", (enum phase)phase, CLASS_OTHER, masks, masks * cut->scores,
                                 masks * values);
    }
}

/* Attention that is not fused: scores, softmax, dropout, values.
 * Softmax with scale and mask is one kernel. Forward: reads scores, writes probabilities. Backward: reads the
 * probabilities and their gradient, writes the gradient of the scores. Megatron-LM's causal softmax
 * (scaled_upper_triang_masked_softmax.h) reads only up to the diagonal and writes all.
 * Dropout reads and writes the probabilities, with a mask of one byte per value. */
static void plain_attention(struct operators *ops, const struct cut *cut)
{
    bool fuses = softmax_fuses(cut), plain = !cut->shape->ways.fused_kernels;
    double values = cut->scores * cut->value, written = fuses || plain ? values : cut->scores * 4;
    double share = cut->shape->causal && fuses ? (cut->before + 0.5) / (cut->before + 1) : 1, read = written * share;
    double output = cut->tokens * cut->attended;

    operator_begin(ops, "attention", 1u << MODULE_CORE);
    head_product(ops, cut, PRODUCT_SCORES, LAYOUT_NT, cut->sequence, cut->query_size);
    if (cut->shape->alibi)
        memory_kernel(ops, "alibi", PHASE_FORWARD, CLASS_OTHER, 2 * values);
    if (!fuses)
        separate_scores(ops, cut);
    memory_kernel(ops, "softmax", PHASE_FORWARD, CLASS_SOFTMAX_FORWARD, read + written);
    memory_kernel(ops, "softmax", PHASE_BACKWARD_INPUT, CLASS_SOFTMAX_BACKWARD, 2 * read + written);
    if (cut->shape->attention_dropout > 0) {
        memory_kernel(ops, "attention-dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
                      2 * values + cut->scores);
        memory_kernel(ops, "attention-dropout", PHASE_BACKWARD_INPUT, CLASS_DROPOUT_RESIDUAL_BACKWARD,
               2 * values + cut->scores);
    }
    head_product(ops, cut, PRODUCT_VALUES, LAYOUT_NN, cut->value_size, cut->sequence);
    /* The projection needs the result in the order of tokens, not of heads: it is copied (Megatron-LM:
     * context_layer.permute.contiguous). Its gradient is copied back if the sample is the first dimension, as in BERT;
     * in Megatron-LM the token is, and a view suffices. */
    operator_begin(ops, "transpose", 0);
    unvectorized_kernels(ops, "transpose", PHASE_FORWARD, CLASS_COPY, 1, output, 2 * output * cut->value);
    if (plain && !cut->shape->ways.scores_in_place)
        unvectorized_kernels(ops, "transpose", PHASE_BACKWARD_INPUT, CLASS_COPY, 1, output,
                             2 * output * cut->value);
}

/* FlashAttention (Dao et al. 2022, algorithms 1 and 4): the scores never leave the chip.
 * Products: two in the forward; five in the backward, the scores again and four gradients.
 * Traffic: the forward reads Q, K, V and writes O; the backward reads Q, K, V, O, dO and writes dQ, dK, dV, with sums
 * of dQ in fp32; both have one fp32 sum per row of scores.
 * Causal: blocks above the diagonal are skipped, equally many on each GPU of a context group (the zigzag split); with a
 * window also the scores below its band. Chunks and documents are shorter samples. A slice sees all keys before it:
 * this takes as long as without a mask, with as many scores. */
static void flash_attention(struct operators *ops, const struct cut *cut)
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
        .name = "flash-attention", .kind = KERNEL_ATTENTION, .dtype = cut->dtype, .launches = 1,
        .causal = masked, .window = window, .batch = cut->batch * cut->heads * chunks, .m = cut->queries / chunks,
        .n = masked ? keys : keys * share,
        .sliced = cut->slices > 1 ? cut->slices / (masked ? 1 : cut->before + own) : 0,
    };

    /* queries and values may have different sizes: k is then the common size that gives the same FLOPs */
    operator_begin(ops, "flash-attention", 1u << MODULE_CORE);
    kernel.k = (cut->query_size + cut->value_size) / 2;
    kernel.flop = 4 * scores * kernel.k * share;
    kernel.bytes = in_out + keys_values + rows;
    add_kernel(ops, kernel);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.k = (3 * cut->query_size + 2 * cut->value_size) / 5;
    kernel.flop = 10 * scores * kernel.k * share;
    kernel.bytes = 2 * in_out + 2 * keys_values + 8 * cut->tokens * cut->query + rows;
    add_kernel(ops, kernel);
}

/* PyTorch's context parallelism (torch/distributed/tensor/experimental/_attention.py of 2.6, _SDPAMerger,
 * _templated_ring_attention and its backward). Forward: each block's result is converted to fp32; from the second on
 * out - sigmoid(block_lse - lse) * (out - block_out) is three kernels over all values, and five over a value a row; the
 * last result is converted back. Keys and values of a block are put into one tensor before it is sent. Backward: the
 * sums are cleared; a block's gradients are added to sums in fp32, of keys and values to those that came from the
 * neighbour, which go on in one tensor; the sums are converted back. Of the two halves of a GPU's tokens some steps
 * change one alone; the slowest GPU's are counted. Traced by torch.compile, the operations on a result are one kernel a
 * block. What is put together to be gathered it does once, since nobody reads the rest. */
static void merge_apart(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double n = cut->blocks, v = cut->value, result = cut->tokens * cut->attended, query = cut->tokens * cut->query;
    double keys = cut->tokens * (repeats_groups(cut) ? 2 * cut->query : cut->key + cut->values), half = 4 + v;
    bool compiled = cut->shape->ways.fused_kernels;
    double packs = compiled && cut->gathers_keys ? 1 : n - 1;
    double merge = compiled ? 4 + 4 + v : half + (4 + 4 + 4) + (4 + 4) + (4 + 4 + 4);

    operator_begin(ops, "merge", 0);
    plain_kernels(ops, "context-pack", PHASE_FORWARD, CLASS_COPY, (int)packs, packs * 2 * v * keys);
    plain_kernels(ops, "context-pack", PHASE_BACKWARD_INPUT, CLASS_COPY, (int)packs, packs * 2 * v * keys);
    plain_kernels(ops, "context-merge", PHASE_FORWARD, CLASS_OTHER, (int)((compiled ? 1 : 9) * (n - 1)) + 2,
                  result * (half + (n - 1) * merge + half));
    plain_kernels(ops, "context-sums", PHASE_BACKWARD_INPUT, CLASS_OTHER, (int)(compiled ? 3 * n : 4 * n) + 6,
                  (4 + n * (4 + 4 + v) + half) * (query + keys) + (compiled ? 0 : n * (4 + 4) * keys));
}

/* Ring attention adds the result of each block of keys and values to the result of the blocks before (Liu et al. 2023,
 * Ring Attention, section 3); the sums of the softmax are not counted. */
static void merge_blocks(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double values = cut->tokens * cut->attended * cut->value;

    if (cut->blocks > 1 && cut->blocks_apart)
        merge_apart(ops);
    else if (cut->blocks > 1) {
        operator_begin(ops, "merge", 0);
        memory_kernel(ops, "ring-merge", PHASE_FORWARD, CLASS_OTHER, 3 * values * (cut->blocks - 1));
    }
}

/* Of a slice of a sample's tokens: its keys and values are put behind the keys and values of earlier slices. The
 * backward adds the gradients of the earlier ones to the gradients that later slices gave them. */
static void join_slices(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double own = cut->tokens * (cut->key + cut->values) * cut->value;

    if (cut->before == 0)
        return;
    operator_begin(ops, "slices", 0);
    plain_kernels(ops, "slices-join", PHASE_FORWARD, CLASS_COPY, 2, 2 * (cut->before + 1) * own);
    plain_kernels(ops, "slices-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, 3 * cut->before * own);
}

/* Queries, keys, values and results are put into the order in which GPUs exchange them, and after it into the order of
 * tokens, in a kernel each; so are their gradients (DeepSpeed, sequence/layer.py, single_all_to_all; Transformer Engine,
 * flash_attn_a2a_communicate). */
static void exchange_heads(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double widths = repeats_groups(cut) ? 3 * cut->query : cut->query + cut->key + cut->values;
    double values = 2 * cut->tokens * (widths + cut->attended);

    if (cut->ulysses <= 1)
        return;
    operator_begin(ops, "exchanged-heads", 0);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        unvectorized_kernels(ops, "exchanged-heads", (enum phase)phase, CLASS_COPY, 2 * 4, values,
                             2 * values * cut->value);
}

/* What the tensor group gathered stands GPU by GPU, and is copied into columns; its gradient is copied back, after the
 * gradient of a head's slice was copied into zeros (Megatron Core, tensor_parallel/mappings.py, _gather_along_last_dim,
 * _reduce_scatter_along_last_dim; autograd's slice). */
static void gather_qkv(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double all = cut->tokens * cut->projected * cut->tensor * cut->value;

    if (!cut->gathers_qkv)
        return;
    operator_begin(ops, "qkv-gather", 0);
    sends(ops, SENT_QKV, 1, 1, all);
    memory_kernel(ops, "qkv-gather", PHASE_FORWARD, CLASS_COPY, 2 * all);
    plain_kernels(ops, "qkv-gather", PHASE_BACKWARD_INPUT, CLASS_COPY, 2, 3 * all);
}

/* Keys and values of other GPUs of the context group, in addition to the GPU's own. If they are gathered: of all GPUs.
 * With ring attention: the block that is computed and the block that arrives. In the backward also their gradients.
 * Merged by kernels of their own: the result so far and the next one in fp32; in the backward the sums of keys and values
 * that are added to, sent and received. Where heads are exchanged for tokens: the queries, keys and values that are sent
 * and that arrive, or their gradients. A slice joins its keys and values to the keys and values of earlier slices. */
static struct workspace context_workspace(const struct cut *cut)
{
    double own = cut->tokens * (cut->key + cut->values) * cut->value;
    double heads = cut->ulysses > 1 ? 2 * (own + cut->tokens * cut->query * cut->value) : 0, others = 0;

    if (cut->queries < cut->sequence && cut->ulysses <= 1 && cut->gathers_keys)
        others = own * cut->sequence / cut->queries;
    else if (cut->blocks > 1)
        others = 2 * own;
    if (cut->blocks > 1 && cut->blocks_apart)
        return (struct workspace){.forward = heads + others + 2 * 4 * cut->tokens * cut->attended,
                                  .backward = heads + others + 3 * 4 * own / cut->value};
    return (struct workspace){.forward = heads + others, .backward = heads + 2 * others};
}

/* The attention core, in the paper's table the rows "softmax", "dropout" and "attention over values": 5 a s^2 b / t
 * bytes with 2-byte values. If Megatron-LM's softmax cannot be fused, its output is kept in fp32, and a converted copy
 * for the product with the values. FlashAttention keeps one fp32 sum per row of scores. Returns B of all. */
static double keep_core(struct operators *ops, const struct cut *core)
{
    const struct cut *cut = ops->cut;
    bool wide = cut->shape->ways.fused_kernels && cut->value < 4 && !softmax_fuses(core);
    bool drops = cut->shape->attention_dropout > 0;
    struct value value = {.name = "softmax", .order = KEPT_CORE, .kind = KEPT_VALUES, .modules = 1u << MODULE_CORE,
                          .rows = cut->scores, .as = {1, wide ? 4 : cut->value, 1}};
    double bytes = 0;
    size_t first = ops->values.count;

    if (cut->shape->ways.flash_attention) {
        value.name = "sums of scores", value.kind = KEPT_AS_IT_IS;
        value.rows = cut->scores / cut->sequence, value.as.bytes = 4;
    }
    keep(ops, value);
    value.name = "attention mask", value.kind = KEPT_AS_IT_IS, value.as.bytes = 1;
    if (!cut->shape->ways.flash_attention && drops)
        keep(ops, value);
    value.name = "probabilities", value.kind = KEPT_VALUES, value.as.bytes = cut->value;     /* the values' other factor */
    if (!cut->shape->ways.flash_attention && (drops || wide))
        keep(ops, value);
    for (size_t i = first; i < ops->values.count; i++)
        bytes += kept_bytes(cut, &ops->values.items[i], 0);
    return bytes;
}

/* Queries, keys, values, and the attention's output. Keys and values are kept once for every head that reads them. Where
 * latent attention computes them again, the keys' rotated values, which all heads share, are kept. A linear layer that keeps
 * its input in another form than attention has a copy of its own. Returns the index of the projection's input. */
static int keep_inputs(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    bool apart = cut->fp8 || !shape->ways.flash_attention || projects(cut) || cut->form.activations_bits > 0;
    struct value value = {.name = "qkv", .order = KEPT_QKV, .kind = KEPT_VALUES, .rows = cut->tokens,
                          .reduced_by = shape->kv_rank > 0 ? 1u << MODULE_LATENT : 0,
                          .reduced = {shape->rope_head_size, cut->value, 1},
                          .as = {cut->query + cut->key + cut->values, cut->value, 1}};

    keep(ops, value);
    value.reduced_by = 0;
    value.name = "repeated kv", value.as.width = 2 * cut->query - cut->key - cut->values;
    if (repeats_groups(cut))
        keep(ops, value);
    value.name = "gathered qkv", value.as.width = cut->projected * cut->tensor - cut->values;
    if (cut->gathers_qkv)                                                /* V is a view of what was gathered */
        keep(ops, value);
    value.name = "attention output", value.as.width = cut->attended;
    if (shape->ways.flash_attention)
        keep(ops, value);
    return !apart ? -1 : keep(ops, (struct value){.name = "projection input", .order = KEPT_PROJECTION_INPUT,
                                                  .kind = KEPT_INPUT, .rows = cut->tokens,
                                                  .as = {cut->attended, cut->saved, 0}});
}

/* Forward: the scores before the softmax. Backward: the gradients on both sides of the softmax and, under selective
 * recomputation, the recomputed core; or those of FlashAttention (Dao 2023, algorithm 2: dO, dQ, dK, dV, and dQ summed in
 * fp32). Quantized tensors are unpacked while the gradients are there. */
static void core_workspace(const struct cut *cut, double kept, struct operator *op)
{
    struct workspace context = context_workspace(cut);
    bool unpacks = cut->form.activations_bits > 0, flash = cut->shape->ways.flash_attention;
    double inputs = cut->attended + cut->query + cut->key + cut->values;

    op->peak.forward = context.forward + (flash ? 0 : cut->scores * cut->value);
    op->peak.backward = context.backward + (flash ? cut->tokens * ((unpacks ? 2 : 1) * inputs * cut->value + 4 * cut->query) :
                                                    (unpacks ? 3 : 2) * cut->scores * cut->value);
    op->selective = flash ? 0 : kept;
}

/* What its GPUs exchange: a context group takes the place of the attention kernel, and gets what that would: copies
 * (torchtitan 1283). */
static void core_sends(const struct cut *cut, struct operator *op)
{
    double width = repeats_groups(cut) ? 2 * cut->query : cut->key + cut->values;

    op->sends[SENT_KEYS] = (struct sends){1, 1, cut->tokens * width * cut->value};
    if (cut->ulysses > 1)
        op->sends[SENT_HEADS] = (struct sends){1, 1, cut->tokens * (cut->query + cut->attended) * cut->value};
}

struct flow core(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    struct cut heads = attention_cut(cut);
    size_t attention;
    double kept;
    int input;

    gather_qkv(ops);
    qk_norms(ops);
    if (cut->shape->positions == 0 && !cut->shape->alibi)
        rotary(ops);
    repeat_groups(ops);
    join_slices(ops);
    exchange_heads(ops);
    attention = ops->list.count;
    (cut->shape->ways.flash_attention ? flash_attention : plain_attention)(ops, &heads);
    input = keep_inputs(ops);
    kept = keep_core(ops, &heads);
    core_workspace(cut, kept, &ops->list.items[attention]);
    core_sends(cut, &ops->list.items[attention]);
    merge_blocks(ops);
    return (struct flow){cut->tokens, cut->attended, input, 0};
}
