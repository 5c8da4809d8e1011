/* The bubble chart: bubbles of several runs against micro-batches, stages or GPUs, a curve a schedule, and what the
 * closed forms of the schedules say. Where no curve would have two points, as of several schedules of one shape, a bar
 * a run. */
#include <math.h>
#include <string.h>

#include "curves.h"
#include "rows.h"

/* What may be the horizontal axis: the first of which there are several values. */
static const struct axis { const char *key, *label; } axes[] = {
    {"scenario.batch.micro_batches", "micro-batches of a replica"},
    {"scenario.strategy.pipeline", "pipeline stages"},
    {"scenario.strategy.chunks", "chunks of a rank"},
    {"gpus", "GPUs"},
};

static int values_at(const struct chart *chart, const char *key, double *values, bool *vary)
{
    *vary = false;
    for (int i = 0; i < chart->ninputs; i++) {
        if (chart->rows->rows && !headline_text(chart->arena, &chart->runs[i], key)) {
            *vary = false;
            return 0;                    /* a row has what the sweep sets alone */
        }
        if (headline_number(&chart->runs[i], key, &values[i], chart->err))
            return -1;
        *vary |= values[i] != values[0];
    }
    return 0;
}

/* What tells curves apart: the schedule, the numbers that vary without being the axis, and the model where several are
 * drawn. `of_rows`: the axis of a sweep's rows. Without an axis, which is NULL, what tells bars apart. */
static const char *series_of(const struct chart *chart, const struct axis *axis, const struct row_axis *of_rows,
                             int run)
{
    static const char *const names[] = {" micro-batches", " stages", " chunks", " GPUs"};
    const char *text = headline_text(chart->arena, &chart->runs[run], "scenario.strategy.schedule");

    if (chart->rows->rows) {
        text = row_label(chart, chart->runs[run].result, of_rows);
        return *text ? text : sweep_title(chart);
    }
    text = text ? text : "own order";
    for (size_t k = 0; k < (axis ? 3 : COUNT(axes)); k++) {
        const char *own = headline_text(chart->arena, &chart->runs[run], axes[k].key);
        bool vary = false;

        for (int i = 0; i < chart->ninputs && own && &axes[k] != axis; i++) {
            const char *other = headline_text(chart->arena, &chart->runs[i], axes[k].key);

            vary |= !other || strcmp(own, other) != 0;
        }
        if (vary && !(k == 2 && strcmp(own, "1") == 0))
            text = arena_printf(chart->arena, "%s, %s%s", text, own, names[k]);
    }
    for (int i = 0; i < chart->ninputs; i++)
        if (strcmp(chart->runs[i].model, chart->runs[run].model))
            return arena_printf(chart->arena, "%s, %s", text, chart->runs[run].model);
    return text;
}

/* Whether a curve would have two points. */
static bool has_curve(const struct curve_points *points)
{
    for (size_t i = 0; i < points->count; i++)
        for (size_t k = 0; k < i; k++)
            if (points->items[i].x != points->items[k].x && !strcmp(points->items[i].series, points->items[k].series))
                return true;
    return false;
}

/* The first axis on which there are curves, and the points on it; *axis NULL: there is none. */
static int choose_axis(const struct chart *chart, const struct axis **axis, struct curves *curves)
{
    double *values = ARENA_ARRAY(chart->arena, double, chart->ninputs);

    for (size_t a = 0; a < COUNT(axes); a++) {
        const char *dot = strchr(axes[a].key, '.');
        struct row_axis of_rows;
        bool vary;

        *axis = &axes[a];
        if (values_at(chart, axes[a].key, values, &vary) ||
            (vary && chart->rows->rows && row_axis_read(chart, dot ? dot + 1 : axes[a].key, &of_rows)))
            return -1;
        curves->points.count = 0;
        for (int i = 0; i < chart->ninputs && vary; i++)
            *GROW(&curves->points) = (struct curve_point){
                .series = series_of(chart, *axis, &of_rows, i), .x = values[i],
                .y = 100 * fmax(chart->runs[i].bubble, 0),
                .reference = 100 * headline_number_or(&chart->runs[i], "closed_form_bubble", NAN),
            };
        if (has_curve(&curves->points))
            return 0;
    }
    *axis = NULL;
    return 0;
}

static const char title[] = "Bubble: the share of an iteration that the average rank waits for other ranks' kernels";

/* What the picture says below its title. */
static const char *note_of(const struct chart *chart, bool closed)
{
    const char *note = "closed forms: every stage takes the mean time for its kernels, the network none";

    return noted(chart, closed ? note : "");
}

/* A label a run: its schedule and what else tells it from the others, or its name. */
static const char *const *bar_labels(const struct chart *chart)
{
    const char **labels = ARENA_ARRAY(chart->arena, const char *, chart->ninputs);

    for (int i = 0; i < chart->ninputs; i++) {
        labels[i] = text_clean(chart->arena, series_of(chart, NULL, NULL, i), 60);
        for (int k = 0; k < i; k++)
            if (!strcmp(labels[k], labels[i]))
                return run_labels(chart);
    }
    return chart->look->nlabels ? run_labels(chart) : labels;
}

