/* What a sweep adds to a point: N points are swept by one worker, their rows written, and the same N are simulated in a
 * loop in this process. Prints CPU time a point, of this process and its children. Then how long 20,000 different
 * points (points.yaml) take on two processes, once. A measurement, no test. From the folder of the sources:
 *
 *     bench_sweep REPEATS */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"
#include "run/run.h"
#include "sweep/sweep.h"

/* The base of a sweep whose times are given. */
#define GIVEN_STAGES \
    "base:\n" \
    "  model: {stages: {forward: 1 s, backward: 2 s, boundary: 1 MB}}\n" \
    "  cluster: {nodes: 4, gpus_per_node: 4, inside: {bandwidth: 300 GB/s, latency: 1 us},\n" \
    "            network: {bandwidth: 25 GB/s, latency: 5 us}}\n" \
    "  batch: {micro_batches: 4}\n" \
    "  strategy: {pipeline: 2}\n"

static const struct subject {
    const char *name, *engine, *text;
    double bar;                  /* s that a sweep may add to a point */
} subjects[] = {
    {"given stages", "ideal",
     GIVEN_STAGES
     "sweep: {grid: {strategy.schedule: [gpipe, 1f1b], batch.micro_batches: {range: [1, 17]},\n"
     "               cluster.inside.latency: {linear: [1 us, 2 us, 100]}}}\n", 0.2e-3},
    {"given stages", "simgrid",
     GIVEN_STAGES
     "sweep: {grid: {strategy.schedule: [gpipe, 1f1b], cluster.inside.latency: {linear: [1 us, 2 us, 100]}}}\n", 3e-3},
    {"Llama 3 8B", "ideal",
     "base:\n"
     "  model: {preset: llama3-8b}\n"
     "  cluster: {platform: dgx-h100, nodes: 1}\n"
     "  strategy: {tensor: 2, schedule: 1f1b, zero: 1}\n"
     "  memory: {precision: mixed-bf16}\n"
     "  batch: {global: 64}\n"
     "sweep: {grid: {strategy.pipeline: [1, 2, 4], memory.recompute: [none, full], batch.global: {range: [8, 640, 16]}}}\n",
     0.2e-3},
};

