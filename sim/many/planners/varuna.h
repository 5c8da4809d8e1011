/* varuna: Varuna's choice of depth, replicas and micro-batch (Athlur et al. 2022, EuroSys, section 5; microsoft/varuna
 * a2145cc, varuna/auto_config.py): for each depth, a proper divisor of the number of cut-points, the largest
 * micro-batch that fits, as many replicas as the GPUs allow, and ceil(floor(batch / replicas) / micro-batch)
 * micro-batches; the least time wins. Morphing is the same with the GPUs that are left. */
#ifndef DTSIM_VARUNA_H
#define DTSIM_VARUNA_H

#include "planners/planned.h"

struct varuna_choice {
    int depth, data;         /* pipeline ranks; replicas */
    int micro;               /* samples of a micro-batch */
    int micro_batches;       /* of a replica in an iteration */
    double seconds;          /* of an iteration */
};

struct varuna {
    int cut_points, gpus;
    int batch;               /* samples of an iteration */
    bool (*fits)(const void *context, const struct varuna_choice *choice);      /* asks of depth, data and micro
                                                                                 * alone */
    double (*seconds)(const void *context, const struct varuna_choice *choice); /* of an iteration */
    const void *context;     /* of these two functions */
};

/* The choice that takes the least time; its `seconds` are INFINITY where nothing fits. Micro-batches are powers of
 * two. */
struct varuna_choice varuna_plan(const struct varuna *question);

#endif
