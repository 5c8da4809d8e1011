#include "results/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

void sheet_add(struct sheet *sheet, const char *text)
{
    *GROW(&sheet->cells) = arena_strdup(&sheet->arena, text);
}

void sheet_add_rest(struct sheet *sheet, const char *text)
{
    sheet_add(sheet, text);
    while (sheet->cells.count % sheet->columns)
        *GROW(&sheet->cells) = NULL;
}

/* Characters of UTF-8, not bytes: what a terminal shows. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += (*text & 0xC0) != 0x80;
    return width;
}

static bool spans(const struct sheet *sheet, size_t cell)
{
    return (cell + 1) % sheet->columns && cell + 1 < sheet->cells.count && !sheet->cells.items[cell + 1];
}

static void pad(size_t width, FILE *out)
{
    while (width--)
        fputc(' ', out);
}

static void print_columns(const struct sheet *sheet, char *const *cells, FILE *out)
{
    size_t *widths = xcalloc(sheet->columns, sizeof *widths);

    for (size_t i = 0; i < sheet->cells.count; i++) {
        size_t width = cells[i] && !spans(sheet, i) ? width_of(cells[i]) : 0, *widest = &widths[i % sheet->columns];

        *widest = width > *widest ? width : *widest;
    }
    for (size_t i = 0; i < sheet->cells.count; i++) {
        size_t column = i % sheet->columns, width;
        bool last = column + 1 == sheet->columns, left = column < sheet->left || spans(sheet, i);

        if (cells[i]) {
            width = width_of(cells[i]);
            fputs(column ? "  " : "", out);
            pad(left ? 0 : widths[column] - width, out);
            fputs(cells[i], out);
            pad(left && !last && !spans(sheet, i) ? widths[column] - width : 0, out);
        }
        fputs(last ? "\n" : "", out);
    }
    free(widths);
}

static void print_rows(const struct sheet *sheet, char *const *cells, FILE *out)
{
    for (size_t i = 0; i < sheet->cells.count; i++) {
        size_t column = i % sheet->columns;

        fprintf(out, "%s%s |%s", column ? " " : "| ", cells[i] ? cells[i] : "",
                column + 1 < sheet->columns ? "" : "\n");
        if (i + 1 != sheet->columns)
            continue;
        for (size_t c = 0; c < sheet->columns; c++)
            fprintf(out, "%s%s|", c ? "" : "|", c < sheet->left ? "---" : "---:");
        fputc('\n', out);
    }
}

void sheet_print(const struct sheet *sheet, bool markdown, FILE *out)
{
    char **cells = xcalloc(sheet->cells.count, sizeof *cells);

    for (size_t i = 0; i < sheet->cells.count; i++)
        if (sheet->cells.items[i])       /* titles are the program's own */
            cells[i] = text_made(markdown && i >= sheet->columns ? TEXT_MARKDOWN : TEXT_LINE, sheet->cells.items[i]);
    (markdown ? print_rows : print_columns)(sheet, cells, out);
    for (size_t i = 0; i < sheet->cells.count; i++)
        free(cells[i]);
    free(cells);
}

void sheet_release(struct sheet *sheet)
{
    free(sheet->cells.items);
    arena_release(&sheet->arena);
    *sheet = (struct sheet){0};
}

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);

    return length >= tail && !strcmp(name + length - tail, end);
}

static int compare_sizes(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

struct number_style number_style_of(const char *name, double *numbers, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && numbers[i] != 0)
            numbers[kept++] = numbers[i];
    if (kept)
        qsort(numbers, kept, sizeof *numbers, compare_sizes);
    return (struct number_style){name, kept ? numbers[(kept - 1) / 2] : 0};      /* the middle one */
}

char *number_text(const struct number_style *style, double number, char *text, size_t size)
{
    const char *name = style->name;

    if (isnan(number))
        snprintf(text, size, "-");
    else if (!strcmp(name, "speedup"))
        snprintf(text, size, "%.3f", number);
    else if (!strncmp(name, "breakdown_s.", 12) || (ends_in(name, "_s") && !ends_in(name, "_per_s")) ||
             ends_in(name, "_s_p10") || ends_in(name, "_s_p90"))
        unit_format_like(UNIT_TIME, style->like, number, text, size);
    else if (strstr(name, "bytes"))
        unit_format_like(UNIT_BYTES, style->like, number, text, size);
    else if (!strcmp(name, "mfu") || !strcmp(name, "hfu") || ends_in(name, "fraction") ||
             ends_in(name, "utilization") || ends_in(name, "overhead") || ends_in(name, "share"))
        snprintf(text, size, "%.2f %%", 100 * number);
    else
        unit_format_short(UNIT_NUMBER, number, text, size);
    return text;
}
