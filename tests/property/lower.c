/* What holds for every program that a scenario becomes, and for its times: random plans, from fixed seeds. */
#include "random_plan.h"
#include "trials.h"

enum { PLANS = 300 };

/* An operation starts exactly when its lane is free and all that it depends on has ended. */
static void assert_starts(const struct simulated *simulated)
{
    const struct timeline *timeline = &simulated->run.timeline;
    const struct program *program = &simulated->run.lowered.program;
    double *lane_free = xcalloc(program->lanes.count + 1, sizeof *lane_free), makespan = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        double start = lane_free[op->lane];

        for (size_t d = 0; d < program_deps(program, op).count; d++)
            start = fmax(start, timeline->end[program_deps(program, op).items[d]]);
        if (timeline->start[i] != start || timeline->end[i] < start)
            fail_msg("operation %zu runs from %.17g to %.17g, not from %.17g, in\n%s", i, timeline->start[i],
                     timeline->end[i], start, simulated->text);
        lane_free[op->lane] = timeline->end[i];
        makespan = fmax(makespan, timeline->end[i]);
    }
    assert_true(timeline->makespan == makespan);
    free(lane_free);
}

/* The end of the last piece of one work on the rank's compute lane, and the start of its first; NaN: not there. */
struct span { double start, end; };

static struct span find_span(const struct simulated *simulated, int rank, enum op_what what, int mb)
{
    const struct program *program = &simulated->run.lowered.program;
    struct span span = {NAN, NAN};

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];

        if (lane->rank != rank || lane->kind != LANE_COMPUTE || op->what != what || op->mb != mb)
            continue;
        if (isnan(span.start))
            span.start = simulated->run.timeline.start[i];
        span.end = simulated->run.timeline.end[i];
    }
    return span;
}

/* The arrival of a boundary transfer: the end of the latest flow that the rank sends for the micro-batch. */
static double arrival(const struct simulated *simulated, int rank, enum op_what what, int mb)
{
    const struct program *program = &simulated->run.lowered.program;
    double end = NAN;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (program->lanes.items[op->lane].rank == rank && op->what == what && op->mb == mb)
            end = fmax(end, simulated->run.timeline.end[i]);
    }
    return end;
}

/* Which work waits for which, in terms of training: a forward waits for the activations of the stage before; a backward
 * waits for its own forward (or recomputation) and for the gradients of the stage after. */
static void assert_dependencies(const struct simulated *simulated, const struct random_plan *plan)
{
    for (int rank = 0; rank < simulated->run.lowered.program.ranks; rank++) {
        int stage = rank % plan->pipeline;

        for (int mb = 0; mb < plan->micro_batches; mb++) {
            struct span forward = find_span(simulated, rank, WHAT_FORWARD, mb);
            struct span backward = find_span(simulated, rank, WHAT_BACKWARD, mb);
            struct span again = find_span(simulated, rank, WHAT_RECOMPUTE, mb);
            bool ok = forward.end <= backward.start;

            if (!isnan(again.start))
                ok = ok && forward.end <= again.start && again.end <= backward.start;
            if (stage > 0)
                ok = ok && arrival(simulated, rank - 1, WHAT_ACTIVATION, mb) <= forward.start &&
                     find_span(simulated, rank - 1, WHAT_FORWARD, mb).end <= forward.start;
            if (stage + 1 < plan->pipeline)
                ok = ok && arrival(simulated, rank + 1, WHAT_GRADIENT, mb) <= backward.start &&
                     find_span(simulated, rank + 1, WHAT_BACKWARD, mb).end <= backward.start;
            if (!ok)
                fail_msg("micro-batch %d of rank %d is out of order in\n%s", mb, rank, simulated->text);
        }
    }
}

/* Which transfers there are, and between which GPUs: as many each way as micro-batches, of the boundary's size. */
static void assert_boundaries(const struct simulated *simulated, const struct random_plan *plan)
{
    const struct program *program = &simulated->run.lowered.program;
    double bytes = plan->transformer ? 2.0 * plan->micro * SEQUENCE * HIDDEN : plan->boundary;
    double share = plan->scatter_gather ? plan->tensor : 1;
    int count[2] = {0}, replicas = simulated->run.lowered.alike.replicas;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct lane *lane = &program->lanes.items[op->lane];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;
        int stage = lane->rank % plan->pipeline, replica = lane->rank / plan->pipeline;
        int to = op->what == WHAT_ACTIVATION ? stage + 1 : stage - 1;

        if (op->what != WHAT_ACTIVATION && op->what != WHAT_GRADIENT)
            continue;
        assert_int_equal(op->kind, OP_TRANSFER);
        assert_int_equal(transfer->src, scenario_gpu(&simulated->scenario, lane->index, replica, stage));
        assert_int_equal(transfer->dst, scenario_gpu(&simulated->scenario, lane->index, replica, to));
        expect_near("boundary", op->amount, bytes / share, simulated->text);
        count[op->what == WHAT_GRADIENT]++;
    }
    assert_int_equal(count[0], replicas * (plan->pipeline - 1) * plan->micro_batches * program->flows);
    assert_int_equal(count[1], count[0]);
}

