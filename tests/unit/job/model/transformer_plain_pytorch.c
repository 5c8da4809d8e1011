/* A Llama and a BERT in plain PyTorch: the traffic of kernels that fused ones spare, counted operation by operation,
 * and what the Llama keeps for the backward. */
#include "model_files.h"

enum { TOKENS = 2 * 512, HIDDEN = 256, QUERY = 256, KEY = 128, FFN = 512 };

static struct model biased_llama(const char *more)
{
    return load_good(arena_printf(&arena, "transformer: {layers: 1, hidden: %d, heads: 4, kv_heads: 2, ffn: %d,"
                                  " sequence: 512, vocabulary: 64, positions: 0, norm: rmsnorm, mlp: swiglu,"
                                  " qkv_bias: false, dropout: 0, flash_attention: true%s}", HIDDEN, FFN, more));
}

static struct model llama(const char *more)
{
    return biased_llama(arena_printf(&arena, ", bias: false%s", more));
}

static struct layer block(struct model *model, enum dtype dtype)
{
    return cut(model, (struct shard){.micro = 2, .tensor = 1, .dtype = dtype}).items[1];
}

static int launches(const struct layer *layer, const char *name, enum phase phase)
{
    return kernel_sums(layer, name, phase).launches;
}

/* Reads and writes of every operation, of h bytes in half precision and 4 in full: x.float(), pow, mean, mul, to half,
 * mul; the gradients of mul (product, and product and sum), to fp32, mul (product, and product and sum), mean, pow
 * (copy, product, product), their sum, to half. */
static void expect_norm(const struct layer *layer, const char *name, double h)
{
    bool converts = h < 4;
    double forward = converts * (h + 4) + (4 + 4) + 4 + (4 + 4) + converts * (4 + h) + (h + h);
    double backward = (h + h) + (h + h + h) + h + converts * (h + 4) + (4 + 4) + (4 + 4 + 4) + 4 + 4 + (4 + 4) +
                      (4 + 4) + (4 + 4 + 4) + (4 + 4 + 4) + converts * (4 + h);

    assert_close(kernel_bytes(layer, name, PHASE_FORWARD), TOKENS * HIDDEN * forward);
    assert_close(kernel_bytes(layer, name, PHASE_BACKWARD_INPUT), TOKENS * HIDDEN * backward);
    assert_close(unvectorized_values(layer, name, PHASE_FORWARD), TOKENS * HIDDEN * (2. * converts + 2));
    assert_close(unvectorized_values(layer, name, PHASE_BACKWARD_INPUT), TOKENS * HIDDEN * (2. * converts + 3));
    /* and the kernels of one value a row: + epsilon, rsqrt; the third power of its result, times the gradient, times
     * -1/2 */
    assert_int_equal(launches(layer, name, PHASE_FORWARD), 2 * converts + 4 + 2);
    assert_int_equal(launches(layer, name, PHASE_BACKWARD_INPUT), 2 * converts + 3 + 3 + 1 + 3 + 1 + 3);
}

static void operations(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_FP32};
    struct model model = llama(", fused_kernels: false");

    for (size_t i = 0; i < COUNT(dtypes); i++) {
        double h = dtype_bytes(dtypes[i]), converts = h < 4 ? 2 * (h + 4) : 0;
        struct layer layer = block(&model, dtypes[i]);

        expect_norm(&layer, "attention-norm", h);
        expect_norm(&layer, "mlp-norm", h);
        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
            assert_close(kernel_bytes(&layer, "rotary", (enum phase)phase),
                         TOKENS * (QUERY + KEY) * (converts + 4 + 4));
            assert_close(kernel_bytes(&layer, "groups", (enum phase)phase), TOKENS * h * (2 * KEY + 2 * QUERY));
            assert_int_equal(launches(&layer, "rotary", (enum phase)phase), h < 4 ? 6 : 2);
            assert_int_equal(launches(&layer, "groups", (enum phase)phase), 2);
        }
        assert_close(kernel_bytes(&layer, "swiglu", PHASE_FORWARD), TOKENS * FFN * h * (2 + 3));
        assert_close(kernel_bytes(&layer, "swiglu", PHASE_BACKWARD_INPUT), TOKENS * FFN * h * (3 + 3 + 3));
        assert_int_equal(launches(&layer, "swiglu", PHASE_FORWARD), 2);
        assert_int_equal(launches(&layer, "swiglu", PHASE_BACKWARD_INPUT), 3);
    }
}

