/* ZeRO, sequence parallelism and tied embeddings: bytes, memory and time by the papers' formulas. */
#include "simulated.h"

enum { LAYERS = 6, HIDDEN = 128, SEQUENCE = 64, MICRO = 2, VOCABULARY = 1024 };

struct setup {
    int zero, tensor, pipeline, data, micro_batches, sequence_parallel, tied;
    const char *collectives, *engine;
};

static void run_setup(struct simulated *simulated, const struct setup *setup)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: %d, tied: %s}}\n"
             "cluster: {nodes: 1, gpus_per_node: 32, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us}}\n"
             "batch: {micro: %d, micro_batches: %d}\nmemory: {recompute: none, enforce: false}\n"
             "strategy: {tensor: %d, pipeline: %d, data: %d, zero: %d, sequence_parallel: %s, scatter_gather: false}\n"
             "simulation: {engine: %s, collectives: %s}\n",
             LAYERS, HIDDEN, SEQUENCE, VOCABULARY, setup->tied ? "true" : "false", MICRO, setup->micro_batches,
             setup->tensor, setup->pipeline, setup->data, setup->zero, setup->sequence_parallel ? "true" : "false",
             setup->engine ? setup->engine : "simgrid", setup->collectives ? setup->collectives : "auto");
}

/* Rajbhandari et al. 2020, section 7: baseline and stages 1 and 2 move 2 psi elements, stage 3 moves 3 psi, times
 * (n - 1) / n; with several micro-batches stage 2 scatters and stage 3 also gathers for each of them. */
static double zero_bytes(const struct setup *setup, double parameters)
{
    double part = (setup->data - 1.0) / setup->data * 2 * parameters;      /* half precision */

    switch (setup->zero) {
    case 2:
        return part * (setup->micro_batches + 1);
    case 3:
        return part * 3 * setup->micro_batches;
    default:
        return part * 2;
    }
}

static void test_traffic(void **state)
{
    static const char *const modes[] = {"messages", "measured"};

    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        for (int data = 1; data <= 8; data++)
            for (int k = 0; k < 4; k++) {
                struct setup setup = {zero, 1, 1, data, 1 + 2 * (k / 2), 0, 1, modes[k % 2], NULL};
                struct simulated simulated;

                run_setup(&simulated, &setup);
                expect_near("traffic", simulated.run.metrics.communication_bytes_per_gpu,
                            zero_bytes(&setup, simulated.workload.stages[0].parameters), simulated.text);
                simulated_release(&simulated);
            }
}

static double model_states(const struct memory *memory)
{
    return memory->bytes[MEMORY_PARAMETERS] + memory->bytes[MEMORY_GRADIENTS] + memory->bytes[MEMORY_OPTIMIZER];
}

/* Rajbhandari et al. 2020, section 5, K = 12: 4 psi + 12 psi / n, 2 psi + 14 psi / n, 16 psi / n and what is
 * gathered. */
static void test_memory(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        for (int data = 1; data <= 8; data *= 2) {
            struct setup setup = {zero, 1, 1, data, 1, 0, 1, NULL, NULL};
            struct memory memory;
            struct simulated simulated;
            struct whole_units whole;
            double psi, expected;

            run_setup(&simulated, &setup);
            whole = simulated.workload.stages[0].gathered;
            psi = simulated.workload.stages[0].parameters;
            memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
            expected = zero == 0 ? 16 * psi : zero == 1 ? 4 * psi + 12 * psi / data
                     : zero == 2 ? 2 * psi + 14 * psi / data : 16 * psi / data;
            expect_near("states", model_states(&memory), expected, simulated.text);
            expect_near("gathered", memory.bytes[MEMORY_GATHERED],
                        zero == 3 && data > 1 ? whole.root + whole.blocks : 0, simulated.text);
            simulated_release(&simulated);
        }
}

/* FSDP holds two blocks and all outside of blocks whole: their weights and as many gradients. A rank at both ends of a
 * V also holds the embedding and the output layer whole. A model without named blocks has two neighbouring layers
 * whole. */
