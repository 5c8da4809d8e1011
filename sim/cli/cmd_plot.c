#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "plots/plot.h"

enum { OPT_FORMAT, OPT_OUT, OPT_RANKS, OPT_FROM, OPT_TO, OPT_REPLICA };
static const char *const options[] = {
    [OPT_FORMAT] = "--format=", [OPT_OUT] = "-o=", [OPT_RANKS] = "--ranks=", [OPT_FROM] = "--from=", [OPT_TO] = "--to=",
    [OPT_REPLICA] = "--replica=",
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

static int parse_request(const struct command *command, const struct arguments *arguments, struct plot_request *request)
{
    const char *const *values = arguments->values;

    *request = (struct plot_request){
        .kind = arguments->positional[0], .inputs = arguments->positional + 1, .ninputs = arguments->npositional - 1,
        .format = values[OPT_FORMAT], .folder = values[OPT_OUT],
    };
    for (int option = OPT_RANKS; option <= OPT_REPLICA && strcmp(request->kind, "gantt"); option++)
        if (values[option])
            return usage_error(command, "%.*s: of the gantt chart only", (int)strcspn(options[option], "="),
                               options[option]);
    return parse_view(command, values, &request->view);
}

/* Refuses folders that hold files of several runs. What is no folder, or holds no result, the chart itself refuses. */
static int check_runs(const struct plot_request *request, struct error *err)
{
    int rc = 0;

    for (int i = 0; i < request->ninputs; i++) {
        char path[4400];

        snprintf(path, sizeof path, "%s/result.json", request->inputs[i]);
        if (!access(path, R_OK) && result_check(request->inputs[i], err))
            rc = -1;
    }
    return rc;
}

static int plot_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct plot_request request;
    struct error err = {0};
    struct arena arena = {0};
    int code = arguments_parse(command, argc, argv, 2, ARGS_MAX, &arguments);

    if (code != ARGS_DONE)
        return code;
    if (arguments.nsets)
        return usage_error(command, "--set: a chart is drawn from the files of a run");
    code = parse_request(command, &arguments, &request);
    if (code != ARGS_DONE)
        return code;
    if (!check_runs(&request, &err) && !plot(&request, &err))
        for (size_t i = 0; plot_file(&arena, &request, i); i++)
            puts(plot_file(&arena, &request, i));
    arena_release(&arena);
    return report(&err);
}

#define CHART(name, inputs, brief) #name,
static const char **words(struct arena *arena)
{
    static const char *names[] = {
#include "plots/list.h"
        NULL,
    };

    (void)arena;
    return names;
}
#undef CHART

#define CHART(name, inputs, brief) "  " #name ": " brief "\n"
const struct command cmd_plot = {
    .name = "plot",
    .usage = "CHART DIR... [--format png|svg|pdf] [-o FOLDER] [--ranks LIST | --replica R] [--from T] [--to T]",
    .brief = "Draws a chart of result files through gnuplot; its script and data stay beside it.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim plot gantt out\n"
                "  dtsim plot gantt out --ranks 0,4-7 --from '10 ms' --to '20 ms'\n"
                "  dtsim plot utilization out --format svg\n"
                "  dtsim plot memory out\n"
                "  dtsim plot breakdown gpipe 1f1b interleaved\n"
                "  dtsim collective dgx-h100 --ranks 16 --bytes '1 MB' --json >sizes.json\n"
                "  dtsim collective dgx-h100 --ranks 16 --bytes '1 GB' --json >>sizes.json\n"
                "  dtsim plot collective sizes.json\n",
    .options = "  --format FORMAT     png (when left out), svg or pdf\n"
               "  -o FOLDER           where picture, script and data go; left out: plots/ in the run's folder; for\n"
               "                      charts of several runs plots/ here\n"
               "  --ranks LIST        gantt: these rows (0,4-7); left out: one replica where all do the same, else\n"
               "                      all; of more than 64 the first, middle and last, above an image of all\n"
               "  --replica R         gantt: the ranks of this replica, counted from 0\n"
               "  --from T, --to T    gantt: a part of the time ('10 ms')\n"
               "charts (gantt, utilization, memory and links are of one run):\n"
#include "plots/list.h"
    ,
    .words = words,
    .accepts = options,
    .naccepts = COUNT(options),
    .main = plot_main,
};
#undef CHART
