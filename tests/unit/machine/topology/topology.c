/* Routes through each topology, link by link, as the cluster and as SimGrid see them; what all pairs load its links with,
 * by closed forms. */
#include "cluster_files.h"
#include "engine/replay_simgrid.h"

#include <math.h>
#include <stdlib.h>

/* Nodes of 2 GPUs with a NIC each, unless the text says otherwise. */
static struct cluster of(int nodes, const char *topology)
{
    char text[512];

    snprintf(text, sizeof text, "{nodes: %d, gpus_per_node: 2, inside: {bandwidth: 300 GB/s, latency: 1 us}, network: "
             "{bandwidth: 10 GB/s, latency: 5 us, nics: 2, topology: %s}}", nodes, topology);
    return load_good(text);
}

static void names_of(const struct cluster *cluster, const struct route *route, char *text, size_t size)
{
    size_t length = 0;

    for (int i = 0; i < route->count; i++) {
        char name[48];

        cluster_link_name(cluster, route->links[i], name, sizeof name);
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? " " : "", name);
    }
}

/* s; B/s of the narrowest link. */
static void expect(const struct cluster *cluster, int src, int dst, const char *links, double latency, double bandwidth)
{
    struct route route = cluster_route(cluster, src, dst);
    struct simgrid_route loaded = {0};
    struct error err = {0};
    char names[512] = "", found[512] = "";
    size_t length = 0;

    names_of(cluster, &route, names, sizeof names);
    assert_string_equal(names, links);
    assert_true(fabs(route.latency - latency) <= 1e-12 * latency);
    assert_true(fabs(route.bandwidth - bandwidth) <= 1e-12 * bandwidth);
    assert_int_equal(simgrid_route(cluster, src, dst, &loaded, &err), 0);
    for (int i = 0; i < loaded.count; i++)
        length += (size_t)snprintf(found + length, sizeof found - length, "%s%s", i ? " " : "", loaded.links[i]);
    assert_string_equal(found, links);
    assert_true(fabs(loaded.latency - latency) <= 1e-12 * latency);
    assert_true(fabs(loaded.bandwidth - bandwidth) <= 1e-12 * bandwidth);
}

/* Leaves of 2 nodes, pods of 2 leaves: 4 NICs of 10 GB/s a leaf; a pod's uplinks carry a seventh of 80 GB/s. */
static void test_levels(void **state)
{
    struct cluster cluster = of(8, "{levels: [{leaf_nodes: 2}, {units: 2, oversubscription: 7, latency: 1 us}]}");

    (void)state;
    expect(&cluster, 1, 0, "gpu1.up gpu0.down", 1e-6, 300e9);
    expect(&cluster, 1, 2, "nic1.up nic2.down", 5e-6, 10e9);
    expect(&cluster, 1, 6, "nic1.up leaf0.up leaf1.down nic6.down", 5e-6, 10e9);
    expect(&cluster, 1, 14, "nic1.up leaf0.up pod0.up pod1.down leaf3.down nic14.down", 6e-6, 10e9);
    assert_int_equal(cluster_between_links(&cluster), 2 * 4 + 2 * 2);
    assert_true(cluster_link_bandwidth(&cluster, (struct link){LINK_BETWEEN, 0}) == 40e9);
    assert_true(fabs(cluster_link_bandwidth(&cluster, (struct link){LINK_BETWEEN, 8}) - 80e9 / 7) < 1);
    assert_true(fabs(cluster_crowding(&cluster, 0, 15) - 7) < 1e-12 && cluster_crowding(&cluster, 0, 7) == 1);
}

static void test_sites(void **state)
{
    struct cluster cluster = of(5, "{levels: [{name: site, leaf_nodes: 3, bandwidth: 1 GB/s, latency: 5 ms}]}");

    (void)state;
    expect(&cluster, 0, 5, "nic0.up nic5.down", 5e-6, 10e9);
    expect(&cluster, 9, 0, "nic9.up site1.up site0.down nic0.down", 5e-3 + 5e-6, 1e9);
    assert_true(cluster_crowding(&cluster, 0, 9) == 60);
}

/* NVLink domains of 72 GPUs, whose NICs are on the rails of one unit: a GPU of the domain reaches another rail by its
 * NVLink. */
static void test_rails(void **state)
{
    static const char *const across[] = {"nvlink", "spine", "refuse"};
    static const char *const links[] = {"gpu0.up gpu1.down nic1.up nic3.down",
                                        "nic0.up unit0.rail0.up unit0.rail1.down nic3.down",
                                        "nic0.up unit0.rail0.up unit0.rail1.down nic3.down"};
    struct cluster domains = load_good("{platform: gb200-nvl72, nodes: 2, network: {topology: rail}}");

    (void)state;
    for (size_t i = 0; i < COUNT(across); i++) {
        char text[128];
        struct cluster cluster;

        snprintf(text, sizeof text, "{unit_nodes: 2, across_rails: %s, oversubscription: 4}", across[i]);
        cluster = of(4, text);
        expect(&cluster, 0, 2, "nic0.up nic2.down", 5e-6, 10e9);
        expect(&cluster, 0, 4, "nic0.up unit0.rail0.up unit1.rail0.down nic4.down", 5e-6, 5e9);
        expect(&cluster, 0, 3, links[i], i ? 5e-6 : 6e-6, i ? 5e9 : 10e9);
        assert_int_equal(cluster_route(&cluster, 0, 3).refused, i == 2);
        assert_false(cluster_route(&cluster, 0, 2).refused);
    }
    expect(&domains, 3, 75, "nic3.up nic75.down", 2.7e-6, 0.95 * 50e9);
    expect(&domains, 3, 143, "gpu3.up gpu71.down nic71.up nic143.down", 3.3e-6, 0.95 * 50e9);
}

