/* megatron_model: the shape of the network. */
#include "megatron/megatron_internal.h"

#include <ctype.h>
#include <stdlib.h>

#define SHAPE "model.transformer."

/* Vocabularies of published tokenizers that an argument names: of GPT-2 (openai-community/gpt2, config.json), BERT
 * (google-bert/bert-large-uncased and -cased, config.json), Llama 2 (meta-llama/Llama-2-7b, config.json). */
static const struct { const char *tokenizer; long size; } vocabularies[] = {
    {"GPT2BPETokenizer", 50257}, {"BertWordPieceLowerCase", 30522}, {"BertWordPieceCase", 28996},
    {"Llama2Tokenizer", 32000},
};
/* Programs that train what this is not. */
static const struct { const char *part, *what; } other_models[] = {
    {"t5", "an encoder and a decoder"}, {"mamba", "state-space layers"}, {"hybrid", "state-space layers"},
    {"retro", "retrieval"}, {"vlm", "images"}, {"vision", "images"}, {"vit", "images"}, {"ict", "two encoders"},
    {"multimodal", "images"},
};

static bool is_bert(const struct megatron *m)
{
    return m->launch->program && strstr(m->launch->program, "bert");
}

/* `part` as a word of pretrain_PART.py. */
static bool program_has(const struct megatron *m, const char *part)
{
    const char *name = m->launch->program ? strrchr(m->launch->program, '/') : NULL;

    name = name ? name + 1 : m->launch->program;
    for (const char *at = name; at && (at = strstr(at, part)); at++)
        if (at > name && at[-1] == '_' && !isalpha((unsigned char)at[strlen(part)]))
            return true;
    return false;
}

/* Megatron-LM pads to a multiple of make-vocab-size-divisible-by x tensor (megatron/training/tokenizer, _vocab_size_with_padding);
 * so does dtsim where that is 128. */
static void put_vocabulary(struct megatron *m)
{
    const char *tokenizer = megatron_word(m, "tokenizer-type");
    long padded = megatron_number(m, "padded-vocab-size"), size = megatron_number(m, "vocab-size");
    long multiple = megatron_number(m, "make-vocab-size-divisible-by");

    if (!padded)
        padded = megatron_number(m, "pad-vocab-size-to");
    for (size_t i = 0; !size && tokenizer && i < COUNT(vocabularies); i++)
        if (!strcmp(tokenizer, vocabularies[i].tokenizer))
            size = vocabularies[i].size;
    if (!padded && !size) {
        size = is_bert(m) ? 30522 : 50257;
        launch_warn(m->launch, m->arena, m->launch->loc, "the size of the vocabulary is not said; %s is taken; give "
                    "--set vocab-size=N", is_bert(m) ? "BERT's, 30522," : "GPT-2's, 50257,");
        megatron_remark(m, "vocabulary: not said; %s", is_bert(m) ? "BERT's" : "GPT-2's");
    }
    if (!padded && multiple > 0 && multiple != 128) {
        long step = multiple * megatron_number(m, "tensor-model-parallel-size");

        padded = step > 0 ? (size + step - 1) / step * step : size;
    }
    megatron_put(m, SHAPE "vocabulary", "%ld", padded ? padded : size);
}

static void put_positions(struct megatron *m)
{
    const char *type = megatron_word(m, "position-embedding-type");
    bool rotary = megatron_given(m, "use-rotary-position-embeddings") != NULL;

    if (!strcmp(type, "relative"))
        megatron_refuse(m, "position-embedding-type", "relative positions are not simulated; expected learned_absolute, "
                        "rope, mrope, yarn or none");
    else if (!strcmp(type, "alibi"))
        megatron_warn(m, "position-embedding-type", "simulated as rope, which turns queries and keys");
    if (strcmp(type, "learned_absolute") || rotary || megatron_given(m, "no-position-embedding"))
        megatron_put(m, SHAPE "positions", "0");
    else if (megatron_given(m, "max-position-embeddings"))
        megatron_put(m, SHAPE "positions", "%ld", megatron_number(m, "max-position-embeddings"));
}

