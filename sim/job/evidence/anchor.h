/* anchor: predictions corrected by a person's own measured runs. An anchor is a run that was measured and predicted; what
 * they show of other configurations of the same software, GPU and model is a factor of the time.
 *
 * The logarithms of measured over predicted time are taken for a Gaussian process (Rasmussen and Williams, Gaussian
 * Processes for Machine Learning, 2006, 2.2) of mean 0. The covariance of two runs is spread^2 x similarity, and each run has
 * noise of its own. One anchor of log error e so gives the factor exp(e x spread^2 / (spread^2 + noise^2)): shrunk
 * towards 1. The spread is how far off whole published tables are (root mean square over their groups of one software,
 * profile and model); as tables differ much in that, each quantile of it counts as far as it explains the anchors' mean, so
 * that small errors are shrunk much and large ones little. From three anchors on classes of time (compute, exposed
 * communication, host) may have factors of their own: half the variance more, by the product of their shares. */
#ifndef DTSIM_ANCHOR_H
#define DTSIM_ANCHOR_H

#include "evidence/evidence.h"

enum anchor_class { ANCHOR_COMPUTE, ANCHOR_COMMUNICATION, ANCHOR_HOST, ANCHOR_CLASSES };

struct anchor {
    const char *name;                /* its row */
    double measured, predicted;      /* s; of a run in question: unused */
    struct likeness likeness;
    double shares[ANCHOR_CLASSES];   /* of the predicted time; compute: all that is not of another class */
};
struct anchors {
    struct { struct anchor *items; size_t count, capacity; } list;       /* in an arena */
    const char *file;
    char digest[33];                 /* of all that they say, hexadecimal digits */
};

/* Why no anchor is alike: "'r1' runs software nemo, not mine", in the arena; NULL: at least one is. An anchor is alike
 * if it has the run's software, GPU, profile of kernel times and model, if the model's times are not given, and if its
 * measured time is between a quarter and four times the predicted one. */
const char *anchors_refused(struct arena *arena, const struct anchors *anchors, const struct anchor *of);

struct correction {
    size_t used;                     /* anchors that are alike */
    double factor;                   /* by which to multiply the predicted time */
    double classes[ANCHOR_CLASSES];  /* the same of time of one class alone; NaN below three anchors */
    double within, most;             /* shares of the corrected time that 6 and 9 of 10 are expected to be within */
};
/* At least one is alike. `published`: the error of a ratio, which is what one anchor leaves, wider by half of the anchors' mean
 * error. Of two or more the residuals of leaving out each count too, against two of that size. NaN of `published`: the
 * root mean square of these residuals alone, from three on. */
struct correction anchors_correct(const struct anchors *anchors, const struct anchor *of,
                                  struct ratio_expectation published);
/* How many anchors are the run itself: alike, as similar as can be, and of the same predicted time (`predicted`, s). *measured: s,
 * their geometric mean; *apart: the share by which the longest is longer than the shortest. Both NaN where there are none. */
size_t anchors_same(const struct anchors *anchors, const struct anchor *of, double predicted, double *measured, double *apart);

#endif
