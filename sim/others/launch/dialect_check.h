/* dialect_check: a file of a dialect has the form that platforms/dialects/README.md says; anybody may write one. */
#ifndef DTSIM_DIALECT_CHECK_H
#define DTSIM_DIALECT_CHECK_H

#include "launch/dialect.h"

/* Whether lists and mappings stand where they are read as such. 0 or -1. */
int dialect_check_form(const struct node *root, struct error *err);
/* Whether rows name arguments that there are: find tells. 0 or -1. */
typedef const struct argument_row *row_finder(const struct dialect *dialect, const char *name, bool log);
int dialect_check_rows(struct arena *arena, const struct dialect *dialect, row_finder *find, const struct node *root, struct error *err);

#endif
