/* transformer_saved: the form in which a block keeps what its backward reads, and the kernels of it, counted by hand. */
#include "model_files.h"

static double traffic(const struct layer *layer, enum phase phase)
{
    double bytes = 0;

    for (size_t i = 0; i < layer->nkernels; i++)
        bytes += layer->kernels[i].phase == phase ? layer->kernels[i].launches * layer->kernels[i].bytes : 0;
    return bytes;
}

/* Values of the function's inputs and results that a block keeps, in addition to the bits, without few_bit and with it.
 * Values that its kernels read and write in the forward and in the backward, without it and with it. */
static const struct {
    const char *model;
    enum dtype dtype;
    double plain, kept, forward[2], backward[2];
} functions[] = {
    {"preset: gpt2-355m", DTYPE_FP16, 1, 0, {2, 2 + 1}, {3, 2}},
    {"{preset: gpt2-355m, with: {fused_gelu: false}}", DTYPE_FP16, 7, 0, {21, 2 + 1}, {36, 2}},
    {"{preset: llama3-8b, with: {fused_kernels: false}}", DTYPE_BF16, 3, 2, {5, 5 + 1}, {9, 8}},
    {"preset: bert-large", DTYPE_FP32, 1, 0, {2, 2 + 1}, {3, 2}},
};

static void test_few_bit(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(functions); i++)
        for (int tensor = 1; tensor <= 4; tensor *= 2)
            for (int bits = 1; bits <= 8; bits++) {
                struct model model = load_good(functions[i].model);
                struct shard shard = {.micro = 2, .tensor = tensor, .dtype = functions[i].dtype};
                struct layers plain = cut(&model, shard);

                shard.saved.few_bit = bits;
                struct layers few = cut(&model, shard);
                double value = dtype_bytes(functions[i].dtype), index = bits / 8.;
                double each = 2. * model.transformer->sequence * model.transformer->ffn / tensor;

                assert_int_equal(plain.count, few.count);
                for (size_t k = 0; k < few.count; k++) {
                    const struct layer *a = &plain.items[k], *b = &few.items[k];
                    bool block = b->role == LAYER_BLOCK;

                    assert_close(b->activation, a->activation -
                                 block * each * ((functions[i].plain - functions[i].kept) * value - index));
                    assert_close(traffic(b, PHASE_FORWARD), traffic(a, PHASE_FORWARD) +
                                 block * each * ((functions[i].forward[1] - functions[i].forward[0]) * value + index));
                    assert_close(traffic(b, PHASE_BACKWARD_INPUT), traffic(a, PHASE_BACKWARD_INPUT) +
                                 block * each * ((functions[i].backward[1] - functions[i].backward[0]) * value + index));
                    assert_true(traffic(a, PHASE_BACKWARD_WEIGHT) == traffic(b, PHASE_BACKWARD_WEIGHT));
                    assert_true(a->checkpoint == b->checkpoint || !block);
                    assert_true(flop_of(a, PHASE_FORWARD) == flop_of(b, PHASE_FORWARD));
                    assert_true(a->workspace.forward == b->workspace.forward &&
                                a->workspace.backward == b->workspace.backward);
                }
            }
}

/* Models, with the number of linear layers that read the input of attention, and the input of the MLP. Then the other
 * tensors that a block keeps of each token: values of the width `hidden`, without the inputs of its linear layers,
 * before and after a tensor group divides them; values of the MLP's width; bytes of masks over the width; values and
 * bytes of masks of scores. */
static const struct {
    const char *model;
    enum dtype dtype;
    int qkv, up;                 /* linear layers */
    double whole, divided, ffn;  /* values: norms' inputs; queries, keys and values; the activation function's inputs */
    double masks, scores, score_masks;
} models[] = {
    {"preset: gpt2-355m", DTYPE_FP16, 1, 1, 2, 3, 1, 2, 2, 1},
    {"preset: llama3-8b", DTYPE_BF16, 1, 1, 2, 1 + 2. / 4, 2, 0, 1, 0},
    {"{preset: bert-large, with: {fused_qkv: false}}", DTYPE_FP32, 3, 1, 2, 3, 1, 2, 2, 1},
};

/* Values that a block's linear layers read, and values of the gradients of their results, each times `rows`. */
struct widths { double in, shared_in, out; };

