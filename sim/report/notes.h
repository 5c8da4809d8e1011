/* notes: what who reads a result's numbers should know of the scenario before believing them. */
#ifndef DTSIM_NOTES_H
#define DTSIM_NOTES_H

#include "scenario/scenario.h"

struct notes {
    const char *items[4];        /* a sentence each, without a full stop; in the arena */
    size_t count;
};

struct notes notes_of(struct arena *arena, const struct scenario *scenario);

#endif
