#include "base/sheet.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { GAP = 2, NAMES_LEAST = 24 };      /* characters between columns; of a name's lines, if they are broken */

void sheet_head(struct sheet *sheet, const char *name, const char *unit)
{
    *GROW(&sheet->heads) = (struct sheet_head){arena_strdup(&sheet->arena, name),
                                               arena_strdup(&sheet->arena, unit ? unit : "")};
    sheet->columns = sheet->heads.count;
}

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

/* Characters of UTF-8 in the first bytes: what a terminal shows. */
static size_t width_of(const char *text, size_t length)
{
    size_t width = 0;

    for (size_t i = 0; i < length; i++)
        width += (text[i] & 0xC0) != 0x80;
    return width;
}

/* How the table is printed: its cells made harmless, the heads first, and what of it is shown how wide. */
struct layout {
    const struct sheet *sheet;
    size_t rows;                 /* the head's included */
    char **cells;
    bool *shown;                 /* by column */
    size_t *widths;              /* by column */
};

static char *cell_at(const struct layout *layout, size_t row, size_t column)
{
    return layout->cells[row * layout->sheet->columns + column];
}

/* Whether a text goes from this cell to the end of the row. */
static bool spans(const struct layout *layout, size_t row, size_t column)
{
    return column + 1 < layout->sheet->columns && !cell_at(layout, row, column + 1);
}

/* Bytes of the next line of a text, at most that many characters wide; broken at a space where there is one. */
static size_t piece_of(const char *text, size_t width)
{
    size_t length = 0, best = 0, whole = strlen(text);

    if (width_of(text, whole) <= width)
        return whole;
    for (size_t i = 1; i <= whole && (width_of(text, i) <= width || !best); i++)
        if (text[i] == ' ' || !text[i])
            best = i;
    length = best ? best : whole;
    return length;
}

/* The widest line of a column's cells, if lines have at most that many characters. */
static size_t broken_width(const char *text, size_t width)
{
    size_t most = 0;

    while (*text) {
        size_t length = piece_of(text, width), own = width_of(text, length);

        most = own > most ? own : most;
        text += length + strspn(text + length, " ");
    }
    return most;
}

/* The column's width: as its cells need, the head broken into lines of `head` characters, names into `names`. */
static size_t column_width(const struct layout *layout, size_t column, size_t head, size_t names)
{
    size_t most = 0;

    for (size_t row = 0; row < layout->rows; row++) {
        const char *cell = cell_at(layout, row, column);
        size_t limit = !row ? head : column < layout->sheet->left ? names : SIZE_MAX, own;

        if (!cell || spans(layout, row, column))
            continue;
        own = broken_width(cell, limit);
        most = own > most ? own : most;
    }
    return most;
}

static size_t set_widths(struct layout *layout, size_t head, size_t names)
{
    size_t total = 0;

    for (size_t c = 0; c < layout->sheet->columns; c++) {
        layout->widths[c] = column_width(layout, c, head, names);
        total += layout->shown[c] ? layout->widths[c] + (total ? GAP : 0) : 0;
    }
    return total;
}

/* The text that several rows share in the column; NULL: they differ, or there is only one row. */
static const char *same_of(const struct layout *layout, size_t column)
{
    const char *first = NULL;
    size_t count = 0;

    for (size_t row = 1; row < layout->rows; row++) {
        const char *cell = cell_at(layout, row, column);

        if (!cell || spans(layout, row, column))
            continue;
        if (first && strcmp(cell, first))
            return NULL;
        first = cell;
        count++;
    }
    return count > 1 ? first : NULL;
}

/* Prints values that all rows share ("all rows: TP 4, bubble 6.13 %"), whose columns the table leaves out. One column
 * at least remains. */
static void say_same(struct layout *layout, bool markdown, FILE *out)
{
    const struct sheet *sheet = layout->sheet;
    size_t shown = sheet->columns, size;
    char *said;
    FILE *words = text_open(&said, &size);

    for (size_t c = sheet->left; c < sheet->columns && !sheet->all && shown > 1; c++) {
        const struct sheet_head *head = &sheet->heads.items[c];
        const char *same = same_of(layout, c);

        if (!same)
            continue;
        layout->shown[c] = false;
        fprintf(words, "%s%s %s%s%s", shown-- < sheet->columns ? ", " : "all rows: ", head->name, same,
                *head->unit ? " " : "", head->unit);
    }
    text_close(words, &said);
    if (*said && markdown)
        fprintf(out, "%s\n\n", said);
    else if (*said)
        sheet_note(said, out);
    free(said);
}

/* Makes lines no longer than `width` as far as that is possible; `whole`: how long they would be with all columns. */
static void fit(struct layout *layout, size_t width, size_t *whole)
{
    const struct sheet *sheet = layout->sheet;
    size_t names = SIZE_MAX, total = *whole = set_widths(layout, SIZE_MAX, names);

    if (total > width)
        *whole = total = set_widths(layout, 1, names);
    if (total > width && sheet->left) {
        names = width / 3 > NAMES_LEAST ? width / 3 : NAMES_LEAST;
        total = set_widths(layout, 1, names);
    }
    for (size_t c = sheet->columns; c-- > (sheet->needed ? sheet->needed : sheet->columns) && total > width;)
        if (layout->shown[c]) {
            layout->shown[c] = false;
            total = set_widths(layout, 1, names);
        }
}

