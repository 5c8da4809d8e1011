/* comparison: the costs of one way of training against another's, per iteration: a row of the table of methods. */
#ifndef DTSIM_COMPARISON_H
#define DTSIM_COMPARISON_H

#include "report/outcome.h"
#include "report/result.h"

struct comparison {
    char *name;
    char *reason;                    /* why there are no numbers, with how it ended before; NULL: there are */
    int gpus;
    double flop_per_sample;          /* computed, recomputation included; NaN: times are given */
    double extra_computation;        /* flop_per_sample over the baseline's, less 1; NaN where flop_per_sample is */
    double sent[PAYLOAD_COUNT];      /* B by each GPU, mean over GPUs */
    int micro;                       /* samples of the largest micro-batch that fits in memory with as many
                                        micro-batches; 0: not even one sample; -1: no limit, or no samples */
    double batch_growth;             /* micro over the baseline's; NaN: unknown, or it is the baseline */
    double flop;                     /* whole model */
    double time;                     /* s */
    double peak_memory;              /* B on one GPU, the largest; more than it has where micro is too small */
};

/* Simulates the scenario and, where it has samples, searches for the largest micro-batch. A scenario that does not fit
 * in memory is compared all the same. After an error it is a row without numbers. `baseline` NULL: it is the baseline.
 * Release in either case. */
int comparison_init(struct comparison *comparison, const char *name, const struct scenario *scenario,
                    const struct comparison *baseline, struct error *err);
/* A row without numbers: the scenario is refused, and `found` says why. */
void comparison_refused(struct comparison *comparison, const char *name, const struct error *found);
void comparison_release(struct comparison *comparison);

#endif
