/* calibrate_check: samples against a profile that was not fitted to them; samples of narrow formats and of experts. */
#include "calibrated.h"

enum { SMS = 132 };
static const struct matmul_fit truth = {
    .rate = 1400e12,
    .intensity = 12,
    .fill = 1e-6,
    .quantization = 0.4,
    .bandwidth = 3e12,
    .overlap = 3,
    .overhead = 3e-6,
    .layout = {1, 1, 1},
    .unaligned = 1,
    .quantize = 1.5e12,
    .speed = 1,
};

static void add(struct samples *samples, enum product_form form, enum dtype dtype, int count, double times)
{
    uint64_t seed = 7;

    samples->gpu = "test";
    samples->sms = SMS;
    samples->attention = ATTENTION_FLASH_2;
    for (int i = 0; i < count; i++) {
        double batch = form >= FORM_GROUPED ? pow(2, i % 8) : 1;
        struct product product = {batch,
                                  random_side(&seed, 512, 32768, 64),
                                  random_side(&seed, 256, 8192, 64),
                                  random_side(&seed, 256, 8192, 64),
                                  LAYOUT_NT,
                                  dtype_bytes(dtype),
                                  form,
                                  {.exponent = 0}};

        *GROW(samples) = (struct sample){
            .kind = SAMPLE_MATMUL,
            .which = (int)form,
            .dtype = dtype,
            .layout = LAYOUT_NT,
            .batch = batch,
            .m = product.m,
            .n = product.n,
            .k = product.k,
            .seconds = times * matmul_seconds(&truth, SMS, &product),
        };
    }
}

