/* memory: what papers print of it, closed forms of every kind, and advice that helps. */
#include "simulated.h"

static const double GB = 1e9, GiB = 1073741824.0;

static double model_states(const struct memory *memory)
{
    return memory->bytes[MEMORY_PARAMETERS] + memory->bytes[MEMORY_GRADIENTS] + memory->bytes[MEMORY_OPTIMIZER];
}

static const double *peak_of(const struct simulated *simulated, int rank)
{
    return simulated->run.metrics.ranks[rank].memory.bytes;
}

static void assert_within(const char *what, double actual, double expected, double share)
{
    if (!(fabs(actual - expected) <= share * expected))
        fail_msg("%s: %.6g instead of %.6g", what, actual, expected);
}

/* Rajbhandari et al. 2020, sections 3.1 and 3.2, of GPT-2 with 1.5 billion parameters: 24 GB of states, 3 GB of them
 * weights, a fused fp32 buffer of 6 GB; activations of 32 samples of 1K tokens 60 GB, and about 8 GB with checkpoints
 * for a third more compute (eight of them, near the square root of 48 layers). */
static void test_zero_paper(void **state)
{
    static const struct { const char *recompute; double activations, compute; } cases[] = {
        {"none", 60, 1}, {"{mode: full, every: 6}", 8, 4.0 / 3},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        const struct metrics *metrics = &simulated.run.metrics;

        run_text(&simulated, "model: {preset: gpt2-1.5b}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {global: 32, micro: 32}\nstrategy: {data: 1}\nsimulation: {engine: ideal}\n"
                 "memory: {recompute: %s, activations: rajbhandari, fused_gradients: true, enforce: false}\n",
                 cases[i].recompute);
        assert_within("states", model_states(&metrics->memory), 24 * GB, 0.05);
        assert_within("weights", metrics->memory.bytes[MEMORY_PARAMETERS], 3 * GB, 0.05);
        assert_within("fused buffer", metrics->memory.bytes[MEMORY_BUFFERS], 6 * GB, 0.05);
        assert_within("activations", metrics->ranks[0].peak_activation, cases[i].activations * GB, 0.05);
        assert_within("compute", metrics->hardware_flop / metrics->model_flop, cases[i].compute, 0.02);
        simulated_release(&simulated);
    }
}

/* The same model's checkpoints at each block, by both formulas: which buffers stand where the paper has about 8 GB.
 * - rajbhandari: the inputs of all 48 blocks, 2 s b h each, and the activations of one, 24 s b h: 6.3 GB.
 * - korthikanti: a block's are 34 s b h + 5 a s^2 b, less its input; but when the loss begins there are, besides the
 *   checkpoints, logits in fp32, 4 s b v, the inputs of the last norm and of the output layer, and the mask of the
 *   embedding's dropout: 11.9 GB. */
static void test_checkpoints(void **state)
{
    const double s = 1024, b = 32, h = 1600, a = 25, v = 50257, checkpoints = 48 * 2 * s * b * h;
    const double block = 34 * s * b * h + 5 * a * s * s * b - 2 * s * b * h;
    const double loss = 4 * s * b * v + 2 * 2 * s * b * h + s * b * h;
    const struct { const char *formula; double bytes, about; } cases[] = {
        {"rajbhandari", checkpoints + 24 * s * b * h, 6.3}, {"korthikanti", checkpoints + fmax(block, loss), 11.9},
    };

    (void)state;
    assert_true(block < loss);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {preset: gpt2-1.5b}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {global: 32, micro: 32}\nstrategy: {data: 1}\nsimulation: {engine: ideal}\n"
                 "software: none\nmemory: {recompute: full, activations: %s, enforce: false}\n", cases[i].formula);
        assert_within("activations", simulated.run.metrics.ranks[0].peak_activation, cases[i].bytes, 1e-9);
        assert_within("about", cases[i].bytes, cases[i].about * GB, 0.01);
        simulated_release(&simulated);
    }
}

/* Korthikanti et al. 2022, figure 1: GiB of parameters and optimizer states with gradients added up in fp32, which are
 * 18 bytes for each of the 12 h^2 parameters a layer; figure 7: percent of the activations that tensor parallelism
 * alone leaves (as read off the plot). */
