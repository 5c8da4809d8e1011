/* Stragglers: everything that depends on a rank's kernels takes the times of that rank's GPUs. */
#include "simulated.h"

/* Eight GPUs, and everything whose time depends on a rank's kernels: exchanges that kernels hide, kernels around
 * exchanges, recomputations that begin in time, plans, and orders that follow from times. `alike`: all GPUs are members
 * of one group that exchanges inside works, so that one slow GPU makes all as slow. */
static const struct slow_shape {
    const char *strategy, *more;
    double inside;           /* GB/s of a GPU */
    bool alike;
} slow_shapes[] = {
    {"context: 8", "", 300, true},
    {"context: 8", "", 2, true},
    {"context: 8", "memory: {recompute: full}", 10, true},
    {"context: 8, context_attention: all-gather", "", 2, true},
    {"context: 4, data: 2", "", 2, false},
    {"tensor: 8, overlap_tensor: true", "", 2, true},
    {"tensor: 8, overlap_tensor: true", "", 20, true},
    {"tensor: 8, sequence_parallel: true, overlap_tensor: true", "", 20, true},
    {"tensor: 8, sequence_parallel: true, overlap_tensor: true, overlap_products: true", "", 20, true},
    {"tensor: 4, pipeline: 2, sequence_parallel: true, overlap_products: true", "", 20, false},
    {"tensor: 2, pipeline: 4, scatter_gather: true", "", 20, false},
    {"data: 8, zero: 3", "", 10, false},
    {"data: 8, zero: 3, flatten: false", "", 10, false},
    {"data: 8, zero: 3", "memory: {recompute: full}", 10, false},
    {"data: 8, zero: 1", "", 10, false},
    {"data: 8, zero: 2", "", 10, false},
    {"data: 8, compression: powersgd", "", 10, false},
    {"data: 8, compression: {method: top-k, share: 0.1}", "", 10, false},
    {"data: 8, compression: quantized", "", 10, false},
    {"data: 8, data_parallel: dataparallel", "", 10, false},
    {"data: 8, data_parallel: parameter-server", "", 10, false},
    {"data: 8, local_steps: 2", "", 10, false},
    {"pipeline: 8, schedule: varuna", "", 10, false},
    {"pipeline: 4, data: 2, schedule: gpipe", "memory: {recompute: full}", 10, false},
    {"pipeline: 4, data: 2, schedule: zb-h1", "", 10, false},
    {"pipeline: 4, data: 2, schedule: zb-h2", "", 10, false},
    {"pipeline: 2, data: 4, schedule: zb-v", "", 10, false},
    {"pipeline: 4, data: 2, schedule: dualpipe", "", 10, false},
    {"pipeline: 2, data: 4, balance: times", "", 10, false},
    {"pipeline: 2, data: 4", "memory: {recompute: optimal}", 10, false},
    {"pipeline: 2, data: 4", "memory: {recompute: full, offload: activations}", 10, false},
    {"pipeline: 2, data: 4", "memory: {offload: optimizer}", 10, false},
};

static double slow_time(const struct slow_shape *shape, const char *costs, const char *stragglers)
{
    struct simulated simulated;
    double time;

    run_text(&simulated, "model: {transformer: {layers: 8, hidden: 2048, heads: 16, sequence: 2048, vocabulary: 1000}}\n"
             "cluster: {nodes: 1, gpus_per_node: 8, inside: {bandwidth: %g GB/s, latency: 1 us}, gpu: a100-80gb,\n"
             "          host: {bandwidth: 16 GB/s, latency: 10 us, memory: 1 TB, update: 4 B}}\n"
             "costs: {gpu: roofline, host_launch: 0 s%s}\nbatch: {micro_batches: 8}\nstrategy: {%s}\n%s\n"
             "simulation: {stragglers: [%s]}\n", shape->inside, costs, shape->strategy, shape->more, stragglers);
    time = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return time;
}

/* All GPUs are slower by one factor: all kernels take that factor longer. */
static void test_own_kernels(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(slow_shapes); s++) {
        const struct slow_shape *shape = &slow_shapes[s];
        char gpus[400] = "";
        double speed = slow_time(shape, ", speed: 0.25", "");

        for (int i = 0; i < 8; i++)
            snprintf(gpus + strlen(gpus), sizeof gpus - strlen(gpus), "%s{gpu: %d, slower: 4}", i ? ", " : "", i);
        assert_true(speed > 1.01 * slow_time(shape, "", ""));
        expect_near("all slow", slow_time(shape, "", gpus), speed, shape->strategy);
        for (int i = 0; shape->alike && i < 8; i += 3) {
            snprintf(gpus, sizeof gpus, "{gpu: %d, slower: 4}", i);
            expect_near("one slow", slow_time(shape, "", gpus), speed, shape->strategy);
        }
    }
}

/* s of the kernels of a stage's forward, without waits for launches. */
static double forward_kernels(const struct stage_times *times)
{
    double seconds = 0;

    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (int basis = 0; basis < BASIS_COUNT; basis++)
            seconds += times->work[FORWARD].bases.seconds[kind][basis];
    return seconds;
}

/* Stragglers change the times of layers. They do not change the number of layers of a stage, which the times of
 * ordinary GPUs decide. */
static void test_split_stays(void **state)
{
    struct simulated runs[2];

    (void)state;
    for (int slow = 0; slow < 2; slow++)
        run_text(&runs[slow], "model: {transformer: {layers: 9, hidden: 512, heads: 8, sequence: 128, vocabulary: "
                 "50000}}\ncluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 300 GB/s, latency: 1 us}, "
                 "gpu: a100-80gb}\ncosts: {gpu: roofline, host_launch: 20 us}\nbatch: {micro_batches: 4}\n"
                 "strategy: {pipeline: 4, balance: times}\nsimulation: {stragglers: {gpu: 1, slower: %s}}\n",
                 slow ? "20" : "1");
    for (int s = 0; s < 4; s++)
        expect_near("kernels", forward_kernels(&workload_times(&runs[1].workload, 0, 1)[s]),
                    20 * forward_kernels(&workload_times(&runs[0].workload, 0, 1)[s]), runs[1].text);
    simulated_release(&runs[0]);
    simulated_release(&runs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_kernels), cmocka_unit_test(test_split_stays)};

    return cmocka_run_group_tests_name("slow_kernels", tests, NULL, NULL);
}
