/* figure: a schedule as text: the paper's picture, the orders and the grid, and who is in which group. */
#ifndef DTSIM_FIGURE_H
#define DTSIM_FIGURE_H

#include "workload/workload.h"

/* The compute order of every pipeline rank, a line a rank, as torch.distributed.pipelining reads it: "0F0,0F1,0B0,...".
 * Returns what the rows have that PyTorch's schedules have no word for; NULL: nothing. */
const char *orders_print(const struct workload *workload, FILE *out);

/* The rows replayed on a free network, in slots of the smallest stage time, as CSV ("row,1,2,..."; "S1,0F0,...").
 * EXIT_INPUT when a stage time is no multiple of the slot. */
int grid_print(const struct workload *workload, FILE *out, struct error *err);

/* The same as the papers draw it, the last stage on top, stages and micro-batches from 1, within 100 columns: one cell
 * a slot where that fits, else columns of one character, each for the work in the middle of its time, which it says. Of
 * two chunks in a V or two directions, the second is in lower case; works that overlap are joined by +, or a column's
 * O. */
int figure_print(const struct workload *workload, FILE *out, struct error *err);

/* Which GPUs form which tensor, data and pipeline group, and where each GPU stands. */
void groups_print(const struct scenario *scenario, FILE *out);

#endif