static void test_korthikanti(void **state)
{
    static const struct {
        int layers, hidden, heads, micro, pipeline;
        double states, sequence, selective, both, full;
    } cases[] = {
        {48, 6144, 64, 4, 1, 45.5625, 66.84, 49.42, 16.18, 7.64},
        {96, 12288, 96, 1, 8, 45.5625, 62.04, 56.53, 18.49, 8.71},
        {105, 20480, 128, 1, 35, 31.640625, 58.31, 62.04, 20.27, 9.42},
        {128, 25600, 160, 1, 64, 32.958984375, 58.31, 62.04, 20.27, 9.42},
    };
    static const char *const modes[] = {"none", "none", "selective", "selective", "full"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const double percent[] = {100, cases[i].sequence, cases[i].selective, cases[i].both, cases[i].full};
        double h = cases[i].hidden, kept[5];

        for (int k = 0; k < 5; k++) {
            struct simulated simulated;
            struct memory memory;

            simulated_load(&simulated, "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: 2048, "
                           "vocabulary: 51200, dropout: 0.1, head: none}}\ncluster: {platform: dgx-a100, nodes: 64}\n"
                           "batch: {micro: %d, micro_batches: 1}\nmemory: {gradients: fp32, recompute: %s}\n"
                           "strategy: {tensor: 8, pipeline: %d, data: 1, sequence_parallel: %s}\n",
                           cases[i].layers, cases[i].hidden, cases[i].heads, cases[i].micro, modes[k],
                           cases[i].pipeline, k % 2 ? "true" : "false");
            const struct stage *stages = simulated_workload(&simulated)->stages;
            /* the last stage, whose final norm keeps its input too */
            const struct stage *stage = &stages[cases[i].pipeline - 1];
            double norm = 2.0 * 2048 * cases[i].micro * h / (k % 2 ? 8 : 1), mask = norm / 2;
            kept[k] = (k == 4 ? stage->checkpoint : stage->activation) - norm - (cases[i].pipeline == 1 ? mask : 0);
            memory = memory_states(&simulated.scenario, stages, cases[i].pipeline - 1);
            expect_near("bytes a parameter", model_states(&memory) / stage->parameters, 18, simulated.text);
            expect_near("states", 18 * 12 * h * h * cases[i].layers / cases[i].pipeline / 8, cases[i].states * GiB,
                        simulated.text);
            simulated_release(&simulated);
        }
        for (int k = 0; k < 5; k++)
            if (fabs(100 * kept[k] / kept[0] - percent[k]) > 0.15)
                fail_msg("%d layers, %d: %g %% instead of %g %%", cases[i].layers, k, 100 * kept[k] / kept[0],
                         percent[k]);
    }
}

/* Smith et al. 2022 (arXiv 2201.11990), section 2: 20 bytes a parameter, weights 2 + 4, gradients 2 + 4, Adam 4 + 4. */
static void test_converted(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 1; zero++) {
        struct simulated simulated;
        struct memory memory;

        run_text(&simulated, "model: {transformer: {layers: 4, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000}}\n"
                 "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro: 2, micro_batches: 4}\n"
                 "strategy: {data: 4, zero: %d}\nmemory: {precision: mixed-bf16, gradients: converted}\n", zero);
        memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
        expect_near("bytes a parameter", model_states(&memory) / simulated.workload.stages[0].parameters,
                    zero ? 2 + 2 + 4 + 12 / 4.0 : 20, simulated.text);
        simulated_release(&simulated);
    }
}

enum { LAYERS = 12, HIDDEN = 64, HEADS = 8, SEQUENCE = 32, MICRO = 2, VOCABULARY = 1000 };
static const char little[] =
    "model: {transformer: {layers: 12, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, dropout: 0.1}}\n"
    "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
    "batch: {micro: 2, micro_batches: 4}\nsimulation: {engine: ideal}\n";

