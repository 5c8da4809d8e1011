/* What the files of a plan share: its rows among those of the store. */
#ifndef DTSIM_PLAN_INTERNAL_H
#define DTSIM_PLAN_INTERNAL_H

#include "plan/plan.h"

/* Sorts the outcome's points by the ids of their rows. */
void plan_sort_located(struct plan_outcome *outcome);
/* The point that has the row, of those that plan_sort_located sorted; NULL: it is another plan's. */
const struct located *plan_located_of(const struct plan_outcome *outcome, const json_t *row);
/* Drops the rows of other points; `context`: the outcome. */
void plan_keep_located(struct results *results, const void *context);

#endif
