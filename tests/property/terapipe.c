/* terapipe: micro-batches cut along their tokens. One slice is gpipe; several take the paper's closed form; the works of all
 * slices add up to the whole micro-batch's; the engines agree. */
#include "random_plan.h"

#include "engine/program_text.h"
#include "trials.h"

enum { PLANS = 60, STAGES = 4 };

static char *program_text(struct simulated *simulated)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    program_print(&simulated->run.lowered.program, out);
    fclose(out);
    return text;
}

/* One slice: the program of gpipe, to the byte. */
static void test_one_slice(void **state)
{
    uint64_t seed = seed_from(2102);

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        struct random_plan plan = random_plan(&seed);
        struct simulated both[2];
        char *programs[2];

        plan.engine = "ideal";
        for (int which = 0; which < 2; which++) {
            plan.schedule = which ? "terapipe" : "gpipe";
            char *yaml = plan_yaml(&plan);

            run_text(&both[which], "%s", yaml);
            programs[which] = program_text(&both[which]);
            free(yaml);
        }
        assert_string_equal(programs[0], programs[1]);
        for (int which = 0; which < 2; which++) {
            free(programs[which]);
            simulated_release(&both[which]);
        }
    }
}

/* Given times: every slice takes its share, and the iteration is (M N + P - 1)(F + B) / N. */
static void test_equal_slices(void **state)
{
    static const struct { int stages, micro_batches, slices; } cases[] = {{4, 1, 4}, {4, 2, 8}, {3, 5, 2}, {8, 1, 1}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, activation: 8 MB, boundary: 1 MB}}\ncluster: ideal\n"
                 "batch: {micro_batches: %d}\nstrategy: {schedule: terapipe, slices: %d, pipeline: %d}\n",
                 cases[i].micro_batches, cases[i].slices, cases[i].stages);
        double works = cases[i].micro_batches * cases[i].slices + cases[i].stages - 1;

        expect_near("iteration", simulated.run.metrics.iteration_time, works * 3 / cases[i].slices, simulated.text);
        expect_near("bubble", simulated.run.metrics.bubble_fraction, (cases[i].stages - 1) / works, simulated.text);
        expect_near("memory", simulated.run.metrics.peak_memory, 8e6 * cases[i].micro_batches, simulated.text);
        simulated_release(&simulated);
    }
}

/* Two micro-batches of two samples through four stages, alone on the fastest links. */
static void run_transformer(struct simulated *simulated, const char *strategy, const char *model)
{
    run_text(simulated,
             "model: {transformer: {layers: 8, hidden: 512, heads: 8, sequence: 1024, vocabulary: 3200%s}}\n"
             "cluster: {gpu: a100-80gb, gpus_per_node: 4, nodes: 1, inside: {bandwidth: 1000 PB/s, latency: 0 s}}\n"
             "batch: {micro_batches: 2, micro: 2}\nstrategy: {%s, pipeline: %d, data: 1}\n"
             "costs: {host_launch: 0}\nmemory: {enforce: false}\nsimulation: {engine: ideal}\n", model, strategy, STAGES);
}

static struct token_slice slice_of(const struct simulated *simulated, int k)
{
    return class_slice(&simulated->workload.plan, &simulated->workload.classes[0], k);
}

/* Unequal slices on stages alike: the sum of all, and the longest once for each further stage, forward and backward (Li et
 * al. 2021, section 3.3). Stages differ here in the embedding and the output layer, so the formula with each stage's shortest
 * and longest times encloses the iteration; and this is the time of works that begin as soon as they can. */
