/* simulated: what the tests of schedules, lowering and metrics share: scenarios from YAML text, simulated. */
#ifndef DTSIM_TEST_SIMULATED_H
#define DTSIM_TEST_SIMULATED_H

#include "report/figure.h"
#include "report/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct simulated {
    struct scenario scenario;
    struct workload workload;
    struct run run;
    char *text;              /* the YAML, for messages */
};

/* Tests are of mechanics, which no framework's habits are to change: a text that names no software has none. */
static inline int load_text(const char *text, struct scenario *scenario, struct error *err)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    int fd = mkstemp(path), rc;
    FILE *file = fdopen(fd, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    if (!strstr(text, "software:"))
        assert_true(fputs("\nsoftware: none\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    rc = scenario_load(path, NULL, 0, scenario, err);
    unlink(path);
    return rc;
}

static inline void fail_at(const char *text, const struct error *err)
{
    error_print(err, stderr);
    fail_msg("does not simulate:\n%s", text);
}

/* Loads the YAML (a printf format); simulated_release frees it. */
__attribute__((format(printf, 2, 0)))
static inline void simulated_vload(struct simulated *simulated, const char *format, va_list arguments)
{
    struct error err = {0};

    memset(simulated, 0, sizeof *simulated);
    assert_true(vasprintf(&simulated->text, format, arguments) >= 0);
    if (load_text(simulated->text, &simulated->scenario, &err))
        fail_at(simulated->text, &err);
}

__attribute__((format(printf, 2, 3)))
static inline void simulated_load(struct simulated *simulated, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    simulated_vload(simulated, format, arguments);
    va_end(arguments);
}

/* Its workload, which the first call builds. */
static inline const struct workload *simulated_workload(struct simulated *simulated)
{
    struct error err = {0};

    if (!simulated->workload.scenario && workload_init(&simulated->workload, &simulated->scenario, &err))
        fail_at(simulated->text, &err);
    return &simulated->workload;
}

/* Simulates what has been loaded, as the command does. */
static inline int simulated_run(struct simulated *simulated, struct error *err)
{
    return workload_init_advised(&simulated->workload, &simulated->scenario, err) ||
           simulate_advised(&simulated->workload, simulate_options_of(&simulated->scenario), &simulated->run, err) ?
           -1 : 0;
}

/* simulated_load and simulated_run; it must fit. */
__attribute__((format(printf, 2, 3)))
static inline void run_text(struct simulated *simulated, const char *format, ...)
{
    struct error err = {0};
    va_list arguments;

    va_start(arguments, format);
    simulated_vload(simulated, format, arguments);
    va_end(arguments);
    if (simulated_run(simulated, &err))
        fail_at(simulated->text, &err);
}

static inline void simulated_release(struct simulated *simulated)
{
    run_release(&simulated->run);
    workload_release(&simulated->workload);
    scenario_release(&simulated->scenario);
    free(simulated->text);
}

/* Equal to a part in 10^9. */
static inline void expect_near(const char *what, double actual, double expected, const char *text)
{
    if (!(fabs(actual - expected) <= 1e-9 * (fabs(expected) + 1e-12)))
        fail_msg("%s is %.17g instead of %.17g in\n%s", what, actual, expected, text);
}

/* What orders_print prints; the caller frees it. */
static inline char *orders_text(struct simulated *simulated)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    orders_print(simulated_workload(simulated), out);
    fclose(out);
    return text;
}

/* The whole file; the caller frees it. */
static inline char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0, got;

    if (!file)
        fail_msg("cannot open %s", path);
    do {
        text = xrealloc(text, size + 4097, 1);
        got = fread(text + size, 1, 4096, file);
        size += got;
    } while (got);
    text[size] = 0;
    fclose(file);
    return text;
}

/* What `show --grid` prints. */
static inline void assert_grid(struct simulated *simulated, const char *expected)
{
    struct error err = {0};
    char *grid = NULL;
    size_t size;
    FILE *out = open_memstream(&grid, &size);

    assert_int_equal(grid_print(simulated_workload(simulated), out, &err), 0);
    fclose(out);
    assert_string_equal(grid, expected);
    free(grid);
}

/* xorshift64*: the same numbers everywhere. */
static inline uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(2685821657736338717) >> 16;
}

static inline int random_below(uint64_t *seed, int limit)
{
    return (int)(random_next(seed) % (uint64_t)limit);
}

#endif
