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
    shape.ways.softmax_in_fours = in_fours;
    model.transformer = &shape;
    return cut(&model, shard).items[1];
}

static struct layer block_of(int micro, int tensor, bool dropout)
{
    return block_with(micro, tensor, dropout, true);
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

        assert_close(kernel_sums(&whole, "softmax", (enum phase)phase).bytes,
                     kernel_sums(&fused, "softmax", (enum phase)phase).bytes);
        assert_true(kernel_sums(&fused, "convert", (enum phase)phase).bytes == 0);
        assert_close(kernel_sums(&wide, "convert", (enum phase)phase).bytes, 2 * 6 * scores);
        assert_close(kernel_sums(&wide, "scale", (enum phase)phase).bytes, 8 * scores);
        assert_close(kernel_sums(&wide, "mask", (enum phase)phase).bytes, 8 * scores);
        assert_close(kernel_sums(&wide, "softmax", (enum phase)phase).bytes, (reads + 1) * 4 * scores);
        assert_close(kernel_sums(&fused, "softmax", (enum phase)phase).bytes, (reads / 2 + 1) * 2 * (2 * scores));
    }
    assert_close(kernel_sums(&wide, "mask-copies", PHASE_BACKWARD_INPUT).bytes, 8 * scores);
    assert_int_equal(wide.nkernels, fused.nkernels + 2 * 3 + 1);
    assert_int_equal(block_with(1, 2, true, false).nkernels, fused.nkernels);     /* others fuse any */
    assert_close(block_with(1, 2, true, false).activation, fused.activation / 2);
}

/* Megatron-LM's fused softmax takes half precision alone. In fp32 nothing is converted, and nothing kept twice. */
static void fp32_scores(void **state)
{
    const struct model model = load_good("transformer: {layers: 1, hidden: 256, heads: 4, sequence: 512, vocabulary: "
                                         "100, dropout: 0, softmax_in_fours: true}");
    const struct model others = load_good("transformer: {layers: 1, hidden: 256, heads: 4, sequence: 512, vocabulary: "
                                          "100, dropout: 0}");
    struct shard shard = {.micro = 2, .tensor = 2, .dtype = DTYPE_FP32};
    struct layer block = cut(&model, shard).items[1], fused = cut(&others, shard).items[1];
    double values = 2 * 4 * 4 * 512.0 * 512;

    (void)state;
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        assert_int_equal(kernel_sums(&block, "convert", (enum phase)phase).launches, 0);
        assert_close(kernel_sums(&block, "scale", (enum phase)phase).bytes, values);
        assert_close(kernel_sums(&block, "mask", (enum phase)phase).bytes, values);
        assert_int_equal(kernel_sums(&fused, "mask", (enum phase)phase).launches, 0);
    }
    assert_close(block.activation, fused.activation);
}

/* torch.baddbmm: no copies of heads and no kernel that scales. What autograd does for a mask that is written into a
 * view: a tensor cleared, and five copies, of which the mask's fill is the last; nothing where no such mask is. */
static void scores_in_place(void **state)
{
    const char *const texts[] = {"", ", scores_in_place: true", ", scores_in_place: true, causal: false",
                                 ", scores_in_place: true, multiplied_mask: true"};
    struct layer blocks[COUNT(texts)];
    double values = 2 * 2 * 8 * 512.0 * 512;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct model model = load_good(arena_printf(&arena,
                                                    "transformer: {layers: 1, hidden: 256, heads: 4, sequence: "
                                                    "512, vocabulary: 100, fused_kernels: false%s}",
                                                    texts[i]));

        blocks[i] = cut(&model, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_FP16}).items[1];
    }
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        for (size_t i = 0; i < COUNT(texts); i++) {
            bool copied = phase == PHASE_BACKWARD_INPUT && i == 1;
            struct kernel_sums copies = kernel_sums(&blocks[i], "mask-copies", (enum phase)phase);

            assert_int_equal(kernel_sums(&blocks[i], "heads", (enum phase)phase).launches, i ? 0 : 3);
            assert_int_equal(kernel_sums(&blocks[i], "scale", (enum phase)phase).launches, i ? 0 : 1);
            assert_int_equal(copies.launches, copied ? 5 : 0);
            assert_close(copies.bytes, copied ? 5 * values : 0);
            assert_close(kernel_sums(&blocks[i], "mask-zeros", (enum phase)phase).bytes, copied ? values / 2 : 0);
        }
    assert_close(kernel_sums(&blocks[1], "mask", PHASE_FORWARD).bytes, values);
    assert_close(kernel_sums(&blocks[1], "mask", PHASE_BACKWARD_INPUT).bytes, values);
    assert_close(kernel_sums(&blocks[3], "mask", PHASE_FORWARD).bytes, 2 * values);
    assert_int_equal(kernel_sums(&blocks[0], "transpose", PHASE_BACKWARD_INPUT).launches, 1);
    assert_int_equal(kernel_sums(&blocks[1], "transpose", PHASE_BACKWARD_INPUT).launches, 0);
    assert_close(blocks[0].activation, blocks[1].activation);
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

/* GPT OSS: every second block sees all keys. The others' fused attention computes fewer scores; all else is alike, and
 * FLOPs count the keys that a query may see. A window as long as a sample is none. */
