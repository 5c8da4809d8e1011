/* calibrate_attention: fits of attention's samples, and of kernels bound by memory, find what these were made from. */
#include "calibrated.h"

enum { SMS = 108 };

/* Attention kernels that the samples come from. */
static const struct attention_fit flash = {.rate = 200e12, .score = 2e-12, .overlap = 1, .fill = 1e-6, .tail = 0.6,
                                           .bandwidth = 1.5e12, .overhead = 4e-6, .speed = 1};

static void attention_and_memory(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena, .gpu = "test", .sms = SMS};
    struct calibration calibration;
    uint64_t seed = 7;

    for (int i = 0; i < 200; i++) {
        struct heads heads = {random_side(&seed, 8, 512, 8), random_side(&seed, 128, 8192, 8), 0,
                              i % 2 ? 64 : 128, 2, 0, 0};

        heads.n = heads.m;
        *GROW(&samples) = (struct sample){
            .kind = SAMPLE_ATTENTION, .which = ATTENTION_BACKWARD, .dtype = DTYPE_BF16, .batch = heads.batch,
            .m = heads.m, .n = heads.n, .k = heads.k,
            .seconds = attention_seconds(&flash, SMS, ATTENTION_BACKWARD, &heads),
        };
        *GROW(&samples) = (struct sample){.kind = SAMPLE_MEMORY, .which = CLASS_GELU_FORWARD, .bytes = heads.m * 1e5,
                                          .seconds = 2e-6 + heads.m * 1e5 / 1.3e12};
    }
    calibrated(&arena, &samples, &calibration);
    const struct attention_record *attention = calibration.profile.attention.items;
    const struct memory_record *memory = calibration.profile.memory.items;
    assert_int_equal(calibration.profile.attention.count, 1);
    assert_true(attention->direction == ATTENTION_BACKWARD && attention->error.mean < 0.02);
    assert_int_equal(attention->dtypes.count, 2);
    assert_int_equal(calibration.profile.memory.count, 2);
    assert_int_equal(memory[0].class, CLASS_OTHER);
    assert_int_equal(memory[1].class, CLASS_GELU_FORWARD);
    assert_near("bandwidth", memory[1].fit.bandwidth, 1.3e12, 1e-3);
    assert_near("overhead", memory[1].fit.overhead, 2e-6, 1e-2);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

/* Attention with few shapes under one mask is fitted together with attention under the other mask, and both get a
 * record. */
static void masks_together(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct samples samples = {.arena = &arena, .gpu = "test", .sms = SMS};
    struct calibration calibration;
    uint64_t seed = 11;

    for (int i = 0; i < 120; i++) {
        enum attention_direction direction = i % 10 ? ATTENTION_FORWARD_CAUSAL : ATTENTION_FORWARD;
        struct heads heads = {random_side(&seed, 8, 512, 8), random_side(&seed, 128, 8192, 8), 0,
                              i % 3 ? 64 : 128, 2, 0, 0};

        heads.n = heads.m;
        heads.bytes = (1 + i % 4) * attention_bytes(direction, &heads);
        *GROW(&samples) = (struct sample){
            .kind = SAMPLE_ATTENTION, .which = (int)direction, .dtype = DTYPE_BF16, .batch = heads.batch,
            .m = heads.m, .n = heads.n, .k = heads.k, .bytes = heads.bytes,
            .seconds = attention_seconds(&flash, SMS, direction, &heads),
        };
    }
    calibrated(&arena, &samples, &calibration);
    const struct attention_record *records = calibration.profile.attention.items;
    assert_int_equal(calibration.profile.attention.count, 2);
    assert_int_equal(records[0].direction, ATTENTION_FORWARD);
    assert_int_equal(records[1].direction, ATTENTION_FORWARD_CAUSAL);
    assert_true(records[0].fit.rate == records[1].fit.rate && records[1].error.mean < 0.01);
    assert_near("tail", records[0].fit.tail, 0.6, 0.1);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_and_memory),
        cmocka_unit_test(masks_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
