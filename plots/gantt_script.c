/* The Gantt chart: boxes to data and script. Row r of the chart is the height from r to r + 1, the first on top. */
#include "gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NARROWEST = 840, WIDEST = 1200, SLOT_PIXELS = 15, IMAGE_PIXELS = 260, IMAGE_GAP = 14 };

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
    double shorter = quantile(gantt, 0.25), slots = shorter > 0 ? (gantt->to - gantt->from) / shorter : 0;

    return (int)fmin(fmax(NARROWEST, 140 + SLOT_PIXELS * slots), WIDEST);
}

/* The share of a box's height that is communication: its area is the seconds of it. */
static double band_of(const struct box *box)
{
    double area = (box->end - box->start) * (box->high - box->low);

    return area > 0 ? fmin(box->communication / area, 1) : 0;
}

/* Works that are there as a whole: what is cut off at an edge need not be labelled. */
static bool is_work(const struct gantt *gantt, const struct box *box)
{
    return box->lane == gantt->compute && box->kind < TONE_PACK && (box->start > gantt->from || gantt->from <= 0) &&
           (box->end < gantt->to || !gantt->cut);
}

/* In points: as high as the row and works that overlap allow, and small enough for the shorter works to hold a name. */
static double label_size(const struct gantt *gantt, double pixels, double row, bool numbers)
{
    double lowest = 1;
    size_t longest = 1;

    for (size_t i = 0; i < gantt->boxes.count; i++) {
        const struct box *box = &gantt->boxes.items[i];
        size_t length = strlen(box->name) - (numbers && *box->name);

        if (!is_work(gantt, box))
            continue;
        lowest = fmin(lowest, (box->high - box->low) * (1 - band_of(box)));
        longest = length > longest ? length : longest;
    }
    pixels *= quantile(gantt, 0.1) / (gantt->to - gantt->from);
    return fmin(fmax(fmin(pixels / (0.84 * (double)longest + 0.45), 8), 6), lowest * row * heights_of(gantt).box / 1.4);
}

/* A chart as it is laid out: pixels of a row, and of a second; the size of labels in points, and whether they are the
 * micro-batches' numbers without the letter that the colour stands for. */
struct scale { double row, second, label; bool numbers; };

static const char *label_of(const struct box *box, const struct scale *scale)
{
    return scale->numbers && box->name[0] && box->name[1] ? box->name + 1 : box->name;
}

/* Whether the label can be read on the box. */
static bool fits(const struct gantt *gantt, const struct box *box, const struct scale *scale)
{
    double letters = (double)strlen(label_of(box, scale)), width = (box->end - box->start) * scale->second;
    double height = (box->high - box->low) * (1 - band_of(box)) * heights_of(gantt).box * scale->row;

    return letters > 0 && scale->label >= 5 && width > (0.84 * letters + 0.4) * scale->label &&
           height > 1.35 * scale->label;
}

/* A row is labelled when every work in it can be. Boxes are sorted as rows are. Returns whether all rows are. */
static bool label_rows(struct gantt *gantt, const struct scale *scale)
{
    bool all = true;
    size_t i = 0;

    for (int r = 0; r < gantt->nrows; r++) {
        struct row *row = &gantt->rows[r];

        row->labelled = true;
        for (; i < gantt->boxes.count && gantt->boxes.items[i].rank <= row->rank; i++)
            if (is_work(gantt, &gantt->boxes.items[i]) && !fits(gantt, &gantt->boxes.items[i], scale))
                row->labelled = false;
        all &= row->labelled;
    }
    return all;
}

/* Names where they fit on all works, else numbers. */
static void choose_labels(struct gantt *gantt, double pixels, struct scale *scale)
{
    for (int numbers = 0; numbers < 2; numbers++) {
        scale->numbers = numbers;
        scale->label = label_size(gantt, pixels, scale->row, numbers);
        if (label_rows(gantt, scale))
            return;
    }
}

static void write_box(const struct chart *chart, const struct gantt *gantt, const struct row *row,
                      const struct box *box, const struct scale *scale)
{
    const struct heights heights = heights_of(gantt);
    const struct gantt_lane *lane = &gantt->lanes.items[box->lane];
    double top = row->top + TOP, height = heights.box;

    if (lane->strip >= 0) {
        top += heights.box + heights.strip * lane->strip + BETWEEN;
        height = heights.strip - BETWEEN;
    }
    fprintf(chart->data, "%d\t%s\t%s\t%.12g\t%.12g\t%.6g\t%.6g\t%.6g\t%d\t%d\t%d\t%.12g\t%d\t%s\n", row->rank,
            text_escape(chart->arena, text_label(chart->arena, lane->name)), box->what, box->start, box->end,
            top + height * box->low, top + height * box->high,
            lane->strip < 0 ? band_of(box) : 0, box->kind, box->shaded, row->labelled && lane->strip < 0 &&
            fits(gantt, box, scale), box->communication, box->spans,
            text_escape(chart->arena, text_label(chart->arena, label_of(box, scale))));
}

