/* Platform files of SimGrid's: their routes are those that SimGrid finds; a file that says a topology link by link is that
 * topology; files that are wrong, or hostile, are refused with what is wrong. */
#include "topology/simgrid_file.h"
#include "cluster_files.h"
#include "engine/replay_simgrid.h"

#define NODES(count, gpus) "nodes: " #count ", gpus_per_node: " #gpus ", inside: {bandwidth: 300 GB/s, latency: 1 us}, "
#define NETWORK(nics, topology) "network: {bandwidth: 10 GB/s, latency: 5 us, nics: " #nics ", topology: " topology "}"
#define CLUSTER "{" NODES(2, 2) NETWORK(2, "{xml: p.xml}") "}"

/* Two switches of two hosts, with a line of both directions between them. */
#define PROLOG "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
#define ZONE "<zone id=\"all\" routing=\"Full\">\n"
#define HEAD PROLOG ZONE
#define SWITCH(n) "<cluster id=\"n" #n "\" prefix=\"host-" #n ".gpu-\" suffix=\"\" radical=\"0-1\" speed=\"1f\" " \
    "bw=\"20GBps\" lat=\"1us\" router_id=\"r" #n "\"/>\n"
#define SPINE(policy) "<link id=\"spine\" bandwidth=\"5GBps\" latency=\"2us\" sharing_policy=\"" policy "\"/>\n"
#define ROUTE(link) "<zoneRoute src=\"n0\" dst=\"n1\" gw_src=\"r0\" gw_dst=\"r1\">" link "</zoneRoute>\n"
#define UP "<link_ctn id=\"spine\" direction=\"UP\"/>"
#define TAIL "</zone>\n</platform>\n"

/* As the cluster has it, and as SimGrid does when it simulates. */
static void assert_links(const struct cluster *cluster, int src, int dst, const char *links)
{
    struct route route = cluster_route(cluster, src, dst);
    struct simgrid_route loaded = {0};
    const char *names = "", *again = "";

    for (int i = 0; i < route.count; i++) {
        char name[48];

        cluster_link_name(cluster, route.links[i], name, sizeof name);
        names = arena_printf(&arena, "%s%s%s", names, i ? " " : "", name);
    }
    assert_string_equal(names, links);
    loaded.src = src, loaded.dst = dst;
    assert_int_equal(simgrid_route(cluster, src, dst, &loaded, &error), 0);
    for (int i = 0; i < loaded.count; i++)
        again = arena_printf(&arena, "%s%s%s", again, i ? " " : "", loaded.links[i]);
    assert_string_equal(again, links);
    assert_close(loaded.latency, route.latency);
}

static void test_routes(void **state)
{
    struct cluster cluster;
    struct route route;

    (void)state;
    write_file("p.xml", HEAD SWITCH(0) SWITCH(1) SPINE("SPLITDUPLEX") ROUTE(UP) TAIL);
    cluster = load_good(CLUSTER);
    assert_int_equal(cluster_topology(&cluster), TOPOLOGY_XML);
    assert_links(&cluster, 0, 1, "gpu0.up gpu1.down");
    assert_links(&cluster, 1, 2, "nic1.up n0_link_1_UP spine_UP n1_link_0_DOWN nic2.down");
    assert_links(&cluster, 2, 1, "nic2.up n1_link_0_UP spine_DOWN n0_link_1_DOWN nic1.down");
    route = cluster_route(&cluster, 1, 2);
    assert_close(route.latency, 5e-6 + 4e-6);
    assert_close(route.bandwidth, 5e9);
    assert_close(cluster_crowding(&cluster, 0, 2), 4);      /* 2 GPUs send 10 GB/s each through 5 GB/s */
    assert_null(cluster_topology_note(&cluster));
    /* one link for both directions */
    write_file("p.xml", HEAD SWITCH(0) SWITCH(1) SPINE("SHARED") ROUTE("<link_ctn id=\"spine\"/>") TAIL);
    cluster = load_good(CLUSTER);
    assert_links(&cluster, 1, 2, "nic1.up n0_link_1_UP spine n1_link_0_DOWN nic2.down");
    assert_links(&cluster, 2, 1, "nic2.up n1_link_0_UP spine n0_link_1_DOWN nic1.down");
    /* GPUs that share a NIC have different routes behind it */
    cluster = load_good("{" NODES(2, 2) NETWORK(1, "{xml: p.xml}") "}");
    assert_links(&cluster, 1, 2, "nic0.up n0_link_1_UP spine n1_link_0_DOWN nic1.down");
}

