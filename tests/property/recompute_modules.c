/* Recomputation of modules of a block: which tensors are not kept, and which products and exchanges are recomputed. */
#include "sent.h"
#include "simulated.h"

enum { BLOCKS = 8 };             /* of the model */

/* With `recompute: modules` a block keeps `less` values less of a token, and recomputes products of `again`
 * multiplications a token. Its backward holds as much as a block without recomputation keeps. */
static void check_modules(const char *shape, const char *modules, double less, double again)
{
    const double tokens = 2 * 32;
    struct simulated none, some;
    const struct slice *before, *after;

    for (int k = 0; k < 2; k++)
        run_text(k ? &some : &none,
                 "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, dropout: 0, "
                 "flash_attention: true, ffn: 96, %s}}\ncluster: dgx-a100\nbatch: {micro: 2, micro_batches: 4}\n"
                 "strategy: {data: 1}\nmemory: {precision: mixed-bf16, recompute: {mode: %s%s}}\n"
                 "simulation: {engine: ideal}\n", shape, k ? "modules, modules: " : "none", k ? modules : "");
    before = &simulated_workload(&none)->stages->slices[1];
    after = &simulated_workload(&some)->stages->slices[1];
    expect_near("kept", before->activation - after->activation, 2 * tokens * less, some.text);
    expect_near("held", after->activation + after->workspace.backward, before->activation + before->workspace.backward,
                some.text);
    expect_near("flop", some.run.metrics.hardware_flop - none.run.metrics.hardware_flop,
                4 * BLOCKS * 2 * tokens * again, some.text);
    expect_near("model flop", some.run.metrics.model_flop, none.run.metrics.model_flop, some.text);
    assert_true(some.run.metrics.iteration_time > none.run.metrics.iteration_time);
    simulated_release(&none);
    simulated_release(&some);
}

/* Exchanges of a block's backward under recompute: modules, against a backward without: a recomputed module's exchanges
 * come on top. */
static void check_exchanged(const char *shape, const char *modules, int sums, int dispatches)
{
    int counts[2][2];

    for (int k = 0; k < 2; k++) {
        struct simulated one;
        const struct stage *stage;

        run_text(&one, "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1024, dropout: 0, "
                 "flash_attention: true, ffn: 96, %s}}\ncluster: dgx-a100\nbatch: {micro: 2, micro_batches: 4}\n"
                 "strategy: {tensor: 2, sequence_parallel: true, expert_tensor: 1, data: 2, expert: 2}\n"
                 "memory: {precision: mixed-bf16, recompute: {mode: %s%s}}\nsimulation: {engine: ideal}\n", shape,
                 k ? "modules, modules: " : "none", k ? modules : "");
        stage = simulated_workload(&one)->stages;
        counts[k][0] = sent_count(stage, stage->slices[1].work[BACKWARD], SENT_SUM, HIDDEN_BY_NOTHING);
        counts[k][1] = sent_count(stage, stage->slices[1].work[BACKWARD], SENT_ROWS, HIDDEN_BY_OTHERS);
        simulated_release(&one);
    }
    assert_int_equal(counts[1][0] - counts[0][0], sums);
    assert_int_equal(counts[1][1] - counts[0][1], dispatches);
}

static void test_exchanged(void **state)
{
    static const char experts[] = "mlp: swiglu, experts: 4, experts_per_token: 2, shared_experts: 1";

    (void)state;
    check_exchanged(experts, "[norms, activation]", 0, 0);
    check_exchanged(experts, "[shared-experts]", 1, 0);
    check_exchanged(experts, "[experts]", 1, 2);
    check_exchanged("mlp: swiglu, experts: 4, experts_per_token: 2", "[experts]", 0, 2);
    check_exchanged("mlp: swiglu, experts: 4, experts_per_token: 2, expert_blocks: [0]", "[mlp]", 1, 0);
    check_exchanged("mlp: swiglu, experts: 4, experts_per_token: 2, expert_blocks: [0]", "[experts]", 0, 0);
}

/* Megatron-LM's recompute-modules layernorm, moe_act and mla_up_proj; DeepSeek-V3's report, section 3.2.3. */
static void test_modules(void **state)
{
    static const char plain[] = "norm: rmsnorm, mlp: swiglu";
    static const char latent[] = "q_rank: 24, kv_rank: 16, head_size: 8, rope_head_size: 4, value_head_size: 8, "
                                 "positions: 0";
    static const char experts[] = "norm: rmsnorm, mlp: swiglu, experts: 4, experts_per_token: 2, shared_experts: 1";
    const double h = 64, ffn = 96, query = 8 * (8 + 4), wide = 2 * query + 8 * 8 - 4;

    (void)state;
    check_modules(plain, "[norms]", 2 * h, 0);
    check_modules(plain, "[activation]", ffn, 0);
    check_modules(plain, "[norms, activation, latent]", 2 * h + ffn, 0);
    check_modules("mlp: gelu", "[norms, activation]", 2 * h + ffn, 0);
    check_modules(latent, "[norms]", 2 * h + 24 + 16, 0);
    check_modules(latent, "[latent]", wide + 24 + 16, 24 * query + 16 * 8 * (8 + 8));
    check_modules(latent, "[norms, activation, latent]", 2 * h + ffn + wide + 24 + 16,
                  24 * query + 16 * 8 * (8 + 8));
    check_modules(plain, "[core]", 8 * 4 / 2, 2 * 32 * h);
    check_modules(plain, "[mlp]", 3 * ffn, 3 * h * ffn);
    check_modules(plain, "[norms, activation, mlp]", 2 * h + 3 * ffn, 3 * h * ffn);
    check_modules(experts, "[shared-experts]", 3 * ffn, 3 * h * ffn);
    check_modules(experts, "[experts]", 2 * 4 + 2 * 2 * h + (2 + 1) * 3 * ffn, 4 * h + (2 + 1) * 3 * h * ffn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules), cmocka_unit_test(test_exchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
