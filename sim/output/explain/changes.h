/* changes: changes of a scenario that a person could try, each as lines "PATH=VALUE". Schedules and recomputations are
 * values that go with the rest (values.h). Of others not all need to be possible: whoever tries them finds out. */
#ifndef DTSIM_CHANGES_H
#define DTSIM_CHANGES_H

#include "workload/workload.h"

struct changes {
    struct arena *arena;
    struct error *err;           /* gets the errors of reading that the system caused */
    const char *items[8];
    size_t count;
};
typedef void change_list(struct changes *changes, const struct workload *workload);

change_list changes_of_links;            /* all links between GPUs twice as fast */
change_list changes_of_network;          /* none of them takes time */
change_list changes_of_schedule;         /* schedules with a smaller bubble */
change_list changes_of_recomputation;    /* less of it */
change_list changes_of_split;            /* blocks moved from slow stages to others */
change_list changes_of_gpu;              /* kernels twice as fast */
change_list changes_of_launches;         /* kernels that need not wait for the host (CUDA graphs) */
change_list changes_of_stragglers;       /* none of them */

#endif
