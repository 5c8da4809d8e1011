/* strategy.split: how many layers stand on which stage. */
#include "simulated.h"
#include "trials.h"

enum { MODELS = 60, STAGES_MAX = 8 };

/* A random number of layers for every stage, as YAML; `least` on the first and the last, else 1 or more. Returns how
 * many layers in all. */
static int random_split(uint64_t *seed, int stages, int least, int *split, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "[");
    int sum = 0;

    for (int s = 0; s < stages; s++) {
        split[s] = (s == 0 || s + 1 == stages ? least : 1) + random_below(seed, 4);
        sum += split[s];
        at += (size_t)snprintf(text + at, size - at, "%s%d", s ? ", " : "", split[s]);
    }
    snprintf(text + at, size - at, "]");
    return sum;
}

/* Identical jobs through machines of different speed: the first takes every machine once, each further one what the
 * slowest takes (GPipe: all forwards, then all backwards the other way). */
static void test_bottleneck(void **state)
{
    static const char *const engine_of[] = {"ideal", "simgrid"};

    (void)state;
    EACH_CASE(i, MODELS) {
        uint64_t seed = i * 0x9E3779B97F4A7C15u;
        int stages = 1 + random_below(&seed, STAGES_MAX), m = 1 + random_below(&seed, 6), split[STAGES_MAX];
        double forward[64], backward[64], forwards = 0, backwards = 0, slow_forward = 0, slow_backward = 0;
        char text[128], *layers = NULL;
        size_t size;
        FILE *out = open_memstream(&layers, &size);
        int count = random_split(&seed, stages, 1, split, text, sizeof text);
        struct simulated simulated;

        for (int k = 0; k < count; k++) {
            forward[k] = 1e-3 * (1 + random_below(&seed, 9));
            backward[k] = 1e-3 * (1 + random_below(&seed, 20));
            fprintf(out, "%s{forward: %.17g s, backward: %.17g s, parameters: %d}", k ? ", " : "", forward[k],
                    backward[k], 1000 + k);
        }
        fclose(out);
        for (int s = 0, k = 0; s < stages; s++) {
            double f = 0, b = 0;

            for (int end = k + split[s]; k < end; k++) {
                f += forward[k];
                b += backward[k];
            }
            forwards += f;
            backwards += b;
            slow_forward = fmax(slow_forward, f);
            slow_backward = fmax(slow_backward, b);
        }
        run_text(&simulated, "model: {layers: [%s]}\ncluster: ideal\nbatch: {micro_batches: %d}\n"
                 "strategy: {schedule: gpipe, pipeline: %d, split: %s}\nsimulation: {engine: %s}\n", layers, m, stages,
                 text, engine_of[i % 2]);
        expect_near("iteration", simulated.run.timeline.makespan,
                    forwards + backwards + (m - 1) * (slow_forward + slow_backward), simulated.text);
        for (int s = 0; s < stages; s++)
            assert_int_equal(simulated.workload.stages[s].layers, split[s]);
        simulated_release(&simulated);
        free(layers);
    }
}

struct whole { double parameters, flop, activation, model_flop; };

static struct whole simulate_whole(const char *split, int layers, int stages, const char *more, int *alone)
{
    struct simulated simulated;
    struct whole whole = {0};

    run_text(&simulated, "model: {transformer: {layers: %d, hidden: 64, heads: 8, sequence: 32, vocabulary: 1000, "
             "tied: false}}\ncluster: dgx-a100\nbatch: {global: 4}\nsimulation: {engine: ideal}\n"
             "strategy: {pipeline: %d, data: 1%s%s%s}\n", layers, stages, *split ? ", split: " : "", split, more);
    for (int s = 0; s < stages; s++) {
        const struct stage *stage = &simulated.workload.stages[s];

        whole.parameters += stage->parameters;
        whole.activation += stage->activation;
        whole.flop += stage->work[FORWARD].flop + stage->work[BACKWARD].flop;
        *alone += stage->layers == 0;
    }
    whole.model_flop = simulated.run.metrics.hardware_flop;
    simulated_release(&simulated);
    return whole;
}

/* No split loses or adds anything, also where a stage holds the embedding or the output layer alone. */
static void test_conserved(void **state)
{
    int alone = 0;

    (void)state;
    EACH_CASE(i, MODELS) {
        uint64_t seed = i * 0xD1B54A32D192ED03u;
        int stages = 2 + random_below(&seed, STAGES_MAX - 2), split[STAGES_MAX], unused = 0;
        char text[128];
        int layers = random_split(&seed, stages, 0, split, text, sizeof text);
        struct whole one, many;

        if (layers == 0)
            continue;
        one = simulate_whole("", layers, 1, "", &unused);
        many = simulate_whole(text, layers, stages, "", &alone);
        expect_near("parameters", many.parameters, one.parameters, text);
        expect_near("activations", many.activation, one.activation, text);
        expect_near("flop", many.flop, one.flop, text);
        expect_near("model flop", many.model_flop, one.model_flop, text);
    }
    assert_true(alone > MODELS / 10);
}

