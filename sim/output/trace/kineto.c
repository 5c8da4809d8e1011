/* Kineto: a Chrome trace as PyTorch's profiler writes it, a file a rank, or one of all. A work is a compute kernel, then
 * a collective kernel of its communication. The host launches each kernel a little before its stream is free, in no time:
 * the simulation has no times of single launches, and no gap between kernels is the host's. */
#include "trace/trace_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/decimal.h"
#include "files/json.h"
#include "tables/recorded.h"
#include "trace/bytes.h"

/* Threads of a rank's process: the host's launches, the streams of compute and of communication within works, and from
 * there on the other lanes in the order of their first span. */
enum { TID_HOST = 1, TID_COMPUTE = 7, TID_WITHIN = 8, TID_FIRST = 9, SHOWN_RANKS = 30 };
/* ns by which a launch is ahead of the kernel before. HTA rounds starts up and ends down to whole us and takes a gap for
 * the host's where the launch then lies behind that end (hta/common/trace_parser.py: round_down_time_stamps;
 * hta/analyzers/breakdown_analysis.py: is_host_wait). */
enum { LAUNCHED_AHEAD = 2000 };

struct kineto {
    const struct trace *trace;
    struct bytes bytes;
    int64_t *free_at;        /* a lane, then the one of communication within works: ns at which its last kernel ended */
    char **groups;           /* a group: its arguments */
    int64_t correlation;
    int rank, shift;         /* the rank, less the one that stands for it */
    bool any;                /* an event was written */
    char pid[48];
};

/* A kernel or a copy on a stream, from a span or a part of it. */
struct kernel {
    const struct recorded_span *span;
    const char *name;      /* the name; "": the span's kind */
    int tid;
    int64_t *free_at, start, end;
    bool copy;
    bool exchange;           /* it has the span's exchange */
};

/* PyTorch's names of collectives, and NCCL's kernels. Kernels that lose time to others' collectives wait for no
 * collective of their own. */
static const struct { const char *name, *kernel; } words[RECORDED_OP_COUNT] = {
    [RECORDED_ALL_REDUCE] = {"allreduce", "ncclDevKernel_AllReduce"},
    [RECORDED_REDUCE_SCATTER] = {"reduce_scatter", "ncclDevKernel_ReduceScatter"},
    [RECORDED_ALL_GATHER] = {"allgather", "ncclDevKernel_AllGather"},
    [RECORDED_BROADCAST] = {"broadcast", "ncclDevKernel_Broadcast"},
    [RECORDED_REDUCE] = {"reduce", "ncclDevKernel_Reduce"},
    [RECORDED_ALL_TO_ALL] = {"all_to_all", "ncclDevKernel_AllToAll"},
    [RECORDED_SEND] = {"send", "ncclDevKernel_SendRecv"},
    [RECORDED_NONE] = {"", "ncclDevKernel_Overlapped"},
};

static void put(struct bytes *bytes, const char *text)
{
    bytes_put(bytes, text, strlen(text));
}

/* The text as it stands between quotation marks: names of kinds need no escapes, names from files may. */
static void put_text(struct bytes *bytes, const char *text)
{
    size_t plain = 0;
    char *made;

    while ((unsigned char)text[plain] >= ' ' && (unsigned char)text[plain] < 0x7f && text[plain] != '"' &&
           text[plain] != '\\' && plain < BYTES_MOST)
        plain++;
    if (!text[plain]) {
        bytes_put(bytes, text, plain);
        return;
    }
    json_t *json = json_words(text);

    made = json_text(json);
    for (size_t length = strlen(made) - 2, done = 0, part; done < length; done += part) {
        part = length - done < BYTES_MOST ? length - done : BYTES_MOST;
        bytes_put(bytes, made + 1 + done, part);
    }
    free(made);
    json_decref(json);
}

/* An event up to its time; `head` has its phase and its category. */
static void begin_event(struct kineto *kineto, const char *head, int64_t tid, int64_t ns)
{
    struct bytes *bytes = &kineto->bytes;

    put(bytes, kineto->any ? ",\n" : "\n");
    kineto->any = true;
    put(bytes, head);
    put(bytes, kineto->pid);
    bytes_integer(bytes, tid);
    BYTES_TEXT(bytes, ",\"ts\":");
    bytes_us(bytes, ns);
}