static void windows(void **state)
{
    const char *shape = "transformer: {layers: 4, hidden: 256, heads: 4, sequence: 4096, vocabulary: 64, "
                        "flash_attention: true%s}";
    struct model plain = load_good(arena_printf(&arena, shape, "")), wide, narrow;
    struct layers full, some, most;

    (void)state;
    narrow = load_good(arena_printf(&arena, shape, ", window: 128, full_every: 2"));
    wide = load_good(arena_printf(&arena, shape, ", window: 4096"));
    full = cut(&plain, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16});
    some = cut(&narrow, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16});
    most = cut(&wide, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16});
    for (size_t l = 0; l < full.count; l++)
        for (size_t k = 0; k < full.items[l].nkernels; k++) {
            const struct kernel *all = &full.items[l].kernels[k], *here = &some.items[l].kernels[k];
            bool windowed = all->kind == KERNEL_ATTENTION && l % 2;      /* layer 0 is the embedding */
            double computed = (128 + 1.5 * 128) / 4096 / ((1 + 128.0 / 4096) / 2);

            assert_close(most.items[l].kernels[k].flop, all->flop);
            assert_close(here->bytes, all->bytes);
            assert_close(here->window, windowed ? 128 : 0);
            if (!windowed)
                assert_close(here->flop, all->flop);
            else if (fabs(here->flop / all->flop / computed - 1) > 0.04)     /* the first queries see fewer */
                fail_msg("%g of the FLOPs instead of %g", here->flop / all->flop, computed);
        }
    double all = model_flop(&plain, NULL, NULL), scores = 3 * 4 * 4096.0 * 256;      /* a block's, a key */
    assert_close(model_flop(&narrow, NULL, NULL), all - 2 * scores * (4096 - 128));
    assert_close(model_flop(&wide, NULL, NULL), all);
}

/* Llama 4: queries in a chunk of 1024 tokens compute what queries of a sample of 1024 tokens compute. */
static void chunks(void **state)
{
    const char *shape = "transformer: {layers: 1, hidden: 256, heads: 4, sequence: %d, vocabulary: 64, positions: "
                        "4096, flash_attention: true%s}";
    struct model cut_up = load_good(arena_printf(&arena, shape, 4096, ", window: 1024, chunked: true")), small, none;
    struct layers chunked = cut(&cut_up, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16}), samples, whole;

    (void)state;
    small = load_good(arena_printf(&arena, shape, 1024, ""));
    none = load_good(arena_printf(&arena, shape, 4096, ", window: 8192, chunked: true"));
    samples = cut(&small, (struct shard){.micro = 8, .tensor = 1, .dtype = DTYPE_BF16});
    whole = cut(&none, (struct shard){.micro = 2, .tensor = 1, .dtype = DTYPE_BF16});
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        assert_close(flop_of(&chunked.items[1], (enum phase)phase), flop_of(&samples.items[1], (enum phase)phase));
    for (size_t k = 0; k < chunked.items[1].nkernels; k++)
        if (chunked.items[1].kernels[k].kind == KERNEL_ATTENTION) {
            assert_close(chunked.items[1].kernels[k].n, 1024);
            assert_close(chunked.items[1].kernels[k].bytes, samples.items[1].kernels[k].bytes);
            assert_close(whole.items[1].kernels[k].n, 4096);
        }
    assert_close(model_flop(&cut_up, NULL, NULL), 4 * model_flop(&small, NULL, NULL));
}

/* ALiBi turns nothing; where attention is not fused a kernel reads and writes the scores. Attention and MLP that are
 * parallel have one norm, and one input to keep. A narrow embedding has a product on each side. */
static void kernels_of_others(void **state)
{
#define SHAPE "layers: 1, hidden: 256, heads: 4, sequence: 512, vocabulary: 128, positions: 0, dropout: 0"
    struct model models[] = {load_good("transformer: {" SHAPE "}"), load_good("transformer: {" SHAPE ", alibi: true}"),
                             load_good("transformer: {" SHAPE ", parallel: true}"),
                             load_good("transformer: {" SHAPE ", embedding_size: 64}")};
    struct layers layers[COUNT(models)];
    double tokens = 512, scores = 4 * 512.0 * 512;

    (void)state;
    for (size_t i = 0; i < COUNT(models); i++)
        layers[i] = cut(&models[i], plain(1, 1));
    assert_true(kernel_sums(&layers[0].items[1], "rotary", PHASE_FORWARD).launches > 0);
    assert_int_equal(kernel_sums(&layers[1].items[1], "rotary", PHASE_FORWARD).launches, 0);
    assert_close(kernel_sums(&layers[1].items[1], "alibi", PHASE_FORWARD).bytes, 2 * 2 * scores);
    assert_int_equal(kernel_sums(&layers[2].items[1], "mlp-norm", PHASE_FORWARD).launches, 0);
    assert_close(layers[0].items[1].activation - layers[2].items[1].activation, 2 * 2 * tokens * 256);
    assert_close(flop_of(&layers[3].items[0], PHASE_FORWARD), 2 * tokens * 256 * 64);
    assert_close(flop_of(&layers[3].items[2], PHASE_FORWARD), 2 * tokens * 64 * (256 + 128));
    assert_close(layers[3].items[2].tied, 128 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(four_rows_at_once, forget),
        cmocka_unit_test_teardown(fp32_scores, forget),
        cmocka_unit_test_teardown(scores_in_place, forget),
        cmocka_unit_test_teardown(wide_probabilities_are_kept, forget),
        cmocka_unit_test_teardown(windows, forget),
        cmocka_unit_test_teardown(chunks, forget),
        cmocka_unit_test_teardown(kernels_of_others, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
