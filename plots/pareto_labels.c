/* The pareto chart: where the labels of the front stand, so that they hide nothing. */
#include "pareto.h"

#include <math.h>
#include <string.h>

enum {
    LETTER = 13, LINE = 14,          /* of a label's em, with some room, and of its line */
    MARK = 7,                        /* from the middle of a front's point to its edge, and a little */
};

static bool overlap(const struct rectangle *a, const struct rectangle *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high && b->low < a->high;
}

/* Whether the line from the point to the label's nearest edge crosses the box. Looks at a number of points of the
 * line. */
static bool line_crosses(const struct point *from, double across, double up, const struct rectangle *box)
{
    enum { STEPS = 24 };

    for (int i = 1; i <= STEPS; i++) {
        double x = from->across + (across - from->across) * i / STEPS, y = from->up + (up - from->up) * i / STEPS;

        if (x > box->left && x < box->right && y > box->low && y < box->high)
            return true;
    }
    return false;
}

/* On which side of the line from a to b the place is. */
static double side_of(double a_across, double a_up, double b_across, double b_up, double across, double up)
{
    return (b_across - a_across) * (up - a_up) - (b_up - a_up) * (across - a_across);
}

/* Whether the lines of two labels, from their points to these ends, cross. */
static bool lines_cross(const struct point *a, double a_across, double a_up, const struct point *b, double b_across,
                        double b_up)
{
    return side_of(a->across, a->up, a_across, a_up, b->across, b->up) *
           side_of(a->across, a->up, a_across, a_up, b_across, b_up) < 0 &&
           side_of(b->across, b->up, b_across, b_up, a->across, a->up) *
           side_of(b->across, b->up, b_across, b_up, a_across, a_up) < 0;
}

void pareto_anchor(const struct point *point, const struct rectangle *box, double *across, double *up)
{
    *across = fmin(fmax(point->across, box->left), box->right);
    *up = fmin(fmax(point->up, box->low), box->high);
}

/* Whether the box is on the front's line, which goes from each point to the next across first, then up. */
static bool on_front(const struct pareto *pareto, const struct rectangle *box)
{
    const struct point *last = NULL;

    for (size_t i = 0; i < pareto->points.count; i++) {
        const struct point *next = &pareto->points.items[i];

        if (!next->front)
            continue;
        if (last) {
            const struct rectangle flat = {fmin(last->across, next->across), last->up - 1,
                                           fmax(last->across, next->across), last->up + 1};
            const struct rectangle steep = {next->across - 1, fmin(last->up, next->up), next->across + 1,
                                            fmax(last->up, next->up)};

            if (overlap(box, &flat) || overlap(box, &steep))
                return true;
        }
        last = next;
    }
    return false;
}

/* Whether the label has this place for itself: inside the chart, on no other label, mark or line. */
static bool is_free(const struct pareto *pareto, const struct point *own, const struct rectangle *box)
{
    double across, up;

    if (box->left < 3 || box->low < 3 || box->right > pareto->wide - 3 || box->high > pareto->high - 3 ||
        on_front(pareto, box))
        return false;
    pareto_anchor(own, box, &across, &up);
    for (size_t i = 0; i < pareto->points.count; i++) {
        const struct point *other = &pareto->points.items[i];
        double size = other->front ? MARK : 4;
        const struct rectangle mark = {other->across - size, other->up - size, other->across + size, other->up + size};
        double end, height;

        if (overlap(box, &mark))
            return false;
        if (other->box.right <= 0)
            continue;
        pareto_anchor(other, &other->box, &end, &height);
        if (overlap(box, &other->box) || line_crosses(own, across, up, &other->box) ||
            line_crosses(other, end, height, box) || lines_cross(own, across, up, other, end, height))
            return false;
    }
    return true;
}

/* The nearest free place around the point, on the side of what is better first: no point stands there. */
static bool place_label(const struct pareto *pareto, struct point *point)
{
    static const double distances[] = {10, 20, 32, 46, 62, 80, 100, 124, 150, 180, 215, 250, 290, 330, 370};
    static const double turns[] = {0, 15, -15, 30, -30, 45, -45, 60, -60, 75, -75, 90, -90, 120, -120, 150, -150, 180};
    double wide = text_ems(point->label) * LETTER, degree = atan(1) / 45;
    double better = atan2(pareto->y.largest ? 1 : -1, pareto->x.largest ? 1 : -1);

    for (size_t d = 0; d < COUNT(distances); d++)
        for (size_t t = 0; t < COUNT(turns); t++) {
            double across = cos(better + turns[t] * degree), up = sin(better + turns[t] * degree);
            double x = point->across + distances[d] * across, y = point->up + distances[d] * up;
            int side = across < -0.3 ? -1 : across > 0.3;
            struct rectangle box = {.left = x - 0.5 * wide * (1 - side), .low = y - 0.5 * LINE * (1 - up)};

            box.right = box.left + wide;
            box.high = box.low + LINE;
            if (is_free(pareto, point, &box)) {
                point->box = box;
                point->side = side;
                return true;
            }
        }
    return false;
}

void pareto_place_labels(struct pareto *pareto)
{
    pareto->labelled = 0;
    for (size_t i = 0; i < pareto->points.count; i++)
        pareto->points.items[i].box = (struct rectangle){0};
    for (size_t i = 0; i < pareto->points.count; i++) {
        struct point *point = &pareto->points.items[i];

        if (!point->front || !point->label)
            continue;
        pareto->labelled += place_label(pareto, point);
    }
}
