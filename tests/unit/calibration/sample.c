/* sample: the file that dtsim-bench writes and resumes, and that the fit reads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "sample.h"
#include "calibrate/calibrate.h"

static void test_samples_are_written(void **state)
{
    struct bench_case product = {BENCH_MATMUL, BENCH_BF16, BENCH_LAYOUT_NT, 1, 4096, 12288, 8192, 0};
    struct bench_case copy = {.kernel = BENCH_COPY_TO_HOST_PINNED, .bytes = 4096}, launch = {.kernel = BENCH_LAUNCH};
    char *text = NULL;
    size_t size, commas = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    sample_comment(out, "gpu", "%s\nx", "NVIDIA H200");
    fprintf(out, "%s\n", SAMPLE_COLUMNS);
    sample_row(out, &product, (struct summary){1.23456789e-3, 2e-6, 50});
    sample_row(out, &copy, (struct summary){1.5e-6, 0, 200});
    sample_row(out, &launch, (struct summary){0.9e-6, 1e-9, 200});
    fclose(out);
    assert_string_equal(text, "# gpu: NVIDIA H200 x\n"
                              "kernel,dtype,batch,m,n,k,layout,bytes,median_us,spread_us,count\n"
                              "matmul,bf16,1,4096,12288,8192,nt,,1234.567890,2.000000,50\n"
                              "copy-device-to-host-pinned,,,,,,,4096,1.500000,0.000000,200\n"
                              "launch,,,,,,,,0.900000,0.001000,200\n");
    for (const char *at = text; *at; at++)
        commas += *at == ',';
    assert_int_equal(commas, 4 * 10);
    free(text);
}

/* The version texts of the open kernel module and of the proprietary one. */
static void test_drivers_are_read(void **state)
{
    static const struct { const char *line, *version; } cases[] = {
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n", "580.95.05"},
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n", "535.104.05"},
        {"NVRM version: NVIDIA UNIX aarch64 Kernel Module  550.54\n", "550.54"},
        {"580.1", "580.1"},
        {"no version x86_64 of 12 parts\n", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char version[64];

        sample_driver(cases[i].line, version, sizeof version);
        assert_string_equal(version, cases[i].version);
    }
}

static const char *written(char *path, const char *text)
{
    int file = mkstemp(strcpy(path, "/tmp/dtsim-bench-XXXXXX"));

    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text) && !close(file));
    return path;
}

/* A resumed run: cases in the file are held, others are not, and an incomplete last line is removed. */
static void test_samples_are_held(void **state)
{
    struct bench_limits limits = {.memory = 16e9, .fp8 = true, .bf16 = true, .tf32 = true, .ranks = 2};
    struct bench_cases cases = {0};
    struct sample_rows rows = {0};
    struct error err = {0};
    char path[64], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    bench_cases_list(&cases, &limits, 1);
    sample_comment(out, "gpu", "%s", "NVIDIA H200");
    fprintf(out, "%s\n", SAMPLE_COLUMNS);
    for (size_t i = 0; i < cases.count; i += 2)
        sample_row(out, &cases.items[i], (struct summary){1e-3, 0, 5});
    fprintf(out, "matmul,bf16,1,81");
    fclose(out);
    assert_int_equal(sample_rows_read(&rows, written(path, text), "NVIDIA H200", &err), 0);
    assert_int_equal(rows.count, (cases.count + 1) / 2);
    for (size_t i = 0; i < cases.count; i++)
        assert_true(sample_rows_hold(&rows, &cases.items[i]) == (i % 2 == 0));
    sample_rows_release(&rows);
    assert_int_equal(sample_rows_read(&rows, path, "NVIDIA H200", &err), 0);      /* its last line ends now */
    assert_int_equal(rows.count, (cases.count + 1) / 2);
    sample_rows_release(&rows);
    assert_int_equal(sample_rows_read(&rows, path, "NVIDIA H100", &err), -1);
    assert_non_null(strstr(err.messages[0].text, "expected this GPU, 'NVIDIA H100'"));
    assert_true(err.messages[0].loc.line == 1 && err.count == 1);
    error_release(&err);
    sample_rows_release(&rows);
    unlink(path);
    assert_int_equal(sample_rows_read(&rows, path, "NVIDIA H200", &err), 0);      /* not there: nothing is held */
    assert_true(rows.count == 0 && !sample_rows_hold(&rows, &cases.items[0]));
    assert_int_equal(sample_rows_read(&rows, written(path, "a,b\n"), "NVIDIA H200", &err), -1);
    unlink(path);
    error_release(&err);
    sample_rows_release(&rows);
    free(cases.items);
    free(text);
}

