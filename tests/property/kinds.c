/* kinds: nodes of two kinds that differ in one thing, or in nothing: a loaded scenario's cluster is divided here, as
 * files say them in parts.c. */
#include "simulated.h"

#include "scenario/scenario_internal.h"

/* Makes the nodes from `first` on a second kind, which equals the kind of the others. */
static void divide(struct scenario *scenario, int first)
{
    struct cluster *cluster = &scenario->cluster;
    struct error err = {0};

    cluster->kinds[1] = cluster->kinds[0];
    cluster->part_count = 2;
    cluster->parts[1] = (struct machine_part){1, first};
    assert_int_equal(scenario_lay_out(scenario, &err), 0);
    assert_int_equal(costs_resolve(&scenario->arena, &scenario->costs, scenario->node, &scenario->cluster,
                                   model_is_timed(&scenario->model), scenario->kernels, &err), 0);
    scenario->uneven = scenario_uneven(scenario);
    assert_true(scenario->layout.mixed);
}

static void load(struct simulated *simulated, const char *strategy, const char *simulation)
{
    simulated_load(simulated,
                   "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 51200}}\n"
                   "cluster: {platform: dgx-a100, nodes: 4, gpus_per_node: 4, communication: none}\n"
                   "batch: {micro: 1, global: 32}\n"
                   "%s\nsimulation: {engine: fast, %s}\n", strategy, simulation);
}

static void run(struct simulated *simulated)
{
    struct error err = {0};

    if (simulated_run(simulated, &err))
        fail_at(simulated->text, &err);
}

/* All metrics without the evidence's: no published run had nodes of two kinds. */
static void expect_equal(struct simulated *divided, const struct simulated *whole)
{
    const struct metrics *a = &divided->run.metrics, *b = &whole->run.metrics;

    for (size_t i = 0; metric_at(i); i++) {
        double own = metric_value(a, metric_at(i)), other = metric_value(b, metric_at(i));

        if (strncmp(metric_at(i)->name, "expected_", 9) && (!isnan(own) || !isnan(other)))
            expect_near(metric_at(i)->name, own, other, divided->text);
    }
}

static const char *const strategies[] = {
    "strategy: {tensor: 2, pipeline: 2, data: 4}", "strategy: {tensor: 4, pipeline: 4, schedule: 1f1b}",
    "strategy: {data: 16, zero: 3}", "strategy: {data: 16}", "strategy: {pipeline: 4, data: 4, schedule: zb-h1}",
    "strategy: {pipeline: 2, data: 8, placement: [pipeline, tensor, data]}",
    "strategy: {tensor: 2, data: 8, zero: 2}\nmemory: {offload: optimizer}",
};

static void a_second_equal_kind_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++)
        for (int first = 1; first < 4; first += 2) {
            struct simulated divided, whole;

            load(&divided, strategies[i], "fold: auto");
            load(&whole, strategies[i], "fold: auto");
            divide(&divided.scenario, first);
            run(&divided);
            run(&whole);
            expect_equal(&divided, &whole);
            simulated_release(&divided);
            simulated_release(&whole);
        }
}

/* A kind whose kernels take twice as long is a straggler on each of its GPUs. */
static void a_slower_kind_is_stragglers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated divided, whole;
        char stragglers[512] = "stragglers: [";

        for (int gpu = 8; gpu < 16; gpu++)
            snprintf(stragglers + strlen(stragglers), sizeof stragglers - strlen(stragglers), "{gpu: %d, slower: 2}%s",
                     gpu, gpu < 15 ? ", " : "]");
        load(&divided, strategies[i], "fold: auto");
        load(&whole, strategies[i], stragglers);
        divide(&divided.scenario, 2);
        divided.scenario.kernels[1].speed /= 2;
        run(&divided);
        run(&whole);
        expect_equal(&divided, &whole);
        simulated_release(&divided);
        simulated_release(&whole);
    }
}

/* A kind whose NICs have half the bandwidth is a slow link on each of them. */
static void slower_nics_are_slow_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated divided, whole;
        char links[1024] = "slow_links: [";

        for (int nic = 0; nic < 8; nic++)
            snprintf(links + strlen(links), sizeof links - strlen(links), "{node: %d, nic: %d, share: 0.5}%s",
                     2 + nic / 4, nic % 4, nic < 7 ? ", " : "]");
        load(&divided, strategies[i], "collectives: messages");
        load(&whole, strategies[i], "collectives: messages");
        simulated_release(&whole);
        strcat(links, ", collectives: messages");
        load(&whole, strategies[i], links);
        divide(&divided.scenario, 2);
        divided.scenario.cluster.kinds[1].nics.bandwidth /= 2;
        run(&divided);
        run(&whole);
        expect_equal(&divided, &whole);
        simulated_release(&divided);
        simulated_release(&whole);
    }
}

/* A rank may hold as much as the smallest of its GPUs, copies at the rate of the slowest host, and the peak is the mean
 * GPU's. */
static void ranks_have_the_least_of_their_kinds(void **state)
{
    struct simulated simulated;
    struct scenario *scenario = &simulated.scenario;

    (void)state;
    load(&simulated, "strategy: {tensor: 4, pipeline: 2, data: 2}", "fold: auto");   /* rank 1: nodes 2 and 3 */
    divide(scenario, 3);
    scenario->cluster.kinds[1].gpu.memory = 40e9;
    scenario->cluster.kinds[1].host.bandwidth /= 4;
    assert_true(scenario_room(scenario, 0) == scenario->cluster.kinds[0].gpu.memory);
    assert_true(scenario_room(scenario, 1) == 40e9 && scenario_least_room(scenario) == 40e9);
    assert_true(scenario_host_bandwidth(scenario, 0) == 4 * scenario_host_bandwidth(scenario, 1));
    scenario->cluster.kinds[1].gpu.peak.fp16 = 2 * scenario->cluster.kinds[0].gpu.peak.fp16;
    run(&simulated);
    expect_near("mfu", simulated.run.metrics.mfu,
                simulated.run.metrics.model_flops_per_gpu / (1.25 * scenario->cluster.kinds[0].gpu.peak.fp16),
                simulated.text);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_equal_kind_changes_nothing), cmocka_unit_test(a_slower_kind_is_stragglers),
        cmocka_unit_test(slower_nics_are_slow_links), cmocka_unit_test(ranks_have_the_least_of_their_kinds),
    };

    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