static bool same_key(const struct cluster *cluster, const struct cluster *other)
{
    struct cache_key keys[2] = {{0}, {0}};
    bool same;

    cluster_key(cluster, &keys[0]);
    cluster_key(other, &keys[1]);
    same = keys[0].count == keys[1].count && !memcmp(keys[0].items, keys[1].items, keys[0].count);
    free(keys[0].items);
    free(keys[1].items);
    return same;
}

/* A remembered cluster is not used for another file of the same name; the same file is read once. */
static void test_key(void **state)
{
    struct cluster first, again, other;
    struct cache cache;

    (void)state;
    write_file("p.xml", HEAD SWITCH(0) SWITCH(1) SPINE("SPLITDUPLEX") ROUTE(UP) TAIL);
    cache_init(&cache, CACHE_BYTES);
    arena.cache = &cache;
    first = load_good(CLUSTER);
    again = load_good(CLUSTER);
    write_file("p.xml", HEAD SWITCH(0) SWITCH(1) SPINE("SHARED") ROUTE("<link_ctn id=\"spine\"/>") TAIL);
    other = load_good(CLUSTER);
    assert_true(cache.found[CACHE_TOPOLOGY] == 1 && again.network.topology.network == first.network.topology.network);
    assert_true(same_key(&first, &again) && !same_key(&first, &other));
    arena.cache = NULL;
    cache_release(&cache);
}

/* A file with more hosts is noted, and is no error. Parts of unequal nodes have their own numbers of GPUs. */
static void test_hosts(void **state)
{
    struct cluster cluster;

    (void)state;
    write_file("p.xml", HEAD SWITCH(0) SWITCH(1) SPINE("SPLITDUPLEX") ROUTE(UP) TAIL);
    cluster = load_good("{parts: [{name: a, " NODES(1, 2) NETWORK(2, "{xml: p.xml}") "}, {name: b, nodes: 1, "
                        "gpus_per_node: 1, " NETWORK(1, "{xml: p.xml}") "}]}");
    assert_links(&cluster, 1, 2, "nic1.up n0_link_1_UP spine_UP n1_link_0_DOWN nic2.down");
    assert_string_equal(cluster_topology_note(&cluster), "of the hosts of p 1 are no GPU of the cluster: host-1.gpu-1");
    expect_message("{" NODES(3, 2) NETWORK(2, "{xml: p.xml}") "}",
                   "test.yaml:1:146: topology: xml: of the 6 GPUs of 3 nodes 'p.xml' lacks 2: host-2.gpu-0, host-2.gpu-1; its "
                   "hosts that are none of them: none; expected GPU M of node N as host-N.gpu-M, both from 0");
    expect_message("{" NODES(2, 1) NETWORK(1, "{kind: xml}") "}", "test.yaml:1:140: topology: 'xml' is missing: the path of "
                   "a platform file of SimGrid's");
    expect_message("{gpus_per_node: 2, inside: {bandwidth: 1 GB/s, latency: 1 us}, " NETWORK(2, "{xml: p.xml}") "}",
                   "test.yaml:1:128: topology: xml: the cluster does not say how many nodes it has; expected 'nodes'");
}

/* Four hosts of names without numbers of nodes, on a link each, whose names are long, and a backbone. */
#define FOUR(policy, bandwidth) HEAD "<cluster id=\"a_cluster_with_a_name_that_is_long_enough_for_all\" prefix=\"c-\" suffix=\".site.org\" " \
    "radical=\"8-11\" speed=\"1f\" bw=\"20GBps\" lat=\"1us\" bb_bw=\"" bandwidth "\" bb_lat=\"3us\" bb_sharing_policy=\"" policy "\"/>\n" TAIL

