/* Traces of PyTorch's profiler, written here from their documented format: an operation takes the time of its kernels,
 * found directly or through their launches, in whatever order events stand; what is printed, samples_parse reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/import_kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "calibrate/samples.h"

#define HEAD "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A\", \"numSms\": 108}],\n" \
             "\"traceEvents\": [\n"
#define BF16 "\"c10::BFloat16\""

/* The CSV of a trace with these events, which the caller frees; NULL after an error. */
static char *import_noted(const char *events, char *note, size_t size, struct error *err)
{
    char *trace = NULL, *csv = NULL;
    size_t length, printed;
    FILE *in, *out = open_memstream(&csv, &printed), *notes = tmpfile();

    length = (size_t)asprintf(&trace, HEAD "%s\n]}\n", events);
    in = fmemopen(trace, length, "r");
    if (import_kineto(in, "t.json", out, notes, err)) {
        fclose(out);
        assert_int_equal(printed, 0);
        free(csv);
        csv = NULL;
    } else {
        fclose(out);
    }
    fclose(in);
    rewind(notes);
    *note = '\0';
    if (!fgets(note, (int)size, notes))
        assert_null(csv);
    fclose(notes);
    free(trace);
    return csv;
}

static char *import(const char *events, struct error *err)
{
    char note[400];

    return import_noted(events, note, sizeof note, err);
}

static void assert_rows(const char *events, const char *rows)
{
    struct error err = {0};
    char *csv = import(events, &err);
    const char *names = "kernel,dtype,batch,m,n,k,layout,bytes,median_us,count\n";

    if (!csv)
        error_print(&err, stderr);
    assert_non_null(csv);
    assert_non_null(strstr(csv, names));
    assert_string_equal(strstr(csv, names) + strlen(names), rows);
    free(csv);
}

#define OP(id, name, args) "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name "\", \"args\": {\"External id\": " \
                           #id ", " args "}}"
#define KERNEL(id, us) "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"dur\": " #us ", \"args\": " \
                       "{\"External id\": " #id ", \"correlation\": 1" #id "}}"
#define LAUNCHED(correlation, us) "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"dur\": " #us ", \"args\": " \
                                  "{\"correlation\": " #correlation "}}"
#define LAUNCH(id, correlation) "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", " \
                                "\"args\": {\"External id\": " #id ", \"correlation\": " #correlation "}}"
#define TWO "\"Input type\": [" BF16 ", " BF16 "], "

static void products(void **state)
{
    (void)state;
    assert_rows(OP(1, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]], \"Input Strides\": [[32, 1], [16, 1]]") ","
                KERNEL(1, 5.5), "matmul,bf16,1,64,16,32,nn,,5.5,1\n");
    assert_rows(OP(1, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]], \"Input Strides\": [[32, 1], [1, 32]]") ","
                KERNEL(1, 5) "," KERNEL(1, 2), "matmul,bf16,1,64,16,32,nt,,7,1\n");
    assert_rows(LAUNCHED(77, 4) "," LAUNCH(1, 77) ","
                OP(1, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]], \"Input Strides\": [[1, 64], [16, 1]]"),
                "matmul,bf16,1,64,16,32,tn,,4,1\n");
    assert_rows(OP(1, "aten::bmm", TWO "\"Input Dims\": [[8, 64, 32], [8, 32, 16]], "
                                       "\"Input Strides\": [[2048, 32, 1], [512, 1, 32]]") "," KERNEL(1, 3),
                "matmul,bf16,8,64,16,32,nt,,3,1\n");
    assert_rows(OP(1, "aten::linear", "\"Input type\": [" BF16 ", " BF16 ", " BF16 "], \"Input Dims\": "
                                      "[[2, 64, 32], [16, 32], [16]], \"Input Strides\": [[2048, 32, 1], [32, 1], [1]]")
                "," KERNEL(1, 3), "matmul,bf16,1,128,16,32,nt,,3,1\n");
}

/* An operation around others has no kernels. */
static void outer_operations(void **state)
{
    (void)state;
    assert_rows(OP(1, "aten::linear", TWO "\"Input Dims\": [[64, 32], [16, 32]], \"Input Strides\": [[32, 1], [32, 1]]")
                "," OP(2, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]], \"Input Strides\": [[32, 1], [1, 32]]")
                "," KERNEL(2, 3), "matmul,bf16,1,64,16,32,nt,,3,1\n");
}