/* Reads and writes of every operation that turns queries and keys, of h bytes in half precision and 4 in full.
 * Halves: times cosine; minus a half; both halves together; times sine; sum. Backward: times cosine; times sine;
 * minus a half; of each half zeros and a copy of it; two sums.
 * Matrices: to fp32; times a row of two matrices, which writes twice as much; sums of two; to half. */
static void rotations(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_FP32};
    struct model halves = llama(", rotary: halves"), matrices = llama(", rotary: matrices");
    struct model complex = llama(", rotary: complex");
    double values = TOKENS * (QUERY + KEY);

    for (size_t i = 0; i < COUNT(dtypes); i++) {
        double h = dtype_bytes(dtypes[i]), converts = h < 4;
        struct layer layer = block(&halves, dtypes[i]);

        assert_close(kernel_bytes(&layer, "rotary", PHASE_FORWARD),
                     values * ((h + h) + (h + h) / 2 + (h + h) + (h + h) + (h + h + h)));
        assert_close(kernel_bytes(&layer, "rotary", PHASE_BACKWARD_INPUT),
                     values * ((h + h) + (h + h) + (h + h) / 2 + 2 * (h + (h + h) / 2) + 2 * (h + h + h)));
        assert_close(unvectorized_values(&layer, "rotary", PHASE_FORWARD), values * (1 + 0.5 + 1 + 1 + 1));
        assert_close(unvectorized_values(&layer, "rotary", PHASE_BACKWARD_INPUT), values * (2 + 0.5 + 2 * 0.5 + 1));
        assert_int_equal(launches(&layer, "rotary", PHASE_FORWARD), 2 * 5);
        assert_int_equal(launches(&layer, "rotary", PHASE_BACKWARD_INPUT), 2 * (2 + 1 + 2 * 2 + 2));
        layer = block(&matrices, dtypes[i]);
        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
            assert_close(kernel_bytes(&layer, "rotary", (enum phase)phase),
                         values * (converts * 2 * (h + 4) + (4 + 2 * 4) + (2 * 4 + 4)));
            assert_close(unvectorized_values(&layer, "rotary", (enum phase)phase), values * (2 * converts + 2 + 2));
            assert_int_equal(launches(&layer, "rotary", (enum phase)phase), 2 * (2 * (int)converts + 2));
        }
        layer = block(&complex, dtypes[i]);
        assert_close(kernel_bytes(&layer, "rotary", PHASE_FORWARD), values * (converts * 2 * (h + 4) + 4 + 4));
        assert_close(unvectorized_values(&layer, "rotary", PHASE_FORWARD), values * (2 * converts + 0.5));
    }
}

/* A norm of a copy of its input in fp32: x to fp32; x read and y written; dy and x read and dx written, in fp32; dx to
 * half. Two copies of four bytes are kept instead of two inputs of two. In fp32 nothing is converted. */
static void widened(void **state)
{
    (void)state;
    struct model narrow = llama(""), wide = llama(", widened_norms: true");
    struct layer one = block(&narrow, DTYPE_BF16), layer = block(&wide, DTYPE_BF16), whole = block(&wide, DTYPE_FP32);
    double values = TOKENS * HIDDEN;

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        assert_close(kernel_bytes(&layer, "norm-convert", (enum phase)phase), 2 * values * (2 + 4));
        assert_close(kernel_bytes(&whole, "norm-convert", (enum phase)phase), -1);
    }
    assert_close(kernel_bytes(&layer, "mlp-norm", PHASE_FORWARD), values * (4 + 2));
    assert_close(kernel_bytes(&layer, "mlp-norm", PHASE_BACKWARD_INPUT), values * (2 + 4 + 4));
    assert_close(layer.activation, one.activation + 2 * values * (4 - 2));
}

/* Single keys of software: a product for the gate, whose input's gradients are added; keys and values of groups that
 * are repeated even with fused kernels, and kept so; a mask that is multiplied. */
