/* A preset has the number format of the weights that its authors publish, as a config.json does: where nobody says a precision
 * and all GPUs have a rate for bf16, bf16 is meant; else what the scenario says, or the default. */
#include "hardware/precision.h"
#include "simulated.h"

static enum precision format_of(const char *model, const char *cluster, const char *memory)
{
    struct arena arena = {0};
    struct error err = {0};
    struct node *root;
    struct scenario scenario = {0};
    enum precision format;
    char text[512];

    snprintf(text, sizeof text, "model: %s\ncluster: %s\nbatch: {micro_batches: 8}\n%s", model, cluster, memory);
    if (conf_parse(&arena, "test", text, strlen(text), &root, &err) ||
        scenario_read(&arena, root, NULL, 0, "test", &scenario, &err))
        fail_msg("%s: %s", text, err.messages[0].text);
    format = scenario.memory.precision.format;
    scenario_release(&scenario);
    arena_release(&arena);
    return format;
}

static void test_formats(void **state)
{
    static const struct { const char *model; bool bf16; } models[] = {
        {"{preset: llama3-8b}", true}, {"{preset: llama3-70b}", true}, {"{preset: llama3-405b, sequence: 2048}", true},
        {"{preset: mixtral-8x7b, with: {layers: 2}}", true}, {"{preset: deepseek-v3}", true}, {"{preset: gpt3-175b}", false},
        {"{preset: gpt2-124m}", false}, {"{preset: gpt2-124m, dtype: bfloat16}", true},
        {"{preset: llama3-8b, dtype: float16}", false},
    };
    static const struct { const char *cluster; bool bf16; } clusters[] = {
        {"{platform: dgx-h100, nodes: 1}", true}, {"{platform: dgx-a100, nodes: 2}", true}, {"{platform: dgx-1-v100, nodes: 1}", false},
    };

    (void)state;
    for (size_t m = 0; m < COUNT(models); m++)
        for (size_t c = 0; c < COUNT(clusters); c++) {
            bool bf16 = models[m].bf16 && clusters[c].bf16;

            if (format_of(models[m].model, clusters[c].cluster, "") != (bf16 ? PRECISION_MIXED_BF16 : PRECISION_MIXED_FP16))
                fail_msg("%s on %s: another format", models[m].model, clusters[c].cluster);
            assert_int_equal(format_of(models[m].model, clusters[c].cluster, "memory: {precision: fp32}\n"), PRECISION_FP32);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
