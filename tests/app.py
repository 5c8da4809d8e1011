#!/usr/bin/env python3
"""`dtsim app`, by its requests: who is let in, what is refused, and that the server goes on whatever is sent to it.

usage: app.py DTSIM [requests of each scenario of the tour, whose times are printed]
"""
import base64
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

from app_client import App, endless, noise, small, times

dtsim = os.path.abspath(sys.argv[1])
sanitized = b"__asan_init" in open(dtsim, "rb").read()


def start(*options, **how):
    return App(dtsim, "--no-open", *options, **how)


def enters(app):
    """The token opens the page once, for one browser."""
    refused = app.send("GET", "/")
    assert refused[0] == 403 and b"did not" not in refused[2] and "Set-Cookie" not in refused[1], refused
    assert app.send("GET", "/?token=" + "0" * 64)[0] == 403
    headers = app.enter()
    parts = headers["Set-Cookie"].split("; ")
    assert parts[1:] == ["HttpOnly", "SameSite=Strict", "Path=/"] and parts[0].startswith(f"dtsim-{app.port}="), parts
    assert headers["Location"] == "/" and app.token not in str(headers)
    status, headers, page = app.send("GET", "/")
    assert status == 200 and b"<!doctype html>" in page
    policy = headers["Content-Security-Policy"]
    assert re.fullmatch(r"default-src 'none'; script-src 'sha256-[^ ]*'; style-src 'sha256-[^ ]*'; img-src data:; connect-src "
                        r"'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", policy), policy
    for name, value in (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store"),
                        ("X-Frame-Options", "DENY"), ("Cross-Origin-Resource-Policy", "same-origin")):
        assert headers[name] == value, (name, headers[name])
    assert headers["Access-Control-Allow-Origin"] is None
    again = app.send("GET", f"/?token={app.token}", Cookie=None)
    assert again[0] == 403 and "Set-Cookie" not in again[1], again[0]
    app.works()


