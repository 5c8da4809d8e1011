/* Communication profiles: what they make of messages, against closed forms and both engines. */
#include "cluster_files.h"
#include "collective/measure.h"

static int first_gpus[1024];

static const struct collective *all_reduce(const char *name)
{
    return collective_find(COLLECTIVE_ALL_REDUCE, name);
}

/* Alone on the first n GPUs, or on `stride`-th ones. */
static struct measured run_text(enum engine engine, const struct cluster *cluster,
                                const struct collective *collective, int n, int stride, double bytes)
{
    struct measure measure;
    struct measured measured;

    for (int i = 0; i < n; i++)
        first_gpus[i] = i * stride;
    measure_init(&measure, engine, cluster);
    struct placed_group group = placed_group_of(cluster, first_gpus, n);

    assert_int_equal(measure_collective(&measure, &(struct collective_call){collective, &group, bytes, 0}, 1, &measured,
                                        &error), 0);
    measure_release(&measure);
    return measured;
}

static const char profile[] =
    "ring:\n"
    "  ll: {launch: 5 us, inside: 1 us, spanning: 1.5 us, network: 3 us, inside_share: 0.25, network_share: 0.5,\n"
    "       inside_most: 20 GB/s}\n"
    "  simple: {launch: 9 us, inside: 4 us, network: 16 us, inside_share: 0.8, network_share: 0.9, plateau: 2,\n"
    "           spanning_plateau: 1.5, plateau_from: 100 MB}\n"
    "tree: {ll: {launch: 5 us, inside: 1 us, network: 4 us, inside_share: 0.1, network_share: 0.2},\n"
    "       simple: {launch: 9 us, inside: 4 us, network: 16 us, inside_share: 0.7, network_share: 0.8}}\n"
    "nvls: {simple: {launch: 1 us, inside: 20 us, network: 20 us, inside_share: 0.6, network_share: 0.9}}\n"
    "send: {inside: 7 us, network: 11 us, inside_share: 0.9, network_share: 0.95}\n";

static struct cluster profiled(int nodes, const char *launch)
{
    struct cluster cluster;

    write_file("own.yaml", profile);
    cluster = load_good(arena_printf(&arena, "{nodes: %d, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, latency: "
                                     "0.5 us}, network: {bandwidth: 10 GB/s, latency: 2 us, nics: 8}, "
                                     "communication: {profile: ./own.yaml, launch: %s}}", nodes, launch));
    return cluster;
}

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance * expected))
        fail_msg("%.12g instead of %.12g", actual, expected);
}

/* A ring through two nodes of 8 GPUs and a free network takes a step and the bytes of a share for each of its n - 1
 * messages, of which 7 of 8 channels send theirs through a GPU's port; an all-reduce has twice as many, and another
 * time of a step. A slow network hides the steps, and a ring in one node has none. */
static void steps_of_a_ring(void **state)
{
    static const enum collective_op ops[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_REDUCE};
    static const double network[] = {1e6, 1};    /* GB/s of a NIC */
    const double bytes = 16e6, share = 1e6;

    (void)state;
    write_file("step.yaml", "ring: {simple: {inside: 0 s, network: 0 s, inside_share: 1, network_share: 1, "
                            "step: 9 us, all_reduce_step: 3 us}}\n"
                            "send: {inside: 0 s, network: 0 s, inside_share: 1, network_share: 1}\n");
    for (size_t k = 0; k < COUNT(network); k++) {
        struct cluster cluster = load_good(arena_printf(
            &arena, "{nodes: 2, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, latency: 0 s}, network: "
            "{bandwidth: %.0f GB/s, latency: 0 s, nics: 8}, communication: ./step.yaml}", network[k]));

        for (size_t i = 0; i < COUNT(ops); i++) {
            const struct collective *ring = collective_find(ops[i], "ring");
            bool twice = ops[i] == COLLECTIVE_ALL_REDUCE;
            double step = twice ? 3e-6 : 9e-6, rounds = twice ? 2 : 1;
            double inside = 7.0 / 8 * (step + share / 100e9), between = share / 8 / (network[k] * 1e9);

            assert_near(run_text(ENGINE_FAST, &cluster, ring, 16, 1, bytes).seconds,
                        rounds * 15 * fmax(inside, between), 0.02);
            assert_near(run_text(ENGINE_FAST, &cluster, ring, 8, 1, bytes / 2).seconds,
                        rounds * 7 * share / 100e9, 1e-6);
        }
    }
}

