/* Automatic all-reduce: the one that is the cheapest, by its own formula, for this group, cluster and number of bytes.
 * It writes no messages itself. Of equally cheap ones it takes the first in the list.
 *
 * Its halves are rings, as NCCL's are.
 *
 * Choosing by a model of latency and bandwidth is what NCCL's tuner does (src/graph/tuning.cc), between rings and
 * trees; so do Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", Int. J.
 * High Performance Computing Applications 19(1), 2005, section 5. */
#include "collective/collective.h"

const struct collective collective_auto = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "auto",
    .title = "Automatic all-reduce (the cheapest of the others by their own formulas)",
    .paper = "NCCL (src/graph/tuning.cc); Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .figure = "",
    .formula = "the least of the others' formulas",
    .reduce_scatter = &collective_reduce_scatter_ring,
    .all_gather = &collective_all_gather_ring,
};
