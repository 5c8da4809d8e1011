"""Checks a Chakra trace against the tables of its run: ids, dependencies, pairs, groups and durations."""
import json
import os

from protobuf import one, read, varint

SCHEMA = {
    "Metadata": {1: ("version", "text"), 2: ("attr", "Attribute")},
    "Node": {1: ("id", "int"), 2: ("name", "text"), 3: ("type", "int"), 4: ("ctrl_deps", "int"), 5: ("data_deps", "int"),
             6: ("start_time_micros", "int"), 7: ("duration_micros", "int"), 10: ("attr", "Attribute")},
    "Attribute": {1: ("name", "text"), 7: ("int32", "int"), 9: ("int64", "int"), 11: ("uint32", "int"), 13: ("uint64", "int"),
                  27: ("bool", "int"), 29: ("string", "text")},
}
TYPES = {"comm_type": "int64", "comm_size": "int64", "comm_src": "int32", "comm_dst": "int32", "comm_tag": "int32",
         "pg_name": "string", "tensor_size": "uint64", "is_cpu_op": "bool"}
LOAD, STORE, COMP, SEND, RECEIVE, COLLECTIVE = 2, 3, 4, 5, 6, 7


def messages(data):
    at, parts = 0, []
    while at < len(data):
        length, at = varint(data, at)
        parts.append(data[at:at + length])
        at += length
    return parts


def attributes(node):
    values = {}
    for attribute in node.get("attr", []):
        name = one(attribute, "name")
        values[name] = one(attribute, TYPES[name])
        assert values[name] is not None and len(attribute) == 2, f"{name} is no {TYPES[name]}"
    return values


def check_rank(parts, rank, groups, sends, receives, collectives):
    read(parts[0], SCHEMA, "Metadata")["version"]
    known, sums = set(), 0
    for part in parts[1:]:
        node = read(part, SCHEMA, "Node")
        values, kind, number = attributes(node), one(node, "type"), one(node, "id")
        assert number not in known and known.issuperset(node.get("data_deps", [])), "a dependency that dangles"
        assert "ctrl_deps" not in node
        known.add(number)
        assert kind in (LOAD, STORE, COMP, SEND, RECEIVE, COLLECTIVE)
        assert kind == COMP or values["is_cpu_op"] == 0
        if kind in (SEND, RECEIVE):
            pair = values["comm_src"], values["comm_dst"], values["comm_tag"]
            assert pair[kind == RECEIVE] == rank, "the sender must be comm_src and the receiver comm_dst"
            ends = sends if kind == SEND else receives
            assert values["comm_size"] > 0, "ASTRA-sim ends with an error where 0 bytes are sent"
            assert pair not in ends, "a tag is given twice"
            ends[pair] = values["comm_size"]
        if kind == COLLECTIVE:
            assert values["comm_type"] in (0, 2, 5, 6, 7)
            assert rank in groups[values["pg_name"]], "a group without its rank"
            assert values["comm_size"] > 0, "a collective of 0 bytes"
            collectives.setdefault(values["pg_name"], {}).setdefault(rank, []).append((values["comm_type"], values["comm_size"]))
        sums += 0 if kind == RECEIVE else one(node, "duration_micros", 0)
    return sums


def check_bytes(run, groups, collectives, npu):
    """An all-gather's size is what one rank gives, the others' what a rank has: so ASTRA-sim's rings take them."""
    for op, kind in (("all_gather", 2), ("all_reduce", 0), ("reduce_scatter", 7)):
        found, count, wanted = 0, 0, 0
        for name, ranks in collectives.items():
            for was, size in ranks.get(npu, []):
                found += (was == kind) * size * (len(groups[name]) if kind == 2 else 1)
                count += (was == kind) * len(groups[name])
        for row in run.of_rank(0):
            exchanges = row["op"] == op and row["peer"] < 0 and (row["lane"] != "compute" or row["communication"] > 0)
            wanted += row["bytes"] if exchanges and len(run.groups[int(row["group"])]) > 1 else 0
        assert abs(found - wanted) <= count, f"{op}: {found} bytes, not {wanted}"