/* Node (x, y) of 3 x 4 has number 4 x + y, its GPUs 8 x + 2 y and the next one. */
static void test_torus(void **state)
{
    struct cluster cluster = of(12, "{dims: [3, 4], link: 4 GB/s, hop: 1 us}"), mesh;

    (void)state;
    expect(&cluster, 0, 8, "nic0.up node0.x+ nic8.down", 6e-6, 4e9);
    expect(&cluster, 0, 16, "nic0.up node0.x- nic16.down", 6e-6, 4e9);                     /* round the end */
    expect(&cluster, 0, 13, "nic0.up node0.x+ node4.y+ node5.y+ nic13.down", 8e-6, 4e9);   /* a tie: even goes up */
    expect(&cluster, 2, 6, "nic2.up node1.y- node0.y- nic6.down", 7e-6, 4e9);              /* odd goes down */
    mesh = of(12, "{dims: [3, 4], wrap: false}");
    expect(&mesh, 0, 16, "nic0.up node0.x+ node4.x+ nic16.down", 5e-6, 10e9);
    mesh = of(4, "{dims: [2, 2]}");            /* two links between a pair: each node sends over one of them */
    expect(&mesh, 0, 2, "nic0.up node0.y+ nic2.down", 5e-6, 10e9);
    expect(&mesh, 2, 0, "nic2.up node1.y- nic0.down", 5e-6, 10e9);
}

/* 3 groups of 2 routers with a node and a global link each: group g's link 0 leads to the lower other group. */
static void test_dragonfly(void **state)
{
    struct cluster cluster = of(6, "{groups: 3, routers: 2, nodes_per_router: 1, global_links: 1, link: 4 GB/s, "
                                   "global_link: 2 GB/s, hop: 1 us}");

    (void)state;
    expect(&cluster, 0, 2, "nic0.up router0.to1 nic2.down", 6e-6, 4e9);
    expect(&cluster, 0, 4, "nic0.up group0.global0 nic4.down", 6e-6, 2e9);
    expect(&cluster, 0, 10, "nic0.up router0.to1 group0.global1 router4.to5 nic10.down", 8e-6, 2e9);
    cluster = of(6, "{groups: 3, routers: 2, nodes_per_router: 1, global_links: 1, routing: valiant}");
    expect(&cluster, 0, 4, "nic0.up router0.to1 group0.global1 router4.to5 group2.global1 router3.to2 nic4.down", 5e-6,
           10e9);
}

/* Each node sends so much to each other node, through its first GPU: bytes on the topology's links. The caller frees. */
static double *loads_of(const struct cluster *cluster)
{
    double *loads = xcalloc((size_t)cluster_between_links(cluster) + 1, sizeof *loads);

    for (int src = 0; src < cluster->nodes; src++)
        for (int dst = 0; dst < cluster->nodes; dst++) {
            struct route route = cluster_route(cluster, cluster_node_gpu(cluster, src, 0),
                                               cluster_node_gpu(cluster, dst, 0));

            for (int i = 0; src != dst && i < route.count; i++)
                if (route.links[i].kind == LINK_BETWEEN)
                    loads[route.links[i].index]++;
        }
    return loads;
}

/* n^d nodes, n even: if each sends S in all, S / n^d to each, every link direction carries S n / 8 (the bisection of a
 * torus; collectives_by_topology.jsonl). */
static void test_torus_all_to_all(void **state)
{
    static const struct { const char *dims; int nodes, n; } cases[] = {
        {"[4, 4]", 16, 4}, {"[4, 4, 4]", 64, 4}, {"[8]", 8, 8}, {"[2, 2, 2]", 8, 2}, {"[6, 6]", 36, 6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        struct cluster cluster;
        double *loads;

        snprintf(text, sizeof text, "{dims: %s}", cases[i].dims);
        cluster = of(cases[i].nodes, text);
        loads = loads_of(&cluster);
        for (int link = 0; link < cluster_between_links(&cluster); link++)
            assert_true(loads[link] == cases[i].nodes * cases[i].n / 8.0);
        free(loads);
    }
}

/* All pairs: what leaves a pod leaves by its uplink, and arrives by another's; a dragonfly's global links of a group
 * carry it evenly, and twice as much with Valiant's routing. */
static void test_group_to_group(void **state)
{
    struct cluster cluster = of(16, "{levels: [{leaf_nodes: 2}, {units: 4}]}");
    double *loads = loads_of(&cluster), sums[2] = {0};

    (void)state;
    for (int pod = 0; pod < 2; pod++)
        assert_true(loads[16 + pod] == 8 * 8 && loads[18 + pod] == 8 * 8);
    free(loads);
    for (int valiant = 0; valiant < 2; valiant++) {
        char text[160];

        snprintf(text, sizeof text, "{groups: 5, routers: 4, nodes_per_router: 2, global_links: 1, routing: %s}",
                 valiant ? "valiant" : "minimal");
        cluster = of(40, text);
        loads = loads_of(&cluster);
        for (int link = 5 * 16; link < cluster_between_links(&cluster); link++) {
            sums[valiant] += loads[link];
            if (!valiant)
                assert_true(loads[link] == 8 * 8);
        }
        free(loads);
    }
    assert_true(sums[1] == 2 * sums[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels), cmocka_unit_test(test_sites), cmocka_unit_test(test_rails),
        cmocka_unit_test(test_torus), cmocka_unit_test(test_dragonfly), cmocka_unit_test(test_torus_all_to_all),
        cmocka_unit_test(test_group_to_group),
    };

    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
