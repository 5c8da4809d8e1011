/* batch.shares: replicas whose micro-batches have unequal numbers of samples. */
#include "sent.h"
#include "simulated.h"
#include "trials.h"

static const char shape[] =
    "model: {transformer: {layers: 8, hidden: 4096, heads: 32, sequence: 1024, vocabulary: 51200}}\n"
    "batch: {micro: %d, micro_batches: 4%s}\nsimulation: {engine: %s, fold: %s}\n"
    "strategy: {tensor: 4, pipeline: 2, data: %d, stages: [{layers: 5, on: %s}, {layers: 3, on: %s}]%s}\ncluster: %s\n";
static const char two[] = "{parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 1}]}";
static const char turned[] = "{parts: [{name: b, platform: dgx-h100, nodes: 1}, {name: a, platform: dgx-a100, nodes: 1}]}";

static void run_shares(struct simulated *run, const char *shares, const char *engine, const char *on, const char *more,
                       const char *cluster)
{
    run_text(run, shape, 4, shares, engine, "auto", 2, on, on, more, cluster);
}

static void expect_same(const struct simulated *one, const struct simulated *other)
{
    for (size_t i = 0; metric_at(i); i++) {
        double a = metric_value(&one->run.metrics, metric_at(i)), b = metric_value(&other->run.metrics, metric_at(i));

        if (!isnan(a) || !isnan(b))
            assert_true(fabs(a - b) <= 1e-12 * fabs(b));
    }
}

static void equal_shares_are_none(void **state)
{
    static const char *const equal[] = {", shares: [1, 1]", ", shares: [50, 50]", ", shares: [100, 101]"};
    struct simulated none, run;

    (void)state;
    run_shares(&none, "", "fast", "[a, b]", "", two);
    for (size_t i = 0; i < COUNT(equal); i++) {
        run_shares(&run, equal[i], "fast", "[a, b]", "", two);
        expect_same(&run, &none);
        simulated_release(&run);
    }
    simulated_release(&none);
}

/* A replica does what a job of this replica alone with so large micro-batches does: its works take as long, and hold and
 * send as many bytes. */
static void a_replica_works_as_alone(void **state)
{
    static const int samples[] = {3, 5};
    static const char *const parts[] = {"a", "b"};
    struct simulated both;

    (void)state;
    run_shares(&both, ", shares: [3, 5]", "fast", "[a, b]", "", two);
    for (int r = 0; r < 2; r++) {
        struct simulated alone;

        run_text(&alone, shape, samples[r], "", "fast", "auto", 1, parts[r], parts[r], "", two);
        assert_int_equal(scenario_samples(&both.scenario, r), samples[r]);
        for (int p = 0; p < 2; p++) {
            const struct gpu_class *own = workload_class(&both.workload, r, p), *other = workload_class(&alone.workload, 0, p);

            for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
                assert_true(own->times[p].work[kind].seconds == other->times[p].work[kind].seconds);
                assert_true(own->stages[p].work[kind].flop == other->stages[p].work[kind].flop);
            }
            assert_true(own->stages[p].boundary == other->stages[p].boundary);
            assert_true(sent_bytes(&own->stages[p], SENT_SUM, HIDDEN_BY_NOTHING) ==
                        sent_bytes(&other->stages[p], SENT_SUM, HIDDEN_BY_NOTHING));
            assert_true(both.run.metrics.ranks[2 * r + p].peak_activation ==
                        alone.run.metrics.ranks[p].peak_activation);
        }
        assert_true(both.run.metrics.iteration_time >= alone.run.metrics.iteration_time);
        simulated_release(&alone);
    }
    simulated_release(&both);
}

/* Boundaries and exchanges of a replica have the bytes of its micro-batches. So all GPUs together send the same bytes
 * as with equal shares. */
static void bytes_are_conserved(void **state)
{
    struct simulated equal, shares;

    (void)state;
    run_shares(&equal, "", "fast", "[a, b]", "", two);
    run_shares(&shares, ", shares: [1, 7]", "fast", "[a, b]", "", two);
    assert_true(fabs(equal.run.metrics.communication_bytes_per_gpu / shares.run.metrics.communication_bytes_per_gpu - 1) < 1e-12);
    assert_true(fabs(equal.run.metrics.hardware_flop / shares.run.metrics.hardware_flop - 1) < 1e-12);
    assert_true(equal.run.metrics.samples == shares.run.metrics.samples);
    simulated_release(&equal);
    simulated_release(&shares);
}

