/* Power of H100 nodes against MLPerf Training 4.0's power logs of Sustainable Metal Cloud
 * (mlcommons/training_results_v4.0), AC: the rows whose model dtsim has. One row was fitted; the bar of the others is 8
 * %. */
#include "simulated.h"

#include "run/energy.h"

struct node_row {
    const char *name, *text;
    double watts;
    bool fitted;
};

static const struct node_row rows[] = {
    {"Llama 2 70B LoRA, 1 node",
     "model: {transformer: {layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, sequence: 8192, vocabulary: "
     "32000, "
     "positions: 0, norm: rmsnorm, mlp: swiglu, qkv_bias: false, bias: false, tied: false, dropout: 0}}\n"
     "cluster: dgx-h100\nsoftware: {like: nemo, fp8_weights: kept, gradients: half}\nbatch: {global: 8, micro: 1}\n"
     "strategy: {tensor: 4, data: 2, sequence_parallel: true}\n"
     "memory: {precision: mixed-fp8, enforce: false, lora: {rank: 16, targets: [qkv, projection]}}\n"
     "simulation: {engine: fast}\n",
     7157, true},
    {"GPT-3 175B, 64 nodes",
     "model: {transformer: {layers: 96, hidden: 12288, heads: 96, sequence: 2048, vocabulary: 50688, dropout: 0}}\n"
     "cluster: dgx-h100\nsoftware: {like: nemo, fp8_weights: kept, gradients: half, attention: flash-2}\n"
     "batch: {global: 2304, micro: 2}\n"
     "strategy: {schedule: interleaved, chunks: 4, tensor: 4, pipeline: 8, data: 16, sequence_parallel: true, zero: "
     "1}\n"
     "memory: {precision: mixed-fp8, enforce: false}\nsimulation: {engine: fast}\n",
     6849, false},
    {"BERT-large, 1 node",
     "model: {preset: bert-large}\ncluster: dgx-h100\nsoftware: nemo\nbatch: {global: 768, micro: 48}\nstrategy: "
     "{data: 8}\n"
     "memory: {precision: mixed-fp8, enforce: false}\nsimulation: {engine: fast}\n",
     6846, false},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct simulated simulated;
        double watts;

        run_text(&simulated, "%s", rows[i].text);
        watts = simulated.run.metrics.power / energy_nodes(&simulated.scenario);
        printf("%-28s %5.0f W a node; measured %5.0f W, %+.1f %%%s\n", rows[i].name, watts, rows[i].watts,
               100 * (watts / rows[i].watts - 1), rows[i].fitted ? " (fitted)" : "");
        assert_true(fabs(watts / rows[i].watts - 1) < 0.08);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
