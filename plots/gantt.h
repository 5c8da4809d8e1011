/* gantt: what the two halves of the Gantt chart share: reading spans (gantt.c) and drawing boxes (gantt_script.c). */
#ifndef DTSIM_GANTT_H
#define DTSIM_GANTT_H

#include "chart.h"

enum {
    GANTT_RANKS = 64,        /* rows at most; the note says when there are more ranks */
    GANTT_STRIPS = 4,        /* kinds of communication lanes told apart; further ones share the last strip */
    GANTT_STAGES = 3,        /* of a rank, named in its label */
    GANTT_COLUMNS = 800,     /* a box narrower than one of so many columns joins its neighbours in a cell */
    GANTT_CELL = 4,          /* columns of a cell */
};

/* A span of spans.tsv, or several of one kind that are too narrow to be told apart. */
struct box {
    int rank, stage;
    int lane;                /* in gantt->lanes */
    int kind;                /* in tone_names, or, for communication, of which kind: see `what` */
    int spans;               /* how many it stands for */
    size_t order;            /* of the span in its file */
    double start, end;       /* seconds */
    const char *what, *name; /* the kind and the label, as spans.tsv has them; name "" for several */
};

struct boxes { struct box *items; size_t count, capacity; };

/* Zero-initialise; gantt_release when done. */
struct gantt {
    struct boxes boxes;
    struct gantt_lanes { struct gantt_lane { const char *name; int strip; } *items; size_t count, capacity; } lanes;
    const char *strips[GANTT_STRIPS];    /* "send-next", ...: lanes up to their dot */
    int nstrips;
    struct row {
        int rank;
        int stages[GANTT_STAGES], nstages;   /* nstages may count one more than are kept */
    } rows[GANTT_RANKS];
    int nrows;
    int ranks;               /* in the file; more than nrows when not all are shown */
    double end;              /* of the time axis, seconds */
    double column;           /* boxes narrower than this were joined; 0 when none was */
};

void gantt_release(struct gantt *gantt);
/* Joins boxes narrower than a column (seconds) that begin in the same cell of a lane: those of a kind become one box,
 * as long as they are together. So the time a rank spends on a kind of work in a lane stays what it is. */
void gantt_merge(struct gantt *gantt, double column);
/* Writes the data and the script of the boxes. */
void gantt_script(const struct chart *chart, const struct gantt *gantt);

#endif
