/* warm: many scenarios in one process with one cache, as sweeps and the planner have them. Every subject's scenarios
 * are simulated once, which fills the cache, and then several times. Prints for each subject the CPU milliseconds a
 * scenario in the first pass and in the fastest later one, and the bar: 0.15 ms and 0.2 us for each operation, or the
 * subject's bar. Then the cost of a fork with a full cache, and how memory grows over very many scenarios.
 *
 *     bench_warm REPEATS SCENARIOS [NAME]   NAME: the subjects whose names hold it alone, and neither fork nor growth
 *
 * A measurement, no test: it depends on the machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cache.h"
#include "report/outcome.h"
#include "sweep/sweep.h"

static const struct subject {
    const char *name;
    double bar;                  /* ms; 0: by operations */
    const char *text;
} subjects[] = {
    {"1F1B, 8 GPUs", 0,
     "base:\n"
     "  model: {preset: llama2-7b}\n"
     "  cluster: {platform: dgx-a100, nodes: 1}\n"
     "  strategy: {pipeline: 8, schedule: 1f1b}\n"
     "  simulation: {engine: fast}\n"
     "sweep: {grid: {batch.global: [28, 30, 32, 34, 36], strategy.schedule: [1f1b, gpipe],\n"
     "               memory.recompute: [none, full]}}\n"},
    {"1F1B, 64 x 64", 0,
     "base:\n"
     "  model: {stages: {forward: 1 s, backward: 2 s, boundary: 1 MB}}\n"
     "  cluster: {nodes: 8, gpus_per_node: 8, inside: {bandwidth: 300 GB/s, latency: 1 us},\n"
     "            network: {bandwidth: 25 GB/s, latency: 5 us}}\n"
     "  batch: {micro_batches: 64}\n"
     "  strategy: {pipeline: 64, schedule: 1f1b}\n"
     "  simulation: {engine: fast}\n"
     "sweep: {grid: {cluster.inside.latency: {linear: [1 us, 2 us, 10]}}}\n"},
    {"ZeRO 1, 64 GPUs", 0.5,
     "base:\n"
     "  model: {preset: llama2-7b}\n"
     "  cluster: {platform: dgx-a100, nodes: 8}\n"
     "  strategy: {zero: 1}\n"
     "  simulation: {engine: fast}\n"
     "sweep: {grid: {batch.global: [64, 128, 192, 256], memory.recompute: [none, full],\n"
     "               simulation.collectives: [auto, measured]}}\n"},
    {"GPT-3, 1,024 GPUs", 20,
     "base:\n"
     "  model: {preset: gpt3-175b}\n"
     "  cluster: {platform: dgx-a100, nodes: 128}\n"
     "  strategy: {schedule: 1f1b, zero: 1}\n"
     "  memory: {recompute: full}\n"
     "  batch: {global: 1536, micro: 1}\n"
     "  simulation: {engine: fast, collectives: measured}\n"
     "sweep:\n"
     "  grid: {strategy.tensor: [1, 2, 4, 8], strategy.pipeline: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96],\n"
     "         batch.micro: [1, 2, 3]}\n"
     "  where: ['divides(strategy.tensor * strategy.pipeline, 1024)',\n"
     "          'divides(batch.micro * 1024 / (strategy.tensor * strategy.pipeline), 1536)']\n"},
    {"does not fit", 0.2,
     "base:\n"
     "  model: {preset: llama2-70b}\n"
     "  cluster: {platform: dgx-a100, nodes: 8}\n"
     "  strategy: {zero: 1, schedule: 1f1b}\n"
     "  simulation: {engine: fast}\n"
     "sweep: {grid: {batch.global: [64, 128, 192, 256], strategy.pipeline: [1, 2, 4],\n"
     "               memory.recompute: [none, full]}}\n"},
};

/* One scenario after another. */
struct bench {
    struct sweep sweep;
    struct selection selection;
    struct cache *cache;
    double operations;           /* of all scenarios that were simulated */
    size_t fit;                  /* the number that fit */
};

