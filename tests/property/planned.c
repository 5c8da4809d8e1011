/* Planned recomputation and offloading against every plan there is: all plans of short stages are simulated, and none
 * that fits may be faster than the one that was planned. */
#include "all_plans.h"
#include "recompute/rank_plan.h"
#include "recompute/stage_plan.h"
#include "simulated.h"
#include "stage/memory.h"

/* An iteration as it is simulated: its seconds, and the most that a rank holds. */
struct outcome { double seconds, memory, activations; };

static struct outcome play(const struct workload *workload, struct measure *measure)
{
    struct error err = {0};
    struct lowered lowered;
    struct timeline timeline;
    struct outcome outcome = {0};

    if (lower(workload, LOWER_ITERATION, measure, &lowered, &err))
        fail_at("a plan", &err);
    timeline_init(&timeline, &lowered.program);
    replay_ideal(&lowered.program, &workload->scenario->cluster, &timeline);
    struct memory_peak *peaks = memory_peaks(workload->scenario, workload->stages, &timeline);

    outcome.seconds = timeline.makespan;
    for (int r = 0; r < lowered.program.ranks; r++) {
        outcome.memory = fmax(outcome.memory, memory_total(&peaks[r].memory));
        outcome.activations = fmax(outcome.activations, peaks[r].activations);
    }
    free(peaks);
    timeline_release(&timeline);
    lowered_release(&lowered);
    return outcome;
}

struct all { struct outcome *items; size_t count, capacity; };

static struct chain_layer *chain_of(struct arena *arena, const struct workload *workload, int stage)
{
    return stage_chain(arena, workload->scenario, &workload->stages[stage], &ordinary_times(workload)[stage],
                       plan_rank(&workload->plan, 0, stage, 0, NULL));
}

/* The outcomes of all plans of all stages, one stage after another. */
static void play_all(struct workload *workload, int stage, struct measure *measure, struct all *all)
{
    bool offloads = scenario_offloads(workload->scenario, OFFLOAD_ACTIVATIONS);
    struct tape tape = {0};

    if (stage == plan_virtual_stages(&workload->plan)) {
        *GROW(all) = play(workload, measure);
        return;
    }
    do {
        struct arena arena = {0};
        struct stage *here = &workload->stages[stage];
        const struct chain_layer *layers = chain_of(&arena, workload, stage);
        struct chain_plan plan = make_plan(&arena, layers, here->nslices, offloads, &tape);

        stage_plan_set(&arena, here, layers, &plan);
        play_all(workload, stage + 1, measure, all);
        arena_release(&arena);
    } while (tape_next(&tape));
}

static double fastest(const struct all *all, double memory)
{
    double least = INFINITY;

    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].memory <= memory)
            least = fmin(least, all->items[i].seconds);
    return least;
}

struct setup { const char *model, *cluster, *strategy, *batch, *offload; };

/* The scenario with that limit and its workload, or -1 where no plan fits; unload() releases both in either case. The plans
 * are the planner's own: no replay has chosen among plans for other limits. */
static int load(struct scenario *scenario, struct workload *workload, const struct setup *setup, double limit)
{
    struct error err = {0};
    char *text = NULL;

    assert_true(asprintf(&text, "model: {%s}\ncluster: {%s}\nstrategy: {%s}\nbatch: {%s}\ncosts: {host_launch: 0 s}\n"
                         "memory: {recompute: optimal, offload: %s, limit: %.0f B}\n"
                         "simulation: {engine: ideal, collectives: measured}\n", setup->model, setup->cluster,
                         setup->strategy, setup->batch, setup->offload, limit) >= 0);
    if (load_text(text, scenario, &err))
        fail_at(text, &err);
    int rc = workload_build(workload, scenario, &err);

    if (rc)
        assert_true(strstr(err.messages[0].text, "the least that a plan") ||
                    strstr(err.messages[0].text, "too little for what it always holds"));
    error_release(&err);
    free(text);
    return rc;
}

static void unload(struct scenario *scenario, struct workload *workload)
{
    workload_release(workload);
    scenario_release(scenario);
}

/* What the planner took for the most that a rank with one chunk holds. */
static double believed(const struct workload *workload, int rank)
{
    const struct scenario *scenario = workload->scenario;
    struct memory states = memory_states(scenario, workload->stages, rank);
    const struct stage_plan *plan = workload->stages[rank].plan;
    double context = states.bytes[MEMORY_CONTEXT];
    double held = row_in_flight(&workload->rows[rank], -1) * plan->held + plan->working;

    return context + (memory_total(&states) - context + held) / (1 - memory_fragmentation(scenario));
}

