/* The platforms and GPUs that come with dtsim, and where they are found. */
#include "cluster_files.h"

#include "base/cache.h"
#include "collective/collective.h"

static void gpus_are_sane(void **state)
{
    (void)state;
    const char **names = data_names(&arena, "platforms/gpus", &error);
    int count = 0;
    for (; names[count]; count++) {
        struct gpu gpu;
        if (gpu_load(&arena, names[count], (struct loc){0}, &gpu, &error) != 0)
            error_print(&error, stderr);
        assert_int_equal(error.count, 0);
        assert_string_equal(gpu.name, names[count]);
        assert_true(strncmp(gpu.title, "NVIDIA ", 7) == 0 || strncmp(gpu.title, "AMD ", 4) == 0);
        assert_true(gpu.memory > 8e9 && gpu.memory < 310e9);
        assert_true(gpu.memory_bandwidth >= 300e9 && gpu.memory_bandwidth < 10e12);
        assert_true(gpu.memory_efficiency > 0.65 && gpu.memory_efficiency < 1);
        /* a T4 is capped at 70 W; a GeForce boosts above the clock of its data sheet */
        assert_true(gpu.matmul_efficiency > 0.35 && gpu.matmul_efficiency <= 1);
        assert_true(gpu.launch_overhead >= 1e-6 && gpu.launch_overhead <= 10e-6);
        assert_true(gpu.peak.fp32 > 5e12 && gpu.peak.fp32 < 200e12);
        assert_true((gpu.peak.fp16 == 0 || gpu.peak.fp16 > gpu.peak.fp32) && gpu.peak.fp16 < 3e15);
        assert_true(gpu.peak.bf16 == 0 || gpu.peak.bf16 == gpu.peak.fp16);
        assert_true(gpu.peak.tf32 == 0 || fabs(gpu.peak.fp16 / gpu.peak.tf32 - 2) < 0.03);
        assert_true(gpu.base || !gpu.changed);
        /* The size in the name is the product's, in units that vary from GB to GiB. */
        const char *size = strrchr(names[count], '-');
        if (size && strstr(size, "gb"))
            assert_true(fabs(gpu.memory / (atof(size + 1) * 1.04e9) - 1) < 0.05);
    }
    assert_true(count >= 9);
}

static void gpu_constants(void **state)
{
    (void)state;
    struct gpu gpu;
    assert_int_equal(gpu_load(&arena, "a100-80gb", (struct loc){0}, &gpu, &error), 0);
    assert_close(gpu_peak(&gpu, DTYPE_BF16), 312e12);
    assert_close(gpu_peak(&gpu, DTYPE_TF32), 156e12);
    assert_close(gpu_peak(&gpu, DTYPE_FP32), 19.5e12);
    assert_close(gpu.memory, 80. * 1024 * 1024 * 1024);
    assert_close(gpu.memory_bandwidth, 2039e9);
    assert_int_equal(gpu_load(&arena, "a100-40gb", (struct loc){0}, &gpu, &error), 0);
    assert_close(gpu.memory_bandwidth, 1555e9);
    assert_int_equal(gpu_load(&arena, "h100-80gb", (struct loc){0}, &gpu, &error), 0);
    assert_close(gpu_peak(&gpu, DTYPE_FP16), 989e12);
    assert_close(gpu.memory_bandwidth, 3350e9);
    assert_int_equal(gpu_load(&arena, "h200-141gb", (struct loc){0}, &gpu, &error), 0);
    assert_close(gpu.memory_bandwidth, 4800e9);
    /* V100 has no bf16: fp32's rate. */
    assert_int_equal(gpu_load(&arena, "v100-32gb", (struct loc){0}, &gpu, &error), 0);
    assert_close(gpu_peak(&gpu, DTYPE_FP16), 125e12);
    assert_close(gpu_peak(&gpu, DTYPE_BF16), 15.7e12);
    assert_close(gpu_peak(&gpu, DTYPE_TF32), 15.7e12);
    struct gpu other;
    assert_int_equal(gpu_load(&arena, "v100-16gb", (struct loc){0}, &other, &error), 0);
    assert_close(other.memory_bandwidth, gpu.memory_bandwidth);
    assert_true(other.memory < 0.51 * gpu.memory);
}

