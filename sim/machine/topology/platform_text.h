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

#endif
