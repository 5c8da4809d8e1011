/* libdtsim from inside: what is wrong is said, many simulations take no more memory than few, contexts of two threads do not
 * meet, no process is started, and another folder of data counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "library/dtsim.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char scenario[] = "model: {preset: gpt2-355m}\n"
                               "cluster: {platform: dgx-a100, nodes: 2}\n"
                               "batch: {global: 32, micro: 1}\n"
                               "strategy: {schedule: 1f1b, pipeline: 2}\n";
static const char *const changes[] = {
    "strategy.tensor=1", "strategy.tensor=2", "strategy.tensor=3", "strategy.schedule=gpipe", "batch.micro=2", "batch.micro=oops",
    "strategy.zero=1", "memory.recompute=full", "cluster.nodes=4", "strategy.schedule=interleaved",
};
enum { CHANGES = sizeof changes / sizeof *changes };

static int forks;

static void count_fork(void)
{
    forks++;
}

/* Simulates with the i-th change; NaN: it was refused, with a message. */
static double simulate(struct dtsim *dtsim, size_t i)
{
    int code;

    dtsim_scenario(dtsim, "memory", scenario);
    dtsim_set(dtsim, changes[i % CHANGES]);
    code = dtsim_simulate(dtsim, i % 3 ? NULL : "ideal");
    assert_true((code == DTSIM_OK) == !*dtsim_errors(dtsim));
    assert_true((code == DTSIM_OK) == (*dtsim_metrics(dtsim) != '\0'));
    assert_true((code == DTSIM_OK) == (*dtsim_timeline(dtsim) != '\0'));
    assert_true((code == DTSIM_OK) == !isnan(dtsim_metric(dtsim, "iteration_time_s")));
    return dtsim_metric(dtsim, "iteration_time_s");
}

/* B, with the freed blocks that malloc keeps for each size. */
static size_t held(void)
{
    struct mallinfo2 now = mallinfo2();

    return now.uordblks + now.hblkhd;
}

static void test_many(void **state)
{
    const char *wanted = getenv("DTSIM_TESTS");
    size_t count = wanted && !strcmp(wanted, "all") ? 1000 : 200, few = 3 * CHANGES, before = 0;
    struct dtsim *dtsim = dtsim_open(NULL);
    double first[3 * CHANGES];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        double seconds = simulate(dtsim, i);

        if (i < few)
            first[i] = seconds;
        else
            assert_true(seconds == first[i % few] || isnan(first[i % few]));     /* a warm context gives the same */
        if (i == 2 * few)
            before = held();
        if (i > 2 * few && i % few == 0)                             /* the same scenario is held */
            assert_in_range(held(), 0, before + (128 << 10));
    }
    dtsim_close(dtsim);
    assert_int_equal(forks, 0);
}

static void *simulate_all(void *seconds)
{
    struct dtsim *dtsim = dtsim_open(NULL);

    for (size_t i = 0; i < 3 * CHANGES; i++)
        ((double *)seconds)[i] = simulate(dtsim, i);
    dtsim_close(dtsim);
    return NULL;
}

static void test_threads(void **state)
{
    double seconds[4][3 * CHANGES];
    pthread_t threads[3];
    pthread_attr_t small;

    (void)state;
    simulate_all(seconds[3]);
    pthread_attr_init(&small);
    if (!ADDRESS_SANITIZER)                                          /* which makes frames larger */
        pthread_attr_setstacksize(&small, 1 << 20);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], &small, simulate_all, seconds[i]), 0);
    pthread_attr_destroy(&small);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_memory_equal(seconds[i], seconds[3], sizeof seconds[3]);
    }
}

static void test_mistakes(void **state)
{
    struct dtsim *dtsim = dtsim_open(NULL);

    (void)state;
    assert_int_equal(dtsim_abi(), DTSIM_ABI);
    assert_string_equal(dtsim_version(), DTSIM_VERSION);
    assert_string_equal(dtsim_errors(dtsim), "");
    assert_int_equal(dtsim_simulate(dtsim, NULL), DTSIM_USAGE);
    assert_string_equal(dtsim_errors(dtsim), "error: expected a scenario: dtsim_scenario() says it\n");
    dtsim_scenario(dtsim, "some.yaml", "model: {preset: gpt2-355m}\nclutser: ideal\n");
    setenv("CLICOLOR_FORCE", "1", 1);                                /* a text has no colours */
    assert_int_equal(dtsim_simulate(dtsim, NULL), DTSIM_INPUT);
    unsetenv("CLICOLOR_FORCE");
    assert_non_null(strstr(dtsim_errors(dtsim), "some.yaml:2:1: error: scenario: unknown key 'clutser'; did you mean 'cluster'?\n"));
    assert_non_null(strstr(dtsim_errors_json(dtsim), "\"line\":2"));
    assert_int_equal(dtsim_simulate(dtsim, "simgrid"), DTSIM_USAGE);
    dtsim_scenario(dtsim, NULL, scenario);
    dtsim_set(dtsim, "cluster.gpu.memory=1 GiB");
    assert_int_equal(dtsim_simulate(dtsim, "fast"), DTSIM_INFEASIBLE);
    dtsim_scenario(dtsim, NULL, scenario);                           /* takes the change back */
    assert_int_equal(dtsim_simulate(dtsim, "fast"), DTSIM_OK);
    assert_true(isnan(dtsim_metric(dtsim, "no_such_key")) && isnan(dtsim_metric(dtsim, "breakdown_s")) &&
                isnan(dtsim_metric(dtsim, "breakdown_s.")));
    dtsim_close(dtsim);
    dtsim_close(NULL);
}

static void test_data(void **state)
{
    char folder[] = "/tmp/dtsim-data-XXXXXX", command[400];
    struct dtsim *dtsim;
    double usual, other;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "cp -r %s/platforms %s/calibration %s/scenarios %s && cd %s/scenarios/models && "
             "mv gpt2-1.5b.yaml gpt2-355m.yaml", DTSIM_SOURCE_DIR, DTSIM_SOURCE_DIR, DTSIM_SOURCE_DIR, folder, folder);
    assert_int_equal(system(command), 0);
    dtsim = dtsim_open(NULL);
    usual = simulate(dtsim, 0);
    dtsim_close(dtsim);
    dtsim = dtsim_open(folder);
    other = simulate(dtsim, 0);
    assert_true(simulate(dtsim, 0) == other);
    dtsim_close(dtsim);
    assert_true(other > usual);                                      /* the larger model stands there under this name */
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many), cmocka_unit_test(test_threads), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_data),
    };

    pthread_atfork(count_fork, NULL, NULL);
    unsetenv("DTSIM_DATA");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