static void pad(size_t width, FILE *out)
{
    while (width--)
        fputc(' ', out);
}

/* One line of a row: the next piece of each cell. `at`: what is left of them. Returns whether anything is left. */
static bool print_line(const struct layout *layout, size_t row, const char **at, size_t width, FILE *out)
{
    const struct sheet *sheet = layout->sheet;
    size_t begun = 0, owed = 0;      /* characters before this column; of these, spaces that are not printed yet */
    bool left = false;

    for (size_t c = 0; c < sheet->columns; c++) {
        bool rest = spans(layout, row, c);
        size_t room = layout->widths[c], length, own;

        if (!layout->shown[c] && !rest)
            continue;
        owed += begun ? GAP : 0;
        begun += begun ? GAP : 0;
        if (!at[c])
            break;
        room = rest ? width > begun + NAMES_LEAST ? width - begun : NAMES_LEAST : room;
        length = piece_of(at[c], room);
        own = width_of(at[c], length);
        if (own) {
            pad(owed + (c < sheet->left || rest ? 0 : room - own), out);
            fwrite(at[c], 1, length, out);
            owed = c < sheet->left ? room - own : 0;
        } else {
            owed += room;
        }
        begun += room;
        at[c] += length + strspn(at[c] + length, " ");
        left |= *at[c] != '\0';
        if (rest)
            break;
    }
    fputc('\n', out);
    return left;
}

/* Heads stand on the line above the first row. */
static void print_columns(struct layout *layout, FILE *out)
{
    const struct sheet *sheet = layout->sheet;
    size_t width = (size_t)text_width(out, INT_MAX), whole, hidden = 0;
    const char **at = xcalloc(sheet->columns, sizeof *at);
    char *left_out;
    size_t size;
    FILE *words = text_open(&left_out, &size);
    bool *same = xcalloc(sheet->columns, sizeof *same);

    for (size_t c = 0; c < sheet->columns; c++)
        same[c] = !layout->shown[c];
    fit(layout, width, &whole);
    for (size_t row = 0; row < layout->rows; row++) {
        for (size_t c = 0; c < sheet->columns; c++)
            at[c] = cell_at(layout, row, c);
        while (print_line(layout, row, at, width, out))
            ;
    }
    for (size_t c = 0; c < sheet->columns; c++)
        if (!layout->shown[c] && !same[c])
            fprintf(words, "%s%s", hidden++ ? ", " : "", sheet->heads.items[c].name);
    fprintf(words, "; COLUMNS=%zu shows all", whole);
    text_close(words, &left_out);
    if (hidden) {
        char *note = xprintf("left out, as a line has %zu characters: %s", width, left_out);

        sheet_note(note, out);
        free(note);
    }
    free(left_out);
    free(same);
    free(at);
}

static void print_markdown(const struct layout *layout, FILE *out)
{
    const struct sheet *sheet = layout->sheet;

    for (size_t row = 0; row < layout->rows; row++) {
        fputc('|', out);
        for (size_t c = 0; c < sheet->columns; c++)
            if (layout->shown[c])
                fprintf(out, " %s |", cell_at(layout, row, c) ? cell_at(layout, row, c) : "");
        fputs(row ? "\n" : "\n|", out);
        for (size_t c = 0; c < sheet->columns && !row; c++)
            fputs(!layout->shown[c] ? "" : c < sheet->left ? "---|" : "---:|", out);
        fputs(row ? "" : "\n", out);
    }
}

void sheet_print(const struct sheet *sheet, bool markdown, FILE *out)
{
    size_t cells = sheet->columns + sheet->cells.count;
    struct layout layout = {
        .sheet = sheet, .rows = cells / sheet->columns, .cells = xcalloc(cells, sizeof *layout.cells),
        .shown = xcalloc(sheet->columns, sizeof *layout.shown), .widths = xcalloc(sheet->columns, sizeof *layout.widths),
    };

    for (size_t c = 0; c < sheet->columns; c++) {
        const struct sheet_head *head = &sheet->heads.items[c];
        char *whole = xprintf(*head->unit ? "%s (%s)" : "%s", head->name, head->unit);

        layout.cells[c] = text_made(TEXT_LINE, whole);
        layout.shown[c] = true;
        free(whole);
    }
    for (size_t i = 0; i < sheet->cells.count; i++)
        if (sheet->cells.items[i])
            layout.cells[sheet->columns + i] = text_made(markdown ? TEXT_MARKDOWN : TEXT_LINE, sheet->cells.items[i]);
    say_same(&layout, markdown, out);
    if (markdown)
        print_markdown(&layout, out);
    else
        print_columns(&layout, out);
    for (size_t i = 0; i < cells; i++)
        free(layout.cells[i]);
    free(layout.cells);
    free(layout.shown);
    free(layout.widths);
}

void sheet_note(const char *words, FILE *out)
{
    char *made = text_made(TEXT_LINE, words);

    text_wrap(made, 0, 2, text_width(out, INT_MAX), out);
    free(made);
}

void sheet_release(struct sheet *sheet)
{
    free(sheet->heads.items);
    free(sheet->cells.items);
    arena_release(&sheet->arena);
    *sheet = (struct sheet){0};
}
