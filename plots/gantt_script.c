/* The Gantt chart: boxes to data and script. Row r of the chart is the height from r to r + 1, the first on top. */
#include "gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMAGE_PIXELS = 260, IMAGE_GAP = 14,
    HEADING = 26, STEADY = 24,       /* pixels of a run's heading above its rows, and of its steady state below that */
    HEADING_LABELS = 100,            /* the number of the first heading's label */
};

static bool has_steady(const struct gantt *gantt)
{
    return fmin(gantt->steady_to, gantt->to) > fmax(gantt->steady_from, gantt->from);
}

/* Pixels above the rows of a run. */
static int above(const struct gantt_stack *stack, const struct gantt *gantt)
{
    return (stack->headings ? HEADING : 0) + (has_steady(gantt) ? STEADY : 0);
}

/* Places the runs, and counts the rows of the chart. */
static void place_runs(struct gantt_stack *stack, double row)
{
    stack->rows = 0;
    for (int r = 0; r < stack->count; r++) {
        struct gantt *gantt = &stack->runs[r];

        gantt->top = stack->rows + above(stack, gantt) / row;
        stack->rows = gantt->top + gantt->rows[gantt->nrows - 1].top + 1;
    }
}

static void write_box(const struct chart *chart, const struct gantt_stack *stack, int run, const struct row *row,
                      const struct box *box, const struct gantt_scale *scale)
{
    const struct gantt_heights heights = gantt_heights(stack);
    const struct gantt_lane *lane = &stack->runs[run].lanes.items[box->lane];
    double top = stack->runs[run].top + row->top + GANTT_TOP, height = heights.box;

    if (lane->strip >= 0) {
        top += heights.box + heights.strip * lane->strip + GANTT_BETWEEN;
        height = heights.strip - GANTT_BETWEEN;
    }
    fprintf(chart->data, "%d\t%s\t%s\t%.12g\t%.12g\t%.6g\t%.6g\t%.6g\t%d\t%d\t%d\t%.12g\t%d\t%s\t%d\n", row->rank,
            text_escape(chart->arena, text_label(chart->arena, lane->name)), box->what, box->start, box->end,
            top + height * box->low, top + height * box->high,
            lane->strip < 0 ? gantt_band(box) : 0, box->kind, box->shaded, row->labelled && lane->strip < 0 &&
            gantt_label_fits(stack, box, scale), box->communication, box->spans,
            text_escape(chart->arena, text_label(chart->arena, gantt_label(box, scale))), run);
}

static void write_data(const struct chart *chart, const struct gantt_stack *stack, const struct gantt_scale *scale)
{
    fputs("rank\tlane\tkind\tt0\tt1\ttop\tbottom\tband\tcolour\tshaded\tlabelled\tcommunication\tspans\tlabel\trun\n",
          chart->data);
    for (int run = 0; run < stack->count; run++) {
        const struct gantt *gantt = &stack->runs[run];
        size_t i = 0;

        for (int r = 0; r < gantt->nrows; r++)
            for (; i < gantt->boxes.count && gantt->boxes.items[i].rank <= gantt->rows[r].rank; i++)
                write_box(chart, stack, run, &gantt->rows[r], &gantt->boxes.items[i], scale);
    }
}

/* The image's cells: their middles as parts of its width and height. */
static int write_image(const struct chart *chart, const struct image *image)
{
    FILE *out = chart_further(chart);

    if (!out)
        return -1;
    fputs("time\trank\tcolour\n", out);
    for (int row = 0; row < image->rows; row++)
        for (int c = 0; c < image->columns; c++)
            fprintf(out, "%.5g\t%.5g\t%d\n", (c + 0.5) / image->columns, (row + 0.5) / image->rows,
                    image->cells[row * image->columns + c]);
    return chart_written(out, arena_printf(chart->arena, "%s/%s-all.tsv", chart->folder, chart->name), chart->err);
}

/* "rank 3 (S4)"; without the stage when all are the same; of a straggler
 * "rank 3 (S4) ×1.5"; with its GPU where these differ. */
