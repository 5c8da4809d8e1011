#include "files/tsv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "files/look.h"

/* Long cells are cut in messages. */
enum { SHOWN = 40 };
enum { FEW = 9 };                 /* digits that an int always holds */

static int read_whole(struct tsv *tsv, const char *path, struct error *err)
{
    FILE *in = look_open(path, err);
    size_t length = 0, capacity = 1 << 16;
    struct stat info;

    if (!in)
        return -1;
    if (fstat(fileno(in), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        capacity = (size_t)info.st_size + 2;
    tsv->text = xrealloc(NULL, capacity, 1);
    large_pages(tsv->text, capacity);
    for (;;) {
        length += fread(tsv->text + length, 1, capacity - 1 - length, in);
        if (length + 1 < capacity || (long long)length > FILE_LIMIT)
            break;
        capacity *= 2;
        tsv->text = xrealloc(tsv->text, capacity, 1);
    }
    if (ferror(in)) {
        error_system(err, tsv->loc, "cannot read");
        fclose(in);
        return -1;
    }
    fclose(in);
    if ((long long)length > FILE_LIMIT)
        return error_add(err, EXIT_INPUT, tsv->loc, "more than %lld bytes", FILE_LIMIT);
    tsv->text[length] = '\0';
    tsv->next = tsv->text;
    tsv->end = tsv->text + length;
    return 0;
}

/* What can be said of the file before any row is read. */
static int check_whole(const struct tsv *tsv, struct error *err)
{
    size_t length = (size_t)(tsv->end - tsv->text);
    struct loc loc = tsv->loc;
    const char *zero = memchr(tsv->text, '\0', length);

    if (length == 0)
        return error_add(err, EXIT_INPUT, loc, "the file is empty");
    if (!zero && tsv->end[-1] == '\n')
        return 0;
    loc.line = loc.column = 1;
    for (const char *at = tsv->text; at < (zero ? zero : tsv->end); at++)
        loc.line += *at == '\n';
    if (zero)
        return error_add(err, EXIT_INPUT, loc, "a zero byte: this is no text file");
    return error_add(err, EXIT_INPUT, loc, "the file is truncated: its last line does not end");
}

/* Splits the next line at its tabs; gives the number of cells, which may exceed what is kept. */
static int split(struct tsv *tsv)
{
    char *line = tsv->next, *end = memchr(line, '\n', (size_t)(tsv->end - line));
    int cells = 0;

    BUG_IF(!end);
    *end = '\0';
    tsv->next = end + 1;
    tsv->loc.line++;
    tsv->loc.column = 1;
    for (;;) {
        char *tab = strchr(line, '\t');

        if (cells < TSV_COLUMNS)
            tsv->cells[cells] = line;
        cells++;
        if (!tab)
            return cells;
        *tab = '\0';
        line = tab + 1;
    }
}

static bool is_optional(const struct tsv *tsv, const char *column)
{
    for (size_t i = 0; tsv->optional && tsv->optional[i]; i++)
        if (strcmp(tsv->optional[i], column) == 0)
            return true;
    return false;
}

static bool is_there(const struct tsv *tsv, int column)
{
    return tsv->place[column] < tsv->in_file;
}

/* The other columns of the file, in its order. */
static int want_others(struct tsv *tsv, struct error *err)
{
    for (int place = 0; place < tsv->in_file; place++) {
        const char *name = tsv->cells[place];
        int known = 0;

        while (known < tsv->wanted && strcmp(tsv->names[known], name) != 0)
            known++;
        if (known < tsv->wanted && tsv->place[known] != place)
            return error_add(err, EXIT_INPUT, tsv->loc, "column '%.*s' stands twice in the header", SHOWN, name);
        if (known == tsv->wanted) {
            tsv->names[tsv->wanted] = name;
            tsv->place[tsv->wanted++] = place;
        }
    }
    return 0;
}

static int read_header(struct tsv *tsv, const char *const *columns, struct error *err)
{
    int failed = 0;

    tsv->in_file = split(tsv);
    if (tsv->in_file > TSV_COLUMNS)
        return error_add(err, EXIT_INPUT, tsv->loc, "%d columns; at most %d", tsv->in_file, TSV_COLUMNS);
    for (tsv->wanted = 0; columns[tsv->wanted]; tsv->wanted++) {
        const char *name = columns[tsv->wanted];
        int place = 0;

        while (place < tsv->in_file && strcmp(tsv->cells[place], name) != 0)
            place++;
        tsv->names[tsv->wanted] = name;
        tsv->place[tsv->wanted] = place;
        if (place == tsv->in_file && !is_optional(tsv, name))
            failed = error_add(err, EXIT_INPUT, tsv->loc, "no column '%s' in the header", name);
    }
    return failed || (tsv->all && want_others(tsv, err)) ? -1 : 0;
}

int tsv_open(struct tsv *tsv, const char *path, const char *const *columns, struct error *err)
{
    tsv->loc.file = path;
    tsv->next = tsv->text;
    if ((!tsv->text && read_whole(tsv, path, err)) || check_whole(tsv, err))
        return -1;
    return read_header(tsv, columns, err);
}

size_t tsv_rows(const struct tsv *tsv)
{
    const char *end = tsv->end;
    size_t rows = 0;

    for (const char *at = tsv->next; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        rows++;
    return rows;
}

bool tsv_next(struct tsv *tsv, struct error *err)
{
    while (tsv->next < tsv->end && err->count < ERROR_MAX) {
        int cells = split(tsv);

        if (cells == tsv->in_file)
            return true;
        error_add(err, EXIT_INPUT, tsv->loc, "%d cell%s where the header has %d", cells, cells == 1 ? "" : "s",
                  tsv->in_file);
    }
    tsv->loc = (struct loc){.file = tsv->loc.file};
    return false;
}

void tsv_release(struct tsv *tsv)
{
    free(tsv->text);
    memset(tsv, 0, sizeof *tsv);
}

const char *tsv_text(const struct tsv *tsv, int column)
{
    BUG_IF(column < 0 || column >= tsv->wanted);
    return is_there(tsv, column) ? tsv->cells[tsv->place[column]] : "";
}

struct loc tsv_loc(const struct tsv *tsv, int column)
{
    struct loc loc = tsv->loc;

    if (is_there(tsv, column))
        loc.column = (int)(tsv_text(tsv, column) - tsv->cells[0]) + 1;
    return loc;
}

/* A plain decimal number: what strtod takes beyond that (blanks, hexadecimal, names) is none. */
static bool is_decimal(const char *text)
{
    return *text && strspn(text, "0123456789+-.eE") == strlen(text);
}

int tsv_number(const struct tsv *tsv, int column, double *value, struct error *err)
{
    const char *text = tsv_text(tsv, column);
    char *end = NULL;
    double number = is_decimal(text) ? strtod(text, &end) : 0;

    if (!is_there(tsv, column))
        return 0;
    if (!end || *end || !isfinite(number))
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, column), "'%.*s' is not a number", SHOWN, text);
    *value = number;
    return 0;
}

/* Most whole numbers have a few digits and need no strtol. */
static bool few_digits(const char *text, int *value)
{
    bool minus = *text == '-';
    int length = 0, number = 0;

    for (text += minus; length < FEW && *text >= '0' && *text <= '9'; length++)
        number = 10 * number + (*text++ - '0');
    *value = minus ? -number : number;
    return length && !*text;
}

int tsv_integer(const struct tsv *tsv, int column, int low, int high, int *value, struct error *err)
{
    const char *text = tsv_text(tsv, column);
    char *end = NULL;
    long long number = 0;
    int few;

    if (!is_there(tsv, column))
        return 0;
    if (few_digits(text, &few) && few >= low && few <= high) {
        *value = few;
        return 0;
    }
    errno = 0;
    if (is_decimal(text))
        number = strtoll(text, &end, 10);
    if (!end || *end)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, column), "'%.*s' is not a whole number", SHOWN, text);
    if (errno || number < low || number > high)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, column), "%.*s is not between %d and %d", SHOWN, text, low,
                         high);
    *value = (int)number;
    return 0;
}
