/* spans.tsv, and what result.json says of replicas. */
#include "tables/recorded.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "files/json.h"
#include "files/tsv.h"

const char *const recorded_op_names[RECORDED_OP_COUNT + 1] = {
    [RECORDED_ALL_REDUCE] = "all_reduce", [RECORDED_REDUCE_SCATTER] = "reduce_scatter", [RECORDED_ALL_GATHER] = "all_gather",
    [RECORDED_BROADCAST] = "broadcast", [RECORDED_REDUCE] = "reduce", [RECORDED_ALL_TO_ALL] = "all_to_all",
    [RECORDED_SEND] = "send", [RECORDED_NONE] = "", NULL,
};

const char *const recorded_files[] = {
    "result.json", "spans.tsv", "groups.tsv", "memory.tsv", "utilization.tsv", "links.tsv", NULL,
};

enum { RANK, STAGE, KIND, NAME, START, END, LANE, COMMUNICATION, REPLICAS, ID, AFTER, OP, GROUP, BYTES, PEER };
static const char *const columns[] = {
    "rank", "stage", "kind", "name", "t0", "t1", "lane", "communication", "replicas", "id", "after", "op", "group",
    "bytes", "peer", NULL,
};
enum { MOST_LANES = 1000 };

int recorded_integer(const struct tsv *tsv, int column, int low, int high, int *value, struct error *err)
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
    return *tsv_text(tsv, column) ? recorded_integer(tsv, column, 0, most, value, err) : 0;
}

/* The digits of a plain decimal number are its nanoseconds. */
int recorded_ns(const struct tsv *tsv, int column, int64_t *ns, struct error *err)
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
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, column), "%g s is too long to be written in ns; expected less "
                         "than 9e9 s", seconds);
    *ns = seconds < 0 ? -1 : (int64_t)(seconds * 1e9 + 0.5);
    return 0;
}

static enum recorded_lane_kind lane_kind(const char *name)
{
    static const char *const kinds[] = {
        [RECORDED_COMPUTE] = "compute", [RECORDED_TO_HOST] = "to-host", [RECORDED_FROM_HOST] = "from-host", [RECORDED_HOST] = "host",
        [RECORDED_COPY] = "copy",
    };
    size_t kind = 0, length = strcspn(name, ".");

    while (kind < COUNT(kinds) && (strlen(kinds[kind]) != length || strncmp(kinds[kind], name, length)))
        kind++;
    return (enum recorded_lane_kind)kind;
}

/* The lane of that name, added when it is new. */
static int find_lane(struct recorded *run, const char *name, size_t guess, size_t *lane, struct error *err)
{
    const struct tsv *tsv = &run->spans_file;

    for (size_t i = 0; i < run->lanes.count; i++) {
        *lane = (i + guess) % run->lanes.count;
        if (!strcmp(run->lanes.items[*lane].name, name))
            return 0;
    }
    if (!*name)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, LANE), "a span without lane; expected a stream of the rank");
    if (run->lanes.count == MOST_LANES)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, LANE), "more than %d different lanes", MOST_LANES);
    *lane = run->lanes.count;
    *GROW(&run->lanes) = (struct recorded_lane){arena_strdup(&run->arena, name), lane_kind(name), -1, 0};
    return 0;
}

/* The lane of a span. One that begins before the last span of its lane has ended (a message whose bytes have left, but
 * not arrived) has a further lane: "send-next.0 (2)". */
static int read_lane(struct recorded *run, size_t guess, struct recorded_span *span, struct error *err)
{
    size_t at;

    if (find_lane(run, tsv_text(&run->spans_file, LANE), guess, &at, err))
        return -1;
    for (int copy = 2; run->lanes.items[at].rank == span->rank && run->lanes.items[at].until > span->start; copy++) {
        char name[80];

        snprintf(name, sizeof name, "%.60s (%d)", tsv_text(&run->spans_file, LANE), copy);
        if (find_lane(run, name, at + 1, &at, err))
            return -1;
    }
    run->lanes.items[at].rank = span->rank;
    run->lanes.items[at].until = span->end;
    span->lane = (uint16_t)at;
    return 0;
}

static int read_op(const struct tsv *tsv, uint8_t *op, struct error *err)
{
    const char *text = tsv_text(tsv, OP);

    for (*op = 0; *op < RECORDED_OP_COUNT; ++*op)
        if (!strcmp(recorded_op_names[*op], text))
            return 0;
    return error_add(err, EXIT_INPUT, tsv_loc(tsv, OP), "unknown operation '%.40s'; expected one of a collective, or send",
                     text);
}

