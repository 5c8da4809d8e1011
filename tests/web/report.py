#!/usr/bin/env python3
"""Opens reports in a browser, uses them as a person does, and compares their numbers with the run.

usage: report.py DTSIM
Exit code 77: there is no browser or no Selenium.
"""
import json
import os
import subprocess
import sys
import tempfile

from browser import Browser, CONTRAST, Keys     # first: it says where there is no browser
from selenium.webdriver.common.action_chains import ActionChains

from hostile import NAMES

COMPUTES = ("forward", "backward", "backward_input", "backward_weight", "recompute", "update", "pack")


def table(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in lines[1:] if line]


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr.decode()}"
    return done.stdout.decode()


def values(browser, css):
    """The exact numbers of data elements, by id or by data-key."""
    return {item[0]: float(item[1]) for item in browser.run(
        "return [...document.querySelectorAll(arguments[0])].map(one => [one.id || one.dataset.key, one.value])", css)}


def check_numbers(browser, folder):
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    shown = values(browser, "#summary data")
    assert len(shown) >= 6 and "iteration_time_s" in shown, shown
    for key, value in shown.items():
        assert value == result[key], (key, value, result[key])
    shown = values(browser, "#breakdown-table data")
    assert shown == {key: value for key, value in result["breakdown_s"].items() if value > 0}, shown
    links = browser.run("return [...document.querySelectorAll('#link-classes tbody tr')].map(row => "
                        "[row.cells[0].textContent, ...[...row.querySelectorAll('data')].map(one => one.value)])")
    assert links == [[key, repr_js(value["payload_bytes"]), repr_js(value["wire_bytes"])]
                     for key, value in result["link_bytes"].items()], links
    text = browser.run("return document.getElementById('scenario-text').textContent")
    assert json.loads(text) == result["scenario"]
    return result


def check_explanation(browser, dtsim, folder):
    explanation = json.loads(call(dtsim, "explain", folder, "--json"))
    shown = values(browser, "#critical-table data")
    assert shown == {key: value for key, value in explanation["critical_path"]["kinds_s"].items() if value > 0}, shown
    assert abs(sum(shown.values()) - explanation["iteration_time_s"]) < 1e-9 * explanation["iteration_time_s"]
    shown = values(browser, "#what-if-table data")
    assert shown == {one["what_if"]: one["iteration_time_s"] for one in explanation["what_if"]} and shown, shown


def repr_js(value):
    return str(int(value)) if value == int(value) else repr(value)


def check_spans(browser, folder):
    """The spans that the page has read: their times to 1 ns, and sums by kind of lane as in spans.tsv."""
    rows = table(os.path.join(folder, "spans.tsv"))
    shown = browser.run("""
        const {spans, head} = dtsimReport, all = [];
        for (const row of spans.rows) for (let i = row.first; i < row.first + row.count; i++)
            all.push([row.rank, spans.start[i], spans.end[i], head.kinds[spans.kind[i]], head.names[spans.name[i]],
                      spans.communication[i], head.ops[spans.op[i]], head.sizes[spans.size[i]], spans.peer[i] - 1]);
        return all;""")
    assert len(shown) == len(rows), (len(shown), len(rows))
    key = lambda span: (span[0], span[1], span[2], span[3], span[4])
    expected = sorted(([int(row["rank"]), int(float(row["t0"]) * 1e9 + 0.5), int(float(row["t1"]) * 1e9 + 0.5), row["kind"],
                        row["name"], int(float(row["communication"]) * 1e9 + 0.5), row["op"], float(row["bytes"] or 0),
                        int(row["peer"] or -1)] for row in rows), key=key)
    for found, wanted in zip(sorted(shown, key=key), expected):
        assert found[0] == wanted[0] and found[3:5] == wanted[3:5] and found[6:] == wanted[6:], (found, wanted)
        assert all(abs(found[i] - wanted[i]) <= 1 for i in (1, 2, 5)), (found, wanted)
    return rows