/* The default, written out, is the default: what does not divide is left out of the last stage and the first ones, down
 * to the embedding and the output layer alone. */
static void test_even(void **state)
{
    static const struct { const char *schedule, *split; int layers, stages; } cases[] = {
        {"1f1b, pipeline: 8", "[2, 3, 3, 3, 3, 3, 3, 2]", 22, 8},
        {"1f1b, pipeline: 4", "[2, 2, 3, 2]", 9, 4},
        {"1f1b, pipeline: 4", "[3, 3, 3, 2]", 11, 4},
        {"interleaved, chunks: 2, pipeline: 4", "[1, 1, 1, 2, 2, 2, 2, 1]", 12, 8},
        {"interleaved, chunks: 2, pipeline: 4", "[0, 1, 1, 1, 1, 1, 1, 0]", 6, 8},
        {"gpipe, pipeline: 4", "[1, 1, 1, 0]", 3, 4},
    };
    struct simulated left_out, written;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char head[300];

        snprintf(head, sizeof head, "model: {transformer: {layers: %d, hidden: 64, heads: 8, sequence: 32, vocabulary: "
                 "1000}}\ncluster: dgx-a100\nbatch: {global: 8}\nstrategy: {schedule: %s, data: 1",
                 cases[i].layers, cases[i].schedule);
        run_text(&left_out, "%s}\n", head);
        run_text(&written, "%s, split: %s}\n", head, cases[i].split);
        assert_true(left_out.run.timeline.makespan == written.run.timeline.makespan);
        assert_true(left_out.run.metrics.peak_memory == written.run.metrics.peak_memory);
        for (int s = 0; s < cases[i].stages; s++)
            assert_int_equal(left_out.workload.stages[s].layers, written.workload.stages[s].layers);
        simulated_release(&left_out);
        simulated_release(&written);
    }
}

/* Stages with equal shares of the weights, as nanotron cuts them: 24 blocks and an output layer of 2.45 blocks' weights
 * (huggingface/bench_cluster, which ran these layouts). */
static void test_weights(void **state)
{
    static const struct { int stages; const char *split; } cases[] = {
        {2, "[14, 10]"}, {4, "[7, 7, 6, 4]"}, {8, "[4, 3, 3, 4, 3, 3, 4, 0]"},
    };
    struct simulated balanced, written;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char head[400];

        snprintf(head, sizeof head, "model: {transformer: {layers: 24, hidden: 2048, heads: 32, ffn: 4096, "
                 "sequence: 64, vocabulary: 50257, positions: 0, norm: rmsnorm, mlp: swiglu, qkv_bias: false, "
                 "bias: false}}\n"
                 "cluster: dgx-a100\nbatch: {global: 8}\nsoftware: {balance: weights}\n"
                 "strategy: {schedule: 1f1b, pipeline: %d, data: 1", cases[i].stages);
        run_text(&balanced, "%s}\n", head);
        run_text(&written, "%s, split: %s}\n", head, cases[i].split);
        for (int s = 0; s < cases[i].stages; s++)
            assert_int_equal(balanced.workload.stages[s].layers, written.workload.stages[s].layers);
        simulated_release(&balanced);
        simulated_release(&written);
    }
}

/* Every schedule takes an uneven split, and stages with the embedding or the output layer alone. */
static void test_schedules(void **state)
{
    (void)state;
    for (size_t i = 0; schedule_at(i); i++) {
        const struct schedule *strategy = schedule_at(i);
        bool copies = strategy->placement == PLACEMENT_BIDIRECTIONAL;
        int chunks = copies || !strategy->min_chunks ? 1 : strategy->min_chunks;
        struct simulated simulated;
        char split[64] = "[0, 1";
        int layers = 1;

        for (int s = 2; s < 4 * chunks - 1; s++, layers += s)
            snprintf(split + strlen(split), sizeof split - strlen(split), ", %d", s + 1);
        run_text(&simulated, "model: {transformer: {layers: %d, hidden: 64, heads: 8, sequence: 32, "
                 "vocabulary: 1000}}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro_batches: 16}\n"
                 "memory: {recompute: full}\nstrategy: {schedule: %s, pipeline: 4, data: 1, chunks: %d, "
                 "split: %s, 0]}\n", layers, strategy->name, strategy->min_chunks ? strategy->min_chunks : 1, split);
        assert_int_equal(simulated.workload.stages[0].layers, 0);
        assert_int_equal(simulated.workload.stages[2].layers, 3);
        assert_int_equal(simulated.workload.stages[4 * chunks - 1].layers, 0);
        assert_true(simulated.run.metrics.iteration_time > 0);
        simulated_release(&simulated);
    }
}

