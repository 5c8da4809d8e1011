/* steady: pipelines that were simulated with fewer micro-batches than they have, against the whole ones: the same
 * metrics but for rounding, whatever the schedule, recipe, cluster and contention. */
#include "engine/replay.h"
#include "random_scenario.h"
#include "steady/rounding.h"
#include "steady/steady.h"
#include "trials.h"

enum { PLANS = 300, SCENARIOS = 400, SHARED = 60, SIMGRID = 12, MIXED = 300, DEGREES = 300 };

/* The workload's metrics. */
static int run(struct simulated *simulated, struct simulate_options options, struct error *err)
{
    run_release(&simulated->run);
    return simulate(&simulated->workload, options, &simulated->run, err);
}

/* Equal to a part in 10^9 of `scale`. */
static void expect_same(const char *what, double one, double all, double scale, const char *text)
{
    if (isnan(all) ? !isnan(one) : !(fabs(one - all) <= 1e-9 * fmax(fabs(all), scale)))
        fail_msg("%s is %.17g instead of %.17g in\n%s", what, one, all, text);
}

static void same_ranks(const struct metrics *one, const struct metrics *all, const char *text)
{
    assert_int_equal(one->nranks, all->nranks);
    for (int rank = 0; rank < all->nranks; rank++) {
        const struct rank_metrics *a = &one->ranks[rank], *b = &all->ranks[rank];

        for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
            expect_same(account_names[kind], a->seconds[kind], b->seconds[kind], all->iteration_time, text);
        expect_same("exposed", a->exposed_communication, b->exposed_communication, all->iteration_time, text);
        for (int payload = 0; payload < PAYLOAD_COUNT; payload++)
            expect_same("bytes sent", a->sent[payload], b->sent[payload], 1, text);
        expect_same("bytes offloaded", a->offloaded, b->offloaded, 1, text);
        expect_same("memory", a->peak_memory, b->peak_memory, 1, text);
        expect_same("activations", a->peak_activation, b->peak_activation, 1, text);
    }
}

static void same_metrics(const struct metrics *one, const struct metrics *all, const char *text)
{
    for (size_t i = 0; metric_at(i); i++) {
        double scale = metric_at(i)->kind == METRIC_TIME ? all->iteration_time : metric_at(i)->kind == METRIC_SHARE;

        expect_same(metric_at(i)->name, metric_value(one, metric_at(i)), metric_value(all, metric_at(i)), scale, text);
    }
    expect_same("imbalance", one->imbalance, all->imbalance, all->iteration_time, text);
    expect_same("extrapolated", one->extrapolated, all->extrapolated, all->iteration_time, text);
    same_ranks(one, all, text);
}

/* Whether the scenario was simulated with fewer micro-batches; false too if it is refused. Takes the text. */
static bool compare(char *text, enum engine engine)
{
    struct simulated simulated = {.text = text};
    struct simulate_options options = {.engine = engine, .causes = true, .numbers = true};
    struct error err = {0};
    struct metrics one, *all = &simulated.run.metrics;
    bool shorter;

    if (load_text(text, &simulated.scenario, &err) ||
        workload_init(&simulated.workload, &simulated.scenario, &err) || run(&simulated, options, &err)) {
        error_release(&err);
        simulated_release(&simulated);
        return false;
    }
    shorter = simulated.run.timeline.repeats != NULL;
    one = *all;
    *all = (struct metrics){0};
    options.numbers = false;
    if (shorter && run(&simulated, options, &err))
        fail_at(text, &err);
    if (shorter) {
        assert_null(simulated.run.timeline.repeats);
        same_metrics(&one, all, text);
        options.what_ifs = WHAT_IF_BALANCED;
        options.causes = false;
        if (run(&simulated, options, &err))
            fail_at(text, &err);
        expect_same("imbalance", one.imbalance, one.seconds[ACCOUNT_BUBBLE] - all->seconds[ACCOUNT_BUBBLE],
                    all->iteration_time, text);
    }
    metrics_release(&one);
    simulated_release(&simulated);
    return shorter;
}

