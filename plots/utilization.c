/* The utilization chart: what the ranks do on average, stacked, over time. */
#include "chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/tsv.h"

enum { COLUMNS = 700 };              /* columns of a picture: windows narrower than one are averaged */

/* t0, t1, a column a share, the bubble's the last. */
enum { START, END, FIRST, WANTED = FIRST + SHARE_COUNT };

struct window {
    double start, end;
    double share[SHARE_BUBBLE];
};
struct windows { struct window *items; size_t count, capacity; };

static int read_shares(const struct tsv *tsv, struct window *window, struct error *err)
{
    const double slack = 1e-6;       /* sums of many shares round */
    double sum = 0, share;

    for (int i = FIRST; i < WANTED; i++) {
        share = 0;
        if (tsv_number(tsv, i, &share, err))
            return -1;
        if (share < -slack || share > 1 + slack)
            return error_add(err, EXIT_INPUT, tsv_loc(tsv, i), "%.40s is not between 0 and 1", tsv_text(tsv, i));
        sum += share;
        if (i < FIRST + SHARE_BUBBLE)
            window->share[i - FIRST] = fmax(share, 0);
    }
    if (fabs(sum - 1) > slack * SHARE_COUNT)
        return error_add(err, EXIT_INPUT, tsv->loc, "the shares add up to %g, not to 1", sum);
    return 0;
}

static int read_window(const struct tsv *tsv, double after, struct window *window, struct error *err)
{
    const double slack = 1e-6 * fabs(after);

    if (tsv_number(tsv, START, &window->start, err) || tsv_number(tsv, END, &window->end, err))
        return -1;
    if (window->start < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, START), "the window starts before 0");
    if (window->start < after - slack)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, START), "the window starts before the one above ends");
    if (window->end <= window->start)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, END), "the window ends before it starts");
    return read_shares(tsv, window, err);
}

static int read_windows(struct windows *windows, struct tsv *tsv, struct error *err)
{
    int before = err->count + err->dropped;
    double after = 0;

    while (tsv_next(tsv, err)) {
        struct window window = {0};

        if (read_window(tsv, after, &window, err))
            continue;
        after = window.end;
        *GROW(windows) = window;
    }
    if (err->count + err->dropped > before)
        return -1;
    if (windows->count == 0)
        return error_add(err, EXIT_INPUT, tsv->loc, "no windows: nothing to draw");
    return 0;
}

/* Averages neighbours until each is as wide as a column: the time spent on a kind of work stays what it is. */
static void merge(struct windows *windows, double column)
{
    size_t kept = 0;

    for (size_t i = 1; i < windows->count; i++) {
        struct window *last = &windows->items[kept];
        const struct window *next = &windows->items[i];
        double old = last->end - last->start, more = next->end - next->start;

        if (old >= column || next->start - last->end > 0.5 * column) {
            windows->items[++kept] = *next;
            continue;
        }
        for (int k = 0; k < SHARE_BUBBLE; k++)
            last->share[k] = (last->share[k] * old + next->share[k] * more) / (next->end - last->start);
        last->end = next->end;
    }
    windows->count = kept + 1;
}

/* The outline of the areas: two points a window, so that they join as steps. */
static void write_data(const struct chart *chart, const struct windows *windows)
{
    double after = 0;

    fputs("time", chart->data);
    for (int k = 0; k < SHARE_BUBBLE; k++)
        fprintf(chart->data, "\t%s", share_keys[k]);
    fputs("\n", chart->data);
    for (size_t i = 0; i < windows->count; i++) {
        const struct window *window = &windows->items[i];
        bool hole = window->start > after + 1e-6 * window->end;

        for (int point = hole ? -2 : 0; point < 2; point++) {
            fprintf(chart->data, "%.15g", point == -2 ? after : point == 1 ? window->end : window->start);
            for (int k = 0; k < SHARE_BUBBLE; k++)
                fprintf(chart->data, "\t%.10g", point < 0 ? 0 : window->share[k]);
            fputs("\n", chart->data);
        }
        after = window->end;
    }
}

