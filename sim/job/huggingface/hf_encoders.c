/* Model types with an encoder: of text, of images, and of both sides. What their configuration classes (Transformers,
 * models/TYPE/configuration_TYPE.py) default to, and what their code (modeling_TYPE.py) fixes. */
#include "config/conf.h"
#include "huggingface/hf_family.h"

#include <string.h>

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
    {.types = NULL},
};
