/* faster: a GPU whose kernels are faster never makes an iteration longer, whatever the schedule, cluster and software,
 * and where launches by the host bind. Transfers that share links are an exception: kernels that end sooner let other
 * transfers meet on a link, and the one for which all wait may be the one that is slower then. */
#include "random_scenario.h"
#include "trials.h"

enum { SCENARIOS = 400 };

/* By how much an iteration may be longer: rounding, or where transfers make each other slower. */
static const double ROUNDED = 1e-9, SHARED = 0.05;

/* s of the scenario's iteration on a GPU that is `speed` times as fast; NaN: the scenario is refused. */
static double time_at(const char *text, enum engine engine, double speed)
{
    struct simulate_options options = {.engine = engine, .numbers = true};
    struct simulated simulated = {0};
    struct error err = {0};
    double time = NAN;

    assert_true(asprintf(&simulated.text, "%scosts: {speed: %g}\n", text, speed) >= 0);
    if (!load_text(simulated.text, &simulated.scenario, &err) &&
        !workload_init(&simulated.workload, &simulated.scenario, &err) &&
        !simulate(&simulated.workload, options, &simulated.run, &err))
        time = simulated.run.metrics.iteration_time;
    error_release(&err);
    simulated_release(&simulated);
    return time;
}

static void expect_no_longer(double time, double before, double more, double faster, const char *text)
{
    if (!(time <= before * (1 + more)))
        fail_msg("%.17g s instead of at most %.17g s on a GPU %g times as fast:\n%s", time, before, faster, text);
}

/* Without contention, and with it. Returns whether the scenario runs. */
static bool compare(const char *text)
{
    static const double speeds[] = {1, 2, 4, 100};
    double ideal = time_at(text, ENGINE_IDEAL, speeds[0]), fast = time_at(text, ENGINE_FAST, speeds[0]);

    for (size_t i = 1; i < COUNT(speeds) && !isnan(ideal); i++) {
        double next_ideal = time_at(text, ENGINE_IDEAL, speeds[i]), next_fast = time_at(text, ENGINE_FAST, speeds[i]);
        double faster = speeds[i] / speeds[i - 1];
        bool shared = fast > ideal * (1 + ROUNDED) || next_fast > next_ideal * (1 + ROUNDED);

        expect_no_longer(next_ideal, ideal, ROUNDED, faster, text);
        expect_no_longer(next_fast, fast, shared ? SHARED : ROUNDED, faster, text);
        ideal = next_ideal;
        fast = next_fast;
    }
    return !isnan(ideal);
}

/* Small models in many pieces, whose kernels are shorter than their launches. */
static void test_launches(void **state)
{
    static const char *const strategies[] = {
        "tensor: 4", "tensor: 4, sequence_parallel: true", "tensor: 2, data: 2", "tensor: 4, pipeline: 2",
        "context: 4", "context: 2, tensor: 2", "data: 4, zero: 3", "tensor: 4, overlap_tensor: false",
        "tensor: 4, sequence_parallel: true, overlap_products: true",
    };

    (void)state;
    for (size_t i = 0; i < 3 * COUNT(strategies); i++) {
        const char *model = (const char *[]){"gpt2-355m", "gpt2-124m", "llama3-8b"}[i / COUNT(strategies)];
        char *text = NULL;

        assert_true(asprintf(&text, "model: {preset: %s}\ncluster: {platform: dgx-h100, nodes: 1}\n"
                             "batch: {micro_batches: 16}\nstrategy: {%s}\nmemory: {enforce: false}\n"
                             "software: %s\n", model,
                             strategies[i % COUNT(strategies)],
                             i % 2 ? "torchtitan" : "megatron-core") >= 0);
        assert_true(compare(text));
        free(text);
    }
}

static void test_scenarios(void **state)
{
    int ran = 0;

    (void)state;
    EACH_TRIAL(i, SCENARIOS) {
        uint64_t seed = i * 0xD1342543DE82EF95u;
        char *text = random_scenario(1, &seed);

        ran += compare(text);
        free(text);
    }
    print_message("%d of %d scenarios ran\n", ran, trials(SCENARIOS));
    assert_true(3 * ran > trials(SCENARIOS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches), cmocka_unit_test(test_scenarios)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
