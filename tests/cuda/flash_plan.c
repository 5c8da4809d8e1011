/* flash_plan: cuDNN recognises the graphs of attention and finds a fused kernel for a GPU that is only described.
 * Without a driver the kernel cannot be loaded: this is where a plan may fail, and nowhere before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "flash_plan.h"

/* NVIDIA H200, from its data sheet and the CUDA programming guide's table of compute capability 9.0. */
static const char h200[] =
    "{\"deviceName\": \"NVIDIA H200\", \"deviceVer\": 900, \"driverVer\": 13000, \"cudaDeviceId\": 0, "
    "\"pciDeviceId\": 0, "
    "\"multiProcessorCount\": 132, \"warpSize\": 32, \"maxGridSize\": [2147483647, 65535, 65535], "
    "\"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, \"maxRegistersPerSM\": 65536, "
    "\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": 232448, "
    "\"reservedSharedMemoryPerBlock\": 1024, \"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, "
    "\"maxThreadsPerSM\": 2048, \"isTccDriver\": 0, \"supportCoopLaunch\": 1, \"totalGlobalMem\": 150000000000, "
    "\"smClockRateKHz\": 1980000, \"memClockRateKHz\": 3201000, \"l2CacheSize\": 62914560}";

static int describe(void **state)
{
    cudnnBackendDescriptor_t device;

    assert_int_equal(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device), 0);
    assert_int_equal(cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                              sizeof h200 - 1, h200), 0);
    *state = device;
    return (int)cudnnBackendFinalize(device);
}

static int forget(void **state)
{
    cudnnBackendDestroyDescriptor(*state);
    return 0;
}

static void check(void *device, enum bench_kernel kernel, int64_t size)
{
    struct flash_target target = {.device = device};
    struct bench_case one = {kernel, BENCH_BF16, BENCH_LAYOUT_NONE, 16, 1024, 1024, size, 0};
    struct flash_plan plan = {0};

    if (flash_plan_init(&plan, &target, &one) &&
        (strcmp(plan.failed, "the execution plan") || plan.status != CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER))
        fail_msg("%s, head size %d: %s: %s", bench_kernel_names[kernel], (int)size, plan.failed,
                 cudnnGetErrorString(plan.status));
    flash_plan_release(&plan);
}

static void test_graphs_are_recognised(void **state)
{
    for (int kernel = BENCH_ATTENTION_FORWARD; kernel <= BENCH_ATTENTION_BACKWARD_CAUSAL; kernel++)
        check(*state, (enum bench_kernel)kernel, kernel % 2 ? 64 : 128);
}

/* A head of seven values is no whole number of 16 bytes: what is refused must be seen to be refused. */
static void test_impossible_shapes_fail_earlier(void **state)
{
    struct bench_case one = {BENCH_ATTENTION_FORWARD, BENCH_BF16, BENCH_LAYOUT_NONE, 16, 1024, 1024, 7, 0};
    struct flash_target target = {.device = *state};
    struct flash_plan plan = {0};

    assert_int_equal(flash_plan_init(&plan, &target, &one), -1);
    assert_string_not_equal(plan.failed, "the execution plan");
    flash_plan_release(&plan);
}

/* What a plan reads and writes is what the case's operands hold, three scalars apart. */
static void test_tensors_are_the_operands(void **state)
{
    (void)state;
    for (int kernel = BENCH_ATTENTION_FORWARD; kernel <= BENCH_ATTENTION_BACKWARD_CAUSAL; kernel++) {
        struct bench_case one = {(enum bench_kernel)kernel, BENCH_FP16, BENCH_LAYOUT_NONE, 3, 128, 256, 64, 0};
        struct operand operands[OPERANDS_MAX];
        int count = bench_operands(&one, operands), seen = 0;

        for (int tensor = 0; tensor < FLASH_REAL; tensor++) {
            const struct operand *operand = &operands[seen];

            if (!flash_uses(one.kernel, (enum flash_tensor)tensor) || !flash_bytes(&one, (enum flash_tensor)tensor))
                continue;
            assert_true(seen < count);
            assert_int_equal(flash_bytes(&one, (enum flash_tensor)tensor),
                             bench_dtype_bytes(operand->dtype, operand->count));
            seen++;
        }
        assert_int_equal(seen, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs_are_recognised),
        cmocka_unit_test(test_impossible_shapes_fail_earlier),
        cmocka_unit_test(test_tensors_are_the_operands),
    };

    return cmocka_run_group_tests_name("flash_plan", tests, describe, forget);
}
