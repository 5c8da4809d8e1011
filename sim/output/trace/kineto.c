/* Kineto: a Chrome trace as PyTorch's profiler writes it, a file a rank, or one of all. A work is a compute kernel, then
 * a collective kernel of its communication; a message is a kernel of NCCL on both of its ranks. A thread of the host launches
 * the kernels of a stream, each a little before the stream is free: the simulation has no times of single launches, and no
 * gap between kernels is the host's.
 * Times are whole us. HTA rounds fractions inwards (hta/common/trace_parser.py: round_down_time_stamps), by which each kernel
 * would lose 1 us. */
#include "trace/kineto_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "tables/recorded.h"

enum { SHOWN_RANKS = 30 };

/* The name of a process or a thread, or its place in the list. */
static void put_name(struct kineto *kineto, const char *what, int tid, const char *name, int order)
{
    struct bytes *bytes = &kineto->bytes;

    kineto_begin(kineto, "{\"ph\":\"M\"", tid, 0);
    BYTES_TEXT(bytes, ",\"name\":\"");
    kineto_put(bytes, what);
    BYTES_TEXT(bytes, "\",\"args\":{\"");
    if (name) {
        kineto_put(bytes, strstr(what, "labels") ? "labels\":\"" : "name\":\"");
        kineto_text(bytes, name);
        BYTES_TEXT(bytes, "\"}}");
    } else {
        kineto_number(bytes, "sort_index\":", order);
        BYTES_TEXT(bytes, "}}");
    }
}

/* What runs on the stream: of the lanes, one has their kind and their index. */
static const char *stream_name(const struct recorded *run, int tid)
{
    return tid == TID_COMPUTE  ? "compute"
           : tid == TID_WITHIN ? "communication within works"
           : tid < TID_FIRST + (int)run->lanes.count ? run->lanes.items[tid - TID_FIRST].name
                                                     : "receive";
}

/* Of the process, and of the threads that have events. */
static void put_names(struct kineto *kineto)
{
    const struct trace *trace = kineto->trace;
    char text[100];

    snprintf(text, sizeof text, "rank %d", kineto->rank);
    put_name(kineto, "process_name", 0, text, 0);
    snprintf(text, sizeof text, "replica %d, pipeline rank %d", kineto->rank / trace->run.pipeline,
             kineto->rank % trace->run.pipeline);
    put_name(kineto, "process_labels", 0, text, 0);
    put_name(kineto, "process_sort_index", 0, NULL, kineto->rank);
    put_name(kineto, "thread_name", TID_HOST, "step", 0);
    for (size_t i = 0; i < kineto->streams.count; i++) {
        int tid = TID_COMPUTE + (int)i;

        if (kineto->streams.items[i].free_at <= 0)
            continue;
        put_name(kineto, "thread_name", tid, stream_name(&trace->run, tid), 0);
        snprintf(text, sizeof text, "launches of %.60s", stream_name(&trace->run, tid));
        if (kineto->streams.items[i].launched > 0)
            put_name(kineto, "thread_name", TID_LAUNCHES + tid, text, 0);
    }
}

static void make_groups(struct kineto *kineto)
{
    const struct trace *trace = kineto->trace;

    kineto->groups = xcalloc(trace->run.groups.count + 1, sizeof *kineto->groups);
    for (size_t i = 0; i < trace->run.groups.count; i++) {
        char *ranks = recorded_group_ranks(&trace->run.groups.items[i], SHOWN_RANKS);
        const char *kind = trace->run.groups.items[i].kind;
        bool known = strlen(kind) <= 40 && kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz-")] == '\0';

        kineto->groups[i] = xprintf(",\"Group size\":%d,\"Process Group Name\":\"%zu\",\"Process Group Description\":"
                                    "\"%s\",\"Process Group Ranks\":\"[%.1000s]\"", trace->run.groups.items[i].gpus, i,
                                    known ? kind : "", ranks);
        free(ranks);
    }
}

