/* simulation.repeat: the median of replays with several seeds, and quantiles, against these replays one by one. */
#include "simulated.h"

static void simulate_one(struct simulated *simulated, double jitter, int seed, int repeat, const char *engine)
{
    run_text(simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 100 M, boundary: 10 MB}}\n"
             "cluster: {nodes: 4, gpus_per_node: 1, network: {bandwidth: 1 GB/s, latency: 5 us}}\n"
             "batch: {micro_batches: 4}\nstrategy: {pipeline: 2, data: 2}\n"
             "simulation: {jitter: %.17g, seed: %d, repeat: %d, engine: %s}\n", jitter, seed, repeat, engine);
}

/* Of `count` times the least that at least a share q of them do not exceed. */
static double quantile(const double *times, int count, double q)
{
    double least = INFINITY;

    for (int i = 0; i < count; i++) {
        int below = 0;

        for (int k = 0; k < count; k++)
            below += times[k] <= times[i];
        if (below >= q * count - 1e-9)
            least = fmin(least, times[i]);
    }
    return least;
}

static void test_quantiles(void **state)
{
    static const int counts[] = {2, 3, 10, 11, 20};

    (void)state;
    for (size_t c = 0; c < COUNT(counts); c++) {
        enum { SEED = 5 };
        const char *engine = c % 2 ? "simgrid" : "ideal";
        struct simulated all;
        const struct metrics *m = &all.run.metrics;
        double times[20];
        int found = 0;

        simulate_one(&all, 0.1, SEED, counts[c], engine);
        for (int i = 0; i < counts[c]; i++) {
            struct simulated one;

            simulate_one(&one, 0.1, SEED + i, 1, engine);
            assert_true(isnan(one.run.metrics.iteration_time_p10) && isnan(one.run.metrics.iteration_time_p90));
            assert_int_equal(one.run.seed, SEED + i);
            times[i] = one.run.metrics.iteration_time;
            /* everything is of one run of them */
            for (size_t k = 0; all.run.seed == SEED + i && metric_at(k); k++) {
                double value = metric_value(&one.run.metrics, metric_at(k));

                found++;
                assert_true(strstr(metric_at(k)->name, "_s_p") || metric_value(m, metric_at(k)) == value ||
                            (isnan(value) && isnan(metric_value(m, metric_at(k)))));
            }
            simulated_release(&one);
        }
        assert_true(found > 0);
        assert_true(m->iteration_time == quantile(times, counts[c], 0.5));
        assert_true(m->iteration_time_p10 == quantile(times, counts[c], 0.1));
        assert_true(m->iteration_time_p90 == quantile(times, counts[c], 0.9));
        assert_true(m->iteration_time_p10 < m->iteration_time_p90);
        simulated_release(&all);
    }
}

/* Nothing is random: all runs would take as long. */
static void test_without_jitter(void **state)
{
    struct simulated one, all;

    (void)state;
    simulate_one(&one, 0, 1, 1, "ideal");
    simulate_one(&all, 0, 1, 20, "ideal");
    assert_true(all.run.metrics.iteration_time == one.run.metrics.iteration_time);
    assert_true(all.run.metrics.iteration_time_p10 == one.run.metrics.iteration_time);
    assert_true(all.run.metrics.iteration_time_p90 == one.run.metrics.iteration_time);
    simulated_release(&one);
    simulated_release(&all);
}

/* What jitter adds, and imbalance, are of the median run too. */
static void test_causes(void **state)
{
    struct simulated all, quiet;
    struct error err = {0};
    struct simulate_options options;

    (void)state;
    simulate_one(&quiet, 0, 1, 1, "ideal");
    simulate_one(&all, 0.2, 3, 9, "ideal");
    options = simulate_options_of(&all.scenario);
    options.causes = true;
    run_release(&all.run);
    assert_int_equal(simulate(&all.workload, options, &all.run, &err), 0);
    expect_near("jitter", all.run.metrics.jitter, all.run.metrics.iteration_time - quiet.run.metrics.iteration_time,
                all.text);
    simulated_release(&quiet);
    simulated_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles), cmocka_unit_test(test_without_jitter), cmocka_unit_test(test_causes),
    };

    return cmocka_run_group_tests_name("repeat", tests, NULL, NULL);
}