static void check_belief(const struct workload *workload, double memory)
{
    double most = 0;

    for (int rank = 0; rank < workload->plan.stages; rank++)
        most = fmax(most, believed(workload, rank));
    if (!(fabs(most - memory) <= 1e-9 * most))
        fail_msg("the planner believes in %.17g B, the timeline has %.17g B", most, memory);
}

/* How often a plan was as fast as any that fits, and the most by which one was slower. */
struct score { int plans, fastest; double worst; };

/* Limits go from less than any plan needs to more than any plan needs. A plan is never slower than the fastest plan
 * that leaves `spare` bytes free, nor slower than with less memory; and there is a plan wherever some plan leaves these
 * bytes free. */
static void check(const struct setup *setup, double spare, struct score *score)
{
    enum { LIMITS = 12 };
    struct scenario scenario;
    struct workload workload;
    struct measure measure;
    struct all all = {0};
    double least = INFINITY, most = 0, before = INFINITY;

    assert_int_equal(load(&scenario, &workload, setup, 1e15), 0);
    measure_init(&measure, ENGINE_IDEAL, &scenario.cluster);
    play_all(&workload, 0, &measure, &all);
    measure_release(&measure);
    unload(&scenario, &workload);
    for (size_t i = 0; i < all.count; i++) {
        least = fmin(least, all.items[i].memory);
        most = fmax(most, all.items[i].memory + spare);
    }
    for (int i = -1; i <= LIMITS; i++) {
        double limit = least + (most - least) * i / (LIMITS - 1) + 1, best = fastest(&all, limit - spare);
        struct outcome outcome = {.seconds = INFINITY};

        if (!load(&scenario, &workload, setup, limit)) {
            measure_init(&measure, ENGINE_IDEAL, &scenario.cluster);
            outcome = play(&workload, &measure);
            measure_release(&measure);
            assert_true(outcome.memory <= limit);
            if (plan_chunks(&scenario.plan, 0) == 1 && !scenario_offloads(&scenario, OFFLOAD_ACTIVATIONS))
                check_belief(&workload, outcome.memory);
        }
        unload(&scenario, &workload);
        if (outcome.seconds > before * (1 + 1e-9) || (i < 0 && isfinite(outcome.seconds)) ||
            (isinf(outcome.seconds) && isfinite(best)))
            fail_msg("%s, %s, %g B: %g s, with less memory %g s, of all plans %g s", setup->cluster, setup->strategy,
                     limit, outcome.seconds, before, best);
        before = outcome.seconds;
        if (isinf(best))
            continue;
        score->plans++;
        score->fastest += outcome.seconds <= best * (1 + 1e-9);
        score->worst = fmax(score->worst, outcome.seconds / best - 1);
    }
    free(all.items);
}

#define LAYER "{forward: 1 s, backward: 2 s, activation: 100 MB, boundary: 20 MB, parameters: 1 M}"
static const char alike[] = "layers: [" LAYER ", " LAYER ", " LAYER ", " LAYER "]";
static const char unlike[] = "layers: [{forward: 1 s, backward: 3 s, activation: 140 MB, boundary: 20 MB, "
    "parameters: 1 M}, {forward: 2 s, backward: 3 s, activation: 100 MB, boundary: 10 MB, parameters: 2 M}, "
    "{forward: 1 s, backward: 2 s, activation: 60 MB, boundary: 30 MB, parameters: 3 M}, "
    "{forward: 3 s, backward: 5 s, activation: 100 MB, boundary: 20 MB, parameters: 1 M}]";

static void expect_fastest(struct score score)
{
    if (score.fastest < score.plans * 0.97 || score.worst > 0.05)
        fail_msg("%d of %d plans are the fastest; one is %.3g slower", score.fastest, score.plans, score.worst);
}

/* Gathers that hide behind kernels, that do so in part, and that take longer than all kernels: then a recomputation
 * right before its backward costs nothing. */
static void test_zero(void **state)
{
    static const char *const networks[] = {"100 GB/s", "1.5 MB/s", "0.5 MB/s", "0.2 MB/s"};
    struct score score = {0};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(networks); i++) {
        char cluster[200];

        sprintf(cluster, "nodes: 1, gpus_per_node: 2, inside: {bandwidth: %s, latency: 1 us}", networks[i / 2]);
        check(&(struct setup){i % 2 ? unlike : alike, cluster, "data: 2, zero: 3", "micro_batches: 2", "none"}, 0,
              &score);
    }
    expect_fastest(score);
}

