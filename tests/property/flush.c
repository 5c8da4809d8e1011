/* Several flushes an iteration (batch.flush): closed forms of time, memory and rows, and what they do not go with. */
#include "simulated.h"

#include "schedule/schedule.h"

#define STAGES "model: {stages: {forward: 1 s, backward: 2 s, activation: 1 MB}}\ncluster: ideal\n"

static const struct { const char *strategy; bool halves; } schedules[] = {
    {"schedule: gpipe, pipeline: 4", false}, {"schedule: 1f1b, pipeline: 4", false},
    {"schedule: interleaved, pipeline: 4, chunks: 2", false}, {"schedule: looped-bfs, pipeline: 4, chunks: 2", false},
    {"schedule: chimera, pipeline: 4", false}, {"schedule: naive, pipeline: 4", false},
    {"schedule: zb-h1, pipeline: 4", true}, {"schedule: dualpipe, pipeline: 4", true},
};
enum { FLUSHES = 3, BETWEEN = 8 };

/* s of an iteration of `micro_batches` a replica; *bytes: the most B of activations. */
static double seconds_of(const char *strategy, int micro_batches, int flush, double *bytes)
{
    struct simulated simulated;
    double seconds;

    run_text(&simulated, STAGES "strategy: {%s}\nbatch: {micro_batches: %d%s%.0d}\nsimulation: {engine: ideal}\n", strategy,
             micro_batches, flush ? ", flush: " : "", flush);
    seconds = simulated.run.metrics.iteration_time;
    *bytes = 0;
    for (int rank = 0; rank < simulated.run.metrics.nranks; rank++)
        *bytes = fmax(*bytes, simulated.run.metrics.ranks[rank].peak_activation);
    simulated_release(&simulated);
    return seconds;
}

/* The first rank ends a flush and begins the next one, so that flushes follow each other without a gap or an overlap.
 * Halves of backwards that others do later overlap with the next forwards: then it is less, and no less than without
 * flushes. No rank keeps more than between two flushes. */
static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        double whole_bytes, part_bytes, flushed_bytes;
        double whole = seconds_of(schedules[i].strategy, FLUSHES * BETWEEN, 0, &whole_bytes);
        double part = seconds_of(schedules[i].strategy, BETWEEN, 0, &part_bytes);
        double flushed = seconds_of(schedules[i].strategy, FLUSHES * BETWEEN, BETWEEN, &flushed_bytes);

        if (!schedules[i].halves)
            expect_near("time", flushed, FLUSHES * part, schedules[i].strategy);
        assert_true(flushed <= FLUSHES * part * (1 + 1e-12) && flushed >= whole * (1 - 1e-12));
        if (!schedules[i].halves)
            expect_near("activations", flushed_bytes, part_bytes, schedules[i].strategy);
        assert_true(seconds_of(schedules[i].strategy, BETWEEN, BETWEEN, &flushed_bytes) == part);
    }
}

/* (p - 1) / (n + p - 1) of a GPipe is bubble, n of the micro-batches between two flushes. */
static void test_bubble(void **state)
{
    struct simulated simulated;

    (void)state;
    run_text(&simulated, STAGES "strategy: {schedule: gpipe, pipeline: 4}\nbatch: {micro_batches: 24, flush: 8}\n"
             "simulation: {engine: ideal}\n");
    expect_near("bubble", simulated.run.metrics.seconds[ACCOUNT_BUBBLE] / simulated.run.metrics.iteration_time, 3.0 / 11,
                simulated.text);
    expect_near("ideal bubble", workload_ideal_bubble(&simulated.workload), 3.0 / 11, simulated.text);
    simulated_release(&simulated);
}

/* Each micro-batch is done once in each chunk and direction. */
static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        struct simulated simulated;
        const struct workload *workload;
        size_t forwards = 0;

        simulated_load(&simulated, STAGES "strategy: {%s}\nbatch: {micro_batches: %d, flush: %d}\n", schedules[i].strategy,
                       FLUSHES * BETWEEN, BETWEEN);
        workload = simulated_workload(&simulated);
        assert_false(rows_deadlock(workload->rows, &workload->plan));
        for (int rank = 0; rank < workload->plan.stages; rank++)
            for (size_t k = 0; k < workload->rows[rank].count; k++)
                forwards += workload->rows[rank].items[k].kind == FORWARD;
        assert_int_equal(forwards, (size_t)workload->plan.stages * (size_t)plan_micro_batches(&workload->plan) *
                                       (size_t)workload->plan.chunks);
        simulated_release(&simulated);
    }
}

static void refused(const char *text, const char *what)
{
    struct scenario scenario;
    struct error err = {0};
    bool found = false;

    assert_int_equal(load_text(text, &scenario, &err), -1);
    for (int i = 0; i < err.count; i++)
        found |= strstr(err.messages[i].text, what) != NULL;
    if (!found)
        fail_at(text, &err);
    error_release(&err);
    scenario_release(&scenario);
}

static void test_refused(void **state)
{
    static const char fsdp[] = "model: {transformer: {layers: 8, hidden: 512, heads: 8, sequence: 512, vocabulary: 1000}}\n"
                               "cluster: {platform: dgx-a100, nodes: 1}\nsoftware: torchtitan\n"
                               "strategy: {pipeline: 2, zero: 3}\nbatch: {micro_batches: 8, flush: 4}\n";

    (void)state;
    refused(STAGES "strategy: {pipeline: 4}\nbatch: {micro_batches: 8, flush: 3}\n", "does not divide the 8");
    refused(STAGES "strategy: {pipeline: 1}\nbatch: {micro_batches: 8, flush: 4}\n", "there is no pipeline");
    refused(STAGES "strategy: {schedule: pipedream, pipeline: 4}\nbatch: {micro_batches: 8, flush: 4}\n",
            "updates without a flush");
    refused(STAGES "strategy: {schedule: chimera, pipeline: 4}\nbatch: {micro_batches: 6, flush: 3}\n", "two directions");
    refused(fsdp, "sums_once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times), cmocka_unit_test(test_bubble), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
