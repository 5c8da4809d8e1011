/* How a scenario names a cluster, changes it, and what it is told when that is wrong. */
#include "cluster_files.h"

static void inline_clusters(void **state)
{
    (void)state;
    struct cluster cluster = load_good("{nodes: 64, gpus_per_node: 8, gpu: a100-80gb,\n"
                                       "  inside:  {bandwidth: 300 GB/s, latency: 1 us},\n"
                                       "  network: {bandwidth: 25 GB/s, latency: 5 us, nics: 8,\n"
                                       "            topology: nonblocking}}\n");
    assert_null(cluster.platform);
    assert_int_equal(cluster.nodes, 64);
    assert_close(cluster.kinds[0].inside.bandwidth, 300e9);
    assert_close(cluster.kinds[0].inside.latency, 1e-6);
    assert_close(cluster.kinds[0].inside.efficiency, 1);
    assert_close(cluster.kinds[0].nics.latency, 5e-6);
    assert_close(cluster.kinds[0].nics.efficiency, 1);
    assert_int_equal(cluster.network.topology.kind, TOPOLOGY_NONBLOCKING);
    assert_string_equal(cluster.kinds[0].gpu.title, "NVIDIA A100-SXM4-80GB");

    cluster = load_good("{network: {bandwidth: 10 Gb/s, latency: 0 s,\n"
                        "           topology: {leaf_nodes: 16, oversubscription: 2}}}");
    assert_int_equal(cluster.nodes, 0);
    assert_int_equal(cluster.kinds[0].gpus, 1);
    assert_int_equal(cluster.kinds[0].nics.count, 1);
    assert_null(cluster.kinds[0].gpu_name);
    assert_int_equal(cluster.network.topology.kind, TOPOLOGY_LEAF_SPINE);
    assert_int_equal(cluster.network.topology.leaf_nodes, 16);
    assert_close(cluster.network.topology.oversubscription, 2);
    assert_true(isnan(cluster.kinds[0].inside.bandwidth) && isnan(cluster.kinds[0].inside.latency));

    /* One node needs no network, one GPU a node no inside. */
    cluster = load_good("{nodes: 1, gpus_per_node: 4, inside: {bandwidth: 50 GB/s, latency: 1 us}}");
    assert_true(isnan(cluster.kinds[0].nics.bandwidth) && isnan(cluster.kinds[0].nics.latency));
    load_good("{nodes: 1}");
    cluster = load_good("{nodes: 4, network: {bandwidth: 1 GB/s, latency: 1 us, topology: {leaf_nodes: 2}}}");
    assert_int_equal(cluster.network.topology.kind, TOPOLOGY_LEAF_SPINE);
    assert_close(cluster.network.topology.oversubscription, 1);
}

static void overrides_win(void **state)
{
    (void)state;
    struct cluster cluster = load_good("{platform: dgx-a100, nodes: 128}");
    assert_string_equal(cluster.platform, "dgx-a100");
    assert_int_equal(cluster.nodes, 128);
    assert_int_equal(cluster.kinds[0].nics.count, 8);

    /* Fewer GPUs a node than the platform has NICs: one NIC each, unless the file gives NICs, too. */
    cluster = load_good("{platform: dgx-a100, nodes: 2, gpus_per_node: 4}");
    assert_int_equal(cluster.kinds[0].nics.count, 4);
    cluster = load_good("{platform: dgx-a100, nodes: 2, gpus_per_node: 4, network: {nics: 2}}");
    assert_int_equal(cluster.kinds[0].nics.count, 2);
    cluster = load_good("{platform: dgx-1-v100, nodes: 2, gpus_per_node: 4}");
    assert_int_equal(cluster.kinds[0].nics.count, 4);

    cluster = load_good("platform: dgx-a100\ngpu: a100-40gb\nnetwork:\n  nics: 4\n  topology: {leaf_nodes: 20}\n");
    assert_string_equal(cluster.kinds[0].gpu.name, "a100-40gb");
    assert_int_equal(cluster.kinds[0].nics.count, 4);
    assert_close(cluster.kinds[0].nics.bandwidth, 25e9);
    assert_int_equal(cluster.network.topology.kind, TOPOLOGY_LEAF_SPINE);
    struct loc loc = field_loc(&cluster_table, &cluster, "gpu");
    assert_int_equal(loc.line, 2);
    assert_int_equal(loc.column, 6);
    loc = field_loc(&cluster_table, &cluster, "gpus_per_node");
    assert_non_null(strstr(loc.file, "dgx-a100.yaml"));

    write_file("leaves.yaml", "platform: dgx-a100\nnetwork: {topology: {leaf_nodes: 20, oversubscription: 2}}\n");
    cluster = load_good("{platform: leaves.yaml, network: {topology: {oversubscription: 3}}}");
    assert_int_equal(cluster.network.topology.leaf_nodes, 20);
    assert_close(cluster.network.topology.oversubscription, 3);
    cluster = load_good("{platform: leaves.yaml, network: {topology: nonblocking}}");
    assert_int_equal(cluster.network.topology.kind, TOPOLOGY_NONBLOCKING);
    assert_int_equal(cluster.network.topology.leaf_nodes, 0);
}

