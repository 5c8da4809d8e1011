#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "files/look.h"
#include "rows.h"

static const struct kind {
    struct plot_kind face;
    int (*draw)(struct chart *chart);
} kinds[] = {
#define CHART(name, inputs, brief) {{#name, inputs, brief}, name##_draw},
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

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].face.name, name) == 0)
            return &kinds[i];
    return NULL;
}

const struct plot_kind *plot_kind_find(const char *name, struct error *err)
{
    const struct kind *kind = find_kind(name);

    if (!kind)
        unknown("kind of chart", name, kind_name, err);
    return kind ? &kind->face : NULL;
}

static int check_request(const struct plot_request *request, struct error *err)
{
    const struct plot_kind *kind = plot_kind_find(request->kind, err);

    if (!kind)
        return -1;
    if ((kind->inputs == PLOT_RUN || kind->inputs == PLOT_TRAINING) && request->ninputs > 1)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "%s: expected the folder of one %s, found %d", kind->name,
                         kind->inputs == PLOT_RUN ? "run" : "training", request->ninputs);
    return 0;
}

/* The folder of a run. */
static int check_folder(const char *dir, struct error *err)
{
    struct stat info;

    if (stat(dir, &info))
        return error_system(err, (struct loc){.file = dir}, "cannot open");
    if (!S_ISDIR(info.st_mode))
        return error_add(err, EXIT_INPUT, (struct loc){.file = dir}, "not a folder; give the folder of a run");
    return 0;
}

static int read_runs(struct chart *chart, struct headline **list)
{
    struct headline *runs = *list = xcalloc((size_t)chart->ninputs + 1, sizeof *runs);
    int failed = 0;

    for (int i = 0; i < chart->ninputs; i++)
        failed |= check_folder(chart->inputs[i], chart->err) ||
                  headline_load(chart->arena, arena_printf(chart->arena, "%s/result.json", chart->inputs[i]), &runs[i],
                                chart->err);
    chart->runs = runs;
    return failed ? -1 : 0;
}

/* A new file where the chart's files are made. */
static FILE *create(const struct chart *chart, const char *ending)
{
    FILE *file = fopen(arena_printf(chart->arena, "%s/%s%s", chart->staging.path, chart->name, ending), "wbxe");

    if (!file)
        error_add(chart->err, EXIT_UNEXPECTED, (struct loc){.file = arena_printf(chart->arena, "%s/%s%s", chart->folder,
                  chart->name, ending)}, "cannot write: %s", strerror(errno));
    return file;
}

static const char *chart_path(const struct chart *chart, const char *ending)
{
    return arena_printf(chart->arena, "%s/%s%s", chart->folder, chart->name, ending);
}

int chart_written(FILE *file, const char *path, struct error *err)
{
    int failed = ferror(file);

    failed |= fclose(file);
    if (failed)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = path}, "cannot write: %s", strerror(errno));
    return 0;
}

/* Refuses a name under which another file than a chart's stands: without the script beside it, it is none of ours. */
static int refuse_foreign(const struct chart *chart)
{
    const char *data = chart_path(chart, ".tsv");
    enum look there, script;

    if (look_at(data, &there, chart->err) || look_at(chart_path(chart, ".gp"), &script, chart->err))
        return -1;
    if (there == LOOK_NOTHING || script != LOOK_NOTHING)
        return 0;
    return error_add(chart->err, EXIT_USAGE, (struct loc){.file = data}, "the chart's data would replace this file, "
                     "which is of no chart; choose another name or folder with -o");
}

int chart_open(struct chart *chart)
{
    if (refuse_foreign(chart))
        return -1;
    if (mkdir(chart->folder, 0777) && errno != EEXIST)
        return error_add(chart->err, EXIT_UNEXPECTED, (struct loc){.file = chart->folder}, "cannot make the folder: %s",
                         strerror(errno));
    if (staging_open(&chart->staging, chart->folder, chart->name, chart->err))
        return -1;
    chart->script = create(chart, ".gp");
    chart->data = chart->script ? create(chart, ".tsv") : NULL;
    return chart->data ? 0 : -1;
}

static const char further[] = "-all.tsv";

FILE *chart_further(const struct chart *chart)
{
    return create(chart, further);
}

/* Tells the person of a picture of another format that stands beside the chart, and shows the data that the chart had before. */
static void note_older(const struct chart *chart, const char *format)
{
    const char *path = chart_path(chart, arena_printf(chart->arena, ".%s", format));

    if (access(path, F_OK))
        return;
    fputs("note: ", stderr);
    text_write(TEXT_LINE, path, stderr);
    fputs(" is of an earlier chart, with other data\n", stderr);
}

/* Puts the chart's files in place. Its picture of other data goes first, whatever ends this run; pictures of other formats are
 * a person's, who is told of them. The script comes before data, which without it are none of a chart's. */
