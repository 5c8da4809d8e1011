/* few_bits: memory.few_bit goes with pipelines, tensor groups, ZeRO, recomputation and offloading, or is refused at its
 * line. */
#include "simulated.h"

#define MODEL "model: {preset: gpt2-355m}\nbatch: {micro: 4, micro_batches: 4}\nsoftware: none\n"

/* B of the fullest GPU. */
static double peak(const char *more, int bits)
{
    struct simulated simulated;

    run_text(&simulated, MODEL "cluster: {platform: dgx-a100, nodes: 1}\nsimulation: {engine: fast}\n"
             "memory: {few_bit: %d%s\n", bits, more);
    double bytes = simulated.run.metrics.peak_memory;
    simulated_release(&simulated);
    return bytes;
}

static void test_together(void **state)
{
    (void)state;
    /* the rest of `memory`, and what stands behind it; B of all blocks' inputs of GELUs on the fullest GPU at its peak */
    static const struct { const char *more; double blocks, tensor; } cases[] = {
        {"}\nstrategy: {data: 1}", 24, 1},
        {"}\nstrategy: {data: 2, zero: 3}", 24, 1},
        {"}\nstrategy: {tensor: 2}", 24, 2},
        {"}\nstrategy: {pipeline: 4, schedule: gpipe}", 6 * 4, 1},       /* of four micro-batches */
        {", recompute: selective}\nstrategy: {data: 1}", 24, 1},
        {", recompute: full}\nstrategy: {data: 1}", 1, 1},               /* of the block that is computed again */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        double before = peak(cases[i].more, 0), after = peak(cases[i].more, 3);
        double inputs = cases[i].blocks * 4 * 1024 * 4096 / cases[i].tensor * (2 - 3. / 8);

        /* fragmentation takes its share of what is kept, too; a block's recomputation may not be the peak */
        if (cases[i].blocks > 1 && fabs((before - after) / (inputs / (1 - 0.055)) - 1) > 1e-3)
            fail_msg("%g B less instead of %g with %s", before - after, inputs / (1 - 0.055), cases[i].more);
        assert_true(after <= before);
    }
    /* who plans for a limit recomputes or moves less, and never needs more */
    assert_true(peak(", recompute: optimal, limit: 12 GB}\nstrategy: {data: 1}", 3) <= 12e9);
    assert_true(peak(", offload: activations, limit: 12 GB}\nstrategy: {data: 1}", 3) <= 12e9);
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

#define ONE "cluster: {platform: dgx-a100, nodes: 1}\nsoftware: none\n"

static void test_refused(void **state)
{
    (void)state;
    expect_refused(ONE "batch: {micro_batches: 1}\nmodel: {stages: {forward: 1 s, backward: 1 s}}\nmemory: {few_bit: 3}\n",
                   "memory: few_bit: needs a transformer");
    expect_refused("cluster: {platform: dgx-a100, nodes: 1}\n" MODEL "memory: {few_bit: 9}\n", "0 to 8");
    expect_refused("cluster: {platform: dgx-a100, nodes: 1}\n" MODEL "memory: {few_bit: 3, activations: rajbhandari}\n",
                   "memory: few_bit: does not go with 'activations: rajbhandari'");
    expect_refused("cluster: {platform: dgx-a100, nodes: 1}\n" MODEL "memory: {few_bit: 3, recompute: operators}\n",
                   "memory: few_bit: does not go with 'recompute: operators'");
    expect_refused("cluster: {platform: dgx-a100, nodes: 1}\n" MODEL
                   "memory: {few_bit: 3, recompute: {mode: modules, modules: [activation]}}\n",
                   "memory: few_bit: does not go with recomputation of the activation function");
    expect_refused(ONE "batch: {micro_batches: 1}\nmodel: {preset: llama3-8b}\nmemory: {few_bit: 3}\n",
                   "memory: few_bit: saves nothing of a fused SwiGLU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_together), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
