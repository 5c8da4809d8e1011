/* known: what the page knows when it opens: all keys of a scenario with their values, and the files that they may name. */
#ifndef DTSIM_KNOWN_H
#define DTSIM_KNOWN_H

#include "files/json.h"

/* {"version", "tour": [{"name", "title", "path"}], "schema": {as of 'dtsim schema'},
 *  "files": {"platforms": [{"name", "title"}, ...], ...}}, a list for each `x-files` of the schema; NULL: an error. */
json_t *known_json(struct error *err);

#endif