/* The ends of a ring cost as much as `ends` more messages: without latency, (n - 1 + ends) / (n - 1) of the time. */
static void ends_of_a_ring(void **state)
{
    static const enum collective_op ops[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER};
    struct cluster cluster;

    (void)state;
    write_file("ends.yaml", "ring: {simple: {inside: 0 s, network: 0 s, inside_share: 0.5, network_share: 1, "
                            "ends: 0.6}}\n"
                            "send: {inside: 0 s, network: 0 s, inside_share: 0.5, network_share: 1, ends: 0.6}\n");
    cluster = load_good("{nodes: 1, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, latency: 0 s}, "
                        "network: {bandwidth: 10 GB/s, latency: 0 s}, communication: ./ends.yaml}");
    for (size_t i = 0; i < COUNT(ops); i++)
        for (int n = 2; n <= 8; n *= 2) {
            double messages = (ops[i] == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (n - 1);

            assert_near(run_text(ENGINE_FAST, &cluster, collective_find(ops[i], "ring"), n, 1, 1e9).seconds,
                        (messages + 0.6) * 1e9 / n / 50e9, 1e-6);
        }
    assert_near(run_text(ENGINE_FAST, &cluster, collective_find(COLLECTIVE_ALL_TO_ALL, "pairwise"), 4, 1, 1e9).seconds,
                3.6 * 1e9 / 4 / 50e9, 1e-6);
}

/* launch + steps (latency + bytes / n / rate), for the protocol that makes it the least; on both engines. */
static void ring_in_a_node(void **state)
{
    struct cluster cluster = profiled(1, "2 us");
    static const double sizes[] = {1, 1e3, 1e5, 1e6, 1e7, 99e6, 100e6, 1e9};
    bool used[PROTOCOL_COUNT] = {false};

    (void)state;
    for (int n = 2; n <= 8; n++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            double steps = 2 * (n - 1), share = sizes[i] / n, latency = sizes[i] < 100e6 ? 4e-6 : 8e-6;
            double ll = 7e-6 + steps * (1e-6 + share / 20e9), simple = 11e-6 + steps * (latency + share / 80e9);
            struct measured ideal = run_text(ENGINE_IDEAL, &cluster, all_reduce("ring"), n, 1, sizes[i]);
            struct measured simgrid = run_text(ENGINE_SIMGRID, &cluster, all_reduce("ring"), n, 1, sizes[i]);

            used[ideal.protocol] = true;
            assert_int_equal(ideal.protocol, ll < simple ? PROTOCOL_LL : PROTOCOL_SIMPLE);
            assert_near(ideal.seconds, fmin(ll, simple), 1e-9);
            assert_near(simgrid.seconds, ideal.seconds, 1e-9);
            /* payload is what is counted, whatever the protocol adds on the wire */
            assert_near(ideal.bytes_sent, steps * share, 1e-12);
        }
    assert_true(used[PROTOCOL_LL] && used[PROTOCOL_SIMPLE] && !used[PROTOCOL_LL128]);
}

/* One GPU a node: every message crosses the network, and takes the network's latency at least. */
static void ring_between_nodes(void **state)
{
    struct cluster cluster = profiled(4, "0 s");

    (void)state;
    assert_near(run_text(ENGINE_IDEAL, &cluster, all_reduce("ring"), 4, 8, 1e6).seconds,
                fmin(9e-6 + 6 * (16e-6 + 25e4 / 9e9), 5e-6 + 6 * (3e-6 + 25e4 / 5e9)), 1e-9);
    assert_near(run_text(ENGINE_IDEAL, &cluster, all_reduce("ring"), 4, 8, 1e9).seconds,
                9e-6 + 6 * (24e-6 + 25e7 / 9e9), 1e-9);
    /* the plateau is a value of all-reduces alone */
    assert_near(run_text(ENGINE_IDEAL, &cluster, collective_find(COLLECTIVE_ALL_GATHER, "ring"), 4, 8, 1e9).seconds,
                9e-6 + 3 * (16e-6 + 25e7 / 9e9), 1e-9);
    assert_near(run_text(ENGINE_IDEAL, &cluster, collective_find(COLLECTIVE_REDUCE_SCATTER, "ring"), 4, 8, 1e9).seconds,
                9e-6 + 3 * (16e-6 + 25e7 / 9e9), 1e-9);
    cluster.kinds[0].nics.latency = 1e-3;
    assert_near(run_text(ENGINE_IDEAL, &cluster, all_reduce("ring"), 4, 8, 1e9).seconds,
                9e-6 + 6 * (1e-3 + 25e7 / 9e9), 1e-9);
}

/* NCCL's count: a message pays the latency of its link only, as buffers let the next follow (tuning.cc, ring). Small
 * messages take the latency alone, large ones the bandwidth alone; messages between take the sum. */
static void ring_over_nodes_is_as_nccl_counts(void **state)
{
    struct cluster cluster = profiled(4, "0 s");
    double small = run_text(ENGINE_SIMGRID, &cluster, all_reduce("ring"), 32, 1, 32).seconds;
    double large = run_text(ENGINE_SIMGRID, &cluster, all_reduce("ring"), 32, 1, 32e9).seconds;

    (void)state;
    /* 62 steps, 6 of them between nodes; a chunk may cross once or twice more than that; 62 B on eight channels, each of
     * which has its part of a port, take 2 ns */
    assert_true(small >= 5e-6 + 56 * 1.5e-6 + 6 * 3e-6 - 1e-9);
    assert_true(small <= 5e-6 + 54 * 1.5e-6 + 8 * 3e-6 + 3e-9);
    /* eight rings, each through another NIC */
    assert_near(large, 62 * 1e9 / 72e9, 0.01);
}

/* In the switch a port carries (1 + 1/g) of the vector, and the way there and back is paid once. */
static void in_the_switch(void **state)
{
    struct cluster cluster = profiled(1, "0 s");

    (void)state;
    for (int n = 2; n <= 8; n++)
        for (double bytes = 1e3; bytes <= 1e9; bytes *= 100) {
            struct measured ideal = run_text(ENGINE_IDEAL, &cluster, all_reduce("nvls"), n, 1, bytes);
            struct measured simgrid = run_text(ENGINE_SIMGRID, &cluster, all_reduce("nvls"), n, 1, bytes);

            assert_near(ideal.seconds, 1e-6 + 20e-6 + (1 + 1.0 / n) * bytes / 60e9, 1e-9);
            assert_near(simgrid.seconds, ideal.seconds, 1e-7);
            assert_near(ideal.bytes_sent, (1 + 1.0 / n) * bytes, 1e-12);     /* as many as its port carries */
        }
}

/* A vector through the NICs between nodes, in s: two shares each way. Between two nodes it is one share, and then the
 * nodes' ports may take longer. */
static double through_nics(int nodes, double bytes)
{
    return nodes > 2 ? 2 * bytes / 8 / 9e9 : fmax(bytes / 8 / 9e9, 1.125 * bytes / 60e9);
}

/* Between nodes: 2 log2 L latencies and the shares through every NIC; the phases inside nodes are hidden. */
static void in_the_switches_of_nodes(void **state)
{
    (void)state;
    for (int nodes = 2; nodes <= 16; nodes++)
        for (double bytes = 1e4; bytes <= 1e10; bytes *= 1e3) {
            struct cluster cluster = profiled(nodes, "0 s");
            double far = 2 * ceil(log2(nodes)) * 20e-6 + through_nics(nodes, bytes);
            double near = 20e-6 + 1.125 * bytes / 60e9 / 4096;
            double seconds = run_text(ENGINE_IDEAL, &cluster, all_reduce("nvls"), 8 * nodes, 1, bytes).seconds;

            assert_near(seconds, 1e-6 + near + far, 1e-9);
        }
}

/* A vector that NCCL cuts: the pipeline has two stages more in a node; between nodes every hop waits for the piece on
 * its way, which shrinks with the vector, and for the host, which serves as many channels as there is work for. A piece
 * that is the whole vector takes half the time at the root, up and down. */
static void pipelines_fill(void **state)
{
    static const struct { double bytes, piece, latency; } sizes[] = {
        {1e4, 1e4, 10e-6},    {1e5, 1e5, 20e-6},   {1e6, 1e6, 30e-6},
        {2e6, 1.6e6, 30e-6}, {32e6, 16e6, 30e-6}, {1e9, 16e6, 30e-6},
    };

    (void)state;
    for (int nodes = 1; nodes <= 16; nodes *= 2)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            struct cluster cluster;
            double bytes = sizes[i].bytes, piece = sizes[i].piece, hops = 2 * log2(nodes), expected;

            write_file("pieces.yaml",
                "ring: {simple: {launch: 9 us, inside: 4 us, network: 16 us, inside_share: 0.8, network_share: 0.9}}\n"
                "nvls: {simple: {inside: 20 us, network: 30 us, network_single: 10 us, channels: 3,\n"
                "  channel_from: 50 kB, inside_share: 0.6, network_share: 0.9, chunks: &chunks\n"
                "  [{bytes: 666.6666666666666 kB, rounds: 2}, {bytes: 66.66666666666667 kB}],\n"
                "  spanning_chunks: *chunks}}\n"
                "send: {inside: 7 us, network: 11 us, inside_share: 0.9, network_share: 0.95}\n");
            cluster = load_good(arena_printf(&arena, "{nodes: %d, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, "
                                             "latency: 0.5 us}, network: {bandwidth: 10 GB/s, latency: 2 us, nics: 8}, "
                                             "communication: ./pieces.yaml}", nodes));
            expected = 20e-6 + 1.125 * (2 * piece + bytes) / 60e9;
            if (nodes > 1)
                expected = 20e-6 + (2 * piece + 1.125 * bytes / 4096) / 60e9 + hops * sizes[i].latency +
                           through_nics(nodes, bytes) + fmax(hops - 2 - piece / bytes, 0) * piece / 8 / 9e9;
            for (int engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++)
                assert_near(run_text((enum engine)engine, &cluster, all_reduce("nvls"), 8 * nodes, 1, bytes).seconds,
                            expected, engine == ENGINE_IDEAL ? 1e-9 : 0.03);
        }
}

