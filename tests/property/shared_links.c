/* Replicas whose GPUs share NICs, and leaf switches whose uplinks they share: measured sums take what their messages
 * take, and one replica stands for all, where sums meet nothing but one another; and which scenarios are such. */
#include "random_plan.h"
#include "trials.h"

enum { CASES = 45, BLOCKS = 4 };

struct example {
    int gpus_per_node, nics, nodes, leaf_nodes;      /* leaf_nodes 0: nonblocking; else 4:1 */
    int tensor, data, context, expert, zero, shard;  /* shard 0: all */
    bool buckets;                    /* many; else all gradients at once */
    const char *all_reduce;
    int channels;
    const char *simulation;
};

static struct example random_example(uint64_t *seed)
{
    struct example example = {
        .gpus_per_node = PICK_INT(seed, 4, 8), .nics = PICK_INT(seed, 1, 2, 4), .nodes = PICK_INT(seed, 2, 4),
        .leaf_nodes = PICK_INT(seed, 0, 0, 2), .tensor = PICK_INT(seed, 1, 2, 4), .context = 1, .expert = 1,
        .zero = PICK_INT(seed, 0, 1, 1, 2, 2, 3), .buckets = random_below(seed, 2), .channels = random_below(seed, 3),
        .all_reduce = PICK(seed, "ring", "ring", "halving-doubling"),
    };
    int shard = PICK_INT(seed, 2, 1, 1) * example.gpus_per_node / example.tensor / PICK_INT(seed, 1, 1, 2);
    int other = PICK_INT(seed, 1, 1, 1, 2, 4), replicas;

    example.nics = example.nics * 2 > example.gpus_per_node ? 1 : example.nics;
    replicas = example.nodes * example.gpus_per_node / example.tensor;
    if (replicas % other == 0 && random_below(seed, 2))
        example.context = other;
    else if (replicas % other == 0)
        example.expert = other;
    example.data = replicas / example.context;
    if (example.zero && example.expert == 1 && shard > 1 && shard < replicas && random_below(seed, 3))
        example.shard = shard;
    return example;
}

static void simulate_example(struct simulated *simulated, const struct example *example)
{
    char topology[64] = "nonblocking", shard[32] = "";

    if (example->leaf_nodes)
        snprintf(topology, sizeof topology, "{leaf_nodes: %d, oversubscription: 4}", example->leaf_nodes);
    if (example->shard)
        snprintf(shard, sizeof shard, ", shard: %d", example->shard);
    run_text(simulated, "model: {transformer: {layers: %d, hidden: 256, heads: 8, sequence: 128, vocabulary: 1024%s}}\n"
             "cluster: {gpu: a100-80gb, nodes: %d, gpus_per_node: %d, inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
             "          network: {bandwidth: 10 GB/s, latency: 5 us, nics: %d, topology: %s}}\n"
             "batch: {micro_batches: 2, micro: 1}\ncosts: {host_launch: 0}\n"
             "strategy: {tensor: %d, context: %d, data: %d, expert: %d, zero: %d%s, all_reduce: %s, channels: %d,\n"
             "           data_parallel: %s}\nsimulation: {%s}\n",
             BLOCKS, example->expert > 1 ? ", experts: 8, experts_per_token: 2" : "", example->nodes,
             example->gpus_per_node, example->nics, topology, example->tensor, example->context, example->data,
             example->expert, example->zero, shard, example->all_reduce, example->channels,
             !example->buckets ? "synchronous" :
             example->zero == 3 ? "ddp" : "ddp, first_bucket: 100 kB, bucket: 400 kB", example->simulation);
}

/* All that stand next to one another, in their usual places: groups that meet in every layer, and copies of states,
 * within nodes. */
static bool alike(const struct example *example)
{
    int group = example->context > example->expert ? example->context : example->expert;

    return example->gpus_per_node % (example->tensor * group) == 0 &&
           (!example->shard || example->gpus_per_node % (example->tensor * example->shard) == 0);
}

