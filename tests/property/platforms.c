/* platforms: every platform and every GPU runs a model, and a named network replaces the platform's own network. */
#include "files/data.h"
#include "simulated.h"

static const char *const plain = "model: {preset: gpt2-124m}\nbatch: {micro_batches: 4}\nsoftware: megatron-core\n"
                                 "simulation: {engine: fast}\n";

/* s of an iteration on the cluster; its network's and its communication's estimates, or NULL. */
static double time_on(const char *cluster, const char **estimates)
{
    static char text[400];
    struct arena arena = {0};
    struct simulated simulated;

    run_text(&simulated, "%scluster: %s\n", plain, cluster);
    double time = simulated.run.metrics.iteration_time;
    const char *found = cluster_estimates(&arena, &simulated.scenario.cluster, true);

    assert_true(isfinite(time) && time > 0);
    snprintf(text, sizeof text, "%s", found ? found : "");
    if (estimates)
        *estimates = found ? text : NULL;
    arena_release(&arena);
    simulated_release(&simulated);
    return time;
}

static void test_every_file_runs(void **state)
{
    (void)state;
    static const char *const folders[] = {"platforms", "platforms/gpus", "platforms/networks"};
    static const struct { const char *before, *after; } clusters[] = {
        {"{platform: ", ", nodes: 2}"}, {"{platform: dgx-h100, nodes: 1, gpu: ", "}"},
        {"{platform: dgx-a100, nodes: 2, network: ", "}"},
    };
    struct arena arena = {0};
    struct error err = {0};

    for (size_t i = 0; i < COUNT(folders); i++) {
        const char **names = data_names(&arena, folders[i], &err);

        assert_int_equal(err.count, 0);
        for (size_t k = 0; names[k]; k++)
            (void)time_on(arena_printf(&arena, "%s%s%s", clusters[i].before, names[k], clusters[i].after), NULL);
    }
    arena_release(&arena);
}

/* The data sheet of a GPU that is based on another is enough for its times: where nothing that kernels depend on differs
 * they are that GPU's; where all rates are k times as much they are 1/k as long. */
static void test_based_gpus(void **state)
{
    (void)state;
    assert_true(time_on("{platform: dgx-a100, nodes: 1, gpu: a800-80gb}", NULL) ==
                time_on("{platform: dgx-a100, nodes: 1}", NULL));
    assert_true(time_on("{platform: dgx-h100, nodes: 1, gpu: h800-80gb}", NULL) ==
                time_on("{platform: dgx-h100, nodes: 1}", NULL));
    /* as a change of the achieved bandwidth in the scenario: 0.745 of 4 TB/s, where the H100's share is 0.87 */
    double h100 = time_on("{platform: dgx-h100, nodes: 1}", NULL);
    double based = time_on("{platform: dgx-h100, nodes: 1, gpu: gh200-96gb}", NULL);
    double changed = time_on("{platform: dgx-h100, nodes: 1, gpu: {name: h100-80gb, memory_bandwidth: "
                          "3.4252873563218391 TB/s}}", NULL);
    assert_true(fabs(based / changed - 1) < 1e-12);
    /* and both together: the first change is no more than a step on the way */
    double back = time_on("{platform: dgx-h100, nodes: 1, gpu: {name: gh200-96gb, memory_bandwidth: "
                          "3.9120805369127517 TB/s}}", NULL);
    assert_true(fabs(back / h100 - 1) < 1e-12);
    assert_true(based < h100);
    /* the narrower NVLink is the platform's, and counts where a node exchanges gradients */
    assert_true(time_on("{platform: hgx-h800, nodes: 1}", NULL) > time_on("{platform: dgx-h100, nodes: 1}", NULL));
}

/* A file with a base says what a scenario may say of that base: achieved rates, achieved bandwidth, multiprocessors. */
static void test_achieved_rates(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "platforms/gpus", &err);
    int count = 0;

    for (size_t i = 0; names[i]; i++) {
        struct gpu gpu, base;

        assert_int_equal(gpu_load(&arena, names[i], (struct loc){0}, &gpu, &err), 0);
        if (!gpu.base)
            continue;
        assert_int_equal(gpu_load(&arena, gpu.base, (struct loc){0}, &base, &err), 0);
        double share = gpu.matmul_efficiency / base.matmul_efficiency;
        double file = time_on(arena_printf(&arena, "{platform: dgx-h100, nodes: 1, gpu: %s}", names[i]), NULL);
        double said = time_on(arena_printf(&arena, "{platform: dgx-h100, nodes: 1, gpu: {name: %s, memory_bandwidth: "
            "%.17g B/s, multiprocessors: %d, matmul_efficiency: %.17g, peak: {fp32: %.17g FLOP/s, fp16: %.17g FLOP/s, "
            "bf16: %.17g FLOP/s}}}", gpu.base, gpu.memory_bandwidth * gpu.memory_efficiency / base.memory_efficiency,
            gpu.multiprocessors, gpu.matmul_efficiency, gpu.peak.fp32, gpu.peak.fp16, gpu.peak.bf16), NULL);
        assert_true(fabs(file / said - 1) < 1e-9);
        count += share != 1;
    }
    assert_true(count >= 5);
    arena_release(&arena);
}

