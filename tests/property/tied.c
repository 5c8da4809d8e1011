/* What the two stages of a tied embedding send each other to sum its gradients: each its size in the format in which it
 * is summed. Widened gradients are widened for the sum over replicas alone. */
#include "simulated.h"

enum { VOCABULARY = 1024, HIDDEN = 128 };

/* B that both nodes send by their NICs. */
static double sent(const char *gradients, int data)
{
    struct simulated simulated;
    struct error err = {0};
    struct simulate_options options;
    double bytes = 0;

    simulated_load(&simulated, "model: {transformer: {layers: 2, hidden: %d, heads: 2, sequence: 64, vocabulary: %d, tied: "
                   "true}}\ncluster: {nodes: %d, gpus_per_node: 1, gpu: v100-16gb, network: {bandwidth: 1 GB/s, latency: 1 us}}\n"
                   "batch: {micro_batches: 2}\nstrategy: {schedule: 1f1b, pipeline: 2, data: %d}\nmemory: {precision: "
                   "mixed-fp16}\nsoftware: {like: pytorch-ddp, gradients: %s}\nsimulation: {engine: fast}\n", HIDDEN,
                   VOCABULARY, 2 * data, data, gradients);
    options = simulate_options_of(&simulated.scenario);
    options.links = true;
    if (simulate(simulated_workload(&simulated), options, &simulated.run, &err))
        fail_at(simulated.text, &err);
    for (int i = 0; i < simulated.run.links.counts[LINK_NIC_UP]; i++)
        bytes += simulated.run.links.loads[LINK_NIC_UP][i].payload;
    simulated_release(&simulated);
    return bytes;
}

static void test_tied(void **state)
{
    double half = sent("half", 1), all = 2 * 2.0 * VOCABULARY * HIDDEN;      /* a ring of two: each sends the whole */

    (void)state;
    expect_near("widened", sent("widened", 1), half, "one replica");
    expect_near("fp32", sent("fp32", 1) - half, all, "one replica");
    /* two replicas: their sums are in fp32, both pairs of stages sum as before */
    expect_near("replicas", sent("fp32", 2) - sent("widened", 2), 2 * all, "two replicas");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tied)};

    return cmocka_run_group_tests_name("tied", tests, NULL, NULL);
}
