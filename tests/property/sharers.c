/* Stages that several ranks share (PipeDream's 1F1B-RR): who does what, how fast, with how many messages. */
#include "simulated.h"
#include "trials.h"

enum { MOST_STAGES = 4, RANDOM_BATCHES = 48 };
struct shape {
    int stages, sharers[MOST_STAGES];
    double forward[MOST_STAGES], backward[MOST_STAGES];
};

static int ranks_of(const struct shape *shape)
{
    int ranks = 0;

    for (int s = 0; s < shape->stages; s++)
        ranks += shape->sharers[s];
    return ranks;
}

/* The part of the YAML that differs from test to test is `rest`; every stage has 1000 parameters, sends 500 B and keeps
 * 1 B. */
static void simulate_shape(struct simulated *simulated, const struct shape *shape, int micro_batches, const char *rest)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int s = 0; s < shape->stages; s++)
        fprintf(out, "%s{forward: %.17g s, backward: %.17g s, parameters: 1 k, activation: 1 B, boundary: 500 B}",
                s ? ", " : "model: {stages: [", shape->forward[s], shape->backward[s]);
    fprintf(out, "]}\nbatch: {micro_batches: %d}\nstrategy: {schedule: pipedream, stage_replicas: ", micro_batches);
    for (int s = 0; s < shape->stages; s++)
        fprintf(out, "%s%d", s ? ", " : "[", shape->sharers[s]);
    fprintf(out, "], %s\n", rest);
    fclose(out);
    run_text(simulated, "%s", text);
    free(text);
}

static const char free_network[] = "data: 1}\ncluster: ideal";
static const char slow_network[] =
    "data: 1}\ncluster: {nodes: 16, gpus_per_node: 1, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: 0 s},\n"
    "          network: {bandwidth: 1 MB/s, latency: 1 us}}\nsimulation: {collectives: messages}";

static struct shape random_shape(uint64_t *seed)
{
    struct shape shape = {.stages = 1 + random_below(seed, MOST_STAGES)};

    for (int s = 0; s < shape.stages; s++) {
        shape.sharers[s] = 1 + random_below(seed, 4);
        shape.forward[s] = 1 + random_below(seed, 4);
        shape.backward[s] = 1 + random_below(seed, 6);
    }
    shape.forward[0] = 1;    /* the slot of a grid */
    return shape;
}

/* The rules of msr-fiddle/pipedream: the warm-up of runtime.py (StageRuntime.initialize), a forward and a backward in
 * turn, and the rest of the backwards; minibatches in turn over the ranks of a stage. Orders by hand. */
static const struct { struct shape shape; int micro_batches; const char *orders; } orders[] = {
    {{2, {3, 1}, {1, 1}, {1, 1}}, 6,
     "0F0,0F3,0B0,0B3\n0F1,0F4,0B1,0B4\n0F2,0F5,0B2,0B5\n"
     "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3,1F4,1B4,1F5,1B5\n"},
    {{3, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}}, 6,
     "0F0,0F2,0B0,0F4,0B2,0B4\n0F1,0F3,0B1,0F5,0B3,0B5\n"
     "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1F4,1B3,1F5,1B4,1B5\n2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3,2F4,2B4,2F5,2B5\n"},
    {{2, {1, 2}, {1, 1}, {1, 1}}, 4,
     "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1B0,1F2,1B2\n1F1,1B1,1F3,1B3\n"},
    {{2, {1, 1}, {1, 1}, {1, 1}}, 5, "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0F4,0B3,0B4\n"
     "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3,1F4,1B4\n"},
};

static void test_orders(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct simulated simulated;
        char *text;

        simulate_shape(&simulated, &orders[i].shape, orders[i].micro_batches, free_network);
        text = orders_text(&simulated);
        assert_string_equal(text, orders[i].orders);
        free(text);
        simulated_release(&simulated);
    }
}

/* Every minibatch meets every stage once forward and once backward, on the rank whose turn it is, after it met the
 * stage before (or behind), and what is sent goes between those two ranks. */
