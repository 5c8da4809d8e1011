#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "cli/cmd.h"
#include "cli/key_list.h"
#include "files/look.h"
#include "plots/plot.h"
#include "results/results.h"
#include "store/store.h"
#include "tables/tables.h"
#include "train/training.h"

enum { OPT_FORMAT, OPT_OUT, OPT_RANKS, OPT_REPLICA, OPT_FROM, OPT_TO, OPT_X, OPT_Y, OPT_BY, OPT_WHERE, OPT_TITLE, OPT_LABELS, OPT_SIZE,
       OPT_STYLE };
/* A slide of 16:9, whose letters are half as large again. */
/* Letters of 10 points times the zoom; pixels, 96 to an inch, where --size does not say them; 0: as the chart chooses. */
static const struct { const char *name; double zoom; int width, height; } plot_styles[] = {
    {"paper", 1, 0, 0}, {"column", 0.65, 317, 0}, {"slide", 1.5, 1280, 720},
};
/* "1280x720": two whole numbers of pixels. */
static int parse_size(const struct command *command, const char *text, struct plot_look *look)
{
    const int LEAST = look->zoom < 1 ? 300 : 600, MOST = 10000;
    char rest;

    if (sscanf(text, "%5dx%5d%c", &look->width, &look->height, &rest) != 2 || look->width < LEAST ||
        look->height < LEAST / 2 || look->width > MOST || look->height > MOST)
        return usage_error(command, "--size: expected WIDTHxHEIGHT in pixels, from %dx%d to %dx%d, such as 1280x720, "
                           "found '%s'", LEAST, LEAST / 2, MOST, MOST, text);
    return ARGS_DONE;
}

/* --title, --labels, --size and --style. */
static int parse_look(const struct arguments *arguments, struct arena *arena, struct plot_look *look)
{
    const char *const *values = arguments->values;
    size_t i = (size_t)arguments->numbers[OPT_STYLE];
    int code = ARGS_DONE;

    *look = (struct plot_look){.title = values[OPT_TITLE], .zoom = plot_styles[i].zoom, .width = plot_styles[i].width,
                               .height = plot_styles[i].height};
    if (values[OPT_SIZE])
        code = parse_size(arguments->command, values[OPT_SIZE], look);
    look->width = (int)(look->width / look->zoom);
    look->height = (int)(look->height / look->zoom);
    if (values[OPT_LABELS]) {
        char *rest = arena_strdup(arena, values[OPT_LABELS]);
        const char **labels = ARENA_ARRAY(arena, const char *, strlen(rest) + 1);

        for (char *label; (label = strsep(&rest, ","));)
            labels[look->nlabels++] = label;
        look->labels = labels;
    }
    return code;
}

/* -o: a picture, whose ending is its format, or a folder. */
static int parse_out(const struct command *command, const char *const *values, struct arena *arena,
                     struct plot_request *request)
{
    const char *format = values[OPT_FORMAT], *out = values[OPT_OUT];

    request->format = format;
    if (!out)
        return ARGS_DONE;
    if (!plot_name(arena, out, request))
        request->folder = out;
    else if (format && strcmp(format, request->format))
        return usage_error(command, "--format: %s: the picture of -o is '%s'", format, out);
    return ARGS_DONE;
}

static int parse_request(const struct arguments *arguments, struct arena *arena, struct plot_request *request)
{
    const char *const *values = arguments->values;
    const double *numbers = arguments->numbers;
    int code;

    *request = (struct plot_request){
        .kind = arguments->positional[0], .inputs = arguments->positional + 1, .ninputs = arguments->npositional - 1,
        .view = {.ranks = values[OPT_RANKS], .from = numbers[OPT_FROM], .to = numbers[OPT_TO],
                 .replica = values[OPT_REPLICA] ? (int)numbers[OPT_REPLICA] : -1},
    };
    if (values[OPT_TO] && numbers[OPT_TO] <= numbers[OPT_FROM])
        return usage_error(arguments->command, "--to: expected a time after --from, found '%s'", values[OPT_TO]);
    code = parse_out(arguments->command, values, arena, request);
    return code == ARGS_DONE ? parse_look(arguments, arena, &request->look) : code;
}

/* Refuses folders that hold files of several runs or trainings, or a sweep; says which ones another build wrote. A path
 * to no folder, or to an empty one, the chart itself refuses. */
static int check_runs(const struct plot_kind *kind, const struct plot_request *request, struct error *err)
{
    int (*check)(const char *dir, struct error *err) = kind->inputs == PLOT_TRAINING ? training_check : result_check;
    int rc = 0;

    for (int i = 0; i < request->ninputs; i++) {
        char path[4400];
        enum look there;
        int found;

        snprintf(path, sizeof path, "%s/result.json", request->inputs[i]);
        found = look_at(path, &there, err) ? -1 : there == LOOK_NOTHING ? refuse_sweep(request->inputs[i], err) :
                check(request->inputs[i], err);
        rc = found < 0 ? -1 : rc;
        if (found > 0)
            fprintf(stderr, "%s: another build of dtsim wrote this; the chart shows what of it this build knows\n",
                    request->inputs[i]);
    }
    return rc;
}

