/* Placed groups: what the places of GPUs make of a group; and calls of collectives on them. */
#include "collective_run.h"

#include "collective/measure.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* On 4 nodes of 8 GPUs, 4 PCIe switches and 4 NICs, two nodes a leaf. */
static struct cluster two_leaves(void)
{
    struct cluster cluster = make_cluster(4, 8, 4);

    cluster.kinds[0].gpus_per_switch = 2;
    cluster.network.topology = (struct topology){.kind = TOPOLOGY_LEAF_SPINE, .leaf_nodes = 2,
                                                      .oversubscription = 2};
    return cluster;
}

static void topology_of_places(void **state)
{
    static const struct {
        int n, gpus[8], per_node;
        struct group_topology topology;
    } cases[] = {
        {1, {9}, 1, {1, 1, 1, false, false, false, 1, 1}},
        {2, {8, 9}, 2, {2, 1, 0.5, false, true, false, 1, 1}},
        {4, {0, 2, 4, 6}, 4, {4, 4, 1, false, false, false, 1, 1}},
        {4, {0, 2, 8, 10}, 2, {2, 2, 1, false, false, true, 1, 1}},
        {4, {0, 8, 2, 10}, 1, {2, 2, 1, true, false, true, 1, 1}},
        {4, {8, 10, 16, 18}, 2, {2, 2, 1, false, false, true, 2, 1}},
        {3, {24, 26, 9}, 1, {2, 1, 1, false, false, true, 2, 1}},
        {4, {30, 31, 1, 3}, 2, {2, 1, 0.5, false, true, true, 2, 1}},
    };
    struct cluster cluster = two_leaves();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct placed_group group = placed_group_of(&cluster, cases[i].gpus, cases[i].n);
        const struct group_topology *found = &group.topology, *expected = &cases[i].topology;

        assert_true(group.cluster == &cluster && group.gpus == cases[i].gpus);
        assert_int_equal(group.n, cases[i].n);
        assert_int_equal(group.per_node, cases[i].per_node);
        assert_int_equal(found->most, expected->most);
        assert_int_equal(found->fewest_nics, expected->fewest_nics);
        assert_true(found->share == expected->share);
        assert_int_equal(found->scattered, expected->scattered);
        assert_int_equal(found->together, expected->together);
        assert_int_equal(found->nodes, expected->nodes);
        assert_true(found->crowding == expected->crowding && found->narrowing == expected->narrowing);
    }
}

