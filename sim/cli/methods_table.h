/* methods_table: what ways of training cost beside each other: what is computed again, what is sent, what fits. */
#ifndef DTSIM_METHODS_TABLE_H
#define DTSIM_METHODS_TABLE_H

#include "cli/cmd.h"

enum compare_format { COMPARE_JSON, COMPARE_CSV, COMPARE_MARKDOWN, COMPARE_TEXT };

/* Simulates the scenarios of the command line, of which the first is the baseline, and prints the table; nothing where
 * one of them cannot be simulated. */
int methods_print(const struct arguments *arguments, enum compare_format format, struct error *err);

#endif
