/* Every schedule against published programs: orders as they run them, closed forms. */
#include "schedule_list.h"
#include "trials.h"

/* Schedules whose rules are known here. */
enum known { NAIVE, GPIPE_DESCENDING, GPIPE_ASCENDING, ONE_F_ONE_B, KNOWN_COUNT };
static const char *const known_yaml[] = {
    "schedule: naive", "schedule: gpipe, backward: descending", "schedule: gpipe, backward: ascending",
    "schedule: 1f1b",
};

static const char *const engines[] = {"ideal", "simgrid"};

struct times { double forward, backward, recompute; };

/* As torch.distributed.pipelining (ScheduleGPipe, Schedule1F1B), DeepSpeed (TrainSchedule) and torchgpipe (with its
 * checkpoints on all but the last micro-batch) run them. */
static const struct { const char *schedule; int stages, micro_batches; bool recompute; const char *orders; } peers[] = {
    {"schedule: gpipe, backward: ascending", 4, 2, false,
     "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2F1,2B0,2B1\n3F0,3F1,3B0,3B1\n"},
    {"schedule: gpipe, backward: ascending", 4, 5, false,
     "0F0,0F1,0F2,0F3,0F4,0B0,0B1,0B2,0B3,0B4\n1F0,1F1,1F2,1F3,1F4,1B0,1B1,1B2,1B3,1B4\n"
     "2F0,2F1,2F2,2F3,2F4,2B0,2B1,2B2,2B3,2B4\n3F0,3F1,3F2,3F3,3F4,3B0,3B1,3B2,3B3,3B4\n"},
    {"schedule: 1f1b", 4, 4, false,
     "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1F1,1F2,1B0,1F3,1B1,1B2,1B3\n"
     "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2B3\n3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3\n"},
    {"schedule: 1f1b", 2, 2, false, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"},
    {"schedule: 1f1b", 3, 1, false, "0F0,0B0\n1F0,1B0\n2F0,2B0\n"},
    {"schedule: gpipe, recompute_last: true", 2, 2, true, "0F0,0F1,0R1,0B1,0R0,0B0\n1F0,1F1,1R1,1B1,1R0,1B0\n"},
    {"schedule: gpipe, passes: 2, backward: ascending", 2, 4, false,
     "0F0,0F1,0B0,0B1,0F2,0F3,0B2,0B3\n1F0,1F1,1B0,1B1,1F2,1F3,1B2,1B3\n"},
    {"schedule: gpipe", 2, 3, true, "0F0,0F1,0F2,0B2,0R1,0B1,0R0,0B0\n1F0,1F1,1F2,1B2,1R1,1B1,1R0,1B0\n"},
};

static void test_orders_of_peers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(peers); i++) {
        struct simulated simulated;
        char *orders;

        load_stages(&simulated, peers[i].schedule, peers[i].stages, peers[i].micro_batches, peers[i].recompute);
        orders = orders_text(&simulated);
        assert_string_equal(orders, peers[i].orders);
        free(orders);
        simulated_release(&simulated);
    }
}

/* The rules in closed form: the work at each place of a row without recomputation. DeepSpeed's clocks for 1F1B: forward
 * m of stage s at s + 2m, backward m at 2P - 1 - s + 2m, but forwards of the warm-up back to back. */
static struct work expected_work(enum known known, int place, int stages, int rank, int micro_batches)
{
    int half = place % micro_batches, warm = stages - 1 - rank < micro_batches ? stages - 1 - rank : micro_batches;

    switch (known) {
    case NAIVE:
        return (struct work){place % 2 ? BACKWARD : FORWARD, 0, place / 2, false};
    case GPIPE_DESCENDING:
        return place < micro_batches ? (struct work){FORWARD, 0, half, false}
                                     : (struct work){BACKWARD, 0, micro_batches - 1 - half, false};
    case GPIPE_ASCENDING:
        return (struct work){place < micro_batches ? FORWARD : BACKWARD, 0, half, false};
    default:
        if (place < warm)
            return (struct work){FORWARD, 0, place, false};
        if (place >= 2 * micro_batches - warm)
            return (struct work){BACKWARD, 0, place - micro_batches, false};
        return (place - warm) % 2 ? (struct work){BACKWARD, 0, (place - warm) / 2, false}
                                  : (struct work){FORWARD, 0, warm + (place - warm) / 2, false};
    }
}

static void assert_row(enum known known, const struct plan *plan, int rank, const struct row *row)
{
    size_t at = 0;

    for (int place = 0; place < 2 * plan->micro_batches; place++) {
        struct work work = expected_work(known, place, plan->stages, rank, plan->micro_batches);
        bool gpipe = known == GPIPE_ASCENDING || known == GPIPE_DESCENDING;

        if (plan->recompute && work.kind == BACKWARD && !(gpipe && work.mb == plan->micro_batches - 1)) {
            assert_int_equal(row->items[at].kind, RECOMPUTE);
            assert_int_equal(row->items[at].mb, work.mb);
            assert_int_equal(row->items[at++].chunk, 0);
        }
        assert_int_equal(row->items[at].kind, work.kind);
        assert_int_equal(row->items[at].mb, work.mb);
        assert_int_equal(row->items[at++].chunk, 0);
    }
    assert_int_equal(row->count, at);
}

