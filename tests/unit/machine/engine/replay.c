#include "replayed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* One node of 8 GPUs, 450 GB/s and 1 us. */
static const struct cluster node = {.nodes = 1, .kinds[0].gpus = 8,
                                    .kinds[0].inside = {.bandwidth = 450e9, .efficiency = 1, .latency = 1e-6}};

static void assert_near(double value, double expect, double relative)
{
    if (!(fabs(value - expect) <= relative * fabs(expect)))
        fail_msg("%.17g is not %.17g", value, expect);
}

static uint32_t add_lane(struct program *program)
{
    program->ranks = 1;
    return program_lane(program, 0, LANE_COMPUTE, 0);
}

static uint32_t compute(struct program *program, uint32_t lane, double seconds, const uint32_t *deps, size_t ndeps)
{
    return program_add(program, (struct new_op){.kind = OP_COMPUTE, .lane = lane, .amount = seconds}, deps, ndeps);
}

static uint32_t send(struct program *program, uint32_t lane, int src, int dst, double bytes, const uint32_t *deps,
                     size_t ndeps)
{
    struct new_op op = {.kind = OP_TRANSFER, .lane = lane, .amount = bytes,
                    .transfer = {.src = (uint32_t)src, .dst = (uint32_t)dst}};

    return program_add(program, op, deps, ndeps);
}

/* 1 MiB around 8 GPUs: 2(8 - 1) steps of an eighth of the vector. */
static void test_ring(void **state)
{
    struct program program = {0};
    struct timeline timeline;
    uint32_t last[8] = {0}, now[8];

    (void)state;
    for (int r = 0; r < 8; r++)
        add_lane(&program);
    for (int step = 0; step < 14; step++) {
        for (int r = 0; r < 8; r++)
            now[r] = send(&program, (uint32_t)r, r, (r + 1) % 8, 131072, &last[(r + 7) % 8], step > 0);
        memcpy(last, now, sizeof last);
    }
    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++) {
        replayed(engine, &program, &node, &timeline);
        assert_near(timeline.makespan, 14 * (1e-6 + 131072 / 450e9), 1e-9);
        timeline_release(&timeline);
    }
    program_release(&program);
}

/* A transfer costs latency + bytes / bandwidth: whole bytes, fractions, none, and very many. */
static void test_sizes(void **state)
{
    static const double sizes[] = {0, 1e-3, 1 / 7.0, 1, 1.5, 100 / 3.0, 4096, 1e6 + 1 / 3.0,
                                   16777216, 1e9 / 7, 1e12, 1e18};
    static const double latencies[] = {0, 1e-12, 1.3e-6, 0.25};

    (void)state;
    for (size_t l = 0; l < COUNT(latencies); l++) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            struct cluster cluster = node;
            struct program program = {0};
            struct timeline timeline;

            cluster.kinds[0].inside.latency = latencies[l];
            send(&program, add_lane(&program), 2, 5, sizes[i], NULL, 0);
            replayed(ENGINE_SIMGRID, &program, &cluster, &timeline);
            assert_true(timeline.start[0] == 0);
            assert_near(timeline.end[0], latencies[l] + sizes[i] / 450e9, 1e-9);
            timeline_release(&timeline);
            program_release(&program);
        }
    }
}

struct flow { int src, dst; double bytes, begin, expect; };

/* Each flow in another lane. It begins at `begin`; `expect` is its end. */
static void expect_flows(const struct cluster *cluster, const struct flow *flows, size_t count)
{
    struct program program = {0};
    struct timeline timeline;

    for (size_t i = 0; i < count; i++) {
        uint32_t before = compute(&program, add_lane(&program), flows[i].begin, NULL, 0);

        send(&program, add_lane(&program), flows[i].src, flows[i].dst, flows[i].bytes, &before, 1);
    }
    replayed(ENGINE_SIMGRID, &program, cluster, &timeline);
    for (size_t i = 0; i < count; i++)
        assert_near(timeline.end[2 * i + 1], flows[i].expect, 1e-9);
    timeline_release(&timeline);
    program_release(&program);
}

