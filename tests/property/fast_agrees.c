/* The engine fast gives the starts and ends of all operations that simgrid gives. Contention is chaotic: where a
 * difference in the last digit of the bytes moves an end, the engines may differ by no more than that.
 *
 *     test_fast_agrees [PROGRAMS [PLANS]]      how many random programs and plans; 2,000, 1,000: some minutes */
#include "random_plan.h"
#include "random_program.h"

#include <glob.h>

static int programs = 100, plans = 40;
static double worst;                    /* so far, for those who watch */
static const double AGREE = 1e-9;        /* of the end of the program */

/* How far times move if every transfer has a few units in the last place more or less. */
static double sensitivity(const struct program *program, const struct cluster *cluster, const struct timeline *timeline)
{
    struct program other = *program;
    double most = 0;

    other.ops.items = xcalloc(program->ops.count, sizeof *other.ops.items);
    memcpy(other.ops.items, program->ops.items, program->ops.count * sizeof *other.ops.items);
    for (int factor = -2; factor <= 2; factor++) {
        struct timeline moved;

        for (size_t i = 0; i < program->ops.count; i++)
            if (other.ops.items[i].kind == OP_TRANSFER)
                other.ops.items[i].amount = program->ops.items[i].amount * (1 + factor * 1e-15);
        replayed(ENGINE_FAST, &other, cluster, &moved);
        most = fmax(most, timeline_difference(timeline, &moved));
        timeline_release(&moved);
    }
    free(other.ops.items);
    return most;
}

static void compare(const char *what, const struct program *program, const struct cluster *cluster)
{
    struct timeline simgrid, fast;
    double apart;

    replayed(ENGINE_SIMGRID, program, cluster, &simgrid);
    replayed(ENGINE_FAST, program, cluster, &fast);
    apart = timeline_difference(&simgrid, &fast);
    if (apart > worst)
        print_message("%s\n%zu operations, apart by %.2g\n", what, program->ops.count, worst = apart);
    if (!(apart <= AGREE) && !(apart <= sensitivity(program, cluster, &fast)))
        fail_msg("%s: apart by %g, and no perturbation moves it as far", what, apart);
    timeline_release(&simgrid);
    timeline_release(&fast);
}

static void random_programs(void **state)
{
    (void)state;
    for (int i = 1; i <= programs; i++) {
        struct cluster cluster;
        struct program program;
        char what[64];

        seed = (uint64_t)i * 0xA24BAED4963EE407u;
        cluster = random_cluster();
        random_program(&program, &cluster, false);
        snprintf(what, sizeof what, "program %d", i);
        compare(what, &program, &cluster);
        program_release(&program);
    }
}

static void random_plans(void **state)
{
    uint64_t drawn = 0x9FB21C651E98DF25u;

    (void)state;
    for (int i = 1; i <= plans; i++) {
        struct random_plan plan = random_plan(&drawn);
        struct simulated simulated;

        if (i % 2)
            any_schedule(&plan, &drawn);
        plan.engine = "fast";
        plan.ideal = false;
        if (i % 4)
            plan.collectives = "messages";
        simulate_plan(&simulated, &plan);
        compare(simulated.text, &simulated.run.lowered.program, &simulated.scenario.cluster);
        simulated_release(&simulated);
    }
}

/* Every rank sends something else to every other, one after another, as soon as it can. */
static void all_to_all(void **state)
{
    enum { RANKS = 24 };
    struct cluster cluster = {
        .nodes = 6, .kinds[0].gpus = 4, .kinds[0].inside = {.bandwidth = 1e11, .efficiency = 1, .latency = 1e-6},
        .kinds[0].nics = {.bandwidth = 1e10, .count = 2, .efficiency = 1, .latency = 5e-6},
        .network.topology = {.kind = TOPOLOGY_LEAF_SPINE, .leaf_nodes = 2, .oversubscription = 8},
    };
    struct program program = {.ranks = RANKS};

    (void)state;
    seed = 7;
    for (int rank = 0; rank < RANKS; rank++)
        program_lane(&program, rank, LANE_COLLECTIVE, 0);
    for (uint32_t step = 1; step < RANKS; step++)
        for (uint32_t rank = 0; rank < RANKS; rank++)
            program_add(&program, (struct new_op){.kind = OP_TRANSFER, .lane = rank, .amount = 1e6 * (0.1 + uniform()),
                                              .transfer = {.src = rank, .dst = (rank + step) % RANKS}}, NULL, 0);
    compare("all to all", &program, &cluster);
    program_release(&program);
}

/* Contention of every kind: NICs that GPUs share, an uplink for eight, a server for 64 workers, trees, rings in
 * parallel, choices, both directions at once. */
