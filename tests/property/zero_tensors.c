/* zero_tensors: ZeRO 3 that exchanges each layer's tensors one by one (`flatten: false`) moves the same bytes as layers
 * at once, in more collectives, and holds less whole. */
#include "simulated.h"

enum { LAYERS = 3, WIDTH = 512, VOCABULARY = 2048, DATA = 4 };

static void run_with(struct simulated *simulated, const char *flatten, const char *recompute, const char *engine)
{
    run_text(simulated, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: 128, vocabulary: %d, "
             "positions: 0, tied: false}}\n"
             "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 2}\n"
             "strategy: {data: %d, zero: 3, flatten: %s}\nmemory: {recompute: %s}\nsimulation: {engine: %s}\n",
             LAYERS, WIDTH, VOCABULARY, DATA, flatten, recompute, engine);
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

static void check(const char *recompute, const char *engine)
{
    struct simulated whole, apart;
    const struct rank_metrics *one, *other;

    run_with(&whole, "true", recompute, engine);
    run_with(&apart, "false", recompute, engine);
    one = &whole.run.metrics.ranks[0];
    other = &apart.run.metrics.ranks[0];
    for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
        assert_true(fabs(one->sent[payload] - other->sent[payload]) <= 1e-9 * (1 + one->sent[payload]));
    /* The embedding, a block's four products and the output layer (with the last norm) are large; the embedding and the
     * output layer are one collective either way. Two micro-batches, a forward and a backward each. */
    assert_int_equal(count_of(&whole, WHAT_SYNC), 2 * (LAYERS + 2));
    assert_int_equal(count_of(&apart, WHAT_SYNC), 2 * (4 * LAYERS + 2));
    assert_int_equal(count_of(&apart, WHAT_WEIGHTS) - count_of(&whole, WHAT_WEIGHTS),
                     3 * LAYERS * count_of(&whole, WHAT_WEIGHTS) / (LAYERS + 2));
    assert_true(apart.run.metrics.iteration_time >= whole.run.metrics.iteration_time);
    assert_true(other->memory.bytes[MEMORY_GATHERED] < one->memory.bytes[MEMORY_GATHERED]);
    /* of two neighbouring tensors: the up and down products, with the small ones around them */
    assert_true(other->memory.bytes[MEMORY_GATHERED] >= 2 * 2.0 * 4 * WIDTH * WIDTH);
    assert_true(other->memory.bytes[MEMORY_GATHERED] <= 1.01 * 2 * 2.0 * 4 * WIDTH * WIDTH);
    simulated_release(&whole);
    simulated_release(&apart);
}

static void test_same_bytes(void **state)
{
    (void)state;
    check("none", "fast");
    check("full", "fast");
    check("full", "ideal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bytes)};

    return cmocka_run_group_tests_name("zero_tensors", tests, NULL, NULL);
}
