#include "calibrate/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "calibrate/samples_reader.h"
#include "files/look.h"
#include "kernels/cost.h"

static int split(char *line, struct loc loc, struct sample_cells *cells)
{
    char *rest = line;

    *cells = (struct sample_cells){.loc = loc};
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

/* Reads a comment such as "# gpu: NVIDIA H200"; comments that are not a pair of key and value are ignored. */
static int comment_read(struct samples_reader *reader, struct loc loc, char *text)
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
        long long sms = strtoll(value, &end, 10);

        if (end == value || *end || sms < 1 || sms > 100000)
            return error_add(reader->err, EXIT_INPUT, loc, "sms: found '%.40s'; expected the number of the "
                             "GPU's multiprocessors, such as 108", value);
        if (reader->sms && reader->sms != sms)
            return error_add(reader->err, EXIT_INPUT, loc, "sms: found %lld, and %d above; expected one GPU a file",
                             sms, reader->sms);
        reader->sms = (int)sms;
    }
    if (!strcmp(text, "gpu") && reader->gpu && strcmp(reader->gpu, value) != 0)
        return error_add(reader->err, EXIT_INPUT, loc, "gpu: found '%s', and '%s' above; expected one GPU a file",
                         text_clip(value, clip, sizeof clip), reader->gpu);
    if (!strcmp(text, "attention") && (reader->attention = samples_name(attention_generation_names, value)) <= 0)
        return error_add(reader->err, EXIT_INPUT, loc, "attention: found '%.40s'; expected a generation of fused "
                         "attention: flash-1, flash-2, flash-3 or cudnn", value);
    for (size_t i = 0; i < COUNT(texts); i++)
        if (!strcmp(text, texts[i].key) && !(i && *texts[i].to))
            *texts[i].to = arena_strdup(samples->arena, value);
    return 0;
}

/* Checks the comments that all samples of a file need. All files must be of the same GPU. */
static int check_head(struct samples_reader *reader, struct loc loc)
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

static int columns_read(struct samples_reader *reader, const struct sample_cells *cells)
{
    int rc = check_head(reader, cells->loc);

    for (int c = 0; c < COLUMN_COUNT; c++)
        reader->at[c] = -1;
    for (int i = 0; i < cells->count; i++)
        for (int c = 0; c < COLUMN_COUNT; c++)
            if (strcmp(cells->texts[i], sample_column_names[c]) != 0)
                continue;
            else if (reader->at[c] < 0)
                reader->at[c] = i;
            else
                rc = error_add(reader->err, EXIT_INPUT, cells->loc, "column '%s' twice; expected one",
                               sample_column_names[c]);
    for (int c = 0; c < COLUMN_WINDOW; c++)
        if (reader->at[c] < 0)
            rc = error_add(reader->err, EXIT_INPUT, cells->loc,
                           "missing column '%s'; expected "
                           "kernel,dtype,batch,m,n,k,layout,bytes,median_us",
                           sample_column_names[c]);
    reader->ncolumns = cells->count;
    return rc;
}

static int line_read(struct samples_reader *reader, struct loc loc, char *line)
{
    struct sample_cells cells;

    if (line[0] == '#')
        return comment_read(reader, loc, line);
    if (!line[strspn(line, " \t\r")])
        return 0;
    if (split(line, loc, &cells))
        return error_add(reader->err, EXIT_INPUT, loc, "more than %d cells", (int)CELLS_MAX);
    return reader->ncolumns ? samples_row(reader, &cells) : columns_read(reader, &cells);
}

int samples_parse(struct samples *samples, const char *name, const char *text, size_t length, struct error *err)
{
    struct samples_reader reader = {.samples = samples, .err = err, .attention = ATTENTION_FLASH_2};
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
    FILE *file = look_open_stream(path, err);
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    int rc;

    if (!file)
        return -1;
    errno = 0;
    length = getdelim(&text, &capacity, 0, file);       /* the whole file, or up to a zero byte */
    if (length < 0 && errno == ENOMEM)
        memory_ran_out();
    if (ferror(file))
        rc = error_system(err, (struct loc){.file = path}, "cannot read");
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
