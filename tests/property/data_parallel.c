/* Data parallelism against what DDP does and what all-reduces cost: buckets, overlap, whole iterations by formula. */
#include "simulated.h"
#include "trials.h"

enum { LAYERS_MAX = 12, MODELS = 60 };
static const char *const engines[] = {"ideal", "simgrid"};
static const char *const modes[] = {"messages", "measured"};

/* A model of one stage on nodes of one GPU each. */
struct example {
    int layers, micro_batches, data;
    double forward, backward[LAYERS_MAX], parameters[LAYERS_MAX];
    double first_bucket, bucket, latency, bandwidth;
    const char *data_parallel, *all_reduce, *engine, *mode;
};

static void simulate_example(struct simulated *simulated, const struct example *example)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    fputs("model:\n  layers:\n", out);
    for (int i = 0; i < example->layers; i++)
        fprintf(out, "    - {forward: %.17g s, backward: %.17g s, parameters: %.17g}\n", example->forward,
                example->backward[i], example->parameters[i]);
    fprintf(out, "cluster: {nodes: %d, gpus_per_node: 1, network: {bandwidth: %.17g B/s, latency: %.17g s, nics: 1}}\n",
            example->data, example->bandwidth, example->latency);
    fprintf(out, "batch: {micro_batches: %d}\nsimulation: {engine: %s, collectives: %s}\n"
            "strategy: {data_parallel: %s, all_reduce: %s",
            example->micro_batches, example->engine, example->mode, example->data_parallel, example->all_reduce);
    if (!strcmp(example->data_parallel, "ddp"))
        fprintf(out, ", first_bucket: %.17g B, bucket: %.17g B", example->first_bucket, example->bucket);
    fputs("}\n", out);
    fclose(out);
    run_text(simulated, "%s", text);
    free(text);
}

static struct example random_example(uint64_t *seed)
{
    struct example example = {
        .layers = 1 + random_below(seed, LAYERS_MAX), .micro_batches = 1 + random_below(seed, 3),
        .data = 2 + random_below(seed, 4), .forward = 1e-4, .first_bucket = 1e6, .bucket = 2.5e7,
        .latency = random_below(seed, 2) * 2e-5, .bandwidth = 1e9 * (1 + random_below(seed, 20)),
        .data_parallel = "ddp", .all_reduce = "ring",
    };

    for (int i = 0; i < example.layers; i++) {
        example.backward[i] = 1e-6 * random_below(seed, 5000);
        example.parameters[i] = random_below(seed, 4) ? random_below(seed, 10000000) : random_below(seed, 100000);
    }
    return example;
}

static double ring(const struct example *example, double bytes)
{
    int n = example->data;

    return 2 * (n - 1) * (example->latency + bytes / n / example->bandwidth);
}

/* The iteration's end by hand: gradients become ready layer by layer, the last one first; a bucket is closed by the
 * layer that brings it to its limit; all-reduces follow one another. */
static double by_hand(const struct example *example, int *buckets)
{
    double time = 0, reduced = 0, bytes = 0;

    for (int i = 0; i < example->layers; i++)
        time += example->micro_batches * example->forward + (example->micro_batches - 1) * example->backward[i];
    *buckets = 0;
    for (int i = example->layers - 1; i >= 0; i--) {
        time += example->backward[i];
        bytes += 2 * example->parameters[i];
        if (bytes > 0 && (i == 0 || bytes >= (*buckets ? example->bucket : example->first_bucket))) {
            reduced = fmax(reduced, time) + ring(example, bytes);
            bytes = 0;
            ++*buckets;
        }
    }
    return fmax(time, reduced);
}

static int count_pieces(const struct simulated *simulated, int rank, double *seconds)
{
    const struct program *program = &simulated->run.lowered.program;
    int pieces = 0;

    *seconds = 0;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (program->lanes.items[op->lane].rank != rank || op->what != WHAT_BACKWARD)
            continue;
        pieces++;
        *seconds += op->amount;
    }
    return pieces;
}

