/* gantt: what the parts of the Gantt chart share: reading spans (gantt_read.c), choosing rows (gantt.c), joining boxes
 * that are too narrow (gantt_merge.c), choosing labels (gantt_labels.c), title and headings (gantt_title.c), drawing
 * boxes (gantt_script.c) and the image of all ranks (gantt_image.c). */
#ifndef DTSIM_GANTT_H
#define DTSIM_GANTT_H

#include "chart.h"

enum {
    GANTT_RUNS = 12,         /* one above the other, at most */
    GANTT_RANKS = 64,        /* rows at most, of all runs; of more ranks the first, middle and last are rows, and an
                              * image has all where the chart is of one run */
    GANTT_PART = 8,          /* rows of each of these three parts */
    GANTT_STRIPS = 4,        /* kinds of communication lanes told apart; further ones share the last strip */
    GANTT_LANES = 8,         /* kinds of lanes that are named */
    GANTT_STAGES = 3,        /* of a rank, named in its label */
    GANTT_COLUMNS = 800,     /* columns of a picture (half of them where rows are low, so that pictures stay small): a
                              * box narrower than one joins its neighbours in a cell */
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

/* One run. Zero-initialise; gantt_release when done. */
struct gantt {
    struct boxes boxes;
    struct gantt_lanes { struct gantt_lane { const char *name; int strip; } *items; size_t count, capacity; } lanes;
    int compute;             /* the lane of that name; -1: there is none */
    struct row {
        int rank;
        double top;          /* in rows, from the run's first; parts are apart */
        int stages[GANTT_STAGES], nstages;   /* nstages may count one more than are kept */
        const char *gpu;     /* its name, where nodes are of several kinds; else NULL */
        double slower;       /* a straggler: how many times as long its kernels take; else 1 */
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
    bool parts;              /* its rows are the first, middle and last ranks */
    bool shaded;             /* some box is */
    double until;            /* the run's end, seconds */
    double from, to;         /* of the time axis, seconds; the same of all runs */
    double steady_from, steady_to;   /* the window that is measured, seconds; 0, 0: the whole run is */
    double column;           /* works narrower than this were joined; 0 when none was */
    const char *note;        /* which ranks these are; NULL: all */
    double top;              /* of the run's first row in the chart, in rows */
};

/* The runs of the chart, the first on top. */
struct gantt_stack {
    struct gantt runs[GANTT_RUNS];
    int count;
    const char *lanes[GANTT_LANES];      /* "send-next", ...: up to their dot; below the rows */
    int nlanes;
    int nstrips;             /* that they have: as many, or GANTT_STRIPS */
    bool headings;           /* above each run: of several, or where a person names it */
    double rows;             /* of all runs, with the room for their headings */
};

/* The spans of the chart's run of that number, sorted by rank, lane and start. Their texts live in `tsv`. */
struct tsv;
int gantt_read(struct gantt *gantt, const struct chart *chart, int run, struct tsv *tsv);
void gantt_release(struct gantt *gantt);
/* The first box of that rank or a later one. */
size_t gantt_first(const struct gantt *gantt, int rank);
/* Joins boxes narrower than a column (seconds) that begin in the same cell of a lane: all boxes of one kind become one
 * box, of the sum of their times. So a rank's time for a kind of work in a lane stays the same. */
void gantt_merge(struct gantt *gantt, double column);
/* Draws works that overlap one above the other, over the time that all take, each as high as its share. */
void gantt_overlap(struct gantt *gantt);
/* Makes the cells of the image of its ranks, before boxes are dropped. */
void gantt_image(struct gantt *gantt);

/* A chart as it is laid out: pixels of a row, and of a second; the size of labels in points, and whether they are the
 * micro-batches' numbers without the letter that the colour stands for. */
struct gantt_scale { double row, second, label; bool numbers; };
/* A row's parts, as shares of its height: the room above and below, the boxes, each strip and the room above it. */
#define GANTT_TOP 0.06
#define GANTT_BETWEEN 0.02
struct gantt_heights { double box, strip; };
struct gantt_heights gantt_heights(const struct gantt_stack *stack);
/* The share of a box's height that is communication: its area is the seconds of it. */
double gantt_band(const struct box *box);
/* The picture's width in pixels: the shorter works can be seen, within reason. */
int gantt_width(const struct gantt_stack *stack);
/* Chooses the labels' size, and which rows have labels; the scale's other members are set. `pixels`: of the time
 * axis. */
void gantt_labels(struct gantt_stack *stack, double pixels, struct gantt_scale *scale);
const char *gantt_label(const struct box *box, const struct gantt_scale *scale);
/* Whether the label can be read on the box. */
bool gantt_label_fits(const struct gantt_stack *stack, const struct box *box, const struct gantt_scale *scale);

/* The title and the lines below it. */
void gantt_title(const struct chart *chart, const struct gantt_stack *stack, struct layout *layout);
/* The text above one of several runs, shortened to a number of pixels: "1f1b: iteration 401.9 ms, bubble 31.5 %". */
const char *gantt_heading(const struct chart *chart, const struct gantt_stack *stack, int run, const char *label,
                          double pixels);
/* Writes the data and the script. */
int gantt_script(const struct chart *chart, struct gantt_stack *stack);

#endif