/* CPU seconds of this process and of children that have ended. */
static double cpu(void)
{
    double sum = 0;

    for (int who = 0; who < 2; who++) {
        struct rusage usage;

        getrusage(who ? RUSAGE_CHILDREN : RUSAGE_SELF, &usage);
        sum += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return sum;
}

static void no_progress(void *context, const struct sweep_state *state)
{
    (void)context;
    (void)state;
}

static int failed(struct error *err)
{
    error_print(err, stderr);
    error_release(err);
    return -1;
}

static double swept(const struct sweep *sweep, const struct selection *selection, const char *engine,
                    const char *folder, struct error *err)
{
    const struct sweep_options options = {.folder = folder, .shard = 1, .shards = 1, .jobs = 1, .engine = engine};
    struct sweep_state state;
    double begun = cpu();

    if (sweep_run(sweep, selection, &options, no_progress, NULL, &state, err))
        return failed(err);
    return (cpu() - begun) / (double)selection->count;
}

/* The same scenarios, loaded and simulated. */
static double looped(const struct sweep *sweep, const struct selection *selection, const char *engine,
                     struct error *err)
{
    const char *set = engine;
    struct cache cache;
    double begun = cpu();

    cache_init(&cache, CACHE_BYTES);

    for (size_t i = 0; i < selection->count; i++) {
        struct arena arena = {0}, own = {.cache = &cache};
        struct scenario scenario = {0};
        struct workload workload = {0};
        struct error refused = {0};
        struct run run = {0};
        struct point point;

        if (point_make(&sweep->points, selection->items[i], &arena, &point, err))
            return failed(err);
        if (!scenario_read(&own, point.root, &set, 1, sweep->name, &scenario, &refused) &&
            !workload_init(&workload, &scenario, &refused))
            simulate(&workload, simulate_options_of(&scenario), &run, &refused);
        run_release(&run);
        workload_release(&workload);
        scenario_release(&scenario);
        error_release(&refused);
        arena_release(&arena);
    }
    cache_release(&cache);
    return (cpu() - begun) / (double)selection->count;
}

static int measure(const struct subject *subject, const char *folder, int repeats)
{
    char file[128], store[128], rows[160], engine[64];
    struct selection selection = {0};
    struct sweep sweep = {0};
    struct error err = {0};
    double least[2] = {1, 1};
    FILE *out;

    snprintf(file, sizeof file, "%s/sweep.yaml", folder);
    snprintf(store, sizeof store, "%s/rows", folder);
    snprintf(rows, sizeof rows, "%s/shard-1-of-1.jsonl", store);
    snprintf(engine, sizeof engine, "simulation.engine=%s", subject->engine);
    out = fopen(file, "w");
    if (!out || fputs(subject->text, out) < 0 || fclose(out))
        return -1;
    if (sweep_load(file, NULL, 0, NULL, &sweep, &err) || points_select(&sweep.points, 1000000, &selection, &err))
        return failed(&err);
    for (int i = 0; i < repeats; i++) {
        double times[] = {swept(&sweep, &selection, subject->engine, store, &err),
                          looped(&sweep, &selection, engine, &err)};

        for (int t = 0; t < 2; t++)
            least[t] = times[t] < least[t] ? times[t] : least[t];
        unlink(rows);
    }
    printf("%-13s %-8s %5zu points  swept %7.3f ms  simulated %7.3f ms  a sweep adds %7.3f ms  bar %5.3f ms\n",
           subject->name, subject->engine, selection.count, 1e3 * least[0], 1e3 * least[1],
           1e3 * (least[0] - least[1]), 1e3 * subject->bar);
    selection_release(&selection);
    sweep_release(&sweep);
    unlink(file);
    rmdir(store);
    return 0;
}

/* The bar is of a machine on which commit 24efabc takes 1.0 s for the step of 1T parameters on simgrid. */
static int measure_points(const char *folder)
{
    struct sweep_options options = {.shard = 1, .shards = 1, .jobs = 2, .engine = "fast"};
    struct selection selection = {0};
    struct sweep sweep = {0};
    struct error err = {0};
    struct sweep_state state;
    char store[128], rows[160];
    double begun = cpu(), wall;
    struct timespec then, now;

    snprintf(store, sizeof store, "%s/points", folder);
    snprintf(rows, sizeof rows, "%s/shard-1-of-1.jsonl", store);
    options.folder = store;
    clock_gettime(CLOCK_MONOTONIC, &then);
    if (sweep_load("tests/bench/points.yaml", NULL, 0, NULL, &sweep, &err) ||
        points_select(&sweep.points, 1000000, &selection, &err) ||
        sweep_run(&sweep, &selection, &options, no_progress, NULL, &state, &err))
        return failed(&err);
    clock_gettime(CLOCK_MONOTONIC, &now);
    wall = (double)(now.tv_sec - then.tv_sec) + 1e-9 * (double)(now.tv_nsec - then.tv_nsec);
    printf("8 to 64 ranks fast     %5zu points on two processes %7.2f s, CPU %7.2f s, %7.3f ms a point    bar 20 s\n",
           selection.count, wall, cpu() - begun, 1e3 * (cpu() - begun) / (double)selection.count);
    selection_release(&selection);
    sweep_release(&sweep);
    unlink(rows);
    rmdir(store);
    return 0;
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? atoi(argv[1]) : 3, rc = 0;
    char folder[] = "/tmp/dtsim-bench-XXXXXX";

    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    for (size_t i = 0; i < COUNT(subjects) && !rc; i++)
        rc = measure(&subjects[i], folder, repeats);
    if (!rc)
        rc = measure_points(folder);
    rmdir(folder);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
