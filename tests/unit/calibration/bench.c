/* bench: the cases and the output of dtsim-bench, as far as they need no GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench_options.h"
#include "statistics.h"
#include "text.h"

static const struct bench_limits large = {
    .memory = 16e9, .fp8 = true, .fp8_block = true, .mxfp8 = true, .nvfp4 = true, .bf16 = true, .tf32 = true,
    .grouped = true, .flash = true, .ranks = 8, .collectives = true,
};

/* Kinds of cases, at most: each has its turn before any has its next. */
enum { KINDS = 32 };

static void test_halton(void **state)
{
    static const double twos[] = {0.5, 0.25, 0.75, 0.125, 0.625}, threes[] = {1 / 3., 2 / 3., 1 / 9., 4 / 9., 7 / 9.};

    (void)state;
    for (size_t i = 0; i < COUNT(twos); i++) {
        assert_true(fabs(halton(i + 1, 2) - twos[i]) < 1e-15);
        assert_true(fabs(halton(i + 1, 3) - threes[i]) < 1e-15);
    }
}

static void test_the_order_is_the_seeds(void **state)
{
    struct bench_cases lists[3] = {0};
    size_t moved = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        bench_cases_list(&lists[i], &large, i == 2 ? 8 : 7);
    assert_int_equal(lists[0].count, lists[1].count);
    assert_int_equal(lists[0].count, lists[2].count);
    for (size_t i = 0; i < lists[0].count; i++) {
        assert_int_equal(bench_case_compare(&lists[0].items[i], &lists[1].items[i]), 0);
        moved += bench_case_compare(&lists[0].items[i], &lists[2].items[i]) != 0;
    }
    assert_true(moved > lists[0].count / 2);
    for (int i = 0; i < 3; i++)
        qsort(lists[i].items, lists[i].count, sizeof lists[i].items[0], bench_case_compare);
    for (size_t i = 0; i < lists[0].count; i++) {
        assert_int_equal(bench_case_compare(&lists[0].items[i], &lists[2].items[i]), 0);       /* the same cases */
        assert_true(i == 0 || bench_case_compare(&lists[0].items[i - 1], &lists[0].items[i]) < 0);     /* each once */
    }
    for (int i = 0; i < 3; i++)
        free(lists[i].items);
}

/* A run that is stopped early has seen every kind of kernel and every format. */
static void test_the_beginning_holds_something_of_all(void **state)
{
    struct bench_cases cases = {0};
    int kernels[BENCH_KERNELS] = {0}, dtypes[BENCH_DTYPES] = {0}, early = 0;

    (void)state;
    bench_cases_list(&cases, &large, 1);
    for (size_t i = 0; i < cases.count; i++) {
        kernels[cases.items[i].kernel]++;
        if (i < KINDS)
            dtypes[cases.items[i].dtype]++;
        if (i < 1400)
            early += kernels[cases.items[i].kernel] == 1;
    }
    for (int i = 0; i < BENCH_KERNELS; i++)
        if (!kernels[i])
            fail_msg("no %s", bench_kernel_names[i]);
    for (int i = BENCH_FP32; i <= BENCH_NVFP4; i++)
        assert_true(dtypes[i] > 0);
    assert_true(early == BENCH_KERNELS);
    free(cases.items);
}

static void check_product(const struct bench_case *one)
{
    static const int steps[BENCH_DTYPES] = {
        [BENCH_FP32] = 8, [BENCH_TF32] = 8, [BENCH_FP16] = 8, [BENCH_BF16] = 1, [BENCH_FP8] = 16,
        [BENCH_FP8_BLOCK] = 128, [BENCH_MXFP8] = 32, [BENCH_NVFP4] = 32,
    };
    int step = steps[one->dtype];

    assert_true(one->batch > 0 && one->layout != BENCH_LAYOUT_NONE && one->bytes == 0);
    assert_true(one->dtype < BENCH_FP8 || one->layout == BENCH_LAYOUT_NT);
    assert_true(one->kernel == BENCH_MATMUL || one->dtype >= BENCH_FP8);
    assert_int_equal(one->m % step, 0);
    assert_int_equal(one->n % step, 0);
    assert_int_equal(one->k % step, 0);
    assert_true(bench_case_flop(one) == 2.0 * (double)(one->batch * one->m) * (double)one->n * (double)one->k);
    assert_true(bench_case_flop(one) <= 20e12);
}

