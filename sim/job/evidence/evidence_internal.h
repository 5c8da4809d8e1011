/* evidence_internal: what the files of this folder share. */
#ifndef DTSIM_EVIDENCE_INTERNAL_H
#define DTSIM_EVIDENCE_INTERNAL_H

#include "evidence/evidence.h"

/* Doublings of a size, or of the rate of a NIC, up to which work is alike. */
#define ALIKE_DOUBLINGS 2.0

void evidence_sizes(const struct likeness *likeness, double sizes[EVIDENCE_SIZES]);
/* What differences of sizes and of shares leave of a weight. `sizes` are the likeness's. */
double evidence_size_weight(const struct evidence_row *row, const struct likeness *of,
                            const double sizes[EVIDENCE_SIZES]);
/* What differences of names, and of having experts, leave of a weight; 1: of one kind. */
double evidence_kind_weight(const struct likeness *a, const struct likeness *b);
/* Whether they are of one kind, and dispatch the tokens of experts in one way: the errors after work on one tell of the other. */
bool evidence_alike_kinds(const struct likeness *a, const struct likeness *b);
/* Whether matrix products in both formats run equally fast, and move the same bytes. */
bool evidence_same_format(const char *a, const char *b);
/* evidence_left_out of a row of that table and kind. */
bool evidence_kind_left_out(const struct evidence *evidence, const char *table, size_t kind,
                            const struct evidence_without *without);
/* Moves a list from the heap into the arena. */
void *evidence_list(struct arena *arena, void *items, size_t bytes);
/* Does so in the order of the keys, least first, items with equal keys in their order: the same on any machine, as qsort
 * does not promise. No key is negative. */
void *evidence_settle_sorted(struct arena *arena, void *items, size_t count, size_t size, double (*key)(const void *item));
/* The runs that tell of it: as they are predicted, or as data sheets predict them. */
const struct evidence_runs *evidence_runs_of(const struct evidence *evidence, const struct likeness *likeness);
/* Fills `ratios`. The rows of a table stand together. */
void evidence_find_ratios(struct arena *arena, struct evidence_runs *runs, const struct evidence *evidence);

#endif
