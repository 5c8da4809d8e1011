/* result_keys: what `dtsim help result` says of a run: the keys of result.json (result.h), and the columns of its tables. */
#ifndef DTSIM_RESULT_KEYS_H
#define DTSIM_RESULT_KEYS_H

#include "view/view.h"

extern const struct view columns_view;       /* "spans.tsv: rank"; no values */
void result_help(FILE *out);

#endif
