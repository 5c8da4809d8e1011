/* The counters: bytes that a rank holds, from memory.tsv, and the share of all ranks' time that computes, from
 * utilization.tsv. */
#include "trace/perfetto_internal.h"

#include <stdlib.h>

enum { MOST_KINDS = 32 };

/* The bytes of each kind that the ranks hold, while memory.tsv is read. */
struct held {
    const char *kinds[MOST_KINDS];
    size_t count;
    struct held_list { struct held_bytes { double of[MOST_KINDS]; } *items; size_t count, capacity; } ranks;
};

static int read_kind(struct held *held, const struct tsv *tsv, size_t *kind, struct error *err)
{
    const char *name = tsv_text(tsv, 2);

    for (*kind = 0; *kind < held->count; ++*kind)
        if (!strcmp(held->kinds[*kind], name))
            return 0;
    if (held->count == MOST_KINDS)
        return error_add(err, EXIT_INPUT, tsv_loc(tsv, 2), "more than %d kinds of memory", MOST_KINDS);
    held->kinds[held->count++] = name;
    return 0;
}

/* The sum of all kinds after a row. Rows of one rank and time that add up are one change; where the bytes fall again at
 * that time, the most that was held is a change of its own. */
static void note_change(struct trace *trace, const struct held *held, int rank, int64_t at)
{
    struct trace_count *last = trace->memory.count ? &trace->memory.items[trace->memory.count - 1] : NULL;
    double sum = 0;

    for (size_t kind = 0; kind < held->count; kind++)
        sum += held->ranks.items[rank].of[kind];
    if (!last || last->rank != rank || last->at != at || sum < last->value)
        *GROW(&trace->memory) = (struct trace_count){rank, at, sum};
    else
        last->value = sum;
}

/* A number of bytes; most are whole. */
static int read_bytes(const struct tsv *tsv, int column, double *bytes, struct error *err)
{
    const char *at = tsv_text(tsv, column);
    int64_t number = 0;
    int digits = 0;

    for (; *at >= '0' && *at <= '9' && digits < 15; at++, digits++)
        number = 10 * number + (*at - '0');
    if (!digits || *at)
        return tsv_number(tsv, column, bytes, err);
    *bytes = (double)number;
    return 0;
}

static int read_memory(struct trace *trace, struct error *err)
{
    static const char *const columns[] = {"rank", "t", "kind", "bytes", NULL};
    struct held held = {0};
    int before = err->count + err->dropped, rank;
    struct tsv tsv = {0};
    int64_t at;
    double bytes;
    size_t kind;

    if (!tsv_open(&tsv, arena_printf(&trace->run.arena, "%s/memory.tsv", trace->request->dir), columns, err))
        while (tsv_next(&tsv, err)) {
            if (recorded_integer(&tsv, 0, 0, RECORDED_MOST_RANKS, &rank, err) || recorded_ns(&tsv, 1, &at, err) ||
                read_kind(&held, &tsv, &kind, err) || read_bytes(&tsv, 3, &bytes, err))
                continue;
            while (held.ranks.count <= (size_t)rank)
                *GROW(&held.ranks) = (struct held_bytes){{0}};
            held.ranks.items[rank].of[kind] = bytes;
            note_change(trace, &held, rank, at);
        }
    free(held.ranks.items);
    tsv_release(&tsv);
    return err->count + err->dropped > before ? -1 : 0;
}

/* The kinds of breakdown_s that compute. */
static int read_utilization(struct trace *trace, struct error *err)
{
    static const char *const columns[] = {"t0", "t1", "forward", "backward", "backward_input", "backward_weight",
                                          "recompute", "update", "pack", NULL};
    int before = err->count + err->dropped;
    struct tsv tsv = {0};
    int64_t from, to = 0;

    if (!tsv_open(&tsv, arena_printf(&trace->run.arena, "%s/utilization.tsv", trace->request->dir), columns, err))
        while (tsv_next(&tsv, err)) {
            double share, sum = 0;
            int failed = recorded_ns(&tsv, 0, &from, err) | recorded_ns(&tsv, 1, &to, err);

            for (int column = 2; columns[column] && !failed; column++) {
                failed = tsv_number(&tsv, column, &share, err);
                sum += failed ? 0 : 100 * share;
            }
            *GROW(&trace->utilization) = (struct trace_count){-1, from, sum};
        }
    if (trace->utilization.count)
        *GROW(&trace->utilization) = (struct trace_count){-1, to, 0};
    tsv_release(&tsv);
    return err->count + err->dropped > before ? -1 : 0;
}

int counters_read(struct trace *trace, struct error *err)
{
    return read_memory(trace, err) || read_utilization(trace, err) ? -1 : 0;
}

static void put_count(struct perfetto *perfetto, uint64_t track, const struct trace_count *count, bool whole)
{
    message_varint(&perfetto->event, TYPE, COUNTER);
    message_varint(&perfetto->event, TRACK_UUID, track);
    if (whole)
        message_varint(&perfetto->event, COUNTER_VALUE, (uint64_t)(int64_t)(count->value + 0.5));
    else
        message_double(&perfetto->event, DOUBLE_COUNTER_VALUE, count->value);
    perfetto_event(perfetto, count->at, false);
}

void perfetto_counters(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->trace;
    uint64_t *tracks = xcalloc((size_t)trace->run.written, sizeof *tracks), track;

    for (size_t i = 0; i < trace->memory.count; i++)
        for (int rank = trace->memory.items[i].rank; rank < trace->run.written; rank += trace->run.ranks) {
            if (!trace->run.chosen[rank] || trace->memory.items[i].rank >= trace->run.ranks)
                continue;
            if (!tracks[rank])
                tracks[rank] = perfetto_track(perfetto, perfetto->rank_tracks[rank], "memory", 0, UNIT_BYTES);
            put_count(perfetto, tracks[rank], &trace->memory.items[i], true);
        }
    track = trace->utilization.count ? perfetto_track(perfetto, 0, "utilization of all ranks", 0, UNIT_PERCENT) : 0;
    for (size_t i = 0; i < trace->utilization.count; i++)
        put_count(perfetto, track, &trace->utilization.items[i], false);
    free(tracks);
}
