#include "fit_chart.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "chart.h"
#include "plot.h"

struct paths {
    const char *folder, *stem, *format;
};

static int split_path(struct arena *arena, const char *picture, struct paths *paths, struct error *err)
{
    const char *slash = strrchr(picture, '/'), *name = slash ? slash + 1 : picture, *dot = strrchr(name, '.');

    for (size_t i = 0; dot && dot > name && plot_format_at(i); i++)
        if (!strcmp(dot + 1, plot_format_at(i))) {
            paths->folder = slash ? arena_strndup(arena, picture, slash > picture ? (size_t)(slash - picture) : 1)
                                  : ".";
            paths->stem = arena_strndup(arena, name, (size_t)(dot - name));
            paths->format = plot_format_at(i);
            return 0;
        }
    return error_add(err, EXIT_USAGE, (struct loc){0}, "--plot: found '%s'; expected a name that ends in .png, .svg or "
                     ".pdf", picture);
}

static FILE *create(struct arena *arena, const struct paths *paths, const char *ending, struct error *err)
{
    const char *path = arena_printf(arena, "%s/%s.%s", paths->folder, paths->stem, ending);
    FILE *file = fopen(path, "wb");

    if (!file)
        error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot write: %s", strerror(errno));
    return file;
}

/* A block a series: gnuplot's `index` names it. */
static void write_data(FILE *out, const struct fit_point *points, size_t count)
{
    fputs("# measured (s)\tpredicted (s)\theld out\n", out);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(points[i].series, points[i - 1].series) != 0)
            fprintf(out, "%s# %s\n", i ? "\n\n" : "", points[i].series);
        fprintf(out, "%.6g\t%.6g\t%d\n", points[i].measured, points[i].predicted, points[i].held_out);
    }
}

static void write_series(FILE *out, struct arena *arena, const struct fit_point *points, size_t count)
{
    int block = 0;

    fputs("plot x with lines linecolor rgb \"0x404040\" title \"equal\", \\\n"
          "    1.1*x with lines dashtype 2 linecolor rgb \"0x808080\" title \"10 % off\", \\\n"
          "    x/1.1 with lines dashtype 2 linecolor rgb \"0x808080\" notitle", out);
    for (size_t i = 0; i < count; i++) {
        if (i && !strcmp(points[i].series, points[i - 1].series))
            continue;
        fprintf(out, ", \\\n    data index %d using (1e6*$1):($3 > 0 ? 1e6*$2 : NaN) with points pointtype 7 "
                     "pointsize 0.4 linecolor %d title \"%s\"", block, block + 1, text_escape(arena, points[i].series));
        block++;
    }
    fputs("\n", out);
}

static void write_script(FILE *out, struct arena *arena, const struct paths *paths, const char *title,
                         const struct fit_point *points, size_t count)
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < count; i++) {
        least = fmin(least, fmin(points[i].measured, points[i].predicted));
        most = fmax(most, fmax(points[i].measured, points[i].predicted));
    }
    fprintf(out, "# Kernel times: predicted by a fitted profile against measured, samples that the fit did not see.\n"
                 "# Run it in its folder: gnuplot %s.gp\n"
                 "data = \"%s.tsv\"\nset encoding utf8\n", text_escape(arena, paths->stem),
            text_escape(arena, paths->stem));
    if (!strcmp(paths->format, "svg"))
        fputs("set terminal svg noenhanced size 760,560 background rgb \"white\"\n", out);
    else if (!strcmp(paths->format, "pdf"))
        fputs("set terminal pdfcairo noenhanced size 7.9,5.8\n", out);
    else
        fputs("set terminal pngcairo noenhanced size 1520,1120 fontscale 2 linewidth 2\n", out);
    fprintf(out, "set output \"%s.%s\"\nset title \"%s\"\n", text_escape(arena, paths->stem), paths->format,
            text_escape(arena, text_drawable(arena, text_clean(arena, title, 90))));
    fprintf(out, "set logscale xy\nset xrange [%.6g:%.6g]\nset yrange [%.6g:%.6g]\n", 8e5 * least, 1.25e6 * most,
            8e5 * least, 1.25e6 * most);
    fputs("set xlabel \"measured (us)\"\nset ylabel \"predicted (us)\"\nset key outside right top\nset grid\n", out);
    write_series(out, arena, points, count);
    fputs("unset output\n", out);
}

int fit_chart_draw(const char *picture, const char *title, const struct fit_point *points, size_t count,
                   struct error *err)
{
    struct arena arena = {0};
    struct paths paths = {0};
    FILE *data = NULL, *script = NULL;
    int rc = split_path(&arena, picture, &paths, err);

    if (!rc) {
        data = create(&arena, &paths, "tsv", err);
        script = data ? create(&arena, &paths, "gp", err) : NULL;
        rc = script ? 0 : -1;
    }
    if (!rc) {
        write_data(data, points, count);
        write_script(script, &arena, &paths, title, points, count);
    }
    for (int i = 0; i < 2; i++) {
        FILE *file = i ? script : data;

        if (file && (ferror(file) | fclose(file)))
            rc = error_add(err, EXIT_UNEXPECTED, (struct loc){.file = picture}, "cannot write its data");
    }
    if (!rc)
        rc = gnuplot_run(paths.folder, arena_printf(&arena, "%s.gp", paths.stem),
                         arena_printf(&arena, "%s.%s", paths.stem, paths.format), err);
    arena_release(&arena);
    return rc;
}
