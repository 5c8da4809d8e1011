/* strategy.shard: ZeRO among some of the replicas; the shares are summed on over the others. */
#include "simulated.h"

enum { LAYERS = 4, HIDDEN = 64, SEQUENCE = 32, VOCABULARY = 1000, PER_NODE = 4 };

struct setup { int zero, data, shard, tensor, pipeline, micro_batches; const char *mode, *engine; double network; };

static void run_setup(struct simulated *simulated, const struct setup *setup)
{
    int nodes = (setup->data * setup->tensor * setup->pipeline + PER_NODE - 1) / PER_NODE;
    char shard[32] = "";

    if (setup->shard)
        snprintf(shard, sizeof shard, ", shard: %d", setup->shard);
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: %d, tied: false}}\n"
             "cluster: {nodes: %d, gpus_per_node: %d, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
             "          network: {bandwidth: %.17g GB/s, latency: 5 us, nics: %d}}\n"
             "batch: {micro_batches: %d}\nsimulation: {engine: %s, collectives: %s}\n"
             "strategy: {tensor: %d, pipeline: %d, data: %d, zero: %d%s}\n", LAYERS, HIDDEN, SEQUENCE, VOCABULARY,
             nodes, PER_NODE, setup->network, PER_NODE, setup->micro_batches, setup->engine, setup->mode, setup->tensor,
             setup->pipeline, setup->data, setup->zero, shard);
}

static double parameters_of(const struct simulated *simulated)
{
    double sum = 0;

    for (int s = 0; s < plan_virtual_stages(&simulated->scenario.plan); s++)
        sum += simulated->workload.stages[s].parameters / plan_virtual_stages(&simulated->scenario.plan);
    return sum;
}

/* A GPU has a communicator for its shard and one for those that hold its share, in the place of one for all replicas:
 * 544 MiB each among two GPUs, 688 MiB among more. */
static void test_communicators(void **state)
{
    static const struct { int data, shard; double mib; } cases[] = {
        {8, 0, 688}, {8, 2, 544 + 688}, {8, 4, 688 + 544}, {4, 2, 544 + 544}, {12, 4, 688 + 688},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct setup setup = {3, cases[i].data, cases[i].shard, 1, 1, 1, "measured", "ideal", 25};
        struct simulated simulated;

        run_setup(&simulated, &setup);
        expect_near("context", memory_states(&simulated.scenario, simulated.workload.stages, 0).bytes[MEMORY_CONTEXT],
                    (1024 + cases[i].mib) * 1048576, simulated.text);
        simulated_release(&simulated);
    }
}

/* Within a group of n what Rajbhandari et al. 2020, section 7, give for n replicas; across the groups, the all-reduce
 * of a share (2 psi / n). Memory as for n replicas. */
static void test_closed_forms(void **state)
{
    static const char *const modes[] = {"messages", "measured"}, *const engine_of[] = {"ideal", "simgrid"};
    int compared = 0;

    (void)state;
    for (int zero = 1; zero <= 3; zero++)
        for (int data = 4; data <= 12; data += 4)
            for (int shard = 2; shard <= data; shard++)
                for (int k = 0; k < 8; k++) {
                    struct setup setup = {
                        zero, data, shard, 1 + k % 2, 1 + k / 4, 3, modes[k % 2], engine_of[k / 2 % 2], 25,
                    };
                    double n = shard, groups = (double)data / shard, psi, inside, across;
                    struct memory memory;
                    struct whole_units whole;
                    struct simulated simulated;

                    if (data % shard)
                        continue;
                    run_setup(&simulated, &setup);
                    psi = 2 * parameters_of(&simulated);
                    inside = (n - 1) / n * psi * (zero == 1 ? 1 : setup.micro_batches);
                    across = 2 * (groups - 1) / groups * psi / n;
                    expect_near("gradients", simulated.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS], inside + across,
                                simulated.text);
                    expect_near("weights", simulated.run.metrics.sent[PAYLOAD_WEIGHTS],
                                (n - 1) / n * psi * (zero == 3 ? 2 * setup.micro_batches : 1), simulated.text);
                    memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
                    psi = 2 * simulated.workload.stages[0].parameters;
                    whole = simulated.workload.stages[0].gathered;
                    expect_near("optimizer", memory.bytes[MEMORY_OPTIMIZER], 6 * psi / n, simulated.text);
                    expect_near("gradients", memory.bytes[MEMORY_GRADIENTS], zero > 1 ? psi / n : psi, simulated.text);
                    expect_near("parameters", memory.bytes[MEMORY_PARAMETERS] + memory.bytes[MEMORY_GATHERED],
                                zero < 3 ? psi : psi / n + whole.root + whole.blocks, simulated.text);
                    simulated_release(&simulated);
                    compared++;
                }
    assert_true(compared > 100);
}

