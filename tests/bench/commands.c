/* commands: what commands cost, process start included. A line a workload: CPU seconds (user and system, children
 * included) of the fastest and the median of some runs, operations a second of the fastest, and the most memory of one
 * process; of eight of them, instructions, which hardly depend on the machine. Then the cost of twice the size of something, which is at most 2.3 times the
 * cost if costs are linear. Then the cost of a cluster with two kinds of GPU over the cost of one with one kind: the
 * aim is at most 1.3.
 *
 *     bench_commands RUNS PROGRAM           from the folder of the sources
 *     bench_commands RUNS PROGRAM OTHER     both, run by run in turn, and how much longer OTHER takes
 *     bench_commands MOST PROGRAM OTHER     with a point in MOST: instructions alone; fails where PROGRAM takes more than
 *                                           MOST times those of OTHER (.ci/nightly)
 *
 * A measurement, no test: it depends on the machine. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* `operations` of the whole program, of which a part may stand for others; 0: it is not about these. FAST is
 * "--engine fast"; a program that does not know this engine runs on simgrid. */
#define FAST "@"
#define RING "run tests/bench/ring.yaml " FAST
#define PIPELINE "run tests/bench/stages.yaml " FAST
#define TRILLION "run scenarios/tour/10-trillion.yaml "
/* Into a new folder: rows that a folder has are not simulated again. */
#define SWEEP(name) "sweep tests/bench/" name ".yaml -j 1 -o $(rm -rf build/bench-sweep; echo build/bench-sweep)"
#define PLAN(name) "plan tests/bench/plan-" name ".yaml -o $(rm -rf build/bench-plan; echo build/bench-plan)"
#define CORE " --set software=megatron-core"
static const struct workload {
    const char *name, *command;
    double operations;
    bool instructions;
} workloads[] = {
    {"start", "--version", 0, false},
    {"first, fast", "run scenarios/first.yaml " FAST, 0, true},
    {"check tour 03", "check scenarios/tour/03-gpipe.yaml", 0, false},
    {"tour 03, fast", "run scenarios/tour/03-gpipe.yaml " FAST, 0, false},
    {"tour 06, fast", "run scenarios/tour/06-3d.yaml " FAST, 0, true},
    {"tour 25, fast", "run scenarios/tour/25-offloading.yaml " FAST, 0, true},
    {"tour 05, simgrid", "run scenarios/tour/05-tensor.yaml --engine simgrid", 0, false},
    {"tour 06, simgrid", "run scenarios/tour/06-3d.yaml --engine simgrid", 0, false},
    {"1T on 3,072 GPUs, fast", TRILLION FAST, 164110, true},
    {"1T on 3,072 GPUs, fast, -o", TRILLION FAST " -o build/bench-out", 164110, false},
    {"1T on 3,072 GPUs, simgrid", TRILLION "--engine simgrid", 164110, false},
    {"1T on 3,072 GPUs, unfolded", TRILLION FAST " --set simulation.fold=off", 981770, false},
    {"1T unfolded, -o", TRILLION FAST " --set simulation.fold=off -o build/bench-spans", 981770, false},
    {"its gantt", "plot gantt build/bench-spans", 0, false},
    {"its report", "report build/bench-spans --no-what-if", 0, false},      /* at most 2 of its gantt */
    {"ring, 1,024 GPUs, messages", RING, 2098176, false},
    {"ring, 256 GPUs x 8 channels", RING " --set strategy.data=256 --set cluster.nodes=32 --set strategy.channels=8",
     1045248, false},
    {"naive, 1,024 GPUs", RING " --set strategy.all_reduce=naive", 0, false},
    {"tree, 1,024 GPUs", RING " --set strategy.all_reduce=tree", 0, false},
    {"butterfly, 1,024 GPUs", RING " --set strategy.all_reduce=butterfly", 0, false},
    {"parameter server, 1,024 workers", RING " --set strategy.data_parallel=parameter-server", 0, false},
    {"405B on 16,384 GPUs", "run tests/bench/llama3-405b.yaml " FAST, 0, false},
    {"405B on 131,072 GPUs", "run tests/bench/llama3-405b.yaml " FAST " --set cluster.nodes=16384 --set strategy.data=1024 --set batch.global=16384", 0, true},
    {"sweep: 768 points", SWEEP("points-768"), 0, true},
    {"sweep: 48 points, which all run", SWEEP("points-48"), 0, true},
    {"auto on 4,096 GPUs", "collective dgx-h100 --op all_reduce --algorithm auto --ranks 4096 --bytes 1G " FAST,
     0, false},
    {"double tree on 4,096 GPUs", "collective dgx-a100 --op all_reduce --algorithm auto --ranks 4096 --bytes 1G " FAST,
     0, false},
    {"auto on 65,536 GPUs, ideal", "collective dgx-h100 --op all_reduce --algorithm auto --ranks 65536 --bytes 1G "
     "--engine ideal", 0, false},
    {"ring on 65,536 GPUs, ideal", "collective dgx-h100 --op all_reduce --algorithm ring --ranks 65536 --bytes 1G "
     "--engine ideal", 0, false},
    {"1f1b, 64 x 512", PIPELINE, 129536, true},
    {"dualpipe, 64 x 512", PIPELINE " --set strategy.schedule=dualpipe", 0, false},
    {"dualpipe-v, 64 x 512", PIPELINE " --set strategy.schedule=dualpipe-v", 0, false},
    {"chimera, 64 x 512", PIPELINE " --set strategy.schedule=chimera", 0, false},
    {"1 M micro-batches, 4 stages", PIPELINE " --set strategy.pipeline=4 --set batch.micro_batches=1000000", 14000000,
     false},
    {"does not fit: 70B on 128", "run tests/bench/llama3-70b-memory.yaml " FAST, 0, false},
    /* the aims, on two processors: 20,000 bounds a second; 10 s and 12 s more for the verification; 5 s; 5 s */
    {"plan: 175B on 1,024, bounds", PLAN("175b") CORE " --subject-to iteration_time_s=1us --verify 0", 15276, false},
    {"plan: 175B on 1,024, replayed", PLAN("175b") CORE " --verify 0", 15276, false},
    {"plan: 175B on 1,024, verified", PLAN("175b") CORE, 15276, false},
    {"the same, software assumed", PLAN("175b"), 5092, false},
    {"plan: 13B on 8", PLAN("13b"), 0, false},
    {"plan: 70B on 128", PLAN("70b"), 0, false},
    {"does not fit: DeepSeek on 2,048", "run tests/bench/deepseek-v3-memory.yaml " FAST, 0, false},
};

