#include "evidence/first.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "evidence/evidence_internal.h"
#include "files/data.h"
#include "files/tsv.h"

static const char *const columns[] = {"table", "row", "first_error_permille", "first_software", "first_family", NULL};
enum { TABLE, ROW, ERROR, SOFTWARE, FAMILY, MOST = 1 << 30 };

void first_error_print(FILE *out, const char *table, const char *row, double error, const char *software,
                       const char *family)
{
    if (row)
        fprintf(out, "%s\t%s\t%d\t%s\t%s\n", table, row, (int)round(1000 * error), software, family);
    else
        fprintf(out, "%s\t\t\t\t\n", table);
}

/* Whether the row at hand may follow those before it. */
static int check_row(const struct tsv *tsv, const struct first_errors *firsts, struct error *err)
{
    const char *table = tsv_text(tsv, TABLE), *row = tsv_text(tsv, ROW);
    const struct first_error *last = firsts->count ? &firsts->items[firsts->count - 1] : NULL;

    if (!*table)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, TABLE), "expected the name of a table, found nothing");
    if (!*row != !*tsv_text(tsv, ERROR) || !*row != !*tsv_text(tsv, SOFTWARE) || !*row != !*tsv_text(tsv, FAMILY))
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, ROW), "expected a row, its error, its software and its family, or "
                         "none of them where the table's first errors are unknown");
    if (!first_errors_have(firsts, table))
        return 0;
    if (!text_same(last->table, table))
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, TABLE), "a row of '%s' behind those of other tables; expected first "
                         "errors of a table together, from before anybody worked on it", table);
    if (!*row || !*last->row)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, ROW), "'%s' has another row; expected one row alone where the table's "
                         "first errors are unknown", table);
    if (first_error_find(firsts, table, row))
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, ROW), "row '%s' of '%s' is there twice", row, table);
    return 0;
}

static int read_row(const struct tsv *tsv, struct arena *arena, struct first_errors *firsts, struct error *err)
{
    struct first_error first = {0};

    if (check_row(tsv, firsts, err) ||
        (*tsv_text(tsv, ROW) && tsv_integer(tsv, ERROR, -1000, MOST, &first.permille, err)))
        return -1;
    first.table = arena_strdup(arena, tsv_text(tsv, TABLE));
    first.row = arena_strdup(arena, tsv_text(tsv, ROW));
    first.software = arena_strdup(arena, tsv_text(tsv, SOFTWARE));
    first.family = arena_strdup(arena, tsv_text(tsv, FAMILY));
    *GROW(firsts) = first;
    return 0;
}

int first_errors_read(struct arena *arena, const char *path, struct first_errors *firsts, struct error *err)
{
    struct tsv tsv = {0};
    int before = err->count, rc;

    *firsts = (struct first_errors){0};
    rc = tsv_open(&tsv, path, columns, err);
    while (!rc && tsv_next(&tsv, err))
        rc = read_row(&tsv, arena, firsts, err);
    tsv_release(&tsv);
    firsts->items = evidence_list(arena, firsts->items, firsts->count * sizeof *firsts->items);
    return rc || err->count > before ? -1 : 0;
}

int first_errors_load(struct arena *arena, struct first_errors *firsts, struct error *err)
{
    const char *path;

    if (data_path(arena, "scenarios/paper", "first.tsv", &path, err))
        return -1;
    if (!path)
        return error_add(err, EXIT_INPUT, (struct loc){.file = "scenarios/paper/first.tsv"},
                         "there is no such file; expected the first errors of published times");
    return first_errors_read(arena, path, firsts, err);
}

const struct first_error *first_error_find(const struct first_errors *firsts, const char *table, const char *row)
{
    for (size_t i = 0; i < firsts->count; i++)
        if (*firsts->items[i].row && text_same(firsts->items[i].table, table) && text_same(firsts->items[i].row, row))
            return &firsts->items[i];
    return NULL;
}

bool first_errors_have(const struct first_errors *firsts, const char *table)
{
    for (size_t i = 0; i < firsts->count; i++)
        if (text_same(firsts->items[i].table, table))
            return true;
    return false;
}
