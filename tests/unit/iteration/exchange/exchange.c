/* What exchanges cost, by closed forms: a ring all-reduce within works, and who sums gradients with whom. */
#include "exchange/exchange.h"
#include "sent.h"
#include "simulated.h"

/* Exchanges of a scenario; a test releases all three. */
struct found { struct simulated simulated; struct measure measure; struct arena arena; struct exchanges exchanges; };

static void find(struct found *found, const char *strategy)
{
    struct error err = {0};

    memset(found, 0, sizeof *found);
    simulated_load(&found->simulated, "model: {transformer: {layers: 4, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000}}\n"
                   "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb, inside: {bandwidth: 10 GB/s, latency: 2 us}}\n"
                   "batch: {micro_batches: 4, micro: 1}\n"
                   "strategy: {%s, all_reduce: ring}\nsimulation: {fold: off}\nmemory: {enforce: false}\n", strategy);
    measure_init(&found->measure, ENGINE_FAST, &found->simulated.scenario.cluster);
    exchanges_find(&found->exchanges, simulated_workload(&found->simulated), true, &found->measure, &found->arena, &err);
    if (found->measure.failed || exchanges_measure(&found->exchanges))
        fail_at(found->simulated.text, &err);
}

static void forget(struct found *found)
{
    exchanges_release(&found->exchanges);
    arena_release(&found->arena);
    measure_release(&found->measure);
    simulated_release(&found->simulated);
}

/* Of n GPUs each passes a part of 1/n of the bytes, 2 (n - 1) times: a reduce-scatter and an all-gather. */
static void test_tensor(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n *= 2) {
        struct found found;
        char strategy[64];

        snprintf(strategy, sizeof strategy, "tensor: %d", n);
        find(&found, strategy);
        const struct stage *stage = found.exchanges.workload->stages;
        double bytes = sent_bytes(stage, SENT_SUM, HIDDEN_BY_NOTHING), steps = 2 * (n - 1);
        const struct exchange_cost *cost = &costs_of(&found.exchanges, 0, 0)[find_sent(stage, SENT_SUM, HIDDEN_BY_NOTHING)];

        assert_true(bytes > 0 && found.exchanges.within);
        assert_true(fabs(cost->bytes_sent - steps * bytes / n) < 1e-9 * bytes);
        assert_true(fabs(cost->seconds - steps * (2e-6 + bytes / n / 10e9)) < 1e-9 * cost->seconds);
        forget(&found);
    }
}

/* The members of a stage's sum are the ranks that hold the stage, each in its replica. */
static void test_members(void **state)
{
    struct found found;

    (void)state;
    find(&found, "pipeline: 2, data: 2, tensor: 2");
    for (int stage = 0; stage < 2; stage++) {
        const struct members *members = members_of(&found.exchanges, GROUP_DATA, stage);

        assert_ptr_equal(members, members_of(&found.exchanges, GROUP_DATA, stage));
        assert_int_equal(members->all, 2);
        assert_int_equal(members->size, 2);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(members->ranks[i], 2 * i + stage);
            for (int t = 0; t < 2; t++)
                assert_int_equal(members->gpus[t * members->all + i],
                                 scenario_gpu(&found.simulated.scenario, t, i, stage));
        }
    }
    forget(&found);
}

/* Replicas that exchange tokens begin each work together; others do not. */
static void test_lockstep(void **state)
{
    struct found found;
    int keys;

    (void)state;
    find(&found, "data: 4, context: 2");
    assert_int_equal(found.exchanges.lockstep, 2);
    keys = find_sent(found.exchanges.workload->stages, SENT_KEYS, HIDDEN_BY_STEPS);
    assert_true(costs_of(&found.exchanges, 0, 0)[keys].bytes_sent > 0);
    forget(&found);
    find(&found, "data: 4");
    assert_int_equal(found.exchanges.lockstep, 1);
    assert_false(found.exchanges.within);
    forget(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_lockstep),
    };

    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
