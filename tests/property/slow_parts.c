/* Stragglers and slow links: closed forms of what they cost, scenarios that are the same in other words, and what they
 * turn off. */
#include "simulated.h"

#include "collective/measure.h"

#define STAGES(forward, backward, more) \
    "model: {stages: {forward: " forward ", backward: " backward more "}}\n"

static double time_of(const struct simulated *simulated)
{
    return simulated->run.metrics.iteration_time;
}

/* 1F1B on a free network with a straggler on one stage. A straggler on the last stage always has its next input in
 * time. On another stage it has so if its first forwards last until the first gradient comes. Then the iteration is the
 * time before its first forward, its works one after another, and the time after its last backward. */
static void test_pipeline(void **state)
{
    enum { STAGES = 4, MICRO_BATCHES = 10 };
    const double f = 1, b = 1.5;

    (void)state;
    for (int stage = 0; stage < STAGES; stage++)
        for (double slower = stage == STAGES - 1 ? 1 : 1 + b / f; slower < 4; slower += 0.4) {
            struct simulated simulated;

            run_text(&simulated, STAGES("1 s", "1.5 s", "") "cluster: ideal\nbatch: {micro_batches: %d}\n"
                     "strategy: {schedule: 1f1b, pipeline: %d}\n"
                     "simulation: {stragglers: {gpu: %d, slower: %.17g}}\n", MICRO_BATCHES, STAGES, stage, slower);
            expect_near("iteration", time_of(&simulated), stage * (f + b) + MICRO_BATCHES * slower * (f + b),
                        simulated.text);
            simulated_release(&simulated);
        }
}

/* The gradients of all replicas are summed when the last one has them: every replica's update is later by what the
 * straggler needs longer, whether the sum is messages or measured, and on either engine. Nobody's kernels but the
 * straggler's take longer. */
static void test_replicas_wait(void **state)
{
    enum { REPLICAS = 4, MICRO_BATCHES = 3, SLOW = 2 };

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct simulated runs[2];

        for (int slow = 0; slow < 2; slow++)
            run_text(&runs[slow], STAGES("1 s", "2 s", ", parameters: 10 M")
                     "cluster: {nodes: 4, gpus_per_node: 1, network: {bandwidth: 1 GB/s, latency: 1 ms}}\n"
                     "batch: {micro_batches: %d}\nstrategy: {data: %d, data_parallel: synchronous, all_reduce: ring}\n"
                     "simulation: {engine: %s, collectives: %s, stragglers: {gpu: %d, slower: %s}}\n", MICRO_BATCHES,
                     REPLICAS, way % 2 ? "simgrid" : "ideal", way / 2 ? "measured" : "messages", SLOW,
                     slow ? "1.5" : "1");
        expect_near("iteration", time_of(&runs[1]), time_of(&runs[0]) + 0.5 * MICRO_BATCHES * 3, runs[1].text);
        assert_true(runs[0].run.lowered.alike.folded == (way / 2 == 1) && !runs[1].run.lowered.alike.folded);
        for (int r = 0; r < REPLICAS; r++) {
            const struct rank_metrics *rank = &runs[1].run.metrics.ranks[r];
            double kernels = MICRO_BATCHES * 3 * (r == SLOW ? 1.5 : 1);

            expect_near("kernels", rank->seconds[ACCOUNT_FORWARD] + rank->seconds[ACCOUNT_BACKWARD], kernels,
                        runs[1].text);
        }
        simulated_release(&runs[0]);
        simulated_release(&runs[1]);
    }
}

