/* What the host takes for a kernel: the scenario's time as it is, a software file's over the speed of the GPU's host, or the
 * default; and a scenario written with all that was resolved, read again, waits as long. */
#include "simulated.h"

/* Small layers, which wait for their launches. */
static void simulate_small(struct simulated *simulated, const char *cluster, const char *software, const char *costs)
{
    run_text(simulated,
             "model: {transformer: {layers: 3, hidden: 128, heads: 4, sequence: 64, vocabulary: 512}}\n"
             "cluster: {%s}\nsoftware: %s\nbatch: {micro: 1, micro_batches: 3}\nsimulation: {engine: ideal}\n"
             "costs: {gpu: roofline%s}\n", cluster, software, costs);
}

static double seconds_of(const char *cluster, const char *software, const char *costs)
{
    struct simulated simulated;
    double seconds;

    simulate_small(&simulated, cluster, software, costs);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

static const struct launching { const char *gpu; double speed; } hosts[] = {
    {"a100-80gb", 1}, {"v100-16gb", 0.52}, {"rtx-3090", 0.73}, {"gh200-96gb", 0.72}, {"gb200", 0.65},
};

static void test_supplied(void **state)
{
    static const char *const software[] = {"pytorch-ddp", "pytorch-2.0", "transformers"};

    (void)state;
    for (size_t i = 0; i < COUNT(hosts); i++)
        for (size_t k = 0; k < COUNT(software); k++) {
            char cluster[128], same[64], other[64];

            snprintf(cluster, sizeof cluster, "nodes: 1, gpus_per_node: 1, gpu: %s", hosts[i].gpu);
            snprintf(same, sizeof same, ", host_launch: %.17g us", 24 / hosts[i].speed);
            snprintf(other, sizeof other, ", host_launch: %.17g us", 48 / hosts[i].speed);
            expect_near("the file's over the host's speed", seconds_of(cluster, software[k], ""),
                        seconds_of(cluster, software[k], same), hosts[i].gpu);
            assert_true(seconds_of(cluster, software[k], other) > 1.5 * seconds_of(cluster, software[k], same));
        }
}

/* Nobody says a time: the default, whatever the host. */
static void test_default(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        char cluster[128];

        snprintf(cluster, sizeof cluster, "nodes: 1, gpus_per_node: 1, gpu: %s", hosts[i].gpu);
        expect_near("the default", seconds_of(cluster, "none", ""), seconds_of(cluster, "none", ", host_launch: 55 us"),
                    hosts[i].gpu);
    }
}

static void test_read_again(void **state)
{
    static const char *const clusters[] = {
        "nodes: 1, gpus_per_node: 1, gpu: gh200-96gb", "nodes: 1, gpus_per_node: 1, gpu: a100-80gb",
        "parts: [{name: a, nodes: 1, gpus_per_node: 1, gpu: gh200-96gb}, {name: b, nodes: 1, gpus_per_node: 1, gpu: a100-80gb}], "
        "network: {bandwidth: 50 GB/s, latency: 2 us}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(clusters); i++) {
        struct simulated first, again;
        const char *text;

        simulate_small(&first, clusters[i], "pytorch-ddp", "");
        text = node_flow(&first.scenario.arena, scenario_dump(&first.scenario.arena, &first.scenario));
        run_text(&again, "%s", text);
        expect_near("read again", again.run.metrics.iteration_time, first.run.metrics.iteration_time, text);
        simulated_release(&again);
        simulated_release(&first);
    }
}

/* NVIDIA's MLPerf code records adapters' blocks, and on Blackwell all; its code on Hopper does not. */
static void test_recorded(void **state)
{
    static const struct { const char *gpu, *memory; bool recorded; } cases[] = {
        {"b200-180gb", "precision: mixed-fp8", true}, {"h100-80gb", "precision: mixed-fp8", false},
        {"h100-80gb", "precision: mixed-fp8, lora: {rank: 16}", true}, {"mi300x", "precision: mixed-fp8, lora: {rank: 16}", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char cluster[256], costs[256];
        double waits, recorded;

        snprintf(cluster, sizeof cluster, "nodes: 1, gpus_per_node: 1, gpu: %s", cases[i].gpu);
        snprintf(costs, sizeof costs, "}\nmemory: {%s", cases[i].memory);
        waits = seconds_of(cluster, "nemo-mlperf", costs);
        snprintf(costs, sizeof costs, ", host_launch: 0 us}\nmemory: {%s", cases[i].memory);
        recorded = seconds_of(cluster, "nemo-mlperf", costs);
        assert_int_equal(fabs(waits - recorded) < 1e-9, cases[i].recorded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_supplied), cmocka_unit_test(test_default), cmocka_unit_test(test_read_again),
        cmocka_unit_test(test_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
