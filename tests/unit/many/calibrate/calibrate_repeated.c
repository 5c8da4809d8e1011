/* What only repeated runs have, a clock that falls and a cache that is warm, is found by the fit and kept from jobs. */
#include "calibrated.h"

enum { SMS = 142 };
static const struct matmul_fit truth = {
    .rate = 450e12,
    .intensity = 8,
    .fill = 2e-6,
    .quantization = 0.3,
    .bandwidth = 0.7e12,
    .overlap = 2.5,
    .overhead = 5e-6,
    .layout = {1, 1, 1},
    .unaligned = 1,
    .quantize = 0.55e12,
    .speed = 1,
    .repeated = {.lasting = 0.8, .cache = 75e6, .cache_speed = 4},
};

static void add_products(struct samples *samples, const struct matmul_fit *fit, int count)
{
    uint64_t seed = 5;

    for (int i = 0; i < count; i++) {
        struct product product = {1,
                                  random_side(&seed, 512, 32768, 64),
                                  random_side(&seed, 256, 16384, 64),
                                  random_side(&seed, 256, 16384, 64),
                                  LAYOUT_NT, 1, FORM_QUANTIZED, {.exponent = 0}};

        *GROW(samples) = (struct sample){.kind = SAMPLE_MATMUL,
                                         .which = FORM_QUANTIZED,
                                         .dtype = DTYPE_FP8,
                                         .layout = LAYOUT_NT,
                                         .batch = 1,
                                         .m = product.m,
                                         .n = product.n,
                                         .k = product.k,
                                         .seconds = matmul_seconds(fit, SMS, &product)};
    }
}

/* The record has it for samples alone: its fit, which jobs use, has none of it. */
static void cache_and_clock(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena, .gpu = "test", .sms = SMS, .attention = ATTENTION_FLASH_2};
    struct calibration calibration;
    struct compared_costs *rows;
    size_t count;

    add_products(&samples, &truth, 900);
    calibrated(&arena, &samples, &calibration);
    const struct matmul_record *record = calibration.profile.matmul.items;
    assert_true(record->error.mean < 0.02);
    assert_near("lasting", record->repeated.lasting, 0.8, 0.03);
    assert_near("cache", record->repeated.cache, 75e6, 0.1);
    assert_near("cache_speed", record->repeated.cache_speed, 4, 0.25);
    assert_near("quantize", record->fit.quantize, 0.55e12, 0.1);
    assert_true(record->fit.repeated.lasting == 0 && record->fit.repeated.cache == 0);
    rows = calibrate_check(&arena, &calibration.profile, &samples, &count);
    for (size_t i = 0; i < count; i++)
        assert_near("checked", rows[i].predicted.seconds, samples.items[i].seconds, 0.15);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* Samples whose tensors were rotated tell of no cache, and the record has none. */
static void no_cache(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena, .gpu = "test", .sms = SMS, .attention = ATTENTION_FLASH_2};
    struct calibration calibration;
    struct matmul_fit rotated = truth;

    rotated.repeated.cache = 0;
    add_products(&samples, &rotated, 900);
    calibrated(&arena, &samples, &calibration);
    const struct matmul_record *record = calibration.profile.matmul.items;
    assert_true(record->error.mean < 0.02);
    assert_near("bandwidth", record->fit.bandwidth, 0.7e12, 0.05);
    for (size_t i = 0; i < samples.count; i += 50) {
        struct product product = sample_product(&samples.items[i]);
        struct matmul_fit with = record->fit, without = record->fit;

        with.repeated.cache = record->repeated.cache;
        with.repeated.cache_speed = record->repeated.cache_speed;
        assert_near("found", matmul_seconds(&with, SMS, &product), matmul_seconds(&without, SMS, &product), 0.02);
    }
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

static void clock_of_attention(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena, .gpu = "test", .sms = SMS, .attention = ATTENTION_FLASH_2};
    struct calibration calibration;
    const struct attention_fit flash = {.rate = 250e12, .score = 1e-10, .overlap = 4, .fill = 5e-6, .tail = 0.4,
                                        .bandwidth = 1.5e12, .overhead = 5e-6, .speed = 1,
                                        .repeated = {.lasting = 0.76}};
    uint64_t seed = 3;

    for (int i = 0; i < 400; i++) {
        struct heads heads = {random_side(&seed, 64, 4096, 64), random_side(&seed, 512, 16384, 64), 0,
                              i % 2 ? 64 : 128, 2, 0, 0};

        heads.n = heads.m;
        *GROW(&samples) = (struct sample){
            .kind = SAMPLE_ATTENTION, .which = ATTENTION_FORWARD_CAUSAL, .dtype = DTYPE_BF16, .batch = heads.batch,
            .m = heads.m, .n = heads.n, .k = heads.k,
            .seconds = attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads)};
    }
    calibrated(&arena, &samples, &calibration);
    const struct attention_record *record = calibration.profile.attention.items;
    assert_true(record->error.mean < 0.02);
    assert_near("lasting", record->repeated.lasting, 0.76, 0.05);
    assert_true(record->fit.repeated.lasting == 0);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_and_clock),
        cmocka_unit_test(no_cache),
        cmocka_unit_test(clock_of_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
