/* Interleaved 1F1B, looped BFS, interleaved zero bubble: orders as Megatron-LM and PyTorch run them, closed forms. */
#include "strategies/interleaving.h"
#include "schedule_rows.h"

enum { STAGES = 16, MICRO_BATCHES = 40, CHUNKS = 4 };

/* A plan that owns its options. */
struct planned {
    struct plan plan;
    struct interleaving_options options;
};

static const struct plan *plan_of(struct planned *planned, int stages, int chunks, int micro_batches, int group)
{
    *planned = (struct planned){
        .plan = {.stages = stages, .chunks = chunks, .micro_batches = micro_batches, .batches = 1,
                 .placement = PLACEMENT_LOOP},
        .options = {.micro_batch_group = group},
    };
    planned->plan.options = &planned->options;
    return &planned->plan;
}

/* Megatron-LM (its training loop) and PyTorch (ScheduleLoopedBFS, ScheduleInterleavedZeroBubble). */
static const struct { const char *schedule; int stages, chunks, micro_batches; const char *orders; } peers[] = {
    {"interleaved", 2, 2, 2, "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n"},
    {"interleaved", 4, 2, 8,
     "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,0B0,4F7,0B1,0B2,0B3,4B4,4B5,4B6,4B7,"
     "0B4,0B5,0B6,0B7\n"
     "1F0,1F1,1F2,1F3,5F0,5F1,5F2,5F3,1F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,5F4,1B0,5F5,1B1,5F6,1B2,5F7,1B3,5B4,5B5,5B6,5B7,"
     "1B4,1B5,1B6,1B7\n"
     "2F0,2F1,2F2,2F3,6F0,6F1,6F2,6B0,6F3,6B1,2F4,6B2,2F5,6B3,2F6,2B0,2F7,2B1,6F4,2B2,6F5,2B3,6F6,6B4,6F7,6B5,6B6,6B7,"
     "2B4,2B5,2B6,2B7\n"
     "3F0,3F1,3F2,3F3,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3F4,3B0,3F5,3B1,3F6,3B2,3F7,3B3,7F4,7B4,7F5,7B5,7F6,7B6,7F7,7B7,"
     "3B4,3B5,3B6,3B7\n"},
    {"looped-bfs", 2, 2, 2, "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n"},
    {"looped-bfs", 2, 3, 8,
     "0F0,0F1,0F2,0F3,0F4,0F5,0F6,0F7,2F0,2F1,2F2,2F3,2F4,2F5,2F6,2F7,4F0,4F1,4F2,4F3,4F4,4F5,4F6,4F7,"
     "4B7,4B6,4B5,4B4,4B3,4B2,4B1,4B0,2B7,2B6,2B5,2B4,2B3,2B2,2B1,2B0,0B7,0B6,0B5,0B4,0B3,0B2,0B1,0B0\n"
     "1F0,1F1,1F2,1F3,1F4,1F5,1F6,1F7,3F0,3F1,3F2,3F3,3F4,3F5,3F6,3F7,5F0,5F1,5F2,5F3,5F4,5F5,5F6,5F7,"
     "5B7,5B6,5B5,5B4,5B3,5B2,5B1,5B0,3B7,3B6,3B5,3B4,3B3,3B2,3B1,3B0,1B7,1B6,1B5,1B4,1B3,1B2,1B1,1B0\n"},
    {"interleaved-zb", 2, 2, 2,
     "0F0,0F1,2F0,2F1,2I0,2W0,2I1,2W1,0I0,0W0,0I1,0W1\n1F0,1F1,3F0,3I0,3F1,3I1,3W0,1I0,3W1,1I1,1W0,1W1\n"},
    {"interleaved-zb", 4, 1, 8,
     "0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0F5,0I2,0W2,0F6,0I3,0W3,0F7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7\n"
     "1F0,1F1,1F2,1I0,1F3,1I1,1W0,1F4,1I2,1W1,1F5,1I3,1W2,1F6,1I4,1W3,1F7,1I5,1W4,1I6,1W5,1I7,1W6,1W7\n"
     "2F0,2F1,2I0,2F2,2I1,2F3,2I2,2W0,2F4,2I3,2W1,2F5,2I4,2W2,2F6,2I5,2W3,2F7,2I6,2W4,2I7,2W5,2W6,2W7\n"
     "3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3W0,3F4,3I4,3W1,3F5,3I5,3W2,3F6,3I6,3W3,3F7,3I7,3W4,3W5,3W6,3W7\n"},
};

