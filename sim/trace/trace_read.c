/* The files of a run as a trace reads them: spans.tsv, groups.tsv and what result.json says of replicas. */
#include "trace/trace_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const trace_op_names[TRACE_OP_COUNT] = {
    [TRACE_ALL_REDUCE] = "all_reduce", [TRACE_REDUCE_SCATTER] = "reduce_scatter", [TRACE_ALL_GATHER] = "all_gather",
    [TRACE_BROADCAST] = "broadcast", [TRACE_REDUCE] = "reduce", [TRACE_ALL_TO_ALL] = "all_to_all",
    [TRACE_SEND] = "send", [TRACE_NONE] = "",
};

enum { RANK, STAGE, KIND, NAME, START, END, LANE, COMMUNICATION, REPLICAS, ID, AFTER, OP, GROUP, BYTES, PEER };
static const char *const columns[] = {
    "rank", "stage", "kind", "name", "t0", "t1", "lane", "communication", "replicas", "id", "after", "op", "group",
    "bytes", "peer", NULL,
};
enum { MOST_LANES = 1000 };

int read_integer(const struct tsv *tsv, int column, int low, int high, int *value, struct error *err)
{
    const char *at = tsv_text(tsv, column);
    int number = 0, digits = 0;

    for (; *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
        number = 10 * number + (*at - '0');
    if (!digits || *at || number < low || number > high)
        return tsv_integer(tsv, column, low, high, value, err);
    *value = number;
    return 0;
}

/* The same of a cell that may be empty: then -1. */
static int optional_integer(const struct tsv *tsv, int column, int most, int *value, struct error *err)
{
    *value = -1;
    return *tsv_text(tsv, column) ? read_integer(tsv, column, 0, most, value, err) : 0;
}

/* The digits of a plain decimal number are its nanoseconds. */
int read_ns(const struct tsv *tsv, int column, int64_t *ns, struct error *err)
{
    const char *at = tsv_text(tsv, column);
    int64_t number = 0;
    int whole = 0, part = 0;
    double seconds;

    for (; *at >= '0' && *at <= '9' && whole < 9; at++, whole++)
        number = 10 * number + (*at - '0');
    at += whole && *at == '.';
    for (; *at >= '0' && *at <= '9' && part < 9; at++, part++)
        number = 10 * number + (*at - '0');
    for (; part < 9; part++)
        number *= 10;
    number += *at >= '5' && *at <= '9';
    if (whole && at[strspn(at, "0123456789")] == '\0') {
        *ns = number;
        return 0;
    }
    if (tsv_number(tsv, column, &seconds, err))
        return -1;
    if (!(fabs(seconds) < 9e9))
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, column), "%g s is longer than a trace can say in ns; expected less "
                         "than 9e9 s", seconds);
    *ns = seconds < 0 ? -1 : (int64_t)(seconds * 1e9 + 0.5);
    return 0;
}

static enum trace_lane_kind lane_kind(const char *name)
{
    static const char *const kinds[] = {
        [TRACE_COMPUTE] = "compute", [TRACE_TO_HOST] = "to-host", [TRACE_FROM_HOST] = "from-host", [TRACE_HOST] = "host",
        [TRACE_COPY] = "copy",
    };
    size_t kind = 0, length = strcspn(name, ".");

    while (kind < COUNT(kinds) && (strlen(kinds[kind]) != length || strncmp(kinds[kind], name, length)))
        kind++;
    return (enum trace_lane_kind)kind;
}

/* The lane of that name, added when it is new. */
static int find_lane(struct trace *trace, const char *name, size_t guess, size_t *lane, struct error *err)
{
    const struct tsv *tsv = &trace->spans_file;

    for (size_t i = 0; i < trace->lanes.count; i++) {
        *lane = (i + guess) % trace->lanes.count;
        if (!strcmp(trace->lanes.items[*lane].name, name))
            return 0;
    }
    if (!*name)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, LANE), "a span without lane; expected a stream of the rank");
    if (trace->lanes.count == MOST_LANES)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, LANE), "more than %d different lanes", MOST_LANES);
    *lane = trace->lanes.count;
    *GROW(&trace->lanes) = (struct trace_lane){arena_strdup(&trace->arena, name), lane_kind(name), -1, 0};
    return 0;
}

/* The lane of a span. One that begins before the last span of its lane has ended (a message whose bytes have left, but
 * not arrived) has a further lane: "send-next.0 (2)". */
static int read_lane(struct trace *trace, size_t guess, struct trace_span *span, struct error *err)
{
    size_t at;

    if (find_lane(trace, tsv_text(&trace->spans_file, LANE), guess, &at, err))
        return -1;
    for (int copy = 2; trace->lanes.items[at].rank == span->rank && trace->lanes.items[at].until > span->start; copy++) {
        char name[80];

        snprintf(name, sizeof name, "%.60s (%d)", tsv_text(&trace->spans_file, LANE), copy);
        if (find_lane(trace, name, at + 1, &at, err))
            return -1;
    }
    trace->lanes.items[at].rank = span->rank;
    trace->lanes.items[at].until = span->end;
    span->lane = (uint16_t)at;
    return 0;
}

