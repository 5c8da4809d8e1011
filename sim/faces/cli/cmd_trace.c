#include <string.h>

#include "cli/cmd.h"
#include "tables/tables.h"
#include "trace/trace.h"

enum { OPT_FORMAT, OPT_OUT, OPT_RANKS, OPT_ALL, OPT_MERGE, OPT_GZIP };
static const char *const options[] = {
    [OPT_FORMAT] = "--format=", [OPT_OUT] = "-o=", [OPT_RANKS] = "--ranks=", [OPT_ALL] = "--all", [OPT_MERGE] = "--merge",
    [OPT_GZIP] = "--gzip",
};

/* The format, and whether it has what the options ask for. */
static int parse_format(const struct command *command, const char *const *values, struct trace_request *request)
{
    const char *name = values[OPT_FORMAT] ? values[OPT_FORMAT] : trace_format_names[TRACE_PERFETTO];
    int format = 0;

    while (trace_format_names[format] && strcmp(trace_format_names[format], name))
        format++;
    if (!trace_format_names[format])
        return usage_error(command, "--format: expected perfetto, kineto or chakra, found '%s'", name);
    request->format = (enum trace_format)format;
    if (request->merge && request->format != TRACE_KINETO)
        return usage_error(command, "--merge: of --format kineto only, which otherwise has a file a rank");
    if (request->gzip && request->format == TRACE_CHAKRA)
        return usage_error(command, "--gzip: not of --format chakra, whose readers expect plain files");
    if (request->all && request->format == TRACE_CHAKRA)
        return usage_error(command, "--all: a Chakra trace has the ranks of all replicas in any case");
    return ARGS_DONE;
}

static int trace_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {0};
    struct trace_request request;
    int code = arguments_parse(command, argc, argv, 1, 1, &arguments);

    if (code != ARGS_DONE)
        return code;
    request = (struct trace_request){
        .dir = arguments.positional[0], .out = arguments.values[OPT_OUT], .ranks = arguments.values[OPT_RANKS],
        .all = arguments.values[OPT_ALL], .merge = arguments.values[OPT_MERGE], .gzip = arguments.values[OPT_GZIP],
    };
    code = parse_format(command, arguments.values, &request);
    if (code != ARGS_DONE)
        return code;
    if (arguments.nsets)
        return usage_error(command, "--set: the trace is of a run that has ended; 'dtsim run --set ... -o DIR' makes another");
    if (!refuse_sweep(request.dir, &err) && result_check(request.dir, &err) >= 0)
        trace_write(&request, stdout, &err);
    return report(&err);
}

const struct command cmd_trace = {
    .name = "trace", .usage = "DIR [-o FILE|FOLDER] [--format FORMAT] [--ranks LIST] [--all] [--merge] [--gzip]",
    .brief = "Writes a run as a trace that Perfetto, PyTorch's tools or ASTRA-sim read.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim trace out        # open the file on ui.perfetto.dev\n"
                "  dtsim trace out --format kineto --ranks 0-7              # for HTA and TensorBoard, a file a rank\n"
                "  dtsim trace out --format chakra -o workload              # for ASTRA-sim\n",
    .options = "  DIR              the folder of a 'dtsim run -o'\n"
               "  -o FILE|FOLDER   where to write: a file of perfetto, or of kineto with --merge; else a folder.\n"
               "                   Default: DIR/trace/\n"
               "  --format FORMAT  perfetto (default), kineto or chakra\n"
               "  --ranks LIST     these ranks alone, such as 0-7,12\n"
               "  --all            repeat the rows that stand for several replicas for each of them; otherwise their\n"
               "                   arguments say for how many they stand (chakra has all in any case)\n"
               "  --merge          kineto: one file of all ranks\n"
               "  --gzip           perfetto and kineto: compressed files\n"
               "\n"
               "A rank is a rank of spans.tsv: one pipeline rank of a replica, whose tensor group acts as one. Times\n"
               "are rounded to ns (chakra: to us, so that sums stay right).\n"
               "\n"
               "perfetto  a track a lane, below its rank and replica; arrows from each send to what waits for it;\n"
               "          counters of memory and utilization.\n"
               "kineto    a work is a compute kernel, then a collective kernel of its communication; its arguments are\n"
               "          the sums of its exchanges. Elements are bytes. Launches take no time, and come as soon as\n"
               "          the stream is free.\n"
               "chakra    a file a rank (dtsim.RANK.et) and the groups of ranks (dtsim.json). A communication within a\n"
               "          tensor group is a time, since the group is one rank; a message is a send and a receive; what\n"
               "          Chakra's readers do not have (reduce) is refused. With --ranks, a message to another rank\n"
               "          is a time.\n",
    .accepts = options, .naccepts = COUNT(options), .main = trace_main,
};
