#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/cmd.h"
#include "cli/key_list.h"
#include "files/look.h"
#include "plots/plot.h"
#include "store/store.h"
#include "train/training.h"

enum { OPT_FORMAT, OPT_OUT, OPT_RANKS, OPT_FROM, OPT_TO, OPT_REPLICA, OPT_X, OPT_Y, OPT_BY, OPT_WHERE,
       OPT_TITLE, OPT_LABELS, OPT_SIZE, OPT_STYLE };
static const char *const options[] = {
    [OPT_FORMAT] = "--format=", [OPT_OUT] = "-o=", [OPT_RANKS] = "--ranks=", [OPT_FROM] = "--from=", [OPT_TO] = "--to=",
    [OPT_REPLICA] = "--replica=", [OPT_X] = "--x=", [OPT_Y] = "--y=", [OPT_BY] = "--by=", [OPT_WHERE] = "--where=",
    [OPT_TITLE] = "--title=", [OPT_LABELS] = "--labels=", [OPT_SIZE] = "--size=", [OPT_STYLE] = "--style=",
};
/* A slide of 16:9, whose letters are half as large again. */
/* Letters of 10 points times the zoom; pixels, 96 to an inch, where --size does not say them; 0: as the chart chooses. */
static const struct { const char *name; double zoom; int width, height; } plot_styles[] = {
    {"paper", 1, 0, 0}, {"column", 0.65, 317, 0}, {"slide", 1.5, 1280, 720},
};
/* The charts that some options are for. */
static const struct { int first, last; const char *kinds, *are; } special[] = {
    {OPT_RANKS, OPT_REPLICA, " gantt ", "the gantt chart"},
    {OPT_X, OPT_Y, " heat pareto ", "the heat and pareto charts"},
    {OPT_BY, OPT_BY, " heat ", "the heat chart"},
    {OPT_LABELS, OPT_LABELS, " gantt breakdown bubble ", "the gantt, breakdown and bubble charts"},
    {OPT_WHERE, OPT_WHERE, " heat pareto breakdown bubble scaling ", "charts of sweeps"},
};

/* A time of the run, not before 0. */
static int parse_time(const struct command *command, const char *option, const char *text, double *seconds)
{
    char why[256];

    if (!text)
        return ARGS_DONE;
    if (unit_parse(UNIT_TIME, text, seconds, why, sizeof why))
        return usage_error(command, "%s: %s", option, why);
    return *seconds < 0 ? usage_error(command, "%s: expected a time from 0 s on, found '%s'", option, text) : ARGS_DONE;
}

/* --ranks, --from, --to and --replica. */
static int parse_view(const struct command *command, const char *const *values, struct plot_view *view)
{
    int code = parse_time(command, "--from", values[OPT_FROM], &view->from);
    char *end;

    *view = (struct plot_view){.ranks = values[OPT_RANKS], .from = view->from, .replica = -1};
    if (code == ARGS_DONE)
        code = parse_time(command, "--to", values[OPT_TO], &view->to);
    if (code != ARGS_DONE)
        return code;
    if (values[OPT_TO] && view->to <= view->from)
        return usage_error(command, "--to: expected a time after --from, found '%s'", values[OPT_TO]);
    if (!values[OPT_REPLICA])
        return ARGS_DONE;
    if (view->ranks)
        return usage_error(command, "--replica: --ranks says which ranks");
    view->replica = (int)strtol(values[OPT_REPLICA], &end, 10);
    if (*end || end == values[OPT_REPLICA] || view->replica < 0)
        return usage_error(command, "--replica: expected a number from 0 on, found '%s'", values[OPT_REPLICA]);
    return ARGS_DONE;
}

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
static int parse_look(const struct command *command, const char *const *values, struct arena *arena,
                      struct plot_look *look)
{
    const char *style = values[OPT_STYLE] ? values[OPT_STYLE] : "paper";
    size_t i = 0;
    int code = ARGS_DONE;

