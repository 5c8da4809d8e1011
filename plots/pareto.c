/* The pareto chart: two metrics of a sweep's points, and the front: the points that no other one betters in both. They
 * are labelled by the axes in which they differ. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

enum {
    WIDTH = 900, LEFT = 84, RIGHT = 22,  /* pixels of the picture and its margins */
    HIGH = 440,                      /* and of the chart proper */
    LETTER = 7, LINE = 14,           /* of a label's letter, generously, and of its line */
    MARK = 7,                        /* from the middle of a front's point to its edge, and a little */
    LONGEST = 60,                    /* letters of a label */
};

struct rectangle { double left, low, right, high; };
struct point {
    double x, y;                     /* SI units */
    const json_t *row;
    bool front;
    int alike;                       /* further points in the same place, of the front's */
    double across, up;               /* pixels, from the chart's lower left corner */
    const char *label;               /* of the front's */
    struct rectangle box;            /* where it stands; right 0: nowhere */
    int side;                        /* of the point: -1 left, 0 above or below, 1 right */
};

struct pareto {
    struct plot_key x, y;
    struct points { struct point *items; size_t count, capacity; } points;
    double x_size, y_size;           /* of the largest numbers */
    struct quantity x_quantity, y_quantity;
    double x_from, x_to, y_from, y_to;   /* of the axes, SI units */
    size_t front, labelled;
};

static int read_points(const struct chart *chart, struct pareto *pareto)
{
    json_t *rows = chart->rows->rows;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct point point = {.x = row_number(row, pareto->x.name), .y = row_number(row, pareto->y.name), .row = row};

        if (strcmp(row_status(row), "ok") == 0 && !isnan(point.x) && !isnan(point.y))
            *GROW(&pareto->points) = point;
    }
    for (size_t i = 0; i < pareto->points.count; i++) {
        pareto->x_size = fmax(pareto->x_size, fabs(pareto->points.items[i].x));
        pareto->y_size = fmax(pareto->y_size, fabs(pareto->points.items[i].y));
    }
    if (pareto->points.count)
        return 0;
    return error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no row that ran has both numbers '%s' "
                     "and '%s'", pareto->x.name, pareto->y.name);
}

/* By x, the better first; then by y. */
static int compare_points(const void *left, const void *right, void *context)
{
    const struct point *a = left, *b = right;
    const struct pareto *pareto = context;
    double x = pareto->x.largest ? b->x - a->x : a->x - b->x, y = pareto->y.largest ? b->y - a->y : a->y - b->y;

    return x < 0 ? -1 : x > 0 ? 1 : (y > 0) - (y < 0);
}

/* But for rounding. */
static bool is_alike(const struct pareto *pareto, const struct point *a, const struct point *b)
{
    return fabs(a->x - b->x) <= 1e-9 * pareto->x_size && fabs(a->y - b->y) <= 1e-9 * pareto->y_size;
}

/* Sorted by x, a point is of the front where its y is better than that of all before it. */
static void find_front(struct pareto *pareto)
{
    struct points *points = &pareto->points;
    double best = pareto->y.largest ? -INFINITY : INFINITY;
    struct point *last = NULL;

    qsort_r(points->items, points->count, sizeof *points->items, compare_points, pareto);
    for (size_t i = 0; i < points->count; i++) {
        struct point *point = &points->items[i];

        if (last && is_alike(pareto, last, point)) {
            last->alike++;
            continue;
        }
        point->front = pareto->y.largest ? point->y > best : point->y < best;
        best = point->front ? point->y : best;
        last = point->front ? point : last;
        pareto->front += point->front;
    }
}

/* From 0 where the numbers are not far from it for their spread; else with some room on both sides. */
static void range_of(double least, double most, double *from, double *to)
{
    double room = most > least ? 0.06 * (most - least) : fmax(0.1 * fabs(most), 1e-12);

    *from = least > room && least < 0.5 * most ? 0 : least - room;
    *to = most + room;
}

static void find_ranges(struct arena *arena, struct pareto *pareto)
{
    double x_least = INFINITY, x_most = -INFINITY, y_least = INFINITY, y_most = -INFINITY;

    for (size_t i = 0; i < pareto->points.count; i++) {
        const struct point *point = &pareto->points.items[i];

        x_least = fmin(x_least, point->x);
        x_most = fmax(x_most, point->x);
        y_least = fmin(y_least, point->y);
        y_most = fmax(y_most, point->y);
    }
    range_of(x_least, x_most, &pareto->x_from, &pareto->x_to);
    range_of(y_least, y_most, &pareto->y_from, &pareto->y_to);
    pareto->x_quantity = quantity_of(arena, pareto->x.name, pareto->x_size);
    pareto->y_quantity = quantity_of(arena, pareto->y.name, pareto->y_size);
    for (size_t i = 0; i < pareto->points.count; i++) {
        struct point *point = &pareto->points.items[i];

        point->across = (point->x - pareto->x_from) / (pareto->x_to - pareto->x_from) * (WIDTH - LEFT - RIGHT);
        point->up = (point->y - pareto->y_from) / (pareto->y_to - pareto->y_from) * HIGH;
    }
}