static void put_number(struct bytes *bytes, const char *key, int64_t value)
{
    put(bytes, key);
    bytes_integer(bytes, value);
}

/* The arguments of a collective or a send, as PyTorch spells them. Elements are bytes: the run has no types. */
static void put_exchange(struct kineto *kineto, const struct recorded_span *span)
{
    const struct trace *trace = kineto->trace;
    struct bytes *bytes = &kineto->bytes;
    bool message = span->peer >= 0;
    int group = recorded_group_at(&trace->run, span->group, kineto->rank);
    int members = group >= 0 ? trace->run.groups.items[group].gpus : 1;
    int64_t all = (int64_t)(span->bytes + 0.5), share = (int64_t)(span->bytes / members + 0.5);

    BYTES_TEXT(bytes, ",\"Collective name\":\"");
    put(bytes, words[message ? RECORDED_SEND : span->op].name);
    put_number(bytes, "\",\"In msg nelems\":", span->op == RECORDED_ALL_GATHER && !message ? share : all);
    put_number(bytes, ",\"Out msg nelems\":", span->op == RECORDED_REDUCE_SCATTER && !message ? share : all);
    BYTES_TEXT(bytes, ",\"dtype\":\"Byte\"");
    if (group >= 0)
        put(bytes, kineto->groups[group]);
    if (message) {
        put_number(bytes, ",\"Src Rank\":", kineto->rank);
        put_number(bytes, ",\"Dst Rank\":", span->peer + kineto->shift);
    }
}

/* The host's operation and launch, and the arrow from this to the kernel. */
static void put_launch(struct kineto *kineto, const struct kernel *kernel, int64_t id)
{
    struct bytes *bytes = &kineto->bytes;
    int64_t at = *kernel->free_at < kernel->start ? *kernel->free_at : kernel->start;

    at = at > LAUNCHED_AHEAD ? at - LAUNCHED_AHEAD : 0;
    begin_event(kineto, "{\"ph\":\"X\",\"cat\":\"cpu_op\"", TID_HOST, at);
    BYTES_TEXT(bytes, ",\"dur\":0,\"name\":\"");
    put_text(bytes, recorded_text(&kineto->trace->run, kernel->span->kind));
    put_number(bytes, "\",\"args\":{\"External id\":", id);
    BYTES_TEXT(bytes, "}}");
    begin_event(kineto, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\"", TID_HOST, at);
    put(bytes, kernel->copy ? ",\"dur\":0,\"name\":\"cudaMemcpyAsync\",\"args\":{\"External id\":"
                            : ",\"dur\":0,\"name\":\"cudaLaunchKernel\",\"args\":{\"External id\":");
    bytes_integer(bytes, id);
    put_number(bytes, ",\"correlation\":", id);
    BYTES_TEXT(bytes, "}}");
    begin_event(kineto, "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\"", TID_HOST, at);
    put_number(bytes, ",\"id\":", id);
    BYTES_TEXT(bytes, "}");
    begin_event(kineto, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\"", kernel->tid, kernel->start);
    put_number(bytes, ",\"id\":", id);
    BYTES_TEXT(bytes, "}");
}

static void put_kernel(struct kineto *kineto, const struct kernel *kernel)
{
    struct bytes *bytes = &kineto->bytes;
    const struct recorded_span *span = kernel->span;
    int64_t id = ++kineto->correlation;

    put_launch(kineto, kernel, id);
    begin_event(kineto, kernel->copy ? "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\"" : "{\"ph\":\"X\",\"cat\":\"kernel\"",
                kernel->tid, kernel->start);
    BYTES_TEXT(bytes, ",\"dur\":");
    bytes_us(bytes, kernel->end - kernel->start);
    BYTES_TEXT(bytes, ",\"name\":\"");
    put(bytes, kernel->name);
    if (!*kernel->name)
        put_text(bytes, recorded_text(&kineto->trace->run, span->kind));
    put_number(bytes, "\",\"args\":{\"device\":", kineto->rank);
    put_number(bytes, ",\"stream\":", kernel->tid);
    put_number(bytes, ",\"correlation\":", id);
    put_number(bytes, ",\"External id\":", id);
    BYTES_TEXT(bytes, ",\"span\":\"");
    put_text(bytes, recorded_text(&kineto->trace->run, span->name));
    put_number(bytes, "\",\"stage\":", span->stage);
    if (kineto->trace->run.replicas > 1 && !kineto->trace->request->all)
        put_number(bytes, ",\"replicas\":", kineto->trace->run.replicas);
    if (kernel->copy && span->bytes > 0)
        put_number(bytes, ",\"bytes\":", (int64_t)(span->bytes + 0.5));
    else if (kernel->exchange && (span->bytes > 0 || span->peer >= 0))
        put_exchange(kineto, span);
    BYTES_TEXT(bytes, "}}");
    *kernel->free_at = kernel->end;
}

