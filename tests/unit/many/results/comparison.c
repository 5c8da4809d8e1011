/* comparison: what each method sends, by what it is, against the books; and the batch that fits. */
#include "results/comparison.h"
#include "simulated.h"

enum { LAYERS = 4, HIDDEN = 64, SEQUENCE = 32, VOCABULARY = 1000, MICRO = 2, M = 3 };

static const double psi = 2.0 * (VOCABULARY * HIDDEN + SEQUENCE * HIDDEN +             /* B of fp16 weights */
                                 LAYERS * (12 * HIDDEN * HIDDEN + 13 * HIDDEN) + 2 * HIDDEN);
static const double boundary = 2.0 * MICRO * SEQUENCE * HIDDEN;

static void simulate_method(struct simulated *simulated, const char *strategy, const char *more)
{
    run_text(simulated, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: %d}}\n"
             "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: %d, micro: %d}\n"
             "strategy: {%s}\n%s", LAYERS, HIDDEN, SEQUENCE, VOCABULARY, M, MICRO, strategy, more);
}

/* Rajbhandari et al. 2020, section 7; Shoeybi et al. 2019, figure 4; each with and without messages. */
static void test_payloads(void **state)
{
    const double n = 8, share = (n - 1) / n, reduced = 2 * 7.0 / 8 * boundary, ends = 2 * 1.0 / n;
    const double tied = 2 * 0.5 * 2.0 * VOCABULARY * HIDDEN;
    const struct { const char *strategy; double sent[PAYLOAD_COUNT]; } cases[] = {
        {"data: 1", {0}},
        {"data: 8", {[PAYLOAD_WEIGHT_GRADIENTS] = 2 * share * psi}},
        {"data: 8, data_parallel: synchronous, all_reduce: naive", {[PAYLOAD_WEIGHT_GRADIENTS] = 2 * share * psi}},
        {"data: 8, data_parallel: parameter-server",
         {[PAYLOAD_WEIGHTS] = share * psi, [PAYLOAD_WEIGHT_GRADIENTS] = share * psi}},
        {"data: 8, zero: 1", {[PAYLOAD_WEIGHTS] = share * psi, [PAYLOAD_WEIGHT_GRADIENTS] = share * psi}},
        {"data: 8, zero: 1, reduce_scatter: false",
         {[PAYLOAD_WEIGHTS] = share * psi, [PAYLOAD_WEIGHT_GRADIENTS] = 2 * share * psi}},
        {"data: 2, zero: 1, pipeline: 4",                    /* copies of a tied embedding are summed whole */
         {[PAYLOAD_ACTIVATIONS] = 3.0 / 4 * M * boundary, [PAYLOAD_ACTIVATION_GRADIENTS] = 3.0 / 4 * M * boundary,
          [PAYLOAD_WEIGHTS] = 0.5 * (psi + tied) / 4, [PAYLOAD_WEIGHT_GRADIENTS] = 0.5 * (psi + tied) / 4 + tied / 2}},
        {"data: 8, zero: 2", {[PAYLOAD_WEIGHTS] = share * psi, [PAYLOAD_WEIGHT_GRADIENTS] = M * share * psi}},
        {"data: 8, zero: 3", {[PAYLOAD_WEIGHTS] = 2 * M * share * psi, [PAYLOAD_WEIGHT_GRADIENTS] = M * share * psi}},
        {"data: 1, tensor: 8",
         {[PAYLOAD_ACTIVATIONS] = (2 * LAYERS + 1) * M * reduced,
          [PAYLOAD_ACTIVATION_GRADIENTS] = (2 * LAYERS + 1) * M * reduced}},
        {"data: 1, tensor: 8, sequence_parallel: true",      /* the weights' products gather their inputs once more */
         {[PAYLOAD_ACTIVATIONS] = ((2 * LAYERS + 1) * reduced + (2 * LAYERS + 1) * share * boundary) * M,
          [PAYLOAD_ACTIVATION_GRADIENTS] = (2 * LAYERS + 1) * M * reduced}},
        {"data: 1, pipeline: 4",
         {[PAYLOAD_ACTIVATIONS] = 3.0 / 4 * M * boundary, [PAYLOAD_ACTIVATION_GRADIENTS] = 3.0 / 4 * M * boundary,
          [PAYLOAD_WEIGHT_GRADIENTS] = 2 * ends * tied}},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        struct simulated simulated;
        double sum = 0;

        simulate_method(&simulated, cases[i / 2].strategy,
                        i % 2 ? "simulation: {collectives: measured}\n" : "simulation: {collectives: messages}\n");
        for (int payload = 0; payload < PAYLOAD_COUNT; payload++) {
            expect_near(payload_names[payload], simulated.run.metrics.sent[payload], cases[i / 2].sent[payload],
                        simulated.text);
            sum += simulated.run.metrics.sent[payload];
        }
        expect_near("sum", simulated.run.metrics.communication_bytes_per_gpu, sum, simulated.text);
        simulated_release(&simulated);
    }
}