/* Gradients are summed after the last backward of each rank has computed them, and before its update. */
static void assert_synchronised(const struct simulated *simulated, const struct random_plan *plan)
{
    const struct program *program = &simulated->run.lowered.program;
    double parameters = plan->transformer ? 1 : plan->parameters;
    int syncs = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        int rank = program->lanes.items[op->lane].rank;
        double last = 0;

        syncs += op->what == WHAT_SYNC;
        if (op->what != WHAT_UPDATE)
            continue;
        for (size_t k = 0; k < program->ops.count; k++)
            if (program->ops.items[k].what == WHAT_SYNC &&
                program->lanes.items[program->ops.items[k].lane].rank == rank)
                last = fmax(last, simulated->run.timeline.end[k]);
        assert_true(simulated->run.timeline.start[i] >= last);
    }
    bool tied = plan->transformer && plan->tied && plan->pipeline > 1;

    assert_true((plan->data > 1 && parameters > 0) || tied ? syncs > 0 : syncs == 0);
}

static void assert_memory_returns(const struct simulated *simulated)
{
    const struct program *program = &simulated->run.lowered.program;

    for (int rank = 0; rank < program->ranks; rank++) {
        double held = 0, most = 0;

        for (size_t i = 0; i < program->ops.count; i++) {
            const struct op *op = &program->ops.items[i];

            if (program->lanes.items[op->lane].rank != rank)
                continue;
            held += op_traits(program, op)->takes;
            most = fmax(most, held);
            held -= op_traits(program, op)->frees;
            assert_true(held > -1e-3);
        }
        assert_true(fabs(held) <= 1e-9 * most);
        expect_near("peak activation", simulated->run.metrics.ranks[rank].peak_activation, most, simulated->text);
    }
}

static void test_programs(void **state)
{
    (void)state;
    EACH_CASE(i, PLANS) {
        uint64_t seed = i * 0x9E3779B97F4A7C15u;
        struct random_plan plan = random_plan(&seed);
        struct simulated simulated;

        simulate_plan(&simulated, &plan);
        assert_starts(&simulated);
        assert_dependencies(&simulated, &plan);
        assert_boundaries(&simulated, &plan);
        assert_synchronised(&simulated, &plan);
        assert_memory_returns(&simulated);
        simulated_release(&simulated);
    }
}

/* Two stages under GPipe that send while both wait: every micro-batch takes stage 0 a forward and a transfer, and stage
 * 1 a backward and a transfer; a sender's other transfers overlap with its work, but for one each way. */
static void test_p2p_without_overlap(void **state)
{
    (void)state;
    for (int m = 1; m <= 6; m++)
        for (int overlap = 0; overlap < 2; overlap++) {
            struct simulated simulated;
            double f = 2, b = 3, c = 1, expected = overlap ? (m + 1) * (f + b) + 2 * c : m * (f + b + 2 * c) + f + b;

            run_text(&simulated,
                          "model: {stages: {forward: 2 s, backward: 3 s, boundary: 1 GB}}\n"
                          "cluster: {nodes: 1, gpus_per_node: 2, inside: {bandwidth: 1 GB/s, latency: 0 s}}\n"
                          "batch: {micro_batches: %d}\n"
                          "strategy: {schedule: gpipe, pipeline: 2, overlap_p2p: %s}\n", m, overlap ? "true" : "false");
            assert_true(fabs(simulated.run.timeline.makespan - expected) < 1e-9);
            simulated_release(&simulated);
        }
}

static double run_1f1b(int stages, int micro_batches, bool duplex)
{
    struct simulated simulated;
    double makespan;

    run_text(&simulated,
             "model: {stages: {forward: 2 s, backward: 3 s, boundary: 250 MB}}\n"
             "cluster: {nodes: 1, gpus_per_node: %d, inside: {bandwidth: 1 GB/s, latency: 0 s}}\n"
             "batch: {micro_batches: %d}\n"
             "strategy: {schedule: 1f1b, pipeline: %d, overlap_p2p: false, duplex_p2p: %s}\n", stages, micro_batches,
             stages, duplex ? "true" : "false");
    makespan = simulated.run.timeline.makespan;
    simulated_release(&simulated);
    return makespan;
}

/* Stages of one length under 1F1B meet after a forward of the one and a backward of the other: both ways at once, or in
 * turn. With more than two each meets both its neighbours, at worst four transfers one after another. */
static void test_p2p_in_turn(void **state)
{
    const double f = 2, b = 3, c = 0.25;

    (void)state;
    for (int stages = 2; stages <= 8; stages++) {
        double each[2];

        for (int duplex = 0; duplex < 2; duplex++)
            each[duplex] = run_1f1b(stages, 25, duplex) - run_1f1b(stages, 24, duplex);
        expect_near("at once", each[1], f + b + (stages == 2 ? 1 : 2) * c, "duplex");
        if (stages == 2)
            expect_near("in turn", each[0], f + b + 2 * c, "in turn");
        else
            assert_true(each[0] > each[1] + c / 2 && each[0] < f + b + 4 * c + 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_p2p_without_overlap),
        cmocka_unit_test(test_p2p_in_turn),
    };

    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