static void test_networks(void **state)
{
    (void)state;
    const char *estimates;

    /* each is slower than a DGX's own network, and names its sources of estimates */
    double own = time_on("{platform: dgx-h100, nodes: 2}", &estimates);
    assert_null(estimates);
    assert_true(time_on("{platform: dgx-h100, nodes: 2, network: efa}", &estimates) > own);
    assert_non_null(strstr(estimates, "network efa: "));
    assert_true(time_on("{platform: dgx-h100, nodes: 2, network: roce}", &estimates) >= own);
    assert_non_null(strstr(estimates, "network roce: "));
    double slow = time_on("{platform: dgx-h100, nodes: 2, network: ethernet-100g}", &estimates);
    assert_null(estimates);
    assert_true(slow > own && time_on("{platform: dgx-h100, nodes: 2, network: ethernet-25g}", NULL) > slow);
    /* another network takes nothing of a named one but its NICs */
    double roce = time_on("{platform: dgx-h100, nodes: 2, network: {name: roce, bandwidth: 100 Gb/s, nics: 32}}", NULL);
    assert_true(time_on("{platform: p5, nodes: 2, network: roce}", &estimates) == roce);
    assert_null(strstr(estimates, "efa"));
    assert_non_null(strstr(estimates, "network roce: "));
    /* the scenario's keys come before the network's, and a bandwidth keeps the NICs */
    assert_true(time_on("{platform: p5, nodes: 2, network: {bandwidth: 50 Gb/s}}", NULL) ==
                time_on("{platform: dgx-h100, nodes: 2, network: {name: efa, bandwidth: 50 Gb/s, nics: 32}}", NULL));
    /* RCCL's numbers are estimates too */
    (void)time_on("mi300x-platform", &estimates);
    assert_non_null(strstr(estimates, "communication profile rccl: "));
}

/* A share bounds what payload gets of a NIC, with a communication profile and without one: sends of W bytes take
 * W / (share x bandwidth) longer than with twice the share, to which nothing else is added. */
static void test_shares(void **state)
{
    (void)state;
    static const char *const libraries[] = {"nccl-hopper", "none"};
    double times[2][3];

    for (size_t i = 0; i < COUNT(libraries); i++)
        for (int k = 0; k < 3; k++) {
            char text[300];

            snprintf(text, sizeof text, "{platform: dgx-h100, nodes: 2, communication: %s, network: {bandwidth: 1 Gb/s, "
                     "share: %g}}", libraries[i], 0.4 / (1 << k));
            times[i][k] = time_on(text, NULL);
        }
    for (size_t i = 0; i < COUNT(libraries); i++) {
        double first = times[i][1] - times[i][0], second = times[i][2] - times[i][1];

        assert_true(first > 0 && fabs(second / first - 2) < 0.02);
    }
}

/* Sockets: threads of a GPU's process carry at most their number times the rate of one. With one GPU a node a ring of t threads
 * of rate r has the time of a NIC that gives t x r to payload; only the product counts; a rate above the NIC's counts for
 * nothing. */
static void test_sockets(void **state)
{
    uint64_t seed = 62;

    (void)state;
    for (int i = 0; i < 20; i++) {
        int threads = 1 + random_below(&seed, 8);
        double bandwidth = 1 + random_below(&seed, 50), rate = (1 + random_below(&seed, 90)) / 16.0, shared;
        char text[4][400];
        double times[4];
        static const char *const form = "{platform: hgx-h100-4, nodes: 4, gpus_per_node: 1, communication: nccl-socket, "
                                        "network: {bandwidth: %.17g GB/s, nics: 1, share: %.17g%s}}";

        shared = fmin(0.5, threads * rate / bandwidth);
        snprintf(text[0], sizeof text[0], form, bandwidth, shared, "");
        snprintf(text[1], sizeof text[1], form, bandwidth, 0.5, "");
        for (int k = 0; k < 2; k++) {
            char sockets[80];

            snprintf(sockets, sizeof sockets, ", threads: %d, thread_rate: %.17g GB/s", k ? 1 : threads, k ? threads * rate : rate);
            snprintf(text[2 + k], sizeof text[2 + k], form, bandwidth, 0.5, sockets);
        }
        for (int k = 0; k < 4; k++)
            times[k] = time_on(text[k], NULL);
        if (!(fabs(times[2] / times[0] - 1) < 1e-9) || times[2] != times[3] || (shared == 0.5) != (times[2] == times[1]))
            fail_msg("%d threads of %g GB/s on %g GB/s: %g s; a NIC of that rate: %g s", threads, rate, bandwidth, times[2],
                     times[0]);
    }
}

static void expect_refused(const char *cluster, const char *message)
{
    struct scenario scenario;
    struct error err = {0};
    struct arena arena = {0};

    assert_int_equal(load_text(arena_printf(&arena, "%scluster: %s\n", plain, cluster), &scenario, &err), -1);
    if (!strstr(err.messages[0].text, message))
        fail_msg("'%s' instead of '%s'", err.messages[0].text, message);
    scenario_release(&scenario);
    error_release(&err);
    arena_release(&arena);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("{platform: dgx-h100, network: efq}", "unknown network 'efq'; did you mean 'efa'?");
    expect_refused("{platform: ideal, gpu: h100-80gb, network: efa}", "the ideal cluster's takes no time");
    expect_refused("{platform: dgx-h100, network: {name: efa, share: 2}}", "share");
    expect_refused("{platform: dgx-h100, nodes: 2, network: {threads: 2}}", "no thread is in the way");
    expect_refused("{platform: dgx-h100, nodes: 2, communication: none, network: {thread_rate: 1 MB/s}}", "only a communication");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_file_runs), cmocka_unit_test(test_based_gpus),
        cmocka_unit_test(test_achieved_rates),  cmocka_unit_test(test_networks),
        cmocka_unit_test(test_shares),          cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
