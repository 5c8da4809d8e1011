/* Model types with an encoder: of text, of images, and of both sides. What their configuration classes (Transformers,
 * models/TYPE/configuration_TYPE.py) default to, and what their code (modeling_TYPE.py) fixes. */
#include "config/conf.h"
#include "huggingface/hf_family.h"

#include <string.h>

#include "base/base.h"

/* RobertaEmbeddings: positions are counted from behind the padding's. */
static void roberta(struct hf_reading *reading)
{
    int positions = hf_number(reading, "max_position_embeddings", 0) - hf_number(reading, "pad_token_id", 1) - 1;

    if (positions > 0)
        hf_put_number(reading, "sequence", positions);
}

/* ModernBertAttention: of each so many blocks the first one sees all keys. */
static enum block_attention first_of_interval(const struct hf_reading *reading, int block)
{
    int every = hf_number(reading, "global_attn_every_n_layers", 3);

    return every > 0 && block % every == 0 ? BLOCK_FULL : BLOCK_SLIDING;
}

/* Whether the file names a class of that ending; `otherwise` if it names none. */
static bool is_for(const struct hf_reading *reading, const char *ending, bool otherwise)
{
    const struct node *classes = node_get(reading->whole, "architectures");
    bool found = false;

    if (!classes || classes->kind != NODE_SEQUENCE || classes->count == 0)
        return otherwise;
    for (size_t i = 0; i < classes->count; i++)
        found |= classes->items[i]->kind == NODE_SCALAR && strstr(classes->items[i]->text, ending);
    return found;
}

/* PreTrainedConfig: id2label has a name a class; without it num_labels says how many there are, or there are two. */
static void image_classifier(struct hf_reading *reading)
{
    const struct node *names = node_get(reading->whole, "id2label");

    if (!is_for(reading, "ForImageClassification", true)) {
        hf_put(reading, "head", "none");
        return;
    }
    hf_put_number(reading, "classes", names && names->kind == NODE_MAPPING && names->count > 0 ?
                                          (double)names->count : hf_number(reading, "num_labels", 2));
    if (is_for(reading, "ForImageClassification", true) && !is_for(reading, "WithTeacher", true))
        hf_put(reading, "vision.classifiers", "1");
}

/* T5Config: the decoder has as many blocks as the encoder unless it says otherwise. The positions have no limit: 512 tokens is
 * what it was trained with (Raffel et al. 2020, section 3.1.2), and what n_positions says. */
static void t5(struct hf_reading *reading)
{
    const struct node *gate = node_get(reading->config, "feed_forward_proj");

    if (!node_get(reading->config, "num_decoder_layers") && node_get(reading->config, "num_layers"))
        hf_put_node(reading, "layers", node_get(reading->config, "num_layers"));
    if (gate && gate->kind == NODE_SCALAR && !strncmp(gate->text, "gated-", 6))
        hf_put(reading, "mlp", "swiglu");
    hf_put_node(reading, "encoder.sequence", node_get(reading->config, "n_positions"));
    hf_put_node(reading, "dropout", node_get(reading->config, "dropout_rate"));
    hf_put_node(reading, "attention_dropout", node_get(reading->config, "dropout_rate"));
}

/* Both sides have the same widths in every published model. */
static void whisper(struct hf_reading *reading)
{
    static const char *const widths[][2] = {
        {"encoder_attention_heads", "decoder_attention_heads"}, {"encoder_ffn_dim", "decoder_ffn_dim"},
    };

    for (size_t i = 0; i < COUNT(widths); i++)
        if (hf_number(reading, widths[i][0], 0) != hf_number(reading, widths[i][1], 0))
            error_add(reading->err, EXIT_INPUT, node_loc(reading->file, widths[i][0]), "hf_config: %s: %d, but %s is %d; two sides of "
                      "unlike widths are not modelled", widths[i][0], hf_number(reading, widths[i][0], 0), widths[i][1],
                      hf_number(reading, widths[i][1], 0));
    hf_put_node(reading, "heads", node_get(reading->config, "decoder_attention_heads"));
    hf_put_node(reading, "ffn", node_get(reading->config, "decoder_ffn_dim"));
    hf_put_node(reading, "encoder.layers", node_get(reading->config, "encoder_layers"));
    hf_put_node(reading, "encoder.sequence", node_get(reading->config, "max_source_positions"));
    hf_put_node(reading, "positions", node_get(reading->config, "max_target_positions"));
}

#define ENCODER \
    "{norm: layernorm, mlp: gelu, dropout: 0, attention_dropout: 0, qkv_bias: true, bias: true, causal: false, tied: true}"
#define MASKED "{final_norm: false, embedding_norm: true, head: masked-language-model}"
#define IMAGES \
    "{norm: layernorm, mlp: gelu, dropout: 0, attention_dropout: 0, qkv_bias: true, bias: true, causal: false, tied: false, "
#define OF_IMAGES {"image_size", "vision.image", NULL}, {"patch_size", "vision.patch", NULL}, {"num_channels", "vision.channels", NULL}
#define VIT_SIZES \
    "hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, intermediate_size: 3072, hidden_dropout_prob: 0, " \
    "attention_probs_dropout_prob: 0, image_size: 224, patch_size: 16, num_channels: 3, qkv_bias: true"
#define ROBERTA_SIZES \
    "hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, intermediate_size: 3072, hidden_dropout_prob: 0.1, " \
    "attention_probs_dropout_prob: 0.1, max_position_embeddings: 512, type_vocab_size: 2, pad_token_id: 1, tie_word_embeddings: true"

