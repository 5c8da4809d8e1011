/* cluster_line: the line of a run that says which cluster it is on. */
#ifndef DTSIM_CLUSTER_LINE_H
#define DTSIM_CLUSTER_LINE_H

#include "scenario/scenario.h"

void cluster_line_print(const struct scenario *scenario, FILE *out);

#endif