static void test_closed_form(void **state)
{
    static const int slices[] = {2, 4, 16};

    (void)state;
    for (size_t i = 0; i < COUNT(slices); i++) {
        struct simulated simulated;
        int n = slices[i], works = 2 * n;
        double ends[STAGES] = {0}, least = 0, most = 0, longest[2][2] = {{0}};
        char strategy[64];

        snprintf(strategy, sizeof strategy, "schedule: terapipe, slices: %d", n);
        run_transformer(&simulated, strategy, "");
        double sent = simulated.workload.stages[0].boundary / 1e18;      /* s on its link */

        for (int k = 0; k < n; k++)
            for (int backward = 0; backward < 2; backward++) {
                enum work_kind kind = backward ? BACKWARD : FORWARD;
                double low = INFINITY, high = 0;

                for (int s = 0; s < STAGES; s++) {
                    low = fmin(low, slice_of(&simulated, k).times[s].work[kind].seconds);
                    high = fmax(high, slice_of(&simulated, k).times[s].work[kind].seconds);
                }
                if (k > 0)
                    assert_true(low > slice_of(&simulated, 0).times[1].work[kind].seconds);      /* more keys */
                least += 2 * low;                        /* of two micro-batches */
                most += 2 * high;
                longest[backward][0] = fmax(longest[backward][0], low);
                longest[backward][1] = fmax(longest[backward][1], high);
            }
        least += (STAGES - 1) * (longest[0][0] + longest[1][0]);
        most += (STAGES - 1) * (longest[0][1] + longest[1][1]);
        for (int w = 0; w < works; w++)
            for (int s = 0; s < STAGES; s++)
                ends[s] = fmax(ends[s], s > 0 ? ends[s - 1] + sent : 0) + slice_of(&simulated, w % n).times[s].work[FORWARD].seconds;
        for (int w = works; w-- > 0;)
            for (int s = STAGES; s-- > 0;)
                ends[s] = fmax(ends[s], s + 1 < STAGES ? ends[s + 1] + sent : 0) +
                          slice_of(&simulated, w % n).times[s].work[BACKWARD].seconds;
        expect_near("iteration", simulated.run.metrics.iteration_time,
                    ends[0] + simulated.workload.classes[0].times[0].update.seconds, simulated.text);
        assert_true(least <= ends[0] && ends[0] <= most);
        simulated_release(&simulated);
    }
}

/* The activations that slices keep add up to those of a whole micro-batch, and so do FLOPs. These count scores that a
 * mask hides. A slice with k slices before it computes k times its own scores in addition. */
static void test_sums(void **state)
{
    static const char *const models[] = {"", ", flash_attention: true", ", kv_heads: 2, mlp: swiglu, norm: rmsnorm, positions: 0"};

    (void)state;
    for (size_t i = 0; i < COUNT(models); i++) {
        struct simulated whole, sliced;
        double activation = 0;

        run_transformer(&whole, "schedule: gpipe", models[i]);
        run_transformer(&sliced, "schedule: terapipe, slices: 8", models[i]);
        expect_near("FLOPs", sliced.run.metrics.hardware_flop, whole.run.metrics.hardware_flop, sliced.text);
        expect_near("model FLOPs", sliced.run.metrics.model_flop, whole.run.metrics.model_flop, sliced.text);
        for (int k = 0; k < 8; k++)
            activation += slice_of(&sliced, k).stages[1].activation;
        expect_near("mean", 8 * sliced.workload.stages[1].activation, activation, sliced.text);
        if (i == 1)                      /* without stored scores: slices store no scores of later keys */
            expect_near("activations", activation, whole.workload.stages[1].activation, sliced.text);
        else
            assert_true(activation < whole.workload.stages[1].activation);
        simulated_release(&whole);
        simulated_release(&sliced);
    }
}

/* Both engines, with replicas, a tensor group and each ZeRO stage, which sums gradients behind the first slice's backward. */
static void test_engines(void **state)
{
    static const char *const strategies[] = {"", ", zero: 1", ", zero: 2", ", zero: 3", ", zero: 3, flatten: false"};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        double times[2];

        for (int which = 0; which < 2; which++) {
            struct simulated simulated;

            run_text(&simulated,
                     "model: {transformer: {layers: 4, hidden: 256, heads: 8, sequence: 512, vocabulary: 1000}}\n"
                     "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 2, micro: 1}\n"
                     "strategy: {schedule: terapipe, slices: 4, tensor: 2, pipeline: 2, data: 2, sequence_parallel: true%s}\n"
                     "memory: {enforce: false}\nsimulation: {engine: %s}\n", strategies[i], which ? "simgrid" : "fast");
            times[which] = simulated.run.metrics.iteration_time;
            simulated_release(&simulated);
        }
        expect_near("iteration", times[0], times[1], strategies[i]);
    }
}

