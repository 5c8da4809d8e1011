/* The cost of collectives on clusters of two levels: their formulas against both engines, and the choice of auto. */
#include "collective_run.h"
#include "collective/measure.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct shape { int nodes, gpus_per_node, nics; } shapes[] = {
    {2, 8, 8}, {4, 8, 1}, {4, 8, 4}, {8, 8, 8}, {3, 4, 4}, {6, 2, 1}, {2, 16, 2},
};
static const double sizes[] = {1e3, 1e6, 1e8};

static const struct collective *all_reduce(const char *name)
{
    return collective_find(COLLECTIVE_ALL_REDUCE, name);
}

/* Alone on the first n GPUs; channels 0: the cluster's default. */
static struct measured simulate(enum engine engine, const struct cluster *cluster,
                                const struct collective *collective, int n, double bytes, int channels)
{
    struct measure measure;
    struct measured measured;
    struct error err = {0};

    measure_init(&measure, engine, cluster);
    struct placed_group group = placed_group_of(cluster, identity(), n);

    assert_int_equal(measure_collective(&measure, &(struct collective_call){collective, &group, bytes, channels}, 1,
                                        &measured, &err), 0);
    measure_release(&measure);
    return measured;
}

/* Sizes for which nccl-tests gives the bus bandwidth. */
static void bus_bandwidths_are_those_of_nccl_tests(void **state)
{
    static const double factors[] = {1.75, 0.875, 0.875, 1, 1, 0.875};

    (void)state;
    for (enum collective_op op = 0; op < COLLECTIVE_OP_COUNT; op++)
        assert_true(collective_bus_factor(op, 8) == factors[op]);
}

/* Seconds of the closed form and of an engine, on nodes of one GPU. */
static void check_flat(const struct collective *collective, enum engine engine, int n, double latency)
{
    struct cluster cluster = make_cluster(n, 1, 1);
    struct task task = {.n = n, .per_node = 1, .bytes = 3e6};
    double expected, seconds, over = 1e-7;

    if (collective == all_reduce("double-tree"))     /* two children send to their parent at once */
        over = engine == ENGINE_IDEAL ? collective->error : 0.75;
    cluster.kinds[0].nics.latency = latency;
    expected = collective->ideal(&task, latency, cluster.kinds[0].nics.bandwidth);
    seconds = simulate(engine, &cluster, collective, n, task.bytes, 1).seconds;
    if (seconds < expected * (1 - 1e-7 - collective->error) || seconds > expected * (1 + over))
        fail_msg("%s %s of %d on engine %d: %g s, not %g s", collective_op_names[collective->op], collective->name, n,
                 (int)engine, seconds, expected);
}

/* One GPU a node, any number of nodes: on every engine a collective takes the time of its closed form. A torus is not
 * flat: collective_torus.c. */
static void flat_networks_agree_with_closed_forms(void **state)
{
    static const enum engine engines[] = {ENGINE_IDEAL, ENGINE_FAST, ENGINE_SIMGRID};

    (void)state;
    for (size_t i = 0; collective_at(i); i++)
        for (size_t k = 0; k < COUNT(engines) && collective_at(i)->write_messages && !collective_at(i)->torus; k++)
            for (int n = 2; n <= 17; n++) {
                check_flat(collective_at(i), engines[k], n, 0);
                check_flat(collective_at(i), engines[k], n, 5e-6);
            }
}

/* Every formula is near the simulation; the formulas of rings, and of powers of two on whole nodes, are very near. */
static void check_estimate(const struct collective *collective, const struct shape *shape, double bytes, double seconds)
{
    struct cluster cluster = make_cluster(shape->nodes, shape->gpus_per_node, shape->nics);
    struct placed_group group = placed_group_of(&cluster, identity(), shape->nodes * shape->gpus_per_node);
    double cost = collective_cost(&(struct collective_call){collective, &group, bytes, placed_group_channels(&group)});
    bool powers = (group.n & (group.n - 1)) == 0, near = false;

    near |= collective == all_reduce("ring") || collective == all_reduce("hierarchical");
    near |= powers && (collective == all_reduce("butterfly") || collective == all_reduce("halving-doubling"));
    if (!(cost >= seconds * (near ? 0.99 : 0.65) && cost <= seconds * (near ? 1.01 : 3.2)))
        fail_msg("%s, %d x %d, %g B: estimated %g s, simulated %g s", collective->name, shape->nodes,
                 shape->gpus_per_node, bytes, cost, seconds);
}

