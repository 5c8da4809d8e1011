/* The word `core`: what stands between the products for queries, keys and values and the projection. Norms of heads,
 * positions, scores, softmax, values; and what slices, context groups and GPUs that exchange heads do around them. */
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
struct rotation {
    double values, unvectorized, contiguous;
    int launches, contiguous_launches;
};

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
            unvectorized_kernels(ops, "rotary", (enum phase)phase, CLASS_OTHER, each.launches, turned * each.values,
                                 turned * each.unvectorized);
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

/* Attention in 8 bits under one scale per tensor casts before it exchanges (Transformer Engine, attention/
 * dot_product_attention/context_parallel.py, combine_and_quantize before flash_attn_a2a_communicate and
 * flash_attn_p2p_communicate); under MXFP8 it exchanges 16 bits, and casts what came. */
static double exchanged_bytes(const struct cut *cut)
{
    bool narrow = cut->shape->ways.attention_format == ATTENTION_FORMAT_FP8 && cut->narrow == DTYPE_FP8;

    return narrow ? dtype_bytes(DTYPE_FP8) : cut->value;
}

/* Queries, keys, values and results are put into the order in which GPUs exchange them, and after it into the order of
 * tokens, in a kernel each; so are their gradients (DeepSpeed, sequence/layer.py, single_all_to_all; Transformer
 * Engine, flash_attn_a2a_communicate). */
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
                             2 * values * exchanged_bytes(cut));
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
 * Merged by kernels of their own: the result so far and the next one in fp32; in the backward the sums of keys and
 * values that are added to, sent and received. Where heads are exchanged for tokens: the queries, keys and values that
 * are sent and that arrive, or their gradients. A slice joins its keys and values to the keys and values of earlier
 * slices. */
static struct workspace context_workspace(const struct cut *cut)
{
    double own = cut->key_tokens * (cut->key + cut->values) * cut->value;
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
 * bytes with 2-byte values. If Megatron-LM's softmax cannot be fused, or under autocast, its output is kept in fp32, and a converted copy
 * for the product with the values. FlashAttention keeps one fp32 sum per row of scores. Returns B of all. */
static double keep_core(struct operators *ops, const struct cut *core)
{
    const struct cut *cut = ops->cut;
    bool wide = casts_apart(cut) || (cut->shape->ways.fused_kernels && cut->value < 4 && !softmax_fuses(core));
    bool drops = cut->shape->attention_dropout > 0;
    struct kept_value value = {.name = "softmax", .order = KEPT_CORE, .kind = KEPT_VALUES, .modules = 1u << MODULE_CORE,
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
    value.name = "probabilities", value.kind = KEPT_VALUES, value.as.bytes = cut->value; /* the values' other factor */
    if (!cut->shape->ways.flash_attention && (drops || wide))
        keep(ops, value);
    for (size_t i = first; i < ops->values.count; i++)
        bytes += kept_bytes(cut, &ops->values.items[i], 0);
    return bytes;
}

/* Queries, keys, values, and the attention's output. Keys and values are kept once for every head that reads them.
 * Where latent attention computes them again, the keys' rotated values, which all heads share, are kept. A linear layer
 * that keeps its input in another form than attention has a copy of its own. Returns the index of the projection's
 * input. */
static int keep_inputs(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    bool apart = cut->fp8 || !shape->ways.flash_attention || projects(cut) || cut->form.activations_bits > 0;
    struct kept_value value = {.name = "qkv", .order = KEPT_QKV, .kind = KEPT_VALUES, .rows = cut->tokens,
                               .reduced_by = shape->kv_rank > 0 ? 1u << MODULE_LATENT : 0,
                               .reduced = {shape->rope_head_size, cut->value, 1},
                               .as = {head_widths(cut), cut->value, 1}};

    keep(ops, value);
    value.reduced_by = 0;
    value.name = "repeated kv", value.as.width = 2 * cut->query - cut->key - cut->values;
    if (repeats_groups(cut))
        keep(ops, value);
    value.name = "gathered qkv", value.as.width = cut->projected * cut->tensor - cut->values;
    if (cut->gathers_qkv) /* V is a view of what was gathered */
        keep(ops, value);
    value.name = "attention output", value.as.width = cut->attended;
    if (shape->ways.flash_attention)
        keep(ops, value);
    return apart ? keep_projection_input(ops, cut->attended) : -1;
}

/* Forward: the scores before the softmax. Backward: the gradients on both sides of the softmax and, under selective
 * recomputation, the recomputed core; or FlashAttention's gradients (Dao 2023, algorithm 2: dO, dQ, dK, dV, and dQ
 * summed in fp32). Quantized tensors are unpacked while the gradients are there. */
static void core_workspace(const struct cut *cut, double kept, struct operator *op)
{
    struct workspace context = context_workspace(cut);
    bool unpacks = cut->form.activations_bits > 0, flash = cut->shape->ways.flash_attention;
    double inputs = cut->attended + head_widths(cut);

    op->peak.forward = context.forward + (flash ? 0 : cut->scores * cut->value);
    op->peak.backward = context.backward +
                        (flash ? cut->tokens * ((unpacks ? 2 : 1) * inputs * cut->value + 4 * cut->query) :
                                 (unpacks ? 3 : 2) * cut->scores * cut->value);
    op->selective = flash ? 0 : kept;
}

/* What its GPUs exchange: a context group takes the place of the attention kernel, and gets what that would: copies
 * (torchtitan 1283). */
static void core_sends(const struct cut *cut, struct operator *op)
{
    double width = repeats_groups(cut) ? 2 * cut->query : cut->key + cut->values, bytes = exchanged_bytes(cut);

    op->sends[SENT_KEYS] = (struct sends){1, 1, cut->tokens * width * bytes};
    if (cut->ulysses > 1)
        op->sends[SENT_HEADS] = (struct sends){1, 1, cut->tokens * (cut->query + cut->attended) * bytes};
}

struct tensor core(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    struct cut heads = attention_cut(cut);
    size_t attention;
    double kept;
    int input;

    gather_qkv(ops);
    qk_norms(ops);
    if (cut->shape->positions == 0 && !cut->shape->alibi && !cut->shape->relative_positions)
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
    return (struct tensor){cut->tokens, cut->attended, input, 0};
}

/* A context group and slices do not go with it (degree_rules.c). */
struct tensor cross_core(struct operators *ops)
{
    const struct cut *cut = ops->cut, *source = cut->source;
    struct transformer shape = *cut->shape;
    struct cut crossed = *cut;
    struct tensor result;

    shape.causal = shape.alibi = false;
    shape.positions = 1;
    shape.relative_positions = shape.qk_norm = 0;
    crossed.shape = &shape;
    crossed.key_tokens = source->tokens;
    crossed.sequence = source->queries;
    crossed.scores = cut->batch * cut->heads * cut->queries * crossed.sequence;
    crossed.gathers_keys = false;
    ops->cut = &crossed;
    result = core(ops);
    ops->cut = cut;
    return result;
}
