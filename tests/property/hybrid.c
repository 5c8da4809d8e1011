/* Hybrid models: a pattern of attention and MLPs is the model without one, whole layers or halves; what mixers keep, send and
 * divide, by closed forms; time that is linear in the length, model FLOPs that chunks do not move. */
#include "random_plan.h"
#include "trials.h"

#include <jansson.h>

enum { MODELS = 24, WIDTHS = 24 };
#define SMALL "vocabulary: 1024, positions: 0, dropout: 0, norm: rmsnorm, bias: false, qkv_bias: false"
#define HARDWARE "cluster: {platform: dgx-h100, nodes: 1}\nmemory: {precision: mixed-bf16, enforce: false}\n"

/* What `run --json` prints, without the keys that say which layers have what; the caller frees it. */
static char *result_without_pattern(struct simulated *simulated)
{
    json_t *result = result_json(&simulated->run);
    json_t *scenario = json_object_get(result, "scenario"), *model = json_object_get(scenario, "model");
    char *text;

    json_object_del(json_object_get(model, "transformer"), "pattern");
    json_object_del(json_object_get(model, "transformer"), "moe_every");
    text = json_dumps(result, JSON_INDENT(2));
    json_decref(result);
    assert_non_null(text);
    return text;
}

/* A pattern and the keys that say the same without one. */
static const struct { const char *pattern, *halves, *keys; } plain[] = {
    {"(*-)", "*-", ""},
    {"(*E)", "*E", ", experts: 8, experts_per_token: 2"},
    {"(*E)(*-)", "*E*-", ", experts: 8, experts_per_token: 2, moe_every: 2"},
    {"(+-)", "+-", ", kv_rank: 64, head_size: 32, rope_head_size: 16"},
};

static char *model_text(uint64_t *seed, size_t k, const char *pattern, int layers, const char *strategy, const char *software)
{
    bool every = strstr(plain[k].keys, "moe_every");
    char said[64] = "", keys[120], *text = NULL;
    int hidden = PICK_INT(seed, 256, 512), sequence = PICK_INT(seed, 256, 512);

    snprintf(keys, sizeof keys, "%s", plain[k].keys);
    if (pattern)
        snprintf(said, sizeof said, ", pattern: \"%s\"", pattern);
    if (pattern && every)
        *strstr(keys, ", moe_every") = '\0';
    assert_true(asprintf(&text, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, mlp: %s, " SMALL "%s%s}}\n"
                         HARDWARE "strategy: {%s}\nbatch: {global: 8, micro: 1}\nsimulation: {engine: fast}\nsoftware: %s\n", layers, hidden,
                         sequence, random_below(seed, 2) ? "swiglu" : "gelu", keys, said, strategy, software) >= 0);
    return text;
}

/* Degrees and recomputation do not see whether the pattern says what the model is. */
static void whole_layers(void **state)
{
    static const char *const strategies[] = {"data: 8", "tensor: 2, data: 4", "pipeline: 4, data: 2", "context: 2, data: 4",
                                             "schedule: interleaved, pipeline: 2, chunks: 2, data: 4", "tensor: 2, sequence_parallel: true, data: 4, zero: 1"};

    (void)state;
    EACH_TRIAL(i, MODELS) {
        uint64_t seed = i * 0x9FB21C651E98DF25u, same;
        size_t k = (size_t)random_below(&seed, COUNT(plain));
        const char *strategy = strategies[random_below(&seed, COUNT(strategies))];
        const char *software = PICK(&seed, "none", "megatron-core", "transformers");
        struct simulated simulated[2];
        char *results[2];

        for (int p = 0; p < 2; p++) {
            char *text = model_text((same = seed, &same), k, p ? plain[k].pattern : NULL, 8, strategy, software);

            run_text(&simulated[p], "%s", text);
            results[p] = result_without_pattern(&simulated[p]);
            free(text);
        }
        if (strcmp(results[0], results[1]))
            fail_msg("the pattern changes the result of\n%s", simulated[1].text);
        for (int p = 0; p < 2; p++) {
            free(results[p]);
            simulated_release(&simulated[p]);
        }
    }
}

