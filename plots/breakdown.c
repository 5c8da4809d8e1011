/* The breakdown chart: where the iterations of several runs went, a bar a run, kinds of time stacked. */
#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 200 };

struct bar { double seconds[SHARE_COUNT], whole; };

static int read_bar(const struct chart *chart, const struct headline *run, struct bar *bar)
{
    double sum = 0;

    for (int k = 0; k < SHARE_COUNT; k++) {
        const char *key = arena_printf(chart->arena, "breakdown_s.%s", share_keys[k]);

        if (run->other_build && !headline_text(chart->arena, run, key))
            continue;                /* a kind of time that the other build does not know */
        if (headline_number(run, key, &bar->seconds[k], chart->err))
            return -1;
        if (bar->seconds[k] < -1e-9 * run->iteration)
            return error_add(chart->err, EXIT_INPUT, (struct loc){.file = run->path}, "'breakdown_s.%s' is negative",
                             share_keys[k]);
        sum += bar->seconds[k];
    }
    bar->whole = run->iteration;
    if (fabs(sum - run->iteration) > 1e-6 * run->iteration)
        return error_add(chart->err, EXIT_INPUT, (struct loc){.file = run->path},
                         "'breakdown_s' adds up to %.9g s, not to the iteration's %.9g s", sum, run->iteration);
    return 0;
}

static void write_data(const struct chart *chart, const struct bar *bars, const char *const *labels)
{
    fputs("row\trun", chart->data);
    for (int k = 0; k < SHARE_COUNT; k++)
        fprintf(chart->data, "\t%s", share_keys[k]);
    fputs("\ttext\n", chart->data);
    for (int i = 0; i < chart->ninputs; i++) {
        const struct time_unit *unit = time_unit_for(bars[i].whole);

        fprintf(chart->data, "%d\t%s", i, text_escape(chart->arena, labels[i]));
        for (int k = 0; k < SHARE_COUNT; k++)
            fprintf(chart->data, "\t%.17g", bars[i].seconds[k]);
        fprintf(chart->data, "\t%.4g %s\n", bars[i].whole * unit->per_second, unit->label);
    }
}

/* Bars from the left to the sum so far, the widest first. */
static void write_plot(const struct chart *chart, const struct layout *layout)
{
    FILE *out = chart->script;

    fputs("\n# columns: 1 row; 3 and on: the seconds of each kind, in the order of their colours; the last: the whole\n"
          "plot \\\n", out);
    for (int k = SHARE_COUNT - 1; k >= 0; k--)
        if (layout->shown[k])
            fprintf(out, "    data using (0):1:(0):(unit*sum [i = 3:%d] column(i)):($1 - 0.36):($1 + 0.36) \\\n"
                         "        with boxxyerror fillstyle solid 1 noborder fillcolor rgb colour_%d notitle, \\\n",
                    k + 3, k);
    for (int k = 0; k < SHARE_COUNT; k++)
        if (layout->shown[k])
            fprintf(out, "    NaN with boxes fillstyle solid 1 %s fillcolor rgb colour_%d title \"%s\", \\\n",
                    k == SHARE_BUBBLE ? "border linecolor rgb line_colour" : "noborder", k, share_palette.names[k]);
    fprintf(out, "    data using (unit*sum [i = 3:%d] column(i)):1:%d with labels left offset 0.6,0 notitle\n",
            SHARE_COUNT + 2, SHARE_COUNT + 3);
}

static void write_script(const struct chart *chart, const struct bar *bars, const char *const *labels)
{
    struct layout layout = {
        .palette = &share_palette, .right = 22, .bottom = CHART_AXIS_HEIGHT,
        .title = "Where an iteration's time goes",
        .lines = {noted(chart, "seconds of the average rank; a bar's length is the iteration")},
    };
    double longest = 0, most = 0, row = fmax(14, fmin(30, 900.0 / chart->ninputs));
    const struct time_unit *unit;
    FILE *out = chart->script;

    for (int i = 0; i < chart->ninputs; i++) {
        most = fmax(most, bars[i].whole);
        longest = fmax(longest, text_ems(labels[i]));
        for (int k = 0; k < SHARE_COUNT; k++)
            layout.shown[k] |= bars[i].seconds[k] > 0;
    }
    unit = time_unit_for(most);
    layout.left = 24 + (int)ceil(13.4 * longest);
    layout.width = layout_width(chart, 760 + layout.left);
    layout_height(chart, &layout, (int)ceil(row * chart->ninputs), 15 * chart->ninputs);
    script_begin(chart, &layout);
    fprintf(out, "\nrows = %d\nunit = %g\nset xrange [0:%.6g]\nset yrange [rows - 0.5:-0.5]\n", chart->ninputs,
            unit->per_second,
            (1 + fmax(0.14, 80.0 / fmax(layout.width - layout.left, 160))) * most * unit->per_second);
    fprintf(out, "set xlabel \"time (%s)\" offset 0,0.3\nset ytics () scale 0\n", unit->label);
    for (int i = 0; i < chart->ninputs; i++)
        fprintf(out, "set ytics add (\"%s\" %d)\n", text_tic(chart->arena, labels[i]), i);
    write_plot(chart, &layout);
    script_end(chart);
}

int breakdown_draw(struct chart *chart)
{
    struct bar *bars = xcalloc((size_t)chart->ninputs, sizeof *bars);
    const char *const *labels = run_labels(chart);
    int failed = 0;

    if (chart->ninputs > MOST_RUNS)
        failed = error_add(chart->err, EXIT_USAGE, (struct loc){0}, "breakdown: %d runs; at most %d", chart->ninputs,
                           MOST_RUNS);
    for (int i = 0; !failed && i < chart->ninputs; i++)
        failed = read_bar(chart, &chart->runs[i], &bars[i]);
    failed = failed || chart_open(chart);
    if (!failed) {
        write_data(chart, bars, labels);
        write_script(chart, bars, labels);
    }
    free(bars);
    return failed ? -1 : 0;
}
