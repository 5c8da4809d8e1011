"""A page in headless Chromium, for which no host exists, or this machine alone.

Where there is no browser or no Selenium, importing this ends the program, with exit code 77.
"""
import json
import shutil
import sys
import time

if not (shutil.which("chromedriver") and shutil.which("chromium")):
    print("skipped: there is no chromium with chromedriver (Debian: chromium chromium-driver)")
    sys.exit(77)
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys  # noqa: F401 (for those who press them)
except ImportError:
    print("skipped: there is no Selenium (Debian: python3-selenium)")
    sys.exit(77)

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--window-size=1280,1400")

# The least contrast of text with what is behind it (WCAG 2.2, 1.4.3), and the text.
CONTRAST = """
    const rgb = colour => colour.match(/[0-9.]+/g).map(Number);
    const light = colour => { const [r, g, b] = rgb(colour).map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = one => { for (; one; one = one.parentElement) { const back = getComputedStyle(one).backgroundColor;
        if (rgb(back)[3] !== 0) return back; } return 'rgb(255,255,255)'; };
    let worst = [99, ''];
    for (const one of document.querySelectorAll('main *')) {
        if (![...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) || !one.offsetHeight) continue;
        const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < worst[0]) worst = [contrast, one.textContent.slice(0, 60)];
    }
    return worst;"""


class Browser:
    def __init__(self, hosts="MAP * ~NOTFOUND"):
        options = Options()
        for flag in FLAGS + (f"--host-resolver-rules={hosts}",):
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
        self.check_silent()
        for url in self.requests():
            assert url == f"file://{path}" or url.startswith(("data:", "blob:")), url

    def check_silent(self):
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        assert not said, said

    def requests(self):
        """The addresses that were asked for since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.driver.quit()
