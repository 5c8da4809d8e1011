/* transformer_kernels: shapes of products, FLOPs and traffic of all kernels of a layer, counted by hand. */
#include "model_files.h"

static const struct kernel *find(const struct layer *layer, const char *name, enum phase phase)
{
    for (size_t i = 0; i < layer->nkernels; i++)
        if (strcmp(layer->kernels[i].name, name) == 0 && layer->kernels[i].phase == phase)
            return &layer->kernels[i];
    fail_msg("no kernel '%s'", name);
    return NULL;
}

static void expect_product(const struct layer *layer, const char *name, enum phase phase, double batch, double m,
                           double n, double k)
{
    const struct kernel *kernel = find(layer, name, phase);

    assert_int_equal(kernel->kind, KERNEL_MATMUL);
    assert_true(kernel->batch == batch && kernel->m == m && kernel->n == n && kernel->k == k);
    assert_true(kernel->flop == 2 * batch * m * n * k || strcmp(name, "logits") == 0);
    assert_true(kernel->bytes == 2 * batch * (m * k + k * n + m * n));
    assert_int_equal(kernel->launches, 1);
}

static void shapes_of_products(void **state)
{
    (void)state;
    struct model model = load_good("preset: llama3-8b");
    struct layers layers = cut(&model, (struct shard){.micro = 2, .tensor = 4, .dtype = DTYPE_BF16});
    const struct layer *block = &layers.items[1], *last = &layers.items[33];
    double tokens = 2 * 8192;

    assert_int_equal(layers.count, 34);
    expect_product(block, "qkv", PHASE_FORWARD, 1, tokens, 1024 + 2 * 256, 4096);
    expect_product(block, "qkv", PHASE_BACKWARD_INPUT, 1, tokens, 4096, 1024 + 2 * 256);
    expect_product(block, "qkv", PHASE_BACKWARD_WEIGHT, 1, 1024 + 2 * 256, 4096, tokens);
    expect_product(block, "scores", PHASE_FORWARD, 2 * 8, 8192, 8192, 128);
    expect_product(block, "scores", PHASE_BACKWARD_INPUT, 2 * 8, 8192, 128, 8192);
    expect_product(block, "values", PHASE_FORWARD, 2 * 8, 8192, 128, 8192);
    expect_product(block, "values", PHASE_BACKWARD_INPUT, 2 * 8, 8192, 8192, 128);
    expect_product(block, "projection", PHASE_FORWARD, 1, tokens, 4096, 1024);
    expect_product(block, "mlp-up", PHASE_FORWARD, 1, tokens, 2 * 3584, 4096);
    expect_product(block, "mlp-down", PHASE_FORWARD, 1, tokens, 4096, 3584);
    expect_product(last, "logits", PHASE_FORWARD, 1, tokens, 251 * 128, 4096);
    assert_close(find(last, "logits", PHASE_FORWARD)->flop, 2 * tokens * 32064 * 4096);
    model = load_good("{preset: llama3-8b, with: {fused_kernels: false}}");
    layers = cut(&model, (struct shard){.micro = 2, .tensor = 4, .dtype = DTYPE_BF16});
    expect_product(&layers.items[33], "logits", PHASE_FORWARD, 1, tokens, 32064, 4096);
    assert_true(flop_of(block, PHASE_BACKWARD_INPUT) + flop_of(block, PHASE_BACKWARD_WEIGHT) ==
                2 * flop_of(block, PHASE_FORWARD));
}

/* A loop that measures reads the logits twice more: converted to fp32, read three times, and the
 * logarithms of their softmax written. */
static void metrics(void **state)
{
    (void)state;
    for (int measured = 0; measured <= 1; measured++) {
        struct model model = preset("llama3-8b");
        struct layers layers = cut(&model, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16,
                                                          .measured = measured});
        const struct layer *last = &layers.items[33];
        int found = 0;

        for (size_t i = 0; i < last->nkernels; i++)
            if (!strcmp(last->kernels[i].name, "metric")) {
                assert_close(last->kernels[i].bytes, 2 * 8192.0 * 128256 * (2 + 4 + 3 * 4 + 4));
                found++;
            }
        assert_int_equal(found, 2 * measured);
    }
}

