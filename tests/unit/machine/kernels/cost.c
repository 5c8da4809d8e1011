/* cost: the roofline against numbers worked out by hand. */
#include "kernels/cost.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Round numbers: 100 TFLOP/s and 1 TB/s achieved. */
static const struct gpu gpu = {
    .name = "round",
    .memory = 1e11,
    .memory_bandwidth = 2e12,
    .memory_efficiency = 0.5,
    .peak = {.fp32 = 20e12, .tf32 = 0, .fp16 = 200e12, .bf16 = 0},
    .matmul_efficiency = 0.5,
    .launch_overhead = 3e-6,
};

static void assert_close(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g instead of %.17g", actual, expected);
}

static double seconds(struct kernel kernel)
{
    struct cost_model model = {.source = COST_ROOFLINE, .gpu = &gpu};
    struct cost cost = cost_kernel(&model, &kernel);

    assert_true(cost.extrapolated == 0);
    return cost.seconds;
}

static void hand_computed(void **state)
{
    (void)state;
    static const struct {
        struct kernel kernel;
        double expected;
    } cases[] = {
        /* 2 * 4096^3 FLOP at 100 TFLOP/s; its 100 MB would take 0.1 ms. */
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .batch = 1, .m = 4096, .n = 4096, .k = 4096,
          .flop = 137438953472., .bytes = 100663296., .launches = 1}, 1.37438953472e-3 + 3e-6},
        /* A matrix by a vector: 2 * 4096^2 FLOP take 0.34 us, 33.6 MB at 1 TB/s 33.6 us. */
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .batch = 1, .m = 4096, .n = 1, .k = 4096,
          .flop = 33554432., .bytes = 33570816., .launches = 1}, 33.570816e-6 + 3e-6},
        /* Element-wise: 300 MB. */
        {{.kind = KERNEL_MEMORY, .dtype = DTYPE_FP16, .bytes = 3e8, .launches = 1}, 300e-6 + 3e-6},
        /* The same as five kernels one after another: every one pays its launch. */
        {{.kind = KERNEL_MEMORY, .dtype = DTYPE_FP16, .bytes = 3e8, .launches = 5}, 5 * (300e-6 + 3e-6)},
        /* A product known by its FLOP alone. */
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .flop = 1e12, .launches = 1}, 10e-3 + 3e-6},
        /* At half the rate of large products; at twice, as a Winograd convolution counted in full. */
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .flop = 1e12, .efficiency = 0.5, .launches = 1}, 20e-3 + 3e-6},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .flop = 1e12, .efficiency = 2, .launches = 1}, 5e-3 + 3e-6},
        /* Nothing to do: the launch. No launch: nothing. */
        {{.kind = KERNEL_MEMORY, .dtype = DTYPE_FP16, .launches = 1}, 3e-6},
        {{.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .flop = 1e12, .bytes = 1e9, .launches = 0}, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_close(seconds(cases[i].kernel), cases[i].expected);
}

/* Fused attention has a share of the peak of its own where that is known, and else that of products, which keep theirs. */
static void attention_has_its_own_rate(void **state)
{
    struct gpu known = gpu;
    struct cost_model model = {.source = COST_ROOFLINE, .gpu = &known};

    (void)state;
    for (int i = 0; i < 4; i++)
        for (enum kernel_kind kind = 0; kind < KERNEL_KIND_COUNT; kind++) {
            struct kernel kernel = {.kind = kind, .dtype = DTYPE_FP16, .flop = 1e12, .launches = 1};

            known.attention_efficiency = i ? i / 8. : NAN;
            assert_close(cost_kernel(&model, &kernel).seconds, (kind == KERNEL_ATTENTION && i ? 40e-3 / i : 10e-3) + 3e-6);
        }
}

static void formats_without_a_rate_use_fp32(void **state)
{
    (void)state;
    assert_close(gpu_peak(&gpu, DTYPE_FP16), 200e12);
    assert_close(gpu_peak(&gpu, DTYPE_FP32), 20e12);
    assert_close(gpu_peak(&gpu, DTYPE_TF32), 20e12);
    assert_close(gpu_peak(&gpu, DTYPE_BF16), 20e12);

    struct kernel kernel = {.kind = KERNEL_MATMUL, .flop = 1e12, .launches = 1};
    static const double expected[DTYPE_COUNT] = {100e-3, 100e-3, 10e-3, 100e-3, 100e-3, 100e-3, 100e-3, 100e-3};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        kernel.dtype = (enum dtype)dtype;
        assert_close(seconds(kernel), expected[dtype] + 3e-6);
    }
}

