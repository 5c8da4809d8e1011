/* context_groups: what a context degree divides, how groups keep step, and what they send and hold. */
#include "context_run.h"
#include "overlapped.h"

/* Every GPU does its share of the products, keeps its share of the activations, and sends its share of a boundary. */
static void divides(void **state)
{
    (void)state;
    for (int context = 2; context <= 8; context *= 2) {
        struct place whole = {1, 1, 1, 8, 1, 3e11, 2e-6}, part = {context, 1, 1, 8, 1, 3e11, 2e-6};
        struct simulated a, b;

        run_context(&a, &whole, "ring", "ideal", "", 1);
        run_context(&b, &part, "ring", "ideal", "", 1);
        for (int kind = FORWARD; kind <= RECOMPUTE; kind++)
            expect_near("FLOPs", b.workload.stages[0].work[kind].flop, a.workload.stages[0].work[kind].flop / context,
                        b.text);
        expect_near("activations", b.workload.stages[0].activation, a.workload.stages[0].activation / context, b.text);
        expect_near("parameters", b.workload.stages[0].parameters, a.workload.stages[0].parameters, b.text);
        expect_near("model FLOPs", b.run.metrics.model_flop, a.run.metrics.model_flop, b.text);
        expect_near("hardware FLOPs", b.run.metrics.hardware_flop, a.run.metrics.hardware_flop, b.text);
        simulated_release(&a);
        simulated_release(&b);
    }
}

/* Degrees of one change nothing, however they exchange and wherever they stand. */
static void one_is_none(void **state)
{
    struct place p = {1, 4, 1, 8, 1, 3e11, 2e-6};
    struct simulated a, b;

    (void)state;
    run_context(&a, &p, "ring", "simgrid", "", 3);
    run_context(&b, &p, "all-gather", "simgrid", "", 3);
    assert_int_equal(a.run.lowered.program.ops.count, b.run.lowered.program.ops.count);
    assert_memory_equal(a.run.timeline.end, b.run.timeline.end, a.run.lowered.program.ops.count * sizeof(double));
    simulated_release(&a);
    simulated_release(&b);
}

/* Inside a node nothing contends, neither around a ring nor in the pairwise all-to-all; between nodes the links are
 * shared, and the engine that knows it is never earlier. */
static void engines_agree(void **state)
{
    static const struct place places[] = {
        {4, 2, 1, 8, 1, 1e9, 2e-6}, {2, 4, 8, 8, 1, 1e10, 0}, {8, 1, 4, 8, 1, 1e8, 1e-5}, {1, 8, 8, 8, 1, 1e9, 2e-6},
        {4, 4, 8, 4, 4, 1e10, 2e-6}, {2, 6, 4, 3, 4, 1e10, 2e-6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++)
        for (int gathers = 0; gathers < 2; gathers++) {
            const char *attention = gathers ? "all-gather" : "ring";
            struct simulated ideal, simgrid;

            run_context(&ideal, &places[i], attention, "ideal", "", 2);
            run_context(&simgrid, &places[i], attention, "simgrid", "", 2);
            if (places[i].nodes == 1)
                expect_near("iteration", simgrid.run.metrics.iteration_time, ideal.run.metrics.iteration_time,
                            ideal.text);
            assert_true(simgrid.run.metrics.iteration_time >= ideal.run.metrics.iteration_time * (1 - 1e-9));
            simulated_release(&ideal);
            simulated_release(&simgrid);
        }
}

/* What replicas of a group do at the same point of the same micro-batch they begin together, wherever their boundaries
 * come from: here groups of four stand on nodes of three, so that some boundaries stay in a node and others do not. */
static void keeps_step(void **state)
{
    struct simulated simulated;
    const struct program *program = &simulated.run.lowered.program;
    const struct timeline *timeline = &simulated.run.timeline;
    double starts[12][8][2] = {{{0}}};
    int differ = 0;

    (void)state;
    run_text(&simulated,
             "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 4096, vocabulary: 1000, positions: 0,\n"
             "        flash_attention: true, experts: 8, experts_per_token: 2}}\n"
             "cluster: {nodes: 8, gpus_per_node: 3, gpu: a100-80gb, inside: {bandwidth: 300 GB/s, latency: 1 us},\n"
             "          network: {bandwidth: 1 GB/s, latency: 5 us, nics: 3}}\n"
             "batch: {micro_batches: 4}\n"
             "strategy: {context: 2, data: 4, expert: 4, pipeline: 2, placement: [pipeline, context, data, tensor]}\n"
             "simulation: {collectives: messages, engine: ideal}\n");
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        int rank = program->lanes.items[op->lane].rank, replica = rank / 2;

        if (rank % 2 == 1 && op->what == WHAT_FORWARD && op->mb < 8)
            starts[replica][op->mb][0] = timeline->start[i];
        if (op->what == WHAT_ACTIVATION && op->mb < 8)
            starts[replica][op->mb][1] = timeline->end[i];
    }
    for (int replica = 0; replica < 8; replica++)
        for (int mb = 0; mb < 4; mb++) {
            expect_near("start", starts[replica][mb][0], starts[replica / 4 * 4][mb][0], simulated.text);
            differ += starts[replica][mb][1] != starts[replica / 4 * 4][mb][1];
        }
    assert_true(differ > 0);
    simulated_release(&simulated);
}

