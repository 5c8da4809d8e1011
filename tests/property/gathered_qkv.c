/* Tensor degrees above the number of heads of keys and values: what each GPU holds, keeps and sends. */
#include "sent.h"
#include "simulated.h"

enum { LAYERS = 3, MICRO_BATCHES = 4, TENSOR = 8, HEADS = 16, SIZE = 16, HIDDEN = 256, TOKENS = 2 * 64 };

static const char grouped[] =
    "model: {transformer: {layers: 3, hidden: 256, heads: 16, kv_heads: %d, head_size: 16, sequence: 64, ffn: 512, "
    "vocabulary: 1024, dropout: 0, norm: rmsnorm, mlp: swiglu, positions: 0, flash_attention: true, qkv_bias: false, "
    "bias: false, gathered_qkv: %s}}\ncluster: {platform: dgx-h100, nodes: 1}\n"
    "batch: {micro: 2, micro_batches: 4}\nstrategy: {tensor: %d, data: 1, sequence_parallel: %s}\n"
    "memory: {precision: mixed-bf16}\nsimulation: {engine: ideal}\n";

static double columns(int groups)
{
    return (HEADS + 2.0 * groups) * SIZE;
}

/* Beside a model with a head of keys and values a GPU, whose attention is the same. */
static void check_bytes(int groups, bool sequence_parallel)
{
    const char *parallel = sequence_parallel ? "true" : "false";
    double whole = TOKENS * columns(groups) * 2, sent = whole * (TENSOR - 1) / TENSOR;
    struct simulated usual, gathers, one;
    const struct slice *before, *after;
    const struct stage *stage;

    run_text(&usual, grouped, TENSOR, "true", TENSOR, parallel);
    run_text(&gathers, grouped, groups, "true", TENSOR, parallel);
    run_text(&one, grouped, groups, "false", 1, "false");
    stage = simulated_workload(&gathers)->stages;
    before = &simulated_workload(&usual)->stages->slices[1];
    after = &stage->slices[1];

    assert_true(before->tensors[1] == HIDDEN * columns(TENSOR) / TENSOR);
    assert_true(after->tensors[1] == HIDDEN * columns(groups) / TENSOR);
    assert_true(sent_bytes(stage, SENT_QKV, HIDDEN_BY_NOTHING) == whole);
    assert_int_equal(sent_count(simulated_workload(&usual)->stages, before->work[FORWARD], SENT_QKV, HIDDEN_BY_NOTHING), 0);
    assert_int_equal(sent_count(stage, after->work[FORWARD], SENT_QKV, HIDDEN_BY_NOTHING), 1);
    assert_int_equal(sent_count(stage, after->work[BACKWARD], SENT_QKV, HIDDEN_BY_NOTHING), 1);
    /* the gathered columns are kept, of which the values are a part */
    expect_near("kept", after->activation - before->activation, whole - TOKENS * SIZE * 2., gathers.text);
    expect_near("sent", gathers.run.metrics.communication_bytes_per_gpu - usual.run.metrics.communication_bytes_per_gpu,
                2 * LAYERS * MICRO_BATCHES * sent, gathers.text);
    expect_near("flop", gathers.run.metrics.hardware_flop, one.run.metrics.hardware_flop, gathers.text);
    assert_true(gathers.run.metrics.seconds[ACCOUNT_EXPOSED_TENSOR] > usual.run.metrics.seconds[ACCOUNT_EXPOSED_TENSOR]);
    simulated_release(&usual);
    simulated_release(&gathers);
    simulated_release(&one);
}

static void test_bytes(void **state)
{
    (void)state;
    for (int groups = 1; groups < TENSOR; groups *= 2)
        for (int sequence_parallel = 0; sequence_parallel < 2; sequence_parallel++)
            check_bytes(groups, sequence_parallel);
}

static void expect_refused(int groups, const char *gathers, const char *expected)
{
    struct error err = {0};
    struct scenario scenario;
    struct workload workload = {0};
    char *text = NULL;
    int rc;

    assert_true(asprintf(&text, grouped, groups, gathers, TENSOR, "false") >= 0);
    rc = load_text(text, &scenario, &err) || workload_init(&workload, &scenario, &err);
    assert_int_equal(rc, 1);
    assert_int_equal(error_exit_code(&err), EXIT_INFEASIBLE);
    if (!strstr(err.messages[0].text, expected))
        fail_msg("'%s' does not say '%s'", err.messages[0].text, expected);
    error_release(&err);
    workload_release(&workload);
    scenario_release(&scenario);
    free(text);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused(4, "false", "software whose release gathers them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
