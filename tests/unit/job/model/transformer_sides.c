/* Encoder-decoders: parameters, work, kept bytes, exchanges and boundaries by closed forms; shapes as their config.json says them;
 * what is refused. */
#include "config_file.h"
#include "model_layers.h"
#include "trials.h"

#include "kernels/cost.h"

enum { SHAPES = 32 };
#define TRUE_WORD(flag) ((flag) ? "true" : "false")

static double kernel_flops(const struct layer *layer, enum phase phase)
{
    double flop = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        flop += layer->kernels[i].phase == phase ? layer->kernels[i].flop : 0;
    return flop;
}

struct random_sides { int h, f, enc, dec, S, T, V, relative, mels; bool qkv, biases, keys, tied, gated; struct model model; };

static struct random_sides random_sides(uint64_t *seed)
{
    struct random_sides r = {.h = 64 * (1 + below(seed, 4)), .f = 64 * (1 + below(seed, 9)), .enc = 1 + below(seed, 4), .dec = 1 + below(seed, 4),
                             .S = 32 * (1 + below(seed, 8)), .T = 32 * (1 + below(seed, 8)), .V = 128 * (1 + below(seed, 20)),
                             .relative = below(seed, 2) ? 32 : 0, .mels = below(seed, 3) ? 0 : 16, .qkv = below(seed, 2),
                             .biases = below(seed, 2), .keys = below(seed, 2), .tied = below(seed, 2), .gated = below(seed, 2)};

    r.keys &= r.qkv;
    r.model = load_good(arena_printf(&arena, "{transformer: {layers: %d, hidden: %d, heads: 4, ffn: %d, sequence: %d, vocabulary: %d, encoder: "
                                     "{layers: %d, sequence: %d, mels: %d}, positions: %d, relative_positions: %d, norm: rmsnorm, dropout: 0, "
                                     "qkv_bias: %s, key_bias: %s, bias: %s, tied: %s, mlp: %s}}",
                                     r.dec, r.h, r.f, r.T, r.V, r.enc, r.S, r.mels, r.relative ? 0 : r.T, r.relative, TRUE_WORD(r.qkv), TRUE_WORD(r.keys),
                                     TRUE_WORD(r.biases), TRUE_WORD(r.tied), r.gated ? "swiglu" : "gelu"));
    return r;
}

/* Of both sides, with tensor groups and sequence parallelism. */
static void shapes(void **state)
{
    (void)state;
    EACH_TRIAL(i, SHAPES) {
        uint64_t seed = i * 0x9E3779B97F4A7C15u;
        struct random_sides r = random_sides(&seed);
        const int t = 1 << below(&seed, 3), m = 1 + below(&seed, 3);
        const bool shares = below(&seed, 2) && t > 1;
        struct shard shard = {.micro = m, .tensor = t, .sequence_parallel = shares, .dtype = DTYPE_BF16};
        const double h = r.h, f = r.f, S = r.S, T = r.T, own = shares ? t : 1, up = r.gated ? 2 : 1;
        const double attention = 4 * h * h / t + (r.qkv ? (2 + r.keys) * h / t : 0) + (r.biases ? h : 0);
        const double mlp = (up + 1) * h * f / t + (r.biases ? up * f / t + h : 0), table = r.relative * 4.0 / t, V = (double)r.V / t;
        const double positions = r.relative ? 0 : 1, embedding = r.mels ? 3.0 * r.mels * h + h + 3 * h * h + h : V * h;
        const struct layer *layers, *first, *last, *middle;
        double whole, forward;
        size_t count;

        layers = layers_of(&r.model, &shard, &count);
        assert_int_equal(count, r.enc + r.dec + 2);
        first = layers, middle = layers + 1 + r.enc, last = layers + count - 1;
        assert_close(first->parameters, embedding + positions * S * h + table);
        for (int k = 1; k <= r.enc; k++) {
            assert_close(layers[k].parameters, attention + mlp + 2 * h + (k == r.enc ? h : 0));
            assert_close(layers[k].boundary, 2 * m * S * h);
            assert_close(kernel_flops(&layers[k], PHASE_FORWARD), 2 * m * S * (4 * h * h + (up + 1) * h * f) / t + 4 * m * S * S * h / t);
            assert_true(layers[k].source == 0);
        }
        for (const struct layer *layer = middle; layer < last; layer++) {
            bool begins = layer == middle;
            double sums = 2 * m * h, products = 2 * m * (T * (6 * h * h + (up + 1) * h * f) + S * 2 * h * h) / t;

            assert_close(layer->parameters, 2 * attention + mlp + 3 * h + (begins ? positions * T * h + table + (r.mels ? V * h : 0) : 0));
            assert_close(layer->boundary, 2 * m * (S + T) * h);
            assert_close(layer->source, 2 * m * S * h / own);
            assert_close(kernel_flops(layer, PHASE_FORWARD), products + 4 * m * T * (T + S) * h / t);
            assert_close(layer->checkpoint, 2 * m * T * h / own);
            if (t == 1)
                continue;
            /* the projections of both attentions and of the MLP; the inputs of qkv, of q and of the MLP, and the encoder's output */
            assert_int_equal(layer_sends(layer, SENT_SUM, false).forward, 3 + begins);
            assert_int_equal(layer_sends(layer, SENT_INPUT, false).backward, 4);
            assert_close(layer_sends(layer, SENT_INPUT, false).bytes, sums * fmax(S, T));
        }
        whole = model_flop(&r.model, NULL, &forward);        /* nobody needs the gradient of a spectrogram */
        assert_close(whole, 3 * forward - 2 * 2 * S * h * 3 * r.mels);
        assert_close(forward, r.enc * (2 * S * (4 * h * h + (up + 1) * h * f) + 4 * S * S * h) +
                                  r.dec * (2 * T * (6 * h * h + (up + 1) * h * f) + 2 * S * 2 * h * h + 4 * T * (T + S) * h) +
                                  2 * T * r.V * h + (r.mels ? 2 * 2 * S * h * 3 * r.mels + 2 * S * h * 3 * h : 0));
        assert_close(middle->tied, r.mels ? 0 : V * h);
        assert_close(last->parameters, h + (r.tied ? 0 : V * h));
        assert_true(first->embeds != middle->embeds && (r.mels > 0) == middle->embeds);
        forget(NULL);
    }
}

