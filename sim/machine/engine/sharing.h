/* sharing: which links the transfers of a program may have to share. A lane sends one transfer at a time, so a link
 * carries at most one from each lane that uses it. Where all of these together want no more than it has, it never makes
 * one slower; a transfer over such links alone takes as long as it would without any other, whatever the engine. */
#ifndef DTSIM_SHARING_H
#define DTSIM_SHARING_H

#include "engine/dispatcher.h"

struct sharing {
    bool any;                        /* there are transfers that may share links; else the rest is not there */
    struct shared_links {            /* of which more may be wanted than they carry (B/s), in any order */
        struct shared_link { struct link link; double capacity; } *items;
        size_t count, capacity;
    } links;
    struct shared_route { uint32_t first, hops; } *routes;   /* by traits: where in `crossed` its shared links are */
    struct crossed { uint32_t *items; size_t count, capacity; } crossed;     /* numbers of shared links */
};

/* Sets `shares` of the costs, by traits. sharing_release when done. */
struct sharing sharing_of(const struct program *program, const struct cluster *cluster, struct transfer_cost *costs);
/* Whether transfers of a timeline met others: at some time more was wanted of a link than it carries. `met`: becomes true
 * of their ids; NULL: it does not matter which. How fast they were meanwhile does not matter either. */
bool sharing_meets(const struct sharing *sharing, const struct timeline *timeline, const struct transfer_cost *costs,
                   bool *met);
void sharing_release(struct sharing *sharing);

#endif