/* Two commands in turn, and how much longer the second takes. */
#define HALVES(other, more) "run tests/bench/parts.yaml " FAST " --set simulation.fold=off --set 'cluster={parts: [" \
    "{name: a, platform: dgx-a100, nodes: 64}, {name: b, platform: " other ", nodes: 64}]}'" more
#define MIXED_REPLICAS " --set 'strategy.placement=[tensor, pipeline, data]'"
static const struct pair { const char *name, *commands[2]; } pairs[] = {
    {"two kinds for one: stages", {HALVES("dgx-a100", ""), HALVES("dgx-h100", "")}},
    {"two kinds for one: replicas", {HALVES("dgx-a100", MIXED_REPLICAS), HALVES("dgx-h100", MIXED_REPLICAS)}},
};

/* What costs twice as much where there is twice as much of it: a command that ends where the number goes. The number
 * that is doubled is large enough that process start and loading do not count; from 5 million operations to 10 million
 * where the machine's caches hold nothing any more. */
static const struct doubling {
    const char *name, *command;
    int number;
} doublings[] = {
    {"micro-batches", PIPELINE " --set strategy.pipeline=4 --set batch.micro_batches=", 100000},
    {"stages", PIPELINE " --set batch.micro_batches=4096 --set cluster.nodes=32 --set strategy.pipeline=", 64},
    {"replicas", PIPELINE " --set batch.micro_batches=256 --set cluster.nodes=256 --set simulation.fold=off "
     "--set strategy.pipeline=16 --set strategy.data=", 32},
    {"channels", RING " --set strategy.data=256 --set cluster.nodes=32 --set strategy.channels=", 4},
    {"micro-batches, to 10 M", PIPELINE " --set strategy.pipeline=4 --set batch.micro_batches=", 350000},
    {"stages, to 10 M", PIPELINE " --set batch.micro_batches=20480 --set cluster.nodes=32 "
     "--set strategy.pipeline=", 64},
    {"replicas, to 10 M", PIPELINE " --set batch.micro_batches=512 --set cluster.nodes=1280 "
     "--set simulation.fold=off --set strategy.pipeline=16 --set strategy.data=", 160},
    {"channels, to 8 M", RING " --set strategy.data=512 --set cluster.nodes=64 --set strategy.channels=", 8},
};

enum { MOST_RUNS = 50 };
static const double LONG = 5;        /* s: runs of OTHER that take longer are not repeated */

