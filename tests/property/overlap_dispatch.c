/* All-to-alls of experts that overlap with another micro-batch's work, or with shared experts: orders, and closed
 * forms. */
#include "simulated.h"

static const char moe[] =
    "model: {transformer: {layers: 8, hidden: 2048, heads: 16, sequence: 2048, vocabulary: 4096, dropout: 0, norm: rmsnorm, "
    "mlp: swiglu, ffn: 8192, expert_ffn: 4096, experts: 8, experts_per_token: 2, shared_experts: 1, shared_ffn: %d, positions: 0, "
    "flash_attention: true}}\ncluster: {platform: dgx-h100, nodes: %d}\nbatch: {micro: 1, micro_batches: %d}\n"
    "strategy: {data: 8, expert: 8, zero: 1, %s}\nmemory: {precision: mixed-bf16%s}\n"
    "costs: {host_launch: 0 us}\nsimulation: {engine: ideal}\n";

/* Each backward goes together with the forward that followed it, which does not wait for it; what deadlocks is refused. */
static void check_pairs(int stages, int chunks, int micro_batches)
{
    const struct schedule *schedule = NULL;
    struct plan plan = {.stages = stages, .chunks = chunks, .micro_batches = micro_batches, .batches = 1,
                        .placement = PLACEMENT_LOOP};
    void *options = calloc(1, 64);
    struct error err = {0};
    struct row *rows, *paired;
    bool refused;

    for (size_t i = 0; schedule_at(i); i++)
        if (!strcmp(schedule_at(i)->name, stages > 1 ? "interleaved" : "1f1b"))
            schedule = schedule_at(i);
    assert_non_null(schedule);
    plan.options = options;
    rows = rows_of(schedule, &plan);
    plan.pairs = true;
    paired = rows_of(schedule, &plan);
    refused = schedule->check && schedule->check(&plan, (struct loc){0}, &err);
    error_release(&err);
    assert_true(!refused || micro_batches % stages);
    assert_int_equal(rows_deadlock(paired, &plan), refused);
    for (int rank = 0; rank < stages; rank++) {
        const struct work *before = rows[rank].items, *after = paired[rank].items;
        size_t followed = 0, pairs = 0;

        assert_int_equal(rows[rank].count, paired[rank].count);
        for (size_t i = 0; i + 1 < rows[rank].count; i++) {
            followed += before[i].kind == BACKWARD && before[i + 1].kind == FORWARD;
            if (!after[i].with_next)
                continue;
            assert_true(after[i].kind == FORWARD && after[i + 1].kind == BACKWARD && !after[i + 1].with_next);
            assert_true(after[i].mb != after[i + 1].mb || after[i].chunk != after[i + 1].chunk);
            pairs++;
        }
        assert_int_equal(pairs, followed);
        if (stages == 1)
            assert_int_equal(pairs, micro_batches - 1);
    }
    rows_release(rows, stages);
    rows_release(paired, stages);
    free(options);
}

static void test_pairs(void **state)
{
    (void)state;
    for (int m = 1; m < 9; m++)
        check_pairs(1, 1, m);
    for (int p = 2; p < 9; p++)
        for (int v = 2; v < 5; v++)
            for (int m = p; m <= 3 * p; m++)
                check_pairs(p, v, m);
}

/* Megatron Core puts one forward more before the first pair. */
static void test_order(void **state)
{
    struct simulated one;
    char *text;

    (void)state;
    simulated_load(&one, moe, 64, 1, 4, "overlap_dispatch: micro-batches", "");
    text = orders_text(&one);
    assert_string_equal(text, "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,(0F3;0B2)OVERLAP_F_B,0B3\n");
    free(text);
    simulated_release(&one);
}

static double exposed(int shared, int nodes, int micro_batches, const char *overlap, double *seconds)
{
    struct simulated one;
    double expert;

    run_text(&one, moe, shared, nodes, micro_batches, overlap, "");
    expert = one.run.metrics.seconds[ACCOUNT_EXPOSED_EXPERT];
    *seconds = one.run.metrics.iteration_time;
    simulated_release(&one);
    return expert;
}

/* Where kernels are longer, a pair hides all but what kernels lose to the all-to-alls' multiprocessors; the first forward
 * and the last backward hide nothing: of m micro-batches (1 + (m - 1) s) / m of the exposed time are left, with one
 * share s for all m. What time is gained, exposed time has lost. */
