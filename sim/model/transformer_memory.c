/* Memory of a transformer's layers on one GPU for one micro-batch: activations, which are kept from the forward to the
 * backward, and workspaces, which are held while a layer is computed. */
#include "model/transformer.h"

#include <math.h>

/* Rajbhandari et al. 2020, section 3.2, footnote: 12 x hidden x batch x sequence x layers values. They are the query,
 * the key, the value, the attention's output, and the input and output of the GELU; tensor parallelism divides them
 * all. */
static double rajbhandari(const struct cut *cut)
{
    return 12 * cut->tokens * cut->hidden * cut->value / cut->tensor;
}

/* The attention core, in the paper's table the rows "softmax", "dropout" and "attention over values": 5 a s^2 b / t
 * bytes with 2-byte values. If Megatron-LM's softmax cannot be fused, its output is kept in fp32, and a converted copy
 * for the product with the values. */
static double core_activation(const struct cut *cut)
{
    struct cut core = attention_cut(cut);
    bool wide = cut->shape->fused_kernels && !softmax_fuses(&core), drops = cut->shape->attention_dropout > 0;

    return cut->scores * (wide ? 4 : cut->value) +                        /* the softmax's output */
           cut->scores * (drops ? 1 + cut->value : wide ? cut->value : 0);    /* the mask and the dropout's output */
}

static bool runs_again(const struct cut *cut, enum recompute_module module)
{
    return cut->again >> module & 1;
}

/* The inputs of the activation function (with its gate) and, unless it runs again, of the second product; in plain
 * PyTorch then also the SiLU's output, the other factor of the gate, or of a GELU operation by operation the factors of
 * its three products of two values, the tanh's result and the input: seven. Separate clamps keep their inputs too. With
 * few_bit a GELU keeps the index of a piece of its derivative alone, and a SiLU that index instead of its input (Novikov et
 * al. 2023, "Few-bit Backward", arXiv 2202.00441, figure 2). */
static double mlp_activation(const struct cut *cut, double rows, double ffn)
{
    bool again = runs_again(cut, MODULE_ACTIVATION);
    bool clamps = !again && cut->shape->swiglu_limit > 0 && !cut->shape->fused_clamp;
    int gelu = again || cut->shape->fused_gelu ? 1 : 7, swiglu = again || cut->shape->fused_kernels ? 2 : 3;

    if (cut->few_bit > 0) {
        gelu = 0;
        swiglu--;
    }
    return rows * ffn * ((cut->shape->mlp == MLP_SWIGLU ? swiglu + 2 * clamps : gelu) * cut->value + cut->few_bit +
                         (!again && lora_trains(cut, LORA_MLP_DOWN)) * cut->saved);
}

const char *few_bit_fault(const struct transformer *shape, enum recompute recompute, unsigned again,
                          enum activation_formula formula)
{
    if (!shape)
        return "needs a transformer; this model says nothing of its activation functions";
    if (formula == ACTIVATIONS_RAJBHANDARI)
        return "does not go with 'activations: rajbhandari', which counts values of a fixed size; expected korthikanti";
    if (shape->mlp == MLP_SWIGLU && shape->fused_kernels)
        return "saves nothing of a fused SwiGLU, which keeps its two inputs: it would need the SiLU's result instead of "
               "the gate, as large; expected software without fused kernels, or 'mlp: gelu'";
    if (recompute == RECOMPUTE_OPERATORS)
        return "does not go with 'recompute: operators', which keeps results of GEMMs and computes the function again";
    if (again >> MODULE_ACTIVATION & 1)
        return "does not go with recomputation of the activation function (recompute: modules), which needs its input";
    return NULL;
}

/* The function, a kernel that finds the piece in which each input lies, and a backward that reads these indices instead
 * of inputs. */
void few_bit_function(struct kernels *list, const struct cut *cut, const char *name, double elements)
{
    bool gated = cut->shape->mlp == MLP_SWIGLU;

    if (gated)                                                           /* a SiLU, and a product with the gate */
        plain_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 2, 5 * elements * cut->value);
    else
        memory_kernel(list, cut, name, PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * elements * cut->value);
    memory_kernel(list, cut, "few-bit", PHASE_FORWARD, CLASS_OTHER, elements * (cut->value + cut->few_bit));
    if (gated)
        plain_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, 6 * elements * cut->value);
    memory_kernel(list, cut, "few-bit", PHASE_BACKWARD_INPUT, gated ? CLASS_OTHER : CLASS_GELU_BACKWARD,
                  elements * (2 * cut->value + cut->few_bit));
}

/* The router's probabilities in fp32; the inputs of the experts; their outputs, which the gradients of the
 * probabilities need; and the activations inside the MLPs of experts and shared experts. The input of the shared
 * experts is also the router's and is counted there. */
