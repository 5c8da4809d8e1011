#!/usr/bin/env python3
"""Compares the answers of WebAssembly, under node, with those of the native program, byte for byte.

usage: same.py WEB_ANSWERS DTSIM WEB_BUILD SOURCES [RANDOM]
Every scenario of the tour (numbers, advice, timeline), of scenarios/methods and scenarios/training, first.yaml and RANDOM random
scenarios (60); then the numbers of some with 'dtsim run --engine fast --json'.
"""
import glob
import json
import os
import subprocess
import sys

answers, dtsim, build, sources = (os.path.realpath(path) for path in sys.argv[1:5])
count = sys.argv[5] if len(sys.argv) > 5 else "60"
os.chdir(sources)                # DTSIM_DATA "." gives paths as the page has them
surroundings = {**os.environ, "DTSIM_DATA": "."}
tours = sorted(os.path.basename(path)[:-5] for path in glob.glob("scenarios/tour/*.yaml"))
texts = ["scenarios/first.yaml", *sorted(glob.glob("scenarios/methods/*.yaml")), *sorted(glob.glob("scenarios/training/*.yaml"))]
questions = ["known"]
for what in ("numbers", "advice", "timeline"):
    questions += [json.dumps({"tour": tour, "set": {}, "what": what}) for tour in tours]
for path in texts:
    with open(path, encoding="utf-8") as file:
        questions.append(json.dumps({"text": file.read(), "what": "numbers"}))
questions += [
    json.dumps({"text": "model: {preset: nothing}\n", "what": "numbers"}), json.dumps({"tour": "../first"}), "{", "[]",
    json.dumps({"text": "a: [1, 2\n\x1b[31m<script>", "what": "numbers"}), json.dumps({"tour": "04-1f1b", "set": {"strategy.pipeline": 3}}),
    json.dumps({"tour": "06-3d", "set": {"cluster.platform": "/etc/passwd"}}), json.dumps({"tour": "06-3d", "set": {"memory.recompute": "none"}}),
]
questions += subprocess.run([answers, count, "202648"], capture_output=True, check=True, encoding="utf-8").stdout.splitlines()
asked = "".join(f"{question}\n" for question in questions)


def lines(command):
    done = subprocess.run(command, input=asked, capture_output=True, check=False, encoding="utf-8", env=surroundings)
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr[-2000:]}")
    return done.stdout.splitlines(), done.stderr


native, _ = lines([answers])
web, words = lines(["node", "web/ask.mjs", build, sources])
assert len(native) == len(questions) == len(web), (len(native), len(questions), len(web))
differ = [i for i, both in enumerate(zip(native, web)) if both[0] != both[1]]
for i in differ[:10]:
    at = next((k for k, pair in enumerate(zip(native[i], web[i])) if pair[0] != pair[1]), 0)
    print(f"{questions[i][:300]}\n  native ...{native[i][max(at - 60, 0):at + 60]}\n  web    ...{web[i][max(at - 60, 0):at + 60]}")
codes = [json.loads(line).get("exit_code") for line in web[1:]]
print(f"{len(questions)} answers, {len(questions) - len(differ)} are the same bytes; {codes.count(0)} with numbers, the others refused; {words.strip()}")
for path in texts[:3] + [f"scenarios/tour/{tour}.yaml" for tour in tours[:8]]:
    run = subprocess.run([dtsim, "run", path, "--engine", "fast", "--json"], capture_output=True, check=False, encoding="utf-8", env=surroundings)
    answer = json.loads(web[questions.index(json.dumps({"text": open(path, encoding="utf-8").read(), "what": "numbers"}))] if path in texts
                        else web[1 + tours.index(os.path.basename(path)[:-5])])
    if run.returncode != answer["exit_code"]:
        sys.exit(f"{path}: exit code {answer['exit_code']}, and dtsim run has {run.returncode}")
    told = json.loads(run.stdout) if not run.returncode else {}
    for key in ("iteration_time_s", "peak_memory_bytes", "mfu", "bubble_fraction"):
        if told and told[key] is not None and abs(told[key] - answer["numbers"][key]) > 1e-9 * told[key]:
            sys.exit(f"{path}: {key} {answer['numbers'][key]}, and dtsim run has {told[key]}")
sys.exit(bool(differ))
