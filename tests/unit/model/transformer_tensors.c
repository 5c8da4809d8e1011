/* transformer_tensors: the parameters of a layer, one by one, on a GPU of the tensor-parallel group. */
#include "model_files.h"

/* Tensors in the model's order; split ones divided, the others whole on every GPU. */
static void parameters_per_gpu(void **state)
{
    (void)state;
    static const double block_of_two[] = {64, 64, 96 * 64, 96, 32 * 64, 64, 64, 64, 128 * 64, 128, 128 * 64, 64};
    struct model model = load_good("transformer: {layers: 1, hidden: 64, heads: 4, sequence: 32, vocabulary: 101}");
    struct layers layers = cut(&model, plain(1, 2));

    assert_int_equal(layers.items[1].ntensors, COUNT(block_of_two));
    for (size_t i = 0; i < COUNT(block_of_two); i++)
        assert_true(layers.items[1].tensors[i] == block_of_two[i]);
    assert_true(layers.items[0].parameters == 128 * 64 + 32 * 64);   /* 101 rows on two GPUs: padded to 2 x 128 */
    assert_true(layers.items[2].parameters == 2 * 64);
    assert_true(layers.items[2].tied == 128 * 64);
    for (size_t i = 0; i < layers.count; i++) {
        double sum = 0;

        for (size_t k = 0; k < layers.items[i].ntensors; k++)
            sum += layers.items[i].tensors[k];
        assert_true(sum == layers.items[i].parameters);
    }
    model.transformer->tied = false;
    layers = cut(&model, plain(1, 2));
    assert_true(layers.items[2].parameters == 128 * 64 + 2 * 64 && layers.items[2].tied == 0);
}

static void whole_parameters_are_the_sum(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2-124m", "llama3-8b", "bert-large", "megatron-1.7b", "resnet50"};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct model model = preset(names[i]);
        struct layers layers = cut(&model, plain(1, 1));
        double sum = 0;

        for (size_t k = 0; k < layers.count; k++)
            sum += layers.items[k].parameters;
        assert_true(sum == model_parameters(&model));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(parameters_per_gpu), TEST(whole_parameters_are_the_sum)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
