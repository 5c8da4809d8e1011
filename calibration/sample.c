#include "sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* The first word that begins with a digit and has a point; the architecture, x86_64, may be before or after it. */
void sample_driver(const char *line, char *version, size_t size)
{
    *version = '\0';
    for (const char *word = line; *word && !*version; word += strcspn(word, " "), word += strspn(word, " ")) {
        size_t length = strspn(word, "0123456789.");

        if (memchr(word, '.', length))
            snprintf(version, size, "%.*s", (int)length, word);
    }
}

/* The published generation of fused attention that the library's kernels correspond to: on Hopper cuDNN 9 is as fast as
 * FlashAttention-3 (Shah et al. 2024, figure 5) and uses its instructions; on older chips it uses those of
 * FlashAttention-2. */
static const char *generation(int major)
{
    return major >= 9 ? "flash-3" : "flash-2";
}

void sample_header(FILE *out, const struct sample_machine *machine)
{
    sample_comment(out, "gpu", "%s", machine->gpu);
    sample_comment(out, "driver", "%s", machine->driver);
    sample_comment(out, "cuda", "%s", machine->cuda);
    sample_comment(out, "date", "%s", machine->date);
    sample_comment(out, "sms", "%d", machine->sms);
    sample_comment(out, "clock_mhz", "%.0f", machine->clock / 1e6);
    sample_comment(out, "memory_clock_mhz", "%.0f", machine->memory_clock / 1e6);
    sample_comment(out, "source", "%s", machine->source);
    sample_comment(out, "clock_under_load_mhz", "%.0f", machine->clock_under_load / 1e6);
    sample_comment(out, "attention", "%s", generation(machine->major));
    sample_comment(out, "data", "%s", "normally distributed; operands are not in the cache");
    fprintf(out, "%s\n", SAMPLE_COLUMNS);
    fflush(out);
}

/* The key of a sample: the cells before its time. */
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

/* ---- resuming a file ---- */

static const char marked[] = "# measuring: ", failed[] = "# failed: ";

long sample_mark(FILE *out, const struct bench_case *one)
{
    struct stat status;
    char key[KEY_SIZE];
    long mark;

    if (fflush(out) || fstat(fileno(out), &status) || !S_ISREG(status.st_mode) || (mark = ftell(out)) < 0)
        return -1;
    fprintf(out, "%s%s\n", marked, key_of(one, key));
    fflush(out);
    return mark;
}

int sample_unmark(FILE *out, long mark)
{
    return fflush(out) || ftruncate(fileno(out), mark) || fseek(out, mark, SEEK_SET) ? -1 : 0;
}

void sample_failure(FILE *out, const struct bench_case *one, const char *why)
{
    char key[KEY_SIZE];

    fprintf(out, "%s%s %s\n", failed, key_of(one, key), why);
    fflush(out);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The key of a row, to be freed; NULL: the line is no row. */
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

/* The text of a comment line after `begin`, or NULL. */
static const char *behind(const char *line, const char *begin)
{
    return strncmp(line, begin, strlen(begin)) ? NULL : line + strlen(begin);
}

/* Reads one line of the file: a comment about the GPU, the names of the columns, or a case. */
static int line_read(struct sample_rows *rows, struct loc loc, const char *line, const char *gpu, struct error *err)
{
    const char *other = behind(line, "# gpu: "), *given_up = behind(line, marked);
    char *key;

    if (other && strcmp(other, gpu))
        return error_add(err, EXIT_INPUT, loc, "samples of '%s'; expected this GPU, '%s': take another file", other,
                         gpu);
    given_up = given_up ? given_up : behind(line, failed);
    if (!given_up && (line[0] == '#' || !strcmp(line, SAMPLE_COLUMNS)))
        return 0;
    if (!(key = row_key(given_up ? given_up : line)))
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