/* A small model or given times, on a cluster whose NICs and leaves ranks may share. */
static bool compare_plan(uint64_t number, enum engine engine)
{
    uint64_t seed = number * 0xD1342543DE82EF95u;
    struct random_plan plan = random_plan(&seed);

    any_schedule(&plan, &seed);
    plan.micro_batches *= PICK_INT(&seed, 20, 40, 100);
    return compare(plan_yaml(&plan), engine);
}

static void test_plans(void **state)
{
    int shorter = 0;

    (void)state;
    EACH_TRIAL(i, PLANS)
        shorter += compare_plan(i, i % 3 ? ENGINE_FAST : ENGINE_IDEAL);
    print_message("%d of %d plans were simulated with fewer micro-batches\n", shorter, trials(PLANS));
    assert_true(3 * shorter > trials(PLANS));
}

/* Random texts, of which one in `least` or more must be simulated with fewer micro-batches. `engines`: on all engines,
 * else on fast. */
static void compare_texts(char *(*text)(uint64_t *seed), uint64_t factor, int all, int least, bool engines,
                          const char *what)
{
    int shorter = 0;

    EACH_TRIAL(i, all) {
        enum engine other = i % 20 == 7 ? ENGINE_SIMGRID : i % 5 ? ENGINE_FAST : ENGINE_IDEAL;
        uint64_t seed = i * factor;

        shorter += compare(text(&seed), engines ? other : ENGINE_FAST);
    }
    print_message("%d of %d %s were simulated with fewer micro-batches\n", shorter, trials(all), what);
    assert_true(least * shorter > trials(all));
}

static char *any_scenario(uint64_t *seed)
{
    return random_scenario(80, seed);
}

static void test_scenarios(void **state)
{
    (void)state;
    compare_texts(any_scenario, 0xAF251AF3B0F025B5u, SCENARIOS, 12, false, "scenarios");
}

/* A real model on a few nodes whose boundaries and sums of gradients share NICs and PCIe: there rounding errors may grow.
 * Every other schedule has two directions. */
static char *shared_nodes(uint64_t *seed)
{
    const char *cluster = PICK(seed, "l40s-pcie", "l40s-pcie", "pcie-25gbe", "pcie-10gbe", "hgx-a100-4", "dgx-h100");
    int pipeline = PICK_INT(seed, 2, 2, 4), nodes = PICK_INT(seed, 1, 2, 4), count = 0;
    const char *schedule;
    char *text = NULL;

    while (schedule_at((size_t)count))
        count++;
    schedule = random_below(seed, 2) ? PICK(seed, "dualpipe", "chimera")
                                     : schedule_at((size_t)random_below(seed, count))->name;
    if (!strcmp(schedule, "pipedream"))
        nodes = 1;        /* It sums gradients after every micro-batch: a trial on four nodes would take 20 s. */
    assert_true(asprintf(&text,
        "model: {preset: %s}\ncluster: {platform: %s, nodes: %d}\nbatch: {micro_batches: %d, micro: %d}\n"
        "strategy: {schedule: %s, pipeline: %d%s%s}\nmemory: {recompute: %s, enforce: false}\n",
        PICK(seed, "llama3-8b", "gpt2-355m", "llama2-7b"), cluster, nodes, 2 * pipeline * (5 + random_below(seed, 40)),
        PICK_INT(seed, 1, 2), schedule, pipeline, sometimes(seed, 3, ", zero: 1"),
        sometimes(seed, 4, ", placement: [data, pipeline, tensor]"),
        PICK(seed, "full", "full", "selective", "none")) >= 0);
    return text;
}

static void test_shared_nodes(void **state)
{
    (void)state;
    compare_texts(shared_nodes, 0x9E3779B97F4A7C15u, SHARED, 8, false, "scenarios on shared nodes");
}