/* Plain PyTorch: as many FLOPs and parameters, in more kernels and tensors. */
static void unfused_traffic(struct model model, struct shard shard, double x, double scores)
{
    struct layers fused = cut(&model, shard), layers;
    struct transformer shape = *model.transformer;
    const struct layer *block;

    shape.ways.fused_kernels = shape.ways.fused_qkv = false;
    model.transformer = &shape;
    layers = cut(&model, shard);
    block = &layers.items[1];
    for (int phase = 0; phase < PHASE_UPDATE; phase++)
        assert_close(flop_of(block, (enum phase)phase), flop_of(&fused.items[1], (enum phase)phase));
    assert_close(block->parameters, fused.items[1].parameters);
    assert_int_equal(block->ntensors, fused.items[1].ntensors + 4);      /* Q, K, V: a weight and a bias each */
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        assert_close(find(block, "scale", (enum phase)phase)->bytes, 4 * scores);
        assert_close(find(block, "mask", (enum phase)phase)->bytes, 4 * scores);
        assert_close(find(block, "heads", (enum phase)phase)->bytes, 2 * x);           /* each of three copies */
        assert_close(find(block, "heads", (enum phase)phase)->launches, 3);
    }
    assert_close(find(block, "dropout", PHASE_FORWARD)->bytes, 5 * x);
    assert_close(find(block, "mlp-residual", PHASE_FORWARD)->bytes, 6 * x);
    assert_close(find(block, "qkv-sum", PHASE_BACKWARD_INPUT)->bytes, 6 * x);          /* each of two additions */
    assert_close(find(block, "qkv-sum", PHASE_BACKWARD_INPUT)->launches, 2);
    expect_product(block, "v", PHASE_FORWARD, 1, 1024, 128, 256);
}

/* Traffic of element-wise kernels, counted by hand for 1024 tokens of width 256 with 4 heads, 2-byte values. */
static void traffic(void **state)
{
    (void)state;
    struct model model = gpt(1, 256, 4, 512);
    struct shard shard = plain(2, 2);
    struct layers layers = cut(&model, shard);
    const struct layer *block = &layers.items[1];
    double x = 1024 * 256, scores = 2 * 2 * 512.0 * 512;

    assert_close(find(block, "mlp-norm", PHASE_FORWARD)->bytes, 4 * x);
    assert_close(find(block, "mlp-norm", PHASE_BACKWARD_INPUT)->bytes, 6 * x);
    assert_close(find(block, "mlp-residual", PHASE_FORWARD)->bytes, 7 * x);
    assert_close(find(block, "softmax", PHASE_FORWARD)->bytes, 3 * scores);     /* causal: half of them is read */
    assert_close(find(block, "softmax", PHASE_BACKWARD_INPUT)->bytes, 4 * scores);
    assert_close(find(block, "attention-dropout", PHASE_FORWARD)->bytes, 5 * scores);
    assert_close(find(block, "gelu", PHASE_FORWARD)->bytes, 2 * 2 * 1024 * 512);
    assert_close(find(&layers.items[0], "embedding", PHASE_FORWARD)->bytes, 4 * x);
    assert_close(kernel_sums(&layers.items[2], "cross-entropy", PHASE_FORWARD).bytes, 38 * 1024 * 25600.0);
    assert_close(kernel_sums(&layers.items[2], "cross-entropy", PHASE_BACKWARD_INPUT).bytes, 14 * 1024 * 25600.0);
    assert_close(find(block, "transpose", PHASE_FORWARD)->bytes, 2 * x);
    assert_close(find(block, "qkv-concatenate", PHASE_BACKWARD_INPUT)->bytes, 3 * 2 * x);
    assert_close(find(block, "qkv-bias", PHASE_BACKWARD_WEIGHT)->bytes, 3 * x);
    assert_close(find(block, "projection-bias", PHASE_BACKWARD_WEIGHT)->bytes, 2 * x);
    assert_close(find(block, "mlp-up-bias", PHASE_BACKWARD_WEIGHT)->bytes, 4 * x);
    assert_close(find(block, "mlp-down-bias", PHASE_BACKWARD_WEIGHT)->bytes, 2 * x);
    for (size_t i = 0; i < block->nkernels; i++) {
        const struct kernel *kernel = &block->kernels[i];
        bool core = !strcmp(kernel->name, "scores") || !strcmp(kernel->name, "softmax") ||
                    !strcmp(kernel->name, "attention-dropout") || !strcmp(kernel->name, "values");

        assert_int_equal(in_core(block, kernel), core);
        assert_true(kernel->bytes > 0);
        assert_true(kernel->phase != PHASE_UPDATE);
    }
    unfused_traffic(model, shard, x, scores);
    shard.sequence_parallel = true;
    layers = cut(&model, shard);
    assert_close(find(&layers.items[1], "mlp-norm", PHASE_FORWARD)->bytes, 2 * x);
    assert_close(find(&layers.items[1], "mlp-residual", PHASE_FORWARD)->bytes, 3.5 * x);
    assert_close(find(&layers.items[1], "gelu", PHASE_FORWARD)->bytes, 2 * 2 * 1024 * 512);
}