static double iteration(const struct setup *setup, double *exposed)
{
    struct simulated simulated;
    double time;

    run_setup(&simulated, setup);
    time = simulated.run.metrics.iteration_time;
    if (exposed)
        *exposed = simulated.run.metrics.exposed_communication;
    simulated_release(&simulated);
    return time;
}

/* All replicas, written out, are the default. */
static void test_all(void **state)
{
    (void)state;
    for (int zero = 1; zero <= 3; zero++) {
        struct setup setup = {zero, 8, 0, 1, 1, 2, "measured", "simgrid", 25};
        double left_out = iteration(&setup, NULL);

        setup.shard = 8;
        assert_true(iteration(&setup, NULL) == left_out);
    }
}

/* One update of one bucket: within the node the ring's scatter and gather, between nodes the all-reduce of a share,
 * each as the books have them, one after another. */
static void test_seconds(void **state)
{
    static const char *const modes[] = {"messages", "measured"}, *const engine_of[] = {"ideal", "simgrid"};

    (void)state;
    for (int k = 0; k < 4; k++) {
        const double bytes = 2 * 7000000.0, inside = 2e-6 + bytes / 4 / 100e9, between = 5e-6 + bytes / 4 / 3 / 25e9;
        struct simulated simulated;

        run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 3 ms, parameters: 7 M}}\n"
                 "cluster: {nodes: 3, gpus_per_node: 4, inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
                 "          network: {bandwidth: 25 GB/s, latency: 5 us, nics: 4}}\nbatch: {micro_batches: 2}\n"
                 "strategy: {data: 12, zero: 1, shard: 4, data_parallel: synchronous}\n"
                 "simulation: {engine: %s, collectives: %s}\n", engine_of[k % 2], modes[k / 2]);
        expect_near("iteration", simulated.run.metrics.iteration_time, 2 * 4e-3 + 2 * 3 * inside + 4 * between,
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* Over a slow network the gathers and scatters of ZeRO 3 are better kept in the node. */
static void test_slow_network(void **state)
{
    struct setup all = {3, 12, 0, 1, 1, 2, "measured", "simgrid", 0.5}, node = all;
    double exposed_all, exposed_node;

    (void)state;
    node.shard = 4;
    assert_true(iteration(&node, &exposed_node) < iteration(&all, &exposed_all) && exposed_node < exposed_all);
}

/* One replica stands for all where groups are alike, and not where some lie across nodes. */
static void test_fold(void **state)
{
    (void)state;
    for (int zero = 1; zero <= 3; zero++)
        for (int shard = 2; shard <= 6; shard++) {
            struct setup setup = {zero, 12, shard, 1, 1, 2, "measured", "simgrid", 25};
            struct simulated one;

            if (12 % shard)
                continue;
            run_setup(&one, &setup);
            assert_int_equal(one.run.lowered.alike.folded, shard != 3 && shard != 6);
            simulated_release(&one);
        }
}

/* Groups that share a NIC wait for each other: measured they cost what their messages do. */
static void test_shared_nic(void **state)
{
    double seconds[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct simulated simulated;

        run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 3 ms, parameters: 7 M}}\n"
                 "cluster: {nodes: 2, gpus_per_node: 4, inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
                 "          network: {bandwidth: 25 GB/s, latency: 5 us, nics: 1}}\nbatch: {micro_batches: 2}\n"
                 "strategy: {data: 8, zero: 1, shard: 4, data_parallel: synchronous}\n"
                 "simulation: {collectives: %s}\n", k ? "measured" : "messages");
        seconds[k] = simulated.run.metrics.iteration_time;
        simulated_release(&simulated);
    }
    assert_true(fabs(seconds[0] - seconds[1]) < 1e-9 * seconds[0]);
    assert_true(seconds[0] > 8e-3 + 4 * 2 * 2 * 7e6 / 4 / 2 / 25e9);     /* four groups' shares through one NIC */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_communicators),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_slow_network),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_shared_nic),
    };

    return cmocka_run_group_tests_name("shard", tests, NULL, NULL);
}
