/* link_bounds: no link carries more bytes than its bandwidth times the time that it had, whatever shares it; no all-to-all
 * is faster than the NICs that its bytes leave the nodes by. */
#include "random_plan.h"
#include "random_program.h"
#include "trials.h"

#include "collective/measure.h"
#include "files/data.h"

enum { GROUPS = 2000, PROGRAMS = 400, PLANS = 200, MOST_GPUS = 48 };

static const double ROUNDING_ERROR = 1e-9;

/* The most of all links: B that transfers bring through it, over what it could carry from their first start to their last
 * end. */
static double busiest(const struct timeline *timeline, const struct cluster *cluster)
{
    const struct program *program = timeline->program;
    int gpus = cluster_gpus(cluster), nics = cluster_nics(cluster), between = cluster_between_links(cluster);
    const int first[] = {[LINK_PORT_UP] = 0, [LINK_PORT_DOWN] = gpus, [LINK_NIC_UP] = 2 * gpus,
                         [LINK_NIC_DOWN] = 2 * gpus + nics, [LINK_BETWEEN] = 2 * (gpus + nics)};
    double *bytes = xcalloc((size_t)(2 * (gpus + nics) + between + 1), sizeof *bytes);
    double begin = INFINITY, end = 0, most = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;
        struct route route;

        if (op->kind != OP_TRANSFER || op->amount == 0)
            continue;
        route = cluster_route(cluster, (int)transfer->src, (int)transfer->dst);
        for (int k = 0; k < route.count; k++)
            bytes[first[route.links[k].kind] + route.links[k].index] += flow_bytes(op->amount, transfer);
        begin = fmin(begin, timeline->start[i]);
        end = fmax(end, timeline->end[i]);
    }
    for (int kind = 0; kind <= LINK_BETWEEN; kind++)
        for (int k = 0; k < (kind < LINK_NIC_UP ? gpus : kind < LINK_BETWEEN ? nics : between); k++) {
            double rate = cluster_link_bandwidth(cluster, (struct link){(enum link_kind)kind, k});

            if (bytes[first[kind] + k] > 0)
                most = fmax(most, bytes[first[kind] + k] / (rate * (end - begin)));
        }
    free(bytes);
    return most;
}

static void random_programs_fill_no_link(void **state)
{
    double most = 0;

    (void)state;
    EACH_TRIAL(i, PROGRAMS) {
        enum engine engine = i % 4 ? ENGINE_FAST : ENGINE_SIMGRID;
        struct timeline timeline;
        struct program program;
        struct cluster cluster;
        double used;

        seed = i * 0xA24BAED4963EE407u;
        cluster = random_cluster();
        random_program(&program, &cluster, false);
        replayed(engine, &program, &cluster, &timeline);
        used = busiest(&timeline, &cluster);
        most = fmax(most, used);
        if (used > 1 + ROUNDING_ERROR)
            fail_msg("program %d on %s: a link carries %.12g of what it can", (int)i, engine_names[engine], used);
        timeline_release(&timeline);
        program_release(&program);
    }
    print_message("random programs: the busiest link carries %.3f of what it can\n", most);
    assert_true(most > 0.5);
}

static void random_plans_fill_no_link(void **state)
{
    uint64_t drawn = 0x9FB21C651E98DF25u;
    double most = 0;

    (void)state;
    EACH_TRIAL(i, PLANS) {
        struct random_plan plan = random_plan(&drawn);
        struct simulated simulated;
        double used;

        plan.engine = i % 4 ? "fast" : "simgrid";
        plan.collectives = "messages";
        plan.ideal = false;
        simulate_plan(&simulated, &plan);
        used = busiest(&simulated.run.timeline, &simulated.scenario.cluster);
        most = fmax(most, used);
        if (used > 1 + ROUNDING_ERROR)
            fail_msg("a link carries %.12g of what it can: %s", used, simulated.text);
        simulated_release(&simulated);
    }
    print_message("random plans: the busiest link carries %.3f of what it can\n", most);
    assert_true(most > 0.5);
}

/* s that the NICs of the busiest node need: each of its k members sends the n - k others a share each. */
static double least_seconds(const struct cluster *cluster, const int *gpus, int n, double bytes)
{
    double least = 0;

    for (int node = 0; node < cluster->nodes; node++) {
        double rate = cluster_nic_sheet(cluster, node) * cluster_node_nics(cluster, node);
        int members = 0;

        for (int m = 0; m < n; m++)
            members += cluster_node_of(cluster, gpus[m]) == node;
        if (members && members < n)
            least = fmax(least, members * (double)(n - members) * bytes / n / rate);
    }
    return least;
}

