"""The tables of a run, as traces are compared with them."""
import json
import os

COMPUTE = ("forward", "backward", "backward_input", "backward_weight", "recompute", "update", "pack")


def table(path):
    with open(path) as file:
        lines = file.read().splitlines()
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"))) for line in lines[1:]]


class Run:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "result.json")) as file:
            self.result = json.load(file)
        self.groups = [[int(rank) for rank in row["ranks"].split(",")] for row in table(os.path.join(folder, "groups.tsv"))]
        self.rows = table(os.path.join(folder, "spans.tsv"))
        for row in self.rows:
            for key in ("rank", "id", "replicas"):
                row[key] = int(row[key])
            for key in ("t0", "t1", "communication"):
                row[key] = float(row[key])
            row["bytes"] = float(row["bytes"] or 0)
            row["peer"] = int(row["peer"] or -1)
        self.ranks = 1 + max(row["rank"] for row in self.rows)
        self.replicas = self.rows[0]["replicas"]

    def of_rank(self, rank):
        return [row for row in self.rows if row["rank"] == rank % self.ranks]

    def window(self):
        """From, to in s, and the iterations in it."""
        start, end = self.result["window_s"]
        return start, end, round((end - start) / self.result["iteration_time_s"])
