/* partly used nodes: a job that does not fill its nodes takes as many GPUs of each, and runs as on nodes of that size. */
#include "simulated.h"

static void run_on(struct simulated *simulated, int gpus_per_node, int nodes, const char *strategy, const char *more)
{
    run_text(simulated,
             "model: {transformer: {layers: 8, hidden: 512, heads: 8, sequence: 256, vocabulary: 1000, positions: 0}}\n"
             "cluster: {nodes: %d, gpus_per_node: %d, gpu: a100-80gb,\n"
             "          inside: {bandwidth: 300 GB/s, latency: 1 us},\n"
             "          network: {bandwidth: 10 GB/s, latency: 5 us, nics: %d}}\n"
             "strategy: {%s}\nsimulation: {engine: ideal, collectives: messages%s}\nbatch: {micro_batches: 4}\n",
             nodes, gpus_per_node, gpus_per_node, strategy, more);
}

static const struct job { const char *strategy; int gpus_per_node, taken, nodes; } jobs[] = {
    {"tensor: 2, pipeline: 2, data: 3", 8, 6, 2}, {"tensor: 1, data: 12", 8, 6, 2},
    {"tensor: 4, pipeline: 2, data: 4", 18, 16, 2}, {"tensor: 4, pipeline: 2, data: 2", 6, 0, 3},
    {"tensor: 4, pipeline: 1, data: 3", 8, 0, 2}, {"tensor: 1, data: 7", 4, 0, 2},
    {"tensor: 1, data: 12, pipeline: 1, placement: [data, tensor, pipeline]", 8, 6, 2}, {"tensor: 8, data: 4", 8, 8, 4},
    {"tensor: 2, data: 2", 8, 4, 1}, {"tensor: 8, data: 32", 18, 16, 16}, {"tensor: 4, data: 5", 8, 0, 3},
};

/* What a job takes of each node; 0 in the table: it fills one node after another, as equal parts do not exist or would
 * cut the groups whose GPUs are next to each other. */
static void gpus_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(jobs); i++) {
        struct simulated simulated;
        const struct scenario *scenario = &simulated.scenario;
        int per_node = jobs[i].gpus_per_node, taken = jobs[i].taken ? jobs[i].taken : per_node, on = 0;

        run_on(&simulated, per_node, 0, jobs[i].strategy, "");
        assert_int_equal(scenario->cluster.nodes, jobs[i].nodes);
        for (int gpu = 0; gpu < per_node * jobs[i].nodes; gpu++)
            on += layout_has(&scenario->layout, gpu);
        assert_int_equal(on, scenario_gpus(scenario));
        for (int k = 0; k < scenario_gpus(scenario); k++) {
            assert_int_equal(layout_nth_gpu(&scenario->layout, k), k / taken * per_node + k % taken);
            assert_true(layout_has(&scenario->layout, layout_nth_gpu(&scenario->layout, k)));
        }
        simulated_release(&simulated);
    }
}

/* Idle GPUs change nothing: the iteration is the same on nodes that have only the GPUs in use. */
static void idle_gpus_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(jobs); i++) {
        struct simulated partly, fully;

        if (!jobs[i].taken)
            continue;
        run_on(&partly, jobs[i].gpus_per_node, 0, jobs[i].strategy, "");
        run_on(&fully, jobs[i].taken, 0, jobs[i].strategy, "");
        expect_near("iteration", partly.run.metrics.iteration_time, fully.run.metrics.iteration_time, partly.text);
        simulated_release(&partly);
        run_on(&partly, jobs[i].gpus_per_node, jobs[i].nodes + 3, jobs[i].strategy, "");
        expect_near("iteration", partly.run.metrics.iteration_time, fully.run.metrics.iteration_time, partly.text);
        simulated_release(&partly);
        simulated_release(&fully);
    }
}

/* A slow GPU slows the job if and only if the job runs on it. */
static void stragglers_that_run(void **state)
{
    double usual;

    (void)state;
    for (int gpu = -1; gpu < 16; gpu++) {
        struct simulated simulated;
        char more[64] = "";

        if (gpu >= 0)
            snprintf(more, sizeof more, ", stragglers: {gpu: %d, slower: 2}", gpu);
        run_on(&simulated, 8, 0, "tensor: 2, pipeline: 2, data: 3", more);
        if (gpu < 0)
            usual = simulated.run.metrics.iteration_time;
        else if (gpu % 8 < 6)
            assert_true(simulated.run.metrics.iteration_time > 1.001 * usual);
        else
            expect_near("iteration", simulated.run.metrics.iteration_time, usual, simulated.text);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_taken),
        cmocka_unit_test(idle_gpus_change_nothing),
        cmocka_unit_test(stragglers_that_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
