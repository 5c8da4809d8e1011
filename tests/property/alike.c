/* Who stands for whom: random small scenarios name a reason exactly where something is simulated in full, lose it by the
 * change that it names, and take as long folded as in full. */
#include "random_plan.h"
#include "trials.h"

enum { SCENARIOS = 400 };

/* A scenario as YAML; the caller frees it. */
static char *scenario_text(uint64_t *seed, const char *fold)
{
    int tensor = PICK_INT(seed, 1, 2, 4), pipeline = PICK_INT(seed, 1, 1, 2, 4), data = PICK_INT(seed, 1, 2, 3, 6);
    int per_node = PICK_INT(seed, 2, 4, 8), nodes = (tensor * pipeline * data - 1) / per_node + 1;
    const char *topology = random_below(seed, 4) ? "nonblocking" : "{leaf_nodes: 2, oversubscription: 2}";
    const char *uneven = PICK(seed, "", "", "", "", "", ", jitter: 0.1", ", stragglers: {gpu: 0, slower: 1.5}",
                              ", slow_links: {node: 0, nic: 0, share: 0.5}");
    char *text = NULL;

    if (nodes == 1 && strstr(uneven, "slow_links"))
        uneven = "";
    assert_true(asprintf(&text,
        "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 64, vocabulary: 1000, tied: %s}}\n"
        "cluster:\n  nodes: %d\n  gpus_per_node: %d\n  gpu: a100-80gb\n"
        "  inside: {bandwidth: 100 GB/s, latency: 2 us}\n"
        "  network: {bandwidth: 10 GB/s, latency: 5 us, nics: %d, topology: %s}\nbatch: {micro_batches: %d}\n"
        "strategy: {schedule: %s, pipeline: %d, tensor: %d, data: %d, placement: [%s], data_parallel: %s}\n"
        "simulation: {engine: fast, collectives: %s, fold: %s%s}\n",
        PICK(seed, "true", "false"), nodes, per_node, random_below(seed, 3) ? per_node : 1, topology,
        PICK_INT(seed, 1, 4, 120), PICK(seed, "gpipe", "1f1b"), pipeline, tensor, data,
        PICK(seed, "tensor, data, pipeline", "tensor, data, pipeline", "tensor, pipeline, data", "data, tensor, pipeline",
             "pipeline, tensor, data"),
        PICK(seed, "ddp", "ddp, bucket: 30 kB", "ddp, zero: 1", "ddp, zero: 3", "synchronous", "parameter-server"),
        PICK(seed, "auto", "auto", "measured", "messages"), fold, uneven) >= 0);
    return text;
}

static void run(struct simulated *simulated, uint64_t seed, const char *fold)
{
    char *text = scenario_text(&seed, fold);
    struct error err = {0};

    simulated_load(simulated, "%s", text);
    free(text);
    if (workload_init(&simulated->workload, &simulated->scenario, &err) ||
        simulate(&simulated->workload, simulate_numbers_of(&simulated->scenario), &simulated->run, &err))
        fail_at(simulated->text, &err);
}

static void check(const char *way, uint32_t reasons, bool folded, const struct simulated *simulated)
{
    if ((reasons == 0) != folded)
        fail_msg("%s: reasons %#x, %sfolded:\n%s", way, reasons, folded ? "" : "not ", simulated->text);
    for (size_t i = 0; i < 32; i++)
        assert_true(!alike_text(reasons, i) == (i >= (size_t)__builtin_popcount(reasons)));
}

static void check_stood(const char *way, struct stood stood, const struct simulated *simulated)
{
    check(way, stood.reasons, stood.all <= 1 || stood.simulated < stood.all, simulated);
}

/* A reason is there exactly where all of several are simulated. */
static void reasons_tell_what_is_whole(const struct simulated *simulated)
{
    const struct alike *alike = &simulated->run.lowered.alike;
    const struct scenario *scenario = &simulated->scenario;
    static const enum alike_way ways[] = {ALIKE_FLOWS, ALIKE_REPLICAS, ALIKE_MICRO_BATCHES};

    for (size_t i = 0; i < COUNT(ways); i++)
        check_stood(alike_way_names[ways[i]], alike_stood(alike, scenario, ways[i]), simulated);
    check(alike_way_names[ALIKE_MEASURED], alike->reasons[ALIKE_MEASURED],
          alike->measured || scenario_replicas(scenario) == 1, simulated);
    for (enum group_kind kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        check_stood("nodes", alike->groups[kind].nodes, simulated);
        check_stood("channels", alike->groups[kind].channels, simulated);
    }
}

/* The changes that reasons name, and the keys that they name for them. */
static const struct { uint32_t reasons; const char *set; } changes[] = {
    {WHY_FOLD_OFF, "simulation.fold=auto"}, {WHY_JITTER, "simulation.jitter=0"},
    {WHY_STRAGGLERS, "simulation.stragglers=[]"}, {WHY_SLOW_LINKS, "simulation.slow_links=[]"},
    {WHY_MESSAGES | WHY_FEW | WHY_SMALL | WHY_APART, "simulation.collectives=measured"},
    {WHY_ROOTED, "strategy.data_parallel=ddp"}, {WHY_TOPOLOGY, "cluster.network.topology=nonblocking"},
    {WHY_PIPELINE, "strategy.pipeline=1"},
};