/* Hosts by a pattern, in the order of their numbers; by a list; for all GPUs of a node. */
static void test_named(void **state)
{
    struct cluster cluster;
    struct route route;
    char up[48], other[48];

    (void)state;
    write_file("p.xml", FOUR("SHARED", "5GBps"));
    cluster = load_good("{" NODES(4, 1) NETWORK(1, "{xml: p.xml, hosts: 'c-*'}") "}");
    assert_string_equal(cluster_topology_note(&cluster), "GPUs 0, 1, ... are the hosts c-8.site.org, c-9.site.org, c-10.site.org, "
                        "c-11.site.org");
    route = cluster_route(&cluster, 0, 3);
    assert_int_equal(route.count, 5);    /* nic, link, backbone, link, nic */
    assert_close(route.latency, 5e-6 + 5e-6);
    assert_close(route.bandwidth, 5e9);
    cluster_link_name(&cluster, route.links[1], up, sizeof up);
    cluster_link_name(&cluster, route.links[3], other, sizeof other);
    assert_true(strcmp(up, other) && strlen(up) < 40 && !strncmp(up, "a_cluster_with_a_name_that_", 27));
    cluster = load_good("{" NODES(2, 1) NETWORK(1, "{xml: p.xml, hosts: [c-11.site.org, 'c-?.site.org']}") "}");
    assert_string_equal(cluster_topology_note(&cluster), "GPUs 0, 1, ... are the hosts c-11.site.org, c-8.site.org; of the hosts of p 2 are "
                        "no GPU of the cluster: c-10.site.org, c-9.site.org");
    cluster = load_good("{" NODES(4, 2) NETWORK(1, "{xml: p.xml, hosts: 'c-*'}") "}");
    assert_non_null(strstr(cluster_topology_note(&cluster), "nodes 0, 1, ... are the hosts c-8.site.org"));
    assert_int_equal(cluster_route(&cluster, 1, 7).count, 5);
    expect_message("{" NODES(5, 1) NETWORK(1, "{xml: p.xml, hosts: 'c-*'}") "}", "test.yaml:1:160: topology: hosts: 'p.xml' has no host 4; "
                   "expected a host for each of 5 GPUs, or of 5 nodes; its hosts that are left: none");
    expect_message("{" NODES(2, 1) NETWORK(1, "{xml: p.xml, hosts: [c-8.site.org, d]}") "}", "test.yaml:1:160: topology: hosts: 'p.xml' has "
                   "no d, host 1; expected a host for each of 2 GPUs, or of 2 nodes; its hosts that are left: c-10.site.org, "
                   "c-11.site.org, c-9.site.org");
    /* a link that is not shared bounds nothing where it is as fast as others of the way */
    write_file("p.xml", FOUR("FATPIPE", "20GBps"));
    cluster = load_good("{" NODES(4, 1) NETWORK(1, "{xml: p.xml, hosts: 'c-*'}") "}");
    assert_close(cluster_route(&cluster, 0, 3).bandwidth, 10e9);
    assert_close(cluster_crowding(&cluster, 0, 3), 1);
}

/* Writes the cluster's network as a file: each link of its topology, and each pair's route. */
static void export(const struct cluster *cluster)
{
    FILE *out = fopen(arena_printf(&arena, "%s/p.xml", folder), "w");
    int gpus = cluster_gpus(cluster);

    assert_non_null(out);
    fputs(HEAD, out);
    for (int gpu = 0; gpu < gpus; gpu++)
        fprintf(out, "<host id=\"host-%d.gpu-%d\" speed=\"1f\"/>\n", cluster_node_of(cluster, gpu),
                cluster_place_of(cluster, gpu));
    for (int i = 0; i < cluster_between_links(cluster); i++) {
        char name[48];

        cluster_link_name(cluster, (struct link){LINK_BETWEEN, i}, name, sizeof name);
        fprintf(out, "<link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"%.17gs\"/>\n", name,
                cluster_link_bandwidth(cluster, (struct link){LINK_BETWEEN, i}), cluster_between_latency(cluster, i));
    }
    fputs("<link id=\"none\" bandwidth=\"1e15Bps\" latency=\"0s\"/>\n", out);      /* SimGrid refuses routes of no link */
    for (int src = 0; src < gpus; src++)
        for (int dst = 0; dst < gpus; dst++) {
            struct route route = cluster_route(cluster, src, dst);
            int between = 0;

            if (src == dst)
                continue;
            fprintf(out, "<route src=\"host-%d.gpu-%d\" dst=\"host-%d.gpu-%d\" symmetrical=\"NO\">",
                    cluster_node_of(cluster, src), cluster_place_of(cluster, src), cluster_node_of(cluster, dst),
                    cluster_place_of(cluster, dst));
            for (int i = 0; i < route.count; i++)
                if (route.links[i].kind == LINK_BETWEEN) {
                    char name[48];

                    cluster_link_name(cluster, route.links[i], name, sizeof name);
                    between += fprintf(out, "<link_ctn id=\"%s\"/>", name);
                }
            fprintf(out, "%s</route>\n", between ? "" : "<link_ctn id=\"none\"/>");
        }
    fputs(TAIL, out);
    assert_int_equal(fclose(out), 0);
}