static void test_orders_by_rule(void **state)
{
    (void)state;
    for (int known = 0; known < KNOWN_COUNT; known++)
        for (int stages = 1; stages <= 16; stages += stages < 5 ? 1 : 3)
            for (int micro_batches = 1; micro_batches <= 19; micro_batches += micro_batches < 5 ? 1 : 3) {
                struct simulated simulated;
                struct row *rows;

                load_stages(&simulated, known_yaml[known], stages, micro_batches, (stages + micro_batches) % 2);
                rows = rows_of(scenario_schedule(&simulated.scenario), &simulated.scenario.plan);
                for (int rank = 0; rank < stages; rank++)
                    assert_row((enum known)known, &simulated.scenario.plan, rank, &rows[rank]);
                rows_release(rows, stages);
                simulated_release(&simulated);
            }
}

/* Properties of the rows of every schedule: every micro-batch has a forward and a backward (whole or in two parts), the
 * forward comes first, a recomputation comes right before its backward. If two directions share a rank, they share the
 * micro-batches, each counting its own from 0. */
static void assert_row_complete(const struct plan *plan, const struct row *row)
{
    int micro_batches = plan_micro_batches(plan), cells = plan->chunks * micro_batches;
    int *seen = xcalloc((size_t)cells, sizeof *seen);

    for (size_t i = 0; i < row->count; i++) {
        struct work work = row->items[i];
        int *cell = &seen[work.chunk * micro_batches + work.mb];

        if (work.kind == UPDATE)
            continue;
        assert_in_range(work.mb, 0, micro_batches - 1);
        assert_in_range(work.chunk, 0, plan->chunks - 1);
        if (work.kind == RECOMPUTE) {
            const struct work *next = &row->items[i + 1];

            next += i + 2 < row->count && next->with_next;      /* the backward overlaps with another's forward */
            assert_true(i + 1 < row->count && next->mb == work.mb && next->chunk == work.chunk);
            assert_true(next->kind == BACKWARD || next->kind == BACKWARD_INPUT);
            assert_int_equal(*cell, 1);
            continue;
        }
        /* states: 0 nothing, 1 forward, 2 backward for the input, 3 all done */
        assert_int_equal(*cell, work.kind == FORWARD ? 0 : work.kind == BACKWARD_WEIGHT ? 2 : 1);
        *cell = work.kind == FORWARD ? 1 : work.kind == BACKWARD_INPUT ? 2 : 3;
    }
    for (int i = 0; i < cells; i++)
        assert_int_equal(seen[i], 3);
    free(seen);
}

static void test_rows_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; schedule_at(i); i++)
        for (int stages = 1; stages <= 16; stages += stages < 4 ? 1 : 4)
            for (int micro_batches = 1; micro_batches <= 33; micro_batches += micro_batches < 4 ? 1 : 5) {
                struct simulated simulated;
                struct error err = {0};
                struct row *rows;
                char *text;

                assert_true(asprintf(&text, "model: {stages: {forward: 1 s}}\ncluster: ideal\n"
                                     "batch: {micro_batches: %d}\nmemory: {recompute: %s}\n"
                                     "strategy: {schedule: %s, pipeline: %d, chunks: %d}\n", micro_batches,
                                     micro_batches % 2 ? "full" : "none", schedule_name(i), stages,
                                     chunks_of(schedule_at(i))) > 0);
                memset(&simulated, 0, sizeof simulated);
                simulated.text = text;
                if (!load_text(text, &simulated.scenario, &err)) {     /* a schedule may refuse a plan */
                    rows = rows_of(scenario_schedule(&simulated.scenario), &simulated.scenario.plan);
                    for (int rank = 0; rank < stages; rank++)
                        assert_row_complete(&simulated.scenario.plan, &rows[rank]);
                    rows_release(rows, stages);
                }
                error_release(&err);
                simulated_release(&simulated);
            }
}

/* Seconds of one rank's work, all ranks alike. */
static double busy(enum known known, int m, bool recompute, const struct times *t)
{
    int again = !recompute ? 0 : known == GPIPE_ASCENDING || known == GPIPE_DESCENDING ? m - 1 : m;

    return m * (t->forward + t->backward) + again * t->recompute;
}

static double makespan(enum known known, int p, int m, bool recompute, const struct times *t)
{
    double both = t->forward + t->backward;

    if (known == NAIVE)
        return m * p * (both + (recompute ? t->recompute : 0));
    if (known == ONE_F_ONE_B)
        return (m + p - 1) * (both + (recompute ? t->recompute : 0));
    return (m + p - 1) * both + (recompute ? (m - 1) * t->recompute : 0);
}

