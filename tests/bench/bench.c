/* bench: operations a second of each engine, on the shapes of programs that scenarios lower to. Prints a line a shape
 * and engine, the fastest of `repeats` (the first argument, 3); and how long large collectives take to be measured. A
 * measurement, no test: it depends on the machine. */
#include "collective/measure.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const struct cluster nodes_of_8 = {
    .kinds[0].gpus = 8,
    .kinds[0].inside = {.bandwidth = 450e9, .efficiency = 1, .latency = 1e-6},
    .kinds[0].nics = {.bandwidth = 50e9, .count = 8, .efficiency = 1, .latency = 3e-6},
};

static uint32_t compute(struct program *program, uint32_t lane, const uint32_t *dep)
{
    return program_add(program, (struct new_op){.kind = OP_COMPUTE, .lane = lane, .amount = 1e-3}, dep, dep != NULL);
}

static uint32_t transfer(struct program *program, uint32_t lane, int src, int dst, double bytes, const uint32_t *deps,
                         size_t ndeps)
{
    struct new_op op = {.kind = OP_TRANSFER, .lane = lane, .amount = bytes,
                    .transfer = {.src = (uint32_t)src, .dst = (uint32_t)dst}};

    return program_add(program, op, deps, ndeps);
}

/* GPipe: every micro-batch forward through all stages, then every one backward, boundaries as transfers. */
static void gpipe(struct program *program, int stages, int micro_batches)
{
    uint32_t *sent = xcalloc((size_t)micro_batches, sizeof *sent), done;

    program->ranks = stages;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < stages; i++) {
            int stage = pass ? stages - 1 - i : i, next = pass ? stage - 1 : stage + 1;
            uint32_t work = pass ? (uint32_t)stage * 3 : program_lane(program, stage, LANE_COMPUTE, 0);

            if (!pass) {
                program_lane(program, stage, LANE_SEND_NEXT, 0);
                program_lane(program, stage, LANE_SEND_PREVIOUS, 0);
            }
            for (int mb = 0; mb < micro_batches; mb++) {
                done = compute(program, work, i ? &sent[mb] : NULL);
                if (i < stages - 1)
                    sent[mb] = transfer(program, work + (pass ? 2 : 1), stage, next, 16 << 20, &done, 1);
            }
        }
    }
    free(sent);
}

/* Ring all-reduce: 2(n-1) steps, each rank sends a chunk to the right once it has its left neighbour's. */
static void ring(struct program *program, int ranks, double bytes)
{
    uint32_t *last = xcalloc((size_t)ranks, sizeof *last), *now = xcalloc((size_t)ranks, sizeof *now);

    program->ranks = ranks;
    for (int r = 0; r < ranks; r++)
        program_lane(program, r, LANE_COLLECTIVE, 0);
    for (int step = 0; step < 2 * (ranks - 1); step++) {
        for (int r = 0; r < ranks; r++)
            now[r] = transfer(program, (uint32_t)r, r, (r + 1) % ranks, bytes / ranks, &last[(r + ranks - 1) % ranks],
                              step > 0);
        for (int r = 0; r < ranks; r++)
            last[r] = now[r];
    }
    free(last);
    free(now);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int time_program(const char *name, struct program *program, int repeats)
{
    struct cluster cluster = nodes_of_8;
    struct error err = {0};
    int failed = 0;

    cluster_size(&cluster, program->ranks);
    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL && !failed; engine++) {
        double best = 1e9, makespan = 0;

        for (int i = 0; i < repeats && !failed; i++) {
            struct timeline timeline;
            double begin = seconds();

            timeline_init(&timeline, program);
            failed = replay(engine, program, &cluster, &timeline, &err);
            best = seconds() - begin < best ? seconds() - begin : best;
            makespan = timeline.makespan;
            timeline_release(&timeline);
        }
        printf("%-36s %-8s %8zu operations %10.6f s %12.0f operations/s   simulated %.9g s\n", name,
               engine_names[engine], program->ops.count, best, (double)program->ops.count / best, makespan);
    }
    if (failed)
        error_print(&err, stderr);
    error_release(&err);
    program_release(program);
    return failed;
}

/* As a scenario with sharded parameters measures it: all GPUs of nodes of 8, through every NIC. */
static int measured_ring(int gpus, double bytes, int repeats)
{
    const struct collective *gather = collective_find(COLLECTIVE_ALL_GATHER, "ring");
    struct cluster cluster = nodes_of_8;
    struct error err = {0};
    int *all = xcalloc((size_t)gpus, sizeof *all), failed = 0;

    for (int i = 0; i < gpus; i++)
        all[i] = i;
    cluster_size(&cluster, gpus);
    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL && !failed; engine++) {
        struct measured measured = {0};
        double best = 1e9;

        for (int i = 0; i < repeats && !failed; i++) {
            struct measure measure;
            double begin = seconds();

            measure_init(&measure, engine, &cluster);
            struct placed_group group = placed_group_of(&cluster, all, gpus);

            failed = measure_collective(&measure, &(struct collective_call){gather, &group, bytes, 0}, 1, &measured,
                                        &err);
            best = seconds() - begin < best ? seconds() - begin : best;
            measure_release(&measure);
        }
        printf("ring all-gather, %4d GPUs, %-7s %-8s %8.0f messages   %10.6f s %27s   simulated %.9g s\n", gpus,
               "alone", engine_names[engine], measured.messages, best, "", measured.seconds);
    }
    if (failed)
        error_print(&err, stderr);
    error_release(&err);
    free(all);
    return failed;
}

/* All other ranks send to rank 0 over its one NIC, at unequal times. */
static void incast(struct program *program, int ranks, int messages)
{
    program->ranks = ranks;
    for (int r = 0; r < ranks; r++)
        program_lane(program, r, LANE_SEND_NEXT, 0);
    for (int r = 1; r < ranks; r++)
        for (int m = 0; m < messages; m++)
            transfer(program, (uint32_t)r, r, 0, 1e6 * (1 + 0.001 * (r * 7919 % 1009)), NULL, 0);
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? atoi(argv[1]) : 3, failed = 0;
    struct program program = {0};
    struct rusage parent, child;

    setvbuf(stdout, NULL, _IOLBF, 0);
    ring(&program, 8, 1 << 20);
    failed |= time_program("ring all-reduce, 8 GPUs", &program, 10 * repeats);
    gpipe(&program, 8, 32);
    failed |= time_program("GPipe, 8 stages x 32", &program, 10 * repeats);
    gpipe(&program, 64, 512);
    failed |= time_program("GPipe, 64 stages x 512", &program, repeats);
    ring(&program, 256, 1e9);
    failed |= time_program("ring all-reduce, 256 GPUs, 1 GB", &program, repeats);
    incast(&program, 1025, 20);
    failed |= time_program("1,024 into one GPU, unsynchronised", &program, 1);
    failed |= measured_ring(1024, 1e9, repeats);
    getrusage(RUSAGE_SELF, &parent);
    getrusage(RUSAGE_CHILDREN, &child);
    printf("memory at most: %ld MB, simulation %ld MB\n", parent.ru_maxrss / 1000, child.ru_maxrss / 1000);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
