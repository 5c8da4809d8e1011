/* plan_methods: `dtsim plan --method`: what planners of papers choose, and how fast this simulator finds it. */
#ifndef DTSIM_PLAN_METHODS_H
#define DTSIM_PLAN_METHODS_H

#include "cli/cmd.h"
#include "scenario/scenario.h"

enum methods_format { METHODS_TEXT, METHODS_MARKDOWN, METHODS_JSON };
/* `method`: a planner's name, or "all". The scenario was loaded, or *err says why not; both are released. The exit code;
 * EXIT_INFEASIBLE where no choice runs and fits. */
int plan_methods(struct scenario *scenario, const char *method, enum methods_format format, struct error *err);
const char *plan_method_name(size_t i);              /* "all", then each planner; NULL past the last */

#endif
