#!/usr/bin/env python3
"""Opens dtsim.html in Chromium and in Firefox, from a file, and uses it; its numbers are those of the program.

usage: one.py DTSIM PAGE [PICTURES]
"""
import glob
import json
import os
import subprocess
import sys
import time

from browser import Browser, CONTRAST
from firefox import Firefox

dtsim, page = (os.path.realpath(path) for path in sys.argv[1:3])
pictures = sys.argv[3] if len(sys.argv) > 3 else None
TOURS = sorted(os.path.basename(path)[:-5] for path in glob.glob("scenarios/tour/*.yaml"))
BUSY = 3                         # times as long as the bars say: other programs run, too
SETTLED = ("const one = document.getElementById('status'); "
           "return one && one.textContent !== 'computing' && one.className !== 'busy'")


def settled(browser):
    time.sleep(0.1)
    browser.wait(SETTLED, 40)


def put(browser, name, text):
    browser.run("""
        const one = document.getElementById(arguments[0]);
        Object.getOwnPropertyDescriptor(Object.getPrototypeOf(one), 'value').set.call(one, arguments[1]);
        one.dispatchEvent(new Event(one.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}));""", name, text)


def value(browser, key="iteration_time_s"):
    return browser.run("const one = document.querySelector(`#result data#${arguments[0]}`); return one && Number(one.value)", key)


def native(path, *sets):
    done = subprocess.run([dtsim, "run", path, "--engine", "fast", "--json", *(word for one in sets for word in ("--set", one))],
                          capture_output=True, check=False, encoding="utf-8")
    return json.loads(done.stdout) if done.returncode == 0 else None


def drop_only(browser, name, text):
    """A file falls on the page."""
    browser.run("""
        const data = new DataTransfer();
        data.items.add(new File([arguments[1]], arguments[0]));
        document.querySelector('.app').dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: data}));""", name, text)


def drop(browser, name, text):
    drop_only(browser, name, text)
    settled(browser)


def tours(browser, name):
    """Every scenario of the tour, twice, by its field; how long the second time took."""
    took = []
    for again in (False, True):
        for tour in TOURS:
            put(browser, "tour", tour)
            settled(browser)
            if again:
                took.append(float(browser.run("return document.documentElement.dataset.took")))
                continue
            told, shown = native(f"scenarios/tour/{tour}.yaml"), value(browser)
            assert (told is None) == (shown is None), (tour, shown)
            assert told is None or abs(told["iteration_time_s"] - shown) <= 1e-9 * shown, (tour, told["iteration_time_s"], shown)
    took.sort()
    print(f"{name}: {len(took)} scenarios of the tour as the program has them; a field takes {took[0]:.0f} to {took[-1]:.0f} ms, "
          f"{sum(one <= 50 for one in took)} within 50 ms; {int(browser.run('return document.documentElement.dataset.memory')) >> 20} MiB of memory")


def check(browser, name):
    start = time.monotonic()
    browser.open(page)
    browser.wait("return document.documentElement.dataset.answered", 30)
    first = browser.run("return performance.now()")
    print(f"{name}: first numbers after {first:.0f} ms ({time.monotonic() - start:.2f} s with the browser's part)")
    assert first < 1500 * BUSY, first
    settled(browser)
    assert abs(value(browser) - native("scenarios/tour/06-3d.yaml")["iteration_time_s"]) < 1e-9
    tours(browser, name)

    # A field, an impossible combination with its rule and a change that makes it possible.
    put(browser, "tour", "06-3d")
    settled(browser)
    put(browser, "field-batch-micro", "2")
    settled(browser)
    assert abs(value(browser) - native("scenarios/tour/06-3d.yaml", "batch.micro=2")["iteration_time_s"]) < 1e-9
    put(browser, "field-strategy-pipeline", "5")
    settled(browser)
    said = browser.run("return document.querySelector('.refused').textContent")
    assert "by the rule" in said, said
    browser.wait("return document.getElementById('offer-0')", 30)
    browser.run("document.getElementById('offer-0').click()")
    settled(browser)
    assert value(browser) > 0

    # An own scenario; its text is no markup; it is there again after a reload.
    with open("scenarios/first.yaml", encoding="utf-8") as file:
        text = file.read()
    drop(browser, "<b>mine</b>.yaml", f"name: '<img src=x onerror=alert(1)>'\n{text}")
    assert abs(value(browser) - native("scenarios/first.yaml")["iteration_time_s"]) < 1e-9
    assert browser.run("return document.querySelectorAll('#page img, #page b b').length") == 0
    browser.run("location.reload()")
    time.sleep(0.5)
    browser.wait("return document.documentElement.dataset.answered", 30)
    settled(browser)
    assert abs(value(browser) - native("scenarios/first.yaml")["iteration_time_s"]) < 1e-9
    drop(browser, "train.sh", "#!/bin/bash\ntorchrun train.py\n")
    said = browser.run("return document.getElementById('status').textContent")
    assert "needs bash" in said and "dtsim import" in said, said

    # A worker that dies costs its question alone, and its last words are told.
    browser.run("""const real = Worker.prototype.postMessage;
        Worker.prototype.postMessage = function (message) { Worker.prototype.postMessage = real; real.call(this, {id: message.id, lost: 5}); };""")
    put(browser, "tour", "05-tensor")
    browser.wait("return document.querySelector('.refused')?.textContent.includes('iterable')", 20)
    assert "dtsim run ./scenarios/tour/05-tensor.yaml" in browser.run("return document.querySelector('.refused').textContent")
    put(browser, "tour", "04-1f1b")
    settled(browser)
    assert value(browser) > 0

    # Stopped: another question ends one that takes long, and the page goes on.
    long = ("model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\nbatch: {micro_batches: 8000}\n"
            "strategy: {schedule: zb-h1, pipeline: 32}\nsimulation: {jitter: 0.05, repeat: 400}\n")
    large = long.replace("8000", "60000").replace("400", "1")
    before = time.monotonic()
    drop_only(browser, "long.yaml", long)
    time.sleep(1.5)
    put(browser, "tour", "04-1f1b")
    settled(browser)
    assert value(browser) > 0 and time.monotonic() - before < 10, time.monotonic() - before
    drop_only(browser, "long.yaml", long)
    time.sleep(2.5)
    assert browser.run("return getComputedStyle(document.getElementById('stop')).visibility") == "visible"
    browser.run("document.getElementById('stop').click()")
    browser.wait("return document.querySelector('.refused')?.textContent.includes('Cancelled')", 5)
    # Too long or too large: a sentence, and the command line.
    for file, text, limit in (("large", large, "the page's limit 512 MiB"), ("long", long, "the page's limit 20 s")):
        before = time.monotonic()
        drop(browser, f"{file}.yaml", text)
        said = browser.run("return document.querySelector('.refused')?.textContent")
        assert said and limit in said and f"dtsim run {file}.yaml --engine fast" in said, said
        print(f"{name}: {said} (after {time.monotonic() - before:.0f} s)")
    put(browser, "tour", "04-1f1b")
    settled(browser)
    assert value(browser) > 0


