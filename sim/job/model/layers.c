/* A transformer's layers: strategies/blocks/ writes the operators of each kind of layer once. */
#include "model/operator_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

double transformer_active_parameters(const struct transformer *shape)
{
    struct transformer active = *shape;
    int routers = 0;

    for (int i = 0; i < shape->layers; i++)
        routers += transformer_halves(shape, i).experts;
    routers += (shape->mtp_repeats ? 1 : shape->mtp) * transformer_halves(shape, shape->layers).experts;
    active.experts = shape->experts_per_token;
    return transformer_parameters(&active) +
           (double)routers * (shape->experts - shape->experts_per_token) * (shape->hidden + shape->router_bias);
}

/* The divisors of n as text: "1, 2, 4 or 8". */
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

static int check_tensor(struct arena *arena, const struct transformer *shape, const struct shard *shard, struct loc loc, struct error *err)
{
    bool attends = transformer_mixes(shape, MIXER_ATTENTION) || transformer_mixes(shape, MIXER_LATENT);
    const struct {
        int size;
        const char *what;
        bool split;
    } parts[] = {
        {shape->heads, "attention heads", attends},
        {shape->kv_heads, "heads of keys and values", attends && !may_gather_qkv(shape, shard->tensor)},
        {shape->ffn, "columns of the MLP", !shape->pattern || strchr(shape->pattern, '-')},
        {shape->expert_ffn, "columns of an expert", shape->experts > 0},
        {shape->sequence / (shard->context ? shard->context : 1), "tokens of a sample that sequence_parallel splits",
         shard->sequence_parallel},
    };
    struct mixer_width widths[MIXER_WIDTHS];
    int common = 0, mixers = mixer_widths(shape, widths), context = shard->context ? shard->context : 1;
    char buffer[160];

    for (int i = 0; i < mixers; i++) {
        int size = widths[i].size, divided = widths[i].whole ? 1 : context;

        if (size % divided)
            return error_add(err, EXIT_INFEASIBLE, loc, "strategy: context: %d does not divide the %d %s, which its GPUs exchange; "
                             "try %s", context, size, widths[i].what, divisors(size, buffer, sizeof buffer));
        if (size / divided % shard->tensor)
            return error_add(err, EXIT_INFEASIBLE, loc, "strategy: tensor: %d%s does not divide the %d %s; try %s", shard->tensor,
                             divided > 1 ? arena_printf(arena, " x context %d", context) : "", size, widths[i].what,
                             divisors(size / divided, buffer, sizeof buffer));
    }
    if (transformer_mixes(shape, MIXER_MAMBA) && context % (shape->mamba->groups / shard->tensor) &&
        shape->mamba->groups / shard->tensor % context)
        return error_add(err, EXIT_INFEASIBLE, loc, "strategy: context: %d neither divides the %d groups of Mamba-2 that a GPU of the "
                         "tensor group has nor is a multiple of them; expected either", context, shape->mamba->groups / shard->tensor);

    for (size_t i = 0; i < COUNT(parts); i++)
        common = parts[i].split ? gcd(common, parts[i].size) : common;
    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i].split && parts[i].size % shard->tensor)
            return error_add(err, EXIT_INFEASIBLE, loc, "strategy: tensor: %d does not divide the %d %s; try %s%s",
                             shard->tensor, parts[i].size, parts[i].what, divisors(common, buffer, sizeof buffer),
                             i == 1 && shard->tensor % shape->kv_heads == 0 && !shape->ways.gathered_qkv ?
                                 ", or software whose release gathers them ('software: {gathered_qkv: true}')" :
                                 "");
    return 0;
}

double transformer_parameters(const struct transformer *shape)
{
    struct shard shard = {.micro = 1, .tensor = 1};
    struct arena arena = {0};
    struct error err = {0};
    const struct layer *layers;
    double total = 0;
    size_t count;

    if (transformer_layers(&arena, shape, &shard, (struct loc){0}, &layers, &count, &err))
        BUG("a model that cannot be cut into one piece");
    for (size_t i = 0; i < count; i++)
        total += layers[i].parameters;
    arena_release(&arena);
    return total;
}

