/* sheet: a table of text for people, printed as aligned columns or as Markdown. */
#ifndef DTSIM_SHEET_H
#define DTSIM_SHEET_H

#include "base/base.h"

struct sheet {
    struct arena arena;
    size_t columns;
    size_t left;                 /* of these the first are aligned to the left, the others to the right */
    struct sheet_cells { char **items; size_t count, capacity; } cells;     /* row by row, titles first; NULL: the cell
                                                                               before it goes on */
};

/* Adds the next cell, a copy of the text. Cells hold text of others as it is: printing makes it harmless. */
void sheet_add(struct sheet *sheet, const char *text);
/* The rest of the row is this text alone; it makes no column wider. */
void sheet_add_rest(struct sheet *sheet, const char *text);
void sheet_print(const struct sheet *sheet, bool markdown, FILE *out);
void sheet_release(struct sheet *sheet);

/* How people read the numbers of a metric, whose name ends in its unit: all with one unit, so that a column can be read
 * from top to bottom. */
struct number_style {
    const char *name;
    double like;                 /* the number whose unit all get */
};
/* `numbers` (count of them; NaN: none) are put in another order. */
struct number_style number_style_of(const char *name, double *numbers, size_t count);
/* "-" for NaN. */
char *number_text(const struct number_style *style, double number, char *text, size_t size);

#endif
