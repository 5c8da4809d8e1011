/* Declarations that the files of the Perfetto format share. */
#ifndef DTSIM_PERFETTO_INTERNAL_H
#define DTSIM_PERFETTO_INTERNAL_H

#include "trace/protobuf.h"
#include "trace/trace_internal.h"

/* TracePacket, TrackEvent, TrackDescriptor, CounterDescriptor, DebugAnnotation and InternedData: the fields used. */
enum { PACKET = 1 };
enum { TIMESTAMP = 8, SEQUENCE = 10, TRACK_EVENT = 11, INTERNED_DATA = 12, SEQUENCE_FLAGS = 13, TRACK_DESCRIPTOR = 60 };
enum { CATEGORY_IIDS = 3, DEBUG_ANNOTATIONS = 4, TYPE = 9, NAME_IID = 10, TRACK_UUID = 11, COUNTER_VALUE = 30,
       DOUBLE_COUNTER_VALUE = 44, FLOW_IDS = 47, TERMINATING_FLOW_IDS = 48 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, COUNTER = 4 };
enum { UUID = 1, TRACK_NAME = 2, PARENT_UUID = 5, COUNTER_DESCRIPTOR = 8, CHILD_ORDERING = 11, SIBLING_ORDER_RANK = 12 };
enum { ORDER_EXPLICIT = 3, UNIT = 3, UNIT_NAME = 6, UNIT_BYTES = 3, UNIT_PERCENT = -1 };
enum { ANNOTATION_INT = 4, ANNOTATION_NAME = 10 };
enum { EVENT_CATEGORIES = 1, EVENT_NAMES = 2, IID = 1, INTERNED_NAME = 2 };
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };

/* Texts that were written once. */
struct interned { struct interned_text { const char *text; uint32_t hash; } *items; size_t count, capacity; };

struct perfetto {
    const struct trace *trace;
    struct bytes bytes;
    struct protobuf_message packet, event, inner, data;
    struct interned names, categories;
    uint32_t *slots;         /* a hash of a name: its iid; 0: none */
    size_t nslots;
    uint64_t tracks;         /* so far */
    uint64_t *lanes;         /* a lane of the rank at hand: its track; 0: none yet */
    uint64_t *rank_tracks;   /* a rank: its track */
    int *ended;              /* a send: one more than the rank on which its flow has ended */
    int shift;               /* of the rank at hand, less the one that stands for it */
};

/* A new track below another one (0: none). `unit`: of a counter, UNIT_BYTES or UNIT_PERCENT; 0: it has slices. */
uint64_t perfetto_track(struct perfetto *perfetto, uint64_t parent, const char *name, int order, int unit);
/* Writes the event that was put together. `needs`: it names texts that were written before. */
void perfetto_event(struct perfetto *perfetto, int64_t ns, bool needs);

/* perfetto_counters.c */
/* The counters of all ranks that are written, from memory.tsv and utilization.tsv, which are read before. */
void perfetto_counters(struct perfetto *perfetto);

#endif
