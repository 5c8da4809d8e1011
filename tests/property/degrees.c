/* degrees: pipelines whose ranks differ in their tensor and data degrees (strategy.stages): closed forms of what they send. */
#include "unequal_ranks.h"

#include <limits.h>

#include "engine/program_text.h"

enum { HIDDEN = 768, SEQUENCE = 768, MICRO_BATCHES = 4 };

/* Bytes that each GPU of a node sends, or gets, on its NIC. */
static void expect_nics(const struct simulated *simulated, bool up, int node, int gpus, double bytes)
{
    const struct cluster *cluster = &simulated->scenario.cluster;

    for (int i = 0; i < gpus; i++) {
        int gpu = cluster_node_gpu(cluster, node, i), nic = cluster_nic_of(cluster, gpu);

        expect_near(up ? "sent" : "received",
                    simulated->run.links.loads[up ? LINK_NIC_UP : LINK_NIC_DOWN][nic].payload, bytes, simulated->text);
    }
}

/* Counts the transfers of boundaries, and finds the largest. */
static int count_transfers(const struct program *program, double *largest)
{
    int count = 0;

    *largest = 0;
    for (size_t i = 0; i < program->ops.count; i++)
        if (program->ops.items[i].kind == OP_TRANSFER) {
            *largest = fmax(*largest, program->ops.items[i].amount);
            count++;
        }
    return count;
}

/* Two ranks on two nodes, each with `data` replicas on a node: of the whole boundary A of a micro-batch a GPU of t1 x d1 sends
 * A / (t1 d1), one of t2 x d2 gets A / (t2 d2), and a flow carries A / lcm where one divides the other. */
static void pair_of(int t1, int d1, int t2, int d2, const char *sequence)
{
    struct simulated simulated;
    struct error err = {0};
    char stages[256];
    int micro = 12 / d1, first = t1 * d1, second = t2 * d2;
    double whole = 2.0 * micro * d1 * SEQUENCE * HIDDEN, largest;
    int flows = (t1 + t2 - t1 * t2 / lcm(t1, t2, INT_MAX)) * (d1 + d2 - d1 * d2 / lcm(d1, d2, INT_MAX));

    snprintf(stages, sizeof stages, "{layers: 2, on: a, tensor: %d, data: %d}, {layers: 2, on: b, tensor: %d, data: %d}", t1,
             d1, t2, d2);
    simulated_load(&simulated,
             "model: {transformer: {layers: 4, hidden: 768, heads: 24, sequence: 768, vocabulary: 50304, tied: false}}\n"
             "batch: {micro: %d, micro_batches: 4}\nsimulation: {engine: fast, collectives: messages, fold: off}\n"
             "strategy: {stages: [%s], %s}\n"
             "cluster: {network: {latency: 2 us}, parts: [{name: a, platform: dgx-a100, nodes: 1, communication: none}, "
             "{name: b, platform: dgx-a100, nodes: 1, communication: none}]}\n", micro, stages, sequence);
    if (simulate(simulated_workload(&simulated), (struct simulate_options){.engine = ENGINE_FAST, .links = true},
                 &simulated.run, &err))
        fail_at(simulated.text, &err);
    for (int i = 0; i < 2; i++) {
        expect_nics(&simulated, i == 0, 0, first, MICRO_BATCHES * whole / first);
        expect_nics(&simulated, i != 0, 1, second, MICRO_BATCHES * whole / second);
    }
    if ((t1 != t2 || d1 != d2) && d1 == 1 && d2 == 1) {          /* replicas exchange sums too */
        assert_int_equal(count_transfers(&simulated.run.lowered.program, &largest), 2 * MICRO_BATCHES * flows);
        assert_true(largest <= whole / (t1 > t2 ? t1 : t2) * (1 + 1e-12));
        if (t1 % t2 == 0 || t2 % t1 == 0)
            expect_near("flow", largest, whole / (t1 > t2 ? t1 : t2), simulated.text);
    }
    simulated_release(&simulated);
}

static void boundaries_have_their_closed_form(void **state)
{
    static const int tensors[] = {1, 2, 4, 8};

    (void)state;
    for (size_t i = 0; i < COUNT(tensors); i++)
        for (size_t k = 0; k < COUNT(tensors); k++) {
            pair_of(tensors[i], 1, tensors[k], 1, "sequence_parallel: true");
            if (tensors[i] != tensors[k])
                pair_of(tensors[i], 1, tensors[k], 1, "scatter_gather: false");
        }
    pair_of(3, 1, 2, 1, "sequence_parallel: true");
    pair_of(4, 1, 6, 1, "sequence_parallel: true");
    for (int d1 = 1; d1 <= 4; d1++)
        for (int d2 = 1; d2 <= 4; d2++)
            pair_of(1, d1, 2, d2, "sequence_parallel: true");
    pair_of(2, 3, 1, 2, "sequence_parallel: true");
    pair_of(4, 2, 8, 1, "sequence_parallel: true");
}

