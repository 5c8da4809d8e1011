"""A page in headless Firefox, spoken to by Marionette, which it has inside: no driver is needed."""
import atexit
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PREFERENCES = {
    "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9, "datareporting.policy.dataSubmissionEnabled": False, "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False, "toolkit.telemetry.reportingpolicy.firstRun": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
}


class Firefox:
    def __init__(self):
        program = shutil.which("firefox-esr") or shutil.which("firefox")
        if not program:
            print("skipped: there is no Firefox (Debian: firefox-esr)")
            sys.exit(77)
        self.profile = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(f"{self.profile.name}/user.js", "w", encoding="utf-8") as file:
            for key, value in {**PREFERENCES, "marionette.port": port}.items():
                file.write(f"user_pref({json.dumps(key)}, {json.dumps(value)});\n")
        self.process = subprocess.Popen([program, "--headless", "--marionette", "--no-remote", "--profile", self.profile.name],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)       # where a test fails
        until = time.monotonic() + 60
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), 60)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
        self.file = self.socket.makefile("rb")
        self.count = 0
        self.read()
        self.say("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": False}}})

    def read(self):
        digits = b""
        while (byte := self.file.read(1)) != b":":
            if not byte:
                raise AssertionError("Firefox has ended")
            digits += byte
        return json.loads(self.file.read(int(digits)))

    def say(self, command, values):
        self.count += 1
        text = json.dumps([0, self.count, command, values]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.read()
        if error:
            raise AssertionError(f"{command}: {error['message']}")
        return result

    def open(self, path, seconds=60):
        self.say("WebDriver:Navigate", {"url": f"file://{path}"})
        self.wait("return document.documentElement.dataset.opened", seconds)

    def run(self, script, *arguments):
        return self.say("WebDriver:ExecuteScript", {"script": script, "args": list(arguments), "newSandbox": False, "sandbox": None})["value"]

    def wait(self, script, seconds=15):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.run(script)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"after {seconds} s still not true: {script}")

    def close(self):
        try:
            self.say("Marionette:Quit", {"flags": ["eForceQuit"]})
        except (AssertionError, OSError):
            pass
        self.process.wait(30)
        self.profile.cleanup()
