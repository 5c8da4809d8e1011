/* transformer: which attention has a fused softmax, and what PyTorch's costs in its place, counted by hand. */
#include "model_files.h"

static struct layer block_with(int micro, int tensor, bool dropout, bool in_fours)
{
    static struct model model;
    struct shard shard = {.micro = micro, .tensor = tensor, .dtype = DTYPE_FP16};
    struct transformer shape;

    model = load_good(dropout ? "transformer: {layers: 1, hidden: 256, heads: 4, sequence: 512, vocabulary: 100}" :
                      "transformer: {layers: 1, hidden: 256, heads: 4, sequence: 512, vocabulary: 100, dropout: 0}");
    shape = *model.transformer;
    shape.softmax_in_fours = in_fours;
    model.transformer = &shape;
    return cut(&model, shard).items[1];
}

static struct layer block_of(int micro, int tensor, bool dropout)
{
    return block_with(micro, tensor, dropout, true);
}

static double bytes_of(const struct layer *layer, const char *name, enum phase phase)
{
    double bytes = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        if (strcmp(layer->kernels[i].name, name) == 0 && layer->kernels[i].phase == phase)
            bytes += layer->kernels[i].bytes;
    return bytes;
}

/* Micro-batch x heads of a GPU decides, not what is computed: as many scores, with a micro-batch twice as large on
 * twice as many GPUs. */
static void four_rows_at_once(void **state)
{
    (void)state;
    struct layer whole = block_of(1, 1, true), fused = block_of(2, 2, true), wide = block_of(1, 2, true);
    double scores = 2 * 512.0 * 512;

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        double reads = phase == PHASE_FORWARD ? 1 : 2;

        assert_close(bytes_of(&whole, "softmax", (enum phase)phase), bytes_of(&fused, "softmax", (enum phase)phase));
        assert_true(bytes_of(&fused, "convert", (enum phase)phase) == 0);
        assert_close(bytes_of(&wide, "convert", (enum phase)phase), 2 * 6 * scores);
        assert_close(bytes_of(&wide, "scale", (enum phase)phase), 8 * scores);
        assert_close(bytes_of(&wide, "mask", (enum phase)phase), 8 * scores);
        assert_close(bytes_of(&wide, "softmax", (enum phase)phase), (reads + 1) * 4 * scores);
        assert_close(bytes_of(&fused, "softmax", (enum phase)phase), (reads / 2 + 1) * 2 * (2 * scores));
    }
    assert_int_equal(wide.nkernels, fused.nkernels + 2 * 4);
    assert_int_equal(block_with(1, 2, true, false).nkernels, fused.nkernels);     /* others fuse any */
    assert_close(block_with(1, 2, true, false).activation, fused.activation / 2);
}

/* Korthikanti et al. 2022 count 2 + 1 + 2 bytes a score; in fp32 4 + 1 + 2, and 4 + 2 without dropout. */
static void wide_probabilities_are_kept(void **state)
{
    (void)state;
    double scores = 2 * 512.0 * 512;
    struct layer two = block_of(2, 2, true), one = block_of(1, 2, true);

    assert_close(one.activation - two.activation / 2, 2 * scores);
    two = block_of(2, 2, false), one = block_of(1, 2, false);
    assert_close(one.activation - two.activation / 2, 4 * scores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(four_rows_at_once, forget),
        cmocka_unit_test_teardown(wide_probabilities_are_kept, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
