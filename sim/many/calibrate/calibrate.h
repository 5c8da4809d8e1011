/* calibrate: fits a profile to samples and measures how well it predicts the samples held out. */
#ifndef DTSIM_CALIBRATE_H
#define DTSIM_CALIBRATE_H

#include "kernels/profile.h"
#include "calibrate/samples.h"

/* The parameters of one kind of kernel. */
union fitted {
    struct matmul_fit matmul;
    struct attention_fit attention;
    struct memory_fit memory;
};

/* The products of a group: all that are not grouped, single ones, batched ones; grouped ones and layers of experts. */
enum batches { BATCHES_ANY, BATCHES_ONE, BATCHES_MANY, BATCHES_GROUPED };

/* Samples that are fitted together: products or attention of a number format, or a class of kernels bound by memory. */
struct sample_group {
    enum sample_kind kind;
    int which;                           /* MATMUL: enum batches; ATTENTION: direction; MEMORY: class, with CLASS_OTHER
                                            for all element-wise classes */
    enum dtype dtype;                    /* MATMUL, ATTENTION: a sample_format */
    struct sample_list { const struct sample **items; size_t count, capacity; } fit, held_out;
    bool left_out;                       /* too few samples for the parameters: not in the profile */
    union fitted fitted;
    struct fit_error error;
};
const char *sample_group_name(const struct sample_group *group);

struct sample_groups { struct sample_group *items; size_t count, capacity; };

struct calibration {
    int sms;
    int attention;                       /* enum attention_generation */
    struct profile profile;
    struct sample_groups groups;
    struct sustained_share {
        size_t measured;                 /* number of sustained samples */
        double share;                    /* sustained speed of products / speed in bursts; 1: not measured */
    } sustained[DTYPE_COUNT];            /* by sample_format */
    size_t unused;                       /* samples that no fit uses: transfers, launches, other formats, windows,
                                          * skews */
    size_t kept;                         /* number of records from another profile, after the fitted ones */
};

/* The number format of the record for a sample. fp16 and bf16 have the same width and rate and share the record of
 * fp16. */
enum dtype sample_format(const struct sample *sample);

/* Fits a profile to the samples. A fifth of the shapes is held out, chosen by a hash of the shape; the errors are those
 * on these samples. Products of a format have one record; or two, one for single and one for batched products, if this
 * lowers the mean error on the fitted samples of either by more than 0.01. The sustained share of the speed is the one
 * with which the predictions for all products that ran for seconds add up to their times; it also holds for attention,
 * as the clock is the same. The profile
 * lives in the arena; call calibration_release in any case.
 * Errors: no group could be fitted. */
int calibrate(struct arena *arena, const struct samples *samples, struct calibration *calibration, struct error *err);
void calibration_release(struct calibration *calibration);

/* Adds records of another profile of the same GPU (a name of calibration/data/ or a path) for kernels without samples:
 * products of other formats, attention of other generations or directions, other classes bound by memory.
 * Errors: no such profile; a GPU with another number of multiprocessors. */
int calibrate_keep(struct arena *arena, struct calibration *calibration, const char *name, struct error *err);

/* The mean of |predicted / measured - 1| over the group's held-out samples with from < m <= to, and their number; NaN
 * if there are none. */
double calibration_error(const struct calibration *calibration, const struct sample_group *group, double from,
                         double to, int *count);

/* A sample, and a profile's prediction of it: NaN without a record for such kernels. */
struct compared_costs {
    const struct sample *sample;
    struct kernel_seconds predicted;
};
/* All samples but UNUSED ones, in the arena. Samples are bursts: the profile is taken at their speed (`speed` in
 * kernel_time.h); for sustained samples it is taken at the speed of jobs. */
struct compared_costs *calibrate_check(struct arena *arena, const struct profile *profile, const struct samples *samples,
                                       size_t *count);
/* The name of its kernel in files of samples. */
const char *sample_name(const struct sample *sample);

/* Sorts the values, at least one, and returns their median. */
double sorted_median(double *values, size_t count);

/* |predicted / measured - 1| of a sample. */
double sample_error(const struct sample_group *group, int sms, const struct sample *sample);

/* calibrate_groups.c. Before the fit: if all products of a format are single, or all are batched, one group is enough;
 * attention has one group for both masks if either has few samples. */
void groups_merge(struct sample_groups *groups);
/* After the fit: drops the common group of single and batched products, or their own ones. */
void groups_choose(struct sample_groups *groups, int sms);

/* calibrate_sustained.c: the sustained share of a format, after its products are fitted. */
struct sustained_share calibrate_sustained(const struct calibration *calibration, const struct samples *samples,
                                           enum dtype dtype);

/* calibrate_model.c: fits the parameters of a group. 0, or -1 if it has too few shapes. */
int group_fit(struct sample_group *group, int sms);
/* The time of a sample as the fitted group predicts it, in s. */
double group_seconds(const struct sample_group *group, int sms, const struct sample *sample);

#endif