static int check_span(const struct recorded *run, const struct recorded_span *span, struct error *err)
{
    const struct tsv *tsv = &run->spans_file;

    if (span->start < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, START), "the span starts before 0");
    if (span->end < span->start)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, END), "the span ends before it starts");
    if (span->communication < 0 || span->communication > span->end - span->start + 1)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, COMMUNICATION), "%s s of communication in a span of %.9g s",
                         tsv_text(tsv, COMMUNICATION), 1e-9 * (double)(span->end - span->start));
    if (span->bytes < 0 || span->bytes > 9e18)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, BYTES), "%g is no number of bytes", span->bytes);
    if (span->group >= (int)run->groups.count)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, GROUP), "group %d is not in groups.tsv", span->group);
    if (span->op == RECORDED_SEND && span->peer < 0)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, PEER), "a send without peer; expected the rank that it sends to");
    return 0;
}

/* The span of a row. */
static int read_span(struct recorded *run, size_t guess, struct recorded_span *span, struct error *err)
{
    const struct tsv *tsv = &run->spans_file;
    int failed = 0, id = 0, replicas = 1;

    failed |= recorded_integer(tsv, RANK, 0, RECORDED_MOST_RANKS, &span->rank, err);
    failed |= recorded_integer(tsv, STAGE, -1, INT_MAX - 1, &span->stage, err);
    failed |= recorded_ns(tsv, START, &span->start, err);
    failed |= recorded_ns(tsv, END, &span->end, err);
    failed |= recorded_ns(tsv, COMMUNICATION, &span->communication, err);
    failed |= recorded_integer(tsv, REPLICAS, 1, RECORDED_MOST_RANKS, &replicas, err);
    failed |= recorded_integer(tsv, ID, 0, INT_MAX - 1, &id, err);
    failed |= optional_integer(tsv, GROUP, INT_MAX - 1, &span->group, err);
    failed |= optional_integer(tsv, PEER, RECORDED_MOST_RANKS, &span->peer, err);
    failed |= *tsv_text(tsv, BYTES) ? tsv_number(tsv, BYTES, &span->bytes, err) : 0;
    failed |= read_op(tsv, &span->op, err);
    failed = failed || check_span(run, span, err);
    if (failed || read_lane(run, guess, span, err))
        return -1;
    span->id = (uint32_t)id;
    span->kind = (uint32_t)(tsv_text(tsv, KIND) - tsv->text);
    span->name = (uint32_t)(tsv_text(tsv, NAME) - tsv->text);
    span->after = (uint32_t)(tsv_text(tsv, AFTER) - tsv->text);
    run->ids = span->id >= run->ids ? span->id + 1 : run->ids;
    run->ranks = span->rank >= run->ranks ? span->rank + 1 : run->ranks;
    run->replicas = replicas;
    return 0;
}