def rate(text):
    """B/s"""
    number, unit = text.split()
    return float(number) * {"B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}[unit]


def check_network(lines, cluster, across):
    """The last bandwidth is a GPU's share of its node's NICs, through its own link to the host; other networks are told of."""
    network, gpus = cluster["network"], cluster["gpus_per_node"]
    nics = network["nics"]
    each = rate(network["bandwidth"])
    wanted = each * nics / gpus if nics < gpus else each if nics == gpus else min(nics // gpus * each, rate(cluster["host"]["bandwidth"]))
    found = [line for line in lines if line.startswith("bandwidth")][0].split("#")[0].strip("bandwidth:[] ").split(",")[-1]
    assert not across or abs(1e9 * float(found) / (wanted * network.get("efficiency", 1)) - 1) < 1e-6, f"{found}, not {wanted}"
    kind = network["topology"]["kind"]
    assert (kind != "nonblocking") == any(line.startswith(f"# not said here: the {kind}") for line in lines), lines


def check_places(groups, order, folder, node_of, cluster):
    """NPUs are numbered in the order of GPUs; each node has its own; the network has as many of both."""
    npu = {rank: i for i, rank in enumerate(order)}
    nodes = {}
    for rank in order:
        nodes.setdefault(node_of[rank], []).append(npu[rank])
    assert sorted(nodes.values()) == sorted(npus for name, npus in groups.items() if " node " in name), groups
    if len(order) < 2:
        return
    with open(os.path.join(folder, "network.yml")) as file:
        lines = file.read().splitlines()
    network = dict(line.split("#")[0].strip().split(": ") for line in lines if not line.startswith("#"))
    if all(key in cluster for key in ("network", "gpus_per_node", "host")) and "nics" in cluster["network"]:
        check_network(lines, cluster, len(nodes) > 1)
    counts = [int(word) for word in network["npus_count"].strip("[] ").split(",")]
    each = {len(npus) for npus in nodes.values()}
    if len(each) == 1:
        assert counts == [n for n in (each.pop(), len(nodes)) if n > 1], f"{counts} NPUs"
    else:
        assert counts == [len(order)], f"{counts} NPUs"
    assert all(len(network[key].split(",")) == len(counts) for key in ("topology", "bandwidth", "latency"))


def check(run, folder, place_of):
    """place_of: (rank, replicas included) -> (its first GPU, the node of that)."""
    with open(os.path.join(folder, "dtsim.json")) as file:
        groups = json.load(file)
    sends, receives, collectives = {}, {}, {}
    order = sorted(range(run.ranks * run.replicas), key=lambda rank: place_of[rank][0])
    if run.result["scenario"]["cluster"].get("platform") != "ideal":        # whose links take no time
        check_places(groups, order, folder, {rank: place_of[rank][1] for rank in order}, run.result["scenario"]["cluster"])
    for npu, rank in enumerate(order):
        with open(os.path.join(folder, f"dtsim.{npu}.et"), "rb") as file:
            parts = messages(file.read())
        sums = check_rank(parts, npu, groups, sends, receives, collectives)
        rows = run.of_rank(rank)
        seconds = sum(row["t1"] - row["t0"] for row in rows)
        lanes = len({row["lane"] for row in rows}) + 2
        assert abs(sums - 1e6 * seconds) <= lanes + 1e-3 * len(rows), f"rank {rank}: {sums} us, not {1e6 * seconds}"
    assert sends == receives, "a message with one end"
    assert len(sends) == run.replicas * sum(row["peer"] >= 0 for row in run.rows)
    check_bytes(run, groups, collectives, order.index(0))
    for name, ranks in collectives.items():
        assert sorted(ranks) == sorted(set(groups[name])), f"group {name}: some members do not take part"
        assert len(set(map(tuple, ranks.values()))) == 1, f"group {name}: members differ"
