/* Published times of kernels between products, as PyTorch runs them one by one: Transformers' RMSNorm and rotation, and
 * Megatron Core's cross-entropy (linkedin/Liger-Kernel, benchmark/data, medians in ms; BSD-2). */
#include "simulated.h"

/* Seconds of all kernels of that name in the model's layer. */
static double seconds(const struct scenario *scenario, int layer, const char *name, enum phase phase)
{
    struct shard shard = {.micro = scenario->batch.micro,
                          .tensor = 1,
                          .dtype = DTYPE_BF16,
                          .cross_entropy = (enum cross_entropy)scenario->memory.cross_entropy};
    struct arena arena = {0};
    struct error err = {0};
    const struct layer *layers;
    size_t count;
    double sum = 0;

    assert_int_equal(model_layers(&arena, &scenario->model, &shard, (struct loc){0}, &layers, &count, &err), 0);
    for (size_t i = 0; i < layers[layer].nkernels; i++)
        if (!strcmp(layers[layer].kernels[i].name, name) && layers[layer].kernels[i].phase == phase)
            sum += costs_kernel(&scenario->kernels[0], &layers[layer].kernels[i]).seconds;
    arena_release(&arena);
    return sum;
}

static void test_published_kernels(void **state)
{
    static const struct {
        const char *cluster, *model, *software, *kernel;
        int micro, layer;
        double forward, backward; /* ms; 0: the benchmark's weights are in fp32 there */
    } cases[] = {
        {"dgx-a100", "hidden: 32768, heads: 256, sequence: 2048, vocabulary: 128", "fused_kernels: false",
         "attention-norm", 1, 1, 1.933, 0},
        {"dgx-a100", "hidden: 8192, heads: 32, kv_heads: 8, sequence: 8192, vocabulary: 128", "rotary: halves",
         "rotary", 1, 1, 1.993, 2.374},
        {"dgx-h100", "hidden: 64, heads: 1, sequence: 2048, vocabulary: 131072", "cross_entropy: fp32", "cross-entropy",
         4, 2, 15.82, 5.43},
        {"dgx-h100", "hidden: 64, heads: 1, sequence: 2048, vocabulary: 131072", "cross_entropy: compiled",
         "cross-entropy", 4, 2, 11.80, 6.14},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 1, %s, positions: 0, norm: rmsnorm, dropout: 0}}\n"
                 "cluster: {platform: %s, nodes: 1}\nbatch: {micro: %d, global: %d}\nstrategy: {data: 1}\n"
                 "software: {autocast: false, %s}\nmemory: {precision: mixed-bf16, enforce: false}\nsimulation: {engine: ideal}\n",
                 cases[i].model, cases[i].cluster, cases[i].micro, cases[i].micro, cases[i].software);
        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
            double measured = 1e-3 * (phase == PHASE_FORWARD ? cases[i].forward : cases[i].backward);
            double time = seconds(&simulated.scenario, cases[i].layer, cases[i].kernel, (enum phase)phase);

            if (measured > 0 && fabs(time / measured - 1) > 0.08)
                fail_msg("%s %d: %g s instead of %g", cases[i].kernel, phase, time, measured);
        }
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_kernels)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
