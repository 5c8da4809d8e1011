/* utilization.tsv: windows do not beat against what repeats. */
#include "simulated.h"

/* The difference between the most and the least of a column's shares, in windows between two parts of the time. */
static double spread(const char *path, const char *const *sets, size_t nsets, const char *column, double from,
                     double to)
{
    struct simulated simulated = {0};
    double most = 0, least = 1;
    char *text, *line, *rest;
    struct error err = {0};
    size_t size, at = 0;
    FILE *out = open_memstream(&text, &size);

    if (load_once(path, sets, nsets, &simulated.scenario, &err) ||
        workload_init(&simulated.workload, &simulated.scenario, &err) ||
        simulate(&simulated.workload, simulate_options_of(&simulated.scenario), &simulated.run, &err))
        fail_at(path, &err);
    utilization_write(&simulated.run, out);
    fclose(out);
    rest = text;
    line = strsep(&rest, "\n");
    for (char *name; (name = strsep(&line, "\t")) && strcmp(name, column);)
        at++;
    while ((line = strsep(&rest, "\n")) && *line) {
        double cells[2], share = 0;

        for (size_t i = 0; i <= at; i++) {
            share = strtod(strsep(&line, "\t"), NULL);
            if (i < COUNT(cells))
                cells[i] = share / simulated.run.timeline.makespan;
        }
        if (cells[0] < from || cells[1] > to)
            continue;
        most = fmax(most, share);
        least = fmin(least, share);
    }
    free(text);
    run_release(&simulated.run);
    workload_release(&simulated.workload);
    scenario_release(&simulated.scenario);
    return most - least;
}

/* ZeRO-3 with recomputation: layer after layer is recomputed and goes back, 48 times alike. */
static void layers_that_repeat(void **state)
{
    static const char path[] = DTSIM_SOURCE_DIR "/scenarios/tour/15-zero.yaml";
    static const char *const sets[] = {"simulation.engine=ideal"};

    (void)state;
    assert_true(spread(path, sets, COUNT(sets), "backward", 0.35, 0.95) < 0.02);
    assert_true(spread(path, sets, COUNT(sets), "recompute", 0.35, 0.95) < 0.02);
}

/* A forward that overlaps with a backward of twice its time has a third of the rank as long as both take, and not all
 * of it first and nothing then. */
static void works_that_overlap(void **state)
{
    static const char path[] = DTSIM_SOURCE_DIR "/scenarios/tour/16-pipedream.yaml";
    static const char *const sets[] = {"simulation.engine=ideal", "strategy.schedule=dualpipe", "strategy.pipeline=2",
                                       "batch.micro_batches=16"};

    (void)state;
    assert_true(spread(path, sets, COUNT(sets), "forward", 0.4, 0.6) < 0.02);
    assert_true(spread(path, sets, COUNT(sets), "backward", 0.4, 0.6) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_that_repeat), cmocka_unit_test(works_that_overlap)};

    return cmocka_run_group_tests_name("utilization", tests, NULL, NULL);
}
