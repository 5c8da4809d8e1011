/* What plans of layers come to, as replayed: recompute: optimal is never slower than full or selective that fit within
 * the same limit; offload: activations and tensors never slower than without; and more memory is never slower, by steps of
 * 0.03 to 10 %. Random transformers, clusters and schedules, with 65 to 95 % of the memory that keeping everything takes.
 *
 *     test_planned_memory [CASES SWEEPS]       without them a sample of 1,229 and 800 (tests/support/trials.h) */
#include "base/cache.h"
#include "random_plan.h"
#include "simulated.h"
#include "trials.h"

enum { CASES = 1229, SWEEPS = 800, STEPS = 9 };

static struct cache cache;
static int cases, sweeps;

/* A model on a cluster that may copy to its hosts, without `memory`; as YAML. */
static char *random_case(uint64_t *seed)
{
    static const char *const platforms[] = {"l40s-pcie", "alps", "dgx-a100", "dgx-h100", "dgx-1-v100", "pcie-25gbe"};
    const char *schedule = PICK(seed, "gpipe", "1f1b", "1f1b", "interleaved");
    int pipeline = PICK_INT(seed, 1, 2, 4), chunks = strcmp(schedule, "interleaved") || pipeline == 1 ? 1 : 2;
    int hidden = PICK_INT(seed, 1024, 2048, 4096), data = PICK_INT(seed, 1, 2), tensor = PICK_INT(seed, 1, 1, 2);
    int layers = pipeline * chunks * PICK_INT(seed, 2, 3, 4), micro = PICK_INT(seed, 1, 2, 4);
    char *text = NULL;

    assert_true(asprintf(&text,
        "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 32000, dropout: 0, mlp: %s}}\n"
        "cluster: {platform: %s, nodes: 0, host: {bandwidth: %d GB/s, latency: 10 us, memory: 4 TB, update: 1 B}}\n"
        "batch: {micro_batches: %d, micro: %d}\n"
        "strategy: {schedule: %s, pipeline: %d, data: %d, tensor: %d, zero: %d}\n"
        "software: %s\nsimulation: {engine: fast}\nmemory: {precision: mixed-bf16",
        layers, hidden, hidden / 128, PICK_INT(seed, 2048, 4096), PICK(seed, "gelu", "swiglu"),
        platforms[random_below(seed, (int)COUNT(platforms))], PICK_INT(seed, 8, 16, 25, 60, 200),
        pipeline * PICK_INT(seed, 1, 2, 4), micro,
        chunks == 1 && !strcmp(schedule, "interleaved") ? "1f1b" : schedule, pipeline, data, tensor,
        PICK_INT(seed, 0, 0, 1, 3), PICK(seed, "none", "megatron-core")) >= 0);
    return text;
}

/* How an iteration with these keys of `memory` ends. */
struct ending { double seconds, peak; };         /* INFINITY s: it does not fit, or cannot be */

static struct ending end_of(const char *text, const char *memory, double limit)
{
    struct simulated one = {0};
    struct error err = {0};
    struct ending end = {INFINITY, NAN};
    char *whole = NULL;

    assert_true(asprintf(&whole, isinf(limit) ? "%s, %s, enforce: false}\n" : "%s, %s, limit: %.0f B}\n", text, memory,
                         limit) >= 0);
    if (!load_text(whole, &one.scenario, &err)) {
        one.scenario.arena.cache = &cache;
        if (!workload_init(&one.workload, &one.scenario, &err) &&
            !simulate(&one.workload, simulate_options_of(&one.scenario), &one.run, &err)) {
            end = (struct ending){one.run.metrics.iteration_time, one.run.metrics.peak_memory};
            if (isfinite(limit) && end.peak > limit)
                end.seconds = INFINITY;
        }
    }
    free(whole);
    simulated_release(&one);
    error_release(&err);
    cache_renew(&cache);
    return end;
}

static void test_never_slower(void **state)
{
    static const char *const offloads[] = {"activations", "activations", "tensors"};
    int planned = 0, moving = 0, slower = 0;

    (void)state;
    for (int i = 1; i <= cases; i++) {
        uint64_t seed = seed_from((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
        char *text = random_case(&seed), memory[96];
        const char *offload = offloads[random_below(&seed, (int)COUNT(offloads))];
        struct ending all = end_of(text, "recompute: none", INFINITY);
        double limit = (0.65 + 0.3 * random_below(&seed, 1000) / 1000) * all.peak;
        double plain = fmin(end_of(text, "recompute: full", limit).seconds, end_of(text, "recompute: selective", limit).seconds);
        double optimal = end_of(text, "recompute: optimal", limit).seconds;

        snprintf(memory, sizeof memory, "recompute: optimal, offload: %s", offload);
        double moves = end_of(text, memory, limit).seconds;
        if (optimal > plain * (1 + 1e-9) || moves > fmin(plain, optimal) * (1 + 1e-9)) {
            print_message("%d, %.0f B: full or selective %.6g s, optimal %.6g s, with %s on the host %.6g s:\n%s\n", i, limit,
                          plain, optimal, offload, moves, text);
            slower++;
        }
        planned += isfinite(optimal) && optimal < plain * 0.999;
        moving += isfinite(moves) && moves < optimal * 0.999;
        free(text);
    }
    print_message("%d cases: optimal faster than full and selective in %d, faster still with offloading in %d, slower %d\n",
                  cases, planned, moving, slower);
    assert_int_equal(slower, 0);
    assert_true(planned > cases / 8 && moving > 0);
}

static void test_memory_helps(void **state)
{
    static const char *const policies[] = {
        "recompute: optimal", "recompute: optimal, offload: activations", "recompute: none, offload: activations",
        "recompute: none, offload: tensors", "recompute: optimal, offload: tensors",
    };
    static const double steps_of[] = {0.0003, 0.001, 0.004, 0.015, 0.03, 0.06, 0.1};
    int slower = 0, steps = 0;

    (void)state;
    for (int i = 1; i <= sweeps; i++) {
        uint64_t seed = seed_from((uint64_t)(i + 100000) * UINT64_C(0x9e3779b97f4a7c15));
        char *text = random_case(&seed);
        const char *policy = policies[random_below(&seed, (int)COUNT(policies))];
        struct ending all = end_of(text, "recompute: none", INFINITY);
        double before = INFINITY, share = 0.5 + 0.01 * random_below(&seed, 10), last = 0;
        bool worse = false;

        for (int step = 0; step < STEPS; step++, share += steps_of[random_below(&seed, (int)COUNT(steps_of))]) {
            double limit = share * all.peak, seconds = end_of(text, policy, limit).seconds;

            if (seconds > before * (1 + 1e-9)) {
                print_message("%d, %s: %.0f B %.9g s, %.0f B %.9g s:\n%s\n", i, policy, last, before, limit, seconds, text);
                worse = true;
            }
            steps += seconds < before;
            before = seconds;
            last = limit;
        }
        slower += worse;
        free(text);
    }
    print_message("%d sweeps: %d steps are faster than the one before, in %d a larger limit is slower\n", sweeps, steps,
                  slower);
    assert_int_equal(slower, 0);
    assert_true(steps > sweeps);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_slower), cmocka_unit_test(test_memory_helps)};
    int rc;

    cases = argc > 1 ? atoi(argv[1]) : few_or(60, CASES);
    sweeps = argc > 2 ? atoi(argv[2]) : few_or(40, SWEEPS);
    cache_init(&cache, CACHE_BYTES);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    cache_release(&cache);
    return rc;
}
