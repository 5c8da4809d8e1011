/* parts: clusters whose files say `parts`. */
#include "in_parts.h"

#include <dirent.h>

static bool compare_in_parts(const char *path)
{
    struct scenario whole = {0};
    struct error err = {0};
    bool several;

    if (load_once(path, NULL, 0, &whole, &err))
        fail_at(path, &err);
    several = same_in_parts(&whole, path);
    scenario_release(&whole);
    return several;
}

static void equal_parts_are_one_cluster(void **state)
{
    static const char *const folders[] = {"scenarios/tour", "scenarios/methods"};
    int compared = 0;

    (void)state;
    for (size_t f = 0; f < COUNT(folders); f++) {
        char folder[512], path[1024];
        struct dirent **entries;
        int count;

        snprintf(folder, sizeof folder, "%s/%s", DTSIM_SOURCE_DIR, folders[f]);
        count = scandir(folder, &entries, NULL, alphasort);
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            const char *dot = strrchr(entries[i]->d_name, '.');
            struct arena arena = {0};
            struct error err = {0};
            struct node *root;

            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            if (dot && !strcmp(dot, ".yaml") && !conf_load(&arena, path, &root, &err) && node_get(root, "cluster") &&
                !node_get(root, "sweep") && !node_get(root, "columns") && node_get(root, "batch"))
                compared += compare_in_parts(path);
            arena_release(&arena);
            error_release(&err);
            free(entries[i]);
        }
        free(entries);
    }
    assert_true(compared >= 5);
    print_message("%d scenarios of tour and methods are the same in two parts\n", compared);
}

static const char shape[] =
    "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 51200}}\n"
    "batch: {micro: 1, global: 32}\nsimulation: {engine: fast%s}\nstrategy: %s\ncluster: %s\n";

static const char *const strategies[] = {
    "{tensor: 2, pipeline: 2, data: 8}", "{tensor: 4, pipeline: 4, data: 2, schedule: 1f1b}", "{data: 32, zero: 3}",
    "{pipeline: 4, data: 8, schedule: zb-h1}", "{tensor: 2, pipeline: 2, data: 8, placement: [pipeline, tensor, data]}",
};

static void expect_equal(const struct simulated *one, const struct simulated *other)
{
    for (size_t i = 0; metric_at(i); i++) {
        double a = metric_value(&one->run.metrics, metric_at(i)), b = metric_value(&other->run.metrics, metric_at(i));

        if (!isnan(a) || !isnan(b))
            expect_near(metric_at(i)->name, a, b, one->text);
    }
}

static void a_slower_part_is_stragglers(void **state)
{
    char stragglers[1024] = ", stragglers: [";

    (void)state;
    for (int gpu = 8; gpu < 24; gpu++)
        snprintf(stragglers + strlen(stragglers), sizeof stragglers - strlen(stragglers), "{gpu: %d, slower: 2}%s", gpu,
                 gpu < 23 ? ", " : "]");
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated parts, whole;

        run_text(&parts, shape, "", strategies[i],
                 "{parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-a100, nodes: 2, slower: 2}, "
                 "{name: c, platform: dgx-a100, nodes: 1}]}");
        run_text(&whole, shape, stragglers, strategies[i], "{platform: dgx-a100, nodes: 4}");
        expect_equal(&parts, &whole);
        simulated_release(&parts);
        simulated_release(&whole);
    }
}

/* A resolved scenario is the same scenario. */
static void a_dump_reads_back(void **state)
{
    struct simulated parts;
    struct arena arena = {0};
    struct scenario again = {0};
    struct error err = {0};
    char *first, *second;

    (void)state;
    simulated_load(&parts, shape, "", "{tensor: 4, pipeline: 3, data: 2}",
                   "{parts: [{name: old, platform: dgx-a100, nodes: 1, gpu: {name: a100-80gb, memory: 70 GB}}, "
                   "{name: new, platform: dgx-h100, nodes: 2, slower: 1.1}], network: {latency: 7 us}}");
    struct node *dump = scenario_dump(&arena, &parts.scenario);

    assert_null(node_at(dump, "cluster.nodes"));
    assert_null(node_at(dump, "cluster.gpu"));
    assert_non_null(node_at(dump, "cluster.parts.1.network.latency"));
    first = strdup(node_flow(&arena, dump));
    assert_int_equal(scenario_read(&arena, dump, NULL, 0, "test", &again, &err), 0);
    struct arena other = {0};

    second = strdup(node_flow(&other, scenario_dump(&other, &again)));
    assert_string_equal(first, second);
    free(first);
    free(second);
    arena_release(&arena);
    arena_release(&other);
    scenario_release(&again);
    simulated_release(&parts);
}

/* Each GPU holds what it may: a rank with more on larger GPUs is no shortage, the fullest GPU is the one that leaves the
 * least room, and the peak of MFU is the mean of all. */
