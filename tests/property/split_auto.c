/* strategy.split: auto against all possible splits: none ends sooner. The demo has too many splits to try all: there it
 * is as fast as a schedule that places the output layer on the rank of the first stage (ZB-V). */
#include "base/cache.h"
#include "emit/emit.h"
#include "simulated.h"
#include "trials.h"

enum { STAGES = 4, LAYERS = 12 };

static struct cache cache;

/* s an iteration on engine fast; sets `layers`, unless it is NULL, to the layers of each stage. */
static double seconds_with(const struct scenario *scenario, const char *set, int *layers)
{
    return varied_seconds(scenario, &set, 1, layers);
}

/* The least time of all splits into four stages, of which the outer ones have `least` layers or more. */
static double best_of_all(const struct scenario *scenario, int layers, int least)
{
    double best = INFINITY;
    char set[96];

    for (int a = least; a <= layers; a++)
        for (int b = 1; a + b < layers; b++)
            for (int c = 1; a + b + c + least <= layers; c++) {
                snprintf(set, sizeof set, "strategy.split=[%d, %d, %d, %d]", a, b, c, layers - a - b - c);
                best = fmin(best, seconds_with(scenario, set, NULL));
            }
    return best;
}

static void expect_best(struct arena *arena, const char *text, int least)
{
    struct scenario scenario = {0};
    struct error err = {0};
    struct node *root;
    int split[STAGES];
    double found, best;

    assert_int_equal(conf_parse(arena, DTSIM_SOURCE_DIR "/scenarios/split.yaml", text, strlen(text), &root, &err), 0);
    assert_int_equal(scenario_read(arena, root, NULL, 0, "split", &scenario, &err), 0);
    found = seconds_with(&scenario, "strategy.split=auto", split);
    best = best_of_all(&scenario, LAYERS, least);
    print_message("[%d, %d, %d, %d] %.6g s, evenly %.6g s\n", split[0], split[1], split[2], split[3], found,
                  seconds_with(&scenario, "name=even", NULL));
    if (!(fabs(found - best) <= 1e-9 * best))
        fail_msg("split: auto takes %.12g s, the best split %.12g s:\n%s", found, best, text);
    scenario_release(&scenario);
}

/* Costs of 12 layers: alike, heavy at either end or both, rising, and at random. */
static double weight(int profile, int layer, uint64_t *seed)
{
    bool first = layer == 0, last = layer == LAYERS - 1;

    switch (profile) {
    case 0:
        return 1;
    case 1:
        return first || last ? 4 : 1;
    case 2:
        return last ? 3.5 : 1;
    case 3:
        return 1 + 0.3 * layer;
    default:
        return 1 + random_below(seed, 9);
    }
}

static void test_profiles(void **state)
{
    static const char *const schedules[] = {"1f1b", "gpipe", "zb-h1", "1f1b", "1f1b"};
    uint64_t seed = seed_from(4);

    (void)state;
    for (int profile = 0; profile < 5; profile++) {
        struct arena arena = {.cache = &cache};
        char *text;
        size_t size;
        FILE *out = text_open(&text, &size);

        fputs("model: {layers: [", out);
        for (int l = 0; l < LAYERS; l++) {
            double own = weight(profile, l, &seed);

            fprintf(out,
                    "%s{forward: %.17g ms, backward: %.17g ms, parameters: 1 M, activation: 1 MB, boundary: %d MB}",
                    l ? ", " : "", own, 2 * own, 1 + random_below(&seed, 9));
        }
        fprintf(out,
                "]}\ncluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 10 GB/s, latency: 5 us}}\n"
                "batch: {micro_batches: 6}\nstrategy: {schedule: %s, pipeline: 4}\nmemory: {precision: fp32}\n",
                schedules[profile]);
        text_close(out, &text);
        expect_best(&arena, text, 1);
        free(text);
        arena_release(&arena);
    }
}

/* How the iteration ends with these settings, by the whole simulation: s, and the bytes of the fullest GPU. */
struct ending { double seconds, peak; };
static struct ending ending_of(const struct scenario *scenario, const char *const *sets, size_t nsets)
{
    struct scenario varied = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    struct simulate_options options;
    struct ending ending;

    assert_int_equal(scenario_vary(scenario, sets, nsets, &varied, &err), 0);
    assert_int_equal(workload_init(&workload, &varied, &err), 0);
    options = simulate_numbers_of(&varied);
    options.engine = ENGINE_FAST;
    assert_int_equal(simulate(&workload, options, &run, &err), 0);
    ending = (struct ending){run.metrics.iteration_time, run.metrics.peak_memory};
    run_release(&run);
    workload_release(&workload);
    scenario_release(&varied);
    return ending;
}

/* Layers whose costs rise, so that the first stage should have most of them, while it keeps the activations of most
 * micro-batches: under each limit of memory the split is the fastest of those that fit. */
