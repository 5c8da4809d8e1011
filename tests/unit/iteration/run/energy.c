/* Energy of an iteration, by hand: 2 ranks on 2 nodes, of which each computes and waits. */
#include "simulated.h"

#include "run/energy.h"

#define SCENARIO \
    "model: {stages: {forward: 1 s, backward: 2 s}}\n" \
    "cluster: {nodes: 2, gpus_per_node: 1, inside: {bandwidth: 1 GB/s, latency: 0}, network: {bandwidth: 1 GB/s, " \
    "latency: 0}}\n" \
    "batch: {micro_batches: 4}\nstrategy: {pipeline: 2}\n"

static void test_iteration(void **state)
{
    struct simulated simulated;
    const struct metrics *m = &simulated.run.metrics;

    (void)state;
    /* 4 micro-batches of 3 s on 2 ranks take 15 s: each rank computes 12 s and waits 3 s */
    run_text(&simulated,
             SCENARIO "train: {steps: 1, energy: {gpu: {idle: 100 W, compute: 600 W, communication: 400 W}, "
                      "node: 1 kW, pue: 1.2}}\n");
    assert_true(fabs(m->energy - 1.2 * 2 * (12 * 600 + 3 * 100 + 15 * 1000)) < 1e-6);
    assert_true(fabs(m->power * 15 * 1.2 - m->energy) < 1e-6);
    simulated_release(&simulated);
}

/* A power that no file gives is unknown; the power in a GPU's file includes the node's. */
static void test_said(void **state)
{
    struct occupation all = {1, 0}, half = {0.25, 0.25}, none = {0, 0};
    struct simulated simulated;

    (void)state;
    run_text(&simulated, SCENARIO);
    assert_true(isnan(simulated.run.metrics.energy) && isnan(energy_power(&simulated.scenario, 2, 2, all)));
    assert_true(energy_pue(&simulated.scenario) == 1 && energy_nodes(&simulated.scenario) == 2);
    simulated_release(&simulated);
    run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: {platform: dgx-h100, nodes: 2}\n"
             "batch: {micro_batches: 1}\nstrategy: {data: 12}\n");
    const struct gpu_power *power = cluster_sheet(&simulated.scenario.cluster, 0)->power;
    assert_true(power->idle > 0 && power->compute > power->idle && energy_nodes(&simulated.scenario) == 2);
    assert_true(energy_power(&simulated.scenario, 12, 2, all) == 12 * power->compute);
    assert_true(energy_power(&simulated.scenario, 12, 2, none) == 12 * power->idle);
    assert_true(fabs(energy_power(&simulated.scenario, 12, 2, half) -
                     3 * (power->compute + power->communication + 2 * power->idle)) < 1e-9);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_iteration), cmocka_unit_test(test_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
