/* Planned recomputation and offloading against every plan there is: all plans of short stages are simulated, and none
 * that fits may be faster than the one that was planned. */
#include "all_plans.h"
#include "memory.h"
#include "simulated.h"
#include "stage_plan.h"

enum { STAGES = 4 };

/* An iteration as it is simulated: its seconds, and the most that a rank holds. */
struct outcome { double seconds, memory, activations; };

static struct outcome play(const struct scenario *scenario, const struct stage *stages, struct measure *measure)
{
    struct error err = {0};
    struct lowered lowered;
    struct timeline timeline;
    struct outcome outcome = {0};

    if (lower(scenario, stages, LOWER_ITERATION, measure, &lowered, &err))
        fail_at("a plan", &err);
    timeline_init(&timeline, &lowered.program);
    replay_ideal(&lowered.program, &scenario->cluster, &timeline);
    struct memory_peak *peaks = memory_peaks(scenario, stages, &timeline);

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

/* The outcomes of all plans of all stages, one stage after another. */
static void play_all(struct scenario *scenario, struct stage *stages, int stage, struct measure *measure,
                     struct all *all)
{
    bool offloads = scenario_offloads(scenario, OFFLOAD_ACTIVATIONS);
    struct tape tape = {0};

    if (stage == plan_global_stages(&scenario->plan)) {
        *GROW(all) = play(scenario, stages, measure);
        return;
    }
    do {
        struct arena arena = {0};
        struct stage *here = &stages[stage];
        struct chain_plan plan = make_plan(&arena, here->chain, here->nslices, offloads, &tape);

        stage_plan_set(&arena, here, &plan);
        play_all(scenario, stages, stage + 1, measure, all);
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

/* The scenario with that limit; its stages, or -1 where none fits. */
static int load(struct scenario *scenario, struct stage **stages, const struct setup *setup, double limit)
{
    struct error err = {0};
    char *text = NULL;

    assert_true(asprintf(&text, "model: {%s}\ncluster: {%s}\nstrategy: {%s}\nbatch: {%s}\ncosts: {host_launch: 0 s}\n"
                         "memory: {recompute: optimal, offload: %s, limit: %.0f B}\n"
                         "simulation: {engine: ideal, collectives: measured}\n", setup->model, setup->cluster,
                         setup->strategy, setup->batch, setup->offload, limit) >= 0);
    if (load_text(text, scenario, &err))
        fail_at(text, &err);
    int rc = stages_build(scenario, stages, &err);

    if (rc)
        assert_non_null(strstr(err.messages[0].text, "the least that a plan"));
    error_release(&err);
    free(text);
    return rc;
}

/* Over limits from less than the least that any plan needs to more than any. */
static void check(const struct setup *setup)
{
    enum { LIMITS = 12 };
    struct scenario scenario;
    struct stage *stages;
    struct measure measure;
    struct all all = {0};
    double least = INFINITY, most = 0;

    assert_int_equal(load(&scenario, &stages, setup, 1e15), 0);
    measure_init(&measure, ENGINE_IDEAL, &scenario.cluster);
    play_all(&scenario, stages, 0, &measure, &all);
    measure_release(&measure);
    scenario_release(&scenario);
    for (size_t i = 0; i < all.count; i++) {
        least = fmin(least, all.items[i].memory);
        most = fmax(most, all.items[i].memory);
    }
    printf("%s %s %s\n%zu plans, %g to %g B\n", setup->model, setup->cluster, setup->strategy, all.count, least, most);
    for (int i = -1; i <= LIMITS; i++) {
        double limit = least + (most - least) * i / (LIMITS - 1) + 1, best = fastest(&all, limit);
        struct outcome outcome = {.seconds = INFINITY};

        if (!load(&scenario, &stages, setup, limit)) {
            measure_init(&measure, ENGINE_IDEAL, &scenario.cluster);
            outcome = play(&scenario, stages, &measure);
            measure_release(&measure);
        }
        printf("  %12.6g B: planned %g s (%g B), best %g s: %+.2f %%%s\n", limit, outcome.seconds, outcome.memory, best,
               100 * (outcome.seconds / best - 1), outcome.memory > limit ? " OVER" : "");
        scenario_release(&scenario);
    }
    free(all.items);
}

static void test_explore(void **state)
{
    static const char alike[] = "layers: [{forward: 1 s, backward: 2 s, activation: 100 MB, boundary: 20 MB, "
        "parameters: 1 M}, {forward: 1 s, backward: 2 s, activation: 100 MB, boundary: 20 MB, parameters: 1 M}, "
        "{forward: 1 s, backward: 2 s, activation: 100 MB, boundary: 20 MB, parameters: 1 M}, "
        "{forward: 1 s, backward: 2 s, activation: 100 MB, boundary: 20 MB, parameters: 1 M}]";
    static const char unlike[] = "layers: [{forward: 1 s, backward: 3 s, activation: 140 MB, boundary: 20 MB, "
        "parameters: 1 M}, {forward: 2 s, backward: 3 s, activation: 100 MB, boundary: 10 MB, parameters: 2 M}, "
        "{forward: 1 s, backward: 2 s, activation: 60 MB, boundary: 30 MB, parameters: 3 M}, "
        "{forward: 3 s, backward: 5 s, activation: 100 MB, boundary: 20 MB, parameters: 1 M}]";
    static const char gpt[] = "transformer: {layers: 3, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192}";
    static const char *const speeds[] = {"100 GB/s", "1.5 MB/s", "0.5 MB/s", "0.2 MB/s"};

    (void)state;
    for (int m = 0; m < 2; m++) {
        const char *model = m ? unlike : alike;
        char cluster[200];

        for (int i = 0; i < 4; i++) {
            sprintf(cluster, "nodes: 1, gpus_per_node: 2, inside: {bandwidth: %s, latency: 1 us}", speeds[i]);
            check(&(struct setup){model, cluster, "data: 2, zero: 3", "micro_batches: 2", "none"});
        }
        check(&(struct setup){model, cluster, "pipeline: 2, data: 1", "micro_batches: 4", "none"});
        check(&(struct setup){model, "nodes: 1, gpus_per_node: 4, inside: {bandwidth: 2 MB/s, latency: 1 us}", "pipeline: 2, data: 2, zero: 3", "micro_batches: 4", "none"});
        check(&(struct setup){model, "nodes: 1, gpus_per_node: 4, inside: {bandwidth: 100 GB/s, latency: 1 us}", "pipeline: 2, data: 1, schedule: interleaved, chunks: 2", "micro_batches: 4", "none"});
        check(&(struct setup){model, "nodes: 1, gpus_per_node: 4, inside: {bandwidth: 100 GB/s, latency: 1 us}", "pipeline: 2, data: 1, schedule: gpipe", "micro_batches: 4", "none"});
    }
    check(&(struct setup){gpt, "platform: dgx-a100, nodes: 1", "data: 8, zero: 3", "micro: 4, micro_batches: 2", "none"});
    check(&(struct setup){gpt, "platform: dgx-a100, nodes: 1", "tensor: 8", "micro: 8, micro_batches: 2", "none"});
    check(&(struct setup){gpt, "platform: dgx-a100, nodes: 1", "tensor: 8, pipeline: 1", "micro: 8, micro_batches: 2", "none"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explore),
    };

    return cmocka_run_group_tests_name("planned", tests, NULL, NULL);
}
