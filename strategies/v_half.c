/* V-Half: two chunks a rank in a V. All ranks hold about the same memory, about half of the memory of 1F1B's first
 * rank. Forwards go down one rank every second slot, and up one rank every slot; backwards do the same. */
#include "zb_v.h"

static const char figure[] =
    "S3  .  .  F1 f1 F2 f2 .  .  i1 w1 I1 W1 F3 f3 i2 I2 w2 F4 W2 f4 i3 I3 w3 W3 i4 I4 w4 W4 .\n"
    "S2  .  F1 F2 .  f1 .  f2 i1 w1 F3 .  I1 i2 w2 f3 W1 F4 I2 i3 w3 f4 W2 I3 i4 w4 W3 I4 W4 .\n"
    "S1  F1 F2 F3 .  .  f1 i1 w1 f2 i2 w2 .  I1 W1 F4 f3 i3 w3 I2 W2 .  f4 i4 I3 w4 W3 .  I4 W4\n";

static struct pattern pattern(int ranks, int rank)
{
    int apart = ranks % 2 ? 0 : 3;

    return (struct pattern){
        .forwards = {2 * rank, 3 * ranks - rank - 2},
        .backwards = {3 * ranks + apart + 2 * rank - 1, 6 * ranks + apart - rank - 2},
    };
}

static void rows(struct row *rows, const struct plan *plan)
{
    v_pattern_rows(rows, plan, pattern);
}

const struct schedule schedule_v_half = {
    .name = "v-half",
    .title = "V-Half",
    .paper = "Qi et al. 2024, Pipeline Parallelism with Controllable Memory (arXiv 2405.15362), sections 3 and 4",
    .brief = "chunks in a V, backwards in two halves: half the memory of 1F1B, evenly, for two thirds of its bubble",
    .figure = figure,
    .formula = "at most 2 (P div 2 + 1) micro-batches in flight in a rank's two chunks, where 1F1B's first rank has 2P",
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .placement = PLACEMENT_V,
    .min_chunks = 2, .max_chunks = 2,
    .rows = rows,
};
