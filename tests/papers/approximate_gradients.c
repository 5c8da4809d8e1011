/* Memory of RoBERTa-base fine-tuned on MRPC with approximate gradients, as the authors of Few-bit Backward (arXiv
 * 2202.00441) and of randomized linear layers (arXiv 2201.13195) publish it: skolai/fewbit, README.md, batch 128, a GELU
 * of 3 bits, linear layers that keep 20 % of their input.
 *
 * Precision: fp32, as Transformers' Trainer has it without fp16 (benchmark/bench-roberta.py). Measured: PyTorch's
 * max_memory_allocated over an epoch (benchmark/README.md), so the batch with the longest pair of sentences decides, since
 * batches are padded to their longest (bench-roberta.py: no max_length). Sequence: the longest pair of GLUE's MRPC is 104
 * tokens of GPT-2's byte pairs, which RoBERTa uses, with the four that separate sentences. The head has a row a sample and
 * is left out. */
#include "simulated.h"

/* GiB of the fullest GPU. */
static double allocated(const char *memory)
{
    struct simulated simulated;

    run_text(&simulated,
             "model: {transformer: {layers: 12, hidden: 768, heads: 12, ffn: 3072, sequence: 104, vocabulary: 50265, "
             "positions: 514, token_types: 1, tied: false, final_norm: false, embedding_norm: true, causal: false, "
             "head: none, dropout: 0.1}}\n"
             "cluster: {nodes: 1, gpus_per_node: 1, gpu: v100-16gb}\nbatch: {global: 128, micro: 128}\n"
             "strategy: {data: 1}\nmemory: {precision: fp32, %s}\n"
             "software: {like: pytorch-ddp, flash_attention: false}\nsimulation: {engine: fast}\n", memory);
    double bytes = simulated.run.metrics.peak_allocated;
    simulated_release(&simulated);
    return bytes / 1073741824;
}

static void test_roberta(void **state)
{
    static const struct { const char *memory; double gib; } rows[] = {
        {"few_bit: 3", 9.75}, {"randomized_linear: 0.2", 9.20}, {"few_bit: 3, randomized_linear: 0.2", 7.60},
    };
    const double published = 11.30;
    double base = allocated("few_bit: 0");

    (void)state;
    if (!(fabs(base / published - 1) < 0.1))
        fail_msg("%.2f GiB instead of %.2f", base, published);
    for (size_t i = 0; i < COUNT(rows); i++) {
        double bytes = allocated(rows[i].memory), less = base - bytes, expected = published - rows[i].gib;

        print_message("%s: %.2f GiB, published %.2f; less by %.2f, published %.2f\n", rows[i].memory, bytes, rows[i].gib,
                      less, expected);
        if (!(fabs(less / expected - 1) < 0.1))
            fail_msg("%s saves %.2f GiB instead of %.2f", rows[i].memory, less, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_roberta)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
