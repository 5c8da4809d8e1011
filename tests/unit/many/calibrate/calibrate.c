/* calibrate: fits of samples that were made from known parameters find these, and report their error. */
#include <stdlib.h>

#include "calibrated.h"

static const struct matmul_fit truth = {
    .rate = 230e12, .intensity = 12, .fill = 1.5e-6, .quantization = 0.4, .bandwidth = 1.6e12, .overlap = 3,
    .overhead = 3e-6, .layout = {1.06, 1, 0.95}, .unaligned = 1.4, .odd = 3, .speed = 1,
};
enum { SMS = 108 };

/* Normal to a good part: the sum of twelve. */
static double random_normal(uint64_t *seed)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += random_share(seed);
    return sum;
}

static void add_matmuls(struct samples *samples, int count, double noise)
{
    uint64_t seed = 1;

    samples->gpu = "test";
    samples->sms = SMS;
    for (int i = 0; i < count; i++) {
        enum matmul_layout layout = i % 7 < 4 ? LAYOUT_NT : i % 7 < 6 ? LAYOUT_NN : LAYOUT_TN;
        struct product product = {1,
                                  random_side(&seed, 16, 16384, 8),
                                  random_side(&seed, 512, 16384, 8),
                                  random_side(&seed, 64, 16384, 8) - (i % 5 ? 0 : 1 + i % 2),
                                  layout,
                                  2,
                                  FORM_MATMUL, {.exponent = 0}};

        *GROW(samples) = (struct sample){
            .kind = SAMPLE_MATMUL, .dtype = DTYPE_FP16, .layout = product.layout, .batch = 1, .m = product.m,
            .n = product.n, .k = product.k,
            .seconds = matmul_seconds(&truth, SMS, &product) * exp(noise * random_normal(&seed)),
        };
    }
}

static void parameters_come_back(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    const struct matmul_record *record;

    add_matmuls(&samples, 600, 0);
    calibrated(&arena, &samples, &calibration);
    assert_int_equal(calibration.profile.matmul.count, 1);
    record = calibration.profile.matmul.items;
    assert_near("rate", record->fit.rate, truth.rate, 0.01);
    assert_near("bandwidth", record->fit.bandwidth, truth.bandwidth, 0.02);
    assert_near("overhead", record->fit.overhead, truth.overhead, 0.15);
    assert_near("quantization", record->fit.quantization, truth.quantization, 0.1);
    assert_near("nn", record->fit.layout[LAYOUT_NN], 1.06, 0.01);
    assert_near("tn", record->fit.layout[LAYOUT_TN], 0.95, 0.01);
    assert_true(record->fit.layout[LAYOUT_NT] == 1);
    assert_near("unaligned", record->fit.unaligned, 1.4, 0.02);
    assert_near("odd", record->fit.odd, 3, 0.02);
    assert_true(record->error.held_out > 60 && record->error.mean < 0.01 && record->error.max < 0.05);
    assert_int_equal(record->error.samples + record->error.held_out, 600);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* With 5 % of noise and every twentieth sample three times too slow the rates are found all the same. The error on
 * held-out samples is the noise's. */
static void noise_and_outliers(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    const struct matmul_record *record;

    add_matmuls(&samples, 1500, 0.05);
    for (size_t i = 0; i < samples.count; i += 20)
        samples.items[i].seconds *= 3;
    calibrated(&arena, &samples, &calibration);
    record = calibration.profile.matmul.items;
    assert_near("rate", record->fit.rate, truth.rate, 0.03);
    assert_near("bandwidth", record->fit.bandwidth, truth.bandwidth, 0.06);
    assert_true(record->error.median > 0.02 && record->error.median < 0.05);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

static void add_sustained(struct samples *samples, double share)
{
    static const struct product products[] = {
        {1, 8192, 28672, 8192, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}},
        {1, 8192, 8192, 28672, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}},
        {1, 28672, 8192, 8192, LAYOUT_TN, 2, FORM_MATMUL, {.exponent = 0}},
    };
    struct matmul_fit slower = truth;

    slower.speed = share;
    for (size_t i = 0; i < COUNT(products); i++)
        *GROW(samples) = (struct sample){
            .kind = SAMPLE_SUSTAINED, .dtype = DTYPE_FP16, .layout = products[i].layout, .batch = 1, .m = products[i].m,
            .n = products[i].n, .k = products[i].k, .seconds = matmul_seconds(&slower, SMS, &products[i]),
        };
}

/* Bursts and what lasts: the errors are of the bursts, the record has the share; what lasts better than bursts, as a
 * cold chip's would, is no share above 1. */
