/* calibrate: a profile from samples, and how well it predicts those that it was not fitted to. */
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

/* Which products a group holds. */
enum batches { BATCHES_ANY, BATCHES_ONE, BATCHES_MANY };

/* Samples that share parameters: products or attention of a format, a class of kernels bound by memory. */
struct sample_group {
    enum sample_kind kind;
    int which;                           /* MATMUL: enum batches; ATTENTION: direction; MEMORY: class, CLASS_OTHER: all
                                            element-wise ones */
    enum dtype dtype;                    /* MATMUL, ATTENTION: a sample_format */
    struct sample_list { const struct sample **items; size_t count, capacity; } fit, held_out;
    bool left_out;                       /* too few for the parameters: not in the profile */
    union fitted fitted;
    struct fit_error error;
};
const char *sample_group_name(const struct sample_group *group);

struct calibration {
    int sms;
    int attention;                       /* enum attention_generation */
    struct profile profile;
    struct sample_groups { struct sample_group *items; size_t count, capacity; } groups;
    struct sustained_share {             /* of the products' speed; measured: by how many samples */
        size_t measured;
        double share;                    /* 1 where none was measured */
    } sustained[DTYPE_COUNT];            /* by sample_format */
    size_t unused;                       /* transfers, launches, other formats: no part of a profile */
    size_t kept;                         /* records that are another profile's, behind the fitted ones */
};

/* The format of the record that the sample counts for: half formats, of one width and rate, have one, under fp16. */
enum dtype sample_format(const struct sample *sample);

/* Fits all that the samples hold. A fifth of the shapes, chosen by the shape itself, is held out; the errors are of
 * these. Products of a format have one record, or two, of single and of batched ones, where that lowers the mean error
 * on what was fitted of either by a hundredth; the share of their speed that is sustained is the median of that of the
 * products that were run for seconds, and attention's too: the clock is one. The profile lives in the arena;
 * calibration_release in either case.
 * Errors: nothing that could be fitted. */
int calibrate(struct arena *arena, const struct samples *samples, struct calibration *calibration, struct error *err);
void calibration_release(struct calibration *calibration);

/* Adds to the profile what another one of the same GPU (a name of calibration/data/ or a path) has and the samples do
 * not tell: products of other formats, attention of other generations or directions, other classes bound by memory.
 * Errors: no such profile; a GPU with another number of multiprocessors. */
int calibrate_keep(struct arena *arena, struct calibration *calibration, const char *name, struct error *err);

/* Mean of |predicted / measured - 1| over the group's held-out samples of products with from < m <= to; NaN: none. */
double calibration_error(const struct calibration *calibration, const struct sample_group *group, double from,
                         double to, int *count);

/* Sorts the values, of which there are some; their median. */
double sorted_median(double *values, size_t count);

/* calibrate_sustained.c: once the products of the format are fitted. */
struct sustained_share calibrate_sustained(const struct calibration *calibration, const struct samples *samples,
                                           enum dtype dtype);

/* calibrate_model.c: the parameters of a group. 0, or -1 where its shapes are too few for them. */
int group_fit(struct sample_group *group, int sms);
double group_seconds(const struct sample_group *group, int sms, const struct sample *sample);

#endif