/* Of a block: four matrices, whose small tensors keep 32 bits, and nine vectors of 64 (7), 192 and 256. */
static void test_optimizers(void **state)
{
    const double h = HIDDEN, v = VOCABULARY, s = SEQUENCE, b = 13 * h;       /* vectors of a block: 13 h */
    const double large = LAYERS * 12 * h * h + v * h, small = LAYERS * b + s * h + 2 * h;
    const double rows = LAYERS * (4 * h + 2 * h + 5 * h + 5 * h) + (v + h) + (s + h) + LAYERS * b + 2 * h;
    const struct { const char *name; double bytes; } cases[] = {
        {"adam", 8 * (large + small)}, {"lamb", 8 * (large + small)}, {"momentum", 4 * (large + small)}, {"sgd", 0},
        {"adafactor", 4 * rows}, {"adafactor-momentum", 4 * rows + 4 * (large + small)},
        {"adam-8bit", 2 * (1 + 4.0 / 2048) * large + 8 * small},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int mixed = 0; mixed < 2; mixed++) {
            struct simulated simulated;

            run_text(&simulated, "%smemory: {optimizer: %s, precision: %s}\nstrategy: {data: 1}\n", little,
                     cases[i].name, mixed ? "mixed-bf16" : "fp32");
            expect_near("states", peak_of(&simulated, 0)[MEMORY_OPTIMIZER],
                        cases[i].bytes + (mixed ? 4 * (large + small) : 0), simulated.text);
            expect_near("gradients", peak_of(&simulated, 0)[MEMORY_GRADIENTS], 4 * (large + small),
                        simulated.text);
            simulated_release(&simulated);
        }
}

/* Segments of k blocks: the inputs of all segments up to one, and all else of that one's activations. The stage before
 * the last of 1F1B holds two micro-batches' inputs; its 6 blocks are recomputed once, whatever k is. */
static void test_every(void **state)
{
    const double sbh = SEQUENCE * MICRO * HIDDEN, whole = sbh * (34 + 5.0 * HEADS * SEQUENCE / HIDDEN);
    enum { BLOCKS = LAYERS / 2 };
    double flop = 0;

    (void)state;
    for (int k = 1; k <= BLOCKS + 1; k++) {
        double held = 0, inputs = 0;
        struct simulated simulated;

        run_text(&simulated, "%smemory: {recompute: {mode: full, every: %d}}\nstrategy: {pipeline: 2, data: 1}\n",
                 little, k);
        for (int block = 0; block < BLOCKS; block += k) {
            inputs += 2 * sbh;
            held = fmax(held, inputs + (block + k < BLOCKS ? k : BLOCKS - block) * whole - 2 * sbh);
        }
        expect_near("activations", simulated.run.metrics.ranks[0].peak_activation, 2 * sbh + inputs + held,
                    simulated.text);
        if (k > 1)
            expect_near("flop", simulated.run.metrics.hardware_flop, flop, simulated.text);
        flop = simulated.run.metrics.hardware_flop;
        simulated_release(&simulated);
    }
}

/* With recomputation block by block the peak is in the last block's backward: the blocks' inputs, the last block's
 * other activations, and the gradients along its residual and on both sides of the GELU (as many as of the softmax). A
 * training loop may also hold the logits. A fused loss keeps them as they are; another one adds a softmax in fp32 that
 * becomes the gradient, and the gradient in half precision; or the softmax's logarithm and two gradients. */
static void test_logits(void **state)
{
    static const struct { const char *loss; int most; } cases[] = {{"fused", 2}, {"fp32", 1 + 3}, {"plain", 1 + 3}};
    const double sbh = SEQUENCE * MICRO * HIDDEN, logits = 2 * SEQUENCE * MICRO * VOCABULARY;
    const double blocks = LAYERS * 2 * sbh + sbh + sbh * (32 + 5.0 * HEADS * SEQUENCE / HIDDEN) + 18 * sbh;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double loss = LAYERS * 2 * sbh + 5 * sbh + cases[i].most * logits + 2 * sbh;
        struct simulated simulated;

        run_text(&simulated, "%smemory: {recompute: full, logits: held, cross_entropy: %s}\nstrategy: {data: 1}\n",
                 little, cases[i].loss);
        expect_near("held", peak_of(&simulated, 0)[MEMORY_ACTIVATIONS] + peak_of(&simulated, 0)[MEMORY_WORKSPACE],
                    fmax(blocks + logits, loss), simulated.text);
        simulated_release(&simulated);
    }
}

/* The table over time begins with the memory that is always held, has the peak as its largest value, and ends as it
 * began. */
