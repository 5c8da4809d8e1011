#!/usr/bin/env python3
"""Every key that a command prints with --json is explained in `dtsim help result`: said.py DTSIM

The part of the help is the one of the command; a key "a.b" is explained by its own line, or by "a.*" above it."""
import json
import os
import re
import subprocess
import sys
import tempfile

DTSIM = os.path.realpath(sys.argv[1])
PAPER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../scenarios/paper/gpipe.yaml")
SCENARIO = """model: {preset: gpt2-124m}
cluster: {platform: dgx-a100, nodes: 1}
batch: {global: 16, micro: 1}
strategy: {schedule: 1f1b, pipeline: 2, tensor: 2}
memory: {precision: mixed-bf16}
price: 2 $/h
"""
TRAIN = """train:
  steps: 1000
  failures: {per_node_day: 8}
  checkpoint: {every: 60 s, block: 1 s}
  restart: {detect: 10 s, replace: 1 min, init: 5 s, load: 1 s}
"""
SWEEP = "base: scenario.yaml\nsweep:\n  grid: {batch.micro: [1, 2]}\n  where: ['batch.micro < 8']\n"


def parts():
    """The lines of the help by part: {title: {key}}."""
    found, title, above = {}, None, ""
    for line in subprocess.run([DTSIM, "help", "result"], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("  "):
            found[title].add(re.match(r"  (\S+(?:: \S+)?)", line).group(1))
        elif line and not above:
            title = line
            found.setdefault(title, set())
        above = line
    return found


def keys(value, path=""):
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}{key}"
            if key not in ("scenario", "base", "source"):
                yield from keys(item, f"{path}{key}.")
    elif isinstance(value, list):
        for item in value:
            yield from keys(item, f"{path[:-1]}[]." if path else "")


def explained(key, lines):
    """Whether some line stands for the key: '*' stands for a name, which may be a path; at the end for all that follows."""
    for line in lines:
        if line.endswith(".*") and (key == line[:-2].removesuffix("[]") or key.startswith(line[:-1])):
            return True
        whole = re.escape(line).replace(r"\*", r"[^\[\]]+?")
        if re.fullmatch(whole, key) or ("*" in line and re.fullmatch(whole[:whole.index("+?") + 2], key)):
            return True
    return False


def check(command, titles, lines_of):
    done = subprocess.run([DTSIM, *command], capture_output=True, text=True)
    assert done.stdout, f"{command}: {done.stderr}"
    lines = {line for title in titles for full in lines_of if full.startswith(title) for line in lines_of[full]}
    assert lines, titles
    values = [json.loads(line) for line in done.stdout.splitlines()] if done.stdout.count("\n{") else [json.loads(done.stdout)]
    if command[0] == "list":                 # lists by name
        values = [row for value in values for rows in value.values() for row in rows]
    seen = {key for value in values for key in keys(value)}
    lost = sorted(key for key in seen if not explained(key, lines) and not explained(key.removeprefix("rows[]."), lines) and
                  not explained(key.removeprefix("rows[].metrics."), lines))
    assert not lost, f"{' '.join(command)}: 'dtsim help result' does not explain {', '.join(lost)}"
    assert seen
    print(f"{' '.join(command)}: {len(seen)} keys")


def main():
    lines = parts()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in ("scenario.yaml", SCENARIO), ("train.yaml", SCENARIO + TRAIN), ("sweep.yaml", SWEEP):
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        for command, *titles in (
                (["run", "scenario.yaml", "--engine", "fast", "--json"], "result.json (dtsim run"),
                (["train", "train.yaml", "--trials", "5", "--json"], "result.json of dtsim train"),
                (["explain", "scenario.yaml", "--engine", "fast", "--json"], "dtsim explain"),
                (["compare", "scenario.yaml", "--set", "batch.micro=1,2", "--json"], "dtsim compare --json"),
                (["compare", "scenario.yaml", "--methods", "--json"], "dtsim compare --methods"),
                (["plan", "scenario.yaml", "--top", "1", "-o", "plan", "--json"], "plan.json", "its rows: which", "what was asked",
                 "how it ended", "and where", "and its", "result.json (dtsim run"),
                (["plan", "scenario.yaml", "--method", "all", "--json"], "dtsim plan --method"),
                (["show", "scenario.yaml", "--memory", "--json"], "dtsim show --memory"),
                (["show", "sweep.yaml", "--memory", "--json"], "the same of a sweep"),
                (["show", "scenario.yaml", "--kernels", "--json"], "dtsim show --kernels"),
                (["show", "scenario.yaml", "--alike", "--json"], "dtsim show --alike"),
                (["check", "scenario.yaml", "--json"], "dtsim check --json"),
                (["check", "sweep.yaml", "--json"], "the same of a sweep"),
                (["check", "scenario.yaml", "--values", "batch.micro", "--json"], "dtsim check --values"),
                (["collective", "dgx-a100", "--op", "all_reduce", "--ranks", "8", "--bytes", "1MB", "--json"], "dtsim collective --json"),
                (["validate", PAPER, "--json"], "dtsim validate"),
                (["list", "gpus", "--json"], "dtsim list")):
            check(command, titles, lines)


main()