/* The file names a case while it is measured. A case that failed, or in which the program died, is held too. */
static void test_failures_are_held(void **state)
{
    const struct bench_case cases[] = {
        {BENCH_MATMUL, BENCH_BF16, BENCH_LAYOUT_NT, 1, 4096, 12288, 8192, 0}, {.kernel = BENCH_LAUNCH},
        {.kernel = BENCH_ADAM, .dtype = BENCH_FP32, .m = 64, .bytes = 2048},
        {.kernel = BENCH_REDUCTION, .dtype = BENCH_FP32, .m = 64, .bytes = 256},
    };
    struct sample_rows rows = {0};
    struct error err = {0};
    char path[64], text[400] = "";
    FILE *out = fopen(written(path, "# gpu: x\n"), "r+");
    long mark;

    (void)state;
    fseek(out, 0, SEEK_END);
    mark = sample_mark(out, &cases[0]);
    assert_true(mark == 9 && !sample_unmark(out, mark));
    sample_row(out, &cases[0], (struct summary){1e-3, 0, 5});
    assert_int_equal(sample_unmark(out, sample_mark(out, &cases[1])), 0);
    sample_failure(out, &cases[1], "cuBLASLt: status, 3");
    assert_true(sample_mark(out, &cases[2]) > 0);
    fclose(out);
    assert_int_equal(sample_rows_read(&rows, path, "x", &err), 0);
    for (int i = 0; i < 4; i++)
        assert_true(sample_rows_hold(&rows, &cases[i]) == (i < 3));
    sample_rows_release(&rows);
    out = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, out) > 0 && !fclose(out));
    assert_string_equal(text, "# gpu: x\nmatmul,bf16,1,4096,12288,8192,nt,,1000.000000,0.000000,5\n"
                              "# failed: launch,,,,,,,, cuBLASLt: status, 3\n# measuring: adam,fp32,,64,,,,2048,\n");
    unlink(path);
    out = fopen("/dev/null", "w");
    assert_int_equal(sample_mark(out, &cases[0]), -1);           /* nothing that could be cut */
    fclose(out);
}

/* The fit reads all parts of the file: the head, a row of every kernel in every format, and cases that failed. */
static void test_the_fit_reads_what_is_written(void **state)
{
    struct sample_machine machine = {"NVIDIA H200", "580.1, for CUDA 13.0", "13.0", "2026-01-01T00:00:00Z", "a, b", 132,
                                     9, 1.98e9, 3.2e9, 0};
    struct bench_limits limits = {.memory = 16e9, .fp8 = true, .fp8_block = true, .mxfp8 = true, .nvfp4 = true,
                                  .bf16 = true, .tf32 = true, .grouped = true, .flash = true, .ranks = 8,
                                  .collectives = true};
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct bench_cases cases = {0};
    struct error err = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    bench_cases_list(&cases, &limits, 1);
    sample_header(out, &machine);
    for (size_t i = 0; i < cases.count; i++) {
        const struct bench_case *item = &cases.items[i];
        double seconds = 1e-5 + bench_case_flop(item) / 80e12 + (double)item->bytes / 2e12;

        sample_row(out, item, (struct summary){seconds, 0, 5});
    }
    sample_failure(out, &cases.items[0], "attention: flash-9");
    sample_comment(out, "resumed", "%s", "later");
    fclose(out);
    if (samples_parse(&samples, "samples.csv", text, size, &err))
        fail_msg("line %d: %s", err.messages[0].loc.line, err.messages[0].text);
    assert_int_equal(samples.count, cases.count);
    for (size_t i = 0; i < samples.count; i++)           /* sizes mean the same to both */
        if (samples.items[i].kind == SAMPLE_MATMUL || samples.items[i].kind == SAMPLE_SUSTAINED)
            assert_true(sample_flop(&samples.items[i]) == bench_case_flop(&cases.items[i]));
    assert_true(samples.sms == 132 && samples.attention == ATTENTION_FLASH_3);
    assert_string_equal(samples.gpu, "NVIDIA H200");
    samples_release(&samples);
    arena_release(&arena);
    free(cases.items);
    free(text);
}