static void test_orders_of_peers(void **state)
{
    struct planned planned;

    (void)state;
    for (size_t i = 0; i < COUNT(peers); i++)
        expect_orders(schedule_named(peers[i].schedule),
                      plan_of(&planned, peers[i].stages, peers[i].chunks, peers[i].micro_batches, 0), peers[i].orders);
}

static const struct schedule *peer_schedule(const char *peer, int group, struct plan *plan)
{
    static const struct { const char *peer, *schedule; } names[] = {
        {"megatron_interleaved", "interleaved"}, {"pytorch_interleaved", "interleaved"},
        {"pytorch_interleavedzb", "interleaved-zb"}, {"pytorch_loopedbfs", "looped-bfs"},
    };
    static struct interleaving_options options;

    options.micro_batch_group = group;
    plan->options = &options;
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(peer, names[i].peer))
            return schedule_named(names[i].schedule);
    return NULL;
}

static void test_orders_of_folder(void **state)
{
    (void)state;
    expect_orders_of_folder(peer_schedule);
}

static const double whole[][WORK_KIND_COUNT] = {
    {[FORWARD] = 1, [BACKWARD] = 2, [BACKWARD_INPUT] = 1, [BACKWARD_WEIGHT] = 1, [RECOMPUTE] = 1},
    {[FORWARD] = 17, [BACKWARD] = 26, [BACKWARD_INPUT] = 13, [BACKWARD_WEIGHT] = 13, [RECOMPUTE] = 5},
};

/* Properties of every accepted plan; a refused plan deadlocks. Returns the makespan, or -1. */
static double expect_plan(const struct schedule *strategy, const struct plan *plan, const double *cost)
{
    struct row *rows = rows_of(strategy, plan);
    double makespan = replay_in_order(rows, plan, cost, 0, NULL);
    double ideal = strategy->ideal_makespan(plan, cost[FORWARD], cost[BACKWARD], cost[RECOMPUTE]);
    struct error err = {0};

    if (strategy->check && strategy->check(plan, (struct loc){0}, &err)) {
        assert_int_equal(error_exit_code(&err), EXIT_INFEASIBLE);
        error_release(&err);
        assert_true(makespan < 0);
    } else {
        assert_true(makespan >= 0);
        if (!isnan(ideal))
            assert_true(makespan == ideal);
    }
    for (int rank = 0; rank < plan->stages; rank++) {
        expect_complete(&rows[rank], plan);
        assert_int_equal(most_in_flight(&rows[rank]), strategy->ideal_in_flight(plan, rank));
    }
    rows_release(rows, plan->stages);
    return makespan;
}

static double slots(int stages, int chunks, int micro_batches)
{
    int more = stages > micro_batches ? stages : micro_batches, less = stages + micro_batches - more;

    return chunks * more + less - 1;
}

static void test_every_plan(void **state)
{
    const struct schedule *interleaved = schedule_named("interleaved"), *bfs = schedule_named("looped-bfs");
    const struct schedule *zb = schedule_named("interleaved-zb");
    struct planned planned;

    (void)state;
    for (int p = 1; p <= STAGES; p++)
        for (int v = 1; v <= CHUNKS; v++)
            for (int m = 1; m <= MICRO_BATCHES; m++) {
                const struct plan *plan = plan_of(&planned, p, v, m, 0);
                const double *cost = whole[(p + v + m) % 2];
                double both = cost[FORWARD] + cost[BACKWARD], makespan;

                planned.plan.recompute = (p + m) % 3 == 0;
                both += plan->recompute ? cost[RECOMPUTE] : 0;
                assert_true(expect_plan(bfs, plan, cost) == slots(p, v, m) * both);
                makespan = expect_plan(interleaved, plan, cost);
                if (v == 1 || m <= p || m % p == 0)
                    assert_true(makespan == slots(p, v, m) * both);
                makespan = expect_plan(zb, plan, cost);
                if (m % p == 0)
                    assert_true(makespan == v * m * both + (p - 1) * (both - cost[BACKWARD]));
            }
}