static void apart(void **state)
{
    (void)state;
    struct model all = llama(""), gate = llama(", fused_gate: false"), groups = llama(", repeated_groups: true");
    const char *const decoder = "transformer: {layers: 1, hidden: 256, heads: 4, sequence: 512, vocabulary: 64,"
                                " fused_kernels: false%s}";
    struct model mask = load_good(arena_printf(&arena, decoder, ", multiplied_mask: true"));
    struct model filled = load_good(arena_printf(&arena, decoder, ""));
    struct layer whole = block(&all, DTYPE_BF16), layer = block(&gate, DTYPE_BF16);
    double scores = 2 * 4 * 512.0 * 512;

    assert_int_equal(launches(&whole, "mlp-up", PHASE_FORWARD), 1);
    assert_int_equal(launches(&layer, "mlp-up", PHASE_FORWARD), 2);
    assert_close(kernels_flop(&layer), kernels_flop(&whole));
    assert_close(kernel_bytes(&layer, "gate-sum", PHASE_BACKWARD_INPUT), 3 * 2 * TOKENS * HIDDEN);
    layer = block(&groups, DTYPE_BF16);
    assert_close(kernel_bytes(&layer, "groups", PHASE_FORWARD), TOKENS * 2 * (2 * KEY + 2 * QUERY));
    assert_close(layer.activation, whole.activation + 2 * TOKENS * 2 * (QUERY - KEY));
    layer = block(&mask, DTYPE_BF16), whole = block(&filled, DTYPE_BF16);
    assert_close(kernel_bytes(&layer, "mask", PHASE_FORWARD), 2 * kernel_bytes(&whole, "mask", PHASE_FORWARD));
    assert_close(kernel_bytes(&layer, "mask", PHASE_BACKWARD_INPUT), 2 * 2 * scores);
    assert_close(kernel_bytes(&whole, "mask", PHASE_FORWARD), 2 * 2 * scores);
    assert_close(unvectorized_values(&layer, "mask", PHASE_FORWARD), 2 * scores);
    assert_close(unvectorized_values(&layer, "scale", PHASE_FORWARD), 0);
    assert_close(unvectorized_values(&layer, "heads", PHASE_FORWARD), 3 * TOKENS * HIDDEN);
    assert_close(unvectorized_values(&layer, "transpose", PHASE_BACKWARD_INPUT), TOKENS * HIDDEN);
}

/* GELU as 0.5 x (1 + tanh(c x (1 + d x x))), a kernel for each operation, h bytes a value: what each reads and writes,
 * and what is kept for the products' and the tanh's gradients: 0.5 x, c x, d x, x, 1 + d x x, the tanh, 1 more. */
static void gelu(void **state)
{
    (void)state;
    const char *const decoder = "transformer: {layers: 1, hidden: 256, heads: 4, ffn: 512, sequence: 512,"
                                " vocabulary: 64, fused_gelu: %s}";
    struct model fused = load_good(arena_printf(&arena, decoder, "true"));
    struct model apart = load_good(arena_printf(&arena, decoder, "false"));
    struct layer one = block(&fused, DTYPE_BF16), many = block(&apart, DTYPE_BF16);
    double values = TOKENS * FFN, h = 2, to = h + h, two = h + h + h;
    double forward = to /* 0.5 x */ + to /* c x */ + to /* d x */ + two /* times x */ + to /* 1 + */ +
                     two /* c x times */ + to /* tanh */ + to /* 1 + */ + two;
    double backward = 2 * two /* of the last product */ + two /* tanh */ + 2 * two /* of c x times */ +
                      2 * two /* of d x times x */ + 3 * to /* by c, d and 0.5 */ + 3 * two /* sums */;

    assert_close(kernel_bytes(&one, "gelu", PHASE_FORWARD), values * 2 * h);
    assert_close(kernel_bytes(&many, "gelu", PHASE_FORWARD), values * forward);
    assert_close(kernel_bytes(&many, "gelu", PHASE_BACKWARD_INPUT), values * backward);
    assert_int_equal(launches(&many, "gelu", PHASE_FORWARD), 9);
    assert_int_equal(launches(&many, "gelu", PHASE_BACKWARD_INPUT), 2 + 1 + 2 + 2 + 3 + 3);
    assert_close(many.activation, one.activation + (7 - 1) * h * values);
}

/* Plain PyTorch: the ReLU, pow(2); of pow a copy, times 2, times the gradient, and the ReLU's. One tensor is kept in
 * addition to the next product's input, as by a fused GELU. */
