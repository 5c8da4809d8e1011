"""Checks a Kineto trace against the tables of its run, by the arithmetic of HTA: kernels are compute, communication or
memory by their names; what is left of the time is idle."""
import json
import os
import re

from run_tables import COMPUTE


def ns(text):
    """Microseconds with up to 3 decimals, exactly."""
    return round(float(text) * 1000)


def merged(spans, start, end):
    """The ns between start and end that some of the (start, end) cover."""
    total, until = 0, start
    for begin, stop in sorted(spans):
        begin, stop = max(begin, until), min(stop, end)
        total += max(0, stop - begin)
        until = max(until, stop)
    return total


def kind_of(name):
    return "communication" if re.match("nccl", name) else "memory" if re.match("Memcpy|Memset", name) else "compute"


def check_rank(run, path, rank):
    with open(path) as file:
        text = file.read()
    assert int(re.search(r'"rank":\s+(\d+)', text).group(1)) == rank, "HTA finds another rank"
    trace = json.loads(text)
    assert trace["schemaVersion"] == 1 and trace["displayTimeUnit"] == "ms"
    config = trace["distributedInfo"]["pg_config"]
    assert trace["distributedInfo"]["pg_count"] == len(config)
    assert all(rank in group["ranks"] for group in config), "a group without its rank"
    kernels, launches, arrows, operations, streams = [], {}, {}, {}, {}
    for event in trace["traceEvents"]:
        category, phase = event.get("cat"), event["ph"]
        assert event["pid"] == rank and phase in "XMsf"
        if phase in "sf":
            assert category == "ac2g" and (phase == "s" or event["bp"] == "e")
            arrows.setdefault(event["id"], {})[phase] = event
        elif category in ("kernel", "gpu_memcpy"):
            kernels.append(event)
        elif category == "cuda_runtime":
            launches[event["args"]["correlation"]] = event
        elif category == "cpu_op" and "args" in event:
            operations[event["args"]["External id"]] = event
        else:
            assert phase == "M" or category == "cpu_op", event
    for event in kernels:
        arguments, start, length = event["args"], ns(event["ts"]), ns(event["dur"])
        launch, arrow = launches[arguments["correlation"]], arrows[arguments["correlation"]]
        assert arguments["device"] == rank and arguments["stream"] == event["tid"]
        assert ns(launch["ts"]) <= start and ns(arrow["s"]["ts"]) == ns(launch["ts"]) and ns(arrow["f"]["ts"]) == start
        assert launch["args"]["External id"] == arguments["External id"] and arguments["External id"] in operations
        assert start >= streams.get(event["tid"], 0), "kernels of a stream overlap"
        # HTA rounds starts up and ends down to us, and calls the gap the host's where the launch is behind that end
        assert event["tid"] not in streams or -(-ns(launch["ts"]) // 1000) <= streams[event["tid"]] // 1000, \
            "HTA takes a gap between kernels for the host's"
        streams[event["tid"]] = start + length
    assert len(kernels) == len(launches) == len(arrows) == len(operations)
    return kernels


def check_bytes(rows, kernels):
    sent = sum(round(row["bytes"]) for row in rows if row["peer"] >= 0)
    found = sum(event["args"]["In msg nelems"] for event in kernels if event["args"].get("Collective name") == "send")
    assert sent == found, f"{found} bytes sent, not {sent}"
    collected = sum(max(event["args"]["In msg nelems"], event["args"]["Out msg nelems"]) for event in kernels
                    if event["args"].get("Collective name", "send") != "send")
    exchanged = sum(round(row["bytes"]) for row in rows if row["op"] and row["peer"] < 0 and
                    (row["lane"] != "compute" or row["communication"] > 0))
    assert collected == exchanged, f"{collected} bytes in collectives, not {exchanged}"


def check_seconds(rows, kernels):
    """Each stream and kind adds up to its rows: the seconds of works less their communication, and this."""
    sums = {}
    for row in rows:
        if row["lane"].startswith("host"):
            continue
        work = row["lane"] == "compute"
        for key, seconds in ((row["kind"] if work else row["kind"] + " ", row["t1"] - row["t0"] - work * row["communication"]),
                             ("communication", work * row["communication"])):
            spans = sums.setdefault(key, [0, 0])
            spans[0] += 1e9 * seconds
            spans[1] += 1
    kinds = {row["name"]: row["kind"] for row in rows if row["lane"] != "compute"}
    for event in kernels:
        within = event["tid"] == 8
        name = event["args"]["span"]
        key = "communication" if within else event["name"] if event["tid"] == 7 else None
        if key:
            sums[key][0] -= ns(event["dur"])
        else:
            sums[kinds[name] + " "][0] -= ns(event["dur"])
    for key, (left, count) in sums.items():
        assert abs(left) <= count, f"{key}: {left} ns are left of {count} spans"


def check(run, folder):
    start, end, iterations = run.window()
    compute = [0.0, 0]
    for rank in range(run.ranks):
        rows = run.of_rank(rank)
        kernels = check_rank(run, os.path.join(folder, f"rank-{rank}.json"), rank)
        check_bytes(rows, kernels)
        check_seconds(rows, kernels)
        spans = [(ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])) for event in kernels
                 if kind_of(event["name"]) == "compute"]
        compute[0] += merged(spans, round(1e9 * start), round(1e9 * end))
        compute[1] += len(spans)
    expected = 1e9 * sum(run.result["breakdown_s"][key] for key in COMPUTE)
    found = compute[0] / iterations / run.ranks
    assert abs(found - expected) <= compute[1] / run.ranks + 1e-9 * expected + 2, f"HTA computes {found} ns, not {expected}"