/* Whole iterations by hand; the last backward is cut into as many pieces as buckets or one more, and loses nothing. */
static void test_overlap(void **state)
{
    (void)state;
    EACH_CASE(i, MODELS)
        for (size_t k = 0; k < 4; k++) {
            uint64_t seed = i * 0x9E3779B97F4A7C15u;
            struct example example = random_example(&seed);
            struct simulated simulated;
            double expected, seconds, whole = 0;
            int buckets, pieces;

            example.engine = engines[k % 2];
            example.mode = modes[k / 2];
            expected = by_hand(&example, &buckets);
            simulate_example(&simulated, &example);
            expect_near("iteration", simulated.run.timeline.makespan, expected, simulated.text);
            pieces = count_pieces(&simulated, 0, &seconds) - (example.micro_batches - 1);
            assert_in_range(pieces, buckets ? buckets : 1, buckets + 1);
            for (int layer = 0; layer < example.layers; layer++)
                whole += example.micro_batches * example.backward[layer];
            expect_near("backward", seconds, whole, simulated.text);
            simulated_release(&simulated);
        }
}

/* Without latency there is nothing to lose by cutting gradients into buckets. */
static void test_overlap_helps(void **state)
{
    int helped = 0;

    (void)state;
    EACH_CASE(i, MODELS) {
        uint64_t seed = i * 0xD1B54A32D192ED03u;
        struct example example = random_example(&seed);
        struct simulated ddp, synchronous;

        example.latency = 0;
        example.engine = "ideal";
        example.mode = "messages";
        simulate_example(&ddp, &example);
        example.data_parallel = "synchronous";
        simulate_example(&synchronous, &example);
        assert_true(ddp.run.timeline.makespan <= synchronous.run.timeline.makespan * (1 + 1e-12));
        helped += ddp.run.timeline.makespan < synchronous.run.timeline.makespan;
        simulated_release(&ddp);
        simulated_release(&synchronous);
    }
    assert_true(helped > MODELS / 2);
}

/* PyTorch's limits, 1 MiB and then 25 MiB: a bucket is closed by the tensor that reaches its limit, which may be far
 * above it; what is left is the last. */
static void test_default_buckets(void **state)
{
    static const double mib = 1 << 20, kept[] = {0.6, 0.5, 24, 20, 10, 30, 0.001}, expected[] = {30.001, 30, 25.1};
    struct simulated simulated;
    const struct program *program = &simulated.run.lowered.program;
    size_t bucket = 0;
    char *layers = NULL;
    size_t size;
    FILE *out = open_memstream(&layers, &size);

    (void)state;
    for (size_t i = 0; i < COUNT(kept); i++)
        fprintf(out, "%s{forward: 1 ms, parameters: %.17g}", i ? ", " : "", kept[i] * mib / 2);
    fclose(out);
    run_text(&simulated, "model: {layers: [%s]}\ncluster: ideal\nbatch: {micro_batches: 2}\nstrategy: {data: 4}\n"
             "simulation: {collectives: measured}\n", layers);
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        double sent = op_traits(program, op)->compute.sent;

        if (op->what != WHAT_SYNC || sent == 0 || program->lanes.items[op->lane].rank != 0)
            continue;
        assert_in_range(bucket, 0, COUNT(expected) - 1);
        expect_near("bucket", sent, 2 * 3.0 / 4 * expected[bucket++] * mib, simulated.text);
    }
    assert_int_equal(bucket, COUNT(expected));
    free(layers);
    simulated_release(&simulated);
}

/* alpha + S beta a message: what Thakur et al. 2005 and Patarasuk, Yuan 2009 give, with the folding of MPICH. */
static double cost(const char *algorithm, int n, double bytes, double latency, double bandwidth)
{
    double message = latency + bytes / bandwidth, rounds = floor(log2(n)), p = exp2(rounds);
    double folding = n > p ? 2 * message : 0;

    if (!strcmp(algorithm, "naive"))
        return 2 * (n - 1) * message;
    if (!strcmp(algorithm, "tree"))
        return 2 * ceil(log2(n)) * message;
    if (!strcmp(algorithm, "butterfly"))
        return rounds * message + folding;
    if (!strcmp(algorithm, "halving-doubling"))
        return 2 * rounds * latency + 2 * (1 - 1 / p) * bytes / bandwidth + folding;
    return 2 * (n - 1) * (latency + bytes / n / bandwidth);
}

