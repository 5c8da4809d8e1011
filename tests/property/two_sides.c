/* Encoder-decoders in a pipeline: what stages send and get back, what they hold and compute, wherever they are cut; and what does
 * not go with two sides. */
#include "random_plan.h"
#include "trials.h"

enum { PIPELINES = 24 };
#define CLUSTER "cluster: {platform: dgx-a100, nodes: 1}\nmemory: {precision: mixed-bf16, enforce: false%s}\n"

/* Model and memory, of which the strategy follows. */
static char *sides_text(int h, int enc, int dec, int S, int T, const char *more, const char *memory)
{
    char *text = NULL;

    assert_true(asprintf(&text, "model: {transformer: {layers: %d, hidden: %d, heads: 4, sequence: %d, vocabulary: 1024, dropout: 0, encoder: "
                         "{layers: %d, sequence: %d}%s}}\n" CLUSTER "simulation: {engine: fast}\n", dec, h, T, enc, S, more, memory) >= 0);
    return text;
}

static const struct stage *stages_of(struct simulated *simulated)
{
    return simulated_workload(simulated)->stages;
}

/* Each boundary after an encoder's block has the encoder's hidden states, each later one those of both sides; as much comes back. */
static void boundaries(void **state)
{
    static const char *const tensors[] = {"tensor: 1", "tensor: 2", "tensor: 2, sequence_parallel: true", "tensor: 2, scatter_gather: false"};

    (void)state;
    EACH_TRIAL(i, PIPELINES) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        const int h = 64 * (1 + random_below(&seed, 4)), enc = 2 + random_below(&seed, 4), dec = 2 + random_below(&seed, 4);
        const int S = 64 * (1 + random_below(&seed, 6)), T = 64 * (1 + random_below(&seed, 6)), m = 1 + random_below(&seed, 2);
        const int cut = 1 + random_below(&seed, enc + dec - 1), batches = 4, kind = random_below(&seed, 4), t = kind ? 2 : 1;
        const double b = kind == 3 ? 1 : t;      /* GPUs that divide a boundary */
        char *text = sides_text(h, enc, dec, S, T, "", "");
        struct simulated simulated;
        const struct stage *stages;
        double bytes = 2.0 * m * h * (cut <= enc ? S : S + T) / b, source = 2.0 * m * S * h / (kind == 2 ? t : 1), kept = 0;

        run_text(&simulated, "%sbatch: {micro_batches: %d, micro: %d}\nstrategy: {schedule: %s, pipeline: 2, data: %d, %s, split: [%d, %d]}\n",
                 text, batches, m, PICK(&seed, "1f1b", "gpipe"), 4 / t, tensors[kind], cut, enc + dec - cut);
        stages = stages_of(&simulated);
        expect_near("boundary", stages[0].boundary, bytes, simulated.text);
        if (kind == 0 || kind == 3) {    /* else tensor groups send activations too */
            double sums = kind ? simulated.run.metrics.sent[PAYLOAD_ACTIVATIONS] - simulated.run.metrics.sent[PAYLOAD_ACTIVATION_GRADIENTS] : 0;

            if (kind == 0)               /* one of two stages sends activations, the other one their gradients */
                expect_near("sent", simulated.run.metrics.sent[PAYLOAD_ACTIVATIONS], batches * bytes / 2, simulated.text);
            assert_true(kind || (fabs(sums) < 1 && simulated.run.metrics.sent[PAYLOAD_ACTIVATION_GRADIENTS] ==
                                                       simulated.run.metrics.sent[PAYLOAD_ACTIVATIONS]));
        }
        for (int s = 0; s < 2; s++) {
            kept = 0;
            for (size_t k = 0; k < stages[s].nslices; k++)
                kept += stages[s].slices[k].layer->activation;
            expect_near("kept", stages[s].activation, kept + (s || cut > enc ? source : 0), simulated.text);
        }
        simulated_release(&simulated);
        free(text);
    }
}