static int compare(const struct recorded_span *a, const struct recorded_span *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int read_spans(struct recorded *run, struct error *err)
{
    struct tsv *tsv = &run->spans_file;
    int before = err->count + err->dropped;
    struct recorded_span span;
    size_t guess = 0;
    const char *path;
    struct stat info;

    path = arena_printf(&run->arena, "%s/spans.tsv", run->dir);
    if (!tsv->text && stat(path, &info) == 0 && info.st_size > UINT32_MAX)
        return error_add(err, EXIT_INPUT, (struct loc){.file = path}, "the table has %lld bytes, and 4 GiB at most are read; "
                         "expected a run of fewer ranks or micro-batches", (long long)info.st_size);
    if (tsv_open(tsv, path, columns, err))
        return -1;
    run->spans.capacity = tsv_rows(tsv) + 1;
    run->spans.items = xrealloc(NULL, run->spans.capacity, sizeof *run->spans.items);
    large_pages(run->spans.items, run->spans.capacity * sizeof *run->spans.items);
    while (tsv_next(tsv, err)) {
        memset(&span, 0, sizeof span);
        if (read_span(run, guess, &span, err))
            continue;
        guess = span.lane + 1u;
        if (run->spans.count && compare(&run->spans.items[run->spans.count - 1], &span) > 0)
            error_add(err, EXIT_INPUT, tsv->loc, "the span is out of order; expected rows by rank and start");
        *GROW(&run->spans) = span;
    }
    run->replicas = run->spans.count ? run->replicas : 1;
    return err->count + err->dropped > before ? -1 : 0;
}

/* Ranks of all replicas as --ranks has them: "0-7,12". */
static int choose_ranks(struct recorded *run, struct error *err)
{
    const char *text = run->list;
    struct loc none = {0};

    run->chosen = xcalloc((size_t)run->written + 1, sizeof *run->chosen);
    if (!text)
        memset(run->chosen, true, (size_t)run->written);
    while (text && *text) {
        char *end;
        long long first = strtoll(text, &end, 10), last = first;

        if (end > text && *end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoll(end + 1, &end, 10);
        if (end == text || *text < '0' || *text > '9' || (*end && *end != ',') || (*end == ',' && !end[1]) || last < first)
            return error_add(err, EXIT_USAGE, none, "--ranks: expected numbers of ranks such as 0-7,12, found '%s'",
                             run->list);
        if (last >= run->written)
            return error_add(err, EXIT_USAGE, none, "--ranks: there is no rank %lld: expected 0 to %d%s", last,
                             run->written - 1, run->written < run->ranks * run->replicas ?
                             "; --all repeats rows that stand for several replicas" : "");
        for (long long rank = first; rank <= last; rank++)
            run->chosen[rank] = true;
        text = *end ? end + 1 : end;
    }
    return 0;
}

/* The index of spans by their ids, and which sends are awaited by other ranks. */
static int find_ids(struct recorded *run, struct error *err)
{
    run->by_id = xcalloc((size_t)run->ids + 1, sizeof *run->by_id);
    for (size_t i = 0; i < run->spans.count; i++) {
        uint32_t *known = &run->by_id[run->spans.items[i].id];

        if (*known)
            return error_add(err, EXIT_INPUT, (struct loc){.file = run->spans_file.loc.file},
                             "two spans have the id %u; expected one", run->spans.items[i].id);
        *known = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < run->spans.count; i++) {
        const char *at = recorded_text(run, run->spans.items[i].after);
        const struct recorded_span *other;
        double part;

        while ((other = recorded_awaited(run, &at, &part)))
            if (other->rank != run->spans.items[i].rank)
                run->spans.items[other - run->spans.items].awaited |= other->peer == run->spans.items[i].rank;
    }
    return 0;
}

const struct recorded_span *recorded_awaited(const struct recorded *run, const char **at, double *part)
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
        if (id < run->ids && run->by_id[id])
            return &run->spans.items[run->by_id[id] - 1];
    }
    return NULL;
}

/* The ranks of a replica, which result.json says. */
static int read_result(struct recorded *run, struct error *err)
{
    const char *path = arena_printf(&run->arena, "%s/result.json", run->dir);
    const json_t *strategy;

    if (!run->result)
        run->result = json_of_file(path, "the result of a run", err);
    if (!run->result)
        return -1;
    strategy = json_object_get(json_object_get(run->result, "scenario"), "strategy");
    run->pipeline = (int)json_integer_value(json_object_get(strategy, "pipeline"));
    return run->pipeline >= 1 ? 0 : error_add(err, EXIT_INPUT, (struct loc){.file = path}, "it has no pipeline degree at "
                                                "scenario.strategy.pipeline; repeat 'dtsim run -o'");
}

int recorded_read(struct recorded *run, struct error *err)
{
    if (read_result(run, err) || recorded_read_groups(run, err) || read_spans(run, err))
        return -1;
    if (run->ranks > RECORDED_MOST_RANKS / run->replicas)
        return error_add(err, EXIT_INPUT, (struct loc){.file = run->spans_file.loc.file}, "%d replicas of %d ranks; "
                         "expected %d ranks at most", run->replicas, run->ranks, RECORDED_MOST_RANKS);
    run->written = run->repeats ? run->ranks * run->replicas : run->ranks;
    run->first = xcalloc((size_t)run->ranks + 1, sizeof *run->first);
    for (size_t i = run->spans.count; i-- > 0;)
        run->first[run->spans.items[i].rank] = i;
    run->first[run->ranks] = run->spans.count;
    for (int rank = run->ranks; rank-- > 0;)
        if (!run->first[rank] && run->spans.items[0].rank != rank)
            run->first[rank] = run->first[rank + 1];         /* it has no spans */
    recorded_index_groups(run);
    return choose_ranks(run, err) || find_ids(run, err) ? -1 : 0;
}

void recorded_release(struct recorded *run)
{
    tsv_release(&run->spans_file);
    tsv_release(&run->groups_file);
    free(run->spans.items);
    free(run->lanes.items);
    recorded_release_groups(run);
    free(run->first);
    free(run->chosen);
    free(run->by_id);
    json_decref(run->result);
    arena_release(&run->arena);
}

int recorded_next_rank(const struct recorded *run, int rank)
{
    while (rank < run->written && !run->chosen[rank])
        rank++;
    return rank < run->written ? rank : -1;
}