/* The groups that the rank is in, as PyTorch lists them: whole lists of ranks. */
static void put_groups(struct kineto *kineto, bool *mine)
{
    const struct trace *trace = kineto->trace;
    struct bytes *bytes = &kineto->bytes;
    int count = 0;

    for (size_t i = 0; i < trace->run.groups.count; i++)
        count += mine[i];
    kineto_number(bytes, ",\"pg_count\":", count);
    BYTES_TEXT(bytes, ",\"pg_config\":[");
    for (size_t i = 0, written = 0; i < trace->run.groups.count; i++) {
        const struct recorded_group *group = &trace->run.groups.items[i];

        if (!mine[i])
            continue;
        kineto_number(bytes, written++ ? ",{\"pg_name\":\"" : "{\"pg_name\":\"", (int64_t)i);
        BYTES_TEXT(bytes, "\",\"pg_desc\":\"");
        kineto_text(bytes, group->kind);
        kineto_number(bytes, "\",\"backend_config\":\"cuda:nccl\",\"pg_size\":", group->gpus);
        BYTES_TEXT(bytes, ",\"ranks\":[");
        for (int k = 0; k < group->nranks; k++)
            kineto_number(bytes, k ? "," : "", group->ranks[k]);
        BYTES_TEXT(bytes, "]}");
    }
    BYTES_TEXT(bytes, "],\"nccl_version\":\"\"}");
}

/* The groups in which the rank exchanges something. */
static void put_top(struct kineto *kineto, const struct trace_file *file)
{
    const struct trace *trace = kineto->trace;
    struct bytes *bytes = &kineto->bytes;
    bool *mine = xcalloc(trace->run.groups.count + 1, sizeof *mine);
    int first = file->rank >= 0 ? file->rank : recorded_next_rank(&trace->run, 0);

    for (int rank = first; rank >= 0; rank = file->rank >= 0 ? -1 : recorded_next_rank(&trace->run, rank + 1)) {
        struct recorded_rows rows = recorded_rows(&trace->run, rank);

        for (size_t i = 0; i < rows.count; i++)
            if (recorded_group_at(&trace->run, rows.first[i].group, rank) >= 0)
                mine[recorded_group_at(&trace->run, rows.first[i].group, rank)] = true;
    }
    BYTES_TEXT(bytes, "{\"schemaVersion\":1,\"dtsim\":true,\"deviceProperties\":[{\"id\":");
    bytes_integer(bytes, first);
    BYTES_TEXT(bytes, ",\"name\":\"");
    kineto_text(bytes, recorded_gpu(&trace->run));
    BYTES_TEXT(bytes, "\"}],\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0,\"distributedInfo\":{\"backend\":\"nccl\", "
                      "\"rank\": ");
    bytes_integer(bytes, first);
    kineto_number(bytes, ",\"world_size\":", trace->run.ranks * trace->run.replicas);
    put_groups(kineto, mine);
    BYTES_TEXT(bytes, ",\"traceName\":\"");
    if (file->rank >= 0)
        kineto_number(bytes, "rank-", file->rank);
    kineto_put(bytes, file->rank >= 0 ? ".json\",\"traceEvents\":[" : "trace.json\",\"traceEvents\":[");
    free(mine);
}

static void put_rank(struct kineto *kineto, int rank)
{
    struct recorded_rows rows = recorded_rows(&kineto->trace->run, rank);

    kineto->rank = rank;
    kineto->shift = rows.shift;
    snprintf(kineto->pid, sizeof kineto->pid, ",\"pid\":%d,\"tid\":", rank);
    kineto_kernels(kineto, rows);
    put_names(kineto);
}

static void write_trace(const struct trace_file *file, FILE *out)
{
    const struct trace *trace = file->trace;
    struct kineto kineto = {.trace = trace, .bytes = {.out = out}};

    make_groups(&kineto);
    kineto.received = trace_received(&trace->run);
    put_top(&kineto, file);
    if (file->rank >= 0)
        put_rank(&kineto, file->rank);
    for (int rank = 0; file->rank < 0 && (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++)
        put_rank(&kineto, rank);
    BYTES_TEXT(&kineto.bytes, "\n]}\n");
    bytes_flush(&kineto.bytes);
    for (size_t i = 0; i < trace->run.groups.count; i++)
        free(kineto.groups[i]);
    free(kineto.groups);
    free(kineto.streams.items);
    free(kineto.received.sends);
    free(kineto.received.first);
}

int kineto_write(struct trace *trace, FILE *log, struct error *err)
{
    if (trace->request->merge)
        return trace_put("trace.json", &(struct trace_file){trace, -1, write_trace, NULL}, true, log, err);
    for (int rank = 0; (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++) {
        char name[40];

        snprintf(name, sizeof name, "rank-%d.json", rank);
        if (trace_put(name, &(struct trace_file){trace, rank, write_trace, NULL}, false, log, err))
            return -1;
    }
    return 0;
}