/* Bytes that each GPU of a rank sends in a ring: 2 (d - 1) / d of its gradients; under ZeRO 1 half of that, and (d - 1)
 * / d of its weights. */
static void gradients_are_summed_by_rank(void **state)
{
    static const struct rank_degrees ranks[][2] = {{{4, 2, 0}, {8, 1, 0}}, {{2, 4, 0}, {4, 2, 0}}, {{1, 3, 0}, {4, 2, 0}},
                                                   {{2, 1, 0}, {1, 6, 0}}};
    static const char *const zero[] = {"zero: 0", "zero: 1"};

    (void)state;
    for (size_t i = 0; i < COUNT(ranks) * COUNT(zero); i++) {
        const struct rank_degrees *own = ranks[i / 2];
        struct simulated simulated;
        char stages[256];

        snprintf(stages, sizeof stages, "{tensor: %d, data: %d}, {tensor: %d, data: %d}", own[0].tensor, own[0].data,
                 own[1].tensor, own[1].data);
        run_text(&simulated, shape, "false", 6, "fast", stages, zero[i % 2], 2);
        for (int p = 0; p < 2; p++) {
            const struct stage *stage = &simulated.workload.stages[p];
            double each = scenario_parameter_bytes(&simulated.scenario).sent, d = own[p].data;

            assert_int_equal(scenario_tensor(&simulated.scenario, p), own[p].tensor);
            for (int r = 0; r < own[p].data; r++)
                expect_near("gradients", simulated.run.metrics.ranks[2 * r + p].sent[PAYLOAD_WEIGHT_GRADIENTS],
                            (i % 2 ? 1 : 2) * (d - 1) / d * stage->parameters * each, simulated.text);
            for (int r = own[p].data; r < scenario_replicas(&simulated.scenario); r++)
                assert_true(simulated.run.metrics.ranks[2 * r + p].sent[PAYLOAD_WEIGHT_GRADIENTS] == 0);
        }
        simulated_release(&simulated);
    }
}

/* The two copies of tied weights are summed in lcm(t1, t2) pieces: each GPU sends its own share of them once. */
static void tied_gradients_are_summed_in_pieces(void **state)
{
    static const struct rank_degrees ranks[][2] = {{{2, 1, 0}, {4, 1, 0}}, {{8, 1, 0}, {1, 1, 0}}, {{2, 1, 0}, {3, 1, 0}},
                                                   {{4, 1, 0}, {6, 1, 0}}};

    (void)state;
    for (size_t i = 0; i < COUNT(ranks); i++) {
        struct simulated tied, apart;
        char stages[256];
        double copy = 50304.0 * HIDDEN;

        snprintf(stages, sizeof stages, "{tensor: %d, data: 1}, {tensor: %d, data: 1}", ranks[i][0].tensor,
                 ranks[i][1].tensor);
        run_text(&tied, shape, "true", 1, "fast", stages, "zero: 0", 2);
        run_text(&apart, shape, "false", 1, "fast", stages, "zero: 0", 2);
        for (int p = 0; p < 2; p++) {
            double each = scenario_parameter_bytes(&tied.scenario).tied, t = ranks[i][p].tensor;
            double sent = tied.run.metrics.ranks[p].sent[PAYLOAD_WEIGHT_GRADIENTS] -
                          apart.run.metrics.ranks[p].sent[PAYLOAD_WEIGHT_GRADIENTS];

            if (fabs(sent / (copy * each / t) - 1) > 0.01)       /* a vocabulary is padded for its degree */
                fail_msg("%g B instead of %g: %s", sent, copy * each / t, tied.text);
        }
        simulated_release(&tied);
        simulated_release(&apart);
    }
}