/* One bucket after the backward: iteration = compute + all-reduce, whatever the engine, the mode and the cluster. */
static void test_all_reduces(void **state)
{
    static const char *const algorithms[] = {"naive", "tree", "butterfly", "halving-doubling", "ring"};

    (void)state;
    for (size_t a = 0; a < COUNT(algorithms); a++)
        for (int n = 2; n <= 9; n++)
            for (int k = 0; k < 8; k++) {
                struct simulated simulated;
                bool inside = k / 4;

                run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 3 ms, parameters: 7000001}}\n"
                         "cluster: {nodes: %d, gpus_per_node: %d, inside: {bandwidth: 3 GB/s, latency: 20 us},\n"
                         "          network: {bandwidth: 3 GB/s, latency: 20 us, nics: 1}}\nbatch: {micro_batches: 5}\n"
                         "strategy: {data: %d, all_reduce: %s, data_parallel: synchronous}\n"
                         "simulation: {engine: %s, collectives: %s}\n", inside ? 1 : n, inside ? n : 1, n,
                         algorithms[a], engines[k % 2], modes[k / 2 % 2]);
                expect_near("iteration", simulated.run.timeline.makespan,
                            5 * 4e-3 + cost(algorithms[a], n, 2 * 7000001.0, 2e-5, 3e9), simulated.text);
                expect_near("exposed", simulated.run.metrics.ranks[0].exposed_communication,
                            cost(algorithms[a], n, 2 * 7000001.0, 2e-5, 3e9), simulated.text);
                simulated_release(&simulated);
            }
}

static void test_one_replica(void **state)
{
    struct simulated simulated;

    (void)state;
    run_text(&simulated, "model: {stages: {forward: 1 ms, parameters: 7 M}}\nbatch: {micro_batches: 5}\n"
             "cluster: {nodes: 1, gpus_per_node: 2, inside: {bandwidth: 3 GB/s, latency: 20 us}}\n"
             "strategy: {data: 1}\n");
    for (size_t i = 0; i < simulated.run.lowered.program.ops.count; i++)
        assert_int_not_equal(simulated.run.lowered.program.ops.items[i].what, WHAT_SYNC);
    assert_true(simulated.run.metrics.communication_bytes_per_gpu == 0);
    simulated_release(&simulated);
}

/* Every bucket and every channel counts where messages are too many to be replayed one by one. Members of a tree do not
 * end a sum together, so that few messages are replayed. */
static void test_auto(void **state)
{
    static const struct { int nodes; bool synchronous, measured; } cases[] = {
        {1, false, false}, {2, false, false}, {16, false, true}, {16, true, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {preset: gpt2-355m}\ncluster: {platform: dgx-a100, nodes: %d}\n"
                 "batch: {global: %d}\nstrategy: {data_parallel: %s, all_reduce: tree}\nsimulation: {engine: ideal}\n",
                 cases[i].nodes, 8 * cases[i].nodes, cases[i].synchronous ? "synchronous" : "ddp");
        assert_int_equal(simulated.run.lowered.alike.measured, cases[i].measured);
        assert_true(simulated.run.lowered.program.ops.count < 1200000);
        simulated_release(&simulated);
    }
}

/* Without buckets a rank's gradients are summed after its last backward, all chunks of them. */
static void test_after_flush(void **state)
{
    static const char *const schedules[] = {"interleaved, chunks: 2", "looped-bfs, chunks: 3", "zb-v", "chimera"};

    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        struct simulated simulated;
        double *last, summed = 0;

        run_text(&simulated,
                 "model: {stages: {forward: 2 s, backward: 4 s, boundary: 1 MB, parameters: 1 M}}\n"
                 "cluster: {nodes: 4, gpus_per_node: 2, inside: {bandwidth: 1 GB/s, latency: 1 us},\n"
                 "          network: {bandwidth: 1 GB/s, latency: 1 us, nics: 2}}\n"
                 "batch: {micro_batches: 8}\n"
                 "strategy: {schedule: %s, pipeline: 4, data: 2, data_parallel: synchronous}\n", schedules[i]);
        const struct program *program = &simulated.run.lowered.program;
        last = xcalloc((size_t)program->ranks, sizeof *last);
        for (size_t op = 0; op < program->ops.count; op++)
            if (program->ops.items[op].kind == OP_COMPUTE && program->ops.items[op].what < WHAT_UPDATE)
                last[program->lanes.items[program->ops.items[op].lane].rank] = simulated.run.timeline.end[op];
        for (size_t op = 0; op < program->ops.count; op++)
            if (program->ops.items[op].what == WHAT_SYNC) {
                assert_true(simulated.run.timeline.start[op] >=
                            last[program->lanes.items[program->ops.items[op].lane].rank]);
                summed += program->ops.items[op].amount;
            }
        assert_true(summed > 0);
        free(last);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_flush),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_overlap_helps),
        cmocka_unit_test(test_default_buckets),
        cmocka_unit_test(test_all_reduces),
        cmocka_unit_test(test_one_replica),
        cmocka_unit_test(test_auto),
    };

    return cmocka_run_group_tests_name("data_parallel", tests, NULL, NULL);
}
