# SPDX-License-Identifier: Apache-2.0
"""What tests of the page of stint serve share: a headless Chromium, and the page as a reader uses
it. Needs Debian's chromium, chromium-driver and python3-selenium (scripts/bootstrap browser); a
test that imports this skips itself without. Screenshots go to screenshots/ in the build folder."""
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import time
import unittest

DEBIAN = "/usr/bin/python3"  # what its packages are for; another one may come first in the path
if not importlib.util.find_spec("selenium"):
    if os.path.exists(DEBIAN) and os.path.realpath(sys.executable) != os.path.realpath(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    print("no selenium: scripts/bootstrap browser installs it")
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("no chromium with chromedriver: scripts/bootstrap browser installs them")
    sys.exit(77)

# pylint: disable=wrong-import-position
from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from command import MODEL  # noqa: E402
from server import Server  # noqa: E402

SHOTS = pathlib.Path(os.environ["STINT_BUILD_DIR"]) / "screenshots"
SHOTS.mkdir(parents=True, exist_ok=True)
GREEDY = {"temperature": 0, "max_tokens": 24}
STORE = """
const [list, done] = [arguments[0], arguments[1]];
const request = indexedDB.open("stint", 1);
request.onupgradeneeded =
  () => request.result.createObjectStore("conversations", {keyPath: "id"});
request.onsuccess = () => {
  const transaction = request.result.transaction("conversations", "readwrite");
  const store = transaction.objectStore("conversations");
  if (list) {
    store.clear();
    for (const conversation of list) store.put(conversation);
  }
  const all = store.getAll();
  transaction.oncomplete = () => {
    request.result.close();
    done(all.result);
  };
};
"""


def open_browser(downloads=None):
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--window-size=1280,947"):
        options.add_argument(flag)
    if downloads:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def conversation(name, *texts, **fields):
    """One that the page may have kept: questions and answers by turns."""
    ids = [f"{name}-{i}" for i in range(len(texts))]
    messages = [{"id": ids[i], "parent": ids[i - 1] if i else None, "rev": 1, "state": "done",
                 "next": ids[i + 1] if i + 1 < len(ids) else None,
                 "role": ["user", "assistant"][i % 2], "text": text}
                for i, text in enumerate(texts)]
    return {"id": name, "title": "", "model": "", "created": 1, "changed": 1, "next": ids[0],
            "messages": messages, **fields}


class Reader(unittest.TestCase):
    """One browser, and what a reader sees and does in it."""
    downloads = None

    @classmethod
    def setUpClass(cls):
        cls.browser = open_browser(cls.downloads)
        cls.addClassCleanup(cls.browser.quit)

    def screen(self, width, height, dark=False):
        """A phone where it is narrow."""
        phone = width < 500
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 2 if phone else 1,
            "mobile": phone})
        self.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def find(self, selector):
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return found[0] if found else None

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if value := condition():
                    return value
            except StaleElementReferenceException:
                pass  # drawn anew meanwhile
            time.sleep(0.02)
        raise AssertionError("waited in vain: " + str(self.browser.get_log("browser")))

    def shown(self, selector):
        """The first that is to be seen, once there is one."""
        return self.wait(lambda: next((node for node in self.all(selector) if node.is_displayed()),
                                      None))

    def click(self, selector):
        self.shown(selector).click()

    def shot(self, name):
        self.assertTrue(self.browser.save_screenshot(str(SHOTS / f"{name}.png")))

    def focused(self):
        return self.browser.switch_to.active_element

    def say(self, text):
        self.shown("#prompt").send_keys(text, Keys.ENTER)

    def answered(self, n):
        """Waits until the conversation has n turns, the last of them complete; its text."""
        def last():
            turns = self.all("#turns > li")
            return len(turns) == n and turns[-1].get_attribute("aria-busy") != "true" and turns[-1]
        return self.wait(last).find_element(By.CSS_SELECTOR, ".text").text

    def texts(self):
        return [turn.text for turn in self.all("#turns > li .text")]


class Browsing(Reader):
    """One server and one browser; each test begins with a page that keeps nothing."""
    options, model = (), MODEL

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options, model=cls.model).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        super().setUpClass()

    def setUp(self):
        self.set_up(GREEDY)
        self.browser.get_log("browser")

    def tearDown(self):
        severe = [line["message"] for line in self.browser.get_log("browser")
                  if line["level"] == "SEVERE" and "/favicon.ico" not in line["message"]]
        self.assertEqual(severe, [])  # no error, nothing that the policy had to stop

    def set_up(self, settings, *kept, opened=""):
        """The page anew, with these settings and conversations kept and nothing else; it would keep
        more as it is left, so that is done elsewhere."""
        self.browser.get(f"{self.server.address}/health")
        self.browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.kept(*kept, replace=True)
        self.keep("settings", settings)
        self.browser.execute_script("sessionStorage.setItem('stint.open', arguments[0])", opened)
        self.browser.get(self.server.address)
        self.wait(lambda: self.find("#model strong, #model select"))

    def keep(self, name, value):
        self.browser.execute_script("localStorage.setItem(arguments[0], arguments[1])",
                                    f"stint.{name}", json.dumps(value))

    def kept(self, *conversations, replace=False):
        """What the browser keeps; with `replace` these instead."""
        return self.browser.execute_async_script(STORE, list(conversations) if replace else None)
