/* remarks: what an import leaves out of its input and what it doubts, by name and reason, counted. */
#ifndef DTSIM_REMARKS_H
#define DTSIM_REMARKS_H

#include "base/base.h"

struct remark {
    const char *name, *why;
    size_t count;
    double us;                       /* time that all of them took together; 0: unknown */
};
/* Zero-initialise; remarks_release when done. Remarks stand in the order in which they were first added. */
struct remarks {
    struct remark *items;
    size_t count, capacity;
    struct { uint32_t *items; size_t count; } slots;     /* to find an item by hash: its index + 1; 0: a free slot */
    struct arena arena;              /* has the names */
};

/* Adds to a remark's count and time. `name` is copied, `why` is not. Gives the copy, which `remarks` holds. */
const char *remark_add(struct remarks *remarks, const char *name, const char *why, size_t count, double us);
/* Puts those first that took the most time; equal ones stand by name. */
void remarks_sort(struct remarks *remarks);
void remarks_release(struct remarks *remarks);

#endif
