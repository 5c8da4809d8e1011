/* Whether scenarios fit: published runs, and the changes that are advised where they do not. */
#include "simulated.h"

/* Runs that are published: whether they fitted. BigScience's preparation of BLOOM (Megatron-DeepSpeed, full
 * recomputation, fp16, ZeRO 1; chronicles-prequel.md), and LLM Foundry's benchmarks (FSDP, bf16, FlashAttention, fused
 * cross-entropy; scripts/train/benchmarking/README.md), whose micro-batches are the largest that were tried and ran:
 * where they do not end at 65536 tokens, twice as much does not fit. */
struct published {
    int layers, hidden, heads, sequence, tensor, pipeline, data, micro;
    const char *recompute;
    bool fits;
};

static bool fits(const struct published *run, bool bloom, const char *gpu)
{
    struct simulated simulated;
    double limit = (strcmp(gpu, "a100-40gb") ? 80 : 40) * 1073741824.0;
    bool fit;

    run_text(&simulated, "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: %d, %s}}\n"
             "cluster: {nodes: %d, gpus_per_node: 8, gpu: %s, inside: {bandwidth: 300 GB/s, latency: 1 us}, "
             "network: {bandwidth: 25 GB/s, latency: 5 us, nics: 8}}\nbatch: {micro: %d, micro_batches: %d}\n"
             "strategy: {tensor: %d, pipeline: %d, data: %d, zero: %d}\n"
             "memory: {recompute: %s, enforce: false, precision: %s}\nsoftware: %s\n"
             "simulation: {engine: ideal, collectives: measured}\n",
             run->layers, run->hidden, run->heads, run->sequence, bloom ? 250880 : 50368,
             bloom ? "dropout: 0.1, positions: 0, embedding_norm: true"
                   : "dropout: 0, positions: 0, bias: false, qkv_bias: false",
             run->tensor * run->pipeline * run->data / 8, gpu, run->micro, 2 * run->pipeline, run->tensor,
             run->pipeline, run->data, bloom ? run->data > 1 : 3, run->recompute,
             bloom ? "mixed-fp16" : "mixed-bf16", bloom ? "megatron-deepspeed" : "composer");
    fit = simulated.run.metrics.peak_memory <= limit;
    simulated_release(&simulated);
    return fit;
}

static void test_published_runs(void **state)
{
    static const struct published bloom[] = {
        {80, 14400, 96, 2048, 8, 10, 1, 1, "full", true},  {80, 14400, 64, 2048, 8, 10, 4, 8, "full", true},
        {80, 13824, 64, 2048, 8, 10, 4, 8, "full", true},  {72, 14336, 64, 2048, 8, 12, 4, 8, "full", true},
        {10, 14336, 64, 2048, 8, 1, 1, 1, "full", true},   {72, 14336, 64, 2048, 8, 2, 24, 2, "full", true},
        {72, 14336, 64, 2048, 4, 6, 16, 4, "full", true},  {72, 14336, 64, 2048, 2, 12, 16, 2, "full", true},
        {96, 12288, 64, 2048, 1, 48, 8, 1, "full", true},  {72, 14336, 64, 2048, 8, 1, 48, 1, "full", false},
        {72, 14336, 64, 2048, 2, 6, 32, 2, "full", false}, {72, 14336, 64, 2048, 2, 6, 32, 1, "full", false},
    };
    static const struct { const char *gpu; struct published run; } mpt[] = {
        {"a100-80gb", {40, 5120, 40, 8192, 1, 1, 8, 5, "full", true}},
        {"a100-80gb", {40, 5120, 40, 2048, 1, 1, 8, 2, "none", true}},
        {"a100-80gb", {32, 4096, 32, 2048, 1, 1, 8, 6, "none", true}},
        {"a100-80gb", {32, 2560, 20, 8192, 1, 1, 8, 3, "none", true}},
        {"a100-80gb", {24, 1536, 12, 2048, 1, 1, 8, 24, "none", true}},
        {"a100-80gb", {24, 1024, 16, 4096, 1, 1, 8, 16, "none", true}},
        {"a100-40gb", {40, 5120, 40, 2048, 1, 1, 8, 4, "full", true}},
        {"a100-40gb", {32, 4096, 32, 2048, 1, 1, 32, 18, "full", true}},
        {"a100-40gb", {32, 2560, 20, 2048, 1, 1, 32, 6, "none", true}},
        {"a100-40gb", {24, 2048, 16, 2048, 1, 1, 32, 10, "none", true}},
        {"a100-40gb", {24, 1536, 12, 2048, 1, 1, 8, 12, "none", true}},
        {"a100-40gb", {24, 1024, 16, 2048, 1, 1, 32, 18, "none", true}},
        {"a100-40gb", {12, 768, 12, 2048, 1, 1, 8, 26, "none", true}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bloom); i++)
        if (fits(&bloom[i], true, "a100-80gb") != bloom[i].fits)
            fail_msg("bloom %zu", i);
    for (size_t i = 0; i < COUNT(mpt); i++) {
        struct published twice = mpt[i].run;

        twice.micro *= 2;
        if (!fits(&mpt[i].run, false, mpt[i].gpu) || fits(&twice, false, mpt[i].gpu))
            fail_msg("mpt %zu", i);
    }
}

