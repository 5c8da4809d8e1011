/* strategy.split: auto against all splits, on random scenarios: every schedule, blocks of multi-token prediction, two kinds
 * of GPUs, limits of memory. None that fits ends sooner. Each split is simulated as a person would, with the split
 * written down. DTSIM_TESTS=all tries ten times as many scenarios. */
#include "random_plan.h"
#include "schedule/schedule.h"
#include "trials.h"

#include <math.h>

enum { CASES = 2000, FEW = 200, MOST_SPLITS = 130, MOST_STAGES = 12 };

struct ending { double seconds, peak, room; };

/* How a run with these settings ends; false: it is refused. */
static bool ends(const struct scenario *scenario, const char *const *sets, size_t nsets, struct ending *ending)
{
    struct scenario varied = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    struct simulate_options options;
    bool ran = false;

    if (!scenario_vary(scenario, sets, nsets, &varied, &err) && !workload_init(&workload, &varied, &err)) {
        options = simulate_numbers_of(&varied);
        options.engine = ENGINE_FAST;
        ran = !simulate(&workload, options, &run, &err);
        *ending = (struct ending){run.metrics.iteration_time, run.metrics.peak_memory, run.metrics.peak_room};
    }
    run_release(&run);
    workload_release(&workload);
    scenario_release(&varied);
    error_release(&err);
    return ran;
}

/* The next split after this one, as an odometer counts; false: it was the last. */
static bool next_split(int *split, int stages)
{
    int last = split[stages - 1];

    for (int s = stages - 2; s >= 0; s--) {
        if (last > 0) {
            split[s]++;
            split[stages - 1] = last - 1;
            return true;
        }
        last += split[s];
        split[s] = 0;
    }
    return false;
}

/* Splits that the scenario refuses, because a stage has nothing to do, count as none. */
static double best_of_all(const struct scenario *scenario, const char *limit, int blocks, int stages, char *best)
{
    int split[MOST_STAGES] = {0};
    double least = INFINITY;

    split[stages - 1] = blocks;
    do {
        char set[128] = "strategy.split=[";
        struct ending ending;

        for (int s = 0; s < stages; s++)
            snprintf(set + strlen(set), sizeof set - strlen(set), "%d%s", split[s], s + 1 < stages ? ", " : "]");
        if (ends(scenario, (const char *[]){set, limit}, 2, &ending) && ending.peak <= ending.room &&
            ending.seconds < least) {
            least = ending.seconds;
            strcpy(best, set);
        }
    } while (next_split(split, stages));
    return least;
}

static char *random_split(uint64_t *seed)
{
    const struct schedule *schedule;
    int count = 0, pipeline = PICK_INT(seed, 2, 2, 3, 4), tensor = PICK_INT(seed, 1, 1, 1, 2);
    char *text = NULL, chunks[24] = "";
    bool two = random_below(seed, 4) == 0;

    while (schedule_at((size_t)count))
        count++;
    schedule = schedule_at((size_t)random_below(seed, count));
    if (schedule->max_chunks > 1)
        snprintf(chunks, sizeof chunks, ", chunks: 2");
    if (pipeline > 2 && schedule->max_chunks > 1)
        pipeline = 2;
    assert_true(asprintf(&text,
        "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: %d, dropout: 0, tied: %s, mtp: %d%s}}\n"
        "cluster: %s\nbatch: {micro_batches: %d, micro: %d}\n"
        "strategy: {schedule: %s%s, pipeline: %d, tensor: %d, data: %d%s%s}\n"
        "memory: {precision: mixed-bf16, recompute: %s}\nsoftware: %s\n",
        4 + random_below(seed, 7), PICK_INT(seed, 256, 512, 1024, 2048), PICK_INT(seed, 512, 1024, 2048),
        PICK_INT(seed, 8000, 32000, 128256), random_below(seed, 3) ? "false" : "true", random_below(seed, 3),
        random_below(seed, 4) ? "" : ", window: 128, full_every: 3",
        two ? "{parts: [{name: a, platform: dgx-a100, nodes: 1}, {name: b, platform: dgx-h100, nodes: 1}]}"
            : PICK(seed, "{platform: dgx-a100, nodes: 1}", "{platform: dgx-h100, nodes: 1}"),
        pipeline * PICK_INT(seed, 1, 2, 3), PICK_INT(seed, 1, 2, 4),
        schedule->name, chunks, pipeline, tensor, two ? 16 / (pipeline * tensor) : PICK_INT(seed, 1, 1, 2),
        PICK(seed, "", "", ", zero: 1"), random_below(seed, 8) ? "" : ", local_steps: 2",
        PICK(seed, "none", "none", "selective", "full"), PICK(seed, "none", "none", "megatron-core")) >= 0);
    return text;
}

/* Whether it was compared. */
static bool compare(const char *text, uint64_t *seed)
{
    struct simulated even = {0};
    struct error err = {0};
    struct ending found, full;
    char limit[64] = "name=same", best[128] = "";
    bool compared = false;

    even.text = NULL;
    if (!load_text(text, &even.scenario, &err)) {
        int stages = plan_virtual_stages(&even.scenario.plan), blocks = even.scenario.model.transformer->layers;
        double count = 1, least;

        for (int s = 1; s < stages; s++)
            count = count * (blocks + s) / s;
        if (stages > 1 && stages <= MOST_STAGES && count <= MOST_SPLITS &&
            ends(&even.scenario, (const char *[]){"strategy.split=auto"}, 1, &full)) {
            if (random_below(seed, 4) == 0)      /* a limit near what the fastest split needs */
                snprintf(limit, sizeof limit, "memory.limit=%.0f B", full.peak * random_between(seed, 0.8, 1.02));
            least = best_of_all(&even.scenario, limit, blocks, stages, best);
            compared = isfinite(least) && ends(&even.scenario, (const char *[]){"strategy.split=auto", limit}, 2, &found);
            if (isfinite(least) && !(compared && found.peak <= found.room && found.seconds <= least * (1 + 1e-9)))
                fail_msg("split: auto takes %.12g s, %s takes %.12g s; %s:\n%s", compared ? found.seconds : NAN, best, least,
                         limit, text);
        }
    }
    scenario_release(&even.scenario);
    error_release(&err);
    return compared;
}

static void none_is_better(void **state)
{
    int cases = ADDRESS_SANITIZER ? FEW / 5 : few_or(FEW, CASES), tries = 0;
    uint64_t seed = seed_from(55);

    (void)state;
    for (int compared = 0; compared < cases; tries++) {
        char *text = random_split(&seed);

        compared += compare(text, &seed);
        free(text);
        assert_true(tries < 20 * cases);
    }
    print_message("%d cases; %d were drawn\n", cases, tries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_is_better)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