def lesson(browser, name):
    """Five steps, each a state of the page, whose numbers are those of closed forms."""
    browser.run("location.hash = '#lesson=1'")
    for number, (bubble, memory) in enumerate((("20.0 %", "12 GiB"), ("20.0 %", "4 GiB"), ("11.1 %", "5.5 GiB"), ("7.7 %", "4 GiB"),
                                               ("4.0 %", "4 GiB")), 1):
        browser.wait(f"return document.getElementById('lesson')?.textContent.includes('{number} of 5')", 20)
        settled(browser)
        browser.wait("return !document.getElementById('lesson').textContent.includes('being computed')", 20)      # both variants
        said = browser.run("return document.getElementById('lesson').textContent")
        assert bubble in said and memory in said and said.count(". ") >= 1, said
        assert f"lesson={number}&" in browser.run("return location.hash"), browser.run("return location.hash")
        browser.run("document.getElementById('lesson-next').click()")
    put(browser, "field-strategy-pipeline", "2")
    settled(browser)
    assert "You have changed values" in browser.run("return document.getElementById('lesson').textContent")
    browser.run("document.getElementById('lesson-end').click()")
    browser.wait("return !document.getElementById('lesson') && !location.hash.includes('lesson')")
    print(f"{name}: the lesson's five steps")


NAMELESS = """
    const name = one => one.getAttribute('aria-label') || [...(one.labels ?? [])].map(label => label.textContent).join('') || one.title
        || one.getAttribute('aria-labelledby') || one.textContent.trim();
    return [...document.querySelectorAll('button, select, input:not([hidden]), textarea, summary, canvas:not([aria-hidden]), [role=img], [role=button]')]
        .filter(one => one.getClientRects().length && !name(one)).map(one => one.outerHTML.slice(0, 160))"""
UNREACHED = """
    return [...document.querySelectorAll('button:not(:disabled), select, input:not([hidden]), summary, #timeline')]
        .filter(one => one.getClientRects().length && one.tabIndex < 0).map(one => one.outerHTML.slice(0, 160))"""
NARROW = """
    const context = document.createElement('canvas').getContext('2d');
    return [...document.querySelectorAll('.field:not(.long) select, .theme select')].filter(one => { context.font = getComputedStyle(one).font;
        return context.measureText(one.selectedOptions[0]?.textContent ?? '').width + 26 > one.clientWidth; }).map(one => one.id)"""


def without(name, sentence):
    """A browser without something says so."""
    browser = Browser()
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": f"delete globalThis.{name}"})
    browser.driver.get(f"file://{page}")
    browser.wait(f"return document.body.textContent.includes({json.dumps(sentence)})", 20)
    browser.close()


def looks(browser):
    """Nothing is wider than the page at any width, and the pictures for people."""
    for width, dark in ((400, False), (400, True), (900, False), (1280, True), (1280, False), (640, False)):
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": False})
        browser.dark(dark)
        browser.wait("return document.getElementById('timeline')?.dataset.ms", 20)
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width, (width, wide)
        for script in (NAMELESS, UNREACHED, NARROW):
            assert not browser.run(script), (width, browser.run(script))
        contrast = browser.run(CONTRAST)
        assert contrast[0] >= 4.5, contrast
        if pictures:
            browser.driver.save_screenshot(f"{pictures}/{width}-{'dark' if dark else 'light'}.png")


chromium = Browser()
check(chromium, "Chromium")
lesson(chromium, "Chromium")
chromium.check_quiet(page)
put(chromium, "tour", "06-3d")
settled(chromium)
looks(chromium)                  # 640 pixels are 1,280 at 200 %
chromium.close()
without("DecompressionStream", "has no DecompressionStream")
without("WebAssembly", "has no WebAssembly")
firefox = Firefox()
check(firefox, "Firefox")
lesson(firefox, "Firefox")
firefox.close()
