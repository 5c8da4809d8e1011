/* Model FLOPs are one number a model: a closed form in its shape, windows, chunks and documents, whatever software runs it.
 * Hardware FLOPs are what the software's kernels compute, which is as much or more. */
#include "random_plan.h"
#include "trials.h"

#include "files/data.h"

enum { MODELS = 160 };

struct shape {
    int layers, hidden, heads, kv_heads, ffn, sequence, vocabulary, window, documents, full_every, experts, each;
    bool chunked, swiglu;
};

static struct shape random_shape(uint64_t *seed)
{
    struct shape shape = {
        .layers = 1 + random_below(seed, 9), .heads = PICK_INT(seed, 4, 8, 16), .sequence = 256 << random_below(seed, 4),
        .vocabulary = 128 * (1 + random_below(seed, 400)), .full_every = random_below(seed, 5),
        .swiglu = random_below(seed, 2), .experts = random_below(seed, 3) ? 0 : 8, .each = 1 + random_below(seed, 3),
    };

    shape.hidden = shape.heads * PICK_INT(seed, 32, 64, 128);
    shape.kv_heads = shape.heads / PICK_INT(seed, 1, 2, 4);
    shape.ffn = 128 * (1 + random_below(seed, 24));
    shape.chunked = random_below(seed, 2);
    /* a chunk divides the sample or holds it; a window may have any width */
    shape.window = !random_below(seed, 4) ? 0 : shape.chunked ? 32 << random_below(seed, 8) : 1 + random_below(seed, 5000);
    shape.documents = random_below(seed, 3) ? 0 : shape.sequence >> (1 + random_below(seed, 4));
    return shape;
}

/* Of one sample, without the attention core: 6 FLOP a weight that a token meets (Kaplan et al. 2020). The core: 12 FLOP for
 * each value of a head, query and key that the query may have (Chowdhery et al. 2022, appendix B: 12 L H Q T a token). */
static double closed_form(const struct shape *shape)
{
    double h = shape->hidden, size = h / shape->heads, mlp = (shape->swiglu ? 3 : 2) * h * shape->ffn, keys = 0;
    double block = 2 * h * h + 2 * h * size * shape->kv_heads + (shape->experts ? shape->each * mlp + h * shape->experts : mlp);
    double whole = shape->documents ? fmin(shape->documents, shape->sequence) : shape->sequence;

    for (int i = 0; i < shape->layers; i++) {
        bool full = !shape->window || (shape->full_every && (i + 1) % shape->full_every == 0);

        keys += full ? whole : fmin(whole, shape->window);
    }
    return shape->sequence * (6 * (shape->layers * block + h * shape->vocabulary) + 12 * keys * h);
}

static char *shape_text(const struct shape *shape)
{
    char window[80] = "", experts[80] = "", *text = NULL;

    if (shape->window)
        snprintf(window, sizeof window, ", window: %d, chunked: %s, full_every: %d", shape->window,
                 shape->chunked ? "true" : "false", shape->full_every);
    if (shape->experts)
        snprintf(experts, sizeof experts, ", experts: %d, experts_per_token: %d", shape->experts, shape->each);
    assert_true(asprintf(&text,
        "model: {transformer: {layers: %d, hidden: %d, heads: %d, kv_heads: %d, ffn: %d, sequence: %d, vocabulary: %d, "
        "mlp: %s, dropout: 0%s%s}}\ncluster: {platform: dgx-a100, nodes: 1}\nmemory: {enforce: false}\n"
        "simulation: {engine: fast}\n", shape->layers, shape->hidden, shape->heads, shape->kv_heads, shape->ffn,
        shape->sequence, shape->vocabulary, shape->swiglu ? "swiglu" : "gelu", window, experts) >= 0);
    return text;
}

/* False: this release does not run the model. */
static bool check(const struct shape *shape, const char *text, const char *software, int *fused)
{
    double expected = closed_form(shape) * 8;
    struct simulated simulated;
    struct error err = {0};
    bool runs;

    memset(&simulated, 0, sizeof simulated);
    assert_true(asprintf(&simulated.text, "%sbatch: {global: 8, micro: 1%s%.0d}\nsoftware: %s\n", text,
                         shape->documents ? ", documents: " : "", shape->documents, software) >= 0);
    runs = !load_text(simulated.text, &simulated.scenario, &err) && !simulated_run(&simulated, &err);
    if (runs) {
        const struct metrics *m = &simulated.run.metrics;

        expect_near("model FLOPs", m->model_flop, expected, simulated.text);
        if (!(m->hardware_flop >= expected * (1 - 1e-9)))
            fail_msg("hardware FLOPs are %g of %g:\n%s", m->hardware_flop, expected, simulated.text);
        *fused += simulated.scenario.model.transformer->ways.flash_attention;
    }
    error_release(&err);
    simulated_release(&simulated);
    return runs;
}

static void windows_and_software(void **state)
{
    struct arena arena = {0};
    struct error err = {0};
    const char **names = data_names(&arena, "platforms/software", &err);
    int runs = 0, fused = 0, count = 0;

    (void)state;
    assert_non_null(names);
    while (names[count])
        count++;
    EACH_TRIAL(i, MODELS) {
        uint64_t seed = i * 0x9FB21C651E98DF25u;
        struct shape shape = random_shape(&seed);
        char *text = shape_text(&shape);

        runs += check(&shape, text, "none", &fused) + check(&shape, text, "megatron-core", &fused);
        for (int k = 0; k < 4; k++)
            runs += check(&shape, text, names[random_below(&seed, count)], &fused);
        free(text);
    }
    print_message("%d runs, %d of them with fused attention\n", runs, fused);
    assert_true(runs - fused > trials(MODELS) / 2 && fused > trials(MODELS));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows_and_software)};

    return cmocka_run_group_tests_name("model_flop", tests, NULL, NULL);
}
