/* sharing: which links the transfers of a program may have to share. A lane sends one transfer at a time, so a link
 * carries at most one from each lane that uses it. Where all of these together want no more than it has, it never makes
 * one slower; a transfer over such links alone takes as long as it would without any other, whatever the engine. */
#ifndef DTSIM_SHARING_H
#define DTSIM_SHARING_H

#include "engine/dispatcher.h"

struct sharing {
    bool any;                        /* there are transfers that may share links; else the rest is not there */
    size_t first[LINK_BETWEEN + 1];  /* by kind: the number of its first link */
    struct wanted *links;            /* by number */
    size_t count;                    /* numbers of links */
};

/* Sets `shares` of the costs, by traits. sharing_release when done. */
struct sharing sharing_of(const struct program *program, const struct cluster *cluster, struct transfer_cost *costs);
/* Whether more may be wanted of the link than it carries. */
bool sharing_has(const struct sharing *sharing, struct link link);
/* The transfers of a timeline that met others: at some time more was wanted of a link than it carries. True of their ids;
 * NULL: there are none. It does not matter here how fast they were meanwhile. The caller frees it. */
bool *sharing_met(const struct sharing *sharing, const struct timeline *timeline, const struct cluster *cluster,
                  const struct transfer_cost *costs);
void sharing_release(struct sharing *sharing);

#endif
