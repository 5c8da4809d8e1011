/* collective_table: tables of collectives that somebody measured, each row simulated and compared. */
#ifndef DTSIM_COLLECTIVE_TABLE_H
#define DTSIM_COLLECTIVE_TABLE_H

#include "cli/cmd.h"

/* What `dtsim collective --table` prints: a line for each row and a summary, the rows for programs, or a line for each
 * table of a document. */
enum table_format { TABLE_TEXT, TABLE_JSON, TABLE_MARKDOWN };

/* Simulates the rows of `count` files and prints them. Errors: a file that cannot be read, and whatever stops a
 * simulation. */
int collective_tables(const char *const *paths, int count, enum engine engine, enum table_format format,
                      struct error *err);

#endif
