/* The all-reduce along the dimensions of a torus: its time by closed forms on every engine, the bytes on every link, and
 * the groups that it refuses. */
#include "cluster_files.h"
#include "collective/measure.h"

enum { MOST = 256 };
static const double LINK = 50e9, LATENCY = 5e-6;

/* A node's NIC carries all its links. */
static struct cluster torus_of(int nodes, int gpus, const char *keys)
{
    char text[512];

    snprintf(text, sizeof text, "{nodes: %d, gpus_per_node: %d, inside: {bandwidth: 900 GB/s, latency: 1 us}, network: "
             "{bandwidth: 400 GB/s, latency: 5 us, nics: 1, topology: {%s, link: 50 GB/s}}}", nodes, gpus, keys);
    return load_good(text);
}

static const int *gpus_from(int first, int stride)
{
    static int gpus[MOST];

    for (int i = 0; i < MOST; i++)
        gpus[i] = first + i * stride;
    return gpus;
}

static double seconds_of(const struct cluster *cluster, const int *gpus, int n, double bytes, enum engine engine)
{
    struct placed_group group = placed_group_of(cluster, gpus, n);
    struct error err = {0};
    struct measure measure;
    struct measured measured;

    measure_init(&measure, engine, cluster);
    assert_int_equal(measure_collective(&measure, &(struct collective_call){&collective_torus, &group, bytes, 0}, 1,
                                        &measured, &err), 0);
    measure_release(&measure);
    assert_true(fabs(measured.bytes_sent - 2 * bytes * (n - 1) / n) <= 1e-9 * bytes && measured.alike);
    return measured.seconds;
}

/* The sum over phases of the slowest shard, each of `bytes` / (2 d), to sum it and to copy it. `two`: how many shards
 * share the link of a dimension of 2, which has two links, over one of which a node sends to the other. */
static double closed_form(const int *sizes, int d, double bytes, int two)
{
    double seconds = 0;

    for (int phase = 0; phase < d; phase++) {
        double slowest = 0;

        for (int k = 0; k < d; k++) {
            int n = sizes[(k + phase) % d];
            double shard = bytes / (2 * d);

            for (int before = 0; before < phase; before++)
                shard /= sizes[(k + before) % d];
            slowest = fmax(slowest, (n - 1) * (LATENCY + (n == 2 ? two : 1) * shard / n / LINK));
        }
        seconds += 2 * slowest;
    }
    return seconds;
}

static void times_are_the_closed_form(void **state)
{
    static const struct { const char *keys; int nodes, d, sizes[4]; } cases[] = {
        {"dims: [4, 4]", 16, 2, {4, 4}}, {"dims: [4, 4, 4]", 64, 3, {4, 4, 4}}, {"dims: [2, 4, 8]", 64, 3, {2, 4, 8}},
        {"dims: [8]", 8, 1, {8}}, {"dims: [3, 5]", 15, 2, {3, 5}}, {"dims: [6, 3, 4]", 72, 3, {6, 3, 4}},
        {"dims: [3, 3, 3, 3]", 81, 4, {3, 3, 3, 3}},
    };
    static const double sizes[] = {0, 1e3, 1e6, 1e9};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t b = 0; b < COUNT(sizes); b++)
            for (enum engine engine = 0; engine <= ENGINE_IDEAL; engine++) {
                struct cluster cluster = torus_of(cases[i].nodes, 1, cases[i].keys);
                double seconds = seconds_of(&cluster, gpus_from(0, 1), cases[i].nodes, sizes[b], engine);
                double expected = closed_form(cases[i].sizes, cases[i].d, sizes[b], engine == ENGINE_IDEAL ? 1 : 2);

                if (!(fabs(seconds - expected) <= 1e-9 * expected))
                    fail_msg("%s, %g B, engine %d: %.17g s, not %.17g s", cases[i].keys, sizes[b], (int)engine, seconds,
                             expected);
            }
}

/* n in each of d dimensions: 2 (N - 1) / N of the bytes on 2 d links, none idle. */
static void equal_dimensions_use_all_links(void **state)
{
    struct cluster cluster = torus_of(64, 1, "dims: [4, 4, 4]");
    double bytes = 6e12, expected = 2 * 63.0 / 64 * bytes / (6 * LINK);

    (void)state;
    for (enum engine engine = 0; engine <= ENGINE_IDEAL; engine++) {
        double seconds = seconds_of(&cluster, gpus_from(0, 1), 64, bytes, engine);

        assert_true(fabs(seconds - expected) <= 1e-5 * expected);        /* 18 messages' latency */
    }
}

/* Bytes on each link of the topology, in vectors; the caller frees. */
static double *loads_of(const struct cluster *cluster, int n)
{
    double *loads = xcalloc((size_t)cluster_between_links(cluster) + 1, sizeof *loads);
    struct placed_group group = placed_group_of(cluster, gpus_from(0, 1), n);
    struct task task = {.n = n, .per_node = 1, .bytes = 1, .torus = group.torus};
    struct messages messages = {0};

    collective_torus.write_messages(&messages, &task);
    for (size_t i = 0; i < messages.count; i++) {
        struct route route = cluster_route(cluster, messages.items[i].src, messages.items[i].dst);
        int crossed = 0;

        for (int hop = 0; hop < route.count; hop++)
            if (route.links[hop].kind == LINK_BETWEEN) {
                loads[route.links[hop].index] += (double)messages.items[i].nchunks / collective_torus.chunks(&task);
                crossed++;
            }
        assert_int_equal(crossed, 1);                /* to a neighbour */
    }
    free(messages.items);
    return loads;
}

