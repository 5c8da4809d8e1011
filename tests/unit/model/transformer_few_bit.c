/* transformer_few_bit: what a block keeps of its activation function, and the traffic of its kernels, counted by hand. */
#include "model_files.h"

static double traffic(const struct layer *layer, enum phase phase)
{
    double bytes = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        bytes += layer->kernels[i].phase == phase ? layer->kernels[i].launches * layer->kernels[i].bytes : 0;
    return bytes;
}

/* Values of the function's inputs and results that a block keeps without few_bit and with it, beside the bits; and values
 * that its kernels read and write in the forward and in the backward, without it and with it. */
static const struct {
    const char *model;
    enum dtype dtype;
    double plain, kept, forward[2], backward[2];
} cases[] = {
    {"preset: gpt2-355m", DTYPE_FP16, 1, 0, {2, 2 + 1}, {3, 2}},
    {"{preset: gpt2-355m, with: {fused_gelu: false}}", DTYPE_FP16, 7, 0, {21, 2 + 1}, {36, 2}},
    {"{preset: llama3-8b, with: {fused_kernels: false}}", DTYPE_BF16, 3, 2, {5, 5 + 1}, {9, 8}},
    {"preset: bert-large", DTYPE_FP32, 1, 0, {2, 2 + 1}, {3, 2}},
};

static void test_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int tensor = 1; tensor <= 4; tensor *= 2)
            for (int bits = 1; bits <= 8; bits++) {
                struct model model = load_good(cases[i].model);
                struct shard shard = {.micro = 2, .tensor = tensor, .dtype = cases[i].dtype};
                struct layers plain = cut(&model, shard);

                shard.few_bit = bits;
                struct layers few = cut(&model, shard);
                double value = dtype_bytes(cases[i].dtype), index = bits / 8.;
                double each = 2. * model.transformer->sequence * model.transformer->ffn / tensor;

                assert_int_equal(plain.count, few.count);
                for (size_t k = 0; k < few.count; k++) {
                    const struct layer *a = &plain.items[k], *b = &few.items[k];
                    bool block = b->role == LAYER_BLOCK;

                    assert_close(b->activation, a->activation -
                                 block * each * ((cases[i].plain - cases[i].kept) * value - index));
                    assert_close(traffic(b, PHASE_FORWARD), traffic(a, PHASE_FORWARD) +
                                 block * each * ((cases[i].forward[1] - cases[i].forward[0]) * value + index));
                    assert_close(traffic(b, PHASE_BACKWARD_INPUT), traffic(a, PHASE_BACKWARD_INPUT) +
                                 block * each * ((cases[i].backward[1] - cases[i].backward[0]) * value + index));
                    assert_true(traffic(a, PHASE_BACKWARD_WEIGHT) == traffic(b, PHASE_BACKWARD_WEIGHT));
                    assert_true(a->checkpoint == b->checkpoint || !block);
                    assert_true(flop_of(a, PHASE_FORWARD) == flop_of(b, PHASE_FORWARD));
                    assert_true(a->workspace.forward == b->workspace.forward &&
                                a->workspace.backward == b->workspace.backward);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_bytes, forget)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
