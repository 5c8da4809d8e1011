/* The pareto chart: two metrics of a sweep's points, and the front: the points that no other one betters in both. They
 * are labelled by the axes in which they differ. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pareto.h"

enum {
    WIDTH = 900, LEFT = 84, RIGHT = 22,  /* pixels of the picture where nobody says more, and its margins */
    HIGH = 440,                      /* and of the chart proper */
    LONGEST = 60,                    /* letters of a label */
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

/* Points are sorted by x: one is on the front where its y is better than the y of all points before it. */
static void find_front(struct pareto *pareto)
{
    struct points *points = &pareto->points;
    double best = pareto->y.largest ? -INFINITY : INFINITY;
    struct point *last = NULL;

    array_sort_by(points->items, points->count, sizeof *points->items, compare_points, pareto);
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

        point->across = (point->x - pareto->x_from) / (pareto->x_to - pareto->x_from) * pareto->wide;
        point->up = (point->y - pareto->y_from) / (pareto->y_to - pareto->y_from) * pareto->high;
    }
}

/* "TP8 PP2": of the axes in which points of the front differ. */
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
                point->label = arena_printf(chart->arena, "%s%s%s", point->label ? point->label : "",
                                            point->label ? " " : "",
                                            short_value(chart->arena, keys[k], row_value(point->row, keys[k])));
        }
    }
    for (size_t i = 0; i < pareto->points.count; i++) {
        struct point *point = &pareto->points.items[i];

        if (point->label)
            point->label = text_clean(chart->arena, point->label, LONGEST);
        if (point->label && point->alike)
            point->label = arena_printf(chart->arena, "%s (and %d alike)", point->label, point->alike);
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
        pareto_anchor(point, &point->box, &across, &up);
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
          "        title \"dominated\", \\\n"
          "    data using 2:3:(across($7) - $2):(up($8) - $3) with vectors nohead \\\n"
          "        linewidth 0.6 linecolor rgb line_colour notitle, \\\n",
          out);
    fputs("    data using ($1 == 1 ? $2 : NaN):3 with steps linewidth 1.5 linecolor rgb front_colour notitle, \\\n"
          "    data using ($1 == 1 ? $2 : NaN):3 with points pointtype 7 pointsize 1.3 linecolor rgb front_colour \\\n"
          "        title \"Pareto front\", \\\n"
          "    data using (place(-1)):(up($6)):4 with labels boxed right font label_font notitle, \\\n"
          "    data using (place(0)):(up($6)):4 with labels boxed center font label_font notitle, \\\n"
          "    data using (place(1)):(up($6)):4 with labels boxed left font label_font notitle\n", out);
}

/* Sets the size of the chart proper too. */
static void lay_out(const struct chart *chart, struct pareto *pareto, const char *note, struct layout *layout)
{
    *layout = (struct layout){
        .width = layout_width(chart, WIDTH), .left = LEFT, .right = RIGHT, .bottom = CHART_AXIS_HEIGHT, .entries = 2,
        .longest = (int)strlen("Pareto front"), .title = sweep_title(chart),
        .lines = {arena_printf(chart->arena, "%s: %s is better; %s: %s is better", pareto->x.name,
                               pareto->x.largest ? "more" : "less", pareto->y.name,
                               pareto->y.largest ? "more" : "less"), sweep_outcome(chart), note},
    };
    pareto->wide = layout->width - LEFT - RIGHT;
    pareto->high = layout_height(chart, layout, HIGH, 200);
}

/* Places points and labels. A line says how many labels have no room; it takes room itself. */
static void arrange(const struct chart *chart, struct pareto *pareto, struct layout *layout)
{
    size_t said = pareto->front;
    const char *note = NULL;

    do {
        if (note)
            said = pareto->labelled;
        lay_out(chart, pareto, note, layout);
        find_ranges(chart->arena, pareto);
        pareto_place_labels(pareto);
        note = arena_printf(chart->arena, "%zu of the front's %zu points have room for a label; %s.tsv has all",
                            pareto->labelled, pareto->front, chart->name);
    } while (pareto->labelled < said);
}

static void write_script(const struct chart *chart, const struct pareto *pareto, const struct layout *layout)
{
    FILE *out = chart->script;

    script_begin(chart, layout);
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
    struct layout layout;
    int failed = read_points(chart, &pareto) || chart_open(chart);

    if (!failed) {
        find_front(&pareto);
        label_front(chart, &pareto);
        arrange(chart, &pareto, &layout);
        write_data(chart, &pareto);
        write_script(chart, &pareto, &layout);
    }
    free(pareto.points.items);
    return failed ? -1 : 0;
}