/* A work: its compute kernel, and behind it a collective kernel of its communication. */
static void put_work(struct kineto *kineto, const struct recorded_span *span, struct kernel *kernel)
{
    int64_t end = kernel->end;

    kernel->end = span->communication > 0 ? span->end - span->communication : end;
    kernel->end = kernel->end < kernel->start ? kernel->start : kernel->end;
    put_kernel(kineto, kernel);
    if (span->communication <= 0)
        return;
    kernel->start = kernel->end;
    kernel->end = end;
    kernel->name = words[span->op].kernel;
    kernel->exchange = span->op != RECORDED_NONE;
    kernel->tid = TID_WITHIN;
    kernel->free_at = &kineto->free_at[kineto->trace->run.lanes.count];
    put_kernel(kineto, kernel);
}

static void put_span(struct kineto *kineto, const struct recorded_span *span)
{
    enum recorded_lane_kind lane = kineto->trace->run.lanes.items[span->lane].kind;
    struct kernel kernel = {
        .span = span, .name = "", .tid = lane == RECORDED_COMPUTE ? TID_COMPUTE : TID_FIRST + span->lane,
        .free_at = &kineto->free_at[span->lane], .start = span->start, .end = span->end,
    };

    if (lane == RECORDED_HOST) {
        begin_event(kineto, "{\"ph\":\"X\",\"cat\":\"cpu_op\"", kernel.tid, kernel.start);
        BYTES_TEXT(&kineto->bytes, ",\"dur\":");
        bytes_us(&kineto->bytes, kernel.end - kernel.start);
        BYTES_TEXT(&kineto->bytes, ",\"name\":\"");
        put_text(&kineto->bytes, recorded_text(&kineto->trace->run, span->kind));
        BYTES_TEXT(&kineto->bytes, "\"}");
        return;
    }
    kernel.copy = lane == RECORDED_TO_HOST || lane == RECORDED_FROM_HOST || lane == RECORDED_COPY;
    if (kernel.copy)
        kernel.name = lane == RECORDED_TO_HOST ? "Memcpy DtoH" : lane == RECORDED_FROM_HOST ? "Memcpy HtoD" : "Memcpy";
    if (lane == RECORDED_COMPUTE) {
        put_work(kineto, span, &kernel);
        return;
    }
    if (lane == RECORDED_COMMUNICATES) {
        kernel.name = words[span->peer >= 0 ? RECORDED_SEND : span->op].kernel;
        kernel.exchange = true;
    }
    put_kernel(kineto, &kernel);
}

/* The name of a process or a thread, or its place in the list. */
static void put_name(struct kineto *kineto, const char *what, int tid, const char *name, int order)
{
    struct bytes *bytes = &kineto->bytes;

    begin_event(kineto, "{\"ph\":\"M\"", tid, 0);
    BYTES_TEXT(bytes, ",\"name\":\"");
    put(bytes, what);
    BYTES_TEXT(bytes, "\",\"args\":{\"");
    if (name) {
        put(bytes, strstr(what, "labels") ? "labels\":\"" : "name\":\"");
        put_text(bytes, name);
        BYTES_TEXT(bytes, "\"}}");
    } else {
        put_number(bytes, "sort_index\":", order);
        BYTES_TEXT(bytes, "}}");
    }
}

