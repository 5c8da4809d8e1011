/* The fit chart: predicted over measured times of kernels that the fit did not see, against their size, in three
 * groups: products, attention, and kernels that are bound by memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "records.h"

enum { GROUPS = 3, MOST_SERIES = 14, PANEL = 190, LEAST_PANEL = 130, BETWEEN = 64 };

static const struct group { const char *title, *x; } groups[GROUPS] = {
    {"products", "size (FLOP)"}, {"attention", "size (FLOP of its products)"}, {"bound by memory", "size (B)"},
};
/* Two marks of each of these. */
static const char *const colours[] = {"0x0072b2", "0xd55e00", "0x009e73", "0xcc79a7", "0xe69f00", "0x000000",
                                      "0x56b4e9"};

struct point { int group, series; double size, ratio; };
struct fit {
    struct points { struct point *items; size_t count, capacity; } points;
    const char *names[GROUPS][MOST_SERIES];
    int nseries[GROUPS];
    double most;             /* the largest ratio, or one over it */
};

static int group_of(const char *kernel)
{
    return strncmp(kernel, "matmul", 6) == 0 ? 0 : strncmp(kernel, "attention", 9) == 0 ? 1 : 2;
}

/* FLOP of what multiplies, else bytes. */
static double size_of(const struct record *row, int group)
{
    double products = record_number_or(row, "batch", 1) * record_number_or(row, "m", NAN) *
                      record_number_or(row, "n", NAN) * record_number_or(row, "k", NAN);

    return group == 2 ? record_number_or(row, "bytes", NAN) : (group ? 4 : 2) * products;
}

static int find_series(struct fit *fit, int group, const char *name, const struct record *row, struct error *err)
{
    for (int i = 0; i < fit->nseries[group]; i++)
        if (strcmp(fit->names[group][i], name) == 0)
            return i;
    if (fit->nseries[group] == MOST_SERIES)
        return error_add(err, EXIT_INPUT, (struct loc){.file = row->path}, "more than %d kinds of kernels among '%s'",
                         MOST_SERIES, groups[group].title);
    fit->names[group][fit->nseries[group]] = name;
    return fit->nseries[group]++;
}

static int add_row(const struct chart *chart, struct fit *fit, const struct record *row)
{
    const char *kernel = record_text(row, "kernel"), *dtype = record_text(row, "dtype");
    struct point point = {.group = group_of(kernel)};
    double measured, predicted;

    if (record_number(row, "measured_us", &measured, chart->err) ||
        record_number(row, "predicted_us", &predicted, chart->err))
        return -1;
    point.size = size_of(row, point.group);
    if (!(point.size > 0) || measured <= 0 || predicted <= 0)
        return error_add(chart->err, EXIT_INPUT, (struct loc){.file = row->path},
                         "a row of '%.40s' without size or time", kernel);
    if (record_number_or(row, "held_out", 1) == 0)
        return 0;
    point.ratio = predicted / measured;
    fit->most = fmax(fit->most, fmax(point.ratio, 1 / point.ratio));
    point.series = find_series(fit, point.group, text_clean(chart->arena, *dtype ?
                               arena_printf(chart->arena, "%s %s", kernel, dtype) : kernel, 34), row, chart->err);
    if (point.series < 0)
        return -1;
    *GROW(&fit->points) = point;
    return 0;
}

static void write_data(const struct chart *chart, const struct fit *fit)
{
    fputs("group\tseries\tname\tsize\tratio\n", chart->data);
    for (size_t i = 0; i < fit->points.count; i++) {
        const struct point *point = &fit->points.items[i];

        fprintf(chart->data, "%d\t%d\t%s\t%.9g\t%.9g\n", point->group, point->series,
                text_escape(chart->arena, fit->names[point->group][point->series]), point->size, point->ratio);
    }
}

