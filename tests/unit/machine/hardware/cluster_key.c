/* cluster_key: whatever a cluster is stands in its key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cache.h"
#include "hardware/cluster.h"

static bool keys_differ(const struct cluster *a, const struct cluster *b)
{
    struct cache_key keys[2] = {{0}};
    bool differ;

    cluster_key(a, &keys[0]);
    cluster_key(b, &keys[1]);
    differ = keys[0].count != keys[1].count || memcmp(keys[0].items, keys[1].items, keys[0].count);
    free(keys[0].items);
    free(keys[1].items);
    return differ;
}

/* The bytes of the struct that are no part of the key: where it was read, what its pointers point to (below), what the
 * alignment leaves over, and gpu.changed, on which the times of kernels depend but nothing of the network. gpu.power is a
 * pointer whose struct stands in the key. A new member stands in the key, or here with a reason. */
#define MEMBER(member) {offsetof(struct cluster, member), sizeof ((struct cluster *)NULL)->member}
static const struct { size_t begin, size;
} apart[] = {
    MEMBER(node),
    MEMBER(base),
    MEMBER(kinds[0].inside.node),
    MEMBER(kinds[0].inside.meshes),
    MEMBER(network.node),
    MEMBER(network.topology.node),
    MEMBER(network.topology.levels),
    MEMBER(network.topology.dims),
    MEMBER(network.topology.hop_time), /* follows from hop */
    MEMBER(network.topology.xml),
    MEMBER(network.topology.hosts),   /* the network's digest has the routes of these hosts */
    MEMBER(network.topology.network), /* tests/unit/topology/simgrid_file.c */
    MEMBER(kinds[0].host.node),
    MEMBER(kinds[0].gpu.node),
    MEMBER(kinds[0].gpu.peak.node),
    MEMBER(platform),
    MEMBER(title),
    MEMBER(kinds[0].gpu_spec),
    MEMBER(kinds[0].gpu_name),
    MEMBER(gpu_slower),
    MEMBER(nic_shares),
    MEMBER(kinds[0].communication_spec),
    MEMBER(kinds[0].communication),
    MEMBER(kinds[0].gpu.name),
    MEMBER(kinds[0].gpu.title),
    MEMBER(kinds[0].gpu.changed),
    MEMBER(kinds[0].gpu.power),
    MEMBER(kinds[0].gpu.power_error), /* follows from board_power and power */
    MEMBER(kinds[0].gpu.base),
    MEMBER(network.name),
    MEMBER(network.file),
    MEMBER(network.title),
    MEMBER(network.estimate),
    MEMBER(given),
    MEMBER(between),
    /* numbers of kinds and of nodes, of which not every value exists (below); kinds that no node is of */
    MEMBER(part_count),
    MEMBER(parts),
    {offsetof(struct cluster, kinds[1]), (KINDS_MAX - 1) * sizeof(struct machine_kind)},
};

static bool is_apart(size_t byte)
{
    for (size_t i = 0; i < COUNT(apart); i++)
        if (byte >= apart[i].begin && byte < apart[i].begin + apart[i].size)
            return true;
    return false;
}

/* Whether the byte belongs to no member: it follows an int or a bool that is shorter than the alignment. */
static bool is_padding(size_t byte)
{
    static const size_t ends[] = {
        offsetof(struct cluster, kinds[0].gpus_per_switch) + sizeof(int),
        offsetof(struct cluster, kinds[0].inside.link) + sizeof(int),
        offsetof(struct cluster, kinds[0].nics.count) + sizeof(int),
        offsetof(struct cluster, network.topology.wraps) + sizeof(bool),
        offsetof(struct cluster, network.topology.routing) + sizeof(int),
        offsetof(struct cluster, ideal) + sizeof(bool),
        offsetof(struct cluster, kinds[0].gpu.multiprocessors) + sizeof(int),
    };

    for (size_t i = 0; i < COUNT(ends); i++)
        if (byte >= ends[i] && byte < (ends[i] + 7) / 8 * 8)
            return true;
    return false;
}

static void test_bytes(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    struct cluster cluster = {0}, other;
    struct node *root;
    static const char text[] = "{platform: dgx-a100, nodes: 4}";
    size_t checked = 0;

    (void)state;
    assert_int_equal(conf_parse(&arena, "test", text, strlen(text), &root, &err), 0);
    assert_int_equal(cluster_load(&arena, root, &cluster, &err), 0);
    assert_false(keys_differ(&cluster, &cluster));
    for (size_t byte = 0; byte < sizeof cluster; byte++) {
        if (is_apart(byte) || is_padding(byte))
            continue;
        other = cluster;
        ((unsigned char *)&other)[byte] ^= 1;
        if (byte >= offsetof(struct cluster, ideal) && byte < offsetof(struct cluster, ideal) + sizeof(bool))
            other.ideal = !cluster.ideal;
        if (!keys_differ(&cluster, &other))
            fail_msg("byte %zu of a cluster does not stand in its key", byte);
        checked++;
    }
    assert_true(checked > 200);
    arena_release(&arena);
}

/* What the struct points to. */
static void test_pointers(void **state)
{
    double slower[] = {1, 1, 2, 1}, shares[] = {1, 0.5};
    struct communication communication = {.launch = 1e-6, .channels_inside = 4}, slow = communication, first, many;
    struct gpu_spec spec = {.name = "x", .memory = 1}, smaller = {.name = "x", .memory = 0.5};
    struct communication_spec with = {.profile = "nccl"}, other_library = {.profile = "other"};
    struct mesh mesh = {.gpus = 2, .share = 0.5}, narrow = {.gpus = 2, .share = 0.25};
    struct cluster plain = {.nodes = 2, .kinds[0].gpus = 2, .kinds[0].nics.count = 1, .kinds[0].gpu_name = "x"};
    struct cluster others[12];

    (void)state;
    slow.launch = 2e-6;
    first = communication;
    first.nics = NICS_FIRST;
    many = communication;
    many.channels_inside = 8;
    for (size_t i = 0; i < COUNT(others); i++)
        others[i] = plain;
    others[0].gpu_slower = slower;
    others[1].nic_shares = shares;
    others[2].kinds[0].communication = &communication;
    others[3].kinds[0].communication = &slow;
    others[4].kinds[0].communication = &first;
    others[5].kinds[0].communication = &many;
    others[6].kinds[0].gpu_spec = &spec;
    others[7].kinds[0].gpu_spec = &smaller;
    others[8].kinds[0].communication_spec = &with;
    others[9].kinds[0].communication_spec = &other_library;
    for (int i = 10; i < 12; i++) {
        others[i].part_count = 2;
        others[i].parts[1] = (struct machine_part){.kind = i - 10, .first = 1};
        others[i].kinds[1] = others[i].kinds[0];
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_true(keys_differ(&plain, &others[i]));
        for (size_t k = 0; k < i; k++)
            assert_true(keys_differ(&others[k], &others[i]));
    }
    plain.kinds[0].inside.meshes = (struct list){.items = &mesh, .count = 1};
    others[0] = plain;
    others[0].kinds[0].inside.meshes.items = &narrow;
    assert_true(keys_differ(&plain, &others[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_pointers)};

    return cmocka_run_group_tests_name("cluster_key", tests, NULL, NULL);
}
