/* The passes of a lowering, by what they print: which entries complete gradients, what is summed, that updates change no step
 * of works, what hosts get, that in their order no step comes before those who give the labels that it waits for, and that
 * operations take what durations say. */
#include "random_plan.h"

#include "recompute/stage_plan.h"

enum { PLANS = 120 };

/* What a pass has found, as text; the caller frees it. */
static char *pass_text(struct simulated *simulated, enum lower_pass pass)
{
    struct measure measure;
    struct error err = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    measure_init(&measure, ENGINE_FAST, &simulated->scenario.cluster);
    if (lower_print(simulated_workload(simulated), pass, &measure, out, &err))
        fail_at(simulated->text, &err);
    fclose(out);
    measure_release(&measure);
    return text;
}

static int occurrences(const char *text, const char *word)
{
    int count = 0;

    for (; (text = strstr(text, word)); text += strlen(word))
        count++;
    return count;
}

/* The last backward completes the gradients of its chunk; under ZeRO 2, which keeps no whole ones, each does. */
static void test_rows(void **state)
{
    static const struct { const char *strategy; int completes; } cases[] = {
        {"schedule: 1f1b", 2}, {"schedule: 1f1b, zero: 2", 2 * 4}, {"schedule: zb-h1", 2},
        {"schedule: interleaved, chunks: 2", 4}, {"schedule: terapipe, slices: 3", 2},
        {"schedule: terapipe, slices: 3, zero: 2", 2 * 4}, {"schedule: 1f1b, local_steps: 2", 2 * 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        simulated_load(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 M}}\n"
                       "cluster: {nodes: 1, gpus_per_node: 4, inside: {bandwidth: 10 GB/s, latency: 1 us}}\n"
                       "batch: {micro_batches: 4}\nstrategy: {pipeline: 2, data: 2, %s}\nmemory: {enforce: false}\n",
                       cases[i].strategy);
        char *text = pass_text(&simulated, PASS_ROWS);

        if (occurrences(text, "completes gradients") != cases[i].completes)
            fail_msg("%d of these complete gradients, not %d:\n%s", occurrences(text, "completes gradients"),
                     cases[i].completes, text);
        free(text);
        simulated_release(&simulated);
    }
}

/* All gradients are summed once, in buckets of the size that the recipe says. */
static void test_exchanges(void **state)
{
    struct simulated simulated;
    double bytes = 0;
    int lines = 0;

    (void)state;
    simulated_load(&simulated, "model: {transformer: {layers: 4, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000}}\n"
                   "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 10 GB/s, latency: 1 us}}\n"
                   "batch: {micro_batches: 4, micro: 1}\n"
                   "strategy: {pipeline: 2, data: 2, first_bucket: 20 kB, bucket: 70 kB}\nmemory: {enforce: false}\n");
    char *text = pass_text(&simulated, PASS_EXCHANGES);

    for (const char *at = text; (at = strstr(at, "all_reduce of ")); lines++) {
        double own = strtod(at += strlen("all_reduce of "), NULL);

        bytes += own;
        assert_true(own > 0);
    }
    const struct workload *workload = simulated_workload(&simulated);
    double each = scenario_parameter_bytes(workload->scenario).sent;

    expect_near("bytes", bytes, each * (workload->stages[0].parameters + workload->stages[1].parameters), text);
    assert_true(lines > 4);
    free(text);
    simulated_release(&simulated);
}

/* Calls `visit` for each label behind a word of a step's line. */
typedef void visit_label(void *context, const char *label);
static void each_label(const char *line, const char *word, visit_label *visit, void *context)
{
    const char *at = strstr(line, word);
    char *labels = at ? strdup(at + strlen(word)) : NULL, *rest = labels, *label;

    if (labels)
        labels[strcspn(labels, ";")] = '\0';
    while ((label = strsep(&rest, ",")))
        visit(context, label + (*label == ' '));
    free(labels);
}

/* How often each label has yet to be given. */
struct known { struct { char *label; int left; } *items; size_t count, capacity; const char *text; };

