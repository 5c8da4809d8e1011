/* drawing: a collective's arrows and what each of them waits for. Internal to the lowering of collectives. */
#ifndef DTSIM_DRAWING_H
#define DTSIM_DRAWING_H

#include "collective/collective.h"

/* A drawing knows what each arrow waits for, in terms of arrows and ranks, so that every channel repeats it on its own
 * members and lanes. A wait below arrows.count is for that arrow; arrows.count + r is for rank r to be ready. */
struct drawing {
    int n, chunks;           /* ranks that are drawn; chunks of the vector */
    struct arrows arrows;
    struct deps waits;
    size_t *first;           /* list i: waits[first[i] .. first[i + 1]): an arrow's, then the end's of every rank */
};

void drawing_init(struct drawing *drawing, const struct collective *collective, const struct task *task);
void drawing_release(struct drawing *drawing);

#endif