/* Whether the chart is one of rows: of sweeps always, of runs where the first input is no run but a sweep. */
static int has_rows(const struct plot_kind *kind, const struct plot_request *request, bool *rows, struct error *err)
{
    *rows = kind->inputs == PLOT_SWEEP;
    return kind->inputs == PLOT_RUNS ? store_holds_rows(request->inputs[0], rows, err) : 0;
}

/* Draws from the files themselves. */
static int draw(const struct plot_kind *kind, const struct plot_request *request, struct error *err)
{
    return check_runs(kind, request, err) || plot(request, err) ? -1 : 0;
}

/* One key behind an option; *key stays where there is none. */
static int read_key(const struct results *results, const char *text, const char *option, struct plot_key *key,
                    struct error *err)
{
    struct key_list list;

    if (!text)
        return 0;
    if (key_list_read(results, text, option, &list, err))
        return -1;
    if (list.count > 1)
        return error_add(err, EXIT_USAGE, (struct loc){0}, "%s: expected one key, found '%s'", option, text);
    *key = (struct plot_key){results->keys.items[list.keys[0]].name, list.largest[0]};
    return 0;
}

/* The metrics to draw if nobody says which: of heat the sweep's first objective, else throughput; of pareto the first
 * two, else throughput against memory. */
static void choose_metrics(const struct results *results, struct plot_request *request)
{
    static const char memory[] = "peak_memory_bytes";
    struct plot_key keys[2] = {{memory, false}, {"iteration_time_s", false}};
    struct key_list objectives, throughput;

    key_list_throughput(results, &throughput);
    if (throughput.count)
        keys[1] = (struct plot_key){results->keys.items[throughput.keys[0]].name, true};
    key_list_objectives(results, &objectives);
    for (size_t i = 0; i < objectives.count && i < 2; i++) {
        const struct plot_key key = {results->keys.items[objectives.keys[i]].name, objectives.largest[i]};

        keys[objectives.count > 1 ? i : 1] = key;
    }
    if (strcmp(request->kind, "heat") == 0)
        request->rows.by = keys[objectives.count > 1 ? 0 : 1];
    else
        request->rows.x = keys[0], request->rows.y = keys[1];
}

/* Draws from the rows of sweeps, which results/ reads for it. */
static int draw_rows(const char *const *values, bool sweep, struct plot_request *request, struct error *err)
{
    const struct results_question question = {.where = values[OPT_WHERE]};
    struct results results;
    json_t *rows = json_array();
    int rc = results_open(request->inputs, (size_t)request->ninputs, &results, err) ||
             results_read(&results, &question, err) ? -1 : 0;

    if (!rc && sweep)
        choose_metrics(&results, request);
    if (!rc && sweep)
        rc = read_key(&results, values[OPT_X], "--x", &request->rows.x, err) |
             read_key(&results, values[OPT_Y], "--y", &request->rows.y, err) |
             read_key(&results, values[OPT_BY], "--by", &request->rows.by, err);
    for (size_t i = 0; i < results.rows.count && !rc; i++)
        json_array_append(rows, results.rows.items[i]);
    request->rows.rows = rows;
    rc = rc ? rc : plot(request, err);
    if (!rc && results.other_builds)
        fprintf(stderr, "rows that another build wrote are left out: %zu\n", results.other_builds);
    json_decref(rows);
    results_release(&results);
    return rc;
}

/* Draws the chart, and prints the names of its files. */
static int plot_main(const struct arguments *arguments)
{
    struct plot_request asked, *request = &asked;
    const struct plot_kind *kind;
    struct error err = {0};
    struct arena arena = {0};
    int code = parse_request(arguments, &arena, request), rc = -1;
    const char *file;
    bool rows;

    kind = code == ARGS_DONE ? plot_kind_find(request->kind, &err) : NULL;
    if (kind && has_rows(kind, request, &rows, &err))
        kind = NULL;
    if (kind && rows)
        rc = draw_rows(arguments->values, kind->inputs == PLOT_SWEEP, request, &err);
    else if (kind && arguments->values[OPT_WHERE])
        code = usage_error(arguments->command, "--where: '%s' holds no rows of a sweep", request->inputs[0]);
    else if (kind)
        rc = draw(kind, request, &err);
    for (size_t i = 0; rc == 0 && (file = plot_file(&arena, request, i, &err)); i++) {
        text_write(TEXT_LINE, file, stdout);
        putchar('\n');
    }
    arena_release(&arena);
    return code == ARGS_DONE ? report(&err) : code;
}

