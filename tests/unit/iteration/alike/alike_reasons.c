/* The reasons why something is simulated in full, scenario by scenario, and their texts. */
#include "simulated.h"

/* Nodes of 4 GPUs; the formats: nodes, NICs, topology, strategy, simulation. */
#define SCENARIO "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 64, vocabulary: 1000}}\n" \
    "cluster:\n  nodes: %d\n  gpus_per_node: 4\n  gpu: a100-80gb\n" \
    "  inside: {bandwidth: 100 GB/s, latency: 2 us}\n" \
    "  network: {bandwidth: 10 GB/s, latency: 5 us, nics: %d, topology: %s}\nbatch: {micro_batches: 4}\n" \
    "strategy: {%s}\nsimulation: {engine: fast, %s}\n"

static const struct {
    int nodes, nics;
    const char *topology, *strategy, *simulation;
    uint32_t flows, replicas, measured, micro_batches;
} cases[] = {
    {2, 4, "nonblocking", "tensor: 2, data: 4", "collectives: measured", 0, 0, 0, 0},
    {2, 4, "nonblocking", "tensor: 4, data: 2, placement: [data, tensor, pipeline]", "collectives: measured",
     0, 0, 0, 0},
    {3, 4, "nonblocking", "tensor: 2, pipeline: 2, data: 3, placement: [data, tensor, pipeline]",
     "collectives: measured", WHY_TENSOR_NODES, WHY_TENSOR_NODES, 0, 0},
    {2, 2, "nonblocking", "tensor: 2, data: 4", "collectives: measured", WHY_NICS, 0, 0, 0},
    {2, 2, "nonblocking", "tensor: 2, data: 2, pipeline: 2", "collectives: measured", WHY_NICS, WHY_NICS | WHY_PIPELINE, 0,
     0},
    {4, 4, "{leaf_nodes: 2, oversubscription: 2}", "tensor: 2, data: 8, pipeline: 1", "collectives: measured",
     WHY_TOPOLOGY, 0, 0, 0},
    {2, 2, "nonblocking", "tensor: 8, data: 1", "collectives: measured", WHY_NICS, 0, 0, 0},
    {2, 4, "nonblocking", "data: 8", "collectives: messages", 0, WHY_MESSAGES, WHY_MESSAGES, 0},
    {2, 4, "nonblocking", "data: 4, pipeline: 2", "collectives: auto", 0, WHY_FEW, WHY_FEW, 0},
    {2, 4, "nonblocking", "data: 8, data_parallel: synchronous", "collectives: auto", 0, WHY_SMALL, 0, 0},
    {2, 4, "nonblocking", "data: 8", "collectives: measured, fold: off", 0, WHY_FOLD_OFF, 0, 0},
    {2, 4, "nonblocking", "data: 8", "collectives: measured, jitter: 0.1", 0, WHY_JITTER, 0, WHY_JITTER},
    {2, 4, "nonblocking", "tensor: 2, data: 4", "collectives: measured, stragglers: {gpu: 0, slower: 2}", 0,
     WHY_STRAGGLERS, 0, 0},
    {2, 4, "nonblocking", "tensor: 2, data: 4", "collectives: measured, slow_links: {node: 0, nic: 0, share: 0.5}",
     WHY_SLOW_LINKS, WHY_SLOW_LINKS, 0, 0},
    {2, 4, "nonblocking", "data: 8, data_parallel: parameter-server", "collectives: measured", 0, WHY_ROOTED, 0, 0},
    {2, 4, "nonblocking", "data: 4, pipeline: 2, schedule: pipedream", "collectives: measured", 0, 0, 0, WHY_SCHEDULE},
    {2, 4, "nonblocking", "data: 8, local_steps: 2", "collectives: measured", 0, 0, 0, WHY_LOCAL_STEPS},
};

static void each_case_has_its_reasons(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        const struct alike *alike = &simulated.workload.alike;
        struct error err = {0};

        simulated_load(&simulated, SCENARIO, cases[i].nodes, cases[i].nics, cases[i].topology, cases[i].strategy,
                       cases[i].simulation);
        if (workload_init(&simulated.workload, &simulated.scenario, &err))
            fail_at(simulated.text, &err);
        if (alike->reasons[ALIKE_FLOWS] != cases[i].flows || alike->reasons[ALIKE_REPLICAS] != cases[i].replicas ||
            alike->reasons[ALIKE_MEASURED] != cases[i].measured ||
            alike->reasons[ALIKE_MICRO_BATCHES] != cases[i].micro_batches)
            fail_msg("%zu: reasons %#x, %#x, %#x, %#x of\n%s", i, alike->reasons[ALIKE_FLOWS],
                     alike->reasons[ALIKE_REPLICAS], alike->reasons[ALIKE_MEASURED],
                     alike->reasons[ALIKE_MICRO_BATCHES], simulated.text);
        assert_int_equal(alike->flows, cases[i].flows ? simulated.scenario.parallelism.tensor : 1);
        assert_int_equal(alike->replicas, cases[i].replicas ? scenario_replicas(&simulated.scenario) : 1);
        simulated_release(&simulated);
    }
}

/* Each reason has a text, no two the same, and there is no further text. */
static void each_reason_has_a_text(void **state)
{
    size_t count = 0;

    (void)state;
    while (alike_text(UINT32_MAX, count))
        count++;
    assert_int_equal((uint32_t)WHY_FOLD_FIRST << (UNFOLDED_COUNT - 2), (uint32_t)1 << (count - 1));
    for (size_t i = 0; i < count; i++) {
        const struct alike_text *one = alike_text((uint32_t)1 << i, 0);

        assert_non_null(one);
        assert_true(*one->key && *one->why && *one->change);
        assert_null(alike_text((uint32_t)1 << i, 1));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(one->why, alike_text((uint32_t)1 << k, 0)->why);
    }
}

/* A kind of group keeps the collective that stands for the fewest. */
static void the_fullest_collective_is_kept(void **state)
{
    struct alike alike = {0};
    struct measured measured = {.of_nodes = {2, 8, FOLDED}, .of_channels = {1, 4, FOLDED}};

    (void)state;
    alike_note(&alike, GROUP_DATA, &measured);
    assert_true(alike.groups[GROUP_DATA].nodes.simulated == 2 && !alike.reasons[ALIKE_NODES]);
    measured.of_nodes = (struct extent){4, 4, UNFOLDED_ALGORITHM};
    alike_note(&alike, GROUP_DATA, &measured);
    measured.of_nodes = (struct extent){2, 16, FOLDED};
    alike_note(&alike, GROUP_DATA, &measured);
    measured.of_nodes = (struct extent){2, 2, FOLDED};
    measured.of_channels = (struct extent){1, 1, FOLDED};
    alike_note(&alike, GROUP_TENSOR, &measured);
    assert_true(alike.groups[GROUP_DATA].nodes.simulated == 4 && alike.groups[GROUP_DATA].nodes.all == 4);
    assert_true(alike.groups[GROUP_TENSOR].nodes.all == 0 && alike.groups[GROUP_TENSOR].channels.all == 0);
    assert_true(alike.reasons[ALIKE_NODES] == alike.groups[GROUP_DATA].nodes.reasons && alike.reasons[ALIKE_NODES]);
    assert_true(!alike.reasons[ALIKE_CHANNELS] && alike.groups[GROUP_DATA].channels.all == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_has_its_reasons), cmocka_unit_test(each_reason_has_a_text),
        cmocka_unit_test(the_fullest_collective_is_kept),
    };

    return cmocka_run_group_tests_name("alike_reasons", tests, NULL, NULL);
}
