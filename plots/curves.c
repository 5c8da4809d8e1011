#include "curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum {
    MOST_SERIES = 24, COLOURS = 6,   /* with five marks, all different */
    WIDTH = 840, LEFT = 84, RIGHT = 22, HIGH = 340,      /* pixels; of a panel: HIGH, or the next two */
    DASHED = 4,                      /* letters of a line in the legend, where lines differ in style */
    UPPER = 250, LOWER = 200, BETWEEN = 40,
};

/* Okabe and Ito's, without those that are faint as lines. */
static const char *const colours[COLOURS] = {"0x0072b2", "0xd55e00", "0x009e73", "0xcc79a7", "0xe69f00", "0x000000"};

/* Line styles, in gnuplot's lengths of lines and gaps. */
static const char *const dashes[] = {"1", "(10, 5)", "(3, 3)", "(10, 4, 2, 4)", "(20, 6)", "(2, 7)"};

struct series {
    const char *names[MOST_SERIES], *titles[MOST_SERIES];
    int colours[MOST_SERIES], dashes[MOST_SERIES];       /* which of them; from 0 */
    int count;
    bool dashed;                     /* lines differ in style */
};

static int series_of(const struct series *series, const char *name)
{
    for (int i = 0; i < series->count; i++)
        if (strcmp(series->names[i], name) == 0)
            return i;
    return -1;
}

/* The place of a text among those that are known, or of one more. */
static int place_of(const char **known, int *count, const char *text)
{
    int place = 0;

    while (place < *count && strcmp(known[place], text) != 0)
        place++;
    if (place == *count)
        known[(*count)++] = text;
    return place;
}

static int find_series(const struct chart *chart, const struct curves *curves, struct series *series)
{
    const char *looks[2][MOST_SERIES];
    int counts[2] = {0};

    for (size_t i = 0; i < curves->points.count; i++) {
        const struct curve_point *point = &curves->points.items[i];
        const char *name = point->series;

        if (series_of(series, name) >= 0)
            continue;
        if (series->count == MOST_SERIES)
            return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "%s: more than %d curves; draw fewer at a time",
                             chart->kind, MOST_SERIES);
        series->colours[series->count] = place_of(looks[0], &counts[0], point->colour ? point->colour : name);
        series->dashes[series->count] = place_of(looks[1], &counts[1], point->dash ? point->dash : "");
        series->names[series->count++] = name;
    }
    series->dashed = counts[1] > 1;
    return 0;
}

static int by_series_and_x(const void *left, const void *right, void *context)
{
    const struct curve_point *a = left, *b = right;
    int x = series_of(context, a->series), y = series_of(context, b->series);

    return x != y ? x - y : (a->x > b->x) - (a->x < b->x);
}

/* The points of a series, which are sorted; *count of them. */
static const struct curve_point *points_of(const struct curves *curves, const char *series, size_t *count)
{
    const struct curve_point *points = NULL;

    *count = 0;
    for (size_t i = 0; i < curves->points.count; i++) {
        if (strcmp(curves->points.items[i].series, series) != 0)
            continue;
        points = points ? points : &curves->points.items[i];
        ++*count;
    }
    return points;
}

/* Whether one curve hides the other. */
static bool coincide(const struct curves *curves, const char *first, const char *second)
{
    size_t n, m;
    const struct curve_point *a = points_of(curves, first, &n), *b = points_of(curves, second, &m);

    for (size_t i = 0; n == m && i < n; i++)
        if (a[i].x != b[i].x || fabs(a[i].y - b[i].y) > 2e-3 * fmax(a[0].y, b[0].y))
            return false;
    return n == m;
}

/* Names, and of a curve that hides another which one. */
static void name_series(struct arena *arena, const struct curves *curves, struct series *series)
{
    for (int i = 0; i < series->count; i++) {
        series->titles[i] = series->names[i];
        for (int k = 0; k < i && series->titles[i] == series->names[i]; k++)
            if (coincide(curves, series->names[k], series->names[i]))
                series->titles[i] = arena_printf(arena, "%s (same as %s)", series->names[i], series->names[k]);
    }
}