static struct widths widths_of(size_t i, const struct transformer *shape, int tensor)
{
    double h = shape->hidden, f = shape->ffn / (double)tensor, kv = 2. * shape->kv_heads * shape->head_size / tensor;

    return (struct widths){
        .in = (models[i].qkv + models[i].up) * h + h / tensor + f,
        .shared_in = 2 * h + h / tensor + f,
        .out = h / tensor + kv + h + (shape->mlp == MLP_SWIGLU ? 2 : 1) * f + h,
    };
}

static const struct layer *block_of(const struct layers *layers)
{
    return &layers->items[layers->count / 2];
}

static void test_randomized(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(models); i++)
        for (int tensor = 1; tensor <= 4; tensor *= 2)
            for (int tenths = 1; tenths <= 10; tenths += 3) {
                struct model model = load_good(models[i].model);
                struct shard shard = {.micro = 2, .tensor = tensor, .dtype = models[i].dtype};
                struct layers plain = cut(&model, shard);

                shard.saved.randomized_linear = tenths / 10.;
                struct layers random = cut(&model, shard);
                const struct layer *a = block_of(&plain), *b = block_of(&random);
                const struct widths each = widths_of(i, model.transformer, tensor);
                double v = dtype_bytes(models[i].dtype), n = 2. * model.transformer->sequence, p = floor(tenths / 10. * n);
                double matrices = models[i].qkv + 1 + models[i].up + 1;      /* one of p x n values for each linear layer */
                double forward = v * (matrices * p * n + 2 * p * each.in);   /* written; the projections divided by p */

                assert_close(b->activation, a->activation + v * (p * each.in - n * each.shared_in));
                assert_close(flop_of(b, PHASE_FORWARD), flop_of(a, PHASE_FORWARD) + 2 * p * n * each.in);
                assert_close(flop_of(b, PHASE_BACKWARD_WEIGHT),
                             flop_of(a, PHASE_BACKWARD_WEIGHT) * p / n + 2 * p * n * each.out);
                assert_true(flop_of(b, PHASE_BACKWARD_INPUT) == flop_of(a, PHASE_BACKWARD_INPUT));
                assert_close(kernel_sums(b, "random-matrix", PHASE_FORWARD).bytes +
                             kernel_sums(b, "random-scale", PHASE_FORWARD).bytes, forward);
                assert_close(kernel_sums(b, "random-matrix", PHASE_BACKWARD_WEIGHT).bytes, v * matrices * p * n);
                assert_true(b->checkpoint == a->checkpoint && b->within == a->within);
                assert_true(b->workspace.forward >= v * p * n && b->workspace.backward >= a->workspace.backward);
                assert_true(plain.items[0].activation == random.items[0].activation &&
                            plain.items[plain.count - 1].activation == random.items[random.count - 1].activation);
            }
}

/* A projection has at least one row. */
static void test_least_rows(void **state)
{
    (void)state;
    struct model model = load_good("{preset: gpt2-355m, sequence: 8}");
    struct shard shard = {.micro = 1, .tensor = 1, .dtype = DTYPE_FP32, .saved = {.randomized_linear = 0.01}};
    struct layers one = cut(&model, shard);

    shard.saved.randomized_linear = 1. / 8;
    struct layers eighth = cut(&model, shard);
    assert_true(block_of(&one)->activation == block_of(&eighth)->activation);    /* one row */
}

static void test_quantized(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(models); i++)
        for (int tensor = 1; tensor <= 4; tensor *= 2)
            for (int bits = 2; bits <= 8; bits++) {
                struct model model = load_good(models[i].model);
                struct shard shard = {.micro = 2, .tensor = tensor, .dtype = models[i].dtype,
                                      .saved = {.activations_bits = bits}};
                struct layers quantized = cut(&model, shard);
                const struct layer *b = block_of(&quantized);
                const struct transformer *shape = model.transformer;
                double v = dtype_bytes(models[i].dtype), n = 2. * shape->sequence, h = shape->hidden;
                double q = bits / 8. + 2 * 2. / 256;     /* a least value and a scale of 2 bytes for 256 values */
                double scores = n * shape->sequence * shape->heads / tensor, inputs = n * widths_of(i, shape, tensor).in;
                double others = n * h * (models[i].whole + models[i].divided / tensor) +
                                n * shape->ffn * models[i].ffn / tensor + scores * models[i].scores;

                assert_close(b->activation, q * (inputs + others) + models[i].masks * n * h +
                                            models[i].score_masks * scores);
                assert_close(kernel_sums(b, "least-largest", PHASE_FORWARD).bytes, v * (inputs + others));
                assert_close(kernel_sums(b, "quantize", PHASE_FORWARD).bytes, (v + q) * (inputs + others));
                assert_close(kernel_sums(b, "dequantize", PHASE_BACKWARD_INPUT).bytes, (v + q) * others);
                assert_close(kernel_sums(b, "dequantize", PHASE_BACKWARD_WEIGHT).bytes, (v + q) * inputs);
                assert_true(b->within == 0);             /* a checkpoint is no part of what is packed */
            }
}