/* Over least_seconds; 0: none leaves a node. */
static double all_to_all(enum engine engine, const struct cluster *cluster, const int *gpus, int n, double bytes,
                         double *seconds)
{
    struct placed_group group = placed_group_of(cluster, gpus, n);
    struct collective_call call = {collective_usual(COLLECTIVE_ALL_TO_ALL, true), &group, bytes, 0};
    double least = least_seconds(cluster, gpus, n, bytes);
    struct measured measured;
    struct measure measure;
    struct error err = {0};

    measure_init(&measure, engine, cluster);
    if (measure_collective(&measure, &call, 1, &measured, &err))
        fail_msg("%s", err.messages[0].text);
    measure_release(&measure);
    *seconds = measured.seconds;
    if (*seconds < least * (1 - ROUNDING_ERROR))
        fail_msg("%d GPUs of %d nodes of %d, %g B on %s: %g s, but their NICs need %g s", n, cluster->nodes,
                 cluster_node_gpus(cluster, 0), bytes, engine_names[engine], *seconds, least);
    return least > 0 ? *seconds / least : 0;
}

/* All GPUs of a random cluster, or some, in any order. Over all GPUs of N nodes the bus bandwidth is at most N / (N - 1)
 * of a GPU's part of the NICs. */
static void all_to_alls_keep_below_the_nics(void **state)
{
    double nearest = INFINITY;
    int whole = 0;

    (void)state;
    EACH_TRIAL(i, GROUPS) {
        enum engine engine = i % 16 ? ENGINE_FAST : ENGINE_SIMGRID;
        int gpus[MOST_GPUS], all, n;
        struct cluster cluster;
        double bytes, seconds, over;

        seed = i * 0xD1342543DE82EF95u;
        cluster = random_cluster();
        all = cluster_gpus(&cluster) < MOST_GPUS ? cluster_gpus(&cluster) : MOST_GPUS;
        n = draw(2) ? all : 2 + (int)draw((uint64_t)all - 1);
        for (int m = 0; m < all; m++)
            gpus[m] = m;
        for (int m = 0; m < n && draw(2); m++) {
            int other = m + (int)draw((uint64_t)(all - m)), kept = gpus[m];

            gpus[m] = gpus[other];
            gpus[other] = kept;
        }
        bytes = pow(10, 3 + 7 * uniform());
        over = all_to_all(engine, &cluster, gpus, n, bytes, &seconds);
        if (over > 0)
            nearest = fmin(nearest, over);
        if (n == cluster_gpus(&cluster) && cluster.nodes > 1) {
            double nics = cluster_nic_sheet(&cluster, 0) * cluster_node_nics(&cluster, 0);
            double each = nics / cluster_node_gpus(&cluster, 0);
            double busbw = bytes / seconds * collective_bus_factor(COLLECTIVE_ALL_TO_ALL, n);

            assert_true(busbw <= cluster.nodes / (cluster.nodes - 1.0) * each);
            whole++;
        }
    }
    print_message("%d all-to-alls, %d of them over all GPUs: the fastest takes %.3f times what its NICs need\n",
                  trials(GROUPS), whole, nearest);
    assert_true(whole > trials(GROUPS) / 4 && nearest < 2);
}

/* With what communication libraries make of the links. */
static void platforms_keep_below_their_nics(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "platforms", &err);
    double nearest = INFINITY;

    (void)state;
    assert_non_null(names);
    for (int i = 0; names[i]; i++)
        for (int nodes = 2; nodes <= 4 && strcmp(names[i], "ideal") != 0; nodes += 2) {
            struct simulated simulated;
            const struct cluster *cluster = &simulated.scenario.cluster;
            int gpus[4 * 72];

            simulated_load(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro_batches: 1}\n"
                           "cluster: {platform: %s, nodes: %d}\n", names[i], nodes);
            for (int m = 0; m < cluster_gpus(cluster); m++)
                gpus[m] = m;
            for (double bytes = 1e6; bytes < 1e11; bytes *= 100) {
                double seconds, over = all_to_all(ENGINE_FAST, cluster, gpus, cluster_gpus(cluster), bytes, &seconds);

                nearest = fmin(nearest, over);
            }
            simulated_release(&simulated);
        }
    print_message("on platforms: the fastest takes %.3f times what its NICs need\n", nearest);
    assert_true(nearest < 1.5);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_fill_no_link), cmocka_unit_test(random_plans_fill_no_link),
        cmocka_unit_test(all_to_alls_keep_below_the_nics), cmocka_unit_test(platforms_keep_below_their_nics),
    };

    return cmocka_run_group_tests_name("link_bounds", tests, NULL, NULL);
}
