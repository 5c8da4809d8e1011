/* memory by format: what weights, master weights, moments and losses of every format hold, by hand. */
#include "simulated.h"

enum { HIDDEN = 64, SEQUENCE = 32, VOCABULARY = 1000, LAYERS = 12, MICRO = 2, HEADS = 8 };

/* The same model everywhere, with what the case says of its kernels, its tensor group and its memory. */
static void simulate_case(struct simulated *simulated, const char *shape, int tensor, const char *memory)
{
    run_text(simulated,
             "model: {transformer: {layers: 12, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, "
             "dropout: 0.1, %s}}\n"
             "cluster: {nodes: 1, gpus_per_node: 8, gpu: b200-180gb, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
             "batch: {micro: 2, micro_batches: 4}\nsimulation: {engine: ideal}\ncosts: {host_launch: 0}\n"
             "strategy: {data: 1, tensor: %d, sequence_parallel: %s}\nmemory: {%s}\n",
             shape, tensor, tensor > 1 ? "true" : "false", memory);
}

/* 12 h^2 + 13 h a block, the embeddings, the last norm. */
static double parameters(bool blocks_alone)
{
    const double h = HIDDEN;

    return LAYERS * (12 * h * h + 13 * h) + (blocks_alone ? 0 : (VOCABULARY + SEQUENCE) * h + 2 * h);
}

/* Bytes a parameter of optimizer states: master weights and both moments. */
static void test_states(void **state)
{
    static const struct { const char *memory; double bytes; } cases[] = {
        {"precision: mixed-bf16", 12},
        {"precision: mixed-bf16, master: remainders", 10},
        {"precision: mixed-bf16, master: half", 10},
        {"precision: mixed-bf16, master: none", 8},
        {"precision: mixed-bf16, optimizer: adam-half", 8},
        {"precision: bf16", 4},
        {"precision: bf16, optimizer: momentum", 2},
        {"precision: bf16, optimizer: sgd", 0},
        {"precision: mixed-fp16, optimizer: adam-half, master: none", 4},
        {"precision: fp32, optimizer: adam-half", 4},
        {"precision: mixed-fp8, fp8_weights: kept, master: remainders", 10},
        {"precision: mixed-fp8, fp8_weights: primary, master: half, optimizer: adam-half", 6},
    };
    double seconds[COUNT(cases)];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        simulate_case(&simulated, "fused_kernels: true", 1, cases[i].memory);
        expect_near("states", simulated.run.metrics.memory.bytes[MEMORY_OPTIMIZER],
                    cases[i].bytes * parameters(false), simulated.text);
        seconds[i] = simulated.run.metrics.seconds[ACCOUNT_UPDATE];
        simulated_release(&simulated);
    }
    /* an update of fewer bytes is faster */
    assert_true(seconds[1] < seconds[0] && seconds[3] < seconds[1] && seconds[4] < seconds[0]);
}

/* In narrow formats the blocks' weights are held twice, with their scales, in addition to bf16 or alone. A recomputed
 * forward casts its block's weights once more: then the narrow weights of one such block are held at a time. */
static void test_fp8_weights(void **state)
{
    static const struct { const char *memory; double beside;
    } cases[] = {
        {"precision: mixed-fp8, fp8_weights: cast", 2},
        {"precision: mixed-fp8, fp8_weights: cast, recompute: selective", 2},
        {"precision: mixed-fp8, fp8_weights: cast, recompute: full", 2. / LAYERS},
        {"precision: mixed-fp8, fp8_weights: cast, recompute: {mode: full, blocks: 5}", 2 * 8. / LAYERS},
        {"precision: mixed-fp8, fp8_weights: cast, recompute: operators", 2. / LAYERS},
        {"precision: mixed-fp8, fp8_weights: kept, recompute: full", 2},
        {"precision: mixed-fp8, fp8_weights: primary, recompute: full", 0},
        {"precision: mixed-fp8, fp8_weights: kept", 2},
        {"precision: mixed-fp8, fp8_weights: primary", 0},
        {"precision: mixed-fp8-block, fp8_weights: kept", 2 * (1 + 4. / 128)},
        {"precision: mixed-mxfp8, fp8_weights: kept", 2 * (1 + 1. / 32)},
        {"precision: mixed-nvfp4, fp8_weights: kept", 2 * (0.5 + 1. / 16)},
        {"precision: mixed-nvfp4, fp8_weights: primary", 2 * (0.5 + 1. / 16) - 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        simulate_case(&simulated, "fused_kernels: true", 1, cases[i].memory);
        expect_near("weights", simulated.run.metrics.memory.bytes[MEMORY_PARAMETERS],
                    2 * parameters(false) + cases[i].beside * parameters(true), simulated.text);
        simulated_release(&simulated);
    }
}

/* The output layer at the end of a single stage's forward, where most is held: on top of all activations, which count
 * what the loss keeps, what is there for a moment, with the gradient of the layer's input. Bytes a logit. Of a tensor
 * group each has a share of both. */
static void test_loss(void **state)
{
    static const struct { const char *shape, *memory; int tensor; double kept, moment; } cases[] = {
        {"fused_kernels: true", "cross_entropy: fp32", 1, 4, 2},
        {"fused_kernels: true", "cross_entropy: fp32", 2, 4, 2},
        {"fused_kernels: true", "cross_entropy: compiled", 1, 4, 6},
        {"fused_kernels: true", "cross_entropy: fused", 1, 2, 2},
        {"fused_kernels: true", "cross_entropy: plain", 1, 2, 4},
        {"fused_kernels: true", "cross_entropy: converted", 1, 4, 8},
        {"fused_kernels: false", "cross_entropy: converted", 2, 4, 12},
        {"fused_kernels: false", "cross_entropy: fp32", 1, 4, 8},
        {"fused_kernels: false", "cross_entropy: fp32", 2, 4, 12},
        {"fused_kernels: false", "cross_entropy: fused", 2, 2, 2},
    };
    const double sbh = SEQUENCE * MICRO * HIDDEN, logits = SEQUENCE * MICRO * VOCABULARY;
    const double kept = LAYERS * sbh * (34 + 5.0 * HEADS * SEQUENCE / HIDDEN) + 5 * sbh;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int tensor = cases[i].tensor;
        struct simulated simulated;
        const double *bytes = simulated.run.metrics.memory.bytes;

        simulate_case(&simulated, cases[i].shape, tensor, cases[i].memory);
        expect_near("workspace", bytes[MEMORY_WORKSPACE], (cases[i].moment * logits + 2 * sbh) / tensor,
                    simulated.text);
        if (strstr(cases[i].shape, "true"))
            expect_near("activations", bytes[MEMORY_ACTIVATIONS], (kept + cases[i].kept * logits) / tensor,
                        simulated.text);
        simulated_release(&simulated);
    }
}