static double cpu(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Loads, simulates, and releases a point, as a sweep's worker does. */
static void simulate_point(struct bench *bench, uint64_t number)
{
    struct arena arena = {.cache = bench->cache}, own = arena;
    struct scenario scenario = {0};
    struct error err = {0};
    json_t *row = json_object();
    struct point point;

    if (!point_make(&bench->sweep.points, number, &arena, &point, &err) &&
        !scenario_read(&own, point.root, NULL, 0, bench->sweep.name, &scenario, &err)) {
        outcome_simulate(row, &scenario, NULL, &err);
        bench->fit += outcome_of(row) == OUTCOME_OK;
    }
    json_decref(row);
    error_release(&err);
    scenario_release(&scenario);
    arena_release(&arena);
}

static void simulate_all(struct bench *bench)
{
    bench->fit = 0;
    for (size_t i = 0; i < bench->selection.count; i++)
        simulate_point(bench, bench->selection.items[i]);
}

/* Operations of all programs. */
static double operations(struct bench *bench)
{
    double sum = 0;

    for (size_t i = 0; i < bench->selection.count; i++) {
        struct arena arena = {.cache = bench->cache}, own = arena;
        struct scenario scenario = {0};
        struct workload workload = {0};
        struct error err = {0};
        struct run run = {0};
        struct point point;

        if (!point_make(&bench->sweep.points, bench->selection.items[i], &arena, &point, &err) &&
            !scenario_read(&own, point.root, NULL, 0, bench->sweep.name, &scenario, &err) &&
            !workload_init(&workload, &scenario, &err) &&
            !simulate(&workload, simulate_options_of(&scenario), &run, &err))
            sum += (double)run.lowered.program.ops.count;
        else
            error_print(&err, stderr);
        run_release(&run);
        workload_release(&workload);
        scenario_release(&scenario);
        error_release(&err);
        arena_release(&arena);
    }
    return sum;
}

static int load(struct bench *bench, const struct subject *subject, const char *folder)
{
    char file[128];
    struct error err = {0};
    FILE *out;

    snprintf(file, sizeof file, "%s/sweep.yaml", folder);
    out = fopen(file, "w");
    if (!out || fputs(subject->text, out) < 0 || fclose(out))
        return -1;
    if (sweep_load(file, NULL, 0, NULL, &bench->sweep, &err) ||
        points_select(&bench->sweep.points, 1000000, &bench->selection, &err)) {
        error_print(&err, stderr);
        error_release(&err);
        return -1;
    }
    unlink(file);
    return 0;
}

static void measure(struct bench *bench, const struct subject *subject, int repeats)
{
    double first = cpu(), least = INFINITY, count = (double)bench->selection.count, mean;

    simulate_all(bench);
    first = cpu() - first;
    for (int i = 0; i < repeats; i++) {
        double begun = cpu();

        simulate_all(bench);
        least = fmin(least, cpu() - begun);
    }
    mean = operations(bench) / count;
    printf("%-18s %5.0f scenarios, %4zu fit, %7.0f operations   first %8.3f ms   warm %8.3f ms   bar %7.3f ms\n",
           subject->name, count, bench->fit, mean, 1e3 * first / count, 1e3 * least / count,
           subject->bar > 0 ? subject->bar : 0.15 + 1e3 * mean / 5e6);
}

static void measure_fork(void)
{
    enum { TIMES = 50 };
    struct timespec begun, ended;
    double least = INFINITY;

    for (int i = 0; i < TIMES; i++) {
        pid_t child;

        clock_gettime(CLOCK_MONOTONIC, &begun);
        child = fork();
        if (child == 0)
            _exit(0);
        BUG_IF(child < 0 || waitpid(child, NULL, 0) != child);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        least = fmin(least, (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
    }
    printf("a fork with what is remembered   %.3f ms   bar 1 ms\n", 1e3 * least);
}

/* KiB that the process has held at most. */
static long peak(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void measure_growth(struct bench *benches, long scenarios)
{
    long before, done = 0;
    double begun;

    for (size_t i = 0; i < COUNT(subjects); i++)
        simulate_all(&benches[i]);
    before = peak();
    begun = cpu();
    for (size_t i = 0; done < scenarios; i++) {
        simulate_all(&benches[i % COUNT(subjects)]);
        done += (long)benches[i % COUNT(subjects)].selection.count;
    }
    printf("%ld scenarios in %.1f s: from %ld KiB to %ld KiB\n", done, cpu() - begun, before, peak());
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? atoi(argv[1]) : 3, rc = 0;
    long scenarios = argc > 2 ? atol(argv[2]) : 10000;
    char folder[] = "/tmp/dtsim-bench-XXXXXX";
    struct bench *benches = xcalloc(COUNT(subjects), sizeof *benches);
    struct cache cache;

    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    cache_init(&cache, CACHE_BYTES);
    for (size_t i = 0; i < COUNT(subjects) && !rc; i++) {
        if (argc > 3 && !strstr(subjects[i].name, argv[3]))
            continue;
        benches[i].cache = &cache;
        rc = load(&benches[i], &subjects[i], folder);
        if (!rc)
            measure(&benches[i], &subjects[i], repeats);
    }
    if (!rc && argc <= 3) {
        measure_fork();
        measure_growth(benches, scenarios);
    }
    for (size_t i = 0; i < COUNT(subjects); i++) {
        selection_release(&benches[i].selection);
        sweep_release(&benches[i].sweep);
    }
    cache_release(&cache);
    free(benches);
    rmdir(folder);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