def check_waits(browser, rows):
    """For which spans each span waits: the column 'after'; and the other way round."""
    shown = browser.run("""
        const {spans, head} = dtsimReport, all = [], key = [];
        for (const row of spans.rows) for (let i = row.first; i < row.first + row.count; i++) key[i] = `${row.rank} ${head.kinds[spans.kind[i]]} ${head.names[spans.name[i]]}`;
        let wrong = 0, parts = 0;
        for (let i = 0; i < spans.count; i++) for (const {i: other, part} of spans.awaits(i).before) {
            all.push(`${key[i]} after ${key[other]}`);
            parts += part !== undefined;
            wrong += i % 50 === 0 && !spans.awaits(other).behind.some(one => one.i === i);
            wrong += (part === undefined ? spans.end[other] : spans.start[other] + part) > spans.start[i] + 1;
        }
        return [all, parts, wrong];""")
    key = {row["id"]: f"{row['rank']} {row['kind']} {row['name']}" for row in rows}
    expected = [(key[row["id"]], after.split("+")) for row in rows for after in row["after"].split(",") if after]
    assert sorted(shown[0]) == sorted(f"{own} after {key[other[0]]}" for own, other in expected) and len(expected) > 100
    assert shown[1] == sum(len(other) == 2 for _, other in expected) and shown[2] == 0, shown[1:]


# Each level of each row, made anew of the spans: how many differ, and how many blocks there are.
LEVELS = """
    const {spans} = dtsimReport;
    let blocks = 0, wrong = [];
    for (const row of spans.rows) for (const level of row.levels) {
        const width = level.width, held = new Map();
        for (let i = row.first; i < row.first + row.count; i++)
            for (let at = spans.start[i]; at < spans.end[i];) {
                const block = Math.floor(at / width), until = Math.min((block + 1) * width, spans.end[i]);
                if (!held.has(block)) held.set(block, new Map());
                held.get(block).set(spans.kind[i], (held.get(block).get(spans.kind[i]) ?? 0) + until - at);
                at = until;
            }
        for (let run = 0; run < level.count; run++)
            for (let block = level.from[run] / width; block < level.to[run] / width; block++) {
                const kinds = [...held.get(block) ?? []].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
                const sum = kinds.reduce((all, one) => all + one[1], 0);
                if (kinds[0]?.[0] !== level.kind[run] || 1 + Math.floor(sum * 254 / width) !== level.share[run]) wrong.push([row.rank, width, block]);
                held.delete(block);
                blocks++;
            }
        wrong.push(...held.keys());
    }
    return [blocks, wrong.slice(0, 5)];"""


def check_levels(browser, dtsim, folder):
    page = os.path.join(folder, "report.html")
    call(dtsim, "run", "scenarios/tour/04-1f1b.yaml", "--set", "batch.micro_batches=1500", "--engine", "fast", "-o", folder)
    call(dtsim, "report", folder, "--no-what-if")
    browser.open(page)
    blocks, wrong = browser.run(LEVELS)
    assert blocks > 1000 and not wrong, (blocks, wrong)
    browser.wait("return document.getElementById('timeline').dataset.ms")
    read = browser.run("return Number(document.getElementById('timeline').dataset.blocks)")
    assert 0 < read <= 4000, read
    browser.check_quiet(page)


def window(browser):
    return browser.run("return document.getElementById('window').textContent")


def changed(browser, act):
    """Acts, and waits until the window of the timeline is another."""
    before = window(browser)
    act()
    return browser.wait(f"const now = document.getElementById('window').textContent; return now !== {json.dumps(before)} && now")


