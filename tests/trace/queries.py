#!/usr/bin/env python3
"""Runs the queries of scenarios/perfetto/README.md over traces, and compares their answers with the run's tables: queries.py DTSIM
SCENARIO... The tables that trace_processor makes of a trace are made here in SQLite; where trace_processor_shell is on PATH, it runs
the queries too, and must say the same."""
import collections
import csv
import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import perfetto
from protobuf import one, read
from run_tables import Run

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios", "perfetto", "README.md")
LANES_OF_HOSTS = ("to-host", "from-host", "host", "copy")


class Tables(perfetto.Reader):
    """slice, track, args, flow, counter and counter_track, as trace_processor has them of track events."""

    def __init__(self, path):
        super().__init__()
        self.rows, self.begun, self.out, self.counters = [], {}, {}, []
        self.flows = []
        with open(path, "rb") as file:
            for packet in read(file.read(), perfetto.SCHEMA, "Trace")["packet"]:
                self.packet(packet)

    def event(self, packet, event):
        uuid, at, kind = one(event, "track_uuid"), one(packet, "timestamp"), one(event, "type")
        super().event(packet, event)
        if kind == perfetto.COUNTER:
            self.counters.append((at, one(event, "counter_value", one(event, "double_counter_value")), uuid))
        elif kind == perfetto.BEGIN:
            number = len(self.rows)
            self.begun[uuid] = number
            name, _, notes = self.open[uuid]
            self.rows.append([number, at, None, uuid, self.categories[one(event, "category_iids")], name, notes])
            for flow in event.get("flow_ids", []):
                self.out[flow] = number
            self.flows += [(flow, number) for flow in event.get("terminating_flow_ids", [])]
        else:
            self.rows[self.begun[uuid]][2] = at - self.rows[self.begun[uuid]][1]

    def database(self):
        base = sqlite3.connect(":memory:")
        base.executescript("""CREATE TABLE slice(id, ts, dur, track_id, category, name, arg_set_id); CREATE TABLE track(id, name, parent_id);
            CREATE TABLE counter_track(id, name, parent_id); CREATE TABLE counter(ts, value, track_id); CREATE TABLE flow(slice_out, slice_in);""")
        base.create_function("EXTRACT_ARG", 2, lambda number, key: self.rows[number][6].get(key.removeprefix("debug.")))
        base.executemany("INSERT INTO slice VALUES(?, ?, ?, ?, ?, ?, ?)", [row[:6] + [row[0]] for row in self.rows])
        for uuid, track in self.tracks.items():
            row = (uuid, one(track, "name"), one(track, "parent_uuid"))
            base.execute("INSERT INTO track VALUES(?, ?, ?)", row)
            if "counter" in track:
                base.execute("INSERT INTO counter_track VALUES(?, ?, ?)", row)
        base.executemany("INSERT INTO counter VALUES(?, ?, ?)", self.counters)
        base.executemany("INSERT INTO flow VALUES(?, ?)", [(self.out[flow], number) for flow, number in self.flows])
        return base


def merged(spans):
    total, until = 0, None
    for start, end in sorted(spans):
        start = start if until is None else max(start, until)
        total, until = total + max(0, end - start), end if until is None else max(until, end)
    return total


