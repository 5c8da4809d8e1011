/* own_gpu: a scenario changes what its GPU's data sheet says. Kernels that the change does not touch keep their measured
 * times; the others are scaled, and the results say so. */
#include "simulated.h"

static const struct kernel product = {.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_NT, .launches = 1,
                                      .batch = 1, .m = 8192, .n = 8192, .k = 8192, .flop = 2. * 8192 * 8192 * 8192};
static const struct kernel half = {.kind = KERNEL_MATMUL, .dtype = DTYPE_FP16, .layout = LAYOUT_NT, .launches = 1,
                                   .batch = 1, .m = 8192, .n = 8192, .k = 8192, .flop = 2. * 8192 * 8192 * 8192};
static const struct kernel norm = {.kind = KERNEL_MEMORY, .dtype = DTYPE_BF16, .class = CLASS_RMSNORM_FORWARD,
                                   .launches = 1, .bytes = 1e8};

static void load(struct simulated *simulated, const char *gpu)
{
    simulated_load(simulated, "model: {preset: llama2-7b}\ncluster: {platform: dgx-h100, nodes: 1, gpu: %s}\n"
                   "batch: {global: 16, micro: 1}\nstrategy: {schedule: 1f1b, pipeline: 2, tensor: 2, zero: 1}\n"
                   "memory: {precision: mixed-bf16}\nsimulation: {engine: fast}\nsoftware: megatron-core\n", gpu);
}

static struct cost cost_of(const char *gpu, const struct kernel *kernel)
{
    struct simulated simulated;
    struct cost cost;

    load(&simulated, gpu);
    cost = costs_kernel(&simulated.scenario.kernels[0], kernel);
    simulated_release(&simulated);
    return cost;
}

/* The kernel takes `times` as long as on the GPU of the file, and stands on measured kernels where that is 1. */
static void expect_times(const char *gpu, const struct kernel *kernel, double least, double most)
{
    struct cost before = cost_of("h100-80gb", kernel), after = cost_of(gpu, kernel);
    double times = after.seconds / before.seconds;

    if (!(times >= least && times <= most))
        fail_msg("%s: %g times as long; expected %g to %g", gpu, times, least, most);
    assert_int_equal(after.basis, fabs(times - 1) < 0.01 ? before.basis : BASIS_GPU);
}

static void test_kernels(void **state)
{
    (void)state;
    expect_times("{name: h100-80gb, memory: 96 GB}", &norm, 1, 1);
    expect_times("{name: h100-80gb, memory: 96 GB}", &product, 1, 1);
    expect_times("{name: h100-80gb, memory_bandwidth: 6700 GB/s}", &norm, 0.5, 0.6);
    expect_times("{name: h100-80gb, memory_bandwidth: 1675 GB/s}", &norm, 1.8, 2);
    expect_times("{name: h100-80gb, memory_bandwidth: 6700 GB/s}", &product, 0.9, 1);
    expect_times("{name: h100-80gb, peak: {bf16: 494.5 TFLOP/s}}", &product, 1.8, 2);
    expect_times("{name: h100-80gb, peak: {bf16: 1978 TFLOP/s}}", &product, 0.5, 0.6);
    expect_times("{name: h100-80gb, peak: {bf16: 494.5 TFLOP/s}}", &half, 1, 1);
    expect_times("{name: h100-80gb, peak: {bf16: 494.5 TFLOP/s}}", &norm, 1, 1);
    expect_times("{name: h100-80gb, multiprocessors: 100}", &norm, 1, 1);
}

static void run_on(struct simulated *simulated, const char *gpu)
{
    struct error err = {0};

    load(simulated, gpu);
    if (simulated_run(simulated, &err))
        fail_at(simulated->text, &err);
}

/* What says nothing new changes nothing, to the bit; and seconds of kernels that were scaled count as extrapolated. */
static void test_iterations(void **state)
{
    static const char *const same[] = {
        "{name: h100-80gb, memory: 96 GB}", "{name: h100-80gb, memory_bandwidth: 3350 GB/s}",
        "{name: h100-80gb, peak: {bf16: 989 TFLOP/s, fp8: 1979 TFLOP/s}, multiprocessors: 132}",
    };
    struct simulated sheet, own;

    (void)state;
    run_on(&sheet, "h100-80gb");
    for (size_t i = 0; i < COUNT(same); i++) {
        run_on(&own, same[i]);
        assert_true(own.run.metrics.iteration_time == sheet.run.metrics.iteration_time);
        assert_true(own.run.metrics.extrapolated == sheet.run.metrics.extrapolated);
        simulated_release(&own);
    }
    run_on(&own, "{name: h100-80gb, memory_bandwidth: 4 TB/s, peak: {bf16: 1100 TFLOP/s}}");
    assert_true(own.run.metrics.iteration_time < sheet.run.metrics.iteration_time);
    assert_true(own.run.metrics.bases.seconds[KERNEL_MEMORY][BASIS_MEASURED] == 0);
    assert_true(own.run.metrics.bases.seconds[KERNEL_MATMUL][BASIS_GPU] > 0);
    assert_true(own.run.metrics.extrapolated > sheet.run.metrics.extrapolated);
    simulated_release(&own);
    simulated_release(&sheet);
}

/* A profile that was measured on the changed GPU is not scaled to it. The unchanged GPU's profile is, also where the
 * file names it. */
static void test_profiles(void **state)
{
    static const char text[] = "model: {preset: llama2-7b}\ncluster: {platform: dgx-h100, nodes: 1, "
                               "gpu: {name: h100-80gb, memory_bandwidth: 6700 GB/s}}\nbatch: {global: 16}\n"
                               "costs: {profile: %s}\n";
    struct simulated named, other;

    (void)state;
    simulated_load(&named, text, "h100-80gb");
    simulated_load(&other, text, "h200-141gb");
    expect_near("named", costs_kernel(&named.scenario.kernels[0], &norm).seconds,
                cost_of("{name: h100-80gb, memory_bandwidth: 6700 GB/s}", &norm).seconds, named.text);
    assert_true(costs_kernel(&other.scenario.kernels[0], &norm).basis != BASIS_GPU);
    simulated_release(&named);
    simulated_release(&other);
}

/* The A100 of 40 GB is the chip of 80 GB with a slower memory; its profile has the other's single products, by the ratio
 * of the data sheets (calibration/data/a100-40gb.yaml). */
static void test_twin(void **state)
{
    static const double sides[] = {512, 1024, 2048, 8192};

    (void)state;
    for (size_t i = 0; i < COUNT(sides); i++) {
        struct kernel kernel = {.kind = KERNEL_MATMUL, .dtype = DTYPE_BF16, .layout = LAYOUT_NN, .launches = 1,
                                .batch = 1, .m = 4096, .n = sides[i], .k = 1024,
                                .flop = 2 * 4096 * 1024 * sides[i]};
        double twin = cost_of("a100-40gb", &kernel).seconds,
               own = cost_of("{name: a100-80gb, memory_bandwidth: 1555 GB/s}", &kernel).seconds;

        if (fabs(own / twin - 1) > 1e-3)
            fail_msg("n %g: %g s, and the profile says %g s", sides[i], own, twin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels), cmocka_unit_test(test_iterations), cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_twin),
    };

    return cmocka_run_group_tests_name("own_gpu", tests, NULL, NULL);
}