static void write_bars(const struct chart *chart, struct layout *layout, const char *const *labels, double most)
{
    FILE *out = chart->script;

    fputs("row\trun\tbubble\tclosed_form\n", chart->data);
    for (int i = 0; i < chart->ninputs; i++) {
        double closed = headline_number_or(&chart->runs[i], "closed_form_bubble", NAN);

        fprintf(chart->data, "%d\t%s\t%.17g\t", i, text_escape(chart->arena, labels[i]),
                100 * fmax(chart->runs[i].bubble, 0));
        fprintf(chart->data, isnan(closed) ? "NaN\n" : "%.17g\n", 100 * closed);
    }
    script_begin(chart, layout);
    fprintf(out, "bar_colour = 0x0072b2\nclosed_colour = 0xbfbfbf\n\nrows = %d\nset xrange [0:%.6g]\n"
                 "set yrange [rows - 0.5:-0.5]\nset xlabel \"bubble (%%)\" offset 0,0.3\nset ytics () scale 0\n",
            chart->ninputs, most > 0 ? 1.12 * most : 1);
    for (int i = 0; i < chart->ninputs; i++)
        fprintf(out, "set ytics add (\"%s\" %d)\n", text_tic(chart->arena, labels[i]), i);
    fputs("\n# columns: 1 row; 3 bubble; 4 what the closed form says\n"
          "percent(x) = sprintf(\"%.1f %%\", x)\nplot \\\n"
          "    data using (0):1:(0):3:($1 - 0.38):($1 + (valid(4) ? 0.04 : 0.38)) with boxxyerror \\\n"
          "        fillstyle solid 1 noborder fillcolor rgb bar_colour title \"simulated\", \\\n"
          "    data using 3:($1 - (valid(4) ? 0.17 : 0)):(percent($3)) with labels left offset 0.6,0 notitle", out);
    if (layout->entries > 1)
        fputs(", \\\n    data using (valid(4) ? 0 : NaN):1:(0):4:($1 + 0.04):($1 + 0.38) with boxxyerror \\\n"
              "        fillstyle solid 1 noborder fillcolor rgb closed_colour title \"closed form\", \\\n"
              "    data using 4:($1 + 0.21):(percent($4)) with labels left offset 0.6,0 notitle", out);
    fputs("\n", out);
    script_end(chart);
}

static int draw_bars(struct chart *chart)
{
    enum { MOST_BARS = 60, ROW = 40, LEAST_ROW = 30 };
    const char *const *labels = bar_labels(chart);
    struct layout layout = {.right = 22, .bottom = CHART_AXIS_HEIGHT, .title = title, .entries = 1,
                            .longest = (int)strlen("closed form")};
    double longest = 0, most = 0;

    if (chart->ninputs > MOST_BARS)
        return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "bubble: expected runs that differ in micro-batches "
                         "(batch.micro_batches), stages, chunks or GPUs, or %d at most, found %d", MOST_BARS,
                         chart->ninputs);
    for (int i = 0; i < chart->ninputs; i++) {
        double closed = headline_number_or(&chart->runs[i], "closed_form_bubble", NAN);

        longest = fmax(longest, text_ems(labels[i]));
        most = fmax(most, 100 * fmax(chart->runs[i].bubble, isnan(closed) ? 0 : closed));
        layout.entries = isnan(closed) ? layout.entries : 2;
    }
    layout.lines[0] = note_of(chart, layout.entries > 1);
    layout.left = 24 + (int)ceil(13.4 * longest);
    layout.width = layout_width(chart, 700 + layout.left);
    layout_height(chart, &layout, ROW * chart->ninputs, LEAST_ROW * chart->ninputs);
    if (chart_open(chart))
        return -1;
    write_bars(chart, &layout, labels, most);
    return 0;
}

int bubble_draw(struct chart *chart)
{
    struct curves curves = {.title = title, .rings = true, .y = "bubble (%)"};
    const struct axis *axis;
    int failed = choose_axis(chart, &axis, &curves);

    if (!failed && axis && chart->look->nlabels)
        failed = error_add(chart->err, EXIT_USAGE, (struct loc){0}, "--labels: of bars; the schedules name the curves "
                           "of this chart");
    for (size_t i = 0; i < curves.points.count; i++)
        if (!isnan(curves.points.items[i].reference))
            curves.reference = "closed form";
    if (!failed && axis) {
        curves.x = axis->label;
        curves.note = note_of(chart, curves.reference);
        failed = curves_draw(chart, &curves);
    } else if (!failed)
        failed = draw_bars(chart);
    curves_release(&curves);
    return failed ? -1 : 0;
}
