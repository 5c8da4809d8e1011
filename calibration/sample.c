#include "sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* What tells a sample from others: the cells before its time. */
enum { KEY_SIZE = 256, KEY_CELLS = 8 };

static void cell(char key[KEY_SIZE], int64_t value)
{
    size_t length = strlen(key);

    if (value > 0)
        snprintf(key + length, KEY_SIZE - length, "%" PRId64 ",", value);
    else
        snprintf(key + length, KEY_SIZE - length, ",");
}

static const char *key_of(const struct bench_case *one, char key[KEY_SIZE])
{
    const int64_t sizes[] = {one->batch, one->m, one->n, one->k};
    size_t length;

    snprintf(key, KEY_SIZE, "%s,%s,", bench_kernel_names[one->kernel], bench_dtype_names[one->dtype]);
    for (size_t i = 0; i < COUNT(sizes); i++)
        cell(key, sizes[i]);
    length = strlen(key);
    snprintf(key + length, KEY_SIZE - length, "%s,", bench_layout_names[one->layout]);
    cell(key, one->bytes);
    return key;
}

void sample_row(FILE *out, const struct bench_case *one, struct summary summary)
{
    char key[KEY_SIZE];

    fprintf(out, "%s%.6f,%.6f,%zu\n", key_of(one, key), summary.median * 1e6, summary.spread * 1e6, summary.count);
}

/* ---- going on with a file ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The key that a row begins with, to be freed; NULL: this is none. */
static char *row_key(const char *line)
{
    const char *end = line;
    char *key;

    for (int i = 0; i < KEY_CELLS; i++, end++)
        if (!(end = strchr(end, ',')))
            return NULL;
    key = xcalloc((size_t)(end - line) + 1, 1);
    return memcpy(key, line, (size_t)(end - line));
}

/* One line of the file: what it says of the GPU, or the names of the columns, or a row. */
static int line_read(struct sample_rows *rows, struct loc loc, const char *line, const char *gpu, struct error *err)
{
    static const char name[] = "# gpu: ";
    char *key;

    if (!strncmp(line, name, strlen(name)) && strcmp(line + strlen(name), gpu))
        return error_add(err, EXIT_INPUT, loc, "samples of '%s'; expected this GPU, '%s': take another file",
                         line + strlen(name), gpu);
    if (line[0] == '#' || !strcmp(line, SAMPLE_COLUMNS))
        return 0;
    if (!(key = row_key(line)))
        return error_add(err, EXIT_INPUT, loc, "this is no sample; expected a file that dtsim-bench wrote");
    *GROW(rows) = key;
    return 0;
}

int sample_rows_read(struct sample_rows *rows, const char *path, const char *gpu, struct error *err)
{
    struct loc loc = {path, 0, 0};
    char *text, *line, *end;
    size_t length;
    int rc = 0;

    if (access(path, F_OK) && errno == ENOENT)
        return 0;
    if (!(text = file_read(path, "samples", 64 << 20, loc, &length, err)))
        return -1;
    for (line = text, loc.line = loc.column = 1; (end = strchr(line, '\n')) && !rc; line = end + 1, loc.line++) {
        *end = 0;
        rc = line_read(rows, loc, line, gpu, err);
    }
    if (!rc && *line && truncate(path, line - text))
        rc = error_add(err, EXIT_INPUT, (struct loc){path, 0, 0}, "its last line, which does not end, cannot be cut "
                       "off: %s", strerror(errno));
    free(text);
    if (rows->count)
        qsort(rows->items, rows->count, sizeof *rows->items, compare);
    return rc;
}

bool sample_rows_hold(const struct sample_rows *rows, const struct bench_case *one)
{
    char text[KEY_SIZE];
    const char *key = key_of(one, text);

    return rows->count && bsearch(&key, rows->items, rows->count, sizeof *rows->items, compare);
}

void sample_rows_release(struct sample_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i]);
    free(rows->items);
    memset(rows, 0, sizeof *rows);
}
