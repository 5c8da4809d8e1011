/* The cells of a line, as a sample. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "calibrate/samples_reader.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"
#include "kernels/kernel_time.h"

const char *const sample_column_names[COLUMN_COUNT] = {
    [COLUMN_KERNEL] = "kernel", [COLUMN_DTYPE] = "dtype", [COLUMN_BATCH] = "batch",
    [COLUMN_M] = "m",           [COLUMN_N] = "n",         [COLUMN_K] = "k",
    [COLUMN_LAYOUT] = "layout", [COLUMN_BYTES] = "bytes", [COLUMN_MEDIAN] = "median_us",
    [COLUMN_WINDOW] = "window", [COLUMN_SKEW] = "expert_skew", [COLUMN_RANGE] = "skew_range",
};

int samples_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

/* Samples that a file may contain but that a profile of compute kernels does not use. */
static const char *const transfer_names[] = {
    "copy-host-to-device",
    "copy-host-to-device-pinned",
    "copy-host-to-device-pageable",
    "copy-host-to-device-pinned-overlap",
    "copy-host-to-device-pageable-overlap",
    "copy-device-to-host",
    "copy-device-to-host-pinned",
    "copy-device-to-host-pageable",
    "copy-device-to-host-pinned-overlap",
    "copy-device-to-host-pageable-overlap",
    "copy-device-overlap",
    "peer-copy",
    "peer-copy-overlap",
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "all-to-all",
    "send-recv",
    NULL,
};

/* Number formats that are measured but that no scenario uses. Kernels bound by memory are used even so, by their
 * bytes. */
static const char *const foreign_dtypes[] = {"int32", "byte", NULL};

static const char *kernel_candidate(size_t i, const void *context)
{
    static const char *const *const lists[] = {product_form_names, memory_class_names + 1, attention_direction_names,
                                               transfer_names};
    static const char *const single[] = {"matmul-sustained", "launch"};

    (void)context;
    if (i < COUNT(single))
        return single[i];
    i -= COUNT(single);
    for (size_t list = 0; list < COUNT(lists); list++)
        for (size_t k = 0; lists[list][k]; k++)
            if (i-- == 0)
                return lists[list][k];
    return NULL;
}

static struct loc cell_loc(const struct samples_reader *reader, const struct sample_cells *cells, enum sample_column column)
{
    struct loc loc = cells->loc;

    loc.column = cells->columns[reader->at[column]];
    return loc;
}

static const char *cell_text(const struct samples_reader *reader, const struct sample_cells *cells, enum sample_column column)
{
    return cells->texts[reader->at[column]];
}

static int number_read(struct samples_reader *reader, const struct sample_cells *cells, enum sample_column column,
                       double *value)
{
    const char *text = cell_text(reader, cells, column), *name = sample_column_names[column];
    char why[200], clip[CLIP_SIZE];
    struct loc loc = cell_loc(reader, cells, column);

    if (!*text)
        return error_add(reader->err, EXIT_INPUT, loc, "%s: the cell is empty; expected a positive number", name);
    if (unit_parse(UNIT_NUMBER, text, value, why, sizeof why))
        return error_add(reader->err, EXIT_INPUT, loc, "%s: %s", name, why);
    if (*value <= 0 || *value > 1e15)
        return error_add(reader->err, EXIT_INPUT, loc, "%s: found %s; expected a positive number up to 1e15", name,
                         text_clip(text, clip, sizeof clip));
    if (column != COLUMN_MEDIAN && column != COLUMN_SKEW && column != COLUMN_RANGE && *value != floor(*value))
        return error_add(reader->err, EXIT_INPUT, loc, "%s: found %s; expected a whole number", name,
                         text_clip(text, clip, sizeof clip));
    return 0;
}