static void test_whole(void **state)
{
    const double h = 64, outside = 1000 * h + 32 * h + 2 * h, block = 12 * h * h + 13 * h;
    struct simulated simulated;
    struct memory memory;

    (void)state;
    run_text(&simulated, "model: {transformer: {layers: 3, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000}}\n"
             "cluster: {nodes: 1, gpus_per_node: 2, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
             "batch: {micro: 1, micro_batches: 1}\nstrategy: {zero: 3}\nsimulation: {engine: ideal}\n");
    memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
    expect_near("weights", memory.bytes[MEMORY_GATHERED], 2 * (outside + 2 * block), simulated.text);
    expect_near("gradients", memory.bytes[MEMORY_BUFFERS], 2 * (outside + 2 * block), simulated.text);
    simulated_release(&simulated);

    run_text(&simulated, "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, "
             "tied: false}}\ncluster: {platform: dgx-a100}\nbatch: {micro: 1, micro_batches: 4}\n"
             "strategy: {zero: 3, pipeline: 2, data: 2, schedule: zb-v}\nsimulation: {engine: ideal}\n");
    memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
    expect_near("weights", memory.bytes[MEMORY_GATHERED], 2 * (outside + 1000 * h + 2 * block), simulated.text);
    simulated_release(&simulated);

    run_text(&simulated, "model: {layers: [{forward: 1 ms, parameters: 5 k}, {forward: 1 ms, parameters: 2 k}, "
             "{forward: 1 ms, parameters: 4 k}]}\ncluster: {platform: dgx-a100, nodes: 1}\n"
             "batch: {micro_batches: 1}\nstrategy: {zero: 3}\nsimulation: {engine: ideal}\n");
    memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
    expect_near("weights", memory.bytes[MEMORY_GATHERED], 2 * 7e3, simulated.text);
    simulated_release(&simulated);
}

/* What the paper prints for 7.5 billion parameters on 64 GPUs: 120, 31.4, 16.6 and 1.9 GB (figure 1). */
static void test_published_memory(void **state)
{
    static const double published[] = {120e9, 31.4e9, 16.6e9, 1.9e9};

    (void)state;
    for (int zero = 0; zero <= 3; zero++) {
        struct simulated simulated;
        struct memory memory;
        char *text;

        assert_true(asprintf(&text, "model: {stages: {forward: 1 s, parameters: 7.5 G}}\ncluster: ideal\n"
                             "batch: {micro_batches: 1}\nstrategy: {data: 64, zero: %d}\n", zero) > 0);
        simulated_load(&simulated, "%s", text);
        free(text);
        const struct stage *stages = simulated_workload(&simulated)->stages;
        memory = memory_states(&simulated.scenario, stages, 0);
        assert_true(fabs(model_states(&memory) - published[zero]) < 0.06e9);
        simulated_release(&simulated);
    }
}

/* Every second of a rank is in the breakdown, whichever way weights are gathered. Compute is the stages' seconds. The
 * engines agree where nothing contends. A stage of ZeRO never changes the kernels. */
static void test_seconds(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        for (int k = 0; k < 8; k++) {
            struct setup setup = {zero, 1 + k % 2, 1 + k / 2 % 2, 2 + k / 4, 4, 0, 1, "measured", NULL};
            struct simulated simulated, ideal;

            run_setup(&simulated, &setup);
            for (int r = 0; r < simulated.run.metrics.nranks; r++) {
                const struct rank_metrics *rank = &simulated.run.metrics.ranks[r];
                const struct work_times *work = ordinary_times(&simulated.workload)[r % setup.pipeline].work;
                double sum = rank->seconds[ACCOUNT_BUBBLE] + rank->exposed_communication;

                for (int kind = 0; kind <= ACCOUNT_PACK; kind++)
                    sum += rank->seconds[kind];
                expect_near("sum", sum, simulated.run.metrics.iteration_time, simulated.text);
                expect_near("forward", rank->seconds[ACCOUNT_FORWARD], 4 * work[FORWARD].seconds,
                            simulated.text);
                expect_near("backward", rank->seconds[ACCOUNT_BACKWARD], 4 * work[BACKWARD].seconds,
                            simulated.text);
            }
            setup.engine = "ideal";
            run_setup(&ideal, &setup);
            assert_true(simulated.run.metrics.iteration_time >= ideal.run.metrics.iteration_time * (1 - 1e-9));
            simulated_release(&ideal);
            simulated_release(&simulated);
        }
}

/* One micro-batch under ZeRO 3 where communication is everything: the gathers of the forward, then the gathers and
 * scatters of the backward, one after another on one stream. */
static void test_stream(void **state)
{
    struct simulated simulated;
    const struct stage *stage;
    double layer, seconds = 0;

    (void)state;
    run_text(&simulated, "model: {layers: [{name: a, forward: 1 ns, parameters: 1 G}, "
             "{name: b, forward: 1 ns, parameters: 1 G}, {name: c, forward: 1 ns, parameters: 1 G}]}\n"
             "cluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 100 GB/s, latency: 0 s}}\n"
             "batch: {micro_batches: 1}\n"
             "strategy: {data: 4, zero: 3}\nmemory: {precision: fp32, enforce: false}\n");
    stage = &simulated.workload.stages[0];
    assert_int_equal(stage->nslices, 3);
    layer = 3.0 / 4 * 4e9 / 100e9;       /* a gather or a scatter of a layer */
    seconds = 3 * layer + 6 * layer;
    assert_true(fabs(simulated.run.metrics.iteration_time - seconds) < 1e-7 * seconds);
    simulated_release(&simulated);
}

