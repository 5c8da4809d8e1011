/* changes: what a person could try, as lines that a scenario takes. */
#include "simulated.h"

#include "explain/changes.h"

static const char text[] =
    "model: {transformer: {layers: 16, hidden: 1024, heads: 16, sequence: 512, vocabulary: %d, tied: false}}\n"
    "cluster: {platform: dgx-a100, nodes: 1}\n"
    "batch: {micro_batches: 8}\nstrategy: {schedule: %s, pipeline: 4, data: 2}\nmemory: {enforce: false, recompute: full}\n";

static struct changes asked(struct arena *arena, struct error *err, change_list *list, struct simulated *simulated)
{
    struct changes changes = {.arena = arena, .err = err};

    list(&changes, simulated_workload(simulated));
    return changes;
}

/* The time of an iteration with these lines. */
static double time_with(const struct simulated *simulated, const char *lines)
{
    struct scenario varied;
    struct workload workload;
    struct error err = {0};
    struct run run = {0};
    double time;

    if (scenario_vary(&simulated->scenario, &lines, 1, &varied, &err) || workload_init(&workload, &varied, &err) ||
        simulate(&workload, simulate_options_of(&varied), &run, &err))
        fail_msg("%s: %s", lines, err.messages[0].text);
    time = run.metrics.iteration_time;
    run_release(&run);
    workload_release(&workload);
    scenario_release(&varied);
    return time;
}

/* Blocks leave the last stage, which also has the output layer. Their number stays the same in all, and the iteration
 * is shorter. */
static void split(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct simulated simulated;
    struct changes changes;
    int layers[4], end = 0;

    (void)state;
    simulated_load(&simulated, text, 150000, "1f1b");
    changes = asked(&arena, &err, changes_of_split, &simulated);
    assert_int_equal(changes.count, 1);
    assert_int_equal(sscanf(changes.items[0], "strategy.split=[%d, %d, %d, %d]%n", &layers[0], &layers[1], &layers[2],
                            &layers[3], &end), 4);
    assert_true(end && !changes.items[0][end]);
    assert_int_equal(layers[0] + layers[1] + layers[2] + layers[3], 16);
    assert_true(layers[3] < 4 && layers[0] >= 4);
    assert_true(time_with(&simulated, changes.items[0]) < time_with(&simulated, "costs.speed=1"));
    simulated_release(&simulated);
    arena_release(&arena);
}

static bool has(const struct changes *changes, const char *line)
{
    for (size_t i = 0; i < changes->count; i++)
        if (!strcmp(changes->items[i], line))
            return true;
    return false;
}

/* Schedules that go with the rest, and less recomputation; each runs. */
static void values(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct simulated simulated;
    struct changes schedules, recomputations;

    (void)state;
    simulated_load(&simulated, text, 1000, "gpipe");
    schedules = asked(&arena, &err, changes_of_schedule, &simulated);
    recomputations = asked(&arena, &err, changes_of_recomputation, &simulated);
    assert_true(has(&schedules, "strategy.schedule=1f1b"));
    assert_true(has(&schedules, "strategy.schedule=interleaved\nstrategy.chunks=2"));
    assert_true(has(&recomputations, "memory.recompute=none"));
    assert_true(time_with(&simulated, "memory.recompute=none") < time_with(&simulated, "costs.speed=1"));
    assert_int_equal(err.count, 0);
    simulated_release(&simulated);
    arena_release(&arena);
}

/* Twice the speed of kernels, and links of twice the bandwidth. */
static void twice(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct simulated simulated;
    struct scenario varied;
    struct changes gpu, links;
    const char *sets[8];
    size_t count = 0;

    (void)state;
    simulated_load(&simulated, text, 1000, "1f1b");
    gpu = asked(&arena, &err, changes_of_gpu, &simulated);
    links = asked(&arena, &err, changes_of_links, &simulated);
    assert_int_equal(gpu.count, 1);
    assert_string_equal(gpu.items[0], "costs.speed=2");
    assert_int_equal(links.count, 1);
    for (char *line = arena_strdup(&arena, links.items[0]); (sets[count] = strsep(&line, "\n")) && *sets[count];)
        assert_true(++count < COUNT(sets));
    assert_int_equal(scenario_vary(&simulated.scenario, sets, count, &varied, &err), 0);
    for (int inside = 0; inside < 2; inside++)
        assert_true(fabs(cluster_bandwidth(&varied.cluster, 0, inside) /
                         cluster_bandwidth(&simulated.scenario.cluster, 0, inside) - 2) < 1e-9);
    scenario_release(&varied);
    simulated_release(&simulated);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split), cmocka_unit_test(values), cmocka_unit_test(twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
