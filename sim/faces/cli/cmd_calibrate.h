/* cmd_calibrate: what the actions of `dtsim calibrate` share. */
#ifndef DTSIM_CMD_CALIBRATE_H
#define DTSIM_CMD_CALIBRATE_H

#include "cli/cmd.h"

enum { OPT_OUT, OPT_KEEP, OPT_JSON }; /* arguments.values */

/* cmd_calibrate_check.c: `check PROFILE SAMPLES...`. */
int calibrate_check_print(const struct arguments *arguments, struct error *err);

#endif
