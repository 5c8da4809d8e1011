/* platform_text: what a platform of SimGrid's says that no engine here has: links whose bandwidth, latency or state
 * changes while messages travel (SimGrid's manual, "Platform reference": bandwidth_file, latency_file, state_file; its
 * 'trace_connect'), and links of Wi-Fi, which stations share by their own rates. SimGrid reads such files without a
 * word, and its tables of links have their first values alone. */
#ifndef DTSIM_PLATFORM_TEXT_H
#define DTSIM_PLATFORM_TEXT_H

#include "base/base.h"

/* Refuses these at their places in the text. A text that is no XML passes: SimGrid says why. `file` lives as long as the
 * error. 0 or -1. */
int platform_text_check(const char *file, const char *text, size_t length, struct error *err);
/* Where the first attribute stands that has a value; with a line, on that line, and the value is what it ends with. Returns its
 * name in the arena, and puts its line and column into *loc; NULL: there is none. */
const char *platform_text_find(struct arena *arena, const char *text, size_t length, const char *value, int line, struct loc *loc);

#endif
