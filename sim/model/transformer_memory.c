/* What a transformer's layers hold on one GPU for one micro-batch: from the forward to the backward, and for a moment
 * while they are computed. */
#include "model/transformer.h"

#include <math.h>

/* Rajbhandari et al. 2020, section 3.2, footnote: 12 x hidden x batch x sequence x layers values. Those are the query,
 * key and value, the attention's output, and the two sides of the GELU, which tensor parallelism divides. */
static double rajbhandari(const struct cut *cut)
{
    return 12 * cut->tokens * cut->hidden * cut->value / cut->tensor;
}

/* The attention core, the rows "softmax", "dropout" and "attention over values": 5 a s^2 b / t with 2-byte values.
 * Where Megatron-LM's softmax cannot be fused its output stays in fp32, and the values' product has one of its own. */
static double core_activation(const struct cut *cut)
{
    bool wide = cut->shape->fused_kernels && !softmax_fuses(cut), drops = cut->shape->attention_dropout > 0;

    return cut->scores * (wide ? 4 : cut->value) +                        /* the softmax's output */
           cut->scores * (drops ? 1 + cut->value : wide ? cut->value : 0);    /* the mask, what it leaves */
}

/* Inputs of the activation function (with its gate) and of the second product; in plain PyTorch the gate's other factor
 * as well. */
static double mlp_activation(const struct cut *cut, double rows, double ffn)
{
    return rows * ffn * ((cut->shape->mlp == MLP_SWIGLU ? 3 - cut->shape->fused_kernels : 1) * cut->value +
                         lora_trains(cut, LORA_MLP_DOWN) * cut->saved);
}

/* The router's probabilities in fp32; what the experts get, and give, which the gradients of the probabilities need;
 * and what an MLP keeps inside, of the experts and of the shared ones, whose input is the router's. */
static double experts_activation(const struct cut *cut)
{
    double bytes = 4 * cut->own_tokens * cut->shape->experts;

    bytes += (cut->received + cut->sent) * cut->hidden * cut->value;
    return bytes + mlp_activation(cut, cut->received, cut->expert_ffn) +
           mlp_activation(cut, cut->tokens, cut->shared_ffn);
}

/* What operations that are kernels of their own keep beside what fused ones do: of an RMSNorm the input in fp32 beside
 * its quotient in half precision, in the input's place; keys and values once for every head that reads them. */
static double plain_activation(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    double bytes = 0;

    if (shape->norm == NORM_RMSNORM && !shape->fused_norm)
        bytes += 2 * 4 * cut->own_tokens * cut->hidden;
    if (shape->kv_rank == 0 && !shape->fused_kernels)
        bytes += cut->tokens * (2 * cut->query - cut->key - cut->values) * cut->value;
    return bytes;
}

/* The first norm keeps its input, which a checkpoint holds already: a recomputation begins with a view of it
 * (torch/utils/checkpoint.py, detach_variable; Megatron-LM's CheckpointFunction likewise). But one in plain PyTorch
 * keeps a copy in fp32, and Rajbhandari et al. count no input. */
double block_input(const struct cut *cut)
{
    bool copies = cut->shape->norm == NORM_RMSNORM && !cut->shape->fused_norm && cut->value < 4;

    return cut->formula == ACTIVATIONS_RAJBHANDARI || copies ? 0 : cut->own_tokens * cut->hidden * cut->value;
}

/* Korthikanti et al. 2022, section 4.1 and table 2, part by part, so that other shapes follow. For a GPT with
 * 2-byte values: s b h (10 + 24/t + 5 a s/(h t)), all of it over t with sequence parallelism. The input of a product
 * is kept for its weights' gradient, so under LoRA only where there is an adapter. */
double block_activation(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;
    double own = cut->own_tokens * cut->hidden, bytes = 0;

    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return rajbhandari(cut);
    bytes += 2 * own * cut->value + plain_activation(cut);               /* the inputs of both norms */
    bytes += (lora_trains(cut, LORA_QKV) + lora_trains(cut, LORA_MLP_UP)) * cut->input_tokens * cut->hidden *
             cut->saved;                                                 /* of QKV, of the MLP */
    if (shape->dropout > 0)
        bytes += 2 * own;                                                /* masks before both residuals */
    bytes += cut->tokens * (cut->query + cut->key + cut->values) * cut->value;   /* Q, K, V */
    if (shape->flash_attention)                                          /* the attention's output */
        bytes += cut->tokens * cut->attended * cut->value;
    if (lora_trains(cut, LORA_PROJECTION) && (cut->fp8 || !shape->flash_attention))     /* the projection's input */
        bytes += cut->tokens * cut->attended * cut->saved;
    if (shape->kv_rank > 0)                                              /* inputs of the latent norms, and outputs */
        bytes += cut->tokens * (2.0 * shape->q_rank + 2.0 * shape->kv_rank) * cut->value;
    bytes += cut->has_experts ? experts_activation(cut) : mlp_activation(cut, cut->tokens, cut->ffn);
    for (int target = 0; cut->lora && target < LORA_TARGET_COUNT; target++)
        bytes += lora_trains(cut, (enum lora_target)target) * cut->tokens * cut->lora->rank * cut->value;
    if (cut->recompute == RECOMPUTE_SELECTIVE)
        return bytes;                                                    /* table 2, selective: without the core */
    if (shape->flash_attention)
        return bytes + 4 * cut->scores / cut->sequence;                  /* an fp32 sum a row of scores */
    return bytes + core_activation(cut);
}

