/* Jitter of kernel times: its distribution, its inputs, and the times that it leaves alone. */
#include "engine/jitter.h"
#include "simulated.h"

enum { DRAWS = 200000 };

/* The factor has mean 1 and the given deviation; it is never negative; half of the factors are below the median exp(-v
 * / 2). */
static void test_distribution(void **state)
{
    static const double deviations[] = {0.01, 0.1, 0.5, 1};

    (void)state;
    for (size_t d = 0; d < COUNT(deviations); d++) {
        struct program program = {.ranks = 1};
        uint32_t lane = program_lane(&program, 0, LANE_COMPUTE, 0);
        double sum = 0, squares = 0, deviation = deviations[d], median = exp(-log1p(deviation * deviation) / 2);
        int below = 0;

        for (int i = 0; i < DRAWS; i++)
            program_add(&program, (struct new_op){.lane = lane, .amount = 2, .mb = i}, NULL, 0);
        jitter_apply(&program, deviation, 1);
        for (int i = 0; i < DRAWS; i++) {
            double factor = program.ops.items[i].amount / 2;

            assert_true(factor > 0);
            sum += factor;
            squares += factor * factor;
            below += factor < median;
        }
        assert_true(fabs(sum / DRAWS - 1) < 5 * deviation / sqrt(DRAWS));
        assert_true(fabs(sqrt(squares / DRAWS - sum / DRAWS * sum / DRAWS) / deviation - 1) < 0.05);
        assert_true(abs(below - DRAWS / 2) < 5 * sqrt(DRAWS) / 2);
        program_release(&program);
    }
}

/* Transfers, collectives and the communication inside a work keep their time; the pieces of a work share a factor. */
static void test_what_it_touches(void **state)
{
    struct program program = {.ranks = 2};
    uint32_t lane = program_lane(&program, 1, LANE_COMPUTE, 0), other = program_lane(&program, 1, LANE_COLLECTIVE, 0);
    const struct op *op;

    (void)state;
    program_add(&program, (struct new_op){.lane = lane, .amount = 3, .compute.communication = 1, .mb = 0}, NULL, 0);
    program_add(&program, (struct new_op){.lane = lane, .amount = 4, .mb = 0, .continues = true}, NULL, 0);
    program_add(&program, (struct new_op){.lane = other, .amount = 5, .mb = -1, .what = WHAT_SYNC}, NULL, 0);
    program_add(&program, (struct new_op){.kind = OP_TRANSFER, .lane = other, .amount = 6, .mb = 0}, NULL, 0);
    program_add(&program, (struct new_op){.lane = lane, .amount = 1, .what = WHAT_UPDATE, .mb = -1}, NULL, 0);
    program_add(&program, (struct new_op){.lane = lane, .amount = 1, .what = WHAT_UPDATE, .mb = -1}, NULL, 0);
    jitter_apply(&program, 0, 1);
    op = program.ops.items;
    assert_true(op[0].amount == 3 && op[1].amount == 4 && op[4].amount == 1);
    jitter_apply(&program, 0.2, 1);
    assert_true(op[0].amount != 3 && op_traits(&program, &op[0])->compute.communication == 1);
    expect_near("the second piece", op[1].amount / 4, (op[0].amount - 1) / 2, "a work in two pieces");
    assert_true(op[2].amount == 5 && op[3].amount == 6);
    assert_true(op[4].amount != op[5].amount);
    program_release(&program);
}

static void load(struct simulated *simulated, const char *strategy, double jitter, int seed)
{
    run_text(simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 M}}\n"
             "cluster: {nodes: 4, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 0 s},\n"
             "          network: {bandwidth: 1 GB/s, latency: 0 s}}\nbatch: {micro_batches: 8}\n"
             "strategy: {%s}\nsimulation: {jitter: %.17g, seed: %d, collectives: measured}\n", strategy, jitter, seed);
}

/* All schedules get the same factors; another seed gives others; without jitter there are none; the same seed gives the
 * same ones. */
