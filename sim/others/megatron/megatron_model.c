/* megatron_model: the shape of the network. */
#include "megatron/megatron_internal.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "launch/imported.h"
#include "launch/launch.h"

#define SHAPE "model.transformer."

/* Programs that train what this is not. */
static const struct { const char *part, *what; } other_models[] = {
    {"retro", "retrieval"}, {"vlm", "images"}, {"vision", "images"}, {"vit", "images"}, {"ict", "two encoders"},
    {"multimodal", "images"},
};

static bool is_bert(const struct imported *m)
{
    return m->launch->program && strstr(m->launch->program, "bert");
}

/* `part` as a word of pretrain_PART.py. */
static bool program_has(const struct imported *m, const char *part)
{
    const char *name = m->launch->program ? strrchr(m->launch->program, '/') : NULL;

    name = name ? name + 1 : m->launch->program;
    for (const char *at = name; at && (at = strstr(at, part)); at++)
        if (at > name && at[-1] == '_' && !isalpha((unsigned char)at[strlen(part)]))
            return true;
    return false;
}

bool megatron_has_sides(const struct imported *m)
{
    return program_has(m, "t5");
}

/* Whether a program's name says that it generates, measures or converts. */
static bool trains_nothing(const struct imported *m)
{
    static const char *const parts[] = {"generat", "inference", "infer", "evaluat", "eval", "server", "convert", "preprocess",
                                        "export", "tokenize", "quantize", "prune"};
    const char *name = m->launch->program ? strrchr(m->launch->program, '/') : NULL;

    name = name ? name + 1 : m->launch->program;
    for (size_t i = 0; name && !strstr(name, "train") && i < COUNT(parts); i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

/* Tokens of the tokenizer of that name; 0: not known. */
static long long tokenizer_size(const struct imported *m, const char *name)
{
    const struct node *sizes = node_get(m->dialect->tables, "vocabularies"), *size = name ? node_get(sizes, name) : NULL;

    if (!size && name)
        size = node_get(sizes, arena_printf(m->arena, "%s+%lld", name, imported_number(m, "extra-vocab-size")));
    return size ? atol(size->text) : 0;
}

/* Megatron-LM pads to a multiple of make-vocab-size-divisible-by x tensor (megatron/training/tokenizer, _vocab_size_with_padding);
 * so does dtsim where that is 128. */
static void put_vocabulary(struct imported *m)
{
    bool patched = imported_given(m, "extra-vocab-size");   /* megatron_patch/tokenizer, build_tokenizer */
    long long padded = imported_number(m, "padded-vocab-size"), size = imported_number(m, "vocab-size");
    long long multiple = imported_number(m, "make-vocab-size-divisible-by");

    if (!padded)
        padded = imported_number(m, "pad-vocab-size-to");
    if (!size)
        size = tokenizer_size(m, imported_word(m, imported_given(m, "patch-tokenizer-type") ? "patch-tokenizer-type" : "tokenizer-type"));
    if (patched && !padded && size)
        padded = size + imported_number(m, "extra-vocab-size");
    if (!padded && !size && patched) {
        imported_refuse(m, "extra-vocab-size", "these tokens are added to those of the tokenizer, which nobody says; give "
                        "--set vocab-size=N");
        return;
    }
    if (!padded && !size && m->shaped)
        return;
    if (!padded && !size) {
        size = is_bert(m) ? 30522 : 50257;
        launch_warn(m->launch, m->arena, m->launch->loc, "the size of the vocabulary is not said; %s is taken; give "
                    "--set vocab-size=N", is_bert(m) ? "BERT's, 30522," : "GPT-2's, 50257,");
        imported_remark(m, "vocabulary: not said; %s", is_bert(m) ? "BERT's" : "GPT-2's");
    }
    if (!padded && multiple > 0 && multiple != 128) {
        long long step = multiple * imported_number(m, "tensor-model-parallel-size");

        padded = step > 0 ? (size + step - 1) / step * step : size;
    }
    imported_put(m, SHAPE "vocabulary", "%lld", padded ? padded : size);
}

int megatron_program(const struct imported *m)
{
    for (size_t i = 0; i < COUNT(other_models); i++)
        if (program_has(m, other_models[i].part))
            return error_add(m->err, EXIT_INPUT, m->launch->loc, "%s trains a model with %s, which is not simulated; expected "
                             "a GPT, BERT or T5 (pretrain_gpt.py, pretrain_bert.py, pretrain_t5.py)", m->launch->program, other_models[i].what);
    if (trains_nothing(m))
        return error_add(m->err, EXIT_INPUT, m->launch->loc, "%s trains nothing, as far as its name tells; expected a program "
                         "that trains a model", m->launch->program);
    return 0;
}

void megatron_model(struct imported *m)
{
    static const char *const needed[] = {"num-layers", "hidden-size", "num-attention-heads", "seq-length",
                                         "micro-batch-size"};

    for (size_t i = 0; i < COUNT(needed); i++)
        if (!imported_given(m, needed[i]) && ((m->shaped && strcmp(needed[i], "micro-batch-size")) || (!i && megatron_layers(m))))
            continue;
        else if (!imported_given(m, needed[i]))
            error_add(m->err, EXIT_INPUT, m->launch->loc, "missing %s; if another file says it, give --set %s=N",
                      imported_shown(m, needed[i]), needed[i]);
        else if (imported_number(m, needed[i]) < 1)
            imported_refuse(m, needed[i], "expected a number above 0");
    if (imported_is_other(m) && !imported_given(m, "bf16") && !imported_given(m, "fp16") && !imported_is_set(m, "bf16"))
        error_add(m->err, EXIT_INPUT, m->launch->loc, "neither --bf16 nor --fp16 is given, and %s may set one by itself; give "
                  "--set bf16=true, or --set bf16=false for fp32", m->launch->program);
    if (imported_is_other(m) && !imported_given(m, "global-batch-size"))
        error_add(m->err, EXIT_INPUT, m->launch->loc, "missing --global-batch-size, which %s may set by itself; give --set "
                  "global-batch-size=N", m->launch->program);
    if (m->err->count)
        return;
    if (m->shaped && !imported_given(m, "seq-length"))
        imported_length(m, imported_shown(m, "seq-length"));
    put_vocabulary(m);
    if (!megatron_has_sides(m))
        imported_rows(m, "relative");
    if (!m->shaped || imported_given(m, "position-embedding-type"))
        imported_rows(m, "positions");
    if (megatron_has_sides(m))
        megatron_sides(m);
    else if (imported_given(m, "decoder-num-layers"))
        imported_refuse(m, "decoder-num-layers", "an encoder and a decoder are trained; expected pretrain_t5.py");
    megatron_hybrid(m, program_has(m, "mamba") || program_has(m, "hybrid"));
    imported_rows(m, "attention");
    imported_rows(m, "mlp");
    if (is_bert(m)) {
        imported_put(m, SHAPE "causal", "false");
        imported_put(m, SHAPE "head", "masked-language-model");
        imported_put(m, SHAPE "token_types", "2");
    }
}
