/* Choices of planners for scenarios: each planner has a choice that this simulator runs, and the settings of a choice
 * give its numbers. */
#include "simulated.h"

#include "base/cache.h"
#include "planners/choice.h"

static const char *const models[] = {
    "model: {preset: gpt2-355m}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 64, micro: 4}\n"
    "software: megatron-core\n",
    "model: {layers: [{forward: 1 ms, backward: 2 ms, parameters: 1 M, activation: 9 MB, boundary: 1 MB},\n"
    "                 {forward: 2 ms, backward: 4 ms, parameters: 8 M, activation: 9 MB, boundary: 1 MB},\n"
    "                 {forward: 1 ms, backward: 3 ms, parameters: 2 M, activation: 9 MB, boundary: 2 MB},\n"
    "                 {forward: 1 ms, backward: 1 ms, parameters: 90 M, activation: 1 MB, boundary: 0 B}]}\n"
    "cluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 10 GB/s, latency: 1 us}}\nbatch: {global: 32, micro: "
    "1}\nmemory: {precision: fp32}\n",
    "model: {preset: gpt2-355m}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 64, micro: 2}\n"
    "strategy: {tensor: 2}\n",
};

static void load(struct arena *arena, const char *text, struct scenario *scenario)
{
    struct error err = {0};
    struct node *root;

    assert_int_equal(conf_parse(arena, "choices", text, strlen(text), &root, &err), 0);
    assert_int_equal(scenario_read(arena, root, NULL, 0, "choices", scenario, &err), 0);
}

static void check_method(const struct scenario *scenario, const struct planner_method *method)
{
    struct planner_choices choices = {0};
    struct error err = {0};
    size_t run = 0;

    assert_int_equal(planners_choose(scenario, method->name, &choices, &err), 0);
    for (size_t i = 0; i < choices.count; i++) {
        const struct planner_choice *choice = &choices.items[i];

        assert_string_equal(choice->method, method->name);
        assert_true(choice->objective > 0);
        if (!choice->nsets) {
            assert_non_null(choice->reason);
            continue;
        }
        if (choice->reason)
            fail_msg("%s: %s", method->name, choice->reason);
        assert_true(choice->gpus <= cluster_gpus(&scenario->cluster));
        if (fabs(varied_seconds(scenario, choice->sets, choice->nsets, NULL) - choice->seconds) > 1e-12)
            fail_msg("%s: %.12g s", method->name, choice->seconds);
        run++;
    }
    if (!run)
        fail_msg("%s: no choice is simulated", method->name);
    planners_release(&choices);
}

static void test_methods(void **state)
{
    const struct planner_method *method;

    (void)state;
    for (size_t m = 0; m < COUNT(models); m++) {
        struct cache cache;
        struct arena arena = {.cache = &cache};
        struct scenario scenario = {0};

        cache_init(&cache, CACHE_BYTES);
        load(&arena, models[m], &scenario);
        for (size_t i = 0; (method = planner_method_at(i)); i++)
            check_method(&scenario, method);
        scenario_release(&scenario);
        arena_release(&arena);
        cache_release(&cache);
    }
}

static void test_given_stages(void **state)
{
    struct arena arena = {0};
    struct scenario scenario = {0};
    struct planner_choices choices = {0};
    struct error err = {0};

    (void)state;
    load(&arena, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 4}\n",
         &scenario);
    assert_int_equal(planners_choose(&scenario, "piper", &choices, &err), -1);
    assert_non_null(strstr(err.messages[0].text, "stages are given"));
    error_release(&err);
    planners_release(&choices);
    scenario_release(&scenario);
    arena_release(&arena);
}

/* A scenario's `plan: {method: NAME}` knows each of them. */
static void test_names(void **state)
{
    size_t count = 0;

    (void)state;
    for (; planner_method_at(count); count++)
        assert_string_equal(planner_method_at(count)->name, search_method_names[SEARCH_PIPEDREAM + count]);
    assert_int_equal(SEARCH_PIPEDREAM + count, SEARCH_PLANNERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_methods), cmocka_unit_test(test_given_stages),
                                       cmocka_unit_test(test_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
