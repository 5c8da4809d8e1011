#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "cli/collective_lists.h"
#include "cli/collective_rows.h"
#include "cli/collective_table.h"
#include "cli/said.h"
#include "collective/measure.h"
#include "config/conf.h"
#include "engine/replay.h"
#include "files/data.h"
#include "hardware/cluster.h"
#include "hardware/communication.h"
#include "plots/plot.h"
#include "view/view.h"

enum { OPT_RANKS, OPT_BYTES, OPT_OP, OPT_ALGORITHM, OPT_CHANNELS, OPT_ENGINE, OPT_JSON, OPT_MARKDOWN, OPT_TABLE, OPT_PLOT };

enum { ALGORITHMS_MOST = 64 };

struct request {
    enum collective_op op;
    const char *algorithms;          /* of the command line; NULL: as the cluster's library would choose */
    struct number_list ranks_list, bytes_list;
    int channels_given;              /* 0: as many as the cluster calls for */
    size_t count;                    /* of all combinations */
    struct collective_rows table;    /* what is printed */
    const char *cluster_name;        /* as the command line names it */
    json_t *rows;                    /* for programs and for the chart */
    struct plot_request plot;        /* format NULL: no chart is asked for */
    enum engine engine;
    struct progress progress;
    /* The combination at hand. */
    const struct collective *collective;
    int ranks, channels;
    double bytes;
    struct arena arena;
    struct cluster cluster;
};

/* The next of the algorithms of a list, which moves on; NULL past the last. */
static char *next_algorithm(struct arena *arena, const char **list)
{
    size_t length = *list ? strcspn(*list, ",") : 0;
    char *name = length ? arena_strndup(arena, *list, length) : NULL;

    if (name)
        *list += length + ((*list)[length] == ',');
    return name;
}

/* --op and --algorithm; how many algorithms there are is multiplied into the combinations. */
static int parse_collectives(const struct arguments *arguments, struct request *request)
{
    const char *list = request->algorithms = arguments->values[OPT_ALGORITHM], *name;
    const char *names[ALGORITHMS_MOST + 1] = {NULL};
    const struct words words = {"algorithm", names, NULL};
    int code = ARGS_DONE, which;
    size_t count = 0;

    request->op = (enum collective_op)arguments->numbers[OPT_OP];
    for (size_t i = 0; i < ALGORITHMS_MOST && collective_of(request->op, i); i++)
        names[i] = collective_of(request->op, i)->name;
    for (; code == ARGS_DONE && (name = next_algorithm(&request->arena, &list)); count++)
        code = word_parse(arguments->command, "--algorithm", &words, name, &which);
    if (code == ARGS_DONE && list && *list)
        code = usage_error(arguments->command, "--algorithm: expected names with commas between them, found '%s'",
                           arguments->values[OPT_ALGORITHM]);
    request->count = request->table.nalgorithms = count ? count : 1;
    return code;
}

static int parse_plot(const struct command *command, const char *path, struct request *request)
{
    if (!plot_name(&request->arena, path, &request->plot))
        return usage_error(command, "--plot: expected a file that ends in .png, .svg or .pdf, found '%s'", path);
    request->plot.kind = "collective";
    request->plot.inputs = &request->cluster_name;
    request->plot.ninputs = 1;
    return ARGS_DONE;
}

static int parse_request(const struct arguments *arguments, struct request *request)
{
    const char *const *values = arguments->values;
    int code = parse_collectives(arguments, request);

    if (code == ARGS_DONE)
        code = ranks_parse(arguments->command, values[OPT_RANKS], &request->ranks_list);
    if (code == ARGS_DONE)
        code = bytes_parse(arguments->command, values[OPT_BYTES], &request->bytes_list);
    if (code == ARGS_DONE && values[OPT_PLOT])
        code = parse_plot(arguments->command, values[OPT_PLOT], request);
    request->engine = (enum engine)arguments->numbers[OPT_ENGINE];
    request->channels_given = (int)arguments->numbers[OPT_CHANNELS];
    request->count *= request->ranks_list.count * request->bytes_list.count;
    return code;
}