static void links_carry_the_same_in_both_directions(void **state)
{
    struct cluster equal = torus_of(64, 1, "dims: [4, 4, 4]"), unequal = torus_of(60, 1, "dims: [3, 4, 5]");
    double *loads = loads_of(&equal, 64), *other = loads_of(&unequal, 60);

    (void)state;
    for (int link = 0; link < cluster_between_links(&equal); link++)
        assert_true(fabs(loads[link] - 2 * 63.0 / 64 / 6) < 1e-12);
    for (int link = 0; link < cluster_between_links(&unequal); link++) {     /* (node, dimension, direction) */
        int dim = link / 2 % 3, n = 3 + dim, before = n == 3 ? 5 : n - 1;
        double first = (n - 1.0) / n, second = first / before, third = first / (60.0 / n);

        assert_true(fabs(other[link] - 2 * (first + second + third) / 6) < 1e-12);
    }
    free(loads);
    free(other);
}

static void expect_torus(const struct cluster *cluster, const int *gpus, int n, int dims)
{
    struct placed_group group = placed_group_of(cluster, gpus, n);

    assert_int_equal(collective_runs_in(&collective_torus, &group), dims >= 0);
    assert_int_equal(group.torus.dims, dims < 0 ? 0 : dims);
}

/* Whole dimensions are a torus; a part of one is not, nor another order, nor several GPUs of a node. */
static void groups_are_whole_dimensions(void **state)
{
    static const int plane[] = {0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51};     /* x and z */
    static const int half[] = {0, 1, 4, 5, 8, 9, 12, 13}, turned[] = {0, 2, 1, 3}, twice[] = {0, 1, 1, 3};
    struct cluster cluster = torus_of(64, 1, "dims: [4, 4, 4]"), nodes = torus_of(16, 2, "dims: [4, 4]");
    struct cluster mesh = torus_of(16, 1, "dims: [4, 4], wrap: false"), flat = load_good("{platform: dgx-a100, nodes: 2}");
    struct placed_group group = placed_group_of(&cluster, half, 8);
    struct measure measure;
    struct measured measured;
    struct error err = {0};

    (void)state;
    expect_torus(&cluster, gpus_from(0, 1), 64, 3);
    expect_torus(&cluster, gpus_from(16, 1), 16, 2);
    expect_torus(&cluster, gpus_from(4, 1), 4, 1);
    expect_torus(&cluster, gpus_from(5, 16), 4, 1);
    expect_torus(&cluster, plane, 16, 2);
    expect_torus(&cluster, plane, 1, 0);
    expect_torus(&cluster, gpus_from(2, 1), 4, -1);
    expect_torus(&cluster, gpus_from(0, 1), 32, -1);
    expect_torus(&cluster, half, 8, -1);
    expect_torus(&cluster, turned, 4, -1);
    expect_torus(&cluster, twice, 4, -1);
    expect_torus(&nodes, gpus_from(1, 2), 16, 2);
    expect_torus(&nodes, gpus_from(0, 1), 32, -1);
    expect_torus(&mesh, gpus_from(0, 1), 16, -1);
    assert_true(collective_runs_on(&collective_torus, &cluster) && !collective_runs_on(&collective_torus, &mesh) &&
                !collective_runs_on(&collective_torus, &flat));
    assert_true(fabs(seconds_of(&cluster, plane, 16, 1e9, ENGINE_FAST) -
                     closed_form((const int[]){4, 4}, 2, 1e9, 1)) < 1e-12);
    measure_init(&measure, ENGINE_FAST, &cluster);
    assert_int_equal(measure_collective(&measure, &(struct collective_call){&collective_torus, &group, 1e6, 0}, 1,
                                        &measured, &err), -1);
    assert_non_null(strstr(err.messages[0].text, "torus does not run on these 8 GPUs; it needs a torus with wrap"));
    measure_release(&measure);
    error_release(&err);
}

/* auto never takes it. */
static void auto_leaves_it(void **state)
{
    struct cluster cluster = torus_of(64, 1, "dims: [4, 4, 4]");
    struct placed_group group = placed_group_of(&cluster, gpus_from(0, 1), 64);
    const struct collective *automatic = collective_find(COLLECTIVE_ALL_REDUCE, "auto");

    (void)state;
    for (double bytes = 1; bytes < 1e12; bytes *= 10)
        assert_false(collective_choose(&(struct collective_call){automatic, &group, bytes, 6}).used->torus);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_the_closed_form), cmocka_unit_test(equal_dimensions_use_all_links),
        cmocka_unit_test(links_carry_the_same_in_both_directions), cmocka_unit_test(groups_are_whole_dimensions),
        cmocka_unit_test(auto_leaves_it),
    };

    return cmocka_run_group_tests_name("collective torus", tests, NULL, NULL);
}