static void squared_relu(void **state)
{
    (void)state;
    const char *const decoder = "transformer: {layers: 1, hidden: 256, heads: 4, ffn: 512, sequence: 512,"
                                " vocabulary: 64, mlp: %s, fused_kernels: %s}";
    struct model relu = load_good(arena_printf(&arena, decoder, "squared-relu", "true"));
    struct model gelu_model = load_good(arena_printf(&arena, decoder, "gelu", "true"));
    struct model plain = load_good(arena_printf(&arena, decoder, "squared-relu", "false"));
    struct layer one = block(&relu, DTYPE_BF16), other = block(&gelu_model, DTYPE_BF16);
    struct layer many = block(&plain, DTYPE_BF16);
    double values = TOKENS * FFN, h = 2;

    assert_close(kernel_bytes(&one, "squared-relu", PHASE_FORWARD), values * (h + h));
    assert_close(kernel_bytes(&one, "squared-relu", PHASE_BACKWARD_INPUT), values * (h + h + h));
    assert_close(kernel_bytes(&many, "squared-relu", PHASE_FORWARD), values * ((h + h) + (h + h)));
    assert_close(kernel_bytes(&many, "squared-relu", PHASE_BACKWARD_INPUT),
                 values * ((h + h) + (h + h) + (h + h + h) + (h + h + h)));
    assert_int_equal(launches(&many, "squared-relu", PHASE_BACKWARD_INPUT), 4);
    assert_close(one.activation, other.activation);
    assert_close(kernels_flop(&one), kernels_flop(&other));
}

/* One kernel each; all but the norm in plain PyTorch; the norm alone. */
static void fused(void **state)
{
    (void)state;
    struct model all = llama(""), norm = llama(", fused_kernels: false, fused_norm: true");
    struct model apart = llama(", fused_norm: false");
    struct layer layer = block(&all, DTYPE_BF16);

    assert_close(kernel_bytes(&layer, "mlp-norm", PHASE_FORWARD), 4 * TOKENS * HIDDEN);
    assert_close(kernel_bytes(&layer, "rotary", PHASE_FORWARD), 4 * TOKENS * (QUERY + KEY));
    assert_int_equal(launches(&layer, "rotary", PHASE_FORWARD) * launches(&layer, "mlp-norm", PHASE_FORWARD), 1);
    assert_close(kernel_bytes(&layer, "swiglu", PHASE_BACKWARD_INPUT), 10 * TOKENS * FFN);
    assert_true(kernel_bytes(&layer, "groups", PHASE_FORWARD) < 0);
    layer = block(&norm, DTYPE_BF16);
    assert_close(kernel_bytes(&layer, "mlp-norm", PHASE_FORWARD), 4 * TOKENS * HIDDEN);
    assert_close(kernel_bytes(&layer, "swiglu", PHASE_FORWARD), 10 * TOKENS * FFN);
    layer = block(&apart, DTYPE_BF16);
    expect_norm(&layer, "mlp-norm", 2);
    assert_close(kernel_bytes(&layer, "swiglu", PHASE_FORWARD), 6 * TOKENS * FFN);
}

/* Beside what fused kernels leave: of each norm x in fp32, of the gate SiLU's result, keys and values for all heads. */
static void kept(void **state)
{
    (void)state;
    struct model plain = llama(", fused_kernels: false"), norm = llama(", fused_kernels: false, fused_norm: true");
    struct model all = llama("");
    double least = block(&all, DTYPE_BF16).activation, gate = 2 * TOKENS * FFN, heads = 2 * TOKENS * 2 * (QUERY - KEY);

    assert_close(block(&norm, DTYPE_BF16).activation, least + gate + heads);
    assert_close(block(&plain, DTYPE_BF16).activation, least + gate + heads + 2 * 4 * TOKENS * HIDDEN);
}

/* BERT's block and head, half precision: the kernels that add a bias, by the width of the tensor; in Megatron-LM, whose
 * GELU and residual add the bias; in fp8, where a block's product adds it; and in PyTorch since 1.12, where all
 * products add it. The mask of padding is added to the scores once; the output's gradient is copied into heads. */