static void assert_path(const struct simulated *simulated, const struct shape *shape, int micro_batches)
{
    const struct run *run = &simulated->run;
    const struct program *program = &run->lowered.program;
    size_t cells = (size_t)shape->stages * (size_t)micro_batches;
    double *end[2] = {xcalloc(cells, sizeof(double)), xcalloc(cells, sizeof(double))};
    int first[MOST_STAGES] = {0}, works = 0, transfers = 0;

    for (int s = 1; s < shape->stages; s++)
        first[s] = first[s - 1] + shape->sharers[s - 1];
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        bool back = op->what == WHAT_BACKWARD || op->what == WHAT_GRADIENT;
        int s = op->stage, to = back ? s - 1 : s + 1, from = back ? s + 1 : s - 1;

        if (op->what == WHAT_ACTIVATION || op->what == WHAT_GRADIENT) {
            assert_int_equal(op_traits(program, op)->transfer.src, first[s] + op->mb % shape->sharers[s]);
            assert_int_equal(op_traits(program, op)->transfer.dst, first[to] + op->mb % shape->sharers[to]);
            transfers++;
        } else if (op->what == WHAT_FORWARD || op->what == WHAT_BACKWARD) {
            size_t at = (size_t)(s * micro_batches + op->mb);

            assert_int_equal(program->lanes.items[op->lane].rank, first[s] + op->mb % shape->sharers[s]);
            if (!op->continues && from >= 0 && from < shape->stages)
                assert_true(run->timeline.start[i] >= end[back][from * micro_batches + op->mb] &&
                            end[back][from * micro_batches + op->mb] > 0);
            works += !op->continues;
            end[back][at] = run->timeline.end[i];
        }
    }
    assert_int_equal(works, 2 * cells);
    assert_int_equal(transfers, 2 * (shape->stages - 1) * micro_batches);
    free(end[0]);
    free(end[1]);
}

/* What is sent in all: boundaries; and at every update of a stage a ring all-reduce of its gradients (2 B a parameter)
 * among its ranks. */
static void assert_traffic(const struct simulated *simulated, const struct shape *shape, int micro_batches)
{
    const struct program *program = &simulated->run.lowered.program;
    double sent = 0, expected = 2.0 * 500 * (shape->stages - 1) * micro_batches;
    for (size_t i = 0; i < program->ops.count; i++)
        sent += program->ops.items[i].kind == OP_TRANSFER ? program->ops.items[i].amount : 0;
    for (int s = 0; s < shape->stages; s++)
        expected += 2.0 * (shape->sharers[s] - 1) * 2000 * micro_batches / shape->sharers[s];
    expect_near("bytes sent", sent, expected, simulated->text);
}

/* ceil(ranks from this stage on / ranks of this stage) minibatches are in flight on each, and as many versions kept. */
static void assert_in_flight(const struct simulated *simulated, const struct shape *shape, int micro_batches)
{
    const struct scenario *scenario = &simulated->scenario;
    int behind = ranks_of(shape), rank = 0;

    for (int s = 0; s < shape->stages; behind -= shape->sharers[s++]) {
        int each = micro_batches / shape->sharers[s], limit = (behind + shape->sharers[s] - 1) / shape->sharers[s];

        limit = limit < each ? limit : each;
        if (each >= 2 * limit)
            assert_int_equal(simulated->workload.stages[s].versions, limit);
        for (int i = 0; i < shape->sharers[s]; i++, rank++) {
            assert_int_equal(scenario_schedule(scenario)->ideal_in_flight(&scenario->plan, rank), limit);
            expect_near("in flight", simulated->run.metrics.ranks[rank].peak_activation, limit, simulated->text);
        }
    }
}

static void test_any_shape(void **state)
{
    uint64_t seed = seed_from(5);

    (void)state;
    for (int i = 0; i < 120; i++) {
        struct shape shape = random_shape(&seed);
        int micro_batches = 12 * (1 + random_below(&seed, 3));
        struct simulated simulated;

        simulate_shape(&simulated, &shape, micro_batches, i % 2 ? slow_network : free_network);
        assert_int_equal(simulated.scenario.parallelism.pipeline, ranks_of(&shape));
        assert_path(&simulated, &shape, micro_batches);
        assert_traffic(&simulated, &shape, micro_batches);
        assert_in_flight(&simulated, &shape, micro_batches);
        simulated_release(&simulated);
    }
}

/* When each work ends on a free network, by the rules alone: every rank does its row in order, and begins nothing
 * before all that share its stage have done as many backwards. */
struct ends { double forward[MOST_STAGES][RANDOM_BATCHES], backward[MOST_STAGES][RANDOM_BATCHES]; };

/* The time at which the micro-batch may begin on the stage; NaN: not known yet. */
static double may_begin(const struct shape *shape, const struct ends *ends, int stage, int mb, bool back)
{
    int behind = stage + (back ? 1 : -1);

    if (back && behind == shape->stages)
        return ends->forward[stage][mb];
    return behind < 0 ? 0 : back ? ends->backward[behind][mb] : ends->forward[behind][mb];
}

/* When the last of the stage's ranks has done its k-th backward. */
static double summed(const struct shape *shape, const struct ends *ends, int stage, int k)
{
    double last = 0;

    for (int i = 0; i < shape->sharers[stage]; i++) {
        double end = ends->backward[stage][k * shape->sharers[stage] + i];

        last = isnan(end) || end > last ? end : last;
        if (isnan(last))
            return NAN;
    }
    return last;
}