static void test_over_time(void **state)
{
    static const char *const options[] = {
        "schedule: 1f1b", "schedule: gpipe", "schedule: zb-h1", "schedule: interleaved, chunks: 2", "schedule: varuna",
        "schedule: chimera", "schedule: 1f1b, zero: 3",
    };
    static const char *const recompute[] = {"none", "selective", "full"};

    (void)state;
    for (size_t i = 0; i < COUNT(options); i++)
        for (size_t k = 0; k < COUNT(recompute); k++) {
            struct simulated simulated;
            char *text = NULL;
            size_t size;
            FILE *out = open_memstream(&text, &size);
            static const char header[] = "rank\tt\tkind\tbytes\treplicas\n";
            double held[8][MEMORY_KIND_COUNT] = {{0}}, first[8], last[8], most[8] = {0};

            run_text(&simulated, "%smemory: {recompute: %s}\nstrategy: {pipeline: 2, data: 2, %s}\n", little,
                     recompute[k], options[i]);
            memory_write(&simulated.run, out);
            fclose(out);
            assert_memory_equal(text, header, strlen(header));
            for (char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
                int rank, kind = 0;
                char name[32];
                double bytes, at, sum = 0;

                assert_int_equal(sscanf(line, "%d %lf %31s %lf", &rank, &at, name, &bytes), 4);
                assert_true(rank < simulated.run.metrics.nranks && rank < 8);
                while (strcmp(memory_kind_names[kind], name))
                    kind++;
                held[rank][kind] = bytes;
                for (kind = 0; kind < MEMORY_KIND_COUNT; kind++)
                    sum += held[rank][kind];
                if (at == 0 && held[rank][MEMORY_ACTIVATIONS] == 0 && held[rank][MEMORY_WORKSPACE] == 0)
                    first[rank] = sum;
                most[rank] = fmax(most[rank], sum);
                last[rank] = sum;
            }
            for (int r = 0; r < simulated.run.metrics.nranks; r++) {
                expect_near("peak", most[r], simulated.run.metrics.ranks[r].peak_memory, simulated.text);
                expect_near("end", last[r], first[r], simulated.text);
            }
            free(text);
            simulated_release(&simulated);
        }
}