static void write_data(const struct chart *chart, const struct gantt *gantt, const struct scale *scale)
{
    size_t i = 0;

    fputs("rank\tlane\tkind\tt0\tt1\ttop\tbottom\tband\tcolour\tshaded\tlabelled\tcommunication\tspans\tlabel\n",
          chart->data);
    for (int r = 0; r < gantt->nrows; r++)
        for (; i < gantt->boxes.count && gantt->boxes.items[i].rank <= gantt->rows[r].rank; i++)
            write_box(chart, gantt, &gantt->rows[r], &gantt->boxes.items[i], scale);
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

/* "rank 3 (S4)"; without the stage when all are the same. */
static const char *row_label(struct arena *arena, const struct row *row, bool stages)
{
    const char *label = arena_printf(arena, "rank %d", row->rank);

    for (int i = 0; stages && i < row->nstages; i++)
        label = i < GANTT_STAGES ? arena_printf(arena, "%s%sS%d", label, i ? ", " : " (", row->stages[i])
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

/* The labels of every step-th row, and of the image's ends; gives the pixels that the longest takes. */
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
            fprintf(out, "%s\\\n    \"%s\" %g", i ? ", " : "", label, gantt->rows[i].top + middle);
    }
    if (out && gantt->image.ranks)
        fprintf(out, ", \\\n    \"all, by stage\" image_top + 0.5*image_rows");
    if (out)
        fputs(") font row_font\n", out);
    return (int)longest * 7;
}

/* Legend entries, in the order of the palette. */
static void write_legend(const struct layout *layout, FILE *out)
{
    for (int i = 0; i < TONE_COUNT; i++)
        if (layout->shown[i])
            fprintf(out, "    NaN with boxes fillstyle solid 1 noborder fillcolor rgb colour_%d title \"%s\", \\\n", i,
                    tone_names[i]);
}

static void write_plot(const struct gantt *gantt, const struct layout *layout, FILE *out)
{
    fputs("\n# columns: 4, 5 begin and end; 6, 7 top and bottom; 8 the part of the height that is communication;\n"
          "# 9 colour; 10 whether it is the darker shade; 11 whether the label is drawn; 14 label\n"
          "pixel = 1.0*(end - begin)/(width - left - right)\n"
          "gap(t0, t1) = t1 - t0 > 5*pixel ? 0.5*pixel : 0.0\n"
          "label_font = at_size(label_size)\n", out);
    fprintf(out, "array fills[%d]; array shades[%d]; array inks[%d]\n", TONE_COUNT + 1, TONE_COUNT + 1, TONE_COUNT + 1);
    for (int i = 0; i < TONE_COUNT; i++)
        if (layout->shown[i])
            fprintf(out, "fills[%d] = colour_%d; shades[%d] = shade_%d; inks[%d] = ink_%d\n", i + 1, i, i + 1, i, i + 1,
                    i);
    fprintf(out, "fills[%d] = idle_colour\n"
                 "colour(i, shaded) = shaded > 0 ? shades[i + 1] : fills[i + 1]\n"
                 "split(top, bottom, band) = bottom - band*(bottom - top)\nplot \\\n", TONE_COUNT + 1);
    fputs("    data using (0.5*unit*($4 + $5)):6:(unit*($4 + gap($4, $5))):(unit*($5 - gap($4, $5))):6: \\\n"
          "        (split($6, $7, $8)):(colour($9, $10)) with boxxyerror fillstyle solid 1 noborder \\\n"
          "        fillcolor rgb variable, \\\n", out);
    if (layout->shown[TONE_COMMUNICATION])
        fprintf(out, "    data using ($8 > 0 ? 0.5*unit*($4 + $5) : NaN):6:(unit*($4 + gap($4, $5))): \\\n"
                     "        (unit*($5 - gap($4, $5))):(split($6, $7, $8)):7 with boxxyerror fillstyle solid 1 \\\n"
                     "        noborder fillcolor rgb colour_%d, \\\n", TONE_COMMUNICATION);
    if (gantt->image.ranks)
        fputs("    all using (unit*(begin + (end - begin)*$1)):(image_top + image_rows*$2): \\\n"
              "        (int(fills[$3 + 1])/65536):(int(fills[$3 + 1])/256%256):(int(fills[$3 + 1])%256) \\\n"
              "        with rgbimage, \\\n", out);
    write_legend(layout, out);
    fputs("    data using ($11 > 0 ? 0.5*unit*($4 + $5) : NaN):(0.5*($6 + split($6, $7, $8))):14:(inks[$9 + 1]) \\\n"
          "        with labels font label_font textcolor rgb variable\n", out);
}

