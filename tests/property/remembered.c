/* The cache changes no result: every key of some scenarios is varied. Variations are simulated in random order in this
 * process: with one cache for all, with a cache that holds next to nothing, and with none. Their rows are the same
 * bytes. And a process does not grow, however many scenarios it simulates.
 *
 *     test_remembered [TIMES]      number of scenarios; without it 1,000, or a quarter (trials.h) */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <cmocka.h>

#include "base/cache.h"
#include "base/random.h"
#include "report/outcome.h"
#include "trials.h"
#include "variations.h"

static size_t times;

/* What is remembered differs by what they exchange and plan. */
#define SMALL "simulation: {engine: fast}\n"
static const char *const bases[] = {
    "model: {preset: gpt2-355m}\ncluster: {platform: dgx-a100, nodes: 2}\nbatch: {global: 64}\n"
    "strategy: {tensor: 2, pipeline: 2, schedule: 1f1b, zero: 1}\nmemory: {recompute: selective}\n" SMALL,
    "model: {preset: gpt2-355m}\ncluster: {platform: dgx-h100, nodes: 2, network: {topology: {leaf_nodes: 1, "
    "oversubscription: 2}}}\nbatch: {global: 32}\nstrategy: {zero: 3}\n" SMALL,
    "model: {preset: gpt2-124m}\ncluster: {platform: dgx-1-v100, nodes: 1}\nbatch: {global: 32, micro: 2}\n"
    "strategy: {pipeline: 4, schedule: 1f1b}\nmemory: {recompute: none, offload: activations}\n" SMALL,
    "model: {preset: gpt2-124m}\ncluster: {platform: dgx-1-v100, nodes: 1}\nbatch: {global: 32, micro: 2}\n"
    "strategy: {pipeline: 2, schedule: 1f1b}\nmemory: {recompute: none, offload: tensors, limit: 5 GB}\n" SMALL,
    "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 32, micro: 2}\n"
    "strategy: {tensor: 2, sequence_parallel: true, pipeline: 2, schedule: interleaved, chunks: 2}\n"
    "memory: {recompute: optimal, limit: 6 GB}\n" SMALL,
    "model: {preset: mixtral-8x7b, sequence: 512}\ncluster: {platform: dgx-h100, nodes: 2}\nbatch: {global: 16}\n"
    "strategy: {tensor: 2, expert: 4, pipeline: 2, schedule: 1f1b, zero: 1}\nmemory: {enforce: false}\n" SMALL,
    "model: {preset: gpt2-355m}\ncluster: {platform: pcie-25gbe, nodes: 4}\nbatch: {global: 16}\n"
    "strategy: {context: 2, data_parallel: synchronous}\n" SMALL,
    "model: {stages: {forward: 1 s, backward: 2 s, parameters: 10 M, boundary: 1 MB, activation: 1 GB}}\n"
    "cluster: {nodes: 4, gpus_per_node: 2, inside: {bandwidth: 100 GB/s, latency: 1 us},\n"
    "          network: {bandwidth: 10 GB/s, latency: 5 us}}\n"
    "batch: {micro_batches: 4}\nstrategy: {pipeline: 4, schedule: zb-h1, data: 2}\n"
    "simulation: {engine: fast, jitter: 0.02, repeat: 3, stragglers: [{gpu: 1, slower: 1.5}]}\n",
    "model: {preset: gpt2-124m}\ncluster: {platform: pcie-10gbe, nodes: 4, gpus_per_node: 2}\n"
    "batch: {global: 16}\nstrategy: {zero: 1}\n"
    "simulation: {engine: fast, collectives: measured, slow_links: [{node: 1, nic: 0, share: 0.5}]}\n",
    "model: {preset: gpt2-124m}\ncluster: {parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, "
    "nodes: 1, slower: 1.2}], between: {a-b: {bandwidth: 50 GB/s}}}\nbatch: {global: 32}\n"
    "strategy: {tensor: 2, pipeline: 2, stages_on: auto}\n" SMALL,
};

/* A scenario: a base, and what changes it; NULL: nothing. */
struct case_of { const char *base, *set; };
struct cases { struct case_of *items; size_t count, capacity; };

static int read_case(const struct case_of *one, struct cache *cache, struct scenario *scenario, struct error *err)
{
    struct arena arena = {.cache = cache};
    struct node *root;

    assert_int_equal(conf_parse(&arena, "base.yaml", one->base, strlen(one->base), &root, err), 0);
    return scenario_read(&arena, root, &one->set, one->set != NULL, "base", scenario, err);
}