#define STAGES "model: {stages: {forward: 1 ms, backward: 2 ms, parameters: 4 M, boundary: 3 MB}}\n"
#define NODES(nodes, gpus, network) \
    "cluster: {nodes: " #nodes ", gpus_per_node: " #gpus ", inside: {bandwidth: 100 GB/s, latency: 1 us},\n" \
    "          network: {bandwidth: 10 GB/s, latency: 5 us, " network "}}\n"
static const char *const contended[] = {
    STAGES NODES(4, 8, "nics: 1") "batch: {micro_batches: 8}\nstrategy: {schedule: 1f1b, pipeline: 8}\n",
    STAGES NODES(8, 4, "nics: 2, topology: {leaf_nodes: 2, oversubscription: 8}")
        "batch: {micro_batches: 6}\nstrategy: {schedule: gpipe, pipeline: 4, placement: [tensor, data, pipeline]}\n",
    STAGES NODES(8, 8, "nics: 2") "batch: {micro_batches: 1}\nstrategy: {data_parallel: parameter-server}\n",
    STAGES NODES(4, 4, "nics: 1") "batch: {micro_batches: 2}\nstrategy: {all_reduce: butterfly}\n",
    STAGES NODES(2, 8, "nics: 8, topology: {leaf_nodes: 1, oversubscription: 8}")
        "batch: {micro_batches: 2}\nstrategy: {all_reduce: ring, channels: 8}\n",
    STAGES NODES(4, 4, "nics: 1")
        "batch: {micro_batches: 12}\nstrategy: {schedule: varuna, runtime: opportunistic, pipeline: 4}\n",
    STAGES NODES(2, 4, "nics: 1") "batch: {micro_batches: 8}\nstrategy: {schedule: dualpipe, pipeline: 4}\n",
};

/* As it is, with jitter, and with all that folding and measuring leave out. */
static const struct { const char *sets[4]; size_t count; } ways[] = {
    {{"simulation.jitter=0"}, 1},
    {{"simulation.jitter=0.1"}, 1},
    {{"simulation.fold=off", "simulation.collectives=messages"}, 2},
    {{"simulation.fold=off", "simulation.collectives=messages", "simulation.jitter=0.1"}, 3},
};
enum { MOST_OPS = 30000 };       /* simgrid takes long for the largest of them; ./bench.sh has these */

/* `whole`: the scenario is simulated on both engines; else the program of one, so that only the replay is compared. */
static void compare_file(const char *path, const char *what, size_t way, bool whole)
{
    double without;
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0}, reference = {0};
    struct error err = {0};

    if (load_once(path, ways[way].sets, ways[way].count, &scenario, &err) ||
        workload_init(&workload, &scenario, &err) ||
        simulate(&workload, (struct simulate_options){.engine = ENGINE_FAST}, &run, &err) ||
        (whole && simulate(&workload, (struct simulate_options){.engine = ENGINE_SIMGRID}, &reference, &err)))
        fail_at(what, &err);
    if (whole)
        expect_near("the iteration time", run.metrics.iteration_time, reference.metrics.iteration_time, what);
    if (whole && ways[way].count > 1) {
        size_t met;

        assert_int_equal(run_verify(&run, ENGINE_IDEAL, &without, &met, &err), 0);
        if (without < 1e-3)
            fail_msg("nothing contends in %s", what);
    }
    if (run.lowered.program.ops.count <= MOST_OPS)
        compare(what, &run.lowered.program, &scenario.cluster);
    run_release(&run);
    run_release(&reference);
    workload_release(&workload);
    scenario_release(&scenario);
}

static void contention(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(contended); i++) {
        char path[] = "/tmp/dtsim-test-XXXXXX";
        FILE *file = fdopen(mkstemp(path), "w");

        assert_non_null(file);
        assert_true(fputs(contended[i], file) >= 0);
        assert_int_equal(fclose(file), 0);
        for (size_t way = 0; way < COUNT(ways); way++)
            compare_file(path, contended[i], way, way % 2 == 0);
        unlink(path);
    }
}

static void files(void **state)
{
    static const char *const folders[] = {"tour", "methods"};

    (void)state;
    for (size_t f = 0; f < COUNT(folders); f++) {
        char pattern[512];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/scenarios/%s/*.yaml", DTSIM_SOURCE_DIR, folders[f]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++)
            for (size_t way = 0; way < COUNT(ways); way++)
                compare_file(found.gl_pathv[i], found.gl_pathv[i], way, false);
        globfree(&found);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs), cmocka_unit_test(random_plans), cmocka_unit_test(all_to_all),
        cmocka_unit_test(contention), cmocka_unit_test(files),
    };

    if (argc > 1)
        programs = atoi(argv[1]);
    if (argc > 2)
        plans = atoi(argv[2]);
    return cmocka_run_group_tests_name("fast_agrees", tests, NULL, NULL);
}
