/* Each software file goes with every scenario and with every model. */
#include "simulated.h"
#include "trials.h"

#include "files/data.h"
#include "hardware/cluster.h"
#include "model/transformer.h"

/* Every file goes with every schedule, stage of ZeRO and format; and the resolved scenario reads back to the same. */
static void check_file(const char *name, const char *rest)
{
    struct scenario scenario, again;
    struct error err = {0};
    struct arena arena = {0};
    struct node *dump;
    char *text, *printed;
    size_t size;
    FILE *out = open_memstream(&printed, &size);

    assert_true(asprintf(&text, "model: {transformer: {layers: 8, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, "
                         "dropout: 0}}\ncluster: {platform: dgx-a100, nodes: 4}\nbatch: {global: 64}\n"
                         "software: %s\n%s", name, rest) > 0);
    if (load_text(text, &scenario, &err))
        fail_at(text, &err);
    dump = scenario_dump(&arena, &scenario);
    node_print(dump, out);
    assert_int_equal(fclose(out), 0);
    if (load_text(printed, &again, &err))
        fail_at(printed, &err);
    if (!node_equal(scenario_dump(&arena, &again), dump))
        fail_msg("%s, %s: it reads back as another scenario:\n%s", name, rest, printed);
    scenario_release(&scenario);
    scenario_release(&again);
    arena_release(&arena);
    free(text);
    free(printed);
}

static void test_every_file(void **state)
{
    static const char *const memories[] = {
        "{precision: fp32}", "{precision: mixed-fp16, recompute: full}",
        "{precision: mixed-bf16, recompute: selective}",
    };
    struct arena arena = {0};
    struct error none = {0};
    const char **names = data_names(&arena, "platforms/software", &none);
    int files = 0;

    (void)state;
    for (; names[files]; files++)
        for (size_t m = 0; m < COUNT(memories); m++) {
            char rest[256];

            for (int zero = 0; zero <= 3; zero++) {
                snprintf(rest, sizeof rest, "strategy: {zero: %d}\nmemory: %s\n", zero, memories[m]);
                if (tried())
                    check_file(names[files], rest);
            }
            for (size_t i = 0; schedule_at(i); i++)
                if (!schedule_at(i)->asynchronous && tried()) {
                    snprintf(rest, sizeof rest, "strategy: {schedule: %s, pipeline: 2, tensor: 2}\nmemory: %s\n",
                             schedule_at(i)->name, memories[m]);
                    check_file(names[files], rest);
                }
        }
    assert_true(files > 10);
    arena_release(&arena);
}

/* Every file goes with every model that computes from samples: what it says of products that this model does not have
 * means nothing. */
static void test_every_model(void **state)
{
    struct arena arena = {0};
    struct error none = {0};
    const char **files = data_names(&arena, "platforms/software", &none);
    const char **models = data_names(&arena, "scenarios/models", &none);
    int loads = 0;

    (void)state;
    for (size_t i = 0; files[i]; i++)
        for (size_t m = 0; models[m]; m++) {
            bool given = strstr(models[m], "pipedream-") != NULL;    /* times of a minibatch: no samples */
            const char *text = arena_printf(
                &arena, "model: {preset: %s}\ncluster: {platform: dgx-h100, nodes: 4}\nbatch: {%s}\n"
                "memory: {precision: mixed-bf16, enforce: false}\nsoftware: %s\n", models[m],
                given ? "micro_batches: 4" : "global: 64", files[i]);
            struct scenario scenario;
            struct error err = {0};

            loads++;
            if (!tried())
                continue;
            if (load_text(text, &scenario, &err))
                fail_at(text, &err);
            scenario_release(&scenario);
        }
    assert_true(loads > 300);
    arena_release(&arena);
}

/* Libraries of fused attention that need compute capability 8.0: on every platform, scores are stored below it. */
static void test_fused_attention(void **state)
{
    static const char *const software[] = {"megatron-core", "megatron-core-2026", "nemo", "flash-attn-training", "nanotron"};
    struct arena arena = {0};
    struct error none = {0};
    const char **platforms = data_names(&arena, "platforms", &none);
    int fused[2] = {0};

    (void)state;
    for (size_t i = 0; platforms[i]; i++)
        for (size_t k = 0; k < COUNT(software); k++) {
            struct scenario scenario;
            struct error err = {0};
            double capability;
            bool flash;

            if (!strcmp(platforms[i], "ideal"))
                continue;
            if (load_text(arena_printf(&arena, "model: {transformer: {layers: 8, hidden: 64, heads: 4, sequence: 32, vocabulary: "
                                       "128}}\ncluster: {platform: %s, nodes: 1}\nbatch: {micro: 1, micro_batches: 1}\nmemory: {precision: fp32}\n"
                                       "software: %s\n", platforms[i], software[k]), &scenario, &err))
                fail_at(platforms[i], &err);
            capability = cluster_sheet(&scenario.cluster, 0)->compute_capability;
            flash = scenario.model.transformer->ways.flash_attention;
            fused[flash]++;
            if (flash != (capability == 0 || capability >= 8))
                fail_msg("%s on %s, whose compute capability is %g: fused %d", software[k], platforms[i], capability, flash);
            scenario_release(&scenario);
        }
    assert_true(fused[false] >= 10 && fused[true] >= 100);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_attention),
        cmocka_unit_test(test_every_file), cmocka_unit_test(test_every_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
