/* The Gantt chart: boxes to data and script. Row r of the chart is the height from r to r + 1, the first on top. */
#include "gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NARROWEST = 840, WIDEST = 1200, SLOT_PIXELS = 9 };

/* A row's parts, as shares of its height. */
#define TOP 0.06
#define BETWEEN 0.02
struct heights {
    double box, strip;
};

static struct heights heights_of(const struct gantt *gantt)
{
    static const double strips[GANTT_STRIPS + 1] = {0, 0.20, 0.15, 0.12, 0.10};
    double strip = strips[gantt->nstrips];

    return (struct heights){.box = 1 - 2 * TOP - gantt->nstrips * strip, .strip = strip};
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The length in seconds that the given share of the compute boxes falls short of; 0 when there are none. */
static double quantile(const struct gantt *gantt, double share)
{
    double *times = xcalloc(gantt->boxes.count + 1, sizeof *times), found = 0;
    size_t count = 0;

    for (size_t i = 0; i < gantt->boxes.count; i++)
        if (gantt->lanes.items[gantt->boxes.items[i].lane].strip < 0)
            times[count++] = gantt->boxes.items[i].end - gantt->boxes.items[i].start;
    qsort(times, count, sizeof *times, compare);
    if (count)
        found = times[(size_t)(share * (double)(count - 1))];
    free(times);
    return found;
}

/* Wide enough for the shorter compute boxes to be seen, within reason. */
static int width_of(const struct gantt *gantt)
{
    double shorter = quantile(gantt, 0.25), slots = shorter > 0 ? gantt->end / shorter : 0;

    return (int)fmin(fmax(NARROWEST, 140 + SLOT_PIXELS * slots), WIDEST);
}

/* In points: as high as the row allows, and small enough for the typical compute box to hold the longest name. */
static double label_size(const struct gantt *gantt, double pixels, double row)
{
    size_t longest = 1;

    for (size_t i = 0; i < gantt->boxes.count; i++) {
        const struct box *box = &gantt->boxes.items[i];

        if (gantt->lanes.items[box->lane].strip < 0 && box->kind < TONE_UPDATE && strlen(box->name) > longest)
            longest = strlen(box->name);
    }
    pixels *= quantile(gantt, 0.5) / gantt->end;
    return fmin(fmin(fmax(pixels / (0.84 * (double)longest + 0.3), 6), 8), 0.7 * row * heights_of(gantt).box);
}

static void write_data(const struct chart *chart, const struct gantt *gantt)
{
    const struct heights heights = heights_of(gantt);
    int row = -1, rank = -1;

    fputs("row\trank\tlane\tkind\tt0\tt1\tlow\thigh\tcolour\tspans\tname\n", chart->data);
    for (size_t i = 0; i < gantt->boxes.count; i++) {
        const struct box *box = &gantt->boxes.items[i];
        const struct gantt_lane *lane = &gantt->lanes.items[box->lane];
        double low = TOP, high;

        if (box->rank != rank)
            while (row + 1 < gantt->nrows && gantt->rows[++row].rank != box->rank)
                ;
        rank = box->rank;
        if (lane->strip >= 0)
            low += heights.box + heights.strip * lane->strip + BETWEEN;
        high = low + (lane->strip >= 0 ? heights.strip - BETWEEN : heights.box);
        fprintf(chart->data, "%d\t%d\t%s\t%s\t%.15g\t%.15g\t%.5g\t%.5g\t%d\t%d\t%s\n", row, rank,
                text_escape(chart->arena, text_label(chart->arena, lane->name)), box->what, box->start, box->end,
                row + low, row + high, box->kind, box->spans,
                text_escape(chart->arena, text_label(chart->arena, box->name)));
    }
}

/* "rank 3 (S4)"; without the stage when all are the same. */
static const char *row_label(struct arena *arena, const struct row *row, bool stages)
{
    const char *label = arena_printf(arena, "rank %d", row->rank);

    for (int i = 0; stages && i < row->nstages; i++)
        label = i < GANTT_STAGES ? arena_printf(arena, "%s%sS%d", label, i ? ", " : " (", row->stages[i] + 1)
                                 : arena_printf(arena, "%s, …", label);
    return stages && row->nstages ? arena_printf(arena, "%s)", label) : label;
}

static bool several_stages(const struct gantt *gantt)
{
    for (int i = 0; i < gantt->nrows; i++)
        if (gantt->rows[i].nstages > 1 ||
            (gantt->rows[i].nstages && gantt->rows[0].nstages && gantt->rows[i].stages[0] != gantt->rows[0].stages[0]))
            return true;
    return false;
}

/* The labels of every step-th row; gives the pixels that the longest takes. */
static int write_labels(const struct chart *chart, const struct gantt *gantt, int step, FILE *out)
{
    const double middle = TOP + 0.5 * heights_of(gantt).box;
    bool stages = several_stages(gantt);
    size_t longest = 0;

    if (out)
        fputs("set ytics (", out);
    for (int i = 0; i < gantt->nrows; i += step) {
        const char *label = row_label(chart->arena, &gantt->rows[i], stages);

        longest = strlen(label) > longest ? strlen(label) : longest;
        if (out)
            fprintf(out, "%s\\\n    \"%s\" %g", i ? ", " : "", label, i + middle);
    }
    if (out)
        fputs(") font row_font\n", out);
    return (int)longest * 7;
}

static void write_plot(const struct layout *layout, FILE *out)
{
    fputs("\n# columns: 5, 6 begin and end; 7, 8 top and bottom; 9 colour; 11 label\n"
          "pixel = 1.0*end/(width - left - right)\n"
          "gap(t0, t1) = t1 - t0 > 5*pixel ? 0.5*pixel : 0.0\n"
          "fits(t0, t1, low, high, name) = strlen(name) && (t1 - t0)/pixel > (0.84*strlen(name) + 0.2)*label_size \\\n"
          "    && (high - low)*row_height > 1.3*label_size && label_size >= 5    # smaller ones cannot be read\n"
          "label_font = at_size(label_size)\n"
          "ink(i) = value(sprintf(\"ink_%d\", i))\n"
          "plot \\\n", out);
    for (int i = 0; i < TONE_COUNT; i++)
        if (layout->shown[i])
            fprintf(out, "    data using ($9 == %d ? 0.5*unit*($5 + $6) : NaN):(0.5*($7 + $8)):"
                         "(unit*($5 + gap($5, $6))):(unit*($6 - gap($5, $6))):7:8 \\\n"
                         "        with boxxyerror fillstyle solid 1 noborder fillcolor rgb colour_%d \\\n"
                         "        title \"%s\", \\\n",
                    i, i, tone_names[i]);
    fputs("    data using (fits($5, $6, $7, $8, strcol(11)) ? 0.5*unit*($5 + $6) : NaN):(0.5*($7 + $8)): \\\n"
          "        11:(ink($9)) with labels font label_font textcolor rgb variable\n", out);
}

static const char *note_of(const struct chart *chart, const struct gantt *gantt)
{
    const struct time_unit *unit = time_unit_for(gantt->column);
    const char *ranks = "", *joined = "";

    if (gantt->ranks > gantt->nrows)
        ranks = arena_printf(chart->arena, "the first %d of %d ranks", gantt->nrows, gantt->ranks);
    if (gantt->column > 0)
        joined = arena_printf(chart->arena, "%swork shorter than %.3g %s is gathered by kind", *ranks ? "; " : "",
                              gantt->column * unit->per_second, unit->label);
    return *ranks || *joined ? arena_printf(chart->arena, "%s%s", ranks, joined) : NULL;
}

void gantt_script(const struct chart *chart, const struct gantt *gantt)
{
    const struct time_unit *unit = time_unit_for(gantt->end);
    struct layout layout = {.palette = &tone_palette, .right = 22, .note = note_of(chart, gantt)};
    double row = fmin(fmax(680.0 / gantt->nrows, 11), gantt->nstrips ? 44 : 34);
    int step = (int)ceil(13 / row);
    FILE *out = chart->script;

    layout.width = width_of(gantt);
    layout.left = 22 + write_labels(chart, gantt, step, NULL);
    for (size_t i = 0; i < gantt->boxes.count; i++)
        layout.shown[gantt->boxes.items[i].kind] = true;
    layout.top = layout_top(&layout);
    layout.bottom = CHART_AXIS_HEIGHT;
    layout.height = layout.top + layout.bottom + (int)ceil(row * gantt->nrows);
    write_data(chart, gantt);
    script_begin(chart, &layout);
    fprintf(out, "\nrows = %d\nrow_height = (height - top - bottom)/(1.0*rows)\nend = %.15g\nunit = %g\n", gantt->nrows,
            gantt->end, unit->per_second);
    fprintf(out, "label_size = %.1f\nrow_font = at_size(%.1f)\n",
            label_size(gantt, layout.width - layout.left - layout.right, row), fmin(9.5, fmax(7, 0.6 * row)));
    fputs("set xrange [0:end*unit]\nset yrange [rows:0]\n", out);
    fprintf(out, "set xlabel \"time (%s)\" offset 0,0.3\n", unit->label);
    write_labels(chart, gantt, step, out);
    fputs("set ytics scale 0\nset border 1\n"
          "do for [r = 0:rows - 1] {\n"
          "    set object r + 1 rectangle from graph 0, first r + 0.06 to graph 1, first r + 0.94 \\\n"
          "        behind fillstyle solid 1 noborder fillcolor rgb idle_colour\n"
          "}\n", out);
    write_plot(&layout, out);
    script_end(chart);
}