/* A decoder's block keeps, beside what a block without cross attention keeps, the norm's input and output, queries, the keys and
 * values of all tokens of the encoder, the core's values, and the projection's input; not the encoder's output. */
static void kept(void **state)
{
    (void)state;
    EACH_TRIAL(i, SHAPES) {
        uint64_t seed = i * 0xD1342543DE82EF95u;
        const double h = 64 * (1 + below(&seed, 4)), S = 32 * (1 + below(&seed, 8)), T = 32 * (1 + below(&seed, 8)), m = 1 + below(&seed, 3);
        const bool flash = below(&seed, 2);
        struct shard shard = {.micro = (int)m, .tensor = 1, .dtype = DTYPE_BF16};
        struct model models[2];
        const struct layer *layers[2];
        size_t count;

        for (int k = 0; k < 2; k++) {
            models[k] = load_good(arena_printf(&arena, "{transformer: {layers: 2, hidden: %.0f, heads: 4, sequence: %.0f, vocabulary: 128, "
                                               "dropout: 0, flash_attention: %s%s}}", h, T, TRUE_WORD(flash),
                                               k ? arena_printf(&arena, ", encoder: {layers: 2, sequence: %.0f}", S) : ""));
            layers[k] = layers_of(&models[k], &shard, &count);
        }
        /* out of fused attention: sums of rows in fp32; else the probabilities; the projection's input is the result */
        assert_close(layers[1][4].activation - layers[0][2].activation,
                     2 * m * (2 * T * h + T * h + 2 * S * h + T * h) + (flash ? 4 * m * 4 * T : 2 * m * 4 * T * S));
        assert_close(layers[1][1].activation * T, layers[0][2].activation * S +
                     (flash ? 0 : 2 * m * 4 * S * T * (S - T)));
        forget(NULL);
    }
}

/* Under autocast, with kernels apart: a decoder's block casts the output of a norm more, the encoder's output for each layer that
 * reads it, and the gradient of a residual more. */
static void casts(void **state)
{
    (void)state;
    for (int one = 0; one < 2; one++) {
        struct shard shard = {.micro = 2, .tensor = 1, .dtype = DTYPE_BF16};
        struct model model = load_good(arena_printf(&arena, "{transformer: {layers: 2, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, "
                                                    "encoder: {layers: 2, sequence: 96}, dropout: 0, flash_attention: true, autocast: true, "
                                                    "fused_kernels: false, fused_qkv: %s}}", TRUE_WORD(one)));
        double bytes[5] = {0}, each = 2.0 * 64 * (2 + 4);
        const struct layer *layers;
        size_t count;

        layers = layers_of(&model, &shard, &count);
        for (size_t l = 1; l < 5; l++)
            for (size_t k = 0; k < layers[l].nkernels; k++)
                if (!strcmp(layers[l].kernels[k].name, "autocast"))
                    bytes[l] += layers[l].kernels[k].launches * layers[l].kernels[k].bytes;
        /* q's input each way, k's and v's each way, a residual's gradient */
        assert_close(bytes[4], bytes[1] / 3 + each * (2 * 32 + 2 * (one ? 1 : 2) * 96 + 32));
        forget(NULL);
    }
}

