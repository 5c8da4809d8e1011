
#include "cli/cmd.h"
#include "tables/tables.h"
#include "trace/trace.h"

enum { OPT_OUT, OPT_FORMAT, OPT_RANKS, OPT_ALL, OPT_MERGE, OPT_GZIP };

/* Whether the format has what the options ask for. */
static int check_format(const struct command *command, const struct trace_request *request)
{
    if (request->merge && request->format != TRACE_KINETO)
        return usage_error(command, "--merge: of --format kineto only, which otherwise has a file a rank");
    if (request->gzip && request->format == TRACE_CHAKRA)
        return usage_error(command, "--gzip: not of --format chakra, whose readers expect plain files");
    if (request->all && request->format == TRACE_CHAKRA)
        return usage_error(command, "--all: a Chakra trace has the ranks of all replicas in any case");
    return ARGS_DONE;
}

static int trace_main(const struct arguments *arguments)
{
    struct error err = {0};
    const struct trace_request request = {
        .dir = arguments->positional[0], .out = arguments->values[OPT_OUT], .ranks = arguments->values[OPT_RANKS],
        .format = (enum trace_format)arguments->numbers[OPT_FORMAT],
        .all = arguments->values[OPT_ALL], .merge = arguments->values[OPT_MERGE], .gzip = arguments->values[OPT_GZIP],
    };
    int code = check_format(arguments->command, &request);

    if (code != ARGS_DONE)
        return code;
    if (!refuse_sweep(request.dir, &err) && result_check(request.dir, &err) >= 0)
        trace_write(&request, stdout, &err);
    return report(&err);
}

static const struct option options[] = {
    [OPT_OUT] = {"-o", "FILE|FOLDER",
        .help = "where to write: a file of perfetto, or of kineto with --merge; else a folder. Default: DIR/trace/"},
    [OPT_FORMAT] = {"--format", "FORMAT",
        .help = "perfetto, kineto or chakra", OPTION_CHOICE, .words = {"format", trace_format_names, NULL}, .usual = "perfetto"},
    [OPT_RANKS] = {"--ranks", "LIST", .help = "these ranks alone, such as 0-7,12"},
    [OPT_ALL] = {"--all",
        .help = "repeat the rows that stand for several replicas for each of them; otherwise their arguments say for how many they "
        "stand (chakra has all in any case)"},
    [OPT_MERGE] = {"--merge", .help = "kineto: one file of all ranks"},
    [OPT_GZIP] = {"--gzip", .help = "perfetto and kineto: compressed files"},
    {"DIR", .help = "the folder of a 'dtsim run -o'"},
};

const struct command cmd_trace = {
    .name = "trace",
    .arguments = "DIR",
    .least = 1, .most = 1,
    .brief = "Writes a run as a trace that Perfetto, PyTorch's tools or ASTRA-sim read.",
    .examples = "  dtsim run scenario.yaml -o out && dtsim trace out        # open the file on ui.perfetto.dev\n"
                "  dtsim trace out --format kineto --ranks 0-7              # for HTA and TensorBoard, a file a rank\n"
                "  dtsim trace out --format chakra -o workload              # for ASTRA-sim\n",
    .no_set = "--set: the trace is of a run that has ended; 'dtsim run --set ... -o DIR' makes another",
    .options = options, .noptions = COUNT(options),
    .more = "\n"
            "A rank is a rank of spans.tsv: one pipeline rank of a replica, whose tensor group acts as one. Times are "
            "rounded to ns (kineto and chakra: to us, so that sums stay right).\n"
            "\n"
            "perfetto: a track a lane, below its rank and replica; arrows from each send to what waits for it; counters of "
            "memory and utilization.\n"
            "kineto: a work is a compute kernel, then a collective kernel of its communication; its arguments are the sums "
            "of its exchanges; a message is a kernel of NCCL on both of its ranks. Elements are bytes. Launches come as soon as "
            "the stream is free, and no gap is the host's. HTA's critical path is as long as the step, ProfilerStep#1, but knows "
            "nothing of other ranks: 'dtsim explain' has the path across them.\n"
            "chakra: a file an NPU (dtsim.NPU.et), which is a rank; NPUs are numbered in the order of the machine. dtsim.json has "
            "groups of NPUs, and those of each node; network.yml, memory.json and system.json are for ASTRA-sim's analytical "
            "backends, whose command is printed. A communication within a tensor group is a time, since the group is one rank; a "
            "message is a send and a receive; what Chakra's readers do not have (reduce) is refused. With --ranks, such as a "
            "replica of many, a message to another rank and a collective with one are a time.\n",
    .main = trace_main,
};