static int *left_of(struct known *known, const char *label)
{
    for (size_t i = 0; i < known->count; i++)
        if (!strcmp(known->items[i].label, label))
            return &known->items[i].left;
    GROW(known)->label = strdup(label);
    known->items[known->count - 1].left = 0;
    return &known->items[known->count - 1].left;
}

static void count_giver(void *context, const char *label)
{
    ++*left_of(context, label);
}

static void take_giver(void *context, const char *label)
{
    --*left_of(context, label);
}

static void expect_given(void *context, const char *label)
{
    struct known *known = context;

    if (*left_of(known, label) > 0)
        fail_msg("a step comes before '%s' are there, in\n%s", label, known->text);
}

static void each_line(const char *text, void (*visit)(struct known *known, const char *line), struct known *known)
{
    char *lines = strdup(text), *rest = lines, *line;

    while ((line = strsep(&rest, "\n")))
        if (*line && *line != '#')
            visit(known, line);
    free(lines);
}

static void count_givers(struct known *known, const char *line)
{
    each_label(line, "; gives ", count_giver, known);
}

static void expect_turn(struct known *known, const char *line)
{
    each_label(line, "; waits for ", expect_given, known);
    each_label(line, "; gives ", take_giver, known);
}

static void test_order(void **state)
{
    uint64_t seed = 41;

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        struct random_plan plan = random_plan(&seed);
        struct simulated simulated;
        struct known known = {0};
        char *yaml, *script, *order;

        if (i % 2)
            any_schedule(&plan, &seed);
        yaml = plan_yaml(&plan);
        simulated_load(&simulated, "%s", yaml);
        script = pass_text(&simulated, PASS_UPDATES);
        known.text = order = pass_text(&simulated, PASS_ORDER);
        each_line(script, count_givers, &known);
        each_line(order, expect_turn, &known);
        for (size_t k = 0; k < known.count; k++) {
            assert_int_equal(known.items[k].left, 0);
            free(known.items[k].label);
        }
        free(known.items);
        free(yaml);
        free(script);
        free(order);
        simulated_release(&simulated);
    }
}

/* The lines of a text with such a kind of step, without their numbers; the caller frees them. */
static char *steps_of(const char *text, const char *kind)
{
    char *lines = strdup(text), *rest = lines, *line, *found = NULL;
    size_t size;
    FILE *out = open_memstream(&found, &size);

    while ((line = strsep(&rest, "\n")))
        if (*line && *line != '#' && strstr(line, kind))
            fprintf(out, "%s\n", line + strcspn(line, "."));
    fclose(out);
    free(lines);
    return found;
}

/* The pass of updates adds steps, and changes none of the works' ones; each row updates as often as it has updates. */
static void test_updates(void **state)
{
    uint64_t seed = 44;

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        struct random_plan plan = random_plan(&seed);
        struct simulated simulated;
        char *yaml, *texts[3], *steps[2];
        int updates;

        any_schedule(&plan, &seed);
        yaml = plan_yaml(&plan);
        simulated_load(&simulated, "%s", yaml);
        for (int k = 0; k < 3; k++)
            texts[k] = pass_text(&simulated, k == 0 ? PASS_ROWS : k == 1 ? PASS_WORKS : PASS_UPDATES);
        for (int k = 0; k < 2; k++)
            steps[k] = steps_of(texts[1 + k], " works ");
        assert_string_equal(steps[0], steps[1]);
        assert_int_equal(occurrences(texts[1], " update  "), 0);
        updates = occurrences(texts[0], "  update");
        assert_true(updates >= plan.pipeline);
        assert_int_equal(occurrences(texts[2], " update  ") % updates, 0);       /* all simulated replicas */
        assert_true(occurrences(texts[2], " update  ") > 0);
        for (int k = 0; k < 5; k++)
            free(k < 3 ? texts[k] : steps[k - 3]);
        free(yaml);
        simulated_release(&simulated);
    }
}

/* Adds up the numbers behind a word on all lines of a text. */
static double sum_behind(const char *text, const char *what, const char *word)
{
    char *lines = strdup(text), *rest = lines, *line;
    double sum = 0;

    while ((line = strsep(&rest, "\n")))
        if (strstr(line, what) && strstr(line, word))
            sum += strtod(strstr(line, word) + strlen(word), NULL);
    free(lines);
    return sum;
}