#define T5 "{norm: rmsnorm, mlp: gelu, positions: 0, qkv_bias: false, bias: false}"
#define OF_T5 \
    {"num_layers", "encoder.layers", NULL}, {"num_decoder_layers", "layers", NULL}, {"d_kv", "head_size", NULL}, \
    {"d_ff", "ffn", NULL}, {"relative_attention_num_buckets", "relative_positions", NULL}

const struct family hf_encoders[] = {
    {.types = "roberta", .class = "RobertaConfig", .base = ENCODER, .fixed = MASKED, .derive = roberta,
     .rules = {{"max_position_embeddings", "positions", NULL}, {"type_vocab_size", "token_types", NULL}},
     .refused = "is_decoder add_cross_attention", .defaults = "{vocab_size: 50265, " ROBERTA_SIZES "}"},
    {.types = "xlm-roberta camembert", .class = "XLMRobertaConfig", .base = ENCODER, .fixed = MASKED, .derive = roberta,
     .rules = {{"max_position_embeddings", "positions", NULL}, {"type_vocab_size", "token_types", NULL}},
     .refused = "is_decoder add_cross_attention", .defaults = "{vocab_size: 30522, " ROBERTA_SIZES "}"},
    /* the embedding's norm is in the place of the first block's, and the MLP's activation is gated */
    {.types = "modernbert", .class = "ModernBertConfig", .base = ENCODER, .attention = first_of_interval,
     .fixed = "{mlp: swiglu, positions: 0, head: masked-language-model}", .rules = {{"norm_bias", "norm_bias", NULL}, {"classifier_bias", "transform_bias", NULL}},
     .defaults = "{vocab_size: 50368, hidden_size: 768, intermediate_size: 1152, num_hidden_layers: 22, num_attention_heads: 12, "
                 "max_position_embeddings: 8192, norm_bias: false, classifier_bias: false, attention_bias: false, mlp_bias: false, attention_dropout: 0, "
                 "local_attention: 128, global_attn_every_n_layers: 3, tie_word_embeddings: true}"},
    {.types = "vit", .class = "ViTConfig", .base = IMAGES "head: classifier, vision: {tokens: 1}}", .derive = image_classifier,
     .rules = {OF_IMAGES, {"qkv_bias", "qkv_bias", NULL}}, .defaults = "{" VIT_SIZES "}"},
    {.types = "deit", .class = "DeiTConfig", .base = IMAGES "head: classifier, vision: {tokens: 2}}", .derive = image_classifier,
     .rules = {OF_IMAGES, {"qkv_bias", "qkv_bias", NULL}}, .defaults = "{" VIT_SIZES "}"},
    {.types = "clip_vision_model", .whole = "clip", .class = "CLIPVisionConfig",
     .base = IMAGES "head: none, embedding_norm: true, vision: {tokens: 1, bias: false}}", .rules = {OF_IMAGES},
     .defaults = "{hidden_size: 768, intermediate_size: 3072, num_hidden_layers: 12, num_attention_heads: 12, num_channels: 3, "
                 "image_size: 224, patch_size: 32, attention_dropout: 0}"},
    {.types = "clip_text_model", .class = "CLIPTextConfig", .base = ENCODER, .fixed = "{causal: true, head: none, tied: false}",
     .rules = {{"max_position_embeddings", "positions sequence", NULL}},
     .defaults = "{vocab_size: 49408, hidden_size: 512, intermediate_size: 2048, num_hidden_layers: 12, num_attention_heads: 8, "
                 "max_position_embeddings: 77, attention_dropout: 0}"},
    {.types = "t5", .class = "T5Config", .base = T5, .derive = t5, .rules = {OF_T5},
     .defaults = "{vocab_size: 32128, d_model: 512, d_kv: 64, d_ff: 2048, num_layers: 6, num_decoder_layers: null, num_heads: 8, "
                 "relative_attention_num_buckets: 32, dropout_rate: 0.1, feed_forward_proj: relu, n_positions: 512, "
                 "tie_word_embeddings: true}"},
    {.types = "mt5", .class = "MT5Config", .base = T5, .derive = t5, .rules = {OF_T5},
     .defaults = "{vocab_size: 250112, d_model: 512, d_kv: 64, d_ff: 1024, num_layers: 8, num_decoder_layers: null, num_heads: 6, "
                 "relative_attention_num_buckets: 32, dropout_rate: 0.1, feed_forward_proj: gated-gelu, n_positions: 512, "
                 "tie_word_embeddings: false}"},
    /* the encoder's 1,500 positions are fixed, and count as parameters */
    {.types = "whisper", .class = "WhisperConfig", .derive = whisper,
     .base = "{norm: layernorm, mlp: gelu, attention_dropout: 0, qkv_bias: true, key_bias: false, bias: true, tied: true}",
     .rules = {{"decoder_layers", "layers", NULL}, {"num_mel_bins", "encoder.mels", NULL}, {"max_target_positions", "sequence", NULL},
               {"dropout", "dropout", NULL}},
     .defaults = "{vocab_size: 51865, num_mel_bins: 80, encoder_layers: 4, encoder_attention_heads: 6, decoder_layers: 4, "
                 "decoder_attention_heads: 6, decoder_ffn_dim: 1536, encoder_ffn_dim: 1536, d_model: 384, dropout: 0, "
                 "attention_dropout: 0, max_source_positions: 1500, max_target_positions: 448, tie_word_embeddings: true}"},
    {.types = NULL},
};
