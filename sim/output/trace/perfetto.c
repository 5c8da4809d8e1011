/* Perfetto: a track for each lane, below its rank, its stage and its replica; counters of memory and utilization; flows
 * from a send to what waits for it. Fields by number, as perfetto/trace/trace.proto has them. */
#include "trace/perfetto_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "tables/recorded.h"

static void grow_slots(struct perfetto *perfetto)
{
    free(perfetto->slots);
    perfetto->nslots = perfetto->nslots ? 2 * perfetto->nslots : 1024;
    perfetto->slots = xcalloc(perfetto->nslots, sizeof *perfetto->slots);
    for (size_t i = 0; i < perfetto->names.count; i++) {
        size_t at = perfetto->names.items[i].hash & (perfetto->nslots - 1);

        while (perfetto->slots[at])
            at = (at + 1) & (perfetto->nslots - 1);
        perfetto->slots[at] = (uint32_t)i + 1;
    }
}

/* A new text: it stands in the packet that uses it first. */
static uint64_t intern_new(struct perfetto *perfetto, struct interned *known, uint32_t field, const char *text,
                           uint32_t hash)
{
    struct protobuf_message *inner = &perfetto->inner;

    *GROW(known) = (struct interned_text){text, hash};
    message_varint(inner, IID, known->count);
    message_text(inner, INTERNED_NAME, text);
    message_message(&perfetto->data, field, inner);
    inner->count = 0;
    return known->count;
}

static uint64_t intern_name(struct perfetto *perfetto, const char *text)
{
    uint32_t hash = 2166136261u;         /* FNV-1a */
    size_t at;

    if (2 * perfetto->names.count >= perfetto->nslots)
        grow_slots(perfetto);
    for (const char *byte = text; *byte; byte++)
        hash = (hash ^ (unsigned char)*byte) * 16777619u;
    for (at = hash & (perfetto->nslots - 1); perfetto->slots[at]; at = (at + 1) & (perfetto->nslots - 1)) {
        const struct interned_text *known = &perfetto->names.items[perfetto->slots[at] - 1];

        if (known->hash == hash && !strcmp(known->text, text))
            return perfetto->slots[at];
    }
    perfetto->slots[at] = (uint32_t)perfetto->names.count + 1;
    return intern_new(perfetto, &perfetto->names, EVENT_NAMES, text, hash);
}

/* Kinds are few. */
static uint64_t intern_category(struct perfetto *perfetto, const char *text)
{
    for (size_t i = 0; i < perfetto->categories.count; i++)
        if (!strcmp(perfetto->categories.items[i].text, text))
            return i + 1;
    return intern_new(perfetto, &perfetto->categories, EVENT_CATEGORIES, text, 0);
}

static void annotate(struct perfetto *perfetto, const char *name, int64_t value)
{
    message_varint(&perfetto->inner, ANNOTATION_INT, (uint64_t)value);
    message_name(&perfetto->inner, ANNOTATION_NAME, name);
    message_message(&perfetto->event, DEBUG_ANNOTATIONS, &perfetto->inner);
    perfetto->inner.count = 0;
}

/* The number of a flow: of a send, in one replica. */
static uint64_t flow_of(const struct perfetto *perfetto, const struct recorded_span *send)
{
    return ((uint64_t)(perfetto->shift / perfetto->trace->run.ranks) << 32 | send->id) + 1;
}

/* Whether both ends of a send's arrow are written. */
static bool flows(const struct perfetto *perfetto, const struct recorded_span *send)
{
    const struct trace *trace = perfetto->trace;

    return send->awaited && send->peer < trace->run.ranks && trace->run.chosen[send->rank + perfetto->shift] &&
           trace->run.chosen[send->peer + perfetto->shift];
}

/* A flow ends once: at the first span that waits for the send. */
static void put_flows(struct perfetto *perfetto, const struct recorded_span *span)
{
    const struct trace *trace = perfetto->trace;
    int rank = span->rank + perfetto->shift;
    const char *at = recorded_text(&trace->run, span->after);
    const struct recorded_span *other;
    double part;

    if (flows(perfetto, span))
        message_fixed64(&perfetto->event, FLOW_IDS, flow_of(perfetto, span));
    while (*at && (other = recorded_awaited(&trace->run, &at, &part)))
        if (other->rank != span->rank && other->peer == span->rank && flows(perfetto, other) &&
            perfetto->ended[other - trace->run.spans.items] != rank + 1) {
            message_fixed64(&perfetto->event, TERMINATING_FLOW_IDS, flow_of(perfetto, other));
            perfetto->ended[other - trace->run.spans.items] = rank + 1;
        }
}

