#!/usr/bin/env python3
"""Opens the reports of a sweep, a plan, a training and validated tables in a browser: table, heat map, the scenario of a point,
how a search ended, lost time, errors; then names of others.

usage: store.py DTSIM
Exit code 77: there is no browser or no Selenium.
"""
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile

from browser import Browser     # first: it says where there is no browser
from hostile import NAMES
from report import call, check_themes, repr_js, values

SHARD = "shard-1-of-1.jsonl"


def rows_of(folder):
    with open(os.path.join(folder, SHARD), encoding="utf-8") as file:
        return [json.loads(line) for line in file][1:]


def check_table(browser, rows):
    browser.wait("return document.querySelectorAll('#rows .tabulator-row').length > 0")
    assert browser.run("return dtsimReport.store.count") == len(rows)
    well = [row for row in rows if row["status"] == "ok"]
    best = max(row["metrics"]["tokens_per_s"] for row in well)
    expected = [json.loads(line).get("rank") or 0 for line in call(DTSIM, "results", FOLDER, "--json").splitlines()]
    assert sorted(browser.run("return dtsimReport.head.ranks")) == sorted(expected), expected
    shown = values(browser, "#chosen data")
    assert shown["chosen-tokens_per_s"] == best, (shown, best)

    # a filter of numbers, and the order by a click on a title
    limit = sorted(row["metrics"]["tokens_per_s"] for row in well)[len(well) // 2]
    field = browser.find("#rows .tabulator-col[tabulator-field=k4] input")
    field.send_keys(f">= {limit}")
    browser.wait(f"return document.querySelectorAll('#rows .tabulator-row').length === {sum(row['metrics']['tokens_per_s'] >= limit for row in well)}")
    field.clear()
    field.send_keys(" ")
    browser.wait(f"return document.querySelectorAll('#rows .tabulator-row').length === {len(rows)}")
    browser.run("document.querySelectorAll('#rows .tabulator-row')[3].click()")
    chosen = browser.run("return document.querySelectorAll('#rows .tabulator-row')[3].querySelector('[tabulator-field=k4]').textContent")
    browser.wait(f"return [...document.querySelectorAll('#chosen dd')].some(one => one.textContent === {json.dumps(chosen)})")


def check_heat(browser, rows):
    cells = browser.run("""return [...document.querySelectorAll('.heat tbody tr')].flatMap(line => [...line.querySelectorAll('button')].map((one, i) =>
        [line.querySelector('th').textContent, one.closest('table').querySelectorAll('thead th')[one.closest('td').cellIndex].textContent,
         Number(one.dataset.row), one.className.includes('none')]))""")
    by_point = {(str(row["point"]["strategy.pipeline"]), str(row["point"]["strategy.tensor"])): row for row in rows}
    assert len(cells) == len(by_point)
    for down, across, place, none in cells:
        row = by_point[down, across]
        assert none == (row["status"] != "ok"), row
        value = browser.run("return dtsimReport.store.values('iteration_time_s')[arguments[0]]", place)
        assert none or value == row["metrics"]["iteration_time_s"], (value, row)
    browser.run("document.querySelector('.heat .none').click()")
    bad = next(row for row in rows if row["status"] == "infeasible")
    assert browser.wait("return document.getElementById('reason')?.textContent") == bad["reason"]


def check_scenario(browser, root, rows):
    """The scenario of a point, run, takes as long as its row says."""
    browser.run("document.querySelectorAll('.heat button:not(.none)')[2].click()")
    time = browser.wait("return document.getElementById('chosen-iteration_time_s')?.value")
    path = os.path.join(root, "copied.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(browser.run("return document.getElementById('scenario-text').textContent"))
    result = json.loads(call(DTSIM, "run", path, "--engine", "fast", "--json"))
    assert math.isclose(result["iteration_time_s"], float(time), rel_tol=1e-12), (result["iteration_time_s"], time)
    assert any(row["status"] == "ok" and row["metrics"]["iteration_time_s"] == float(time) for row in rows)


def check_hostile(browser, root):
    folder = os.path.join(root, "hostile")
    os.mkdir(folder)
    with open(os.path.join(FOLDER, SHARD), encoding="utf-8") as file:
        header, row, *_ = [json.loads(line) for line in file]
    header["name"] = NAMES[0].decode()
    with open(os.path.join(folder, SHARD), "w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        for i, name in enumerate(NAMES):
            text = name.decode(errors="replace")
            row = dict(row, id=hashlib.md5(b"%d" % i).hexdigest(), status="infeasible", rule=text[:200], reason=text, gpu=text,
                       point={"name": text, "strategy.tensor": i, NAMES[i % 12].decode()[:60]: text[:60]})
            file.write(json.dumps(row) + "\n")
    page = os.path.join(folder, "report.html")
    call(DTSIM, "report", folder)
    browser.open(page)
    browser.wait("return document.querySelectorAll('#rows .tabulator-row').length > 0")
    assert browser.run("return dtsimReport.store.count") == len(NAMES)
    check_harmless(browser, page)


def check_validated(browser, root):
    """Errors by table: those that 'validate' itself sums up."""
    path, page = os.path.join(root, "validate.json"), os.path.join(root, "report.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(call(DTSIM, "validate", "scenarios/paper/bert-large-dgx-1.yaml", "--json"))
    call(DTSIM, "report", path)
    browser.open(page)
    with open(path, encoding="utf-8") as file:
        tables = json.load(file)
    shown = values(browser, "#by-table data")
    for table in tables:
        mean = next(iter(table["summary"].values()))["mean"]
        assert math.isclose(shown[table["name"]], mean, rel_tol=1e-12), (table["name"], shown, mean)
    browser.run("document.querySelector('#by-table button').click()")
    browser.wait(f"return document.querySelectorAll('#rows tbody tr').length === {sum(1 for row in tables[0]['rows'])}")
    for table in tables:
        table["source"] = table["name"] = NAMES[0].decode()
        for row, name in zip(table["rows"], NAMES):
            row["id"] = row["software"] = name.decode(errors="replace")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tables, file)
    call(DTSIM, "report", path)
    browser.open(page)
    browser.run("document.querySelector('#by-table button').click()")
    browser.wait("return document.querySelector('#rows')")
    check_harmless(browser, page)


def check_plan(browser, root):
    """The order is that of 'plan', counts add up, and the scenario of the second row takes as long as its row says."""
    folder = os.path.join(root, "plan")
    page = os.path.join(folder, "report.html")
    found = json.loads(call(DTSIM, "plan", "scenarios/first.yaml", "--set", "strategy.tensor=2,4,32", "--set", "strategy.pipeline=1,2,4",
                            "--set", "memory.recompute=none,sparse", "--verify", "1", "-o", folder, "--json"))
    call(DTSIM, "report", folder)
    browser.open(page)
    shown = browser.run("return [...document.querySelectorAll('#ranked tbody tr')].map(row => row.querySelector('data').value)")
    assert shown == [repr_js(row["metrics"]["iteration_time_s"]) for row in found["rows"]] and len(shown) > 2, shown
    assert browser.run("return document.getElementById('proven').textContent") == found["status"]
    assert browser.run("return [...document.querySelectorAll('#conclusions li')].map(one => one.textContent)") == found["conclusions"]
    counts = values(browser, "#ended data")
    assert counts == {key: value for key, value in found["counts"].items() if value and key != "considered"}, (counts, found["counts"])
    assert sum(counts.values()) == found["counts"]["considered"]
    refused = values(browser, "#refusals data")
    assert refused == {one["rule"]: one["points"] for one in found["refusals"]} and sum(refused.values()) == found["counts"]["refused"] > 0, refused
    rules = values(browser, "#rules data")
    assert sum(rules.values()) == found["counts"]["by_rule"] > 0, rules
    browser.run("document.querySelectorAll('#ranked button')[1].click()")
    second = found["rows"][1]
    browser.wait(f"return document.getElementById('chosen-iteration_time_s').value === '{repr_js(second['metrics']['iteration_time_s'])}'")
    path = os.path.join(root, "planned.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(browser.run("return document.getElementById('scenario-text').textContent"))
    result = json.loads(call(DTSIM, "run", path, "--engine", "fast", "--json"))
    assert math.isclose(result["iteration_time_s"], second["metrics"]["iteration_time_s"], rel_tol=1e-12)
    check_themes(browser)
    browser.check_quiet(page)
    check_unfeasible(browser, root)


def check_unfeasible(browser, root):
    """A plan of which nothing was replayed, with words of others."""
    folder = os.path.join(root, "unfeasible")
    page, path = os.path.join(folder, "report.html"), os.path.join(folder, "plan.json")
    done = subprocess.run([DTSIM, "plan", "scenarios/first.yaml", "--set", "cluster.nodes=1", "--set", "strategy.tensor=16,32", "-o", folder],
                          capture_output=True, check=False)
    assert done.returncode == 5, done
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    words = [name.decode(errors="replace") for name in NAMES]
    plan["conclusions"] = words
    plan["refusals"] = [{"rule": name, "points": 1, "example": name} for name in words]
    plan["axes"] = plan["axis_reasons"] = {name: name for name in words}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(plan, file)
    call(DTSIM, "report", folder)
    browser.open(page)
    assert browser.run("return document.getElementById('proven').textContent") == "none is feasible"
    check_harmless(browser, page)


def check_training(browser, root):
    folder = os.path.join(root, "training")
    page, path = os.path.join(folder, "report.html"), os.path.join(folder, "result.json")
    call(DTSIM, "train", "scenarios/training/bloom-176b.yaml", "--trials", "100", "-o", folder)
    call(DTSIM, "report", folder)
    browser.open(page)
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    for key, value in values(browser, "#summary data").items():
        assert value == result[key], (key, value, result[key])
    wall = result["days"] * 86400
    lost = values(browser, "#losses data")
    assert lost == {key: share * wall for key, share in result["time_shares"].items() if share and key != "steps"} and len(lost) > 3, lost
    with open(os.path.join(folder, "progress.tsv"), encoding="utf-8") as file:
        column = file.readline().rstrip("\n").split("\t").index("p50_s")
        expected = [float(line.split("\t")[column]) for line in file]
    assert browser.run("return [...document.querySelectorAll('#progress-table data')].map(one => Number(one.value))") == expected
    assert json.loads(browser.run("return document.getElementById('scenario-text').textContent")) == result["scenario"]
    check_themes(browser)
    browser.check_quiet(page)
    del result["build"], result["tables_xxh128"]
    result["notes"] = [name.decode(errors="replace") for name in NAMES]
    result["time_shares"].update({name.decode(errors="replace"): 0.001 for name in NAMES})
    result["scenario"]["name"] = result["scenario"]["train"]["reported"]["source"] = NAMES[0].decode()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file)
    with open(os.path.join(folder, "events.tsv"), "ab") as file:
        for name in NAMES:
            file.write(b"\t".join([b"1", name, b"1", name, b"1"]).replace(b"\n", b" ") + b"\n")
    call(DTSIM, "report", folder)
    browser.open(page)
    check_harmless(browser, page)


def check_harmless(browser, page):
    assert browser.run("return window.hit === undefined && ({}).polluted === undefined && "
                       "document.querySelectorAll('main script, main img, main a, main iframe').length === 0")
    browser.check_quiet(page)


def main():
    browser = Browser()
    try:
        call(DTSIM, "sweep", "scenarios/first.yaml", "--set", "strategy.tensor=1,2,4,8", "--set", "strategy.pipeline=1,2,4",
             "--engine", "fast", "-o", FOLDER)
        rows, page = rows_of(FOLDER), os.path.join(FOLDER, "report.html")
        call(DTSIM, "report", FOLDER)
        browser.open(page)
        check_table(browser, rows)
        check_heat(browser, rows)
        check_scenario(browser, ROOT, rows)
        browser.check_quiet(page)
        check_themes(browser)
        check_plan(browser, ROOT)
        check_training(browser, ROOT)
        check_validated(browser, ROOT)
        check_hostile(browser, ROOT)
    finally:
        browser.close()


if __name__ == "__main__":
    DTSIM = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="dtsim-web-") as ROOT:
        FOLDER = os.path.join(ROOT, "rows")
        main()
