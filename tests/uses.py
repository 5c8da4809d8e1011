#!/usr/bin/env python3
"""Who uses whom, read off the symbols of the objects: uses.py BUILD [--mend]

- A file of sim/ includes, itself, a header of each room whose functions or data it uses. --mend adds the lines that lack.
- A file uses its own room and the rooms before it in the list of tests/support/sources.h; the lists of strategies, charts and
  commands are the exception.
- Files do not use each other in a circle. Only the registries do: list.h names each schedule, which calls functions of its
  registry.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REGISTRIES = {"sim/job/schedule/schedule.c", "sim/job/model/parts.c", "sim/machine/collective/collective.c", "sim/faces/cli/cmd.c", "plots/plot.c"}


def objects(build):
    """The file of each object, and the program's symbols that it defines and needs."""
    paths = {}
    for folder, _, names in os.walk(build):
        for name in names:
            found = re.search(r"[.]dir/((?:sim|strategies|plots)/.*[.]cc?)[.]o$", os.path.join(folder, name))
            # An object may be older than the end of its source.
            if found and "/tests/" not in folder and os.path.exists(f"{ROOT}/{found.group(1)}"):
                paths.setdefault(found.group(1), os.path.join(folder, name))
    defined, needed, source_of = {}, collections.defaultdict(set), {path: source for source, path in paths.items()}
    symbols = subprocess.run(["nm", "-A", *source_of], capture_output=True, text=True, check=True).stdout
    for path, line in re.findall(r"^(.*?[.]o):(.*)$", symbols, re.M):
        words = line.split()
        if len(words) == 3 and words[1] in "TDRBVW":
            defined.setdefault(words[2], source_of[path])
        elif len(words) == 2 and words[0] == "U":
            needed[source_of[path]].add(words[1])
    uses = {source: collections.defaultdict(set) for source in paths}
    for source, symbols in needed.items():
        for symbol in symbols & defined.keys():
            if defined[symbol] != source:
                uses[source][defined[symbol]].add(symbol)
    return uses


def room(path):
    return path.split("/")[2] if path.startswith("sim/") else path.split("/")[0]


def rooms():
    with open(f"{ROOT}/tests/support/sources.h", encoding="utf-8") as file:
        return re.findall(r'"\w+/(\w+)"', re.search(r"rooms\[\] = \{(.*?)\};", file.read(), re.S).group(1))


def declared():
    """The headers, ROOM/NAME, that declare each name."""
    headers = collections.defaultdict(list)
    for folder, _, names in os.walk(f"{ROOT}/sim"):
        for name in sorted(names):
            if not name.endswith(".h"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = re.sub(r"/\*.*?\*/|\"[^\"\n]*\"", " ", file.read(), flags=re.S)
            for word in set(re.findall(r"\b(\w+)(?=[(\[;])", text)):
                headers[word].append("/".join(path.split("/")[-2:]))
    return headers


def lacking(uses, source, headers):
    """The headers that a file uses and does not include, one for each room that it includes nothing of, or more."""
    with open(f"{ROOT}/{source}", encoding="utf-8") as file:
        included = set(re.findall(r'^#include "([^"]+)"', file.read(), re.M))
    rooms = {path.split("/")[0] for path in included}
    add = set()
    for other, symbols in uses.items():
        if room(other) == room(source) or room(other) in rooms or not other.startswith("sim/"):
            continue
        for symbol in symbols:
            own = [path for path in headers[symbol] if path.split("/")[0] == room(other)]
            best = sorted(own, key=lambda path: ("_internal" in path, path.split(".")[0] != "/".join(other.split("/")[2:]).split(".")[0], path))
            if best:
                add.add(best[0])
    return add


def mend(source, add):
    path = f"{ROOT}/{source}"
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    marks = [i for i, line in enumerate(lines) if line.startswith("#include ")]
    # The block of this program's headers, after the system's; or a new one after all includes.
    block = []
    for i in reversed(marks):
        if not lines[i].startswith('#include "') or (block and block[0] != i + 1):
            break
        block.insert(0, i)
    if block and block[0] == marks[0]:
        block = []
    own = {lines[i] for i in block} | {f'#include "{header}"' for header in add}
    if block:
        lines[block[0]:block[-1] + 1] = sorted(own)
    else:
        lines[marks[-1] + 1:marks[-1] + 1] = [""] + sorted(own)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def circles(uses):
    """The sets of files that use each other in a circle (Tarjan 1972), but for what a registry uses."""
    sys.setrecursionlimit(10000)
    index, low, stack, found = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for other in () if at in REGISTRIES else uses.get(at, ()):
            if other not in index:
                visit(other)
                low[at] = min(low[at], low[other])
            elif other in stack:
                low[at] = min(low[at], index[other])
        if low[at] == index[at]:
            begin = stack.index(at)
            if len(stack) - begin > 1:
                found.append(sorted(stack[begin:]))
            del stack[begin:]

    for at in sorted(uses):
        if at not in index:
            visit(at)
    return found


def main():
    build, fix = sys.argv[1], "--mend" in sys.argv
    uses, headers, order, wrong = objects(build), declared(), rooms(), []
    for source, others in sorted(uses.items()):
        if not source.startswith("sim/"):
            continue
        add = lacking(others, source, headers)
        if add and fix:
            mend(source, add)
        elif add:
            wrong.append(f"{source} uses {', '.join(sorted(add))} and does not include it")
        for other, symbols in others.items():
            if room(other) in order and order.index(room(other)) > order.index(room(source)):
                wrong.append(f"{source} uses {', '.join(sorted(symbols))} of {other}, a room behind its own")
    wrong += [f"{', '.join(circle)} use each other in a circle" for circle in circles(uses)]
    print(f"{len(uses)} files, {sum(map(len, uses.values()))} uses")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