/* What the runs of a workload took. */
struct cost {
    double seconds[MOST_RUNS];
    int runs;
    long memory;                     /* KiB */
};

/* `number`: stands at the end of the command; 0: none does. */
static char *command_of(const char *command, int number, const char *program, bool fast)
{
    const char *engine = fast ? "--engine fast" : "--engine simgrid", *mark = strchr(command, *FAST);
    char *text = NULL, last[16] = "";

    if (!mark)
        mark = command + strlen(command);
    if (number)
        snprintf(last, sizeof last, "%d", number);
    if (asprintf(&text, "exec %s %.*s%s%s%s", program, (int)(mark - command), command, *mark ? engine : "",
                 *mark ? mark + 1 : "", last) < 0)
        BUG("no memory");
    return text;
}

/* Runs a command of the shell, without its output. Returns its exit status; -1: it was killed. */
static int run(const char *command, struct rusage *usage)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr))
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    BUG_IF(pid < 0 || wait4(pid, &status, 0, usage) != pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* A scenario that does not fit ends with that; anything else that fails has no cost. */
static void measure(const char *command, struct cost *cost)
{
    struct rusage usage;
    int code = run(command, &usage);

    if (code != EXIT_OK && code != EXIT_INFEASIBLE)
        return;
    cost->seconds[cost->runs++] = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    cost->memory = usage.ru_maxrss > cost->memory ? usage.ru_maxrss : cost->memory;
    qsort(cost->seconds, (size_t)cost->runs, sizeof cost->seconds[0], by_value);
}

/* Millions of instructions, by callgrind, of all processes; -1: there is no valgrind. */
static double instructions(const char *command)
{
    char *counted = NULL, line[256];
    double count = -1;
    FILE *out;

    if (asprintf(&counted, "valgrind --tool=callgrind --trace-children=yes --trace-children-skip='*/sh' "
                 "--callgrind-out-file=/dev/null %s 2>&1 >/dev/null",
                 command + strlen("exec ")) < 0)
        BUG("no memory");
    out = popen(counted, "r");
    BUG_IF(!out);
    while (fgets(line, sizeof line, out)) {
        const char *collected = strstr(line, "Collected : ");

        if (collected)
            count = (count < 0 ? 0 : count) + 1e-6 * strtod(collected + strlen("Collected : "), NULL);
    }
    pclose(out);
    free(counted);
    return count;
}

/* A cell of the table: a number, or a dash where it is negative. */
static void cell(double value, int width, int decimals)
{
    if (value < 0)
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, decimals, value);
}

static void print_cost(const struct workload *workload, const struct cost *cost)
{
    double least = cost->runs ? cost->seconds[0] : -1;

    cell(least, 9, 4);
    cell(cost->runs ? cost->seconds[cost->runs / 2] : -1, 9, 4);
    cell(cost->runs && workload->operations > 0 ? 1e-6 * workload->operations / least : -1, 7, 2);
    cell(cost->runs ? (double)cost->memory / 1000 : -1, 7, 0);
}

/* Of OTHER, and how many times as many the first program takes. */
static void print_instructions(double own, double other)
{
    cell(other, 9, 1);
    cell(own > 0 && other > 0 ? own / other : -1, 7, 3);
}

static void bench(const struct workload *workload, char **programs, const bool *fast, int count, int runs)
{
    struct cost costs[2] = {0};
    char *commands[2] = {NULL};
    double counted;

    for (int p = 0; p < count; p++)
        commands[p] = command_of(workload->command, 0, programs[p], fast[p]);
    for (int i = 0; i < runs; i++)
        for (int p = 0; p < count; p++)
            if (costs[p].runs == i && !(p && i && costs[p].seconds[0] > LONG))
                measure(commands[p], &costs[p]);
    printf("%-32s", workload->name);
    print_cost(workload, &costs[0]);
    counted = workload->instructions ? instructions(commands[0]) : -1;
    cell(counted, 8, 1);
    if (count > 1) {
        print_cost(workload, &costs[1]);
        cell(costs[0].runs && costs[1].runs ? costs[1].seconds[0] / costs[0].seconds[0] : -1, 7, 2);
        if (workload->instructions)
            print_instructions(counted, instructions(commands[1]));
    }
    putchar('\n');
    for (int p = 0; p < count; p++)
        free(commands[p]);
}