    while (i < COUNT(plot_styles) && strcmp(style, plot_styles[i].name))
        i++;
    if (i == COUNT(plot_styles))
        return usage_error(command, "--style: expected paper, column or slide, found '%s'", style);
    *look = (struct plot_look){.title = values[OPT_TITLE], .zoom = plot_styles[i].zoom, .width = plot_styles[i].width,
                               .height = plot_styles[i].height};
    if (values[OPT_SIZE])
        code = parse_size(command, values[OPT_SIZE], look);
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

/* Whether the word stands in a list of words between blanks. */
static bool is_word_of(const char *list, const char *word)
{
    const char *found = strstr(list, word);

    return found && found > list && found[-1] == ' ' && found[strlen(word)] == ' ';
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

static int parse_request(const struct command *command, const struct arguments *arguments, struct arena *arena,
                         struct plot_request *request)
{
    const char *const *values = arguments->values;
    int code;

    *request = (struct plot_request){
        .kind = arguments->positional[0], .inputs = arguments->positional + 1, .ninputs = arguments->npositional - 1,
    };
    for (size_t i = 0; i < COUNT(special); i++)
        for (int option = special[i].first; option <= special[i].last; option++)
            if (values[option] && !is_word_of(special[i].kinds, request->kind))
                return usage_error(command, "%.*s: of %s only", (int)strcspn(options[option], "="), options[option],
                                   special[i].are);
    code = parse_out(command, values, arena, request);
    code = code == ARGS_DONE ? parse_look(command, values, arena, &request->look) : code;
    return code == ARGS_DONE ? parse_view(command, values, &request->view) : code;
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
static int draw_and_tell(const struct command *command, const struct arguments *arguments, struct plot_request *request)
{
    const struct plot_kind *kind;
    struct error err = {0};
    struct arena arena = {0};
    int code = parse_request(command, arguments, &arena, request), rc = -1;
    const char *file;
    bool rows;

    kind = code == ARGS_DONE ? plot_kind_find(request->kind, &err) : NULL;
    if (kind && has_rows(kind, request, &rows, &err))
        kind = NULL;
    if (kind && rows)
        rc = draw_rows(arguments->values, kind->inputs == PLOT_SWEEP, request, &err);
    else if (kind && arguments->values[OPT_WHERE])
        code = usage_error(command, "--where: '%s' holds no rows of a sweep", request->inputs[0]);
    else if (kind)
        rc = draw(kind, request, &err);
    for (size_t i = 0; rc == 0 && (file = plot_file(&arena, request, i, &err)); i++) {
        text_write(TEXT_LINE, file, stdout);
        putchar('\n');
    }
    arena_release(&arena);
    return code == ARGS_DONE ? report(&err) : code;
}

static int plot_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct plot_request request;
    int code = arguments_parse(command, argc, argv, 2, ARGS_MAX, &arguments);

    if (code != ARGS_DONE)
        return code;
    if (arguments.nsets)
        return usage_error(command, "--set: a chart is drawn from the files of a run");
    return draw_and_tell(command, &arguments, &request);
}

#define CHART(name, inputs, brief) #name,
static const char **words(struct arena *arena, struct error *err)
{
    static const char *names[] = {
#include "plots/list.h"
        NULL,
    };

    (void)arena;
    (void)err;
    return names;
}
#undef CHART

#define CHART(name, inputs, brief) "  " #name ": " brief "\n"
const struct command cmd_plot = {
    .name = "plot",
    .usage = "CHART DIR... [--format png|svg|pdf] [-o FILE|FOLDER] [--ranks LIST | --replica R] [--from T] [--to T]\n"
             "       [--x KEY] [--y KEY] [--by KEY] [--where EXPRESSION] [--title TEXT] [--labels A,B,..]\n"
             "       [--size WxH] [--style paper|column|slide]",
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
    .options = "  --format FORMAT     png (when left out), svg or pdf\n"
               "  -o FILE|FOLDER      the picture, NAME.png, NAME.svg or NAME.pdf, with its script and data; or a\n"
               "                      folder for them; left out: plots/ in the run's folder, for charts of several\n"
               "                      runs plots/ here\n"
               "  --ranks LIST        gantt: these rows (0,4-7); left out: one replica where all do the same, else\n"
               "                      all; of more than 64 the first, middle and last, above an image of all.\n"
               "                      Several runs have 64 rows together, and no image\n"
               "  --replica R         gantt: the ranks of this replica, counted from 0\n"
               "  --from T, --to T    gantt: a part of the time ('10 ms')\n"
               "  --x KEY, --y KEY    heat: axes, which the sweep sets; left out: the first two that vary. pareto:\n"
               "                      metrics; left out: the sweep's objectives, else memory and throughput\n"
               "  --by KEY            heat: the metric; left out: the sweep's first objective, else throughput. The\n"
               "                      most is the best of rates and shares of use, else the least; KEY:min and\n"
               "                      KEY:max say otherwise, also behind --x and --y of pareto. In a chart of\n"
               "                      peak_memory_bytes a line parts what fits from what does not\n"
               "  --where EXPRESSION  of sweeps: only rows for which it is true (dtsim help results)\n"
               "  --title TEXT        the title, instead of the run's or the chart's own\n"
               "  --labels A,B,..     gantt of several runs, breakdown, bars of bubble: a label for each run, in\n"
               "                      order\n"
               "  --size WxH          the picture's pixels, 96 to an inch (png files have twice as many each way);\n"
               "                      a chart that cannot be read so low is higher\n"
               "  --style STYLE       paper (when left out); column: 3.3 inches wide, letters of 6.5 points; slide: larger\n"
               "                      letters, 1280x720\n"
               "breakdown, bubble and scaling take folders of runs, or of sweeps: then every row that ran, and of\n"
               "scaling the best of each number of GPUs\n"
               "charts (utilization, memory and links are of one run):\n"
#include "plots/list.h"
#include "results/results.h"
#include "tables/tables.h"
    ,
    .words = words,
    .accepts = options,
    .naccepts = COUNT(options),
    .main = plot_main,
};
#undef CHART