/* Under selective recomputation the core is not kept, and its recomputation packs its tensors. FlashAttention and the
 * projection keep the same tensor, each packed. A recomputation does not pack the bits of a function's derivative; it
 * packs projections. */
static void test_combined(void **state)
{
    (void)state;
    struct model model = load_good("preset: gpt2-355m"), flash = load_good("{preset: gpt2-355m, with: "
                                                                           "{flash_attention: true}}");
    struct shard shard = {.micro = 2, .tensor = 1, .dtype = DTYPE_FP16, .saved = {.activations_bits = 4}};
    double n = 2. * 1024, h = 1024, f = 4096, q = 0.5 + 1. / 64, scores = n * 1024 * 16;
    struct layers all = cut(&model, shard), fast = cut(&flash, shard);
    double rest = q * n * (2 * h + 2 * h + 3 * h + h + 2 * f) + 2 * n * h, core = 0;

    assert_close(block_of(&all)->activation, rest + q * 2 * scores + scores);
    assert_close(block_of(&all)->selective_activation, rest);
    assert_close(block_of(&fast)->activation, rest + q * n * h + 4 * scores / 1024);
    for (size_t k = 0; k < block_of(&all)->nkernels; k++) {
        const struct kernel *kernel = &block_of(&all)->kernels[k];

        core += in_core(block_of(&all), kernel) && !strcmp(kernel->name, "quantize") ? kernel->launches * kernel->bytes : 0;
    }
    assert_close(core, 2 * scores * (2 + q));
    shard.saved.few_bit = 3;
    assert_close(cut(&model, shard).items[1].activation, rest + q * 2 * scores + scores + n * f * (3 / 8. - q));
    shard.saved.randomized_linear = 0.25;
    assert_close(cut(&model, shard).items[1].activation,
                 rest + q * 2 * scores + scores + n * f * (3 / 8. - q) - 0.75 * q * n * (2 * h + h + f));
}

/* The tensors of a block, by hand: bytes of a token that every GPU of the tensor group keeps, bytes of a token that the
 * group divides, and bytes of a score, which it divides too. NULL ends them. */
static const struct {
    const char *model;
    enum dtype dtype;
    struct { const char *name; double whole, divided, score; } tensors[16];
} lists[] = {
    {"preset: gpt2-355m", DTYPE_FP16, {
        {"norm input", 2 * 1024, 0, 0}, {"norm input", 2 * 1024, 0, 0}, {"qkv input", 2 * 1024, 0, 0},
        {"up input", 2 * 1024, 0, 0}, {"dropout masks", 2 * 1024, 0, 0}, {"qkv", 0, 2 * 3 * 1024, 0},
        {"projection input", 0, 2 * 1024, 0}, {"function input", 0, 2 * 4096, 0}, {"down input", 0, 2 * 4096, 0},
        {"softmax", 0, 0, 2}, {"attention mask", 0, 0, 1}, {"probabilities", 0, 0, 2}}},
    {"{preset: llama3-8b, with: {flash_attention: true}}", DTYPE_BF16, {
        {"norm input", 2 * 4096, 0, 0}, {"norm input", 2 * 4096, 0, 0}, {"qkv input", 2 * 4096, 0, 0},
        {"up input", 2 * 4096, 0, 0}, {"qkv", 0, 2 * (4096 + 2 * 1024), 0}, {"attention output", 0, 2 * 4096, 0},
        {"function input", 0, 2 * 14336, 0}, {"gate", 0, 2 * 14336, 0}, {"down input", 0, 2 * 14336, 0},
        {"sums of scores", 0, 4 * 32, 0}}},
    {"{preset: bert-large, with: {fused_gelu: false}}", DTYPE_FP32, {
        {"norm input", 4 * 1024, 0, 0}, {"norm input", 4 * 1024, 0, 0}, {"qkv input", 4 * 1024, 0, 0},
        {"up input", 4 * 1024, 0, 0}, {"dropout masks", 2 * 1024, 0, 0}, {"qkv", 0, 4 * 3 * 1024, 0},
        {"projection input", 0, 4 * 1024, 0}, {"function input", 0, 4 * 4096, 0}, {"function input", 0, 4 * 4096, 0},
        {"function input", 0, 4 * 4096, 0}, {"function input", 0, 4 * 4096, 0}, {"function input", 0, 4 * 4096, 0},
        {"function input", 0, 4 * 4096, 0}, {"function input", 0, 4 * 4096, 0}, {"down input", 0, 4 * 4096, 0}}},
};