/* Of four replicas with two expert groups, 0 and 2 hold the same experts, and 1 and 3: their sums are between these,
 * all others around the four. */
static void sums_experts(void **state)
{
    struct place p = {1, 4, 2, 8, 1, 3e11, 2e-6};
    struct simulated simulated;
    const struct program *program = &simulated.run.lowered.program;
    double same = 0, all = 0, experts;

    (void)state;
    run_context(&simulated, &p, "ring", "ideal", "", 1);
    assert_false(simulated.run.lowered.alike.measured);
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;

        if (op->kind == OP_TRANSFER && op->what == WHAT_SYNC) {
            all += op->amount;
            same += transfer->src % 2 == transfer->dst % 2 ? op->amount : 0;
        }
    }
    experts = simulated.workload.stages[0].trained.of[PARAMETERS_APART];
    assert_true(experts == LAYERS * 4 * (2.0 * H * 4 * H + 4 * H + H));
    expect_near("experts' gradients", same, 4 * 2 * 0.5 * 2 * experts, simulated.text);
    expect_near("others' gradients", all - same, 4 * 2 * 0.75 * 2 * (simulated.workload.stages[0].parameters - experts),
                simulated.text);
    simulated_release(&simulated);
}

/* A forward and a backward that DualPipe overlaps hide each other's all-to-alls, as far as their kernels last. */
static void overlapped_all_to_alls(void **state)
{
    int shown = 0, hidden = 0;

    (void)state;
    for (double bandwidth = 1e8; bandwidth < 1e12; bandwidth *= 10) {
        struct simulated simulated;
        const struct program *program = &simulated.run.lowered.program;
        double all_to_all, total = 0;

        run_text(&simulated,
                 "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 4096, vocabulary: 1000,\n"
                 "        positions: 0, flash_attention: true, experts: 8, experts_per_token: 2}}\n"
                 "cluster: {nodes: 1, gpus_per_node: 8, gpu: a100-80gb,\n"
                 "          inside: {bandwidth: %.17g B/s, latency: 2 us}}\n"
                 "batch: {micro_batches: 8}\n"
                 "strategy: {schedule: dualpipe, pipeline: 2, data: 4, expert: 4, data_parallel: synchronous}\n"
                 "simulation: {engine: ideal}\n", bandwidth);
        all_to_all = 3 * (2e-6 + 4096.0 * 2 * 512 * 2 / 4 / bandwidth);
        for (size_t i = 0; i < program->ops.count; i++)
            if (program->lanes.items[program->ops.items[i].lane].rank == 0 &&
                program->ops.items[i].what <= WHAT_RECOMPUTE)
                total += op_traits(program, &program->ops.items[i])->compute.communication;
        expect_near("all-to-alls", total, shown_all_to_alls(&simulated, all_to_all, 0, &shown, &hidden),
                    simulated.text);
        simulated_release(&simulated);
    }
    assert_true(shown > 0 && hidden > 0);
}

