/* bash_internal: for bash*.c only. */
#ifndef DTSIM_BASH_INTERNAL_H
#define DTSIM_BASH_INTERNAL_H

#include "launch/bash.h"

/* The text that bash reads before a script, in pieces, up to NULL. */
extern const char *const bash_handler[];

#endif
