"""Checks a Perfetto trace against the tables of its run."""
import collections
import re

from protobuf import one, read

SCHEMA = {
    "Trace": {1: ("packet", "TracePacket")},
    "TracePacket": {8: ("timestamp", "int"), 10: ("trusted_packet_sequence_id", "int"), 11: ("track_event", "TrackEvent"),
                    12: ("interned_data", "InternedData"), 13: ("sequence_flags", "int"),
                    60: ("track_descriptor", "TrackDescriptor")},
    "TrackEvent": {3: ("category_iids", "int"), 4: ("debug_annotations", "DebugAnnotation"), 9: ("type", "int"),
                   10: ("name_iid", "int"), 11: ("track_uuid", "int"), 30: ("counter_value", "int"),
                   44: ("double_counter_value", "double"), 47: ("flow_ids", "fixed64"),
                   48: ("terminating_flow_ids", "fixed64")},
    "TrackDescriptor": {1: ("uuid", "int"), 2: ("name", "text"), 5: ("parent_uuid", "int"), 8: ("counter", "CounterDescriptor"),
                        11: ("child_ordering", "int"), 12: ("sibling_order_rank", "int")},
    "CounterDescriptor": {3: ("unit", "int"), 4: ("unit_multiplier", "int"), 6: ("unit_name", "text")},
    "DebugAnnotation": {2: ("bool", "int"), 3: ("uint", "int"), 4: ("int", "int"), 5: ("double", "double"),
                        6: ("string", "text"), 10: ("name", "text")},
    "InternedData": {1: ("event_categories", "Interned"), 2: ("event_names", "Interned")},
    "Interned": {1: ("iid", "int"), 2: ("name", "text")},
}
BEGIN, END, COUNTER = 1, 2, 4


class Reader:
    def __init__(self):
        self.tracks, self.names, self.categories, self.open, self.latest = {}, {}, {}, {}, {}
        self.slices, self.starts, self.ends, self.counts = [], set(), set(), {}

    def path(self, uuid):
        names = []
        while uuid:
            names.append(one(self.tracks[uuid], "name"))
            uuid = one(self.tracks[uuid], "parent_uuid")
        return tuple(reversed(names))

    def event(self, packet, event):
        uuid, at, kind = one(event, "track_uuid"), one(packet, "timestamp"), one(event, "type")
        assert uuid in self.tracks, "an event of an unknown track"
        assert at >= self.latest.get(uuid, 0), "time goes back on a track"
        self.latest[uuid] = at
        if kind == COUNTER:
            value = one(event, "counter_value", one(event, "double_counter_value"))
            self.counts.setdefault(self.path(uuid), []).append((at, value))
        elif kind == BEGIN:
            assert uuid not in self.open, "a slice begins within another"
            assert one(event, "category_iids") in self.categories
            notes = {one(note, "name"): one(note, "int") for note in event.get("debug_annotations", [])}
            self.open[uuid] = (self.names[one(event, "name_iid")], at, notes)
            for flow in event.get("flow_ids", []):
                assert flow not in self.starts, "a flow begins twice"
                self.starts.add(flow)
            for flow in event.get("terminating_flow_ids", []):
                assert flow not in self.ends, "a flow ends twice"
                self.ends.add(flow)
        else:
            assert kind == END
            name, start, notes = self.open.pop(uuid)
            self.slices.append((self.path(uuid), name, start, at, notes))

    def packet(self, packet):
        for interned in packet.get("interned_data", []):
            for key, known in (("event_names", self.names), ("event_categories", self.categories)):
                for entry in interned.get(key, []):
                    assert one(entry, "iid") not in known, "an id is given twice"
                    known[one(entry, "iid")] = one(entry, "name")
        for track in packet.get("track_descriptor", []):
            assert one(track, "uuid") not in self.tracks and (one(track, "parent_uuid") or 0) in {0, *self.tracks}
            self.tracks[one(track, "uuid")] = track
        for event in packet.get("track_event", []):
            self.event(packet, event)


def check_slices(run, slices, replica, alone):
    """The rows of a replica. alone: they stand for it alone, else for all."""
    for row in run.rows:
        shift = replica * run.ranks
        start, end, notes = slices[f"rank {row['rank'] + shift}", row["lane"], row["name"]].popleft()
        assert abs(start - 1e9 * row["t0"]) <= 1 and abs(end - 1e9 * row["t1"]) <= 1, (row, start, end)
        assert notes.get("bytes", 0) == round(row["bytes"])
        assert notes.get("peer", -1) == (row["peer"] + shift if row["peer"] >= 0 else -1)
        assert notes.get("replicas", 1) == (1 if alone else run.replicas)


def check(run, path, every=False):
    with open(path, "rb") as file:
        packets = read(file.read(), SCHEMA, "Trace")["packet"]
    reader = Reader()
    assert one(packets[0], "sequence_flags") == 1, "the first packet clears the state"
    for packet in packets:
        assert one(packet, "trusted_packet_sequence_id") == 1
        reader.packet(packet)
    assert not reader.open, "a slice without end"
    assert reader.starts == reader.ends, "a flow with one end"
    awaited = {(row["id"], send) for row in run.rows for send in re.findall(r"(\d+)[^,]*", row["after"])}
    sends = {row["id"]: row for row in run.rows if row["peer"] >= 0}
    by_id = {int(row["id"]): row for row in run.rows}
    arrows = {int(send) for waits, send in awaited
              if int(send) in sends and by_id[waits]["rank"] == sends[int(send)]["peer"] != sends[int(send)]["rank"]}
    assert len(reader.ends) == len(arrows) * (run.replicas if every else 1), f"{len(reader.ends)} flows, not {len(arrows)}"
    found = {}
    for path, name, start, end, notes in reader.slices:
        found.setdefault((path[2], path[3].split(" (")[0], name), collections.deque()).append((start, end, notes))
    for replica in range(run.replicas if every else 1):
        check_slices(run, found, replica, every)
    assert not any(found.values()), "slices that are no rows"
    most = max(value for path, counts in reader.counts.items() if path[-1] == "memory" for at, value in counts)
    assert abs(most - run.result["peak_memory_bytes"]) <= 1
