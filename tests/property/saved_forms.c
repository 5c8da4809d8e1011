/* saved_forms: few_bit, randomized_linear and activations_bits go with pipelines, tensor groups, ZeRO, recomputation and
 * offloading, or are refused at their line. */
#include "simulated.h"

#define MODEL "model: {preset: gpt2-355m}\nbatch: {micro: 4, micro_batches: 4}\nsoftware: none\n"

#define ON "cluster: {platform: dgx-a100, nodes: 1}\n"

/* MODEL with these keys of `memory`, and what stands behind them: B of activations on the first pipeline rank at its peak, B
 * of the fullest GPU, s of an iteration. */
struct needs { double activations, peak, seconds; };

static struct needs needs_of(const char *form, const char *more)
{
    struct simulated simulated;
    struct needs needs;

    run_text(&simulated, MODEL ON "simulation: {engine: fast}\nmemory: {%s%s\n", form, more);
    needs.activations = simulated.run.metrics.ranks[0].memory.bytes[MEMORY_ACTIVATIONS];
    needs.peak = simulated.run.metrics.peak_memory;
    needs.seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return needs;
}

/* B that a block keeps less for one micro-batch in a tensor group: of 4 x 1024 tokens, hidden 1024, an MLP of 4096, 16
 * heads, in fp16, without dropout's masks, which stay; `core`: whether the core of attention is kept. */
static double few_bits(double tensor, bool core)
{
    (void)core;
    return 4096. * 4096 / tensor * (2 - 3. / 8);
}

static double projections(double tensor, bool core)
{
    double inputs = 2 * 1024 + (1024 + 4096) / tensor;

    (void)core;
    return 2 * inputs * (4096 - floor(0.1 * 4096));
}

static double quantized(double tensor, bool core)
{
    double values = 4096 * (4 * 1024 + (4 * 1024 + 2 * 4096) / tensor), scores = 4 * 1024. * 1024 * 16 / tensor;

    return (values + core * 2 * scores) * (2 - (4 / 8. + 1 / 64.));
}

static const struct {
    const char *form;
    double (*saved)(double tensor, bool core);
    bool copies;                         /* what a block keeps of its input is no part of a checkpoint */
} forms[] = {
    {"few_bit: 3", few_bits, false}, {"randomized_linear: 0.1", projections, false},
    {"activations_bits: 4", quantized, true},
};

static void test_together(void **state)
{
    (void)state;
    /* the rest of `memory`, and what stands behind it; blocks whose tensors the first rank keeps at its peak, of all
     * micro-batches that are under way; its tensor group */
    static const struct { const char *more; double blocks, tensor; bool core, segment; } cases[] = {
        {"}\nstrategy: {data: 1}", 24, 1, true, false},
        {"}\nstrategy: {data: 2, zero: 3}", 24, 1, true, false},
        {"}\nstrategy: {tensor: 2}", 24, 2, true, false},
        {"}\nstrategy: {pipeline: 4, schedule: gpipe}", 6 * 4, 1, true, false},
        {", recompute: selective}\nstrategy: {data: 1}", 24, 1, false, false},
        {", recompute: full}\nstrategy: {pipeline: 4}", 1, 1, true, true},     /* of the recomputed one */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct needs before = needs_of("few_bit: 0", cases[i].more);

        for (size_t k = 0; k < COUNT(forms); k++) {
            struct needs after = needs_of(forms[k].form, cases[i].more);
            double less = before.activations - after.activations;
            double expected = cases[i].blocks * forms[k].saved(cases[i].tensor, cases[i].core);

            if (cases[i].segment && forms[k].copies)
                expected -= 2. * 4096 * 1024;
            if (!(fabs(less / expected - 1) <= 1e-9))
                fail_msg("%g B less instead of %g with %s%s", less, expected, forms[k].form, cases[i].more);
            assert_true(after.peak <= before.peak && after.seconds > before.seconds);
        }
    }
}

