/* alike_view: which members of a simulation stand for others, for `dtsim show --alike`. */
#ifndef DTSIM_ALIKE_VIEW_H
#define DTSIM_ALIKE_VIEW_H

#include "workload/workload.h"

/* A line for each way in which one is simulated for many; under it each reason why all are simulated. */
void alike_show(const struct alike *alike, const struct scenario *scenario, bool json);
#endif
