/* Tensor and pipeline parallelism on a network, by formula: all-reduces inside works, boundary transfers, shared NICs,
 * and who is in which group. */
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "report/figure.h"
#include "simulated.h"

enum { HIDDEN = 128, SEQUENCE = 64, BLOCKS = 4, MICRO = 2 };
static const double vector = 2.0 * MICRO * SEQUENCE * HIDDEN;      /* bytes of s b h, in half precision */
static const double inside_latency = 2e-6, inside_bandwidth = 1e11, network_latency = 9e-6, network_bandwidth = 5e9;

struct grouping {
    int tensor, pipeline, data, nodes, gpus_per_node, nics, micro_batches, scatter_gather, waits, partitioned;
};

static void simulate_layout(struct simulated *simulated, const struct grouping *layout, const char *placement,
                            const char *engine)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: 4096, tied: false}}\n"
             "cluster: {nodes: %d, gpus_per_node: %d, gpu: a100-80gb,\n"
             "          inside: {bandwidth: %.17g B/s, latency: %.17g s},\n"
             "          network: {bandwidth: %.17g B/s, latency: %.17g s, nics: %d}}\n"
             "batch: {micro: %d, micro_batches: %d}\nmemory: {recompute: none}\nsimulation: {engine: %s}\n"
             "strategy: {tensor: %d, pipeline: %d, data: %d, placement: %s, data_parallel: synchronous, channels: 1,\n"
             "           scatter_gather: %s, overlap_p2p: %s, partitioned_outputs: %s}\ncosts: {host_send: 70 us}\n",
             BLOCKS, HIDDEN, SEQUENCE, layout->nodes, layout->gpus_per_node, inside_bandwidth, inside_latency,
             network_bandwidth, network_latency, layout->nics, MICRO, layout->micro_batches, engine, layout->tensor,
             layout->pipeline, layout->data, placement, layout->scatter_gather ? "true" : "false",
             layout->waits ? "false" : "true", layout->partitioned ? "true" : "false");
}

static double ring(int n, double bytes, double latency, double bandwidth)
{
    return 2 * (n - 1) * (latency + bytes / n / bandwidth);
}

/* Kernels of all stages and of the update, on one GPU. */
static double kernels(const struct simulated *simulated, int micro_batches)
{
    double seconds = 0;

    for (int s = 0; s < simulated->scenario.plan.stages; s++)
        seconds += micro_batches * (ordinary_times(&simulated->workload)[s].work[FORWARD].seconds +
                                    ordinary_times(&simulated->workload)[s].work[BACKWARD].seconds);
    return seconds + ordinary_times(&simulated->workload)[0].update.seconds;
}

/* Four all-reduces a block, one for the embedding, one for the output layer, inside a node. */
static void test_inside(void **state)
{
    (void)state;
    for (int tensor = 1; tensor <= 8; tensor *= 2)
        for (int k = 0; k < 2; k++) {
            struct grouping layout = {tensor, 1, 1, 1, 8, 8, 3, 0, 0, 0};
            double each = ring(tensor, vector, inside_latency, inside_bandwidth), all = 3 * (4 * BLOCKS + 2) * each;
            struct simulated simulated;

            simulate_layout(&simulated, &layout, "[tensor, data, pipeline]", k ? "simgrid" : "ideal");
            expect_near("iteration", simulated.run.timeline.makespan, kernels(&simulated, 3) + all, simulated.text);
            assert_true(fabs(simulated.run.metrics.exposed_communication - all) < 1e-12);
            simulated_release(&simulated);
        }
}

/* Two tensor groups that both cross the same pair of nodes share its one NIC, or have one each. */
static void test_siblings(void **state)
{
    (void)state;
    for (int nics = 1; nics <= 2; nics++) {
        struct grouping layout = {2, 1, 2, 2, 2, nics, 1, 0, 0, 0};
        double each = ring(2, vector, network_latency, network_bandwidth * nics / 2), gradients;
        struct simulated simulated;

        simulate_layout(&simulated, &layout, "[data, tensor, pipeline]", "simgrid");
        gradients = ring(2, 2 * simulated.workload.stages[0].parameters, inside_latency, inside_bandwidth);
        expect_near("iteration", simulated.run.timeline.makespan,
                    kernels(&simulated, 1) + (4 * BLOCKS + 2) * each + gradients, simulated.text);
        simulated_release(&simulated);
    }
}

/* One micro-batch there and back over two stages: each GPU of the tensor group sends the whole s b h to its
 * counterpart, or its share, which the receivers gather. On two nodes of four GPUs, the four flows of the group share
 * the node's NICs. A stage that waits for its boundary waits for the host too. */
static void test_boundary(void **state)
{
    (void)state;
    for (int tensor = 1; tensor <= 4; tensor *= 2)
        for (int k = 0; k < 12; k++) {
            int nics = 1 << k / 2 % 3, scatter = k % 2, waits = k / 6;
            struct grouping layout = {tensor, 2, 1, 2, 4, nics, 1, scatter, waits, 0};
            double each = ring(tensor, vector, inside_latency, inside_bandwidth), gather = scatter ? each / 2 : 0;
            double sent = vector / (scatter ? tensor : 1);
            double inside = inside_latency + sent / inside_bandwidth + gather;
            double between = network_latency + sent * (4 / nics) / network_bandwidth + gather;
            struct simulated simulated;

            simulate_layout(&simulated, &layout, "[tensor, data, pipeline]", "simgrid");
            expect_near("iteration", simulated.run.timeline.makespan,
                        kernels(&simulated, 1) + (4 * BLOCKS + 2) * each + 2 * (tensor == 4 ? between : inside) +
                            (waits ? 2 * 70e-6 : 0),
                        simulated.text);
            simulated_release(&simulated);
        }
}