/* A name, a path, or a file that holds just the mapping that stands under `cluster:`. */
static int load_cluster(const char *text, struct request *request, struct error *err)
{
    if (cluster_load(&request->arena, node_scalar(&request->arena, text, false), &request->cluster, err))
        return -1;
    cluster_size(&request->cluster, request->ranks);
    if (!request->cluster.ideal && request->ranks > cluster_gpus(&request->cluster))
        return error_infeasible(err, ERROR_GPUS, (struct loc){0}, "--ranks: %d ranks, the cluster has %d GPUs",
                                request->ranks, cluster_gpus(&request->cluster));
    return 0;
}

static json_t *words_if(bool is, const char *text)
{
    return is ? json_words(text) : NULL;
}

struct result_of { const struct request *request; const struct measured *measured; double algbw, busbw; };

#define RESULT(ROW) \
    ROW(cluster, json_words(it->request->cluster_name), "as it was asked for") \
    ROW(op, json_string(collective_op_names[it->request->op]), "operation") \
    ROW(asked, words_if(it->request->collective != it->measured->used, it->request->collective->name), \
        "algorithm; left out: the one that ran") \
    ROW(algorithm, json_string(it->measured->used->name), "that ran") \
    ROW(protocol, words_if(it->measured->protocol != PROTOCOL_NONE, protocol_names[it->measured->protocol]), \
        "of the library; left out: it has none") \
    ROW(ranks, json_integer(it->request->ranks), "of the group") \
    ROW(bytes, json_real(it->request->bytes), "of the vector, as nccl-tests count") \
    ROW(channels, json_integer(it->measured->channels), "of the library") \
    ROW(time_s, json_real(it->measured->seconds), "of the whole collective") \
    ROW(algbw_bytes_per_s, json_real(it->algbw), "bytes over time_s") \
    ROW(busbw_bytes_per_s, json_real(it->busbw), "that times the operation's factor, as nccl-tests have it") \
    ROW(messages, json_integer((json_int_t)it->measured->messages), "simulated") \
    ROW(engine, json_string(engine_names[it->request->engine]), "that simulated it")
VIEW_SHARED(collective_view, struct result_of, it, RESULT)

/* Prints the rows that are held back: of one number of ranks, so that the fastest of them is known. */
static void print_rows(struct request *request)
{
    progress_end(&request->progress);
    collective_rows_print(&request->table);
}

static void add_result(struct request *request, bool json, const struct measured *measured)
{
    double seconds = measured->seconds, algbw = seconds > 0 ? request->bytes / seconds : 0;
    double busbw = algbw * collective_bus_factor(request->op, request->ranks);

    json_append(request->rows, view_json(&collective_view, &(struct result_of){request, measured, algbw, busbw}));
    if (json)
        return;
    collective_rows_add(&request->table, &(struct collective_row){
        *measured, request->op, request->ranks, request->bytes, algbw, busbw, measured->used != request->collective,
    });
    if (request->table.nalgorithms == 1)
        print_rows(request);
}

static int replay_collective(struct request *request, bool json, struct error *err)
{
    int *gpus = xcalloc((size_t)request->ranks, sizeof *gpus), rc;
    struct measure measure;
    struct measured measured;

    if (!collective_runs_on(request->collective, &request->cluster)) {
        free(gpus);
        return error_add(err, EXIT_INPUT, (struct loc){0}, "--algorithm: %s needs %s",
                         request->collective->name, collective_needs(request->collective));
    }
    for (int i = 0; i < request->ranks; i++)
        gpus[i] = i;
    struct placed_group group = placed_group_of(&request->cluster, gpus, request->ranks);

    request->channels = request->channels_given ? request->channels_given : placed_group_channels(&group);
    measure_init(&measure, request->engine, &request->cluster);
    measure.progress = &request->progress;
    rc = measure_collective(&measure, &(struct collective_call){request->collective, &group, request->bytes,
                                                                request->channels}, 1, &measured, err);
    if (!rc)
        add_result(request, json, &measured);
    measure_release(&measure);
    free(gpus);
    return rc;
}

