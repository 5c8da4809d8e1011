/* costs: what kernels are timed by: the mapping `costs:`. */
#ifndef DTSIM_COSTS_H
#define DTSIM_COSTS_H

#include "kernels/profile.h"

/* Who hears of each kernel that is timed, and what it takes (ledger/). */
struct kernel_listener {
    void (*call)(void *context, const struct kernel *kernel, const struct cost *cost);
    void *context;
};

struct costs_spec {
    const struct node *node;
    int gpu;                         /* enum cost_source; never AUTO after scenario_load */
    const char *profile;             /* a name of calibration/data/ or an absolute path; NULL: none */
    int attention;                   /* enum attention_generation */
    double host_launch;              /* s that the host takes for each kernel (calibration/data/README.md) */
    bool launch_blocking;            /* it waits for each kernel before the next */
    double host_send;                /* s of a boundary that stages wait for (calibration/data/README.md) */
    int unaligned_batches;           /* enum unaligned_batches */
    double speed;                    /* how many times faster kernels run than all of this says, or given times */
    const struct profile *loaded;    /* of that name, where `gpu` is calibrated */
    struct cost_model model;         /* all of this, as kernels are timed by it */
    const struct kernel_listener *listener;  /* NULL: nobody listens */
    bool given;                      /* the model's times are given: kernels take none */
};
extern const struct table costs_table;

/* What a kernel takes; nothing where the model's times are given. */
struct cost costs_kernel(const struct costs_spec *costs, const struct kernel *kernel);
/* The same of one that no layer lists: over gradients, states and boundaries. */
struct cost costs_traffic(const struct costs_spec *costs, const char *name, enum memory_class class, double bytes);

#endif