def check_use(browser, rows):
    canvas = browser.find("#timeline")
    canvas.click()
    browser.run("arguments[0].focus()", canvas)
    whole = window(browser)
    changed(browser, lambda: canvas.send_keys("+"))
    changed(browser, lambda: canvas.send_keys("+"))
    changed(browser, lambda: canvas.send_keys(Keys.ARROW_RIGHT))
    changed(browser, lambda: canvas.send_keys("-"))
    assert changed(browser, lambda: canvas.send_keys(Keys.HOME)) == whole
    changed(browser, lambda: browser.find(".tools button").click())
    canvas.send_keys(Keys.HOME, Keys.ESCAPE)

    # search: '/' goes to the field from anywhere; Enter shows the span
    browser.find("body").send_keys("/")
    field = browser.run("return document.activeElement")
    assert field.get_attribute("type") == "search"
    wanted = next(row for row in rows if row["kind"] == "backward" and row["rank"] == "0")
    field.send_keys(wanted["name"], Keys.ENTER)
    browser.wait(f"return document.querySelector('#chosen h3')?.textContent === {json.dumps(wanted['name'])}")
    facts = dict(browser.run("return [...document.querySelectorAll('#chosen .facts div')].map(one => "
                             "[one.children[0].textContent, one.children[1].textContent])"))
    assert facts["kind"] == "backward" and facts["rank"] == "0", facts
    assert abs(seconds_of(facts["takes"]) - (float(wanted["t1"]) - float(wanted["t0"]))) < 1e-9 + 1e-9 * float(wanted["t1"]), facts
    count = sum(wanted["name"].lower() in row["name"].lower() or wanted["name"].lower() in row["kind"].lower() for row in rows)
    assert browser.find("#found").text.startswith(f"{count:,} spans"), (browser.find("#found").text, count)

    # a click, and the neighbour by the keyboard
    canvas.send_keys(Keys.ESCAPE)
    browser.wait("return !document.querySelector('#chosen h3')")
    browser.run("document.querySelector('.timeline').scrollTop = 0")
    canvas.send_keys(Keys.HOME)
    browser.wait(f"return document.getElementById('window').textContent === {json.dumps(whole)}")
    x, y, name = browser.run("""
        const {line, spans, head} = dtsimReport, row = spans.rows[0], i = row.first + 1;
        line.draw(0);
        return [line.xOf((spans.start[i] + spans.end[i]) / 2), 26 + 10, head.names[spans.name[i]]];""")
    box = canvas.rect
    ActionChains(browser.driver).move_to_element_with_offset(canvas, x - box["width"] / 2, y - box["height"] / 2).click().perform()
    browser.wait(f"return document.querySelector('#chosen h3')?.textContent === {json.dumps(name)}")
    assert browser.find(".tip b").text == name
    neighbour = browser.run("const {spans, head} = dtsimReport; return head.names[spans.name[spans.rows[0].first + 2]]")
    canvas.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT)
    browser.wait(f"return document.querySelector('#chosen h3')?.textContent === {json.dumps(neighbour)}")

    # what it waits for, as arrows and as buttons
    browser.wait("return dtsimReport.line.awaits.before.length === document.querySelectorAll('#before button').length && dtsimReport.line.awaits.before.length > 0")
    other = browser.run("return dtsimReport.line.awaits.before[0].i")
    browser.run("document.querySelector('#before button').focus()")
    browser.run("return document.activeElement").send_keys(Keys.ENTER)
    browser.wait(f"return dtsimReport.line.selected === {other}")

    # lanes
    high = browser.run("return document.querySelector('.timeline > div').offsetHeight")
    for box in browser.all(".lanes input")[1:]:
        box.click()
    low = browser.wait(f"const now = document.querySelector('.timeline > div').offsetHeight; return now < {high} && now")
    ranks = len({row["rank"] for row in rows})
    assert low == 26 + 20 * ranks, (low, ranks)
    assert browser.run("return Number(document.getElementById('timeline').dataset.blocks)") <= 4000


def seconds_of(text):
    number, unit = text.split(" ")
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def check_themes(browser):
    back = "return getComputedStyle(document.body).backgroundColor"
    browser.dark(False)
    light = browser.run(back)
    browser.dark(True)
    dark = browser.wait(f"const now = getComputedStyle(document.body).backgroundColor; return now !== '{light}' && now")
    for choice, (theme, expected) in enumerate((("light", light), ("dark", dark))):
        browser.all("#theme option")[1 + choice].click()
        browser.wait(f"return getComputedStyle(document.body).backgroundColor === '{expected}'")
        worst = browser.run(CONTRAST)
        assert worst[0] >= 4.5, (theme, worst)
    printed = browser.run("""
        const closed = () => document.querySelectorAll('details:not([open])').length, theme = () => document.documentElement.dataset.theme;
        const before = [theme(), closed()], canvas = document.getElementById('timeline');
        dispatchEvent(new Event('beforeprint'));
        const now = [theme(), closed(), canvas ? canvas.getContext('2d').getImageData(3, 3, 1, 1).data[0] : 255];
        dispatchEvent(new Event('afterprint'));
        return [before, now, [theme(), closed()]];""")
    assert printed[0][0] == "dark" and printed[1] == ["light", 0, 255] and printed[2] == printed[0], printed
    browser.dark(False)


