/* Software files that stand for another one, and a release that does something else under each stage of ZeRO. */
#include "simulated.h"

#include <unistd.h>

#include "files/data.h"

#define MODEL "model: {transformer: {layers: 8, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, dropout: 0}}\n" \
              "batch: {global: 64}\n"
static const char rest[] = MODEL "cluster: {platform: dgx-a100, nodes: 4}\n";

static int load(const char *software, const char *more, struct scenario *scenario, struct error *err)
{
    char *text;
    int rc;

    assert_true(asprintf(&text, "%ssoftware: %s\n%s", rest, software, more) > 0);
    rc = load_text(text, scenario, err);
    free(text);
    return rc;
}

static void loaded(const char *software, const char *more, struct scenario *scenario)
{
    struct error err = {0};

    if (load(software, more, scenario, &err))
        fail_at(software, &err);
}

/* An alias has the name, title and values of the file that it stands for. */
static void test_alias(void **state)
{
    struct scenario scenario, same;
    struct arena arena = {0};

    (void)state;
    loaded("axolotl", "strategy: {zero: 3}\nmemory: {precision: mixed-bf16, recompute: full}\n", &scenario);
    loaded("transformers", "strategy: {zero: 3}\nmemory: {precision: mixed-bf16, recompute: full}\n", &same);
    assert_string_equal(scenario.software.like, "transformers");
    assert_string_equal(scenario.software.names.name, "transformers");
    assert_string_equal(scenario.software.names.title, same.software.names.title);
    assert_string_equal(scenario.software.names.family, "pytorch-ddp");
    assert_true(scenario.memory.precision.fused_optimizer);
    assert_int_equal(scenario.memory.precision.gradients, GRADIENTS_HALF);
    assert_true(node_equal(scenario_dump(&arena, &scenario), scenario_dump(&arena, &same)));
    scenario_release(&scenario);
    scenario_release(&same);
    arena_release(&arena);
}

static void refused(const char *file, const char *says)
{
    char path[] = "/tmp/dtsim-test-XXXXXX.yaml";
    FILE *out = fdopen(mkstemps(path, 5), "w");
    struct scenario scenario;
    struct error err = {0};

    assert_non_null(out);
    assert_true(fputs(file, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(load(path, "", &scenario, &err), -1);
    if (!strstr(err.messages[0].text, says))
        fail_msg("'%s' gives '%s', expected '%s'", file, err.messages[0].text, says);
    error_release(&err);
    scenario_release(&scenario);
    unlink(path);
}

static void test_refused(void **state)
{
    (void)state;
    refused("alias: axolotl\n", "'axolotl' is an alias itself; expected the name of a file with 'values', such as 'transformers'");
    refused("alias: transformers\ntitle: t\n", "expected no other key here");
    refused("alias: ./a.yaml\n", "'./a.yaml' is a path; expected a name");
    refused("alias: transformer\n", "did you mean 'transformers'?");
    refused("source: s\n", "missing key 'title'");
}

/* DeepSpeed overlaps the sums of ZeRO 3 alone, and gathers weights module by module. */
static void test_deepspeed(void **state)
{
    (void)state;
    for (int zero = 1; zero <= 3; zero++) {
        struct scenario scenario;
        char more[64];

        snprintf(more, sizeof more, "strategy: {zero: %d}\n", zero);
        loaded("deepspeed", more, &scenario);
        assert_int_equal(scenario.parallelism.data_parallel, zero == 3 ? DATA_PARALLEL_DDP : DATA_PARALLEL_SYNCHRONOUS);
        assert_int_equal(scenario.parallelism.flatten, zero != 3);
        assert_int_equal(scenario.memory.flat_gradients, zero != 3);
        scenario_release(&scenario);
    }
}

/* `precision: bf16` is a name for other keys under every software, and these stand above what the software says. */
static void test_bf16(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "platforms/software", &err);
    struct scenario scenario, same;

    (void)state;
    for (size_t i = 0; names[i]; i++) {
        char *flags;

        assert_true(asprintf(&flags, "{like: %s, master: none, gradients: half}", names[i]) > 0);
        loaded(names[i], "memory: {precision: bf16, enforce: false}\n", &scenario);
        loaded(flags, "memory: {precision: mixed-bf16, optimizer: adam-half, enforce: false}\n", &same);
        if (!node_equal(scenario_dump(&arena, &scenario), scenario_dump(&arena, &same)))
            fail_msg("%s: bf16 is not what it stands for", names[i]);
        scenario_release(&scenario);
        scenario_release(&same);
        free(flags);
    }
    loaded("{like: megatron-core, gradients: fp32}", "memory: {precision: bf16, optimizer: sgd}\n", &scenario);
    assert_int_equal(scenario.memory.precision.gradients, GRADIENTS_FP32);
    assert_int_equal(scenario.memory.precision.optimizer, OPTIMIZER_SGD);
    assert_int_equal(scenario.memory.precision.master, MASTER_NONE);
    scenario_release(&scenario);
    arena_release(&arena);
}

/* DeepSpeed's optimizer of bf16 divides states without ZeRO too; that of fp16, and weights without fp32 copies, do not. */
static void test_divided_states(void **state)
{
    static const struct { const char *software, *precision; int said, zero; } cases[] = {
        {"deepspeed", "mixed-bf16", 0, 1}, {"deepspeed", "mixed-fp16", 0, 0}, {"deepspeed", "bf16", 0, 0},
        {"deepspeed", "mixed-bf16", 2, 2}, {"deepspeed", "mixed-bf16", 3, 3}, {"transformers-deepspeed", "mixed-bf16", 0, 1},
        {"ms-swift-deepspeed", "mixed-bf16", 0, 1}, {"megatron-deepspeed", "mixed-bf16", 0, 1}, {"pytorch-ddp", "mixed-bf16", 0, 0},
        {"{like: deepspeed, divided_states: false}", "mixed-bf16", 0, 0}, {"{like: pytorch-ddp, divided_states: true}", "fp32", 0, 1},
    };
    struct scenario scenario;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char more[128];

        snprintf(more, sizeof more, "strategy: {zero: %d}\nmemory: {precision: %s, enforce: false}\n", cases[i].said,
                 cases[i].precision);
        loaded(cases[i].software, more, &scenario);
        if (scenario.parallelism.zero != cases[i].zero)
            fail_msg("%s, %s: ZeRO %d", cases[i].software, more, scenario.parallelism.zero);
        if (cases[i].zero != cases[i].said)
            assert_false(scenario.parallelism.reduce_scatter);
        scenario_release(&scenario);
    }
}