/* A layer in two halves: the same time and memory, where products add to gradients: elsewhere a kernel a layer does. */
static void halves(void **state)
{
    (void)state;
    EACH_TRIAL(i, MODELS) {
        uint64_t seed = i * 0xD1342543DE82EF95u, same;
        size_t k = (size_t)random_below(&seed, COUNT(plain));
        const char *strategy = PICK(&seed, "data: 8", "tensor: 2, data: 4", "pipeline: 2, data: 4");
        struct simulated whole, half;
        char *text = model_text((same = seed, &same), k, NULL, 4, strategy, "megatron-core");

        run_text(&whole, "%s", text);
        free(text);
        text = model_text((same = seed, &same), k, plain[k].halves, 8, strategy, "megatron-core");
        run_text(&half, "%s", text);
        free(text);
        expect_near("time", half.run.metrics.iteration_time, whole.run.metrics.iteration_time, half.text);
        expect_near("memory", half.run.metrics.peak_memory, whole.run.metrics.peak_memory, half.text);
        expect_near("FLOPs", half.run.metrics.model_flop, whole.run.metrics.model_flop, half.text);
        simulated_release(&half);
        simulated_release(&whole);
    }
}

/* Widths of each mixer, which four GPUs divide. */
struct widths { double h, d, n, g, heads, taps, chunk, q, v, dk, dv, hv; };

static struct widths random_widths(uint64_t *seed)
{
    struct widths w = {.h = 256 * (1 + random_below(seed, 4)), .heads = 4 * (1 + random_below(seed, 4)), .n = 16 << random_below(seed, 3),
                       .g = 4, .taps = 2 + random_below(seed, 4), .chunk = 32 << random_below(seed, 3), .dk = 16 << random_below(seed, 3),
                       .dv = 16 << random_below(seed, 3)};

    w.d = w.heads * w.dk;
    w.hv = w.heads * (1 + random_below(seed, 2));
    w.q = w.heads * w.dk;
    w.v = w.hv * w.dv;
    return w;
}

static char *mixer_text(char letter, struct widths *w, const char *strategy, const char *software)
{
    char *text = NULL, keys[200];

    if (letter == 'M')
        snprintf(keys, sizeof keys, "mamba: {heads: %.0f, head_size: %.0f, state: %.0f, groups: %.0f, conv: %.0f, chunk: %.0f}", w->heads,
                 w->dk, w->n, w->g, w->taps, w->chunk);
    else if (letter == 'L')
        snprintf(keys, sizeof keys, "linear: {heads: %.0f, head_size: %.0f, block: %.0f}", w->heads, w->dk, w->chunk);
    else
        snprintf(keys, sizeof keys, "delta: {key_heads: %.0f, key_size: %.0f, value_heads: %.0f, value_size: %.0f, conv: %.0f, chunk: %.0f}",
                 w->heads, w->dk, letter == 'K' ? w->heads : w->hv, letter == 'K' ? w->dk : w->dv, w->taps, w->chunk);
    assert_true(asprintf(&text, "model: {transformer: {layers: 2, hidden: %.0f, sequence: 512, " SMALL ", fused_norm: true, pattern: "
                         "\"%c\", %s}}\n" HARDWARE "strategy: {%s}\nbatch: {micro_batches: 1, micro: 1}\nsoftware: %s\n", w->h, letter, keys, strategy,
                         software) >= 0);
    return text;
}