static void test_limits(void **state)
{
    enum { LIMITS = 8, MOST = 200 };
    struct arena arena = {.cache = &cache};
    struct scenario scenario = {0};
    struct error err = {0};
    struct ending all[MOST];
    struct node *root;
    char *text, set[96];
    size_t size, count = 0, fastest = 0, least = 0, other = 0;
    FILE *out = text_open(&text, &size);

    (void)state;
    fputs("model: {layers: [", out);
    for (int l = 0; l < LAYERS; l++)
        fprintf(out, "%s{forward: %.17g ms, backward: %.17g ms, parameters: 1 M, activation: 40 MB, boundary: 1 MB}",
                l ? ", " : "", 1 + 0.3 * l, 2 + 0.6 * l);
    fputs("]}\ncluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 10 GB/s, latency: 5 us}}\n"
          "batch: {micro_batches: 6}\nstrategy: {schedule: 1f1b, pipeline: 4}\nmemory: {precision: fp32}\n", out);
    text_close(out, &text);
    assert_int_equal(conf_parse(&arena, "limits.yaml", text, size, &root, &err), 0);
    assert_int_equal(scenario_read(&arena, root, NULL, 0, "limits", &scenario, &err), 0);
    for (int a = 1; a <= LAYERS; a++)
        for (int b = 1; a + b < LAYERS; b++)
            for (int c = 1; a + b + c < LAYERS; c++) {
                snprintf(set, sizeof set, "strategy.split=[%d, %d, %d, %d]", a, b, c, LAYERS - a - b - c);
                all[count] = ending_of(&scenario, (const char *[]){set}, 1);
                fastest = all[count].seconds < all[fastest].seconds ? count : fastest;
                least = all[count].peak < all[least].peak ? count : least;
                assert_true(++count < MOST);
            }
    for (int i = 0; i <= LIMITS; i++) {
        double limit = all[least].peak + (all[fastest].peak - all[least].peak) * i / LIMITS + 1, best = INFINITY;
        struct ending found;

        for (size_t k = 0; k < count; k++)
            best = all[k].peak <= limit ? fmin(best, all[k].seconds) : best;
        snprintf(set, sizeof set, "memory.limit=%.0f B", ceil(limit));
        found = ending_of(&scenario, (const char *[]){"strategy.split=auto", set}, 2);
        print_message("%s: %.6g s, %.6g B\n", set, found.seconds, found.peak);
        assert_true(found.peak <= ceil(limit));
        expect_near("the iteration", found.seconds, best, set);
        other += best > all[fastest].seconds * (1 + 1e-9);
    }
    assert_true(other >= 2);             /* limits that drop the fastest split */
    free(text);
    scenario_release(&scenario);
    arena_release(&arena);
}

/* The demo's network with 12 layers, on four GPUs: its output layer costs as much as several layers. */
static void test_short_demo(void **state)
{
    struct arena arena = {.cache = &cache};

    (void)state;
    expect_best(&arena,
                "model: {hf_config: models/gpt2-xl/config.json, with: {layers: 12}}\n"
                "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 16, micro: 2}\n"
                "strategy: {schedule: 1f1b, pipeline: 4, data: 1}\nsoftware: megatron-core\n",
                0);
    arena_release(&arena);
}

static void test_demo(void **state)
{
    struct scenario demo = {0};
    struct error err = {0};
    double found;

    (void)state;
    assert_int_equal(scenario_load(DTSIM_SOURCE_DIR "/scenarios/demo.yaml", NULL, 0, NULL, &demo, &err), 0);
    demo.arena.cache = &cache;
    found = seconds_with(&demo, "strategy.split=auto", NULL);
    assert_true(found < seconds_with(&demo, "strategy.schedule=zb-v", NULL));
    assert_true(found < 0.75 * seconds_with(&demo, "name=even", NULL));
    scenario_release(&demo);
}

/* A split is searched once, and it is the same with a cache and without one; another schedule has another split. */
static void test_remembered(void **state)
{
    struct scenario cached = {0}, plain = {0};
    struct error err = {0};
    int split[2][16];
    double found;

    (void)state;
    assert_int_equal(scenario_load(DTSIM_SOURCE_DIR "/scenarios/demo.yaml", NULL, 0, NULL, &cached, &err), 0);
    assert_int_equal(scenario_load(DTSIM_SOURCE_DIR "/scenarios/demo.yaml", NULL, 0, NULL, &plain, &err), 0);
    cached.arena.cache = &cache;
    found = seconds_with(&plain, "strategy.split=auto", split[0]);
    assert_true(fabs(seconds_with(&cached, "strategy.split=auto", split[1]) - found) < 1e-12);
    assert_memory_equal(split[0], split[1], sizeof split[0]);
    size_t hits = cache.found[CACHE_SPLIT], misses = cache.missed[CACHE_SPLIT];
    assert_true(fabs(seconds_with(&cached, "strategy.split=auto", split[1]) - found) < 1e-12);
    assert_memory_equal(split[0], split[1], sizeof split[0]);
    assert_int_equal(cache.found[CACHE_SPLIT], hits + 1);
    seconds_with(&cached, "strategy={pipeline: 16, split: auto, schedule: zb-h1}", split[1]);
    assert_int_equal(cache.missed[CACHE_SPLIT], misses + 1);
    scenario_release(&plain);
    scenario_release(&cached);
}

/* A framework is told the layers of each stage; Megatron-LM in a layout with the embedding and the output layer. */
static void test_emitted(void **state)
{
    const char *const sets[] = {"strategy.split=auto"};
    struct scenario demo = {0};
    struct error err = {0};
    char *text, *notes;
    size_t size;
    FILE *out = text_open(&text, &size), *remarks = text_open(&notes, &size);

    (void)state;
    assert_int_equal(scenario_load(DTSIM_SOURCE_DIR "/scenarios/demo.yaml", sets, 1, NULL, &demo, &err), 0);
    assert_int_equal(emitted_at(0)->emit(&demo, out, remarks, &err), 0);
    text_close(out, &text);
    text_close(remarks, &notes);
    assert_non_null(strstr(text, "--pipeline-model-parallel-layout 'Et*4|"));
    assert_non_null(strstr(text, "|t*3|L'"));
    free(text);
    free(notes);
    scenario_release(&demo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_profiles), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_short_demo),
                                       cmocka_unit_test(test_demo), cmocka_unit_test(test_remembered),
                                       cmocka_unit_test(test_emitted)};
    int failed;

    cache_init(&cache, CACHE_BYTES);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    cache_release(&cache);
    return failed;
}
