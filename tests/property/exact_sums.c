/* exact_sums: sums of replicas that are measured once because that is exact (collectives: auto), against all of their
 * messages: the same times, bytes and loads of links, whatever the collective, recipe, pipeline and cluster. */
#include "random_plan.h"
#include "trials.h"

enum { CASES = 500, EVERY = 4 /* of sharings: sums of every micro-batch */ };

/* What divides states, or changes what is exchanged; and how many of `forms` go with it. */
static const struct { const char *keys; int forms; bool context, experts, host; } sharings[] = {
    {"", 5, true, false, false}, {"", 4, true, true, false}, {"zero: 1, ", 4, true, false, false},
    {"zero: 1, ", 4, true, true, false}, {"zero: 2, ", 4, true, false, false},
    {"zero: 1, reduce_scatter: false, ", 4, true, false, false}, {"zero: 1, shard: 2, ", 4, true, false, false},
    {"zero: 1, shard: 4, ", 3, false, false, false}, {"local_steps: 2, ", 1, false, false, false},
    {"compression: top-k, ", 3, false, false, false},
    {"compression: {method: powersgd, rank: 4}, ", 3, false, false, false}, {"zero: 1, ", 3, false, false, true},
};
static const char *const forms[] = {
    "ddp, first_bucket: 30 kB, bucket: 100 kB", "ddp, bucket: 400 kB", "synchronous", "synchronous, flatten: false",
    "parameter-server",
};
static const char *const all_reduces[] = {
    "ring", "ring", "halving-doubling", "tree", "butterfly", "naive", "double-tree", "hierarchical", "auto",
};

/* A scenario as YAML, of `pipeline` stages if there are GPUs for them; the caller frees it. */
static char *scenario_text(uint64_t *seed, int pipeline, const char *simulation)
{
    int per_node = PICK_INT(seed, 1, 2, 4, 8), nodes = PICK_INT(seed, 1, 2, 3, 4), gpus;
    int nics = 1 + random_below(seed, per_node), tensor = PICK_INT(seed, 1, 1, 2), context = PICK_INT(seed, 1, 1, 1, 2);
    int sharing = random_below(seed, COUNT(sharings)), form = random_below(seed, sharings[sharing].forms);
    char topology[64] = "nonblocking", *text = NULL;

    if (pipeline > 1) {
        sharing = sharing == EVERY ? 0 : sharing;    /* too many messages, so measured whether exact or not */
        per_node = per_node == 1 ? 4 : per_node;
        nics = random_below(seed, 6) ? per_node : 1; /* else sums of other stages are on its links */
    }
    while (per_node % nics)
        nics--;
    gpus = per_node * nodes;
    if (!sharings[sharing].context || form == 4)
        context = 1;
    if (gpus % (tensor * context * pipeline) || gpus == tensor * context * pipeline)
        tensor = context = 1;
    if (gpus % pipeline || gpus == pipeline)
        pipeline = 1;
    if (random_below(seed, 3) == 0)
        snprintf(topology, sizeof topology, "{leaf_nodes: 2, oversubscription: %d}", PICK_INT(seed, 1, 4));
    assert_true(asprintf(&text,
        "model: {transformer: {layers: 4, hidden: 256, heads: 8, sequence: 128, vocabulary: 1024, tied: %s%s}}\n"
        "cluster: {gpu: a100-80gb, nodes: %d, gpus_per_node: %d, inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
        "          network: {bandwidth: %s, latency: 5 us, nics: %d, topology: %s},\n"
        "          host: {bandwidth: 20 GB/s, latency: 1 us, update: 2 G}}\n"
        "batch: {micro_batches: %d, micro: 1}\ncosts: {host_launch: 0}\nsoftware: {like: none, overlap_p2p: %s}\n"
        "strategy: {schedule: %s, pipeline: %d, tensor: %d, context: %d, data: %d, %sall_reduce: %s, channels: %d,\n"
        "           placement: [%s], data_parallel: %s%s}\nmemory: {offload: %s}\nsimulation: {engine: fast, %s}\n",
        PICK(seed, "true", "false"), sharings[sharing].experts ? ", experts: 4, experts_per_token: 2" : "", nodes,
        per_node, PICK(seed, "10 GB/s", "10 GB/s", "200 GB/s"), nics, topology, pipeline * PICK_INT(seed, 1, 2, 3, 40),
        PICK(seed, "false", "false", "false", "false", "true"), PICK(seed, "1f1b", "gpipe"), pipeline, tensor, context,
        gpus / tensor / context / pipeline, sharings[sharing].keys, all_reduces[random_below(seed, COUNT(all_reduces))],
        random_below(seed, 3), PICK(seed, "tensor, data, pipeline", "data, tensor, pipeline", "tensor, pipeline, data"),
        forms[form], sharings[sharing].experts ? ", expert: 2" : "", sharings[sharing].host ? "optimizer" : "none",
        simulation) >= 0);
    return text;
}

