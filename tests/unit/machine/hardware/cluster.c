#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hardware/cluster.h"
#include "engine/replay_simgrid.h"

#include <math.h>
#include <string.h>

/* 5 nodes of 4 GPUs with 2 NICs; 2 nodes a leaf. */
static const struct cluster leaf_spine = {
    .nodes = 5,
    .kinds[0].gpus = 4,
    .kinds[0].inside = {.bandwidth = 300e9, .latency = 1.1e-6, .efficiency = 1},
    .kinds[0].nics = {.bandwidth = 25e9, .count = 2, .latency = 3.3e-6, .efficiency = 1},
    .network.topology = {.kind = TOPOLOGY_LEAF_SPINE, .leaf_nodes = 2, .oversubscription = 3},
};

static void test_size(void **state)
{
    static const struct { int nodes, gpus, expect; } cases[] = {
        {0, 0, 1}, {0, 1, 1}, {0, 4, 1}, {0, 5, 2}, {0, 8, 2}, {0, 9, 3}, {7, 9, 7}, {1, 9, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster = leaf_spine;

        cluster.nodes = cases[i].nodes;
        cluster_size(&cluster, cases[i].gpus);
        assert_int_equal(cluster.nodes, cases[i].expect);
        assert_int_equal(cluster_gpus(&cluster), 4 * cases[i].expect);
    }
}

static void test_places(void **state)
{
    static const struct { int gpu, node, nic, leaf; } cases[] = {
        {0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 1, 0}, {3, 0, 1, 0}, {4, 1, 2, 0}, {7, 1, 3, 0}, {8, 2, 4, 1}, {19, 4, 9, 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(cluster_node_of(&leaf_spine, cases[i].gpu), cases[i].node);
        assert_int_equal(cluster_nic_of(&leaf_spine, cases[i].gpu), cases[i].nic);
        assert_int_equal(cluster_leaf_of(&leaf_spine, cases[i].node), cases[i].leaf);
    }
}

/* NIC k serves the GPUs with floor(local * nics / gpus_per_node) = k, also where that does not divide. */
static void test_uneven_nics(void **state)
{
    static const int expect[] = {0, 0, 0, 1, 1, 2, 2, 2, 3, 3};
    struct cluster cluster = leaf_spine;

    (void)state;
    cluster.kinds[0].gpus = 10;
    cluster.kinds[0].nics.count = 4;
    for (int gpu = 0; gpu < 10; gpu++) {
        assert_int_equal(cluster_nic_of(&cluster, gpu), expect[gpu]);
        assert_int_equal(cluster_nic_of(&cluster, 20 + gpu), 8 + expect[gpu]);
    }
}

static void names_of(const struct cluster *cluster, const struct route *route, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < route->count; i++) {
        char name[32];

        cluster_link_name(cluster, route->links[i], name, sizeof name);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? " " : "", name);
    }
}

static void names_in_simgrid(const struct simgrid_route *route, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < route->count && i < ROUTE_MAX; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? " " : "", route->links[i]);
}

/* What cluster_route says, and what SimGrid found in the platform that it loaded. */
static void expect_route(const struct cluster *cluster, int src, int dst, const char *links, double latency,
                         double bandwidth)
{
    struct route route = cluster_route(cluster, src, dst);
    struct simgrid_route loaded;
    struct error err = {0};
    char names[200];

    names_of(cluster, &route, names, sizeof names);
    assert_string_equal(names, links);
    assert_true(route.latency == latency);
    assert_true(route.bandwidth == bandwidth);
    if (simgrid_route(cluster, src, dst, &loaded, &err))
        fail_msg("%s", err.messages[0].text);
    assert_int_equal(loaded.count, route.count);
    names_in_simgrid(&loaded, names, sizeof names);
    assert_string_equal(names, links);
    assert_true(fabs(loaded.latency - latency) <= 1e-15 * latency);
    assert_true(fabs(loaded.bandwidth - bandwidth) <= 1e-15 * bandwidth);
    error_release(&err);
}

