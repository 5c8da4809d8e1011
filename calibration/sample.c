#include "sample.h"

#include <inttypes.h>
#include <stdarg.h>

void sample_comment(FILE *out, const char *key, const char *format, ...)
{
    char value[512];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    for (char *at = value; *at; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    fprintf(out, "# %s: %s\n", key, value);
}

static void cell(FILE *out, int64_t value)
{
    if (value > 0)
        fprintf(out, "%" PRId64, value);
    fputc(',', out);
}

void sample_row(FILE *out, const struct bench_case *one, struct summary summary)
{
    fprintf(out, "%s,%s,", bench_kernel_names[one->kernel], bench_dtype_names[one->dtype]);
    cell(out, one->batch);
    cell(out, one->m);
    cell(out, one->n);
    cell(out, one->k);
    fprintf(out, "%s,", bench_layout_names[one->layout]);
    cell(out, one->bytes);
    fprintf(out, "%.6f,%.6f,%zu\n", summary.median * 1e6, summary.spread * 1e6, summary.count);
}