static void what_lasts(void **state)
{
    static const double shares[] = {0.85, 1.1};

    (void)state;
    for (size_t i = 0; i < COUNT(shares); i++) {
        struct arena arena = {0};
        struct samples samples = {.arena = &arena};
        struct calibration calibration;
        const struct matmul_record *record;

        add_matmuls(&samples, 600, 0);
        add_sustained(&samples, shares[i]);
        calibrated(&arena, &samples, &calibration);
        record = calibration.profile.matmul.items;
        assert_near("speed", record->fit.speed, fmin(1, shares[i]), 0.01);
        assert_near("rate", record->fit.rate, truth.rate, 0.01);
        assert_true(record->error.mean < 0.01 && record->error.samples + record->error.held_out == 600);
        assert_true(record->m.to <= 16384 && calibration.sustained[DTYPE_FP16].measured == 3);
        assert_true(calibration.sustained[DTYPE_FP8].measured == 0 && calibration.unused == 0);
        calibration_release(&calibration);
        samples_release(&samples);
        arena_release(&arena);
    }
}

/* A large product keeps 0.7 of its speed and takes nearly all the time; nine small ones keep 0.95. */
static void what_lasts_is_weighed_by_time(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    struct matmul_fit as_fitted;
    double measured = 0, predicted = 0;

    (void)state;
    add_matmuls(&samples, 600, 0);
    for (int i = 0; i < 10; i++) {
        const double side = i ? 2048 : 16384;
        const struct product product = {1, side, side, side, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}};
        struct matmul_fit slower = truth;

        slower.speed = i ? 0.95 : 0.7;
        *GROW(&samples) = (struct sample){.kind = SAMPLE_SUSTAINED, .dtype = DTYPE_FP16, .layout = LAYOUT_NT,
                                          .batch = 1, .m = side, .n = side, .k = side,
                                          .seconds = matmul_seconds(&slower, SMS, &product)};
    }
    calibrated(&arena, &samples, &calibration);
    as_fitted = ((const struct matmul_record *)calibration.profile.matmul.items)->fit;
    for (size_t i = 600; i < samples.count; i++) {
        const struct product product = sample_product(&samples.items[i]);

        measured += samples.items[i].seconds;
        predicted += matmul_seconds(&as_fitted, SMS, &product);
    }
    assert_near("the times' sum", predicted, measured, 2e-3);
    assert_near("speed", as_fitted.speed, 0.7, 0.02);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* The half formats have one record, from the samples of both, and what was measured to last of one lasts; of single
 * precision that says nothing. */