static void assert_in_flight(enum known known, const struct simulated *simulated, int p, int m, bool recompute)
{
    const struct schedule *strategy = scenario_schedule(&simulated->scenario);

    for (int rank = 0; rank < p; rank++) {
        double peak = simulated->run.metrics.ranks[rank].peak_activation;
        int expected = known == NAIVE ? 1 : known == ONE_F_ONE_B ? (p - rank < m ? p - rank : m) : m;

        assert_int_equal(strategy->ideal_in_flight(&simulated->workload.plan, rank), expected);
        if (!recompute)
            expect_near("in flight", peak, expected, simulated->text);
    }
}

static void assert_closed_forms(enum known known, int p, int m, bool recompute, const struct times *t)
{
    double expected = makespan(known, p, m, recompute, t), work = busy(known, m, recompute, t);

    for (size_t engine = 0; engine < COUNT(engines); engine++) {
        struct simulated simulated;
        const struct metrics *metrics = &simulated.run.metrics;
        const struct schedule *strategy;

        run_text(&simulated,
                 "model: {stages: {forward: %.17g s, backward: %.17g s, recompute: %.17g s, activation: 1 B}}\n"
                 "cluster: ideal\nbatch: {micro_batches: %d}\nstrategy: {%s, pipeline: %d}\n"
                 "memory: {recompute: %s}\nsimulation: {engine: %s}\n", t->forward, t->backward, t->recompute, m,
                 known_yaml[known], p, recompute ? "full" : "none", engines[engine]);
        strategy = scenario_schedule(&simulated.scenario);
        expect_near("makespan", metrics->iteration_time, expected, simulated.text);
        expect_near("ideal makespan", strategy->ideal_makespan(&simulated.workload.plan, t->forward, t->backward,
                                                               t->recompute), expected, simulated.text);
        expect_near("bubble fraction", 1 - metrics->bubble_fraction, work / expected, simulated.text);
        expect_near("bubble overhead", 1 + metrics->bubble_overhead, expected / work, simulated.text);
        expect_near("utilization", metrics->utilization, work / expected, simulated.text);
        if (known == NAIVE)
            expect_near("utilization", metrics->utilization, 1.0 / p, simulated.text);
        else if (!recompute || known == ONE_F_ONE_B)
            expect_near("bubble", 1 - metrics->bubble_fraction, (double)m / (m + p - 1), simulated.text);
        assert_true(metrics->exposed_communication == 0 && metrics->communication_bytes_per_gpu == 0);
        assert_in_flight(known, &simulated, p, m, recompute);
        simulated_release(&simulated);
    }
}

static void test_closed_forms(void **state)
{
    static const struct times times[] = {{1, 2, 1}, {0.0017, 0.0023, 0.0004}, {3, 0.25, 7}};

    (void)state;
    for (int known = 0; known < KNOWN_COUNT; known++)
        for (int p = 1; p <= 8; p++)
            for (int m = 1; m <= 16; m++)
                for (size_t t = 0; t < COUNT(times); t++)
                    if (tried())
                        assert_closed_forms((enum known)known, p, m, (p + m + (int)t) % 2, &times[t]);
}

/* If the last micro-batch is recomputed too, the last stage recomputes every one (torchgpipe's checkpoint='always'). */
static void test_recompute_last(void **state)
{
    (void)state;
    for (int stages = 1; stages <= 4; stages++)
        for (int micro_batches = 1; micro_batches <= 6; micro_batches++) {
            struct simulated simulated;
            double expected = (micro_batches + stages - 1) * 3.0 + micro_batches;

            load_stages(&simulated, "schedule: gpipe, recompute_last: true", stages, micro_batches, true);
            struct error err = {0};
            assert_int_equal(simulated_run(&simulated, &err), 0);
            expect_near("makespan", simulated.run.metrics.iteration_time, expected, simulated.text);
            expect_near("ideal makespan", scenario_schedule(&simulated.scenario)->ideal_makespan(
                        &simulated.workload.plan, 1, 2, 1), expected, simulated.text);
            simulated_release(&simulated);
        }
}

/* Every pass fills and drains the pipeline, and its micro-batches are in flight. */
static void test_passes(void **state)
{
    (void)state;
    for (int passes = 1; passes <= 3; passes++)
        for (int stages = 1; stages <= 4; stages++) {
            struct simulated simulated;
            struct error err = {0};
            char schedule[64];

            snprintf(schedule, sizeof schedule, "schedule: gpipe, passes: %d", passes);
            load_stages(&simulated, schedule, stages, 6, false);
            assert_int_equal(simulated_run(&simulated, &err), 0);
            expect_near("makespan", simulated.run.metrics.iteration_time, 3.0 * passes * (6 / passes + stages - 1),
                        simulated.text);
            expect_near("ideal makespan", scenario_schedule(&simulated.scenario)->ideal_makespan(
                        &simulated.workload.plan, 1, 2, 1), simulated.run.metrics.iteration_time, simulated.text);
            assert_int_equal(scenario_schedule(&simulated.scenario)->ideal_in_flight(&simulated.workload.plan, 0),
                             6 / passes);
            simulated_release(&simulated);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_of_peers),
        cmocka_unit_test(test_orders_by_rule),
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_recompute_last),
        cmocka_unit_test(test_passes),
    };

    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
