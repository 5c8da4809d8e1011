/* all_to_all: the cost of an all-to-all. A communication library sends all its messages at once. For
 * collective_choice.c. */
#ifndef DTSIM_ALL_TO_ALL_H
#define DTSIM_ALL_TO_ALL_H

#include "hardware/cluster.h"

/* The cost of an all-to-all with a protocol, an enum protocol; false: it does not use that protocol. Where the profile
 * does not tell LL from Simple, Simple stands for both. `nodes`: the group spans several. */
bool all_to_all_cost(const struct communication *communication, int protocol, bool nodes, struct protocol_cost *cost);

/* Messages whose time an all-to-all of n ranks in one node takes beyond the n - 1 to other ranks: the rank's own share,
 * and the copy of the last pieces out of the buffers. `bytes`: B that a rank holds for all. */
double all_to_all_ends(const struct all_to_all_cost *cost, int n, double bytes);

#endif