/* All sizes of one algorithm. */
static int replay_sizes(struct request *request, bool json, struct error *err)
{
    for (size_t i = 0; i < request->bytes_list.count; i++) {
        request->bytes = request->bytes_list.items[i];
        if (replay_collective(request, json, err))
            return -1;
    }
    return 0;
}

static int replay_algorithms(struct request *request, bool json, struct error *err)
{
    const char *list = request->algorithms, *name;

    if (!list) {
        request->collective = collective_usual(request->op, cluster_communication(&request->cluster, ~0u));
        return replay_sizes(request, json, err);
    }
    while ((name = next_algorithm(&request->arena, &list))) {
        request->collective = collective_find(request->op, name);
        if (replay_sizes(request, json, err))
            return -1;
    }
    return 0;
}

/* Runs every combination: ranks, then algorithms, then sizes. Returns whether results were printed: all, or the results
 * before the budget was spent. */
static bool replay_all(struct request *request, bool json, struct error *err)
{
    bool stopped;
    int rc = 0;

    request->rows = json_array();
    for (size_t i = 0; i < request->ranks_list.count && !rc; i++) {
        request->ranks = (int)request->ranks_list.items[i];
        rc = load_cluster(request->cluster_name, request, err) || replay_algorithms(request, json, err) ? -1 : 0;
        print_rows(request);
    }
    progress_end(&request->progress);
    stopped = rc && json_array_size(request->rows) && error_exit_code(err) == EXIT_STOPPED;
    if ((!rc || stopped) && json)
        json_print(request->count > 1 ? request->rows : json_array_get(request->rows, 0), stdout);
    else if (!rc || stopped)
        collective_rows_end(&request->table);
    collective_rows_release(&request->table);
    request->plot.rows.rows = request->rows;
    if (!rc && request->plot.format)
        plot(&request->plot, err);
    json_decref(request->rows);
    return !rc || stopped;
}

static int tables_main(const struct arguments *arguments)
{
    bool json = arguments->values[OPT_JSON];
    struct error err = {0};

    if (json && arguments->npositional > 1)
        return usage_error(arguments->command, "--json: expected one table");
    collective_tables(arguments->positional, arguments->npositional, (enum engine)arguments->numbers[OPT_ENGINE],
                      json ? TABLE_JSON : arguments->values[OPT_MARKDOWN] ? TABLE_MARKDOWN : TABLE_TEXT, &err);
    return report_as(&err, json);
}

static int collective_main(const struct arguments *arguments)
{
    struct request request = {.cluster_name = arguments->positional[0]};
    struct error err = {0};
    bool printed = false;
    int code;

    if (arguments->values[OPT_TABLE])
        return tables_main(arguments);
    if (arguments->npositional > 1)
        return usage_error(arguments->command, "unexpected argument '%s'", arguments->positional[1]);
    code = parse_request(arguments, &request);
    progress_begin(&request.progress, "--budget", arguments->budget.seconds, arguments->budget.bytes);
    if (code == ARGS_DONE)
        printed = replay_all(&request, arguments->values[OPT_JSON], &err);
    arena_release(&request.arena);
    return code == ARGS_DONE ? report_as(&err, arguments->values[OPT_JSON] && !printed) : code;
}

static const char *collective_name(size_t index)
{
    return collective_at(index) ? collective_at(index)->name : NULL;
}

static const char **platforms(struct arena *arena, struct error *err)
{
    return data_names(arena, "platforms", err);
}

