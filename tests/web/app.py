#!/usr/bin/env python3
"""Opens 'dtsim app' in a browser and uses it as a person does; other browsers and pages are kept out.

usage: app.py DTSIM
Exit code 77: there is no browser or no Selenium.
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from browser import Browser, CONTRAST, Keys

MACHINE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
dtsim = sys.argv[1]


def start(*options):
    process = subprocess.Popen([dtsim, "app", "--no-open", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
    return process, process.stdout.readline().strip()


def settled(browser):
    """Waits until nothing is asked; the state is in the address then."""
    browser.wait("return document.getElementById('status') && document.getElementById('status').textContent !== 'computing'"
                 " && document.getElementById('status').className !== 'busy'", 30)


def value(browser, key="iteration_time_s"):
    return browser.run("const one = document.querySelector(`#result data#${arguments[0]}, #result data[data-key='a.${arguments[0]}']`); "
                       "return one && Number(one.value)", key)


def answers(browser):
    return browser.run("return Number(document.documentElement.dataset.answered ?? 0)")


def put(browser, name, text):
    """Gives a field a value as a person does, and waits for the answer."""
    browser.run("""
        const one = document.getElementById(arguments[0]);
        Object.getOwnPropertyDescriptor(Object.getPrototypeOf(one), 'value').set.call(one, arguments[1]);
        one.dispatchEvent(new Event(one.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}));""", name, text)
    settled(browser)


def goes_to(browser, fragment):
    """Another state in the address, as by a link."""
    before = browser.run("const read = document.documentElement.dataset.read ?? 0; if (location.hash === arguments[0]) return -1; "
                         "location.hash = arguments[0]; return Number(read)", fragment)
    browser.wait(f"return Number(document.documentElement.dataset.read ?? 0) > {before}", 30)
    settled(browser)


def opens_at(browser, base, fragment):
    """The page opened anew."""
    browser.driver.get("about:blank")
    browser.driver.get(base + fragment)
    browser.wait("return document.documentElement.dataset.read && document.getElementById('status')", 30)
    settled(browser)


def run_json(path, *sets):
    words = [word for one in sets for word in ("--set", one)]
    done = subprocess.run([dtsim, "run", path, "--engine", "fast", "--json", *words], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def opens(browser, address):
    """The token goes away; the page shows the scenario, as 'dtsim run' has it."""
    browser.driver.get(address)
    browser.wait("return document.querySelector('#result data#iteration_time_s')", 30)
    settled(browser)
    url = browser.driver.current_url
    assert "token" not in url and "#tour=06-3d" in url, url
    assert browser.run("return document.cookie") == ""
    result = run_json("scenarios/tour/06-3d.yaml")
    for key in ("iteration_time_s", "tokens_per_s_per_gpu", "mfu", "peak_memory_bytes", "memory_limit_bytes"):
        assert abs(value(browser, key) - result[key]) <= 1e-9 * result[key], (key, value(browser, key), result[key])
    shown = dict(browser.run("return [...document.querySelectorAll('#breakdown-table data')].map(one => [one.dataset.key, Number(one.value)])"))
    for key, seconds in result["breakdown_s"].items():
        assert abs(shown.get(key, 0) - seconds) <= 1e-9 * result["iteration_time_s"], (key, shown)
    assert "engine fast" in browser.find(".engine").text
    browser.wait("return document.getElementById('timeline')?.dataset.ms", 30)
    spans = browser.run("return dtsimReport.spans.count")
    assert spans > 100, spans
    return url.split("#")[0]


def every_field(browser, base):
    """Each field has what the schema says, changes the question, is in the address, and can be taken back."""
    goes_to(browser, "#tour=06-3d")
    schema = json.loads(subprocess.run([dtsim, "schema"], stdout=subprocess.PIPE, check=True).stdout)["properties"]
    names = browser.run("return [...document.querySelectorAll('.field select, .field input')].map(one => one.id)")
    assert len(names) >= 21, names
    usual = {"field-model-preset": "gpt2-1.5b", "field-model-sequence": "1024", "field-cluster-platform": "dgx-h100", "field-cluster-nodes": "8",
             "field-batch-global": "64", "field-batch-micro": "2", "field-strategy-tensor": "2", "field-strategy-pipeline": "2",
             "field-strategy-data": "2", "field-strategy-context": "2", "field-strategy-expert": "1", "field-strategy-chunks": "3",
             "field-strategy-schedule": "gpipe", "field-strategy-zero": "1", "field-strategy-sequence_parallel": "true",
             "field-memory-precision": "mixed-bf16", "field-memory-optimizer": "sgd", "field-memory-recompute": "full",
             "field-memory-offload": "optimizer", "field-software-like": "megatron-core"}
    assert set(names) == set(usual) | {"tour"}, set(names) ^ (set(usual) | {"tour"})
    for name, text in usual.items():
        tag = browser.run("return document.getElementById(arguments[0]).tagName", name)
        if tag == "SELECT":
            choices = browser.run("return [...document.getElementById(arguments[0]).options].map(one => one.value)", name)
            assert text in choices and len(choices) >= 3, (name, choices)
        put(browser, name, text)
        path = name.replace("field-", "").replace("-", ".")
        expected = {"model.preset": "model=", "cluster.platform": "cluster="}.get(path, f"{path}=")
        browser.wait(f"return location.hash.includes({json.dumps(expected)})")
        there = browser.run("return !!document.querySelector('#result data') || !!document.querySelector('.refused')")
        assert there, name
        back = browser.run("return document.getElementById(arguments[0]).parentElement.querySelector('button') !== null", name)
        assert back, name
        browser.run("document.getElementById(arguments[0]).parentElement.querySelector('button').click()", name)
        settled(browser)
        browser.wait("return location.hash === '#tour=06-3d'")
    platforms = browser.run("return [...document.getElementById('field-cluster-platform').options].map(one => one.value)")
    listed = subprocess.run([dtsim, "list", "platforms"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout.splitlines()
    assert set(platforms) - {""} == {line.split()[0] for line in listed}, platforms
    schedules = browser.run("return [...document.getElementById('field-strategy-schedule').options].map(one => one.value)")
    assert schedules[1:] == schema["strategy"]["properties"]["schedule"]["anyOf"][1]["enum"], schedules
    put(browser, "field-strategy-tensor", "2")
    put(browser, "field-strategy-data", "4")
    result = run_json("scenarios/tour/06-3d.yaml", "strategy.tensor=2", "strategy.data=4")
    assert abs(value(browser) - result["iteration_time_s"]) <= 1e-9 * result["iteration_time_s"], value(browser)
    for tour in browser.run("return [...document.getElementById('tour').options].map(one => one.value)")[:6]:
        put(browser, "tour", tour)
        result = run_json(f"scenarios/tour/{tour}.yaml")
        assert abs(value(browser) - result["iteration_time_s"]) <= 1e-9 * result["iteration_time_s"], (tour, value(browser))


def wrong_input(browser, base):
    """A wrong value is reported at its field; an impossible combination with its rule and a change that helps."""
    goes_to(browser, "#tour=06-3d")
    put(browser, "field-strategy-tensor", "3")
    text = browser.wait("return document.querySelector('.refused')?.textContent")
    assert "degrees" in text and "does not divide" in text, text
    assert "does not divide" in browser.find("#field-strategy-tensor-wrong").text
    assert browser.find("#field-strategy-tensor").get_attribute("aria-invalid") == "true"
    assert browser.find("#field-strategy-pipeline").get_attribute("placeholder") == "4"
    offer = browser.wait("return document.getElementById('offer-0')", 20)
    offer.click()
    browser.wait("return !document.querySelector('.refused') && document.querySelector('#result data')", 20)
    assert browser.run("return location.hash") != "#tour=06-3d"
    for path, text in (("cluster.nodes", "-1"), ("strategy.zero", "9"), ("batch.global", "1e99"), ("strategy.tensor", "99999999999999999999")):
        goes_to(browser, f"#tour=06-3d&{path}={text}")
        assert browser.find(f"#field-{path.replace('.', '-')}-wrong").text, path
    for fragment in ("#tour=no-such", "#tour=..%2F06-3d", "#text=%%%", "#text=AAAA", "#tour=06-3d&model=%7B%22preset%22%3A%22%2Fetc%2Fpasswd%22%7D",
                     "#tour=06-3d&__proto__=1", "#tour=06-3d&constructor=%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E", "#b.b.b=1", "#" + "a=1&" * 500):
        goes_to(browser, fragment)
        assert browser.run("return window.hit") is None and browser.all(".columns"), fragment
    goes_to(browser, "#tour=06-3d&cluster.gpu.memory=10+GiB")
    offer = browser.wait("return document.getElementById('offer-0')", 30)
    assert "too much" in browser.find("#memory").text and not browser.all("#result data"), browser.find("#memory").text
    offer.click()
    browser.wait("return !document.querySelector('.refused') && document.querySelector('#result data')", 20)


def files(browser, base):
    """A scenario and a config.json that are dropped; paths in them are refused."""
    goes_to(browser, "#tour=06-3d")
    with tempfile.TemporaryDirectory() as folder:
        def give(name, text):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            before = browser.run("return location.hash")
            browser.find("#file").send_keys(path)
            browser.wait(f"return location.hash !== {json.dumps(before)}", 20)
            settled(browser)
        config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008,
                  "vocab_size": 32000, "max_position_embeddings": 2048, "torch_dtype": "bfloat16"}
        give("config.json", json.dumps(config))
        assert "model=" in browser.wait("return location.hash.includes('hf_config') && location.hash")
        assert value(browser) > 0 and "mixed-bf16" in browser.find("#result").text
        own = "model: {preset: gpt2-1.5b}\ncluster: {platform: dgx-a100, nodes: 1}\nbatch: {global: 8}\nstrategy: {zero: 1}\n"
        give("own.yaml", own)
        first = value(browser)
        result = run_json(os.path.join(folder, "own.yaml"))
        assert abs(first - result["iteration_time_s"]) <= 1e-9 * first, (first, result["iteration_time_s"])
        fragment = browser.wait("return location.hash.includes('text=') && location.hash")
        browser.run("document.getElementById('take').open = true")
        assert browser.find("#yaml").text.split() == own.split(), browser.find("#yaml").text
        assert "own.yaml" in browser.find("#command").text and fragment in browser.find("#state").text
        opens_at(browser, base, fragment)                # what a colleague sends
        assert value(browser) == first
        give("bad.yaml", own.replace("gpt2-1.5b", "/etc/passwd"))
        assert "is a path" in browser.find(".refused").text and not browser.all("#result data")
        give("worse.yaml", "a: [\n")
        assert "line" in browser.find(".refused").text


def two_variants(browser, base):
    goes_to(browser, "#tour=06-3d")
    browser.find("#compare").click()
    browser.wait("return document.getElementById('show-b')")
    browser.wait("return document.querySelector('#difference')?.textContent.includes('as long as')", 20)
    put(browser, "field-strategy-zero", "1")
    put(browser, "field-batch-micro", "2")
    a, b = run_json("scenarios/tour/06-3d.yaml"), run_json("scenarios/tour/06-3d.yaml", "strategy.zero=1", "batch.micro=2")
    browser.wait("return document.querySelector('#difference')?.textContent.includes('time an iteration than A')", 20)
    shown = dict(browser.run("return [...document.querySelectorAll('#difference-table data')].map(one => [one.dataset.key, Number(one.value)])"))
    for key in a["breakdown_s"]:
        by = b["breakdown_s"][key] - a["breakdown_s"][key]
        assert abs(shown.get(key, 0) - by) <= 2e-9 * a["iteration_time_s"], (key, shown, by)
    keys = browser.find("#keys-table").text
    assert "strategy.zero" in keys and "batch.micro" in keys, keys
    assert "b.strategy.zero=1" in browser.run("return location.hash")
    opens_at(browser, base, browser.run("return location.hash"))
    browser.wait("return document.querySelector('#difference')", 20)
    browser.find("#show-b").click()
    browser.find("#keep").click()
    browser.wait("return location.hash.includes('strategy.zero=1') && !location.hash.includes('b.')")


def keyboard(browser, base):
    opens_at(browser, base, "#tour=06-3d")
    browser.wait("return document.getElementById('timeline')?.dataset.ms", 30)
    browser.run("document.activeElement.blur()")
    reached = []
    for _ in range(60):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.run("const one = document.activeElement; return one.id || one.textContent.slice(0, 20)"))
    for name in ("compare", "tour", "choose-file", "field-strategy-tensor", "field-software-like", "other-path", "other-add", "timeline"):
        assert name in reached, (name, reached)
    browser.find("#field-strategy-pipeline").send_keys("2")
    browser.find("#field-strategy-data").send_keys("4", Keys.TAB)
    browser.wait("return location.hash.includes('strategy.pipeline=2&strategy.data=4')")
    settled(browser)
    assert value(browser) > 0
    browser.find("#field-strategy-schedule").send_keys("g")
    browser.wait("return location.hash.includes('strategy.schedule=gpipe')")
    settled(browser)
    browser.find("#other-path").send_keys("costs.speed")
    browser.find("#other-value").send_keys("2", Keys.ENTER)
    browser.wait("return location.hash.includes('costs.speed=2')")
    settled(browser)
    assert "costs.speed=2" in browser.find(".chips").text
    browser.wait("return document.getElementById('timeline')?.dataset.ms && !document.querySelector('.results.busy')", 30)
    time.sleep(0.4)                                      # the last timeline has come
    browser.wait("return document.getElementById('timeline')?.dataset.ms", 30)
    before = browser.find("#window").text
    browser.find("#timeline").send_keys("+")
    browser.wait(f"return document.getElementById('window').textContent !== {json.dumps(before)}")


def themes(browser, base):
    for fragment in ("#tour=06-3d&b.tour=06-3d&b.strategy.zero=1&b.cluster.gpu.memory=10+GiB", "#tour=06-3d&strategy.tensor=3&costs.speed=2"):
        goes_to(browser, fragment)
        for theme in ("light", "dark"):
            browser.run("const one = document.getElementById('theme'); one.value = arguments[0]; one.dispatchEvent(new Event('change', {bubbles: true}))", theme)
            browser.wait(f"return document.documentElement.dataset.theme === '{theme}'")
            worst = browser.run(CONTRAST)
            assert worst[0] >= 4.5, (theme, worst)
    names = browser.run("return [...document.querySelectorAll('input:not([hidden]), select, button')].filter(one => "
                        "!(one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())).map(one => one.outerHTML)")
    assert not names, names


def others_are_kept_out(address, base):
    """Another browser without the cookie, a page of another origin, a name that means 127.0.0.1."""
    port = base.split(":")[2].rstrip("/")
    page = f"""<!doctype html><script>
        const said = []; window.said = said;
        const body = JSON.stringify({{tour: '04-1f1b'}});
        for (const headers of [{{'Content-Type': 'application/json'}}, {{'Content-Type': 'text/plain'}}])
            fetch('{base}compute/1', {{method: 'POST', credentials: 'include', headers, body}})
                .then(reply => reply.text()).then(text => said.push('read ' + text), () => said.push('refused'));
        fetch('{base}', {{credentials: 'include'}}).then(reply => reply.text()).then(text => said.push('read ' + text), () => said.push('refused'));
        </script><iframe src="{base}"></iframe>"""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *words):
            pass

    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    browser = Browser("MAP evil.example 127.0.0.1, " + MACHINE)
    try:
        for url, said in ((base, "not the one that"), (address, "opens once"), (f"http://evil.example:{port}/", "Expected the address")):
            browser.driver.get(url)
            assert said in browser.find("body").text, (url, browser.find("body").text)
        yield browser, f"http://127.0.0.1:{other.server_port}/"
    finally:
        browser.close()
        other.shutdown()


def main():
    process, address = start()
    browser = Browser(MACHINE)
    try:
        base = opens(browser, address)
        for _, foreign in others_are_kept_out(address, base):
            browser.driver.get(foreign)                  # in the browser that has the cookie
            said = browser.wait("return window.said.length === 3 && window.said", 20)
            assert said == ["refused"] * 3, said
            browser.driver.get_log("browser"), browser.requests()        # what that page did
        opens_at(browser, base, "")
        for part in (every_field, wrong_input, files, two_variants, keyboard, themes):
            part(browser, base)
        browser.check_silent()
        for url in browser.requests():
            assert url.startswith((base, "data:", "about:")), url
        assert process.poll() is None
        browser.driver.get("about:blank")
        browser.driver.get(base)
        settled(browser)
        process.terminate()
        process.wait(20)
        before = answers(browser)
        browser.run("const one = document.getElementById('field-batch-global'); Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')"
                    ".set.call(one, '64'); one.dispatchEvent(new Event('input', {bubbles: true}))")
        browser.wait("return document.querySelector('.refused')?.textContent.includes('start')", 20)
        assert answers(browser) == before
    finally:
        browser.close()
        process.kill()


main()
