#include "plot.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "chart.h"

static const struct kind {
    struct plot_kind face;
    int (*draw)(struct chart *chart);
} kinds[] = {
#define CHART(name, brief) {{#name, brief}, name##_draw},
#include "list.h"
#undef CHART
};
static const char *const formats[] = {"png", "svg", "pdf"};

const struct plot_kind *plot_kind_at(size_t i)
{
    return i < COUNT(kinds) ? &kinds[i].face : NULL;
}

const char *plot_format_at(size_t i)
{
    return i < COUNT(formats) ? formats[i] : NULL;
}

static const char *kind_name(size_t i, const void *context)
{
    (void)context;
    return i < COUNT(kinds) ? kinds[i].face.name : NULL;
}

static const char *format_name(size_t i, const void *context)
{
    (void)context;
    return plot_format_at(i);
}

static int unknown(const char *what, const char *word, const char *(*candidate)(size_t, const void *),
                   struct error *err)
{
    const char *near = nearest(word, candidate, NULL);
    char names[200] = "";

    if (near)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "unknown %s '%s'; did you mean '%s'? See 'dtsim help plot'",
                         what, word, near);
    for (size_t i = 0; candidate(i, NULL); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", candidate(i, NULL));
    return error_add(err, EXIT_USAGE, (struct loc){0}, "unknown %s '%s'; there are:%s; see 'dtsim help plot'", what,
                     word, names);
}

static const struct kind *find_kind(const char *name, struct error *err)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].face.name, name) == 0)
            return &kinds[i];
    unknown("kind of chart", name, kind_name, err);
    return NULL;
}

static int check_format(const char *format, struct error *err)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (strcmp(formats[i], format) == 0)
            return 0;
    return unknown("format", format, format_name, err);
}

static int make_folders(const char *dir, const char *plots, struct error *err)
{
    struct stat info;

    if (stat(dir, &info))
        return error_add(err, EXIT_INPUT, (struct loc){.file = dir}, "cannot open: %s", strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return error_add(err, EXIT_INPUT, (struct loc){.file = dir}, "not a folder; give the folder of a run");
    if (mkdir(plots, 0777) && errno != EEXIST)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = plots}, "cannot make the folder: %s",
                         strerror(errno));
    return 0;
}

static FILE *create(const char *path, struct error *err)
{
    FILE *file = fopen(path, "wb");

    if (!file)
        error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot write: %s", strerror(errno));
    return file;
}

static int finish(FILE *file, const char *path, struct error *err)
{
    int failed = ferror(file);

    failed |= fclose(file);
    if (failed)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot write: %s", strerror(errno));
    return 0;
}

int chart_open(struct chart *chart)
{
    chart->data = create(plot_file(chart->arena, chart->kind, chart->dir, chart->format, 2), chart->err);
    chart->script = create(plot_file(chart->arena, chart->kind, chart->dir, chart->format, 1), chart->err);
    return chart->data && chart->script ? 0 : -1;
}

static int chart_close(struct chart *chart)
{
    int failed = 0;

    if (chart->data)
        failed |= finish(chart->data, plot_file(chart->arena, chart->kind, chart->dir, chart->format, 2), chart->err);
    if (chart->script)
        failed |= finish(chart->script, plot_file(chart->arena, chart->kind, chart->dir, chart->format, 1), chart->err);
    return failed;
}

static int write_chart(const struct kind *kind, struct chart *chart)
{
    const char *result = arena_printf(chart->arena, "%s/result.json", chart->dir);
    int failed = headline_load(chart->arena, result, &chart->headline, chart->err) || kind->draw(chart);

    failed |= chart_close(chart);
    return failed ? -1 : 0;
}

int plot(const char *kind, const char *dir, const char *format, struct error *err)
{
    struct arena arena = {0};
    struct chart chart = {
        .kind = kind, .dir = dir, .format = format ? format : formats[0], .arena = &arena, .err = err,
    };
    const struct kind *found = find_kind(kind, err);
    const char *plots = arena_printf(&arena, "%s/plots", dir);
    int failed = !found || check_format(chart.format, err) || make_folders(dir, plots, err) ||
                 write_chart(found, &chart) ||
                 gnuplot_run(plots, arena_printf(&arena, "%s.gp", kind),
                             arena_printf(&arena, "%s.%s", kind, chart.format), err);

    arena_release(&arena);
    return failed ? -1 : 0;
}

const char *plot_file(struct arena *arena, const char *kind, const char *dir, const char *format, size_t i)
{
    const char *const endings[] = {format ? format : formats[0], "gp", "tsv"};

    return i < COUNT(endings) ? arena_printf(arena, "%s/plots/%s.%s", dir, kind, endings[i]) : NULL;
}
