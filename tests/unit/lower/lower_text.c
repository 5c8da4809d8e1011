/* The passes of a lowering, by what they print: which entries complete gradients, what is summed, and that in their order no
 * step comes before those who give the labels that it waits for. */
#include "random_plan.h"

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
        script = pass_text(&simulated, PASS_SCRIPT);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_exchanges), cmocka_unit_test(test_order),
    };

    return cmocka_run_group_tests_name("lower_text", tests, NULL, NULL);
}