/* Degrees that the file gives for each rank, all equal, are the same as degrees of the strategy. */
static void equal_degrees_change_nothing(void **state)
{
    static const struct { const char *plain, *stages; } same[] = {
        {"tensor: 2, data: 4, stages: [{layers: 3}, {layers: 1}]",
         "stages: [{layers: 3, tensor: 2, data: 4}, {layers: 1, tensor: 2, data: 4}]"},
        {"tensor: 2, data: 2, pipeline: 4, zero: 1", "data: 2, zero: 1, stages: [{tensor: 2}, {tensor: 2}, {tensor: 2}, {tensor: 2}]"},
        {"tensor: 4, data: 2, pipeline: 2, chunks: 2, schedule: interleaved",
         "tensor: 4, chunks: 2, schedule: interleaved, stages: [{data: 2}, {data: 2}]"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++) {
        char *texts[2] = {NULL};

        for (int k = 0; k < 2; k++) {
            struct simulated simulated;
            size_t size;
            FILE *out = open_memstream(&texts[k], &size);

            run_text(&simulated, "model: {transformer: {layers: 4, hidden: 768, heads: 24, sequence: 768, vocabulary: 50304}}\n"
                     "batch: {micro: 2, micro_batches: 4}\nsimulation: {engine: fast}\nstrategy: {%s}\n"
                     "cluster: {platform: dgx-a100, nodes: 2}\n", k ? same[i].stages : same[i].plain);
            assert_null(simulated.scenario.views);
            program_print(&simulated.run.lowered.program, out);
            for (size_t m = 0; metric_at(m); m++)
                fprintf(out, "%s %.17g\n", metric_at(m)->name, metric_value(&simulated.run.metrics, metric_at(m)));
            fclose(out);
            simulated_release(&simulated);
        }
        assert_string_equal(texts[0], texts[1]);
        free(texts[0]);
        free(texts[1]);
    }
}

/* What is held is what a scenario of that rank's degrees alone would hold; work of a GPU too. */
static void ranks_are_those_of_their_own_degrees(void **state)
{
    static const char *const plain[] = {"tensor: 4, data: 2, pipeline: 2", "tensor: 8, data: 1, pipeline: 2"};
    struct simulated both, own;

    (void)state;
    run_text(&both, shape, "false", 6, "fast", "{layers: 1, tensor: 4, data: 2}, {layers: 3, tensor: 8, data: 1}", "zero: 1", 2);
    for (int p = 0; p < 2; p++) {
        char stages[] = "{layers: 1}, {layers: 3}", rest[128];
        const struct stage *stage = &both.workload.stages[p], *like;
        const struct stage_times *times = &both.workload.classes[0].times[p];

        snprintf(rest, sizeof rest, "%s, zero: 1", plain[p]);
        run_text(&own, shape, "false", p ? 12 : 6, "fast", stages, rest, 2);
        like = &own.workload.stages[p];
        expect_near("parameters", stage->parameters, like->parameters, both.text);
        expect_near("activation", stage->activation, like->activation, both.text);
        expect_near("forward", times->work[FORWARD].seconds, own.workload.classes[0].times[p].work[FORWARD].seconds, both.text);
        expect_near("update", times->update.seconds, own.workload.classes[0].times[p].update.seconds, both.text);
        expect_near("optimizer", both.run.metrics.ranks[p].memory.bytes[MEMORY_OPTIMIZER],
                    own.run.metrics.ranks[p].memory.bytes[MEMORY_OPTIMIZER], both.text);
        simulated_release(&own);
    }
    simulated_release(&both);
}

/* A resolved scenario is the same scenario. */
static void a_dump_reads_back(void **state)
{
    struct simulated simulated;
    struct arena arena = {0}, other = {0};
    struct scenario again = {0};
    struct error err = {0};
    char *first;

    (void)state;
    simulated_load(&simulated, shape, "false", 6, "fast", "{layers: 1, data: 2}, {layers: 3, tensor: 8, data: 1}", "tensor: 4", 2);
    struct node *dump = scenario_dump(&arena, &simulated.scenario);

    first = strdup(node_flow(&arena, dump));
    assert_int_equal(scenario_read(&arena, dump, NULL, 0, "test", &again, &err), 0);
    assert_string_equal(first, node_flow(&other, scenario_dump(&other, &again)));
    assert_int_equal(scenario_gpus(&again), 16);
    assert_int_equal(scenario_tensor(&again, 0), 4);
    free(first);
    arena_release(&arena);
    arena_release(&other);
    scenario_release(&again);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boundaries_have_their_closed_form), cmocka_unit_test(gradients_are_summed_by_rank),
        cmocka_unit_test(tied_gradients_are_summed_in_pieces), cmocka_unit_test(equal_degrees_change_nothing),
        cmocka_unit_test(ranks_are_those_of_their_own_degrees), cmocka_unit_test(a_dump_reads_back),
    };

    return cmocka_run_group_tests_name("degrees", tests, NULL, NULL);
}
