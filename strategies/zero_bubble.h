/* zero_bubble: ZB-H1 and ZB-H2, which differ in the memory that they may use. */
#ifndef DTSIM_ZERO_BUBBLE_H
#define DTSIM_ZERO_BUBBLE_H

#include "schedule/schedule.h"

#define ZERO_BUBBLE_VARIANTS(X) X(ZERO_BUBBLE_GREEDY, "greedy") X(ZERO_BUBBLE_FIXED, "fixed")
enum zero_bubble_variant { ZERO_BUBBLE_VARIANTS(ENUM_VALUE) };
struct zero_bubble_options {
    const struct node *node;
    int variant;                 /* enum zero_bubble_variant */
    double input_frees;          /* share of a micro-batch's activations that its I frees; the W frees the rest */
};
extern const struct table zero_bubble_options;

/* Writes the rows of all ranks. Greedy: a rank holds activations of at most `limit` P micro-batches. Fixed: each rank
 * has `limit` more forwards before its first I than the next rank. */
void zero_bubble_rows(struct row *rows, const struct plan *plan, int limit);
bool zero_bubble_is_fixed(const struct plan *plan);

#endif