static int read_op(const struct tsv *tsv, uint8_t *op, struct error *err)
{
    const char *text = tsv_text(tsv, OP);

    for (*op = 0; *op < TRACE_OP_COUNT; ++*op)
        if (!strcmp(trace_op_names[*op], text))
            return 0;
    return error_add(err, EXIT_INPUT, tsv_loc(tsv, OP), "unknown operation '%.40s'; expected one of a collective, or send",
                     text);
}

static int check_span(const struct trace *trace, const struct trace_span *span, struct error *err)
{
    const struct tsv *tsv = &trace->spans_file;

    if (span->start < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, START), "the span starts before 0");
    if (span->end < span->start)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, END), "the span ends before it starts");
    if (span->communication < 0 || span->communication > span->end - span->start + 1)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, COMMUNICATION), "%s s of communication in a span of %.9g s",
                         tsv_text(tsv, COMMUNICATION), 1e-9 * (double)(span->end - span->start));
    if (span->bytes < 0 || span->bytes > 9e18)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, BYTES), "%g is no number of bytes", span->bytes);
    if (span->group >= (int)trace->groups.count)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, GROUP), "group %d is not in groups.tsv", span->group);
    if (span->op == TRACE_SEND && span->peer < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, PEER), "a send without peer; expected the rank that it sends to");
    return 0;
}

/* The span of a row. */
static int read_span(struct trace *trace, size_t guess, struct trace_span *span, struct error *err)
{
    const struct tsv *tsv = &trace->spans_file;
    int failed = 0, id = 0, replicas = 1;

    failed |= read_integer(tsv, RANK, 0, TRACE_MOST_RANKS, &span->rank, err);
    failed |= read_integer(tsv, STAGE, -1, INT_MAX - 1, &span->stage, err);
    failed |= read_ns(tsv, START, &span->start, err);
    failed |= read_ns(tsv, END, &span->end, err);
    failed |= read_ns(tsv, COMMUNICATION, &span->communication, err);
    failed |= read_integer(tsv, REPLICAS, 1, TRACE_MOST_RANKS, &replicas, err);
    failed |= read_integer(tsv, ID, 0, INT_MAX - 1, &id, err);
    failed |= optional_integer(tsv, GROUP, INT_MAX - 1, &span->group, err);
    failed |= optional_integer(tsv, PEER, TRACE_MOST_RANKS, &span->peer, err);
    failed |= *tsv_text(tsv, BYTES) ? tsv_number(tsv, BYTES, &span->bytes, err) : 0;
    failed |= read_op(tsv, &span->op, err);
    failed = failed || check_span(trace, span, err);
    if (failed || read_lane(trace, guess, span, err))
        return -1;
    span->id = (uint32_t)id;
    span->kind = (uint32_t)(tsv_text(tsv, KIND) - tsv->text);
    span->name = (uint32_t)(tsv_text(tsv, NAME) - tsv->text);
    span->after = (uint32_t)(tsv_text(tsv, AFTER) - tsv->text);
    trace->ids = span->id >= trace->ids ? span->id + 1 : trace->ids;
    trace->ranks = span->rank >= trace->ranks ? span->rank + 1 : trace->ranks;
    trace->replicas = replicas;
    return 0;
}