/* Where a model is cut changes no kernel and no kept tensor, but that each stage with decoder's blocks holds the encoder's output. */
static void cuts(void **state)
{
    (void)state;
    EACH_TRIAL(i, PIPELINES) {
        uint64_t seed = i * 0xA0761D6478BD642Fu;
        const int enc = 1 + random_below(&seed, 4), dec = 1 + random_below(&seed, 4), S = 128, T = 64, h = 128;
        const char *memory = PICK(&seed, "", ", recompute: full", ", recompute: selective");
        const char *more = PICK(&seed, "", ", relative_positions: 32, positions: 0", ", mlp: swiglu, tied: false");
        char *text = sides_text(h, enc, dec, S, T, more, memory);
        struct simulated simulated;
        double forward[2] = {0}, backward[2] = {0}, kept[2] = {0}, flop[2] = {0}, source = 2.0 * S * h;
        int holders[2] = {0};

        for (int p = 0; p < 2; p++) {
            int n = p ? 2 : 1;

            simulated_load(&simulated, "%sbatch: {micro_batches: 2}\nstrategy: {pipeline: %d, data: %d}\n", text, n, 8 / n);
            for (int s = 0; s < n; s++) {
                const struct stage *stage = &stages_of(&simulated)[s];
                const struct stage_times *times = &simulated_workload(&simulated)->classes->times[s];

                forward[p] += times->work[FORWARD].seconds;
                backward[p] += times->work[BACKWARD].seconds;
                flop[p] += stage->work[FORWARD].flop + stage->work[BACKWARD].flop;
                kept[p] += *memory && strstr(memory, "full") ? stage->checkpoint : stage->activation;
                holders[p] += stage->slices[0].layer->source > 0 || stage->slices[1].layer->source > 0;
            }
            simulated_release(&simulated);
        }
        expect_near("forward", forward[1], forward[0], text);
        expect_near("backward", backward[1], backward[0], text);
        expect_near("FLOP", flop[1], flop[0], text);
        expect_near("kept", kept[1] - kept[0], (holders[1] - holders[0]) * source, text);
        assert_true(holders[0] == 1);
        free(text);
    }
}

/* On nodes of equal speed a model with the same tokens on both sides takes longer than its decoder alone, and a decoder of twice as
 * many blocks longer than either: cross attention is less than a block. */
static void between(void **state)
{
    static const char *const models[] = {"layers: 8", "layers: 8, encoder: {layers: 8, sequence: 512}", "layers: 24"};
    double seconds[3];

    (void)state;
    for (int k = 0; k < 3; k++) {
        struct simulated simulated;

        run_text(&simulated, "model: {transformer: {hidden: 1024, heads: 16, sequence: 512, vocabulary: 32000, dropout: 0, %s}}\n" CLUSTER
                 "batch: {global: 64, micro: 8}\nstrategy: {data: 8}\nsimulation: {engine: fast}\n", models[k], "");
        seconds[k] = simulated.run.metrics.iteration_time;
        simulated_release(&simulated);
    }
    assert_true(seconds[0] < seconds[1] && seconds[1] < seconds[2]);
}

static const struct { const char *strategy, *message; } bad[] = {
    {"strategy: {context: 2}", "cross attention has no exchange for it; expected 1"},
    {"strategy: {pipeline: 2, schedule: terapipe, slices: 4}", "the tokens of an encoder see those after them"},
    {"batch: {documents: 16}", "samples of an encoder-decoder are not packed"},
    {"memory: {recompute: operators}", "mixers, encoder and LoRA"},
    {"strategy: {tensor: 8}", "does not divide the 4 attention heads"},
    {"strategy: {pipeline: 4, split: [1, 1, 1, 4]}", "7 layers in all, the model has 4"},
};

static void wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct scenario scenario;
        struct error err = {0};
        struct workload workload;
        char *text = NULL;
        bool found = false;

        assert_true(asprintf(&text, "model: {transformer: {layers: 2, hidden: 64, heads: 4, sequence: 64, vocabulary: 100, encoder: {layers: 2, "
                             "sequence: 64}}}\ncluster: {platform: dgx-a100, nodes: 1}\n%s%s\n",
                             strstr(bad[i].strategy, "batch") ? "" : "batch: {global: 64}\n", bad[i].strategy) >= 0);
        if (load_text(text, &scenario, &err) == 0) {
            assert_int_not_equal(workload_build(&workload, &scenario, &err), 0);
            workload_release(&workload);
        }
        for (int k = 0; k < err.count; k++)
            found |= strstr(err.messages[k].text, bad[i].message) != NULL;
        if (!found)
            fail_msg("%s: %s", bad[i].strategy, err.count ? err.messages[0].text : "no error");
        scenario_release(&scenario);
        error_release(&err);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boundaries), cmocka_unit_test(cuts), cmocka_unit_test(between), cmocka_unit_test(wrong)};

    return cmocka_run_group_tests_name("two_sides", tests, NULL, NULL);
}
