/* Memory of a transformer's layers on one GPU for one micro-batch: what layers other than blocks keep from the forward
 * to the backward (of blocks: transformer_saved.c), workspaces, which are held while a layer is computed, and refusals
 * of forms in which blocks could keep tensors. */
#include "model/transformer.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"

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
        kernel->recomputed = !kernel->kept && !kernel->tail && !scatters(kernel, cut);
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

/* The inputs of three norms, and the product's input, which has two tokens side by side. */
double prediction_activation(const struct cut *cut)
{
    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return 0;
    return 3 * cut->own_tokens * cut->hidden * cut->value +
           (cut->lora ? 0 : 2 * cut->input_tokens * cut->hidden * (cut->fp8 ? cut->saved : cut->value));
}

/* The gradient of the embedding's output. */
struct workspace embedding_workspace(const struct cut *cut)
{
    return (struct workspace){.backward = cut->own_tokens * cut->hidden * cut->value};
}

/* Whether the backward of a block unpacks quantized tensors before it reads them. */
static bool unpacks(const struct cut *cut)
{
    return cut->form.activations_bits > 0;
}

/* Bytes of the random matrix of a linear layer, which the forward makes and the backward makes again. */
static double random_matrix(const struct cut *cut)
{
    return projects(cut) ? projected_rows(cut, cut->tokens) * cut->tokens * cut->value : 0;
}

/* The gradients of the activation function's inputs and output, and its inputs if they are unpacked; with experts, if
 * they are larger, the gradients on both sides of the copy that brings rows into the experts' order. With projections
 * of inputs also the random matrix of the MLP's last product, at whose backward the block still keeps most, and the
 * projection of its gradient. */
static double mlp_workspace(const struct cut *cut)
{
    int inputs = cut->shape->mlp == MLP_SWIGLU ? 2 : 1;
    double sides = (inputs + 1 + (unpacks(cut) ? inputs - (cut->form.few_bit > 0) : 0)) * cut->value;
    double projected = projects(cut) ? projected_rows(cut, cut->tokens) * cut->hidden * cut->value : 0;
    double experts = fmax(cut->received * cut->expert_ffn, cut->tokens * cut->shared_ffn) * sides;

    return !cut->has_experts ? cut->tokens * cut->ffn * sides + random_matrix(cut) + projected
                             : fmax(experts, (cut->sent + cut->received) * cut->hidden * cut->value);
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

/* Forward: the scores before the softmax. Backward: the gradient along the residual, and the larger of
 * - the gradients of the activation function's inputs and output;
 * - the gradients on both sides of the softmax and, under selective recomputation, the recomputed core; or those of
 *   FlashAttention (Dao 2023, algorithm 2: dO, dQ, dK, dV, and dQ summed in fp32).
 * Quantized tensors are unpacked while the gradients are there, and a weight of four bits in addition to both. */
struct workspace block_workspace(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    struct workspace context = context_workspace(cut);
    double attention = (unpacks(cut) ? 3 : 2) * cut->scores * cut->value;
    double inputs = cut->attended + cut->query + cut->key + cut->values;

    if (shape->flash_attention)
        attention = cut->tokens * ((unpacks(cut) ? 2 : 1) * inputs * cut->value + 4 * cut->query);
    else if (cut->recompute == RECOMPUTE_SELECTIVE)
        attention += core_activation(cut);
    attention += context.backward;
    return (struct workspace){
        .forward = fmax(context.forward + (shape->flash_attention ? 0 : cut->scores * cut->value), random_matrix(cut)) +
                   unpacked_weight(cut),
        .backward = cut->own_tokens * cut->hidden * cut->value + fmax(mlp_workspace(cut), attention) +
                    unpacked_weight(cut),
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

/* ---- which forms of saved tensors do not go with the rest ---- */

static const char *few_bit_fault(const struct transformer *shape, const struct shard *shard)
{
    if (shape->mlp == MLP_SQUARED_RELU || (shape->mlp == MLP_SWIGLU && shape->fused_kernels))
        return "saves nothing of a squared ReLU, or of a fused SwiGLU, which keeps its two inputs: it would need the SiLU's "
               "result instead of the gate, as large; expected software without fused kernels, or 'mlp: gelu'";
    if (shard->recomputed >> MODULE_ACTIVATION & 1)
        return "does not go with recomputation of the activation function (recompute: modules), which needs its input";
    return NULL;
}

/* Products in 8 or 4 bits have copies of their inputs of their own. */
static const char *narrow_fault(const struct shard *shard)
{
    return !shard->fp8 ? NULL : "does not go with products in 8 or 4 bits, which keep narrow copies of their inputs; "
                                "expected 'precision: mixed-bf16' or the like";
}

static const char *randomized_fault(const struct transformer *shape, const struct shard *shard)
{
    if (shape->experts || shape->kv_rank)
        return "does not know how rows of experts, or latent vectors, are projected; expected a dense model without "
               "latent attention";
    if (shard->lora)
        return "does not go with lora, whose frozen weights need no inputs kept; expected either";
    if (shard->sequence_parallel)
        return "does not go with sequence_parallel, whose GPUs keep shares of inputs: a projection is of whole inputs; "
               "expected 'sequence_parallel: false'";
    if (shard->recomputed)
        return "does not go with 'recompute: modules', which computes inputs again instead of keeping them; expected "
               "none, selective, full or optimal";
    return narrow_fault(shard);
}

static const char *quantized_fault(const struct transformer *shape, const struct shard *shard)
{
    (void)shape;
    if (shard->saved.activations_bits == 1)
        return "1 leaves two values to choose from; expected 2 to 8 bits, or 0";
    if (shard->recomputed)
        return "does not go with 'recompute: modules', which keeps some tensors as they are; expected none, selective, "
               "full or optimal";
    return narrow_fault(shard);
}

/* Why blocks cannot keep what they save in one of the forms; NULL: they can. */
static const char *any_fault(const struct transformer *shape, const struct shard *shard)
{
    if (!shape)
        return "needs a transformer; this model does not say which tensors it keeps";
    if (shard->formula == ACTIVATIONS_RAJBHANDARI)
        return "does not go with 'activations: rajbhandari', which counts values of a fixed size; expected korthikanti";
    if (shard->recompute == RECOMPUTE_OPERATORS)
        return "does not go with 'recompute: operators', which keeps results of GEMMs and computes the rest again";
    return NULL;
}

int saved_form_check(const struct transformer *shape, const struct shard *shard, const struct node *memory,
                     struct error *err)
{
    const struct {
        const char *key;
        bool said;
        const char *(*fault)(const struct transformer *shape, const struct shard *shard);
    } forms[] = {
        {"few_bit", shard->saved.few_bit > 0, few_bit_fault},
        {"randomized_linear", shard->saved.randomized_linear > 0, randomized_fault},
        {"activations_bits", shard->saved.activations_bits > 0, quantized_fault},
    };
    int rc = 0;

    for (size_t i = 0; i < COUNT(forms); i++) {
        const char *fault = !forms[i].said ? NULL : any_fault(shape, shard);

        if (forms[i].said && !fault)
            fault = forms[i].fault(shape, shard);
        if (fault)
            rc = error_clash(err, node_loc(memory, forms[i].key), "memory: %s: %s", forms[i].key, fault);
    }
    return rc;
}