/* Norms after both halves: as much time as the norms before them, an input more each that is kept, and a result of the last
 * product that a recomputation cannot leave out. */
static void post_norms_count(void **state)
{
    (void)state;
    struct model with = load_good("{preset: llama3-8b, with: {post_norms: true}}"), without = preset("llama3-8b");
    struct layers after = cut(&with, plain(2, 1)), before = cut(&without, plain(2, 1));
    double hidden = 2 * 2.0 * with.sequence * 4096;

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        double norm = find(&before.items[1], "mlp-norm", (enum phase)phase)->bytes;

        assert_close(find(&after.items[1], "attention-post-norm", (enum phase)phase)->bytes, norm);
        assert_close(find(&after.items[1], "mlp-post-norm", (enum phase)phase)->bytes, norm);
    }
    assert_close(after.items[1].activation, before.items[1].activation + 2 * hidden);
    assert_true(layer_has_tail(&before.items[1]) && !layer_has_tail(&after.items[1]));
}

/* Norms of latent vectors are computed as all norms are: in plain PyTorch an operation a kernel, and a copy in fp32 is kept. */
static void latent_norms(void **state)
{
    (void)state;
    static const char text[] = "transformer: {layers: 1, hidden: 512, heads: 8, sequence: 256, vocabulary: 1000, positions: 0, norm: "
                               "rmsnorm, kv_rank: 128, q_rank: 192, rope_head_size: 32, fused_norm: %s}";
    struct model one = load_good(arena_printf(&arena, text, "true")), plain_norms = load_good(arena_printf(&arena, text, "false"));
    struct layers fused = cut(&one, plain(2, 1)), apart = cut(&plain_norms, plain(2, 1));
    double values = 2 * 256 * 128;

    assert_close(kernel_bytes(&fused.items[1], "kv-norm", PHASE_FORWARD), 4 * values);
    assert_close(kernel_bytes(&apart.items[1], "kv-norm", PHASE_FORWARD), (12 + 8 + 4 + 12) * values);
    assert_close(kernel_bytes(&apart.items[1], "kv-norm", PHASE_BACKWARD_INPUT), (12 + 12 + 4 + 56 + 8) * values);
    /* copies in fp32: of the inputs of both norms of the block, and of both latent vectors */
    assert_close(apart.items[1].activation - fused.items[1].activation, 4 * 2 * 256 * (2 * 512 + 128 + 192.0));
}

/* The same mathematics; the backward computes the scores once more, which model_flop does not count, and it does count
 * those above the diagonal, which a causal kernel leaves out: all but half and half a block of 128. */
static void flash_attention_kernels(void **state)
{
    (void)state;
    struct model model = gpt(1, 256, 4, 512);
    struct layers plain_layers = cut(&model, plain(2, 2)), flash;
    double flop = model_flop(&model, NULL, NULL), product = 2 * (2 * 2) * 512.0 * 512 * 64, share = 320.0 / 512;
    const struct kernel *kernel;

    model.transformer->ways.flash_attention = true;
    flash = cut(&model, plain(2, 2));
    assert_close(model_flop(&model, NULL, NULL), flop);
    assert_close(flop_of(&flash.items[1], PHASE_FORWARD),
                 flop_of(&plain_layers.items[1], PHASE_FORWARD) - 2 * product * (1 - share));
    kernel = find(&flash.items[1], "flash-attention", PHASE_FORWARD);
    assert_close(kernel->flop, 2 * product * share);
    assert_close(kernel->bytes, 4 * 2 * 1024 * 128.0 + 4 * 2 * 2 * 512);
    assert_true(in_core(&flash.items[1], kernel));
    assert_close(find(&flash.items[1], "flash-attention", PHASE_BACKWARD_INPUT)->flop, 5 * product * share);
    model.transformer->causal = false;
    flash = cut(&model, plain(2, 2));
    assert_close(model_flop(&model, NULL, NULL), flop);
    assert_close(find(&flash.items[1], "flash-attention", PHASE_FORWARD)->flop, 2 * product);
}

/* Products of weights in blocks read a byte an operand and are cast before: inputs, weights and the output's gradient,
 * each read once and written twice, and no sums of biases. All else, and the FLOPs, are as without. */
