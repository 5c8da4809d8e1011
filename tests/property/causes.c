/* What uneven stages and jitter add to an iteration, against closed forms and against the scenario without them. */
#include "simulated.h"

/* What `dtsim run` simulates. */
__attribute__((format(printf, 2, 3)))
static void run_causes(struct simulated *simulated, const char *format, ...)
{
    struct error err = {0};
    va_list arguments;

    va_start(arguments, format);
    simulated_vload(simulated, format, arguments);
    va_end(arguments);
    struct simulate_options options = simulate_options_of(&simulated->scenario);
    options.causes = true;
    if (simulate(simulated_workload(simulated), options, &simulated->run, &err))
        fail_at(simulated->text, &err);
}

static bool is_uneven(const struct program *program)
{
    struct loads *loads = program_loads(program, NULL);
    bool uneven = program_uneven(program, loads);

    loads_release(loads);
    return uneven;
}

/* GPipe's forwards take sum f + (M-1) max f, its backwards alike: what the slowest stage adds to M times the mean is
 * bubble of imbalance. */
static void test_gpipe_closed_form(void **state)
{
    static const double forward[] = {3, 1, 4, 1}, backward[] = {5, 9, 2, 6};
    enum { STAGES = COUNT(forward) };

    (void)state;
    for (int m = 1; m <= 16; m = 2 * m + 1) {
        struct simulated simulated;

        run_causes(&simulated, "model: {stages: [{forward: 3 s, backward: 5 s}, {forward: 1 s, backward: 9 s}, "
                   "{forward: 4 s, backward: 2 s}, {forward: 1 s, backward: 6 s}]}\ncluster: ideal\n"
                   "batch: {micro_batches: %d}\nstrategy: {schedule: gpipe, pipeline: 4}\n", m);
        double means = 0, most = 4 + 9;
        for (int s = 0; s < STAGES; s++)
            means += (forward[s] + backward[s]) / STAGES;
        const struct metrics *metrics = &simulated.run.metrics;
        expect_near("imbalance", metrics->imbalance, (m - 1) * (most - means), simulated.text);
        expect_near("the rest of the bubble", metrics->seconds[ACCOUNT_BUBBLE] - metrics->imbalance,
                    (STAGES - 1) * means, simulated.text);
        assert_true(metrics->jitter == 0);
        simulated_release(&simulated);
    }
}

/* Nothing is uneven where all stages are alike: not even with chunks, replicas, a stage that recomputes nothing, or one
 * that several ranks share and that takes as many times longer. */
static void test_even_stages(void **state)
{
    static const char *const even[] = {
        "model: {stages: {forward: 1 s, backward: 2 s}}\nstrategy: {schedule: 1f1b, pipeline: 4, data: 2}\n",
        "model: {stages: {forward: 1 s, backward: 2 s}}\nstrategy: {schedule: interleaved, pipeline: 4, chunks: 3}\n",
        "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s}}\nmemory: {recompute: full}\n"
        "strategy: {schedule: varuna, pipeline: 4}\n",
        "model: {stages: {forward: 1 s, backward: 2 s, backward_input: 1 s, backward_weight: 1 s}}\n"
        "strategy: {schedule: zb-v, pipeline: 4}\n",
        "model: {stages: {forward: 1 s, backward: 2 s}}\nstrategy: {schedule: chimera, pipeline: 4}\n",
        "model: {stages: [{forward: 2 s, backward: 4 s}, {forward: 1 s, backward: 2 s}]}\n"
        "strategy: {schedule: pipedream, stage_replicas: [2, 1], data: 1}\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(even); i++) {
        struct simulated simulated;

        run_causes(&simulated, "%scluster: ideal\nbatch: {micro_batches: 16}\n", even[i]);
        assert_true(simulated.run.metrics.imbalance == 0);
        assert_false(is_uneven(&simulated.run.lowered.program));
        simulated_release(&simulated);
    }
}