/* The instructions of both programs, and nothing else. Whether they are at most `most` times those of the other one. */
static bool compare_instructions(const struct workload *workload, char **programs, const bool *fast, double most)
{
    double counted[2];

    for (int p = 0; p < 2; p++) {
        char *command = command_of(workload->command, 0, programs[p], fast[p]);

        counted[p] = instructions(command);
        free(command);
    }
    printf("%-32s", workload->name);
    cell(counted[0], 9, 1);
    print_instructions(counted[0], counted[1]);
    puts(counted[0] > 0 && counted[0] <= most * counted[1] ? "" : "  TOO MANY");
    return counted[0] > 0 && counted[0] <= most * counted[1];
}

/* Of all workloads that have a count. */
static int compare_all(char **programs, const bool *fast, double most)
{
    bool good = true;

    printf("%-32s %9s %9s %7s\n", "M instructions of a command", "own", "other", "ratio");
    for (size_t i = 0; i < COUNT(workloads); i++)
        if (workloads[i].instructions)
            good = compare_instructions(&workloads[i], programs, fast, most) && good;
    return good ? EXIT_OK : EXIT_UNEXPECTED;
}

static void bench_doubling(const struct doubling *doubling, const char *program, bool fast, int runs)
{
    struct cost costs[2] = {0};

    for (int twice = 0; twice < 2; twice++) {
        char *command = command_of(doubling->command, doubling->number << twice, program, fast);

        for (int i = 0; i < runs && costs[twice].runs == i; i++)
            measure(command, &costs[twice]);
        free(command);
    }
    printf("%7d %7d %-23s", doubling->number, 2 * doubling->number, doubling->name);
    for (int twice = 0; twice < 2; twice++)
        cell(costs[twice].runs ? costs[twice].seconds[0] : -1, 9, 4);
    cell(costs[0].runs && costs[1].runs ? costs[1].seconds[0] / costs[0].seconds[0] : -1, 7, 2);
    putchar('\n');
}

static void bench_pair(const struct pair *pair, const char *program, bool fast, int runs)
{
    struct cost costs[2] = {0};
    char *commands[2];

    for (int other = 0; other < 2; other++)
        commands[other] = command_of(pair->commands[other], 0, program, fast);
    for (int i = 0; i < runs; i++)
        for (int other = 0; other < 2; other++)
            if (costs[other].runs == i)
                measure(commands[other], &costs[other]);
    printf("%-39s", pair->name);
    for (int other = 0; other < 2; other++) {
        cell(costs[other].runs ? costs[other].seconds[0] : -1, 9, 4);
        free(commands[other]);
    }
    cell(costs[0].runs && costs[1].runs ? costs[1].seconds[0] / costs[0].seconds[0] : -1, 7, 2);
    putchar('\n');
}

static bool knows_fast(const char *program)
{
    char *command = NULL;
    struct rusage usage;
    int code;

    if (asprintf(&command, "%s help run | grep -q fast", program) < 0)
        BUG("no memory");
    code = run(command, &usage);
    free(command);
    return code == 0;
}

int main(int argc, char **argv)
{
    bool instructions_alone = argc == 4 && strchr(argv[1], '.');
    int runs = instructions_alone ? 1 : argc > 1 ? atoi(argv[1]) : 0, count = argc - 2;
    bool fast[2];

    if (runs < 1 || runs > MOST_RUNS || count < 1 || count > 2) {
        fprintf(stderr, "expected: bench_commands RUNS PROGRAM [OTHER], at most %d runs, or MOST PROGRAM OTHER\n", MOST_RUNS);
        return EXIT_USAGE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int p = 0; p < count; p++)
        fast[p] = knows_fast(argv[2 + p]);
    if (instructions_alone)
        return compare_all(argv + 2, fast, atof(argv[1]));
    printf("%-32s %9s %9s %7s %7s %8s", "CPU seconds of a command", "least", "median", "M ops/s", "MB", "M instr.");
    printf(count > 1 ? " %9s %9s %7s %7s %7s %9s %7s\n" : "\n", "other", "median", "M ops/s", "MB", "ratio", "M instr.",
           "ratio");
    for (size_t i = 0; i < COUNT(workloads); i++)
        bench(&workloads[i], argv + 2, fast, count, runs);
    printf("\n%-39s %9s %9s %7s\n", "CPU seconds of twice as much", "once", "twice", "ratio");
    for (size_t i = 0; i < COUNT(doublings); i++)
        bench_doubling(&doublings[i], argv[2], fast[0], runs);
    printf("\n%-39s %9s %9s %7s\n", "CPU seconds on 1,024 GPUs", "one kind", "two", "ratio");
    for (size_t i = 0; i < COUNT(pairs); i++)
        bench_pair(&pairs[i], argv[2], fast[0], runs);
    return EXIT_OK;
}
