/* The FLOPs and bytes of a sample's kernel, and the check that its time is possible. */
#include "calibrate/samples.h"

#include <math.h>

#include "base/base.h"
#include "base/units.h"
#include "hardware/gpu.h"
#include "kernels/kernel_time.h"

/* For each class: how often a kernel reads or writes each of its m x n values (adam: of m parameters), and the bytes
 * per value that it reads or writes in another format. */
double sample_class_bytes(enum memory_class class, double m, double n, double value)
{
    static const struct { double values, more; } each[CLASS_COUNT] = {
        [CLASS_SOFTMAX_FORWARD] = {2, 0}, [CLASS_SOFTMAX_BACKWARD] = {3, 0},
        [CLASS_LAYERNORM_FORWARD] = {2, 0}, [CLASS_LAYERNORM_BACKWARD] = {3, 0},
        [CLASS_RMSNORM_FORWARD] = {2, 0}, [CLASS_RMSNORM_BACKWARD] = {3, 0},
        [CLASS_GELU_FORWARD] = {2, 0}, [CLASS_GELU_BACKWARD] = {3, 0},
        [CLASS_SWIGLU_FORWARD] = {3, 0}, [CLASS_SWIGLU_BACKWARD] = {5, 0},
        [CLASS_DROPOUT_RESIDUAL_FORWARD] = {3, 1}, [CLASS_DROPOUT_RESIDUAL_BACKWARD] = {2, 1},
        [CLASS_EMBEDDING_FORWARD] = {2, 0}, [CLASS_EMBEDDING_BACKWARD] = {3, 0},
        [CLASS_CROSS_ENTROPY_FORWARD] = {1, 4}, [CLASS_CROSS_ENTROPY_BACKWARD] = {1, 4},
        [CLASS_ADAM] = {2, 24}, [CLASS_REDUCTION] = {1, 0}, [CLASS_COPY] = {2, 0},
        [CLASS_EXPERT_ROWS] = {2, 0},
    };

    return m * n * (each[class].values * value + each[class].more);
}

enum dtype sample_format(const struct sample *sample)
{
    return sample->dtype == DTYPE_BF16 ? DTYPE_FP16 : sample->dtype;
}

bool sample_is_derived(const struct sample *sample)
{
    return sample->window > 0 || sample->skew.exponent > 0;
}

struct product sample_product(const struct sample *sample)
{
    enum product_form form = sample->kind == SAMPLE_MATMUL ? (enum product_form)sample->which : FORM_MATMUL;

    return (struct product){sample->batch, sample->m, sample->n, sample->k, sample->layout, dtype_bytes(sample->dtype),
                            form, sample->skew};
}

struct heads sample_heads(const struct sample *sample)
{
    return (struct heads){sample->batch, sample->m, sample->n, sample->k, dtype_bytes(sample->dtype), sample->bytes,
                          sample->window};
}

/* The products of a sample, in one: its rows times the columns of one or several weights (a layer of experts: 3 n
 * columns, of which n are rows in the second product). */
static struct product whole_product(const struct sample *sample)
{
    struct product whole = sample_product(sample);

    whole.n *= whole.form == FORM_EXPERTS ? 3 : 1;
    if (product_is_grouped(whole.form))
        *(whole.layout == LAYOUT_TN ? &whole.k : &whole.m) /= whole.batch;
    return whole;
}

double sample_flop(const struct sample *sample)
{
    static const double products[] = {
        [ATTENTION_FORWARD] = 4, [ATTENTION_BACKWARD] = 10, [ATTENTION_FORWARD_CAUSAL] = 2,
        [ATTENTION_BACKWARD_CAUSAL] = 5,
    };
    bool is_product = sample->kind == SAMPLE_MATMUL || sample->kind == SAMPLE_SUSTAINED;
    struct product whole = whole_product(sample);
    double seen = sample->window > 0 ? attention_share(sample->n, true, sample->window) /
                                           attention_share(sample->n, true, 0) : 1;

    if (is_product)
        return 2 * whole.batch * whole.m * whole.n * whole.k;
    return sample->kind == SAMPLE_ATTENTION ?
               products[sample->which] * sample->batch * sample->m * sample->n * sample->k * seen :
               0;
}

double sample_bytes(const struct sample *sample)
{
    struct heads heads = sample_heads(sample);
    struct product whole = whole_product(sample);

    if (sample->kind == SAMPLE_MEMORY)
        return sample->bytes;
    if (sample->kind == SAMPLE_ATTENTION)
        return heads.bytes > 0 ? heads.bytes : attention_bytes((enum attention_direction)sample->which, &heads);
    if (product_is_grouped(whole.form) && whole.layout != LAYOUT_TN)     /* experts without rows read no weights */
        return whole.batch * whole.value * (whole.m * (whole.k + whole.n) + fmin(1, whole.m) * whole.k * whole.n);
    return whole.batch * whole.value * (whole.m * whole.k + whole.k * whole.n + whole.m * whole.n);
}

/* Upper bounds per multiprocessor, far above any GPU: a multiprocessor of B200 has 30 TFLOP/s in fp8 (data sheet: 4.5
 * PFLOP/s dense on 148) and reads its first-level cache at 128 bytes per cycle. The bounds find times that are not in
 * microseconds, which are wrong by a factor of a thousand. */
static const double most_flop = 100e12, most_bytes = 1e12;
/* Lower bounds (per GPU, FLOP/s; per multiprocessor, B/s) far below any GPU used for training, in addition to the time
 * of a launch: a multiprocessor of K80 has 300 GFLOP/s of 4.4 TFLOP/s and 18 GB/s of 240 GB/s. The bound on FLOP/s is
 * not multiplied by the multiprocessors, as a deep product of few rows and columns may use only one. */
static const double least_flop = 1e9, least_bytes = 1e8, launch = 1e-3;

int sample_check(const struct sample *sample, int sms, struct loc loc, struct error *err)
{
    double all_flop = sample_flop(sample), all_bytes = sample_bytes(sample);
    double flop = all_flop / sample->seconds / sms, bytes = all_bytes / sample->seconds / sms;
    double most_seconds = launch + (all_flop > 0 ? all_flop / least_flop : all_bytes / least_bytes / sms);
    bool slow = sample->seconds > most_seconds;
    const struct { bool wrong; enum unit unit; double rate; const char *how; } checks[] = {
        {flop > most_flop, UNIT_FLOP_RATE, flop, "more than any has"},
        {bytes > most_bytes, UNIT_BANDWIDTH, bytes, "more than any has"},
        {slow && all_flop > 0, UNIT_FLOP_RATE, flop, "less than any has"},
        {slow, UNIT_BANDWIDTH, bytes, "less than any has"},
    };

    if (sample->kind == SAMPLE_UNUSED)
        return 0;
    for (size_t i = 0; i < COUNT(checks); i++) {
        char text[48];

        if (checks[i].wrong)
            return error_add(err, EXIT_INPUT, loc, "median_us: %g us would be %s a multiprocessor, %s; expected "
                             "microseconds", 1e6 * sample->seconds,
                             unit_format_short(checks[i].unit, checks[i].rate, text, sizeof text), checks[i].how);
    }
    return 0;
}
