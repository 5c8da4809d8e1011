/* bounds: what is known of each point of a space before it is replayed, found by worker processes. */
#ifndef DTSIM_BOUNDS_H
#define DTSIM_BOUNDS_H

#include "plan/space.h"

struct bounded {
    enum bounded_status { BOUNDED_LEFT, BOUNDED_REFUSED, BOUNDED_SHORT, BOUNDED_OPEN,
                          BOUNDED_BROKEN } status;       /* the system did not let a file be read: ends the search */
    enum error_kind rule;            /* of the refused ones */
    double seconds;                  /* the bound; of a point that is open; 0: nothing is known */
    bool pruned;                     /* it is slower than the rows that are shown (plan.c) */
    double lacks;                    /* B that a GPU surely lacks; of one that is short */
    uint32_t size;                   /* points of one size have the same number of GPUs and of samples */
    char reason[200];
};

/* How bounds are found. */
struct bounds_options {
    size_t jobs;
    double until, grace;             /* s of pool_now when no further points begin, 0: any time; s after that or after an
                                        interruption, that what runs may go on */
    void (*progress)(void *context, size_t points);      /* about once a second: how many are known */
    void *context;
};
/* One entry a point of the selection, in its order, and what the points have of the keys that the space holds; BOUNDED_LEFT:
 * the time ran out before. -1: workers cannot be had, or a file cannot be read. */
int bounds_find(struct space *space, const struct bounds_options *options, struct bounded *bounds, bool *interrupted,
                struct error *err);

#endif