/* Sequence parallelism in plain PyTorch: the gathered inputs of QKV, of the MLP and of the output layer stay whole for
 * the weights' gradients, unless gathers in pieces overlap with the products. Megatron-LM gathers them once more.
 */
static void test_gathered_inputs(void **state)
{
    const double sbh = SEQUENCE * MICRO * HIDDEN;
    double held[2][2];

    (void)state;
    for (int fused = 0; fused < 2; fused++)
        for (int overlap = 0; overlap < 2; overlap++) {
            struct simulated simulated;

            run_text(&simulated,
                     "model: {transformer: {layers: 12, hidden: 64, heads: 8, sequence: 32, vocabulary: "
                     "1000, fused_kernels: %s}}\n"
                     "cluster: {nodes: 1, gpus_per_node: 8, gpu: b200-180gb, "
                     "inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
                     "batch: {micro: 2, micro_batches: 1}\nsimulation: {engine: ideal}\n"
                     "strategy: {data: 1, tensor: 4, sequence_parallel: true, overlap_products: %s}\n",
                     fused ? "true" : "false", overlap ? "true" : "false");
            held[fused][overlap] = simulated.run.metrics.ranks[0].peak_activation;
            simulated_release(&simulated);
        }
    expect_near("plain", held[0][0] - held[0][1], (2 * LAYERS + 1) * 2 * sbh * 3 / 4, "four GPUs");
    expect_near("Megatron-LM", held[1][0], held[1][1], "four GPUs");
}

/* PyTorch counts the peak without memory that its allocator does not hold, and without memory that it cannot use. */
static void test_allocator(void **state)
{
    struct simulated simulated;
    const struct metrics *metrics = &simulated.run.metrics;

    (void)state;
    simulate_case(&simulated, "fused_kernels: true", 2, "fragmentation: 0.25, context: 1 GiB");
    expect_near("reserved", metrics->peak_reserved, metrics->peak_memory - 1073741824.0, simulated.text);
    expect_near("allocated", metrics->peak_allocated, 0.75 * metrics->peak_reserved, simulated.text);
    simulated_release(&simulated);
}

/* After an update weights are cast that it changed: with adapters none of the frozen ones. */
static void test_frozen_casts(void **state)
{
    static const char *const formats[] = {"mixed-fp8", "mixed-fp8-block", "mixed-mxfp8", "mixed-nvfp4"};

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++)
        for (int lora = 0; lora < 2; lora++) {
            double update[2];

            for (int kept = 0; kept < 2; kept++) {
                struct simulated simulated;

                run_text(&simulated, "model: {preset: llama2-7b}\ncluster: {platform: dgx-b200, nodes: 1}\nbatch: {global: 8, micro: 1}\n"
                         "memory: {precision: %s, fp8_weights: %s%s, enforce: false}\nsimulation: {engine: fast}\n", formats[i],
                         kept ? "kept" : "cast", lora ? ", lora: {rank: 16, targets: [qkv, projection]}" : "");
                update[kept] = simulated.run.metrics.seconds[ACCOUNT_UPDATE];
                simulated_release(&simulated);
            }
            if (lora ? update[1] > 1.5 * update[0] : update[1] < 1.01 * update[0])
                fail_msg("%s, %s: %g s with casts, %g s without", formats[i], lora ? "adapters" : "all weights", update[1], update[0]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states), cmocka_unit_test(test_fp8_weights),     cmocka_unit_test(test_loss),
        cmocka_unit_test(test_allocator), cmocka_unit_test(test_gathered_inputs), cmocka_unit_test(test_frozen_casts),
    };

    return cmocka_run_group_tests_name("memory_formats", tests, NULL, NULL);
}