/* A layer's seconds, and those in which a rank sends its gradients once. */
struct layer_load { double seconds, sending; };

/* Seconds a micro-batch of a stage that m ranks share: msr-fiddle/pipedream 11c40c01, compute_partitioning. */
static double shared_seconds(struct layer_load held, int m)
{
    return (held.seconds + 4.0 * (m - 1) * held.sending / m) / m;
}

/* The least that the longest of `stages` stages can take, of the layers from the first on: every place of the first cut
 * tried. */
static double least_longest(const struct layer_load *layers, int count, const int *replicas, int stages)
{
    double least = INFINITY;
    struct layer_load held = {0};

    for (int cut = 1; cut <= count - (stages - 1); cut++) {
        held.seconds += layers[cut - 1].seconds;
        held.sending += layers[cut - 1].sending;
        if (stages > 1)
            least = fmin(least, fmax(shared_seconds(held, replicas[0]),
                                     least_longest(layers + cut, count - cut, replicas + 1, stages - 1)));
    }
    return stages > 1 ? least : shared_seconds(held, replicas[0]);
}

enum { MAX_STAGES = 5, MAX_LAYERS = 16 };
static const double LINK = 1e9;      /* B/s */
struct balanced_case { struct layer_load layers[MAX_LAYERS]; int count, stages, replicas[MAX_STAGES]; };

static void draw_case(struct balanced_case *draw, uint64_t *seed, bool shared, bool exchanges,
                      struct simulated *simulated)
{
    static const char *const balances[] = {"times", "exchanges"};
    char *text = NULL, sharers[64] = "";
    size_t size;
    FILE *out = open_memstream(&text, &size);

    *draw = (struct balanced_case){.stages = 1 + random_below(seed, MAX_STAGES)};
    draw->count = draw->stages + random_below(seed, 9);
    for (int s = 0; s < draw->stages; s++) {
        draw->replicas[s] = shared ? 1 + random_below(seed, 4) : 1;
        snprintf(sharers + strlen(sharers), sizeof sharers - strlen(sharers), "%s%d", s ? ", " : "", draw->replicas[s]);
    }
    for (int k = 0; k < draw->count; k++) {
        double forward = 1e-3 * (1 + random_below(seed, 9)), backward = 1e-3 * (1 + random_below(seed, 20));
        int parameters = 250000 * random_below(seed, 40);

        draw->layers[k] = (struct layer_load){forward + backward, exchanges ? 4 * parameters / LINK : 0};
        fprintf(out, "%s{forward: %.17g s, backward: %.17g s, parameters: %d}", k ? ", " : "", forward, backward,
                parameters);
    }
    fclose(out);
    if (!shared)
        snprintf(sharers, sizeof sharers, "pipeline: %d", draw->stages);
    simulated_load(simulated, "model: {layers: [%s]}\nbatch: {micro_batches: 12}\nmemory: {precision: fp32}\n"
                   "cluster: {nodes: 32, gpus_per_node: 1, network: {bandwidth: %.17g B/s, latency: 1 us}}\n"
                   "strategy: {%s%s%s, data: 1, balance: %s}\n", text, LINK,
                   shared ? "schedule: pipedream, stage_replicas: [" : "", sharers, shared ? "]" : "",
                   balances[exchanges]);
    free(text);
}

/* Stages that are balanced, by their times and by what ranks of one stage exchange too: none takes longer than in the
 * best of all splits, and all layers are there. Half of the models have stages with replicas, which share their
 * micro-batches; without replicas both ways are the same. */
static void test_balance(void **state)
{
    (void)state;
    EACH_CASE(i, MODELS) {
        uint64_t seed = i * 0x9E3779B97F4A7C15u;
        bool exchanges = i / 2 % 2;
        struct balanced_case draw;
        struct simulated simulated;
        double longest = 0;
        int layers = 0;

        draw_case(&draw, &seed, i % 2, exchanges, &simulated);
        for (int s = 0; s < draw.stages; s++) {
            const struct stage *stage = &simulated_workload(&simulated)->stages[s];
            const struct work_times *work = ordinary_times(&simulated.workload)[s].work;
            struct layer_load held = {work[FORWARD].seconds + work[BACKWARD].seconds,
                                exchanges ? 4 * stage->parameters / LINK : 0};

            longest = fmax(longest, shared_seconds(held, draw.replicas[s]));
            layers += stage->layers;
            assert_true(stage->layers > 0);
        }
        expect_near("longest stage", longest, least_longest(draw.layers, draw.count, draw.replicas, draw.stages),
                    simulated.text);
        assert_int_equal(layers, draw.count);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_balance), cmocka_unit_test(test_bottleneck),
        cmocka_unit_test(test_conserved),
        cmocka_unit_test(test_even), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_schedules),
    };

    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
