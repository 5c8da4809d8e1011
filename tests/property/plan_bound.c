/* The bound of a workload, which a plan prunes by: no engine gives a shorter iteration, on random scenarios of all kinds
 * and on networks that take no time. And it is no empty promise: on such networks it is near the iteration. Of memory no
 * run takes less than a plan says that a GPU surely needs. Both may read counts of rows that nobody wrote. */
#include "auto/bound.h"
#include "random_scenario.h"
#include "run/memory_advice.h"
#include "simulated.h"
#include "trials.h"

enum { SCENARIOS = 800 };

struct seen { bool links; int bounded, near, counted, flying, sliced; double busiest; };

/* The share of the iteration that the busiest link of the topology would need at its full rate for what crosses it. */
static double busiest(const struct run *run)
{
    const struct cluster *cluster = &run->workload->scenario->cluster;
    double most = 0;

    for (int i = 0; i < run->links.counts[LINK_BETWEEN]; i++)
        most = fmax(most, run->links.loads[LINK_BETWEEN][i].wire / carrier_bandwidth(cluster, LINK_BETWEEN, i));
    return most / run->metrics.iteration_time;
}

/* A schedule gives counts without times; they are the same as in the rows that it writes. */
static void check_counts(struct seen *seen, const struct workload *workload, const char *text)
{
    struct arena arena = {0};
    const struct plan *plan = &workload->scenario->plan;
    const struct row_counts *given = schedule_counts(&arena, scenario_schedule(workload->scenario), plan);
    const struct row_counts *rows = rows_count(&arena, workload->rows, plan);
    size_t size = (size_t)plan->chunks * WORK_KIND_COUNT * sizeof(int);

    for (int rank = 0; given && rank < plan->stages; rank++) {
        const struct row_counts *a = &given[rank], *b = &rows[rank];

        if (a->count != b->count || a->flying != b->flying || (a->count && (a->first != b->first || a->last != b->last)) ||
            memcmp(a->before, b->before, size) || memcmp(a->behind, b->behind, size))
            fail_msg("other counts on rank %d:\n%s", rank, text);
        seen->counted++;
    }
    arena_release(&arena);
}

static void check_memory(struct seen *seen, const struct workload *workload, const struct run *run, const char *text)
{
    struct arena arena = {0};
    const struct plan *plan = &workload->plan;
    const struct row_counts *counts = rows_count(&arena, workload->rows, plan);
    struct scenario enforced = *workload->scenario;
    struct workload same = *workload;
    double lacks, least, most = run->metrics.peak_memory - run->metrics.peak_room;

    enforced.memory.enforce = true;
    same.scenario = &enforced;
    least = memory_surely_lacks(&same, NULL);
    lacks = scenario_schedule(&enforced)->asynchronous ? least : memory_surely_lacks(&same, counts);
    if (lacks > most + 1)
        fail_msg("a GPU surely lacks %.12g B, and lacks %.12g B:\n%s", lacks, most, text);
    seen->flying += lacks > least + 0.5 * (most - least);
    arena_release(&arena);
}

static void look(struct seen *seen, const char *text, enum engine engine, bool free_network)
{
    struct arena arena = {.cache = files_once()};
    struct error err = {0};
    struct node *root;
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct simulate_options options;
    struct measure measure;
    double bound;

    if (!conf_parse(&arena, "random", text, strlen(text), &root, &err) &&
        !scenario_read(&arena, root, NULL, 0, "random", &scenario, &err) && !workload_init(&workload, &scenario, &err)) {
        options = simulate_numbers_of(&scenario);
        options.engine = engine;
        options.free_network = free_network;
        measure_init(&measure, engine, &workload.scenario->cluster);
        bound = workload_bound(&workload, NULL, free_network ? NULL : &measure);
        measure_release(&measure);
        options.links = seen->links;
        check_counts(seen, &workload, text);
        if (!simulate(&workload, options, &run, &err) && bound > 0) {
            double time = run.metrics.iteration_time;

            if (bound > time * (1 + 1e-9))
                fail_msg("the bound is %.12g s, the iteration takes %.12g s on %s%s:\n%s", bound, time,
                         engine_names[engine], free_network ? " and a free network" : "", text);
            check_memory(seen, &workload, &run, text);
            seen->bounded++;
            seen->near += bound > 0.9 * time;
            seen->sliced += plan_slices(&workload.plan) > 1;
            seen->busiest = fmax(seen->busiest, seen->links ? busiest(&run) : 0);
        }
    }
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&err);
}

static void bounds_hold(void **state)
{
    struct seen real = {0}, free_network = {0};
    uint64_t seed = seed_from(33);

    const int scenarios = trials(SCENARIOS);

    (void)state;
    for (int i = 0; i < scenarios; i++) {
        char *text = random_scenario(1, &seed);

        look(&real, text, i % 8 ? ENGINE_FAST : ENGINE_IDEAL, false);
        look(&free_network, text, ENGINE_IDEAL, true);
        free(text);
    }
    print_message("%d bounds, %d of them within a tenth; on a free network %d, %d; %d rows counted; of %d memories more "
                  "than half of the activations was known\n", real.bounded, real.near, free_network.bounded,
                  free_network.near, real.counted, real.flying);
    assert_true(real.bounded > scenarios / 4);
    assert_true(real.counted > scenarios / 2 && real.flying > real.bounded / 4);
    assert_true(free_network.near > free_network.bounded / 2);
    assert_true(real.sliced > 3 || !known_cases());        /* micro-batches in slices of their tokens */
}

