/* alpa: Alpa's division of a chain of layers into stages on submeshes (Zheng et al. 2022, OSDI, section 5;
 * alpa-projects/alpa b8078a9, alpa/pipeline_parallel/stage_construction.py).
 *
 * For each t_max among the costs of stages, ascending,
 *
 *     F(s, l, d) = min over i, submesh of c(l, i, submesh) + F(s - 1, i + 1, d - devices of it), where c <= t_max
 *
 * is the least sum of costs of s stages of the layers from l on, on d devices; all devices are used. The objective is
 * F(s, 1, all) + (micro-batches - 1) t_max, least over s and t_max. */
#ifndef DTSIM_ALPA_H
#define DTSIM_ALPA_H

#include "planners/planned.h"

struct alpa {
    size_t layers;
    int devices, micro_batches;
    const struct planned_stage *submeshes; /* data and tensor degree of each; begin and end say nothing */
    size_t nsubmeshes;
    /* s of a micro-batch of layers [begin, end) there; INFINITY: it cannot be. *behind: stages behind it, so that as
     * many more micro-batches are in flight, with which it fits in memory at most; negative: it does not fit at all. */
    double (*cost)(const void *context, const struct planned_stage *stage, int *behind);
    const void *context;
};

void alpa_plan(const struct alpa *question, struct planned *planned);

#endif