/* Where groups are not spread alike over nodes no replica stands for all: of three groups of four on nodes of six the
 * one in the middle crosses. */
static void unlike_groups(void **state)
{
    static const struct place places[] = {{1, 12, 4, 6, 2, 3e11, 2e-6}, {4, 3, 1, 6, 2, 3e11, 2e-6},
                                          {1, 12, 2, 6, 2, 3e11, 2e-6}};

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++) {
        struct simulated simulated;

        run_context(&simulated, &places[i], "ring", "ideal", ", collectives: measured", 1);
        assert_true(simulated.run.lowered.alike.measured);
        assert_true(simulated.run.lowered.alike.folded == (i == 2));
        simulated_release(&simulated);
    }
}

/* One replica stands for all where transfers between stages take turns, too: in the same order as all would. */
static void turns(void **state)
{
    static const char *const folds[] = {"auto", "off"};
    double times[2];

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 6, hidden: 1024, heads: 8, sequence: 512, vocabulary: 1000}}\n"
                 "cluster: {nodes: 3, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 0 s},\n"
                 "          network: {bandwidth: 2 GB/s, latency: 3 us, nics: 4}}\n"
                 "batch: {micro_batches: 12, micro: 2}\ncosts: {host_launch: 0}\n"
                 "strategy: {schedule: dualpipe-v, pipeline: 3, context: 4, context_attention: all-gather,\n"
                 "           placement: [context, data, pipeline, tensor], duplex_p2p: false}\n"
                 "simulation: {engine: ideal, collectives: measured, fold: %s}\n", folds[k]);
        assert_true(simulated.run.lowered.alike.folded == (k == 0));
        times[k] = simulated.run.metrics.iteration_time;
        if (k)
            expect_near("iteration", times[0], times[1], simulated.text);
        simulated_release(&simulated);
    }
}

/* To what sums gradients and divides states, a context group's GPUs are replicas like others: they send as much, and
 * hold as much. */
static void replicas_like_others(void **state)
{
    static const char *const forms[] = {
        "zero: 0", "zero: 1", "zero: 3", "zero: 1, shard: 2", "zero: 2, shard: 4", "zero: 3, shard: 2",
        "compression: powersgd", "compression: top-k", "compression: {method: quantized, bits: 1}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct simulated runs[2];

        for (int k = 0; k < 2; k++)
            run_text(&runs[k],
                     "model: {transformer: {layers: 2, hidden: 512, heads: 8, sequence: 4096, vocabulary: 1000,\n"
                     "        positions: 0, flash_attention: true}}\n"
                     "cluster: {nodes: 2, gpus_per_node: 4, gpu: a100-80gb,\n"
                     "          inside: {bandwidth: 300 GB/s, latency: 0 s},\n"
                     "          network: {bandwidth: 25 GB/s, latency: 5 us, nics: 4}}\n"
                     "batch: {micro_batches: 2}\nstrategy: {context: %d, data: %d, %s}\n"
                     "simulation: {engine: ideal}\n", k ? 2 : 1, k ? 4 : 8, forms[i]);
        for (int payload = PAYLOAD_WEIGHTS; payload < PAYLOAD_COUNT; payload++)
            if (payload != PAYLOAD_ACTIVATION_GRADIENTS)
                expect_near(payload_names[payload], runs[1].run.metrics.ranks[0].sent[payload],
                            runs[0].run.metrics.ranks[0].sent[payload], runs[1].text);
        assert_true(runs[1].run.metrics.ranks[0].sent[PAYLOAD_WEIGHT_GRADIENTS] > 0);
        for (int kind = 0; kind <= MEMORY_OPTIMIZER; kind++)
            expect_near(memory_kind_names[kind], runs[1].run.metrics.memory.bytes[kind],
                        runs[0].run.metrics.memory.bytes[kind], runs[1].text);
        simulated_release(&runs[0]);
        simulated_release(&runs[1]);
    }
}