static void estimates_are_near_the_simulation(void **state)
{
    const struct collective *candidate;

    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t b = 0; b < COUNT(sizes); b++) {
            struct cluster cluster = make_cluster(shapes[s].nodes, shapes[s].gpus_per_node, shapes[s].nics);
            int n = cluster_gpus(&cluster);
            double chosen = simulate(ENGINE_SIMGRID, &cluster, all_reduce("auto"), n, sizes[b], 0).seconds;
            double best = INFINITY;

            for (size_t i = 0; (candidate = collective_of(COLLECTIVE_ALL_REDUCE, i)); i++) {
                if (!candidate->write_messages || candidate->torus)
                    continue;
                double seconds = simulate(ENGINE_SIMGRID, &cluster, candidate, n, sizes[b], 0).seconds;
                check_estimate(candidate, &shapes[s], sizes[b], seconds);
                best = fmin(best, seconds);
            }
            assert_true(chosen >= best && chosen <= 1.5 * best);
        }
}

/* A group of any kind: in a row, every other GPU, or anywhere. */
static int random_group(uint64_t *seed, const struct cluster *cluster, int *gpus)
{
    int all = cluster_gpus(cluster), stride = 1 + random_below(seed, 3), n = 0;
    bool anywhere = random_below(seed, 3) == 0;

    for (int gpu = random_below(seed, all); gpu < all; gpu += stride)
        if (!anywhere || random_below(seed, 2))
            gpus[n++] = gpu;
    if (!n)
        gpus[n++] = 0;
    for (int i = n - 1; anywhere && i > 0; i--) {
        int other = random_below(seed, i + 1), gpu = gpus[i];
        gpus[i] = gpus[other];
        gpus[other] = gpu;
    }
    return n;
}

static void auto_takes_the_cheapest_by_formula(void **state)
{
    uint64_t seed = 4, used = 0;
    int gpus[MAX_MEMBERS];

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct cluster cluster = make_cluster(1 + random_below(&seed, 8), 1 + random_below(&seed, 8), 1);
        double bytes = pow(10, random_below(&seed, 10));
        int most = 1 + random_below(&seed, MAX_CHANNELS);
        const struct collective *chosen, *candidate;
        struct collective_choice choice;

        cluster.kinds[0].nics.count = 1 + random_below(&seed, 8);
        int n = random_group(&seed, &cluster, gpus);
        struct placed_group group = placed_group_of(&cluster, gpus, n);
        struct collective_call call = {all_reduce("auto"), &group, bytes, most};

        choice = collective_choose(&call);
        chosen = choice.used;
        assert_true(chosen->write_messages && choice.channels == (chosen->every_nic ? 1 : most));
        assert_true(choice.protocol == PROTOCOL_NONE && !chosen->in_switch);
        for (size_t i = 0; (candidate = collective_of(COLLECTIVE_ALL_REDUCE, i)); i++) {
            used |= (uint64_t)(candidate == chosen) << i;
            if (!candidate->write_messages)
                continue;
            call.collective = candidate;
            assert_ptr_equal(collective_choose(&call).used, candidate);
            /* no switch of these clusters reduces, and none is a torus, so auto must refuse algorithms that need one */
            assert_true(candidate->in_switch || candidate->torus || choice.seconds <= collective_cost(&call));
        }
    }
    /* with larger groups every algorithm is chosen somewhere */
    for (const char *const *name = (const char *const[]){"butterfly", "halving-doubling", "ring", "hierarchical", NULL};
         *name; name++)
        for (size_t i = 0; collective_of(COLLECTIVE_ALL_REDUCE, i); i++)
            if (!strcmp(all_reduce_name(i), *name) && !(used >> i & 1))
                fail_msg("%s is never chosen", *name);
}

/* auto lowers to its choice, on the same number of channels, also on a free network. */
static void auto_is_what_it_chose(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t b = 0; b < 2 * COUNT(sizes); b++) {
            struct cluster cluster = make_cluster(shapes[s].nodes, shapes[s].gpus_per_node, shapes[s].nics);
            int n = cluster_gpus(&cluster), channels = 1 + (int)s % MAX_CHANNELS;
            double bytes = sizes[b / 2];
            struct run chosen, automatic;

            cluster.ideal = b % 2;
            struct measured measured = simulate(ENGINE_IDEAL, &cluster, all_reduce("auto"), n, bytes, channels);
            run_init(&automatic, all_reduce("auto"), &cluster, n, identity(), bytes, channels, NULL);
            run_init(&chosen, measured.used, &cluster, n, identity(), bytes, channels, NULL);
            assert_int_equal(automatic.program.ops.count, chosen.program.ops.count);
            assert_true(automatic.timeline.makespan == chosen.timeline.makespan);
            assert_true(measured.seconds == chosen.timeline.makespan && measured.channels <= channels);
            run_release(&chosen);
            run_release(&automatic);
        }
}

