/* Lanes that choose, and Varuna's run time, which is made of them: against rules, on both engines. */
#include "simulated.h"
#include "trials.h"

#include <limits.h>

/* One lane does 0 (1 s), a choice 1 (1 s) that would rather see a transfer ended, and the forwards 2 and 3 (1 s each).
 * The transfer, of another lane, ends at `arrival`. The starts are of the operations 0 to 3. */
static const struct { double arrival; uint32_t most; double starts[4]; } lanes[] = {
    {0.5, 9, {0, 1, 2, 3}},      /* it is there */
    {1, 9, {0, 1, 2, 3}},        /* it comes at that very time */
    {1.01, 9, {0, 2, 1, 3}},     /* it comes while the first forward runs */
    {2.5, 9, {0, 3, 1, 2}},      /* while the second does */
    {9, 9, {0, 3, 1, 2}},        /* no forward is left: it is not waited for */
    {9, 1, {0, 2, 1, 3}},        /* one forward may go first */
    {9, 0, {0, 1, 2, 3}},
};

static void test_lane_chooses(void **state)
{
    static const struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 2,
                                           .kinds[0].inside = {.bandwidth = 1, .efficiency = 1, .latency = 0.25}};

    (void)state;
    for (size_t i = 0; i < COUNT(lanes); i++)
        for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++) {
            struct program program = {.ranks = 1};
            uint32_t a = program_lane(&program, 0, LANE_COMPUTE, 0), b = program_lane(&program, 0, LANE_SEND_NEXT, 0);
            struct error err = {0};
            struct timeline timeline;
            uint32_t ids[5], *order;

            ids[4] = program_add(&program, (struct new_op){.kind = OP_TRANSFER, .lane = b, .transfer.dst = 1,
                                                       .amount = lanes[i].arrival - 0.25}, NULL, 0);
            for (int k = 0; k < 4; k++) {
                ids[k] = program_add(&program, (struct new_op){.lane = a, .amount = 1, .advances = k >= 2}, NULL, 0);
                if (k == 1)
                    program_choose(&program, (struct choice){ids[1], ids[4], 1, lanes[i].most});
            }
            timeline_init(&timeline, &program);
            assert_int_equal(replay(engine, &program, &cluster, &timeline, &err), 0);
            order = timeline_order(&timeline);
            for (int k = 0; k < 4; k++)
                expect_near("a start", timeline.start[ids[k]], lanes[i].starts[k], "a lane that chooses");
            for (size_t k = 0, at = 0; k < program.ops.count; k++)
                if (order[k] != ids[4])
                    expect_near("the order", timeline.start[order[k]], (double)at++, "a lane that chooses");
            free(order);
            timeline_release(&timeline);
            program_release(&program);
        }
}

/* The run time of varuna/pipeline.py once more, rank by rank; `tasks` is what is left to do of the static row. */
enum { MOST_RANKS = 6, MOST_BATCHES = 24, KINDS = 3 };
enum { F, B, R };
struct peer {
    int ranks, micro_batches, in_flight;
    double seconds[MOST_RANKS][KINDS][MOST_BATCHES];
    double wire;                                     /* s of a boundary, one at a time a rank and direction */
    struct row tasks[MOST_RANKS];
    double start[MOST_RANKS][KINDS][MOST_BATCHES];
    double arrival[MOST_RANKS][2][MOST_BATCHES];     /* of activations and gradients; NaN: not sent */
    double now[MOST_RANKS], wire_free[MOST_RANKS][2];
    int forwards[MOST_RANKS];
    bool decided[MOST_RANKS];                        /* the head of its tasks is what it does */
};

static int kind_of(struct work work)
{
    return work.kind == FORWARD ? F : work.kind == BACKWARD ? B : R;
}

/* Moves the next forward to the head, where the rule says so. */
static void decide(struct peer *peer, int rank)
{
    struct row *row = &peer->tasks[rank];
    size_t next = 0;

    peer->decided[rank] = true;
    if (row->items[0].kind != RECOMPUTE || peer->forwards[rank] == peer->micro_batches ||
        peer->arrival[rank][B][row->items[0].mb] <= peer->now[rank] * (1 + 1e-12) ||
        peer->forwards[rank] + 1 - row->items[0].mb > peer->in_flight)
        return;
    while (row->items[next].kind != FORWARD)
        next++;
    struct work pulled = row->items[next];
    memmove(row->items + 1, row->items, next * sizeof *row->items);
    row->items[0] = pulled;
}

static void deliver(struct peer *peer, int rank, int to, int kind, int mb, double end)
{
    if (to < 0 || to >= peer->ranks)
        return;
    peer->wire_free[rank][kind] = fmax(peer->wire_free[rank][kind], end) + peer->wire;
    peer->arrival[to][kind][mb] = peer->wire_free[rank][kind];
}

