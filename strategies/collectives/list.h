/* Every collective, a line each, in the order in which they are listed. COLLECTIVE(name) stands for the table
 * `const struct collective collective_<name>` of the file of that name: that of an all-reduce, or the operation's and
 * the algorithm's. */
COLLECTIVE(naive)
COLLECTIVE(tree)
COLLECTIVE(butterfly)
COLLECTIVE(halving_doubling)
COLLECTIVE(ring)
COLLECTIVE(reduce_scatter_ring)
COLLECTIVE(reduce_scatter_halving)
COLLECTIVE(all_gather_ring)
COLLECTIVE(all_gather_doubling)
COLLECTIVE(broadcast_tree)
COLLECTIVE(broadcast_ring)
COLLECTIVE(reduce_tree)
COLLECTIVE(reduce_ring)
COLLECTIVE(all_to_all_pairwise)
