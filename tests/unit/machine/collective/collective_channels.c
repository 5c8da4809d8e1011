/* Channels of collectives: how many there are, through which NICs they go, and that they change nothing else. */
#include "collective_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static double total_bytes(const struct run *run)
{
    double total = 0;

    for (size_t i = 0; i < run->program.ops.count; i++)
        total += run->program.ops.items[i].kind == OP_TRANSFER ? run->program.ops.items[i].amount : 0;
    return total;
}

static void channels_share_the_bytes(void **state)
{
    struct cluster cluster = make_cluster(4, 8, 8);

    (void)state;
    for (size_t i = 0; collective_at(i); i++)
        for (int n = 1; n <= 32; n++) {
            struct run one, several;

            run_init(&one, collective_at(i), &cluster, n, identity(), 1e9, 1, NULL);
            run_init(&several, collective_at(i), &cluster, n, identity(), 1e9, 1 + n % MAX_CHANNELS, NULL);
            assert_true(fabs(total_bytes(&one) - total_bytes(&several)) <= 1e-9 * total_bytes(&one));
            run_release(&one);
            run_release(&several);
        }
}

/* Which NICs the transfers of a channel use to leave each node and to enter it: counts, [channel][NIC]. */
struct crossings { int leaves[MAX_CHANNELS][MAX_MEMBERS], enters[MAX_CHANNELS][MAX_MEMBERS]; };

static void count_crossings(const struct run *run, const struct cluster *cluster, struct crossings *crossings)
{
    memset(crossings, 0, sizeof *crossings);
    for (size_t i = 0; i < run->program.ops.count; i++) {
        const struct op *op = &run->program.ops.items[i];
        int channel = run->program.lanes.items[op->lane].index;
        const struct op_transfer *transfer = &op_traits(&run->program, op)->transfer;
        int src = (int)transfer->src, dst = (int)transfer->dst;

        if (op->kind != OP_TRANSFER || cluster_node_of(cluster, src) == cluster_node_of(cluster, dst))
            continue;
        crossings->leaves[channel][cluster_nic_of(cluster, src)]++;
        crossings->enters[channel][cluster_nic_of(cluster, dst)]++;
    }
}

/* With as many channels as a node has NICs in use, each channel leaves every node through one NIC, and no two through
 * the same one; the same for entering. */
static void check_nics(const char *name, int nodes, int gpus_per_node, int nics)
{
    struct cluster cluster = make_cluster(nodes, gpus_per_node, nics);
    struct placed_group group = placed_group_of(&cluster, identity(), nodes * gpus_per_node);
    int channels = placed_group_channels(&group);
    struct crossings crossings;
    struct run run;

    nics = cluster_node_nics(&cluster, 0);       /* the NICs of one GPU count as one */
    assert_int_equal(channels, nics);
    run_init(&run, collective_find(COLLECTIVE_ALL_REDUCE, name), &cluster, group.n, group.gpus, 1e9, channels, NULL);
    count_crossings(&run, &cluster, &crossings);
    for (int node = 0; node < nodes; node++) {
        int left[MAX_MEMBERS] = {0}, entered[MAX_MEMBERS] = {0};

        for (int c = 0; c < channels; c++)
            for (int nic = node * nics; nic < (node + 1) * nics; nic++) {
                left[c] += crossings.leaves[c][nic] > 0;
                entered[c] += crossings.enters[c][nic] > 0;
            }
        for (int c = 0; c < channels; c++)
            assert_true(left[c] == 1 && entered[c] == 1);
    }
    for (int nic = 0; nic < nodes * nics; nic++) {
        int leaving = 0, entering = 0;

        for (int c = 0; c < channels; c++) {
            leaving += crossings.leaves[c][nic] > 0;
            entering += crossings.enters[c][nic] > 0;
        }
        assert_true(leaving <= 1 && entering <= 1);
        assert_true(channels < nics || (leaving == 1 && entering == 1));
    }
    run_release(&run);
}

static void every_nic_belongs_to_one_channel(void **state)
{
    (void)state;
    check_nics("ring", 4, 8, 8);
    check_nics("tree", 4, 8, 8);
    for (int nodes = 2; nodes <= 6; nodes++)
        for (int gpus_per_node = 2; gpus_per_node <= 10; gpus_per_node++)
            for (int nics = 1; nics <= MAX_CHANNELS; nics++)
                check_nics("ring", nodes, gpus_per_node, nics);
}