/* Jitter adds what the same scenario takes longer than without; neither replay changes any other number. */
static void test_jitter(void **state)
{
    static const char *const engines[] = {"ideal", "simgrid"};
    const char *text = "model: {stages: [{forward: 10 ms, backward: 20 ms, boundary: 100 MB}, {forward: 12 ms, "
                       "backward: 21 ms}]}\ncluster: {platform: dgx-a100, nodes: 1, gpus_per_node: 2}\n"
                       "batch: {micro_batches: 6}\nstrategy: {schedule: 1f1b, pipeline: 2, data: 1}\n"
                       "simulation: {engine: %s, jitter: %g, seed: 3}\n";

    (void)state;
    for (size_t e = 0; e < COUNT(engines); e++) {
        struct simulated with, without, alone;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        run_causes(&with, text, engines[e], 0.2);
        run_causes(&without, text, engines[e], 0.0);
        run_text(&alone, text, engines[e], 0.2);
#pragma GCC diagnostic pop
        assert_true(with.run.metrics.jitter != 0);
        assert_true(with.run.metrics.jitter ==
                    with.run.metrics.iteration_time - without.run.metrics.iteration_time);
        assert_true(without.run.metrics.jitter == 0 && without.run.metrics.imbalance != 0);
        assert_true(isnan(alone.run.metrics.jitter) && isnan(alone.run.metrics.imbalance));
        assert_true(alone.run.metrics.iteration_time == with.run.metrics.iteration_time);
        assert_memory_equal(alone.run.metrics.seconds, with.run.metrics.seconds, sizeof alone.run.metrics.seconds);
        simulated_release(&with);
        simulated_release(&without);
        simulated_release(&alone);
    }
}

/* Of R replicas one GPU takes longer: all others wait M times what a micro-batch takes longer, however they exchange
 * gradients. Where none is slower, or there is no other replica, nobody waits for one. It is a part of each rank's bubble. */
static void test_slow_replica(void **state)
{
    static const char *const exchanges[] = {
        "zero: 0", "zero: 1", "zero: 2", "zero: 3", "data_parallel: synchronous", "data_parallel: parameter-server",
    };
    enum { M = 4, R = 4 };

    (void)state;
    for (size_t i = 0; i < COUNT(exchanges); i++)
        for (int kind = 0; kind < 4; kind++) {
            bool pipeline = kind == 2, slow = kind > 0, alone = kind == 3;
            struct simulated simulated;
            const struct metrics *metrics = &simulated.run.metrics;
            double sum = 0;

            run_causes(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 k}}\ncluster: ideal\n"
                       "batch: {micro_batches: %d}\nstrategy: {pipeline: %d, data: %d, %s}\n"
                       "simulation: {engine: fast, stragglers: [{gpu: 1, slower: %g}]}\n", M, pipeline || alone ? 2 : 1,
                       alone ? 1 : R, exchanges[i], slow ? 1.5 : 1);
            for (int r = 0; r < metrics->nranks; r++) {
                const struct rank_metrics *rank = &metrics->ranks[r];

                sum += rank->replica_wait / metrics->nranks;
                assert_true(rank->replica_wait >= 0 &&
                            rank->replica_wait <= rank->seconds[ACCOUNT_BUBBLE] * (1 + ROUNDING));
            }
            expect_near("the mean of ranks", metrics->replica_wait, sum, simulated.text);
            if (kind == 1)
                expect_near("the wait for one", metrics->replica_wait, M * 3 * 0.5 * (R - 1) / R, simulated.text);
            else if (pipeline)
                assert_true(metrics->replica_wait > 0 && metrics->replica_wait < metrics->seconds[ACCOUNT_BUBBLE]);
            else
                assert_true(metrics->replica_wait == 0);
            simulated_release(&simulated);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpipe_closed_form), cmocka_unit_test(test_even_stages), cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_slow_replica),
    };

    return cmocka_run_group_tests_name("causes", tests, NULL, NULL);
}