static void platforms_are_sane(void **state)
{
    (void)state;
    const char **names = data_names(&arena, "platforms", &error);
    int count = 0;
    for (; names[count]; count++) {
        struct cluster cluster = load_good(names[count]);
        assert_string_equal(cluster.platform, names[count]);
        assert_non_null(cluster.title);
        assert_int_equal(cluster.nodes, 0);
        /* boards of four GPUs end with it, and a pair has a third of a GPU's links */
        bool four = strlen(names[count]) > 2 && !strcmp(names[count] + strlen(names[count]) - 2, "-4");
        assert_int_equal(cluster.kinds[0].gpus, !strcmp(names[count], "dgx-2") ? 16 :
                                                strstr(names[count], "-nvl72") ? 72 :
                                                !strcmp(names[count], "gh200-node") ? 1 :
                                                four || !strcmp(names[count], "alps") ||
                                                !strcmp(names[count], "jupiter") ||
                                                !strcmp(names[count], "workstation") ? 4 : 8);
        assert_true(!four || fabs(3 * cluster_mesh_share(&cluster, 0, 2) - 1) < 0.01);
        assert_true(!four || (cluster_mesh_share(&cluster, 0, 4) == 1 && cluster.kinds[0].nics.count == 4));
        assert_true(!four || !collective_runs_on(collective_find(COLLECTIVE_ALL_REDUCE, "nvls"), &cluster));
        assert_false(cluster.ideal);
        assert_string_equal(cluster.kinds[0].gpu.name, cluster.kinds[0].gpu_name);
        assert_true(cluster.kinds[0].inside.bandwidth >= 10e9 && cluster.kinds[0].inside.bandwidth <= 1e12);
        assert_true(cluster.kinds[0].inside.latency >= 0.5e-6 && cluster.kinds[0].inside.latency <= 10e-6);
        assert_true(cluster.kinds[0].inside.efficiency > 0.5 && cluster.kinds[0].inside.efficiency < 1);
        assert_true(cluster.kinds[0].nics.bandwidth >= 1e9 && cluster.kinds[0].nics.bandwidth <= 100e9);
        assert_true(cluster.kinds[0].nics.latency >= 1e-6 && cluster.kinds[0].nics.latency <= 100e-6);
        assert_true(cluster.kinds[0].nics.latency > cluster.kinds[0].inside.latency);
        assert_true(cluster.kinds[0].nics.efficiency > 0.9 && cluster.kinds[0].nics.efficiency < 1);
        assert_int_equal(cluster.network.topology.kind, TOPOLOGY_NONBLOCKING);
    }
    assert_true(count >= 7);
}

static void platform_constants(void **state)
{
    (void)state;
    static const struct {
        const char *name, *gpu;
        double inside, network;
        int nics;
    } expected[] = {
        {"dgx-1-v100", "v100-32gb", 150e9, 12.5e9, 4}, {"dgx-a100", "a100-80gb", 300e9, 25e9, 8},
        {"dgx-h100", "h100-80gb", 450e9, 50e9, 8},     {"hgx-h200", "h200-141gb", 450e9, 50e9, 8},
        {"pcie-10gbe", "a40", 31.5e9, 1.25e9, 1},      {"pcie-25gbe", "a40", 31.5e9, 3.125e9, 1},
        {"hgx-a800", "a800-80gb", 200e9, 25e9, 8},     {"hgx-h800", "h800-80gb", 200e9, 50e9, 8},
        {"hgx-h20", "h20-96gb", 450e9, 50e9, 8},       {"alps", "gh200-96gb", 450e9, 25e9, 4},
        {"pcie-h100-nvl", "h100-nvl-94gb", 300e9, 50e9, 4},
        {"pcie-h200-nvl", "h200-nvl-141gb", 450e9, 50e9, 4},
        {"p4d", "a100-40gb", 300e9, 12.5e9, 4},        {"p4de", "a100-80gb", 300e9, 12.5e9, 4},
        {"p5", "h100-80gb", 450e9, 12.5e9, 32},        {"p5en", "h200-141gb", 450e9, 25e9, 16},
        {"p6-b200", "b200-180gb", 900e9, 50e9, 8},     {"g5", "a10g", 31.5e9, 12.5e9, 1},
        {"a2", "a100-40gb", 300e9, 12.5e9, 1},         {"a3-mega", "h100-80gb", 450e9, 25e9, 8},
        {"a4", "b200-180gb", 900e9, 50e9, 8},          {"nd-a100-v4", "a100-40gb", 300e9, 25e9, 8},
        {"nd-h100-v5", "h100-80gb", 450e9, 50e9, 8},   {"oci-bm-gpu-a100-v2", "a100-80gb", 300e9, 25e9, 8},
        {"oci-bm-gpu-h100", "h100-80gb", 450e9, 25e9, 16}, {"oci-bm-gpu-mi300x", "mi300x", 448e9, 50e9, 8},
        {"jupiter", "gh200-96gb", 450e9, 25e9, 4},     {"gh200-node", "gh200-96gb", 450e9, 50e9, 1},
        {"workstation", "rtx-a6000", 31.5e9, 1.25e9, 1}, {"lumi", "mi250x", 200e9, 25e9, 4},
        {"frontier", "mi250x", 200e9, 25e9, 4},
        {"mi325x-platform", "mi325x", 448e9, 50e9, 8}, {"mi355x-platform", "mi355x", 537e9, 50e9, 8},
    };
    for (size_t i = 0; i < COUNT(expected); i++) {
        struct cluster cluster = load_good(expected[i].name);
        assert_string_equal(cluster.kinds[0].gpu_name, expected[i].gpu);
        assert_close(cluster.kinds[0].inside.bandwidth, expected[i].inside);
        assert_close(cluster.kinds[0].nics.bandwidth, expected[i].network);
        assert_int_equal(cluster.kinds[0].nics.count, expected[i].nics);
    }
    /* NCCL's measured bus bandwidths: 232 GB/s in a DGX A100, 370 in a DGX H100, 192 and 380 between nodes. */
    struct cluster a100 = load_good("dgx-a100"), h100 = load_good("dgx-h100");
    const struct protocol_cost *a = a100.kinds[0].communication->ring.simple,
                               *h = h100.kinds[0].communication->ring.simple;
    const struct machine_kind *kind = a100.kinds, *other = h100.kinds;
    assert_true(fabs(kind->inside.bandwidth * a->inside_share * 14 / (14 + a->ends) / 232e9 - 1) < 0.02);   /* 8 GPUs */
    assert_true(fabs(other->inside.bandwidth * h->inside_share / 370e9 - 1) < 0.02);
    assert_true(fabs(8 * kind->nics.bandwidth * a->network_share / 192e9 - 1) < 0.01);
    assert_true(fabs(8 * other->nics.bandwidth * h->network_share / 380e9 - 1) < 0.01);
    assert_null(a100.kinds[0].communication->nvls.simple);
    assert_non_null(h100.kinds[0].communication->nvls.simple);
    /* no protocol gives payload more than a copy between two GPUs reaches */
    assert_true(a->inside_share < kind->inside.efficiency && h->inside_share < other->inside.efficiency);
}