/* "tensor 8, pipeline 2": of the axes in which points of the front differ. */
static void label_front(const struct chart *chart, struct pareto *pareto)
{
    const char *const *keys = point_keys(chart);
    const json_t *first = NULL;

    for (size_t i = 0; i < pareto->points.count && !first; i++)
        first = pareto->points.items[i].front ? pareto->points.items[i].row : NULL;
    for (size_t k = 0; keys[k]; k++) {
        bool differs = pareto->front == 1;

        for (size_t i = 0; i < pareto->points.count; i++) {
            const struct point *point = &pareto->points.items[i];

            differs |= point->front && !json_equal(row_value(point->row, keys[k]), row_value(first, keys[k]));
        }
        for (size_t i = 0; i < pareto->points.count && differs; i++) {
            struct point *point = &pareto->points.items[i];

            if (point->front)
                point->label = arena_printf(chart->arena, "%s%s%s %s", point->label ? point->label : "",
                                            point->label ? ", " : "", short_key(keys[k]),
                                            json_label(chart->arena, row_value(point->row, keys[k])));
        }
    }
}

static bool overlap(const struct rectangle *a, const struct rectangle *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high && b->low < a->high;
}

/* Whether the line from the point to the label's nearest edge crosses the box. It is looked at in so many steps. */
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

/* The end of a label's line, on its edge. */
static void anchor_of(const struct point *point, const struct rectangle *box, double *across, double *up)
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
static bool is_free(const struct pareto *pareto, const struct point *own, const struct rectangle *box, bool all_points)
{
    double across, up;

    if (box->left < 3 || box->low < 3 || box->right > WIDTH - LEFT - RIGHT - 3 || box->high > HIGH - 3 ||
        on_front(pareto, box))
        return false;
    anchor_of(own, box, &across, &up);
    for (size_t i = 0; i < pareto->points.count; i++) {
        const struct point *other = &pareto->points.items[i];
        double size = other->front ? MARK : 4;
        const struct rectangle mark = {other->across - size, other->up - size, other->across + size, other->up + size};
        double end, height;

        if ((other->front || all_points) && overlap(box, &mark))
            return false;
        if (other->box.right <= 0)
            continue;
        anchor_of(other, &other->box, &end, &height);
        if (overlap(box, &other->box) || line_crosses(own, across, up, &other->box) ||
            line_crosses(other, end, height, box) || lines_cross(own, across, up, other, end, height))
            return false;
    }
    return true;
}

/* The nearest free place around the point, on the side of what is better first: no point stands there. */
static bool place_label(const struct pareto *pareto, struct point *point, bool all_points)
{
    static const double distances[] = {10, 20, 32, 46, 62, 80, 100, 124, 150, 180, 215, 250, 290, 330, 370};
    static const double turns[] = {0, 15, -15, 30, -30, 45, -45, 60, -60, 75, -75, 90, -90, 120, -120, 150, -150, 180};
    double wide = (double)strlen(point->label) * LETTER, degree = atan(1) / 45;
    double better = atan2(pareto->y.largest ? 1 : -1, pareto->x.largest ? 1 : -1);

    for (size_t d = 0; d < COUNT(distances); d++)
        for (size_t t = 0; t < COUNT(turns); t++) {
            double across = cos(better + turns[t] * degree), up = sin(better + turns[t] * degree);
            double x = point->across + distances[d] * across, y = point->up + distances[d] * up;
            int side = across < -0.3 ? -1 : across > 0.3;
            struct rectangle box = {.left = x - 0.5 * wide * (1 - side), .low = y - 0.5 * LINE * (1 - up)};

            box.right = box.left + wide;
            box.high = box.low + LINE;
            if (is_free(pareto, point, &box, all_points)) {
                point->box = box;
                point->side = side;
                return true;
            }
        }
    return false;
}

static void place_labels(const struct chart *chart, struct pareto *pareto)
{
    for (size_t i = 0; i < pareto->points.count; i++) {
        struct point *point = &pareto->points.items[i];

        if (!point->front || !point->label)
            continue;
        point->label = text_clean(chart->arena, point->label, LONGEST);
        if (point->alike)
            point->label = arena_printf(chart->arena, "%s (and %d alike)", point->label, point->alike);
        pareto->labelled += place_label(pareto, point, true) || place_label(pareto, point, false);
    }
}

/* Writes the points of the front, or those that are not of it. */
static void write_points(const struct chart *chart, const struct pareto *pareto, bool front)
{
    for (size_t i = 0; i < pareto->points.count; i++) {
        const struct point *point = &pareto->points.items[i];
        double across, up;

        if (point->front != front)
            continue;
        fprintf(chart->data, "%d\t%.10g\t%.10g\t%s\t", point->front, point->x * pareto->x_quantity.scale,
                point->y * pareto->y_quantity.scale, text_escape(chart->arena, point->label ? point->label : ""));
        if (point->box.right <= 0) {
            fputs("NaN\tNaN\tNaN\tNaN\tNaN\n", chart->data);
            continue;
        }
        anchor_of(point, &point->box, &across, &up);
        fprintf(chart->data, "%.6g\t%.6g\t%.6g\t%.6g\t%d\n",
                0.5 * (point->box.left * (1 + point->side) + point->box.right * (1 - point->side)),
                0.5 * (point->box.low + point->box.high), across, up, point->side);
    }
}