def make_hostile(dtsim, folder):
    """A run whose names are of others: an older build's, which has no digests."""
    call(dtsim, "run", "scenarios/tour/04-1f1b.yaml", "--engine", "fast", "-o", folder)
    path = os.path.join(folder, "spans.tsv")
    lines = open(path, "rb").read().split(b"\n")
    for i, name in enumerate(NAMES):
        cells = lines[1 + i % (len(lines) - 2)].split(b"\t")
        cells[3] = name
        if i % 20 == 0:
            cells[2] = name[:200]
        lines[1 + i % (len(lines) - 2)] = b"\t".join(cells)
    with open(path, "wb") as file:
        file.write(b"\n".join(lines))
    with open(os.path.join(folder, "links.tsv"), "ab") as file:
        for name in NAMES:
            file.write(b"\t".join([name, name[:100], b"1", b"2", b"0.5", b"1"]) + b"\n")
    path = os.path.join(folder, "result.json")
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    del result["build"], result["tables_xxh128"]
    for key in ("setup", "model", "gpu", "version", "run_id", "engine"):
        result[key] = "<img src=x onerror='window.hit=1'></script><script>window.hit=1</script>${window.hit=1}"
    result["scenario"]["name"] = NAMES[0].decode()
    result["notes"] = [name.decode(errors="replace") for name in NAMES]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file)


def check_sizes(browser, dtsim, root):
    """No span, one, and those of 4,096 ranks."""
    for count in (0, 1):
        folder = os.path.join(root, f"few-{count}")
        page, path = os.path.join(folder, "report.html"), os.path.join(folder, "result.json")
        call(dtsim, "run", "scenarios/tour/04-1f1b.yaml", "--engine", "fast", "-o", folder)
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        del result["build"], result["tables_xxh128"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file)
        for name in ("spans", "memory", "utilization", "links"):
            with open(os.path.join(folder, f"{name}.tsv"), "r+", encoding="utf-8") as file:
                lines = file.readlines()[:1 + count]
                file.seek(0)
                file.truncate()
                file.writelines(lines)
        call(dtsim, "report", folder, "--no-what-if")
        browser.open(page)
        assert browser.run("return dtsimReport.spans.count") == count
        browser.find("#timeline").send_keys("+", Keys.HOME, Keys.ARROW_RIGHT)
        browser.check_quiet(page)
    folder = os.path.join(root, "many")
    page = os.path.join(folder, "report.html")
    call(dtsim, "run", "scenarios/tour/06-3d.yaml", "--engine", "fast", "-o", folder, "--no-advice", *(word for value in (
        "cluster.nodes=512", "strategy.tensor=1", "strategy.data=512", "strategy.pipeline=8", "batch.global=1024", "simulation.fold=off")
        for word in ("--set", value)))
    call(dtsim, "report", folder, "--no-what-if")
    browser.open(page)
    assert browser.run("return new Set(dtsimReport.spans.rows.map(row => row.rank)).size") == 4096
    browser.wait("return document.getElementById('timeline').dataset.ms")
    browser.check_quiet(page)


def main(dtsim):
    dtsim = os.path.abspath(dtsim)
    browser = Browser()
    with tempfile.TemporaryDirectory(prefix="dtsim-web-") as root:
        try:
            for scenario in ("25-offloading", "18-varuna-opportunistic", "06-3d"):
                folder = os.path.join(root, scenario)
                page = os.path.join(folder, "report.html")
                call(dtsim, "run", f"scenarios/tour/{scenario}.yaml", "--engine", "fast", "-o", folder)
                explained = scenario == "18-varuna-opportunistic"
                call(dtsim, "report", folder, *([] if explained else ["--no-what-if"]))
                browser.open(page)
                if explained:
                    check_explanation(browser, dtsim, folder)
                check_numbers(browser, folder)
                rows = check_spans(browser, folder)
                check_waits(browser, rows)
                if scenario == "25-offloading":
                    check_use(browser, rows)
                    check_themes(browser)
                browser.check_quiet(page)
            check_levels(browser, dtsim, os.path.join(root, "levels"))
            check_sizes(browser, dtsim, root)
            folder = os.path.join(root, "hostile")
            page = os.path.join(folder, "report.html")
            make_hostile(dtsim, folder)
            call(dtsim, "report", folder, "--no-what-if")
            browser.open(page)
            assert browser.run("return window.hit === undefined && document.querySelectorAll('main script, main img, main a').length === 0")
            field = browser.find("#link-filter")
            field.send_keys("<")
            browser.check_quiet(page)
        finally:
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