/* All-to-alls of experts, sums and a pipeline on the narrow links of each kind of network: what they take there is part of
 * the works, and so of the bound. The busiest link there is busy for much of the iteration, and none for longer. */
static void bounds_hold_on_narrow_links(void **state)
{
    static const char *const topologies[] = {
        "{leaf_nodes: 1, oversubscription: 7}", "{levels: [{leaf_nodes: 2}, {units: 2, oversubscription: 7}]}",
        "{unit_nodes: 2, oversubscription: 4, across_rails: spine}", "{dims: [2, 4], link: 5 GB/s}",
        "{groups: 4, routers: 2, nodes_per_router: 1, global_links: 2, global_link: 2 GB/s}",
        "{levels: [{name: site, leaf_nodes: 4, bandwidth: 2 GB/s, latency: 1 ms}]}",
    };
    struct seen seen = {.links = true};

    (void)state;
    for (size_t i = 0; i < COUNT(topologies); i++)
        for (int k = 0; k < 4; k++) {
            char text[1024];

            snprintf(text, sizeof text, "model: {transformer: {layers: 4, hidden: 512, heads: 8, sequence: 512, vocabulary: "
                     "4096, experts: 16, experts_per_token: 2}}\ncluster: {nodes: 8, gpus_per_node: 2, gpu: a100-40gb, inside: "
                     "{bandwidth: 300 GB/s, latency: 1 us}, network: {bandwidth: 10 GB/s, latency: 5 us, nics: 2, topology: "
                     "%s}}\nbatch: {micro: 2, micro_batches: 4}\nstrategy: {pipeline: %d, data: %d, expert: %d}\ncosts: "
                     "{gpu: roofline}\n", topologies[i], k % 2 + 1, k % 2 ? 8 : 16, k < 2 ? 8 : 4);
            look(&seen, text, k == 3 ? ENGINE_SIMGRID : ENGINE_FAST, false);
        }
    assert_int_equal(seen.bounded, 4 * COUNT(topologies));
    assert_true(seen.busiest > 0.5 && seen.busiest <= 1 + 1e-9);
}

/* Experts over several nodes: dispatches are much of the time, hidden or not, and the bound knows them. */
static void bounds_hold_with_experts(void **state)
{
    static const char *const schedules[] = {
        "schedule: 1f1b", "schedule: interleaved, chunks: 2", "schedule: dualpipe",
        "schedule: interleaved, chunks: 2, overlap_dispatch: micro-batches",
        "schedule: 1f1b, overlap_dispatch: shared-experts", "schedule: gpipe",
    };
    struct seen seen = {.links = false};
    uint64_t seed = seed_from(59);
    const int scenarios = few_or(24, 400);

    (void)state;
    for (int i = 0; i < scenarios; i++) {
        char text[1024];
        int tensor = PICK_INT(&seed, 1, 1, 2);
        size_t schedule = (size_t)i % COUNT(schedules);

        snprintf(text, sizeof text, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: 1024, vocabulary: 4096, mlp: "
                 "swiglu, experts: 16, experts_per_token: %d, expert_ffn: 512, shared_experts: 1}}\ncluster: {platform: %s, nodes: "
                 "%d}\nbatch: {micro: %d, micro_batches: %d}\nstrategy: {pipeline: 4, tensor: %d%s, expert: %d, dispatcher: %s, "
                 "%s}\nmemory: {precision: mixed-bf16, recompute: %s}\n",
                 PICK_INT(&seed, 8, 16), PICK_INT(&seed, 1024, 4096), PICK_INT(&seed, 1, 2, 4),
                 PICK(&seed, "dgx-h100", "dgx-a100", "l40s-pcie"), PICK_INT(&seed, 4, 8), PICK_INT(&seed, 1, 2),
                 PICK_INT(&seed, 8, 12), tensor, tensor > 1 ? ", sequence_parallel: true" : "", PICK_INT(&seed, 2, 4, 8),
                 PICK(&seed, "alltoall", "deepep", "alltoall"), schedules[schedule],
                 schedule == 3 ? "none" : PICK(&seed, "none", "selective", "full"));
        look(&seen, text, i % 8 ? ENGINE_FAST : ENGINE_SIMGRID, false);
    }
    print_message("%d bounds of %d scenarios with experts, %d of them within a tenth\n", seen.bounded, scenarios, seen.near);
    assert_true(seen.bounded > scenarios / 2);
    assert_true(seen.near > seen.bounded / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold), cmocka_unit_test(bounds_hold_on_narrow_links),
                                       cmocka_unit_test(bounds_hold_with_experts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