/* The row of a scenario that is read with this cache or with none. */
static char *row_of(const struct case_of *one, struct cache *cache)
{
    struct scenario scenario = {0};
    struct error err = {0};
    json_t *row = json_object();
    char *text;

    if (read_case(one, cache, &scenario, &err))
        outcome_refused(row, &err);
    else
        assert_int_equal(outcome_simulate(row, &scenario, NULL, &err), 0);
    text = json_dumps(row, JSON_COMPACT);
    json_decref(row);
    error_release(&err);
    scenario_release(&scenario);
    return text;
}

static struct cases all_cases(void)
{
    struct cases cases = {0};

    for (size_t b = 0; b < COUNT(bases); b++) {
        const struct case_of plain = {bases[b], NULL};
        struct scenario scenario = {0};
        struct error err = {0};
        struct variations variations;

        if (read_case(&plain, NULL, &scenario, &err))
            fail_msg("%s", err.messages[0].text);
        variations = variations_of(&scenario);
        assert_true(variations.count > 100);
        *GROW(&cases) = plain;
        for (size_t i = 0; i < variations.count; i++)
            *GROW(&cases) = (struct case_of){bases[b], variations.items[i]};
        free(variations.items);
        scenario_release(&scenario);
    }
    return cases;
}

static void free_cases(struct cases *cases)
{
    for (size_t i = 0; i < cases->count; i++)
        free((char *)(uintptr_t)cases->items[i].set);
    free(cases->items);
}

static struct case_of draw(const struct cases *cases, uint64_t seed, uint64_t index)
{
    return cases->items[random_bits(seed, index) % cases->count];
}

static void test_same(void **state)
{
    enum { LITTLE = 30000 };
    struct cases cases = all_cases();
    struct cache cache, little;
    const uint64_t seed = seed_from(1);
    size_t simulated = 0, emptied = 0;

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    cache_init(&little, LITTLE);
    for (size_t i = 0; i < times; i++) {
        struct case_of one = draw(&cases, seed, i);

        cache.files_stay = i % 2;
        char *plain = row_of(&one, NULL), *warm = row_of(&one, &cache), *hardly = row_of(&one, &little);

        if (strcmp(warm, plain) || strcmp(hardly, plain))
            fail_msg("%s%s:\n%s\nwith a cache\n%s\nwith a small one\n%s", one.base, one.set, plain, warm, hardly);
        simulated += strstr(plain, "\"status\":\"ok\"") != NULL;
        emptied += little.refused;
        cache_renew(&little);
        free(plain);
        free(warm);
        free(hardly);
    }
    for (int kind = 0; kind < CACHE_KINDS; kind++)       /* these are of one scenario alone: split_auto.c,
                                                            parts.c, planned_memory.c; or of plan */
        if (kind != CACHE_SPLIT && kind != CACHE_ORDER && kind != CACHE_SHARES && kind != CACHE_MEMORY &&
            kind != CACHE_TOPOLOGY && kind != CACHE_COUNTS &&
            cache.found[kind] < times / 10)
            fail_msg("of kind %d only %zu were found, %zu were not", kind, cache.found[kind], cache.missed[kind]);
    print_message("%zu scenarios, %zu simulated; the small cache was emptied %zu times\n", times, simulated, emptied);
    assert_true(simulated > times / 5 && emptied > times / 5);
    cache_release(&cache);
    cache_release(&little);
    free_cases(&cases);
}

/* Bytes that the process holds after the scenarios. */
static size_t held_after(const struct cases *cases, size_t count, struct cache *cache)
{
    const uint64_t seed = seed_from(7);

    for (size_t i = 0; i < count; i++) {
        struct case_of one = draw(cases, seed, i);

        free(row_of(&one, cache));
    }
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static void test_no_growth(void **state)
{
    struct cases cases = all_cases();
    struct cache cache;
    enum { NOISE = 64 << 10 };                   /* that malloc keeps for itself */
    size_t first, second, bytes;

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    held_after(&cases, times / 3, &cache);
    bytes = cache.bytes;
    first = held_after(&cases, times / 3, &cache);
    second = held_after(&cases, times / 3, &cache);
    assert_int_equal(cache.bytes, bytes);        /* all was known */
    assert_true(bytes < 64 << 20);
    if (second > first + NOISE)
        fail_msg("%zu bytes are held, and after the same scenarios a second time %zu", first, second);
    cache_release(&cache);
    free_cases(&cases);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_no_growth)};

    times = argc > 1 ? (size_t)atol(argv[1]) : (size_t)trials(1000);
    return cmocka_run_group_tests_name("remembered", tests, NULL, NULL);
}
