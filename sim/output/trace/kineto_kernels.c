/* kineto_kernels: the kernels of a rank on its streams, and their launches. */
#include "trace/kineto_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "files/json.h"
#include "tables/recorded.h"

/* us by which a launch is ahead of the end of the kernel before: HTA takes a gap for the host's where the launch lies behind
 * that end (hta/analyzers/breakdown_analysis.py: is_host_wait). A launch takes 1 us: HTA's critical path has none that takes
 * no time (hta/analyzers/critical_path_analysis.py: dur_runtime > 0). */
enum { LAUNCHED_AHEAD = 2 };

/* A kernel or a copy on a stream, from a span or a part of it. */
struct kernel {
    const struct recorded_span *span;
    const char *name;        /* the name; "": the span's kind */
    int tid;
    int64_t start, end;      /* us */
    bool copy;
    bool exchange;           /* it has the span's exchange, */
    bool receives;           /* from the span's rank */
};

/* PyTorch's names of collectives, those of its host's events ("nccl:all_reduce"; torch/csrc/distributed/c10d,
 * ProcessGroupNCCL.cpp), and NCCL's kernels. Kernels that lose time to others' collectives wait for no collective of their
 * own. */
static const struct { const char *name, *event, *kernel; } words[RECORDED_OP_COUNT] = {
    [RECORDED_ALL_REDUCE] = {"allreduce", "all_reduce", "ncclDevKernel_AllReduce"},
    [RECORDED_REDUCE_SCATTER] = {"reduce_scatter", "reduce_scatter", "ncclDevKernel_ReduceScatter"},
    [RECORDED_ALL_GATHER] = {"allgather", "all_gather", "ncclDevKernel_AllGather"},
    [RECORDED_BROADCAST] = {"broadcast", "broadcast", "ncclDevKernel_Broadcast"},
    [RECORDED_REDUCE] = {"reduce", "reduce", "ncclDevKernel_Reduce"},
    [RECORDED_ALL_TO_ALL] = {"all_to_all", "all_to_all", "ncclDevKernel_AllToAll"},
    [RECORDED_SEND] = {"send", "send", "ncclDevKernel_SendRecv"},
    [RECORDED_NONE] = {"", "", "ncclDevKernel_Overlapped"},
};

void kineto_text(struct bytes *bytes, const char *text)
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

void kineto_begin(struct kineto *kineto, const char *head, int64_t tid, int64_t us)
{
    struct bytes *bytes = &kineto->bytes;

    kineto_put(bytes, kineto->any ? ",\n" : "\n");
    kineto->any = true;
    kineto_put(bytes, head);
    kineto_put(bytes, kineto->pid);
    bytes_integer(bytes, tid);
    BYTES_TEXT(bytes, ",\"ts\":");
    bytes_integer(bytes, us);
}

static struct kineto_stream *stream_of(struct kineto *kineto, int tid)
{
    while (kineto->streams.count <= (size_t)(tid - TID_COMPUTE))
        *GROW(&kineto->streams) = (struct kineto_stream){0};
    return &kineto->streams.items[tid - TID_COMPUTE];
}

/* The rank that sends, and the one that receives. */
static int sender_of(const struct kineto *kineto, const struct kernel *kernel)
{
    return kernel->receives ? kernel->span->rank + kineto->shift : kineto->rank;
}

static int receiver_of(const struct kineto *kineto, const struct kernel *kernel)
{
    return kernel->span->peer + kineto->shift;
}

/* The arguments of a collective or a send, as PyTorch spells them. Elements are bytes: the run has no types. */
static void put_exchange(struct kineto *kineto, const struct kernel *kernel)
{
    const struct recorded_span *span = kernel->span;
    const struct trace *trace = kineto->trace;
    struct bytes *bytes = &kineto->bytes;
    bool message = span->peer >= 0;
    int group = recorded_group_at(&trace->run, span->group, kineto->rank);
    int members = group >= 0 ? trace->run.groups.items[group].gpus : 1;
    int64_t all = (int64_t)(span->bytes + 0.5), share = (int64_t)(span->bytes / members + 0.5);

    BYTES_TEXT(bytes, ",\"Collective name\":\"");
    kineto_put(bytes, kernel->receives ? "recv" : words[message ? RECORDED_SEND : span->op].name);
    kineto_number(bytes, "\",\"In msg nelems\":", span->op == RECORDED_ALL_GATHER && !message ? share : all);
    kineto_number(bytes, ",\"Out msg nelems\":", span->op == RECORDED_REDUCE_SCATTER && !message ? share : all);
    BYTES_TEXT(bytes, ",\"dtype\":\"Byte\"");
    if (group >= 0)
        kineto_put(bytes, kineto->groups[group]);
    if (message) {
        kineto_number(bytes, ",\"Src Rank\":", sender_of(kineto, kernel));
        kineto_number(bytes, ",\"Dst Rank\":", receiver_of(kineto, kernel));
    }
}