static void more_work_never_takes_less(void **state)
{
    (void)state;
    for (double flop = 1; flop < 1e15; flop *= 3) {
        for (double bytes = 1; bytes < 1e12; bytes *= 3) {
            struct kernel kernel = {.dtype = DTYPE_FP16, .flop = flop, .bytes = bytes, .launches = 1};
            double base = seconds(kernel);
            kernel.flop = 2 * flop;
            double more_flop = seconds(kernel);
            kernel.bytes = 2 * bytes;
            double doubled = seconds(kernel);
            assert_true(more_flop >= base && doubled >= more_flop);
            /* Twice the work takes twice the time without the launch, on either side of the ridge. */
            if (fabs((doubled - 3e-6) - 2 * (base - 3e-6)) > 1e-9 * doubled)
                fail_msg("flop %g bytes %g: %g, doubled %g", flop, bytes, base, doubled);
            kernel.launches = 7;
            assert_close(seconds(kernel), 7 * doubled);
        }
    }
}

/* Where both sides take equally long: arithmetic intensity = achieved FLOP/s over achieved B/s. */
static void the_ridge(void **state)
{
    (void)state;
    struct kernel kernel = {.dtype = DTYPE_FP16, .flop = 1e12, .bytes = 1e10, .launches = 1};
    double ridge = seconds(kernel);
    assert_close(ridge, 10e-3 + 3e-6);
    kernel.bytes *= 0.5;
    assert_close(seconds(kernel), ridge);
    kernel.bytes = 1.5e10;
    assert_close(seconds(kernel), 15e-3 + 3e-6);
}

/* On the CUDA cores: batches of half values whose rows are no multiples of 16 bytes, and nothing else. */
static void unaligned_batches(void **state)
{
    (void)state;
    struct cost_model model = {.source = COST_ROOFLINE, .gpu = &gpu, .unaligned_batches = UNALIGNED_CUDA_CORES};
    struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .layout = LAYOUT_NT, .batch = 64, .m = 2048,
                            .n = 2048, .k = 108, .flop = 2 * 64 * 2048. * 2048 * 108, .launches = 2};
    double cuda_cores = 2 * kernel.flop / (12.2 / 19.5 * 20e12), tensor_cores = seconds(kernel);

    assert_close(cost_kernel(&model, &kernel).seconds, cuda_cores);
    model.unaligned_batches = UNALIGNED_TENSOR_CORES;
    assert_close(cost_kernel(&model, &kernel).seconds, tensor_cores);
    model.unaligned_batches = UNALIGNED_CUDA_CORES;
    kernel.batch = 1;
    assert_close(cost_kernel(&model, &kernel).seconds, tensor_cores);
    kernel.batch = 64;
    kernel.k = 112;                      /* but for its sizes the same work */
    assert_close(cost_kernel(&model, &kernel).seconds, tensor_cores);
    kernel.k = 108;
    kernel.dtype = DTYPE_FP32;
    assert_close(cost_kernel(&model, &kernel).seconds, seconds(kernel));
}

/* Values whose addresses are computed take their time where the traffic takes less: 50 M of them at 100 G a second, 300
 * MB at 1 TB/s. */
static void unvectorized_values(void **state)
{
    (void)state;
    struct gpu known = gpu;
    struct cost_model model = {.source = COST_ROOFLINE, .gpu = &known};
    struct kernel kernel = {
        .kind = KERNEL_MEMORY, .dtype = DTYPE_FP16, .bytes = 3e8, .unvectorized = 5e7, .launches = 2};

    assert_close(cost_kernel(&model, &kernel).seconds, 2 * 303e-6);
    known.unvectorized_rate = 1e11;
    assert_close(cost_kernel(&model, &kernel).seconds, 2 * 500e-6);
    kernel.unvectorized = 2e7;
    assert_close(cost_kernel(&model, &kernel).seconds, 2 * 303e-6);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(cost_source_names[COST_ROOFLINE], "roofline");
    assert_null(cost_source_names[COST_ROOFLINE + 1]);
    assert_string_equal(dtype_names[DTYPE_FP32], "fp32");
    assert_string_equal(dtype_names[DTYPE_TF32], "tf32");
    assert_string_equal(dtype_names[DTYPE_FP16], "fp16");
    assert_string_equal(dtype_names[DTYPE_BF16], "bf16");
    assert_string_equal(dtype_names[DTYPE_FP8], "fp8");
    assert_string_equal(dtype_names[DTYPE_FP8_BLOCK], "fp8-block");
    assert_string_equal(dtype_names[DTYPE_MXFP8], "mxfp8");
    assert_string_equal(dtype_names[DTYPE_NVFP4], "nvfp4");
    assert_null(dtype_names[DTYPE_COUNT]);
    assert_close(dtype_bytes(DTYPE_FP32), 4);
    assert_close(dtype_bytes(DTYPE_TF32), 4);
    assert_close(dtype_bytes(DTYPE_FP16), 2);
    assert_close(dtype_bytes(DTYPE_BF16), 2);
    assert_close(dtype_bytes(DTYPE_FP8), 1);
    assert_close(dtype_bytes(DTYPE_NVFP4), 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_computed),
        cmocka_unit_test(formats_without_a_rate_use_fp32), cmocka_unit_test(attention_has_its_own_rate),
        cmocka_unit_test(more_work_never_takes_less),
        cmocka_unit_test(the_ridge),
        cmocka_unit_test(unaligned_batches),
        cmocka_unit_test(unvectorized_values),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