/* Trees and rings have a channel a NIC, each with its bound. */
static void channels_have_a_bound(void **state)
{
    struct cluster cluster;

    (void)state;
    write_file("bound.yaml", "ring: {simple: {inside: 4 us, network: 16 us, inside_share: 0.8, network_share: 0.9,\n"
                             "  nic_most: 3 GB/s}}\nsend: {inside: 7 us, network: 11 us, inside_share: 0.9, "
                             "network_share: 0.95}\n");
    cluster = load_good("{nodes: 4, gpus_per_node: 8, inside: {bandwidth: 100 GB/s, latency: 0.5 us}, network: "
                        "{bandwidth: 10 GB/s, latency: 2 us, nics: 4}, communication: ./bound.yaml}");
    assert_near(run_text(ENGINE_SIMGRID, &cluster, all_reduce("ring"), 32, 1, 32e9).seconds, 62 * 1e9 / 12e9, 0.01);
}

/* auto chooses an algorithm that NCCL has, the fastest by its estimate; trees between nodes alone. */
static void auto_chooses_what_the_library_has(void **state)
{
    struct cluster one = profiled(1, "0 s"), many = profiled(16, "0 s");
    bool ring = false, tree = false, nvls = false;

    (void)state;
    for (double bytes = 1; bytes < 1e11; bytes *= 3) {
        const struct collective *used = run_text(ENGINE_IDEAL, &one, all_reduce("auto"), 8, 1, bytes).used;

        assert_true(used == all_reduce("ring") || used == all_reduce("nvls"));
        used = run_text(ENGINE_IDEAL, &many, all_reduce("auto"), 16, 8, bytes).used;
        assert_true(used == all_reduce("ring") || used == all_reduce("double-tree"));     /* one rank a node */
        ring |= used == all_reduce("ring");
        tree |= used == all_reduce("double-tree");
        used = run_text(ENGINE_IDEAL, &many, all_reduce("auto"), 128, 1, bytes).used;
        nvls |= used == all_reduce("nvls");
    }
    assert_true(ring && tree && nvls);
}

