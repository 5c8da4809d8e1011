/* T5 3B in NeMo Megatron 22.08 on 1 to 20 DGX A100 (NVIDIA/NeMo-Framework-Launcher, README.md at 80353286, section 7.2.2: tokens a
 * second, of 512 a sample, and a speed-up of 14.68), configured as launcher_scripts/conf/training/t5/3b.yaml says: 24 blocks a side,
 * 512 tokens and 128, learned positions, GEGLU with biases, tensor 2, micro-batches of 24, 1920 samples, Adam's states divided over
 * the replicas, whose sums and gathers do not overlap; else as the BERT of the same README (scenarios/paper/nemo-bert-a100.yaml).
 * No key was fitted to these times. */
#include "simulated.h"

static const struct { int nodes; double tokens; } measured[] = {
    {1, 110769}, {2, 215579}, {4, 417644}, {5, 515100}, {10, 957506}, {20, 1626353},
};

static void scaling(void **state)
{
    double first = 0, last = 0, sum = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(measured); i++) {
        struct simulated simulated;
        double tokens, error;

        run_text(&simulated, "model: {transformer: {layers: 24, hidden: 2048, heads: 32, head_size: 64, ffn: 5120, mlp: swiglu, vocabulary: 29184, "
                 "sequence: 128, positions: 512, encoder: {layers: 24, sequence: 512}, dropout: 0.1}}\n"
                 "cluster: {platform: dgx-a100, nodes: %d}\nbatch: {global: 1920, micro: 24}\n"
                 "software: {like: nemo-2208, overlap_p2p: false, overlap_tensor: true, gradients: fp32, fused_accumulation: false}\n"
                 "strategy: {tensor: 2, data_parallel: synchronous, zero: 1, all_reduce: ring}\n"
                 "memory: {precision: mixed-bf16}\nsimulation: {engine: fast}\n", measured[i].nodes);
        tokens = 512 * simulated.run.metrics.samples_per_s;
        error = measured[i].tokens / tokens - 1;
        print_message("%2d nodes: %.0f tokens/s, measured %.0f: time %+.1f %%\n", measured[i].nodes, tokens, measured[i].tokens, 100 * error);
        assert_true(fabs(error) < 0.08);
        sum += fabs(error);
        first = i == 0 ? tokens : first;
        last = tokens;
        simulated_release(&simulated);
    }
    print_message("speed-up %.2f, measured %.2f; mean error %.1f %%\n", last / first, 1626353 / 110769., 100 * sum / COUNT(measured));
    assert_true(fabs(last / first / (1626353 / 110769.) - 1) < 0.15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scaling)};

    return cmocka_run_group_tests_name("nemo_t5", tests, NULL, NULL);
}