static void memory_and_peaks_are_of_each_part(void **state)
{
    struct simulated simulated;
    const struct metrics *m = &simulated.run.metrics;
    static const char cluster[] =
        "{parts: [{name: old, platform: dgx-a100, nodes: 2, gpu: {name: a100-80gb, memory: %s}}, "
        "{name: new, platform: dgx-h100, nodes: 2}]}";
    double first;
    char text[512];

    (void)state;
    snprintf(text, sizeof text, cluster, "80 GB");
    run_text(&simulated, shape, "", "{tensor: 2, pipeline: 2, data: 8}", text);
    first = m->ranks[0].peak_memory;
    assert_true(m->ranks[1].peak_memory != first);
    simulated_release(&simulated);
    snprintf(text, sizeof text, cluster, "6 GB");
    run_text(&simulated, shape, "", "{tensor: 2, pipeline: 2, data: 8}", text);
    assert_int_equal(m->peak_rank % 2, 0);
    assert_true(m->peak_memory == first);
    assert_true(fabs(m->peak_room - 6e9) < 1);
    expect_near("mfu", m->mfu, m->model_flops_per_gpu / ((312e12 + 989e12) / 2), text);
    simulated_release(&simulated);
}

static double seconds_of(const char *simulation, const char *strategy, const char *cluster)
{
    struct simulated simulated;
    double seconds;

    run_text(&simulated, shape, simulation, strategy, cluster);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

static const char two_kinds[] =
    "{parts: [{name: old, platform: dgx-a100, nodes: 2}, {name: new, platform: dgx-h100, nodes: 2}]}";

/* Where each stage has GPUs of one kind, one replica stands for all and one flow for a tensor group, as exactly as where
 * all are of one kind. */
static void stages_of_a_kind_fold(void **state)
{
    static const char *const folding[] = {"{tensor: 2, pipeline: 2, data: 8}", "{tensor: 4, pipeline: 4, data: 2}",
                                          "{tensor: 8, pipeline: 2, data: 2, zero: 1}"};

    (void)state;
    for (size_t i = 0; i < COUNT(folding); i++) {
        double all = seconds_of(", fold: off, collectives: messages", folding[i], two_kinds);

        expect_near("folded", seconds_of("", folding[i], two_kinds), all, folding[i]);
        expect_near("measured", seconds_of(", collectives: measured", folding[i], two_kinds),
                    seconds_of(", fold: off, collectives: measured", folding[i], two_kinds), folding[i]);
    }
}

/* The best of all divisions of the layers, each simulated. */
static void split_auto_is_the_best_of_all(void **state)
{
    char text[128];
    double best = INFINITY, found = seconds_of("", "{tensor: 2, pipeline: 2, data: 8, split: auto}", two_kinds);

    (void)state;
    for (int first = 0; first <= 8; first++) {
        snprintf(text, sizeof text, "{tensor: 2, pipeline: 2, data: 8, split: [%d, %d]}", first, 8 - first);
        best = fmin(best, seconds_of("", text, two_kinds));
    }
    expect_near("split: auto", found, best, two_kinds);
}

/* A pipeline rank, a tensor group and replicas that are on nodes of both kinds: the three engines agree as on equal nodes. */
static void engines_agree(void **state)
{
    static const char cluster[] = "{parts: [{name: a, platform: dgx-a100, nodes: 1, gpus_per_node: 4}, {name: b, platform: "
                                  "dgx-h100, nodes: 1, gpus_per_node: 4, network: {latency: 9 us}}], communication: none}";
    static const char *const mixed[] = {"{tensor: 8, sequence_parallel: true}", "{pipeline: 8}", "{data: 8}",
                                        "{tensor: 2, pipeline: 2, data: 2, placement: [tensor, pipeline, data]}"};

    (void)state;
    for (size_t i = 0; i < COUNT(mixed); i++) {
        struct simulated fast, simgrid;

        run_text(&fast, shape, "", mixed[i], cluster);
        run_text(&simgrid, shape, "", mixed[i], cluster);
        simgrid.scenario.simulation.engine = ENGINE_SIMGRID;
        run_release(&simgrid.run);
        workload_release(&simgrid.workload);
        struct error err = {0};

        if (simulated_run(&simgrid, &err))
            fail_at(mixed[i], &err);
        if (fabs(fast.run.metrics.iteration_time / simgrid.run.metrics.iteration_time - 1) > 1e-9)
            fail_msg("fast %.17g, simgrid %.17g: %s", fast.run.metrics.iteration_time,
                     simgrid.run.metrics.iteration_time, mixed[i]);
        simgrid.scenario.simulation.engine = ENGINE_IDEAL;
        run_release(&simgrid.run);
        workload_release(&simgrid.workload);
        if (simulated_run(&simgrid, &err))
            fail_at(mixed[i], &err);
        assert_true(simgrid.run.metrics.iteration_time <= fast.run.metrics.iteration_time * (1 + 1e-9));
        simulated_release(&fast);
        simulated_release(&simgrid);
    }
}

/* Parts in another order, with the stages on the same ones, are the same on a network in which all nodes are alike. */
static void order_of_parts_does_not_matter(void **state)
{
    static const char *const orders[] = {
        "{parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 2}, "
        "{name: c, platform: dgx-1-v100, nodes: 1}], network: {latency: 3 us}}",
        "{parts: [{name: c, platform: dgx-1-v100, nodes: 1}, {name: a, platform: dgx-a100, nodes: 1}, "
        "{name: b, platform: dgx-h100, nodes: 2}], network: {latency: 3 us}}",
        "{parts: [{name: b, platform: dgx-h100, nodes: 2}, {name: c, platform: dgx-1-v100, nodes: 1}, "
        "{name: a, platform: dgx-a100, nodes: 1}], network: {latency: 3 us}}",
    };
    static const char *const on[] = {
        "{tensor: 2, data: 4, stages: [{on: a}, {on: b}, {on: b}, {on: c}]}",
        "{tensor: 2, data: 4, stages: [{layers: 1, on: c}, {layers: 3, on: b}, {layers: 2, on: a}, {layers: 2, on: b}]}",
        "{data: 8, stages: [{on: [a, a, a, a, b, b, b, b]}, {on: [b, b, b, b, c, c, c, c]}]}",
        "{data: 4, zero: 1, stages: [{on: c}, {on: b}]}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(on); i++) {
        double first = seconds_of("", on[i], orders[0]);

        for (size_t k = 1; k < COUNT(orders); k++)
            if (fabs(seconds_of("", on[i], orders[k]) / first - 1) > 1e-12)
                fail_msg("%s: %.17g with %s, %.17g with %s", on[i], first, orders[0], seconds_of("", on[i], orders[k]),
                         orders[k]);
    }
}

/* Stages that say what the placement says anyway. */
static void stages_as_placed_change_nothing(void **state)
{
    (void)state;
    expect_near("stages", seconds_of("", "{tensor: 2, data: 8, stages: [{layers: 4, on: old}, {layers: 4, on: new}]}",
                                     two_kinds),
                seconds_of("", "{tensor: 2, pipeline: 2, data: 8, split: [4, 4]}", two_kinds), two_kinds);
}

/* stages_on: auto is the best of all orders that are written out. */
static void order_auto_is_the_best_of_all(void **state)
{
    static const char three[] = "{parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 2}, "
                                "{name: c, platform: dgx-1-v100, nodes: 1}]}";
    static const char *const parts[] = {"a", "b", "c"};
    double best = INFINITY;
    char text[256];

    (void)state;
    for (int i = 0; i < 81; i++) {
        int ranks[4] = {i / 27, i / 9 % 3, i / 3 % 3, i % 3}, counts[3] = {0};

        for (int p = 0; p < 4; p++)
            counts[ranks[p]]++;
        if (counts[0] > 1 || counts[1] > 2 || counts[2] > 1)
            continue;
        snprintf(text, sizeof text, "{tensor: 2, data: 4, stages: [{layers: 3, on: %s}, {layers: 3, on: %s}, {layers: 1, on: "
                 "%s}, {layers: 1, on: %s}]}", parts[ranks[0]], parts[ranks[1]], parts[ranks[2]], parts[ranks[3]]);
        best = fmin(best, seconds_of("", text, three));
    }
    expect_near("stages_on: auto", seconds_of("", "{tensor: 2, data: 4, pipeline: 4, split: [3, 3, 1, 1], stages_on: auto}",
                                              three), best, three);
}

/* Three nodes of V100 and one of T4, with the split to be found too: the best of all orders and all divisions. The order
 * that is best with even stages is another one. */
static void order_and_split_auto_are_the_best_of_all(void **state)
{
    static const char text[] =
        "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 51200}}\n"
        "batch: {micro: 2, micro_batches: 8}\nsimulation: {engine: fast}\nmemory: {enforce: false}\nstrategy: %s\n"
        "cluster: {parts: [{name: a, platform: dgx-1-v100, nodes: 3, gpus_per_node: 4, network: {bandwidth: 10 Gb/s, nics: 1, "
        "latency: 50 us}, communication: nccl-socket}, {name: b, platform: pcie-10gbe, nodes: 1, gpus_per_node: 4, gpu: t4, "
        "network: {latency: 50 us}, communication: nccl-socket}]}\n";
    struct simulated found;
    double best = INFINITY;

    (void)state;
    run_text(&found, text, "{tensor: 4, pipeline: 4, data: 1, split: auto, stages_on: auto}");
    for (int slow = 0; slow < 4; slow++)
        for (int layers = 0; layers < 8 * 8 * 8; layers++) {
            int split[] = {layers / 64, layers / 8 % 8, layers % 8, 8 - layers / 64 - layers / 8 % 8 - layers % 8};
            char strategy[256];
            const char *set[] = {strategy};

            if (!split[1] || !split[2] || split[3] < 0)
                continue;
            snprintf(strategy, sizeof strategy, "strategy={tensor: 4, pipeline: 4, data: 1, split: [%d, %d, %d, %d], stages: "
                     "[{on: %c}, {on: %c}, {on: %c}, {on: %c}]}", split[0], split[1], split[2], split[3], "ab"[slow == 0],
                     "ab"[slow == 1], "ab"[slow == 2], "ab"[slow == 3]);
            best = fmin(best, varied_seconds(&found.scenario, set, 1, NULL));
        }
    expect_near("stages_on and split: auto", found.run.metrics.iteration_time, best, text);
    simulated_release(&found);
}

static double seconds_on(enum engine engine, const char *strategy, const char *cluster, const char *more)
{
    struct simulated simulated;
    struct error err = {0};
    double seconds;

    simulated_load(&simulated, shape, more, strategy, cluster);
    simulated.scenario.simulation.engine = (int)engine;
    if (simulated_run(&simulated, &err))
        fail_at(strategy, &err);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

/* A link between two parts: as all engines say, whatever is folded; of so much bandwidth it changes nothing, and a send
 * takes its latency and its bytes. */
static void links_between_parts(void **state)
{
    static const char parts[] = "{parts: [{name: a, platform: dgx-a100, nodes: 2}, {name: b, platform: dgx-a100, nodes: 2}]%s}";
    static const char *const strategy[] = {"{data: 32}", "{tensor: 2, pipeline: 4, data: 4}", "{data: 32, zero: 3}"};
    char narrow[512], wide[512], none[512];

    (void)state;
    snprintf(narrow, sizeof narrow, parts, ", between: {b-a: {bandwidth: 40 Gb/s, latency: 2 ms}}");
    snprintf(wide, sizeof wide, parts, ", between: {a-b: {bandwidth: 1000 TB/s}}");
    snprintf(none, sizeof none, parts, "");
    for (size_t i = 0; i < COUNT(strategy); i++) {
        double seconds = seconds_on(ENGINE_FAST, strategy[i], narrow, "");
        double all = seconds_on(ENGINE_FAST, strategy[i], narrow, ", fold: off, collectives: messages");

        expect_near("simgrid", seconds_on(ENGINE_SIMGRID, strategy[i], narrow, ""), seconds, strategy[i]);
        expect_near("folded", seconds_on(ENGINE_FAST, strategy[i], narrow, ", collectives: messages"), all, strategy[i]);
        assert_true(seconds > 1.05 * seconds_on(ENGINE_FAST, strategy[i], none, ""));
        expect_near("wide", seconds_on(ENGINE_FAST, strategy[i], wide, ", collectives: messages, fold: off"),
                    seconds_on(ENGINE_FAST, strategy[i], none, ", collectives: messages, fold: off"), strategy[i]);
    }
}

/* All that crosses goes through the one link: two GPUs of each part, no communication else. */
static void a_send_between_parts_takes_its_bytes(void **state)
{
    struct simulated simulated;

    (void)state;
    run_text(&simulated, "model: {stages: {forward: 1 s, backward: 1 s, boundary: 10 GB}}\nbatch: {micro_batches: 1}\n"
             "strategy: {schedule: gpipe, pipeline: 2}\nsimulation: {engine: fast}\n"
             "cluster: {parts: [{name: a, gpus_per_node: 1, nodes: 1}, {name: b, gpus_per_node: 1, nodes: 1}], network: "
             "{bandwidth: 100 GB/s, latency: 1 ms}, between: {a-b: {bandwidth: 2 GB/s, latency: 0.25 s}}}\n");
    expect_near("iteration", simulated.run.metrics.iteration_time, 4 + 2 * (5 + 0.25), simulated.text);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_parts_are_one_cluster), cmocka_unit_test(a_slower_part_is_stragglers),
        cmocka_unit_test(a_dump_reads_back), cmocka_unit_test(memory_and_peaks_are_of_each_part),
        cmocka_unit_test(stages_of_a_kind_fold), cmocka_unit_test(split_auto_is_the_best_of_all),
        cmocka_unit_test(engines_agree), cmocka_unit_test(order_of_parts_does_not_matter),
        cmocka_unit_test(stages_as_placed_change_nothing), cmocka_unit_test(order_auto_is_the_best_of_all),
        cmocka_unit_test(order_and_split_auto_are_the_best_of_all),
        cmocka_unit_test(links_between_parts), cmocka_unit_test(a_send_between_parts_takes_its_bytes),
    };

    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
