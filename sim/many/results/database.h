/* database: rows of sweeps as a table of SQLite, written by the module dtsim-sqlite.so (process/module.h). */
#ifndef DTSIM_DATABASE_H
#define DTSIM_DATABASE_H

#include "results/results.h"

/* A column, and the type that all its values have: "INTEGER", "REAL", "TEXT", or "" where they differ. */
struct database_column { const char *name, *type; };

/* The module's symbol. */
struct database_module {
    /* Makes a file with an empty table. NULL after an error. */
    void *(*open)(const char *path, const char *table, const struct database_column *columns, size_t count,
                  struct error *err);
    /* Adds a row: a value for each column, NULL for none. */
    int (*add)(void *database, const json_t *const *values, struct error *err);
    /* Brings it to the disk and closes it; `keep` false: it will not be used. */
    int (*close)(void *database, bool keep, struct error *err);
};

/* Writes the rows into table `rows` of the file, which replaces an older one only when it is whole. `columns`: keys, as
 * results_print takes them. EXIT_NO_TOOL where the module is missing. */
int database_write(const struct results *results, const int *columns, size_t count, size_t most, const char *path,
                   struct error *err);

#endif