/* A share f of the allocator's memory is lost; the rest is used. The context is not in the allocator's memory. */
static void test_allowances(void **state)
{
    static const struct { const char *keys; double lost, context; } cases[] = {
        {"fragmentation: 0", 0, 1024 + 544 + 688}, {"fragmentation: 0.3", 0.3, 1024 + 544 + 688},
        {"enforce: true", 0.055, 1024 + 544 + 688}, {"context: 100 MiB, fragmentation: 0.15", 0.15, 100},
        {"context: 0 B", 0.055, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        const double *held;
        double allocated;

        run_text(&simulated, "%smemory: {%s}\nstrategy: {pipeline: 2, data: 4}\n", little, cases[i].keys);
        held = peak_of(&simulated, 1);
        expect_near("context", held[MEMORY_CONTEXT], cases[i].context * 1048576, simulated.text);
        allocated = simulated.run.metrics.ranks[1].peak_memory - held[MEMORY_CONTEXT];
        expect_near("lost", held[MEMORY_FRAGMENTATION], cases[i].lost * allocated, simulated.text);
        simulated_release(&simulated);
    }
}

/* Bytes that communication holds in addition to the states. */
static void test_buffers(void **state)
{
    static const struct { const char *strategy, *memory; double parameters, bytes; } cases[] = {
        {"data: 8", "bucket_copies: true", 2, 0},          {"data: 1", "bucket_copies: true", 0, 0},
        {"data: 8", "gradients: fp32, bucket_copies: true", 4, 0},
        {"data: 8", "fused_gradients: true", 4, 0},        {"data: 4, zero: 1", "fused_gradients: true", 1, 0},
        {"data: 8, zero: 2, bucket: 3 KiB, first_bucket: 1 KiB", "precision: fp32", 0, 3072},
        {"data: 8, zero: 2, data_parallel: synchronous", "precision: fp32", 4, 0},
        {"data: 4, zero: 1, bucket: 3 KiB, first_bucket: 1 KiB", "flat_gradients: true", 0.5, 3072},
        {"data: 1", "flat_gradients: true, fused_gradients: true", 6, 0},
        {"data: 4, data_parallel: parameter-server", "precision: fp32", 4, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "%smemory: {%s}\nstrategy: {%s}\n", little, cases[i].memory, cases[i].strategy);
        expect_near("buffers", peak_of(&simulated, 0)[MEMORY_BUFFERS],
                    cases[i].parameters * simulated.workload.stages[0].parameters + cases[i].bytes, simulated.text);
        simulated_release(&simulated);
    }
}

/* Hu et al. 2021: rank x (in + out) parameters an adapted product; only they have gradients and states. The gradients
 * of frozen weights are not computed: of three times the forward, one is left out but for the attention core. */
static void test_lora(void **state)
{
    static const struct { const char *targets; double widths; } cases[] = {     /* in + out, in hidden */
        {"[qkv]", 4}, {"[projection]", 2}, {"[qkv, projection]", 6}, {"[mlp-up, mlp-down]", 10},
        {"[qkv, projection, mlp-up, mlp-down]", 16},
    };
    struct simulated full;

    (void)state;
    run_text(&full, "%sstrategy: {data: 2}\n", little);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const double rank = 4, trained = LAYERS * rank * HIDDEN * cases[i].widths;
        struct simulated simulated;
        const double *held;
        double samples, core;

        run_text(&simulated, "%sstrategy: {data: 2}\nmemory: {lora: {rank: 4, targets: %s}}\n", little,
                 cases[i].targets);
        held = peak_of(&simulated, 0);
        expect_near("trained", simulated.workload.stages[0].parameters, trained, simulated.text);
        expect_near("frozen", simulated.workload.stages[0].frozen, full.workload.stages[0].parameters, simulated.text);
        expect_near("weights", held[MEMORY_PARAMETERS], 2 * (trained + full.workload.stages[0].parameters),
                    simulated.text);
        expect_near("gradients", held[MEMORY_GRADIENTS], 2 * trained, simulated.text);
        expect_near("states", held[MEMORY_OPTIMIZER], 12 * trained, simulated.text);
        expect_near("traffic", simulated.run.metrics.communication_bytes_per_gpu, 2 * trained, simulated.text);
        if (i + 1 < COUNT(cases))        /* with every product adapted, the inputs of all are kept */
            assert_true(simulated.run.metrics.ranks[0].peak_activation < full.run.metrics.ranks[0].peak_activation);
        samples = simulated.run.metrics.samples;
        core = 4.0 * SEQUENCE * SEQUENCE * HIDDEN * LAYERS;
        expect_near("flop", simulated.run.metrics.model_flop,
                    (full.run.metrics.model_flop - samples * 3 * core) * 2 / 3 + samples * 3 * core +
                        samples * SEQUENCE * 6 * trained, simulated.text);
        simulated_release(&simulated);
    }
    simulated_release(&full);
}

/* LoRA composes: pipelines (with a frozen tied copy), tensor and sequence parallelism, ZeRO 3, recomputation. */
static void test_lora_composes(void **state)
{
    static const char *const strategies[] = {
        "pipeline: 2, data: 2", "tensor: 2, data: 2", "tensor: 4, sequence_parallel: true, data: 1", "data: 4, zero: 3",
        "data: 4, zero: 1",
    };
    static const char *const recompute[] = {"none", "selective", "full"};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++)
        for (size_t k = 0; k < COUNT(recompute); k++) {
            struct simulated simulated;

            run_text(&simulated, "%smemory: {recompute: %s, lora: {rank: 4}}\nstrategy: {%s}\n", little, recompute[k],
                     strategies[i]);
            assert_true(simulated.run.metrics.iteration_time > 0);
            assert_true(simulated.run.metrics.memory.bytes[MEMORY_GRADIENTS] * 20 <
                        simulated.run.metrics.memory.bytes[MEMORY_PARAMETERS]);
            simulated_release(&simulated);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_paper),  cmocka_unit_test(test_korthikanti),     cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_every),       cmocka_unit_test(test_logits),          cmocka_unit_test(test_over_time),
        cmocka_unit_test(test_allowances),  cmocka_unit_test(test_buffers),         cmocka_unit_test(test_lora),
        cmocka_unit_test(test_lora_composes), cmocka_unit_test(test_converted),     cmocka_unit_test(test_checkpoints),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
