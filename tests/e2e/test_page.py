#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of stint serve in a headless Chromium, as a reader uses it. Needs Debian's chromium,
chromium-driver and python3-selenium (scripts/bootstrap browser); skips itself without. Screenshots
go to screenshots/ in the build folder."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
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

from command import COMMAND, MODEL, PROMPT  # noqa: E402
from scripted import write_model  # noqa: E402
from server import KEY, Server  # noqa: E402

SHOTS = pathlib.Path(os.environ["STINT_BUILD_DIR"]) / "screenshots"
SHOTS.mkdir(parents=True, exist_ok=True)
LONG = " ".join([PROMPT] * 9)
GREEDY = {"temperature": 0, "max_tokens": 24}


def open_browser(width=1280, height=860, dark=False):
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 f"--window-size={width},{height}"):
        options.add_argument(flag)
    if width < 500:
        metrics = {"width": width, "height": height, "pixelRatio": 2, "touch": True}
        options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    return browser


class Page(unittest.TestCase):
    """One server and one browser; each test begins with a page that keeps nothing."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        package = f"{cls.folder.name}/novels.stint"
        subprocess.run([COMMAND, "prepare", MODEL, "-o", package, "--calib-tokens", "300",
                        "--bits", "2..4"], check=True, capture_output=True)
        cls.server = Server("--npu-threads", 1, "--cpu-threads", 1, "--chunk", 16, "--schedule",
                            "uniform:4", model=package).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.set_up(GREEDY)
        self.browser.get_log("browser")

    def tearDown(self):
        severe = [line["message"] for line in self.browser.get_log("browser")
                  if line["level"] == "SEVERE"]
        self.assertEqual(severe, [])  # no error, nothing that the policy had to stop

    def set_up(self, settings):
        """The page anew, with these settings kept and nothing else; it would keep more as it is
        left, so that is done elsewhere."""
        self.browser.get(f"{self.server.address}/health")
        self.browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.keep("settings", settings)
        self.browser.get(self.server.address)
        self.wait(lambda: self.find("#model strong"))

    def keep(self, name, value):
        self.browser.execute_script("localStorage.setItem(arguments[0], arguments[1])",
                                    f"stint.{name}", json.dumps(value))

    def find(self, selector):
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return found[0] if found else None

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        self.browser.save_screenshot(str(SHOTS / "failed.png"))
        raise AssertionError(f"{self.id()}: waited in vain; see screenshots/failed.png")

    def shot(self, name):
        self.assertTrue(self.browser.save_screenshot(str(SHOTS / f"{name}.png")))

    def say(self, text):
        self.find("#prompt").send_keys(text, Keys.ENTER)

    def answered(self, n):
        """Waits until the conversation has n turns, the last of them complete; its text."""
        def last():
            turns = self.all("#turns > li")
            return len(turns) == n and turns[-1].get_attribute("aria-busy") != "true" and turns[-1]
        return self.wait(last).find_element(By.CSS_SELECTOR, ".text").text

    def texts(self):
        return [turn.text for turn in self.all("#turns > li .text")]

    def wanted(self, *messages, **settings):
        roles = ["user", "assistant"]
        talk = [{"role": roles[i % 2], "content": text} for i, text in enumerate(messages)]
        _, answer = self.server.post("/v1/chat/completions", messages=talk,
                                     **{**GREEDY, **settings})
        return answer["choices"][0]["message"]["content"]

    def assert_says(self, shown, wanted):
        """The page draws paragraphs: blanks may differ, words may not."""
        self.assertEqual(shown.split(), wanted.split())

    # ---- the chat

    def test_send_and_stream(self):
        self.say(PROMPT)
        self.assert_says(self.answered(2), self.wanted(PROMPT))
        self.assertIn("24 tokens", self.find(".facts").text)
        self.shot("chat-light")

    def test_text_grows_as_it_comes_and_stops(self):
        self.set_up({"temperature": 0, "max_tokens": 1800})
        self.say(PROMPT)
        grown = self.wait(lambda: self.find(".turn.answer.growing .text"))
        first = len(grown.text)
        self.wait(lambda: len(grown.text) > first)
        self.find("#stop").click()
        self.answered(2)
        self.assertIn("Stopped", self.find(".turn.answer .note").text)
        self.server.wait(lambda health: health["busy"] == 0)
        self.say("And then?")
        self.wait(lambda: self.find(".turn.answer.growing"))
        self.find("#stop").click()
        self.answered(4)

    def test_a_page_that_is_left_frees_its_slot(self):
        self.set_up({"temperature": 0, "max_tokens": 1800})
        self.say(PROMPT)
        self.wait(lambda: self.find(".turn.answer.growing"))
        self.browser.get(f"{self.server.address}/health")
        self.server.wait(lambda health: health["busy"] == 0)
        last = json.loads(self.server.get("/stint/last"))
        self.assertLess(last["generated_tokens"], 1800)
        self.browser.back()
        self.wait(lambda: self.find(".turn.answer .note"))
        self.assertIn("Stopped", self.find(".turn.answer .note").text)

    def test_escape_stops(self):
        self.set_up({"temperature": 0, "max_tokens": 1800})
        self.say(PROMPT)
        self.wait(lambda: self.find(".turn.answer.growing"))
        self.find("#prompt").send_keys(Keys.ESCAPE)
        self.answered(2)
        self.server.wait(lambda health: health["busy"] == 0)

    def test_reload_restores(self):
        self.say(PROMPT)
        self.answered(2)
        before = self.texts()
        self.browser.refresh()
        self.wait(lambda: len(self.all("#turns > li")) == 2)
        self.assertEqual(self.texts(), before)
        self.find("#new-chat").click()
        self.browser.refresh()
        self.wait(lambda: self.find("#model strong"))
        self.assertEqual(self.texts(), [])

    def test_edit_and_retry(self):
        for i, text in enumerate((PROMPT, "Why?")):
            self.say(text)
            self.answered(2 * i + 2)
        self.all(".turn.user button[aria-label^=Edit]")[0].click()
        area = self.find(".turn.user textarea")
        area.clear()
        area.send_keys("The old man said", Keys.ENTER)
        self.assert_says(self.answered(2), self.wanted("The old man said"))
        self.assertEqual(self.texts()[0], "The old man said")
        self.find("button[aria-label='Answer again']").click()
        self.assert_says(self.answered(2), self.wanted("The old man said"))

    def test_a_conversation_is_sent_whole(self):
        self.say(PROMPT)
        self.answered(2)
        kept = self.browser.execute_script(
            "return JSON.parse(localStorage.getItem('stint.conversation'))[1].text")
        self.say("Why?")
        self.answered(4)
        last = json.loads(self.server.get("/stint/last"))
        self.wanted(PROMPT, kept, "Why?")
        again = json.loads(self.server.get("/stint/last"))
        self.assertEqual(last["prompt_tokens"], again["prompt_tokens"])

    def test_settings_are_kept_and_sent(self):
        self.find("#open-settings").click()
        for name, value in (("temperature", "0"), ("max_tokens", "7"), ("seed", "3")):
            self.find(f"#{name}").clear()
            self.find(f"#{name}").send_keys(value)
        self.find("#system").send_keys("Answer like a captain.")
        self.shot("settings")
        self.find("#settings-form button[type=submit]").click()
        self.browser.refresh()
        self.wait(lambda: self.find("#model strong"))
        self.say(PROMPT)
        self.answered(2)
        last = json.loads(self.server.get("/stint/last"))
        self.assertEqual(last["generated_tokens"], 7)
        alone = self.server.chat(PROMPT, max_tokens=1)["usage"]["prompt_tokens"]
        self.assertGreater(last["prompt_tokens"], alone)  # the system prompt is there

    def test_html_in_an_answer_is_text(self):
        self.browser.get(f"{self.server.address}/health")
        self.keep("conversation", [{"role": "assistant", "state": "done", "text":
                                    "<img src=x onerror=alert(1)> **bold** `code`"}])
        self.browser.get(self.server.address)
        text = self.wait(lambda: self.find(".turn.answer .text"))
        self.assertIn("<img src=x onerror=alert(1)>", text.text)
        self.assertEqual(text.find_elements(By.CSS_SELECTOR, "img"), [])
        self.assertEqual(text.find_element(By.CSS_SELECTOR, "strong").text, "bold")

    # ---- the device

    def test_the_device_view_shows_the_last_request(self):
        self.say(LONG)
        self.answered(2)
        last = json.loads(self.server.get("/stint/last"))
        self.find("#to-device").click()
        self.wait(lambda: self.find(".lanes"))
        self.assertEqual(len(self.all(".lanes .event")), len(last["prefill"]["events"]))
        self.assertGreater(last["prefill"]["chunks"], 2)
        shown = self.find(".tokens").text.replace("↵", "").split()
        self.assertEqual(shown, "".join(token["text"] for token in last["tokens"]).split())
        self.assertEqual(len(self.all(".tokens .bits-4")), 24)
        self.shot("device-light")
        self.find(".lanes").send_keys(Keys.ARROW_RIGHT)
        self.assertRegex(self.find(".timeline + .readout").text, r"(NPU|CPU), .*layer \d+")
        self.find("details.as-table summary").click()
        rows = self.wait(lambda: self.all("details.as-table tbody tr"))
        self.assertGreaterEqual(len(rows), len(last["prefill"]["events"]))

    # ---- everybody

    def test_every_control_has_a_name(self):
        self.say(PROMPT)
        self.answered(2)
        self.check_names()
        self.find("#open-settings").click()
        self.check_names()
        self.find("#settings-cancel").click()
        self.find("#to-device").click()
        self.wait(lambda: self.find(".tiles"))
        self.check_names()

    def check_names(self):
        within = "dialog[open] " if self.find("dialog[open]") else "body "  # all else is inert
        controls = self.all(", ".join(within + kind for kind in (
            "button", "a", "input", "textarea", "select", "summary", "[role=slider]",
            "[tabindex='0']")))
        for control in controls:
            if control.is_displayed():
                self.assertTrue(control.accessible_name.strip(), control.get_attribute("outerHTML"))
        ids = self.browser.execute_script(
            "return [...document.querySelectorAll('[id]')].map((node) => node.id)")
        self.assertEqual(len(ids), len(set(ids)))

    def test_the_keyboard_is_enough(self):
        body = self.find("body")
        body.send_keys(Keys.TAB)
        self.assertIn("skip", self.focused().get_attribute("class"))
        for _ in range(30):
            self.focused().send_keys(Keys.TAB)
            if self.focused().get_attribute("id") == "open-settings":
                break
        self.focused().send_keys(Keys.ENTER)
        self.wait(lambda: self.find("dialog[open]"))
        self.focused().send_keys(Keys.ESCAPE)
        self.wait(lambda: not self.find("dialog[open]"))
        for _ in range(30):
            if self.focused().get_attribute("id") == "prompt":
                break
            self.focused().send_keys(Keys.TAB)
        self.focused().send_keys("First", Keys.SHIFT + Keys.ENTER)
        self.focused().send_keys("Second", Keys.ENTER)
        self.answered(2)
        self.assertEqual(self.texts()[0], "First\nSecond")
        self.assertEqual(self.focused().get_attribute("id"), "prompt")

    def focused(self):
        return self.browser.switch_to.active_element


class OtherScreens(unittest.TestCase):
    """The same page in the dark and on a phone."""

    def look(self, name, width, height, dark):
        browser = open_browser(width, height, dark)
        self.addCleanup(browser.quit)
        with Server("--chunk", 16) as server:
            browser.get(server.address)
            browser.execute_script("localStorage.setItem('stint.settings', arguments[0])",
                                   json.dumps({**GREEDY, "max_tokens": 60}))
            browser.find_element(By.ID, "prompt").send_keys(LONG)
            browser.find_element(By.ID, "send").click()
            end = time.monotonic() + 60
            while not browser.find_elements(By.CSS_SELECTOR, ".turn.answer .facts"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            self.assertTrue(browser.save_screenshot(str(SHOTS / f"chat-{name}.png")))
            self.assert_no_sideways(browser)
            browser.find_element(By.ID, "to-device").click()
            while not browser.find_elements(By.CSS_SELECTOR, ".lanes"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            self.assertTrue(browser.save_screenshot(str(SHOTS / f"device-{name}.png")))
            self.assert_no_sideways(browser)
        theme = browser.execute_script("return document.documentElement.dataset.theme")
        self.assertEqual(theme, "dark" if dark else "light")

    def assert_no_sideways(self, browser):
        wide = browser.execute_script(
            "return [document.documentElement, ...document.querySelectorAll('.scroller')]"
            ".filter((node) => node.scrollWidth > node.clientWidth).length")
        self.assertEqual(wide, 0)

    def test_dark(self):
        self.look("dark", 1280, 860, True)

    def test_phone(self):
        self.look("phone", 360, 740, False)


class Trouble(unittest.TestCase):
    def setUp(self):
        self.browser = open_browser()
        self.addCleanup(self.browser.quit)

    def wait(self, selector):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                for node in self.browser.find_elements(By.CSS_SELECTOR, selector):
                    if node.is_displayed():
                        return node
            except StaleElementReferenceException:
                pass  # drawn anew meanwhile
            time.sleep(0.02)
        raise AssertionError(f"{selector}: waited in vain")

    def test_a_server_that_is_gone(self):
        with Server() as server:
            self.browser.get(server.address)
            self.wait("#model strong")
        self.browser.find_element(By.ID, "prompt").send_keys(PROMPT, Keys.ENTER)
        self.assertIn("cannot be reached", self.wait(".turn.answer .error").text)
        self.wait(".turn.answer .retry")

    def test_a_full_queue(self):
        with Server("--slots", 1, "--queue", 0) as server:
            self.browser.get(server.address)
            self.wait("#model strong")
            other = server.open_stream(prompt=PROMPT, max_tokens=1900, temperature=0)
            server.wait(lambda health: health["busy"] == 1)
            self.browser.find_element(By.ID, "prompt").send_keys(PROMPT, Keys.ENTER)
            error = self.wait(".turn.answer .error")
            self.assertIn("busy", error.text)
            other.close()
            server.wait(lambda health: health["busy"] == 0)
            error.find_element(By.CSS_SELECTOR, ".retry").click()
            self.wait(".turn.answer .text p")

    def test_reasoning_is_folded_and_not_sent_back(self):
        """The script goes by the prompt's last letter, and the template shows what was sent."""
        scripts = {"?": ["<thi", "nk>", "- So", " **it** is.", "</think", ">\n", "\nYes."],
                   "!": ["You ", "see."]}
        template = "{# <think> #}{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}"
        with tempfile.TemporaryDirectory() as folder:
            model = write_model(pathlib.Path(folder) / "scripted", scripts, template)
            with Server(model=model) as server:
                self.browser.get(server.address)
                self.wait("#model strong")
                self.browser.find_element(By.ID, "prompt").send_keys("Is it?", Keys.ENTER)
                self.assertEqual(self.wait(".turn.answer .text p").text, "Yes.")
                thoughts = self.browser.find_element(By.CSS_SELECTOR, ".reasoning .thoughts")
                self.assertFalse(thoughts.is_displayed())
                summary = self.wait(".reasoning summary")
                self.assertEqual(summary.accessible_name, "Reasoning")
                summary.send_keys(Keys.ENTER)
                self.assertEqual(self.wait(".reasoning .thoughts li").text, "So it is.")
                self.browser.save_screenshot(str(SHOTS / "reasoning.png"))
                self.wait(".turn.answer .facts")
                self.browser.find_element(By.ID, "prompt").send_keys("Well!", Keys.ENTER)
                self.wait(".turn.answer:nth-child(4) .facts")
                usage = server.chat("Is it?", max_tokens=40)["usage"]
                whole = "user Is it?assistant Yes.user Well!"
                self.assertEqual(server.metric("stint_prompt_tokens_total"),
                                 2 * usage["prompt_tokens"] + len(whole))
                self.browser.refresh()
                self.wait(".turn.answer:nth-child(4) .facts")
                self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, ".reasoning")), 1)

    def test_a_key_is_asked_for(self):
        with Server(environment={**os.environ, "STINT_API_KEY": KEY}) as server:
            self.browser.get(server.address)
            self.wait("#key-text").send_keys("wrong", Keys.ENTER)
            time.sleep(0.3)
            self.wait("#key-text").send_keys(KEY, Keys.ENTER)
            self.wait("#model strong")


if __name__ == "__main__":
    unittest.main()
