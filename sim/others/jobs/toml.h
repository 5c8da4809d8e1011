/* toml: reads a document of TOML 1.0 (toml.io/en/v1.0.0) into a tree of nodes, each with its place. Dates are text.
 * Arrays of tables ([[name]]) are refused: no job file that dtsim reads has any. */
#ifndef DTSIM_TOML_H
#define DTSIM_TOML_H

#include "config/conf.h"

enum {
    TOML_MAX_BYTES = 128 << 10,      /* of a file */
    TOML_MAX_DEPTH = 32,             /* of arrays and tables in each other, and parts of a key */
};

/* The tree lives in the arena; *root is NULL only if the result is -1. `name` stands for the file in messages. */
int toml_parse(struct arena *arena, const char *name, const char *text, size_t length, struct node **root,
               struct error *err);

#endif
