#include "base/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { CELL_MOST = 1000 };           /* bytes of a cell, with the tabulator before it */

static void write_out(struct cells *cells)
{
    fwrite(cells->text, 1, cells->length, cells->out);
    cells->length = 0;
}

/* The place of a further cell, after the tabulator where a cell stands before it. */
static char *next_cell(struct cells *cells)
{
    if (!cells->text) {
        cells->text = xmalloc(CELLS_SIZE);
        cells->known = xcalloc(CELLS_KNOWN, sizeof *cells->known);
    }
    if (cells->length > CELLS_SIZE - CELL_MOST)
        write_out(cells);
    if (cells->inside)
        cells->text[cells->length++] = '\t';
    cells->inside = true;
    return cells->text + cells->length;
}

void cells_text(struct cells *cells, const char *text)
{
    size_t length = strlen(text);

    BUG_IF(length >= CELL_MOST);
    memcpy(next_cell(cells), text, length);
    cells->length += length;
}

void cells_more(struct cells *cells, const char *text, size_t length)
{
    BUG_IF(!cells->inside || length >= CELL_MOST);
    if (cells->length > CELLS_SIZE - CELL_MOST)
        write_out(cells);
    memcpy(cells->text + cells->length, text, length);
    cells->length += length;
}

void cells_integer(struct cells *cells, long long value)
{
    char *at = next_cell(cells);

    cells->length += (size_t)(decimal_integer(value, at) - at);
}

/* The digits of the value, made anew if another one stands in its place. */
static const struct known_number *known_number(struct cells *cells, double value)
{
    struct known_number *known;
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    known = &cells->known[bits * 0x9E3779B97F4A7C15u >> 32 & (CELLS_KNOWN - 1)];     /* 2^64 over the golden ratio */
    if (!known->length || memcmp(&known->value, &value, sizeof value)) {
        known->value = value;
        known->length = strlen(decimal_text(value, known->text));
    }
    return known;
}

void cells_number(struct cells *cells, double value)
{
    char *at = next_cell(cells);
    const struct known_number *known = known_number(cells, value);

    memcpy(at, known->text, known->length);
    cells->length += known->length;
}

void cells_end_line(struct cells *cells)
{
    if (cells->length == CELLS_SIZE)
        write_out(cells);
    cells->text[cells->length++] = '\n';
    cells->inside = false;
}

void cells_flush(struct cells *cells)
{
    if (cells->text)
        write_out(cells);
    free(cells->text);
    free(cells->known);
    cells->text = NULL;
    cells->known = NULL;
}
