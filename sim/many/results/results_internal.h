/* Conditions over the keys of a row, and points as text, for the files of this folder. */
#ifndef DTSIM_RESULTS_INTERNAL_H
#define DTSIM_RESULTS_INTERNAL_H

#include "results/results.h"

int results_condition(struct results *results, const char *expression, struct expression **parsed, struct error *err);
/* Whether it is true for the row; unknown: a value that it asks for is missing. */
int results_holds(struct results *results, struct expression *condition, size_t row, bool *holds, bool *unknown,
                  struct error *err);

/* The row's point as text, by which rows are ordered; the caller frees it. */
char *results_point(const json_t *row);

#endif