static void test_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lists); i++)
        for (int tensor = 1; tensor <= 4; tensor *= 2) {
            struct model model = load_good(lists[i].model);
            const struct transformer *shape = model.transformer;
            struct shard shard = {.micro = 3, .tensor = tensor, .dtype = lists[i].dtype};
            const struct layer *block = &cut(&model, shard).items[1];
            double tokens = 3. * shape->sequence, scores = tokens * shape->heads * shape->sequence, sum = 0;
            size_t count = 0;

            for (; count < COUNT(lists[i].tensors) && lists[i].tensors[count].name; count++) {
                double bytes = tokens * (lists[i].tensors[count].whole + lists[i].tensors[count].divided / tensor) +
                               scores / tensor * lists[i].tensors[count].score;

                assert_true(count < block->nsaved);
                assert_string_equal(block->saved[count].name, lists[i].tensors[count].name);
                assert_close(block->saved[count].bytes, bytes);
                assert_true(block->saved[count].core == (lists[i].tensors[count].score > 0 ||
                                                         !strcmp(block->saved[count].name, "sums of scores")));
                sum += bytes;
            }
            for (size_t k = count; k < block->nsaved; k++) {     /* BERT's core */
                assert_true(i == 2 && block->saved[k].core);
                sum += block->saved[k].bytes;
            }
            assert_close(sum, block->activation);
        }
}

/* In each form, and under every mode that recomputes tensors of blocks, they add up to the bytes that a block keeps. */
static void test_sums(void **state)
{
    static const char *const texts[] = {
        "preset: gpt2-355m", "{preset: llama3-8b, with: {fused_kernels: false}}", "preset: mixtral-8x7b",
        "preset: deepseek-v3", "{preset: gpt2-355m, with: {flash_attention: true}}",
    };
    static const struct shard shards[] = {
        {.saved = {.few_bit = 3}}, {.saved = {.randomized_linear = 0.1}}, {.saved = {.activations_bits = 4}},
        {.recompute = RECOMPUTE_SELECTIVE}, {.recompute = RECOMPUTE_MODULES, .recomputed = MODULES_CHEAP},
        {.recompute = RECOMPUTE_MODULES, .recomputed = 1u << MODULE_CORE | 1u << MODULE_MLP},
        {.recompute = RECOMPUTE_FULL},
        {.saved = {.few_bit = 2, .activations_bits = 8}}, {.formula = ACTIVATIONS_RAJBHANDARI},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t k = 0; k < COUNT(shards); k++) {
            struct model model = load_good(texts[i]);
            struct shard shard = shards[k];
            struct layers layers;

            shard.micro = 2, shard.tensor = 1 + (int)(k % 2), shard.dtype = DTYPE_BF16;
            layers = cut(&model, shard);
            for (size_t l = 0; l < layers.count; l++) {
                double sum = 0;

                for (size_t t = 0; t < layers.items[l].nsaved; t++)
                    sum += layers.items[l].saved[t].bytes;
                if (layers.items[l].role == LAYER_BLOCK)
                    assert_close(sum, layers.items[l].activation);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_few_bit, forget),
        cmocka_unit_test_teardown(test_randomized, forget),
        cmocka_unit_test_teardown(test_least_rows, forget),
        cmocka_unit_test_teardown(test_quantized, forget),
        cmocka_unit_test_teardown(test_combined, forget),
        cmocka_unit_test_teardown(test_tensors, forget),
        cmocka_unit_test_teardown(test_sums, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
