/* The Gantt chart of many ranks: an image of all, stage by stage downwards, time to the right. A cell has the colour of
 * one kind of work. What each cell owes to the others is carried to the next one of its row, so that every row has each
 * kind as often as its ranks spend time on it: idle time that is shorter than a cell does not vanish, as it would where
 * cells showed the commonest kind, and colours do not mix. */
#include <math.h>
#include <stdlib.h>

#include "gantt.h"

enum { ROWS = 240, COLUMNS = 600, KINDS = TONE_COUNT + 1 };

/* Adds the box to the seconds of its row's cells, what it exchanges as communication. */
static void add_box(const struct gantt *gantt, const struct box *box, double *seconds)
{
    double width = (gantt->to - gantt->from) / gantt->image.columns;
    double start = fmax(box->start, gantt->from), end = fmin(box->end, gantt->to);
    double exchanged = box->communication / (box->end - box->start);
    int first = (int)((start - gantt->from) / width);

    for (int c = first; c < gantt->image.columns && gantt->from + c * width < end; c++) {
        double from = gantt->from + c * width, part = fmin(end, from + width) - fmax(start, from);

        if (part <= 0)
            continue;
        seconds[c * KINDS + box->kind] += part * (1 - exchanged);
        seconds[c * KINDS + TONE_COMMUNICATION] += part * exchanged;
    }
}

static void add_rank(const struct gantt *gantt, int rank, double *seconds)
{
    for (size_t i = gantt_first(gantt, rank), last = gantt_first(gantt, rank + 1); i < last; i++) {
        const struct box *box = &gantt->boxes.items[i];

        if (box->lane == gantt->compute && box->end > box->start)
            add_box(gantt, box, seconds);
    }
}

/* The kinds of the cells of one row, in which `ranks` ranks are joined. */
static void paint(const struct gantt *gantt, double *seconds, int ranks, unsigned char *cells)
{
    double whole = ranks * (gantt->to - gantt->from) / gantt->image.columns, owed[KINDS] = {0};

    for (int c = 0; c < gantt->image.columns; c++) {
        double *cell = &seconds[c * KINDS], busy = 0;
        int most = TONE_COUNT;

        for (int k = 0; k < TONE_COUNT; k++)
            busy += cell[k];
        cell[TONE_COUNT] = fmax(whole - busy, 0);
        for (int k = 0; k < KINDS; k++)
            owed[k] += cell[k];
        for (int k = 0; k < KINDS; k++)
            most = owed[k] > owed[most] ? k : most;
        owed[most] -= whole;
        cells[c] = (unsigned char)most;
    }
}

/* The i-th rank of the image: all of the first stage, then all of the second. */
static int rank_at(const struct image *image, int i)
{
    int replicas = image->ranks / image->pipeline;

    return image->first + i % replicas * image->pipeline + i / replicas;
}

void gantt_image(struct gantt *gantt)
{
    struct image *image = &gantt->image;
    double *seconds;

    image->rows = image->ranks < ROWS ? image->ranks : ROWS;
    image->columns = COLUMNS;
    image->cells = xcalloc((size_t)image->rows * COLUMNS, sizeof *image->cells);
    seconds = xcalloc((size_t)COLUMNS * KINDS, sizeof *seconds);
    for (int row = 0; row < image->rows; row++) {
        int first = (int)((long long)row * image->ranks / image->rows);
        int next = (int)((long long)(row + 1) * image->ranks / image->rows);

        for (int k = 0; k < COLUMNS * KINDS; k++)
            seconds[k] = 0;
        for (int i = first; i < next; i++)
            add_rank(gantt, rank_at(image, i), seconds);
        paint(gantt, seconds, next - first, &image->cells[(size_t)row * COLUMNS]);
    }
    free(seconds);
}
