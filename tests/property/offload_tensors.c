/* offload: tensors, from a scenario's text to its results: never slower than offload: activations on the same limit, and
 * what is moved, by the tensors' formulas. */
#include "recompute/stage_plan.h"
#include "simulated.h"
#include "trials.h"

/* The iteration under a policy, INFINITY if no plan fits; *bytes: to the host and back. */
static double seconds_of(const char *text, const char *offload, const char *recompute, double limit, double *bytes)
{
    struct simulated simulated;
    struct error err = {0};
    double seconds = INFINITY;

    *bytes = 0;
    simulated_load(&simulated, "%smemory: {offload: %s, recompute: %s, context: 0 B, fragmentation: 0, limit: %.0f B}\n",
                   text, offload, recompute, limit);
    if (!workload_init(&simulated.workload, &simulated.scenario, &err) &&
        !simulate(&simulated.workload, simulate_options_of(&simulated.scenario), &simulated.run, &err)) {
        seconds = simulated.run.metrics.iteration_time;
        *bytes = simulated.run.metrics.offload_bytes_per_gpu;
        if (simulated.run.metrics.peak_memory > memory_limit(&simulated.scenario) * (1 + 1e-12))
            fail_msg("%s holds %g B\n%s", offload, simulated.run.metrics.peak_memory, simulated.text);
    }
    simulated_release(&simulated);
    error_release(&err);
    return seconds;
}

/* A pipeline of random layers, or of a small transformer. */
static char *random_stage(uint64_t *seed, bool transformer, int pipeline)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int chunks = pipeline > 1 ? 1 + random_below(seed, 2) : 1;
    int layers = pipeline * chunks * (pipeline > 1 ? 1 : 2) + random_below(seed, 5) * pipeline;

    fputs("model: {", out);
    if (transformer)
        fprintf(out, "transformer: {layers: %d, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 8192, dropout: %g, "
                "flash_attention: %s}", layers, random_below(seed, 2) * 0.1, random_below(seed, 2) ? "true" : "false");
    for (int l = 0; !transformer && l < layers; l++)
        fprintf(out, "%s{forward: %d ms, backward: %d ms, activation: %d MB, boundary: %d MB}",
                l ? ", " : "layers: [", 1 + random_below(seed, 20), 1 + random_below(seed, 40),
                20 + random_below(seed, 80), random_below(seed, 20));
    fprintf(out, "%s}\ncluster: {nodes: 1, gpus_per_node: %d%s, inside: {bandwidth: 100 GB/s, latency: 2 us}, "
            "host: {bandwidth: %d GB/s, latency: %d us, update: 1 B}}\n", transformer ? "" : "]", pipeline,
            transformer ? ", gpu: a100-80gb" : "", 1 + random_below(seed, 30), random_below(seed, 30));
    fprintf(out, "batch: {%smicro_batches: %d}\nstrategy: {data: 1, pipeline: %d%s}\nsimulation: {engine: ideal}\n",
            transformer ? "micro: 4, " : "", pipeline * (1 + random_below(seed, 3)), pipeline,
            chunks > 1 ? ", schedule: interleaved, chunks: 2" : "");
    fclose(out);
    return text;
}

/* A share of what the pipeline holds if everything stays. */
static double random_limit(uint64_t *seed, const char *text)
{
    struct simulated simulated;
    double peak;

    run_text(&simulated, "%smemory: {context: 0 B, fragmentation: 0, enforce: false}\n", text);
    peak = simulated.run.metrics.peak_memory;
    simulated_release(&simulated);
    return peak * (0.3 + 0.007 * random_below(seed, 100));
}

/* What happened to pipelines under both policies. */
struct tally { int offloading, faster, in_addition; double logarithms; };

/* Tensors are slower by the share `slower` at most. */
static void compare(uint64_t *seed, int pipelines, int most_stages, double slower, struct tally *tally)
{
    *tally = (struct tally){0};
    for (int i = 0; i < pipelines; i++) {
        char *text = random_stage(seed, i % 2, most_stages > 1 ? 2 + random_below(seed, most_stages - 1) : 1);
        const char *recompute = i % 4 < 2 ? "none" : "optimal";
        double limit = random_limit(seed, text), bytes[2], layers, tensors;

        layers = seconds_of(text, "activations", recompute, limit, &bytes[0]);
        tensors = seconds_of(text, "tensors", recompute, limit, &bytes[1]);
        if (!(tensors <= layers * (1 + slower)))
            fail_msg("recompute %s, %.0f B: layers %.9g s, tensors %.9g s\n%s", recompute, limit, layers, tensors, text);
        tally->in_addition += isinf(layers) && isfinite(tensors);
        if (isfinite(layers) && bytes[0] + bytes[1] > 0) {
            tally->offloading++;
            tally->faster += tensors < 0.99 * layers;
            tally->logarithms += log(tensors / layers);
        }
        free(text);
    }
}