/* A NIC a GPU and nothing shared: the two-level formula is exact, on both engines. */
static void hierarchical_form_is_exact_on_two_levels(void **state)
{
    (void)state;
    for (int nodes = 1; nodes <= 8; nodes++)
        for (int g = 1; g <= 8; g++) {
            struct cluster cluster = make_cluster(nodes, g, g);
            struct placed_group group = placed_group_of(&cluster, identity(), nodes * g);
            double cost = collective_cost(&(struct collective_call){all_reduce("hierarchical"), &group, 1e8, 8});
            enum engine engine = (nodes + g) % 5 ? ENGINE_IDEAL : ENGINE_SIMGRID;
            double seconds = simulate(engine, &cluster, all_reduce("hierarchical"), group.n, 1e8, 8).seconds;

            assert_true(fabs(cost - seconds) <= (engine == ENGINE_IDEAL ? 1e-9 : 1e-7) * cost);
        }
}

static void hierarchical_beats_the_flat_ring_between_nodes(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t b = 0; b < COUNT(sizes); b++) {
            struct cluster cluster = make_cluster(shapes[s].nodes, shapes[s].gpus_per_node, shapes[s].nics);
            int n = cluster_gpus(&cluster);

            assert_true(simulate(ENGINE_SIMGRID, &cluster, all_reduce("hierarchical"), n, sizes[b], 1).seconds <
                        simulate(ENGINE_SIMGRID, &cluster, all_reduce("ring"), n, sizes[b], 1).seconds);
        }
}

/* If nodes hold different numbers of ranks, and in one node, it is the ring. */
static void hierarchical_falls_back_to_the_ring(void **state)
{
    static const struct { int n, per_node, gpus[8]; } cases[] = {
        {7, 1, {0, 1, 2, 3, 4, 5, 6}}, {3, 1, {0, 4, 5}}, {4, 4, {0, 1, 2, 3}}, {4, 1, {0, 4, 8, 12}},
        {4, 1, {0, 4, 1, 5}}, {6, 2, {0, 1, 4, 5, 8, 9}},
    };
    struct cluster cluster = make_cluster(4, 4, 4);

    (void)state;
    for (size_t k = 0; k < COUNT(cases); k++) {
        struct messages flat = {0}, levels = {0};
        struct placed_group group = placed_group_of(&cluster, cases[k].gpus, cases[k].n);
        struct task task = collective_task(&(struct collective_call){all_reduce("ring"), &group, 1e6, 1});
        bool same;

        assert_int_equal(task.per_node, cases[k].per_node);
        all_reduce("ring")->write_messages(&flat, &task);
        all_reduce("hierarchical")->write_messages(&levels, &task);
        same = flat.count == levels.count && !memcmp(flat.items, levels.items, flat.count * sizeof *flat.items);
        assert_int_equal(same, task.per_node == 1 || task.per_node == task.n);
        free(flat.items);
        free(levels.items);
    }
}

/* Parents in one of the trees, read from the messages of a vector too small to be cut further: tree t sums chunk t. */
static void tree_parents(int n, int per_node, int tree, int *parent)
{
    struct messages messages = {0};

    for (int r = 0; r < n; r++)
        parent[r] = -1;
    all_reduce("double-tree")->write_messages(&messages, &(struct task){.n = n, .per_node = per_node, .bytes = 8});
    for (size_t i = 0; i < messages.count; i++)
        if (messages.items[i].combine == REDUCE && messages.items[i].chunk == tree) {
            assert_int_equal(parent[messages.items[i].src], -1);
            parent[messages.items[i].src] = messages.items[i].dst;
        }
    free(messages.items);
}

/* An inner rank of one tree is a leaf of the other, except for one rank of an odd count; no path is longer than log2
 * n. */