/* False: such degrees do not go together. */
static bool run(struct simulated *simulated, uint64_t seed, int pipeline, const char *simulation)
{
    struct simulate_options options = {.engine = ENGINE_FAST, .links = true};
    struct error err = {0};

    memset(simulated, 0, sizeof *simulated);
    simulated->text = scenario_text(&seed, pipeline, simulation);
    if (load_text(simulated->text, &simulated->scenario, &err)) {
        error_release(&err);
        simulated_release(simulated);
        return false;
    }
    if (workload_init(&simulated->workload, &simulated->scenario, &err) ||
        simulate(&simulated->workload, options, &simulated->run, &err))
        fail_at(simulated->text, &err);
    return true;
}

/* Every rank that both know. */
static void same_ranks(const struct simulated *one, const struct simulated *all)
{
    for (int rank = 0; rank < one->run.metrics.nranks && rank < all->run.metrics.nranks; rank++) {
        const struct rank_metrics *a = &one->run.metrics.ranks[rank], *b = &all->run.metrics.ranks[rank];

        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            expect_near("seconds of a rank", 1 + a->seconds[kind], 1 + b->seconds[kind], one->text);
        expect_near("exposed", 1 + a->exposed_communication, 1 + b->exposed_communication, one->text);
        for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
            expect_near("bytes sent", a->sent[payload], b->sent[payload], one->text);
        expect_near("memory", a->peak_memory, b->peak_memory, one->text);
    }
}

static void same_links(const struct simulated *one, const struct simulated *all)
{
    for (int carrier = 0; carrier < CARRIER_COUNT; carrier++)
        for (int i = 0; i < one->run.links.counts[carrier]; i++) {
            expect_near("payload of a link", 1 + one->run.links.loads[carrier][i].payload,
                        1 + all->run.links.loads[carrier][i].payload, one->text);
            expect_near("bytes of a link", 1 + one->run.links.loads[carrier][i].wire,
                        1 + all->run.links.loads[carrier][i].wire, one->text);
        }
}

/* `least`: the number of cases that are measured at least; a twelfth of it are folded at least. */
static void compare_cases(int pipeline, int least)
{
    int measured = 0, folded = 0, messages = 0;

    EACH_TRIAL(i, CASES) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct simulated one, all;

        if (!run(&one, seed, pipeline, "fold: auto"))
            continue;
        if (one.scenario.parallelism.pipeline != pipeline) {
            simulated_release(&one);
            continue;
        }
        assert_true(run(&all, seed, pipeline, "collectives: messages"));
        expect_near("iteration", one.run.metrics.iteration_time, all.run.metrics.iteration_time, one.text);
        expect_near("exposed", one.run.metrics.exposed_communication, all.run.metrics.exposed_communication, one.text);
        expect_near("bubble", 1 + one.run.metrics.bubble_fraction, 1 + all.run.metrics.bubble_fraction, one.text);
        same_ranks(&one, &all);
        same_links(&one, &all);
        measured += one.run.lowered.alike.measured;
        folded += one.run.lowered.alike.folded;
        messages += !one.run.lowered.alike.measured;
        simulated_release(&one);
        simulated_release(&all);
    }
    print_message("%d measured, %d folded, %d by messages\n", measured, folded, messages);
    assert_true(measured > 0 && messages > trials(CASES) / 4);
    assert_true((measured >= least && 12 * folded >= least) || !known_cases());
}

static void test_one_stage(void **state)
{
    (void)state;
    compare_cases(1, CASES / 4);
}

/* The sums of a pipeline are exact where they begin when it has computed and sent everything. */
static void test_pipelines(void **state)
{
    (void)state;
    compare_cases(2, 20);
    compare_cases(4, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_stage), cmocka_unit_test(test_pipelines)};

    return cmocka_run_group_tests_name("exact_sums", tests, NULL, NULL);
}
