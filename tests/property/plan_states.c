/* Points that a plan does not enumerate because weights, gradients and optimizer states alone are too large, against running
 * them: in random spaces a point whose own need is the limit is never dropped, whatever its micro-batch, its recomputation and
 * the other axes that decide nothing of what is held; with a third of that limit it often is. */
#include "plan/space.h"
#include "random_scenario.h"
#include "run/memory_advice.h"
#include "simulated.h"
#include "sweep/points.h"
#include "trials.h"

enum { TRIES = 30, SETS = 12 };

static const char *const sets[SETS] = {
    "strategy.tensor=1,2,4", "strategy.pipeline=4,1,2", "strategy.zero=0,1,3", "strategy.expert=1,4,8", "strategy.schedule=1f1b,interleaved",
    "strategy.sequence_parallel=true", "batch.micro=1,2", "memory.recompute=none,full", "strategy.data_parallel=synchronous,ddp",
    "software.overlap_gathers=false,true", "strategy.dispatcher=alltoall,deepep", "strategy.overlap_dispatch=none,micro-batches",
};

static char *draw(uint64_t *seed)
{
    bool experts = random_below(seed, 2);
    char *text;

    assert_true(asprintf(&text,
        "model: {transformer: {layers: %d, hidden: 1024, heads: 16, sequence: 64, vocabulary: 8000, tied: %s%s}}\n"
        "cluster: {platform: dgx-h100, nodes: %d}\nbatch: {global: 128}\n"
        "memory: {precision: %s, context: 0 GB, limit: LIMIT B, optimizer: %s}\nsoftware: {like: %s, fragmentation: 0}\n", PICK_INT(seed, 8, 11, 16),
        PICK(seed, "true", "false"), experts ? ", experts: 16, experts_per_token: 2, expert_ffn: 512, dense_layers: 1" : "",
        PICK_INT(seed, 1, 2), PICK(seed, "mixed-bf16", "fp32", "mixed-fp16"),
        PICK(seed, "adam", "momentum", "adam"), PICK(seed, "megatron-core", "megatron-core-2025", "deepspeed", "none",
             "torchtitan, sums_once: true", "none, balance: times")) >= 0);
    return text;
}

static void write_limited(const char *path, const char *text, double limit)
{
    const char *at = strstr(text, "LIMIT");
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fprintf(file, "%.*s%.0f%s", (int)(at - text), text, limit, at + strlen("LIMIT")) > 0);
    assert_int_equal(fclose(file), 0);
}

/* B that the point needs; 0: it is refused. */
static double needs(const struct space *space, uint64_t number)
{
    struct arena arena = {.cache = files_once()};
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    struct point point;

    if (!point_make(&space->sweep.points, number, &arena, &point, &err) &&
        !scenario_read(&arena, point.root, NULL, 0, "point", &scenario, &err) && !workload_init(&workload, &scenario, &err))
        if (simulate(&workload, memory_options_of(&scenario), &run, &err))
            fail_at("simulate", &err);
    double bytes = run.metrics.peak_memory;
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&err);
    return bytes;
}

static void load(const char *path, const char *text, double limit, struct space *space)
{
    const char *asked[SETS];
    struct plan_question question = {.path = path, .sets = asked};
    struct error err = {0};

    write_limited(path, text, limit);
    for (size_t i = 0; i < SETS; i++)
        if (strstr(text, "experts:") || !(strstr(sets[i], "expert") || strstr(sets[i], "dispatch")))
            asked[question.nsets++] = sets[i];
    if (space_load(&question, space, &err))
        fail_at(text, &err);
}

/* Whether the point is dropped where that is the limit. */
static bool is_dropped(const char *path, const char *text, double limit, uint64_t number)
{
    struct space space;
    struct error err = {0};
    size_t rule;

    load(path, text, limit, &space);
    assert_int_equal(points_dropped(&space.sweep.points, number, &rule, &err), 0);
    bool dropped = rule < space.nrules && space.rules[rule].of_states;
    space_release(&space);
    return dropped;
}

/* Of a point that runs: whether it is dropped with a third of what it needs. -1: none was found. */
static int check(const char *path, const char *text, uint64_t *seed)
{
    struct space space;
    double bytes = 0;
    uint64_t number = 0;

    load(path, text, 1e12, &space);
    for (int i = 0; i < TRIES && !(bytes > 0); i++) {
        number = space.selection.items[random_next(seed) % space.selection.count];
        bytes = needs(&space, number);
    }
    space_release(&space);
    if (bytes > 0 && is_dropped(path, text, bytes + 1, number))
        fail_msg("%s: point %llu is dropped as too large, and needs %.0f B", text, (unsigned long long)number, bytes);
    return bytes > 0 ? is_dropped(path, text, bytes / 3, number) : -1;
}

static void test_none_that_fits_is_dropped(void **state)
{
    int dropped = 0, looked = 0;

    (void)state;
    for (uint64_t i = 1; i <= (uint64_t)few_or(15, 1000); i++) {
        uint64_t seed = i;
        char *text = draw(&seed), path[] = "/tmp/dtsim-test-XXXXXX";
        int found;

        assert_int_equal(close(mkstemp(path)), 0);
        found = check(path, text, &seed);
        looked += found >= 0;
        dropped += found > 0;
        unlink(path);
        free(text);
    }
    print_message("%d points, %d of them too large for a third of what they need\n", looked, dropped);
    assert_true(looked > 10 && dropped > looked / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_none_that_fits_is_dropped)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
