/* stage_kernels: seconds of a layer's kernels on one GPU, for one micro-batch, with the launches by the host, and of an
 * update. */
#ifndef DTSIM_STAGE_KERNELS_H
#define DTSIM_STAGE_KERNELS_H

#include "stage/stage.h"

/* Adds a phase of a layer whose times are not given: its kernels; in the backward for weights also the kernel that adds
 * its gradients to the batch's. A phase is no faster than its launches (costs.host_launch). */
void stage_add_phase(struct work_cost *work, const struct scenario *scenario, const struct kernel_costs *costs,
                     const struct layer *layer, enum phase phase);
/* Adds the phase of the core of attention alone. */
void stage_add_core(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer,
                    enum phase phase);
/* Adds the forward up to the last kernel whose inputs or results the backward needs. */
void stage_add_needed(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer);
/* Adds what a block's backward computes again under recompute: operators or modules. */
void stage_add_recomputed(struct work_cost *work, const struct kernel_costs *costs, const struct layer *layer);
/* s of the core of attention, without waits for launches. */
double stage_core_seconds(const struct kernel_costs *costs, const struct layer *layer, enum phase phase);
/* s of the loss's kernels; `last`: the model's last layer. */
struct loss_times stage_loss(const struct scenario *scenario, const struct kernel_costs *costs,
                             const struct layer *last);
/* The times of the stage's update, with what kernels do around the sums of its gradients before it and the casts of
 * weights after it, and of averaging weights; sets times->update and times->averaging. */
void stage_update(const struct scenario *scenario, const struct kernel_costs *costs, const struct stage *stage,
                  struct stage_times *times);
/* The matrices of the stage's blocks that Muon updates, of a class of parameters; none under other optimizers. */
void stage_matrices(const struct scenario *scenario, const struct stage *stage, enum parameter_class class,
                    struct matrices *matrices);
/* Counts what the tensor group exchanges for them in an update, on the replica that owns most. */
void stage_exchange_matrices(const struct scenario *scenario, struct exchange_list *list, struct stage *stage);

#endif