static const struct option options[] = {
    [OPT_RANKS] = {"--ranks", "LIST", .help = "the first N GPUs of the cluster; 8,16:64 is 8, 16, 32 and 64", .needed = true},
    [OPT_BYTES] = {"--bytes", "LIST",
        .help = "with units, or as nccl-tests has them: 1024, 1K, 1M, 1G (powers of 1024); 1K:1G doubles. What nccl-tests counts: "
        "the vector that each rank holds; reduce_scatter, all_gather: n times a rank's share; all_to_all: what a rank holds "
        "for all in all", .needed = true},
    [OPT_OP] = {"--op", "OPERATION",
        .help = "all_reduce, reduce_scatter, all_gather, broadcast, reduce or all_to_all",
        OPTION_CHOICE, .words = {"operation", collective_op_names, NULL}, .usual = "all_reduce"},
    [OPT_ALGORITHM] = {"--algorithm", "LIST",
        .help = "names with commas (dtsim list collectives); left out: auto for all_reduce where the cluster has a communication "
        "profile, else ring, or the operation's first. For auto the algorithm that it chose is shown, marked 'auto'; in "
        "JSON 'asked' says auto then. Of several algorithms the fastest with as many ranks and bytes is marked",
        .words = {"algorithm", NULL, collective_name}},
    [OPT_CHANNELS] = {"--channels", "C",
        .help = "rings at once, each through another NIC; left out: as many as a node has NICs where the ranks fill several nodes "
        "of several GPUs, else 1", OPTION_COUNT, 1, 64},
    [OPT_ENGINE] = ENGINE_OPTION(ENGINE_HELP),
    [OPT_JSON] = {"--json", .help = "time_s, algbw_bytes_per_s, busbw_bytes_per_s, messages", .one_of = 1},
    [OPT_MARKDOWN] = {"--markdown", .help = "a line for each table, for a document", .one_of = 1, .with = "--table"},
    [OPT_TABLE] = {"--table",
        .help = "TABLE holds measured collectives (title, source, cluster, rows): each is simulated and compared; the summary "
        "counts rows within 15 % from 1 MB on, 30 % below", .without = "--ranks --bytes --op --algorithm --channels --plot"},
    [OPT_PLOT] = {"--plot", "FILE",
        .help = "bus bandwidth and time by size as a picture, NAME.png, NAME.svg or NAME.pdf; its script and data are kept in the "
        "same folder"},
    BUDGET_OPTION(BUDGET_HELP " and all rows that were simulated"),
    {"CLUSTER", .help = "a name (dtsim list platforms), or a file that holds what is under 'cluster:'"},
};

const struct command cmd_collective = {
    .name = "collective",
    .arguments = "CLUSTER|TABLE...",
    .least = 1, .most = ARGS_MAX,
    .brief = "Simulates one collective alone and prints its time and bus bandwidth, as nccl-tests does.",
    .examples = "  dtsim collective dgx-a100 --algorithm ring --ranks 16 --bytes '1 GB'\n"
                "  dtsim collective dgx-a100 --op all_gather --ranks 64 --bytes '350 MB'\n"
                "  dtsim collective dgx-h100 --ranks 64 --bytes '256 MB'\n"
                "  dtsim collective dgx-a100 --algorithm ring,tree --ranks 8,16:64 --bytes 1K:1G --plot busbw.svg\n"
                "  dtsim collective scenarios/paper/collectives/a100-8.yaml --table\n"
                "  dtsim collective cluster.yaml --op all_reduce --algorithm tree --ranks 8 --bytes 64MiB --json\n",
    .topics = platforms,
    .options = options, .noptions = COUNT(options),
    .more = "On a cluster with a communication profile (dtsim list platforms: all of them; inline: 'communication') NCCL's "
            "protocol with the least cost by NCCL's own model is used, and for auto the algorithm: NCCL's own alone\n"
            "algbw = bytes / time; busbw = algbw times 2 (n-1) / n for all_reduce, (n-1) / n for reduce_scatter, all_gather "
            "and all_to_all, 1 for broadcast and reduce (nccl-tests, doc/PERFORMANCE.md)\n",
    .main = collective_main,
};
