/* Values `auto` together: all of them alone, in pairs and in triples, on clusters where each has something to find. What is
 * refused says why; the rest ends, and no later than with the values left out where one of them is found by simulating. */
#include "random_plan.h"

#include <math.h>

static const struct automatic { const char *key, *set; bool simulated; } automatic[] = {
    {"split", "strategy.split=auto", true}, {"stages_on", "strategy.stages_on=auto", true},
    {"shares", "batch.shares=auto", true}, {"collectives", "simulation.collectives=auto", false},
    {"fold", "simulation.fold=auto", false}, {"gpu", "costs.gpu=auto", false}, {"recompute", "memory.recompute=optimal", false},
};

/* Keys of the table, and of tables in it, that take the word and are not in the list. */
static void check_keys(const struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->fields[i];
        bool takes = field->may_be_auto, known = false;

        for (size_t k = 0; field->choices && field->choices[k]; k++)
            takes |= !strcmp(field->choices[k], "auto");
        for (size_t k = 0; k < COUNT(automatic); k++)
            known |= !strcmp(field->key, automatic[k].key);
        if (takes && !known)
            fail_msg("%s: %s takes auto, and this test does not try it", table->name, field->key);
        if (field->table && field->table != table && strcmp(field->key, "train"))
            check_keys(field->table);
    }
}

static void every_key_is_tried(void **state)
{
    (void)state;
    check_keys(&scenario_table);
}

static const char shape[] =
    "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 51200, dropout: 0, mtp: %d}}\n"
    "cluster: {parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 1%s}]}\n"
    "batch: {micro_batches: 4, micro: 3}\nstrategy: {pipeline: 2, tensor: %d, schedule: %s}\nmemory: {precision: mixed-bf16}\n"
    "software: megatron-core\n";

/* s of the iteration; NAN: refused, with a reason. */
static double ends(const struct scenario *scenario, const char *const *sets, size_t nsets)
{
    struct scenario varied = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    double seconds = NAN;

    if (!scenario_vary(scenario, sets, nsets, &varied, &err) && !workload_init_advised(&workload, &varied, &err) &&
        !simulate_advised(&workload, simulate_numbers_of(&varied), &run, &err))
        seconds = run.metrics.iteration_time;
    else
        assert_true(err.count > 0);
    run_release(&run);
    workload_release(&workload);
    scenario_release(&varied);
    error_release(&err);
    return seconds;
}

/* Tries the settings of these numbers: equal ones are one. */
static bool try_set(const struct simulated *base, double plain, int i, int k, int m)
{
    const int which[] = {i, k, m};
    const char *sets[COUNT(which) + 1] = {"simulation.engine=fast"};
    size_t nsets = 1;
    bool searched = true;
    double seconds;

    for (size_t j = 0; j < COUNT(which); j++)
        if (!j || which[j] != which[j - 1]) {
            sets[nsets++] = automatic[which[j]].set;
            searched &= automatic[which[j]].simulated && strcmp(automatic[which[j]].key, "stages_on");
        }
    seconds = ends(&base->scenario, sets, nsets);
    if (searched && !(seconds <= plain * (1 + 1e-9)))
        fail_msg("%s and %zu more: %.9g s, without them %.9g s:\n%s", sets[1], nsets - 2, seconds, plain, base->text);
    return isfinite(seconds);
}

static void they_go_together(void **state)
{
    static const char *const schedules[] = {"1f1b", "zb-h1"};
    int tried = 0, ended = 0;

    (void)state;
    for (int tensor = 1; tensor <= 4; tensor *= 2)
        for (size_t s = 0; s < COUNT(schedules); s++)
            for (int odd = 0; odd < 2; odd++) {
                struct simulated base;
                double plain;

                simulated_load(&base, shape, odd, odd ? ", slower: 1.5" : "", tensor, schedules[s]);
                plain = ends(&base.scenario, (const char *[]){"simulation.engine=fast"}, 1);
                for (int i = 0; i < (int)COUNT(automatic); i++)
                    for (int k = i; k < (int)COUNT(automatic); k++)
                        for (int m = k; m < (int)COUNT(automatic); m++, tried++)
                            ended += try_set(&base, plain, i, k, m);
                simulated_release(&base);
            }
    print_message("%d of %d together end, the others are refused\n", ended, tried);
    assert_true(ended > tried / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_is_tried), cmocka_unit_test(they_go_together)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
