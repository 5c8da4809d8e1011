/* The Gantt chart: boxes that are too narrow to be told apart, and works that overlap. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gantt.h"

static bool alike(const struct box *a, const struct box *b)
{
    return strcmp(a->what, b->what) == 0 && a->shaded == b->shaded;
}

/* The boxes first..last-1 lie in one cell of one lane. Those of a kind become one, kinds in the order of the first. */
static void join(const struct box *boxes, size_t first, size_t last, struct boxes *joined)
{
    double at = boxes[first].start;
    size_t begin = joined->count;

    for (size_t i = first; i < last; i++) {
        size_t k = begin;

        while (k < joined->count && !alike(&joined->items[k], &boxes[i]))
            k++;
        if (k == joined->count) {
            *GROW(joined) = boxes[i];
            continue;
        }
        joined->items[k].end += boxes[i].end - boxes[i].start;
        joined->items[k].communication += boxes[i].communication;
        joined->items[k].spans++;
        joined->items[k].name = "";
    }
    for (size_t k = begin; k < joined->count && joined->count - begin < last - first; k++) {
        struct box *box = &joined->items[k];
        double width = box->end - box->start;

        box->start = at;
        box->end = at += width;
        box->overlapped = false;
    }
}

void gantt_merge(struct gantt *gantt, double column)
{
    const struct box *boxes = gantt->boxes.items;
    struct boxes joined = {0};
    double cell = GANTT_CELL * column;

    for (size_t i = 0, next; i < gantt->boxes.count; i = next) {
        double here = floor(boxes[i].start / cell);

        for (next = i; next < gantt->boxes.count; next++)
            if (boxes[next].end - boxes[next].start >= column || floor(boxes[next].start / cell) > here ||
                boxes[next].rank != boxes[i].rank || boxes[next].lane != boxes[i].lane)
                break;
        next = next > i ? next : i + 1;
        join(boxes, i, next, &joined);
    }
    for (size_t i = 0; i < joined.count; i++)
        if (joined.items[i].spans > 1 && joined.items[i].lane == gantt->compute)
            gantt->column = column;
    free(gantt->boxes.items);
    gantt->boxes = joined;
}

/* Whether both are works of one lane, whole, and one after another without a pause. */
static bool together(const struct box *box, const struct box *next)
{
    return box->overlapped && next->rank == box->rank && next->lane == box->lane && box->spans == 1 &&
           next->spans == 1 && fabs(next->start - box->end) <= 1e-9 * next->end;
}

void gantt_overlap(struct gantt *gantt)
{
    struct box *boxes = gantt->boxes.items;

    for (size_t i = 0, last; i < gantt->boxes.count; i = last + 1) {
        double start = boxes[i].start, whole, at = 0;

        for (last = i; last + 1 < gantt->boxes.count && together(&boxes[last], &boxes[last + 1]); last++)
            ;
        whole = boxes[last].end - start;
        for (size_t k = i; k <= last && last > i && whole > 0; k++) {
            double share = (boxes[k].end - boxes[k].start) / whole;

            boxes[k].start = start;
            boxes[k].end = start + whole;
            boxes[k].low = at;
            boxes[k].high = at += share;
        }
    }
}
