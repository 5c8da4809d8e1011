/* Fused attention in 8 bits: what it adds in casts, by hand on a data sheet's GPU, where its products are no faster; that
 * measured kernels are faster for long samples; and where it is refused. */
#include "simulated.h"

struct shape { int layers, heads, kv_heads, size, sequence, micro; };

static double seconds_of(const struct shape *shape, const char *gpu, const char *costs, const char *format)
{
    struct simulated simulated;
    double seconds;

    run_text(&simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: %d, kv_heads: %d, head_size: %d, sequence: %d, vocabulary: 512}}\n"
             "cluster: {nodes: 1, gpus_per_node: 1, gpu: %s}\nbatch: {micro: %d, micro_batches: 1}\n"
             "simulation: {engine: ideal}\nmemory: {enforce: false, precision: mixed-fp8}\ncosts: {host_launch: 0 us%s}\n"
             "software: {like: none, flash_attention: true, fused_qkv: true, attention_format: %s}\n",
             shape->layers, shape->heads * shape->size, shape->heads, shape->kv_heads, shape->size, shape->sequence, gpu,
             shape->micro, costs, format);
    seconds = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds;
}

/* Queries, keys and values once before, their gradients behind, the output's gradient: 2 + 1 bytes a value each. */
static void test_casts(void **state)
{
    static const struct shape shapes[] = {{2, 32, 32, 128, 8192, 4}, {3, 64, 8, 128, 8192, 2}, {5, 16, 4, 64, 32768, 1}};
    const double bandwidth = 4.8e12 * 0.87, launch = 3e-6;

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const struct shape *s = &shapes[i];
        double tokens = (double)s->sequence * s->micro, output = tokens * s->heads * s->size;
        double inputs = output + 2 * tokens * s->kv_heads * s->size;
        double casts = 3 * (2 * inputs + output) / bandwidth + 3 * launch;
        double half = seconds_of(s, "h200-141gb", ", gpu: roofline", "half");
        double fp8 = seconds_of(s, "h200-141gb", ", gpu: roofline", "fp8");

        assert_true(fabs((fp8 - half) / (s->layers * casts) - 1) < 0.01);
    }
}

/* Forward and backward of 16 k tokens and more are faster in 8 bits on Blackwell; of a thousand tokens they are not. */
static void test_measured(void **state)
{
    static const char *const gpus[] = {"b200-180gb", "gb200", "gb300", "b300-288gb"};

    (void)state;
    for (size_t i = 0; i < COUNT(gpus); i++) {
        const struct shape longer = {1, 64, 8, 128, 65536, 1}, shorter = {1, 64, 8, 128, 1024, 1};

        assert_true(seconds_of(&longer, gpus[i], "", "fp8") < 0.97 * seconds_of(&longer, gpus[i], "", "half"));
        assert_true(seconds_of(&shorter, gpus[i], "", "fp8") > seconds_of(&shorter, gpus[i], "", "half"));
    }
}

static double bytes_sent(const char *way, const char *precision, const char *format, int context)
{
    struct simulated simulated;
    double bytes;

    run_text(&simulated,
             "model: {transformer: {layers: 2, hidden: 1024, heads: 16, kv_heads: 8, sequence: 4096, vocabulary: 512}}\n"
             "cluster: {platform: dgx-b200, nodes: 1, gpus_per_node: %d}\nbatch: {micro: 1, micro_batches: 1}\n"
             "strategy: {context: %d, context_attention: %s}\nmemory: {enforce: false, precision: %s}\n"
             "software: {like: none, flash_attention: true, fused_qkv: true, attention_format: %s}\n",
             context, context, way, precision, format);
    bytes = simulated.run.metrics.communication_bytes_per_gpu;
    simulated_release(&simulated);
    return bytes;
}

/* Under one scale per tensor a context group exchanges bytes: of queries, keys, values and results, or of keys and values. */
static void test_exchanged(void **state)
{
    (void)state;
    for (int context = 2; context <= 8; context *= 2) {
        double saved = 2 * 2 * (4096. / context) * (1024 + 512 + 512 + 1024) * (context - 1) / context;
        double all = bytes_sent("all-to-all", "mixed-fp8", "half", context);
        double blocks = bytes_sent("all-to-all", "mixed-mxfp8", "half", context);

        assert_true(fabs(all - bytes_sent("all-to-all", "mixed-fp8", "fp8", context) - saved) < 1);
        assert_true(bytes_sent("ring", "mixed-fp8", "fp8", context) < bytes_sent("ring", "mixed-fp8", "half", context));
        assert_true(bytes_sent("all-to-all", "mixed-mxfp8", "fp8", context) == blocks);
    }
}

static void test_refused(void **state)
{
    static const char *const told[] = {
        "software: {like: none, flash_attention: true, attention_format: fp8}\nmemory: {precision: mixed-bf16}",
        "software: {like: none, flash_attention: false, attention_format: fp8}\nmemory: {precision: mixed-fp8}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(told); i++) {
        struct scenario scenario;
        struct error err = {0};
        char *text;

        assert_true(asprintf(&text, "model: {transformer: {layers: 2, hidden: 256, heads: 2, sequence: 512, vocabulary: 512}}\n"
                             "cluster: {nodes: 1, gpus_per_node: 1, gpu: h200-141gb}\nbatch: {micro: 1, micro_batches: 1}\n%s\n",
                             told[i]) > 0);
        assert_int_equal(load_text(text, &scenario, &err), -1);
        assert_non_null(strstr(err.messages[0].text, "attention_format"));
        scenario_release(&scenario);
        error_release(&err);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_casts), cmocka_unit_test(test_measured), cmocka_unit_test(test_exchanged),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
