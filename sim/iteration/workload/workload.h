/* workload: a scenario's stages, their times on each class of GPUs, rows and plans, before any time is simulated. It is
 * built once, from a scenario that does not change any more, and is const afterwards: lowering, metrics, figures and
 * advice read it. */
#ifndef DTSIM_WORKLOAD_H
#define DTSIM_WORKLOAD_H

#include "alike/alike.h"

struct workload {
    const struct scenario *scenario;
    struct plan plan;                /* the scenario's, with the mean times by which some schedules order their work */
    struct stage *stages;            /* one a virtual stage: bytes, exchanges, versions of weights, plans of layers */
    struct gpu_class {               /* GPUs that compute equally fast */
        int kind;                    /* of their nodes */
        int samples;                 /* in each of their micro-batches */
        double slower;               /* the factor on the time of their kernels, over an ordinary GPU */
        struct stage *stages;        /* the workload's, or stages for this number of samples; and */
        struct stage_times *times;   /* one of each a virtual stage */
        struct token_slice {         /* works of one slice of a micro-batch's tokens */
            struct stage *stages;
            struct stage_times *times;
        } *slices;                   /* plan_slices: the works of `stages` and `times` are their mean; NULL: there is one */
    } *classes;                      /* first ordinary GPUs of the first seat's kind with batch.micro samples, then others */
    size_t nclasses;
    const struct gpu_class **of;     /* [replica * pipeline + rank]: workload_class; NULL: there is one class */
    struct row *rows;                /* one a pipeline rank, as the schedule writes it */
    struct alike alike;              /* which members stand for others, as far as it is known before anything is
                                        lowered */
    struct arena arena;              /* holds the stages and classes */
};

/* In two parts, for whoever looks at many workloads and simulates few. First the stages and their times: enough to see
 * that the memory which GPUs hold all the time does not fit, without the versions of weights that asynchronous
 * schedules keep. No setting of the scenario may be `auto` (auto/auto.h finds such settings, then builds the workload). Errors: the errors of stages_cost. Begins
 * with workload_begin. */
int workload_time(struct workload *workload, struct error *err);
/* Then the rows, versions and plans of layers: enough for a bound. `alike` stays empty. Errors: the errors of
 * stage_plans_build. */
int workload_order(struct workload *workload, struct error *err);
/* The plans of layers once more, after the scenario's memory.planned has changed. Errors: the same. */
int workload_replan(struct workload *workload, struct error *err);
/* All of it, of a scenario whose settings are found. Release in either case. The scenario must outlive the workload. */
int workload_build(struct workload *workload, const struct scenario *scenario, struct error *err);
/* An empty workload of the scenario. */
void workload_begin(struct workload *workload, const struct scenario *scenario);
void workload_release(struct workload *workload);
/* The class of the GPUs of a pipeline rank of a replica: of its slowest GPU. */
const struct gpu_class *workload_class(const struct workload *workload, int replica, int p);
/* What works of the micro-batch or slice of this number (struct work) hold and take on such GPUs. */
static inline struct token_slice class_slice(const struct plan *plan, const struct gpu_class *class, int mb)
{
    return class->slices ? class->slices[mb % plan_slices(plan)] : (struct token_slice){class->stages, class->times};
}
/* class_cost.c: the stages of the class, with these layers or (NULL) the scenario's, and their times; if micro-batches have
 * several slices, the times of the mean slice. */
int class_cost(struct arena *arena, const struct scenario *scenario, const int *layers, const struct kernel_costs *kernels,
               struct gpu_class *class, struct error *err);
/* The times of all virtual stages on these. */
const struct stage_times *workload_times(const struct workload *workload, int replica, int p);
/* The times of all virtual stages on ordinary GPUs, of batch.micro samples. Plans of layers and figures of schedules are made from them. */
static inline const struct stage_times *ordinary_times(const struct workload *workload)
{
    return workload->classes[0].times;
}
/* The number of replicas, from the first, whose times one must look at: 1 if all GPUs and micro-batches are alike. */
int workload_timed_replicas(const struct workload *workload);

/* The share of the iteration that a rank waits, by the schedule's closed form, if every stage takes the mean time for
 * its kernels and the network takes none. NaN: the schedule has no closed form for these numbers, or no end. */
double workload_ideal_bubble(const struct workload *workload);
/* s in which a micro-batch goes forward and back through all stages, on GPUs that are no stragglers; NaN: the model's
 * times are not given. */
double workload_given_work(const struct workload *workload);

#endif
