/* methods_table: compares the costs of ways of training: recomputation, communication, and whether they fit. */
#ifndef DTSIM_METHODS_TABLE_H
#define DTSIM_METHODS_TABLE_H

#include "cli/cmd.h"

enum compare_format { COMPARE_JSON, COMPARE_CSV, COMPARE_MARKDOWN, COMPARE_TEXT };

/* Simulates the scenarios of the command line and prints the table, against the first that has numbers; one that is
 * refused is a row that says why. Gives the number of files without mistakes; where it is 0 nothing was printed. */
size_t methods_print(const struct arguments *arguments, enum compare_format format, struct error *err);

#endif