/* A topology written as a file has the same routes, but for links that carry all that ever comes. */
static void test_same_as_topology(void **state)
{
    static const char *const topologies[] = {
        "{levels: [{leaf_nodes: 2}, {units: 2, oversubscription: 7, latency: 1 us}]}", "{unit_nodes: 4, oversubscription: 2}",
        "{dims: [2, 4], link: 4 GB/s, hop: 1 us}",
        "{groups: 4, routers: 2, nodes_per_router: 1, global_links: 2, global_link: 3 GB/s}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(topologies); i++) {
        struct cluster own = load_good(arena_printf(&arena, "{" NODES(8, 2) NETWORK(2, "%s") "}", topologies[i])), file;

        export(&own);
        file = load_good("{" NODES(8, 2) NETWORK(2, "{xml: p.xml}") "}");
        for (int src = 0; src < 16; src++)
            for (int dst = 0; dst < 16; dst++) {
                struct route a = cluster_route(&own, src, dst), b = cluster_route(&file, src, dst);
                char name[2][48];
                int at = 0;

                if (i == 1 && a.links[0].kind == LINK_PORT_UP)
                    continue;            /* it crosses rails inside the node, as a file cannot say */
                assert_close(b.latency, a.latency);
                assert_close(b.bandwidth, a.bandwidth);
                for (int k = 0; k < b.count; k++) {
                    cluster_link_name(&file, b.links[k], name[1], sizeof name[1]);
                    if (!strcmp(name[1], "none"))
                        continue;
                    cluster_link_name(&own, a.links[at++], name[0], sizeof name[0]);
                    assert_string_equal(name[1], name[0]);
                }
                assert_int_equal(at, a.count);
            }
    }
}

/* The only message, which has these words; the path of the folder left out. */
static void refuse(const char *file, const char *words)
{
    struct cluster cluster;

    if (file)
        write_file("p.xml", file);
    assert_int_equal(load(CLUSTER, &cluster), -1);
    if (error.count != 1 || error.messages[0].code != EXIT_INPUT || !strstr(error.messages[0].text, words) ||
        strstr(error.messages[0].text, "Backtrace") || !error.messages[0].loc.line)
        fail_msg("expected '%s', found '%s' at line %d", words, error.messages[0].text, error.messages[0].loc.line);
    error_release(&error);
    error = (struct error){0};
}

/* The same, at a place of the file. */
static void refuse_at(const char *file, int line, int column, const char *words)
{
    struct cluster cluster;

    write_file("p.xml", file);
    assert_int_equal(load(CLUSTER, &cluster), -1);
    if (!strstr(error.messages[0].loc.file, "p.xml") || error.messages[0].loc.line != line || error.messages[0].loc.column != column)
        fail_msg("expected %d:%d, found %s:%d:%d: %s", line, column, error.messages[0].loc.file, error.messages[0].loc.line,
                 error.messages[0].loc.column, error.messages[0].text);
    error_release(&error);
    error = (struct error){0};
    refuse(NULL, words);
}

/* SimGrid names a line, or nothing; the attribute with the value that it names is found. */
static void test_places(void **state)
{
    (void)state;
    refuse_at(HEAD SWITCH(0) SWITCH(1) "<link id=\"spine\" bandwidth=\"5Gfoo\" latency=\"2us\"/>\n" TAIL, 7, 18, "bandwidth: unknown unit: Gfoo");
    refuse_at(HEAD SWITCH(0) SWITCH(1) "<link id=\"spine\" bandwidth=\"5GBps\" latency=\"long\"/>\n" TAIL, 7, 36, "latency: cannot parse number:long");
    refuse_at(HEAD SWITCH(0) SWITCH(1) ROUTE(UP) TAIL, 7, 64, "id: Link not found: spine");
    refuse_at(HEAD SWITCH(0) SWITCH(1) "<link id=\"spine\" latency=\"2us\"/>\n" TAIL, 7, 1, "Required attribute `bandwidth'");
    refuse_at(HEAD SWITCH(0) SWITCH(1) "<lnk id=\"spine\"/>\n" TAIL, 7, 1, "Unexpected character `<'");
}

