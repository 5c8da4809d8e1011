/* cells: tables as lines of cells with tabulators between them. Lines are put together in memory and written many at
 * once: printf would take several times as long. */
#ifndef DTSIM_CELLS_H
#define DTSIM_CELLS_H

#include <stdbool.h>

#include "base/decimal.h"

enum { CELLS_SIZE = 1 << 16, CELLS_KNOWN = 1 << 12 };

/* Set `out` and leave the rest 0. After the last line: cells_flush. */
struct cells {
    FILE *out;
    size_t length;                   /* bytes of `text` that have not been written to `out` */
    bool inside;                     /* the line has a cell */
    char *text;                      /* CELLS_SIZE of them; not on the stack, whose growth has no message where memory is short */
    struct known_number { double value; size_t length; char text[DECIMAL_SIZE]; } *known;     /* CELLS_KNOWN, by hash */
};

/* A further cell of the line. The text has less than 1,000 bytes. */
void cells_text(struct cells *cells, const char *text);
void cells_integer(struct cells *cells, long long value);
/* More text of the cell at hand, less than 1,000 bytes at a time. */
void cells_more(struct cells *cells, const char *text, size_t length);
/* As decimal_text writes it. A number that was written not long ago costs little. */
void cells_number(struct cells *cells, double value);
void cells_end_line(struct cells *cells);
/* Writes what has not been written yet, and releases the cells' memory. Errors stay in `out`. */
void cells_flush(struct cells *cells);

#endif
