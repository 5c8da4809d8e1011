/* fold: one replica that stands for all, against all of them, where several of its ranks hold each stage: schedules in
 * two directions, whose replicas hold two copies of the model, and stages that ranks share. */
#include "random_plan.h"
#include "trials.h"

enum { PLANS = 160 };

/* A scenario as YAML; the caller frees it. */
static char *scenario_text(uint64_t *seed, const char *fold)
{
    static const struct { const char *schedule; bool offloads; } schedules[] = {
        {"chimera", true}, {"chimera, concatenation: forward-doubling", true}, {"dualpipe", false},
        {"dualpipe-v", false}, {"pipedream, stage_replicas: [2, 2]", false},
        {"pipedream, stage_replicas: [3, 1]", false},
    };
    static const struct { const char *degrees; int replicas; bool experts, offload; } variants[] = {
        {"data: 2", 2, false, false}, {"data: 3", 3, false, false}, {"data: 4", 4, false, false},
        {"data: 2, context: 2", 4, false, false}, {"data: 2, expert: 2", 2, true, false},
        {"data: 2, context: 2, expert: 4", 4, true, false}, {"data: 3, compression: top-k", 3, false, false},
        {"data: 3", 3, false, true},
    };
    int schedule = random_below(seed, COUNT(schedules)), variant = random_below(seed, COUNT(variants));
    int pipeline = schedules[schedule].schedule[0] == 'p' ? 4 : PICK_INT(seed, 2, 4), tensor = PICK_INT(seed, 1, 2);
    int gpus = tensor * pipeline * variants[variant].replicas, per_node = PICK_INT(seed, 1, 2, 4, 8);
    bool offload = variants[variant].offload && schedules[schedule].offloads;
    char *text = NULL;

    assert_true(asprintf(&text,
        "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 64, vocabulary: 1000, tied: %s%s}}\n"
        "cluster:\n  nodes: %d\n  gpus_per_node: %d\n  gpu: a100-80gb\n"
        "  inside: {bandwidth: 100 GB/s, latency: 2 us}\n"
        "  network: {bandwidth: 10 GB/s, latency: 5 us, nics: %d, topology: nonblocking}\n"
        "  host: {bandwidth: 20 GB/s, latency: 1 us, update: 2 G}\nbatch: {micro_batches: %d}\n"
        "strategy: {schedule: %s, pipeline: %d, tensor: %d, %s, placement: [%s],\n           data_parallel: %s}\n"
        "memory: {offload: %s}\nsimulation: {engine: fast, collectives: measured, fold: %s}\n",
        PICK(seed, "true", "false"), variants[variant].experts ? ", experts: 4, experts_per_token: 2" : "",
        (gpus - 1) / per_node + 1, per_node, per_node, 12 * PICK_INT(seed, 1, 2),
        schedules[schedule].schedule, pipeline, tensor, variants[variant].degrees,
        PICK(seed, "tensor, data, pipeline", "tensor, pipeline, data", "data, tensor, pipeline",
             "data, pipeline, tensor", "pipeline, tensor, data", "pipeline, data, tensor"),
        PICK(seed, "ddp, bucket: 30 kB", "synchronous"), offload ? "optimizer" : "none", fold) >= 0);
    return text;
}

static void run(struct simulated *simulated, uint64_t seed, const char *fold)
{
    struct simulate_options options = {.engine = ENGINE_FAST, .links = true};
    char *text = scenario_text(&seed, fold);
    struct error err = {0};

    simulated_load(simulated, "%s", text);
    free(text);
    if (workload_init(&simulated->workload, &simulated->scenario, &err) ||
        simulate(&simulated->workload, options, &simulated->run, &err))
        fail_at(simulated->text, &err);
}

/* All that is known of each rank of the first replica. */
static void same_ranks(const struct simulated *one, const struct simulated *all)
{
    for (int rank = 0; rank < one->run.metrics.nranks; rank++) {
        const struct rank_metrics *a = &one->run.metrics.ranks[rank], *b = &all->run.metrics.ranks[rank];

        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            expect_near("seconds of a rank", 1 + a->seconds[kind], 1 + b->seconds[kind], one->text);
        for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
            expect_near("bytes sent", a->sent[payload], b->sent[payload], one->text);
        expect_near("offloaded", a->offloaded, b->offloaded, one->text);
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

static void test_holders(void **state)
{
    int folded = 0;

    (void)state;
    EACH_CASE(i, PLANS) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct simulated one, all;

        run(&one, seed, "auto");
        run(&all, seed, "off");
        expect_near("iteration", one.run.metrics.iteration_time, all.run.metrics.iteration_time, one.text);
        expect_near("makespan", one.run.metrics.makespan, all.run.metrics.makespan, one.text);
        same_ranks(&one, &all);
        same_links(&one, &all);
        folded += one.run.lowered.alike.folded && plan_most_holders(&one.scenario.plan) > 1;
        simulated_release(&one);
        simulated_release(&all);
    }
    assert_true(folded > PLANS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_holders)};

    return cmocka_run_group_tests_name("fold", tests, NULL, NULL);
}