static void sends_have_a_cost(void **state)
{
    struct cluster cluster = profiled(2, "0 s"), bare = load_good("{nodes: 2, gpus_per_node: 8, inside: {bandwidth: "
                                                                  "100 GB/s, latency: 0.5 us}, network: {bandwidth: "
                                                                  "10 GB/s, latency: 2 us}}");
    struct extra inside = cluster_send(&cluster, 0, 1), between = cluster_send(&cluster, 0, 8);

    (void)state;
    assert_near(inside.delay, 6.5e-6, 1e-9);
    assert_near(inside.overhead, 1 / 0.9 - 1, 1e-9);
    assert_near(between.delay, 9e-6, 1e-9);
    assert_near(between.overhead, 1 / 0.95 - 1, 1e-9);
    inside = cluster_send(&bare, 0, 1);
    assert_true(inside.delay == 0 && inside.overhead == 0);
    assert_null(bare.kinds[0].communication);
    assert_null(load_good("{platform: dgx-a100, communication: none}").kinds[0].communication);
    assert_false(collective_runs_on(all_reduce("nvls"), &bare));
    assert_true(collective_runs_on(all_reduce("nvls"), &cluster) && collective_runs_on(all_reduce("ring"), &bare));
}

/* Two GPUs and two NICs below a PCIe switch. A group has one GPU below each switch, while the groups of the other GPUs
 * do the same. Its messages go through the GPU's own NIC; through the NIC of the two that is on the way from another
 * switch; or through the first of the two. */