static void write_plot(const struct chart *chart, const struct layout *layout)
{
    FILE *out = chart->script;

    fputs("\n# columns: 1 time; 2 and on: the share of each kind, in the order of their colours.\n"
          "# Areas are drawn from 0 to the sum so far, the highest first.\n"
          "plot \\\n", out);
    for (int k = SHARE_BUBBLE - 1; k >= 0; k--)
        if (layout->shown[k])
            fprintf(out, "    data using (unit*$1):(100*sum [i = 2:%d] column(i)) with filledcurves y1=0 \\\n"
                         "        fillstyle solid 1 noborder fillcolor rgb colour_%d notitle, \\\n", k + 2, k);
    for (int k = 0; k < SHARE_COUNT; k++)
        if (layout->shown[k])
            fprintf(out, "    NaN with boxes fillstyle solid 1 %s fillcolor rgb colour_%d title \"%s\", \\\n",
                    k == SHARE_BUBBLE ? "border linecolor rgb line_colour" : "noborder", k, share_palette.names[k]);
    fprintf(out, "    100*mean with lines linewidth 2.5 linecolor rgb \"white\" notitle, \\\n"
                 "    100*mean with lines dashtype (8, 6) linewidth 1.5 linecolor rgb \"black\" "
                 "title sprintf(\"utilization %%.1f %%%%\", 100*mean)\n");
}

static void write_script(const struct chart *chart, const struct windows *windows)
{
    double end = fmax(windows->items[windows->count - 1].end, chart->runs->iteration);
    const struct time_unit *unit = time_unit_for(end);
    struct layout layout = {
        .palette = &share_palette, .width = layout_width(chart, 840), .left = 76, .right = 22, .bottom = CHART_AXIS_HEIGHT,
        .longest = (int)strlen("utilization 100.0 %"),
    };
    FILE *out = chart->script;

    for (size_t i = 0; i < windows->count; i++)
        for (int k = 0; k < SHARE_BUBBLE; k++)
            layout.shown[k] |= windows->items[i].share[k] > 0;
    layout.shown[SHARE_BUBBLE] = chart->runs->bubble > 0;
    layout_title(chart, &layout, NULL);
    layout_height(chart, &layout, 230, 120);
    script_begin(chart, &layout);
    fprintf(out, "\nend = %.15g\nunit = %g\nmean = %.10g\n", end, unit->per_second, chart->runs->utilization);
    fputs("set xrange [0:end*unit]\nset yrange [0:100]\n", out);
    fprintf(out, "set xlabel \"time (%s)\" offset 0,0.3\n", unit->label);
    fputs("set ylabel \"share of ranks\" offset 0.8,0\n"
          "set ytics 0, 20 format \"%g %%\"\n"
          "set object 1 rectangle from graph 0,0 to graph 1,1 behind \\\n"
          "    fillstyle solid 1 noborder fillcolor rgb idle_colour\n", out);
    write_plot(chart, &layout);
    script_end(chart);
}

int utilization_draw(struct chart *chart)
{
    const char *columns[WANTED + 1] = {[START] = "t0", [END] = "t1"};
    struct windows windows = {0};
    struct tsv tsv = {0};
    int failed;

    for (int k = 0; k < SHARE_COUNT; k++)
        columns[FIRST + k] = share_keys[k];
    tsv.optional = chart->runs->other_build ? share_keys : NULL;
    failed = tsv_open(&tsv, arena_printf(chart->arena, "%s/utilization.tsv", chart->dir), columns, chart->err) ||
             read_windows(&windows, &tsv, chart->err) || chart_open(chart);
    if (!failed) {
        merge(&windows, windows.items[windows.count - 1].end / COLUMNS);
        write_data(chart, &windows);
        write_script(chart, &windows);
    }
    free(windows.items);
    tsv_release(&tsv);
    return failed ? -1 : 0;
}
