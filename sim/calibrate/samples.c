#include "calibrate/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 32 };

/* Samples that a file may contain but that a profile of compute kernels does not use. */
static const char *const transfer_names[] = {
    "copy-host-to-device", "copy-host-to-device-pinned", "copy-host-to-device-pageable",
    "copy-host-to-device-pinned-overlap", "copy-host-to-device-pageable-overlap", "copy-device-to-host",
    "copy-device-to-host-pinned", "copy-device-to-host-pageable", "copy-device-to-host-pinned-overlap",
    "copy-device-to-host-pageable-overlap", "copy-device-overlap", "peer-copy", "peer-copy-overlap", "all-reduce",
    "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all", "send-recv", NULL,
};

/* Number formats that are measured but that no scenario uses. Kernels bound by memory are used even so, by their
 * bytes. */
static const char *const foreign_dtypes[] = {"int32", "byte", NULL};

enum column {
    COLUMN_KERNEL, COLUMN_DTYPE, COLUMN_BATCH, COLUMN_M, COLUMN_N, COLUMN_K, COLUMN_LAYOUT, COLUMN_BYTES, COLUMN_MEDIAN,
    COLUMN_COUNT
};
static const char *const column_names[] = {
    [COLUMN_KERNEL] = "kernel", [COLUMN_DTYPE] = "dtype", [COLUMN_BATCH] = "batch", [COLUMN_M] = "m", [COLUMN_N] = "n",
    [COLUMN_K] = "k", [COLUMN_LAYOUT] = "layout", [COLUMN_BYTES] = "bytes", [COLUMN_MEDIAN] = "median_us",
};
_Static_assert(COUNT(column_names) == COLUMN_COUNT, "a name for every column");

struct cells { struct loc loc; char *texts[CELLS_MAX]; int columns[CELLS_MAX]; int count; };

/* A file that is being read. */
struct reader {
    struct samples *samples;
    struct error *err;
    const char *gpu;                     /* this file's GPU */
    int sms, attention;
    int at[COLUMN_COUNT];                /* the column's index in a line; -1: missing */
    int ncolumns;                        /* 0: the line of column names has not been read yet */
};

static int split(char *line, struct loc loc, struct cells *cells)
{
    char *rest = line;

    *cells = (struct cells){.loc = loc};
    for (char *cell; (cell = strsep(&rest, ","));) {
        size_t length;

        if (cells->count == CELLS_MAX)
            return -1;
        cells->columns[cells->count] = (int)(cell - line) + 1;
        cell += strspn(cell, " \t");
        for (length = strlen(cell); length && strchr(" \t\r", cell[length - 1]); length--)
            ;
        cell[length] = 0;
        cells->texts[cells->count++] = cell;
    }
    return 0;
}

