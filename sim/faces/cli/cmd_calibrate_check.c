/* dtsim calibrate check: samples compared with a profile's predictions, by kind, format and size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "calibrate/calibrate.h"
#include "cli/cmd_calibrate.h"
#include "cli/said.h"
#include "files/json.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"
#include "kernels/profile.h"
#include "view/view.h"

static bool is_product(const struct sample *sample)
{
    return sample->kind == SAMPLE_MATMUL || sample->kind == SAMPLE_SUSTAINED;
}

/* Samples against a profile. */
struct against { const struct profile *profile; const struct samples *samples; const struct compared_costs *rows; size_t count; };

#define SAMPLE(ROW) \
    ROW(kernel, json_string(sample_name(it->sample)), "its name in samples") \
    ROW(dtype, json_string(dtype_names[it->sample->dtype]), "of its operands") \
    ROW(batch, json_real(it->sample->batch), "as in samples") ROW(m, json_real(it->sample->m), "the same") \
    ROW(n, json_real(it->sample->n), "the same") ROW(k, json_real(it->sample->k), "the same") \
    ROW(layout, json_string(is_product(it->sample) ? layout_names[it->sample->layout] : ""), "of a product") \
    ROW(bytes, json_real(it->sample->bytes), "that it reads and writes") \
    ROW(window, json_real(it->sample->window), "of attention; 0: none") \
    ROW(expert_skew, json_real(it->sample->skew.exponent), "of a grouped product") \
    ROW(measured_us, json_real(1e6 * it->sample->seconds), "time") \
    ROW(predicted_us, json_finite(1e6 * it->predicted.seconds), "by the profile; null: it has no record") \
    ROW(extrapolated, json_boolean(it->predicted.basis != BASIS_MEASURED), "whether the profile was fitted to no sample like it")
VIEW(sample_view, struct compared_costs, it, SAMPLE)

#define AGAINST(ROW) \
    ROW(profile, json_words(it->profile->name), "its name") \
    ROW(gpu, json_words(it->samples->gpu), "of the samples") \
    ROW(rows, view_list(&sample_view, it->rows, it->count, sizeof *it->rows), "samples", .form = VIEW_LIST, .of = &sample_view)
VIEW_SHARED(calibrate_check_view, struct against, it, AGAINST)

/* Formats mean nothing to kernels that are bound by memory: their bytes count. */
static int format_of(const struct sample *sample)
{
    return sample->kind == SAMPLE_MEMORY ? 0 : (int)sample->dtype;
}

static int compare_rows(const void *a, const void *b)
{
    const struct sample *x = ((const struct compared_costs *)a)->sample, *y = ((const struct compared_costs *)b)->sample;
    const int order[][2] = {{(int)x->kind, (int)y->kind}, {x->which, y->which}, {format_of(x), format_of(y)},
                            {sample_is_derived(x), sample_is_derived(y)}};

    for (size_t i = 0; i < COUNT(order); i++)
        if (order[i][0] != order[i][1])
            return order[i][0] > order[i][1] ? 1 : -1;
    return 0;
}

/* The measure of a kind's sizes: rows of products, queries of attention, bytes of other kernels. */
static const struct size {
    const char *name;
    double edges[7];
} sizes[] = {
    [SAMPLE_MATMUL] = {"m", {0, 64, 256, 1024, 4096, 16384, INFINITY}},
    [SAMPLE_ATTENTION] = {"queries", {0, 256, 1024, 4096, 16384, 65536, INFINITY}},
    [SAMPLE_MEMORY] = {"bytes", {0, 1e6, 1e7, 1e8, 1e9, 1e10, INFINITY}},
    [SAMPLE_SUSTAINED] = {"m", {0, 64, 256, 1024, 4096, 16384, INFINITY}},
};

