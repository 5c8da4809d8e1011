"""A page in headless Chromium, for which no host exists."""
import json
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys  # noqa: F401 (for those who press them)

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--window-size=1280,1400")


class Browser:
    def __init__(self):
        options = Options()
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)

    def open(self, path, seconds=60):
        self.driver.get(f"file://{path}")
        self.wait("return document.documentElement.dataset.opened", seconds)

    def wait(self, script, seconds=15):
        """Waits until the script returns something true, and returns it."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.driver.execute_script(script)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"after {seconds} s still not true: {script}")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def dark(self, is_dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]})

    def check_quiet(self, path):
        """Nothing in the console, and no request but for the page itself."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        assert not said, said
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                assert url == f"file://{path}" or url.startswith("data:"), url

    def close(self):
        self.driver.quit()