static double experts_activation(const struct cut *cut)
{
    double bytes = 4 * cut->own_tokens * cut->shape->experts;

    if (runs_again(cut, MODULE_EXPERTS))
        return 0;
    bytes += (cut->received + cut->sent) * cut->hidden * cut->value;
    return bytes + mlp_activation(cut, cut->received, cut->expert_ffn) +
           (runs_again(cut, MODULE_SHARED) ? 0 : mlp_activation(cut, cut->tokens, cut->shared_ffn));
}

/* What the MLP keeps, or what stands in its place. */
static double branch_activation(const struct cut *cut)
{
    if (cut->has_experts)
        return experts_activation(cut);
    return runs_again(cut, MODULE_MLP) ? 0 : mlp_activation(cut, cut->tokens, cut->ffn);
}

/* Whether a norm that is one kernel keeps its input in fp32, and nobody the input itself. */
static bool keeps_widened(const struct cut *cut)
{
    return cut->shape->widened_norms && cut->value < 4 && !runs_again(cut, MODULE_NORMS) &&
           (cut->shape->norm != NORM_RMSNORM || cut->shape->fused_norm);
}

/* What unfused operations keep in addition to fused ones. An RMSNorm keeps its input in fp32 and, instead of the input
 * in half precision, the normalised values in half precision. Keys and values are kept once for every head that reads
 * them. */
static double plain_activation(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    double bytes = 0, norms = shape->parallel ? 1 : 2;

    if (shape->norm == NORM_RMSNORM && !shape->fused_norm && !runs_again(cut, MODULE_NORMS))
        bytes += 4 * norms * cut->own_tokens * cut->hidden;
    if (keeps_widened(cut))
        bytes += (4 - cut->value) * norms * cut->own_tokens * cut->hidden;
    if (shape->qk_norm)                                  /* the inputs of the norms of queries and keys */
        bytes += cut->tokens * (cut->query + cut->key) *
                 (shape->norm == NORM_RMSNORM && !shape->fused_norm ? 4 + cut->value : cut->value);
    if (repeats_groups(cut))
        bytes += cut->tokens * (2 * cut->query - cut->key - cut->values) * cut->value;
    return bytes;
}

/* The first norm keeps its input, the block's input. A checkpoint already holds it, and a recomputation begins with a
 * view of the checkpoint (torch/utils/checkpoint.py, detach_variable; Megatron-LM's CheckpointFunction). But a norm in
 * plain PyTorch, or of a widened input, keeps a copy in fp32, and Rajbhandari et al. count no input: 0. */
double block_input(const struct cut *cut)
{
    bool plain = cut->shape->norm == NORM_RMSNORM && !cut->shape->fused_norm && cut->value < 4;
    bool copies = plain || keeps_widened(cut);

    return cut->formula == ACTIVATIONS_RAJBHANDARI || copies ? 0 : cut->own_tokens * cut->hidden * cut->value;
}

/* Queries, keys and values are computed again from the latent vectors; the keys' rotated values, which all heads share,
 * are kept beside these. */
static bool widens_again(const struct cut *cut)
{
    return cut->shape->kv_rank > 0 && runs_again(cut, MODULE_LATENT);
}

/* How many inputs of products that follow a norm are kept. Parallel attention and MLP have the same one. */
static int norm_outputs(const struct cut *cut)
{
    int attention = lora_trains(cut, LORA_QKV), mlp = lora_trains(cut, LORA_MLP_UP);

    return cut->shape->parallel ? attention || mlp : attention + mlp;
}

/* Korthikanti et al. 2022, section 4.1 and table 2, part by part, so that it holds for other shapes. For a GPT with
 * 2-byte values: s b h (10 + 24/t + 5 a s/(h t)) bytes, all divided by t with sequence parallelism. The input of a
 * product is kept for the gradient of its weights, so under LoRA only if the product has an adapter. */
