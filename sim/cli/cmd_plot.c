#include "cli/cmd.h"
#include "plots/plot.h"

enum { OPT_FORMAT };
static const char *const options[] = {[OPT_FORMAT] = "--format="};

static int plot_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct arena arena = {0};
    const char *kind, *dir, *format;
    int code = arguments_parse(command, argc, argv, options, COUNT(options), 2, 2, &arguments);

    if (code != ARGS_DONE)
        return code;
    if (arguments.nsets)
        return usage_error(command, "--set: a chart is drawn from the files of a run");
    kind = arguments.positional[0];
    dir = arguments.positional[1];
    format = arguments.values[OPT_FORMAT];
    if (!result_check(dir, &err) && !plot(kind, dir, format, &err))
        for (size_t i = 0; plot_file(&arena, kind, dir, format, i); i++)
            puts(plot_file(&arena, kind, dir, format, i));
    arena_release(&arena);
    return report(&err);
}

#define CHART(name, brief) "  " #name ": " brief "\n"
const struct command cmd_plot = {
    .name = "plot",
    .usage = "CHART DIR [--format png|svg|pdf]",
    .brief = "Draws a chart of a run's folder through gnuplot; its script and data stay beside it.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim plot gantt out\n"
                "  dtsim plot utilization out --format svg\n"
                "  dtsim plot memory out\n",
    .options = "  --format FORMAT     png (when left out), svg or pdf\n"
               "charts:\n"
#include "plots/list.h"
    ,
    .main = plot_main,
};
#undef CHART