/* Does the head, if what it needs is known. */
static bool perform(struct peer *peer, int rank)
{
    struct row *row = &peer->tasks[rank];
    struct work work = row->items[0];
    int kind = kind_of(work);
    bool edge = kind == F ? rank == 0 : rank == peer->ranks - 1;
    double needs = kind == R || edge ? 0 : peer->arrival[rank][kind][work.mb], end;

    if (isnan(needs))
        return false;
    peer->start[rank][kind][work.mb] = fmax(peer->now[rank], needs);
    peer->now[rank] = end = peer->start[rank][kind][work.mb] + peer->seconds[rank][kind][work.mb];
    if (kind != R)
        deliver(peer, rank, kind == F ? rank + 1 : rank - 1, kind, work.mb, end);
    peer->forwards[rank] += kind == F;
    peer->decided[rank] = false;
    memmove(row->items, row->items + 1, --row->count * sizeof *row->items);
    return true;
}

/* The rank that is free first decides first: all that comes later is the work of others, later. */
static void run_peer(struct peer *peer)
{
    for (;;) {
        int earliest = -1;

        for (bool moved = true; moved;) {
            moved = false;
            for (int rank = 0; rank < peer->ranks; rank++)
                moved |= peer->decided[rank] && perform(peer, rank);
        }
        for (int rank = 0; rank < peer->ranks; rank++)
            if (peer->tasks[rank].count && !peer->decided[rank] &&
                (earliest < 0 || peer->now[rank] < peer->now[earliest]))
                earliest = rank;
        if (earliest < 0)
            break;
        decide(peer, earliest);
    }
    for (int rank = 0; rank < peer->ranks; rank++)
        assert_int_equal(peer->tasks[rank].count, 0);
}

static void load_peer(struct peer *peer, const struct simulated *simulated, double wire, int in_flight)
{
    const struct scenario *scenario = &simulated->scenario;
    const struct program *program = &simulated->run.lowered.program;
    struct row *rows = rows_copy(simulated->workload.rows, scenario->plan.stages);

    *peer = (struct peer){.ranks = scenario->plan.stages, .micro_batches = scenario->plan.micro_batches, .wire = wire,
                          .in_flight = in_flight ? in_flight : INT_MAX};
    for (int rank = 0; rank < peer->ranks; rank++) {
        peer->tasks[rank] = rows[rank];
        for (int mb = 0; mb < peer->micro_batches; mb++)
            peer->arrival[rank][F][mb] = peer->arrival[rank][B][mb] = NAN;
    }
    free(rows);
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        int kind = op->what == WHAT_FORWARD ? F : op->what == WHAT_BACKWARD ? B : R;

        if (op->kind == OP_COMPUTE)
            peer->seconds[op->stage][kind][op->mb] += op->amount;
    }
}

/* Every work started when the rules say, on both engines: boundaries take `wire` s, nearly all of it latency, so that
 * nothing contends. */
static void assert_as_peer(int ranks, int micro_batches, double wire, double jitter, int in_flight, int seed)
{
    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++) {
        static struct peer peer;
        struct simulated simulated;
        char limit[32] = "";

        if (in_flight)
            snprintf(limit, sizeof limit, ", in_flight: %d", in_flight);
        run_text(&simulated,
                 "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s, boundary: 1 B}}\n"
                 "cluster: {nodes: %d, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 0 s},\n"
                 "          network: {bandwidth: 1e18 B/s, latency: %.17g s}}\nbatch: {micro_batches: %d}\n"
                 "strategy: {schedule: varuna, pipeline: %d, data: 1, runtime: opportunistic%s}\n"
                 "simulation: {jitter: %.17g, seed: %d, engine: %s}\n", ranks, wire, micro_batches, ranks, limit,
                 jitter, seed, engine_names[engine]);
        const struct run *run = &simulated.run;

        load_peer(&peer, &simulated, wire, in_flight);
        run_peer(&peer);
        for (size_t i = 0; i < run->lowered.program.ops.count; i++) {
            const struct op *op = &run->lowered.program.ops.items[i];
            int kind = op->what == WHAT_FORWARD ? F : op->what == WHAT_BACKWARD ? B : R;

            if (op->kind == OP_COMPUTE && !op->continues)
                expect_near("a start", run->timeline.start[i], peer.start[op->stage][kind][op->mb], simulated.text);
        }
        for (int rank = 0; rank < ranks; rank++)
            free(peer.tasks[rank].items);
        simulated_release(&simulated);
    }
}

