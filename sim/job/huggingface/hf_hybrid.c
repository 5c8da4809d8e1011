/* Hybrid models: which mixer each layer has, as a pattern, and the widths of mixers that several keys say together. */
#include "huggingface/hf_family.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

/* Of each full_attention_interval layers the last one has attention (qwen3_next, qwen3_5). */
enum block_attention hf_last_of_interval(const struct hf_reading *reading, int block)
{
    int interval = hf_number(reading, "full_attention_interval", 4);

    return interval > 0 && (block + 1) % interval == 0 ? BLOCK_FULL : BLOCK_LINEAR;
}

/* attn_type_list of the hub: 1 is attention. Transformers' class gives it to every second layer, the first included. */
enum block_attention hf_first_of_two(const struct hf_reading *reading, int block)
{
    static const char *const lists[] = {"attn_type_list", "decoder_attention_types"};

    for (size_t i = 0; i < COUNT(lists); i++) {
        const struct node *list = node_get(reading->config, lists[i]);

        if (list && list->kind == NODE_SEQUENCE && (size_t)block < list->count)
            return hf_is_on(list->items[block]) ? BLOCK_FULL : BLOCK_LINEAR;
    }
    return block % 2 == 0 ? BLOCK_FULL : BLOCK_LINEAR;
}

/* bamba's attn_layer_indices, from 0; without them no layer has attention, as in granitemoehybrid. */
enum block_attention hf_indexed(const struct hf_reading *reading, int block)
{
    return hf_has_number(node_get(reading->config, "attn_layer_indices"), block) ? BLOCK_FULL : BLOCK_LINEAR;
}

/* Its layers are counted from 1. */
enum block_attention hf_kimi_lists(const struct hf_reading *reading, int block)
{
    return hf_has_number(hf_inner(reading, "linear_attn_config", "kda_layers"), block + 1) ? BLOCK_LINEAR : BLOCK_FULL;
}

/* Nemotron-H: each item is a half-block, of which the letter is a layer. NULL: a name is not known. */
static const char *half_letters(const struct hf_reading *reading, const struct node *list)
{
    static const struct { const char *name; char letter; } known[] = {
        {"mamba", 'M'}, {"linear_attention", 'M'}, {"attention", '*'}, {"full_attention", '*'}, {"mlp", '-'}, {"moe", 'E'},
    };
    char *letters = arena_alloc(reading->arena, list->count + 1);

    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->items[i]->kind == NODE_SCALAR ? list->items[i]->text : "";

        for (size_t k = 0; k < COUNT(known); k++)
            letters[i] = strcmp(name, known[k].name) ? letters[i] : known[k].letter;
        if (!letters[i]) {
            error_add(reading->err, EXIT_INPUT, list->items[i]->loc, "hf_config: '%s' is no kind of layer; expected mamba, attention, "
                      "mlp or moe", name);
            return NULL;
        }
    }
    return letters;
}

/* The value of whichever of two keys there is, as letters: a text of them, or a list of names. */
static const char *halves_of(const struct hf_reading *reading, const char *text, const char *list)
{
    const struct node *letters = node_get(reading->config, text), *names = node_get(reading->config, list);

    if (letters && letters->kind == NODE_SCALAR)
        return letters->text;
    return names && names->kind == NODE_SEQUENCE && names->count > 0 ? half_letters(reading, names) : NULL;
}

/* The number of layers comes from the list (NemotronHConfig: num_hidden_layers is not heeded). Modules that predict further
 * tokens have halves of their own. */
void hf_nemotron_h(struct hf_reading *reading)
{
    const char *halves = halves_of(reading, "hybrid_override_pattern", "layers_block_type");
    const char *ahead = halves_of(reading, "mtp_hybrid_override_pattern", "mtp_layers_block_type");

    hf_put(reading, "pattern", !halves ? "ME*-" :
           hf_is_on(node_get(reading->with, "mtp")) ? arena_printf(reading->arena, "%s/%s", halves, ahead ? ahead : "*E") :
                                                      halves);
}

/* One layer each: its mixer, and an MLP or experts. The shortest pattern that repeats to them. */
static const char *letters_of(const struct hf_reading *reading)
{
    const struct node *types = hf_block_list(reading, "layer_types"), *sparse = hf_block_list(reading, "mlp_layer_types");
    bool experts = hf_is_on(node_get(reading->shape, "experts")) || node_get(reading->with, "experts");
    int n = reading->layers, period = 1, before = reading->err->count;
    char *all = arena_alloc(reading->arena, 4 * (size_t)n + 1);

    types = types ? types : hf_block_list(reading, "layers_block_type");
    for (int i = 0; i < n && reading->err->count == before; i++) {
        bool linear = (types ? hf_listed(reading, types, i) : reading->family->attention(reading, i)) == BLOCK_LINEAR;
        char letter = linear ? reading->family->linear : hf_is_on(node_get(reading->shape, "kv_rank")) ? '+' : '*';

        snprintf(all + 4 * i, 5, "(%c%c)", letter, experts && hf_sparse(reading, sparse, i) ? 'E' : '-');
    }
    while (period < n && (n % period || strncmp(all, all + 4 * period, 4 * (size_t)(n - period))))
        period++;
    all[4 * period] = '\0';
    return all;
}

