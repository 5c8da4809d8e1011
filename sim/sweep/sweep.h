/* sweep: a sweep file, which says of which scenarios a sweep consists. `dtsim help sweep-file` shows its keys. */
#ifndef DTSIM_SWEEP_H
#define DTSIM_SWEEP_H

#include "sweep/points.h"

struct sweep {
    const struct node *node;
    struct arena arena;
    const char *file, *name;     /* name: the file's */
    const struct node *base, *sweep;     /* as written */
    struct points points;
};
extern const struct table sweep_table;

/* Reads a sweep file, or a scenario, which is a sweep of one point. `sets` ("PATH=1,2,4", nsets of them) give paths
 * their values: in place of those of the grid, or as further paths behind it. The path "-" is standard input. Checked
 * are the sweep itself and every value of an axis by itself, not yet the scenarios. Release in either case. */
int sweep_load(const char *path, const char *const *sets, size_t nsets, struct sweep *sweep, struct error *err);
void sweep_release(struct sweep *sweep);

#endif
