/* A row says of a scenario that does not fit what a whole simulation says, though less is simulated for it: every key
 * of scenarios of every schedule is varied, with memory limits on either side of what they need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
#include "report/outcome.h"
#include "run/attempt.h"
#include "run/memory_advice.h"
#include "variations.h"

static const char base[] =
    "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 64, micro: 2}\n"
    "strategy: {pipeline: 4, schedule: 1f1b}\nsimulation: {engine: fast, collectives: measured}\n";

static int read_varied(const char *const *sets, size_t nsets, struct scenario *scenario, struct error *err)
{
    struct arena arena = {0};
    struct node *root;

    assert_int_equal(conf_parse(&arena, "base.yaml", base, strlen(base), &root, err), 0);
    return scenario_read(&arena, root, sets, nsets, "base", scenario, err);
}

/* What the row says must hold of a whole simulation. True: it does not fit. */
static bool check_row(const struct scenario *scenario, const char *what)
{
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    json_t *row = json_object();
    const char *rule;
    bool tight = false;

    assert_int_equal(outcome_simulate(row, scenario, NULL, &err), 0);
    rule = json_string_value(json_object_get(row, "rule"));
    if (!workload_init(&workload, scenario, &err) &&
        !simulate(&workload, simulate_options_of(scenario), &run, &err)) {
        double peak = json_number_value(json_object_get(json_object_get(row, "metrics"), "peak_memory_bytes"));
        char reason[160];

        tight = run.metrics.peak_memory > memory_limit(scenario);
        if (tight != (outcome_of(row) == OUTCOME_INFEASIBLE) || peak != run.metrics.peak_memory)
            fail_msg("%s: peak %.17g B, the row says %.17g", what, run.metrics.peak_memory, peak);
        if (tight) {
            assert_string_equal(rule, "memory");
            assert_string_equal(json_string_value(json_object_get(row, "reason")),
                                memory_shortage(&run, reason, sizeof reason));
        }
    }
    json_decref(row);
    run_release(&run);
    workload_release(&workload);
    error_release(&err);
    return tight;
}

/* What comes of an attempt to change the base so is what a whole simulation of the changed scenario says. */
static enum attempted check_attempt(const struct scenario *from, const char *const *sets, size_t nsets, bool anyway)
{
    struct attempt attempt = {.of = from, .anyway = anyway};
    struct simulate_options options = simulate_numbers_of(from);
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    enum attempted came, expected = ATTEMPT_REFUSED;

    for (size_t i = 0; i < nsets; i++)
        attempt_set(&attempt, "%s", sets[i]);
    came = attempt_run(&attempt, options);
    if (!read_varied(sets, nsets, &scenario, &err) && !workload_init(&workload, &scenario, &err) &&
        !simulate(&workload, options, &run, &err))
        expected = memory_lack(&run) > 0 && !anyway ? ATTEMPT_SHORT : ATTEMPT_RAN;
    else if (err.messages[0].kind == ERROR_MEMORY)
        expected = ATTEMPT_SHORT;
    if (came != expected)
        fail_msg("%s: it came to %d, expected %d (%s)", sets[nsets - 1], came, expected, err.count ? err.messages[0].text : "");
    if (came == ATTEMPT_REFUSED && strcmp(attempt.found.messages[0].text, err.messages[0].text))
        fail_msg("%s: %s, expected %s", sets[nsets - 1], attempt.found.messages[0].text, err.messages[0].text);
    if (came == ATTEMPT_RAN)
        assert_true(attempt.run.metrics.iteration_time == run.metrics.iteration_time);
    if (came == ATTEMPT_SHORT && attempt.run.metrics.ranks)
        assert_true(memory_lack(&attempt.run) == memory_lack(&run));
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    error_release(&err);
    assert_int_equal(attempt_end(&attempt, &err), 0);
    return came;
}

static void test_rows(void **state)
{
    static const char *const limits[] = {"2 GB", "4 GB", "6 GB", "12 GB"};
    struct scenario scenario = {0}, from = {0};
    struct error err = {0};
    struct variations variations;
    int tight = 0, fit = 0, came[2][ATTEMPT_FAILED] = {0};

    (void)state;
    assert_int_equal(read_varied(NULL, 0, &scenario, &err), 0);
    variations = variations_of(&scenario);
    from = scenario;
    scenario = (struct scenario){0};
    for (size_t i = 0; i < variations.count; i++) {
        const char *schedule = schedule_at(random_bits(3, i) % 16) ? schedule_at(random_bits(3, i) % 16)->name : "1f1b";
        char limit[64], order[64];
        const char *const sets[] = {limit, order, variations.items[i]};

        snprintf(limit, sizeof limit, "memory.limit=%s", limits[i % COUNT(limits)]);
        snprintf(order, sizeof order, "strategy.schedule=%s", schedule);
        for (int anyway = 0; anyway < 2; anyway++)
            came[anyway][check_attempt(&from, sets, COUNT(sets), anyway)]++;
        if (!read_varied(sets, COUNT(sets), &scenario, &err)) {
            if (check_row(&scenario, variations.items[i]))
                tight++;
            else
                fit++;
        }
        scenario_release(&scenario);
        error_release(&err);
        free(variations.items[i]);
    }
    print_message("%d do not fit, %d others\n", tight, fit);
    assert_true(tight > 30 && fit > 30);
    assert_true(came[0][ATTEMPT_RAN] > 30 && came[0][ATTEMPT_SHORT] > 30 && came[0][ATTEMPT_REFUSED] > 30);
    assert_true(came[1][ATTEMPT_RAN] > came[0][ATTEMPT_RAN] + 30);
    scenario_release(&from);
    free(variations.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};

    return cmocka_run_group_tests_name("shortage", tests, NULL, NULL);
}
