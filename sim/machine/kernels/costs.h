/* costs: what kernels are timed by: the mapping `costs:`, and what it means for the GPUs of each kind. */
#ifndef DTSIM_COSTS_H
#define DTSIM_COSTS_H

#include "hardware/cluster.h"
#include "kernels/profile.h"

/* A listener that hears of each timed kernel and its time (explain/ledger.h). */
struct kernel_listener {
    void (*call)(void *context, const struct kernel *kernel, const struct cost *cost);
    void *context;
};

/* Kernels that CUDA graphs record: none; the kernels of a block before its MLP, or before the dispatch of tokens to its
 * experts; all of an iteration. */
#define CUDA_GRAPHS(X) X(GRAPHS_NONE, "none") X(GRAPHS_ATTENTION, "attention") X(GRAPHS_ITERATION, "iteration")
enum cuda_graphs { CUDA_GRAPHS(ENUM_VALUE) };

struct costs_spec {
    const struct node *node;
    int gpu;                         /* enum cost_source */
    const char *profile;             /* a name of calibration/data/ or a path; NULL: not said */
    int attention;                   /* enum attention_generation */
    double host_launch;              /* s that the host takes for each kernel (calibration/data/README.md) */
    bool launch_blocking;            /* it waits for each kernel before the next */
    int cuda_graphs;                 /* enum cuda_graphs */
    double host_send;                /* s of a boundary that stages wait for (calibration/data/README.md) */
    int unaligned_batches;           /* enum unaligned_batches */
    double speed;                    /* how many times faster kernels run than all of this says, or given times */
};
extern const struct table costs_table;

/* What kernels, and the host that launches them, take on GPUs of one kind. */
struct kernel_costs {
    struct cost_model model;         /* its source is never AUTO */
    const char *profile;             /* the name of model.profile, or its absolute path; NULL: it has none */
    double host_launch;              /* s; by this kind's host */
    double speed;                    /* as in costs_spec */
    bool launch_blocking;
    enum cuda_graphs graphs;
    bool given;                      /* the model's times are given: kernels take none */
    const struct kernel_listener *listener;      /* NULL: nobody listens */
};
/* Settles the costs of kernels on each kind of node of a cluster (kernels: one a kind), and reads the profiles, in the
 * arena. `given`: the model's times are given. Errors stand at a key of the spec or, where a file says no `costs:`, at
 * `place`. */
int costs_resolve(struct arena *arena, const struct costs_spec *spec, const struct node *place,
                  const struct cluster *cluster, bool given, struct kernel_costs *kernels, struct error *err);
/* Whether a software file says host_launch: the GPU's host_speed then divides it. */
bool costs_host_supplied(const struct costs_spec *spec);
/* Whether kernels are timed by a profile. */
bool costs_calibrated(const struct kernel_costs *costs);
/* The time of a kernel; 0 where the model's times are given. */
struct cost costs_kernel(const struct kernel_costs *costs, const struct kernel *kernel);
/* The same of one that no layer lists: over gradients, states and boundaries. */
struct cost costs_traffic(const struct kernel_costs *costs, const char *name, enum memory_class class, double bytes);

#endif