/* The same for a chain from a root, or to it: two channels through one NIC would take twice as long. */
static void chains_share_no_nic(void **state)
{
    static const enum collective_op ops[] = {COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE};

    (void)state;
    for (size_t k = 0; k < COUNT(ops); k++)
        for (int gpus_per_node = 2; gpus_per_node <= 10; gpus_per_node++)
            for (int nics = 2; nics <= MAX_CHANNELS && nics <= gpus_per_node; nics++) {
                struct cluster cluster = make_cluster(3, gpus_per_node, nics);
                struct crossings crossings;
                struct run run;

                run_init(&run, collective_find(ops[k], "ring"), &cluster, 3 * gpus_per_node, identity(), 1e9, nics,
                         NULL);
                count_crossings(&run, &cluster, &crossings);
                for (int nic = 0; nic < 3 * nics; nic++) {
                    int leaving = 0, entering = 0;

                    for (int c = 0; c < nics; c++) {
                        leaving += crossings.leaves[c][nic] > 0;
                        entering += crossings.enters[c][nic] > 0;
                    }
                    assert_true(leaving <= 1 && entering <= 1);
                }
                run_release(&run);
            }
}

/* The classic eight-GPU node: channel c of a ring comes in at GPU c and goes out at GPU c - 1. */
static void rings_turn_by_one_gpu_a_channel(void **state)
{
    struct cluster cluster = make_cluster(4, 8, 8);
    struct crossings crossings;
    struct run run;

    (void)state;
    run_init(&run, collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &cluster, 32, identity(), 1e9, 8, NULL);
    count_crossings(&run, &cluster, &crossings);
    for (int c = 0; c < 8; c++)
        for (int gpu = 0; gpu < 32; gpu++) {
            assert_int_equal(crossings.enters[c][gpu], gpu % 8 == c ? 62 : 0);
            assert_int_equal(crossings.leaves[c][gpu], gpu % 8 == (c + 7) % 8 ? 62 : 0);
        }
    run_release(&run);
}

static void channels_are_the_nics_of_a_node(void **state)
{
    static const struct { int channels, nics, n, gpus[16]; } cases[] = {
        {8, 8, 16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {4, 4, 16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {1, 1, 16, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        {4, 8, 8, {0, 1, 2, 3, 8, 9, 10, 11}},           /* half of each node */
        {4, 8, 8, {3, 2, 1, 0, 11, 8, 10, 9}},           /* in any order */
        {2, 4, 8, {0, 1, 2, 3, 8, 9, 10, 11}},           /* two GPUs a NIC */
        {1, 4, 4, {0, 1, 8, 9}},                         /* all members of a node share one NIC */
        {1, 8, 8, {0, 1, 2, 3, 4, 5, 6, 7}},             /* one node */
        {1, 8, 1, {5}},
        {1, 8, 4, {0, 8, 16, 24}},                       /* one GPU a node */
        {1, 8, 3, {0, 1, 8}},                            /* nodes with different numbers of members: the fewest NICs */
        {4, 8, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {1, 4, 4, {0, 1, 8, 10}},                        /* nodes with different numbers of NICs in use */
        {1, 8, 4, {0, 8, 1, 9}},                         /* members from node to node */
    };

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        struct cluster cluster = make_cluster(4, 8, cases[k].nics);
        struct placed_group group = placed_group_of(&cluster, cases[k].gpus, cases[k].n);

        assert_int_equal(placed_group_channels(&group), cases[k].channels);
    }
}

static void swap_blocks(int *items, int n, int block, uint64_t *seed)
{
    for (int i = n / block - 1; i > 0; i--) {
        int other = random_below(seed, i + 1);
        for (int k = 0; k < block; k++) {
            int item = items[i * block + k];
            items[i * block + k] = items[other * block + k];
            items[other * block + k] = item;
        }
    }
}

/* Swapping members that are equally far from each other changes nothing; nor does swapping whole nodes. */
static void relabelling_changes_no_time(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; collective_at(i); i++)
        for (int n = 4; n <= MAX_MEMBERS; n += 4)
            for (int block = 1; block <= 4; block += 3) {
                struct cluster cluster = make_cluster(n / block, block, block);
                struct run plain, relabelled;
                int gpus[MAX_MEMBERS];

                memcpy(gpus, identity(), sizeof gpus);
                swap_blocks(gpus, n, block, &seed);
                run_init(&plain, collective_at(i), &cluster, n, identity(), 1e8, block, NULL);
                run_init(&relabelled, collective_at(i), &cluster, n, gpus, 1e8, block, NULL);
                assert_true(plain.timeline.makespan == relabelled.timeline.makespan);
                run_release(&plain);
                run_release(&relabelled);
            }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_share_the_bytes),
        cmocka_unit_test(every_nic_belongs_to_one_channel),
        cmocka_unit_test(chains_share_no_nic),
        cmocka_unit_test(rings_turn_by_one_gpu_a_channel),
        cmocka_unit_test(channels_are_the_nics_of_a_node),
        cmocka_unit_test(relabelling_changes_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