static void test_pipelines(void **state)
{
    static const char *const strategies[] = {
        "pipeline: 2, data: 1", "pipeline: 2, data: 1, schedule: gpipe", "pipeline: 2, data: 2, zero: 2",
        "pipeline: 2, data: 2, zero: 3", "pipeline: 2, data: 1, schedule: interleaved, chunks: 2",
        "pipeline: 2, data: 2, zero: 3, schedule: interleaved, chunks: 2",
    };
    struct score score = {0};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(strategies); i++)
        check(&(struct setup){i % 2 ? unlike : alike, "nodes: 1, gpus_per_node: 4, inside: {bandwidth: 100 MB/s, "
                              "latency: 1 us}", strategies[i / 2], "micro_batches: 4", "none"}, 0, &score);
    expect_fastest(score);
}

/* With selective blocks, workspaces, and layers that are not recomputed. */
static void test_transformers(void **state)
{
    static const char gpt[] = "transformer: {layers: 3, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192}";
    static const char *const strategies[] = {
        "data: 8, zero: 3", "tensor: 8", "tensor: 2, data: 4, zero: 3", "tensor: 2, sequence_parallel: true, data: 4",
        "data: 8, zero: 3, shard: 4",
    };
    struct score score = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++)
        check(&(struct setup){gpt, "platform: dgx-a100, nodes: 1", strategies[i], "micro: 4, micro_batches: 2",
                              "none"}, 0, &score);
    expect_fastest(score);
}

/* What is on its way takes room for up to three layers. */
static void test_offload(void **state)
{
    static const char three[] = "layers: [" LAYER ", " LAYER ", " LAYER "]";
    static const char *const hosts[] = {"1 B/s", "20 MB/s", "200 MB/s", "1e17 B/s"};

    (void)state;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        struct score score = {0};
        char cluster[200];

        sprintf(cluster, "nodes: 1, gpus_per_node: 2, inside: {bandwidth: 100 GB/s, latency: 1 us}, "
                "host: {bandwidth: %s, latency: 0 s}", hosts[i]);
        check(&(struct setup){three, cluster, "data: 2, zero: 3", "micro_batches: 2", "activations"}, 300e6, &score);
        assert_true(score.worst <= 0.05);
    }
}

static double seconds_of(const struct setup *setup, double limit)
{
    struct scenario scenario;
    struct workload workload;
    struct measure measure;
    double seconds = INFINITY;

    if (!load(&scenario, &workload, setup, limit)) {
        measure_init(&measure, ENGINE_IDEAL, &scenario.cluster);
        seconds = play(&workload, &measure).seconds;
        measure_release(&measure);
    }
    unload(&scenario, &workload);
    return seconds;
}

/* A host that nothing reaches is as good as none; one that is reached at once holds all but a few layers' activations
 * for nothing. */
static void test_hosts(void **state)
{
    static const char many[] = "layers: [" LAYER ", " LAYER ", " LAYER ", " LAYER ", " LAYER ", " LAYER ", " LAYER ", "
        LAYER ", " LAYER ", " LAYER "]";
    static const char *const strategies[] = {"data: 2, zero: 3", "data: 2, zero: 0"};
    static const char slow[] = "nodes: 1, gpus_per_node: 2, inside: {bandwidth: 100 GB/s, latency: 0 s}, "
        "host: {bandwidth: 1 B/s, latency: 0 s}";
    static const char fast[] = "nodes: 1, gpus_per_node: 2, inside: {bandwidth: 100 GB/s, latency: 0 s}, "
        "host: {bandwidth: 1e17 B/s, latency: 0 s}";

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        double states = 180e6, none = seconds_of(&(struct setup){many, fast, strategies[i], "micro_batches: 2", "none"},
                                                 1e15);

        for (double limit = states + 180e6; limit < states + 1.2e9; limit += 90e6)
            assert_true(seconds_of(&(struct setup){many, slow, strategies[i], "micro_batches: 2", "activations"},
                                   limit) ==
                        seconds_of(&(struct setup){many, slow, strategies[i], "micro_batches: 2", "none"}, limit));
        expect_near("a fast host", seconds_of(&(struct setup){many, fast, strategies[i], "micro_batches: 2",
                                                              "activations"}, states + 520e6), none, strategies[i]);
    }
}