static void write_panel(const struct chart *chart, const struct fit *fit, int group, int place, int panel)
{
    double least = INFINITY, most = 0;
    FILE *out = chart->script;

    for (size_t i = 0; i < fit->points.count; i++)
        if (fit->points.items[i].group == group) {
            least = fmin(least, fit->points.items[i].size);
            most = fmax(most, fit->points.items[i].size);
        }
    fprintf(out, "\nset xrange [%.6g:%.6g]", least / 1.5, most * 1.5);
    fprintf(out, "\npanel_top = top + %d.0\n"
                 "set tmargin at screen 1 - panel_top/height\n"
                 "set bmargin at screen 1 - (panel_top + %d)/height\n"
                 "set key at screen 1 - (right - 10.0)/width, 1 - panel_top/height left top vertical maxcols 1 \\\n"
                 "    Left reverse samplen 0.5 spacing 0.85 font key_font\n"
                 "set label 9 \"%s\" at screen 1.0*left/width, 1 - (panel_top - 9)/height left\n"
                 "set xlabel \"%s\" offset 0,0.5\nplot \\\n", place * (panel + BETWEEN), panel, groups[group].title,
            groups[group].x);
    for (int i = 0; i < fit->nseries[group]; i++)
        fprintf(out, "    data using ($1 == %d && $2 == %d ? $4 : NaN):5 with points pointtype %d pointsize 0.55 \\\n"
                     "        linecolor rgb %s title \"%s\", \\\n", group, i, i < (int)COUNT(colours) ? 7 : 9,
                colours[i % (int)COUNT(colours)], text_escape(chart->arena, fit->names[group][i]));
    fputs("    NaN notitle\n"
          "unset label      # said once\n", out);
}

static void write_script(const struct chart *chart, const struct fit *fit)
{
    struct layout layout = {
        .width = layout_width(chart, 900), .left = 84, .right = 260, .above = 26, .bottom = CHART_AXIS_HEIGHT, .longest = 8,
        .title = "Kernel times: predicted over measured",
        .lines = {"each point is a shape that the fit did not see; grey lines: 10 % off"},
    };
    double most = fmax(1.3, 1.05 * fit->most);
    int panels = 0, panel;
    FILE *out = chart->script;

    for (int g = 0; g < GROUPS; g++)
        panels += fit->nseries[g] > 0;
    BUG_IF(!panels);
    panel = (layout_height(chart, &layout, panels * (PANEL + BETWEEN) - BETWEEN,
                           panels * (LEAST_PANEL + BETWEEN) - BETWEEN) + BETWEEN) / panels - BETWEEN;
    script_begin(chart, &layout);
    fprintf(out, "\n# columns: 1 group; 2 series; 4 size; 5 predicted over measured\n"
                 "set logscale xy\nset yrange [%.6g:%.6g]\nset format x \"%%.0s%%c\"\n"
                 "key_font = at_size(0.8*font_size)\n"
                 "set ytics (0.125, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.4, 2, 4, 8)\n"
                 "set ylabel \"predicted / measured\" offset 0.8,0\nset grid linecolor rgb 0xdddddd\n",
            1 / most, most);
    fputs("set arrow from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb line_colour\n"
          "do for [off in \"1.1 0.909\"] {\n"
          "    set arrow from graph 0, first off + 0 to graph 1, first off + 0 nohead linecolor rgb 0xaaaaaa\n"
          "}\nset multiplot\n", out);
    for (int g = 0, place = 0; g < GROUPS; g++)
        if (fit->nseries[g])
            write_panel(chart, fit, g, place++, panel);
    fputs("unset multiplot\n", out);
    script_end(chart);
}

int fit_draw(struct chart *chart)
{
    struct fit fit = {.most = 1};
    struct records rows = {0};
    int failed = 0;

    for (int i = 0; i < chart->ninputs; i++)
        failed |= records_load(&rows, chart->inputs[i], chart->err);
    for (size_t i = 0; !failed && i < rows.count; i++)
        failed = add_row(chart, &fit, &rows.items[i]);
    if (!failed && fit.points.count == 0)
        failed = error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir},
                           "no shape was held out of the fit");
    failed = failed || chart_open(chart);
    if (!failed) {
        write_data(chart, &fit);
        write_script(chart, &fit);
    }
    free(fit.points.items);
    records_release(&rows);
    return failed ? -1 : 0;
}