static const char *row_label(struct arena *arena, const struct row *row, bool stages)
{
    const char *label = arena_printf(arena, "rank %d", row->rank);

    for (int i = 0; stages && i < row->nstages; i++)
        label = i < GANTT_STAGES ? arena_printf(arena, "%s%sS%d", label, i ? ", " : " (", row->stages[i])
                                 : arena_printf(arena, "%s, …", label);
    if (stages && row->nstages)
        label = arena_printf(arena, "%s)", label);
    if (row->gpu)
        label = arena_printf(arena, "%s %s", label, text_clean(arena, row->gpu, 24));
    return row->slower > 1 ? arena_printf(arena, "%s ×%.3g", label, row->slower) : label;
}

static bool several_stages(const struct gantt *gantt)
{
    for (int i = 0; i < gantt->nrows; i++)
        if (gantt->rows[i].nstages > 1 ||
            (gantt->rows[i].nstages && gantt->rows[0].nstages && gantt->rows[i].stages[0] != gantt->rows[0].stages[0]))
            return true;
    return false;
}

/* Whether row i has a label: every step-th, and stragglers, which take the place of others near them. */
static bool has_label(const struct gantt *gantt, int i, int step)
{
    bool straggler = gantt->rows[i].slower > 1;

    for (int k = i - step + 1; k < (straggler ? i : i + step); k++)
        if (k >= 0 && k < gantt->nrows && k != i && gantt->rows[k].slower > 1)
            return false;
    return straggler || i % step == 0;
}

/* The labels of every step-th row and of stragglers, and of the image's ends; gives the pixels that the longest
 * takes. */
static int write_labels(const struct chart *chart, const struct gantt_stack *stack, int step, FILE *out)
{
    const double middle = GANTT_TOP + 0.5 * gantt_heights(stack).box;
    double longest = 0;
    int written = 0;

    if (out)
        fputs("set ytics (", out);
    for (int run = 0; run < stack->count; run++) {
        const struct gantt *gantt = &stack->runs[run];
        bool stages = several_stages(gantt);

        for (int i = 0; i < gantt->nrows; i++) {
            const char *label = row_label(chart->arena, &gantt->rows[i], stages);

            if (!has_label(gantt, i, step))
                continue;
            longest = fmax(longest, text_ems(label));
            if (out)
                fprintf(out, "%s\\\n    \"%s\" %g", written++ ? ", " : "", label,
                        gantt->top + gantt->rows[i].top + middle);
        }
    }
    if (out && stack->runs->image.ranks)
        fprintf(out, ", \\\n    \"all, by stage\" image_top + 0.5*image_rows");
    if (out)
        fputs(") font row_font\n", out);
    return (int)(longest * 13);
}

/* Legend entries, in the order of the palette. */
static void write_legend(const struct layout *layout, FILE *out)
{
    for (int i = 0; i < TONE_COUNT; i++)
        if (layout->shown[i])
            fprintf(out, "    NaN with boxes fillstyle solid 1 noborder fillcolor rgb colour_%d title \"%s\", \\\n", i,
                    tone_names[i]);
}