/* Under full recomputation a block keeps its input, 2 s b h bytes (Korthikanti et al. 2022, table 2); with sequence
 * parallelism only this GPU's tokens. A block of multi-token prediction has two inputs: the hidden states and the
 * embedding. */
static struct layer block_layer(struct arena *arena, struct operators *ops, const struct cut *cut)
{
    struct layer layer = {.name = cut->predicts ? "prediction" : "block",
                          .role = cut->predicts ? LAYER_PREDICTION : LAYER_BLOCK,
                          .checkpoint = cut->own_tokens * cut->hidden * cut->value,
                          .source = cut->source ? cut->source->own_tokens * cut->hidden * cut->value : 0};

    operators_begin(ops, cut);
    if (cut->predicts)
        write_part(ops, PART_PREDICTION, (struct tensor){0});
    else
        block(ops);
    operators_finish(arena, ops, &layer);
    layer.within = ops->input;
    if (cut->predicts) {
        layer.saved = NULL, layer.nsaved = 0;
        layer.within += layer.checkpoint;
        layer.checkpoint *= 2;
    }
    return layer;
}

/* Blocks of a kind are alike. */
struct block_kind { struct halves halves; struct layer layer; };

static bool same_halves(struct halves a, struct halves b)
{
    return a.mixer == b.mixer && a.mlp == b.mlp && a.experts == b.experts && a.window == b.window &&
           a.nope == b.nope;
}

static void cut_block(struct cut *cut, struct halves halves)
{
    cut->mixer = halves.mixer;
    cut->has_mlp = halves.mlp;
    cut->has_experts = halves.experts;
    cut->windowed = halves.window;
    cut->nope = halves.nope;
}

static void block_layers(struct arena *arena, struct operators *ops, struct cut *cut, struct layer *layers)
{
    struct block_kind kinds[PATTERN_KINDS];
    size_t count = 0;

    for (int i = 0; i < cut->shape->layers; i++) {
        struct halves halves = transformer_halves(cut->shape, i);
        size_t kind = 0;

        while (kind < count && !same_halves(kinds[kind].halves, halves))
            kind++;
        if (kind == count) {
            BUG_IF(count == PATTERN_KINDS);
            cut_block(cut, halves);
            kinds[count++] = (struct block_kind){halves, block_layer(arena, ops, cut)};
        }
        layers[i] = kinds[kind].layer;
    }
}

/* The blocks of one side of an encoder-decoder. A decoder's embedding is the encoder's, if that reads a text too. */
static void side_layers(struct arena *arena, struct operators *ops, struct cut *cut, struct layer *layers)
{
    const struct transformer *shape = cut->shape;
    bool shares = shares_embedding(shape);
    struct layer like = {0};

    cut_block(cut, transformer_halves(shape, 0));
    for (int i = 0; i < shape->layers; i++) {
        cut->begins = cut->source && i == 0;
        cut->closes = !cut->source && i == shape->layers - 1;
        if (cut->begins || cut->closes || !like.name)
            layers[i] = block_layer(arena, ops, cut);
        else
            layers[i] = like;
        if (!cut->begins && !cut->closes)
            like = layers[i];
        layers[i].name = cut->source ? "decoder" : "encoder";
        layers[i].embeds = cut->begins && !shares;
        layers[i].tied = cut->begins && shares ? cut->vocabulary * shape->embedding_size : 0;
    }
    cut->begins = cut->closes = false;
}

/* A layer outside of blocks, which is never in a narrow format. */
static struct layer outer_layer(struct arena *arena, struct operators *ops, const struct cut *cut, enum part part)
{
    const struct transformer *shape = cut->shape;
    bool first = part == PART_EMBEDDING, head = shape->head != HEAD_NONE;
    struct layer layer = {.name = first         ? "embedding" :
                                  cut->predicts ? "prediction-output" :
                                                  "output",
                          .role = first ? LAYER_FIRST : LAYER_LAST};
    struct cut wide = *cut;