/* Who plans for a limit recomputes or moves less, and never needs more. */
static void test_plans(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(forms); k++) {
        assert_true(needs_of(forms[k].form, ", recompute: optimal, limit: 12 GB}\nstrategy: {data: 1}").peak <=
                    12e9);
        assert_true(needs_of(forms[k].form, ", offload: activations, limit: 12 GB}\nstrategy: {data: 1}").peak <=
                    12e9);
        assert_true(needs_of(forms[k].form, ", offload: tensors, limit: 11 GB}\nstrategy: {data: 1}").peak <= 11e9);
        assert_true(needs_of(forms[k].form, ", recompute: optimal, offload: tensors, limit: 6 GB}\n"
                                            "strategy: {tensor: 2, data: 2, zero: 3}").peak <= 6e9);
    }
}

static void expect_refused(const char *text, const char *message)
{
    struct scenario scenario;
    struct error err = {0};

    assert_int_equal(load_text(text, &scenario, &err), -1);
    if (!strstr(err.messages[0].text, message))
        fail_msg("'%s' instead of '%s'", err.messages[0].text, message);
    scenario_release(&scenario);
    error_release(&err);
}

#define ONE ON "software: none\n"
#define STAGES ONE "batch: {micro_batches: 1}\nmodel: {stages: {forward: 1 s, backward: 1 s}}\n"

static void test_refused(void **state)
{
    (void)state;
    static const struct { const char *keys, *message; } each[] = {
        {"activations: rajbhandari", "does not go with 'activations: rajbhandari'"},
        {"recompute: operators", "does not go with 'recompute: operators'"},
    };
    static const char *const names[] = {"few_bit", "randomized_linear", "activations_bits"};

    for (size_t k = 0; k < COUNT(forms); k++) {
        char text[600], message[200];

        for (size_t i = 0; i < COUNT(each); i++) {
            snprintf(text, sizeof text, ON MODEL "memory: {%s, %s}\n", forms[k].form, each[i].keys);
            snprintf(message, sizeof message, "memory: %s: %s", names[k], each[i].message);
            expect_refused(text, message);
        }
        snprintf(text, sizeof text, STAGES "memory: {%s}\n", forms[k].form);
        snprintf(message, sizeof message, "memory: %s: needs a transformer", names[k]);
        expect_refused(text, message);
    }
    expect_refused(ON MODEL "memory: {few_bit: 9}\n", "0 to 8");
    expect_refused(ON MODEL "memory: {few_bit: 3, recompute: {mode: modules, modules: [activation]}}\n",
                   "memory: few_bit: does not go with recomputation of the activation function");
    expect_refused(ONE "batch: {micro_batches: 1}\nmodel: {preset: llama3-8b}\nmemory: {few_bit: 3}\n",
                   "memory: few_bit: saves nothing of a squared ReLU or an xIELU, or of a fused SwiGLU");
    expect_refused(ON MODEL "memory: {randomized_linear: 1.5}\n", "0 to 1");
    expect_refused(ON MODEL "memory: {randomized_linear: 0.1, lora: {rank: 8}}\n",
                   "memory: randomized_linear: does not go with lora");
    expect_refused(ON MODEL "memory: {randomized_linear: 0.1, recompute: modules}\n",
                   "memory: randomized_linear: does not go with 'recompute: modules'");
    expect_refused(ON MODEL "memory: {randomized_linear: 0.1}\nstrategy: {tensor: 2, sequence_parallel: true}\n",
                   "memory: randomized_linear: does not go with sequence_parallel");
    expect_refused(ONE "batch: {micro_batches: 1}\nmodel: {preset: mixtral-8x7b}\nmemory: {randomized_linear: 0.1}\n",
                   "memory: randomized_linear: does not know how rows of experts");
    expect_refused("cluster: {platform: dgx-h100, nodes: 1}\n" MODEL "memory: {randomized_linear: 0.1, precision: mixed-fp8}\n",
                   "memory: randomized_linear: does not go with products in 8 or 4 bits");
    expect_refused(ON MODEL "memory: {activations_bits: 1}\n", "memory: activations_bits: 1 leaves two values");
    expect_refused(ON MODEL "memory: {activations_bits: 4, recompute: modules}\n",
                   "memory: activations_bits: does not go with 'recompute: modules'");
    expect_refused("cluster: {platform: dgx-h100, nodes: 1}\n" MODEL "memory: {activations_bits: 4, precision: mixed-fp8}\n",
                   "memory: activations_bits: does not go with products in 8 or 4 bits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together), cmocka_unit_test(test_plans), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