double block_activation(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    double own = cut->own_tokens * cut->hidden, bytes = 0;

    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return rajbhandari(cut);
    bytes += (shape->parallel ? 1 : 2) * own * cut->value + plain_activation(cut);       /* the norms' inputs */
    if (!runs_again(cut, MODULE_NORMS))                                  /* the inputs of QKV and of the MLP */
        bytes += norm_outputs(cut) * cut->input_tokens * cut->hidden * cut->saved;
    if (shape->shared_gate && cut->has_experts && !runs_again(cut, MODULE_EXPERTS))      /* the shared experts' result */
        bytes += own * cut->value;
    if (shape->dropout > 0)
        bytes += 2 * own;                                                /* masks before both residual sums */
    bytes += cut->tokens * (widens_again(cut) ? shape->rope_head_size : cut->query + cut->key + cut->values) *
             cut->value;                                                 /* Q, K, V */
    if (cut->gathers_qkv)                                                /* V is a view of what was gathered */
        bytes += cut->tokens * (cut->projected * cut->tensor - cut->values) * cut->value;
    if (shape->flash_attention)                                          /* the attention's output */
        bytes += cut->tokens * cut->attended * cut->value;
    if (lora_trains(cut, LORA_PROJECTION) && (cut->fp8 || !shape->flash_attention))     /* the projection's input */
        bytes += cut->tokens * cut->attended * cut->saved;
    if (shape->kv_rank > 0)                                              /* inputs and outputs of the latent norms */
        bytes += cut->tokens * ((double)shape->q_rank + shape->kv_rank) * cut->value *
                 (runs_again(cut, MODULE_NORMS) || widens_again(cut) ? 1 : 2);
    bytes += branch_activation(cut);
    for (int target = 0; cut->lora && target < LORA_TARGET_COUNT; target++)
        bytes += lora_trains(cut, (enum lora_target)target) * cut->tokens * cut->lora->rank * cut->value;
    if (cut->recompute == RECOMPUTE_SELECTIVE || runs_again(cut, MODULE_CORE))
        return bytes;                                                    /* table 2, selective: without the core */
    if (shape->flash_attention)
        return bytes + 4 * cut->scores / cut->sequence;                  /* one fp32 sum per row of scores */
    return bytes + core_activation(cut);
}

/* Whether the sums of a product's results over the tensor group are scattered. */
static bool scatters(const struct kernel *kernel, const struct cut *cut)
{
    return cut->own_tokens < cut->tokens &&
           (kernel->product == PRODUCT_PROJECTION || kernel->product == PRODUCT_MLP_DOWN);
}

/* torchtitan's policy for operators (pytorch/torchtitan, parallelisms/parallelize_llama.py of 2024, _save_list and
 * _get_custom_policy). Of scattered sums nothing runs again, because they are kept; torch.compile leaves out the
 * product before them too. To the policy a product in 8 bits is a product of tensors in 8 bits, and counts as others do
 * (pytorch/ao, torchao/float8). */
void kept_mark(struct kernels *list, const struct cut *cut)
{
    int products = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct kernel *kernel = &list->items[i];

        if (kernel->phase != PHASE_FORWARD)
            continue;
        if (kernel->kind == KERNEL_MATMUL && !kernel->attention_core)
            kernel->kept = ++products % 2;
        else
            kernel->kept = kernel->kind == KERNEL_ATTENTION;
        kernel->again = !kernel->kept && !kernel->tail && !scatters(kernel, cut);
    }
}

double kept_results(const struct kernels *list, const struct cut *cut, bool needed)
{
    double bytes = 0;

    for (size_t i = 0; i < list->count; i++) {
        const struct kernel *kernel = &list->items[i];

        if (kernel->phase != PHASE_FORWARD || (needed && kernel->tail))
            continue;
        if (scatters(kernel, cut))
            bytes += cut->own_tokens * cut->hidden * cut->value;
        if (kernel->kept)
            bytes += kernel->kind == KERNEL_ATTENTION
                         ? cut->tokens * cut->attended * cut->value + 4 * cut->scores / cut->sequence
                         : kernel->batch * kernel->m * kernel->n * cut->value;
    }
    return bytes;
}

/* Korthikanti et al. 2022, section 4.3: the mask of the embeddings' dropout. Token numbers are not counted. */
double embedding_activation(const struct cut *cut)
{
    double own = cut->own_tokens * cut->hidden;

    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return 0;
    return (cut->shape->embedding_norm ? own * cut->value : 0) + (cut->shape->dropout > 0 ? own : 0) +
           (cut->shape->embedding_size != cut->shape->hidden ?       /* the input of the product */
                cut->own_tokens * cut->shape->embedding_size * cut->value : 0);
}

/* The softmax in fp32; or its logarithm in the logits' format; or, fused, the logits, from which it is recomputed. */
double loss_activation(const struct cut *cut)
{
    if (cut->formula == ACTIVATIONS_RAJBHANDARI || cut->shape->head == HEAD_NONE)
        return 0;
    return cut->tokens * cut->vocabulary *
           (cut->cross_entropy == CROSS_ENTROPY_FUSED || cut->cross_entropy == CROSS_ENTROPY_PLAIN ? cut->value : 4);
}

/* Korthikanti et al. 2022, section 4.3: 2 s b h bytes for the norm's input, 2 s b h for the output layer's input,
 * 4 s b v/t for the logits in fp32. BERT's transform keeps three more inputs. */