/* Hosts get all gradients once, their CPUs update all parameters, and activations go there as the plans say. */
static void test_hosts(void **state)
{
    static const char *const strategies[] = {"data: 1, pipeline: 2", "data: 2, pipeline: 1, zero: 1", "data: 2, pipeline: 2"};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated simulated;
        double parameters = 0, offloaded = 0, share = i == 1 ? 2 : 1;

        simulated_load(&simulated, "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000}}\n"
                       "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 10 GB/s, latency: 1 us},\n"
                       "          host: {bandwidth: 10 GB/s, latency: 0 s, update: 1 G, memory: 1 TB}}\n"
                       "batch: {micro_batches: 2}\nstrategy: {%s}\n"
                       "memory: {enforce: false, recompute: full, offload: [activations, optimizer]}\n", strategies[i]);
        char *text = pass_text(&simulated, PASS_HOSTS);
        const struct workload *workload = simulated_workload(&simulated);
        double each = scenario_parameter_bytes(workload->scenario).gradients;
        int seats = scenario_gpus(workload->scenario);

        for (int s = 0; s < plan_virtual_stages(&workload->plan); s++) {
            parameters += workload->stages[s].parameters / share;
            offloaded += workload->stages[s].plan->offloaded;
        }
        expect_near("gradients", sum_behind(text, "gradients of", ", "), parameters * each, text);
        expect_near("updates", sum_behind(text, "gradients of", "an update of "), parameters * seats / 1e9, text);
        expect_near("activations", sum_behind(text, "activations of", ", "), offloaded, text);
        assert_true(offloaded > 0);
        free(text);
        simulated_release(&simulated);
    }
}

/* The seconds that the pass says of a work on a stage; NaN: it says nothing. */
static double printed_seconds(const char *text, int stage, const char *letter)
{
    char cell[16];
    const char *at;

    snprintf(cell, sizeof cell, "  %d%s", stage, letter);
    at = strstr(text, cell);
    return at ? strtod(at + strcspn(at + 2, " ") + 2, NULL) : NAN;
}

/* Without collectives over replicas each work takes what the pass says, to the digits that it prints. */
static void test_durations(void **state)
{
    static const char *const strategies[] = {
        "pipeline: 4", "pipeline: 2, tensor: 2", "pipeline: 2, tensor: 2, sequence_parallel: true", "pipeline: 2, schedule: zb-h1",
        "pipeline: 2, schedule: interleaved, chunks: 2", "pipeline: 2, tensor: 2, schedule: gpipe",
    };
    static const struct { enum op_what what; const char *letter; } works[] = {
        {WHAT_FORWARD, "F"}, {WHAT_BACKWARD, "B"}, {WHAT_BACKWARD_INPUT, "I"}, {WHAT_BACKWARD_WEIGHT, "W"},
    };
    int seen = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {transformer: {layers: 8, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, tied: false}}\n"
                 "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 10 GB/s, latency: 1 us}}\n"
                 "batch: {micro_batches: 4}\nstrategy: {%s}\nmemory: {enforce: false}\n", strategies[i]);
        const struct program *program = &simulated.run.lowered.program;
        char *text = pass_text(&simulated, PASS_DURATIONS);

        for (size_t o = 0; o < program->ops.count; o++)
            for (size_t k = 0; k < COUNT(works); k++)
                if (program->ops.items[o].what == works[k].what) {
                    double seconds = printed_seconds(text, program->ops.items[o].stage, works[k].letter);

                    if (!(fabs(program->ops.items[o].amount - seconds) <= 1e-8 * seconds))
                        fail_msg("operation %zu takes %.12g s, not %.12g s:\n%s", o, program->ops.items[o].amount, seconds, text);
                    seen++;
                }
        free(text);
        simulated_release(&simulated);
    }
    assert_true(seen > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_exchanges), cmocka_unit_test(test_order),
        cmocka_unit_test(test_updates), cmocka_unit_test(test_hosts), cmocka_unit_test(test_durations),
    };

    return cmocka_run_group_tests_name("lower_passes", tests, NULL, NULL);
}