/* With room for everything nothing is different from what nobody planned. */
static void test_ample(void **state)
{
    static const char *const strategies[] = {"data: 8, zero: 3", "tensor: 2, pipeline: 2, data: 2, zero: 3",
                                             "data: 8, zero: 3, shard: 4", "data: 8, zero: 2",
                                             "data: 4, context: 2, zero: 3"};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated simulated[2];

        for (int planned = 0; planned < 2; planned++)
            run_text(&simulated[planned],
                     "model: {transformer: {layers: 6, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192}}\n"
                     "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro: 2, micro_batches: 4}\nstrategy: {%s}\n"
                     "memory: {recompute: %s, limit: 500 GB}\nsimulation: {collectives: measured}\n", strategies[i],
                     planned ? "optimal" : "none");
        expect_near("seconds", simulated[1].run.metrics.iteration_time, simulated[0].run.metrics.iteration_time,
                    strategies[i]);
        expect_near("peak", simulated[1].run.metrics.peak_memory, simulated[0].run.metrics.peak_memory, strategies[i]);
        expect_near("bytes", simulated[1].run.metrics.communication_bytes_per_gpu,
                    simulated[0].run.metrics.communication_bytes_per_gpu, strategies[i]);
        for (int planned = 0; planned < 2; planned++)
            simulated_release(&simulated[planned]);
    }
}

static void set_alike(struct workload *workload, int s, bool selective)
{
    struct arena *arena = &workload->arena;
    struct stage *stage = &workload->stages[s];
    const struct chain_layer *layers = chain_of(arena, workload, s);
    size_t n = stage->nslices;
    struct chain_plan plan = {.kept = ARENA_ARRAY(arena, struct chain_kept, n),
                              .steps = ARENA_ARRAY(arena, struct chain_step, 2 * n)};

    for (size_t l = n; l-- > 0;) {
        bool may = !layers[l].keep && (!selective || layers[l].recompute > 0);

        plan.kept[l] = (struct chain_kept){.input = true, .rest = selective || !may, .selective = selective && may};
        if (may && !selective)
            plan.steps[plan.nsteps++] = (struct chain_step){.layer = l};
        plan.steps[plan.nsteps++] = (struct chain_step){.backward = true, .layer = l, .selective = selective && may};
    }
    stage_plan_set(arena, stage, layers, &plan);
}

/* A plan that recomputes every block is full recomputation; a plan that is selective in every block is selective
 * recomputation. */
static void test_full_and_selective(void **state)
{
    static const char *const models[] = {
        "transformer: {layers: 6, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192}",
        "transformer: {layers: 4, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192, experts: 8, "
        "experts_per_token: 2}",
    };
    static const char *const strategies[] = {
        "data: 8, zero: 3", "tensor: 2, data: 4, zero: 3", "tensor: 2, pipeline: 2, data: 2, zero: 1",
        "data: 4, context: 2, zero: 3", "data: 4, context: 2, zero: 2", "data: 8, expert: 4, zero: 3",
        "data: 4, expert: 2, pipeline: 2",
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(strategies); i++) {
        const char *strategy = strategies[i / 2], *model = models[strstr(strategy, "expert") != NULL];
        struct setup setup = {model, "platform: dgx-a100, nodes: 1", strategy, "micro: 2, micro_batches: 4", "none"};
        struct simulated simulated;
        struct scenario scenario;
        struct measure measure;
        struct workload workload;

        assert_int_equal(load(&scenario, &workload, &setup, 500e9), 0);
        for (int s = 0; s < plan_virtual_stages(&scenario.plan); s++)
            set_alike(&workload, s, i % 2);
        measure_init(&measure, ENGINE_IDEAL, &scenario.cluster);
        struct outcome outcome = play(&workload, &measure);
        measure_release(&measure);
        unload(&scenario, &workload);
        run_text(&simulated, "model: {%s}\ncluster: {%s}\nstrategy: {%s}\nbatch: {%s}\ncosts: {host_launch: 0 s}\n"
                 "memory: {recompute: %s}\nsimulation: {engine: ideal, collectives: measured}\n", model, setup.cluster,
                 strategy, setup.batch, i % 2 ? "selective" : "full");
        expect_near("seconds", outcome.seconds, simulated.run.metrics.iteration_time, simulated.text);
        /* the simulation counts the workspace of a stage's largest layer in addition to all that is kept */
        assert_true(outcome.memory <= simulated.run.metrics.peak_memory * (1 + 1e-9));
        assert_true(outcome.memory >= simulated.run.metrics.peak_memory * 0.95);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero),    cmocka_unit_test(test_pipelines), cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_offload), cmocka_unit_test(test_hosts),     cmocka_unit_test(test_ample),
        cmocka_unit_test(test_full_and_selective),
    };

    return cmocka_run_group_tests_name("planned", tests, NULL, NULL);
}