static void write_plot(const struct gantt_stack *stack, const struct layout *layout, FILE *out)
{
    fputs("\n# columns: 4, 5 begin and end; 6, 7 top and bottom; 8 the part of the height that is communication;\n"
          "# 9 colour; 10 whether it is the darker shade; 11 whether the label is drawn; 13 how many works it stands\n"
          "# for; 14 label. A border stands between two works, and nowhere in a box that stands for several.\n"
          "pixel = 1.0*(end - begin)/(width - left - right)\n"
          "gap(t0, t1, spans) = spans == 1 && t1 - t0 > 5*pixel ? 0.5*pixel : 0.0\n"
          "label_font = at_size(label_size)\n", out);
    fprintf(out, "array fills[%d]; array shades[%d]; array inks[%d]\n", TONE_COUNT + 1, TONE_COUNT + 1, TONE_COUNT + 1);
    for (int i = 0; i < TONE_COUNT; i++)
        if (layout->shown[i])
            fprintf(out, "fills[%d] = colour_%d; shades[%d] = shade_%d; inks[%d] = ink_%d\n", i + 1, i, i + 1, i, i + 1,
                    i);
    fprintf(out, "fills[%d] = idle_colour\n"
                 "colour(i, shaded) = shaded > 0 ? shades[i + 1] : fills[i + 1]\n"
                 "split(top, bottom, band) = bottom - band*(bottom - top)\nplot \\\n", TONE_COUNT + 1);
    fputs("    data using (0.5*unit*($4 + $5)):6:(unit*($4 + gap($4, $5, $13))):(unit*($5 - gap($4, $5, $13))):6: \\\n"
          "        (split($6, $7, $8)):(colour($9, $10)) with boxxyerror fillstyle solid 1 noborder \\\n"
          "        fillcolor rgb variable, \\\n", out);
    if (layout->shown[TONE_COMMUNICATION])
        fprintf(out, "    data using ($8 > 0 ? 0.5*unit*($4 + $5) : NaN):6:(unit*($4 + gap($4, $5, $13))): \\\n"
                     "        (unit*($5 - gap($4, $5, $13))):(split($6, $7, $8)):7 with boxxyerror \\\n"
                     "        fillstyle solid 1 noborder fillcolor rgb colour_%d, \\\n", TONE_COMMUNICATION);
    if (stack->runs->image.ranks)
        fputs("    all using (unit*(begin + (end - begin)*$1)):(image_top + image_rows*$2): \\\n"
              "        (int(fills[$3 + 1])/65536):(int(fills[$3 + 1])/256%256):(int(fills[$3 + 1])%256) \\\n"
              "        with rgbimage, \\\n", out);
    write_legend(layout, out);
    fputs("    data using ($11 > 0 ? 0.5*unit*($4 + $5) : NaN):(0.5*($6 + split($6, $7, $8))):14:(inks[$9 + 1]) \\\n"
          "        with labels font label_font textcolor rgb variable\n", out);
}

static void find_shown(const struct gantt_stack *stack, struct layout *layout)
{
    for (int r = 0; r < stack->count; r++) {
        const struct gantt *gantt = &stack->runs[r];

        for (size_t i = 0; i < gantt->boxes.count; i++) {
            layout->shown[gantt->boxes.items[i].kind] = true;
            layout->shown[TONE_COMMUNICATION] |= gantt->boxes.items[i].communication > 0;
        }
        for (int i = 0; i < gantt->image.rows * gantt->image.columns; i++)
            if (gantt->image.cells[i] < TONE_COUNT)
                layout->shown[gantt->image.cells[i]] = true;
    }
}

/* A line above the rows from the begin to the end of the steady state. */
static void write_steady(const struct gantt *gantt, FILE *out)
{
    double from = fmax(gantt->steady_from, gantt->from), to = fmin(gantt->steady_to, gantt->to);

    fprintf(out, "set arrow from %.15g*unit, %g - 5.0/row_height to %.15g*unit, %g - 5.0/row_height heads \\\n"
                 "    size screen 0.006, 20 filled linewidth 1.2 linecolor rgb line_colour\n"
                 "set label \"steady state\" at %.15g*unit, %g - 14.0/row_height center\n", from, gantt->top, to,
            gantt->top, 0.5 * (from + to), gantt->top);
}

/* Behind every row a grey bar as long as the run; above the rows the run's heading and its steady state. */
static void write_runs(const struct chart *chart, const struct gantt_stack *stack, double pixels)
{
    const char *const *labels = stack->headings ? run_labels(chart) : NULL;
    FILE *out = chart->script;
    int bars = 0;

    for (int run = 0; run < stack->count; run++) {
        const struct gantt *gantt = &stack->runs[run];
        double end = fmin(gantt->until, gantt->to);

        for (int r = 0; r < gantt->nrows && end > gantt->from; r++)
            fprintf(out, "set object %d rectangle from %.15g*unit, %g to %.15g*unit, %g behind \\\n"
                         "    fillstyle solid 1 noborder fillcolor rgb idle_colour\n", ++bars, gantt->from,
                    gantt->top + gantt->rows[r].top + GANTT_TOP, end, gantt->top + gantt->rows[r].top + 1 - GANTT_TOP);
        if (labels)
            fprintf(out, "set label %d \"%s\" at graph 0, first %g - %d.0/row_height left\n", HEADING_LABELS + run,
                    text_escape(chart->arena, gantt_heading(chart, stack, run, labels[run], pixels)), gantt->top,
                    above(stack, gantt) - 14);
        if (has_steady(gantt))
            write_steady(gantt, out);
    }
}

