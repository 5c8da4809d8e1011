/* transformer: FLOPs, parameters and activations against the papers' formulas; messages by hand counts. */
#include "model_files.h"

static const struct row {
    const char *name;
    double printed;              /* billions of parameters */
    int tensor;
} rows[] = {
    {"megatron-1.7b", 1.7, 1}, {"megatron-3.6b", 3.6, 2}, {"megatron-7.5b", 7.5, 4}, {"megatron-18b", 18.4, 8},
    {"megatron-39b", 39.1, 8}, {"megatron-76b", 76.1, 8}, {"megatron-145b", 145.6, 8}, {"megatron-310b", 310.1, 8},
    {"megatron-530b", 529.6, 8}, {"megatron-1t", 1008.0, 8},
};

/* Narayanan et al. 2021, equation 2: P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), without the last norm. */
static void narayanan_parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model model = preset(rows[i].name);
        double l = model.transformer->layers, h = model.transformer->hidden, V = 51200, s = 2048;
        double formula = 12 * l * h * h * (1 + 13 / (12 * h) + (V + s) / (12 * l * h));

        assert_close(model_parameters(&model) - 2 * h, formula);
        assert_true(round(formula / 1e8) == round(rows[i].printed * 10));
        assert_close(model.published_parameters, rows[i].printed * 1e9);
    }
}

/* Narayanan et al. 2021, equation 3: 96 B s l h^2 (1 + s/(6 h) + V/(16 l h)) with the blocks recomputed; its appendix
 * gives forward 24 B s h^2 (1 + s/(6 h)) a block and 2 B s h V, the backward twice that. From the kernels of all GPUs
 * of the tensor-parallel group, and from model_flop. */
static void narayanan_flops(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model model = preset(rows[i].name);
        int micro = 3, t = rows[i].tensor;
        struct layers layers = cut(&model, plain(micro, t));
        double B = micro, s = 2048, V = 51200, l = model.transformer->layers, h = model.transformer->hidden;
        double forward, total = 0, block = 24 * s * h * h * (1 + s / (6 * h)), logits = 2 * s * h * V;

        for (size_t k = 0; k < layers.count; k++)
            total += flop_of(&layers.items[k], PHASE_FORWARD) * (layers.items[k].role == LAYER_BLOCK ? 2 : 1) +
                     flop_of(&layers.items[k], PHASE_BACKWARD_INPUT) + flop_of(&layers.items[k], PHASE_BACKWARD_WEIGHT);
        assert_close(total * t, 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h)));
        assert_close(model_flop(&model, NULL, &forward), 72 * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h)));
        assert_close(forward, l * block + logits);
    }
}

/* Korthikanti et al. 2022, table 2. */
static void korthikanti_table_2(void **state)
{
    (void)state;
    static const int shapes[][4] = {{4, 6144, 64, 2048}, {4, 12288, 96, 2048}, {2, 1600, 25, 1024}};

    for (size_t i = 0; i < COUNT(shapes); i++) {
        const int *n = shapes[i];
        struct model model = gpt(n[0], n[1], n[2], n[3]);
        double h = n[1], a = n[2], s = n[3], b = 4, sbh = s * b * h;

        for (int tensor = 1; tensor <= (n[2] % 8 ? 1 : 8); tensor *= 8) {
            struct shard shard = plain(4, tensor);
            double t = tensor, core = 5 * a * s / (h * t);

            assert_close(cut(&model, shard).items[1].activation, sbh * (10 + 24 / t + core));
            assert_close(cut(&model, shard).items[1].checkpoint, 2 * sbh);
            shard.recompute = RECOMPUTE_FULL;
            assert_close(cut(&model, shard).items[1].activation, sbh * (10 + 24 / t + core));
            shard.recompute = RECOMPUTE_SELECTIVE;
            assert_close(cut(&model, shard).items[1].activation, sbh * (10 + 24 / t));
            shard.sequence_parallel = true;
            assert_close(cut(&model, shard).items[1].activation, 34 * sbh / t);
            assert_close(cut(&model, shard).items[1].checkpoint, 2 * sbh / t);
            shard.recompute = RECOMPUTE_NONE;
            assert_close(cut(&model, shard).items[1].activation, sbh / t * (34 + 5 * a * s / h));
        }
    }
}

/* Korthikanti et al. 2022, figure 1, in GiB: the first stage holds the micro-batches of all p stages, interleaving v
 * chunks a share (p - 1)/(p v) more. */