/* The name of the host's operation: of an exchange as PyTorch has it, so that TensorBoard knows it for one; else the kind. */
static void put_operation(struct kineto *kineto, const struct kernel *kernel)
{
    struct bytes *bytes = &kineto->bytes;
    const struct recorded_span *span = kernel->span;

    if (!kernel->exchange) {
        kineto_text(bytes, recorded_text(&kineto->trace->run, span->kind));
        return;
    }
    BYTES_TEXT(bytes, "nccl:");
    if (span->peer < 0) {
        kineto_put(bytes, words[span->op].event);
        return;
    }
    kineto_number(bytes, kernel->receives ? "recv " : "send ", kineto->rank);
    kineto_number(bytes, kernel->receives ? "<-" : "->", kernel->receives ? sender_of(kineto, kernel) : receiver_of(kineto, kernel));
}

/* The host's operation and launch, and the arrow from this to the kernel. */
static void put_launch(struct kineto *kineto, const struct kernel *kernel, int64_t id)
{
    struct kineto_stream *stream = stream_of(kineto, kernel->tid);
    struct bytes *bytes = &kineto->bytes;
    int64_t at = (stream->free_at < kernel->start ? stream->free_at : kernel->start) - LAUNCHED_AHEAD;
    int tid = TID_LAUNCHES + kernel->tid;

    at = at > stream->launched ? at : stream->launched < kernel->start ? stream->launched : kernel->start;
    stream->launched = at + 1;
    kineto_begin(kineto, "{\"ph\":\"X\",\"cat\":\"cpu_op\"", tid, at);
    BYTES_TEXT(bytes, ",\"dur\":1,\"name\":\"");
    put_operation(kineto, kernel);
    kineto_number(bytes, "\",\"args\":{\"External id\":", id);
    if (kernel->exchange && kernel->span->bytes > 0) {
        kineto_number(bytes, ",\"Input Dims\":[[", (int64_t)(kernel->span->bytes + 0.5));
        BYTES_TEXT(bytes, "]],\"Input type\":[\"unsigned char\"]");
    }
    BYTES_TEXT(bytes, "}}");
    kineto_begin(kineto, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\"", tid, at);
    kineto_put(bytes, kernel->copy ? ",\"dur\":1,\"name\":\"cudaMemcpyAsync\",\"args\":{\"External id\":"
                            : ",\"dur\":1,\"name\":\"cudaLaunchKernel\",\"args\":{\"External id\":");
    bytes_integer(bytes, id);
    kineto_number(bytes, ",\"correlation\":", id);
    BYTES_TEXT(bytes, "}}");
    kineto_begin(kineto, "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\"", tid, at);
    kineto_number(bytes, ",\"id\":", id);
    BYTES_TEXT(bytes, "}");
    kineto_begin(kineto, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\"", kernel->tid, kernel->start);
    kineto_number(bytes, ",\"id\":", id);
    BYTES_TEXT(bytes, "}");
}

static void put_kernel(struct kineto *kineto, const struct kernel *kernel)
{
    struct bytes *bytes = &kineto->bytes;
    const struct recorded_span *span = kernel->span;
    int64_t id = ++kineto->correlation;

    put_launch(kineto, kernel, id);
    kineto_begin(kineto, kernel->copy ? "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\"" : "{\"ph\":\"X\",\"cat\":\"kernel\"",
                kernel->tid, kernel->start);
    BYTES_TEXT(bytes, ",\"dur\":");
    bytes_integer(bytes, kernel->end - kernel->start);
    BYTES_TEXT(bytes, ",\"name\":\"");
    kineto_put(bytes, kernel->name);
    if (!*kernel->name)
        kineto_text(bytes, recorded_text(&kineto->trace->run, span->kind));
    kineto_number(bytes, "\",\"args\":{\"device\":", kineto->rank);
    kineto_number(bytes, ",\"stream\":", kernel->tid);
    kineto_number(bytes, ",\"correlation\":", id);
    kineto_number(bytes, ",\"External id\":", id);
    BYTES_TEXT(bytes, ",\"span\":\"");
    kineto_text(bytes, recorded_text(&kineto->trace->run, span->name));
    kineto_number(bytes, "\",\"stage\":", span->stage);
    if (kineto->trace->run.replicas > 1 && !kineto->trace->request->all)
        kineto_number(bytes, ",\"replicas\":", kineto->trace->run.replicas);
    if (kernel->copy && span->bytes > 0)
        kineto_number(bytes, ",\"bytes\":", (int64_t)(span->bytes + 0.5));
    else if (kernel->exchange && (span->bytes > 0 || span->peer >= 0))
        put_exchange(kineto, kernel);
    BYTES_TEXT(bytes, "}}");
    stream_of(kineto, kernel->tid)->free_at = kernel->end;
}

