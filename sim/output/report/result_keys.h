/* result_keys: the keys of result.json and the columns of the tables in its folder, each with its unit and meaning. */
#ifndef DTSIM_RESULT_KEYS_H
#define DTSIM_RESULT_KEYS_H

#include <stddef.h>
#include <stdio.h>

struct result_key {
    const char *key;         /* "breakdown_s.forward"; of a table's column "spans.tsv: rank" */
    const char *brief;       /* with its unit, where the key does not end in one */
};
struct result_key result_key_at(size_t index);       /* key NULL past the last */
/* What `dtsim help result` prints. */
void result_keys_print(FILE *out);

#endif