/* Replicas of a pipeline on parts of two kinds; most replicas are on one part, and some have unequal shares. */
static char *mixed_replicas(uint64_t *seed)
{
    int tensor = PICK_INT(seed, 1, 2, 4), data = PICK_INT(seed, 2, 2, 3, 4), pipeline = PICK_INT(seed, 1, 2, 4), count = 0;
    const char *second = PICK(seed, "dgx-h100", "dgx-h100", "dgx-h100", "hgx-a100-4", "l40s-pcie");
    char *text = NULL, on[64] = "", stages[512] = "", shares[64] = "";
    bool chosen = random_below(seed, 3) == 0;

    while (schedule_at((size_t)count))
        count++;
    for (int p = 0; p < pipeline; p++) {
        if (p == 0 || random_below(seed, 4) == 0)
            for (int d = 0, at = 0; d < data; d++)
                at += snprintf(on + at, sizeof on - (size_t)at, "%s%c", d ? ", " : "",
                               p == 0 && d < 2 ? 'a' + d : 'a' + random_below(seed, 2));
        snprintf(stages + strlen(stages), sizeof stages - strlen(stages), "%s{on: [%s]}", p ? ", " : "", on);
    }
    for (int d = 0; d < data; d++)
        snprintf(shares + strlen(shares), sizeof shares - strlen(shares), "%s%d", d ? ", " : "", 1 + random_below(seed, 3));
    assert_true(asprintf(&text,
        "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 51200}}\n"
        "batch: {micro_batches: %d, micro: %d%s%s%s}\nmemory: {enforce: false}\n"
        "strategy: {tensor: %d, data: %d, zero: %d, schedule: %s, stages: [%s]}\n"
        "cluster: {network: {latency: %d us}, parts: [{name: a, platform: dgx-a100, nodes: 16, gpus_per_node: 4}, "
        "{name: b, platform: %s, nodes: %d}]}\n",
        8 * (20 + random_below(seed, 40)), PICK_INT(seed, 2, 3, 4), chosen ? ", shares: [" : "",
        chosen ? shares : "", chosen ? "]" : "", tensor, data, PICK_INT(seed, 0, 0, 1),
        pipeline > 1 ? schedule_at((size_t)random_below(seed, count))->name : "1f1b", stages,
        PICK_INT(seed, 1, 3, 20), second, 16) >= 0);
    return text;
}

static void test_mixed(void **state)
{
    (void)state;
    compare_texts(mixed_replicas, 0xBF58476D1CE4E5B9u, MIXED, 8, true, "scenarios with replicas on two kinds");
}

/* Ranks with degrees of their own, whose micro-batches all replicas share, on nodes of one kind or two. */
static char *unequal_degrees(uint64_t *seed)
{
    const char *schedule = PICK(seed, "1f1b", "1f1b", "gpipe", "zb-h1", "interleaved, chunks: 2", "zb-v");
    const char *second = PICK(seed, "dgx-a100", "dgx-a100", "dgx-h100", "hgx-a100-4", "l40s-pcie");
    int ranks = PICK_INT(seed, 2, 2, 4), micro = 12, first = 0;
    bool parts = random_below(seed, 2);
    char *text = NULL, stages[512] = "";

    for (int p = 0; p < ranks; p++) {
        int tensor = PICK_INT(seed, 1, 1, 2, 4), data = PICK_INT(seed, 1, 2, 2, 3, 4, 6);
        char on[16] = "";

        first = p ? first : data;
        if (parts)
            snprintf(on, sizeof on, "on: %c, ", 'a' + random_below(seed, 2));
        snprintf(stages + strlen(stages), sizeof stages - strlen(stages), "%s{%stensor: %d, data: %d}", p ? ", " : "", on,
                 tensor, data);
    }
    micro /= first;
    assert_true(asprintf(&text,
        "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 51200, tied: %s}}\n"
        "batch: {micro_batches: %d, micro: %d}\nmemory: {enforce: false}\n"
        "strategy: {zero: %d, schedule: %s, sequence_parallel: %s, overlap_p2p: %s, stages: [%s]}\n"
        "cluster: {network: {latency: %d us}, parts: [{name: a, platform: dgx-a100, nodes: 16%s}, "
        "{name: b, platform: %s, nodes: 24}]}\n",
        PICK(seed, "true", "false", "false"), 8 * (10 + random_below(seed, 20)), micro, PICK_INT(seed, 0, 0, 1, 2, 3),
        schedule, PICK(seed, "true", "false"), PICK(seed, "true", "false"), stages, PICK_INT(seed, 1, 3, 20),
        sometimes(seed, 3, ", gpus_per_node: 4"), second) >= 0);
    return text;
}

