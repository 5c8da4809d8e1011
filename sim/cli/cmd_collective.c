#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/collective_table.h"
#include "collective/measure.h"

enum { OPT_OP, OPT_ALGORITHM, OPT_RANKS, OPT_BYTES, OPT_CHANNELS, OPT_ENGINE, OPT_TABLE, OPT_JSON,
       OPT_MARKDOWN };
static const char *const options[] = {
    [OPT_OP] = "--op=", [OPT_ALGORITHM] = "--algorithm=", [OPT_RANKS] = "--ranks=", [OPT_BYTES] = "--bytes=",
    [OPT_CHANNELS] = "--channels=", [OPT_ENGINE] = "--engine=", [OPT_TABLE] = "--table",
    [OPT_JSON] = "--json", [OPT_MARKDOWN] = "--markdown",
};

struct request {
    enum collective_op op;
    const struct collective *collective;     /* NULL: as the cluster's library would choose */
    int ranks, channels;             /* channels 0: as many as the cluster calls for */
    double bytes;
    enum engine engine;
    struct arena arena;
    struct cluster cluster;
};

static const char *op_candidate(size_t i, const void *context)
{
    (void)context;
    return collective_op_names[i];
}

static const char *collective_candidate(size_t i, const void *op)
{
    const struct collective *collective = collective_of(*(const enum collective_op *)op, i);

    return collective ? collective->name : NULL;
}