static void encoder(void **state)
{
    (void)state;
    static const struct { const char *name, *place; double width; bool fuses; } biases[] = {
        {"qkv-bias", "block", 3 * HIDDEN, false}, {"projection-bias", "block", HIDDEN, true},
        {"mlp-up-bias", "block", FFN, true},      {"mlp-down-bias", "block", HIDDEN, true},
        {"logits-bias", "head", 64, false},
    };
    static const char *const forms[] = {"fused_kernels: false, fused_qkv: false, fused_bias: false",
                                        "fused_kernels: true", "fused_kernels: true",
                                        "fused_kernels: false, fused_qkv: false"};
    double scores = 2 * 4 * 512.0 * 512, copy = 2 * 2 * TOKENS * HIDDEN;

    for (int form = 0; form < 4; form++) {
        bool plain = form % 3 == 0;
        struct model model = load_good(arena_printf(&arena, "transformer: {layers: 1, hidden: %d, heads: 4, ffn: %d,"
                                       " sequence: 512, vocabulary: 64, causal: false,"
                                       " head: masked-language-model, %s}", HIDDEN, FFN, forms[form]));
        struct layers layers = cut(
            &model,
            (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16, .fp8 = form == 2, .narrow = DTYPE_FP8});

        for (size_t i = 0; i < COUNT(biases); i++) {
            bool block = strcmp(biases[i].place, "block") == 0, fp8 = form == 2 && block;
            bool spared = fp8 || (!plain && biases[i].fuses) || form == 3;
            double values = TOKENS * biases[i].width;

            assert_close(kernel_bytes(&layers.items[block ? 1 : 2], biases[i].name, PHASE_FORWARD),
                         spared ? -1 : 2 * 2 * values);
            assert_close(kernel_bytes(&layers.items[block ? 1 : 2], biases[i].name, PHASE_BACKWARD_WEIGHT),
                         fp8 ? -1 : 2 * values);
        }
        assert_close(kernel_bytes(&layers.items[1], "mask", PHASE_FORWARD), plain ? 2 * 2 * scores : -1);
        assert_close(kernel_bytes(&layers.items[1], "mask", PHASE_BACKWARD_INPUT), -1);
        assert_close(kernel_bytes(&layers.items[1], "transpose", PHASE_FORWARD), copy);
        assert_close(kernel_bytes(&layers.items[1], "transpose", PHASE_BACKWARD_INPUT), plain ? copy : -1);
    }
}

/* What Megatron's cross-entropy broadcasts over the logits: their maxima, their sums, the loss's gradient; compiled, the
 * sums. */
static void broadcasts(void **state)
{
    (void)state;
    static const struct { enum cross_entropy form; double forward, backward; } cases[] = {
        {CROSS_ENTROPY_FP32, 2, 1}, {CROSS_ENTROPY_COMPILED, 1, 0}, {CROSS_ENTROPY_PLAIN, 0, 0},
        {CROSS_ENTROPY_FUSED, 0, 0},
    };
    struct model model = llama("");

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct layers layers = cut(&model, (struct shard){.micro = 2, .tensor = 1, .cross_entropy = cases[i].form,
                                                          .dtype = DTYPE_BF16});

        assert_close(unvectorized_values(&layers.items[2], "cross-entropy", PHASE_FORWARD),
                     cases[i].forward * TOKENS * 64);
        assert_close(unvectorized_values(&layers.items[2], "cross-entropy", PHASE_BACKWARD_INPUT),
                     cases[i].backward * TOKENS * 64);
    }
}

/* The bytes that PyTorch's cross-entropy passes over. Logits of two bytes are read three times and written. A gradient
 * is cleared, read twice with the output, and written. With converted logits it is the same in four bytes, and the
 * conversions come on top. */
static void loss(void **state)
{
    (void)state;
    struct model model = llama("");
    double values = TOKENS * 64;

    for (int half = 0; half < 2; half++) {
        double value = half ? 2 : 4;
        struct layers layers = cut(&model, (struct shard){.micro = 2, .tensor = 1, .cross_entropy = CROSS_ENTROPY_PLAIN,
                                                          .dtype = half ? DTYPE_BF16 : DTYPE_FP32});

        assert_close(kernel_bytes(&layers.items[2], "cross-entropy", PHASE_FORWARD), (3 + 1) * value * values);
        assert_close(kernel_bytes(&layers.items[2], "cross-entropy", PHASE_BACKWARD_INPUT),
                     (1 + 2 + 1 + 1) * value * values);
        layers = cut(&model, (struct shard){.micro = 2, .tensor = 1, .cross_entropy = CROSS_ENTROPY_CONVERTED,
                                            .dtype = half ? DTYPE_BF16 : DTYPE_FP32});
        assert_close(kernel_bytes(&layers.items[2], "cross-entropy", PHASE_FORWARD),
                     ((half ? 6 : 0) + (3 + 1) * 4) * values);
        assert_close(kernel_bytes(&layers.items[2], "cross-entropy", PHASE_BACKWARD_INPUT),
                     ((half ? 6 : 0) + (1 + 2 + 1 + 1) * 4) * values);
    }
}