static void paths_and_chains(void **state)
{
    (void)state;
    assert_int_equal(mkdir(arena_printf(&arena, "%s/sub", folder), 0700), 0);
    write_file("sub/base.yaml", "gpus_per_node: 2\ngpu: ./mine.yaml\ninside: {bandwidth: 20 GB/s, latency: 2 us}\n"
                                "network: {bandwidth: 1 GB/s, latency: 9 us}\n");
    write_file("sub/mine.yaml", "memory: 16 GiB\nmemory_bandwidth: 500 GB/s\nmemory_efficiency: 0.8\n"
                                "peak: {fp32: 10 TFLOP/s}\nmatmul_efficiency: 0.7\nlaunch_overhead: 2 us\n");
    write_file("sub/middle.yaml", "platform: base.yaml\nnodes: 3\n");
    write_file("top.yaml", "platform: sub/middle.yaml\nnodes: 5\nnetwork: {latency: 7 us}\n");

    struct cluster cluster = load_good("./top.yaml");
    assert_int_equal(cluster.nodes, 5);
    assert_int_equal(cluster.kinds[0].gpus, 2);
    assert_close(cluster.kinds[0].nics.latency, 7e-6);
    assert_close(cluster.kinds[0].nics.bandwidth, 1e9);
    assert_string_equal(cluster.kinds[0].gpu.name, "mine");
    assert_close(gpu_peak(&cluster.kinds[0].gpu, DTYPE_BF16), 10e12);
    assert_int_equal(cluster.kinds[0].gpu_name[0], '/');
    assert_int_equal(cluster.platform[0], '/');
    assert_non_null(strstr(cluster.platform, "/top.yaml"));
    /* A file in the folder is no name. */
    expect_message("top", "test.yaml:1:1: unknown platform 'top'; expected a path or one of: "
                          "ideal, a2, a3-mega, a4, alps, dgx-1-v100, dgx-2, dgx-a100, dgx-b200, dgx-b300, "
                          "dgx-h100, dgx-h200, frontier, g5, gb200-nvl72, gb300-nvl72, gh200-node, hgx-a100-4, "
                          "hgx-a800, hgx-h100-4, hgx-h20, hgx-h200, hgx-h200-4, hgx-h800, jupiter, l40s-pcie, lumi, "
                          "mi300x-platform, mi325x-platform, mi355x-platform, nd-a100-v4, nd-h100-v5, "
                          "oci-bm-gpu-a100-v2, oci-bm-gpu-h100, oci-bm-gpu-mi300x, p4d, p4de, p5, p5en, p6-b200, "
                          "pcie-10gbe, pcie-25gbe, pcie-h100-nvl, pcie-h200-nvl, workstation");

    write_file("self.yaml", "platform: self.yaml\n");
    expect_message("self.yaml", "self.yaml:1:11: the platform is based on itself: @/self.yaml -> @/self.yaml");
    write_file("a.yaml", "platform: b.yaml\n");
    write_file("b.yaml", "platform: ./sub/../a.yaml\n");
    expect_message("{platform: a.yaml}",
                   "b.yaml:1:11: the platform is based on itself: @/a.yaml -> @/b.yaml -> @/a.yaml");
    for (int i = 0; i < 9; i++)
        write_file(arena_printf(&arena, "chain%d.yaml", i), arena_printf(&arena, "platform: chain%d.yaml\n", i + 1));
    write_file("chain9.yaml", "platform: ideal\n");
    expect_message("chain0.yaml", "chain7.yaml:1:11: more than 8 platforms, each based on the next");
    cluster = load_good("chain2.yaml");
    assert_true(cluster.ideal);
}