static void write_data(const struct chart *chart, const struct curves *curves, const struct series *series)
{
    fprintf(chart->data, "series\tname\tx\ty\treference%s\n", curves->lower ? "\tlower\tlower_reference" : "");
    for (size_t i = 0; i < curves->points.count; i++) {
        const struct curve_point *point = &curves->points.items[i];

        fprintf(chart->data, "%d\t%s\t%.17g\t%.17g\t", series_of(series, point->series),
                text_escape(chart->arena, point->series), point->x, point->y);
        fprintf(chart->data, isnan(point->reference) ? "NaN" : "%.17g", point->reference);
        if (curves->lower)
            fprintf(chart->data, isnan(point->lower_reference) ? "\t%.17g\tNaN" : "\t%.17g\t%.17g", point->lower,
                    point->lower_reference);
        putc('\n', chart->data);
    }
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Where all x are whole, tics stand at them and nowhere else, as far as their labels have room. */
static void write_tics(const struct chart *chart, const struct curves *curves, double from, double to)
{
    size_t count = curves->points.count;
    double *x = ARENA_ARRAY(chart->arena, double, count), last = -INFINITY;
    bool whole = !curves->x_format;

    for (size_t i = 0; i < count; i++) {
        x[i] = curves->points.items[i].x;
        whole &= x[i] >= 1 && x[i] < 1e6 && floor(x[i]) == x[i];
    }
    if (!whole)
        return;
    array_sort(x, count, sizeof *x, compare_numbers);
    fputs("set xtics ()\n", chart->script);
    for (size_t i = 0; i < count; i++) {
        double place = curves->log_x ? log(x[i] / from) / log(to / from) : (x[i] - from) / (to - from);
        double needed = 10 * (1 + floor(log10(x[i]))) + 12;

        if ((place - last) * (layout_width(chart, WIDTH) - LEFT - RIGHT) < needed)
            continue;
        fprintf(chart->script, "set xtics add (\"%.0f\" %.0f)\n", x[i], x[i]);
        last = place;
    }
}

/* The vertical axis of the upper panel, or of the lower one. */
static void write_range(const struct chart *chart, const struct curves *curves, bool lower)
{
    double least = INFINITY, most = lower ? 0 : curves->y_most;
    const char *format = lower ? curves->lower_format : NULL;
    FILE *out = chart->script;

    for (size_t i = 0; i < curves->points.count; i++) {
        const struct curve_point *point = &curves->points.items[i];
        double y = lower ? point->lower : point->y, reference = lower ? point->lower_reference : point->reference;

        least = fmin(least, fmin(y, reference));
        most = fmax(most, fmax(y, reference));
    }
    if (lower ? curves->log_lower : curves->log_y)
        fprintf(out, "set logscale y %g\nset yrange [%.9g:%.9g]\n", curves->base, least / 1.5, most * 1.5);
    else
        fprintf(out, "set yrange [0:%.9g]\n", most > 0 ? 1.06 * most : 1);
    if (format)
        fprintf(out, "set format y \"%s\"\n", format);
    fprintf(out, "set ylabel \"%s\" offset 0.8,0\n", lower ? curves->lower : curves->y);
}

static void write_axes(const struct chart *chart, const struct curves *curves)
{
    double least_x = INFINITY, most_x = 0, from, to;
    FILE *out = chart->script;

    for (size_t i = 0; i < curves->points.count; i++) {
        least_x = fmin(least_x, curves->points.items[i].x);
        most_x = fmax(most_x, curves->points.items[i].x);
    }
    from = curves->log_x ? 0.85 * least_x : 0;
    to = curves->log_x ? most_x / 0.85 : 1.05 * most_x;
    if (curves->log_x)
        fprintf(out, "set logscale x %g\n", curves->base);
    fprintf(out, "set xrange [%.9g:%.9g]\n", from, to);
    write_tics(chart, curves, from, to);
    if (curves->x_format)
        fprintf(out, "set format x \"%s\"\n", curves->x_format);
    write_range(chart, curves, false);
    fprintf(out, "set xlabel \"%s\" offset 0,0.3\nset grid linecolor rgb 0xdddddd linewidth 1\n", curves->x);
}

/* Curves on top of one another stay visible: later ones are thinner and have smaller marks. */
static double line_width(int colour)
{
    return fmax(3 - 0.3 * colour, 1.2);
}

static double mark_size(int colour)
{
    return fmax(1 - 0.08 * colour, 0.5);
}

static int mark_of(int colour)
{
    static const int marks[] = {7, 5, 9, 13, 11};

    return marks[colour % (int)COUNT(marks)];
}

/* The curves of a panel; the legend is the upper one's. */
static void write_plot(const struct chart *chart, const struct curves *curves, const struct series *series, bool lower)
{
    const char *ring = curves->rings ? "points pointtype 6 pointsize 1.5 linewidth 1.5"
                                     : "lines dashtype (6, 5) linewidth 1.5";
    int y = lower ? 6 : 4;
    FILE *out = chart->script;

    fprintf(out, "\n# columns: 1 series; 3 x; %d y; %d what y is compared with\nplot \\\n", y, y + 1);
    for (int i = 0; i < series->count; i++) {
        fprintf(out, "    data using ($1 == %d ? $3 : NaN):%d with linespoints linewidth %.2g pointtype %d \\\n"
                     "        pointsize %.2g linecolor rgb %s", i, y, line_width(series->colours[i]),
                mark_of(series->colours[i]), mark_size(series->colours[i]), colours[series->colours[i] % COLOURS]);
        if (series->dashed)
            fprintf(out, " dashtype %s", dashes[series->dashes[i] % (int)COUNT(dashes)]);
        fprintf(out, lower ? " notitle, \\\n" : " title \"%s\", \\\n", text_escape(chart->arena, series->titles[i]));
    }
    for (int i = 0; curves->reference && i < series->count; i++)
        fprintf(out, "    data using ($1 == %d ? $3 : NaN):%d with %s linecolor rgb line_colour notitle, \\\n", i,
                y + 1, ring);
    if (curves->reference && !lower)
        fprintf(out, "    NaN with %s linecolor rgb line_colour title \"%s\"\n", ring, curves->reference);
    else
        fputs("    NaN notitle\n", out);
}

/* The settings of the lower panel of two. */
static void write_lower(const struct chart *chart, const struct curves *curves)
{
    fputs("\nset tmargin at screen 1 - (top + upper + between)/(1.0*height)\n"
          "set bmargin at screen 1.0*bottom/height\n"
          "unset label; unset key    # said once\nunset logscale y\n", chart->script);
    if (curves->x_format)
        fprintf(chart->script, "set format x \"%s\"\n", curves->x_format);
    fprintf(chart->script, "set xlabel \"%s\" offset 0,0.3\n", curves->x);
    write_range(chart, curves, true);
}

/* The settings of the upper panel of two. */
static void split_panels(const struct chart *chart, int high)
{
    fprintf(chart->script, "upper = %d\nbetween = %d\nset multiplot\n"
                           "set bmargin at screen 1 - (top + upper)/(1.0*height)\nunset xlabel\n",
            high - BETWEEN - LOWER * high / (UPPER + BETWEEN + LOWER), BETWEEN);
}

int curves_draw(struct chart *chart, struct curves *curves)
{
    struct layout layout = {
        .width = layout_width(chart, WIDTH), .left = LEFT, .right = RIGHT, .bottom = CHART_AXIS_HEIGHT, .title = curves->title,
        .lines = {curves->note}, .entries = curves->reference != NULL,
        .longest = curves->reference ? (int)strlen(curves->reference) : 8,
    };
    struct series series = {0};
    int high;

    if (find_series(chart, curves, &series) || chart_open(chart))
        return -1;
    array_sort_by(curves->points.items, curves->points.count, sizeof *curves->points.items, by_series_and_x, &series);
    name_series(chart->arena, curves, &series);
    for (int i = 0; i < series.count; i++)
        layout.longest = (int)fmax(layout.longest, (double)strlen(series.titles[i]));
    layout.entries += series.count;
    layout.longest += series.dashed ? DASHED : 0;
    high = layout_height(chart, &layout, curves->lower ? UPPER + BETWEEN + LOWER : HIGH,
                         curves->lower ? 360 : 180);
    write_data(chart, curves, &series);
    script_begin(chart, &layout);
    if (series.dashed)
        fprintf(chart->script, "set key samplen %d\n", DASHED);
    write_axes(chart, curves);
    if (curves->lower)
        split_panels(chart, high);
    write_plot(chart, curves, &series, false);
    if (curves->lower) {
        write_lower(chart, curves);
        write_plot(chart, curves, &series, true);
        fputs("unset multiplot\n", chart->script);
    }
    script_end(chart);
    return 0;
}

void curves_release(struct curves *curves)
{
    free(curves->points.items);
    memset(curves, 0, sizeof *curves);
}