def enters_by_page():
    """Where another site's page holds the address, the server answers with a page that loads the app next."""
    app = start("--state", "#tour=04-1f1b&strategy.tensor=2")
    status, headers, page = app.send("GET", f"/?token={app.token}", Sec_Fetch_Site="cross-site")
    assert status == 200 and headers["Set-Cookie"] and b"0;url=/#tour=04-1f1b&strategy.tensor=2" in page, (status, page)
    assert b"script" not in page
    app.end()
    for wrong in ("tour=1", "#<script>", "#a\"b", "#" + "a" * 70000, "# a", "#a\r\nSet-Cookie: a=b"):
        done = subprocess.run([dtsim, "app", "--no-open", "--state", wrong], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and b"--state" in done.stderr, (wrong[:20], done)


def opens():
    """The browser is started with a file that only this person reads; no argument of a process has the token."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        with open(os.path.join(folder, "xdg-open"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nstat -c %a \"$1\" >{log}.new; echo \"$*\" >>{log}.new; cat \"$1\" >>{log}.new; mv {log}.new {log}\n")
        os.chmod(os.path.join(folder, "xdg-open"), 0o755)
        app = App(dtsim, env={"PATH": f"{folder}:/usr/bin:/bin", "DISPLAY": ":0", "XDG_RUNTIME_DIR": folder})
        for _ in range(100):
            if os.path.exists(log):
                break
            time.sleep(0.1)
        with open(log, encoding="utf-8") as file:
            mode, argument, page = file.read().split("\n", 2)
        assert mode == "600" and argument.startswith(f"{folder}/dtsim-app-") and app.token not in argument, (mode, argument)
        assert f"url={app.address}\"" in page, page
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    assert app.token.encode() not in file.read(), pid
            except (FileNotFoundError, ProcessLookupError):
                pass
        app.enter()
        app.end()


def refuses(app):
    """Each request is refused with its status, and the server goes on."""
    body, secret = json.dumps({"text": json.dumps(small)}).encode(), app.cookie
    name, value = secret.split("=")
    cases = [
        (403, "POST", "/compute/1", body, {"Cookie": None}),
        (403, "POST", "/compute/1", body, {"Cookie": f"{name}={value[:-1]}"}),
        (403, "POST", "/compute/1", body, {"Cookie": f"{name}={value}0"}),
        (403, "POST", "/compute/1", body, {"Cookie": f"x{name}={value}"}),
        (403, "POST", "/compute/1", body, {"Cookie": f"dtsim-1={value}"}),
        (403, "POST", "/compute/1", body, {"Cookie": f"{name}={app.token}"}),
        (403, "POST", "/compute/1", body, {"Origin": None}),
        (403, "POST", "/compute/1", body, {"Origin": "null"}),
        (403, "POST", "/compute/1", body, {"Origin": "http://evil.example"}),
        (403, "POST", "/compute/1", body, {"Origin": f"https://127.0.0.1:{app.port}"}),
        (403, "POST", "/compute/1", body, {"Origin": f"http://127.0.0.1:{app.port}.evil.example"}),
        (403, "POST", "/compute/1", body, {"Origin": f"http://localhost:{app.port}"}),
        (403, "POST", "/compute/1", body, {"Origin": "http://127.0.0.1:1"}),
        (403, "POST", "/compute/1", body, {"Sec_Fetch_Site": "cross-site"}),
        (403, "POST", "/compute/1", body, {"Sec_Fetch_Site": "same-site"}),
        (403, "POST", "/compute/1", body, {"Sec_Fetch_Site": "none"}),
        (403, "GET", "/", None, {"Sec_Fetch_Site": "cross-site"}),
        (403, "GET", "/", None, {"Origin": "http://evil.example"}),
        (421, "GET", "/", None, {"Host": f"evil.example:{app.port}"}),
        (421, "POST", "/compute/1", body, {"Host": f"evil.example:{app.port}", "Origin": f"http://evil.example:{app.port}"}),
        (421, "GET", "/", None, {"Host": f"localhost:{app.port}"}),
        (421, "GET", "/", None, {"Host": "127.0.0.1"}),
        (421, "GET", f"/?token={app.token}", None, {"Host": f"evil.example:{app.port}"}),
        (415, "POST", "/compute/1", body, {"Content_Type": "text/plain"}),
        (415, "POST", "/compute/1", body, {"Content_Type": "application/jsonp"}),
        (415, "POST", "/compute/1", body, {"Content_Type": None}),
        (411, "POST", "/compute/1", b"4\r\n{}  \r\n0\r\n\r\n", {"Transfer_Encoding": "chunked"}),
        (413, "POST", "/compute/1", b" " * (10 << 20), {}),
        (413, "POST", "/compute/1", b"{", {"Content_Length": "9" * 15}),
        (404, "GET", "/../../etc/passwd", None, {}),
        (404, "GET", "/compute/1", None, {}),
        (404, "GET", "/app.html", None, {}),
        (404, "POST", "/", body, {}),
        (404, "POST", "/compute/", body, {}),
        (404, "POST", "/compute/a/b", body, {}),
        (404, "POST", "/compute/" + "a" * 33, body, {}),
        (404, "POST", "/run/1", body, {}),
        (405, "PUT", "/", body, {"Content_Type": "application/json"}),
        (405, "OPTIONS", "/compute/1", None, {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}),
    ]
    for expected, method, path, content, headers in cases:
        status, found, text = app.send(method, path, content, **headers)
        assert status == expected, (status, expected, method, path, headers, text)
        assert found["Access-Control-Allow-Origin"] is None and value.encode() not in text
    app.works()
    exact = {"text": json.dumps(small)}
    rest = (1 << 20) - len(json.dumps(exact))
    assert app.send("POST", "/compute/1", (json.dumps(exact) + " " * rest).encode())[0] == 200
    assert app.send("POST", "/compute/1", (json.dumps(exact) + " " * (rest + 1)).encode())[0] == 413


class Opened:
    """Whether anybody opens a file in a folder (inotify(7))."""

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        assert self.fd >= 0 and self.libc.inotify_add_watch(self.fd, folder.encode(), 0x20 | 0x1) >= 0

    def count(self):
        try:
            return len(os.read(self.fd, 65536)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0


def leaves(schema, path=""):
    """The paths of all values of a schema."""
    for one in schema.get("anyOf", ()):
        yield from leaves(one, path)
    if "items" in schema:
        yield from leaves(schema["items"], f"{path}.0")
    if "properties" in schema:
        for key, value in schema["properties"].items():
            if path.count(".") < 6:
                yield from leaves(value, f"{path}.{key}" if path else key)
    elif "items" not in schema and path:
        yield path


def refuses_paths(app):
    """A path in any value, by a change or in text, is refused before anybody looks at the file."""
    with tempfile.TemporaryDirectory() as folder:
        secrets = [os.path.join(folder, name) for name in ("secret.yaml", "secret.json", "secret.csv", "secret")]
        for secret in secrets:
            with open(secret, "w", encoding="utf-8") as file:
                file.write("gpus_per_node: 8\n")
        opened = Opened(folder)
        assert open(secrets[0], "rb").read() and opened.count() > 0      # it would be seen
        big = {"model": {"preset": "gpt2-1.5b"}, "cluster": {"platform": "dgx-a100", "nodes": 1}, "batch": {"global": 8}}
        files = ["model.preset", "model.hf_config", "model.layers.csv", "cluster", "cluster.platform", "cluster.gpu",
                 "cluster.gpu.name", "cluster.network", "cluster.network.name", "cluster.network.topology.xml",
                 "cluster.communication", "cluster.communication.profile", "software", "software.like", "costs.profile",
                 "strategy.schedule.csv", "train.failures.source", "train.failures.trace", "cluster.parts.0.platform",
                 "cluster.parts.0.gpu"]
        for path in files:
            for secret in secrets[:3] + [os.path.relpath(secrets[0]), "./x.yaml", "/dev/zero"]:
                scenario, place = json.loads(json.dumps(big)), None
                place = scenario
                *way, last = path.split(".")
                if path.startswith("model."):
                    scenario["model"] = {}
                if path.startswith("train."):
                    scenario["train"] = {"steps": 10, "failures": {}}
                if path.startswith("cluster.parts"):
                    scenario["cluster"] = {"parts": [{"name": "a", "nodes": 1, "gpus_per_node": 8}]}
                for step in way:
                    step = int(step) if step.isdigit() else step
                    if isinstance(place, dict) and not isinstance(place.get(step), (dict, list)):
                        place[step] = {}
                    place = place[step]
                place[last] = secret
                answer = app.ask({"text": json.dumps(scenario)})
                said = " ".join(one["message"] for one in answer["errors"])
                assert answer["exit_code"] == 4 and f"'{secret[:40]}" in said.replace("...", "") and "is a path" in said, (path, secret, said)
        schema = json.loads(subprocess.run([dtsim, "schema"], stdout=subprocess.PIPE, check=True).stdout)
        paths = sorted(set(leaves(schema)))
        assert len(paths) > 300, len(paths)
        for i, path in enumerate(paths):
            secret = secrets[i % 3]
            app.ask({"text": json.dumps(big), "set": {path: secret}})
            app.ask({"tour": "01-data-parallel", "set": {path: {"csv": secret, "name": secret}} if i % 2 else {path: [secret]}})
        for name in ("../../etc/passwd", secrets[0], "../tour/04-1f1b", "-", "", "04-1f1b.yaml"):
            answer = app.ask({"tour": name})
            assert answer["exit_code"] == 4 and "numbers" not in answer, answer
        assert opened.count() == 0, "a file was opened"
        answer = app.ask({"tour": "12-your-own-order"})      # the file of the program's own scenario
        assert answer["exit_code"] == 0 and "12-your-own-order.csv stands beside /" in answer["yaml"], answer
        config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                  "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 2048}
        answer = app.ask({"text": json.dumps({**big, "model": {"hf_config": config}}), "set": {"strategy.tensor": 8}})
        assert answer["numbers"]["scenario"]["model"]["transformer"]["ffn"] == 11008, answer


def bodies(app):
    """Whatever a question says, it is answered."""
    for body in (b"", b"{", b"[]", b"null", b"1", b"\xff\xfe", b"{\"tour\": 1}", b"{\"text\": \"\\u0000\"}", b"[" * 100000,
                 b"{\"text\": \"a\", \"tour\": \"b\"}", b"{\"tour\": \"04-1f1b\", \"set\": []}", b"{\"tour\": \"04-1f1b\", \"x\": 1}",
                 b"{\"tour\": \"04-1f1b\", \"what\": \"else\"}", b"{\"tour\": \"04-1f1b\", \"set\": {\"a=b\": 1}}",
                 b"{\"tour\": \"04-1f1b\", \"against\": {\"iteration_time_s\": 0}}", b"{\"text\": \"a: &a [*a]\"}",
                 b"{\"text\": \"!!python/object:os.system x\"}", b"{\"tour\": \"04-1f1b\", \"against\": [1]}"):
        status, _, text = app.send("POST", "/compute/1", body)
        answer = json.loads(text)
        assert status == 200 and (answer["exit_code"] != 0) == ("against" not in body.decode("latin1")), (body[:40], text[:300])
    app.works()


def agrees(app):
    """Numbers are those of 'dtsim run --json', and the timeline is its spans."""
    path = "scenarios/tour/06-3d.yaml"
    there = json.loads(subprocess.run([dtsim, "run", path, "--engine", "fast", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    here = app.ask({"tour": "06-3d"})["numbers"]
    for key in ("iteration_time_s", "tokens_per_s_per_gpu", "mfu", "peak_memory_bytes", "memory_limit_bytes", "breakdown_s",
                "expected_error_share", "memory_breakdown_bytes", "notes", "setup", "scenario"):
        if isinstance(there[key], float):
            assert abs(here[key] - there[key]) <= 1e-9 * abs(there[key]), (key, here[key], there[key])
        elif key == "breakdown_s":
            assert all(abs(here[key][one] - there[key][one]) <= 1e-9 * there["iteration_time_s"] for one in there[key])
        else:
            assert here[key] == there[key], key
    answer = app.ask({"tour": "06-3d", "what": "timeline"})
    parts = zlib.decompress(base64.b64decode(answer["timeline"]))
    head = json.loads(parts[parts.rindex(b"page "):].split(b"\n", 1)[1])      # the last part
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([dtsim, "run", path, "--engine", "fast", "-o", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        rows = sum(1 for _ in open(os.path.join(folder, "spans.tsv"), encoding="utf-8")) - 1
    assert sum(row[2] for row in head["rows"]) == rows > 100, (rows, head["rows"][:3])
    same, other = (app.ask({"tour": "06-3d", "set": change, "against": here})["ties"] for change in ({}, {"batch.global": 64}))
    assert same is True and other is False, (same, other)
    short = app.ask({"tour": "06-3d", "set": {"cluster.gpu.memory": "10 GiB"}, "what": "advice"})
    assert short["exit_code"] == 5 and short["errors"][0]["rule"] == "memory" and "make it fit" in short["errors"][0]["message"], short
    assert short["numbers"]["peak_memory_bytes"] > 10 * 2 ** 30 and "iteration_time_s" not in short["numbers"]
    odd = app.ask({"tour": "06-3d", "set": {"strategy.tensor": 3}})
    assert odd["exit_code"] == 5 and odd["errors"][0]["rule"] and "numbers" not in odd, odd


def limits(app):
    """A question that never ends, one that is cancelled, one too large, more than may wait."""
    answers = {}

    def ask(name, question):
        answers[name] = app.ask(question, name)

    begun = time.monotonic()
    threads = [threading.Thread(target=ask, args=(f"slow{i}", {"text": json.dumps(endless)})) for i in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(0.3)
    assert app.send("POST", "/cancel/slow1", b"{}")[0] == 200        # it waits
    threads[1].join(5)
    assert answers["slow1"]["exit_code"] == 130, answers
    threads[0].join(30)
    took = time.monotonic() - begun
    assert answers["slow0"]["exit_code"] == 7 and 9 < took < 25, (answers, took)
    time.sleep(0.5)
    assert app.send("POST", "/cancel/slow2", b"{}")[0] == 200        # it runs
    threads[2].join(5)
    assert answers["slow2"]["exit_code"] == 130 and time.monotonic() - begun < took + 5, answers
    threads = [threading.Thread(target=ask, args=(f"many{i}", {"text": json.dumps(endless)})) for i in range(12)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    for i in range(12):
        app.send("POST", f"/cancel/many{i}", b"{}")
    for thread in threads:
        thread.join(20)
    codes = [answers[f"many{i}"]["exit_code"] for i in range(12)]
    assert sorted(codes) == [7] * 4 + [130] * 8, codes
    large = {**small, "batch": {"micro_batches": 1000000}, "strategy": {"pipeline": 512}}
    answer = app.ask({"text": json.dumps(large), "what": "timeline"})
    assert answer["exit_code"] in (4, 5, 7) and "timeline" not in answer, answer
    app.works()
    threads = [threading.Thread(target=ask, args=(f"last{i}", {"text": json.dumps(endless)})) for i in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    app.end()                                            # while it computes, and somebody waits
    for thread in threads:
        thread.join(10)
    assert [answers[f"last{i}"]["exit_code"] for i in range(2)] == [130, 130], answers


def raw(app, text, wait=10):
    """The status of the answer to these bytes; None: there was none."""
    with socket.create_connection(("127.0.0.1", app.port), timeout=wait) as one:
        one.sendall(text)
        answer = one.recv(100)
    return int(answer.split()[1]) if answer else None


def odd_heads(app):
    """What two readers might understand in two ways is refused, though the cookie is right."""
    own, cookie = f"Host: 127.0.0.1:{app.port}\r\n", f"Cookie: {app.cookie}\r\n"
    assert raw(app, f"GET / HTTP/1.1\r\n{own}{cookie}\r\n".encode()) == 200
    for other in own, "host: evil.example\r\n", "HOST:\r\n":
        for hosts in own + other, other + own, other + cookie + own:
            status = raw(app, f"GET / HTTP/1.1\r\n{hosts}{cookie}\r\n".encode())
            assert status in (400, 421), (hosts, status)
    for path in "/%00", "/%00/", "/%2500", "/%2f", "//", "/?%00", "/%":
        status = raw(app, f"GET {path} HTTP/1.1\r\n{own}{cookie}\r\n".encode())
        assert status in (400, 404) or (path == "/?%00" and status == 200), (path, status)
    app.works()


def idle_neighbours(app):
    """However many connections other programs of this machine hold, an answer comes within a second."""
    silent = []
    for count in 100, 200, 1000:
        while len(silent) < count:
            silent.append(socket.create_connection(("127.0.0.1", app.port)))
        begun = time.monotonic()
        app.works()
        assert time.monotonic() - begun < (10 if sanitized else 1), (count, time.monotonic() - begun)
    for one in silent:
        one.close()


def slow_clients(app):
    """Connections that say nothing, or a byte now and then, or that do not read, keep nobody else out."""
    silent = [socket.create_connection(("127.0.0.1", app.port)) for _ in range(150)]
    for one in silent[:75]:
        one.send(b"POST /compute/1 HTTP/1.1\r\nHost: ")
    app.works()
    deaf = []
    for _ in range(20):
        one = socket.create_connection(("127.0.0.1", app.port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.send(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nCookie: {app.cookie}\r\n\r\n".encode())
        deaf.append(one)
    app.works()
    drip = socket.create_connection(("127.0.0.1", app.port))
    begun = time.monotonic()
    try:
        for letter in f"POST /compute/1 HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nX: " + "a" * 1000:
            drip.send(letter.encode())
            time.sleep(0.25)
            assert time.monotonic() - begun < 15, "a client that drips is never shut out"
    except (BrokenPipeError, ConnectionResetError):
        pass
    app.works()
    for one in silent + deaf + [drip]:
        one.close()


def apart(part, failures):
    """A part with a server of its own, beside the others."""
    try:
        app = start()
        app.enter()
        part(app)
        if app.process.poll() is None:
            app.end()
    except BaseException:
        failures.append(f"{part.__name__}: {traceback.format_exc()}")


def main():
    app = start()
    enters(app)
    if len(sys.argv) > 3 and sys.argv[2] == "noise":
        print(noise(app, float(sys.argv[3])), "requests")
    elif len(sys.argv) > 2:
        for (name, what), seconds in times(app, int(sys.argv[2])).items():
            print(f"{name:28} {what:9} {1000 * seconds:8.1f} ms")
    else:
        failures = []
        threads = [threading.Thread(target=apart, args=(part, failures)) for part in (limits, slow_clients, idle_neighbours, odd_heads)]
        for thread in threads:
            thread.start()
        enters_by_page()
        opens()
        refuses(app)
        refuses_paths(app)
        bodies(app)
        agrees(app)
        noise(app, 2)
        for thread in threads:
            thread.join()
        assert not failures, "\n".join(failures)
    app.end()


main()
