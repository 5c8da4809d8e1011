/* Adapters with frozen weights in four bits (QLoRA): the bytes of these weights, and the kernels that convert them to
 * the products' format. */
#include "model_files.h"

enum { HIDDEN = 256, KEY = 128, FFN = 512, RANK = 4 };
static const double bytes_each = 0.5 + 1 / 64. + 4 / (64. * 256);    /* Dettmers et al. 2023: 4.127 bits */

static struct layer block(const struct lora *lora, bool fused_gate)
{
    struct model model =
        load_good(arena_printf(&arena, "transformer: {layers: 1, hidden: %d, heads: 4, kv_heads: 2, ffn: %d, sequence: 512,"
                               " vocabulary: 64, positions: 0, norm: rmsnorm, mlp: swiglu, qkv_bias: false, bias: false,"
                               " dropout: 0, flash_attention: true, fused_gate: %s}", HIDDEN, FFN,
                               fused_gate ? "true" : "false"));

    return cut(&model, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16, .lora = lora}).items[1];
}

static void packed(void **state)
{
    int targets[] = {LORA_QKV, LORA_MLP_DOWN};
    struct lora full = {.rank = RANK, .targets = {.items = targets, .count = COUNT(targets)}}, four = full;
    double matrices = HIDDEN * (HIDDEN + 2. * KEY) + HIDDEN * HIDDEN + 3. * HIDDEN * FFN, norms = 2 * HIDDEN;

    (void)state;
    four.weights = LORA_WEIGHTS_NF4;
    for (int fused = 0; fused < 2; fused++) {
        struct layer layer = block(&four, fused), other = block(&full, fused);
        double largest = (fused ? 2. : 1.) * HIDDEN * FFN;

        assert_close(2 * other.frozen, 2 * (matrices + norms));
        assert_close(2 * layer.frozen, bytes_each * matrices + 2 * norms);
        assert_close(layer.frozen + layer.packed, other.frozen);
        assert_close(layer.parameters, other.parameters);              /* adapters are not packed */
        assert_close(layer.workspace.forward - other.workspace.forward, 2 * largest);
        assert_close(layer.workspace.backward - other.workspace.backward, 2 * largest);
        assert_close(layer.activation, other.activation);
        for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
            struct kernel_sums each = kernel_sums(&layer, "unpack", (enum phase)phase);
            struct kernel_sums scales = kernel_sums(&layer, "unpack-scales", (enum phase)phase);

            assert_close(each.bytes, 2 * (matrices * (0.5 + 2) + matrices / 64 * 4));     /* twice as long as a copy */
            assert_close(scales.bytes, matrices / 64 * ((1 + 4) + (4 + 4)));
            assert_int_equal(each.launches, fused ? 4 : 5);            /* QKV, projection, up (and gate), down */
            assert_int_equal(scales.launches, 2 * each.launches);
            assert_int_equal(kernel_sums(&other, "unpack", (enum phase)phase).launches, 0);
        }
    }
}

/* AutoGPTQ's qlinear_cuda_old.py: five operators go over all values, four over the zeros of groups of 128, in the forward
 * alone, and torch.matmul keeps the result. */
static void integers(void **state)
{
    static const struct { const char *name; double bytes; int each; } kernels[] = {
        {"unpack-shift", 4.5, 1}, {"unpack-bytes", 5, 1}, {"unpack-mask", 2, 1}, {"unpack-zero", 2 + 1 / 128., 1},
        {"unpack-scale", 3 + 2 / 128., 1}, {"unpack-zeros", (4.5 + 5 + 4) / 128, 4},
    };
    int targets[] = {LORA_QKV, LORA_MLP_DOWN};
    struct lora full = {.rank = RANK, .targets = {.items = targets, .count = COUNT(targets)}}, four = full;
    double matrices = HIDDEN * (HIDDEN + 2. * KEY) + HIDDEN * HIDDEN + 3. * HIDDEN * FFN;

    (void)state;
    four.weights = LORA_WEIGHTS_INT4;
    for (int fused = 0; fused < 2; fused++) {
        struct layer layer = block(&four, fused), other = block(&full, fused);

        assert_close(2 * layer.frozen, (0.5 + 2.5 / 128) * matrices + 2 * (2 * HIDDEN));
        assert_close(layer.frozen + layer.packed, other.frozen);
        assert_close(layer.activation - other.activation, 2 * matrices);
        for (size_t i = 0; i < COUNT(kernels); i++) {
            struct kernel_sums sums = kernel_sums(&layer, kernels[i].name, PHASE_FORWARD);

            assert_close(sums.bytes, matrices * kernels[i].bytes);
            assert_int_equal(sums.launches, kernels[i].each * (fused ? 4 : 5));
            assert_int_equal(kernel_sums(&layer, kernels[i].name, PHASE_BACKWARD_INPUT).launches, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(packed, forget), cmocka_unit_test_teardown(integers, forget)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