static int compare(const struct trace_span *a, const struct trace_span *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int read_spans(struct trace *trace, struct error *err)
{
    struct tsv *tsv = &trace->spans_file;
    int before = err->count + err->dropped;
    struct trace_span span;
    size_t guess = 0;

    if (tsv_open(tsv, arena_printf(&trace->arena, "%s/spans.tsv", trace->request->dir), columns, err))
        return -1;
    if (tsv->end - tsv->text > UINT32_MAX)
        return error_add(err, EXIT_INPUT, tsv->loc, "the table has %td bytes, and a trace is made of 4 GiB at most; expected "
                         "a run of fewer ranks or micro-batches", tsv->end - tsv->text);
    while (tsv_next(tsv, err)) {
        memset(&span, 0, sizeof span);
        if (read_span(trace, guess, &span, err))
            continue;
        guess = span.lane + 1u;
        if (trace->spans.count && compare(&trace->spans.items[trace->spans.count - 1], &span) > 0)
            error_add(err, EXIT_INPUT, tsv->loc, "the span is out of order; expected rows by rank and start");
        *GROW(&trace->spans) = span;
    }
    if (err->count + err->dropped > before)
        return -1;
    return trace->spans.count ? 0 : error_add(err, EXIT_INPUT, tsv->loc, "no spans: nothing to trace");
}

/* Ranks of all replicas as --ranks has them: "0-7,12". */
static int choose_ranks(struct trace *trace, struct error *err)
{
    const char *text = trace->request->ranks;
    struct loc none = {0};

    trace->chosen = xcalloc((size_t)trace->written, sizeof *trace->chosen);
    if (!text)
        memset(trace->chosen, true, (size_t)trace->written);
    while (text && *text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (end > text && *end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtol(end + 1, &end, 10);
        if (end == text || *text < '0' || *text > '9' || (*end && *end != ',') || (*end == ',' && !end[1]) || last < first)
            return error_add(err, EXIT_USAGE, none, "--ranks: expected numbers of ranks such as 0-7,12, found '%s'",
                             trace->request->ranks);
        if (last >= trace->written)
            return error_add(err, EXIT_USAGE, none, "--ranks: there is no rank %ld: expected 0 to %d%s", last,
                             trace->written - 1, trace->written < trace->ranks * trace->replicas ?
                             "; --all repeats rows that stand for several replicas" : "");
        for (long rank = first; rank <= last; rank++)
            trace->chosen[rank] = true;
        text = *end ? end + 1 : end;
    }
    return 0;
}

/* The index of spans by their ids, and which sends are awaited by other ranks. */
static int find_ids(struct trace *trace, struct error *err)
{
    trace->by_id = xcalloc((size_t)trace->ids + 1, sizeof *trace->by_id);
    for (size_t i = 0; i < trace->spans.count; i++) {
        uint32_t *known = &trace->by_id[trace->spans.items[i].id];

        if (*known)
            return error_add(err, EXIT_INPUT, (struct loc){.file = trace->spans_file.loc.file},
                             "two spans have the id %u; expected one", trace->spans.items[i].id);
        *known = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < trace->spans.count; i++) {
        const char *at = trace_text(trace, trace->spans.items[i].after);
        const struct trace_span *other;
        double part;

        while ((other = trace_awaited(trace, &at, &part)))
            if (other->rank != trace->spans.items[i].rank)
                trace->spans.items[other - trace->spans.items].awaited = other->peer == trace->spans.items[i].rank;
    }
    return 0;
}

const struct trace_span *trace_awaited(const struct trace *trace, const char **at, double *part)
{
    while (**at) {
        uint32_t id = 0;
        char *end;

        for (; **at >= '0' && **at <= '9'; ++*at)
            id = id < UINT32_MAX / 10 ? 10 * id + (uint32_t)(**at - '0') : UINT32_MAX;
        *part = -1;
        if (**at == '+') {
            *part = strtod(*at + 1, &end);
            *at = end;
        }
        *at += **at != '\0';         /* a comma */
        if (id < trace->ids && trace->by_id[id])
            return &trace->spans.items[trace->by_id[id] - 1];
    }
    return NULL;
}

/* The ranks of a replica, which result.json says. */
static int read_result(struct trace *trace, struct error *err)
{
    const char *path = arena_printf(&trace->arena, "%s/result.json", trace->request->dir);
    const json_t *strategy;

    trace->result = json_of_file(path, "the result of a run", err);
    if (!trace->result)
        return -1;
    strategy = json_object_get(json_object_get(trace->result, "scenario"), "strategy");
    trace->pipeline = (int)json_integer_value(json_object_get(strategy, "pipeline"));
    return trace->pipeline >= 1 ? 0 : error_add(err, EXIT_INPUT, (struct loc){.file = path}, "it has no pipeline degree at "
                                                "scenario.strategy.pipeline; repeat 'dtsim run -o'");
}

int trace_read(struct trace *trace, struct error *err)
{
    bool repeats = trace->request->all || trace->request->format == TRACE_CHAKRA;

    /* the counters first, so that the texts of two tables are never in memory together */
    if (read_result(trace, err) || groups_read(trace, err) ||
        (trace->request->format == TRACE_PERFETTO && counters_read(trace, err)) || read_spans(trace, err))
        return -1;
    if (trace->ranks > TRACE_MOST_RANKS / trace->replicas)
        return error_add(err, EXIT_INPUT, (struct loc){.file = trace->spans_file.loc.file}, "%d replicas of %d ranks; "
                         "expected %d ranks at most", trace->replicas, trace->ranks, TRACE_MOST_RANKS);
    trace->written = repeats ? trace->ranks * trace->replicas : trace->ranks;
    trace->first = xcalloc((size_t)trace->ranks + 1, sizeof *trace->first);
    for (size_t i = trace->spans.count; i-- > 0;)
        trace->first[trace->spans.items[i].rank] = i;
    trace->first[trace->ranks] = trace->spans.count;
    for (int rank = trace->ranks; rank-- > 0;)
        if (!trace->first[rank] && trace->spans.items[0].rank != rank)
            trace->first[rank] = trace->first[rank + 1];         /* it has no spans */
    groups_index(trace);
    return choose_ranks(trace, err) || find_ids(trace, err) ? -1 : 0;
}

void trace_release(struct trace *trace)
{
    tsv_release(&trace->spans_file);
    tsv_release(&trace->groups_file);
    free(trace->spans.items);
    free(trace->lanes.items);
    groups_release(trace);
    free(trace->memory.items);
    free(trace->utilization.items);
    free(trace->first);
    free(trace->chosen);
    free(trace->by_id);
    json_decref(trace->result);
    arena_release(&trace->arena);
}