/* Experts have equally many rows, of which each fills whole blocks, and tokens have whole numbers of copies. */
static void check_experts(const struct bench_case *one)
{
    int64_t rows = one->layout == BENCH_LAYOUT_TN ? one->k : one->m, each = rows / one->batch;
    int64_t step = one->dtype >= BENCH_FP8 ? bench_formats[one->dtype].multiple : 1;
    double products = one->kernel == BENCH_MOE ? 3 : 1;

    assert_true(one->batch > 0 && one->bytes == 0 && each > 0 && rows % one->batch == 0);
    assert_true(each % step == 0 && one->n % step == 0 && (one->layout == BENCH_LAYOUT_TN || one->k % step == 0));
    assert_true(one->dtype == BENCH_BF16 || one->layout != BENCH_LAYOUT_TN);
    assert_true(one->kernel != BENCH_MOE || rows % bench_top_k(one->batch) == 0);
    assert_true(one->kernel != BENCH_MOE || one->batch >= bench_top_k(one->batch));
    assert_true(bench_case_flop(one) == products * 2 * (double)one->m * (double)one->n * (double)one->k);
}

static void test_cases_fit(void **state)
{
    struct bench_limits limits = large;

    (void)state;
    for (limits.memory = 1e6; limits.memory < 1e11; limits.memory *= 100) {
        struct bench_cases cases = {0};

        bench_cases_list(&cases, &limits, 1);
        assert_true(cases.count > 20);
        for (size_t i = 0; i < cases.count; i++) {
            const struct bench_case *one = &cases.items[i];

            assert_true(bench_case_memory(one) <= limits.memory);
            /* No case moves more bytes than all operands twice (in and out), except cases in which all read one
             * table. */
            assert_true((double)one->bytes <= 2 * bench_case_memory(one) + (double)(one->m * one->n) * 8);
            if (one->kernel == BENCH_MATMUL || one->kernel == BENCH_MATMUL_QUANTIZED)
                check_product(one);
            if (one->kernel == BENCH_MATMUL_GROUPED || one->kernel == BENCH_MOE)
                check_experts(one);
        }
        free(cases.items);
    }
}

/* Half products whose rows are 2, 4 and 8 bytes' multiples only, one by one and in batches. */
static void test_unaligned_products(void **state)
{
    struct bench_cases cases = {0};
    int counts[2][4] = {{0}};

    (void)state;
    bench_cases_list(&cases, &large, 1);
    for (size_t i = 0; i < cases.count; i++) {
        const struct bench_case *one = &cases.items[i];
        int64_t rows = one->n | (one->layout == BENCH_LAYOUT_TN ? one->m : one->k);

        if (one->kernel == BENCH_MATMUL && one->dtype == BENCH_BF16)
            counts[one->batch > 1][rows % 2 ? 0 : rows % 4 ? 1 : rows % 8 ? 2 : 3]++;
    }
    for (int i = 0; i < 3; i++)
        assert_true(counts[0][i] > 30);
    assert_true(counts[1][0] > 30 && counts[1][2] > 30);
    free(cases.items);
}

static size_t count_of(const struct bench_limits *limits, enum bench_kernel kernel, int dtype)
{
    struct bench_cases cases = {0};
    size_t count = 0;

    bench_cases_list(&cases, limits, 1);
    for (size_t i = 0; i < cases.count; i++)
        count += (kernel == BENCH_KERNELS || cases.items[i].kernel == kernel) &&
                 (dtype < 0 || (int)cases.items[i].dtype == dtype);
    free(cases.items);
    return count;
}