/* `attention` says whether attention is fused where `flash_attention` is not said beside it, whatever the software does;
 * sdpa is what PyTorch takes on the GPU; where nothing is said, the release takes what the GPU can run. */
static void test_attention(void **state)
{
    static const struct { const char *keys; int flash; } cases[] = {      /* flash -1: as the software */
        {"", -1}, {", attention: newest", -1}, {", attention: eager", 0}, {", attention: memory-efficient", 1},
        {", attention: flash-1", 1}, {", attention: sdpa", 1}, {", flash_attention: false", 0}, {", flash_attention: true", 1},
        {", attention: eager, flash_attention: false", 0}, {", attention: flash-2, flash_attention: false", 0},
    };
    static const struct { const char *gpu, *software; enum attention_generation called; } gpus[] = {
        {"a100-80gb", "pytorch-ddp, attention: sdpa", ATTENTION_FLASH_2}, {"h100-80gb", "transformers, attention: sdpa", ATTENTION_FLASH_2},
        {"rtx-4090", "pytorch-ddp, attention: sdpa", ATTENTION_FLASH_2}, {"mi300x", "torchtitan", ATTENTION_FLASH_2},
        {"v100-16gb", "megatron-core, attention: sdpa", ATTENTION_EFFICIENT}, {"t4", "pytorch-ddp", ATTENTION_EFFICIENT},
        {"p40", "deepspeed", ATTENTION_EFFICIENT}, {"v100-16gb", "nanogpt", ATTENTION_EFFICIENT}, {"h100-80gb", "torchtune", ATTENTION_FLASH_2},
        {"v100-32gb", "pytorch-2.0", ATTENTION_EFFICIENT}, {"t4", "pytorch-2.0", ATTENTION_FLASH_1}, {"a100-40gb", "pytorch-2.0", ATTENTION_FLASH_1},
        {"h100-80gb", "transformers", ATTENTION_CUDNN}, {"gb200", "trl", ATTENTION_CUDNN}, {"b300-288gb", "trl", ATTENTION_FLASH_2},
        {"h200-141gb", "transformers-deepspeed", ATTENTION_CUDNN}, {"rtx-5090", "transformers", ATTENTION_FLASH_2},
        {"a100-80gb", "trl-deepspeed", ATTENTION_FLASH_2}, {"h100-80gb", "unsloth", ATTENTION_FLASH_2}, {"h100-80gb", "nanochat", ATTENTION_FLASH_3},
    };
    static const struct { const char *name; bool flash; } files[] = {{"pytorch-ddp", true}, {"pytorch-1.13", false}};
    struct scenario scenario;
    struct error err = {0};
    char text[512];

    (void)state;
    for (size_t f = 0; f < COUNT(files); f++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            snprintf(text, sizeof text, "{like: %s%s}", files[f].name, cases[i].keys);
            loaded(text, "memory: {enforce: false}\n", &scenario);
            if (scenario.model.transformer->ways.flash_attention != (cases[i].flash < 0 ? files[f].flash : cases[i].flash))
                fail_msg("%s: fused %d", text, scenario.model.transformer->ways.flash_attention);
            scenario_release(&scenario);
        }
    for (size_t i = 0; i < COUNT(gpus); i++) {
        snprintf(text, sizeof text, MODEL "cluster: {nodes: 1, gpus_per_node: 1, gpu: %s}\nsoftware: {like: %s}\n"
                 "memory: {precision: mixed-fp16, enforce: false}\n", gpus[i].gpu, gpus[i].software);
        assert_int_equal(load_text(text, &scenario, &err), 0);
        if (scenario.kernels[0].model.attention != gpus[i].called)
            fail_msg("%s on %s calls %s", gpus[i].software, gpus[i].gpu, attention_generation_names[scenario.kernels[0].model.attention]);
        scenario_release(&scenario);
    }
    assert_int_equal(load("{like: pytorch-ddp, attention: eager, flash_attention: true}", "", &scenario, &err), -1);
    assert_non_null(strstr(err.messages[0].text, "is fused"));
    error_release(&err);
    scenario_release(&scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alias), cmocka_unit_test(test_refused), cmocka_unit_test(test_deepspeed),
        cmocka_unit_test(test_bf16), cmocka_unit_test(test_attention),
        cmocka_unit_test(test_divided_states),
    };

    return cmocka_run_group_tests_name("software_alias", tests, NULL, NULL);
}