static void engines_and_orders_agree(void **state)
{
    static const char *const strategies[] = {"", ", zero: 1", ", zero: 3", ", schedule: gpipe"};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated fast, other;

        run_shares(&fast, ", shares: [3, 5]", "fast", "[a, b]", strategies[i], two);
        run_shares(&other, ", shares: [3, 5]", "simgrid", "[a, b]", strategies[i], two);
        assert_true(fabs(other.run.metrics.iteration_time / fast.run.metrics.iteration_time - 1) < 1e-9);
        simulated_release(&other);
        run_shares(&other, ", shares: [5, 3]", "fast", "[b, a]", strategies[i], turned);
        assert_true(fabs(other.run.metrics.iteration_time / fast.run.metrics.iteration_time - 1) < 1e-12);
        simulated_release(&other);
        simulated_release(&fast);
    }
}

static void auto_is_the_best_of_all(void **state)
{
    struct simulated run;
    double best = INFINITY, chosen;

    (void)state;
    run_shares(&run, ", shares: auto", "fast", "[a, b]", "", two);
    const struct scenario *settled = run.workload.scenario;

    assert_int_equal(scenario_samples(settled, 0) + scenario_samples(settled, 1), 8);
    chosen = run.run.metrics.iteration_time;
    simulated_release(&run);
    for (int first = 1; first < 8; first++) {
        char shares[64];

        snprintf(shares, sizeof shares, ", shares: [%d, %d]", first, 8 - first);
        run_shares(&run, shares, "fast", "[a, b]", "", two);
        best = fmin(best, run.run.metrics.iteration_time);
        simulated_release(&run);
    }
    expect_near("the iteration", chosen, best, shape);
}

static void rounding_gives_all_samples(void **state)
{
    struct simulated run;
    uint64_t seed = seed_from(1);

    (void)state;
    simulated_load(&run, shape, 4, "", "fast", "auto", 2, "[a, b]", "[a, b]", "", two);
    for (int i = 0; i < 2000; i++) {
        struct arena arena = {0};
        double weights[7], sum = 0;
        const int *samples;
        int all = 0;

        run.scenario.parallelism.data = 1 + random_below(&seed, 7);
        run.scenario.batch.micro = 1 + random_below(&seed, 20);
        for (int d = 0; d < run.scenario.parallelism.data; d++)
            sum += weights[d] = 1 + random_below(&seed, 9);
        samples = scenario_share(&arena, &run.scenario, weights);
        for (int d = 0; samples && d < run.scenario.parallelism.data; d++) {
            double exact = run.scenario.batch.micro * run.scenario.parallelism.data * weights[d] / sum;

            assert_true(fabs(samples[d] - exact) < 1 + 1e-9);
            all += samples[d];
        }
        assert_true(!samples || all == run.scenario.batch.micro * run.scenario.parallelism.data);
        arena_release(&arena);
    }
    run.scenario.parallelism.data = 2;
    simulated_release(&run);
}

static void what_does_not_go_is_refused(void **state)
{
    static const struct { const char *batch, *more, *says; } cases[] = {
        {", shares: [1, 2, 3]", "", "3 numbers for 2 replicas"},
        {", shares: [0, 1]", "", "replica 0 gets none"},
        {", shares: [0, 0]", "", "all are 0"},
        {", shares: [1, 2]", "}\nmemory: {recompute: optimal", "one plan for all replicas"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scenario scenario = {0};
        struct error err = {0};
        char text[1024];

        snprintf(text, sizeof text, shape, 4, cases[i].batch, "fast", "auto", 2, "[a, b]", "[a, b]", cases[i].more, two);
        assert_int_equal(load_text(text, &scenario, &err), -1);
        assert_non_null(strstr(err.messages[0].text, cases[i].says));
        error_release(&err);
        scenario_release(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shares_are_none),
        cmocka_unit_test(a_replica_works_as_alone),
        cmocka_unit_test(bytes_are_conserved),
        cmocka_unit_test(engines_and_orders_agree),
        cmocka_unit_test(auto_is_the_best_of_all),
        cmocka_unit_test(rounding_gives_all_samples),
        cmocka_unit_test(what_does_not_go_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
