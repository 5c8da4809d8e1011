/* said: what commands say to programs with --json, for `dtsim help result`. */
#ifndef DTSIM_SAID_H
#define DTSIM_SAID_H

#include "view/view.h"

/* Of cmd_*.c, and of the files that print for them. */
extern const struct view alike_view, calibrate_check_view, calibration_view, check_view, choice_view, collective_view, kernels_view,
    listed_view, memory_grid_view, memory_view, methods_view, sweep_plan_view, table_view, values_view;
/* Prints every key of every command. */
void said_help(FILE *out);

#endif