void hf_hybrid_pattern(struct hf_reading *reading)
{
    static const struct { const char *key, *letters; } mixers[] = {
        {"mamba", "M"}, {"delta", "GK"}, {"linear", "L"}, {"qk_norm", "*"}, {"attention_gate", "*"}, {"kv_rank", "+"}, {"q_rank", "+"},
        {"rope_head_size", "+"}, {"value_head_size", "+"},
    };
    struct node *kept = node_mapping(reading->arena), *pattern = node_get(reading->shape, "pattern");
    const char *letters = pattern ? pattern->text : reading->layers > 0 ? letters_of(reading) : "";

    if (!pattern && *letters)
        hf_put(reading, "pattern", letters);
    kept->loc = reading->shape->loc;
    for (size_t i = 0; i < reading->shape->count; i++) {
        bool used = true;

        for (size_t k = 0; k < COUNT(mixers); k++)
            used &= strcmp(mixers[k].key, reading->shape->keys[i]) || strpbrk(letters, mixers[k].letters);
        if (used)
            node_put(reading->arena, kept, reading->shape->keys[i], reading->shape->items[i]);
    }
    reading->shape = kept;
    if (hf_number(reading, "sliding_window", 0) > 0 && strpbrk(letters, "*+"))
        node_put(reading->arena, reading->shape, "window", node_get(reading->config, "sliding_window"));
}

/* A head's width is 'auto' where the heads divide mamba_expand x hidden (BambaConfig, GraniteMoeHybridConfig). The MLP of a
 * Granite layer without experts is its shared expert's. */
void hf_mamba(struct hf_reading *reading)
{
    int heads = hf_number(reading, "mamba_n_heads", 0), shared = hf_number(reading, "shared_intermediate_size", 0);
    double wide = (double)hf_number(reading, "mamba_expand", 2) * hf_number(reading, "hidden_size", 0);
    int said = hf_number(reading, "mamba_d_head", 0);

    hf_put_number(reading, "mamba.head_size", said || heads < 1 ? said : wide / heads);
    if (shared < 1)
        return;
    if (hf_is_on(node_get(reading->shape, "experts"))) {
        hf_put_number(reading, "shared_experts", 1);
        hf_put_number(reading, "shared_ffn", shared);
    } else {
        hf_put_number(reading, "ffn", shared);
    }
}

/* Keys that another model of this type has (Kimi K3) change what a layer is. */
void hf_kimi(struct hf_reading *reading)
{
    static const struct { const char *key, *to; } widths[] = {
        {"num_heads", "delta.key_heads"}, {"num_heads", "delta.value_heads"}, {"head_dim", "delta.key_size"},
        {"head_dim", "delta.value_size"}, {"short_conv_kernel_size", "delta.conv"},
    };
    const struct node *gate = hf_inner(reading, "linear_attn_config", "use_full_rank_gate");

    if (hf_is_on(gate))
        error_add(reading->err, EXIT_INPUT, gate->loc, "hf_config: use_full_rank_gate: is not modelled; expected false, or none");
    for (size_t i = 0; i < COUNT(widths); i++)
        if (hf_inner(reading, "linear_attn_config", widths[i].key))
            hf_put_node(reading, widths[i].to, hf_inner(reading, "linear_attn_config", widths[i].key));
}

/* Its lightning attention has as many heads as its attention, and as wide ones. */
void hf_minimax(struct hf_reading *reading)
{
    int heads = hf_number(reading, "num_attention_heads", 1), hidden = hf_number(reading, "hidden_size", 0);

    hf_put_number(reading, "linear.heads", heads);
    hf_put_number(reading, "linear.head_size", hf_number(reading, "head_dim", heads > 0 ? hidden / heads : 0));
}

#define LLAMA \
    "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false, " \
    "bias: false}"
#define QWEN_LINEAR \
    "attention_bias: false, attention_dropout: 0, head_dim: 256, linear_conv_kernel_dim: 4, linear_key_head_dim: 128, " \
    "linear_value_head_dim: 128, linear_num_key_heads: 16, linear_num_value_heads: 32, max_position_embeddings: 32768, " \
    "tie_word_embeddings: false"

/* Model types whose layers differ in what mixes their tokens: what their configuration classes (Transformers,
 * models/TYPE/configuration_TYPE.py) default to, and what their code (modeling_TYPE.py) fixes. */