static void the_ideal_cluster(void **state)
{
    (void)state;
    struct cluster cluster = load_good("ideal");
    assert_true(cluster.ideal);
    assert_string_equal(cluster.platform, "ideal");
    assert_int_equal(cluster.nodes, 0);
    cluster = load_good("{platform: ideal, gpus_per_node: 8, gpu: h100-80gb}");
    assert_true(cluster.ideal);
    assert_string_equal(cluster.kinds[0].gpu.name, "h100-80gb");
    expect_clash("{platform: ideal, network: {bandwidth: 1 GB/s}}",
                 "test.yaml:1:40: network: the ideal cluster has no bandwidth");
    expect_clash("{platform: ideal, inside: {latency: 1 us}}",
                 "test.yaml:1:37: inside: the ideal cluster has no latency");
}

static void mistakes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"dgx-a10", "test.yaml:1:1: unknown platform 'dgx-a10'; did you mean 'dgx-a100'?"},
        {"{nodes: 2, platform: dgx-h10}", "test.yaml:1:22: unknown platform 'dgx-h10'; did you mean 'dgx-h100'?"},
        {"./none.yaml", "test.yaml:1:1: cannot read the platform file '@/none.yaml': No such file or directory"},
        {"[dgx-a100]",
         "test.yaml:1:1: cluster: expected a platform's name, a path, 'ideal' or a mapping, found a list"},
        {"''", "test.yaml:1:1: cluster: expected a platform's name, a path, 'ideal' or a mapping, found nothing"},
        {"{platform: dgx-a100, gpu: a100-80g}", "test.yaml:1:27: unknown GPU 'a100-80g'; did you mean 'a100-80gb'?"},
        {"{nodes: 1, gpu: my/gpu.yaml}",
         "test.yaml:1:17: cannot read the GPU file '@/my/gpu.yaml': No such file or directory"},
        {"{gpus_per_node: 1}", "test.yaml:1:1: cluster: 'network' is missing: without 'nodes' there may be several "
                               "nodes; only 'nodes: 1' needs no network"},
        {"{nodes: 2}", "test.yaml:1:1: cluster: 'network' is missing: 2 nodes need its bandwidth and latency"},
        {"{nodes: 1, gpus_per_node: 4}",
         "test.yaml:1:1: cluster: 'inside' is missing: the 4 GPUs of a node need its bandwidth and latency"},
        {"{nodes: 1, inside: {bandwidth: 1 GB/s}}", "test.yaml:1:20: inside: 'latency' is missing"},
        {"{nodes: 2, network: {latency: 1 us}}", "test.yaml:1:21: network: 'bandwidth' is missing"},
        {"{platform: dgx-a100, network: {topology: leaf-spine}}",
         "test.yaml:1:42: topology: a leaf-spine needs 'leaf_nodes', at least 1"},
        {"{platform: dgx-a100, network: {topology: {oversubscription: 2}}}",
         "test.yaml:1:42: topology: a leaf-spine needs 'leaf_nodes', at least 1"},
        {"{platform: dgx-a100, network: {topology: {leaf_nodes: 0}}}",
         "test.yaml:1:55: topology: a leaf-spine needs 'leaf_nodes', at least 1"},
    };
    static const char *const clashes[][2] = {
        {"{platform: dgx-a100, network: {nics: 3}}",
         "test.yaml:1:38: network: the 8 GPUs of a node cannot share 3 NICs evenly; expected a divisor or a multiple of "
         "8"},
        {"{platform: dgx-a100, network: {nics: 12}}",
         "test.yaml:1:38: network: the 8 GPUs of a node cannot share 12 NICs evenly; expected a divisor or a multiple "
         "of 8"},
        {"{platform: dgx-a100, network: {topology: {kind: nonblocking, leaf_nodes: 4}}}",
         "test.yaml:1:74: topology: 'nonblocking' has no leaves; for leaf_nodes choose 'leaf-spine'"},
        {"{platform: dgx-a100, network: {topology: {kind: nonblocking, oversubscription: 4}}}",
         "test.yaml:1:80: topology: 'nonblocking' is not oversubscribed; for oversubscription choose 'leaf-spine'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_message(cases[i][0], cases[i][1]);
    for (size_t i = 0; i < COUNT(clashes); i++)
        expect_clash(clashes[i][0], clashes[i][1]);
    /* Of a mistake in a platform's file, the place is there. */
    write_file("wrong.yaml", "gpus_per_node: 4\ninside: {bandwidth: 1 GB/s, latency: 0}\n"
                             "network: {bandwidth: 1 GB/s, latency: 0, nics: 3}\n");
    expect_clash("wrong.yaml", "wrong.yaml:3:48: network: the 4 GPUs of a node cannot share 3 NICs evenly; expected a divisor or a "
         "multiple of 4");
    write_file("list.yaml", "- nodes: 4\n");
    expect_message("list.yaml", "list.yaml:1:1: this is not a platform; expected a mapping with the keys of a cluster");
}

/* All mistakes are reported at once, without errors that only follow from a mistake. */
static void every_mistake_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int columns[3];
    } cases[] = {
        {"{platform: dgx-a101, gpu: a40, insid: {}}", {12, 32}},
        {"{platform: dgx-a100, gpu: a41, nodes: -1, network: {nics: 0}}", {27, 39, 59}},
        {"{platform: dgx-a100, gpu: a41, network: {nics: 3, topology: leaf-spine}}", {27, 48, 61}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster;
        bool found[100] = {false};
        int expected = 0;
        assert_int_equal(load(cases[i].text, &cluster), -1);
        for (int k = 0; k < error.count; k++)
            found[error.messages[k].loc.column] = true;
        for (; expected < 3 && cases[i].columns[expected]; expected++)
            if (!found[cases[i].columns[expected]])
                fail_msg("%s: no message about column %d", cases[i].text, cases[i].columns[expected]);
        assert_int_equal(error.count, expected);
        error_release(&error);
        error = (struct error){0};
    }
}

