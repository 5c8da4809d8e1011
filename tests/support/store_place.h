/* store_place: a new folder for the rows of a sweep, and the file in it. */
#ifndef DTSIM_STORE_PLACE_H
#define DTSIM_STORE_PLACE_H

#include <stdio.h>
#include <stdlib.h>

struct place { char folder[64], file[128]; };

static inline struct place place_make(void)
{
    struct place place = {.folder = "/tmp/dtsim-store-XXXXXX"};

    assert_non_null(mkdtemp(place.folder));
    snprintf(place.file, sizeof place.file, "%s/shard-1-of-1.jsonl", place.folder);
    return place;
}

#endif