static void products_in_fp8(void **state)
{
    (void)state;
    struct model model = gpt(1, 256, 4, 512);
    struct shard shard = plain(2, 2);
    struct layers half = cut(&model, shard), eight, kept;
    const struct kernel *kernel, *other;
    double tokens = 1024;

    shard.fp8 = true;
    shard.narrow = DTYPE_FP8;
    eight = cut(&model, shard);
    kernel = find(&eight.items[1], "mlp-up", PHASE_BACKWARD_WEIGHT);
    other = find(&half.items[1], "mlp-up", PHASE_BACKWARD_WEIGHT);
    assert_true(kernel->dtype == DTYPE_FP8 && kernel->layout == LAYOUT_NT && other->layout == LAYOUT_TN);
    assert_close(kernel->bytes, tokens * (256 + 512) + 2 * 256 * 512);
    assert_close(find(&eight.items[1], "cast-weights", PHASE_FORWARD)->bytes, 4 * 256 * 384.0);
    shard.narrow = DTYPE_NVFP4; /* half a byte and a sixteenth; read twice, as the whole tensor has a scale too */
    kept = cut(&model, shard);
    kernel = find(&kept.items[1], "mlp-up", PHASE_FORWARD);
    assert_true(kernel->dtype == DTYPE_NVFP4);
    assert_close(find(&kept.items[1], "cast-weights", PHASE_FORWARD)->bytes, (2 * 2 + 2 * 0.5625) * 256 * 384.0);
    assert_true(kept.items[1].activation < eight.items[1].activation);
    shard.narrow = DTYPE_FP8;
    shard.fp8_kept = true;
    kept = cut(&model, shard);
    shard.fp8_kept = false;
    assert_int_equal(kept.items[1].nkernels + 4, eight.items[1].nkernels);       /* of four products */
    for (size_t i = 0; i < kept.items[1].nkernels; i++)
        assert_string_not_equal(kept.items[1].kernels[i].name, "cast-weights");
    for (size_t i = 0; i < eight.items[1].nkernels; i++)         /* casts sum the gradients of biases as well */
        assert_null(strstr(eight.items[1].kernels[i].name, "-bias"));
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_WEIGHT; phase++)
        assert_close(flop_of(&eight.items[1], (enum phase)phase), flop_of(&half.items[1], (enum phase)phase));
    assert_true(find(&eight.items[2], "logits", PHASE_FORWARD)->dtype == half.items[2].kernels[0].dtype);
    /* the inputs of QKV and MLP, and on two GPUs the inputs of the projection and of the second product */
    assert_close(half.items[1].activation - eight.items[1].activation, tokens * (2 * 256 + (256 + 1024) / 2));
}

/* Experts share the rows of one grouped product, whose rows are k in the gradient of the weights, in fp8 too. Each
 * expert has its own weights. A grouped product has the FLOPs of one product of each expert with its rows. */
static void products_of_experts(void **state)
{
    (void)state;
    struct model model = load_good("{preset: mixtral-8x7b}");
    struct shard shard = {.micro = 2, .tensor = 1, .dtype = DTYPE_BF16, .dispatch_group = 4};
    double shared = 2 * 2 * 32768, h = 4096, ffn = 14336;      /* top-2 of two samples; two experts on a GPU */

    for (int narrow = 0; narrow <= 1; narrow++) {
        double operand = narrow ? 1 : 2;
        struct layers layers;
        const struct kernel *up, *weight, *down;

        shard.fp8 = narrow, shard.narrow = DTYPE_FP8;
        layers = cut(&model, shard);
        up = find(&layers.items[1], "expert-up", PHASE_FORWARD);
        weight = find(&layers.items[1], "expert-up", PHASE_BACKWARD_WEIGHT);
        down = find(&layers.items[1], "expert-down", PHASE_BACKWARD_INPUT);
        assert_true(up->kind == KERNEL_GROUPED && weight->kind == KERNEL_GROUPED && down->kind == KERNEL_GROUPED);
        assert_true(up->batch == 2 && up->m == shared && up->n == 2 * ffn && up->k == h);
        assert_true(weight->batch == 2 && weight->m == 2 * ffn && weight->n == h && weight->k == shared);
        assert_true(down->batch == 2 && down->m == shared && down->n == ffn && down->k == h);
        assert_true(up->layout == LAYOUT_NT && weight->layout == LAYOUT_TN && down->layout == LAYOUT_NN);
        assert_close(up->flop, 2 * (2 * (shared / 2) * 2 * ffn * h));
        assert_close(up->bytes, operand * (shared * h + 2 * h * 2 * ffn) + 2 * shared * 2 * ffn);
        assert_close(weight->bytes, operand * shared * (2 * ffn + h) + 2 * 2 * 2 * ffn * h);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        TEST(shapes_of_products), TEST(metrics), TEST(traffic), TEST(post_norms_count), TEST(latent_norms), TEST(flash_attention_kernels), TEST(products_in_fp8),
        TEST(products_of_experts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
