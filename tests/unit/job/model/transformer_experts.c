/* Rows on their way to experts and back, by PyTorch's operators: traffic, and what the backward keeps. */
#include "model_files.h"

enum { TOKENS = 2 * 512, HIDDEN = 256 };

static struct model llama(const char *more)
{
    return load_good(arena_printf(&arena, "transformer: {layers: 1, hidden: %d, heads: 4, kv_heads: 2, ffn: 512,"
                                  " sequence: 512, vocabulary: 64, positions: 0, norm: rmsnorm, mlp: swiglu,"
                                  " qkv_bias: false, bias: false, dropout: 0, flash_attention: true%s}", HIDDEN, more));
}

static struct layer block(struct model *model, enum dtype dtype)
{
    return cut(model, (struct shard){.micro = 2, .tensor = 1, .dtype = dtype}).items[1];
}

/* Top-2 of four experts by PyTorch's operators, with a GPU's t rows and r = 2 t rows that its experts compute. gather;
 * vstack and index; the assignment; to fp32, product, back; a copy of t and scatter_add. The gradients: two
 * conversions, two products and a sum over each row; slice (zeros, copy), assignment (index), index (zeros, sum),
 * gather (zeros, scatter_add). Autograd keeps results of the r rows in four bytes. */
static void routed_by_operators(void **state)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_FP32};
    const char *experts = ", experts: 4, experts_per_token: 2, fused_gate: false, routed_rows: ";

    (void)state;
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        double h = dtype_bytes(dtypes[i]), t = TOKENS * HIDDEN, r = 2 * t, converts = h < 4 ? (h + 4) + (4 + h) : 0;
        int more = h < 4 ? 2 : 0;
        struct model copies = llama(arena_printf(&arena, "%scopies", experts));
        struct model model = llama(arena_printf(&arena, "%soperators", experts));
        struct layer layer = block(&model, dtypes[i]), other = block(&copies, dtypes[i]);
        enum phase back = PHASE_BACKWARD_INPUT;

        assert_close(kernel_bytes(&layer, "permute", PHASE_FORWARD), (t + r) * h);
        assert_close(kernel_bytes(&layer, "sort", PHASE_FORWARD), 2 * (r + r) * h);
        assert_close(kernel_bytes(&layer, "unsort", PHASE_FORWARD), (r + r) * h);
        assert_close(kernel_bytes(&layer, "weigh", PHASE_FORWARD), r * (converts + 4 + 4));
        assert_close(kernel_bytes(&layer, "copy", PHASE_FORWARD), (t + t) * h);
        assert_close(kernel_bytes(&layer, "combine", PHASE_FORWARD), (r + t + t) * h);
        assert_close(kernel_bytes(&layer, "combine", back), (t + r) * h);
        assert_close(kernel_bytes(&layer, "weigh", back), r * (converts + 4 + 4));
        assert_close(kernel_bytes(&layer, "weigh-scores", back), r * ((4 + 4 + 4) + 4));
        assert_close(kernel_bytes(&layer, "unsort", back), (r + (r + r) + (r + r)) * h);
        assert_close(kernel_bytes(&layer, "sort", back), (r + (r + r + r)) * h);
        assert_close(kernel_bytes(&layer, "clear", back), t * h);
        assert_close(kernel_bytes(&layer, "permute", back), (r + t + t) * h);
        assert_close(unvectorized_values(&layer, "weigh", PHASE_FORWARD), (1 + more) * r);
        assert_close(unvectorized_values(&layer, "combine", PHASE_FORWARD), r);
        assert_close(unvectorized_values(&layer, "permute", back), r);
        assert_close(layer.activation - other.activation, r * (4 - h));
        assert_close(kernels_flop(&layer), kernels_flop(&other));
        /* two grouped products of one input, whose gradients are added */
        assert_int_equal(kernel_sums(&layer, "expert-up", PHASE_FORWARD).launches, 2);
        assert_close(kernel_bytes(&layer, "gate-sum", back), (r + r + r) * h);
    }
}

/* The same by indices, of which two experts of four are on a GPU: index_select, torch.cat twice, zeros and scatter_add_;
 * gather, torch.cat twice, zeros and index_add_. */
static void routed_by_indices(void **state)
{
    (void)state;
    struct model model = llama(", experts: 4, experts_per_token: 2, routed_rows: indices");
    struct layer layer = cut(&model, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16,
                                                    .dispatch_group = 2}).items[1];
    double h = 2, t = TOKENS * HIDDEN, r = 2 * t;
    enum phase back = PHASE_BACKWARD_INPUT;

    assert_close(kernel_bytes(&layer, "permute", PHASE_FORWARD), (t + r) * h);
    assert_close(kernel_bytes(&layer, "combine", PHASE_FORWARD), (r + t + t) * h);
    assert_close(kernel_bytes(&layer, "combine", back), (t + r) * h);
    assert_close(kernel_bytes(&layer, "permute", back), (r + t + t) * h);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        assert_close(kernel_bytes(&layer, "sort", (enum phase)phase), 2 * (r + r) * h);
        assert_close(kernel_bytes(&layer, "clear", (enum phase)phase), t * h);
        assert_close(unvectorized_values(&layer, "permute", (enum phase)phase), r);
        assert_close(unvectorized_values(&layer, "combine", (enum phase)phase), r);
    }
}

/* How experts are chosen: kernels of Megatron Core's code, and bytes for each token and expert in bf16 and in fp32. */
static void chosen(void **state)
{
    static const struct { const char *how; int forward, backward; double values[2], others[2]; } cases[] = {
        {"fused", 1, 1, {0, 0}, {8, 12}},
        {"indices", 24, 11, {2, 5}, {8, 12}},
        {"masks", 34, 12, {9, 5}, {49, 12}},
    };
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_FP32};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        enum dtype dtype = dtypes[i % 2];
        struct model model = llama(arena_printf(&arena, ", experts: 4, experts_per_token: 2, router: %s", cases[i / 2].how));
        struct layer layer = block(&model, dtype);
        int launches[] = {cases[i / 2].forward, cases[i / 2].backward};

        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
            struct kernel_sums sums = kernel_sums(&layer, "routing", (enum phase)phase);

            assert_int_equal(sums.launches, launches[phase]);
            assert_close(sums.bytes, TOKENS * 4 * (cases[i / 2].values[phase] * dtype_bytes(dtype) + cases[i / 2].others[phase]));
        }
    }
}

/* A dispatcher that sends a token once copies rows where they arrive, whatever the operators. */
static void sent_once(void **state)
{
    (void)state;
    struct model model = llama(", experts: 4, experts_per_token: 2, routed_rows: operators");
    struct layer layer = cut(&model, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16, .dispatch_group = 2,
                                                    .dispatch_once = true}).items[1];

    assert_int_equal(kernel_sums(&layer, "weigh", PHASE_FORWARD).launches, 0);
    assert_int_equal(kernel_sums(&layer, "permute", PHASE_FORWARD).launches, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(routed_by_operators), TEST(routed_by_indices), TEST(chosen),
                                       TEST(sent_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