/* A work: its compute kernel, and behind it a collective kernel of its communication. */
static void put_work(struct kineto *kineto, const struct recorded_span *span, struct kernel *kernel)
{
    int64_t end = kernel->end;

    kernel->end = span->communication > 0 ? kineto_us(span->end - span->communication) : end;
    kernel->end = kernel->end < kernel->start ? kernel->start : kernel->end;
    put_kernel(kineto, kernel);
    if (span->communication <= 0)
        return;
    kernel->start = kernel->end;
    kernel->end = end;
    kernel->name = words[span->op].kernel;
    kernel->exchange = span->op != RECORDED_NONE;
    kernel->tid = TID_WITHIN;
    put_kernel(kineto, kernel);
}

static void put_span(struct kineto *kineto, const struct recorded_span *span)
{
    enum recorded_lane_kind lane = kineto->trace->run.lanes.items[span->lane].kind;
    struct kernel kernel = {
        .span = span, .name = "", .tid = lane == RECORDED_COMPUTE ? TID_COMPUTE : TID_FIRST + span->lane,
        .start = kineto_us(span->start), .end = kineto_us(span->end),
    };

    if (lane == RECORDED_HOST) {
        kineto_begin(kineto, "{\"ph\":\"X\",\"cat\":\"cpu_op\"", kernel.tid, kernel.start);
        BYTES_TEXT(&kineto->bytes, ",\"dur\":");
        bytes_integer(&kineto->bytes, kernel.end - kernel.start);
        BYTES_TEXT(&kineto->bytes, ",\"name\":\"");
        kineto_text(&kineto->bytes, recorded_text(&kineto->trace->run, span->kind));
        BYTES_TEXT(&kineto->bytes, "\"}");
        stream_of(kineto, kernel.tid)->free_at = kernel.end;
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

/* The kernels by which the rank receives: as long as those that send, on the first stream that is free. */
static void put_received(struct kineto *kineto)
{
    int own = kineto->rank - kineto->shift, first = TID_FIRST + (int)kineto->trace->run.lanes.count;

    for (size_t i = kineto->received.first[own]; i < kineto->received.first[own + 1]; i++) {
        const struct recorded_span *span = kineto->received.sends[i];
        struct kernel kernel = {.span = span, .name = words[RECORDED_SEND].kernel, .tid = first, .start = kineto_us(span->start),
                                .end = kineto_us(span->end), .exchange = true, .receives = true};

        while (stream_of(kineto, kernel.tid)->free_at > kernel.start)
            kernel.tid++;
        put_kernel(kineto, &kernel);
    }
}

/* The step is an operation of the host, so that HTA's critical path is as long as the step. It ends 1 us early: where one
 * stream is never idle for long, its kernels are longer, and the path. (HTA joins no kernels across 1.5 ms.) */
void kineto_kernels(struct kineto *kineto, struct recorded_rows rows)
{
    int64_t end = 2;

    kineto->streams.count = 0;
    for (size_t i = 0; i < rows.count; i++) {
        put_span(kineto, &rows.first[i]);
        end = kineto_us(rows.first[i].end) > end ? kineto_us(rows.first[i].end) : end;
    }
    put_received(kineto);
    kineto_begin(kineto, "{\"ph\":\"X\",\"cat\":\"cpu_op\"", TID_HOST, 0);
    kineto_number(&kineto->bytes, ",\"dur\":", end - 1);
    BYTES_TEXT(&kineto->bytes, ",\"name\":\"ProfilerStep#1\",\"args\":{\"External id\":0}}");
}
