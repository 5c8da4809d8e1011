#!/usr/bin/env python3
"""Runs scenarios, writes their traces, reads these by tables of fields alone, and compares them with the run.

usage: traces.py DTSIM SCENARIO[,PATH=VALUE]...
"""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback

import chakra
import kineto
import perfetto
from protobuf import varint
from run_tables import Run

HERE = os.path.dirname(os.path.abspath(__file__))
REFUSED = "readers of Chakra do not have"


def call(*command, code=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stderr.decode()}"
    return done.stdout.decode(errors="replace"), done.stderr.decode()


def decode(proto, message, data):
    """protoc, with the .proto next to this file: it prints fields that this does not have by number."""
    try:
        done = subprocess.run(["protoc", f"--proto_path={HERE}", f"--decode={message}", proto], input=data,
                              stdout=subprocess.PIPE, check=True)
    except FileNotFoundError:
        return False
    for line in done.stdout.decode().splitlines():
        assert not line.strip()[:1].isdigit(), f"{proto} has not {line}"
    return True


def wrapped(data):
    """A Chakra file, whose messages have no field, as one message."""
    at, count, whole = 0, 0, b""
    while at < len(data):
        length, begin = varint(data, at)
        end = begin + length
        whole += (b"\x0a" if count == 0 else b"\x12") + data[at:end]
        at, count = end, count + 1
    return whole


def places(dtsim, path, sets):
    """The first GPU of each rank of all replicas and its node, as `show --groups` has them: gpu, node, stage, replica, tensor."""
    lines = call(dtsim, "show", path, "--groups", *sets)[0].splitlines()
    rows = [list(map(int, line.split("\t"))) for line in lines if re.fullmatch(r"\d+(\t\d+){4}", line)]
    stages = 1 + max(row[2] for row in rows)
    return {replica * stages + stage: (gpu, node) for gpu, node, stage, replica, tensor in reversed(rows) if tensor == 0}


def check_some(dtsim, folder, run):
    """Of some ranks: NPUs from 0 on, and no group with others; what these exchange is a time."""
    some = max(2, run.ranks * run.replicas // 2)
    told, _ = call(dtsim, "trace", folder, "--format", "chakra", "--ranks", f"0-{some - 1}", "-o", os.path.join(folder, "some"))
    assert "--network-configuration=" in told, told
    with open(os.path.join(folder, "some", "dtsim.json")) as file:
        assert all(npu < some for npus in json.load(file).values() for npu in npus)
    assert sum(name.endswith(".et") for name in os.listdir(os.path.join(folder, "some"))) == some
    assert all(os.path.exists(os.path.join(folder, "some", f"dtsim.{npu}.et")) for npu in range(some))


def check(dtsim, scenario, folder):
    path, *sets = scenario.split(",")
    sets = [word for value in sets for word in ("--set", value)]
    call(dtsim, "run", path, "--engine", "fast", "-o", folder, *sets)
    run, trace = Run(folder), os.path.join(folder, "trace")
    call(dtsim, "trace", folder)
    perfetto.check(run, os.path.join(trace, "trace.perfetto-trace"))
    if run.replicas > 1:
        call(dtsim, "trace", folder, "--all", "-o", os.path.join(folder, "all"))
        perfetto.check(run, os.path.join(folder, "all"), every=True)
    call(dtsim, "trace", folder, "--format", "kineto")
    kineto.check(run, trace)
    if any(row["op"] == "reduce" and row["peer"] < 0 and row["bytes"] > 0 for row in run.rows):
        assert REFUSED in call(dtsim, "trace", folder, "--format", "chakra", code=4)[1]
        return run
    call(dtsim, "trace", folder, "--format", "chakra")
    chakra.check(run, trace, places(dtsim, path, sets))
    if run.ranks * run.replicas > 2:
        check_some(dtsim, folder, run)
    return run


def check_decoded(folder):
    with open(os.path.join(folder, "trace", "trace.perfetto-trace"), "rb") as file:
        there = decode("perfetto.proto", "Trace", file.read())
    with open(os.path.join(folder, "trace", "dtsim.0.et"), "rb") as file:
        decode("chakra.proto", "File", wrapped(file.read()))
    return there


def check_again(dtsim, folder):
    """The same bytes on each call, and gzip holds them."""
    path = os.path.join(folder, "trace", "trace.perfetto-trace")
    with open(path, "rb") as file:
        before = file.read()
    call(dtsim, "trace", folder)
    call(dtsim, "trace", folder, "--gzip")
    call(dtsim, "trace", folder, "--format", "kineto", "--merge", "--gzip")
    with gzip.open(os.path.join(folder, "trace", "trace.json.gz")) as packed:
        assert len(json.load(packed)["traceEvents"]) > 1
    with open(path, "rb") as file, gzip.open(path + ".gz") as packed:
        assert file.read() == before == packed.read()


def main(dtsim, scenarios):
    decoded = False
    for scenario in scenarios:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(dtsim, scenario, folder)
                if not decoded:
                    check_again(dtsim, folder)
                    decoded = True
                    if not check_decoded(folder):
                        print("protoc is not there (Debian's package protobuf-compiler): its part is skipped")
                    told = call(dtsim, "import", "kineto", os.path.join(folder, "trace", "rank-0.json"), code=4)[1]
                    assert "a trace of 'dtsim trace'" in told, told
            except AssertionError:
                traceback.print_exc()
                sys.exit(f"{scenario}: its trace is not its run")
        print(f"{scenario}: as its run")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