static void groups_share_nics(void **state)
{
    static const struct { const char *nics; int first, stride, per_node; double bandwidth; } cases[] = {
        {"own", 0, 8, 1, 9e9},  {"own", 0, 4, 2, 9e9},    {"own", 0, 2, 4, 9e9},   {"own", 0, 1, 8, 9e9},
        {"same", 0, 8, 1, 9e9}, {"same", 0, 4, 2, 3e9},   {"same", 0, 2, 4, 3e9},  {"same", 0, 1, 8, 9e9},
        {"first", 0, 8, 1, 4.5e9}, {"first", 0, 4, 2, 3e9}, {"first", 0, 2, 4, 3e9}, {"first", 0, 1, 8, 9e9},
        {"first", 1, 8, 1, 4.5e9}, {"first", 3, 4, 2, 3e9}, {"first", 1, 2, 4, 3e9},
    };

    (void)state;
    write_file("own.yaml", profile);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cluster cluster = load_good(arena_printf(&arena, "{nodes: 4, gpus_per_node: 8, gpus_per_switch: 2, "
            "inside: {bandwidth: 400 GB/s, latency: 0 s}, network: {bandwidth: 10 GB/s, latency: 0 s, nics: 8}, "
            "host: {across: 6 GB/s}, communication: {profile: ./own.yaml, nics: %s}}", cases[i].nics));
        int n = 4 * cases[i].per_node, gpus[32];
        double bytes = 1e12, share = bytes / n / cases[i].per_node;
        struct measure measure;
        struct measured measured = {0};

        for (int m = 0; m < n; m++)
            gpus[m] = cases[i].first + m * cases[i].stride;
        struct placed_group group = placed_group_of(&cluster, gpus, n);
        struct collective_call call = {all_reduce("ring"), &group, bytes, 0};

        for (int k = 0; k < 2; k++) {
            measure_init(&measure, k ? ENGINE_SIMGRID : ENGINE_IDEAL, &cluster);
            assert_int_equal(measure_collective(&measure, &call, 1, &measured, &error), 0);
            assert_near(measured.seconds, 2 * (n - 1) * share / cases[i].bandwidth, 0.01);
            measure_release(&measure);
        }
        call.channels = cases[i].per_node;
        assert_near(collective_cost(&call), measured.seconds, 0.01);
    }
}