static void test_sharing(void **state)
{
    struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 8,
                              .kinds[0].inside = {.bandwidth = 1e9, .efficiency = 1, .latency = 1e-3}};
    static const struct flow out[] = {{0, 1, 1e6, 0, 3e-3}, {0, 2, 1e6, 0, 3e-3}};
    static const struct flow in[] = {{1, 0, 1e6, 0, 3e-3}, {2, 0, 1e6, 0, 3e-3}};
    static const struct flow both_ways[] = {{0, 1, 1e6, 0, 2e-3}, {1, 0, 1e6, 0, 2e-3}};
    static const struct flow unequal[] = {{0, 1, 1e6, 0, 3e-3}, {0, 2, 3e6, 0, 5e-3}};
    /* Alone for 1 ms, half of the bandwidth for 2 ms, then alone. Latency takes no bandwidth. */
    static const struct flow later[] = {{0, 1, 2e6, 0, 4e-3}, {0, 2, 2e6, 1e-3, 5e-3}};
    /* flows into 1 leave 0 to 1 a third, so 0 to 2 gets two thirds */
    static const struct flow max_min[] = {
        {0, 1, 1e6, 0, 4e-3}, {3, 1, 1e6, 0, 4e-3}, {4, 1, 1e6, 0, 4e-3}, {0, 2, 2e6, 0, 4e-3},
    };

    (void)state;
    expect_flows(&cluster, out, COUNT(out));
    expect_flows(&cluster, in, COUNT(in));
    expect_flows(&cluster, both_ways, COUNT(both_ways));
    expect_flows(&cluster, unequal, COUNT(unequal));
    expect_flows(&cluster, later, COUNT(later));
    expect_flows(&cluster, max_min, COUNT(max_min));
}

/* 4 nodes of 4 GPUs, 2 NICs of 10 GB/s, no latency; 2 nodes a leaf, whose uplink has 40 / 4 GB/s. */
static void test_network(void **state)
{
    struct cluster cluster = {
        .nodes = 4, .kinds[0].gpus = 4, .kinds[0].inside = {.bandwidth = 1e12, .efficiency = 1},
        .kinds[0].nics = {.bandwidth = 10e9, .count = 2, .efficiency = 1},
        .network.topology = {.kind = TOPOLOGY_LEAF_SPINE, .leaf_nodes = 2, .oversubscription = 4},
    };
    static const struct flow shared_nic[] = {{0, 4, 10e9, 0, 2}, {1, 6, 10e9, 0, 2}};
    static const struct flow own_nics[] = {{0, 4, 10e9, 0, 1}, {2, 6, 10e9, 0, 1}};
    static const struct flow nic_and_port[] = {{0, 4, 10e9, 0, 1}, {0, 1, 1e12, 0, 1}};
    static const struct flow uplink[] = {{0, 8, 10e9, 0, 2}, {4, 12, 10e9, 0, 2}};
    static const struct flow uplinks_each_way[] = {{0, 8, 10e9, 0, 1}, {12, 4, 10e9, 0, 1}};

    (void)state;
    expect_flows(&cluster, shared_nic, COUNT(shared_nic));
    expect_flows(&cluster, own_nics, COUNT(own_nics));
    expect_flows(&cluster, nic_and_port, COUNT(nic_and_port));
    expect_flows(&cluster, uplink, COUNT(uplink));
    expect_flows(&cluster, uplinks_each_way, COUNT(uplinks_each_way));
    cluster.network.topology.kind = TOPOLOGY_NONBLOCKING;
    expect_flows(&cluster, uplinks_each_way, COUNT(uplinks_each_way));
}

