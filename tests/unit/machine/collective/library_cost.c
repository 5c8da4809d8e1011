/* All-to-alls in a node: the part that a GPU keeps, large messages, pieces that are copied; on every platform the time
 * grows with the size. */
#include "cluster_files.h"
#include "collective/collective.h"

static double seconds(const struct cluster *cluster, int n, double bytes)
{
    static int members[72];

    for (int m = 0; m < n; m++)
        members[m] = m;
    struct placed_group group = placed_group_of(cluster, members, n);

    return collective_cost(&(struct collective_call){collective_usual(COLLECTIVE_ALL_TO_ALL, true), &group, bytes, 1});
}

/* Messages whose time the bytes take, of n = 4 ranks that send 80 GB/s. */
static double messages(const struct cluster *cluster, double share)
{
    return (seconds(cluster, 4, 4 * share) - 9e-6 - 3 * cluster->kinds[0].inside.latency) / (share / 80e9);
}

/* The part that a GPU keeps counts as 0.9 of a message up to 1 MB for each peer, and as 0.1 from there on, but the time
 * does not fall; the last 200 kB of pieces are copied four times as fast as they arrive. */
static void large_messages_share_all_channels(void **state)
{
    struct cluster cluster;

    (void)state;
    write_file("own.yaml", "ring: {simple: {inside: 1 us, network: 1 us, inside_share: 0.5, network_share: 0.5}}\n"
                           "send: {inside: 1 us, network: 1 us, inside_share: 0.5, network_share: 0.5}\n"
                           "all_to_all: {simple: {launch: 9 us, inside_share: 0.8, ends: 0.9, large_ends: 0.1,\n"
                           "                      large_from: 1 MB, pieces: 200 kB, piece_copy: 0.25}}\n");
    cluster = load_good("{nodes: 1, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, latency: 1 us}, "
                        "communication: ./own.yaml}");
    assert_true(fabs(messages(&cluster, 25e3) - 3.9 - 0.25 * 4) < 1e-6);
    assert_true(fabs(messages(&cluster, 500e3) - 3.9 - 0.25 * 0.4) < 1e-6);
    assert_true(fabs(messages(&cluster, 1e6) - 3.9 - 0.25 * 0.2) < 1e-6);
    assert_true(fabs(messages(&cluster, 1.1e6) * 1.1 - 3.9 - 0.25 * 0.2) < 1e-6);
    assert_true(fabs(messages(&cluster, 4e6) - 3.1 - 0.25 * 0.05) < 1e-6);
}

/* On every platform, of every number of ranks in a node: more bytes never take less time, and twice the bytes never
 * more than twice the time; one rank more never takes less. */
static void exchanges_grow_with_their_size(void **state)
{
    struct error err = {0};
    const char **names = data_names(&arena, "platforms", &err);
    int tried = 0;

    (void)state;
    assert_non_null(names);
    for (int i = 0; names[i]; i++) {
        struct cluster cluster = load_good(names[i]);
        int most = cluster.kinds[0].inside.meshes.count ? 1 : cluster.kinds[0].gpus;  /* a cost for each on a mesh */

        cluster_size(&cluster, cluster.kinds[0].gpus);
        for (int n = 2; n <= most; n++, tried++)
            for (double bytes = 1024; bytes < 64e9; bytes *= 1.25) {
                double once = seconds(&cluster, n, bytes), more = seconds(&cluster, n, 1.25 * bytes);
                double twice = seconds(&cluster, n, 2 * bytes), share = bytes / n;

                if (!(more >= once * (1 - 1e-12)) || !(twice <= 2 * once) ||
                    (n < most && !(seconds(&cluster, n + 1, share * (n + 1)) >= once * (1 - 1e-12))))
                    fail_msg("%s, %d ranks, %g B: %g s; a quarter more %g s, twice as much %g s", names[i], n, bytes,
                             once, more, twice);
            }
    }
    assert_true(tried > 100);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_messages_share_all_channels), cmocka_unit_test(exchanges_grow_with_their_size),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