/* A straggler's NIC is slow for its messages alone; the rate to which NICs are limited is everybody's. */
static void links_of_the_slowest(void **state)
{
    static const double shares[16] = {1, 1, 0.25, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct cluster cluster = two_leaves();
    struct placed_group group;

    (void)state;
    cluster.kinds[0].nics.efficiency = 0.5;
    cluster.kinds[0].nics.rate = 1e10;
    cluster.nic_shares = shares;
    group = placed_group_of(&cluster, identity(), 16);
    assert_true(group.slowest.inside_latency == 1e-6 && group.slowest.network_latency == 5e-6);
    assert_true(group.slowest.inside_sheet == 3e11 && group.slowest.inside == 3e11);
    assert_true(group.slowest.network_sheet == 2.5e10 && group.slowest.nic_rate == 1e10);
    assert_true(group.slowest.network == 5e9);
    assert_true(group.mesh_share == 1 && group.slowest.switch_nics == 1);
}

/* Nodes 0 and 1, and nodes 2 and 3, on 8 GPUs each: the latter have faster ports, but slower NICs. */
static struct cluster two_kinds(void)
{
    struct cluster cluster = two_leaves();

    cluster.kinds[1] = cluster.kinds[0];
    cluster.kinds[1].inside.bandwidth = 9e11;
    cluster.kinds[1].inside.latency = 2e-6;
    cluster.kinds[1].nics.bandwidth = 1.25e10;
    cluster.part_count = 2;
    cluster.parts[1] = (struct machine_part){.kind = 1, .first = 2};
    return cluster;
}

static void slowest_of_two_kinds(void **state)
{
    static const int gpus[] = {16, 18, 0, 2};
    struct cluster cluster = two_kinds();
    struct placed_group both = placed_group_of(&cluster, gpus, 4), second = placed_group_of(&cluster, gpus, 2);

    (void)state;
    assert_true(both.slowest.inside_latency == 2e-6 && both.slowest.inside == 3e11 && both.slowest.inside_sheet == 3e11);
    assert_true(both.slowest.network == 1.25e10 && both.slowest.nic_rate == 1.25e10);
    assert_true(second.slowest.inside_latency == 2e-6 && second.slowest.inside == 9e11);
}

static void nothing_takes_time_on_the_ideal_cluster(void **state)
{
    struct cluster cluster = make_cluster(4, 8, 1);
    struct placed_group group = placed_group_of(&cluster, identity(), 16);
    struct collective_call call = {collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &group, 1e9, 1};

    (void)state;
    cluster.ideal = true;
    group = placed_group_of(&cluster, identity(), 16);
    assert_int_equal(group.per_node, 8);
    assert_true(!group.topology.nodes && group.topology.share == 1);
    assert_true(collective_cost(&call) == 0);
}

/* What an algorithm sees of a call; the choice's algorithm and channels in the call's place. */
static void calls(void **state)
{
    struct cluster cluster = two_leaves();
    struct placed_group group = placed_group_of(&cluster, identity(), 16);
    struct collective_call call = {collective_find(COLLECTIVE_ALL_REDUCE, "auto"), &group, 6e6, 3};
    struct collective_choice choice = collective_choose(&call);
    struct collective_call chosen = collective_chosen(call, choice.used, choice.channels);
    struct task task = collective_task(&call);

    (void)state;
    assert_true(task.n == 16 && task.per_node == 8 && task.bytes == 2e6 && task.folded == 0);
    assert_true(chosen.collective == choice.used && chosen.collective->write_messages && chosen.channels == choice.channels);
    assert_true(chosen.group == &group && chosen.bytes == 6e6);
    assert_true(collective_choose(&chosen).used == choice.used);
    assert_true(collective_cost(&call) == choice.seconds && collective_cost(&chosen) == choice.seconds);
}

static void lowering_returns_the_choice(void **state)
{
    struct cluster cluster = two_leaves();
    struct placed_group group = placed_group_of(&cluster, identity(), 16);
    struct collective_call call = {collective_find(COLLECTIVE_ALL_REDUCE, "auto"), &group, 6e6, 2};
    struct collective_choice choice = collective_choose(&call), lowered;
    uint32_t *lanes, done[16];
    int stride = collective_lanes(&call);
    struct program program = {.ranks = 16};
    struct dags dags = {0};

    (void)state;
    lanes = xcalloc((size_t)(16 * stride), sizeof *lanes);
    for (int i = 0; i < 16 * stride; i++)
        lanes[i] = program_lane(&program, i / stride, LANE_COLLECTIVE, i % stride);
    lowered = collective_lower(&call, NULL, &(struct member_ops){lanes, stride, NULL, done}, (struct new_op){.what = WHAT_SYNC},
                               &program, &dags);
    assert_true(lowered.used == choice.used && lowered.channels == choice.channels &&
                lowered.protocol == choice.protocol && lowered.seconds == choice.seconds);
    free(lanes);
    dags_release(&dags);
    program_release(&program);
}

/* A call is measured once for all groups in the same places of their nodes and leaves; in other places it is another
 * one, and so it is with a slow NIC among its members'. */
static void measured_once_for_the_same_places(void **state)
{
    static const struct { int n, gpus[4]; bool known; } cases[] = {
        {4, {0, 2, 8, 10}, false}, {4, {16, 18, 24, 26}, true}, {4, {0, 2, 8, 10}, true}, {4, {8, 10, 16, 18}, false},
        {4, {1, 3, 9, 11}, false}, {4, {4, 6, 12, 14}, false}, {4, {20, 22, 28, 30}, true}, {2, {0, 2}, false},
    };
    static const double shares[16] = {1, 1, 1, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct cluster cluster = two_leaves();
    struct error err = {0};

    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct measure measure;

        cluster.nic_shares = slow ? shares : NULL;
        measure_init(&measure, ENGINE_FAST, &cluster);
        for (size_t i = 0; i < COUNT(cases); i++) {
            struct placed_group group = placed_group_of(&cluster, cases[i].gpus, cases[i].n);
            size_t before = measure.cache->count;
            struct measured measured;

            assert_int_equal(measure_collective(&measure, &(struct collective_call){
                collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &group, 1e8, 0,
            }, 1, &measured, &err), 0);
            /* GPU 6's NIC is the slow one */
            if (cases[i].known && !(slow && cases[i].gpus[0] == 20))
                assert_int_equal(measure.cache->count, before);
            else
                assert_true(measure.cache->count > before);
            assert_int_equal(measured.first, cases[i].gpus[0]);
        }
        measure_release(&measure);
    }
}

/* The same places on nodes of another kind are another measurement. */
static void measured_once_for_each_kind(void **state)
{
    static const int gpus[][4] = {{0, 2, 4, 6}, {8, 10, 12, 14}, {16, 18, 20, 22}, {24, 26, 28, 30}};
    static const double bandwidths[] = {3e11, 3e11, 9e11, 9e11}, latencies[] = {1e-6, 1e-6, 2e-6, 2e-6};
    struct cluster cluster = two_kinds();
    struct measure measure;
    struct error err = {0};

    (void)state;
    measure_init(&measure, ENGINE_FAST, &cluster);
    for (size_t i = 0; i < COUNT(gpus); i++) {
        struct placed_group group = placed_group_of(&cluster, gpus[i], 4);
        struct measured measured;
        double expected = 6 * (latencies[i] + 1e8 / 4 / bandwidths[i]);

        assert_int_equal(measure_collective(&measure, &(struct collective_call){
            collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &group, 1e8, 1,
        }, 1, &measured, &err), 0);
        assert_true(fabs(measured.seconds - expected) <= 1e-9 * expected);
    }
    measure_release(&measure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topology_of_places), cmocka_unit_test(links_of_the_slowest),
        cmocka_unit_test(slowest_of_two_kinds), cmocka_unit_test(measured_once_for_each_kind),
        cmocka_unit_test(nothing_takes_time_on_the_ideal_cluster), cmocka_unit_test(calls),
        cmocka_unit_test(lowering_returns_the_choice), cmocka_unit_test(measured_once_for_the_same_places),
    };

    return cmocka_run_group_tests_name("placed_group", tests, NULL, NULL);
}
