/* simulated: what the tests of schedules, lowering and metrics share: scenarios from YAML text, simulated. */
#ifndef DTSIM_TEST_SIMULATED_H
#define DTSIM_TEST_SIMULATED_H

#include "report/figure.h"
#include "report/result.h"
#include "run/memory_advice.h"

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

/* Brings what software decides from the part of the tree to `software`. */
static inline void move_delegated(struct node *part, const struct table *table, struct arena *arena,
                                  struct node *software)
{
    size_t left = 0;

    for (size_t i = 0; part && part->kind == NODE_MAPPING && i < part->count; i++) {
        if (word_in(table->delegated, part->keys[i])) {
            node_put(arena, software, part->keys[i], part->items[i]);
            continue;
        }
        part->keys[left] = part->keys[i];
        part->key_locs[left] = part->key_locs[i];
        part->items[left++] = part->items[i];
    }
    if (part && part->kind == NODE_MAPPING)
        part->count = left;
}

/* Tests are about mechanics, which must not change with a framework: a text that names no software has none. A test may
 * write a key of software among other keys: `strategy: {data: 8, bucket: 1 MB}`. */
static inline void settle_software(struct node *root, struct arena *arena)
{
    const struct { const char *path; const struct table *table; } parts[] = {
        {"model.transformer", &transformer_table}, {"model.with", &transformer_table}, {"strategy", &strategy_table},
        {"memory", &memory_table}, {"memory.recompute", &recompute_table}, {"costs", &costs_table},
    };
    struct node *given = node_get(root, "software"), *software = node_mapping(arena);

    software->loc = given ? given->loc : root->loc;
    if (!given || given->kind == NODE_SCALAR)
        node_put(arena, software, "like", given ? given : node_scalar(arena, "none", false));
    for (size_t i = 0; given && given->kind == NODE_MAPPING && i < given->count; i++)
        node_put(arena, software, given->keys[i], given->items[i]);
    for (size_t i = 0; i < COUNT(parts); i++)
        move_delegated(node_at(root, parts[i].path), parts[i].table, arena, software);
    node_put(arena, root, "software", software);
}

/* What scenarios have alike is read and planned once a test program: they have a cache, as those of all commands do.
 * property/remembered.c holds that it changes no result. */
static inline struct cache *files_once(void)
{
    static struct cache cache;

    if (!cache.limit)
        cache_init(&cache, CACHE_BYTES);
    return &cache;
}

/* scenario_load with this cache. */
static inline int load_once(const char *path, const char *const *sets, size_t nsets, struct scenario *scenario,
                            struct error *err)
{
    struct arena arena = {.cache = files_once()};
    struct node *root;
    int rc = conf_load(&arena, path, &root, err);

    memset(scenario, 0, sizeof *scenario);
    rc = rc ? -1 : scenario_read(&arena, root, sets, nsets, "test", scenario, err);
    arena_release(&arena);
    return rc;
}

static inline int load_text(const char *text, struct scenario *scenario, struct error *err)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    int fd = mkstemp(path), rc;
    FILE *file = fdopen(fd, "w");
    struct arena arena = {.cache = files_once()};
    struct node *root;

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    memset(scenario, 0, sizeof *scenario);
    rc = conf_load(&arena, path, &root, err);
    if (!rc && root->kind == NODE_MAPPING)
        settle_software(root, &arena);
    if (!rc)
        rc = scenario_read(&arena, root, NULL, 0, "test", scenario, err);
    arena_release(&arena);
    unlink(path);
    return rc;
}

static inline void fail_at(const char *text, const struct error *err)
{
    error_print(err, stderr);
    fail_msg("does not simulate:\n%s", text);
}

/* Loads the YAML (a printf format); loaded_release or simulated_release frees it. */
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

/* Simulates the scenario that was loaded, as the command does. */
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

/* Releases what was loaded and not simulated. */
static inline void loaded_release(struct simulated *simulated)
{
    scenario_release(&simulated->scenario);
    free(simulated->text);
}

static inline void simulated_release(struct simulated *simulated)
{
    run_release(&simulated->run);
    workload_release(&simulated->workload);
    loaded_release(simulated);
}

/* s an iteration of the scenario with these settings, on engine fast; sets `layers`, unless it is NULL, to the layers
 * of each stage. */
static inline double varied_seconds(const struct scenario *scenario, const char *const *sets, size_t nsets, int *layers)
{
    struct scenario varied = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    struct simulate_options options;
    double seconds;

    assert_int_equal(scenario_vary(scenario, sets, nsets, &varied, &err), 0);
    assert_int_equal(workload_init(&workload, &varied, &err), 0);
    for (int s = 0; layers && s < plan_virtual_stages(&workload.plan); s++)
        layers[s] = workload.stages[s].layers;
    options = simulate_numbers_of(&varied);
    options.engine = ENGINE_FAST;
    assert_int_equal(simulate(&workload, options, &run, &err), 0);
    seconds = run.metrics.iteration_time;
    run_release(&run);
    workload_release(&workload);
    scenario_release(&varied);
    return seconds;
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
