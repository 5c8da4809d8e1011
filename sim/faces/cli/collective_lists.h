/* collective_lists: several ranks, sizes and algorithms on one command line, with the notation of nccl-tests. */
#ifndef DTSIM_COLLECTIVE_LISTS_H
#define DTSIM_COLLECTIVE_LISTS_H

#include "cli/cmd.h"

enum { LIST_MOST = 64 };
struct number_list { double items[LIST_MOST]; size_t count; };

/* "8,16:64": numbers from 1 to 65536; FROM:TO doubles. ARGS_DONE, or EXIT_USAGE after saying what was expected. */
int ranks_parse(const struct command *command, const char *text, struct number_list *list);
/* "1K:1G,'3 MB'": sizes of at least a byte; a number without a unit counts bytes, K, M and G alone are powers of 1024;
 * FROM:TO doubles. */
int bytes_parse(const struct command *command, const char *text, struct number_list *list);

#endif
