#include "cli/cmd.h"
#include "page/page.h"

enum { OPT_OUT, OPT_RANKS, OPT_LIGHT, OPT_DARK };
static const char *const options[] = {
    [OPT_OUT] = "-o=", [OPT_RANKS] = "--ranks=", [OPT_LIGHT] = "--light", [OPT_DARK] = "--dark",
};

static int report_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct page_request request;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments);

    if (code != ARGS_DONE)
        return code;
    request = (struct page_request){
        .input = arguments.positional[0], .out = arguments.values[OPT_OUT], .ranks = arguments.values[OPT_RANKS],
        .theme = arguments.values[OPT_LIGHT] ? "light" : arguments.values[OPT_DARK] ? "dark" : NULL,
    };
    if (arguments.values[OPT_LIGHT] && arguments.values[OPT_DARK])
        return usage_error(command, "expected one of --light, --dark");
    if (arguments.nsets)
        return usage_error(command, "--set: the report is of a run that has ended; 'dtsim run --set ... -o DIR' makes another");
    if (!refuse_sweep(request.input, &err) && result_check(request.input, &err) >= 0)
        page_of_run(&request, stdout, &err);
    return report(&err);
}

const struct command cmd_report = {
    .name = "report", .usage = "DIR [-o FILE] [--ranks LIST] [--light | --dark]",
    .brief = "Writes a run as one HTML page: timeline, memory, links, where the time goes.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim report out       # open out/report.html in a browser\n"
                "  dtsim report out -o for-a-colleague.html --light\n",
    .options = "  DIR           the folder of a 'dtsim run -o'\n"
               "  -o FILE       the page. Default: DIR/report.html\n"
               "  --ranks LIST  the spans of these ranks alone, such as 0-7,12; the page of a long run is smaller then\n"
               "  --light, --dark\n"
               "                how the page looks first. Default: as the reader's system has it\n"
               "\n"
               "The page is one file that asks nobody for anything: it can be sent by mail and opened anywhere. It needs a\n"
               "browser of 2023 or later. Its numbers are those of DIR/result.json, and its timeline is that of\n"
               "DIR/spans.tsv to 1 ns. A rank is a rank of spans.tsv: one pipeline rank of a replica, whose tensor group\n"
               "acts as one.\n",
    .accepts = options, .naccepts = COUNT(options), .main = report_main,
};