static void test_hidden(void **state)
{
    double share = NAN;

    (void)state;
    for (int m = 2; m < 10; m += 3) {
        double all, some, none = exposed(64, 1, m, "schedule: 1f1b", &all);
        double left = exposed(64, 1, m, "overlap_dispatch: micro-batches", &some);
        double now = (left / none * m - 1) / (m - 1);

        assert_true(none > 0 && now > 0 && now < 0.5);
        assert_true(isnan(share) || fabs(now - share) < 1e-9);
        assert_true(fabs(all - some - (none - left)) < 1e-9 * all);
        share = now;
    }
}

/* Shared experts hide as many seconds as their GEMMs take, up to what these lose to the all-to-alls' multiprocessors. The
 * time that is gained may be less than that, as gradients of the last backward have less to hide behind. */
static void test_shared(void **state)
{
    static const int widths[] = {16, 128, 1024, 32768, 65536};
    double shares[COUNT(widths)];

    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++) {
        double all, some, none = exposed(widths[i], 1, 2, "schedule: 1f1b", &all);
        double left = exposed(widths[i], 1, 2, "overlap_dispatch: shared-experts", &some);

        assert_true(left < none && left > 0 && some < all && all - some <= (none - left) * (1 + 1e-9));
        shares[i] = left / none;
        assert_true(i == 0 || shares[i] <= shares[i - 1]);
    }
    assert_true(shares[0] > 2 * shares[COUNT(widths) - 1]);
    assert_true(fabs(shares[COUNT(widths) - 1] - shares[COUNT(widths) - 2]) < 1e-9);
}

/* B of the most that a rank keeps, and of a block's part of it. */
static double kept(int stages, const char *strategy, double *block)
{
    struct simulated one;
    double bytes;

    run_text(&one, "model: {transformer: {layers: 8, hidden: 1024, heads: 8, sequence: 1024, vocabulary: 1024, dropout: 0, experts: 8, "
             "experts_per_token: 2, flash_attention: true}}\ncluster: {platform: dgx-h100, nodes: %d}\n"
             "batch: {micro: 1, micro_batches: 8}\nstrategy: {data: 8, expert: 8, pipeline: %d, %s}\n"
             "memory: {precision: mixed-bf16}\nsimulation: {engine: ideal}\n", stages, stages, strategy);
    bytes = one.run.metrics.ranks[0].peak_activation;
    *block = one.workload.stages[0].slices[one.workload.stages[0].nslices - 2].activation;
    simulated_release(&one);
    return bytes;
}

/* Pairs go layer by layer, so that a rank keeps a block more than without them, not a micro-batch; with chunks too, where Megatron
 * Core puts one forward more before the first pair. */
static void test_kept(void **state)
{
    double block, alone = kept(1, "schedule: 1f1b", &block), pairs = kept(1, "schedule: 1f1b, overlap_dispatch: micro-batches", &block);

    (void)state;
    expect_near("one stage", pairs - alone, block, "");
    alone = kept(2, "schedule: interleaved, chunks: 2", &block);
    pairs = kept(2, "schedule: interleaved, chunks: 2, overlap_dispatch: micro-batches", &block);
    expect_near("two stages", pairs - alone, block, "");
}

static void expect_clash(const char *strategy, const char *memory, const char *expected)
{
    struct error err = {0};
    struct scenario scenario;
    char *text = NULL;

    assert_true(asprintf(&text, moe, 64, 1, 4, strategy, memory) >= 0);
    assert_int_equal(load_text(text, &scenario, &err), -1);
    assert_int_equal(err.count, 1);
    if (!strstr(err.messages[0].text, expected))
        fail_msg("'%s' does not say '%s'", err.messages[0].text, expected);
    error_release(&err);
    scenario_release(&scenario);
    free(text);
}

static void test_refused(void **state)
{
    (void)state;
    expect_clash("overlap_dispatch: micro-batches, dispatcher: allgather", "", "alltoall, deepep and hybridep");
    expect_clash("overlap_dispatch: micro-batches", ", recompute: full", "recomputation of the experts");
    expect_clash("overlap_dispatch: micro-batches", ", recompute: {mode: modules, modules: [experts]}",
                 "recomputation of the experts");
    expect_clash("overlap_dispatch: shared-experts", ", recompute: {mode: modules, modules: [shared-experts]}",
                 "their recomputation");
    expect_clash("overlap_dispatch: micro-batches, schedule: gpipe", "", "interleaved");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),  cmocka_unit_test(test_order),   cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_shared), cmocka_unit_test(test_refused), cmocka_unit_test(test_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