/* Where the file gives no path through the host, no path there limits a group. */
static void nothing_said_of_the_host(void **state)
{
    static const char *const nics[] = {"own", "same", "first"};
    double seconds[COUNT(nics)];

    (void)state;
    write_file("own.yaml", profile);
    for (size_t c = 0; c < COUNT(nics); c++) {
        struct cluster cluster = load_good(arena_printf(&arena, "{nodes: 4, gpus_per_node: 8, gpus_per_switch: 2, "
            "inside: {bandwidth: 400 GB/s, latency: 0 s}, network: {bandwidth: 10 GB/s, latency: 0 s, nics: 8}, "
            "communication: {profile: ./own.yaml, nics: %s}}", nics[c]));

        seconds[c] = run_text(ENGINE_IDEAL, &cluster, all_reduce("ring"), 16, 2, 1e9).seconds;
    }
    assert_near(seconds[1], seconds[0], 1e-12);
    assert_true(seconds[2] > 1.5 * seconds[0]);
}

/* Slower links, later results; a profile of the platforms never beats the links themselves (but for the switches). */
static void no_profile_is_faster_than_its_links(void **state)
{
    static const char *const names[] = {"dgx-1-v100", "dgx-a100", "dgx-h100", "hgx-h200", "pcie-10gbe"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct cluster with = load_good(arena_printf(&arena, "{platform: %s, nodes: 4}", names[i]));
        struct cluster without = load_good(arena_printf(&arena, "{platform: %s, nodes: 4, communication: none}",
                                                        names[i]));

        for (int n = 2; n <= 32; n *= 2)
            for (double bytes = 1e3; bytes <= 1e9; bytes *= 1e3)
                assert_true(run_text(ENGINE_IDEAL, &with, all_reduce("ring"), n, 1, bytes).seconds >
                            0.999 * run_text(ENGINE_IDEAL, &without, all_reduce("ring"), n, 1, bytes).seconds ||
                            n > with.kinds[0].gpus);     /* there messages are buffered, see above */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_a_ring),
        cmocka_unit_test(steps_of_a_ring),
        cmocka_unit_test(ring_in_a_node),
        cmocka_unit_test(ring_between_nodes),
        cmocka_unit_test(ring_over_nodes_is_as_nccl_counts),
        cmocka_unit_test(in_the_switch),
        cmocka_unit_test(in_the_switches_of_nodes),
        cmocka_unit_test(pipelines_fill),
        cmocka_unit_test(channels_have_a_bound),
        cmocka_unit_test(auto_chooses_what_the_library_has),
        cmocka_unit_test(sends_have_a_cost),
        cmocka_unit_test(groups_share_nics),
        cmocka_unit_test(nothing_said_of_the_host),
        cmocka_unit_test(no_profile_is_faster_than_its_links),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