static void follow_rules(const struct shape *shape, int micro_batches, struct ends *ends)
{
    struct follower { int stage, index, forwards, backwards; double now; } ranks[MOST_STAGES * 4];
    int count = ranks_of(shape), rank = 0;

    for (int s = 0; s < shape->stages; s++) {
        for (int i = 0; i < shape->sharers[s]; i++)
            ranks[rank++] = (struct follower){.stage = s, .index = i};
        for (int mb = 0; mb < micro_batches; mb++)
            ends->forward[s][mb] = ends->backward[s][mb] = NAN;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < count; r++) {
            int s = ranks[r].stage, n = shape->sharers[s], each = micro_batches / n;
            int ahead = (count - 1 - (r - ranks[r].index)) / n;     /* all but the ranks before the stage, and one */
            bool back = ranks[r].forwards == each || ranks[r].forwards > ranks[r].backwards + ahead;
            int mb = (back ? ranks[r].backwards : ranks[r].forwards) * n + ranks[r].index;
            double free_at = ranks[r].backwards ? summed(shape, ends, s, ranks[r].backwards - 1) : 0;
            double from;

            if (ranks[r].backwards == each)
                continue;
            from = may_begin(shape, ends, s, mb, back);
            if (isnan(free_at) || isnan(from))
                continue;
            ranks[r].now = fmax(fmax(ranks[r].now, free_at), from) + (back ? shape->backward[s] : shape->forward[s]);
            *(back ? &ends->backward[s][mb] : &ends->forward[s][mb]) = ranks[r].now;
            ranks[r].forwards += !back;
            ranks[r].backwards += back;
            moved = true;
        }
    }
}

/* The figure is of the same times: its last column is the end of all, where one character is a slot. */
static void assert_figure_agrees(struct simulated *simulated)
{
    struct error err = {0};
    char *grid = NULL;
    size_t size;
    FILE *out = open_memstream(&grid, &size);
    int slots = 0;

    assert_int_equal(grid_print(&simulated->workload, out, &err), 0);
    fclose(out);
    for (const char *p = grid; *p != '\n'; p++)
        slots += *p == ',';
    expect_near("slots of the grid", slots, simulated->run.metrics.makespan, simulated->text);
    free(grid);
}

static void test_times(void **state)
{
    uint64_t seed = seed_from(17);

    (void)state;
    for (int i = 0; i < 150; i++) {
        static struct ends ends;
        struct shape shape = random_shape(&seed);
        int micro_batches = 12 * (1 + random_below(&seed, RANDOM_BATCHES / 12));
        struct simulated simulated;

        simulate_shape(&simulated, &shape, micro_batches, free_network);
        follow_rules(&shape, micro_batches, &ends);
        for (size_t k = 0; k < simulated.run.lowered.program.ops.count; k++) {
            const struct op *op = &simulated.run.lowered.program.ops.items[k];
            double end = simulated.run.timeline.end[k];

            if (op->what == WHAT_FORWARD)
                expect_near("a forward's end", end, ends.forward[op->stage][op->mb], simulated.text);
            if (op->what == WHAT_BACKWARD)
                expect_near("a backward's end", end, ends.backward[op->stage][op->mb], simulated.text);
        }
        assert_figure_agrees(&simulated);
        simulated_release(&simulated);
    }
}

/* No stage is faster than (F + B) / r a minibatch, and the slowest is never idle in the steady state. But ranks that
 * wait for each other at every update do their forwards at the same time, and what the next stage then does one after
 * another comes back late: `waits` says what that costs, where it shows. */
static void test_throughput(void **state)
{
    static const struct { struct shape shape; double waits; } cases[] = {
        {{2, {3, 1}, {3, 1}, {6, 2}}, 1}, {{2, {3, 1}, {3, 1}, {3, 1}}, 1}, {{2, {3, 1}, {1, 2}, {2, 4}}, 1},
        {{2, {4, 1}, {2, 1}, {4, 2}}, 1}, {{3, {2, 2, 2}, {1, 1, 1}, {2, 2, 2}}, 1},
        {{4, {2, 1, 3, 1}, {1, 1, 1, 1}, {2, 2, 2, 2}}, 1}, {{3, {2, 1, 1}, {2, 1, 1}, {4, 2, 2}}, 1.5},
        {{3, {4, 2, 2}, {4, 2, 2}, {8, 4, 4}}, 1.5},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct shape *shape = &cases[i].shape;
        struct simulated simulated;
        double slowest = 0;

        for (int s = 0; s < shape->stages; s++)
            slowest = fmax(slowest, (shape->forward[s] + shape->backward[s]) / shape->sharers[s]);
        simulate_shape(&simulated, shape, 480, free_network);
        assert_true(simulated.run.metrics.window.steady);
        expect_near("s a minibatch", 1 / simulated.run.metrics.samples_per_s, slowest * cases[i].waits, simulated.text);
        simulated_release(&simulated);
    }
}