static void test_routes(void **state)
{
    struct cluster flat = leaf_spine;

    (void)state;
    expect_route(&leaf_spine, 0, 3, "gpu0.up gpu3.down", 1.1e-6, 300e9);
    expect_route(&leaf_spine, 18, 17, "gpu18.up gpu17.down", 1.1e-6, 300e9);
    expect_route(&leaf_spine, 3, 5, "nic1.up nic2.down", 3.3e-6, 25e9);
    expect_route(&leaf_spine, 3, 19, "nic1.up leaf0.up leaf2.down nic9.down", 3.3e-6, 25e9);
    expect_route(&leaf_spine, 19, 8, "nic9.up leaf2.up leaf1.down nic4.down", 3.3e-6, 25e9);
    flat.network.topology.kind = TOPOLOGY_NONBLOCKING;
    expect_route(&flat, 0, 3, "gpu0.up gpu3.down", 1.1e-6, 300e9);
    expect_route(&flat, 3, 19, "nic1.up nic9.down", 3.3e-6, 25e9);
}

/* One node or one GPU a node, so that half of the cluster is not described; uplinks that are narrower than a NIC. */
static void test_routes_at_the_edges(void **state)
{
    struct cluster one = {.nodes = 1, .kinds[0].gpus = 2, .kinds[0].inside = {.bandwidth = 1e9, .efficiency = 1}};
    struct cluster narrow = leaf_spine, lone = leaf_spine;

    (void)state;
    expect_route(&one, 1, 0, "gpu1.up gpu0.down", 0, 1e9);
    lone.kinds[0].gpus = lone.kinds[0].nics.count = 1;
    lone.kinds[0].inside = (struct inside){.bandwidth = NAN, .latency = NAN};
    expect_route(&lone, 0, 4, "nic0.up leaf0.up leaf2.down nic4.down", 3.3e-6, 50e9 / 3);
    narrow.network.topology.oversubscription = 8;
    expect_route(&narrow, 3, 19, "nic1.up leaf0.up leaf2.down nic9.down", 3.3e-6, 12.5e9);
}

static void test_bandwidths(void **state)
{
    struct cluster half = leaf_spine;

    (void)state;
    half.kinds[0].inside.efficiency = half.kinds[0].nics.efficiency = 0.5;
    assert_true(cluster_widest(&half, LINK_PORT_DOWN) == 150e9);
    assert_true(cluster_widest(&half, LINK_NIC_UP) == 12.5e9);
    assert_true(cluster_link_bandwidth(&half, (struct link){LINK_BETWEEN, 0}) == 2 * 2 * 12.5e9 / 3);
    assert_true(cluster_widest(&leaf_spine, LINK_PORT_UP) == 300e9);
    assert_true(cluster_widest(&leaf_spine, LINK_NIC_DOWN) == 25e9);
    assert_true(cluster_link_bandwidth(&leaf_spine, (struct link){LINK_BETWEEN, 3}) == 2 * 2 * 25e9 / 3);
}