/* In turn: what is computed and what is exchanged add up. The same whether a plan of layers was made or not. */
static void test_in_turn(void **state)
{
    static const char *const recompute[] = {"none", "full", "optimal"};

    (void)state;
    for (size_t i = 0; i < COUNT(recompute); i++)
        for (int micro_batches = 1; micro_batches <= 3; micro_batches += 2) {
            struct simulated simulated;
            double layer = 3 * (1e-6 + 1e9 / 100e9), seconds;      /* a gather or a scatter of a layer */

            run_text(&simulated, "model: {layers: [{name: a, forward: 10 ms, parameters: 1 G, activation: 1 GB}, "
                     "{name: b, forward: 20 ms, parameters: 1 G, activation: 1 GB}, "
                     "{name: c, forward: 40 ms, parameters: 1 G, activation: 1 GB}]}\n"
                     "cluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 100 GB/s, latency: 1 us}}\n"
                     "batch: {micro_batches: %d}\nstrategy: {data: 4, zero: 3, data_parallel: synchronous}\n"
                     "memory: {precision: fp32, recompute: %s, limit: 1 TB}\n", micro_batches, recompute[i]);
            seconds = micro_batches * (9 * layer + (i == 1 ? 4 : 3) * 70e-3);
            expect_near("in turn", simulated.run.metrics.iteration_time, seconds, simulated.text);
            simulated_release(&simulated);
        }
}

/* Korthikanti et al. 2022, section 4.2.2: a reduce-scatter and an all-gather move as much as an all-reduce; the
 * backward gathers the inputs of the column-parallel products once more (two a block, one for the output layer).
 * Boundaries are shares. */
static void test_sequence_parallel(void **state)
{
    (void)state;
    for (int tensor = 2; tensor <= 8; tensor *= 2)
        for (int pipeline = 1; pipeline <= 2; pipeline++) {
            struct setup setup = {0, tensor, pipeline, 1, 3, 0, 0, NULL, NULL};
            double vector = 2.0 * MICRO * SEQUENCE * HIDDEN, boundaries = 3 * 2.0 * (pipeline - 1) * vector;
            double plain, further;
            struct simulated whole, shared;

            run_setup(&whole, &setup);
            setup.sequence_parallel = 1;
            run_setup(&shared, &setup);
            plain = whole.run.metrics.communication_bytes_per_gpu * pipeline;
            further = 3 * (2.0 * LAYERS + 1) * (tensor - 1) / tensor * vector;
            expect_near("traffic", shared.run.metrics.communication_bytes_per_gpu * pipeline,
                        plain - boundaries + boundaries / tensor + further, shared.text);
            assert_true(shared.run.metrics.memory.bytes[MEMORY_ACTIVATIONS] <
                        whole.run.metrics.memory.bytes[MEMORY_ACTIVATIONS]);
            simulated_release(&whole);
            simulated_release(&shared);
        }
}

/* The two copies of a tied embedding add an all-reduce of their gradients between the first and the last stage. */
static void test_tied(void **state)
{
    (void)state;
    for (int tensor = 1; tensor <= 4; tensor *= 2)
        for (int data = 1; data <= 2; data++) {
            struct setup setup = {0, tensor, 3, data, 2, 0, 1, NULL, NULL};
            double bytes = 2.0 * VOCABULARY * HIDDEN / tensor, least = 2 * (2e-6 + bytes / 2 / 100e9);
            struct simulated tied, free_standing;

            run_setup(&tied, &setup);
            setup.tied = 0;
            run_setup(&free_standing, &setup);
            expect_near("traffic", tied.run.metrics.communication_bytes_per_gpu,
                        free_standing.run.metrics.communication_bytes_per_gpu + 2 * bytes / 3, tied.text);
            assert_true(tied.run.metrics.iteration_time > free_standing.run.metrics.iteration_time);
            assert_true(tied.run.metrics.iteration_time < free_standing.run.metrics.iteration_time + 2 * least);
            /* the last stage waits for the first to compute: that is bubble */
            assert_true(tied.run.metrics.exposed_communication <
                        free_standing.run.metrics.exposed_communication + 2 * least);
            simulated_release(&tied);
            simulated_release(&free_standing);
        }
}

/* A parameter server (replica 0) takes n - 1 gradients and sends n - 1 copies of the weights through one port, one
 * after another; the others send one gradient each. The time grows with the number of workers. */