/* B that a block keeps for each token, in bf16, in a tensor group: the input of the norm and of the first product are whole. */
static double kept(char letter, const struct widths *w, double t)
{
    double d = w->heads * w->dk;

    if (letter == 'M')       /* results of the first product: z, x, B, C, dt; of the scan; and of the gated norm */
        return 2 * (2 * w->h + (2 * d + 2 * w->g * w->n + w->heads + d + d) / t);
    if (letter == 'G')
        return 2 * (2 * w->h + (2 * (2 * w->q + w->v) + 2 * w->hv * w->dk + 3 * w->v + w->chunk * w->hv) / t) + 4 * 2 * w->hv / t;
    if (letter == 'K')       /* as many heads of keys as of values: none are repeated */
        return 2 * (2 * w->h + (2 * 3 * d + 3 * d + 2 * w->chunk * w->heads) / t) + 4 * (w->heads + d) / t;
    return 2 * (2 * w->h + (2 * 3 * d + 3 * d) / t);         /* q, k, v on both sides of SiLU, gate, result, and the norm's */
}

/* Parameters of a block; *whole: those that each GPU of a tensor group has. */
static double parameters(char letter, const struct widths *w, double *whole)
{
    double h = w->h, d = w->heads * w->dk, gn = w->g * w->n;

    *whole = h;
    if (letter == 'M')
        return h * (2 * d + 2 * gn + w->heads) + (d + 2 * gn) * (w->taps + 1) + 3 * w->heads + d + d * h;
    if (letter == 'L')
        return 4 * h * d + d + d * h;
    *whole += letter == 'K' ? 2 * h * w->dk + w->dk : w->dv;
    if (letter == 'K')
        return 3 * h * d + 3 * w->taps * d + w->dk * d + w->heads + d + h * w->heads + w->dk * d + d * h;
    return h * (2 * w->q + 2 * w->v + 2 * w->hv) + (2 * w->q + w->v) * w->taps + 2 * w->hv + w->v * h;
}

static const struct layer *block_of(struct simulated *simulated, const char *text)
{
    simulated_load(simulated, "%s", text);
    return simulated_workload(simulated)->stages->slices[1].layer;
}

static void kept_and_divided(void **state)
{
    (void)state;
    EACH_TRIAL(i, WIDTHS) {
        uint64_t seed = i * 0xA0761D6478BD642Fu;
        char letter = "MGKL"[i % 4];
        struct widths w = random_widths(&seed);

        for (int t = 1; t <= 4; t *= 2) {
            char strategy[40], *text;
            struct simulated simulated;
            const struct layer *layer;
            double whole, all = parameters(letter, &w, &whole);

            snprintf(strategy, sizeof strategy, "tensor: %d, data: %d", t, 8 / t);
            text = mixer_text(letter, &w, strategy, "none");
            layer = block_of(&simulated, text);
            expect_near("bytes kept", layer->activation, 512 * kept(letter, &w, t), text);
            expect_near("parameters", layer->parameters, whole + all / t, text);
            expect_near("sums", layer_sends(layer, SENT_SUM, false).forward, t > 1, text);
            expect_near("sums of gradients", layer_sends(layer, SENT_INPUT, false).backward, t > 1, text);
            expect_near("bytes of a sum", layer_sends(layer, SENT_SUM, false).bytes, t > 1 ? 512 * w.h * 2 : 0, text);
            simulated_release(&simulated);
            free(text);
        }
    }
}

/* B that a GPU exchanges in the context group each way, for each of its tokens: what goes into the convolution and the scan,
 * and what comes out (Megatron Core, mamba_context_parallel.py). Groups that are fewer than the GPUs are copied. */