static const char *note_of(const struct chart *chart, const struct gantt *gantt)
{
    const struct time_unit *unit = time_unit_for(gantt->column);
    const char *note = gantt->note ? gantt->note : "";

    if (gantt->column > 0)
        note = arena_printf(chart->arena, "%s%swork shorter than %.3g %s is gathered by kind", note, *note ? "; " : "",
                            gantt->column * unit->per_second, unit->label);
    if (gantt->shaded)
        note = arena_printf(chart->arena, "%s%sdarker: every second stage of a rank", note, *note ? "; " : "");
    return *note ? note : NULL;
}

static void find_shown(const struct gantt *gantt, struct layout *layout)
{
    for (size_t i = 0; i < gantt->boxes.count; i++) {
        layout->shown[gantt->boxes.items[i].kind] = true;
        layout->shown[TONE_COMMUNICATION] |= gantt->boxes.items[i].communication > 0;
    }
    for (int i = 0; i < gantt->image.rows * gantt->image.columns; i++)
        if (gantt->image.cells[i] < TONE_COUNT)
            layout->shown[gantt->image.cells[i]] = true;
}

/* The axes, and a grey bar for every row. */
static void write_axes(const struct chart *chart, const struct gantt *gantt, const struct layout *layout,
                       const struct scale *scale)
{
    double rows = gantt->rows[gantt->nrows - 1].top + 1;
    const struct time_unit *unit = time_unit_for(gantt->to);
    FILE *out = chart->script;

    fprintf(out, "\nrows = %g\nrow_height = %g\nbegin = %.15g\nend = %.15g\nunit = %g\n", rows, scale->row, gantt->from,
            gantt->to, unit->per_second);
    if (gantt->image.ranks)
        fprintf(out, "image_top = rows + %d/row_height\nimage_rows = %d/row_height\n"
                     "all = folder.\"%s-all.tsv\"\n", IMAGE_GAP, IMAGE_PIXELS, text_escape(chart->arena, chart->name));
    else
        fputs("image_top = rows\nimage_rows = 0\n", out);
    fprintf(out, "label_size = %.1f\nrow_font = at_size(%.1f)\n", scale->label, fmin(9.5, fmax(7, 0.6 * scale->row)));
    fputs("set xrange [begin*unit:end*unit]\nset yrange [image_top + image_rows:0]\n", out);
    fprintf(out, "set xlabel \"time (%s)\" offset 0,0.3\n", unit->label);
    write_labels(chart, gantt, (int)ceil(13 / scale->row), out);
    fputs("set ytics scale 0\nset border 1\n", out);
    for (int r = 0; r < gantt->nrows; r++)
        fprintf(out, "set object %d rectangle from graph 0, first %g to graph 1, first %g behind \\\n"
                     "    fillstyle solid 1 noborder fillcolor rgb idle_colour\n", r + 1, gantt->rows[r].top + TOP,
                gantt->rows[r].top + 1 - TOP);
    write_plot(gantt, layout, out);
}

static bool overlaps(const struct gantt *gantt)
{
    for (size_t i = 0; i < gantt->boxes.count; i++)
        if (gantt->boxes.items[i].high - gantt->boxes.items[i].low < 1)
            return true;
    return false;
}

int gantt_script(const struct chart *chart, struct gantt *gantt)
{
    double rows = gantt->rows[gantt->nrows - 1].top + 1, most = gantt->nstrips ? 44 : 34;
    struct layout layout = {.palette = &tone_palette, .right = 22, .bottom = CHART_AXIS_HEIGHT};
    struct scale scale;
    int image, high;

    if (overlaps(gantt))
        most = 56;                   /* so that halves can be labelled */
    scale.row = fmin(fmax((gantt->image.ranks ? 420 : 680) / rows, 11), most);
    layout_title(chart, &layout, note_of(chart, gantt));
    layout.width = layout_width(chart, width_of(gantt));
    layout.left = 22 + write_labels(chart, gantt, (int)ceil(13 / scale.row), NULL);
    find_shown(gantt, &layout);
    image = gantt->image.ranks ? IMAGE_GAP + IMAGE_PIXELS : 0;
    high = (int)ceil(scale.row * rows) + image;
    scale.row *= (layout_height(chart, &layout, high, (int)ceil(4 * rows) + image) - image) / (double)(high - image);
    scale.second = (layout.width - layout.left - layout.right) / (gantt->to - gantt->from);
    choose_labels(gantt, layout.width - layout.left - layout.right, &scale);
    write_data(chart, gantt, &scale);
    script_begin(chart, &layout);
    write_axes(chart, gantt, &layout, &scale);
    script_end(chart);
    return gantt->image.ranks ? write_image(chart, &gantt->image) : 0;
}
