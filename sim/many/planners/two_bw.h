/* two_bw: the planner of PipeDream-2BW (Narayanan et al. 2021, ICML, section 3.3; its released planner.py): blocks that
 * are alike, in stages of equal depth, all of equal width.
 *
 * Of all widths w and depths d with w d = workers, the one with the least
 *
 *     max( t floor(n / d), 2 out / B(d), 2 (w - 1) p floor(n / d) / B'(w) ) / w
 *
 * of those with `held` (2 p floor(n / d) + a floor(n / d) d) <= memory: two versions of the weights, d micro-batches of
 * activations. */
#ifndef DTSIM_TWO_BW_H
#define DTSIM_TWO_BW_H

#include "planners/planned.h"

struct two_bw {
    int blocks, workers;
    double seconds;              /* t: a block's forward and backward of a micro-batch */
    double weights;              /* p: of a block; as many are sent */
    double activations, output;  /* a, out: of a block and a micro-batch */
    double held;                 /* B of one of these numbers; 4 in the released program, which counts values of fp32 */
    const double *depth, *width; /* B and B', by degree; entries 1 to `workers` */
    double memory;               /* B of a worker; INFINITY: any */
};

/* The cost of one width and depth, s a micro-batch; *memory: B of a worker. */
double two_bw_cost(const struct two_bw *question, int width, int depth, double *memory);
/* Stages of floor(n / d) blocks; the first stages take the blocks that are left over. Returns the first of several
 * equal plans. */
void two_bw_plan(const struct two_bw *question, struct planned *planned);

#endif
