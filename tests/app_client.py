"""A client of `dtsim app`: the server, requests to it, and bytes that are nearly requests."""
import atexit
import glob
import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import threading
import time

small = {"model": {"stages": {"forward": "1 s", "backward": "2 s"}}, "cluster": "ideal",
         "batch": {"micro_batches": 4}, "strategy": {"pipeline": 2}}
endless = {**small, "batch": {"micro_batches": 2048}, "strategy": {"pipeline": 32},
           "simulation": {"jitter": 0.1, "repeat": 1000}}


class App:
    def __init__(self, dtsim, *options, **how):
        self.process = subprocess.Popen([dtsim, "app", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, encoding="utf-8", **how)
        atexit.register(self.process.kill)               # also where a part of the test fails
        self.address = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{64})", self.address)
        assert found, (self.address, self.process.stderr.read())
        self.port, self.token, self.cookie = int(found[1]), found[2], ""
        self.origin = f"http://127.0.0.1:{self.port}"
        self.count = 0

    def send(self, method, path, body=None, **headers):
        """Status, headers and body. A header None is left out."""
        usual = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie or None}
        if method == "POST":
            usual.update({"Origin": self.origin, "Content-Type": "application/json"})
        usual.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if body is not None and "Content-Length" not in usual and "Transfer-Encoding" not in usual:
            usual["Content-Length"] = str(len(body))
        for name, value in usual.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        try:
            if body is not None:
                connection.send(body)
        except (BrokenPipeError, ConnectionResetError):
            pass                     # the reply comes before all is sent
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply.status, reply.headers, text

    def enter(self):
        status, headers, _ = self.send("GET", f"/?token={self.token}")
        assert status == 303, status
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return headers

    def ask(self, question, number=None, **headers):
        self.count += 1
        status, _, text = self.send("POST", f"/compute/{number or self.count}", json.dumps(question).encode(), **headers)
        assert status == 200, (status, text)
        return json.loads(text)

    def works(self):
        answer = self.ask({"text": json.dumps(small)})
        assert answer["exit_code"] == 0 and answer["numbers"]["iteration_time_s"] == 15, answer

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 130, self.process.returncode
        rest = self.process.stderr.read()
        assert "Sanitizer" not in rest, rest


def nearly(app, draw):
    """Bytes that are nearly a request."""
    body = json.dumps({"text": json.dumps(small)})
    text = bytearray((f"POST /compute/1 HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nOrigin: {app.origin}\r\nCookie: {app.cookie}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
    words = [b"\r\n", b"\0", b"\xff", b":", b" ", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n",
             b"HTTP/1.0", b"%00", b"?token=", b"Upgrade: h2c\r\n", b"Connection: keep-alive\r\n", b";", b"=", b"\"", b"{", b"A" * 5000,
             b"Content-Length: 99999999999999999999\r\n", f"Host: 127.0.0.1:{app.port}\r\n".encode(), b"&a ", b"*a", b"<<: "]
    for _ in range(draw.randrange(1, 8)):
        at, kind = draw.randrange(len(text) + 1), draw.randrange(4)
        if kind == 0:
            text[at:at] = draw.choice(words)
        elif kind == 1:
            del text[at:at + draw.randrange(1, 40)]
        elif kind == 2 and at < len(text):
            text[at] = draw.randrange(256)
        else:
            text[at:at] = text[at:at + draw.randrange(60)]
    return text


def noise(app, seconds, threads=16):
    """Sends such bytes for a time; the count."""
    seed, until, counts = random.randrange(1 << 30), time.monotonic() + seconds, []

    def send(number):
        draw, count = random.Random(f"{seed} {number}"), 0
        while time.monotonic() < until and app.process.poll() is None:
            with socket.create_connection(("127.0.0.1", app.port)) as one:
                one.settimeout(15)
                try:
                    one.sendall(nearly(app, draw))
                    one.shutdown(socket.SHUT_WR)
                    while one.recv(65536):
                        pass
                except OSError:
                    pass
            count += 1
        counts.append(count)

    senders = [threading.Thread(target=send, args=(number,)) for number in range(threads)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert app.process.poll() is None, f"the server ended with {app.process.returncode}; seed {seed}"
    app.works()
    return sum(counts)


def times(app, count):
    """s from a request to its reply, by scenario of the tour."""
    found = {}
    for path in sorted(glob.glob("scenarios/tour/*.yaml")):
        name = os.path.basename(path)[:-5]
        for what in ("numbers", "timeline"):
            each = []
            for _ in range(count):
                begun = time.monotonic()
                answer = app.ask({"tour": name, "what": what})
                each.append(time.monotonic() - begun)
                assert answer["exit_code"] == 0, answer
            found[name, what] = statistics.median(each)
    return found