static void attention(void **state)
{
    (void)state;
#define HEADS "[2, 100, 8, 64], [2, 200, 4, 64], [2, 200, 4, 64]"
#define THREE "\"Input type\": [" BF16 ", " BF16 ", " BF16 "], "
    assert_rows(OP(1, "aten::_flash_attention_forward", THREE "\"Input Dims\": [" HEADS "], \"Concrete Inputs\": "
                      "[\"\", \"\", \"\", \"\", \"\", \"100\", \"200\", \"0.\", \"True\"]") "," KERNEL(1, 30),
                "attention-forward-causal,bf16,16,100,200,64,,,30,1\n");
    assert_rows(OP(1, "aten::_flash_attention_backward", "\"Input type\": [" BF16 ", " BF16 ", " BF16 ", " BF16 "], "
                      "\"Input Dims\": [[2, 100, 8, 64], " HEADS "], \"Concrete Inputs\": [\"\", \"\", \"\", \"\", "
                      "\"\", \"\", \"\", \"\", \"100\", \"200\", \"0.\", \"False\"]") "," KERNEL(1, 30) ","
                KERNEL(1, 40),
                "attention-backward,bf16,16,100,200,64,,,70,1\n");
    assert_rows(OP(1, "aten::_scaled_dot_product_flash_attention", THREE "\"Input Dims\": [[2, 8, 100, 64], "
                      "[2, 4, 200, 64], [2, 4, 200, 64]], \"Concrete Inputs\": [\"\", \"\", \"\", \"0.\", "
                      "\"False\"]") ","
                KERNEL(1, 30), "attention-forward,bf16,16,100,200,64,,,30,1\n");
}

static void memory(void **state)
{
    (void)state;
    assert_rows(OP(1, "aten::native_layer_norm_backward", TWO "\"Input Dims\": [[2, 100, 64], [2, 100, 64]]") ","
                KERNEL(1, 3), "layernorm-backward,bf16,,200,64,,,,3,1\n");
    assert_rows(OP(1, "aten::index_select", "\"Input type\": [\"float\", \"Scalar\", \"long int\"], "
                                            "\"Input Dims\": [[1000, 64], [], [4, 25]]") "," KERNEL(1, 3),
                "embedding-forward,fp32,,100,64,,,,3,1\n");
    assert_rows(OP(1, "aten::copy_", "\"Input type\": [" BF16 ", \"float\"], \"Input Dims\": [[10, 64], [10, 64]], "
                                     "\"Input Strides\": [[64, 1], [64, 1]]") "," KERNEL(1, 3),
                "copy-device,byte,,,,,,3840,3,1\n");
    assert_rows(OP(1, "aten::_fused_adamw_", "\"Input type\": [\"TensorList\"], \"Input Dims\": [[[10, 64], [60]]]") ","
                "{\"cat\": \"kernel\", \"name\": \"f<FusedAdamMathFunctor<float, 4> >\", \"dur\": 3, \"args\": "
                "{\"External id\": 1}}", "adam,byte,,,,,,19600,3,1\n");
    assert_rows("{\"cat\": \"gpu_memcpy\", \"name\": \"Memcpy DtoD (Device -> Device)\", \"dur\": 3, \"args\": "
                "{\"bytes\": 1000}}, {\"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD\", \"dur\": 3, \"args\": "
                "{\"bytes\": 1000}}", "copy-device,byte,,,,,,2000,3,1\n");
}

static void left_out(void **state)
{
    struct error err = {0};
    char *csv = import(OP(1, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]]") "," KERNEL(1, 5) ","
                       OP(2, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]]") "," KERNEL(2, 5) ","
                       OP(3, "aten::gelu", "\"Input type\": [" BF16 "], \"Input Dims\": [[64]]") "," KERNEL(3, 5) ","
                       OP(4, "aten::mm", TWO "\"Input Dims\": [[64, 32], [16, 32]], "
                                             "\"Input Strides\": [[32, 1], [32, 1]]") "," KERNEL(4, 5), &err);

    (void)state;
    assert_non_null(csv);
    assert_non_null(strstr(csv, "\n# left out: 2 of aten::mm: no 'Input Strides' were recorded"));
    assert_non_null(strstr(csv, "\n# left out: 1 of aten::mm: its operands do not fit together\n"));
    assert_non_null(strstr(csv, "gelu-forward,bf16,,1,64,,,,5,1\n"));
    assert_null(strstr(csv, "matmul"));
    free(csv);
    csv = import(OP(1, "aten::gelu", "\"Input type\": [" BF16 "], \"Input Dims\": [[64]]") "," KERNEL(1, 5) ","
                 OP(2, "aten::_flash_attention_forward", "\"Input type\": [" BF16 ", " BF16 ", " BF16 "], "
                       "\"Input Dims\": [[100, 8, 64], [100, 8, 64], [100, 8, 64]]") "," KERNEL(2, 5), &err);
    assert_non_null(csv);
    assert_non_null(strstr(csv, "1 of aten::_flash_attention_forward: its sequences have lengths of their own"));
    free(csv);
    assert_null(import(OP(1, "aten::mm", "\"x\": 1") "," KERNEL(1, 5), &err));
    assert_int_equal(err.count, 1);
    assert_non_null(strstr(err.messages[0].text, "found none of 1 kernels"));
    error_release(&err);
}