/* --op and --algorithm. */
static int parse_collective(const struct command *command, const struct arguments *arguments, struct request *request)
{
    const char *operation = arguments->values[OPT_OP] ? arguments->values[OPT_OP] : "all_reduce";
    const char *algorithm = arguments->values[OPT_ALGORITHM], *meant;
    enum collective_op op = 0;
    char names[200] = "";

    while (op < COLLECTIVE_OP_COUNT && strcmp(collective_op_names[op], operation))
        op++;
    if (op == COLLECTIVE_OP_COUNT) {
        meant = nearest(operation, op_candidate, NULL);
        return meant ? usage_error(command, "--op: unknown operation '%s'; did you mean '%s'?", operation, meant) :
               usage_error(command, "--op: unknown operation '%s'; expected all_reduce, reduce_scatter, all_gather, "
                           "broadcast, reduce or all_to_all", operation);
    }
    request->op = op;
    request->collective = algorithm ? collective_find(op, algorithm) : NULL;
    if (request->collective || !algorithm)
        return ARGS_DONE;
    meant = nearest(algorithm, collective_candidate, &op);
    if (meant)
        return usage_error(command, "--algorithm: unknown algorithm '%s'; did you mean '%s'?", algorithm, meant);
    for (size_t i = 0; collective_of(op, i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", collective_of(op, i)->name);
    return usage_error(command, "--algorithm: unknown algorithm '%s'; %s has:%s", algorithm, operation, names);
}

static bool parse_count(const char *text, int *value)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    *value = (int)number;
    return !errno && end != text && !*end && number >= 1 && number <= 65536;
}

static int parse_request(const struct command *command, const struct arguments *arguments, struct request *request)
{
    const char *const *values = arguments->values;
    char why[256];
    int code = parse_collective(command, arguments, request);

    if (code != ARGS_DONE)
        return code;
    if (!values[OPT_RANKS] || !values[OPT_BYTES])
        return usage_error(command, "expected --ranks N and --bytes SIZE");
    if (!parse_count(values[OPT_RANKS], &request->ranks))
        return usage_error(command, "--ranks: expected a number from 1 to 65536, found '%s'", values[OPT_RANKS]);
    if (values[OPT_CHANNELS] && (!parse_count(values[OPT_CHANNELS], &request->channels) || request->channels > 64))
        return usage_error(command, "--channels: expected a number from 1 to 64, found '%s'", values[OPT_CHANNELS]);
    if (unit_parse(UNIT_BYTES, values[OPT_BYTES], &request->bytes, why, sizeof why) ||
        unit_plausible(UNIT_BYTES, request->bytes, values[OPT_BYTES], why, sizeof why))
        return usage_error(command, "--bytes: %s", why);
    if (request->bytes < 0)
        return usage_error(command, "--bytes: %s is out of range; expected 0 B or more", values[OPT_BYTES]);
    return values[OPT_ENGINE] ? engine_parse(command, values[OPT_ENGINE], &request->engine) : ARGS_DONE;
}

/* A name, a path, or a file that holds just the mapping that stands under `cluster:`. */
static int load_cluster(const char *text, struct request *request, struct error *err)
{
    if (cluster_load(&request->arena, node_scalar(&request->arena, text, false), &request->cluster, err))
        return -1;
    cluster_size(&request->cluster, request->ranks);
    if (!request->collective)
        request->collective = collective_usual(request->op, request->cluster.communication);
    if (!request->cluster.ideal && request->ranks > cluster_gpus(&request->cluster))
        return error_infeasible(err, ERROR_GPUS, (struct loc){0}, "--ranks: %d ranks, the cluster has %d GPUs",
                                request->ranks, cluster_gpus(&request->cluster));
    return 0;
}

static void print_result(const struct request *request, bool json, const struct measured *measured)
{
    const struct collective *used = measured->used;
    double seconds = measured->seconds, algbw = seconds > 0 ? request->bytes / seconds : 0;
    double busbw = algbw * collective_bus_factor(request->collective->op, request->ranks);
    const char *op = collective_op_names[request->collective->op];
    const char *protocol = measured->protocol == PROTOCOL_NONE ? NULL : protocol_names[measured->protocol];
    char text[4][48];

    if (json) {
        json_t *object = json_pack("{s:s, s:s, s:s*, s:i, s:f, s:i, s:f, s:f, s:f, s:I, s:s}", "op", op, "algorithm",
                                   used->name, "protocol", protocol, "ranks", request->ranks, "bytes", request->bytes,
                                   "channels",
                                   measured->channels, "time_s", seconds, "algbw_bytes_per_s", algbw,
                                   "busbw_bytes_per_s", busbw, "messages", (json_int_t)measured->messages,
                                   "engine", engine_names[request->engine]);
        json_print(object, stdout);
        json_decref(object);
        return;
    }
    printf("%-14s %-16s %8s %6s %9s %12s %9s %14s %14s\n", "op", "algorithm", "protocol", "ranks", "channels", "bytes",
           "messages", "time",
           "busbw");
    printf("%-14s %-16s %8s %6d %9d %12s %9.0f %14s %14s\n", op, used->name, protocol ? protocol : "-",
           request->ranks, measured->channels, unit_format_short(UNIT_BYTES, request->bytes, text[0], 48),
           measured->messages,
           unit_format_short(UNIT_TIME, seconds, text[1], 48), unit_format_short(UNIT_BANDWIDTH, busbw, text[2], 48));
    printf("algbw %s; %s%s\n", unit_format_short(UNIT_BANDWIDTH, algbw, text[3], 48),
           used == request->collective ? "" : "chosen by its formula, ", used->formula);
}

static int replay_collective(struct request *request, bool json, struct error *err)
{
    int *gpus = xcalloc((size_t)request->ranks, sizeof *gpus), rc;
    struct measure measure;
    struct measured measured;

    if (!collective_runs_on(request->collective, &request->cluster)) {
        free(gpus);
        return error_add(err, EXIT_INPUT, (struct loc){0}, "--algorithm: %s needs switches that reduce: a cluster "
                         "whose communication profile has 'nvls', such as dgx-h100", request->collective->name);
    }
    for (int i = 0; i < request->ranks; i++)
        gpus[i] = i;
    if (!request->channels)
        request->channels = collective_channels(&request->cluster, &(struct group){.n = request->ranks, .gpus = gpus});
    measure_init(&measure, request->engine, &request->cluster);
    rc = measure_collective(&measure, request->collective, gpus, 1, request->ranks, request->bytes, request->channels,
                            &measured, err);
    if (!rc)
        print_result(request, json, &measured);
    measure_release(&measure);
    free(gpus);
    return rc;
}

/* --table: whatever a row says cannot be said on the command line. */
static int tables_main(const struct command *command, const struct arguments *arguments)
{
    const char *const *values = arguments->values;
    enum table_format format = values[OPT_JSON] ? TABLE_JSON : values[OPT_MARKDOWN] ? TABLE_MARKDOWN : TABLE_TEXT;
    enum engine engine = ENGINE_SIMGRID;
    struct error err = {0};
    int code = ARGS_DONE;

    for (int i = OPT_OP; i <= OPT_CHANNELS; i++)
        if (values[i])
            return usage_error(command, "%.*s: the rows of a table say theirs", (int)strcspn(options[i], "="),
                               options[i]);
    if (values[OPT_JSON] && (values[OPT_MARKDOWN] || arguments->npositional > 1))
        return usage_error(command, "--json: expected one table, and no --markdown");
    if (values[OPT_ENGINE])
        code = engine_parse(command, values[OPT_ENGINE], &engine);
    if (code != ARGS_DONE)
        return code;
    collective_tables(arguments->positional, arguments->npositional, engine, format, &err);
    return report(&err);
}

static int collective_main(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    struct request request = {0};
    struct error err = {0};
    int code = arguments_parse(command, argc, argv, options, COUNT(options), 1, ARGS_MAX, &arguments);

    if (code == ARGS_DONE && arguments.nsets)
        return usage_error(command, "--set: there is no scenario to change");
    if (code == ARGS_DONE && arguments.values[OPT_TABLE])
        return tables_main(command, &arguments);
    if (code == ARGS_DONE && arguments.values[OPT_MARKDOWN])
        return usage_error(command, "--markdown: expected --table beside it");
    if (code == ARGS_DONE && arguments.npositional > 1)
        return usage_error(command, "unexpected argument '%s'", arguments.positional[1]);
    if (code == ARGS_DONE)
        code = parse_request(command, &arguments, &request);
    if (code != ARGS_DONE)
        return code;
    if (!load_cluster(arguments.positional[0], &request, &err))
        replay_collective(&request, arguments.values[OPT_JSON], &err);
    arena_release(&request.arena);
    return report(&err);
}

const struct command cmd_collective = {
    .name = "collective",
    .usage = "CLUSTER --ranks N --bytes SIZE [--op OPERATION] [--algorithm NAME] [--channels C] [--engine ENGINE] "
             "[--json] | TABLE... --table [--engine ENGINE] [--json | --markdown]",
    .brief = "Simulates one collective alone and prints its time and bus bandwidth, as nccl-tests does.",
    .examples = "  dtsim collective dgx-a100 --algorithm ring --ranks 16 --bytes '1 GB'\n"
                "  dtsim collective dgx-a100 --op all_gather --ranks 64 --bytes '350 MB'\n"
                "  dtsim collective dgx-h100 --ranks 64 --bytes '256 MB'\n"
                "  dtsim collective scenarios/paper/collectives/a100-8.yaml --table\n"
                "  dtsim collective cluster.yaml --op all_reduce --algorithm tree --ranks 8 --bytes 64MiB --json\n",
    .options =
        "  CLUSTER             a name (dtsim list platforms), or a file that holds what is under 'cluster:'\n"
        "  --ranks N           the first N GPUs of the cluster\n"
        "  --bytes SIZE        as nccl-tests counts them: the vector that each rank holds; reduce_scatter,\n"
        "                      all_gather: n times a rank's share; all_to_all: what a rank holds for all in all\n"
        "  --op OPERATION      all_reduce (when left out), reduce_scatter, all_gather, broadcast, reduce,\n"
        "                      all_to_all\n"
        "  --algorithm NAME    dtsim list collectives; left out: auto for all_reduce where the cluster has a\n"
        "                      communication profile, else ring, or the operation's first. For auto the algorithm\n"
        "                      that it chose is shown\n"
        "  --channels C        rings at once, each through another NIC; left out: as many as a node has NICs where\n"
        "                      the ranks fill several nodes of several GPUs, else 1\n"
        "  --engine ENGINE     simgrid (flows share links) or ideal (nothing contends)\n"
        "  --table             TABLE holds measured collectives (title, source, cluster, rows): each is\n"
        "                      simulated and compared; the summary counts rows within 15 % from 1 MB on, 30 % below\n"
        "  --markdown          with --table: a line for each table, for a document\n"
        "  --json              time_s, algbw_bytes_per_s, busbw_bytes_per_s, messages\n"
        "On a cluster with a communication profile (dtsim list platforms: all of them; inline: 'communication') "
        "NCCL's\n"
        "protocol with the least cost by NCCL's own model is used, and for auto the algorithm: NCCL's own alone\n"
        "algbw = bytes / time; busbw = algbw times 2 (n-1) / n for all_reduce, (n-1) / n for reduce_scatter,\n"
        "all_gather and all_to_all, 1 for broadcast and reduce (nccl-tests, doc/PERFORMANCE.md)\n",
    .main = collective_main,
};