enum { SMS = 148 };

/* The time of a case on a GPU of known parameters. */
static double true_seconds(const struct bench_case *one)
{
    static const struct matmul_fit truth = {
        .rate = 4000e12, .intensity = 12, .fill = 1e-6, .quantization = 0.4, .bandwidth = 6e12, .overlap = 3,
        .overhead = 3e-6, .layout = {1, 1, 1}, .unaligned = 1, .quantize = 3e12, .speed = 1,
    };
    const struct product product = {
        (double)one->batch, (double)one->m, (double)one->n, (double)one->k,
        one->layout ? (enum matmul_layout)(one->layout - BENCH_LAYOUT_NN) : LAYOUT_NT,
        (double)bench_dtype_bytes(one->dtype, 2) / 2,
        one->kernel == BENCH_MATMUL_QUANTIZED ? FORM_QUANTIZED :
        one->kernel == BENCH_MATMUL_GROUPED   ? FORM_GROUPED :
        one->kernel == BENCH_MOE              ? FORM_EXPERTS :
                                                FORM_MATMUL,
        {.exponent = 0},
    };

    return matmul_seconds(&truth, SMS, &product);
}

/* The samples of products of a Blackwell GPU, as a run of dtsim-bench writes them. */
static void write_products(FILE *out)
{
    const struct bench_limits limits = {.memory = 16e9, .fp8 = true, .mxfp8 = true, .nvfp4 = true, .bf16 = true,
                                        .grouped = true, .ranks = 1};
    struct sample_machine machine = {"NVIDIA B200", "580.1", "13.0", "2026-01-01T00:00:00Z", "a test", SMS, 10, 0, 0,
                                     0};
    struct bench_cases cases = {0};

    sample_header(out, &machine);
    bench_cases_list(&cases, &limits, 1);
    for (size_t i = 0; i < cases.count; i++) {
        const struct bench_case *one = &cases.items[i];

        if (one->kernel > BENCH_MATMUL_SUSTAINED && one->kernel <= BENCH_MOE)
            sample_row(out, one, (struct summary){true_seconds(one), 0, 5});
    }
    free(cases.items);
}

/* From dtsim-bench's file through the fit and back: the profile has the times that were written, of every kind and
 * format. */
static void test_the_fit_finds_the_times(void **state)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct calibration calibration;
    struct compared_costs *rows;
    struct error err = {0};
    int seen[BENCH_DTYPES][FORM_EXPERTS + 1] = {{0}};
    char *text = NULL;
    size_t size, count;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    write_products(out);
    fclose(out);
    assert_int_equal(samples_parse(&samples, "samples.csv", text, size, &err), 0);
    assert_int_equal(calibrate(&arena, &samples, &calibration, &err), 0);
    assert_int_equal(calibration.profile.matmul.count, 3);           /* quantised, of three formats */
    assert_int_equal(calibration.profile.grouped.count, 4);          /* and bf16 */
    rows = calibrate_check(&arena, &calibration.profile, &samples, &count);
    assert_int_equal(count, samples.count);
    for (size_t i = 0; i < count; i++) {
        double ratio = rows[i].predicted.seconds / rows[i].sample->seconds;

        if (!(fabs(ratio - 1) < 0.05))
            fail_msg("line %d: %g of the time", rows[i].sample->loc.line, ratio);
        seen[rows[i].sample->dtype][rows[i].sample->which]++;
    }
    for (int form = FORM_QUANTIZED; form <= FORM_EXPERTS; form++)
        assert_true(seen[DTYPE_FP8][form] > 20 && seen[DTYPE_MXFP8][form] > 20 && seen[DTYPE_NVFP4][form] > 20);
    assert_true(seen[DTYPE_BF16][FORM_GROUPED] > 100 && seen[DTYPE_BF16][FORM_EXPERTS] > 20);
    calibration_release(&calibration);
    samples_release(&samples);
    arena_release(&arena);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_are_written), cmocka_unit_test(test_drivers_are_read),
        cmocka_unit_test(test_samples_are_held),
        cmocka_unit_test(test_failures_are_held),
        cmocka_unit_test(test_the_fit_reads_what_is_written),
        cmocka_unit_test(test_the_fit_finds_the_times),
    };

    return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