static int name_index(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static const char *kernel_candidate(size_t i, const void *context)
{
    static const char *const *const lists[] = {memory_class_names + 1, attention_direction_names, transfer_names};
    static const char *const single[] = {"matmul", "matmul-sustained", "launch"};

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

/* Reads a comment such as "# gpu: NVIDIA H200"; comments that are not a pair of key and value are ignored. */
static int comment_read(struct reader *reader, struct loc loc, char *text)
{
    struct samples *samples = reader->samples;
    char *colon = strchr(text, ':'), *value, *end, clip[CLIP_SIZE];
    const struct { const char *key, **to; } texts[] = {
        {"gpu", &reader->gpu}, {"source", &samples->source}, {"date", &samples->date},
        {"driver", &samples->driver}, {"cuda", &samples->cuda},
    };

    text += strspn(text, "# \t");
    if (!colon || colon < text)
        return 0;
    *colon = 0;
    value = colon + 1 + strspn(colon + 1, " \t");
    for (end = value + strlen(value); end > value && strchr(" \t\r", end[-1]); end--)
        ;
    *end = 0;
    if (!strcmp(text, "sms")) {
        long sms = strtol(value, &end, 10);

        if (end == value || *end || sms < 1 || sms > 100000)
            return error_add(reader->err, EXIT_INPUT, loc, "sms: found '%.40s'; expected the number of the "
                             "GPU's multiprocessors, such as 108", value);
        if (reader->sms && reader->sms != sms)
            return error_add(reader->err, EXIT_INPUT, loc, "sms: found %ld, and %d above; expected one GPU a file",
                             sms, reader->sms);
        reader->sms = (int)sms;
    }
    if (!strcmp(text, "gpu") && reader->gpu && strcmp(reader->gpu, value) != 0)
        return error_add(reader->err, EXIT_INPUT, loc, "gpu: found '%s', and '%s' above; expected one GPU a file",
                         text_clip(value, clip, sizeof clip), reader->gpu);
    if (!strcmp(text, "attention") && (reader->attention = name_index(attention_generation_names, value)) <= 0)
        return error_add(reader->err, EXIT_INPUT, loc, "attention: found '%.40s'; expected a generation of fused "
                         "attention: flash-1, flash-2 or flash-3", value);
    for (size_t i = 0; i < COUNT(texts); i++)
        if (!strcmp(text, texts[i].key) && !(i && *texts[i].to))
            *texts[i].to = arena_strdup(samples->arena, value);
    return 0;
}

/* Checks the comments that all samples of a file need. All files must be of the same GPU. */
static int check_head(struct reader *reader, struct loc loc)
{
    struct samples *samples = reader->samples;

    if (!reader->gpu || !*reader->gpu)
        return error_add(reader->err, EXIT_INPUT, loc, "no line '# gpu: NAME' above; expected the GPU that was "
                         "measured");
    if (!reader->sms)
        return error_add(reader->err, EXIT_INPUT, loc, "no line '# sms: COUNT' above; expected the number of "
                         "multiprocessors of the GPU");
    if (samples->gpu && (strcmp(samples->gpu, reader->gpu) || samples->sms != reader->sms))
        return error_add(reader->err, EXIT_INPUT, loc, "samples of '%s' with %d SMs; those of %s are of '%s' with %d; "
                         "expected one GPU", reader->gpu, reader->sms, samples->gpu_loc.file, samples->gpu,
                         samples->sms);
    if (samples->gpu && samples->attention != reader->attention)
        return error_add(reader->err, EXIT_INPUT, loc, "fused attention of %s; in %s it is %s; expected one generation",
                         attention_generation_names[reader->attention], samples->gpu_loc.file,
                         attention_generation_names[samples->attention]);
    samples->attention = reader->attention;
    samples->gpu = reader->gpu;
    samples->sms = reader->sms;
    samples->gpu_loc = loc;
    return 0;
}

static int columns_read(struct reader *reader, const struct cells *cells)
{
    int rc = check_head(reader, cells->loc);

    for (int c = 0; c < COLUMN_COUNT; c++)
        reader->at[c] = -1;
    for (int i = 0; i < cells->count; i++)
        for (int c = 0; c < COLUMN_COUNT; c++)
            if (strcmp(cells->texts[i], column_names[c]) != 0)
                continue;
            else if (reader->at[c] < 0)
                reader->at[c] = i;
            else
                rc = error_add(reader->err, EXIT_INPUT, cells->loc, "column '%s' twice; expected one",
                               column_names[c]);
    for (int c = 0; c < COLUMN_COUNT; c++)
        if (reader->at[c] < 0)
            rc = error_add(reader->err, EXIT_INPUT, cells->loc, "missing column '%s'; expected "
                           "kernel,dtype,batch,m,n,k,layout,bytes,median_us", column_names[c]);
    reader->ncolumns = cells->count;
    return rc;
}

static struct loc cell_loc(const struct reader *reader, const struct cells *cells, enum column column)
{
    struct loc loc = cells->loc;

    loc.column = cells->columns[reader->at[column]];
    return loc;
}

static const char *cell_text(const struct reader *reader, const struct cells *cells, enum column column)
{
    return cells->texts[reader->at[column]];
}

static int number_read(struct reader *reader, const struct cells *cells, enum column column, double *value)
{
    const char *text = cell_text(reader, cells, column), *name = column_names[column];
    char why[200], clip[CLIP_SIZE];
    struct loc loc = cell_loc(reader, cells, column);

    if (!*text)
        return error_add(reader->err, EXIT_INPUT, loc, "%s: the cell is empty; expected a positive number", name);
    if (unit_parse(UNIT_NUMBER, text, value, why, sizeof why))
        return error_add(reader->err, EXIT_INPUT, loc, "%s: %s", name, why);
    if (*value <= 0 || *value > 1e15)
        return error_add(reader->err, EXIT_INPUT, loc, "%s: found %s; expected a positive number up to 1e15", name,
                         text_clip(text, clip, sizeof clip));
    if (column != COLUMN_MEDIAN && *value != floor(*value))
        return error_add(reader->err, EXIT_INPUT, loc, "%s: found %s; expected a whole number", name,
                         text_clip(text, clip, sizeof clip));
    return 0;
}

static int choice_read(struct reader *reader, const struct cells *cells, enum column column, const char *const *names,
                       int *value)
{
    const char *text = cell_text(reader, cells, column);
    char clip[CLIP_SIZE], list[200] = "";
    int index = name_index(names, text);

    *value = index < 0 ? 0 : index;
    if (index >= 0)
        return 0;
    for (size_t i = 0; names[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    return error_add(reader->err, EXIT_INPUT, cell_loc(reader, cells, column), "%s: found '%s'; expected one of: %s",
                     column_names[column], text_clip(text, clip, sizeof clip), list);
}

static int kernel_read(struct reader *reader, const struct cells *cells, struct sample *sample)
{
    const char *name = cell_text(reader, cells, COLUMN_KERNEL), *meant;
    char clip[CLIP_SIZE];

    if (!strcmp(name, "matmul"))
        sample->kind = SAMPLE_MATMUL;
    else if (!strcmp(name, "matmul-sustained"))
        sample->kind = SAMPLE_SUSTAINED;
    else if (!strcmp(name, "launch"))
        sample->kind = SAMPLE_UNUSED;
    else if ((sample->which = name_index(attention_direction_names, name)) >= 0)
        sample->kind = SAMPLE_ATTENTION;
    else if ((sample->which = name_index(memory_class_names, name)) > CLASS_OTHER)
        sample->kind = SAMPLE_MEMORY;
    else if (name_index(transfer_names, name) >= 0)
        sample->kind = SAMPLE_UNUSED;
    else if ((meant = nearest(name, kernel_candidate, NULL)))
        return error_add(reader->err, EXIT_INPUT, cells->loc, "unknown kernel '%s'; did you mean '%s'?",
                         text_clip(name, clip, sizeof clip), meant);
    else
        return error_add(reader->err, EXIT_INPUT, cells->loc, "unknown kernel '%s'; expected matmul, "
                         "attention-forward, layernorm-forward, adam, ...; see 'dtsim help calibrate'",
                         text_clip(name, clip, sizeof clip));
    return 0;
}

static int memory_read(struct reader *reader, const struct cells *cells, struct sample *sample)
{
    double m, n = 1;

    if (*cell_text(reader, cells, COLUMN_BYTES))
        return number_read(reader, cells, COLUMN_BYTES, &sample->bytes);
    if (number_read(reader, cells, COLUMN_M, &m) ||
        (*cell_text(reader, cells, COLUMN_N) && number_read(reader, cells, COLUMN_N, &n)))
        return -1;
    sample->bytes = sample_class_bytes((enum memory_class)sample->which, m, n, dtype_bytes(sample->dtype));
    return 0;
}

static int sizes_read(struct reader *reader, const struct cells *cells, struct sample *sample)
{
    const struct { enum column column; double *size; } sizes[] = {
        {COLUMN_M, &sample->m}, {COLUMN_N, &sample->n}, {COLUMN_K, &sample->k}, {COLUMN_BATCH, &sample->batch},
    };
    int layout = 0, rc = 0;

    sample->batch = 1;
    for (size_t i = 0; i < COUNT(sizes); i++)
        if ((sizes[i].column != COLUMN_BATCH || *cell_text(reader, cells, COLUMN_BATCH)) &&
            number_read(reader, cells, sizes[i].column, sizes[i].size))
            rc = -1;
    if (sample->kind != SAMPLE_ATTENTION && choice_read(reader, cells, COLUMN_LAYOUT, layout_names, &layout))
        rc = -1;
    sample->layout = (enum matmul_layout)layout;
    return rc;
}

static int sample_read(struct reader *reader, const struct cells *cells)
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
    if (name_index(foreign_dtypes, cell_text(reader, cells, COLUMN_DTYPE)) >= 0)
        sample.kind = sample.kind == SAMPLE_MEMORY && *cell_text(reader, cells, COLUMN_BYTES) ? SAMPLE_MEMORY
                                                                                           : SAMPLE_UNUSED;
    else if (sample.kind != SAMPLE_UNUSED && choice_read(reader, cells, COLUMN_DTYPE, dtype_names, &dtype))
        rc = -1;
    sample.dtype = (enum dtype)dtype;
    if (sample.kind != SAMPLE_UNUSED &&
        (sample.kind == SAMPLE_MEMORY ? memory_read : sizes_read)(reader, cells, &sample))
        rc = -1;
    if (!rc && !(rc = sample_check(&sample, reader->sms, cell_loc(reader, cells, COLUMN_MEDIAN), reader->err)))
        *GROW(reader->samples) = sample;
    return rc;
}

static int line_read(struct reader *reader, struct loc loc, char *line)
{
    struct cells cells;

    if (line[0] == '#')
        return comment_read(reader, loc, line);
    if (!line[strspn(line, " \t\r")])
        return 0;
    if (split(line, loc, &cells))
        return error_add(reader->err, EXIT_INPUT, loc, "more than %d cells", (int)CELLS_MAX);
    return reader->ncolumns ? sample_read(reader, &cells) : columns_read(reader, &cells);
}

int samples_parse(struct samples *samples, const char *name, const char *text, size_t length, struct error *err)
{
    struct reader reader = {.samples = samples, .err = err, .attention = ATTENTION_FLASH_2};
    struct loc loc = {arena_strdup(samples->arena, name), 1, 1};
    char *copy = arena_strndup(samples->arena, text, length), *line = copy + text_mark(text, length);
    size_t before = samples->count;
    int rc = 0;

    if (memchr(text, 0, length))
        return error_add(err, EXIT_INPUT, loc, "a zero byte: this is not a text file");
    for (char *end; line < copy + length && (end = strchr(line, '\n')); line = end + 1, loc.line++) {
        bool head = !reader.ncolumns;

        *end = 0;
        if (line_read(&reader, loc, line))
            rc = -1;
        if (rc && head && reader.ncolumns)     /* with wrong columns the following lines cannot be checked */
            return rc;
    }
    if (line < copy + length)
        return error_add(err, EXIT_INPUT, loc, "the last line has no newline: the file seems to be cut off; "
                         "if it is complete, add a newline");
    if (!rc && samples->count == before)
        return error_add(err, EXIT_INPUT, (struct loc){.file = loc.file}, "no samples; expected a line of column names "
                         "and one line per sample");
    return rc;
}

int samples_load(struct samples *samples, const char *path, struct error *err)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    int rc;

    if (!file)
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "cannot open: %s", strerror(errno));
    errno = 0;
    length = getdelim(&text, &capacity, 0, file);       /* the whole file, or up to a zero byte */
    if (length < 0 && ferror(file))
        rc = error_add(err, EXIT_INPUT, (struct loc){.file = path}, "cannot read: %s", strerror(errno));
    else
        rc = samples_parse(samples, path, length < 0 ? "" : text, length < 0 ? 0 : (size_t)length, err);
    free(text);
    fclose(file);
    return rc;
}

const char *samples_source(const struct samples *samples)
{
    const struct { const char *before, *text; } parts[] = {
        {"", samples->source}, {"", samples->date}, {"driver ", samples->driver}, {"CUDA ", samples->cuda},
    };
    const char *line = "";

    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i].text && *parts[i].text)
            line = arena_printf(samples->arena, "%s%s%s%s", line, *line ? "; " : "", parts[i].before, parts[i].text);
    return *line ? line : "not said";
}

void samples_release(struct samples *samples)
{
    free(samples->items);
    memset(samples, 0, sizeof *samples);
}
