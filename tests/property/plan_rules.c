/* What a plan's rules drop, against loading: of random spaces each point that a rule drops is refused when it is loaded, with
 * the message of that rule, or is one that the software's release lacks, for that reason. Loading stops at a rule that the plan
 * could not decide in few points. DTSIM_TESTS=all tries 2,000 spaces. */
#include "plan/space.h"
#include "random_scenario.h"
#include "simulated.h"
#include "sweep/points.h"
#include "text.h"
#include "trials.h"

enum { MOST_SETS = 8, MOST_POINTS = 60 };

struct random_space {
    char *text;                      /* of the scenario */
    const char *sets[MOST_SETS];
    size_t nsets;
};

static const struct { const char *path, *lists[4]; } axes[] = {
    {"strategy.tensor", {"1,2,3,4", "2,8,16", "auto", "1,5"}},
    {"strategy.pipeline", {"1,2,4", "auto", "3,5", "1,8"}},
    {"strategy.context", {"1,2", "2,4", "auto", "1,3"}},
    {"strategy.data", {"1,2", "4,8,16", "3,32", "1"}},
    {"strategy.schedule", {"1f1b,interleaved", "gpipe,zb-v,chimera", "auto", "varuna,pipedream,1f1b"}},
    {"strategy.chunks", {"1,2", "2,3,8", "auto", "1,4"}},
    {"strategy.zero", {"0,1,2,3", "auto", "1,3", "0,2"}},
    {"strategy.shard", {"1,2", "2,4", "3", "8,16"}},
    {"strategy.expert", {"1,2,4", "auto", "1,3", "8"}},
    {"strategy.local_steps", {"1,4", "2", "1,2", "8"}},
    {"strategy.data_parallel", {"ddp,synchronous", "parameter-server,ddp", "dataparallel,ddp", "dataparallel"}},
    {"strategy.compression", {"none,top-k", "powersgd,quantized", "quantized", "none,powersgd"}},
    {"strategy.sequence_parallel", {"true,false", "true", "auto", "false"}},
    {"software.reduce_scatter", {"true,false", "false", "false", "true"}},
    {"software.sums_once", {"true,false", "true", "true", "false"}},
    {"memory.recompute", {"none,full", "auto", "optimal,selective,none", "operators,modules"}},
    {"memory.offload", {"none,tensors", "weights,optimizer", "activations,none", "none"}},
    {"memory.optimizer", {"adam,muon", "adafactor,adam", "muon", "sgd,adam"}},
    {"memory.precision", {"mixed-bf16,fp32", "mixed-fp16,mixed-fp8", "mixed-bf16", "mixed-mxfp8,mixed-fp8"}},
    {"batch.micro", {"1,2,4", "auto", "3,5", "1,16"}},
    {"batch.micro_batches", {"4,8", "3,6", "1,2", "16"}},
    {"batch.flush", {"2,4", "3", "1,2", "8"}},
    {"cluster.nodes", {"1,2", "2,3,4", "1", "4"}},
    {"software.like", {"megatron-core,deepspeed", "none,pytorch-fsdp", "torchtitan", "megatron-lm-2021,megatron-core"}},
};

static struct random_space draw(uint64_t *seed)
{
    struct random_space space = {0};
    bool experts = random_below(seed, 3) == 0;