/* Whether any of the reasons is found; then the change must take it away. */
static bool change_takes_away(const struct simulated *simulated, uint32_t reasons, const char *set)
{
    uint32_t found = 0;
    struct scenario varied;
    struct workload workload;
    struct error err = {0};

    for (int way = 0; way < ALIKE_WAY_COUNT; way++)
        found |= simulated->workload.alike.reasons[way] & reasons;
    if (!found)
        return false;
    if (scenario_vary(&simulated->scenario, &set, 1, &varied, &err) || workload_init(&workload, &varied, &err))
        fail_at(simulated->text, &err);
    for (int way = 0; way < ALIKE_WAY_COUNT; way++)
        if (workload.alike.reasons[way] & found)
            fail_msg("%s leaves %#x of %s:\n%s", set, workload.alike.reasons[way], alike_way_names[way],
                     simulated->text);
    workload_release(&workload);
    scenario_release(&varied);
    return true;
}

/* Returns how many changes took a reason away. */
static int changes_take_reasons_away(const struct simulated *simulated)
{
    char nics[48];
    int taken;

    snprintf(nics, sizeof nics, "cluster.network.nics=%d", cluster_node_gpus(&simulated->scenario.cluster, 0));
    taken = change_takes_away(simulated, WHY_NICS, nics);
    for (size_t i = 0; i < COUNT(changes); i++)
        taken += change_takes_away(simulated, changes[i].reasons, changes[i].set);
    return taken;
}

static void test_reasons(void **state)
{
    int folded = 0, whole = 0, shorter = 0, taken = 0;
    uint32_t seen = 0;

    (void)state;
    EACH_CASE(i, SCENARIOS) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct simulated one, all;
        const struct alike *alike = &one.run.lowered.alike;

        run(&one, seed, "auto");
        run(&all, seed, "off");
        reasons_tell_what_is_whole(&one);
        reasons_tell_what_is_whole(&all);
        taken += changes_take_reasons_away(&one) + changes_take_reasons_away(&all);
        expect_near("iteration", one.run.metrics.iteration_time, all.run.metrics.iteration_time, one.text);
        expect_near("bubble", 1 + one.run.metrics.seconds[ACCOUNT_BUBBLE], 1 + all.run.metrics.seconds[ACCOUNT_BUBBLE],
                    one.text);
        assert_true(scenario_replicas(&one.scenario) == 1 || all.run.lowered.alike.reasons[ALIKE_REPLICAS] & WHY_FOLD_OFF);
        folded += alike->replicas < scenario_replicas(&one.scenario);
        whole += alike->reasons[ALIKE_REPLICAS] != 0;
        shorter += alike->micro_batches < one.scenario.plan.micro_batches;
        for (int way = 0; way < ALIKE_WAY_COUNT; way++)
            seen |= alike->reasons[way];
        simulated_release(&one);
        simulated_release(&all);
    }
    if (folded < 30 || whole < 100 || shorter < 10 || taken < 100 || __builtin_popcount(seen) < 15)
        fail_msg("%d folded, %d whole, %d shorter, %d changes, reasons %#x", folded, whole, shorter, taken, seen);
}

static uint32_t replica_reasons(const char *other, int pipeline)
{
    struct simulated simulated;
    uint32_t reasons;

    simulated_load(&simulated, "model: {stages: {forward: 1 ms, backward: 2 ms, boundary: 1 MB, parameters: 1 M}}\n"
                   "cluster: {parts: [{name: one, platform: dgx-a100, nodes: 6}, {name: other, platform: %s, nodes: 6}]}\n"
                   "batch: {micro_batches: 8}\nstrategy: {schedule: 1f1b, pipeline: %d, data: 8, placement: [pipeline, "
                   "data, tensor]}\n", other, pipeline);
    reasons = simulated_workload(&simulated)->alike.reasons[ALIKE_REPLICAS];
    simulated_release(&simulated);
    return reasons;
}

/* Pipelines that are a node each, on two kinds of nodes: the kinds are why, not the ways to the next stages. Where nodes cut
 * them in different places, these ways are why too. */
static void test_kinds_are_no_boundaries(void **state)
{
    (void)state;
    assert_int_equal(replica_reasons("dgx-a100", 8) & (WHY_KINDS | WHY_BOUNDARIES), 0);
    assert_int_equal(replica_reasons("dgx-h100", 8) & (WHY_KINDS | WHY_BOUNDARIES), WHY_KINDS);
    assert_int_equal(replica_reasons("dgx-h100", 12) & (WHY_KINDS | WHY_BOUNDARIES), WHY_KINDS | WHY_BOUNDARIES);
    assert_int_equal(replica_reasons("dgx-a100", 12) & (WHY_KINDS | WHY_BOUNDARIES), WHY_BOUNDARIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons), cmocka_unit_test(test_kinds_are_no_boundaries)};

    return cmocka_run_group_tests_name("alike", tests, NULL, NULL);
}