/* 2 nodes of 4 GPUs with 2 NICs, then 3 nodes of 2 GPUs with 1 NIC: each node gives its own numbers. */
static void test_parts(void **state)
{
    static const int nodes[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4};
    static const int places[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 1, 0, 1};
    static const int nics[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}, nodes_of_nics[] = {0, 0, 1, 1, 2, 3, 4};
    struct cluster cluster = leaf_spine;

    (void)state;
    cluster.network.topology = (struct topology){.kind = TOPOLOGY_NONBLOCKING, .oversubscription = 1};
    cluster.part_count = 2;
    cluster.parts[1] = (struct machine_part){.kind = 1, .first = 2};
    cluster.kinds[1] = (struct machine_kind){
        .gpus = 2, .gpu = {.memory = 40e9}, .inside = {.bandwidth = 100e9, .latency = 2e-6, .efficiency = 0.5},
        .nics = {.bandwidth = 10e9, .rate = 5e9, .count = 1, .latency = 3.3e-6, .efficiency = 1},
        .host = {.memory = 1e12},
    };
    assert_int_equal(cluster_gpus(&cluster), COUNT(nodes));
    assert_int_equal(cluster_nics(&cluster), COUNT(nodes_of_nics));
    for (int gpu = 0; gpu < (int)COUNT(nodes); gpu++) {
        assert_int_equal(cluster_node_of(&cluster, gpu), nodes[gpu]);
        assert_int_equal(cluster_place_of(&cluster, gpu), places[gpu]);
        assert_int_equal(cluster_node_gpu(&cluster, nodes[gpu], places[gpu]), gpu);
        assert_int_equal(cluster_nic_of(&cluster, gpu), nics[gpu]);
        assert_true(cluster_sheet(&cluster, gpu)->memory == (gpu < 8 ? 0 : 40e9));
    }
    for (int nic = 0; nic < (int)COUNT(nodes_of_nics); nic++)
        assert_int_equal(cluster_node_of_nic(&cluster, nic), nodes_of_nics[nic]);
    assert_int_equal(cluster_node_nics(&cluster, 1), 2);
    assert_int_equal(cluster_node_nics(&cluster, 2), 1);
    assert_true(cluster_latency(&cluster, 1, true) == 1.1e-6 && cluster_latency(&cluster, 4, true) == 2e-6);
    assert_true(cluster_bandwidth(&cluster, 1, false) == 25e9 && cluster_bandwidth(&cluster, 4, false) == 10e9);
    assert_true(cluster_nic_rate(&cluster, 1) == 25e9 && cluster_nic_rate(&cluster, 4) == 5e9);
    assert_true(cluster_host_memory(&cluster, 2) == 1e12);
    expect_route(&cluster, 8, 9, "gpu8.up gpu9.down", 2e-6, 50e9);
    expect_route(&cluster, 7, 12, "nic3.up nic6.down", 3.3e-6, 5e9);     /* the slower NIC is the receiver's */
}

/* 4 GPUs with 8 NICs: each GPU's two NICs are one of twice the rate, until the GPU's link to the host is the narrower
 * one. Uplinks are made for what the NICs have. */
static void test_nics_together(void **state)
{
    struct cluster cluster = leaf_spine, wide = leaf_spine;

    (void)state;
    cluster.kinds[0].nics.count = 8;
    cluster.kinds[0].host.bandwidth = NAN;
    wide.kinds[0].nics = (struct nics){.bandwidth = 50e9, .count = 4, .latency = 3.3e-6, .efficiency = 1};
    for (int host = 0; host < 2; host++) {
        assert_int_equal(cluster_nics(&cluster), cluster_nics(&wide));
        for (int gpu = 0; gpu < cluster_gpus(&cluster); gpu++)
            assert_int_equal(cluster_nic_of(&cluster, gpu), gpu);
        expect_route(&cluster, 3, 4, "nic3.up nic4.down", 3.3e-6, host ? 40e9 : 50e9);
        expect_route(&cluster, 3, 2, "gpu3.up gpu2.down", 1.1e-6, 300e9);
        assert_true(cluster_link_bandwidth(&cluster, (struct link){LINK_BETWEEN, 0}) ==
                    cluster_link_bandwidth(&wide, (struct link){LINK_BETWEEN, 0}));
        cluster.kinds[0].host.bandwidth = 40e9;
    }
    cluster.kinds[0].nics.rate = 10e9;
    assert_true(cluster_nic_rate(&cluster, 0) == 20e9 && cluster_nic_sheet(&cluster, 0) == 40e9);
    assert_true(cluster_bandwidth(&cluster, 0, false) == 25e9);
    assert_int_equal(cluster_nics_together(&cluster, 0), 2);
    assert_int_equal(cluster_nics_together(&wide, 0), 1);
}

static void test_ideal(void **state)
{
    struct cluster ideal = {.nodes = 2, .kinds[0].gpus = 1, .ideal = true};
    struct route route = cluster_route(&ideal, 1, 0);

    (void)state;
    assert_int_equal(route.count, 0);
    assert_true(route.latency == 0 && isinf(route.bandwidth));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size), cmocka_unit_test(test_places), cmocka_unit_test(test_uneven_nics),
        cmocka_unit_test(test_routes), cmocka_unit_test(test_routes_at_the_edges), cmocka_unit_test(test_bandwidths),
        cmocka_unit_test(test_parts), cmocka_unit_test(test_nics_together),
        cmocka_unit_test(test_ideal),
    };

    return cmocka_run_group_tests_name("cluster", tests, NULL, NULL);
}