static int choice_read(struct samples_reader *reader, const struct sample_cells *cells, enum sample_column column,
                       const char *const *names, int *value)
{
    const char *text = cell_text(reader, cells, column);
    char clip[CLIP_SIZE], list[200] = "";
    int index = samples_name(names, text);

    *value = index < 0 ? 0 : index;
    if (index >= 0)
        return 0;
    for (size_t i = 0; names[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    return error_add(reader->err, EXIT_INPUT, cell_loc(reader, cells, column), "%s: found '%s'; expected one of: %s",
                     sample_column_names[column], text_clip(text, clip, sizeof clip), list);
}

static int kernel_read(struct samples_reader *reader, const struct sample_cells *cells, struct sample *sample)
{
    const char *name = cell_text(reader, cells, COLUMN_KERNEL), *meant;
    char clip[CLIP_SIZE];

    if (!strcmp(name, "matmul-sustained"))
        sample->kind = SAMPLE_SUSTAINED;
    else if (!strcmp(name, "launch"))
        sample->kind = SAMPLE_UNUSED;
    else if ((sample->which = samples_name(product_form_names, name)) >= 0)
        sample->kind = SAMPLE_MATMUL;
    else if ((sample->which = samples_name(attention_direction_names, name)) >= 0)
        sample->kind = SAMPLE_ATTENTION;
    else if ((sample->which = samples_name(memory_class_names, name)) > CLASS_OTHER)
        sample->kind = SAMPLE_MEMORY;
    else if (samples_name(transfer_names, name) >= 0)
        sample->kind = SAMPLE_UNUSED;
    else if (error_shows(reader->err, &cells->loc) && (meant = nearest(name, kernel_candidate, NULL)))
        return error_add(reader->err, EXIT_INPUT, cells->loc, "unknown kernel '%s'; did you mean '%s'?",
                         text_clip(name, clip, sizeof clip), meant);
    else
        return error_add(reader->err, EXIT_INPUT, cells->loc,
                         "unknown kernel '%s'; expected matmul, "
                         "attention-forward, layernorm-forward, adam, ...; see 'dtsim help calibrate'",
                         text_clip(name, clip, sizeof clip));
    return 0;
}

static int memory_read(struct samples_reader *reader, const struct sample_cells *cells, struct sample *sample)
{
    double m = 0, n = 1;

    if (*cell_text(reader, cells, COLUMN_BYTES))
        return number_read(reader, cells, COLUMN_BYTES, &sample->bytes);
    if (number_read(reader, cells, COLUMN_M, &m) ||
        (*cell_text(reader, cells, COLUMN_N) && number_read(reader, cells, COLUMN_N, &n)))
        return -1;
    sample->bytes = sample_class_bytes((enum memory_class)sample->which, m, n, dtype_bytes(sample->dtype));
    return 0;
}

static int sizes_read(struct samples_reader *reader, const struct sample_cells *cells, struct sample *sample)
{
    const struct {
        enum sample_column column;
        double *size;
    } sizes[] = {
        {COLUMN_M, &sample->m},
        {COLUMN_N, &sample->n},
        {COLUMN_K, &sample->k},
        {COLUMN_BATCH, &sample->batch},
    };
    bool product = sample->kind == SAMPLE_MATMUL, layer = product && sample->which == FORM_EXPERTS;
    bool experts = product && product_is_grouped((enum product_form)sample->which);
    int layout = LAYOUT_NT, rc = 0;

    sample->batch = 1;
    for (size_t i = 0; i < COUNT(sizes); i++)
        if ((sizes[i].column != COLUMN_BATCH || experts || *cell_text(reader, cells, COLUMN_BATCH)) &&
            number_read(reader, cells, sizes[i].column, sizes[i].size))
            rc = -1;
    if (!layer && sample->kind != SAMPLE_ATTENTION && choice_read(reader, cells, COLUMN_LAYOUT, layout_names, &layout))
        rc = -1;
    if (sample->kind == SAMPLE_ATTENTION && *cell_text(reader, cells, COLUMN_BYTES) &&
        number_read(reader, cells, COLUMN_BYTES, &sample->bytes))
        rc = -1;
    sample->layout = (enum matmul_layout)layout;
    return rc;
}

static bool is_given(const struct samples_reader *reader, const struct sample_cells *cells, enum sample_column column)
{
    return reader->at[column] >= 0 && *cell_text(reader, cells, column);
}

/* Refuses a cell in a column that means nothing for the kernel. */
static int check_empty(struct samples_reader *reader, const struct sample_cells *cells, enum sample_column column,
                       const char *only)
{
    char clip[CLIP_SIZE];

    if (!is_given(reader, cells, column))
        return 0;
    return error_add(reader->err, EXIT_INPUT, cell_loc(reader, cells, column), "%s: found %s; expected an empty cell, "
                     "because only %s", sample_column_names[column],
                     text_clip(cell_text(reader, cells, column), clip, sizeof clip), only);
}

/* How unevenly rows are divided among experts: two numbers, or none. */
static int skew_read(struct samples_reader *reader, const struct sample_cells *cells, struct skew *skew)
{
    bool exponent = is_given(reader, cells, COLUMN_SKEW), range = is_given(reader, cells, COLUMN_RANGE);

    if (!exponent && !range)
        return 0;
    if (exponent != range)
        return error_add(reader->err, EXIT_INPUT, cells->loc, "expert_skew and skew_range: found one of them; expected "
                         "both, the exponent of the experts' power law and its largest value over its smallest");
    if (number_read(reader, cells, COLUMN_SKEW, &skew->exponent) ||
        number_read(reader, cells, COLUMN_RANGE, &skew->measured_range))
        return -1;
    if (skew->measured_range > 1)
        return 0;
    return error_add(reader->err, EXIT_INPUT, cell_loc(reader, cells, COLUMN_RANGE), "skew_range: found %g; expected "
                     "more than 1", skew->measured_range);
}

static int derived_read(struct samples_reader *reader, const struct sample_cells *cells, struct sample *sample)
{
    bool causal = sample->kind == SAMPLE_ATTENTION &&
                  (sample->which == ATTENTION_FORWARD_CAUSAL || sample->which == ATTENTION_BACKWARD_CAUSAL);
    bool experts = sample->kind == SAMPLE_MATMUL && product_is_grouped((enum product_form)sample->which);
    int rc = 0;

    if (!causal)
        rc = check_empty(reader, cells, COLUMN_WINDOW, "causal attention has a window");
    else if (is_given(reader, cells, COLUMN_WINDOW))
        rc = number_read(reader, cells, COLUMN_WINDOW, &sample->window);
    if (experts)
        return skew_read(reader, cells, &sample->skew) ? -1 : rc;
    return check_empty(reader, cells, COLUMN_SKEW, "experts' rows may be uneven") ||
           check_empty(reader, cells, COLUMN_RANGE, "experts' rows may be uneven") ? -1 : rc;
}

int samples_row(struct samples_reader *reader, const struct sample_cells *cells)
{
    struct sample sample = {.loc = cells->loc};
    int dtype = 0, rc;

    if (cells->count != reader->ncolumns)
        return error_add(reader->err, EXIT_INPUT, cells->loc, "found %d cells; the line of names has %d", cells->count,
                         reader->ncolumns);
    if (kernel_read(reader, cells, &sample))
        return -1;
    rc = number_read(reader, cells, COLUMN_MEDIAN, &sample.seconds);
    sample.seconds *= 1e-6;
    if (samples_name(foreign_dtypes, cell_text(reader, cells, COLUMN_DTYPE)) >= 0)
        sample.kind = sample.kind == SAMPLE_MEMORY && *cell_text(reader, cells, COLUMN_BYTES) ? SAMPLE_MEMORY :
                                                                                                SAMPLE_UNUSED;
    else if (sample.kind != SAMPLE_UNUSED && choice_read(reader, cells, COLUMN_DTYPE, dtype_names, &dtype))
        rc = -1;
    sample.dtype = (enum dtype)dtype;
    if (!rc && sample.kind == SAMPLE_MATMUL && sample.which == FORM_QUANTIZED && dtype_bytes(sample.dtype) > 1)
        rc = error_add(reader->err, EXIT_INPUT, cell_loc(reader, cells, COLUMN_DTYPE),
                       "dtype: found '%s'; expected a "
                       "format to which matmul-quantized quantises: fp8, fp8-block, mxfp8 or nvfp4",
                       dtype_names[dtype]);
    if (sample.kind != SAMPLE_UNUSED &&
        ((sample.kind == SAMPLE_MEMORY ? memory_read : sizes_read)(reader, cells, &sample) ||
         derived_read(reader, cells, &sample)))
        rc = -1;
    if (!rc && !(rc = sample_check(&sample, reader->sms, cell_loc(reader, cells, COLUMN_MEDIAN), reader->err)))
        *GROW(reader->samples) = sample;
    return rc;
}