    wide.fp8 = false;
    operators_begin(ops, &wide);
    write_part(ops, part, (struct tensor){0});
    if (cut->predicts) /* the weights are the output layer's */
        ops->weights.count = 0;
    operators_finish(arena, ops, &layer);
    layer.checkpoint = layer.activation;
    layer.embeds = first && !(shape->encoder && !shares_embedding(shape));
    if (first)
        return layer;
    layer.output = shape->head == HEAD_CLASSIFIER ? cut->batch * shape->vision->classifiers * shape->classes * cut->value :
                                                    cut->tokens * (head ? cut->vocabulary : cut->hidden) * cut->value;
    layer.tied = head && !cut->predicts && shape->tied ? cut->vocabulary * shape->embedding_size : 0;
    return layer;
}

/* The same work with weights that another layer counts. */
static struct layer without_weights(struct layer layer)
{
    layer.parameters = layer.divided_parameters = layer.frozen = layer.divided_frozen = layer.packed = 0;
    layer.ntensors = layer.ndivided = layer.nlinears = 0;
    return layer;
}

/* Megatron Core puts the modules of multi-token prediction on the last stage (core_v0.14.0, multi_token_prediction.py,
 * get_mtp_num_layers_to_build). Each has a block like the last one and the output layer once more; they share weights
 * with it and with the embedding, of which that stage has a copy (models/gpt/gpt_model.py: mtp_process). */
static void predictions(struct arena *arena, struct operators *ops, struct cut *cut, struct layer *layers)
{
    const struct transformer *shape = cut->shape;

    cut->predicts = true;
    cut_block(cut, transformer_halves(shape, shape->layers));
    for (int i = 0; i < shape->mtp; i++) {
        layers[2 * i] = !i ? block_layer(arena, ops, cut) : shape->mtp_repeats ? without_weights(layers[0]) : layers[0];
        layers[2 * i + 1] = i ? layers[1] : outer_layer(arena, ops, cut, PART_HEAD);
    }
    if (shape->mtp && !shape->tied)
        layers[1].tied = cut->vocabulary * shape->embedding_size;
    cut->predicts = false;
}

int transformer_layers(struct arena *arena, const struct transformer *shape, const struct shard *shard,
                       struct loc tensor_loc, const struct layer **layers, size_t *count, struct error *err)
{
    const struct transformer *encoder = shape->encoder ? transformer_encoder(arena, shape) : NULL;
    int before = encoder ? encoder->layers : 0, n = before + shape->layers + 2 * shape->mtp + 2;
    struct layer *all = ARENA_ARRAY(arena, struct layer, n), *end = all + n - 1, *beyond = all + before + shape->layers;
    struct operators ops = {0};
    struct cut cut, source;

    if ((encoder && check_tensor(arena, encoder, shard, tensor_loc, err) < 0) || check_tensor(arena, shape, shard, tensor_loc, err) < 0)
        return -1;
    cut = cut_of(shape, shard);
    source = encoder ? cut_of(encoder, shard) : cut;
    all[0] = outer_layer(arena, &ops, &source, PART_EMBEDDING);
    cut.source = encoder ? &source : NULL;
    *end = outer_layer(arena, &ops, &cut, PART_HEAD);
    if (encoder)
        side_layers(arena, &ops, &source, all + 1);
    (encoder ? side_layers : block_layers)(arena, &ops, &cut, all + 1 + before);
    predictions(arena, &ops, &cut, beyond + 1);
    for (struct layer *layer = all; layer <= end; layer++) {
        const struct cut *own = layer - all <= before ? &source : &cut;

        layer->all_reduce_bytes = own->tokens * cut.hidden * cut.value;
        layer->boundary = layer > beyond ? 0 : layer->all_reduce_bytes + (own->source ? all->all_reduce_bytes : 0);
    }
    operators_release(&ops);
    *layers = all;
    *count = (size_t)n;
    return 0;
}

/* Measured: scenarios/paper/megatron-bridge-experts.yaml. Wide experts (grok1-h100.yaml) are as good as other
 * layers. */
const char *transformer_caveat(struct arena *arena, const struct transformer *shape)
{
    if (!shape->experts || shape->expert_ffn >= shape->hidden)
        return NULL;
    return arena_printf(arena,
                        "experts of %d columns are narrower than what they compute on (%d); published runs of "
                        "such models took 0.8 to 1.4 times as long as predicted, one of the oldest release 2.4 times",
                        shape->expert_ffn, shape->hidden);
}
