/* The counters: bytes that a rank holds, from memory.tsv, and the share of all ranks' time that computes, from
 * utilization.tsv. */
#include "trace/perfetto_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "files/tsv.h"
#include "tables/recorded.h"

/* Rows of one rank and time that add up are one change; where the bytes fall again at that time, the most that was held is
 * a change of its own. */
static void note_change(void *context, const struct recorded_change *change)
{
    struct trace *trace = context;
    struct trace_count *last = trace->memory.count ? &trace->memory.items[trace->memory.count - 1] : NULL;

    if (!last || last->rank != change->rank || last->at != change->at || change->held < last->value)
        *GROW(&trace->memory) = (struct trace_count){change->rank, change->at, change->held};
    else
        last->value = change->held;
}

/* The share that computes: of all kinds but the bubble and exposed waits. */
static int read_utilization(struct trace *trace, struct error *err)
{
    static const char *const columns[] = {"t0", "t1", NULL};
    int before = err->count + err->dropped;
    struct tsv tsv = {.all = true};
    int64_t from, to = 0;

    if (!tsv_open(&tsv, arena_printf(&trace->run.arena, "%s/utilization.tsv", trace->request->dir), columns, err))
        while (tsv_next(&tsv, err)) {
            double share, sum = 0;
            int failed = recorded_ns(&tsv, 0, &from, err) | recorded_ns(&tsv, 1, &to, err);

            for (int column = 2; column < tsv.wanted && !failed; column++) {
                bool waits = !strcmp(tsv.names[column], "bubble") || !strncmp(tsv.names[column], "exposed_", strlen("exposed_"));

                failed = tsv_number(&tsv, column, &share, err);
                sum += failed || waits ? 0 : 100 * share;
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
    return recorded_read_memory(trace->request->dir, note_change, trace, err) || read_utilization(trace, err) ? -1 : 0;
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
