/* gantt: what the parts of the Gantt chart share: reading spans (gantt_read.c), choosing rows (gantt.c), joining boxes
 * that are too narrow (gantt_merge.c), drawing boxes (gantt_script.c) and the image of all ranks (gantt_image.c). */
#ifndef DTSIM_GANTT_H
#define DTSIM_GANTT_H

#include "chart.h"

enum {
    GANTT_RANKS = 64,        /* rows at most; of more ranks the first, middle and last are rows, and an image has all */
    GANTT_PART = 8,          /* rows of each of these three parts */
    GANTT_STRIPS = 4,        /* kinds of communication lanes told apart; further ones share the last strip */
    GANTT_STAGES = 3,        /* of a rank, named in its label */
    GANTT_COLUMNS = 800,     /* a box narrower than one of so many columns (half as many where rows are low, so that
                              * pictures stay small) joins its neighbours in a cell */
    GANTT_CELL = 4,          /* columns of a cell */
};

/* A span of spans.tsv, or several of one kind that are too narrow to be told apart. */
struct box {
    int rank, stage;
    int lane;                /* in gantt->lanes */
    int kind;                /* in tone_names, or, for communication, of which kind: see `what` */
    bool shaded;             /* of every second virtual stage of its rank */
    bool overlapped;         /* with the next span of its lane, each half of the time that both take */
    int spans;               /* how many it stands for */
    size_t order;            /* of the span in its file */
    double start, end;       /* seconds */
    double communication;    /* of these */
    double low, high;        /* the part of the height that it has, from above: 0 to 1 but where works overlap */
    const char *what, *name; /* the kind and the label, as spans.tsv has them; name "" for several */
};

struct boxes { struct box *items; size_t count, capacity; };

/* Zero-initialise; gantt_release when done. */
struct gantt {
    struct boxes boxes;
    struct gantt_lanes { struct gantt_lane { const char *name; int strip; } *items; size_t count, capacity; } lanes;
    const char *strips[GANTT_STRIPS];    /* "send-next", ...: lanes up to their dot */
    int nstrips;
    int compute;             /* the lane of that name; -1: there is none */
    struct row {
        int rank;
        double top;          /* in rows; parts are apart */
        int stages[GANTT_STAGES], nstages;   /* nstages may count one more than are kept */
        bool labelled;       /* every work has its name on it */
    } rows[GANTT_RANKS];
    int nrows;
    int ranks;               /* in the file */
    int stands_for;          /* replicas that each replica in the file stands for */
    struct image {
        int first, ranks;    /* of which ranks; 0: there is no image */
        int pipeline;        /* ranks of a replica: all ranks of a stage stand together */
        int rows, columns;
        unsigned char *cells;    /* the tone of each, row by row; TONE_COUNT: idle */
    } image;
    bool shaded;             /* some box is */
    double from, to;         /* of the time axis, seconds */
    bool cut;                /* the run goes on after it */
    double column;           /* works narrower than this were joined; 0 when none was */
    const char *note;        /* which ranks these are; NULL: all */
};

/* The spans, sorted by rank, lane and start. Their texts live in `tsv`. */
struct tsv;
int gantt_read(struct gantt *gantt, const struct chart *chart, struct tsv *tsv);
void gantt_release(struct gantt *gantt);
/* The first box of that rank or a later one. */
size_t gantt_first(const struct gantt *gantt, int rank);
/* Joins boxes narrower than a column (seconds) that begin in the same cell of a lane: those of a kind become one box,
 * as long as they are together. So the time a rank spends on a kind of work in a lane stays what it is. */
void gantt_merge(struct gantt *gantt, double column);
/* Draws works that overlap one above the other, over the time that all take, each as high as its share. */
void gantt_stack(struct gantt *gantt);
/* Makes the cells of the image of its ranks, before boxes are dropped. */
void gantt_image(struct gantt *gantt);
/* Writes the data and the script of the boxes. */
int gantt_script(const struct chart *chart, struct gantt *gantt);

#endif
