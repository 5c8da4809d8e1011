/* pipedream: PipeDream's partition of layers into replicated stages (Narayanan et al. 2019, SOSP, section 3.1), in the
 * form of the paper and in the form of the released program (msr-fiddle/pipedream 7db6a1c,
 * optimizer/optimizer_graph_hierarchical.py), which differ.
 *
 *     A(i, j, m)   the least time of the slowest stage of layers i to j on m machines
 *                = min( S(i, j, m), min over k, q of max( A(i, k, m - q), S(k + 1, j, q), transfers ) )
 *     S(i, j, m)   a stage of layers i to j on m machines, which share the minibatches
 *
 *     paper      S = max( T / m, 2 (m - 1) w / (m B) ), and 2 a(k) / B is a transfer
 *     released   S = ( T + 4 (m - 1) w / (m B) ) / m; transfers do not count. Behind the first stage of a level that
 *                is not the lowest, its exchange runs on as many links as the level below has machines.
 *
 * Levels: T of a level is A of the level below with all its machines. */
#ifndef DTSIM_PIPEDREAM_H
#define DTSIM_PIPEDREAM_H

#include "planners/planned.h"

struct pipedream_level {
    int machines;
    double bandwidth;
}; /* machines of the level below, or devices; B/s */

struct pipedream {
    const struct planner_layer *layers;
    size_t count;
    const struct pipedream_level *levels; /* from the lowest */
    size_t nlevels;
    bool paper;    /* the paper's form */
    bool straight; /* one machine a stage */
};

/* Stages have one tensor degree, 1. The objective: s a minibatch, of the slowest stage. */
void pipedream_plan(const struct pipedream *question, struct planned *planned);

#endif