    assert_true(asprintf(&space.text,
        "model: {transformer: {layers: %d, hidden: 1024, heads: 16, kv_heads: %d, sequence: %d, vocabulary: 32000%s}}\n"
        "cluster: {platform: %s, nodes: %d}\nbatch: {%s%s}\nstrategy: {zero: %d%s%s}\nmemory: {precision: mixed-bf16%s}\n%s",
        PICK_INT(seed, 5, 8, 12), PICK_INT(seed, 2, 4, 16), PICK_INT(seed, 512, 1536, 1000),
        experts ? ", experts: 8, experts_per_token: 2, expert_ffn: 512" : "", PICK(seed, "dgx-a100", "dgx-h100", "l40s-pcie"),
        PICK_INT(seed, 1, 2, 3), PICK(seed, "global: 64", "global: 48", "global: 120"), sometimes(seed, 4, ", micro_batches: 4"),
        PICK_INT(seed, 0, 1, 2), sometimes(seed, 4, ", tensor: 2"), sometimes(seed, 20, ", stages: [{tensor: 2}, {tensor: 4}]"),
        sometimes(seed, 4, ", recompute: full"), PICK(seed, "", "software: megatron-core\n", "software: none\n")) >= 0);
    for (size_t i = 0; i < COUNT(axes) && space.nsets < MOST_SETS; i++)
        if (random_below(seed, 5) == 0) {
            char *set;

            assert_true(asprintf(&set, "%s=%s", axes[i].path, axes[i].lists[random_below(seed, 4)]) >= 0);
            space.sets[space.nsets++] = set;
        }
    return space;
}

/* Whether the message has all the words of the rule's, between the values. */
static bool has_words(const char *message, const char *words)
{
    for (const char *value; (value = strstr(words, "${")); words = strchr(value, '}') + 1) {
        char *part = strndup(words, (size_t)(value - words));
        const char *found = strstr(message, part);

        message = found ? found + strlen(part) : NULL;
        free(part);
        if (!message)
            return false;
    }
    return strstr(message, words) != NULL;
}

/* The point of that number, which the rule drops, is refused. Whether that is for the rule's reason. */
static bool is_refused(const struct space *space, uint64_t number, const struct space_rule *rule, const char *what)
{
    struct arena arena = {0};
    struct scenario scenario = {0};
    struct software_lack lack = {.why = NULL};
    struct error err = {0};
    struct point point;
    bool found = false, lacks = false;

    assert_int_equal(point_make(&space->sweep.points, number, &arena, &point, &err), 0);
    if (!scenario_read(&arena, point.root, NULL, 0, "point", &scenario, &err))
        lacks = rule->of_release && scenario_in_framework(&scenario.arena, &scenario, &lack) == SOFTWARE_LACKS;
    found = lacks && lack.why && strstr(rule->why, lack.why);
    for (int i = 0; i < err.count; i++)
        found |= rule->of_release || has_words(err.messages[i].text, rule_message(rule->row));
    if (!err.count && !lacks)
        fail_msg("%s: point %llu is dropped by '%s', and loading says nothing", what, (unsigned long long)number, rule->why);
    scenario_release(&scenario);
    error_release(&err);
    return found;
}

/* s of the point's iteration; NaN: it is refused, or does not run. *memory: B. */
static double time_of(const struct space *space, uint64_t number, double *memory)
{
    struct arena arena = {.cache = files_once()};
    struct scenario scenario = {0};
    struct workload workload = {0};
    struct run run = {0};
    struct error err = {0};
    struct point point;
    double seconds = NAN;

    if (!point_make(&space->sweep.points, number, &arena, &point, &err) &&
        !scenario_read(&arena, point.root, NULL, 0, "point", &scenario, &err)) {
        scenario.memory.enforce = false;
        if (!workload_init(&workload, &scenario, &err) && !simulate(&workload, simulate_numbers_of(&scenario), &run, &err)) {
            seconds = run.metrics.iteration_time;
            *memory = run.metrics.peak_memory;
        }
    }
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    arena_release(&arena);
    error_release(&err);
    return seconds;
}

/* Another point, with another value of one axis, is as fast as the point, and needs no more memory: or the point
 * does not run. */
