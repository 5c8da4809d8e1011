/* megatron_sides: pretrain_t5.py trains an encoder beside a decoder (Megatron-LM, pretrain_t5.py, models/T5/t5_model.py). */
#include "megatron/megatron_internal.h"

#include "base/base.h"
#include "launch/launch.h"

#define SHAPE "model.transformer."

/* Older releases have as many blocks on both sides, and say so by --num-layers alone. */
static long long decoder_layers(const struct imported *m)
{
    return imported_given(m, "decoder-num-layers") ? imported_number(m, "decoder-num-layers") : imported_number(m, "num-layers");
}

/* The output layer has a bias where its weights are the embedding's. */
void megatron_sides(struct imported *m)
{
    long long encoder = imported_number(m, "num-layers"), decoder = decoder_layers(m), tokens = imported_number(m, "decoder-seq-length");

    if (decoder < 1)
        imported_refuse(m, "decoder-num-layers", "expected a number above 0");
    if (tokens < 1)
        error_add(m->err, EXIT_INPUT, m->launch->loc, "missing %s, the decoder's tokens of a sample",
                  imported_shown(m, "decoder-seq-length"));
    if (m->err->count)
        return;
    imported_put(m, SHAPE "layers", "%lld", decoder);
    imported_put(m, SHAPE "sequence", "%lld", tokens);
    imported_put(m, SHAPE "encoder.layers", "%lld", encoder);
    imported_put(m, SHAPE "encoder.sequence", "%lld", imported_number(m, "seq-length"));
    if (!strcmp(imported_word(m, "position-embedding-type"), "relative"))
        imported_put(m, SHAPE "relative_positions", "%lld", imported_number(m, "relative-attention-num-buckets"));
    if (!imported_given(m, "untie-embeddings-and-output-weights"))
        imported_put(m, SHAPE "head_bias", "true");
}

/* The first ranks divide the encoder's blocks, the others the decoder's (megatron/model/transformer.py, _get_num_layers). */
void megatron_split_sides(struct imported *m, long long pipeline, long long chunks)
{
    long long encoder = imported_number(m, "num-layers"), decoder = decoder_layers(m);
    long long first = imported_number(m, "pipeline-model-parallel-split-rank");
    const char *text = NULL;

    if (pipeline <= 1)
        return;
    if (first < 1 || first >= pipeline || chunks > 1) {
        error_add(m->err, EXIT_INPUT, m->launch->loc, "%s: %lld of %lld stages with %lld chunks each; an encoder and a decoder divide a pipeline "
                  "into 1 to %lld stages for the one and the rest for the other, a chunk each",
                  imported_shown(m, "pipeline-model-parallel-split-rank"), first, pipeline, chunks, pipeline - 1);
        return;
    }
    if (encoder % first || decoder % (pipeline - first)) {
        imported_refuse(m, "pipeline-model-parallel-split-rank", "%lld and %lld layers do not divide over %lld and %lld stages", encoder,
                        decoder, first, pipeline - first);
        return;
    }
    for (long long i = 0; i < pipeline; i++)
        text = arena_printf(m->arena, "%s%s%lld", text ? text : "", text ? ", " : "",
                            i < first ? encoder / first : decoder / (pipeline - first));
    imported_put(m, "strategy.split", "[%s]", text);
}