/* A chunked loss keeps no logits: what it holds is those of a chunk, about as large as the tokens, and the gradient of
 * these. Each chunk after the first adds to the gradient of the whole weight, unless that is frozen. */
static void chunks(void **state)
{
    static const int vocabularies[] = {64, 1000, 32000, 128256};
    const struct lora lora = {.rank = 4};

    (void)state;
    for (int i = 0; i < 4 * 3 * 2; i++) {
        int vocabulary = vocabularies[i % 4], micro = 1 + i / 4 % 3, chunk = 1;
        double tokens = 512. * micro, logits = tokens * vocabulary, share;
        struct model model = load_good(arena_printf(&arena, "transformer: {layers: 1, hidden: %d, heads: 4, sequence: 512, "
                                                    "vocabulary: %d, dropout: 0}", HIDDEN, vocabulary));
        struct shard shard = {.micro = micro, .tensor = 1, .dtype = DTYPE_BF16, .lora = i < 12 ? NULL : &lora};
        struct layer whole, part;

        while (chunk < tokens && chunk * ceil((double)vocabulary / HIDDEN) < tokens)
            chunk *= 2;
        share = fmin(chunk, tokens) / tokens;
        shard.cross_entropy = CROSS_ENTROPY_FUSED, whole = cut(&model, shard).items[2];
        shard.cross_entropy = CROSS_ENTROPY_CHUNKED, part = cut(&model, shard).items[2];
        assert_close(whole.activation - part.activation, 2 * logits);
        assert_close(part.loss_activation, 0);
        assert_close(part.workspace.forward - whole.workspace.forward, 2 * (share * logits + tokens * HIDDEN));
        assert_close(whole.workspace.backward - part.workspace.backward, 2 * (1 - share) * logits);
        assert_close(kernel_bytes(&part, "cross-entropy", PHASE_FORWARD), 3 * 2 * logits);
        assert_close(kernel_bytes(&part, "chunk-sums", PHASE_BACKWARD_WEIGHT),
                     shard.lora || share >= 1 ? -1 : (ceil(tokens / chunk) - 1) * 2 * 2. * vocabulary * HIDDEN);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, forget)

/* GPT OSS in Megatron Core, operation by operation: clamps of both halves, torch.cat; and for each of four experts
 * b * p and t + b * p, then torch.cat and .to(bfloat16), with p in fp32. The gradients: of .to(), of each expert's t, b
 * and p (two products and two sums), of torch.split; of torch.cat they are views. Fused, none of that is left. */
static void gpt_oss(void **state)
{
    const double h = 2, rows = 2 * TOKENS, pair = 2 * h;

    (void)state;
    for (int fused = 0; fused < 2; fused++) {
        struct model model =
            biased_llama(arena_printf(&arena, ", swiglu_limit: 7, experts: 4, experts_per_token: 2, fused_clamp: %s",
                                      fused ? "true" : "false"));
        struct layer layer = block(&model, DTYPE_BF16);

        assert_int_equal(launches(&layer, "clamp", PHASE_FORWARD), fused ? 0 : 3);
        assert_int_equal(launches(&layer, "expert-bias", PHASE_FORWARD), fused ? 0 : 4 * 2 + 2);
        assert_int_equal(launches(&layer, "expert-bias", PHASE_BACKWARD_INPUT), fused ? 0 : 4 * 5 + 2);
        if (fused)
            continue;
        assert_close(kernel_bytes(&layer, "clamp", PHASE_FORWARD), rows * FFN * (2 * (h + h) + (pair + pair)));
        assert_close(kernel_bytes(&layer, "clamp", PHASE_BACKWARD_INPUT),
                     rows * FFN * (2 * (h + h + h) + (pair + pair)));
        assert_close(kernel_bytes(&layer, "expert-bias", PHASE_FORWARD),
                     rows * HIDDEN * (4 + (h + 4 + 4) + (4 + 4) + (4 + h)));
        assert_close(kernel_bytes(&layer, "expert-bias", PHASE_BACKWARD_INPUT),
                     rows * HIDDEN * ((h + 4) + (4 + h) + 2 * (4 + 4 + 4) + (h + h)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(operations), TEST(rotations), TEST(apart), TEST(gelu), TEST(squared_relu),
                                       TEST(widened), TEST(fused), TEST(kept), TEST(encoder), TEST(loss), TEST(chunks),
                                       TEST(broadcasts), TEST(gpt_oss)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