static void test_mistakes(void **state)
{
    (void)state;
    refuse("hello", "Unexpected character `h' in prolog");
    refuse(HEAD SWITCH(0), "Premature EOF");
    refuse(HEAD SWITCH(0) SWITCH(1) TAIL, "Bad gateways for route from 'host-0.gpu-0' to 'host-1.gpu-0'");
    refuse(HEAD SWITCH(0) SWITCH(0) TAIL, "second");
    refuse(HEAD SWITCH(0) SWITCH(1) ROUTE(UP) TAIL, "Link not found: spine");
    refuse(HEAD SWITCH(0) SWITCH(1) SPINE("FATPIPE") ROUTE("<link_ctn id=\"spine\"/>") TAIL, "no two messages share");
    refuse(HEAD SWITCH(0) SWITCH(1) "<link id=\"spine\" bandwidth=\"5GBps\" latency=\"2us\" bandwidth_file=\"b.profile\"/>\n"
           ROUTE("<link_ctn id=\"spine\"/>") TAIL, "found bandwidth_file=\"b.profile\"; a bandwidth that changes");
    refuse(HEAD SWITCH(0) SWITCH(1) SPINE("WIFI") ROUTE("<link_ctn id=\"spine\"/>") TAIL, "links of Wi-Fi are not simulated");
    refuse(HEAD SWITCH(0) SWITCH(1) "<link id=\"nic0.up\" bandwidth=\"1Bps\" latency=\"0s\"/>"
           ROUTE("<link_ctn id=\"nic0.up\"/>") TAIL, "a link is called 'nic0.up'");
    refuse(HEAD SWITCH(0) SWITCH(1) "<link id=\"a link\" bandwidth=\"1Bps\" latency=\"0s\"/>"
           ROUTE("<link_ctn id=\"a link\"/>") TAIL, "a link is called 'a link'");
    refuse(HEAD SWITCH(0) SWITCH(1) "<link id=\"a\" bandwidth=\"0Bps\" latency=\"0s\"/>" ROUTE("<link_ctn id=\"a\"/>") TAIL,
           "expected a bandwidth of more than 0");
}

/* Files that are meant to do harm. */
static void test_hostile(void **state)
{
    const char *path = arena_printf(&arena, "%s/p.xml", folder);
    struct cluster cluster;

    (void)state;
    refuse("<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY b \"b\"><!ENTITY c \"&b;&b;&b;&b;\">]>\n<platform version=\"4.1\">"
           "<zone id=\"&c;\" routing=\"Full\"/></platform>", "DOCTYPE");
    refuse(HEAD "<zone id=\"a\" routing=\"Full\"><zone id=\"a\" routing=\"Full\"/></zone>" TAIL, "topology: xml: ");
    if (!ADDRESS_SANITIZER)              /* which takes no limit of memory */
        refuse(HEAD "<cluster id=\"n0\" prefix=\"host-0.gpu-\" suffix=\"\" radical=\"0-999999999\" speed=\"1f\" bw=\"1Bps\" "
               "lat=\"1us\"/>" TAIL, "topology: xml: ");
    write_file("p.xml", arena_printf(&arena, PROLOG "<config><prop id=\"tracing\" value=\"yes\"/><prop id=\"tracing/filename\" "
                                     "value=\"%s/trace\"/></config>" ZONE SWITCH(0) SWITCH(1) SPINE("SHARED")
                                     ROUTE("<link_ctn id=\"spine\"/>") TAIL, folder));
    load_good(CLUSTER);
    assert_int_not_equal(access(arena_printf(&arena, "%s/trace", folder), F_OK), 0);
    write_file("p.xml", "<");
    assert_int_equal(truncate(path, 1 << 30), 0);
    refuse(NULL, "has 1073 MB; expected at most 67");
    assert_int_equal(unlink(path), 0);
    refuse(NULL, "cannot open 'p.xml'");
    assert_int_equal(mkdir(path, 0700), 0);
    refuse(NULL, "'p.xml' is no file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    refuse(NULL, "'p.xml' is no file");
    assert_int_equal(unlink(path), 0);
    write_file("p.so", "a program that SimGrid would run");
    assert_int_equal(load("{" NODES(2, 2) NETWORK(2, "{xml: p.so}") "}", &cluster), -1);
    assert_non_null(strstr(error.messages[0].text, "found 'p.so'; expected the path of a file that ends in .xml"));
    error_release(&error);
    error = (struct error){0};
    assert_int_equal(load("{" NODES(300, 8) NETWORK(8, "{xml: p.xml}") "}", &cluster), -1);
    assert_non_null(strstr(error.messages[0].text, "for 2400 GPUs; expected at most 2048"));
    error_release(&error);
    error = (struct error){0};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes), cmocka_unit_test(test_key), cmocka_unit_test(test_hosts), cmocka_unit_test(test_same_as_topology),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_hostile), cmocka_unit_test(test_named), cmocka_unit_test(test_places),
    };

    return cmocka_run_group_tests_name("simgrid_file", tests, setup, teardown);
}