static bool alone(const struct example *example)
{
    bool apart = !example->shard || !example->buckets || example->tensor * example->shard == example->gpus_per_node;

    return alike(example) && example->expert == 1 && apart;
}

static void test_sums(void **state)
{
    static const char *const how[] = {
        "collectives: messages", "collectives: measured, fold: off", "collectives: measured",
    };
    int exact = 0, tensor = 0, sharded = 0, folded = 0;

    (void)state;
    EACH_TRIAL(i, CASES) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct example example = random_example(&seed);
        double seconds[COUNT(how)], sent[COUNT(how)];

        for (size_t k = 0; k < COUNT(how); k++) {
            struct simulated simulated;

            example.simulation = how[k];
            simulate_example(&simulated, &example);
            seconds[k] = simulated.run.metrics.iteration_time;
            sent[k] = simulated.run.metrics.communication_bytes_per_gpu;
            if (k && fabs(sent[k] - sent[0]) > 1e-9 * sent[0])
                fail_msg("%.17g and %.17g bytes in\n%s", sent[0], sent[k], simulated.text);
            if (k == 2 && fabs(seconds[2] - seconds[1]) > 1e-9 * seconds[1])
                fail_msg("one for all takes %.17g, all %.17g in\n%s", seconds[2], seconds[1], simulated.text);
            if (k == 2 && alone(&example) && fabs(seconds[2] - seconds[0]) > 1e-9 * seconds[0])
                fail_msg("measured %.17g, as messages %.17g in\n%s", seconds[2], seconds[0], simulated.text);
            assert_int_equal(simulated.run.lowered.alike.folded,
                             (k == 2 || (k == 0 && example.zero == 3)) && alike(&example));
            folded += k == 2 && simulated.run.lowered.alike.folded;
            simulated_release(&simulated);
        }
        exact += alone(&example) && example.zero < 3;
        tensor += alone(&example) && example.zero < 3 && example.tensor > 1;
        sharded += alone(&example) && example.zero < 3 && example.shard;
    }
    assert_true(exact > trials(CASES) / 4 && tensor > trials(CASES) / 4 && sharded > trials(4) &&
                folded > trials(CASES) / 2);
}

