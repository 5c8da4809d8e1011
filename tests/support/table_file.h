/* table_file: a table of a run, read whole, for tests. */
#ifndef DTSIM_TABLE_FILE_H
#define DTSIM_TABLE_FILE_H

#include "simulated.h"

/* A table as text and numbers, row by row; the columns by name. */
struct table_file {
    char *text;
    struct cells { char **items; size_t count, capacity; } cells;
    size_t columns, rows;
};

static struct table_file table_read(const char *dir, const char *name)
{
    struct table_file file = {0};
    char path[200];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    file.text = read_file(path);
    for (char *line = file.text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        for (char *cell; (cell = strsep(&line, "\t"));)
            *GROW(&file.cells) = cell;
        file.columns = file.columns ? file.columns : file.cells.count;
    }
    assert_int_equal(file.cells.count % file.columns, 0);
    file.rows = file.cells.count / file.columns - 1;
    return file;
}

static void table_release(struct table_file *file)
{
    free(file->text);
    free(file->cells.items);
}

static size_t column(const struct table_file *file, const char *name)
{
    size_t c = 0;

    while (c < file->columns && strcmp(file->cells.items[c], name))
        c++;
    if (c == file->columns)
        fail_msg("no column '%s'", name);
    return c;
}

static const char *cell(const struct table_file *file, size_t row, size_t at)
{
    return file->cells.items[(row + 1) * file->columns + at];
}

static double cell_number(const struct table_file *file, size_t row, size_t at)
{
    char *end;
    double value = strtod(cell(file, row, at), &end);

    assert_true(end != cell(file, row, at) && !*end);
    return value;
}

#endif