static void put_names(struct kineto *kineto)
{
    const struct trace *trace = kineto->trace;
    struct recorded_rows rows = recorded_rows(&trace->run, kineto->rank);
    bool *used = xcalloc(trace->run.lanes.count, sizeof *used);
    bool within = false;
    char text[100];

    snprintf(text, sizeof text, "rank %d", kineto->rank);
    put_name(kineto, "process_name", 0, text, 0);
    snprintf(text, sizeof text, "replica %d, pipeline rank %d", kineto->rank / trace->run.pipeline,
             kineto->rank % trace->run.pipeline);
    put_name(kineto, "process_labels", 0, text, 0);
    put_name(kineto, "process_sort_index", 0, NULL, kineto->rank);
    put_name(kineto, "thread_name", TID_HOST, "launches", 0);
    for (size_t i = 0; i < rows.count; i++) {
        used[rows.first[i].lane] = true;
        within |= trace->run.lanes.items[rows.first[i].lane].kind == RECORDED_COMPUTE && rows.first[i].communication > 0;
    }
    if (within)
        put_name(kineto, "thread_name", TID_WITHIN, "communication within works", 0);
    for (size_t i = 0; i < trace->run.lanes.count; i++) {
        int tid = trace->run.lanes.items[i].kind == RECORDED_COMPUTE ? TID_COMPUTE : TID_FIRST + (int)i;

        if (used[i])
            put_name(kineto, "thread_name", tid, trace->run.lanes.items[i].name, 0);
    }
    free(used);
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
    put_number(bytes, ",\"pg_count\":", count);
    BYTES_TEXT(bytes, ",\"pg_config\":[");
    for (size_t i = 0, written = 0; i < trace->run.groups.count; i++) {
        const struct recorded_group *group = &trace->run.groups.items[i];

        if (!mine[i])
            continue;
        put_number(bytes, written++ ? ",{\"pg_name\":\"" : "{\"pg_name\":\"", (int64_t)i);
        BYTES_TEXT(bytes, "\",\"pg_desc\":\"");
        put_text(bytes, group->kind);
        put_number(bytes, "\",\"backend_config\":\"cuda:nccl\",\"pg_size\":", group->gpus);
        BYTES_TEXT(bytes, ",\"ranks\":[");
        for (int k = 0; k < group->nranks; k++)
            put_number(bytes, k ? "," : "", group->ranks[k]);
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
    put_text(bytes, recorded_gpu(&trace->run));
    BYTES_TEXT(bytes, "\"}],\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0,\"distributedInfo\":{\"backend\":\"nccl\", "
                      "\"rank\": ");
    bytes_integer(bytes, first);
    put_number(bytes, ",\"world_size\":", trace->run.ranks * trace->run.replicas);
    put_groups(kineto, mine);
    BYTES_TEXT(bytes, ",\"traceName\":\"");
    if (file->rank >= 0)
        put_number(bytes, "rank-", file->rank);
    put(bytes, file->rank >= 0 ? ".json\",\"traceEvents\":[" : "trace.json\",\"traceEvents\":[");
    free(mine);
}

static void put_rank(struct kineto *kineto, int rank)
{
    struct recorded_rows rows = recorded_rows(&kineto->trace->run, rank);

    kineto->rank = rank;
    kineto->shift = rows.shift;
    snprintf(kineto->pid, sizeof kineto->pid, ",\"pid\":%d,\"tid\":", rank);
    memset(kineto->free_at, 0, (kineto->trace->run.lanes.count + 1) * sizeof *kineto->free_at);
    put_names(kineto);
    for (size_t i = 0; i < rows.count; i++)
        put_span(kineto, &rows.first[i]);
}

static void write_trace(const struct trace_file *file, FILE *out)
{
    const struct trace *trace = file->trace;
    struct kineto kineto = {.trace = trace, .bytes = {.out = out}};

    kineto.free_at = xcalloc(trace->run.lanes.count + 1, sizeof *kineto.free_at);
    make_groups(&kineto);
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
    free(kineto.free_at);
}

int kineto_write(struct trace *trace, FILE *log, struct error *err)
{
    if (trace->request->merge)
        return trace_put("trace.json", &(struct trace_file){trace, -1, write_trace, true}, true, log, err);
    for (int rank = 0; (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++) {
        char name[40];

        snprintf(name, sizeof name, "rank-%d.json", rank);
        if (trace_put(name, &(struct trace_file){trace, rank, write_trace, true}, false, log, err))
            return -1;
    }
    return 0;
}