static void test_as_the_peer_runs_it(void **state)
{
    static const double wires[] = {1e-3, 0.3, 1, 2.5, 7.25};
    uint64_t seed = seed_from(11);

    (void)state;
    for (int i = 0; i < 120; i++)
        assert_as_peer(2 + random_below(&seed, MOST_RANKS - 1), 1 + random_below(&seed, MOST_BATCHES),
                       wires[random_below(&seed, COUNT(wires))], random_below(&seed, 3) * 0.2,
                       random_below(&seed, 3) ? 0 : 1 + random_below(&seed, 8), i);
}

/* What runs early still waits for all that it needs, and a lane does one thing at a time. */
static void assert_obeys(const struct timeline *timeline)
{
    const struct program *program = timeline->program;
    double *lane_free = xcalloc(program->lanes.count, sizeof *lane_free);
    uint32_t *order = timeline_order(timeline);

    for (size_t k = 0; k < program->ops.count; k++) {
        uint32_t id = order_at(order, k);
        const struct op *op = &program->ops.items[id];
        double start = timeline->start[id];

        assert_true(start >= lane_free[op->lane] && timeline->end[id] >= start);
        for (size_t d = 0; d < program_deps(program, op).count; d++)
            assert_true(start >= timeline->end[program_deps(program, op).items[d]]);
        lane_free[op->lane] = timeline->end[id];
    }
    free(order);
    free(lane_free);
}

static double iteration(int ranks, int micro_batches, const char *runtime, const char *network, double jitter, int seed)
{
    struct simulated simulated;
    double seconds;

    run_text(&simulated,
             "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s, boundary: 1 GB, activation: 1 GB}}\n"
             "cluster: %s\nbatch: {micro_batches: %d}\nstrategy: {schedule: varuna, pipeline: %d, data: 1, %s}\n"
             "memory: {enforce: false}\nsimulation: {jitter: %.17g, seed: %d}\n", network, micro_batches, ranks,
             runtime, jitter, seed);
    assert_obeys(&simulated.run.timeline);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

/* Where nothing is late the order computed beforehand is not beaten by much, nor is it better. */
static void test_free_network(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int micro_batches = 1; micro_batches <= 24; micro_batches++) {
            double fixed = iteration(ranks, micro_batches, "runtime: static", "ideal", 0, 1);
            double chosen = iteration(ranks, micro_batches, "runtime: opportunistic", "ideal", 0, 1);

            assert_true(chosen <= fixed + 1e-9 && chosen >= fixed - 4 - 1e-9);
        }
}

/* Slow links and jitter: over seeds it is better than the static order on average. */
static void test_slow_links(void **state)
{
    static const char *const networks[] = {
        "{nodes: 4, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 0 s},"
        " network: {bandwidth: 10 GB/s, latency: 0 s}}",
        "{nodes: 4, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 0 s},"
        " network: {bandwidth: 1 GB/s, latency: 0 s}}",
    };

    (void)state;
    for (size_t n = 0; n < COUNT(networks); n++)
        for (double jitter = 0.05; jitter < 0.5; jitter += 0.15) {
            double fixed = 0, chosen = 0;

            for (int seed = 1; seed <= 6; seed++) {
                fixed += iteration(4, 16, "runtime: static", networks[n], jitter, seed);
                chosen += iteration(4, 16, "runtime: opportunistic", networks[n], jitter, seed);
            }
            assert_true(chosen < fixed);
        }
}

/* What ran early holds its input longer; in_flight bounds how many are held, where the static order does too. */
static void test_memory(void **state)
{
    static const int limits[] = {0, 6, 8};
    double peaks[COUNT(limits)];

    (void)state;
    for (size_t i = 0; i < COUNT(limits); i++) {
        struct simulated simulated;
        char limit[32] = "";

        if (limits[i])
            snprintf(limit, sizeof limit, ", in_flight: %d", limits[i]);
        run_text(&simulated,
                 "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s, boundary: 1 GB}}\n"
                 "cluster: {nodes: 3, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 0 s},\n"
                 "          network: {bandwidth: 0.5 GB/s, latency: 0 s}}\n"
                 "batch: {micro_batches: 16}\nmemory: {enforce: false}\n"
                 "strategy: {schedule: varuna, pipeline: 3, data: 1, runtime: opportunistic%s}\n", limit);
        peaks[i] = simulated.run.metrics.ranks[0].peak_activation / 1e9;
        simulated_release(&simulated);
    }
    assert_true(peaks[0] > 8);
    expect_near("six inputs", peaks[1], 6, "in_flight: 6");
    expect_near("eight inputs", peaks[2], 8, "in_flight: 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lane_chooses),
        cmocka_unit_test(test_as_the_peer_runs_it),
        cmocka_unit_test(test_free_network),
        cmocka_unit_test(test_slow_links),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests_name("opportunistic", tests, NULL, NULL);
}