/* Prints the errors of the rows whose sizes are in (from, to]. */
static void print_errors(const char *title, const char *format, const struct compared_costs *rows, size_t count, double from,
                         double to)
{
    double *errors = xcalloc(count + 1, sizeof *errors), sum = 0, logs = 0;
    size_t predicted = 0, missing = 0, extrapolated = 0;

    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = rows[i].sample;
        double size = sample->kind == SAMPLE_MEMORY ? sample->bytes : sample->m;
        double ratio = rows[i].predicted.seconds / sample->seconds;

        if (size <= from || size > to)
            continue;
        if (isnan(ratio)) {
            missing++;
            continue;
        }
        extrapolated += rows[i].predicted.basis != BASIS_MEASURED;
        sum += errors[predicted++] = fabs(ratio - 1);
        logs += log(ratio);
    }
    if (predicted || missing)
        printf("%-33s %-9s %7zu", title, format, predicted);
    if (predicted) {
        double median = sorted_median(errors, predicted), n = (double)predicted;

        printf(" %7.1f %% %7.1f %% %7.1f %% %+7.1f %% %9zu", 100 * sum / n, 100 * median, 100 * errors[predicted - 1],
               100 * (exp(logs / n) - 1), extrapolated);
    }
    if (missing)
        printf("  %zu without a record", missing);
    if (predicted || missing)
        putchar('\n');
    free(errors);
}

static void print_group(const struct compared_costs *rows, size_t count)
{
    const struct sample *sample = rows->sample;
    const struct size *size = &sizes[sample->kind];
    char title[64];

    snprintf(title, sizeof title, "%s%s", sample_name(sample),
             sample->window > 0 ? ", window" : sample->skew.exponent > 0 ? ", skew" : "");
    print_errors(title, sample->kind == SAMPLE_MEMORY ? "" : dtype_names[sample->dtype], rows, count, 0,
                 INFINITY);
    for (size_t i = 1; i < COUNT(size->edges); i++) {
        char text[40];

        if (isinf(size->edges[i]))
            snprintf(text, sizeof text, "    %s over %g", size->name, size->edges[i - 1]);
        else
            snprintf(text, sizeof text, "    %s up to %g", size->name, size->edges[i]);
        print_errors(text, "", rows, count, size->edges[i - 1], size->edges[i]);
    }
}

static void print_table(const struct profile *profile, const struct samples *samples, struct compared_costs *rows,
                        size_t count)
{
    fputs("profile ", stdout);
    text_write(TEXT_LINE, profile->name, stdout);
    fputs(" (", stdout);
    text_write(TEXT_LINE, profile->gpu, stdout);
    printf(", %d SMs), samples of ", profile->sms);
    text_write(TEXT_LINE, samples->gpu, stdout);
    printf(", %d SMs\n", samples->sms);
    printf("%-33s %-9s %7s %9s %9s %9s %9s %9s\n", "kernel", "format", "samples", "mean", "median", "max", "bias",
           "extrapol.");
    array_sort(rows, count, sizeof *rows, compare_rows);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && compare_rows(&rows[i], &rows[i + n]) == 0; n++)
            ;
        print_group(&rows[i], n);
    }
    puts("mean, median, max: |predicted / measured - 1|; bias: geometric mean of predicted / measured, less 1;\n"
         "extrapol.: samples of kinds, layouts or sizes to which the profile was not fitted");
}

int calibrate_check_print(const struct arguments *arguments, struct error *err)
{
    struct arena arena = {0};
    struct samples samples = {.arena = &arena};
    struct profile profile;
    int rc = profile_load(&arena, arguments->positional[1], (struct loc){0}, &profile, err);

    for (int i = 2; i < arguments->npositional; i++)
        if (samples_load(&samples, arguments->positional[i], err))
            rc = -1;
    if (!rc) {
        size_t count;
        struct compared_costs *rows = calibrate_check(&arena, &profile, &samples, &count);

        if (profile.sms != samples.sms)
            fprintf(stderr,
                    "warning: the profile is of a GPU with %d multiprocessors, the samples are of one with %d\n",
                    profile.sms, samples.sms);
        if (arguments->values[OPT_JSON])
            view_print(&calibrate_check_view, &(struct against){&profile, &samples, rows, count}, stdout);
        else
            print_table(&profile, &samples, rows, count);
    }
    samples_release(&samples);
    arena_release(&arena);
    return rc;
}
