/* Rules that hold for every scenario, on scenarios that mix everything: real models and clusters, any schedule, ZeRO,
 * context and expert degrees, recomputation, offloading, adapters, frameworks. Whatever is refused must be refused with
 * a reason; all others keep the rules. */
#include "random_scenario.h"
#include "run/memory_advice.h"
#include "trials.h"

enum { SCENARIOS = 400, LEAST = 150 };   /* random scenarios; at least this number of them run */

/* What memory.tsv says that a rank holds of a kind is never less than nothing. */
static void expect_held(const struct run *run, const char *text)
{
    char *table = NULL, kind[32], *line;
    size_t size;
    FILE *out = open_memstream(&table, &size);

    memory_write(run, out);
    fclose(out);
    for (char *rest = strchr(table, '\n') + 1; (line = strsep(&rest, "\n")) && *line;) {
        double t, bytes;
        int rank;

        assert_int_equal(sscanf(line, "%d %lf %31s %lf", &rank, &t, kind, &bytes), 4);
        if (bytes < -1e-3)
            fail_msg("rank %d holds %g B of %s at %g s in\n%s", rank, bytes, kind, t, text);
    }
    free(table);
}

static void expect_shares(const struct metrics *metrics, const char *text)
{
    double sum = 0;

    for (int account = 0; account < ACCOUNT_KIND_COUNT; account++) {
        sum += metrics->seconds[account];
        if (metrics->seconds[account] < -1e-9 * metrics->iteration_time)
            fail_msg("%d takes %g s in\n%s", account, metrics->seconds[account], text);
    }
    expect_near("sum of the breakdown", sum, metrics->iteration_time, text);
}

static void expect_rules(struct simulated *simulated)
{
    const struct metrics *metrics = &simulated->run.metrics;
    const char *text = simulated->text;
    struct run memory = {0};
    struct error err = {0};
    size_t met;
    double difference;

    expect_shares(metrics, text);
    expect_held(&simulated->run, text);
    if (metrics->hardware_flop < metrics->model_flop * (1 - 1e-9))
        fail_msg("GPUs compute %g FLOP, less than the %g that the model needs, in\n%s", metrics->hardware_flop,
                 metrics->model_flop, text);
    if (simulate(&simulated->workload, memory_options_of(&simulated->scenario), &memory, &err))
        fail_at(text, &err);
    expect_near("peak memory without the network", memory.metrics.peak_memory, metrics->peak_memory, text);
    run_release(&memory);
    if (simulated->run.lowered.program.ops.count > 5000)
        return;
    if (run_verify(&simulated->run, ENGINE_SIMGRID, &difference, &met, &err))
        fail_at(text, &err);
    if (difference > 1e-9)
        fail_msg("on simgrid starts and ends differ by %g of the iteration in\n%s", difference, text);
}

static void test_rules(void **state)
{
    uint64_t seed = seed_from(20261123);
    int ran = 0;

    (void)state;
    for (int i = 0; i < trials(SCENARIOS); i++) {
        struct simulated simulated = {.text = random_scenario(1, &seed)};
        struct error err = {0};

        if (!load_text(simulated.text, &simulated.scenario, &err) && !simulated_run(&simulated, &err)) {
            expect_rules(&simulated);
            ran++;
        } else if (!err.count) {
            fail_msg("refused without a reason:\n%s", simulated.text);
        }
        error_release(&err);
        simulated_release(&simulated);
    }
    assert_true(ran >= trials(LEAST));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