/* Products that quantise first: the fit finds what the products alone take. */
static void quantized_products(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    struct product alone = {1, 4096, 4096, 4096, LAYOUT_NT, 0.5, FORM_MATMUL, {.exponent = 0}};

    (void)state;
    add(&samples, FORM_QUANTIZED, DTYPE_NVFP4, 500, 1);
    calibrated(&arena, &samples, &calibration);
    const struct matmul_record *record = calibration.profile.matmul.items;
    assert_int_equal(calibration.profile.matmul.count, 1);
    assert_true(list_has(&record->dtypes, DTYPE_NVFP4) && record->error.held_out > 50);
    assert_near("error", 1 + record->error.mean, 1, 0.01);
    assert_near("quantize", record->fit.quantize, truth.quantize, 0.05);
    assert_near("alone", profile_product(&calibration.profile, DTYPE_NVFP4, &alone).seconds,
                matmul_seconds(&truth, SMS, &alone), 0.03);
    assert_true(isnan(profile_product(&calibration.profile, DTYPE_FP8, &alone).seconds));
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* Layers and grouped products have one record; without it grouped products have single products' tiles, scaled from
 * other kernels. */
static void grouped_products(void **state)
{
    struct arena arena = {0};
    struct samples layers = {.arena = &arena}, products = {.arena = &arena};
    struct calibration calibration;
    struct product grouped = {64, 65536, 1024, 4096, LAYOUT_NT, 2, FORM_GROUPED, {.exponent = 0}};

    (void)state;
    add(&layers, FORM_EXPERTS, DTYPE_BF16, 300, 1);
    add(&layers, FORM_GROUPED, DTYPE_BF16, 300, 1);
    calibrated(&arena, &layers, &calibration);
    assert_true(calibration.profile.grouped.count == 1 && calibration.profile.matmul.count == 0);
    assert_near("grouped", profile_product(&calibration.profile, DTYPE_BF16, &grouped).seconds,
                matmul_seconds(&truth, SMS, &grouped), 0.02);
    assert_int_equal(profile_product(&calibration.profile, DTYPE_BF16, &grouped).basis, BASIS_SIZES);
    grouped.m = 16384;
    assert_int_equal(profile_product(&calibration.profile, DTYPE_BF16, &grouped).basis, BASIS_MEASURED);
    calibration_release(&calibration);
    add(&products, FORM_MATMUL, DTYPE_BF16, 500, 1);
    calibrated(&arena, &products, &calibration);
    assert_true(calibration.profile.grouped.count == 0 && calibration.profile.matmul.count == 1);
    assert_near("scaled", profile_product(&calibration.profile, DTYPE_BF16, &grouped).seconds,
                matmul_seconds(&truth, SMS, &grouped), 0.05);
    assert_int_equal(profile_product(&calibration.profile, DTYPE_BF16, &grouped).basis, BASIS_KERNELS);
    calibration_release(&calibration);
    samples_release(&layers);
    samples_release(&products);
    arena_release(&arena);
}

/* Samples a tenth slower than the profile are so in every row; a job's speed does not change the rows of bursts. */
static void compared(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    enum dtype halves[] = {DTYPE_BF16};
    enum matmul_layout layouts[] = {LAYOUT_NT};
    struct matmul_record record = {
        .dtypes = {.items = halves, .count = 1},
        .layouts = {.items = layouts, .count = 1},
        .fit = truth,
        .batch = {.from = 1, .to = 1},
        .m = {.from = 512, .to = 8192},
        .n = {.from = 1, .to = 1e5},
        .k = {.from = 1, .to = 1e5},
    };
    struct profile profile = {.gpu = "test", .sms = SMS, .matmul = {.items = &record, .count = 1}};
    struct compared_costs *rows;
    size_t count;

    (void)state;
    record.fit.speed = 0.8;
    record.fit.sustained = 50e12;
    add(&samples, FORM_MATMUL, DTYPE_BF16, 100, 1.1);
    add(&samples, FORM_MATMUL, DTYPE_FP8, 1, 1);
    *GROW(&samples) = (struct sample){.kind = SAMPLE_UNUSED};
    add(&samples, FORM_MATMUL, DTYPE_BF16, 1, 1.1);
    samples.items[102].kind = SAMPLE_SUSTAINED;
    rows = calibrate_check(&arena, &profile, &samples, &count);
    assert_int_equal(count, 102);
    for (size_t i = 0; i < 100; i++) {
        assert_near("predicted", rows[i].predicted.seconds, samples.items[i].seconds / 1.1, 1e-9);
        assert_int_equal(rows[i].predicted.basis, samples.items[i].m > 8192 ? BASIS_SIZES : BASIS_MEASURED);
    }
    assert_true(isnan(rows[100].predicted.seconds));
    struct product lasting = sample_product(&samples.items[102]);
    assert_near("sustained", rows[101].predicted.seconds, matmul_seconds(&record.fit, SMS, &lasting), 1e-9);
    assert_true(rows[101].predicted.seconds > rows[0].predicted.seconds);
    samples_release(&samples);
    arena_release(&arena);
}

static const char head[] = "# gpu: test\n# sms: 132\n"
                           "kernel,dtype,batch,m,n,k,layout,bytes,median_us,window,expert_skew,skew_range\n";

static int parse(struct samples *samples, const char *rows, struct error *err)
{
    char text[2000];

    snprintf(text, sizeof text, "%s%s", head, rows);
    return samples_parse(samples, "samples.csv", text, strlen(text), err);
}

/* A window and uneven experts: check says what the model of kernel times says of them; nothing is fitted to them. */
static void derived(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    enum dtype halves[] = {DTYPE_BF16};
    enum matmul_layout layouts[] = {LAYOUT_NT};
    struct matmul_record grouped = {
        .dtypes = {.items = halves, .count = 1}, .layouts = {.items = layouts, .count = 1}, .fit = truth};
    struct attention_record fused = {
        .generation = ATTENTION_FLASH_2,
        .direction = ATTENTION_FORWARD_CAUSAL,
        .dtypes = {.items = halves, .count = 1},
        .fit = {.rate = 900e12, .score = 1e-12, .overlap = 4, .fill = 1e-6, .tail = 0.5, .bandwidth = 3e12,
                .overhead = 3e-6, .speed = 1},
    };
    struct profile profile = {.gpu = "test", .sms = SMS, .grouped = {.items = &grouped, .count = 1},
                              .attention = {.items = &fused, .count = 1}};
    struct heads heads = {64, 8192, 8192, 128, 2, 0, 512};
    struct product layer = {16, 65536, 2048, 4096, LAYOUT_NT, 2, FORM_EXPERTS, {1.2, .measured_range = 3000}};
    struct calibration calibration;
    struct compared_costs *rows;
    struct error err = {0};
    size_t count;

    (void)state;
    assert_int_equal(parse(&samples, "attention-forward-causal,bf16,64,8192,8192,128,,,400,512,,\n"
                                     "attention-forward-causal,bf16,64,8192,8192,128,,,3000,,,\n"
                                     "moe,bf16,16,65536,2048,4096,,,5000,,1.2,3000\n"
                                     "moe,bf16,16,65536,2048,4096,,,5000,,,\n", &err), 0);
    rows = calibrate_check(&arena, &profile, &samples, &count);
    assert_int_equal(count, 4);
    assert_near("window", rows[0].predicted.seconds,
                attention_seconds(&fused.fit, SMS, ATTENTION_FORWARD_CAUSAL, &heads), 1e-9);
    heads.window = 0;
    assert_near("no window", rows[1].predicted.seconds,
                attention_seconds(&fused.fit, SMS, ATTENTION_FORWARD_CAUSAL, &heads), 1e-9);
    assert_true(rows[0].predicted.seconds < 0.3 * rows[1].predicted.seconds);
    assert_true(sample_flop(&samples.items[0]) < 0.2 * sample_flop(&samples.items[1]));
    assert_near("skew", rows[2].predicted.seconds, matmul_seconds(&truth, SMS, &layer), 1e-9);
    layer.skew = (struct skew){0};
    assert_near("even", rows[3].predicted.seconds, matmul_seconds(&truth, SMS, &layer), 1e-9);
    assert_true(rows[2].predicted.seconds > rows[3].predicted.seconds);
    add(&samples, FORM_MATMUL, DTYPE_BF16, 100, 1);
    calibrated(&arena, &samples, &calibration);
    assert_int_equal(calibration.unused, 2);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* Where all experts of a format are uneven, the fit takes them; even ones of another format change nothing. */
static void uneven_experts_alone(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;

    (void)state;
    add(&samples, FORM_GROUPED, DTYPE_BF16, 120, 1);
    for (size_t i = 0; i < samples.count; i++) {
        struct sample *sample = &samples.items[i];
        struct product product;

        sample->skew = (struct skew){1.2, .measured_range = 3000};
        product = sample_product(sample);
        sample->seconds = matmul_seconds(&truth, SMS, &product);
    }
    add(&samples, FORM_GROUPED, DTYPE_FP8, 120, 1);
    calibrated(&arena, &samples, &calibration);
    assert_int_equal(calibration.unused, 0);
    assert_int_equal(calibration.profile.grouped.count, 2);
    const struct matmul_record *uneven = calibration.profile.grouped.items;
    assert_true(list_has(&uneven->dtypes, DTYPE_BF16) && uneven->error.mean < 0.05);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* Columns that mean nothing for a kernel, half of a skew, and a layer of nobody knows how many experts. */
static void misplaced(void **state)
{
    static const struct { const char *row, *message; } cases[] = {
        {"attention-forward,bf16,64,8192,8192,128,,,4000,512,,\n",
         "window: found 512; expected an empty cell, because only causal attention has a window"},
        {"adam,bf16,,1024,,,,,4,512,,\n", "window: found 512; expected an empty cell"},
        {"matmul,bf16,1,4096,4096,4096,nt,,400,,1.2,3000\n",
         "expert_skew: found 1.2; expected an empty cell, because only experts' rows may be uneven"},
        {"moe,bf16,16,65536,2048,4096,,,5000,,1.2,\n", "found one of them; expected both"},
        {"moe,bf16,16,65536,2048,4096,,,5000,,1.2,1\n", "skew_range: found 1; expected more than 1"},
        {"moe,bf16,16,65536,2048,4096,,,5000,,-1,3000\n", "expert_skew: found -1; expected a positive number"},
        {"moe,bf16,,65536,2048,4096,,,5000,,,\n", "batch: the cell is empty; expected a positive number"},
        {"attention-forward-causal,bf16,64,8192,8192,128,,,400,0.5,,\n",
         "window: found 0.5; expected a whole number"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena arena = {0};
        struct samples samples = {.arena = &arena};
        struct error err = {0};

        assert_int_equal(parse(&samples, cases[i].row, &err), -1);
        if (!strstr(err.messages[0].text, cases[i].message))
            fail_msg("found '%s', expected '%s'", err.messages[0].text, cases[i].message);
        error_release(&err);
        samples_release(&samples);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantized_products),
        cmocka_unit_test(grouped_products),
        cmocka_unit_test(compared),
        cmocka_unit_test(derived),
        cmocka_unit_test(uneven_experts_alone),
        cmocka_unit_test(misplaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
