/* row_counts: how many works of each kind the rows have, without their order. It is enough to add up how long they take, and
 * many scenarios have the same. */
#ifndef DTSIM_ROW_COUNTS_H
#define DTSIM_ROW_COUNTS_H

#include "schedule/schedule.h"

/* The row of a rank. Numbers of works stand at [chunk * WORK_KIND_COUNT + kind]. */
struct row_counts {
    size_t count;                /* all works; 0: the others are unset */
    int first, last;             /* the chunks of its first work and of its last backward */
    int flying;                  /* the most forwards, in all chunks, whose backward has not run, whatever the times
                                    are */
    bool overlaps;               /* a work runs beside one of another kind */
    const int *before, *behind;  /* up to the last backward, which is one of them, and behind it. Ranks may share them */
};

/* An entry a rank, in the arena. */
const struct row_counts *rows_count(struct arena *arena, const struct row *rows, const struct plan *plan);
/* The same of the rows that the schedule writes, which are not made where the arena's cache knows their counts. NULL: they
 * depend on more than degrees and options: on times, on a table of stages, or on a file. */
const struct row_counts *schedule_counts(struct arena *arena, const struct schedule *schedule, const struct plan *plan);

#endif