static void trees_share_the_work(void **state)
{
    static const int fourteen[] = {-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12};
    int parent[2][200];

    (void)state;
    tree_parents(14, 1, 0, parent[0]);
    assert_memory_equal(parent[0], fourteen, sizeof fourteen);
    for (int n = 2; n <= 200; n++) {
        int inner[200] = {0}, both = 0;

        for (int t = 0; t < 2; t++) {
            tree_parents(n, 1, t, parent[t]);
            for (int r = 0; r < n; r++) {
                int depth = 0;
                for (int up = r; parent[t][up] >= 0; up = parent[t][up])
                    depth++;
                assert_true(depth <= (int)ceil(log2(n) - 1e-12));
                if (parent[t][r] >= 0)
                    inner[parent[t][r]] |= 1 << t;
            }
        }
        for (int r = 0; r < n; r++)
            both += inner[r] == 3;
        assert_true(both <= n % 2);
    }
    tree_parents(12, 4, 0, parent[0]);               /* chains in the nodes, a tree between their first ranks */
    for (int r = 1; r < 12; r++)
        assert_int_equal(parent[0][r], r % 4 ? r - 1 : r == 4 ? 8 : 0);
}

/* In a node an all-to-all pays the launch of its protocol, the link's latency for each peer, and its bytes with those
 * that the ends add; the cheaper protocol is taken. Between nodes, or where the profile says nothing, it goes as a send
 * does. */
static void exchanges_have_protocols_of_their_own(void **state)
{
    static const struct protocol_cost send = {.inside = 20e-6,
                                              .network = 30e-6,
                                              .inside_share = 0.5,
                                              .network_share = 0.5,
                                              .channels = 1,
                                              .channel_from = NAN,
                                              .inside_most = NAN,
                                              .network_most = NAN,
                                              .nic_most = NAN,
                                              .round = NAN,
                                              .plateau_from = NAN,
                                              .network_single = NAN,
                                              .step = NAN,
                                              .all_reduce_step = NAN};
    static const struct all_to_all_cost ll = {
        .launch = 3e-6, .inside_share = 0.1, .ends = 2, .large_from = NAN, .pieces = NAN};
    static const struct all_to_all_cost simple = {
        .launch = 9e-6, .inside_share = 0.8, .ends = 0.5, .large_from = NAN, .pieces = NAN};
    const struct collective *pairwise = collective_find(COLLECTIVE_ALL_TO_ALL, "pairwise");
    struct communication told = {.send = &send, .all_to_all = {.ll = &ll, .simple = &simple}}, plain = {.send = &send};
    struct cluster node = make_cluster(1, 8, 8), nodes = make_cluster(2, 4, 4);

    (void)state;
    node.kinds[0].communication = nodes.kinds[0].communication = &told;
    for (int n = 2; n <= 8; n *= 2)
        for (double bytes = 1024; bytes < 1e9; bytes *= 8) {
            double latency = (n - 1) * node.kinds[0].inside.latency, part = bytes / n / node.kinds[0].inside.bandwidth;
            double small = ll.launch + latency + part * (n - 1 + ll.ends) / ll.inside_share;
            double large = simple.launch + latency + part * (n - 1 + simple.ends) / simple.inside_share;
            struct measured told_so = simulate(ENGINE_FAST, &node, pairwise, n, bytes, 1);

            assert_int_equal(told_so.protocol, small < large ? PROTOCOL_LL : PROTOCOL_SIMPLE);
            assert_true(fabs(told_so.seconds / fmin(small, large) - 1) < 1e-9);
        }
    double spanning = simulate(ENGINE_FAST, &nodes, pairwise, 8, 1e6, 1).seconds;
    const struct inside *links = &node.kinds[0].inside;
    double as_send = send.inside + 3 * links->latency + 0.75e6 / (0.5 * links->bandwidth);
    nodes.kinds[0].communication = node.kinds[0].communication = &plain;
    assert_true(spanning == simulate(ENGINE_FAST, &nodes, pairwise, 8, 1e6, 1).seconds);
    assert_true(fabs(simulate(ENGINE_FAST, &node, pairwise, 4, 1e6, 1).seconds / as_send - 1) < 1e-9);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bus_bandwidths_are_those_of_nccl_tests),
        cmocka_unit_test(flat_networks_agree_with_closed_forms),
        cmocka_unit_test(estimates_are_near_the_simulation),
        cmocka_unit_test(auto_takes_the_cheapest_by_formula),
        cmocka_unit_test(auto_is_what_it_chose),
        cmocka_unit_test(hierarchical_form_is_exact_on_two_levels),
        cmocka_unit_test(hierarchical_beats_the_flat_ring_between_nodes),
        cmocka_unit_test(hierarchical_falls_back_to_the_ring),
        cmocka_unit_test(trees_share_the_work),
        cmocka_unit_test(exchanges_have_protocols_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