static void test_degrees(void **state)
{
    (void)state;
    compare_texts(unequal_degrees, 0xE7037ED1A0B428DBu, DEGREES, 4, true, "scenarios with unequal degrees");
}

static void test_simgrid(void **state)
{
    int shorter = 0;

    (void)state;
    for (uint64_t i = 1; i <= SIMGRID; i++)
        shorter += compare_plan(i, ENGINE_SIMGRID);
    print_message("%d of %d plans on simgrid were simulated with fewer micro-batches\n", shorter, SIMGRID);
    assert_true(3 * shorter > SIMGRID);
}

/* A pipeline of four ranks that repeats itself, replayed with fewer micro-batches. */
struct replayed { struct simulated simulated; struct shorter shorter; struct lowered lowered; struct timeline timeline; };

static void replay_shorter(struct replayed *replayed)
{
    struct simulated *simulated = &replayed->simulated;
    const struct cluster *cluster;
    struct error err = {0};
    struct measure measure;

    simulated_load(simulated, "model: {stages: {forward: 1 s, backward: 2 s, boundary: 1 MB, activation: 1 MB}}\n"
                              "cluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 10 MB/s, latency: 1 ms},\n"
                              "          network: {bandwidth: 1 GB/s, latency: 1 us}}\n"
                              "batch: {micro_batches: 400}\nstrategy: {schedule: 1f1b, pipeline: 4}\n");
    cluster = &simulated->scenario.cluster;
    assert_true(shorter_next(&replayed->shorter, simulated_workload(simulated)));
    measure_init(&measure, ENGINE_FAST, cluster);
    assert_int_equal(lower(&replayed->shorter.workload, LOWER_ITERATION, &measure, &replayed->lowered, &err), 0);
    measure_release(&measure);
    timeline_init(&replayed->timeline, &replayed->lowered.program);
    assert_int_equal(replay(ENGINE_FAST, &replayed->lowered.program, cluster, &replayed->timeline, &err), 0);
}

static void replayed_release(struct replayed *replayed)
{
    timeline_release(&replayed->timeline);
    lowered_release(&replayed->lowered);
    shorter_release(&replayed->shorter);
    simulated_release(&replayed->simulated);
}

/* Whatever is changed a little in the period that would be repeated, in time or in what happens, it repeats nothing. */
static void test_changed(void **state)
{
    struct replayed replayed = {0};
    struct timeline *timeline = &replayed.timeline;
    struct repeat repeat, other;
    struct op *ops;
    int tried = 0;

    (void)state;
    replay_shorter(&replayed);
    ops = replayed.lowered.program.ops.items;
    assert_true(steady_find(timeline, &replayed.shorter, &repeat));
    assert_false(rounding_grows(timeline, &replayed.simulated.scenario.cluster));
    for (size_t i = 0; i < replayed.lowered.program.ops.count; i++) {
        double end = timeline->end[i], amount = ops[i].amount;
        int mb = ops[i].mb;

        if (timeline->start[i] < repeat.from || timeline->start[i] >= repeat.to)
            continue;
        timeline->end[i] += 1e-6;
        assert_false(steady_find(timeline, &replayed.shorter, &other));
        timeline->end[i] = end;
        ops[i].amount *= 1 + 1e-15;
        assert_false(steady_find(timeline, &replayed.shorter, &other));
        ops[i].amount = amount;
        ops[i].mb += 1000;
        assert_false(steady_find(timeline, &replayed.shorter, &other));
        ops[i].mb = mb;
        tried++;
    }
    assert_true(tried > 10 && steady_find(timeline, &replayed.shorter, &other));
    replayed_release(&replayed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed), cmocka_unit_test(test_degrees), cmocka_unit_test(test_plans),
        cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_shared_nodes), cmocka_unit_test(test_simgrid), cmocka_unit_test(test_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
