/* The part of a transformer that one GPU of the tensor-parallel group holds: its sizes, and questions about them. */
#include "model/operator.h"

#include <math.h>

#include "base/base.h"
#include "hardware/gpu.h"
#include "kernels/skew.h"

double transformer_sample(const struct transformer *shape)
{
    const struct vision *vision = shape->vision;
    const struct encoder *encoder = shape->encoder;
    double more = !encoder ? 0 : encoder->mels ? 4.0 * 2 * encoder->mels * encoder->sequence : 8.0 * encoder->sequence;

    return vision ? 4.0 * vision->channels * vision->image * vision->image : 8.0 * shape->sequence + more;
}

bool shares_embedding(const struct transformer *shape)
{
    return shape->encoder && !shape->encoder->mels;
}

const struct transformer *transformer_encoder(struct arena *arena, const struct transformer *shape)
{
    struct transformer *encoder = ARENA_ARRAY(arena, struct transformer, 1);

    *encoder = *shape;
    encoder->layers = shape->encoder->layers;
    encoder->sequence = shape->encoder->sequence;
    encoder->positions = shape->positions > 0 ? encoder->sequence : 0;
    encoder->causal = false;
    return encoder;
}

double transformer_padded_vocabulary(const struct transformer *shape, int tensor)
{
    double multiple = 128.0 * tensor;

    return ceil(shape->vocabulary / multiple) * multiple;
}

double transformer_vocabulary(const struct transformer *shape, int tensor)
{
    return shape->vocabulary % tensor ? transformer_padded_vocabulary(shape, tensor) : shape->vocabulary;
}

double transformer_output_columns(const struct transformer *shape, int tensor)
{
    return shape->ways.fused_kernels ? transformer_padded_vocabulary(shape, tensor) : transformer_vocabulary(shape, tensor);
}

bool may_gather_qkv(const struct transformer *shape, int tensor)
{
    return shape->ways.gathered_qkv && shape->ways.fused_qkv && shape->kv_rank == 0 && tensor > shape->kv_heads &&
           tensor % shape->kv_heads == 0;
}

/* Latent attention has as many heads of keys and values as of queries; queries and keys have a rotated part. */
static void cut_attention(struct cut *cut, double tensor)
{
    const struct transformer *shape = cut->shape;
    bool latent = shape->kv_rank > 0;
    double groups = latent ? shape->heads : shape->kv_heads;

    cut->heads = shape->heads / tensor;
    cut->query_size = shape->head_size + shape->rope_head_size;
    cut->value_size = latent ? shape->value_head_size : shape->head_size;
    cut->query = shape->heads / tensor * cut->query_size;
    cut->projected = cut->query + groups / tensor * (cut->query_size + cut->value_size);
    cut->gathers_qkv = may_gather_qkv(shape, (int)tensor);
    cut->key = (cut->gathers_qkv ? 1 : groups / tensor) * cut->query_size;
    cut->values = (cut->gathers_qkv ? 1 : groups / tensor) * cut->value_size;
    cut->attended = shape->heads / tensor * cut->value_size;
    cut->gate = shape->attention_gate ? cut->attended : 0;
    cut->scores = cut->batch * cut->heads * cut->queries * cut->sequence;
}

/* The expected number of `places`, each with an equal part of the experts, where a token has any of its experts, if it
 * chooses them at random: a place has none of k with the probability that k draws from all miss its part. */
static double places_reached(const struct transformer *shape, double places)
{
    double all = shape->experts, part = all / places, none = 1;

    for (int i = 0; i < shape->experts_per_token; i++)
        none *= fmax(0, all - part - i) / (all - i);
    return places * (1 - none);
}

/* No GPU gets a token more often than it has experts, or than the token chooses any: over the mean. */
static double most_rows(const struct cut *cut, double gpus)
{
    double choices = fmax(1, cut->shape->experts_per_token);

    return gpus * fmin(cut->experts, choices) / choices;
}

/* Every expert gets equally many tokens, or its share under a skew. Then the GPUs of a group wait for the one whose
 * experts got most rows, in every layer, and each GPU stands for that one. With a capacity factor each GPU sends each
 * expert as many rows as its capacity, padding included (Fedus et al. 2021, Switch Transformers, section 2.2; rounded
 * up as there).
 * A token that is sent once crosses the network once for each node that has any of its experts, and there goes on to
 * their GPUs while others arrive (DeepEP, README: forwarding data from the NVLink domain to the RDMA domain). Of the
 * two the network takes longer, and its rows count; inside a node those to different GPUs do.
 * Or each GPU gathers the tokens of all, whatever their experts, and the results of all are reduce-scattered (Megatron
 * Core, token_dispatcher.py: MoEAllGatherTokenDispatcher). */
