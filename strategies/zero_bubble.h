/* zero_bubble: the builder of ZB-H1 and ZB-H2, which differ in the memory that they may use. */
#ifndef DTSIM_ZERO_BUBBLE_H
#define DTSIM_ZERO_BUBBLE_H

#include "schedule.h"

/* The rows of all ranks, each in the memory of the activations of `limit` micro-batches (an I frees a small part of
 * them, its W the rest). */
void zero_bubble_rows(struct row *rows, const struct plan *plan, int limit);

#endif