/* Two pipelines of two such stages sum over all four ranks of a stage; measured or as messages, it takes the same. */
static void test_with_data_parallelism(void **state)
{
    static const struct shape shape = {2, {2, 1}, {2, 1}, {4, 2}};
    static const char *const modes[] = {"messages", "measured"};
    double times[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct simulated simulated;
        char rest[400];

        snprintf(rest, sizeof rest, "data: 2, channels: 1}\ncluster: {nodes: 6, gpus_per_node: 1, gpu: a100-80gb,\n"
                 "          inside: {bandwidth: 1 GB/s, latency: 0 s}, network: {bandwidth: 1 MB/s, latency: 1 us}}\n"
                 "simulation: {collectives: %s}", modes[i]);
        simulate_shape(&simulated, &shape, 24, rest);
        assert_true(simulated.run.lowered.alike.folded == (i == 1));
        assert_int_equal(simulated.run.lowered.program.ranks, i == 1 ? 3 : 6);
        times[i] = simulated.run.metrics.iteration_time;
        /* 4 ranks hold stage 0 and update after a minibatch each, 2 hold stage 1 and update twice as often */
        double summed = 2.0 * 3 / 4 * 2000 * 4 + 2 * (2.0 * 1 / 2 * 2000 * 2), moved = 2.0 * 500 * 4;
        expect_near("bytes a GPU", simulated.run.metrics.communication_bytes_per_gpu, (summed + moved) / 6,
                    simulated.text);
        expect_near("samples", simulated.run.metrics.samples, 4, simulated.text);
        simulated_release(&simulated);
    }
    assert_true(fabs(times[0] / times[1] - 1) < 1e-3);
}

/* Without sharing, [1, 1, 1] is the straight pipeline. */
static void test_ones(void **state)
{
    static const struct shape shape = {3, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}};
    struct simulated ones, straight;

    (void)state;
    simulate_shape(&ones, &shape, 12, slow_network);
    run_text(&straight, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 k, activation: 1 B,\n"
             "boundary: 500 B}}\nbatch: {micro_batches: 12}\nstrategy: {schedule: pipedream, pipeline: 3, %s\n",
             slow_network);
    assert_int_equal(ones.run.lowered.program.ops.count, straight.run.lowered.program.ops.count);
    for (size_t i = 0; i < ones.run.lowered.program.ops.count; i++)
        assert_true(ones.run.timeline.end[i] == straight.run.timeline.end[i]);
    assert_true(ones.run.metrics.peak_memory == straight.run.metrics.peak_memory);
    simulated_release(&ones);
    simulated_release(&straight);
}

/* One stage on r ranks is data parallelism with r replicas, a batch a micro-batch each. */
static void simulate_one_stage(struct simulated *simulated, int nodes, int micro_batches, const char *strategy)
{
    run_text(simulated, "model: {transformer: {layers: 4, hidden: 256, heads: 4, sequence: 128, vocabulary: 1000}}\n"
             "cluster: {nodes: %d, gpus_per_node: 2, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us},\n"
             "          network: {bandwidth: 10 GB/s, latency: 5 us, nics: 2}}\nbatch: {micro_batches: %d}\n"
             "strategy: {tensor: 2, %s}\nsimulation: {collectives: messages}\n", nodes, micro_batches, strategy);
}

static void test_one_stage(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 8; ranks++) {
        struct simulated shared, replicated;
        const struct metrics *a = &shared.run.metrics, *b = &replicated.run.metrics;
        char strategy[64];

        snprintf(strategy, sizeof strategy, "data: 1, schedule: pipedream, stage_replicas: [%d]", ranks);
        simulate_one_stage(&shared, ranks, 12 * ranks, strategy);
        simulate_one_stage(&replicated, ranks, 1, "schedule: 1f1b");
        expect_near("s an update", a->iteration_time, b->iteration_time, shared.text);
        expect_near("samples/s", a->samples_per_s, b->samples_per_s, shared.text);
        expect_near("sent", a->communication_bytes_per_gpu, b->communication_bytes_per_gpu, shared.text);
        expect_near("memory", a->peak_memory, b->peak_memory, shared.text);
        simulated_release(&shared);
        simulated_release(&replicated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),     cmocka_unit_test(test_any_shape),
        cmocka_unit_test(test_times),     cmocka_unit_test(test_throughput),
        cmocka_unit_test(test_with_data_parallelism),
        cmocka_unit_test(test_ones),       cmocka_unit_test(test_one_stage),
    };

    return cmocka_run_group_tests_name("sharers", tests, NULL, NULL);
}