/* Kernels of operations that are not known, and kernels without an operation, are named; the shares add up. */
static void share_of_the_time(void **state)
{
    struct error err = {0};
    char note[400], *csv;

    (void)state;
    csv = import_noted(OP(1, "aten::gelu", "\"Input type\": [" BF16 "], \"Input Dims\": [[64]]") "," KERNEL(1, 5) ","
                       OP(2, "aten::mul", "\"Input Dims\": [[64]]") "," KERNEL(2, 8) "," KERNEL(2, 4) ","
                       LAUNCH(3, 77) "," LAUNCHED(77, 1.5) "," LAUNCHED(78, 0.5) ","
                       OP(4, "aten::mm", TWO "\"Input Dims\": [[64, 32], [32, 16]]") "," KERNEL(4, 1),
                       note, sizeof note, &err);
    assert_non_null(csv);
    assert_string_equal(note, "t.json: the samples hold 25.0 % of 20 us of kernels; left out: aten::mul 60.0 %, k 10.0 %, "
                              "aten::mm 5.0 %\n");
    assert_non_null(strstr(csv, "\n# left out: 2 of aten::mul: the operation is not known\n"
                                "# left out: 2 of k: no operation was recorded for this kernel\n"
                                "# left out: 1 of aten::mm: no 'Input Strides' were recorded"));
    free(csv);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Many products of a few shapes, each of one to three kernels, the events in random order. */
static void medians(void **state)
{
    enum { OPS = 60, SHAPES = 4, EVENTS = OPS * 7 };
    static double times[SHAPES][OPS];
    static char *events[EVENTS];
    size_t counts[SHAPES] = {0}, nevents = 0;
    char *all = NULL, *csv;
    size_t length;
    FILE *out = open_memstream(&all, &length);
    struct error err = {0};
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};

    (void)state;
    for (int i = 0; i < OPS; i++) {
        int shape = (int)(random_bits(3, (uint64_t)i) % SHAPES), kernels = 1 + (int)(random_bits(4, (uint64_t)i) % 3);
        double sum = 0;

        assert_true(asprintf(&events[nevents++], "{\"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"args\": "
                             "{\"External id\": %d, " TWO "\"Input Dims\": [[%d, 512], [512, 512]], \"Input Strides\": "
                             "[[512, 1], [1, 512]]}}", i + 10, 512 * (shape + 1)) > 0);
        for (int k = 0; k < kernels; k++) {
            double us = 10 + (double)(random_bits(5, (uint64_t)(i * 3 + k)) % 1000) / 8;

            sum += us;
            assert_true(asprintf(&events[nevents++], "{\"cat\": \"kernel\", \"name\": \"k\", \"dur\": %.3f, \"args\": "
                                 "{\"correlation\": %d}}", us, 1000 + i * 3 + k) > 0);
            assert_true(asprintf(&events[nevents++], "{\"cat\": \"cuda_driver\", \"name\": \"cuLaunchKernel\", "
                                 "\"args\": {\"External id\": %d, \"correlation\": %d}}", i + 10,
                                 1000 + i * 3 + k) > 0);
        }
        times[shape][counts[shape]++] = sum;
    }
    for (size_t i = 0; i < nevents; i++)
        fprintf(out, "%s%s", i ? ",\n" : "", events[random_permuted(9, i, nevents)]);
    fclose(out);
    csv = import(all, &err);
    assert_non_null(csv);
    assert_int_equal(samples_parse(&samples, "s.csv", csv, strlen(csv), &err), 0);
    assert_int_equal(samples.count, SHAPES);
    assert_string_equal(samples.gpu, "NVIDIA A");
    assert_int_equal(samples.sms, 108);
    for (size_t i = 0; i < SHAPES; i++) {
        const struct sample *sample = &samples.items[i];
        size_t shape = (size_t)(sample->m / 512) - 1, n = counts[shape];

        qsort(times[shape], n, sizeof **times, by_value);
        assert_int_equal(sample->kind, SAMPLE_MATMUL);
        assert_int_equal(sample->layout, LAYOUT_NT);
        assert_true(fabs(1e6 * sample->seconds - (times[shape][(n - 1) / 2] + times[shape][n / 2]) / 2) < 1e-6);
    }
    for (size_t i = 0; i < nevents; i++)
        free(events[i]);
    free(all);
    free(csv);
    samples_release(&samples);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(outer_operations),
        cmocka_unit_test(attention),
        cmocka_unit_test(memory),
        cmocka_unit_test(left_out),
        cmocka_unit_test(share_of_the_time),
        cmocka_unit_test(medians),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
