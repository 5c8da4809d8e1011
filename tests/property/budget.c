/* A budget ends a simulation wherever it is, and says so; where it is enough the results are those without a budget. */
#include "simulated.h"

#include "base/progress.h"
#include "run/memory_advice.h"

static const char PIPELINE[] =
    "model: {stages: {forward: 1 ms, backward: 2 ms, boundary: 1 MB, parameters: 1 M}}\n"
    "cluster: {nodes: 8, gpus_per_node: 1, network: {bandwidth: 10 GB/s, latency: 1 us, nics: 1}}\n"
    "batch: {micro_batches: 2000}\nstrategy: {schedule: 1f1b, pipeline: 4, data: 2}\n"
    "simulation: {fold: off, jitter: 0.1}\n";

/* The iteration's time; NaN, and err, where the budget is spent before. */
static double time_within(struct simulated *simulated, struct progress *progress, enum engine engine,
                          struct error *err)
{
    struct simulate_options options = {.engine = engine, .links = true, .causes = true};
    struct run run;
    double time = NAN;

    simulated->scenario.progress = progress;
    if (!simulate(simulated_workload(simulated), options, &run, err))
        time = run.metrics.iteration_time;
    run_release(&run);
    return time;
}

/* Budgets that double, from nothing to enough. The first ones end while the program is lowered. */
static void test_time(void **state)
{
    (void)state;
    for (enum engine engine = ENGINE_SIMGRID; engine_names[engine]; engine++) {
        struct simulated simulated;
        struct error err = {0};
        double seconds = 1e-9, expected, time = NAN;
        int stopped = 0;

        simulated_load(&simulated, "%s", PIPELINE);
        assert_true(!memory_is_short(simulated_workload(&simulated)));
        expected = time_within(&simulated, NULL, engine, &err);
        assert_int_equal(err.count, 0);
        for (; isnan(time); seconds *= 2) {
            struct progress progress;

            progress_begin(&progress, "--budget", seconds, 0);
            time = time_within(&simulated, &progress, engine, &err);
            assert_true(isnan(time) == (err.count == 1));
            if (!isnan(time))
                break;
            assert_int_equal(error_exit_code(&err), EXIT_STOPPED);
            assert_true(strstr(err.messages[0].text, "stopped by --budget ") == err.messages[0].text);
            if (!stopped++)
                assert_non_null(strstr(err.messages[0].text, "stopped by --budget 1 ns, lowering"));
            error_release(&err);
        }
        assert_true(time == expected);
        assert_true(stopped >= 10);
        simulated_release(&simulated);
    }
}

/* Every engine looks at the budget while it replays. */
static void test_engines(void **state)
{
    (void)state;
    for (enum engine engine = ENGINE_SIMGRID; engine_names[engine]; engine++) {
        struct simulated simulated;
        struct progress progress;
        struct timeline timeline;
        struct run run;
        struct error err = {0};
        char expected[64];

        simulated_load(&simulated, "%s", PIPELINE);
        assert_int_equal(simulate(simulated_workload(&simulated), simulate_options_of(&simulated.scenario), &run,
                                  &err), 0);
        progress_begin(&progress, "--budget", 1e-9, 0);
        run.lowered.program.progress = &progress;
        timeline_init(&timeline, &run.lowered.program);
        assert_int_equal(replay(engine, &run.lowered.program, &simulated.scenario.cluster, &timeline, &err), -1);
        assert_int_equal(error_exit_code(&err), EXIT_STOPPED);
        snprintf(expected, sizeof expected, " of %.4g k operations", 1e-3 * (double)run.lowered.program.ops.count);
        if (!strstr(err.messages[0].text, "replaying: ") || !strstr(err.messages[0].text, expected))
            fail_msg("%s: %s; expected %s", engine_names[engine], err.messages[0].text, expected);
        error_release(&err);
        timeline_release(&timeline);
        run_release(&run);
        simulated_release(&simulated);
    }
}

/* Memory that operations are sure to need is refused beforehand; other memory once it is held. */
static void test_memory(void **state)
{
    struct simulated simulated;
    struct progress progress;
    struct error err = {0};

    (void)state;
    simulated_load(&simulated, "%s", PIPELINE);
    progress_begin(&progress, "--budget", 0, 1);
    assert_true(!(time_within(&simulated, &progress, ENGINE_FAST, &err) > 0));
    assert_int_equal(error_exit_code(&err), EXIT_STOPPED);
    assert_non_null(strstr(err.messages[0].text, "stopped by --budget 1 B, before lowering: needs about "));
    error_release(&err);
    assert_true(progress_step(&progress, "lowering", 2, 0, 0));
    assert_int_equal(progress_check(&progress, &err), -1);
    assert_string_equal(err.messages[0].text, "stopped by --budget 1 B, lowering: 2 operations so far, none replayed");
    error_release(&err);
    progress_begin(&progress, "--budget", 0, 1e15);
    assert_true(time_within(&simulated, &progress, ENGINE_FAST, &err) > 0);
    simulated_release(&simulated);
}