/* B of all transfers between stages. */
static double transferred(const struct program *program)
{
    double bytes = 0;

    for (size_t i = 0; i < program->ops.count; i++)
        bytes += program->ops.items[i].kind == OP_TRANSFER ? program->ops.items[i].amount : 0;
    return bytes;
}

/* Ranks of unequal degrees: the time of works that begin as soon as the slices of all replicas before are there, and as many
 * bytes between stages as without slices. */
static void test_unequal_degrees(void **state)
{
    static const char *const stages[] = {"{data: 2}, {data: 4}, {data: 1}", "{data: 1}, {data: 4}", "{data: 4}, {data: 2}, {data: 2}"};

    (void)state;
    for (size_t i = 0; i < COUNT(stages); i++) {
        double bytes[2];

        for (int which = 0; which < 2; which++) {
            struct simulated simulated;
            int n = which ? 4 : 1, works = 2 * n;
            double ends[STAGES] = {0};

            run_text(&simulated,
                     "model: {transformer: {layers: 6, hidden: 512, heads: 8, sequence: 1024, vocabulary: 3200, tied: false}}\n"
                     "cluster: {gpu: a100-80gb, gpus_per_node: 8, nodes: 1, inside: {bandwidth: 1000 PB/s, latency: 0 s}}\n"
                     "batch: {micro_batches: 2, micro: %d}\nstrategy: {schedule: terapipe, slices: %d, stages: [%s]}\n"
                     "costs: {host_launch: 0}\nmemory: {enforce: false}\nsimulation: {engine: ideal, collectives: messages, "
                     "fold: off}\n", i == 0 ? 2 : i == 1 ? 4 : 1, n, stages[i]);
            const struct plan *plan = &simulated.workload.plan;

            for (int w = 0; w < works; w++)
                for (int s = 0; s < plan->stages; s++)
                    ends[s] = fmax(ends[s], s > 0 ? ends[s - 1] : 0) +
                              class_slice(plan, workload_class(&simulated.workload, 0, s), w).times[s].work[FORWARD].seconds;
            for (int w = works; w-- > 0;)
                for (int s = plan->stages; s-- > 0;)
                    ends[s] = fmax(ends[s], s + 1 < plan->stages ? ends[s + 1] : 0) +
                              class_slice(plan, workload_class(&simulated.workload, 0, s), w).times[s].work[BACKWARD].seconds;
            double end = ends[0] + workload_class(&simulated.workload, 0, 0)->times[0].update.seconds;

            if (fabs(simulated.run.metrics.iteration_time - end) > 1e-6 * end)
                fail_msg("%.12g s, not %.12g s:\n%s", simulated.run.metrics.iteration_time, end, simulated.text);
            bytes[which] = transferred(&simulated.run.lowered.program);
            simulated_release(&simulated);
        }
        expect_near("bytes", bytes[1], bytes[0], stages[i]);
        assert_true(bytes[0] > 0);
    }
}

/* The same where tensor degrees differ too, on both engines; one slice is gpipe. */
static void test_unequal_engines(void **state)
{
    static const char *const schedules[] = {"terapipe, slices: 4", "terapipe", "gpipe"};
    double times[2][COUNT(schedules)];

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(schedules); i++) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 4, hidden: 256, heads: 8, sequence: 512, vocabulary: 1000}}\n"
                 "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 2, micro: 2}\n"
                 "strategy: {schedule: %s, sequence_parallel: true, stages: [{tensor: 2, data: 2}, {tensor: 4, data: 1}]}\n"
                 "memory: {enforce: false}\nsimulation: {engine: %s}\n", schedules[i / 2], i % 2 ? "simgrid" : "fast");
        times[i % 2][i / 2] = simulated.run.metrics.iteration_time;
        simulated_release(&simulated);
    }
    for (size_t i = 0; i < COUNT(schedules); i++)
        expect_near("iteration", times[0][i], times[1][i], schedules[i]);
    expect_near("one slice", times[0][1], times[0][2], "");
    assert_true(times[0][0] != times[0][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_slice), cmocka_unit_test(test_equal_slices), cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_sums), cmocka_unit_test(test_engines), cmocka_unit_test(test_unequal_degrees),
        cmocka_unit_test(test_unequal_engines),
    };

    return cmocka_run_group_tests_name("terapipe", tests, NULL, NULL);
}
