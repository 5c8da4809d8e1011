/* reading: what a step waits for its samples. Against closed forms, on schedules with and without a flush: samples over rate
 * more where nothing is read ahead, and else no less than that; no other second of the account moves. */
#include "simulated.h"

static void run_reading(struct simulated *simulated, const char *schedule, int global, const char *data)
{
    run_text(simulated, "model: {transformer: {layers: 8, hidden: 512, heads: 8, sequence: 256, vocabulary: 4096}}\n"
             "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: %d, micro: 1}\nsimulation: {engine: fast}\n"
             "strategy: {schedule: %s, pipeline: 4, data: 2}\n%s", global, schedule, data);
}

static void test_wait(void **state)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1", "pipedream-2bw"};
    uint64_t seed = 6;
    struct arena arena = {0};

    (void)state;
    for (int i = 0; i < 24; i++) {
        const char *schedule = schedules[(size_t)i % COUNT(schedules)];
        int global = 16 << random_below(&seed, 3);
        struct simulated plain, read;

        run_reading(&plain, schedule, global, "");
        double time = plain.run.metrics.iteration_time, samples = plain.run.metrics.samples;
        double needed = time * (1 + random_below(&seed, 400)) / 200;

        for (int overlap = 0; overlap < 2; overlap++) {
            const struct metrics *m = &read.run.metrics;
            double wait = overlap ? fmax(0, needed - time) : needed, sum = 0;

            run_reading(&read, schedule, global, arena_printf(&arena, "data: {read: %.17g samples/s, overlap: %s}\n",
                                                              samples / needed, overlap ? "true" : "false"));
            for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++) {
                double moved = m->seconds[kind] - plain.run.metrics.seconds[kind];

                sum += m->seconds[kind];
                assert_true(fabs(moved - (kind == ACCOUNT_BUBBLE ? wait : 0)) < 1e-9 * time);
            }
            if (fabs(m->iteration_time - time - wait) > 1e-9 * time || fabs(sum - m->iteration_time) > 1e-9 * time ||
                fabs(m->reading - wait) > 1e-9 * time)
                fail_msg("%s, %d samples, overlap %d: %g s instead of %g + %g", schedule, global, overlap, m->iteration_time, time,
                         wait);
            assert_true(fabs(m->samples_per_s * m->iteration_time / samples - 1) < 1e-9);
            simulated_release(&read);
        }
        simulated_release(&plain);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wait)};

    return cmocka_run_group_tests_name("reading", tests, NULL, NULL);
}