static void test_parameter_server(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int data = 2; data <= 8; data++) {
            double bytes = 4e6, each = 2e-6 + bytes / 100e9;
            struct simulated simulated;

            run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 2 ms, parameters: 1 M}}\n"
                     "cluster: {nodes: 1, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, latency: 2 us}}\n"
                     "batch: {micro_batches: 2}\nmemory: {precision: fp32}\nsimulation: {collectives: %s}\n"
                     "strategy: {data: %d, data_parallel: parameter-server}\n", k ? "measured" : "messages", data);
            expect_near("iteration", simulated.run.metrics.iteration_time, 6e-3 + 2 * (data - 1) * each,
                        simulated.text);
            expect_near("traffic", simulated.run.metrics.communication_bytes_per_gpu, 2 * (data - 1) * bytes / data,
                        simulated.text);
            assert_true(simulated.run.metrics.peak_rank == 0);
            simulated_release(&simulated);
        }
}

/* ZeRO 2 scatters every micro-batch's gradients as they are ready, whichever of a rank's chunks they are of: where each
 * scatter takes less than a backward all are hidden but the last, as with ZeRO 1, which scatters once. */
static void test_scatter_order(void **state)
{
    static const char *const schedules[] = {"1f1b", "interleaved", "looped-bfs", "zb-v", "v-half"};

    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        double times[2];

        for (int zero = 1; zero <= 2; zero++) {
            struct simulated simulated;

            run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 G, boundary: 1 kB}}\n"
                     "cluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 1 GB/s, latency: 0 s}}\n"
                     "batch: {micro_batches: 8}\nmemory: {precision: mixed-bf16, gradients: half}\n"
                     "strategy: {pipeline: 2, data: 2, schedule: %s, zero: %d%s}\nsimulation: {engine: ideal}\n",
                     schedules[i], zero, i == 1 || i == 2 ? ", chunks: 2" : "");
            times[zero - 1] = simulated.run.metrics.iteration_time;
            if (zero == 2)
                expect_near("iteration", times[1], times[0], simulated.text);
            simulated_release(&simulated);
        }
    }
}

/* The server alone updates, so no replica stands for the others: the average rank updates 1/n of the time. */
static void test_server_updates(void **state)
{
    struct simulated simulated;

    (void)state;
    run_text(&simulated, "model: {transformer: {layers: 2, hidden: 256, heads: 8, sequence: 64, vocabulary: 1000}}\n"
             "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us}}\n"
             "batch: {micro_batches: 2}\nsimulation: {collectives: measured}\n"
             "strategy: {data: 4, data_parallel: parameter-server}\n");
    expect_near("update", simulated.run.metrics.seconds[ACCOUNT_UPDATE],
                ordinary_times(&simulated.workload)[0].update.seconds / 4,
                simulated.text);
    simulated_release(&simulated);
}

/* FSDP's notes: activation checkpointing adds no communication, as a layer is recomputed right before its backward. The
 * seconds are the stage's all the same. */
static void test_recomputation(void **state)
{
    static const char *const policies[] = {"none", "full"};
    double bytes[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 6, hidden: 128, heads: 8, sequence: 64, vocabulary: 1024}}\n"
                 "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us}}\n"
                 "batch: {micro: 2, micro_batches: 3}\nmemory: {recompute: %s}\nstrategy: {data: 4, zero: 3}\n",
                 policies[k]);
        bytes[k] = simulated.run.metrics.communication_bytes_per_gpu;
        expect_near("recompute", simulated.run.metrics.seconds[ACCOUNT_RECOMPUTE],
                    k * 3 * ordinary_times(&simulated.workload)[0].work[RECOMPUTE].seconds, simulated.text);
        expect_near("backward", simulated.run.metrics.seconds[ACCOUNT_BACKWARD],
                    3 * ordinary_times(&simulated.workload)[0].work[BACKWARD].seconds, simulated.text);
        simulated_release(&simulated);
    }
    assert_true(bytes[0] == bytes[1]);
}

/* Without a pipeline nobody is a bubble: whatever a rank waits for is communication. */
static void test_no_bubble(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero++) {
        struct simulated simulated;

        run_text(&simulated, "model: {preset: gpt2-124m}\ncluster: {platform: pcie-10gbe, nodes: 1}\n"
                 "batch: {global: 16}\nstrategy: {zero: %d}\n", zero);
        assert_true(simulated.run.metrics.seconds[ACCOUNT_BUBBLE] < 1e-9 &&
                    simulated.run.metrics.exposed_communication > 0);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traffic),      cmocka_unit_test(test_memory),
        cmocka_unit_test(test_published_memory), cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_stream),       cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_sequence_parallel),
        cmocka_unit_test(test_tied),         cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_parameter_server), cmocka_unit_test(test_server_updates),
        cmocka_unit_test(test_scatter_order),
        cmocka_unit_test(test_no_bubble),      cmocka_unit_test(test_whole),
    };

    return cmocka_run_group_tests_name("zero", tests, NULL, NULL);
}