static void test_common_seed(void **state)
{
    struct simulated gpipe, other, again, seeded;

    (void)state;
    load(&gpipe, "schedule: gpipe, pipeline: 4", 0.1, 7);
    load(&other, "schedule: 1f1b, pipeline: 4", 0.1, 7);
    load(&again, "schedule: gpipe, pipeline: 4", 0.1, 7);
    load(&seeded, "schedule: gpipe, pipeline: 4", 0.1, 8);
    for (int kind = ACCOUNT_FORWARD; kind <= ACCOUNT_BACKWARD; kind++)
        for (int rank = 0; rank < 4; rank++) {
            double seconds = gpipe.run.metrics.ranks[rank].seconds[kind];

            expect_near("a rank's work", other.run.metrics.ranks[rank].seconds[kind], seconds, "two schedules");
            assert_true(again.run.metrics.ranks[rank].seconds[kind] == seconds);
            assert_true(seeded.run.metrics.ranks[rank].seconds[kind] != seconds);
        }
    assert_true(gpipe.run.metrics.iteration_time == again.run.metrics.iteration_time);
    simulated_release(&gpipe);
    simulated_release(&other);
    simulated_release(&again);
    simulated_release(&seeded);
}

/* Replicas with different factors are no longer alike, and wait for the slowest. */
static void test_folding(void **state)
{
    struct simulated quiet, noisy;

    (void)state;
    load(&quiet, "pipeline: 1, data: 4", 0, 1);
    load(&noisy, "pipeline: 1, data: 4", 0.1, 1);
    assert_true(quiet.run.lowered.alike.folded && !noisy.run.lowered.alike.folded);
    assert_int_equal(noisy.run.lowered.program.ranks, 4);
    assert_true(noisy.run.metrics.iteration_time > quiet.run.metrics.iteration_time);
    simulated_release(&quiet);
    simulated_release(&noisy);
}

/* ZeRO 3's replicas wait for each other in every layer, so each work takes as long as on the slowest replica. Without a
 * network the time is the sum of these over all works and the update. Without ZeRO replicas wait once: the time is the
 * sum of the slowest replica. */
static void test_meetings(void **state)
{
    enum { RANKS = 4, CELLS = 17 };      /* 8 micro-batches; the update */

    (void)state;
    for (int zero = 0; zero <= 3; zero += 3) {
        double slowest[CELLS] = {0}, alone[RANKS] = {0}, together = 0, longest = 0;
        struct simulated simulated;
        int cell[RANKS] = {0};

        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 M}}\ncluster: ideal\n"
                 "batch: {micro_batches: 8}\nstrategy: {data: 4, zero: %d}\nsimulation: {jitter: 0.2}\n", zero);
        const struct program *program = &simulated.run.lowered.program;
        for (size_t i = 0; i < program->ops.count; i++) {
            const struct op *op = &program->ops.items[i];
            int rank = program->lanes.items[op->lane].rank;

            if (program->lanes.items[op->lane].kind != LANE_COMPUTE || op->amount == 0)
                continue;
            alone[rank] += op->amount;
            slowest[cell[rank]] = fmax(slowest[cell[rank]], op->amount);
            cell[rank]++;
        }
        for (int k = 0; k < CELLS; k++)
            together += slowest[k];
        for (int r = 0; r < RANKS; r++)
            longest = fmax(longest, alone[r]);
        assert_true(cell[0] >= CELLS - 1 && cell[0] <= CELLS);
        expect_near("iteration", simulated.run.metrics.iteration_time, zero ? together : longest, simulated.text);
        assert_true(together > 1.05 * longest);
        simulated_release(&simulated);
    }
}

/* Context groups wait for each other in every layer too: no replica begins a work before the last one has come to
 * it. */
static void test_context_meets(void **state)
{
    enum { RANKS = 4, WORKS = 6 };       /* of 3 micro-batches */
    struct { double *items; size_t count, capacity; } starts[RANKS] = {0};
    struct simulated simulated;

    (void)state;
    run_text(&simulated,
             "model: {transformer: {layers: 2, hidden: 256, heads: 8, sequence: 64, vocabulary: 1000}}\n"
             "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us}}\n"
             "batch: {micro_batches: 3}\nstrategy: {context: 4, data_parallel: synchronous}\n"
             "simulation: {jitter: 0.2}\n");
    const struct program *program = &simulated.run.lowered.program;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct lane *lane = &program->lanes.items[program->ops.items[i].lane];

        if (lane->kind == LANE_COMPUTE && program->ops.items[i].what <= WHAT_BACKWARD)
            *GROW(&starts[lane->rank]) = simulated.run.timeline.start[i];
    }
    assert_int_equal(starts[0].count, WORKS);
    for (size_t k = 0; k < starts[0].count; k++)
        for (int r = 1; r < RANKS; r++)
            expect_near("a work's start", starts[r].items[k], starts[0].items[k], simulated.text);
    for (int r = 0; r < RANKS; r++)
        free(starts[r].items);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_what_it_touches),
        cmocka_unit_test(test_common_seed),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_context_meets),
    };

    return cmocka_run_group_tests_name("jitter", tests, NULL, NULL);
}