/* What does not fit is told, whether or not there is time to look for what would help. */
static void test_advice(void **state)
{
    struct error err[2] = {{.count = 0}, {.count = 0}};
    struct simulated simulated;
    struct progress progress;

    (void)state;
    simulated_load(&simulated, "model: {preset: gpt3-175b}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                   "batch: {global: 8, micro: 1}\nstrategy: {schedule: 1f1b, data: 8}\n");
    progress_begin(&progress, "--budget", 0, 0);
    simulated.scenario.progress = &progress;
    assert_int_equal(simulate(simulated_workload(&simulated), simulate_options_of(&simulated.scenario),
                              &simulated.run, &err[0]), 0);
    progress.over = true;
    assert_int_equal(memory_check(&simulated.run, true, &err[0]), -1);
    assert_int_equal(memory_check(&simulated.run, false, &err[1]), -1);
    assert_int_equal(error_exit_code(&err[0]), EXIT_INFEASIBLE);
    assert_int_equal(error_exit_code(&err[1]), EXIT_INFEASIBLE);
    assert_non_null(strstr(err[0].messages[0].text, "; the budget was spent before a change was found"));
    assert_null(strstr(err[1].messages[0].text, "change"));
    error_release(&err[0]);
    error_release(&err[1]);
    simulated_release(&simulated);
}

/* What ranks hold all the time is a bound: where it is too much already, the simulation that finds memory alone finds
 * what the whole one does. */
static void test_short(void **state)
{
    static const char *const changes[] = {
        "zero: 1", "zero: 3", "pipeline: 4", "tensor: 8", "schedule: interleaved, pipeline: 4, chunks: 2",
        "schedule: gpipe, pipeline: 8", "schedule: zb-h1, pipeline: 4",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct simulated simulated;
        struct error err = {0};
        struct run alone;

        simulated_load(&simulated, "model: {preset: gpt3-175b}\ncluster: {platform: dgx-a100, nodes: 2}\n"
                       "batch: {global: 64, micro: 1}\nstrategy: {%s}\n", changes[i]);
        assert_true(memory_is_short(simulated_workload(&simulated)));
        assert_int_equal(simulate(simulated_workload(&simulated), memory_needs, &alone, &err), 0);
        assert_int_equal(simulate(simulated_workload(&simulated), (struct simulate_options){.engine = ENGINE_FAST},
                                  &simulated.run, &err), 0);
        assert_true(alone.metrics.peak_memory > memory_limit(&simulated.scenario));
        expect_near("peak memory", alone.metrics.peak_memory, simulated.run.metrics.peak_memory, changes[i]);
        assert_int_equal(alone.metrics.peak_rank % simulated.scenario.plan.stages,
                         simulated.run.metrics.peak_rank % simulated.scenario.plan.stages);
        run_release(&alone);
        simulated_release(&simulated);
    }
}

/* A stage is refused if it has more layers than its tables can hold in memory, unless it needs no plan. */
static void test_layers(void **state)
{
    (void)state;
    for (int limit = 10; limit <= 1000; limit *= 100) {
        struct simulated simulated;
        struct error err = {0};
        char *layers = NULL;
        size_t size;
        FILE *out = open_memstream(&layers, &size);

        for (int l = 0; l < 500; l++)
            fprintf(out, "{name: l%d, forward: 1 ms, backward: 2 ms, activation: 100 MB, boundary: 3 MB}, ", l);
        fclose(out);
        simulated_load(&simulated, "model: {layers: [%s]}\ncluster: {nodes: 1, gpus_per_node: 1, gpu: a100-80gb}\n"
                       "batch: {micro_batches: 4}\nmemory: {recompute: optimal, limit: %d GB}\n", layers, limit);
        assert_int_equal(workload_init(&simulated.workload, &simulated.scenario, &err), limit == 10 ? -1 : 0);
        if (err.count)
            assert_non_null(strstr(err.messages[0].text, "500 layers would need tables of about "));
        error_release(&err);
        simulated_release(&simulated);
        free(layers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