class Expected:
    """The answers, from spans.tsv and memory.tsv."""

    def __init__(self, run):
        self.run, self.rows = run, run.rows
        for row in self.rows:
            row["a"], row["b"] = round(1e9 * row["t0"]), round(1e9 * row["t1"])
            row["who"], row["comm"] = f"rank {row['rank']}", round(1e9 * row["communication"])
        self.works = [row for row in self.rows if row["lane"] == "compute"]
        self.exchanges = [row for row in self.rows if row["lane"] != "compute" and row["lane"].split(".")[0] not in LANES_OF_HOSTS]
        self.whole = max(row["b"] for row in self.rows) - min(row["a"] for row in self.rows)

    def by(self, rows, *keys):
        groups = collections.defaultdict(list)
        for row in rows:
            groups[tuple(row[key] for key in keys)].append(row)
        return groups

    def busy(self):
        return {rank: (sum(r["b"] - r["a"] for r in rows) / 1e6, 100 * sum(r["b"] - r["a"] for r in rows) / self.whole)
                for rank, rows in self.by(self.works, "who").items()}

    def bubbles(self):
        return {rank: ((self.whole - sum(r["b"] - r["a"] for r in rows)) / 1e6,) for rank, rows in self.by(self.works, "who").items()}

    def kinds(self):
        return {kind: (len(rows), sum(r["b"] - r["a"] for r in rows) / 1e6, sum(r["comm"] for r in rows) / 1e6)
                for kind, rows in self.by(self.works, "kind").items()}

    def waits(self):
        gaps = [(b["a"] - a["b"]) / 1e6 for rows in self.by(self.works, "who").values()
                for a, b in zip(sorted(rows, key=lambda r: (r["a"], r["b"])), sorted(rows, key=lambda r: (r["a"], r["b"]))[1:])]
        return sorted((gap for gap in gaps if gap > 0), reverse=True)[:10]

    def exposed(self):
        found = {}
        for (rank,), rows in self.by(self.works, "who").items():
            comm = [(r["a"], r["b"]) for r in self.exchanges if r["who"] == rank or (r["peer"] >= 0 and f"rank {r['peer']}" == rank)]
            comp = [(r["a"], r["b"]) for r in rows]
            found[rank,] = ((merged(comm + comp) - merged(comp) + sum(r["comm"] for r in rows)) / 1e6,)
        return found

    def longest(self):
        return sorted(((r["b"] - r["a"]) / 1e6 for r in self.rows), reverse=True)[:10]

    def sent(self):
        return {(rank, f"rank {peer}"): (len(rows), sum(round(r["bytes"]) for r in rows) / 1e6, sum(r["b"] - r["a"] for r in rows) / 1e6)
                for (rank, peer), rows in self.by([r for r in self.rows if r["peer"] >= 0], "who", "peer").items()}

    def collectives(self):
        return {key: (len(rows), sum(round(r["bytes"]) for r in rows) / 1e6, sum(r["b"] - r["a"] for r in rows) / 1e6,
                      sum(round(r["bytes"]) for r in rows) / sum(r["b"] - r["a"] for r in rows))
                for key, rows in self.by([r for r in self.exchanges if r["peer"] < 0 and r["b"] > r["a"]], "who", "kind").items()}

    def late(self):
        ids, found, ended, free = {r["id"]: r for r in self.rows}, [], set(), {}
        for rows in self.by(self.works, "rank").values():
            before = 0
            for row in sorted(rows, key=lambda r: (r["a"], r["b"])):
                free[row["id"]], before = before, row["b"]
        for row in sorted(self.rows, key=lambda r: r["a"]):
            for word in re.findall(r"(\d+)[^,]*", row["after"]):
                send = ids.get(int(word))
                if send and send["rank"] != row["rank"] and send["peer"] == row["rank"] and send["id"] not in ended:
                    ended.add(send["id"])
                    if row["id"] in free:
                        found.append((send["b"] - free[row["id"]]) / 1e6)
        return sorted(found, reverse=True)[:10]

    def memory(self):
        most = collections.defaultdict(float)
        held = collections.defaultdict(dict)
        with open(os.path.join(self.run.folder, "memory.tsv")) as file:
            for row in csv.DictReader(file, delimiter="\t"):
                rank, kind, value = [row[key] for key in list(row)[:1] + list(row)[2:4]]
                held[rank][kind] = float(value)
                most[rank] = max(most[rank], sum(held[rank].values()))
        return {(f"rank {rank}",): (value / 2**30,) for rank, value in most.items()}


def same(number, found, wanted, keys):
    """Rows by their first `keys` columns, or, where the answer is a list of the ten largest, that column. A time of the trace is
    rounded to ns."""
    near = lambda a, b: abs(a - b) <= 1e-4 + 1e-6 * abs(b)
    if keys < 0:
        values = [row[keys] for row in found]
        assert len(values) == len(wanted) and all(map(near, values, wanted)), f"question {number}: {values}, not {wanted}"
        return
    rows = {row[:keys]: row[keys:] for row in found}
    wanted = {(key if isinstance(key, tuple) else (key,)): value for key, value in wanted.items()}
    assert set(rows) == set(wanted), f"question {number}: {sorted(rows)}, not {sorted(wanted)}"
    for key, values in wanted.items():
        assert all(map(near, rows[key], values)), f"question {number}, {key}: {rows[key]}, not {values}"


def shell(queries, trace):
    """The same by trace_processor itself, whose answers are CSV, one behind the other."""
    program = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if not program:
        return None
    answers = []
    for query in queries[1:]:
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(queries[0] + "\n" + query)
            file.flush()
            said = subprocess.run([program, "-q", file.name, trace], capture_output=True, text=True, check=True).stdout
        rows = list(csv.reader(io.StringIO(said)))[1:]
        answers.append([tuple(float(c) if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", c) else c for c in row) for row in rows if row])
    return answers


def check(dtsim, scenario, queries):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([dtsim, "run", scenario, "--engine", "fast", "-o", folder], check=True, capture_output=True)
        subprocess.run([dtsim, "trace", folder], check=True, capture_output=True)
        trace, expected = os.path.join(folder, "trace", "trace.perfetto-trace"), Expected(Run(folder))
        base = Tables(trace).database()
        base.execute(queries[0])
        asked = [("busy", 1), ("bubbles", 1), ("kinds", 1), ("waits", -1), ("exposed", 1), ("longest", -1), ("sent", 2),
                 ("collectives", 2), ("late", -1), ("memory", 1)]
        answers = [base.execute(query).fetchall() for query in queries[1:]]
        others = shell(queries, trace)
        for number, (name, keys) in enumerate(asked):
            wanted = getattr(expected, name)()
            for found in [answers[number]] + ([others[number]] if others else []):
                found = [row[:2] for row in found] if name == "memory" else found
                same(number + 1, found, wanted, keys)
    return others is not None


def main(dtsim, scenarios):
    with open(PAGE, encoding="utf-8") as file:
        queries = re.findall(r"```sql\n(.*?)```", file.read(), re.DOTALL)
    assert len(queries) == 11
    for scenario in scenarios:
        real = check(dtsim, scenario, queries)
        print(f"{scenario}: ten answers as its tables have them{' (also of trace_processor)' if real else ''}")
    if not real:
        print("trace_processor_shell is not there: its part is skipped")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