const struct family hf_hybrids[] = {
    {.types = "qwen3_next", .class = "Qwen3NextConfig", .base = LLAMA, .linear = 'G', .attention = hf_last_of_interval,
     .fixed = "{qk_norm: head, attention_gate: true, shared_experts: 1, shared_gate: true}", .has_experts = hf_sparse_step,
     .defaults = "{vocab_size: 151936, hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 48, "
                 "num_attention_heads: 16, num_key_value_heads: 2, decoder_sparse_step: 1, moe_intermediate_size: 512, "
                 "shared_expert_intermediate_size: 512, num_experts_per_tok: 10, num_experts: 512, " QWEN_LINEAR "}"},
    {.types = "qwen3_5_moe_text", .whole = "qwen3_5_moe", .class = "Qwen3_5MoeTextConfig", .base = LLAMA, .linear = 'G',
     .fixed = "{qk_norm: head, attention_gate: true, shared_experts: 1, shared_gate: true}", .attention = hf_last_of_interval,
     .defaults = "{vocab_size: 248320, hidden_size: 2048, num_hidden_layers: 40, num_attention_heads: 16, "
                 "num_key_value_heads: 2, moe_intermediate_size: 512, shared_expert_intermediate_size: 512, "
                 "num_experts_per_tok: 8, num_experts: 256, " QWEN_LINEAR "}"},
    {.types = "qwen3_5_text", .whole = "qwen3_5", .class = "Qwen3_5TextConfig", .base = LLAMA, .linear = 'G',
     .fixed = "{qk_norm: head, attention_gate: true}", .attention = hf_last_of_interval,
     .defaults = "{vocab_size: 248320, hidden_size: 4096, intermediate_size: 12288, num_hidden_layers: 32, "
                 "num_attention_heads: 16, num_key_value_heads: 4, " QWEN_LINEAR "}"},
    /* of the hub (moonshotai/Kimi-Linear-48B-A3B-Instruct, configuration_kimi.py) */
    {.types = "kimi_linear", .class = "KimiLinearConfig", .base = LLAMA, .linear = 'K', .attention = hf_kimi_lists,
     .fixed = "{router_bias: true}", .has_experts = hf_after_dense, .derive = hf_kimi,
     .rules = {{"max_position_embeddings", "sequence", NULL}},
     .refused = "routed_expert_hidden_size attn_res_block_size mla_use_output_gate activation_situ_beta",
     .defaults = "{vocab_size: 163840, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, moe_intermediate_size: null, num_experts: null, "
                 "num_experts_per_token: null, num_shared_experts: 0, first_k_dense_replace: 0, moe_layer_freq: 1, "
                 "q_lora_rank: null, kv_lora_rank: null, qk_nope_head_dim: null, qk_rope_head_dim: null, v_head_dim: null, "
                 "model_max_length: null, tie_word_embeddings: false}"},
    {.types = "nemotron_h", .class = "NemotronHConfig", .base = LLAMA, .linear = 'M', .derive = hf_nemotron_h,
     .fixed = "{mlp: squared-relu, router_bias: true}", .refused = "use_bias mamba_proj_bias",
     .rules = {{"attention_head_dim", "head_size", NULL}, {"mamba_n_groups", "mamba.groups", NULL},
               {"mamba_d_conv", "mamba.conv", NULL}, {"mamba_chunk_size", "mamba.chunk", NULL}},
     .defaults = "{vocab_size: 131072, hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 8, head_dim: 128, "
                 "max_position_embeddings: 4096, attention_bias: false, attention_dropout: 0, sliding_window: null, "
                 "intermediate_size: 21504, mlp_bias: false, ssm_state_size: 128, mamba_num_heads: 128, mamba_head_dim: 64, "
                 "n_groups: 8, conv_kernel: 4, chunk_size: 128, n_routed_experts: 8, n_shared_experts: 1, "
                 "moe_intermediate_size: 7688, moe_shared_expert_intermediate_size: 7688, moe_latent_size: null, "
                 "num_experts_per_tok: 2, hidden_dropout: 0, tie_word_embeddings: false}"},
    {.types = "granitemoehybrid", .class = "GraniteMoeHybridConfig", .base = LLAMA, .linear = 'M', .attention = hf_indexed,
     .derive = hf_mamba, .refused = "mamba_proj_bias",
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, num_local_experts: 8, "
                 "num_experts_per_tok: 2, shared_intermediate_size: 1024, mamba_n_heads: 128, mamba_n_groups: 1, "
                 "mamba_d_state: 256, mamba_d_conv: 4, mamba_expand: 2, mamba_chunk_size: 256}"},
    {.types = "bamba", .class = "BambaConfig", .base = LLAMA, .linear = 'M', .attention = hf_indexed, .derive = hf_mamba,
     .refused = "mamba_proj_bias",
     .defaults = "{vocab_size: 128000, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 8, max_position_embeddings: 262144, "
                 "tie_word_embeddings: false, attention_dropout: 0, mamba_n_heads: 128, mamba_n_groups: 1, "
                 "mamba_d_state: 256, mamba_d_conv: 4, mamba_expand: 2, mamba_chunk_size: 256}"},
    {.types = "minimax minimax_text_01 minimax_m1", .class = "MiniMaxConfig", .base = LLAMA, .linear = 'L',
     .attention = hf_first_of_two, .derive = hf_minimax, .refused = "shared_intermediate_size",
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 8, head_dim: null, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, sliding_window: null, attention_dropout: 0, num_experts_per_tok: 2, "
                 "num_local_experts: 8, block_size: 256}"},
    {.types = NULL},
};