/* Groups of any size: the time of even groups if the last one has a micro-batch for every rank; else slower, or
 * refused. */
static void test_groups(void **state)
{
    const struct schedule *interleaved = schedule_named("interleaved"), *zb = schedule_named("interleaved-zb");
    struct planned planned;
    int refused = 0;

    (void)state;
    for (int p = 1; p <= 6; p++)
        for (int v = 1; v <= 3; v++)
            for (int m = 1; m <= 20; m++)
                for (int group = 1; group <= m + 2; group++) {
                    const struct plan *plan = plan_of(&planned, p, v, m, group);
                    double ideal = slots(p, v, m) * 3, makespan = expect_plan(interleaved, plan, whole[0]);
                    /* as the help of both says: no group has less than p micro-batches */
                    bool full = group >= p && m >= p && (m <= group || m % group == 0 || m % group >= p);

                    if (v == 1 || full || (m <= p && m <= group))
                        assert_true(makespan == ideal);
                    else
                        assert_true(makespan < 0 || makespan > ideal);
                    assert_true(isnan(interleaved->ideal_makespan(plan, 1, 2, 0)) ==
                                !(v == 1 || full || (m <= p && m <= group)));
                    assert_true(isnan(zb->ideal_makespan(plan, 1, 2, 0)) ==
                                !((full && group <= m) || (v == 1 && m >= p)));
                    for (int rank = 0; rank < p; rank++) {
                        int warm = (v - 1) * group + 2 * (p - 1 - rank) + 1;

                        assert_int_equal(interleaved->ideal_in_flight(plan, rank), warm < v * m ? warm : v * m);
                    }
                    refused += makespan < 0;
                    expect_plan(zb, plan, whole[0]);
                }
    assert_true(refused > 0);
}

/* PyTorch's groups: M / P groups of equal size. */
static void test_default_groups(void **state)
{
    static const struct { const char *schedule; int stages, micro_batches, group; } cases[] = {
        {"interleaved", 4, 8, 4}, {"interleaved", 4, 10, 4}, {"interleaved", 4, 3, 4}, {"interleaved-zb", 4, 8, 4},
        {"interleaved-zb", 4, 10, 5}, {"interleaved-zb", 4, 3, 3}, {"interleaved-zb", 4, 9, 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct schedule *strategy = schedule_named(cases[i].schedule);
        struct planned one, other;
        int p = cases[i].stages, m = cases[i].micro_batches;
        const struct plan *plan = plan_of(&one, p, 2, m, 0);
        struct row *rows = rows_of(strategy, plan_of(&other, p, 2, m, cases[i].group));
        char *orders = orders_of(rows, plan);

        expect_orders(strategy, plan, orders);
        free(orders);
        rows_release(rows, plan->stages);
    }
}

/* Slots that PyTorch needs: 27 as ZB-H1, and 51 with two chunks. */
static void test_slots_of_zero_bubble(void **state)
{
    const struct schedule *zb = schedule_named("interleaved-zb");
    struct planned planned;

    (void)state;
    assert_true(expect_plan(zb, plan_of(&planned, 4, 1, 8, 0), whole[0]) == 27);
    assert_true(expect_plan(zb, plan_of(&planned, 4, 2, 8, 0), whole[0]) == 51);
}

/* The bubble in seconds is as long as in 1F1B with stages of the size of one chunk, so chunks divide it. */
static void test_bubble_of_1f1b(void **state)
{
    const struct schedule *interleaved = schedule_named("interleaved"), *plain = schedule_named("1f1b");
    struct planned planned;

    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = p; m <= 4 * p; m += p) {
            const struct plan *plan = plan_of(&planned, p, 1, m, 0);
            struct row *rows = rows_of(plain, plan);
            double bubble = replay_in_order(rows, plan, whole[0], 0, NULL) - 3 * m;

            rows_release(rows, p);
            for (int v = 1; v <= CHUNKS; v++)
                assert_true(expect_plan(interleaved, plan_of(&planned, p, v, m, 0), whole[0]) - 3 * v * m == bubble);
        }
}