static const struct { const char *config, *shape; } twins[] = {
    {"{model_type: t5, d_model: 128, d_ff: 256, num_layers: 2, num_decoder_layers: 3, num_heads: 4, d_kv: 64, vocab_size: 1000, "
     "is_encoder_decoder: true}",
     "layers: 3, hidden: 128, heads: 4, head_size: 64, ffn: 256, sequence: 512, vocabulary: 1000, encoder: {layers: 2, sequence: 512}, "
     "relative_positions: 32, positions: 0, norm: rmsnorm, qkv_bias: false, bias: false"},
    {"{model_type: mt5, d_model: 128, d_ff: 256, num_layers: 2, num_heads: 2, vocab_size: 1000, n_positions: 128, dropout_rate: 0}",
     "layers: 2, hidden: 128, heads: 2, ffn: 256, sequence: 128, vocabulary: 1000, encoder: {layers: 2, sequence: 128}, mlp: swiglu, "
     "relative_positions: 32, positions: 0, norm: rmsnorm, qkv_bias: false, bias: false, tied: false, dropout: 0"},
    {"{model_type: whisper, d_model: 128, decoder_layers: 3, encoder_attention_heads: 4, decoder_attention_heads: 4, encoder_ffn_dim: 256, "
     "decoder_ffn_dim: 256, vocab_size: 1000}",
     "layers: 3, hidden: 128, heads: 4, ffn: 256, sequence: 448, vocabulary: 1000, encoder: {layers: 4, sequence: 1500, mels: 80}, key_bias: "
     "false, dropout: 0"},
};

static void configs(void **state)
{
    struct shard shard = {.micro = 2, .tensor = 2, .dtype = DTYPE_BF16};

    (void)state;
    for (size_t i = 0; i < COUNT(twins); i++) {
        struct model models[2] = {read_config(twins[i].config), load_good(arena_printf(&arena, "{transformer: {%s}}", twins[i].shape))};
        const struct layer *layers[2];
        size_t counts[2];

        assert_null(strstr(models[0].note ? models[0].note : "", "not modelled"));
        for (int k = 0; k < 2; k++)
            layers[k] = layers_of(&models[k], &shard, &counts[k]);
        assert_int_equal(counts[0], counts[1]);
        for (size_t l = 0; l < counts[0]; l++) {
            if (layers[0][l].nkernels != layers[1][l].nkernels || layers[0][l].parameters != layers[1][l].parameters)
                fail_msg("layer %zu of %s is not that of %s", l, twins[i].config, twins[i].shape);
            assert_true(layers[0][l].activation == layers[1][l].activation && layers[0][l].boundary == layers[1][l].boundary);
            for (size_t k = 0; k < layers[0][l].nkernels; k++)
                assert_true(layers[0][l].kernels[k].flop == layers[1][l].kernels[k].flop &&
                            layers[0][l].kernels[k].bytes == layers[1][l].kernels[k].bytes);
        }
    }
}

#define SIDES "layers: 2, hidden: 64, heads: 4, sequence: 16, vocabulary: 100, "
static const struct { const char *shape, *message; } bad[] = {
    {"encoder: {layers: 2}", "missing key 'sequence'"},
    {"encoder: {layers: 2, sequence: 8}, causal: false", "are a decoder's; expected true"},
    {"encoder: {layers: 2, sequence: 8}, pattern: '(*-)'", "pattern: does not go with an encoder"},
    {"encoder: {layers: 2, sequence: 8}, experts: 4, experts_per_token: 2", "experts: does not go with an encoder"},
    {"encoder: {layers: 2, sequence: 8}, kv_heads: 2", "as many heads of keys and values as of queries; expected 4"},
    {"encoder: {layers: 2, sequence: 8}, window: 4", "window: does not go with an encoder"},
    {"encoder: {layers: 2, sequence: 8}, mtp: 1", "mtp: does not go with an encoder"},
    {"relative_positions: 32", "goes with 'positions: 0', found 16"},
    {"relative_positions: 32, positions: 0, alibi: true", "does not go with relative_positions"},
    {"relative_positions: 32, positions: 0, flash_attention: true", "fused attention has no table of biases"},
    {"qkv_bias: false, key_bias: true", "goes with 'qkv_bias: true'"},
};

static void wrong(void **state)
{
    struct model model = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (load(arena_printf(&arena, "{transformer: {" SIDES "%s}}", bad[i].shape), &model) == 0)
            fail_msg("loads: %s", bad[i].shape);
        if (!strstr(error.messages[0].text, bad[i].message))
            fail_msg("%s: %s", bad[i].shape, error.messages[0].text);
        forget(NULL);
    }
    write_config("{model_type: whisper, encoder_ffn_dim: 512}");
    assert_int_not_equal(load(arena_printf(&arena, "hf_config: %s", path), &model), 0);
    assert_non_null(strstr(error.messages[0].text, "two sides of unlike widths"));
    forget(NULL);
    write_config("{model_type: llama, is_encoder_decoder: true}");
    assert_int_not_equal(load(arena_printf(&arena, "hf_config: %s", path), &model), 0);
    assert_non_null(strstr(error.messages[0].text, "one stack of blocks is modelled"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(shapes), TEST(kept), TEST(casts), TEST(configs), TEST(wrong)};

    return cmocka_run_group_tests(tests, make_file, drop_file);
}
