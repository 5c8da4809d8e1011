/* PyTorch's autocast: what residuals and norms in fp32 and casts around products add, by hand on a data sheet's GPU, with casts
 * joined to other kernels and apart; and what of it software files say. */
#include "simulated.h"

struct shape { int layers, hidden, sequence, micro; bool fused_qkv; };

static double seconds_of(const struct shape *shape, const char *software)
{
    struct simulated simulated;
    double seconds;

    run_text(&simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 16, sequence: %d, vocabulary: 512, positions: 0, dropout: 0}}\n"
             "cluster: {nodes: 1, gpus_per_node: 1, gpu: h200-141gb}\nbatch: {micro: %d, micro_batches: 1}\n"
             "simulation: {engine: ideal}\nmemory: {enforce: false, precision: mixed-bf16}\n"
             "costs: {gpu: roofline, host_launch: 0 us}\nsoftware: {%s, fused_qkv: %s}\n",
             shape->layers, shape->hidden, shape->sequence, shape->micro, software, shape->fused_qkv ? "true" : "false");
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

static const struct shape shapes[] = {
    {2, 2048, 4096, 4, true}, {3, 4096, 8192, 2, false}, {6, 1024, 16384, 8, true}, {1, 8192, 2048, 4, false},
};

/* A value of the residual: two norms and two sums a layer read and write 2 bytes more each time, 32 in all, and the last norm 6. */
static void test_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        double elements = (double)shapes[i].sequence * shapes[i].micro * shapes[i].hidden;
        double more = seconds_of(&shapes[i], "like: none, flash_attention: true, fused_kernels: true, autocast: true") -
                      seconds_of(&shapes[i], "like: none, flash_attention: true, fused_kernels: true");

        assert_true(fabs(more / ((32 * shapes[i].layers + 6) * elements / (4.8e12 * 0.87)) - 1) < 0.01);
    }
}

/* Norms write fp32 too, 40 bytes in all and 10 of the last, which two linear layers or four cast, each way, and sums cast back;
 * casts compute an address a value. */
static void test_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        double elements = (double)shapes[i].sequence * shapes[i].micro * shapes[i].hidden;
        int casts = 2 * (shapes[i].fused_qkv ? 2 : 4) + 2;
        double expected = (40 * shapes[i].layers + 10) * elements / (4.8e12 * 0.87) +
                          casts * shapes[i].layers * elements / 282e9;
        double more = seconds_of(&shapes[i], "like: none, flash_attention: true, fused_kernels: false, autocast: true") -
                      seconds_of(&shapes[i], "like: none, flash_attention: true, fused_kernels: false");

        assert_true(fabs(more / expected - 1) < 0.01);
    }
}

/* Scores that are not fused: a softmax in fp32 with a cast on each side of it, both ways. */
static void test_scores(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        double scores = 16.0 * shapes[i].sequence * shapes[i].sequence * shapes[i].micro * shapes[i].layers;
        double whole = seconds_of(&shapes[i], "like: none, flash_attention: false, fused_kernels: false, autocast: true") -
                       seconds_of(&shapes[i], "like: none, flash_attention: false, fused_kernels: false");
        double rest = seconds_of(&shapes[i], "like: none, flash_attention: true, fused_kernels: false, autocast: true") -
                      seconds_of(&shapes[i], "like: none, flash_attention: true, fused_kernels: false");

        assert_true(fabs((whole - rest) / (10 * scores / (4.8e12 * 0.87) + 4 * scores / 282e9) - 1) < 0.01);
    }
}

static void test_software(void **state)
{
    static const struct { const char *software, *memory, *strategy; bool casts; } cases[] = {
        {"pytorch-ddp", "mixed-bf16", "zero: 0", true}, {"nanogpt", "mixed-bf16", "zero: 0", true},
        {"pytorch-ddp", "bf16", "zero: 0", false}, {"pytorch-ddp", "fp32", "zero: 0", false},
        {"pytorch-ddp", "mixed-bf16, lora: {rank: 8}", "zero: 0", false}, {"pytorch-fsdp", "mixed-bf16", "zero: 3", false},
        {"deepspeed", "mixed-bf16", "zero: 1", false}, {"transformers", "mixed-bf16", "zero: 0", true},
        {"transformers", "mixed-bf16", "zero: 3", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        simulated_load(&simulated,
                       "model: {transformer: {layers: 2, hidden: 256, heads: 4, sequence: 512, vocabulary: 512}}\n"
                       "cluster: {nodes: 1, gpus_per_node: 2, gpu: h200-141gb, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
                       "strategy: {data: 2, %s}\nbatch: {micro: 1, micro_batches: 2}\nmemory: {precision: %s}\nsoftware: %s\n",
                       cases[i].strategy, cases[i].memory, cases[i].software);
        assert_int_equal(simulated.scenario.model.transformer->ways.autocast, cases[i].casts);
        loaded_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined), cmocka_unit_test(test_apart), cmocka_unit_test(test_scores), cmocka_unit_test(test_software),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
