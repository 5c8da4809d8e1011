/* V-Min: two chunks a rank in a V. All ranks hold about the same memory, a third of the memory of 1F1B's first rank. A
 * micro-batch goes down and up, forwards and backwards, without a wait. */
#include "zb_v.h"

static const char figure[] =
    "S3  .  .  F1 f1 F2 f2 .  .  i1 I1 w1 W1 F3 f3 i2 I2 w2 W2 F4 f4 i3 I3 w3 W3 i4 I4 w4 W4 .\n"
    "S2  .  F1 F2 .  f1 .  f2 i1 w1 .  I1 F3 W1 i2 f3 w2 I2 F4 W2 i3 f4 w3 I3 i4 w4 W3 I4 W4 .\n"
    "S1  F1 F2 F3 .  .  f1 i1 w1 f2 .  .  I1 i2 w2 W1 f3 F4 I2 i3 w3 W2 f4 i4 I3 w4 W3 .  I4 W4\n";

static struct pattern pattern(int ranks, int rank)
{
    int apart = ranks % 3 ? 0 : 2;

    return (struct pattern){
        .forwards = {rank, 2 * ranks - rank - 1},
        .backwards = {2 * ranks + apart + rank, 4 * ranks + apart - rank - 1},
    };
}

static void rows(struct row *rows, const struct plan *plan)
{
    v_pattern_rows(rows, plan, pattern);
}

const struct schedule schedule_v_min = {
    .name = "v-min",
    .title = "V-Min",
    .paper = "Qi et al. 2024, Pipeline Parallelism with Controllable Memory (arXiv 2405.15362), sections 3 and 4",
    .brief = "chunks in a V, backwards in two halves: a third of the memory of 1F1B, evenly",
    .figure = figure,
    .formula = "at most 2 ((P+1) div 3 + 1) micro-batches in flight in a rank's two chunks, where 1F1B's first rank "
               "has 2P",
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .placement = PLACEMENT_V,
    .min_chunks = 2, .max_chunks = 2,
    .rows = rows,
};