static void test_limits(void **state)
{
    struct bench_limits old = {.memory = 8e9, .ranks = 1};       /* a V100 */
    struct bench_limits quick = large, one_kernel = large, hopper = large;
    const bool wanted[BENCH_KERNELS][BENCH_DTYPES] = {[BENCH_ADAM] = {[BENCH_BF16] = true}};
    size_t all = count_of(&large, BENCH_KERNELS, -1);

    (void)state;
    hopper.mxfp8 = hopper.nvfp4 = false;
    assert_int_equal(count_of(&old, BENCH_KERNELS, BENCH_BF16), 0);
    assert_int_equal(count_of(&old, BENCH_KERNELS, BENCH_TF32), 0);
    for (int dtype = BENCH_FP8; dtype <= BENCH_NVFP4; dtype++)
        assert_int_equal(count_of(&old, BENCH_KERNELS, dtype), 0);
    assert_int_equal(count_of(&old, BENCH_MATMUL_GROUPED, -1) + count_of(&old, BENCH_MOE, -1), 0);
    assert_int_equal(count_of(&hopper, BENCH_KERNELS, BENCH_MXFP8) + count_of(&hopper, BENCH_KERNELS, BENCH_NVFP4), 0);
    for (int kernel = BENCH_MATMUL_QUANTIZED; kernel <= BENCH_MOE; kernel++)
        assert_true(count_of(&hopper, (enum bench_kernel)kernel, BENCH_FP8_BLOCK) >= 25);
    assert_int_equal(count_of(&old, BENCH_ATTENTION_FORWARD, -1), 0);
    assert_int_equal(count_of(&old, BENCH_PEER_COPY, -1), 0);
    assert_true(count_of(&old, BENCH_MATMUL, BENCH_FP16) > 1000);
    quick.quick = true;
    assert_in_range(count_of(&quick, BENCH_KERNELS, -1), all / 10, all / 10 + KINDS);
    one_kernel.wanted = wanted;
    assert_int_equal(count_of(&one_kernel, BENCH_ADAM, BENCH_BF16), count_of(&one_kernel, BENCH_KERNELS, -1));
    assert_true(count_of(&one_kernel, BENCH_ADAM, BENCH_BF16) > 0);
    assert_true(count_of(&large, BENCH_ALL_REDUCE, -1) == 3 * count_of(&large, BENCH_PEER_COPY, -1));    /* 2, 4, 8 */
}

/* The sample between the models' shapes leaves no part of the logarithms of m, n and k empty. */
static void test_shapes_fill_the_space(void **state)
{
    struct bench_cases cases = {0};
    bool seen[3][3][3] = {{{false}}};

    (void)state;
    bench_cases_list(&cases, &large, 1);
    for (size_t i = 0; i < cases.count; i++) {
        const struct bench_case *one = &cases.items[i];

        if (one->kernel == BENCH_MATMUL && one->dtype == BENCH_BF16 && one->batch == 1)
            seen[one->m < 256 ? 0 : one->m < 4096 ? 1 : 2][one->n < 512 ? 0 : one->n < 4096 ? 1 : 2]
                [one->k < 512 ? 0 : one->k < 4096 ? 1 : 2] = true;
    }
    for (int i = 0; i < 27; i++)
        assert_true(seen[i / 9][i / 3 % 3][i % 3]);
    free(cases.items);
}

static void test_summary(void **state)
{
    double odd[] = {5, 1, 3, 2, 4}, outlier[] = {2, 3, 1, 4, 1e9}, one[] = {7};
    struct series series = {odd, 5, 5}, wild = {outlier, 5, 5}, single = {one, 1, 1};
    struct summary summary = series_summary(&series), kept = series_summary(&wild), alone = series_summary(&single);
    struct series normal = {0};
    uint64_t seed = 1;

    (void)state;
    assert_true(summary.median == 3 && summary.count == 5 && fabs(summary.spread - 2 / 1.349) < 1e-12);
    assert_true(kept.median == 3 && fabs(kept.spread - 2 / 1.349) < 1e-12);
    assert_true(alone.median == 7 && alone.spread == 0 && alone.count == 1);
    for (int i = 0; i < 20000; i++) {
        double u = ((double)(next(&seed) >> 11) + 0.5) * 0x1p-53, v = (double)(next(&seed) >> 11) * 0x1p-53;

        *GROW(&normal) = 10 + 2 * sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
    }
    summary = series_summary(&normal);
    assert_true(fabs(summary.median - 10) < 0.1 && fabs(summary.spread - 2) < 0.1);
    free(normal.items);
}