/* Of a tensor-parallel group the slowest GPU decides, whichever it is. */
static void test_tensor_group(void **state)
{
    double times[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 4, hidden: 1024, heads: 8, sequence: 512, vocabulary: 1000}}\n"
                 "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 300 GB/s, latency: 1 us}}\n"
                 "costs: {gpu: roofline}\nbatch: {micro_batches: 4}\nstrategy: {tensor: 2, pipeline: 2}\n"
                 "simulation: {stragglers: [{gpu: %d, slower: %s}, {gpu: %d, slower: 1.5}]}\n", i == 1 ? 3 : 2,
                 i == 2 ? "1.2" : i == 3 ? "1.5" : "1", i == 1 ? 2 : 3);
        times[i] = time_of(&simulated);
        simulated_release(&simulated);
    }
    for (int i = 1; i < 4; i++)
        assert_true(times[i] == times[0]);
}

/* Groups that exchange inside their works, and ZeRO 3's in every layer, wait for their slowest member at every work,
 * whichever it is: they take as long as if all were that slow, but for what nobody waits for. */
static void test_groups_wait(void **state)
{
    static const char *const strategies[] = {"context: 4, data: 1", "data: 4, zero: 3", "expert: 4, data: 4"};

    (void)state;
    for (size_t s = 0; s < COUNT(strategies); s++) {
        double times[6];

        for (int i = 0; i < 6; i++) {        /* each of four; none; all */
            struct simulated simulated;
            char stragglers[256];

            snprintf(stragglers, sizeof stragglers, i < 4 ? "{gpu: %d, slower: 1.5}" : i == 4 ? "[]" :
                     "[{gpu: 0, slower: 1.5}, {gpu: 1, slower: 1.5}, {gpu: 2, slower: 1.5}, {gpu: 3, slower: 1.5}]", i);
            run_text(&simulated, "model: {transformer: {layers: 4, hidden: 1024, heads: 8, sequence: 2048, "
                     "vocabulary: 1000%s}}\ncluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, "
                     "inside: {bandwidth: 300 GB/s, latency: 1 us}}\n"
                     "costs: {gpu: roofline, host_launch: 0 s}\nbatch: {micro_batches: 3}\nstrategy: {%s}\n"
                     "simulation: {stragglers: %s}\n", s == 2 ? ", experts: 4, experts_per_token: 1" : "",
                     strategies[s], stragglers);
            times[i] = time_of(&simulated);
            simulated_release(&simulated);
        }
        for (int i = 1; i < 4; i++)
            expect_near("another member", times[i], times[0], strategies[s]);
        assert_true(times[4] < 0.95 * times[0] && times[0] <= times[5] * (1 + 1e-9));
        assert_true(times[0] > 0.98 * times[5]);
    }
}

#define WIDE "cluster: {nodes: %d, gpus_per_node: %d, inside: {bandwidth: 300 GB/s, latency: 1 us}, gpu: a100-80gb,\n" \
             "          network: {bandwidth: %g GB/s, latency: 5 us, nics: %d}}\ncosts: {gpu: roofline}\n"
#define MODEL "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1000%s}}\n"

static const struct shape { int nodes, gpus, nics; const char *model, *strategy; } shapes[] = {
    {4, 2, 2, "", "tensor: 2, pipeline: 2, data: 2, schedule: 1f1b"},
    {4, 2, 1, "", "tensor: 2, pipeline: 2, data: 2, schedule: gpipe, placement: [data, tensor, pipeline]"},
    {4, 2, 2, "", "data: 8, data_parallel: ddp, first_bucket: 100 KB, bucket: 1 MB"},
    {4, 2, 1, "", "data: 8, zero: 3"},
    {4, 2, 2, "", "data: 8, zero: 1, pipeline: 1, all_reduce: ring"},
    {4, 2, 2, ", experts: 8, experts_per_token: 2, expert_ffn: 512", "expert: 4, data: 8"},
    {4, 2, 2, "", "context: 2, data: 2, pipeline: 2"},
    {4, 2, 1, "", "data: 8, data_parallel: parameter-server"},
    {2, 4, 4, "", "tensor: 8"},
};

/* Half of all bandwidth: on every NIC by itself, or of the cluster. What stands for others in one is simulated by
 * itself in the other; times agree, messages or measured. */