static void put_span(struct perfetto *perfetto, const struct recorded_span *span)
{
    const struct trace *trace = perfetto->trace;
    struct protobuf_message *event = &perfetto->event;
    uint64_t *track = &perfetto->lanes[span->lane];

    if (!*track)
        *track = perfetto_track(perfetto, perfetto->rank_tracks[span->rank + perfetto->shift],
                                trace->run.lanes.items[span->lane].name, span->lane + 1, 0);
    message_varint(event, CATEGORY_IIDS, intern_category(perfetto, recorded_text(&trace->run, span->kind)));
    if (span->bytes > 0)
        annotate(perfetto, "bytes", (int64_t)(span->bytes + 0.5));
    if (span->peer >= 0)
        annotate(perfetto, "peer", span->peer + perfetto->shift);
    else if (span->communication > 0)
        annotate(perfetto, "comm_ns", span->communication);
    if (trace->run.replicas > 1 && !trace->request->all)
        annotate(perfetto, "replicas", trace->run.replicas);
    message_varint(event, TYPE, SLICE_BEGIN);
    message_varint(event, NAME_IID, intern_name(perfetto, recorded_text(&trace->run, span->name)));
    message_varint(event, TRACK_UUID, *track);
    put_flows(perfetto, span);
    perfetto_event(perfetto, span->start, true);
    message_varint(event, TYPE, SLICE_END);
    message_varint(event, TRACK_UUID, *track);
    perfetto_event(perfetto, span->end, false);
}

static void put_rank(struct perfetto *perfetto, int rank, uint64_t stage)
{
    struct recorded_rows rows = recorded_rows(&perfetto->trace->run, rank);
    char name[40];

    snprintf(name, sizeof name, "rank %d", rank);
    perfetto->shift = rows.shift;
    perfetto->rank_tracks[rank] = perfetto_track(perfetto, stage, name, rank, 0);
    memset(perfetto->lanes, 0, perfetto->trace->run.lanes.count * sizeof *perfetto->lanes);
    for (size_t i = 0; i < rows.count; i++)
        put_span(perfetto, &rows.first[i]);
}

static void put_ranks(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->trace;
    uint64_t replica = 0, stage;
    int of = -1;
    char name[40];

    for (int rank = 0; (rank = recorded_next_rank(&trace->run, rank)) >= 0; rank++) {
        if (rank / trace->run.pipeline != of) {
            of = rank / trace->run.pipeline;
            snprintf(name, sizeof name, "replica %d", of);
            replica = perfetto_track(perfetto, 0, name, of, 0);
        }
        snprintf(name, sizeof name, "pipeline rank %d", rank % trace->run.pipeline);
        stage = perfetto_track(perfetto, replica, name, rank % trace->run.pipeline, 0);
        put_rank(perfetto, rank, stage);
    }
}

static void write_trace(const struct trace_file *file, FILE *out)
{
    struct perfetto perfetto = {.trace = file->trace, .bytes = {.out = out}};

    perfetto.lanes = xcalloc(file->trace->run.lanes.count + 1, sizeof *perfetto.lanes);
    perfetto.rank_tracks = xcalloc((size_t)file->trace->run.written, sizeof *perfetto.rank_tracks);
    perfetto.ended = xcalloc(file->trace->run.spans.count + 1, sizeof *perfetto.ended);
    message_varint(&perfetto.packet, SEQUENCE, 1);
    message_varint(&perfetto.packet, SEQUENCE_FLAGS, STATE_CLEARED);
    message_write(&perfetto.packet, PACKET, &perfetto.bytes);
    put_ranks(&perfetto);
    perfetto_counters(&perfetto);
    bytes_flush(&perfetto.bytes);
    free(perfetto.lanes);
    free(perfetto.rank_tracks);
    free(perfetto.ended);
    free(perfetto.slots);
    free(perfetto.names.items);
    free(perfetto.categories.items);
    free(perfetto.packet.items);
    free(perfetto.event.items);
    free(perfetto.inner.items);
    free(perfetto.data.items);
}

int perfetto_write(struct trace *trace, FILE *log, struct error *err)
{
    return trace_put("trace.perfetto-trace", &(struct trace_file){trace, -1, write_trace, NULL}, true, log, err);
}