/* A full recomputation sends activations. */
static void test_recomputed(void **state)
{
    struct simulated simulated;
    const double reduced = 2 * 7.0 / 8 * boundary;

    (void)state;
    simulate_method(&simulated, "data: 1, tensor: 8", "memory: {recompute: full}\n");
    expect_near("activations", simulated.run.metrics.sent[PAYLOAD_ACTIVATIONS], (4 * LAYERS + 1) * M * reduced,
                simulated.text);
    expect_near("gradients", simulated.run.metrics.sent[PAYLOAD_ACTIVATION_GRADIENTS], (2 * LAYERS + 1) * M * reduced,
                simulated.text);
    simulated_release(&simulated);
}

static double peak_of(const char *format, int micro)
{
    struct simulated simulated;
    struct error err = {0};
    double peak;

    memset(&simulated, 0, sizeof simulated);
    assert_true(asprintf(&simulated.text, "%s\nbatch: {micro_batches: 2, micro: %d}\n", format, micro) >= 0);
    assert_int_equal(load_text(simulated.text, &simulated.scenario, &err), 0);
    assert_int_equal(simulate(simulated_workload(&simulated), simulate_options_of(&simulated.scenario), &simulated.run,
                              &err), 0);
    peak = simulated.run.metrics.peak_memory;
    simulated_release(&simulated);
    return peak;
}

/* The largest micro-batch fits, and one sample more does not. */
static void test_largest_micro_batch(void **state)
{
    static const char *const methods[] = {
        "strategy: {data: 1}", "strategy: {data: 8, zero: 3}", "strategy: {pipeline: 4, data: 1}",
        "strategy: {tensor: 8}\nmemory: {recompute: full}",
    };
    struct comparison baseline;
    int grown = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(methods); i++) {
        struct simulated simulated;
        struct comparison row;
        struct error err = {0};
        char *text;
        int micro;
        double limit;

        assert_true(asprintf(&text, "model: {preset: gpt2-355m}\ncluster: {platform: dgx-a100, nodes: 1}\n%s",
                             methods[i]) >= 0);
        simulated_load(&simulated, "%s\nbatch: {micro_batches: 2, micro: 1}\n", text);
        limit = memory_limit(&simulated.scenario);
        assert_int_equal(comparison_init(&row, "row", &simulated.scenario, i ? &baseline : NULL, &err), 0);
        micro = row.micro;
        assert_true(micro > 1);
        assert_true(peak_of(text, micro) <= limit && peak_of(text, micro + 1) > limit);
        if (i == 0)
            baseline = row;
        else
            expect_near("growth", row.batch_growth, (double)micro / baseline.micro, text);
        grown += row.batch_growth > 1;
        if (i)
            comparison_release(&row);
        simulated_release(&simulated);
        free(text);
    }
    assert_int_equal(grown, COUNT(methods) - 1);
    comparison_release(&baseline);
}

/* A baseline that does not fit is compared all the same: none of its batches fits. */
static void test_does_not_fit(void **state)
{
    struct simulated simulated;
    struct comparison row;
    struct error err = {0};

    (void)state;
    simulated_load(&simulated, "model: {preset: llama2-7b}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                   "batch: {micro_batches: 1}\nstrategy: {data: 1}\n");
    assert_int_equal(comparison_init(&row, "row", &simulated.scenario, NULL, &err), 0);
    assert_int_equal(row.micro, 0);
    assert_true(row.time > 0 && row.peak_memory > 8e10);
    comparison_release(&row);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payloads),
        cmocka_unit_test(test_recomputed),
        cmocka_unit_test(test_largest_micro_batch),
        cmocka_unit_test(test_does_not_fit),
    };

    return cmocka_run_group_tests_name("comparison", tests, NULL, NULL);
}