static int chart_commit(struct chart *chart)
{
    struct staging *staging = &chart->staging;
    const char *const names[] = {".gp", ".tsv", arena_printf(chart->arena, ".%s", chart->format), further};
    enum look script, more;
    size_t count = COUNT(names);
    bool same;

    if (staging_lock(staging, chart->err) || look_at(chart_path(chart, ".gp"), &script, chart->err) ||
        look_at(arena_printf(chart->arena, "%s/%s%s", staging->path, chart->name, further), &more, chart->err))
        return -1;
    if (script == LOOK_NOTHING && more == LOOK_NOTHING)
        count--;                     /* a file of that name is of no chart */
    same = script == LOOK_NOTHING || staging_same(staging, arena_printf(chart->arena, "%s.tsv", chart->name));
    for (size_t i = 0; i < COUNT(formats); i++)
        if (!strcmp(formats[i], chart->format))
            unlink(chart_path(chart, arena_printf(chart->arena, ".%s", formats[i])));
        else if (!same)
            note_older(chart, formats[i]);
    for (size_t i = 0; i < count; i++)
        if (staging_put(staging, arena_printf(chart->arena, "%s%s", chart->name, names[i]), chart->err))
            return -1;
    return 0;
}

static int chart_close(struct chart *chart)
{
    int failed = 0;

    if (chart->data)
        failed |= chart_written(chart->data, chart_path(chart, ".tsv"), chart->err);
    if (chart->script)
        failed |= chart_written(chart->script, chart_path(chart, ".gp"), chart->err);
    return failed ? -1 : 0;
}

static int check_labels(const struct chart *chart)
{
    if (!chart->look->nlabels || chart->look->nlabels == chart->ninputs)
        return 0;
    return error_add(chart->err, EXIT_USAGE, (struct loc){0}, "--labels: %d label%s for %d run%s; expected one a run",
                     chart->look->nlabels, chart->look->nlabels == 1 ? "" : "s", chart->ninputs,
                     chart->ninputs == 1 ? "" : "s");
}

static int write_chart(const struct kind *kind, struct chart *chart)
{
    struct headline *runs = NULL;
    bool of_runs = kind->face.inputs <= PLOT_RUNS;
    int failed = (of_runs && (chart->rows->rows ? rows_as_runs : read_runs)(chart, &runs)) || check_labels(chart) ||
                 kind->draw(chart);

    failed |= chart_close(chart);
    for (int i = 0; runs && i < chart->ninputs; i++)
        headline_release(&runs[i]);
    free(runs);
    return failed ? -1 : 0;
}

/* NULL: an error. */
static const char *folder_of(struct arena *arena, const struct plot_request *request, struct error *err)
{
    const struct kind *kind = find_kind(request->kind);
    bool own = kind && (kind->face.inputs == PLOT_RUN || kind->face.inputs == PLOT_TRAINING ||
                        (kind->face.inputs == PLOT_STACK && request->ninputs == 1));
    enum look there;

    if (request->folder)
        return request->folder;
    if (kind && kind->face.inputs == PLOT_SWEEP && request->ninputs == 1) {
        if (look_at(request->inputs[0], &there, err))
            return NULL;
        own = there == LOOK_FOLDER;
    }
    return own ? arena_printf(arena, "%s/plots", request->inputs[0]) : "plots";
}

static const char *name_of(const struct plot_request *request)
{
    return request->name ? request->name : request->kind;
}

bool plot_name(struct arena *arena, const char *path, struct plot_request *request)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const char *format = NULL;

    for (size_t i = 0; dot && dot > name && plot_format_at(i); i++)
        if (!strcmp(dot + 1, plot_format_at(i)))
            format = plot_format_at(i);
    if (!format || strpbrk(name, "\n\r\t"))
        return false;
    request->format = format;
    request->name = arena_strndup(arena, name, (size_t)(dot - name));
    request->folder = slash == path ? "/" : slash ? arena_strndup(arena, path, (size_t)(slash - path)) : ".";
    return true;
}

int plot(const struct plot_request *request, struct error *err)
{
    struct arena arena = {0};
    struct plot_look look = request->look;
    struct chart chart = {
        .kind = request->kind, .inputs = request->inputs, .ninputs = request->ninputs, .dir = request->inputs[0],
        .format = request->format ? request->format : formats[0], .folder = folder_of(&arena, request, err),
        .name = name_of(request),
        .view = &request->view, .rows = &request->rows, .look = &look, .arena = &arena, .err = err,
    };
    int failed;

    look.zoom = look.zoom > 0 ? look.zoom : 1;
    failed = !chart.folder || check_request(request, err) || write_chart(find_kind(request->kind), &chart);
    if (!failed) {
        failed = gnuplot_run(&chart, err);       /* where it fails, data and script are what a person looks at */
        if (failed != EINTR && chart_commit(&chart))
            failed = -1;
    }
    staging_release(&chart.staging);
    arena_release(&arena);
    return failed ? -1 : 0;
}

const char *plot_file(struct arena *arena, const struct plot_request *request, size_t i, struct error *err)
{
    const char *const endings[] = {request->format ? request->format : formats[0], "gp", "tsv"};
    const char *folder = i < COUNT(endings) ? folder_of(arena, request, err) : NULL;

    return folder ? arena_printf(arena, "%s/%s.%s", folder, name_of(request), endings[i]) : NULL;
}