/* The axes. */
static void write_axes(const struct chart *chart, const struct gantt_stack *stack, const struct gantt_scale *scale)
{
    const struct gantt *first = stack->runs;
    const struct time_unit *unit = time_unit_for(first->to);
    FILE *out = chart->script;

    fprintf(out, "\nrows = %g\nrow_height = %g\nbegin = %.15g\nend = %.15g\nunit = %g\n", stack->rows, scale->row,
            first->from, first->to, unit->per_second);
    if (first->image.ranks)
        fprintf(out, "image_top = rows + %d/row_height\nimage_rows = %d/row_height\n"
                     "all = folder.\"%s-all.tsv\"\n", IMAGE_GAP, IMAGE_PIXELS, text_escape(chart->arena, chart->name));
    else
        fputs("image_top = rows\nimage_rows = 0\n", out);
    fprintf(out, "label_size = %.1f\nrow_font = at_size(%.1f)\n", scale->label, fmin(9.5, fmax(7, 0.6 * scale->row)));
    fputs("set xrange [begin*unit:end*unit]\nset yrange [image_top + image_rows:0]\n", out);
    fprintf(out, "set xlabel \"time (%s)\" offset 0,0.3\n", unit->label);
    write_labels(chart, stack, (int)ceil(13 / scale->row), out);
    fputs("set ytics scale 0\nset border 1\n", out);
    write_runs(chart, stack, scale->second * (first->to - first->from));
}

static bool overlaps(const struct gantt_stack *stack)
{
    for (int r = 0; r < stack->count; r++)
        for (size_t i = 0; i < stack->runs[r].boxes.count; i++)
            if (stack->runs[r].boxes.items[i].high - stack->runs[r].boxes.items[i].low < 1)
                return true;
    return false;
}

/* The height of a row in pixels, and the picture's height. */
static void choose_height(const struct chart *chart, struct gantt_stack *stack, struct layout *layout,
                          struct gantt_scale *scale)
{
    double most = overlaps(stack) ? 56 : stack->nstrips ? 44 : 34;   /* of halves that can be labelled: more */
    int fixed = stack->runs->image.ranks ? IMAGE_GAP + IMAGE_PIXELS : 0, high;
    double rows = 0;

    for (int r = 0; r < stack->count; r++) {
        rows += stack->runs[r].rows[stack->runs[r].nrows - 1].top + 1;
        fixed += above(stack, &stack->runs[r]);
    }
    scale->row = fmin(fmax((stack->runs->image.ranks ? 420 : 680) / rows, 11), most);
    layout->left = 22 + write_labels(chart, stack, (int)ceil(13 / scale->row), NULL);
    high = (int)ceil(scale->row * rows) + fixed;
    scale->row *= (layout_height(chart, layout, high, (int)ceil(4 * rows) + fixed) - fixed) / (double)(high - fixed);
}

int gantt_script(const struct chart *chart, struct gantt_stack *stack)
{
    struct layout layout = {.palette = &tone_palette, .right = 22, .bottom = CHART_AXIS_HEIGHT};
    const struct gantt *first = stack->runs;
    struct gantt_scale scale = {0};

    gantt_title(chart, stack, &layout);
    layout.width = layout_width(chart, gantt_width(stack));
    find_shown(stack, &layout);
    choose_height(chart, stack, &layout, &scale);
    place_runs(stack, scale.row);
    scale.second = (layout.width - layout.left - layout.right) / (first->to - first->from);
    gantt_labels(stack, layout.width - layout.left - layout.right, &scale);
    write_data(chart, stack, &scale);
    script_begin(chart, &layout);
    write_axes(chart, stack, &scale);
    write_plot(stack, &layout, chart->script);
    script_end(chart);
    return first->image.ranks ? write_image(chart, &first->image) : 0;
}