/* One stage: what the planner replays is what is simulated. */
static void test_stage(void **state)
{
    const int stages = trials(400);
    struct tally tally;
    uint64_t seed = seed_from(5);

    (void)state;
    compare(&seed, stages, 1, 1e-9, &tally);
    print_message("%d of %d stages offload, %d are faster, %d fit in addition\n", tally.offloading, stages, tally.faster,
                  tally.in_addition);
    assert_true(tally.offloading > stages / 8 && tally.faster > stages / 20);
    assert_true(tally.in_addition > stages / 100 || !known_cases());
}

/* Several: the planner replays two micro-batches of each stage, not the pipeline, and chunks share memory by choices of
 * plans for each. So a pipeline may be a little slower. */
static void test_pipelines(void **state)
{
    const int pipelines = trials(160);
    struct tally tally;
    uint64_t seed = seed_from(6);

    (void)state;
    compare(&seed, pipelines, 4, 0.02, &tally);
    print_message("%d of %d pipelines offload, %d are faster\n", tally.offloading, pipelines, tally.faster);
    assert_true(tally.offloading > pipelines / 8 && tally.faster > pipelines / 20);
    assert_true(tally.logarithms < log(0.95) * tally.offloading);
}

/* Bytes of a block's tensor, by its name, for a number of tokens: a multiple of the bytes of the width. In the models
 * every head has its own keys, and the MLP is a GELU. */
static double tensor_bytes(const char *name, double tokens, double hidden, double value, double scores)
{
    static const struct { const char *name; double widths; } tensors[] = {
        {"norm input", 1}, {"qkv input", 1}, {"up input", 1}, {"qkv", 3}, {"projection input", 1},
        {"function input", 4}, {"down input", 4},
    };

    for (size_t i = 0; i < COUNT(tensors); i++)
        if (!strcmp(name, tensors[i].name))
            return tensors[i].widths * tokens * hidden * value;
    if (!strcmp(name, "dropout masks"))
        return 2 * tokens * hidden;
    if (!strcmp(name, "attention mask"))
        return scores;
    assert_true(!strcmp(name, "softmax") || !strcmp(name, "probabilities"));
    return scores * value;
}

/* Three models: what goes over the link is what the tensors that the plan names take, there and back. */
static void test_bytes(void **state)
{
    static const struct { const char *model, *limit; int micro; double hidden, heads, sequence, value; } models[] = {
        {"{preset: gpt2-355m, with: {flash_attention: false}}", "24 GB", 8, 1024, 16, 1024, 2},
        {"{preset: bert-large, with: {flash_attention: false}}", "28 GB", 16, 1024, 16, 512, 4},
        {"{preset: megatron-1.7b, with: {flash_attention: false}}", "45 GB", 4, 2304, 24, 2048, 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(models); i++) {
        double tokens = models[i].micro * models[i].sequence, bytes = 0;
        const struct stage_plan *plan;
        struct simulated simulated;

        run_text(&simulated, "model: %s\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {micro: %d, micro_batches: 3}\nstrategy: {data: 1}\nsoftware: none\n"
                 "memory: {precision: %s, offload: tensors, limit: %s, context: 0 B}\n", models[i].model,
                 models[i].micro, models[i].value > 2 ? "fp32" : "mixed-fp16", models[i].limit);
        plan = simulated.workload.stages[0].plan;
        for (size_t c = 0; c < plan->ncopies; c++) {
            const struct slice *slice = stage_layer(&simulated.workload.stages[0], plan->tensors[c].layer);
            size_t tensor = plan->tensors[c].tensor;
            double each = !slice->block ? plan->copies[c].bytes :
                          tensor == 0   ? tokens * models[i].hidden * models[i].value :
                                          tensor_bytes(slice->layer->saved[tensor - 1].name, tokens, models[i].hidden,
                                                       models[i].value, tokens * models[i].heads * models[i].sequence);

            expect_near("a tensor", plan->copies[c].bytes, each, simulated.text);
            bytes += each;
        }
        assert_true(bytes > 0);
        expect_near("bytes", simulated.run.metrics.offload_bytes_per_gpu, 2 * 3 * bytes, simulated.text);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stage), cmocka_unit_test(test_pipelines), cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