/* Outputs of which a GPU kept its share are gathered once more each, and each of three gathers a boundary passes the
 * whole of it through memory five times. */
static void test_partitioned_outputs(void **state)
{
    (void)state;
    for (int tensor = 1; tensor <= 4; tensor *= 2)
        for (int pipeline = 2; pipeline <= 4; pipeline += 2) {
            double gather = ring(tensor, vector, inside_latency, inside_bandwidth) / 2, copies = 0;
            double seconds[2], makespan[2];

            for (int k = 0; k < 2; k++) {
                struct grouping layout = {tensor, pipeline, 1, pipeline, 4, 4, 1, 1, 1, k};
                struct simulated simulated;

                simulate_layout(&simulated, &layout, "[tensor, data, pipeline]", "ideal");
                makespan[k] = simulated.run.timeline.makespan;
                seconds[k] = kernels(&simulated, 1);
                copies = costs_traffic(&simulated.scenario.kernels[0], "copies", CLASS_COPY, 5 * vector).seconds;
                simulated_release(&simulated);
            }
            expect_near("copies", seconds[1] - seconds[0], tensor > 1 ? 3 * (pipeline - 1) * copies : 0, "kernels");
            expect_near("iteration", makespan[1] - makespan[0], seconds[1] - seconds[0] + (pipeline - 1) * gather,
                        "gathers");
        }
}

/* 32 GPUs = 4-way tensor x 4-way pipeline x 2-way data, nodes of 8: tensor groups are neighbours, a node holds the two
 * replicas of a stage. */
static void test_groups(void **state)
{
    struct simulated simulated;

    (void)state;
    simulated_load(&simulated, "model: {preset: gpt2-124m}\n"
                   "cluster: dgx-a100\nbatch: {global: 8}\nstrategy: {tensor: 4, pipeline: 4, data: 2}\n");
    assert_int_equal(scenario_gpus(&simulated.scenario), 32);
    assert_int_equal(simulated.scenario.cluster.nodes, 4);
    for (int p = 0; p < 4; p++)
        for (int d = 0; d < 2; d++)
            for (int t = 0; t < 4; t++)
                assert_int_equal(scenario_gpu(&simulated.scenario, t, d, p), 8 * p + 4 * d + t);
    simulated_release(&simulated);
}

/* Whatever the placement, every GPU has one place. */
static void test_placements(void **state)
{
    static const char *const placements[] = {
        "[tensor, data, pipeline]", "[tensor, pipeline, data]", "[data, tensor, pipeline]",
        "[data, pipeline, tensor]", "[pipeline, tensor, data]", "[pipeline, data, tensor]",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(placements); i++) {
        bool taken[2 * 3 * 5] = {false};
        struct simulated simulated;

        simulated_load(&simulated, "model: {preset: gpt2-124m}\ncluster: dgx-a100\nbatch: {global: 30}\n"
                       "strategy: {tensor: 2, pipeline: 3, data: 5, placement: %s}\n", placements[i]);
        for (int place = 0; place < 30; place++) {
            int gpu = scenario_gpu(&simulated.scenario, place % 2, place / 2 % 5, place / 10);

            assert_in_range(gpu, 0, 29);
            assert_false(taken[gpu]);
            taken[gpu] = true;
        }
        simulated_release(&simulated);
    }
}

/* Seconds of forwards and backwards on one GPU of a tensor group under sequence parallelism, by the data sheet. */
static struct by_order { double forward, backward; } by_order(int tensor, bool sequence_first, double *copy)
{
    struct simulated simulated;
    struct by_order order;
    const struct gpu *gpu;

    run_text(&simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: 4096, tied: false}}\n"
             "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
             "batch: {micro: %d, micro_batches: 1}\nmemory: {recompute: none}\nsimulation: {engine: ideal}\n"
             "strategy: {tensor: %d, sequence_parallel: true, sequence_first: %s}\n"
             "costs: {gpu: roofline, host_launch: 0}\n", BLOCKS, HIDDEN, SEQUENCE, MICRO, tensor,
             sequence_first ? "true" : "false");
    order = (struct by_order){ordinary_times(&simulated.workload)[0].work[FORWARD].seconds,
                              ordinary_times(&simulated.workload)[0].work[BACKWARD].seconds};
    gpu = cluster_sheet(&simulated.scenario.cluster, 0);
    *copy = 2 * vector / (gpu->memory_efficiency * gpu->memory_bandwidth) + gpu->launch_overhead;
    simulated_release(&simulated);
    return order;
}

/* Where the batch is first, a tensor group copies whatever it gathers or scatters, whole, whatever its size: of a sum both halves,
 * in a forward two a block and the embedding's, in a backward two a block and the head's, and there each column-parallel
 * product's input too. */
static void test_copies(void **state)
{
    const int sums = 2 * BLOCKS + 1;

    (void)state;
    for (int tensor = 2; tensor <= 8; tensor *= 2) {
        double copy;
        struct by_order first = by_order(tensor, true, &copy), later = by_order(tensor, false, &copy);

        expect_near("forward", later.forward - first.forward, 2 * sums * copy, "");
        expect_near("backward", later.backward - first.backward, 3 * sums * copy, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_siblings),
        cmocka_unit_test(test_boundary),
        cmocka_unit_test(test_partitioned_outputs),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_placements),
        cmocka_unit_test(test_copies),
    };

    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
