/* Packets of a Perfetto trace: a track, an event. */
#include "trace/perfetto_internal.h"

uint64_t perfetto_track(struct perfetto *perfetto, uint64_t parent, const char *name, int order, int unit)
{
    struct protobuf_message *track = &perfetto->inner;

    message_varint(track, UUID, ++perfetto->tracks);
    message_text(track, TRACK_NAME, name);
    if (parent)
        message_varint(track, PARENT_UUID, parent);
    if (unit) {
        if (unit == UNIT_BYTES)
            message_varint(&perfetto->data, UNIT, (uint64_t)unit);
        else
            message_name(&perfetto->data, UNIT_NAME, "%");
        message_message(track, COUNTER_DESCRIPTOR, &perfetto->data);
        perfetto->data.count = 0;
    } else {
        message_varint(track, CHILD_ORDERING, ORDER_EXPLICIT);
    }
    message_varint(track, SIBLING_ORDER_RANK, (uint64_t)order);
    message_varint(&perfetto->packet, SEQUENCE, 1);
    message_message(&perfetto->packet, TRACK_DESCRIPTOR, track);
    track->count = 0;
    message_write(&perfetto->packet, PACKET, &perfetto->bytes);
    return perfetto->tracks;
}

void perfetto_event(struct perfetto *perfetto, int64_t ns, bool needs)
{
    message_varint(&perfetto->packet, TIMESTAMP, (uint64_t)ns);
    message_varint(&perfetto->packet, SEQUENCE, 1);
    if (needs)
        message_varint(&perfetto->packet, SEQUENCE_FLAGS, STATE_NEEDED);
    if (perfetto->data.count)
        message_message(&perfetto->packet, INTERNED_DATA, &perfetto->data);
    message_message(&perfetto->packet, TRACK_EVENT, &perfetto->event);
    perfetto->data.count = perfetto->event.count = 0;
    message_write(&perfetto->packet, PACKET, &perfetto->bytes);
}