/* The front is together, because a line ends where a point is left out. */
static void write_data(const struct chart *chart, const struct pareto *pareto)
{
    fputs("front\tx\ty\tlabel\tlabel_x\tlabel_y\tline_x\tline_y\tside\n", chart->data);
    write_points(chart, pareto, true);
    write_points(chart, pareto, false);
}

/* The front goes on at its last value until the next point betters it. */
static void write_plot(FILE *out)
{
    fputs("\n# columns: 1 whether of the front; 2 x; 3 y; 4 label; 5 and 6 its place, 7 and 8 the end of its line:\n"
          "# pixels from the lower left corner; 9 on which side of the point it is\n"
          "across(pixels) = x_from + pixels*(x_to - x_from)/(width - left - right)\n"
          "up(pixels) = y_from + pixels*(y_to - y_from)/(height - top - bottom)\n"
          "place(side) = $9 == side ? across($5) : NaN\n"
          "label_font = at_size(0.9*font_size)\n"
          "set style textbox opaque noborder margins 0.4,0.2\n"
          "plot data using ($1 == 0 ? $2 : NaN):3 with points pointtype 7 pointsize 0.7 linecolor rgb other_colour \\\n"
          "        title \"bettered by others\", \\\n"
          "    data using 2:3:(across($7) - $2):(up($8) - $3) with vectors nohead \\\n"
          "        linewidth 0.6 linecolor rgb line_colour notitle, \\\n",
          out);
    fputs("    data using ($1 == 1 ? $2 : NaN):3 with steps linewidth 1.5 linecolor rgb front_colour notitle, \\\n"
          "    data using ($1 == 1 ? $2 : NaN):3 with points pointtype 7 pointsize 1.3 linecolor rgb front_colour \\\n"
          "        title \"front\", \\\n"
          "    data using (place(-1)):(up($6)):4 with labels boxed right font label_font notitle, \\\n"
          "    data using (place(0)):(up($6)):4 with labels boxed center font label_font notitle, \\\n"
          "    data using (place(1)):(up($6)):4 with labels boxed left font label_font notitle\n", out);
}

static void write_script(const struct chart *chart, const struct pareto *pareto)
{
    struct layout layout = {
        .width = WIDTH, .left = LEFT, .right = RIGHT, .bottom = CHART_AXIS_HEIGHT, .entries = 2,
        .longest = (int)strlen("bettered by others"), .title = sweep_title(chart),
        .lines = {arena_printf(chart->arena, "%s is better in '%s', %s in '%s'",
                               pareto->x.largest ? "more" : "less", pareto->x.name,
                               pareto->y.largest ? "more" : "less", pareto->y.name), sweep_outcome(chart)},
    };
    FILE *out = chart->script;

    if (pareto->labelled < pareto->front)
        layout.lines[2] = arena_printf(chart->arena, "%zu of the front's %zu points have room for a label; pareto.tsv "
                                       "has all", pareto->labelled, pareto->front);
    layout.top = layout_top(&layout);
    layout.height = layout.top + layout.bottom + HIGH;
    script_begin(chart, &layout);
    fprintf(out, "front_colour = 0xd55e00\nother_colour = 0x9a9a9a\n\n"
                 "x_from = %.9g; x_to = %.9g; y_from = %.9g; y_to = %.9g\n",
            pareto->x_from * pareto->x_quantity.scale, pareto->x_to * pareto->x_quantity.scale,
            pareto->y_from * pareto->y_quantity.scale, pareto->y_to * pareto->y_quantity.scale);
    fputs("set xrange [x_from:x_to]\nset yrange [y_from:y_to]\nset grid linecolor rgb 0xe6e6e6 linewidth 1\n", out);
    fprintf(out, "set xlabel \"%s\" offset 0,0.3\nset ylabel \"%s\" offset 0.8,0\n",
            text_escape(chart->arena, pareto->x_quantity.label), text_escape(chart->arena, pareto->y_quantity.label));
    write_plot(out);
    script_end(chart);
}

int pareto_draw(struct chart *chart)
{
    struct pareto pareto = {.x = chart->rows->x, .y = chart->rows->y};
    int failed = read_points(chart, &pareto) || chart_open(chart);

    if (!failed) {
        find_front(&pareto);
        find_ranges(chart->arena, &pareto);
        label_front(chart, &pareto);
        place_labels(chart, &pareto);
        write_data(chart, &pareto);
        write_script(chart, &pareto);
    }
    free(pareto.points.items);
    return failed ? -1 : 0;
}