static void check_same(const struct space *space, uint64_t number, const struct space_rule *rule, const char *what)
{
    const struct points *points = &space->sweep.points;
    uint64_t behind[MOST_SETS + 8] = {1};
    size_t n = points->zips.count;
    double memory = 0, least = 0, seconds = time_of(space, number, &memory);
    bool found = isnan(seconds);

    assert_true(n < COUNT(behind));
    for (size_t i = 0; i < n; i++)
        behind[i + 1] = behind[i] * points->zips.items[n - 1 - i].length;
    for (size_t i = 0; i < n && !found; i++)
        for (size_t k = 0; k < behind[i + 1] / behind[i] && !found; k++) {
            uint64_t other = number - number / behind[i] % (behind[i + 1] / behind[i]) * behind[i] + k * behind[i];
            double now = other == number ? INFINITY : time_of(space, other, &least);

            found = now <= seconds * (1 + 1e-9) && least <= memory * (1 + 1e-9);
        }
    if (!found)
        fail_msg("%s: point %llu is dropped by '%s', and no other one is as fast", what, (unsigned long long)number, rule->why);
}

static int by_number(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* How many points of the space rules drop; *all: that were looked at; *others: that loading refuses for another reason. */
static int check_space(const char *path, const struct random_space *drawn, uint64_t *seed, int *all, int *others)
{
    struct plan_question question = {.path = path, .sets = drawn->sets, .nsets = drawn->nsets};
    struct space space;
    struct error err = {0};
    int dropped = 0;

    if (!space_load(&question, &space, &err)) {
        uint64_t count = points_combinations(&space.sweep.points);

        for (int i = 0; i < MOST_POINTS && (uint64_t)i < count; i++) {
            uint64_t number = count <= MOST_POINTS ? (uint64_t)i : next(seed) % count;
            size_t constraint;

            assert_int_equal(points_dropped(&space.sweep.points, number, &constraint, &err), 0);
            ++*all;
            assert_int_equal(array_find(&number, space.selection.items, space.selection.count, sizeof number, by_number) != NULL,
                             constraint == space.sweep.points.constraints.count);
            if (constraint == space.nrules || !space.rules[constraint].asked)
                continue;
            if (space.rules[constraint].row && space.rules[constraint].row->kind == RULE_SAME)
                check_same(&space, number, &space.rules[constraint], drawn->text);
            else
                *others += !is_refused(&space, number, &space.rules[constraint], drawn->text);
            dropped++;
        }
    }
    space_release(&space);
    error_release(&err);
    return dropped;
}

static int check_written(const struct random_space *space, uint64_t *seed, int *all, int *others)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    int dropped;

    assert_non_null(file);
    assert_true(fputs(space->text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    dropped = check_space(path, space, seed, all, others);
    unlink(path);
    return dropped;
}

/* A number of replicas that an axis says is not what remains of the cluster before it is chosen, whichever axis comes first. */
static void test_replicas_are_awaited(void **state)
{
    char text[] = "model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 32000}}\n"
                  "cluster: {platform: dgx-a100, nodes: 2}\nbatch: {global: 120}\nsoftware: none\n";
    const struct random_space spaces[] = {
        {text, {"strategy.tensor=1,2,4,8", "strategy.data=1,2,3,5"}, 2}, {text, {"strategy.data=3,1,5", "strategy.tensor=1,2,4,8"}, 2},
        {text, {"strategy.tensor=1,2,4,8", "batch.micro_batches=120,60", "strategy.data=1,2"}, 3},
    };
    uint64_t seed = 1;
    int all = 0, others = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(spaces); i++)
        check_written(&spaces[i], &seed, &all, &others);
    assert_int_equal(all, 16 + 12 + 16);
    assert_int_equal(others, 0);
}

static void test_dropped_points_are_refused(void **state)
{
    int dropped = 0, all = 0, others = 0, spaces = 0;

    (void)state;
    for (uint64_t i = 1; i <= (uint64_t)few_or(60, 2000); i++, spaces++) {
        uint64_t seed = i;
        struct random_space space = draw(&seed);

        dropped += check_written(&space, &seed, &all, &others);
        for (size_t s = 0; s < space.nsets; s++)
            free((char *)(uintptr_t)space.sets[s]);
        free(space.text);
    }
    print_message("%d spaces, %d points, of which rules drop %d; %d are refused for another reason\n", spaces, all, dropped, others);
    assert_true(dropped > 5 * spaces);
    assert_true(others < dropped / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replicas_are_awaited), cmocka_unit_test(test_dropped_points_are_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
