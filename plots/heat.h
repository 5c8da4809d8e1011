/* heat: what the parts of the heat chart share: cells and script (heat.c), what stands in cells (heat_text.c). */
#ifndef DTSIM_HEAT_H
#define DTSIM_HEAT_H

#include "rows.h"

/* How numbers may stand in cells. The size is of the chart's font, the em in pixels. */
struct heat_style { int digits; double em, size; };

enum state { CELL_EMPTY, CELL_VALUE, CELL_INFEASIBLE, CELL_FAILED, CELL_STATES };
struct cell {
    enum state state;
    double value;
    const struct json_t *row;               /* the best, or of those that did not run the nearest to it */
};

struct heat {
    struct row_axis x, y;
    struct plot_key by;
    struct cell *cells;              /* by y, then x */
    int *cell_of;                    /* each row's; -1: none */
    const char **others;             /* axes of which cells have the best; NULL-terminated */
    const char **told, **shared;     /* of these, the axes in which the cells differ; the values of the others */
    struct quantity quantity;
    double least, most;              /* of all cells */
    bool logarithmic;
    int best, ties;                  /* the cell of the best row; further cells that are as good */
    bool used[CELL_STATES];
    const char *limit;               /* what the line says between cells that fit in memory and others; NULL: there is none */
    const struct heat_style *style;  /* of numbers; NULL: they have no room */
    int lines;                       /* of the values of the other axes below all numbers, as far as they have room */
    int left;                        /* pixels of the margin */
    int wide, high;                  /* and of a cell */
};

/* B that are left; what does not say how many lacks more than anything that does. */
double heat_margin(const struct json_t *row);

/* What stands in a cell: a number or a reason, and below it lines of details. `up` and `down`: how far the number and
 * the lines are from the cell's middle, as shares of its height. */
enum { HEAT_LINES = 3 };
struct heat_text {
    const char *number, *lines[HEAT_LINES], *whole;      /* whole: all details in one line */
    int count;
    double up, down;
};
struct heat_text heat_text(struct arena *arena, const struct heat *heat, const struct cell *cell);
/* The pixels in which all details have room below numbers; the cells' width is set. */
int heat_height(struct arena *arena, const struct heat *heat);
/* Sets the style of numbers, and the lines below them; the cells' width and height are set. */
void heat_choose_style(struct arena *arena, struct heat *heat);

#endif
