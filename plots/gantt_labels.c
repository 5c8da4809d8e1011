/* The Gantt chart: how wide the picture is, and which works bear their names. */
#include "gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { NARROWEST = 840, WIDEST = 1200, SLOT_PIXELS = 15 };

struct gantt_heights gantt_heights(const struct gantt_stack *stack)
{
    static const double strips[GANTT_STRIPS + 1] = {0, 0.20, 0.15, 0.12, 0.10};
    double strip = strips[stack->nstrips];

    return (struct gantt_heights){.box = 1 - 2 * GANTT_TOP - stack->nstrips * strip, .strip = strip};
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The length in seconds that the given share of the compute boxes falls short of; 0 when there are none. */
static double quantile(const struct gantt_stack *stack, double share)
{
    struct { double *items; size_t count, capacity; } times = {0};
    double found = 0;

    for (int r = 0; r < stack->count; r++) {
        const struct gantt *gantt = &stack->runs[r];

        for (size_t i = 0; i < gantt->boxes.count; i++)
            if (gantt->boxes.items[i].lane == gantt->compute)
                *GROW(&times) = gantt->boxes.items[i].end - gantt->boxes.items[i].start;
    }
    if (times.count) {
        array_sort(times.items, times.count, sizeof *times.items, compare);
        found = times.items[(size_t)(share * (double)(times.count - 1))];
    }
    free(times.items);
    return found;
}

int gantt_width(const struct gantt_stack *stack)
{
    double shorter = quantile(stack, 0.25), time = stack->runs->to - stack->runs->from;

    return (int)fmin(fmax(NARROWEST, 140 + SLOT_PIXELS * (shorter > 0 ? time / shorter : 0)), WIDEST);
}

double gantt_band(const struct box *box)
{
    double area = (box->end - box->start) * (box->high - box->low);

    return area > 0 ? fmin(box->communication / area, 1) : 0;
}

/* Works that are there as a whole: what is cut off at an edge need not be labelled. */
static bool is_work(const struct gantt *gantt, const struct box *box)
{
    return box->lane == gantt->compute && box->kind < TONE_PACK && (box->start > gantt->from || gantt->from <= 0) &&
           (box->end < gantt->to || gantt->until <= gantt->to);
}

const char *gantt_label(const struct box *box, const struct gantt_scale *scale)
{
    return scale->numbers && box->name[0] && box->name[1] ? box->name + 1 : box->name;
}

/* Pixels that a label takes for each point of its size: an em, and the room at its sides, for which sizes are chosen
 * and of which a part suffices. */
static const double EM = 1.34, ROOM = 0.5, LEAST_ROOM = 0.25;

/* In points: as high as the row and works that overlap allow, and small enough for the shorter works to hold a name. */
static double label_size(const struct gantt_stack *stack, double pixels, double row, bool numbers)
{
    double lowest = 1, longest = 0.6;

    for (int r = 0; r < stack->count; r++)
        for (size_t i = 0; i < stack->runs[r].boxes.count; i++) {
            const struct box *box = &stack->runs[r].boxes.items[i];
            if (!is_work(&stack->runs[r], box))
                continue;
            lowest = fmin(lowest, (box->high - box->low) * (1 - gantt_band(box)));
            longest = fmax(longest, text_ems(gantt_label(box, &(struct gantt_scale){.numbers = numbers})));
        }
    pixels *= quantile(stack, 0.1) / (stack->runs->to - stack->runs->from);
    return fmin(fmax(fmin(pixels / (EM * longest + ROOM), 8), 6),
                lowest * row * gantt_heights(stack).box / 1.4);
}

bool gantt_label_fits(const struct gantt_stack *stack, const struct box *box, const struct gantt_scale *scale)
{
    double ems = text_ems(gantt_label(box, scale)), width = (box->end - box->start) * scale->second;
    double height = (box->high - box->low) * (1 - gantt_band(box)) * gantt_heights(stack).box * scale->row;

    return ems > 0 && scale->label >= 5 && width > (EM * ems + LEAST_ROOM) * scale->label &&
           height > 1.35 * scale->label;
}

/* A row is labelled when every work in it can be. Boxes are sorted as rows are. Returns whether all rows are. */
static bool label_rows(const struct gantt_stack *stack, struct gantt *gantt, const struct gantt_scale *scale)
{
    bool all = true;
    size_t i = 0;

    for (int r = 0; r < gantt->nrows; r++) {
        struct row *row = &gantt->rows[r];

        row->labelled = true;
        for (; i < gantt->boxes.count && gantt->boxes.items[i].rank <= row->rank; i++)
            if (is_work(gantt, &gantt->boxes.items[i]) && !gantt_label_fits(stack, &gantt->boxes.items[i], scale))
                row->labelled = false;
        all &= row->labelled;
    }
    return all;
}

/* Names where they fit on all works, else numbers. */
void gantt_labels(struct gantt_stack *stack, double pixels, struct gantt_scale *scale)
{
    bool all = false;

    for (int numbers = 0; numbers < 2 && !all; numbers++) {
        scale->numbers = numbers;
        scale->label = label_size(stack, pixels, scale->row, numbers);
        all = true;
        for (int r = 0; r < stack->count; r++)
            all &= label_rows(stack, &stack->runs[r], scale);
    }
}