static void test_all_links_slow(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int way = 0; way < 2 * 3; way++) {
            const struct shape *shape = &shapes[s];
            struct simulated slow, half;
            char *links = strdup("");

            for (int i = 0; i < shape->nodes * shape->nics; i++) {
                char *more;

                assert_true(asprintf(&more, "%s%s{node: %d, nic: %d, share: 0.5}", links, i ? ", " : "",
                                     i / shape->nics, i % shape->nics) > 0);
                free(links);
                links = more;
            }
            run_text(&half, MODEL WIDE "batch: {micro_batches: 2}\nstrategy: {%s}\n"
                     "simulation: {engine: %s, collectives: %s}\n", shape->model, shape->nodes, shape->gpus, 5.0,
                     shape->nics, shape->strategy, engine_names[way % 3], way / 3 ? "measured" : "messages");
            run_text(&slow, MODEL WIDE "batch: {micro_batches: 2}\nstrategy: {%s}\n"
                     "simulation: {engine: %s, collectives: %s, slow_links: [%s]}\n", shape->model, shape->nodes,
                     shape->gpus, 10.0, shape->nics, shape->strategy, engine_names[way % 3],
                     way / 3 ? "measured" : "messages", links);
            assert_false(slow.run.lowered.alike.folded);
            expect_near("iteration", time_of(&slow), time_of(&half), slow.text);
            simulated_release(&slow);
            simulated_release(&half);
            free(links);
        }
}

/* All GPUs are twice as slow: as if all kernels ran at half speed. */
static void test_all_gpus_slow(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        const struct shape *shape = &shapes[s];
        struct simulated slow, half;
        char *gpus = strdup("");

        for (int i = 0; i < 8; i++) {
            char *more;

            assert_true(asprintf(&more, "%s%s{gpu: %d, slower: 2}", gpus, i ? ", " : "", i) > 0);
            free(gpus);
            gpus = more;
        }
        run_text(&half, MODEL "cluster: {nodes: %d, gpus_per_node: %d, inside: {bandwidth: 300 GB/s, latency: 1 us},\n"
                 "          gpu: a100-80gb, network: {bandwidth: %g GB/s, latency: 5 us, nics: %d}}\n"
                 "costs: {gpu: roofline, speed: 0.5}\nbatch: {micro_batches: 2}\nstrategy: {%s}\n", shape->model,
                 shape->nodes, shape->gpus, 10.0, shape->nics, shape->strategy);
        run_text(&slow, MODEL WIDE "batch: {micro_batches: 2}\nstrategy: {%s}\nsimulation: {stragglers: [%s]}\n",
                 shape->model, shape->nodes, shape->gpus, 10.0, shape->nics, shape->strategy, gpus);
        assert_false(slow.run.lowered.alike.folded);
        expect_near("iteration", time_of(&slow), time_of(&half), slow.text);
        simulated_release(&slow);
        simulated_release(&half);
        free(gpus);
    }
}

/* A factor of 1 and a whole share are the same as none, to the last bit. */
static void test_none(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        const struct shape *shape = &shapes[s];
        struct simulated runs[2];

        for (int i = 0; i < 2; i++)
            run_text(&runs[i], MODEL WIDE "batch: {micro_batches: 2}\nstrategy: {%s}\n"
                     "simulation: {collectives: measured%s}\n", shape->model, shape->nodes, shape->gpus, 10.0,
                     shape->nics, shape->strategy,
                     i ? ", stragglers: {gpu: 1, slower: 1}, slow_links: {node: 1, nic: 0, share: 1}" : "");
        assert_int_equal(runs[0].run.lowered.alike.folded, runs[1].run.lowered.alike.folded);
        assert_int_equal(runs[0].run.lowered.program.ops.count, runs[1].run.lowered.program.ops.count);
        for (size_t i = 0; metric_at(i); i++) {
            double one = metric_value(&runs[0].run.metrics, metric_at(i));
            double other = metric_value(&runs[1].run.metrics, metric_at(i));

            assert_true(one == other || (isnan(one) && isnan(other)));
        }
        simulated_release(&runs[0]);
        simulated_release(&runs[1]);
    }
}