static void data_of_ones_own(void **state)
{
    (void)state;
    assert_string_equal(data_relative(&arena, (struct loc){.file = "a/b/c.yaml"}, "d.yaml", &error), "a/b/d.yaml");
    assert_string_equal(data_relative(&arena, (struct loc){.file = "c.yaml"}, "d.yaml", &error), "d.yaml");
    assert_string_equal(data_relative(&arena, (struct loc){.file = "/c.yaml"}, "../d.yaml", &error), "/../d.yaml");
    assert_string_equal(data_relative(&arena, (struct loc){.file = "a/c.yaml"}, "/d.yaml", &error), "/d.yaml");
    assert_string_equal(data_relative(&arena, (struct loc){.file = NULL}, "x/d.yaml", &error), "x/d.yaml");
    assert_string_equal(data_relative(&arena, (struct loc){.file = "--set cluster=x/d.yaml"}, "x/d.yaml", &error),
                        "x/d.yaml");
    const char *path = folder;
    assert_int_equal(data_file(&arena, "platforms", "mine", &path, &error), 0);
    assert_null(path);
    assert_null(data_names(&arena, "no-such-folder", &error)[0]);

    assert_int_equal(mkdir(arena_printf(&arena, "%s/platforms", folder), 0700), 0);
    write_file("platforms/mine.yaml", "platform: dgx-a100\nnodes: 2\n");
    write_file("platforms/dgx-h100.yaml", "platform: mine\nnodes: 3\n");
    write_file("platforms/.hidden.yaml", "");
    write_file("platforms/README", "");
    assert_int_equal(setenv("DTSIM_DATA", folder, 1), 0);
    const char **names = data_names(&arena, "platforms", &error);
    static const char *const known[] = {"dgx-1-v100", "dgx-h100", "gb300-nvl72", "hgx-a100-4", "mine", "p4d", "pcie-25gbe"};
    size_t count = 0, found = 0;
    for (; names[count]; count++) {
        assert_true(count == 0 || strcmp(names[count - 1], names[count]) < 0);       /* sorted, each once */
        found += found < COUNT(known) && !strcmp(names[count], known[found]);
    }
    assert_int_equal(found, COUNT(known));
    assert_int_equal(load_good("mine").nodes, 2);
    struct cluster cluster = load_good("dgx-h100");
    assert_int_equal(cluster.nodes, 3);
    assert_string_equal(cluster.kinds[0].gpu_name, "a100-80gb");
    assert_int_equal(unsetenv("DTSIM_DATA"), 0);
}

/* Where names alone are allowed, a path counts only if one of the program's own files has it. */
static void paths_of_others(void **state)
{
    static const char *const others[] = {NULL, "scenario", "--set cluster=/x", "stdin", "/tmp/x.yaml", DTSIM_SOURCE_DIR "x/y.yaml"};
    struct cache cache;
    struct arena guarded = {.cache = &cache};
    struct error found = {0};

    (void)state;
    cache_init(&cache, CACHE_BYTES);
    cache.names_only = true;
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_null(data_relative(&guarded, (struct loc){.file = others[i]}, "/etc/passwd", &found));
        assert_int_equal(found.count, i + 1);
        assert_non_null(strstr(found.messages[i].text, "'/etc/passwd' is a path"));
    }
    error_release(&found);
    assert_non_null(
        data_relative(&guarded, (struct loc){.file = DTSIM_SOURCE_DIR "/platforms/dgx-a100.yaml"}, "x.csv", &found));
    assert_int_equal(found.count, 0);
    cache.refused = true;
    cache_renew(&cache);             /* it is emptied, and as strict as before */
    assert_true(cache.names_only);
    cache_release(&cache);
    arena_release(&guarded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_others),
        cmocka_unit_test(gpus_are_sane),
        cmocka_unit_test(gpu_constants),
        cmocka_unit_test(platforms_are_sane),
        cmocka_unit_test(platform_constants),
        cmocka_unit_test(data_of_ones_own),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
