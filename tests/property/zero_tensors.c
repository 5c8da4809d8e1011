/* zero_tensors: ZeRO 3 that exchanges each layer's tensors one by one (`flatten: false`), against layers at once:
 * bytes, numbers of collectives and whole parameters, by what may be whole and what is kept for its next use. */
#include "simulated.h"

enum { LAYERS = 3, WIDTH = 512, VOCABULARY = 2048, DATA = 4, BATCHES = 2 };

static void run_with(struct simulated *simulated, const char *how, const char *recompute, const char *engine)
{
    run_text(simulated, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: 128, vocabulary: %d, "
             "positions: 0, tied: false}}\n"
             "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: %d}\n"
             "strategy: {data: %d, zero: 3, %s}\nmemory: {recompute: %s, precision: mixed-bf16}\n"
             "simulation: {engine: %s}\n",
             LAYERS, WIDTH, VOCABULARY, BATCHES, DATA, how, recompute, engine);
}

/* Collectives of one rank: how many took time. */
static int count_of(const struct simulated *simulated, enum op_what what)
{
    const struct program *program = &simulated->run.lowered.program;
    int count = 0;

    for (size_t i = 0; i < program->ops.count; i++)
        count += program->ops.items[i].what == what && program->ops.items[i].amount > 0 &&
                 program->lanes.items[program->ops.items[i].lane].rank == 0;
    return count;
}

/* The large tensors: the embedding, a block's four products, the output layer. A block's parameters are all parameters
 * without the embedding's and the output layer's. */
static void check(const char *recompute, const char *engine)
{
    bool full = !strcmp(recompute, "full");
    struct simulated whole, kept, given;
    const struct rank_metrics *one, *other, *third;
    double ends, block;

    run_with(&whole, "flatten: true", recompute, engine);
    run_with(&kept, "flatten: false, prefetch: 0", recompute, engine);
    run_with(&given, "flatten: false, live_parameters: 1, reuse_distance: 0", recompute, engine);
    one = &whole.run.metrics.ranks[0];
    other = &kept.run.metrics.ranks[0];
    third = &given.run.metrics.ranks[0];

    /* a forward and a backward of each micro-batch; within the reuse distance a recomputation's are the backward's */
    assert_int_equal(count_of(&whole, WHAT_SYNC), BATCHES * (LAYERS + 2));
    assert_int_equal(count_of(&kept, WHAT_SYNC), BATCHES * (4 * LAYERS + 2));
    assert_int_equal(count_of(&given, WHAT_SYNC), BATCHES * (4 * LAYERS + 2));
    assert_int_equal(count_of(&whole, WHAT_WEIGHTS), BATCHES * 2 * (LAYERS + 2));
    assert_int_equal(count_of(&kept, WHAT_WEIGHTS), BATCHES * 2 * (4 * LAYERS + 2));
    assert_int_equal(count_of(&given, WHAT_WEIGHTS), BATCHES * (2 * (4 * LAYERS + 2) + full * 4 * LAYERS));
    for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
        assert_true(fabs(one->sent[payload] - other->sent[payload]) <= 1e-9 * (1 + one->sent[payload]));
    ends = 2.0 * VOCABULARY * WIDTH + 2 * WIDTH;
    block = simulated_workload(&given)->stages->parameters - ends;
    expect_near("gathered again", third->sent[PAYLOAD_WEIGHTS] - other->sent[PAYLOAD_WEIGHTS],
                full * BATCHES * 2 * block * (DATA - 1) / DATA, given.text);

    assert_true(kept.run.metrics.iteration_time >= whole.run.metrics.iteration_time);
    assert_true(given.run.metrics.iteration_time >= kept.run.metrics.iteration_time * (1 - 1e-9));
    /* one tensor at a time: the tensor of an up or down product, with the small ones behind it */
    assert_true(third->memory.bytes[MEMORY_GATHERED] >= 2.0 * 4 * WIDTH * WIDTH);
    assert_true(third->memory.bytes[MEMORY_GATHERED] <= 1.01 * 2 * 4 * WIDTH * WIDTH);
    assert_true(third->memory.bytes[MEMORY_GATHERED] <= other->memory.bytes[MEMORY_GATHERED]);
    simulated_release(&whole);
    simulated_release(&kept);
    simulated_release(&given);
}

static void test_same_bytes(void **state)
{
    (void)state;
    check("none", "fast");
    check("full", "fast");
    check("full", "ideal");
}

/* What is gathered ahead makes nothing later and takes memory: up to the whole model, if nothing limits it. */
static void test_ahead(void **state)
{
    static const char *const ways[] = {"prefetch: 0", "prefetch: 1", "prefetch: 3 M", "prefetch: 1 B"};
    double before = INFINITY, held = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct simulated simulated;
        double gathered, seconds;
        char how[64];

        snprintf(how, sizeof how, "flatten: false, %s", ways[i]);
        run_with(&simulated, how, "full", "fast");
        gathered = simulated.run.metrics.ranks[0].memory.bytes[MEMORY_GATHERED];
        seconds = simulated.run.metrics.iteration_time;
        assert_true(seconds <= before * 1.001 && gathered >= held);
        if (i + 1 == COUNT(ways))
            expect_near("all", gathered, 2 * simulated_workload(&simulated)->stages->parameters, simulated.text);
        before = seconds;
        held = gathered;
        simulated_release(&simulated);
    }
}

/* A tied embedding stays whole during a work: it is gathered once a work, first, and held in addition to each
 * tensor. */
static void test_tied(void **state)
{
    const double embedding = (double)VOCABULARY * WIDTH, product = 4.0 * WIDTH * WIDTH;
    struct simulated simulated;
    double gathered;

    (void)state;
    run_text(&simulated, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: 128, vocabulary: %d, "
             "positions: 0, tied: true}}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: %d}\n"
             "strategy: {data: %d, zero: 3, flatten: false, live_parameters: 1, reuse_distance: 0}\n"
             "memory: {recompute: none, precision: mixed-bf16}\nsimulation: {engine: fast}\n",
             LAYERS, WIDTH, VOCABULARY, BATCHES, DATA);
    gathered = simulated.run.metrics.ranks[0].memory.bytes[MEMORY_GATHERED];
    assert_true(gathered >= 2 * (embedding + product) && gathered <= 1.01 * 2 * (embedding + product));
    /* the embedding, the blocks' products, the last norm, in a forward and a backward of each micro-batch */
    assert_int_equal(count_of(&simulated, WHAT_WEIGHTS), BATCHES * 2 * (4 * LAYERS + 2));
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_ahead), cmocka_unit_test(test_tied),
    };

    return cmocka_run_group_tests_name("zero_tensors", tests, NULL, NULL);
}