/* A ring sends 2 (n - 1) messages through its slowest hop, one after another. Many nodes: only where none of their NICs
 * is slow may two of them stand for all. */
static void test_ring(void **state)
{
    static const int counts[] = {2, 3, 5, 8, 40};
    const double latency = 1e-5, bandwidth = 10e9, bytes = 1e8;

    (void)state;
    for (size_t c = 0; c < COUNT(counts); c++)
        for (int engine = 0; engine < 3; engine++) {
            int n = counts[c], gpus[40];
            struct simulated simulated;
            struct measure measure;
            struct measured measured;
            struct error err = {0};

            simulated_load(&simulated, STAGES("1 s", "2 s", "") "batch: {micro_batches: 1}\n"
                           "cluster: {nodes: %d, gpus_per_node: 1, network: {bandwidth: 10 GB/s, latency: 10 us}}\n"
                           "simulation: {slow_links: {node: %d, nic: 0, share: 0.5}}\n", n, n / 2);
            for (int i = 0; i < n; i++)
                gpus[i] = i;
            measure_init(&measure, (enum engine)engine, &simulated.scenario.cluster);
            struct placed_group group = placed_group_of(&simulated.scenario.cluster, gpus, n);
            struct placed_group half = placed_group_of(&simulated.scenario.cluster, gpus, n / 2);
            struct collective_call call = {collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &group, bytes, 1};

            assert_int_equal(measure_collective(&measure, &call, 1, &measured, &err), 0);
            expect_near("ring", measured.seconds, 2 * (n - 1) * (latency + bytes / n / (bandwidth / 2)),
                        simulated.text);
            /* the same members in front of the slow one */
            call.group = &half;
            assert_int_equal(measure_collective(&measure, &call, 1, &measured, &err), 0);
            if (n / 2 > 1)
                expect_near("ring without it", measured.seconds,
                            2 * (n / 2 - 1) * (latency + bytes / (n / 2) / bandwidth), simulated.text);
            measure_release(&measure);
            simulated_release(&simulated);
        }
}

/* The flows of a tensor group go through different NICs: one of them is slow, and the boundary waits for it. */
static void test_flows(void **state)
{
    (void)state;
    for (int nic = 0; nic < 2; nic++) {
        struct simulated simulated;
        const struct run *run = &simulated.run;
        double slowest = 0, fastest = INFINITY;

        run_text(&simulated, MODEL WIDE "batch: {micro_batches: 1}\nstrategy: {tensor: 2, pipeline: 2}\n"
                 "simulation: {slow_links: {node: 0, nic: %d, share: 0.25}}\n", "", 2, 2, 10.0, 2, nic);
        for (size_t i = 0; i < run->lowered.program.ops.count; i++)
            if (run->lowered.program.ops.items[i].what == WHAT_ACTIVATION) {
                double seconds = run->timeline.end[i] - run->timeline.start[i] - 5e-6;

                slowest = fmax(slowest, seconds);
                fastest = fmin(fastest, seconds);
            }
        expect_near("the slow flow", slowest / fastest, 4, simulated.text);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline),      cmocka_unit_test(test_replicas_wait), cmocka_unit_test(test_tensor_group),
        cmocka_unit_test(test_groups_wait),
        cmocka_unit_test(test_all_links_slow), cmocka_unit_test(test_all_gpus_slow), cmocka_unit_test(test_none),
        cmocka_unit_test(test_ring),          cmocka_unit_test(test_flows),
    };

    return cmocka_run_group_tests_name("slow_parts", tests, NULL, NULL);
}
