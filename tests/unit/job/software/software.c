/* Software files: what they supply to a scenario, and what the scenario keeps. */
#include "simulated.h"
#include "trials.h"

#include "files/data.h"

static const char head[] =
    "model: {transformer: {layers: 8, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, dropout: 0}}\n"
    "cluster: {platform: dgx-a100, nodes: 4}\nbatch: {global: 64}\n";

static void loaded(struct scenario *scenario, const char *rest)
{
    struct error err = {0};
    char *text;

    assert_true(asprintf(&text, "%s%s", head, rest) > 0);
    if (load_text(text, scenario, &err))
        fail_at(text, &err);
    free(text);
}

/* Loads, and expects an error that says so. */
static void refused(const char *rest, const char *says)
{
    struct scenario scenario;
    struct error err = {0};
    char *text;

    assert_true(asprintf(&text, "%s%s", head, rest) > 0);
    assert_int_equal(load_text(text, &scenario, &err), -1);
    if (!strstr(err.messages[0].text, says))
        fail_msg("'%s' gives '%s', expected '%s'", rest, err.messages[0].text, says);
    error_release(&err);
    scenario_release(&scenario);
    free(text);
}

/* Megatron Bridge sends a token once to a GPU. GPT OSS in bf16 sends a copy for each expert. Dense models send none. */
static void test_dispatch(void **state)
{
    static const struct { const char *more, *precision; int dispatch; } cases[] = {
        {"experts: 8, experts_per_token: 2", "mixed-bf16", DISPATCH_ONCE},
        {"experts: 8, experts_per_token: 2, window: 16", "mixed-bf16", DISPATCH_COPIES},
        {"experts: 8, experts_per_token: 2, window: 16", "mixed-mxfp8", DISPATCH_ONCE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scenario scenario;
        struct error err = {0};
        char *text;

        assert_true(asprintf(&text, "model: {transformer: {layers: 8, hidden: 64, heads: 4, sequence: 32, vocabulary: "
                             "128, dropout: 0, %s}}\ncluster: {platform: dgx-b200, nodes: 4}\nbatch: {global: 64}\n"
                             "software: megatron-bridge\nstrategy: {expert: 8}\nmemory: {precision: %s}\n",
                             cases[i].more, cases[i].precision) > 0);
        if (load_text(text, &scenario, &err))
            fail_at(text, &err);
        assert_int_equal(scenario.parallelism.dispatch, cases[i].dispatch);
        scenario_release(&scenario);
        free(text);
    }
}

static void test_precedence(void **state)
{
    struct scenario scenario;

    (void)state;
    loaded(&scenario, "software: megatron-lm-2021\nstrategy: {tensor: 2, pipeline: 2}\n");
    assert_false(scenario.parallelism.overlap_p2p);
    assert_int_equal(scenario.parallelism.data_parallel, DATA_PARALLEL_SYNCHRONOUS);
    assert_true(scenario.model.transformer->ways.softmax_in_fours);
    assert_true(field_supplied(&strategy_table, &scenario.parallelism, "overlap_p2p"));
    assert_string_equal(scenario.software.names.title, "Megatron-LM v2 (2020 and 2021)");
    scenario_release(&scenario);

    loaded(&scenario, "software: {like: megatron-lm-2021, overlap_p2p: true}\nstrategy: {tensor: 2, pipeline: 2}\n"
           "memory: {limit: 10 GB}\n");
    assert_true(scenario.parallelism.overlap_p2p);
    assert_false(field_supplied(&strategy_table, &scenario.parallelism, "overlap_p2p"));
    scenario_release(&scenario);

    loaded(&scenario, "software: {like: megatron-lm-2021, overlap_p2p: true}\nstrategy: {tensor: 2, pipeline: 2}\n");
    assert_true(scenario.parallelism.overlap_p2p);
    assert_int_equal(scenario.parallelism.data_parallel, DATA_PARALLEL_SYNCHRONOUS);
    scenario_release(&scenario);

    loaded(&scenario, "software: megatron-lm-2019\n");
    assert_true(scenario.costs.launch_blocking);
    scenario_release(&scenario);
    loaded(&scenario, "software: megatron-lm-2019\ncosts: {launch_blocking: false}\n");
    assert_false(scenario.costs.launch_blocking);
    scenario_release(&scenario);
}

/* The runtime is the file's, or the runtime of the file that it begins with. */
static void test_runtime(void **state)
{
    static const char *const cases[][2] = {
        {"megatron-core", "megatron"}, {"nemo", "megatron"}, {"megatron-deepspeed", "deepspeed"}, {"fms-fsdp", "pytorch"},
        {"transformers", "pytorch"}, {"trl", "pytorch"}, {"deepspeed", "deepspeed"}, {"maxtext", "xla"}, {"jax-paxml", "xla"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        struct scenario scenario;

        snprintf(text, sizeof text, "software: %s\n", cases[i][0]);
        loaded(&scenario, text);
        assert_string_equal(scenario.software.names.runtime, cases[i][1]);
        scenario_release(&scenario);
    }
}

static void test_conditions(void **state)
{
    struct scenario scenario;

    (void)state;
    loaded(&scenario, "software: megatron-core\nstrategy: {pipeline: 2}\nmemory: {precision: mixed-bf16}\n");
    assert_false(scenario.parallelism.overlap_p2p);
    scenario_release(&scenario);
    loaded(&scenario, "software: megatron-core\nstrategy: {pipeline: 2, schedule: interleaved}\n"
           "memory: {precision: mixed-bf16}\n");
    assert_true(scenario.parallelism.overlap_p2p);
    scenario_release(&scenario);
    loaded(&scenario, "software: megatron-deepspeed\nstrategy: {pipeline: 2, zero: 1}\n"
           "memory: {precision: mixed-bf16}\n");
    assert_int_equal(scenario.memory.precision.gradients, GRADIENTS_CONVERTED);
    assert_false(scenario.parallelism.reduce_scatter);
    assert_false(scenario.memory.fused_gradients);
    scenario_release(&scenario);
}

/* A scenario that names no software has the usual one of its degrees, format and GPU; times that are given have none. */
static void test_usual(void **state)
{
    static const struct { const char *gpu, *strategy, *memory, *software, *like; } cases[] = {
        {"h100-80gb", "{}", "{}", "{}", "pytorch-ddp"},
        {"h100-80gb", "{zero: 1}", "{}", "{}", "deepspeed"},
        {"h100-80gb", "{zero: 2}", "{}", "{}", "deepspeed"},
        {"v100-16gb", "{zero: 3}", "{}", "{}", "pytorch-fsdp"},
        {"h100-80gb", "{tensor: 2}", "{}", "{}", "megatron-core"},
        {"h100-80gb", "{pipeline: 2, zero: 1}", "{}", "{}", "megatron-core"},
        {"a100-80gb", "{pipeline: 2}", "{}", "{}", "megatron-lm-2021"},
        {"a100-80gb", "{tensor: 2, zero: 3}", "{precision: mixed-bf16}", "{}", "megatron-core"},
        {"v100-16gb", "{tensor: 2}", "{precision: mixed-fp16}", "{}", "megatron-lm-2021"},
        {"v100-16gb", "{tensor: 2}", "{precision: fp32}", "{}", "megatron-lm-2021"},
        {"h100-80gb", "{tensor: 2}", "{}", "{overlap_p2p: true}", "megatron-core"},
        {"h100-80gb", "{tensor: 2}", "{}", "nemo", "nemo"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool assumed = cases[i].software[0] == '{';
        struct simulated simulated;

        simulated_load(&simulated, "model: {preset: gpt2-124m}\nbatch: {global: 64}\nstrategy: %s\nmemory: %s\n"
                       "cluster: {nodes: 2, gpus_per_node: 8, gpu: %s, inside: {bandwidth: 300 GB/s, latency: 1 us}, "
                       "network: {bandwidth: 25 GB/s, latency: 5 us, nics: 8}}\nsoftware: %s\n", cases[i].strategy,
                       cases[i].memory, cases[i].gpu, cases[i].software);
        if (strcmp(simulated.scenario.software.like, cases[i].like))
            fail_msg("%s instead of %s:\n%s", simulated.scenario.software.like, cases[i].like, simulated.text);
        assert_int_equal(simulated.scenario.software.assumed, assumed);
        loaded_release(&simulated);
    }
}

static void test_none(void **state)
{
    static const char *const texts[] = {
        "model: {preset: gpt2-124m}\ncluster: dgx-h100\nbatch: {global: 64}\nsoftware: none\n",
        "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 4}\n"
        "strategy: {pipeline: 4}\nsoftware: {}\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct simulated simulated;

        simulated_load(&simulated, "%s", texts[i]);
        assert_null(simulated.scenario.software.names.title);
        assert_true(simulated.scenario.parallelism.overlap_p2p);
        loaded_release(&simulated);
    }
}

/* What software says of any scenario may mean nothing for this one; then it is taken back, not refused. */
static void test_idle(void **state)
{
    struct scenario scenario;

    (void)state;
    loaded(&scenario, "software: megatron-deepspeed\nstrategy: {tensor: 2, pipeline: 2, sequence_parallel: true}\n");
    assert_false(scenario.parallelism.partitioned_outputs);
    scenario_release(&scenario);
    loaded(&scenario, "software: pytorch-fsdp\nstrategy: {schedule: gpipe, pipeline: 2}\n"
           "memory: {recompute: full}\n");
    assert_false(scenario.memory.recompute.early_stop);
    scenario_release(&scenario);
    refused("strategy: {tensor: 2, pipeline: 2, sequence_parallel: true}\nsoftware: {partitioned_outputs: true}\n",
            "software: partitioned_outputs: has no effect");
    loaded(&scenario, "software: torchtitan\nstrategy: {zero: 1, pipeline: 2}\n");
    assert_true(scenario.parallelism.reshard_after_forward && !scenario.parallelism.sums_once);
    scenario_release(&scenario);
    refused("strategy: {zero: 1, pipeline: 2}\nsoftware: {reshard_after_forward: false}\n",
            "software: reshard_after_forward: has no effect");
    refused("strategy: {zero: 3}\nsoftware: {reshard_after_forward: false, flatten: false}\n",
            "software: reshard_after_forward: has no effect");
    refused("strategy: {zero: 1}\nsoftware: {sums_once: true}\n", "software: sums_once: has no effect");
    refused("strategy: {zero: 1, pipeline: 2}\nsoftware: {sums_once: true}\n", "software: sums_once: has no effect");
}

static void test_errors(void **state)
{
    (void)state;
    refused("software: megatron-cor\n", "did you mean 'megatron-core'?");
    refused("software: {like: megatron-core, overlap_pp: true}\n", "did you mean 'overlap_p2p'?");
    refused("software: {overlap_p2p: maybe}\n", "software: overlap_p2p: expected true or false, found 'maybe'");
    refused("software: {data_parallel: ddp}\n", "'data_parallel' stands under 'strategy'");
    refused("software: {launch_blocking: true}\n", "'launch_blocking' stands under 'costs'");
}

/* What software decides stands there alone; where it stood once, and where a model's file has it, an error says so. */
static void test_places(void **state)
{
    static const struct { const char *model, *rest, *says; } cases[] = {
        {"preset: gpt2-124m", "strategy: {overlap_p2p: true}", ":4:25: error: strategy: 'overlap_p2p' stands under "},
        {"preset: gpt2-124m", "memory: {gradients: fp32}", "memory: 'gradients' stands under 'software': expected "
         "software: {gradients: ...}"},
        {"preset: gpt2-124m", "memory: {recompute: {mode: full, early_stop: true}}", "'early_stop' stands under"},
        {"preset: gpt2-124m", "costs: {attention: flash-2}", "costs: 'attention' stands under 'software'"},
        {"preset: gpt2-124m, with: {flash_attention: true}", "", "'flash_attention' stands under 'software'"},
        {"transformer: {layers: 1, hidden: 8, heads: 1, sequence: 8, vocabulary: 8, fused_bias: true}", "",
         "model.transformer: 'fused_bias' stands under 'software'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scenario scenario;
        struct error err = {0};
        struct arena arena = {0};
        struct node *root;
        char *text, *says = NULL;
        size_t size;
        FILE *out = open_memstream(&says, &size);
        int length = asprintf(&text, "model: {%s}\ncluster: dgx-a100\nbatch: {global: 64}\n%s\n", cases[i].model,
                              cases[i].rest);

        assert_true(length > 0);
        assert_int_equal(conf_parse(&arena, "a.yaml", text, (size_t)length, &root, &err), 0);
        assert_int_equal(scenario_read(&arena, root, NULL, 0, "a", &scenario, &err), -1);
        error_print(&err, out);
        assert_int_equal(fclose(out), 0);
        if (!strstr(says, cases[i].says))
            fail_msg("'%s' instead of '%s'", says, cases[i].says);
        free(says);
        free(text);
        error_release(&err);
        scenario_release(&scenario);
    }
}

/* What releases have, by their files: what a scenario asks is in it, is not, or nobody looked it up. */
static void test_has(void **state)
{
    static const struct { const char *software, *rest; enum software_has has; const char *path; } cases[] = {
        {"megatron-core", "strategy: {pipeline: 2, schedule: interleaved, zero: 1}", SOFTWARE_HAS, NULL},
        {"megatron-core", "strategy: {pipeline: 2, schedule: zb-h1}", SOFTWARE_LACKS, "strategy.schedule"},
        {"megatron-core", "strategy: {schedule: zb-h1}", SOFTWARE_HAS, NULL},       /* without a pipeline */
        {"megatron-core", "strategy: {zero: 3}", SOFTWARE_LACKS, "strategy.zero"},
        {"megatron-core", "memory: {recompute: {mode: full, every: 2}}", SOFTWARE_HAS, NULL},
        {"megatron-core", "memory: {recompute: optimal}", SOFTWARE_LACKS, "memory.recompute"},
        {"megatron-bridge", "strategy: {zero: 3}", SOFTWARE_HAS, NULL},             /* its own list */
        {"megatron-bridge", "strategy: {pipeline: 2, schedule: gpipe}", SOFTWARE_LACKS, "strategy.schedule"},   /* its like's */
        {"megatron-lm-2021", "memory: {recompute: selective}", SOFTWARE_LACKS, "memory.recompute"},
        {"megatron-lm-2022", "memory: {recompute: selective}", SOFTWARE_HAS, NULL},
        {"megatron-lm-2019", "strategy: {pipeline: 2}", SOFTWARE_LACKS, "strategy.schedule"},
        {"deepspeed", "strategy: {zero: 3}", SOFTWARE_HAS, NULL},
        {"deepspeed", "strategy: {zero: 2, pipeline: 2}", SOFTWARE_LACKS, "strategy.zero"},     /* under a condition */
        {"deepspeed", "strategy: {pipeline: 2, schedule: interleaved}", SOFTWARE_LACKS, "strategy.schedule"},
        {"torchtitan", "strategy: {pipeline: 2, schedule: zb-v}", SOFTWARE_LACKS, "strategy.schedule"},
        {"torchtitan-2025", "strategy: {pipeline: 2, schedule: zb-v, zero: 3}", SOFTWARE_HAS, NULL},
        {"torchtitan", "memory: {recompute: operators}", SOFTWARE_HAS, NULL},
        {"pytorch-ddp", "strategy: {pipeline: 2}", SOFTWARE_UNKNOWN, NULL},
        {"internlm", "strategy: {zero: 1}", SOFTWARE_UNKNOWN, NULL},
        {"internlm", "strategy: {zero: 0}", SOFTWARE_HAS, NULL},                    /* it asks for nothing */
        {"none", "strategy: {zero: 1}", SOFTWARE_UNKNOWN, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena = {0};
        struct scenario scenario;
        struct software_lack lack = {0};
        enum software_has has;

        loaded(&scenario, arena_printf(&arena, "software: %s\n%s\n", cases[i].software, cases[i].rest));
        has = scenario_in_framework(&arena, &scenario, &lack);
        if (has != cases[i].has || (has == SOFTWARE_LACKS && strcmp(lack.path, cases[i].path)))
            fail_msg("%s, %s: %d (%s)", cases[i].software, cases[i].rest, (int)has, lack.path ? lack.path : "");
        scenario_release(&scenario);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence), cmocka_unit_test(test_runtime), cmocka_unit_test(test_dispatch),
        cmocka_unit_test(test_conditions), cmocka_unit_test(test_usual), cmocka_unit_test(test_none),
        cmocka_unit_test(test_idle), cmocka_unit_test(test_errors), cmocka_unit_test(test_places),
        cmocka_unit_test(test_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