static void halves_are_one(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    const struct matmul_record *single, *half;

    (void)state;
    add_matmuls(&samples, 600, 0);
    for (size_t i = 0; i < 600; i++) {
        struct sample other = samples.items[i];

        other.dtype = i % 2 ? DTYPE_FP32 : DTYPE_BF16;
        *GROW(&samples) = other;
    }
    add_sustained(&samples, 0.85);
    calibrated(&arena, &samples, &calibration);
    assert_int_equal(calibration.profile.matmul.count, 2);
    single = calibration.profile.matmul.items;
    half = single + 1;
    assert_true(single->dtypes.count == 1 && *(const int *)single->dtypes.items == DTYPE_FP32);
    assert_near("speed", single->fit.speed, 1, 0.01);
    assert_true(half->dtypes.count == 2 && half->error.samples + half->error.held_out == 900);
    assert_near("rate", half->fit.rate, truth.rate, 0.01);
    assert_near("speed", half->fit.speed, 0.85, 0.01);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

static void a_shape_is_held_out_or_not(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;

    add_matmuls(&samples, 200, 0);
    for (size_t i = 0; i < 200; i++) {
        struct sample again = samples.items[i];

        again.seconds *= 1.01;
        *GROW(&samples) = again;
    }
    calibrated(&arena, &samples, &calibration);
    const struct sample_group *group = &calibration.groups.items[0];
    assert_true(group->held_out.count > 40 && group->held_out.count < 140);
    for (size_t i = 0; i < group->held_out.count; i++)
        for (size_t k = 0; k < group->fit.count; k++)
            assert_false(group->fit.items[k]->m == group->held_out.items[i]->m &&
                         group->fit.items[k]->n == group->held_out.items[i]->n &&
                         group->fit.items[k]->k == group->held_out.items[i]->k);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* As many single products and batched ones; `many` is the truth of these. */
static void add_batched(struct samples *samples, const struct matmul_fit *many)
{
    uint64_t seed = 3;

    add_matmuls(samples, 300, 0);
    for (int i = 0; i < 300; i++) {
        struct product product = {random_side(&seed, 8, 64, 8) - (i % 3 ? 0 : 6),
                                  random_side(&seed, 128, 2048, 8),
                                  random_side(&seed, 64, 2048, 8),
                                  random_side(&seed, 64, 2048, 8) - (i % 5 ? 0 : 2),
                                  LAYOUT_NN,
                                  2,
                                  FORM_MATMUL, {.exponent = 0}};

        *GROW(samples) = (struct sample){
            .kind = SAMPLE_MATMUL, .dtype = DTYPE_FP16, .layout = LAYOUT_NN, .batch = product.batch, .m = product.m,
            .n = product.n, .k = product.k, .seconds = matmul_seconds(many, SMS, &product),
        };
    }
}

/* Batched products share the record of single ones if that predicts them; else they get a second record. A kernel is
 * timed by the record of its batch size, or of the nearest. */
static void single_and_batched(void **state)
{
    (void)state;
    for (int differ = 0; differ <= 1; differ++) {
        struct arena arena = {0};
        struct samples samples = {.arena = &arena};
        struct calibration calibration;
        struct matmul_fit many = truth;

        many.rate *= differ ? 0.6 : 1;
        add_batched(&samples, &many);
        calibrated(&arena, &samples, &calibration);
        const struct matmul_record *records = calibration.profile.matmul.items;
        assert_int_equal(calibration.profile.matmul.count, 1 + differ);
        assert_int_equal(calibration.groups.count, 1 + differ);
        if (differ) {
            assert_true(records[0].batch.from == 1 && records[0].batch.to == 1);
            assert_true(records[1].batch.from == 2 && records[1].batch.to == 64);
            assert_near("single", records[0].fit.rate, truth.rate, 0.02);
            assert_near("batched", records[1].fit.rate, many.rate / 1.06, 0.02);
        }
        for (double batch = 1; batch < 1e4; batch *= 4) {
            struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_NN, .batch = batch,
                                    .m = 1024, .n = 1024, .k = 1024};
            struct product product = {batch, 1024, 1024, 1024, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};

            assert_near("seconds", profile_kernel(&calibration.profile, &kernel, ATTENTION_NEWEST).seconds,
                        matmul_seconds(batch > 1 ? &many : &truth, SMS, &product), 0.03);
            assert_int_equal(profile_kernel(&calibration.profile, &kernel, ATTENTION_NEWEST).basis == BASIS_SIZES,
                             batch > 64);
        }
        calibration_release(&calibration);
        samples_release(&samples);
        arena_release(&arena);
    }
}

/* A profile that is written and read back is the same, and so are the times of kernels. */
static void round_trip(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    struct profile again;
    struct error err = {0};
    struct node *root;
    char *text, *twice;

    add_matmuls(&samples, 100, 0.02);
    calibrated(&arena, &samples, &calibration);
    calibration.profile.source = "a test";
    text = printed(field_dump(&arena, &profile_table, &calibration.profile), node_print);
    assert_int_equal(conf_parse(&arena, "profile", text, strlen(text), &root, &err), 0);
    assert_int_equal(field_parse(&arena, &profile_table, root, &again, &err), 0);
    twice = printed(field_dump(&arena, &profile_table, &again), node_print);
    assert_string_equal(text, twice);
    const struct covered_range *range = &((const struct matmul_record *)again.matmul.items)->m;
    for (double m = 4; m < 1e5; m *= 3) {
        struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_NN, .batch = 1, .m = m,
                                .n = 4096, .k = 1024};

        struct kernel_seconds before = profile_kernel(&calibration.profile, &kernel, ATTENTION_NEWEST);
        struct kernel_seconds after = profile_kernel(&again, &kernel, ATTENTION_NEWEST);

        assert_true(after.seconds == before.seconds);
        assert_true((after.basis != BASIS_MEASURED) == (m < range->from || m > range->to));
    }
    free(text);
    free(twice);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

static void too_few(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    struct error err = {0};

    add_matmuls(&samples, 5, 0);
    assert_int_equal(calibrate(&arena, &samples, &calibration, &err), -1);
    assert_int_equal(err.count, 1);
    error_release(&err);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_come_back), cmocka_unit_test(noise_and_outliers),
        cmocka_unit_test(a_shape_is_held_out_or_not),
        cmocka_unit_test(single_and_batched), cmocka_unit_test(what_lasts),
        cmocka_unit_test(what_lasts_is_weighed_by_time), cmocka_unit_test(halves_are_one),
        cmocka_unit_test(round_trip), cmocka_unit_test(too_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
