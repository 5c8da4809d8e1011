/* tsv: a file of tab-separated columns, read row by row. Its first line names the columns; they are found by name, so
 * a file may hold more of them, in any order. Every mistake is reported at its line and column. */
#ifndef DTSIM_TSV_H
#define DTSIM_TSV_H

#include "base/base.h"

enum { TSV_COLUMNS = 64 };       /* at most, in a file */

/* Zero-initialise; tsv_release when done. */
struct tsv {
    const char *const *optional; /* columns that the file may lack, ends in NULL; set before tsv_open; NULL: none */
    bool all;                    /* also read the file's other columns, after the named ones; set before tsv_open */
    struct loc loc;              /* of the row at hand; of the file when there is none */
    char *text, *next, *end;     /* the whole file, the row to come, the terminating zero */
    int in_file;                 /* columns in the file */
    int wanted;                  /* columns asked for */
    const char *names[TSV_COLUMNS];      /* theirs */
    int place[TSV_COLUMNS];      /* which column of the file the i-th wanted one is */
    char *cells[TSV_COLUMNS];    /* of the row at hand, by the file's columns */
};

/* Reads the file and its header. `columns` names those wanted and ends in NULL. The path must outlive the reader. Where
 * text and end are set already, they are the whole file, which is the reader's from now on. */
int tsv_open(struct tsv *tsv, const char *path, const char *const *columns, struct error *err);
/* The next row; false at the end, or when `err` can hold no more. A row with too few or too many cells is reported and
 * passed over. */
bool tsv_next(struct tsv *tsv, struct error *err);
/* How many rows are to come. */
size_t tsv_rows(const struct tsv *tsv);
void tsv_release(struct tsv *tsv);

/* Cells of the current row, by the wanted columns. Text lives until tsv_release. Numbers are finite. For a column that
 * the file lacks the text is "", and a number keeps its value. */
const char *tsv_text(const struct tsv *tsv, int column);
int tsv_number(const struct tsv *tsv, int column, double *value, struct error *err);
int tsv_integer(const struct tsv *tsv, int column, int low, int high, int *value, struct error *err);
/* The place of a cell, for messages about it. */
struct loc tsv_loc(const struct tsv *tsv, int column);

#endif
