/* ZeRO with the halves of an all-reduce: which reduce-scatter and which all-gather run, by their closed forms. */
#include "simulated.h"

static const struct { const char *all_reduce, *scatter, *gather; } algorithms[] = {
    {"halving-doubling", "halving", "doubling"}, {"ring", "ring", "ring"}, {"auto", "ring", "ring"},
    {"naive", "ring", "ring"}, {"tree", "ring", "ring"}, {"butterfly", "ring", "ring"}, {"double-tree", "ring", "ring"},
    {"hierarchical", "ring", "ring"},
};
static const char *const engines[] = {"ideal", "simgrid"}, *const modes[] = {"messages", "measured"};

static double seconds_of(enum collective_op op, const char *name, int n, double bytes)
{
    struct task task = {.n = n, .per_node = 1, .bytes = bytes};

    return n == 1 ? 0 : collective_find(op, name)->ideal(&task, 2e-5, 3e9);
}

/* Folded ones (n no power of two) meet at a port, which the closed forms leave out. */
static bool folded(size_t a, int n)
{
    return (n & (n - 1)) && !strcmp(algorithms[a].gather, "doubling");
}

/* One layer and one micro-batch: nothing overlaps. ZeRO 1 and 2 scatter gradients and gather weights; ZeRO 3 gathers
 * before the forward and before the backward. */
static void check(size_t a, int zero, int n, int k)
{
    const double bytes = 2 * 7000000.0;
    double scatter = seconds_of(COLLECTIVE_REDUCE_SCATTER, algorithms[a].scatter, n, bytes);
    double gather = seconds_of(COLLECTIVE_ALL_GATHER, algorithms[a].gather, n, bytes);
    struct simulated simulated;

    run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 3 ms, parameters: 7 M}}\n"
             "cluster: {nodes: %d, gpus_per_node: 1, network: {bandwidth: 3 GB/s, latency: 20 us}}\n"
             "batch: {micro_batches: 1}\nmemory: {gradients: half}\n"
             "strategy: {data: %d, zero: %d, all_reduce: %s, data_parallel: synchronous}\n"
             "simulation: {engine: %s, collectives: %s}\n", n, n, zero, algorithms[a].all_reduce, engines[k % 2],
             modes[k / 2]);
    expect_near("makespan", simulated.run.timeline.makespan, 4e-3 + scatter + (zero == 3 ? 2 : 1) * gather,
                simulated.text);
    simulated_release(&simulated);
}

static void test_halves(void **state)
{
    (void)state;
    for (size_t a = 0; a < COUNT(algorithms); a++)
        for (int zero = 1; zero <= 3; zero++)
            for (int n = 2; n <= 8; n++)
                for (int k = 0; k < 4; k++)
                    if (!folded(a, n) || !strcmp(engines[k % 2], "ideal"))
                        check(a, zero, n, k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_halves)};

    return cmocka_run_group_tests_name("halves", tests, NULL, NULL);
}