static void test_refusal(void **state)
{
    struct scenario scenario;
    struct error err = {0};
    char *messages = NULL;
    size_t size;

    (void)state;
    assert_int_equal(load_text("model: {stages: {forward: 1 s}}\ncluster: ideal\nbatch: {micro_batches: 5}\n"
                               "strategy: {schedule: interleaved, pipeline: 4, chunks: 3}\n", &scenario, &err), -1);
    assert_int_equal(error_exit_code(&err), EXIT_INFEASIBLE);
    FILE *out = open_memstream(&messages, &size);
    error_print(&err, out);
    fclose(out);
    assert_non_null(strstr(messages,
                           ":4:22: error: strategy: interleaved deadlocks with pipeline 4, chunks 3 and 5 "
                           "micro-batches a replica in groups of 4; try micro-batches, or a micro_batch_group, "
                           "that are a multiple of 4\n"));
    free(messages);
    error_release(&err);
    scenario_release(&scenario);
}

/* The whole way: transfers from the last rank to the first, memory, both engines. */
static void test_simulated(void **state)
{
    static const char *const schedules[] = {"interleaved", "looped-bfs", "interleaved-zb"};

    (void)state;
    for (int i = 0; i < 3 * 24; i++) {
        int p = 1 + i % 4, v = 1 + i % 3, m = p * (1 + i % 5);
        struct simulated simulated;
        const struct schedule *strategy;
        const struct plan *plan;

        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s, activation: 1 B}}\n"
                 "cluster: ideal\nbatch: {micro_batches: %d}\nstrategy: {schedule: %s, pipeline: %d, chunks: %d}\n"
                 "memory: {recompute: %s}\nsimulation: {engine: %s}\n", m, schedules[i / 24], p, v,
                 i % 7 ? "none" : "full", i % 2 ? "ideal" : "simgrid");
        plan = &simulated.scenario.plan;
        strategy = scenario_schedule(&simulated.scenario);
        expect_near("makespan", simulated.run.metrics.iteration_time, strategy->ideal_makespan(plan, 1, 2, 1),
                    simulated.text);
        for (int rank = 0; rank < p && !plan->recompute; rank++)
            expect_near("in flight", simulated.run.metrics.ranks[rank].peak_activation,
                        strategy->ideal_in_flight(plan, rank), simulated.text);
        simulated_release(&simulated);
    }
}

/* Boundaries that take time, also from the last rank back to the first. */
static void test_transfers(void **state)
{
    static const char *const schedules[] = {"interleaved", "looped-bfs", "interleaved-zb"};

    (void)state;
    for (int i = 0; i < 3 * 16; i++) {
        int p = 2 + i % 3, v = 1 + i % 4, m = p * (1 + i % 2);
        struct simulated simulated;

        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro_batches: %d}\n"
                 "cluster: {nodes: %d, gpus_per_node: 1, network: {bandwidth: 1 GB/s, latency: 0.25 s}}\n"
                 "strategy: {schedule: %s, pipeline: %d, chunks: %d}\nsimulation: {engine: %s}\n",
                 m, p, schedules[i / 16], p, v, i % 2 ? "ideal" : "simgrid");
        expect_near("makespan", simulated.run.metrics.iteration_time,
                    replay_in_order(simulated.workload.rows, &simulated.workload.plan, whole[0], 0.25, NULL),
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* An output layer tied to the embedding is a copy only where it stands on another rank, not in another chunk. */
static void test_tied_chunks(void **state)
{
    double parameters[2];

    (void)state;
    for (int v = 1; v <= 2; v++) {
        struct simulated simulated;

        run_text(&simulated, "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {micro_batches: 2}\nstrategy: {schedule: interleaved, chunks: %d, data: 1}\n"
                 "simulation: {engine: ideal}\n", v);
        parameters[v - 1] = simulated.run.metrics.memory.bytes[MEMORY_PARAMETERS];
        simulated_release(&simulated);
    }
    assert_true(parameters[0] > 0 && parameters[0] == parameters[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_of_peers),
        cmocka_unit_test(test_orders_of_folder),
        cmocka_unit_test(test_every_plan),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_default_groups),
        cmocka_unit_test(test_slots_of_zero_bubble),
        cmocka_unit_test(test_bubble_of_1f1b),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_tied_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