static int parse(struct bench_options *options, const char *a, const char *b)
{
    char *argv[] = {(char *)"dtsim-bench", (char *)a, (char *)b, NULL};
    int saved = dup(STDERR_FILENO), code;
    FILE *quiet = freopen("/dev/null", "w", stderr);

    assert_non_null(quiet);
    code = bench_options_parse(options, b ? 3 : a ? 2 : 1, argv);
    dup2(saved, STDERR_FILENO);
    close(saved);
    return code;
}

static void test_options(void **state)
{
    static const char *const wrong[][2] = {
        {"--seconds", "0"}, {"--seconds", "ten"}, {"--seconds", "nan"}, {"--seconds", "1e9"}, {"--seed", "-1"},
        {"--device", "999"}, {"--only", "matmull"}, {"--only", ""}, {"--only", ","}, {"--unknown", NULL},
        {"samples.csv", NULL}, {"--only", "matmul,nothing"}, {"-o", NULL}, {"--resume", NULL},
        {"--without", "matmul:fp9"}, {"--without", "matmul:"}, {"--only", ":fp8"}, {"--without", ""},
    };
    struct bench_options options;
    int wanted = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (parse(&options, wrong[i][0], wrong[i][1]) != EXIT_USAGE)
            fail_msg("%s %s is not refused", wrong[i][0], wrong[i][1] ? wrong[i][1] : "");
    assert_int_equal(parse(&options, NULL, NULL), 0);
    assert_true(options.seconds == 300 && options.seed == 1 && !options.output);
    assert_true(options.wanted[BENCH_LAUNCH][BENCH_NONE]);
    assert_int_equal(parse(&options, "--quick", "--seconds=12"), 0);
    assert_true(options.quick && options.seconds == 12);
    assert_int_equal(parse(&options, "--only", "copy-host-to-device,adam,softmax"), 0);
    for (int i = 0; i < BENCH_KERNELS; i++)
        wanted += options.wanted[i][BENCH_FP32];
    assert_int_equal(wanted, 3 + 1 + 2);
    assert_true(options.wanted[BENCH_COPY_TO_DEVICE_OVERLAP][BENCH_NONE]);
    assert_true(!options.wanted[BENCH_COPY_TO_HOST_PINNED][BENCH_NONE]);
    assert_int_equal(parse(&options, "--without", "matmul:fp8,attention"), 0);
    assert_true(options.wanted[BENCH_MATMUL][BENCH_BF16] && !options.wanted[BENCH_MATMUL][BENCH_FP8]);
    assert_true(options.wanted[BENCH_MATMUL_SUSTAINED][BENCH_BF16] && options.wanted[BENCH_ADAM][BENCH_FP32]);
    assert_true(!options.wanted[BENCH_ATTENTION_BACKWARD_CAUSAL][BENCH_BF16]);
    assert_int_equal(parse(&options, "--only", "matmul-grouped,moe:nvfp4,matmul-quantized:fp8-block"), 0);
    assert_true(options.wanted[BENCH_MATMUL_GROUPED][BENCH_BF16] && options.wanted[BENCH_MOE][BENCH_NVFP4]);
    assert_true(!options.wanted[BENCH_MOE][BENCH_BF16] && !options.wanted[BENCH_MATMUL][BENCH_FP8]);
    assert_true(options.wanted[BENCH_MATMUL_QUANTIZED][BENCH_FP8_BLOCK]);
    assert_true(!options.wanted[BENCH_MATMUL_QUANTIZED][BENCH_FP8]);
    assert_int_equal(parse(&options, "--only=adam:fp32", "--without=adam"), EXIT_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halton),
        cmocka_unit_test(test_the_order_is_the_seeds),
        cmocka_unit_test(test_the_beginning_holds_something_of_all),
        cmocka_unit_test(test_cases_fit),
        cmocka_unit_test(test_unaligned_products),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_shapes_fill_the_space),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_options),
    };

    return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
