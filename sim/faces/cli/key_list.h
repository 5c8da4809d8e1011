/* key_list: keys of rows on the command line, each with whether more of it is better: "mfu,peak_memory_bytes:max". */
#ifndef DTSIM_KEY_LIST_H
#define DTSIM_KEY_LIST_H

#include "results/results_table.h"

enum { KEYS_MOST = 64 };
struct key_list { int keys[KEYS_MOST]; bool largest[KEYS_MOST]; size_t count; };

/* Reads the text behind an option. An unknown key is EXIT_USAGE. */
int key_list_read(const struct results *results, const char *text, const char *option, struct key_list *list,
                  struct error *err);
/* The keys that the sweep's own file names under report: objectives. */
void key_list_objectives(const struct results *results, struct key_list *list);
/* What orders rows if nobody says by which key: throughput, of tokens where there are any; empty where no row ended
 * well. */
void key_list_throughput(const struct results *results, struct key_list *list);

#endif