/* Lanes keep their order; dependencies across lanes; operations of no time. */
static void test_order(void **state)
{
    struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 4,
                              .kinds[0].inside = {.bandwidth = 1, .efficiency = 1, .latency = 0.5}};
    static const double starts[] = {0, 1, 1, 1, 3.5, 0, 3.5, 4, 7};
    static const double ends[] = {1, 1, 1, 3.5, 7, 0, 4, 7.5, 7};
    struct program program = {0};
    struct timeline timeline;
    uint32_t a = add_lane(&program), b = add_lane(&program), c = add_lane(&program), d = add_lane(&program), deps[4];

    (void)state;
    deps[0] = compute(&program, a, 1, NULL, 0);
    deps[1] = compute(&program, a, 0, NULL, 0);
    deps[2] = compute(&program, b, 0, &deps[1], 1);
    deps[3] = send(&program, b, 0, 1, 2, deps, 3);
    compute(&program, a, 3.5, &deps[3], 1);
    compute(&program, c, 0, NULL, 0);
    send(&program, b, 0, 2, 0, NULL, 0);
    send(&program, b, 0, 3, 3, NULL, 0);
    compute(&program, d, 0, (uint32_t[]){4}, 1);
    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++) {
        replayed(engine, &program, &cluster, &timeline);
        for (size_t i = 0; i < COUNT(starts); i++) {
            assert_near(timeline.start[i], starts[i], 1e-12);
            assert_near(timeline.end[i], ends[i], 1e-12);
        }
        timeline_release(&timeline);
    }
    program_release(&program);
}

static void test_empty(void **state)
{
    struct program program = {0};
    struct timeline timeline;

    (void)state;
    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++) {
        replayed(engine, &program, &node, &timeline);
        assert_true(timeline.makespan == 0);
        timeline_release(&timeline);
    }
}

static void test_ideal_cluster(void **state)
{
    struct cluster cluster = {.nodes = 2, .kinds[0].gpus = 1, .ideal = true};
    struct program program = {0};
    struct timeline timeline;
    uint32_t lane = add_lane(&program), dep = compute(&program, lane, 0.1, NULL, 0);

    (void)state;
    dep = send(&program, lane, 0, 1, 1e9, &dep, 1);
    compute(&program, add_lane(&program), 0.2, &dep, 1);
    replayed(ENGINE_SIMGRID, &program, &cluster, &timeline);
    assert_true(timeline.end[1] == 0.1 && timeline.makespan == 0.1 + 0.2);
    timeline_release(&timeline);
    program_release(&program);
}

/* 5,000 lanes: all transfers in flight at once, through one link, each of another size. */
static void test_many_lanes(void **state)
{
    enum { LANES = 5000 };
    struct cluster cluster = {.nodes = 1, .kinds[0].gpus = 2,
                              .kinds[0].inside = {.bandwidth = 1e9, .efficiency = 1, .latency = 1e-6}};
    struct program program = {0};
    struct timeline timeline;
    double end = 1e-6;

    (void)state;
    for (int i = 0; i < LANES; i++)
        send(&program, add_lane(&program), 0, 1, (i + 1) * 1e3, NULL, 0);
    replayed(ENGINE_SIMGRID, &program, &cluster, &timeline);
    for (int i = 0; i < LANES; i++) {
        end += 1e3 * (LANES - i) / 1e9;     /* the next size has 1 kB more to go, shared by all that are left */
        assert_near(timeline.end[i], end, 1e-9);
    }
    timeline_release(&timeline);
    program_release(&program);
}

/* The child may not write the platform's file and dies; the caller gets a message. */
static void test_failure(void **state)
{
    struct program program = {0};
    struct timeline timeline;
    struct error err = {0};
    struct rlimit before, none;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    for (int i = 0; i < 2; i++)
        send(&program, add_lane(&program), 0, 1, 1, NULL, 0);
    timeline_init(&timeline, &program);
    setrlimit(RLIMIT_FSIZE, &none);
    int result = replay(ENGINE_SIMGRID, &program, &node, &timeline, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(result, -1);
    assert_int_equal(err.count, 1);
    assert_int_equal(err.messages[0].code, EXIT_UNEXPECTED);
    assert_non_null(strstr(err.messages[0].text, "the simgrid engine"));
    error_release(&err);
    timeline_release(&timeline);
    program_release(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring), cmocka_unit_test(test_sizes), cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_network), cmocka_unit_test(test_order), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_ideal_cluster), cmocka_unit_test(test_many_lanes), cmocka_unit_test(test_failure),
    };

    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