static void korthikanti_figure_1(void **state)
{
    (void)state;
    static const struct { int l, h, a, b, p, v; double baseline, present; } cases[] = {
        {48, 6144, 64, 4, 1, 1, 59.25, 9.5625}, {96, 12288, 96, 1, 8, 3, 66.84375, 12.3515625},
        {105, 20480, 128, 1, 35, 3, 114.0234375, 23.076171875}, {128, 25600, 160, 1, 64, 1, 131.25, 26.5625},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = gpt(cases[i].l, cases[i].h, cases[i].a, 2048);
        struct shard shard = plain(cases[i].b, 8);
        double p = cases[i].p, v = cases[i].v, held = cases[i].l * (v > 1 ? 1 + (p - 1) / (p * v) : 1);
        double GiB = 1073741824;

        assert_close(cut(&model, shard).items[1].activation * held, cases[i].baseline * GiB);
        shard.sequence_parallel = true;
        shard.recompute = RECOMPUTE_SELECTIVE;
        assert_close(cut(&model, shard).items[1].activation * held, cases[i].present * GiB);
    }
}

/* Korthikanti et al. 2022, section 4.3. */
static void first_and_last_activations(void **state)
{
    (void)state;
    struct model model = gpt(2, 1024, 16, 512);
    struct shard shard = plain(2, 4);
    double sbh = 512 * 2 * 1024, logits = 4 * 512.0 * 2 * 51200 / 4;
    struct layers layers = cut(&model, shard);

    assert_int_equal(layers.items[0].role, LAYER_FIRST);
    assert_int_equal(layers.items[3].role, LAYER_LAST);
    assert_close(layers.items[0].activation, sbh);
    assert_close(layers.items[3].activation, 4 * sbh + logits);
    assert_close(layers.items[0].checkpoint, sbh);
    shard.sequence_parallel = true;
    layers = cut(&model, shard);
    assert_close(layers.items[0].activation, sbh / 4);
    assert_close(layers.items[3].activation, sbh + logits);
}

/* Llama 3 8B at one sample, counted by hand: no masks; 8 heads of keys and values of 128; gate, up and product. */
static void llama_activations(void **state)
{
    (void)state;
    struct model model = load_good("preset: llama3-8b");
    struct shard shard = {.micro = 1, .tensor = 8, .dtype = DTYPE_BF16, .sequence_parallel = true};
    double s = 8192, h = 4096, kept = 2 * s / 8 * (4 * h + (4096 + 2 * 1024) + 4096 + 3 * 14336.0);
    double scores = 32 / 8 * s * s;

    assert_close(cut(&model, shard).items[1].activation, kept + 2 * scores);
    shard.dtype = DTYPE_FP32;
    assert_close(cut(&model, shard).items[1].activation, 2 * (kept + 2 * scores));
    model.transformer->ways.flash_attention = true;
    assert_close(cut(&model, shard).items[1].activation, 2 * kept + 4 * 4 * s);
    shard.recompute = RECOMPUTE_SELECTIVE;
    assert_close(cut(&model, shard).items[1].activation, 2 * kept);
}

static void without_dropout(void **state)
{
    (void)state;
    struct model model = load_good("transformer: {layers: 1, hidden: 1024, heads: 16, sequence: 512, vocabulary: 100,"
                                   " dropout: 0}");
    double sbh = 512 * 1024, a_s_h = 16 * 512 / 1024.0;
    struct layers layers = cut(&model, plain(1, 1));

    assert_close(layers.items[1].activation, sbh * (32 + 2 * a_s_h));
    assert_true(layers.items[0].activation == 0);
    for (size_t i = 0; i < layers.items[1].nkernels; i++)
        assert_null(strstr(layers.items[1].kernels[i].name, "dropout"));
}

static void messages_of_the_group(void **state)
{
    (void)state;
    struct model model = gpt(3, 256, 4, 512);
    double sbh = 2 * 512 * 256;
    struct layers layers = cut(&model, plain(2, 2));

    for (size_t i = 0; i < layers.count; i++) {
        bool block = layers.items[i].role == LAYER_BLOCK, first = i == 0, last = i == 4;

        assert_int_equal(layer_sends(&layers.items[i], SENT_SUM, false).forward, block ? 2 : first);
        assert_int_equal(layer_sends(&layers.items[i], SENT_INPUT, false).backward, block ? 2 : last);
        assert_close(layers.items[i].all_reduce_bytes, 2 * sbh);
        assert_true(layers.items[i].boundary == (last ? 0 : 2 * sbh));
    }
    layers = cut(&model, plain(2, 1));
    for (size_t i = 0; i < layers.count; i++)
        for (enum sending what = SENT_SUM; what <= SENT_INPUT; what++) {
            struct sends none = layer_sends(&layers.items[i], what, false);

            assert_int_equal(none.forward + none.backward, 0);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        TEST(narayanan_parameters), TEST(narayanan_flops), TEST(korthikanti_table_2), TEST(korthikanti_figure_1),
        TEST(first_and_last_activations), TEST(llama_activations), TEST(without_dropout), TEST(messages_of_the_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
