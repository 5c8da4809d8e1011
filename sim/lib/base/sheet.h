/* sheet: a table of text for people, printed as aligned columns or as Markdown. */
#ifndef DTSIM_SHEET_H
#define DTSIM_SHEET_H

#include "base/base.h"

/* Zero-initialise; set what is wanted, and add all heads before the first cell. */
struct sheet {
    struct arena arena;
    size_t left;                 /* the first columns are aligned to the left, the others to the right */
    size_t needed;               /* the first columns stay where a line is too short for all */
    bool all;                    /* so do columns in which all rows have the same */
    size_t columns;              /* how many heads were added */
    struct sheet_heads { struct sheet_head { const char *name, *unit; } *items; size_t count, capacity; } heads;
    struct sheet_cells { char **items; size_t count, capacity; } cells;     /* row by row; NULL: the cell before it goes
                                                                               on */
};

/* Adds a column; the unit holds for all its numbers, "" or NULL: none. */
void sheet_head(struct sheet *sheet, const char *name, const char *unit);
/* Adds the next cell, a copy of the text. Cells hold text of others as it is: printing makes it harmless. */
void sheet_add(struct sheet *sheet, const char *text);
/* The rest of the row is this text alone; it makes no column wider. */
void sheet_add_rest(struct sheet *sheet, const char *text);
/* Columns in which all of several rows have the same are said above the table, not in it. Text has lines that are not
 * longer than text_width() says for `out`: heads, names and texts are broken into several lines; then the last columns
 * are left out, and a line below names them. */
void sheet_print(const struct sheet *sheet, bool markdown, FILE *out);
/* A paragraph of a table's notes, made harmless, in lines of the same width. */
void sheet_note(const char *words, FILE *out);
void sheet_release(struct sheet *sheet);

#endif
