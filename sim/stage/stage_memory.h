/* stage_memory: bytes that a stage keeps, recomputes and uses as workspace, added up layer by layer; for stage.c. */
#ifndef DTSIM_STAGE_MEMORY_H
#define DTSIM_STAGE_MEMORY_H

#include "stage/stage.h"

/* While layers are added in the order of the forward: the most bytes held so far, with the kept ones.
 * Zero-initialise. */
struct stage_peaks {
    struct stage_workspace plain, recompute;
    double ahead;            /* B of the largest workspace of a backward */
    double kept;             /* B under recomputation: checkpoints and one segment's activations */
    double segment;          /* B of the segment's activations so far */
    int blocks;              /* blocks so far */
    int run;                 /* recomputed blocks since the last block that keeps all activations */
};
/* The layer must be the stage's newest slice. */
void stage_peaks_add(struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario,
                     const struct layer *layer);
/* After the last layer: sets the stage's working memory and workspaces. */
void stage_peaks_settle(const struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario);
/* Sets `gathered` and `scattered`: the layers that ZeRO 3 holds whole at once. */
void stage_whole_layers(struct stage *stage, const struct scenario *scenario);

#endif