/* Keys and values are activations, on the way back too, and their gradients are as many. */
static void payloads(void **state)
{
    (void)state;
    for (int gathers = 0; gathers < 2; gathers++) {
        struct place p = {4, 1, 1, 8, 1, 3e11, 2e-6};
        struct simulated simulated;
        double pass = LAYERS * 3 * (2.0 * H * SEQUENCE / 4 * 2);

        run_context(&simulated, &p, gathers ? "all-gather" : "ring", "ideal", "", 1);
        expect_near("activations", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATIONS], 2 * pass, simulated.text);
        expect_near("gradients", simulated.run.metrics.ranks[0].sent[PAYLOAD_ACTIVATION_GRADIENTS], pass,
                    simulated.text);
        simulated_release(&simulated);
    }
}

/* Others' keys and values, while they are attended to: of the whole sample where they are gathered, else two blocks. */
static void workspaces(void **state)
{
    (void)state;
    for (int context = 1; context <= 8; context *= 2)
        for (int ring = 0; ring < 2; ring++) {
            struct place p = {context, 1, 1, 8, 1, 3e11, 2e-6};
            struct shard shard = {.micro = 1, .tensor = 1, .dtype = DTYPE_BF16, .context = context, .ring = ring};
            double keys_values = 2.0 * H * SEQUENCE * 2, others = ring ? 2 * keys_values / context : keys_values;
            const struct layer *layers;
            struct simulated simulated;
            struct error err = {0};
            size_t count;

            run_context(&simulated, &p, ring ? "ring" : "all-gather", "ideal", "", 1);
            assert_int_equal(model_layers(&simulated.scenario.arena, &simulated.scenario.model, &shard,
                                          (struct loc){0}, &layers, &count, &err), 0);
            expect_near("forward", layers[1].workspace.forward, context > 1 ? others : 0, simulated.text);
            simulated_release(&simulated);
        }
}

/* Where a three-entry placement does not say, context varies next after tensor. */
static void placement(void **state)
{
    static const char *const written[] = {"[tensor, data, pipeline]", "[tensor, context, data, pipeline]",
                                          "[pipeline, tensor, data]", "[pipeline, tensor, context, data]"};
    struct simulated simulated[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        simulated_load(&simulated[i], "model: {preset: llama3-8b}\ncluster: {platform: dgx-a100, nodes: 4}\n"
                       "batch: {micro_batches: 1}\n"
                       "strategy: {tensor: 2, context: 4, data: 2, pipeline: 2, placement: %s}\n", written[i]);
        assert_int_equal(scenario_gpus(&simulated[i].scenario), 32);
    }
    for (int place = 0; place < 32; place++) {
        int t = place % 2, p = place / 2 % 2, replica = place / 4;
        int c = replica % 4, d = replica / 4;

        assert_int_equal(scenario_gpu(&simulated[0].scenario, t, replica, p), t + 2 * c + 8 * d + 16 * p);
        assert_int_equal(scenario_gpu(&simulated[2].scenario, t, replica, p), p + 2 * t + 4 * c + 16 * d);
        for (int i = 0; i < 4; i += 2)
            assert_int_equal(scenario_gpu(&simulated[i].scenario, t, replica, p),
                             scenario_gpu(&simulated[i + 1].scenario, t, replica, p));
    }
    for (int i = 0; i < 4; i++)
        simulated_release(&simulated[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divides), cmocka_unit_test(one_is_none), cmocka_unit_test(engines_agree),
        cmocka_unit_test(keeps_step), cmocka_unit_test(sums_experts), cmocka_unit_test(overlapped_all_to_alls),
        cmocka_unit_test(unlike_groups), cmocka_unit_test(turns), cmocka_unit_test(replicas_like_others),
        cmocka_unit_test(payloads), cmocka_unit_test(workspaces), cmocka_unit_test(placement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
