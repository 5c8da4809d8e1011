/* Every collective, a line each, in the order in which they are listed. COLLECTIVE(name) stands for the table
 * `const struct collective collective_<name>` of the file of that name. */
COLLECTIVE(naive)
COLLECTIVE(tree)
COLLECTIVE(butterfly)
COLLECTIVE(halving_doubling)
COLLECTIVE(ring)
