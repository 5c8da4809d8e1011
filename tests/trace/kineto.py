"""Checks a Kineto trace against the tables of its run, by the arithmetic of HTA: kernels are compute, communication or
memory by their names; what is left of the time is idle."""
import json
import os
import re

from run_tables import COMPUTE


# What TensorBoard's plugin counts as communication: kernels of operations of these names (torch_tb_profiler/profiler/trace.py).
TENSORBOARD = {"nccl:broadcast", "nccl:reduce", "nccl:all_reduce", "nccl:all_gather", "nccl:reduce_scatter"}


def us(seconds):
    """As the trace rounds it, within half a us."""
    return round(1e6 * seconds)


def merged(spans, start, end):
    """The us between start and end that some of the (start, end) cover."""
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
    kernels, launches, arrows, operations, streams, threads, steps = [], {}, {}, {}, {}, {}, []
    for event in trace["traceEvents"]:
        category, phase = event.get("cat"), event["ph"]
        assert event["pid"] == rank and phase in "XMsf" and isinstance(event["ts"], int), "HTA rounds other times"
        if phase in "sf":
            assert category == "ac2g" and (phase == "s" or event["bp"] == "e")
            arrows.setdefault(event["id"], {})[phase] = event
        elif category in ("kernel", "gpu_memcpy"):
            kernels.append(event)
        elif category == "cuda_runtime":
            launches[event["args"]["correlation"]] = event
            assert event["dur"] > 0 and event["ts"] >= threads.get(event["tid"], 0), "launches of a thread overlap"
            threads[event["tid"]] = event["ts"] + event["dur"]
        elif event["name"].startswith("ProfilerStep#"):
            steps.append(event)
        elif category == "cpu_op" and "args" in event:
            operations[event["args"]["External id"]] = event
        else:
            assert phase == "M" or category == "cpu_op", event
    for event in kernels:
        arguments, start, length = event["args"], event["ts"], event["dur"]
        launch, arrow = launches[arguments["correlation"]], arrows[arguments["correlation"]]
        assert arguments["device"] == rank and arguments["stream"] == event["tid"] and length >= 0
        assert launch["ts"] <= start and arrow["s"]["ts"] == launch["ts"] and arrow["f"]["ts"] == start
        assert launch["args"]["External id"] == arguments["External id"] and arguments["External id"] in operations
        assert start >= streams.get(event["tid"], 0), "kernels of a stream overlap"
        # HTA calls the gap before a kernel the host's where its launch is behind the end of the kernel before
        assert event["tid"] not in streams or launch["ts"] <= streams[event["tid"]], \
            "HTA takes a gap between kernels for the host's"
        streams[event["tid"]] = start + length
        operation = operations[arguments["External id"]]["name"]
        collective = re.match("ncclDevKernel_(?!SendRecv|AllToAll|Overlapped)", event["name"]) is not None
        assert (operation in TENSORBOARD) == collective, f"TensorBoard reads {operation} of {event['name']}"
    # HTA: all launches lie in one step, whose length is its critical path's where kernels do not join
    assert len(steps) == 1 and steps[0]["ts"] == 0 and all(e["ts"] <= steps[0]["dur"] for e in launches.values())
    assert len(kernels) == len(launches) == len(arrows) == len(operations)
    return kernels


def check_steps(rows, path):
    last = max([us(row["t1"]) for row in rows], default=0)
    with open(path) as file:
        step = next(e for e in json.load(file)["traceEvents"] if e["name"].startswith("ProfilerStep#"))
    assert abs(step["dur"] - last) <= 2 or last < 2, f"a step of {step['dur']} us, not {last}"


def check_received(rows, kernels):
    """What others send to the rank is a kernel of the rank for as long."""
    expected = sorted((us(row["t0"]), us(row["t1"]), row["rank"]) for row in rows)
    found = sorted((event["ts"], event["ts"] + event["dur"], event["args"]["Src Rank"]) for event in kernels
                   if event["args"].get("Collective name") == "recv")
    assert len(expected) == len(found), f"{len(found)} messages received, not {len(expected)}"
    for one, other in zip(expected, found):
        assert all(abs(a - b) <= 1 for a, b in zip(one, other)), f"received {other}, not {one}"


def check_bytes(rows, kernels):
    sent = sum(round(row["bytes"]) for row in rows if row["peer"] >= 0)
    found = sum(event["args"]["In msg nelems"] for event in kernels if event["args"].get("Collective name") == "send")
    assert sent == found, f"{found} bytes sent, not {sent}"
    collected = sum(max(event["args"]["In msg nelems"], event["args"]["Out msg nelems"]) for event in kernels
                    if event["args"].get("Collective name", "send") not in ("send", "recv"))
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
            spans[0] += 1e6 * seconds
            spans[1] += 1
    kinds = {row["name"]: row["kind"] for row in rows if row["lane"] != "compute"}
    for event in kernels:
        if event["args"].get("Collective name") == "recv":
            continue
        within = event["tid"] == 8
        name = event["args"]["span"]
        key = "communication" if within else event["name"] if event["tid"] == 7 else None
        if key:
            sums[key][0] -= event["dur"]
        else:
            sums[kinds[name] + " "][0] -= event["dur"]
    for key, (left, count) in sums.items():
        assert abs(left) <= count, f"{key}: {left} us are left of {count} spans"


def check(run, folder):
    start, end, iterations = run.window()
    compute = [0.0, 0]
    for rank in range(run.ranks):
        rows = run.of_rank(rank)
        kernels = check_rank(run, os.path.join(folder, f"rank-{rank}.json"), rank)
        check_bytes(rows, kernels)
        check_seconds(rows, kernels)
        check_steps(rows, os.path.join(folder, f"rank-{rank}.json"))
        check_received([row for row in run.rows if row["peer"] == rank and row["rank"] != rank], kernels)
        spans = [(event["ts"], event["ts"] + event["dur"]) for event in kernels if kind_of(event["name"]) == "compute"]
        compute[0] += merged(spans, us(start), us(end))
        compute[1] += len(spans)
    expected = 1e6 * sum(run.result["breakdown_s"][key] for key in COMPUTE)
    found = compute[0] / iterations / run.ranks
    assert abs(found - expected) <= compute[1] / run.ranks + 1e-9 * expected + 2, f"HTA computes {found} us, not {expected}"
