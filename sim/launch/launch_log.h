/* launch_log: the arguments that Megatron-LM prints when it begins (megatron/training/arguments.py, _print_args). Each
 * stands in a line of its own; what others put before a line (ranks, times) is skipped. */
#ifndef DTSIM_LAUNCH_LOG_H
#define DTSIM_LAUNCH_LOG_H

#include "launch/launch.h"

/* Whether the text holds the line "---- arguments ----". */
bool launch_log_is(const char *text, size_t length);
int launch_log_read(struct arena *arena, const char *text, size_t length, struct launch *launch, struct error *err);

#endif
