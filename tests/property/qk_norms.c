/* Norms of queries and keys: what their kernels read and write, and what a block keeps for them. */
#include "simulated.h"

enum { TOKENS = 2 * 64, QUERIES = 8 * 32, KEYS = 2 * 32 };

/* B of the kernels of that name in a phase, all launches together; *launches of them. */
static double bytes_of(struct simulated *simulated, const char *name, enum phase phase, int *launches)
{
    const struct layer *layer = simulated_workload(simulated)->stages->slices[1].layer;
    double bytes = 0;

    *launches = 0;
    for (size_t i = 0; i < layer->nkernels; i++) {
        const struct kernel *kernel = &layer->kernels[i];

        if (kernel->phase != phase || strcmp(kernel->name, name))
            continue;
        bytes += kernel->launches * kernel->bytes;
        *launches += kernel->launches;
    }
    return bytes;
}

static void load(struct simulated *simulated, const char *norm, bool fused)
{
    simulated_load(simulated,
                   "model: {transformer: {layers: 2, hidden: 128, heads: 8, kv_heads: 2, head_size: 32, sequence: 64, "
                   "vocabulary: 1000, positions: 0, norm: rmsnorm, mlp: swiglu, flash_attention: true, fused_norm: %s, "
                   "qk_norm: %s}}\ncluster: dgx-a100\nbatch: {micro: 2, micro_batches: 1}\nstrategy: {data: 1}\n"
                   "memory: {precision: mixed-bf16}\nsimulation: {engine: ideal}\n", fused ? "true" : "false", norm);
}

/* A fused norm reads and writes each value once, its backward reads two and writes one. A plain norm has the kernels of
 * the block's other norms, over the values of queries and keys. */
static void test_kernels(void **state)
{
    const struct { const char *name; int width; } norms[] = {{"q-norm", QUERIES}, {"k-norm", KEYS}};

    (void)state;
    for (int fused = 0; fused < 2; fused++) {
        struct simulated none, heads;
        double kept;

        load(&none, "none", fused);
        load(&heads, "head", fused);
        for (size_t i = 0; i < COUNT(norms); i++)
            for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
                int own, others;
                double bytes = bytes_of(&heads, norms[i].name, (enum phase)phase, &own);
                double block = bytes_of(&heads, "attention-norm", (enum phase)phase, &others);

                assert_int_equal(own, others);
                expect_near(norms[i].name, bytes, block * norms[i].width / 128, heads.text);
                if (fused)
                    expect_near("bytes", bytes, (phase == PHASE_FORWARD ? 2 : 3) * 2.0 * TOKENS * norms[i].width, heads.text);
                assert_true(bytes_of(&none, norms[i].name, (enum phase)phase, &own) == 0 && own == 0);
            }
        kept = simulated_workload(&heads)->stages->slices[1].activation -
               simulated_workload(&none)->stages->slices[1].activation;
        expect_near("kept", kept, TOKENS * (QUERIES + KEYS) * (fused ? 2.0 : 2 + 4), heads.text);
        simulated_release(&none);
        simulated_release(&heads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels)};

    return cmocka_run_group_tests_name("qk_norms", tests, NULL, NULL);
}