/* Which are measured where their messages would be too many: about a million, as counted for a ring. */
static void test_auto(void **state)
{
    static const struct { struct example example; const char *placement; bool measured; } cases[] = {
        {{.tensor = 1, .data = 32, .zero = 1}, "tensor, data, pipeline", true},
        {{.tensor = 2, .data = 16, .zero = 1}, "tensor, data, pipeline", true},
        {{.tensor = 2, .data = 16, .zero = 1}, "data, tensor, pipeline", false},    /* tensor groups over nodes */
        {{.tensor = 1, .data = 32, .zero = 1, .shard = 8}, "tensor, data, pipeline", true},
        {{.tensor = 1, .data = 32, .zero = 1, .shard = 4}, "tensor, data, pipeline", false},     /* two copies a node */
        {{.tensor = 1, .data = 32, .zero = 1, .shard = 16}, "tensor, data, pipeline", false},    /* a copy on two */
        {{.tensor = 2, .data = 16, .zero = 2, .shard = 4}, "tensor, data, pipeline", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct example *example = &cases[i].example;
        struct simulated simulated;

        run_text(&simulated, "model: {transformer: {layers: 12, hidden: 256, heads: 8, sequence: 128, "
                 "vocabulary: 1024}}\ncluster: {gpu: a100-80gb, nodes: 4, gpus_per_node: 8,\n"
                 "  inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
                 "  network: {bandwidth: 10 GB/s, latency: 5 us, nics: 4}}\n"
                 "batch: {micro_batches: 2, micro: 1}\nsimulation: {engine: ideal}\n"
                 "strategy: {tensor: %d, data: %d, zero: %d, shard: %d, placement: [%s],\n"
                 "           all_reduce: halving-doubling, channels: 64, first_bucket: 1 kB, bucket: 1 kB}\n", example->tensor, example->data,
                 example->zero, example->shard ? example->shard : example->data, cases[i].placement);
        if (simulated.run.lowered.alike.measured != cases[i].measured || simulated.run.lowered.alike.folded != cases[i].measured)
            fail_msg("%s, and %s in\n%s", simulated.run.lowered.alike.measured ? "measured" : "messages",
                     simulated.run.lowered.alike.folded ? "one for all" : "all", simulated.text);
        simulated_release(&simulated);
    }
}

/* What a tensor or context group of two adds to a forward work: on nodes that only uplinks join. */
static double exchanged(int nodes, int leaf_nodes, int data, int context)
{
    struct simulated simulated;
    const struct program *program = &simulated.run.lowered.program;
    double seconds = 0;

    run_text(&simulated, "model: {transformer: {layers: 2, hidden: 256, heads: 8, sequence: 128, vocabulary: 1024}}\n"
             "cluster: {gpu: a100-80gb, nodes: %d, gpus_per_node: 1,\n"
             "  network: {bandwidth: 10 GB/s, latency: 5 us, nics: 1,\n"
             "            topology: {leaf_nodes: %d, oversubscription: 4}}}\n"
             "batch: {micro_batches: 1, micro: 1}\n"
             "strategy: {tensor: %d, context: %d, context_attention: all-gather, data: %d,\n"
             "           placement: [data, tensor, context, pipeline]}\n",
             nodes, leaf_nodes, context > 1 ? 1 : 2, context, data);
    for (size_t i = 0; i < program->ops.count; i++)
        if (program->ops.items[i].what == WHAT_FORWARD)
            seconds = fmax(seconds, op_traits(program, &program->ops.items[i])->compute.communication);
    simulated_release(&simulated);
    return seconds;
}

/* Two groups that share no node but both uplinks of their leaves have half of them each: as much as one group where a
 * leaf has one node, and half the uplink. */
static void test_uplinks(void **state)
{
    (void)state;
    for (int context = 1; context <= 2; context++)
        for (int n = 2; n <= 4; n++) {
            double one = exchanged(2, 1, 1, context), many = exchanged(2 * n, n, n, context);

            assert_true(one > 0);
            expect_near("exchanged", many, one, context > 1 ? "context" : "tensor");
        }
}

/* The same for the sums of shares and weights under ZeRO 3. Copies of the states are on neighbouring nodes, so that the
 * holders of one share are below different leaves, each on another node. */
static void test_sharers_uplinks(void **state)
{
    double seconds[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct simulated simulated;

        run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 2 ms, parameters: 7 M}}\n"
                 "batch: {micro_batches: 1}\ncluster: {nodes: 4, gpus_per_node: 1,\n"
                 "  network: {bandwidth: 10 GB/s, latency: 5 us, nics: 1,\n"
                 "            topology: {leaf_nodes: 2, oversubscription: 4}}}\n"
                 "strategy: {data: 4, zero: 1, shard: 2, data_parallel: synchronous}\n"
                 "simulation: {collectives: %s}\n", k ? "measured" : "messages");
        seconds[k] = simulated.run.metrics.iteration_time;
        simulated_release(&simulated);
    }
    expect_near("iteration", seconds[1], seconds[0], "copies below leaves");
    /* the halves of the sums of both shares, there and back, and these once more summed */
    expect_near("iteration", seconds[0], 3e-3 + 2 * (5e-6 + 7e6 / 10e9) + 2 * (5e-6 + 3.5e6 / 2.5e9), "by hand");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums), cmocka_unit_test(test_auto), cmocka_unit_test(test_uplinks),
        cmocka_unit_test(test_sharers_uplinks),
    };

    return cmocka_run_group_tests_name("shared_links", tests, NULL, NULL);
}
