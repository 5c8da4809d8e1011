/* memory_grid: the peak memory of a sweep's points, for 'dtsim show SWEEP --memory'. */
#ifndef DTSIM_MEMORY_GRID_H
#define DTSIM_MEMORY_GRID_H

#include "sweep/sweep.h"

/* Prints a table: a column for each value of the axis that is written last, a row for each combination of the others'
 * values; where no axis varies, the only peak. Points that are no scenarios have no peak; a line below the
 * table says why the first of them is none. As JSON: a list of points. Errors: too many points, or one of the system. */
int memory_grid_print(const struct sweep *sweep, bool json, FILE *out, struct error *err);

#endif