static void cut_experts(struct cut *cut, const struct shard *shard)
{
    const struct transformer *shape = cut->shape;
    double share = shape->experts ? (double)shape->experts_per_token / shape->experts : 0;
    double rows = cut->own_tokens * share, tensor = shard->tensor, gpus = fmax(1, shard->dispatch_group);
    double expert_tensor = shard->expert_tensor ? shard->expert_tensor : tensor;

    if (shard->capacity > 0)
        rows = ceil(rows * shard->capacity);
    cut->experts = shape->experts / gpus;
    cut->expert_ffn = shape->expert_ffn / expert_tensor;
    cut->shared_ffn = shape->shared_ffn / tensor;
    cut->sent = rows * shape->experts;
    cut->sends_own_rows = shard->sequence_parallel && shard->tensor > 1;
    cut->gathers_rows = cut->sends_own_rows && expert_tensor > 1;
    cut->skew = (struct skew){.exponent = shape->experts ? shape->expert_skew : 0, .gpus = gpus};
    cut->busiest = fmin(skew_busiest(cut->skew.exponent, (int)gpus, (int)cut->experts), most_rows(cut, gpus));
    cut->received = cut->sent * (cut->gathers_rows ? tensor : 1) * cut->busiest;
    cut->travelling = cut->sent * cut->busiest;
    cut->arriving = cut->received;
    cut->dispatches = shard->dispatch_group > 1;
    cut->gathers_tokens = shard->dispatch_gathers && cut->dispatches;
    cut->dispatches_once = (shard->dispatch_once || shard->dispatch_gathers) && gpus > 1;
    if (cut->dispatches_once && shard->dispatch_gathers) {
        cut->travelling = cut->own_tokens * gpus;
        cut->arriving = cut->travelling * (cut->gathers_rows ? tensor : 1);
    } else if (cut->dispatches_once) {
        double k = shape->experts_per_token;

        cut->travelling *= places_reached(shape, shard->dispatch_nodes > 1 ? shard->dispatch_nodes : gpus) / k;
        cut->arriving *= places_reached(shape, gpus) / k;
    }
}

struct cut cut_of(const struct transformer *shape, const struct shard *shard)
{
    double t = shard->tensor, slices = fmax(1, shard->slices);
    double queries = shape->sequence / fmax(1, shard->context) / slices, tokens = shard->micro * queries;
    struct cut cut = {
        .shape = shape,
        .dtype = shard->dtype,
        .recompute = shard->recompute,
        .recomputed = shard->recomputed,
        .lora = shard->lora,
        .formula = shard->formula,
        .form = shard->saved,
        .cross_entropy = shard->cross_entropy,
        .measured = shard->measured,
        .tensor = shard->tensor,
        .value = dtype_bytes(shard->dtype),
        .fp8 = shard->fp8,
        .narrow = shard->narrow,
        .fp8_kept = shard->fp8_kept,
        .saved = shard->fp8 ? dtype_scaled_bytes(shard->narrow) : dtype_bytes(shard->dtype),
        .batch = shard->micro,
        .sequence = shape->sequence * (shard->slice + 1) / slices,
        .slices = slices,
        .before = shard->slice,
        .hidden = shape->hidden,
        .queries = queries,
        .ulysses = fmax(1, shard->ulysses),
        .blocks_apart = shard->blocks_apart,
        .gathers_keys = !shard->ring,
        .blocks = shard->ring || shard->blocks_apart ? fmax(1, shard->context / fmax(1, shard->ulysses)) : 1,
        .tokens = tokens,
        .key_tokens = tokens,
        .own_tokens = shard->sequence_parallel ? tokens / t : tokens,
        .input_tokens = shard->sequence_parallel && (shape->ways.fused_kernels || !shard->gathers_apart) ? tokens / t :
                                                                                                      tokens,
        .ffn = shape->ffn / t,
        .vocabulary = transformer_vocabulary(shape, shard->tensor) / t,
        .context = fmax(1, shard->context),
        .routed = shape->expert_latent ? shape->expert_latent : shape->hidden,
    };

    cut.columns = transformer_output_columns(shape, shard->tensor) / t;
    cut_attention(&cut, t);
    cut_experts(&cut, shard);
    return cut;
}

struct cut attention_cut(const struct cut *cut)
{
    struct cut core = *cut;
    double n = cut->ulysses;

    core.queries *= n;
    core.tokens *= n;
    core.key_tokens *= n;
    core.heads /= n;
    core.query /= n;
    core.key /= n;
    core.values /= n;
    core.attended /= n;
    return core;
}

double head_widths(const struct cut *cut)
{
    return cut->query + (cut->key + cut->values) * (cut->key_tokens / cut->tokens);
}

bool repeats_groups(const struct cut *cut)
{
    const struct transformer *shape = cut->shape;

    return shape->ways.repeated_groups && shape->kv_rank == 0 && shape->kv_heads < shape->heads;
}

/* Megatron-LM's fused softmax takes half precision alone, and four rows of scores at a time
 * (megatron/model/fused_softmax.py, is_kernel_available; Apex and Transformer Engine took it over). */
bool softmax_fuses(const struct cut *cut)
{
    return cut->shape->ways.fused_kernels &&
           (!cut->shape->ways.softmax_in_fours || (cut->value == 2 && fmod(cut->batch * cut->heads, 4) == 0));
}

bool rows_by_operators(const struct cut *cut)
{
    return cut->shape->ways.routed_rows == ROUTED_ROWS_OPERATORS && !cut->dispatches_once;
}

bool projects(const struct cut *cut)
{
    return cut->form.randomized_linear > 0;
}

/* fewbit, functional/linear.py: int(proj_dim_ratio * ndim). */
double projected_rows(const struct cut *cut, double rows)
{
    return projects(cut) ? fmax(1, floor(cut->form.randomized_linear * rows)) : rows;
}

double random_matrix(const struct cut *cut)
{
    return projects(cut) ? projected_rows(cut, cut->tokens) * cut->tokens * cut->value : 0;
}

bool ends_early(const struct cut *cut)
{
    bool compiled = cut->recompute == RECOMPUTE_OPERATORS && cut->shape->ways.fused_kernels;

    return !cut->has_experts && !cut->shape->post_norms && cut->shape->dropout == 0 && (!cut->fp8 || compiled) && !projects(cut);
}