static void put_attention(struct megatron *m)
{
    const struct launch_argument *window = megatron_given(m, "window-size");
    const char *every = megatron_word(m, "window-attn-skip-freq");

    if (megatron_given(m, "multi-latent-attention")) {
        megatron_put(m, SHAPE "kv_rank", "%ld", megatron_number(m, "kv-lora-rank"));
        if (megatron_given(m, "q-lora-rank"))
            megatron_put(m, SHAPE "q_rank", "%ld", megatron_number(m, "q-lora-rank"));
        megatron_put(m, SHAPE "head_size", "%ld", megatron_number(m, "qk-head-dim"));
        megatron_put(m, SHAPE "rope_head_size", "%ld", megatron_number(m, "qk-pos-emb-head-dim"));
        megatron_put(m, SHAPE "value_head_size", "%ld", megatron_number(m, "v-head-dim"));
        if (megatron_given(m, "kv-channels") && !m->launch->log)
            megatron_warn(m, "kv-channels", "has no effect with --multi-latent-attention");
    } else {
        if (megatron_given(m, "group-query-attention"))
            megatron_put(m, SHAPE "kv_heads", "%ld", megatron_number(m, "num-query-groups"));
        if (megatron_given(m, "kv-channels"))
            megatron_put(m, SHAPE "head_size", "%ld", megatron_number(m, "kv-channels"));
    }
    if (window) {
        const char *text = window->count ? window->values[0].text : "";
        long left = strtol(text + (*text == '('), NULL, 10);

        if (left < 0)
            return;                                          /* -1: no bound */
        megatron_put(m, SHAPE "window", "%ld", left + 1);
        if (every && strspn(every, "0123456789") == strlen(every))
            megatron_put(m, SHAPE "full_every", "%s", every);
        else if (every)
            megatron_refuse(m, "window-attn-skip-freq", "expected a whole number, found '%.60s': other patterns are not "
                            "simulated", every);
    }
}

static void put_mlp(struct megatron *m)
{
    long hidden = megatron_number(m, "hidden-size");
    bool gated = megatron_given(m, "swiglu") || megatron_given(m, "quick-geglu");

    if (gated)
        megatron_put(m, SHAPE "mlp", "swiglu");
    if (megatron_given(m, "quick-geglu"))
        megatron_warn(m, "quick-geglu", "simulated as SwiGLU, which has the same three products");
    if (megatron_given(m, "ffn-hidden-size"))
        megatron_put(m, SHAPE "ffn", "%ld", megatron_number(m, "ffn-hidden-size"));
    else if (megatron_given(m, "swiglu"))                     /* arguments.py, validate_args */
        megatron_put(m, SHAPE "ffn", "%ld", (long)(4.0 * (double)hidden * 2 / 3 / 64) * 64);
    if (megatron_given(m, "disable-bias-linear"))
        megatron_put(m, SHAPE "qkv_bias", megatron_given(m, "add-qkv-bias") ? "true" : "false");
}

void megatron_model(struct megatron *m)
{
    static const char *const needed[] = {"num-layers", "hidden-size", "num-attention-heads", "seq-length",
                                         "micro-batch-size"};

    for (size_t i = 0; i < COUNT(other_models); i++)
        if (program_has(m, other_models[i].part)) {
            error_add(m->err, EXIT_INPUT, m->launch->loc, "%s trains a model with %s, which is not simulated; expected a "
                      "GPT or BERT (pretrain_gpt.py, pretrain_bert.py)", m->launch->program, other_models[i].what);
            return;
        }
    for (size_t i = 0; i < COUNT(needed); i++)
        if (!megatron_given(m, needed[i]))
            error_add(m->err, EXIT_INPUT, m->launch->loc, "missing --%s; if another file says it, give --set %s=N", needed[i],
                      needed[i]);
        else if (megatron_number(m, needed[i]) < 1)
            megatron_refuse(m, needed[i], "expected a number above 0");
    if (m->err->count)
        return;
    put_vocabulary(m);
    put_positions(m);
    put_attention(m);
    put_mlp(m);
    if (is_bert(m)) {
        megatron_put(m, SHAPE "causal", "false");
        megatron_put(m, SHAPE "head", "masked-language-model");
        megatron_put(m, SHAPE "token_types", "2");
    }
}