static const char *style_name(size_t i)
{
    return i < COUNT(plot_styles) ? plot_styles[i].name : NULL;
}

static const char *chart_name(size_t i)
{
    return plot_kind_at(i) ? plot_kind_at(i)->name : NULL;
}

#define CHART(name, inputs, brief) "  " #name ": " brief "\n"
static const struct option options[] = {
    [OPT_FORMAT] = {"--format", "FORMAT",
        .help = "png (when left out), svg or pdf", OPTION_CHOICE, .words = {"format", NULL, plot_format_at}},
    [OPT_OUT] = {"-o", "FILE|FOLDER",
        .help = "the picture, NAME.png, NAME.svg or NAME.pdf, with its script and data; or a folder for them; left out: plots/ in "
        "the run's folder, for charts of several runs plots/ here"},
    [OPT_RANKS] = {"--ranks", "LIST",
        .help = "these rows (0,4-7); left out: one replica where all do the same, else all; of more than 64 the first, middle and "
        "last, above an image of all. Several runs have 64 rows together, and no image", .one_of = 1, .with = "gantt"},
    [OPT_REPLICA] = {"--replica", "R",
        .help = "the ranks of this replica, counted from 0", OPTION_COUNT, 0, INT_MAX, .one_of = 1, .with = "gantt"},
    [OPT_FROM] = {"--from", "T", .help = "a part of the time ('10 ms')", OPTION_TIME, .with = "gantt"},
    [OPT_TO] = {"--to", "T", .help = "its end", OPTION_TIME, .with = "gantt"},
    [OPT_X] = {"--x", "KEY",
        .help = "the axis, which the sweep sets; left out: the first that varies. pareto: the metric; left out: of the sweep's "
        "objectives, else memory", .with = "heat pareto"},
    [OPT_Y] = {"--y", "KEY", .help = "the same of the other one, and else throughput", .with = "heat pareto"},
    [OPT_BY] = {"--by", "KEY",
        .help = "the metric; left out: the sweep's first objective, else throughput. The most is the best of rates and shares of "
        "use, else the least; KEY:min and KEY:max say otherwise, also behind --x and --y of pareto. In a chart of "
        "peak_memory_bytes a line parts what fits from what does not", .with = "heat"},
    [OPT_WHERE] = {"--where", "EXPRESSION",
        .help = "only rows of sweeps for which it is true (dtsim help results)", .with = "heat pareto breakdown bubble scaling"},
    [OPT_TITLE] = {"--title", "TEXT", .help = "the title, instead of the run's or the chart's own"},
    [OPT_LABELS] = {"--labels", "A,B,..", .help = "a label for each of several runs, in order", .with = "gantt breakdown bubble"},
    [OPT_SIZE] = {"--size", "WxH",
        .help = "the picture's pixels, 96 to an inch (png files have twice as many each way); a chart that cannot be read so low is "
        "higher"},
    [OPT_STYLE] = {"--style", "STYLE",
        .help = "paper; column: 3.3 inches wide, letters of 6.5 points; slide: larger letters, 1280x720",
        OPTION_CHOICE, .words = {"style", NULL, style_name}, .usual = "paper"},
};

const struct command cmd_plot = {
    .name = "plot",
    .arguments = "CHART DIR...",
    .least = 2, .most = ARGS_MAX,
    .brief = "Draws a chart of result files through gnuplot; its script and data stay next to it.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim plot gantt out\n"
                "  dtsim plot gantt out --ranks 0,4-7 --from '10 ms' --to '20 ms'\n"
                "  dtsim plot gantt gpipe 1f1b zb-h1 -o schedules.svg\n"
                "  dtsim plot utilization out -o utilization.svg\n"
                "  dtsim plot memory out\n"
                "  dtsim plot breakdown gpipe 1f1b interleaved --style slide --title 'Which schedule?'\n"
                "  dtsim collective dgx-h100 --ranks 16 --bytes '1 MB' --json >sizes.json\n"
                "  dtsim collective dgx-h100 --ranks 16 --bytes '1 GB' --json >>sizes.json\n"
                "  dtsim plot collective sizes.json\n"
                "  dtsim plot heat llama.sweep --x strategy.tensor --y strategy.pipeline --by mfu\n"
                "  dtsim plot pareto llama.sweep --x peak_memory_bytes --y tokens_per_s\n"
                "  dtsim train llama3-8b.yaml -o days && dtsim plot training days\n",
    .no_set = "--set: a chart is drawn from the files of a run",
    .first = {NULL, NULL, chart_name},
    .options = options, .noptions = COUNT(options),
    .more = "breakdown, bubble and scaling take folders of runs, or of sweeps: then every row that ran, and of scaling the "
            "best of each number of GPUs\n"
            "charts (utilization, memory and links are of one run):\n"
#include "plots/list.h"
    ,
    .main = plot_main,
};
#undef CHART