static void mistakes_in_gpu_files(void **state)
{
    (void)state;
    static const char good[] = "memory: 16 GiB\nmemory_bandwidth: 500 GB/s\nmemory_efficiency: 0.8\n"
                               "peak: {fp32: 10 TFLOP/s}\nmatmul_efficiency: 0.7\nlaunch_overhead: 0\n";
    static const struct {
        const char *wrong;      /* stands instead of its line of the good file */
        int line, column;
    } cases[] = {
        {"memory: 16", 1, 9},
        {"memory_bandwidth: 0", 2, 19},
        {"memory_efficiency: 1.1", 3, 20},
        {"peak: {fp16: 1 TFLOP/s}", 4, 7},
        {"peak: {fp32: 0}", 4, 14},
        {"peak: {fp32: 1 TFLOP/s, fp4: 1 TFLOP/s}", 4, 25},
        {"matmul_efficiency: 0", 5, 20},
        {"launch_overhead: -1 us", 6, 18},
        {"# no launch_overhead", 1, 1},
    };
    write_file("good.yaml", good);
    load_good("{nodes: 1, gpu: good.yaml}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster;
        int line = cases[i].wrong[0] == '#' ? 6 : cases[i].line;
        const char *from = good;
        for (int k = 1; k < line; k++)
            from = strchr(from, '\n') + 1;
        write_file("bad.yaml", arena_printf(&arena, "%.*s%s%s", (int)(from - good), good, cases[i].wrong,
                                            strchr(from, '\n')));
        assert_int_equal(load("{nodes: 1, gpu: bad.yaml}", &cluster), -1);
        struct loc loc = error.messages[0].loc;
        if (loc.line != cases[i].line || loc.column != cases[i].column || !strstr(loc.file, "bad.yaml"))
            fail_msg("%s: %s:%d:%d: %s", cases[i].wrong, loc.file, loc.line, loc.column, error.messages[0].text);
        error_release(&error);
        error = (struct error){0};
    }
}