static void exchanged(void **state)
{
    (void)state;
    EACH_TRIAL(i, WIDTHS) {
        uint64_t seed = i * 0xE7037ED1A0B428DBu;
        char letter = "MG"[i % 2];
        struct widths w = random_widths(&seed);
        int c = 2 << random_below(&seed, 2), t = c == 2 ? 1 + random_below(&seed, 2) : 1;
        char strategy[60], *text;
        struct simulated simulated;
        const struct layer *layer;
        double groups, sent = 0, backward = 0;

        w.g = PICK_INT(&seed, 2, 4);
        w.heads = 4 * (1 + random_below(&seed, 3));
        w.hv = w.heads * 2;
        w.q = w.heads * w.dk, w.v = w.hv * w.dv, w.d = w.heads * w.dk;
        groups = fmax(w.g / t, c);
        snprintf(strategy, sizeof strategy, "tensor: %d, context: %d, data: %d", t, c, 8 / t / c);
        text = mixer_text(letter, &w, strategy, "megatron-core");
        layer = block_of(&simulated, text);
        for (size_t k = 0; k < layer->noperators; k++) {
            sent += layer->operators[k].sends[SENT_MIXED].forward * layer->operators[k].sends[SENT_MIXED].bytes;
            backward += layer->operators[k].sends[SENT_MIXED].backward * layer->operators[k].sends[SENT_MIXED].bytes;
        }
        expect_near("bytes sent", sent, 512 / c * 2 * (letter == 'M' ? (2 * w.d + w.heads + w.d) / t + 2 * groups * w.n :
                                                                      (2 * w.q + 2 * w.v + 2 * w.hv + w.v) / t), text);
        expect_near("bytes sent back", backward, sent, text);
        simulated_release(&simulated);
        free(text);
    }
}

static const char *const recurrences[] = {
    "pattern: \"(M-)\", mamba: {heads: 16, head_size: 64, state: 128, groups: 8, chunk: %d}",
    "pattern: \"(G-)\", delta: {key_heads: 8, key_size: 128, value_heads: 16, value_size: 128, chunk: %d}",
    "pattern: \"(K-)\", delta: {key_heads: 8, key_size: 128, value_heads: 8, value_size: 128, chunk: %d}",
    "pattern: \"(L-)\", linear: {heads: 8, head_size: 128, block: %d}",
    "pattern: \"(L-)(*-)\", heads: 8, linear: {heads: 8, head_size: 128, block: %d}",
};

static struct metrics recurrent(size_t i, int chunk, int sequence, int micro)
{
    struct simulated simulated;
    struct metrics metrics;
    char keys[160];

    snprintf(keys, sizeof keys, recurrences[i], chunk);
    run_text(&simulated, "model: {transformer: {layers: 4, hidden: 1024, sequence: %d, " SMALL ", mlp: swiglu, %s}}\n" HARDWARE
             "strategy: {data: 8}\nbatch: {micro_batches: 1, micro: %d}\nsimulation: {engine: fast}\n", sequence, keys, micro);
    metrics = simulated.run.metrics;
    simulated_release(&simulated);
    return metrics;
}

/* The same tokens, as samples of 8 to 64 thousand: linear but with the last one, which has attention. */
static void linear_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(recurrences); i++) {
        double least = INFINITY, most = 0;

        for (int length = 8; length <= 64; length *= 2) {
            double seconds = recurrent(i, 64, length * 1024, 64 / length).iteration_time;

            least = fmin(least, seconds), most = fmax(most, seconds);
        }
        if (i == COUNT(recurrences) - 1 ? most < 1.03 * least : most > 1.03 * least)
            fail_msg("%s: %g to %g s for the same tokens", recurrences[i], least, most);
    }
}

/* Model FLOPs are of the recurrence; a chunk's size is the software's. */
static void chunks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(recurrences); i++) {
        struct metrics first = recurrent(i, 32, 2048, 1);

        for (int chunk = 64; chunk <= 256; chunk *= 2) {
            struct metrics other = recurrent(i, chunk, 2048, 1);

            expect_near("model FLOPs", other.model_flop, first.model_flop, recurrences[i]);
            assert_true(other.hardware_flop > first.hardware_flop);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {TEST(whole_layers), TEST(halves), TEST(kept_and_divided), TEST(exchanged), TEST(linear_time),
                                       TEST(chunks)};

    return cmocka_run_group_tests_name("hybrid", tests, NULL, NULL);
}
