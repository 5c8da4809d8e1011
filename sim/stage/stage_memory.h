/* stage_memory: what a stage keeps, brings back by recomputing and holds for a moment, from what its layers do; for
 * stage.c. */
#ifndef DTSIM_STAGE_MEMORY_H
#define DTSIM_STAGE_MEMORY_H

#include "stage/stage.h"

/* While layers are added in the order of the forward: the most bytes held so far, kept ones included. Zero-initialise.
 */
struct stage_peaks {
    struct stage_workspace plain, recompute;
    double ahead;            /* the largest workspace of a backward alone */
    double kept;             /* of recomputation: checkpoints and one segment's activations */
    double segment;          /* activations of the segment so far */
    int blocks;              /* so far */
    int run;                 /* of them, those recomputed since one that keeps all */
};
/* The layer is the stage's last slice so far. */
void stage_peaks_add(struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario,
                     const struct layer *layer);
/* After the last layer: what is held on top of what is kept. */
void stage_peaks_settle(const struct stage_peaks *peaks, struct stage *stage, const struct scenario *scenario);
/* What ZeRO 3 holds whole: `gathered` and `scattered`. */
void stage_whole_layers(struct stage *stage, const struct scenario *scenario);

#endif