/* Korthikanti et al. 2022, section 4.3: the mask of the embeddings' dropout. Token numbers are not counted. */
double embedding_activation(const struct cut *cut)
{
    double own = cut->own_tokens * cut->hidden;

    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return 0;
    return (cut->shape->embedding_norm ? own * cut->value : 0) + (cut->shape->dropout > 0 ? own : 0);
}

/* The softmax in fp32; or its logarithm as the logits are; or these, from which it is found again. */
double loss_activation(const struct cut *cut)
{
    if (cut->formula == ACTIVATIONS_RAJBHANDARI || cut->shape->head == HEAD_NONE)
        return 0;
    return cut->tokens * cut->vocabulary *
           (cut->cross_entropy == CROSS_ENTROPY_FP32 || cut->cross_entropy == CROSS_ENTROPY_COMPILED ? 4 : cut->value);
}

/* Same section: 2 s b h for the norm's input, 2 s b h for the output layer's, 4 s b v/t for the logits in fp32. BERT's
 * transform keeps three inputs more. */
double output_activation(const struct cut *cut)
{
    double own = cut->own_tokens * cut->hidden * cut->value, bytes = cut->shape->final_norm ? own : 0;
    double input = cut->input_tokens * cut->hidden * cut->value;

    if (cut->formula == ACTIVATIONS_RAJBHANDARI)
        return 0;
    if (cut->shape->head == HEAD_NONE)
        return bytes;
    if (cut->shape->head == HEAD_MASKED_LANGUAGE_MODEL)
        bytes += 3 * own;
    return bytes + (cut->lora ? 0 : input) + loss_activation(cut);
}

/* The gradient that came in, until it is the one that goes out. */
struct workspace embedding_workspace(const struct cut *cut)
{
    return (struct workspace){.backward = cut->own_tokens * cut->hidden * cut->value};
}

/* The gradients on both sides of the activation function, or with experts of what brings rows into their order. */
static double mlp_workspace(const struct cut *cut)
{
    double sides = (cut->shape->mlp == MLP_SWIGLU ? 3 : 2) * cut->value;
    double experts = fmax(cut->received * cut->expert_ffn, cut->tokens * cut->shared_ffn) * sides;

    return !cut->has_experts ? cut->tokens * cut->ffn * sides
                             : fmax(experts, (cut->sent + cut->received) * cut->hidden * cut->value);
}

/* Keys and values of others in the context group, beside the GPU's own: those of all, where they are gathered; around a
 * ring the block that is attended to and the one that arrives. In the backward as many gradients of them. */
static struct workspace context_workspace(const struct cut *cut)
{
    double own = cut->tokens * (cut->key + cut->values) * cut->value;
    double others = cut->queries == cut->sequence ? 0 : cut->blocks > 1 ? 2 * own : own * cut->sequence / cut->queries;

    return (struct workspace){.forward = others, .backward = 2 * others};
}

/* Scores before the softmax in the forward. In the backward the gradient along the residual, and the gradients on both
 * sides of the largest element-wise kernel: of the activation function; of the softmax, under selective recomputation
 * with the core that came back; or of FlashAttention (Dao 2023, algorithm 2: dO, dQ, dK, dV, and dQ summed in fp32). */
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

/* Bytes a logit on top of what is kept for the loss; while it is computed, and while its gradient is.
 * fp32 in Megatron-LM: half-precision logits beside their conversion, which becomes the softmax in place, and that the
 * gradient, which is converted back. Plain PyTorch does nothing in place: logits and their conversion beside the
 * softmax; gradients of the softmax's logarithm and of what went into it; over a tensor group one tensor more each
 * (torch/distributed/tensor/parallel/loss.py: the difference to the maximum; the sum of the target's gradient and the
 * exponentials). plain: the logits beside their log-probabilities; two gradients beside these. compiled: torch.compile
 * puts into a buffer of its own what it also reduces, or scatters into (Megatron-LM, fusions/fused_cross_entropy.py, at
 * 0cb4a9c8). fused: the gradient beside the logits. */
static struct workspace loss_workspace(const struct cut *cut)
{
    int more = cut->tensor > 1;

    if (cut->cross_entropy == CROSS_ENTROPY_FUSED)
        return (struct workspace){.backward = cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_PLAIN)
        return (struct workspace){.forward = cut->value, .backward = 2 * cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_COMPILED)
        return (struct workspace){.forward = cut->value + 4, .backward = cut->value + 4};
    if (cut->shape->fused_kernels)
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