/* Ranges that the field tables check: every one is refused, at its place. */
static void ranges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int column;
    } cases[] = {
        {"{platform: dgx-a100, nodes: -1}", 29},
        {"{platform: dgx-a100, nodes: 2.5}", 29},
        {"{platform: dgx-a100, gpus_per_node: 0}", 37},
        {"{platform: dgx-a100, network: {nics: 0}}", 38},
        {"{platform: dgx-a100, network: {bandwidth: 0}}", 43},
        {"{platform: dgx-a100, network: {bandwidth: 25}}", 43},
        {"{platform: dgx-a100, network: {latency: -1 us}}", 41},
        {"{platform: dgx-a100, network: {efficiency: 1.5}}", 44},
        {"{platform: dgx-a100, network: {efficiency: 0}}", 44},
        {"{platform: dgx-a100, network: {topology: {leaf_nodes: 4, oversubscription: 0.5}}}", 76},
        {"{platform: dgx-a100, network: {topology: ring}}", 42},
        {"{platform: dgx-a100, inside: {bandwidth: 300 GB}}", 42},
        {"{platform: dgx-a100, insid: {}}", 22},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster;
        assert_int_equal(load(cases[i].text, &cluster), -1);
        assert_int_equal(error.count, 1);
        if (error.messages[0].loc.column != cases[i].column)
            fail_msg("%s: column %d: %s", cases[i].text, error.messages[0].loc.column, error.messages[0].text);
        error_release(&error);
        error = (struct error){0};
    }
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 0;
}

static void assert_same(const struct cluster *a, const struct cluster *b)
{
    const struct machine_kind *one = a->kinds, *two = b->kinds;

    assert_true(!a->platform == !b->platform && (!a->platform || strcmp(a->platform, b->platform) == 0));
    assert_true(!a->title == !b->title && (!a->title || strcmp(a->title, b->title) == 0));
    assert_true(!one->gpu_name == !two->gpu_name && (!one->gpu_name || strcmp(one->gpu_name, two->gpu_name) == 0));
    assert_int_equal(a->nodes, b->nodes);
    assert_int_equal(one->gpus, two->gpus);
    assert_true(same(one->inside.bandwidth, two->inside.bandwidth) && same(one->inside.latency, two->inside.latency));
    assert_true(same(one->inside.efficiency, two->inside.efficiency));
    assert_true(same(one->nics.bandwidth, two->nics.bandwidth) && same(one->nics.latency, two->nics.latency));
    assert_true(same(one->nics.efficiency, two->nics.efficiency));
    assert_int_equal(one->nics.count, two->nics.count);
    assert_int_equal(a->network.topology.kind, b->network.topology.kind);
    assert_int_equal(a->network.topology.leaf_nodes, b->network.topology.leaf_nodes);
    assert_true(same(a->network.topology.oversubscription, b->network.topology.oversubscription));
    assert_int_equal(a->ideal, b->ideal);
    assert_true(same(one->gpu.memory, two->gpu.memory) && same(one->gpu.peak.fp16, two->gpu.peak.fp16));
}

static void resolved_output_reads_back(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "dgx-1-v100", "dgx-a100", "dgx-h100", "hgx-h200", "pcie-10gbe", "pcie-25gbe", "ideal", "top.yaml",
        "leaves.yaml", "{nodes: 1}", "{nodes: 1, gpus_per_node: 4, inside: {bandwidth: 50 GB/s, latency: 1 us}}",
        "{platform: ideal, gpus_per_node: 8, gpu: a40}", "{platform: leaves.yaml, network: {topology: nonblocking}}",
        "{platform: dgx-a100, nodes: 7, network: {latency: 1.23456789 us, topology: {leaf_nodes: 3}}}",
        "{network: {bandwidth: 10 Gb/s, latency: 0, topology: {leaf_nodes: 16, oversubscription: 2.5}}}", "chain2.yaml",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster first = load_good(cases[i]), second;
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        node_print(field_dump(&arena, &cluster_table, &first), out);
        fclose(out);
        struct node *root;
        assert_int_equal(conf_parse(&arena, "elsewhere/resolved.yaml", text, size, &root, &error), 0);
        if (cluster_load(&arena, root, &second, &error) != 0) {
            error_print(&error, stderr);
            fail_msg("does not read back: %s\n%s", cases[i], text);
        }
        assert_same(&first, &second);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_clusters),
        cmocka_unit_test(overrides_win),
        cmocka_unit_test(paths_and_chains),
        cmocka_unit_test(the_ideal_cluster),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(every_mistake_at_once),
        cmocka_unit_test(mistakes_in_gpu_files),
        cmocka_unit_test(ranges),
        cmocka_unit_test(resolved_output_reads_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