double output_activation(const struct cut *cut)
{
    double own = cut->own_tokens * cut->hidden * cut->value, bytes = cut->shape->final_norm ? own : 0;
    double input = cut->input_tokens * cut->shape->embedding_size * cut->value;

    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return 0;
    if (cut->shape->head == HEAD_NONE)
        return bytes;
    if (cut->shape->head == HEAD_MASKED_LANGUAGE_MODEL)
        bytes += 3 * own;
    if (cut->shape->embedding_size != cut->shape->hidden)
        bytes += own;                                                    /* the input of the product to that width */
    return bytes + (cut->lora ? 0 : input) + loss_activation(cut);
}

/* The gradient of the embedding's output. */
struct workspace embedding_workspace(const struct cut *cut)
{
    return (struct workspace){.backward = cut->own_tokens * cut->hidden * cut->value};
}

/* The gradients of the activation function's inputs and output; with experts, if they are larger, the gradients on both
 * sides of the copy that brings rows into the experts' order. */
static double mlp_workspace(const struct cut *cut)
{
    double sides = (cut->shape->mlp == MLP_SWIGLU ? 3 : 2) * cut->value;
    double experts = fmax(cut->received * cut->expert_ffn, cut->tokens * cut->shared_ffn) * sides;

    return !cut->has_experts ? cut->tokens * cut->ffn * sides
                             : fmax(experts, (cut->sent + cut->received) * cut->hidden * cut->value);
}

/* Keys and values of other GPUs of the context group, in addition to the GPU's own. If they are gathered: of all GPUs.
 * With ring attention: the block that is computed and the block that arrives. In the backward also their gradients.
 * Merged by kernels of their own: the result so far and the next one in fp32; in the backward the sums of keys and values
 * that are added to, sent and received. Where heads are exchanged for tokens: what is sent and what arrives of queries, keys and values, or of their
 * gradients. */
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

/* Forward: the scores before the softmax. Backward: the gradient along the residual, and the larger of
 * - the gradients of the activation function's inputs and output;
 * - the gradients on both sides of the softmax and, under selective recomputation, the recomputed core; or those of
 *   FlashAttention (Dao 2023, algorithm 2: dO, dQ, dK, dV, and dQ summed in fp32). */
struct workspace block_workspace(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    struct workspace context = context_workspace(cut);
    double attention = 2 * cut->scores * cut->value;

    if (shape->flash_attention)
        attention = cut->tokens * ((cut->attended + cut->query + cut->key + cut->values) * cut->value + 4 * cut->query);
    else if (cut->recompute == RECOMPUTE_SELECTIVE)
        attention += core_activation(cut);
    attention += context.backward;
    return (struct workspace){
        .forward = context.forward + (shape->flash_attention ? 0 : cut->scores * cut->value),
        .backward = cut->own_tokens * cut->hidden * cut->value + fmax(mlp_workspace(cut), attention),
    };
}

/* Bytes per logit that are held in addition to loss_activation while the loss is computed (forward) and while its
 * gradient is (backward).
 *
 * fp32 in Megatron-LM: the half-precision logits. Their conversion becomes the softmax in place, the softmax the
 *     gradient in place, and the gradient is converted back.
 * converted, and fp32 in code without fused kernels, where nothing is in place: forward the logits and their
 *     conversion, backward the gradients of the softmax's logarithm and of its input. Over a tensor group one tensor
 *     more in each (torch/distributed/tensor/parallel/loss.py: the difference to the maximum; the sum of the target's
 *     gradient and the exponentials).
 * plain: forward the logits, backward two gradients.
 * compiled: torch.compile needs a separate buffer for a tensor that it also reduces or scatters into (Megatron-LM,
 *     fusions/fused_cross_entropy.py, at 0cb4a9c8).
 * fused: backward the gradient. */
static struct workspace loss_workspace(const struct cut *cut)
{
    int more = cut->tensor > 1;

    if (cut->cross_entropy == CROSS_ENTROPY_FUSED)
        return (struct workspace){.backward = cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_PLAIN)
        return (struct workspace){.forward = cut->value, .backward = 2 * cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_COMPILED)
        return (struct workspace){.forward = cut->value + 4, .backward = cut->value + 4};
    if (cut->cross_entropy == CROSS_ENTROPY_FP32 && cut->shape->fused_kernels)
        return (struct workspace){.forward = cut->value, .backward = cut->value};
    return (struct workspace){.forward = cut->value + (1 + more) * 4, .backward = (2 + more) * 4};
}

struct workspace output_workspace(const struct cut *cut)
{
    double logits = cut->tokens * cut->vocabulary;
    struct workspace loss = loss_workspace(cut);

    if (cut->shape->head == HEAD_NONE)
        return (struct workspace){0};
    return (struct workspace){
        .forward = logits * loss.forward,
        .backward = logits * loss.backward + cut->own_tokens * cut->hidden * cut->value,
    };
}