/* Qi et al. 2024 (Zero Bubble Pipeline Parallelism), table 4: GB that 1F1B and interleaved 1F1B (a layer a chunk) take
 * of the framework; the first and the last stage have a layer less. */
static void test_published_peaks(void **state)
{
    static const struct { int layers, hidden, heads, stages, micro; double gb[2]; } rows[] = {
        {22, 2304, 24, 8, 6, {30, 40}},
        {30, 4096, 32, 8, 3, {39, 48}},
        {46, 5120, 40, 16, 1, {32, 39}},
        {62, 6144, 48, 32, 1, {43, 58}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            int stages = rows[i].stages, chunks = interleaved ? (rows[i].layers + 2) / stages : 1;
            int each = (rows[i].layers + 2) / stages / chunks;
            char split[512] = "";
            struct simulated simulated;
            double gb;

            for (int s = 0; s < stages * chunks; s++)
                sprintf(split + strlen(split), "%s%d", s ? ", " : "", each - (s == 0 || s == stages * chunks - 1));
            run_text(&simulated, "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: 1024, vocabulary: "
                     "50304, dropout: 0.1}}\ncluster: {platform: dgx-a100, nodes: %d}\n"
                     "batch: {micro: %d, micro_batches: %d}\nsimulation: {engine: ideal}\n"
                     "strategy: {schedule: %s, pipeline: %d, data: 1, chunks: %d, split: [%s]}\n"
                     "memory: {context: 0 B, fragmentation: 0}\n", rows[i].layers, rows[i].hidden, rows[i].heads,
                     stages / 8, rows[i].micro, 3 * stages, interleaved ? "interleaved" : "1f1b", stages, chunks,
                     split);
            gb = simulated.run.metrics.peak_memory / 1e9;
            if (fabs(gb / rows[i].gb[interleaved] - 1) > 0.03)
                fail_msg("%g GB instead of %g:\n%s", gb, rows[i].gb[interleaved], simulated.text);
            simulated_release(&simulated);
        }
}

/* The scenario with assignments, on the free engine: GPU seconds a sample, INFINITY where it does not fit. */
static double cost_with(const char *text, const char *const *sets, size_t nsets, bool *fit)
{
    char path[] = "/tmp/dtsim-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct scenario scenario;
    struct workload workload = {0};
    struct error err = {0};
    struct run run = {0};
    double cost = INFINITY;

    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    if (!load_once(path, sets, nsets, &scenario, &err)) {
        scenario.simulation.engine = ENGINE_IDEAL;
        scenario.simulation.collectives = COLLECTIVES_MEASURED;
        scenario.memory.limit = memory_limit(&scenario);
        scenario.memory.enforce = false;
        if (!workload_init(&workload, &scenario, &err) &&
            !simulate(&workload, simulate_options_of(&scenario), &run, &err) &&
            run.metrics.peak_memory <= scenario.memory.limit)
            cost = run.metrics.iteration_time * scenario_gpus(&scenario) / run.metrics.samples;
    }
    *fit = isfinite(cost);
    run_release(&run);
    workload_release(&workload);
    scenario_release(&scenario);
    error_release(&err);
    unlink(path);
    return cost;
}

/* The texts after the message's "--set", `most` of them at most. */
static size_t advised_sets(const char *message, const char **sets, size_t most)
{
    size_t count = 0;

    for (const char *words = message; (words = strstr(words, " --set "));) {
        words += strlen(" --set ");
        assert_true(count < most);
        words += *words == '\'';
        sets[count++] = strndup(words, strcspn(words, words[-1] == '\'' ? "'" : " ;"));
    }
    return count;
}

/* What is advised makes the scenario fit, and no single change that does so is cheaper: of the software that the text
 * names, or of the usual one, which changes with the degrees. */
static void test_advice(void **state)
{
    static const char *const texts[] = {
        "model: {preset: gpt2-1.5b}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 256, micro: 32}\n"
        "software: {}\n",
        "model: {preset: gpt2-1.5b}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 64, micro: 8}\n"
        "software: none\n",
        "model: {preset: gpt2-1.5b}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 32, micro: 32}\n"
        "strategy: {data: 1}\n"
        "software: {}\n",
        "model: {preset: megatron-18b}\ncluster: {platform: dgx-a100, nodes: 4}\nbatch: {global: 64, micro: 1}\n"
        "strategy: {tensor: 2}\nmemory: {recompute: full}\n"
        "software: none\n",
        "model: {preset: llama2-7b}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 64, micro: 1}\n"
        "software: {}\n",
        "model: {preset: llama2-13b}\ncluster: {platform: dgx-a100, nodes: 2}\n"
        "batch: {micro_batches: 8}\nstrategy: {tensor: 2, pipeline: 2}\n"
        "software: none\n",
        "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 64, micro: 8}\n"
        "memory: {limit: 10 GB}\n"
        "software: none\n",
    };
    static const char *const others[] = {
        "strategy.zero=1", "strategy.zero=2", "strategy.zero=3", "memory.recompute=selective", "memory.recompute=full",
        "memory.recompute={mode: full, share: 0.5}",
        "strategy.sequence_parallel=true", "memory.recompute=optimal", "memory.offload=optimizer",
        "memory.offload=activations", "batch.micro=16", "batch.micro=4", "batch.micro=1",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct simulated simulated;
        struct error err = {0};
        const char *sets[8];
        size_t count;
        double advised;
        bool fit;

        simulated_load(&simulated, "%s", texts[i]);
        assert_int_equal(simulated_run(&simulated, &err), -1);
        assert_int_equal(error_exit_code(&err), EXIT_INFEASIBLE);
        count = advised_sets(err.messages[0].text, sets, COUNT(sets));
        if (!count)
            fail_msg("no advice: %s", err.messages[0].text);
        advised = cost_with(texts[i], sets, count, &fit);
        if (!fit)
            fail_msg("does not fit: %s", err.messages[0].text);
        for (size_t k = 0; k < COUNT(others); k++)
            if ((strncmp(others[k], "batch.micro=", 12) || atoi(others[k] + 12) < simulated.scenario.batch.micro) &&
                cost_with(texts[i], &others[k], 1, &fit) < advised * (1 - 1e-6))
                fail_msg("%s is cheaper: %s", others[k], err.messages[0].text);
        for (size_t k = 0; k < count; k++)
            free((char *)sets[k]);
        error_release(&err);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_runs), cmocka_unit_test(test_published_peaks), cmocka_unit_test(test_advice),
    };

    return cmocka_run_group_tests_name("memory_fits", tests, NULL, NULL);
}
