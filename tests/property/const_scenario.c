/* A scenario is read once and never changes: whatever is asked of it, it stays the same, byte for byte. */
#include "results/comparison.h"
#include "run/memory_advice.h"
#include "simulated.h"

/* What a person reads of it. */
static char *dump_text(const struct scenario *scenario)
{
    struct arena arena = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    node_print(scenario_dump(&arena, scenario), out);
    fclose(out);
    arena_release(&arena);
    return text;
}

/* All that `dtsim show` prints of a workload. */
static void show_all(const struct workload *workload, struct error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    figure_print(workload, out, err);
    grid_print(workload, out, err);
    orders_print(workload, out);
    groups_print(workload->scenario, out);
    fclose(out);
    free(text);
}

static void simulate_all(const struct workload *workload, struct error *err)
{
    for (int k = 0; k < 8; k++) {
        struct simulate_options options = {
            .engine = k & 1 ? ENGINE_IDEAL : ENGINE_SIMGRID, .what = k & 2 ? LOWER_COMPUTE : LOWER_ITERATION,
            .free_network = k & 4,
        };
        struct run run;

        if (!simulate_advised(workload, options, &run, err) && options.what == LOWER_ITERATION)
            json_decref(result_json(&run));
        run_release(&run);
    }
}

static void ask_all(const struct scenario *scenario, struct error *err)
{
    struct comparison comparison;
    struct workload workload;
    bool fits;

    if (!workload_init_advised(&workload, scenario, err)) {
        simulate_all(&workload, err);
        show_all(&workload, err);
    }
    workload_release(&workload);
    comparison_init(&comparison, scenario->name, scenario, NULL, err);
    comparison_release(&comparison);
    memory_fits_micro(scenario, 2 * scenario->batch.micro, &fits, err);
}

/* Schedules whose order depends on times, plans of layers that fit and that do not, advice, several versions of
 * weights, jitter, compression. */
static void test_unchanged(void **state)
{
    static const struct { const char *strategy, *rest; } cases[] = {
        {"pipeline: 2, data: 1, schedule: zb-h2", "costs: {gpu: roofline}\n"},
        {"pipeline: 2, data: 2, schedule: zb-v", ""},
        {"data: 4, zero: 3", "memory: {recompute: optimal, limit: 3 GB}\n"},
        {"data: 4, zero: 1", "memory: {recompute: optimal, limit: 100 MB}\n"},
        {"data: 4", "memory: {limit: 2 GB}\n"},
        {"pipeline: 2, data: 2, schedule: pipedream-2bw", "simulation: {jitter: 0.1}\n"},
        {"tensor: 2, data: 2, compression: powersgd, sequence_parallel: true", "memory: {recompute: full}\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        struct scenario before;
        struct error err = {0};
        char *text[2];

        simulated_load(&simulated, "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 512, "
                       "vocabulary: 8192}}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                       "batch: {micro: 4, micro_batches: 4}\nstrategy: {%s}\n%s", cases[i].strategy, cases[i].rest);
        text[0] = dump_text(&simulated.scenario);
        memcpy(&before, &simulated.scenario, sizeof before);
        ask_all(&simulated.scenario, &err);
        text[1] = dump_text(&simulated.scenario);
        assert_string_equal(text[0], text[1]);
        if (memcmp(&before, &simulated.scenario, sizeof before))
            fail_msg("what was asked of it changed\n%s", simulated.text);
        for (int k = 0; k < 2; k++)
            free(text[k]);
        error_release(&err);
        simulated_release(&simulated);
    }
}

/* What is varied is another scenario: the first one stays as it was written, and so does what follows from it. */
static void test_vary(void **state)
{
    static const char *const sets[] = {"batch.micro=2", "strategy.zero=3", "memory.recompute=full"};
    static const char *const wrong[] = {"strategy.zero=4"};
    struct simulated simulated;
    struct scenario varied;
    struct error err = {0};
    char *before, *after;

    (void)state;
    simulated_load(&simulated, "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                   "batch: {micro: 1, micro_batches: 4}\n");
    before = dump_text(&simulated.scenario);
    assert_int_equal(scenario_vary(&simulated.scenario, sets, COUNT(sets), &varied, &err), 0);
    assert_int_equal(varied.batch.micro, 2);
    assert_int_equal(varied.batch.global, 2 * simulated.scenario.batch.global);
    assert_int_equal(varied.parallelism.zero, 3);
    assert_true(varied.plan.recompute && !simulated.scenario.plan.recompute);
    assert_string_equal(varied.name, simulated.scenario.name);
    scenario_release(&varied);
    assert_int_equal(scenario_vary(&simulated.scenario, wrong, 1, &varied, &err), -1);
    assert_string_equal(err.messages[0].loc.file, "--set strategy.zero=4");
    scenario_release(&varied);
    assert_int_equal(scenario_vary(&simulated.scenario, NULL, 0, &varied, &err), 0);
    after = dump_text(&varied);
    assert_string_equal(before, after);
    scenario_release(&varied);
    free(before);
    free(after);
    error_release(&err);
    simulated_release(&simulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unchanged), cmocka_unit_test(test_vary)};

    return cmocka_run_group_tests_name("const_scenario", tests, NULL, NULL);
}
