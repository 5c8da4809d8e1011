/* tensors: which tensors of a chain wait in host memory, chosen one by one, beside what is recomputed.
 *
 * Which tensors to send is NP-hard even without recomputation (Beaumont, Eyraud-Dubois, Shilova 2020, Optimal GPU-CPU
 * offloading strategies for deep neural network training). The search takes the steps of several plans of layers
 * (chain.h): to keep everything, and what its search met for this limit. For each it chooses tensors:
 * - up to 12: all sets are tried;
 * - more: it lets tensors go from the first layer on, as fast as a share of the link takes them, until the rest fits,
 *   for several shares; then it exchanges single tensors as long as that is faster.
 * copies.h computes times and memory, so waits where the link is too slow count. The set that the plan of layers sends
 * is one of those that are tried: no plan of layers for the limit is faster by these times. Of sets that take as long,
 * the one with the fewest bytes is taken. Never less than copied.seconds is possible for given steps; the search ends
 * where a set reaches it, and leaves out steps that take longer than the best plan so far.
 *
 * Tensors by size and time of reuse: SwapAdvisor (Huang et al. 2020), Capuchin (Peng et al. 2020). */
#ifndef DTSIM_TENSORS_H
#define DTSIM_TENSORS_H

#include "recompute/chain.h"

/* Steps of plans, different from each other. Zero-initialise; the plans live in the arena. */
struct structures {
    struct chain_plan *items;
    size_t count, capacity;
};
/* Notes the steps of a plan and what it keeps, unless they are known. */
void structures_note(struct structures *structures, struct arena *arena, size_t layers, const struct chain_plan *plan);
/* Chooses the fastest plan of these steps and of those that suggest themselves. `blocks`: the best plan that sends
 * whole parts of layers, or NULL: there is none. Everything in `plan` lives in the arena. Returns -1 if nothing fits.
 */
int tensors_plan(struct arena *arena, const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
                 const struct structures *structures, const struct chain_plan *blocks, struct chain_plan *plan);
/* Chunks that share memory let copies to the host hold `window` B while any of them works, also one that sends nothing. */
void tensors_share(struct arena *arena, size_t layers, double window, struct chain_plan *plan);

#endif
