#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of stint serve on screens of several sizes, light and dark, by keyboard, and under
axe-core, which looks for barriers to readers with disabilities (scripts/bootstrap browser)."""
import json
import os
import pathlib
import unittest

from page import GREEDY, Browsing, Keys, conversation
from command import PROMPT
from test_page_text import RICH

AXE = next((pathlib.Path(os.environ["STINT_SOURCE_DIR"]) / "build/axe").rglob("axe.min.js"), None)
LONG = " ".join([PROMPT] * 9)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """
const [tags, done] = arguments;
axe.run(document, {runOnly: tags}).then(
  ({violations, passes}) => done([violations.map(({id, nodes}) => [id, nodes.map(
    ({html, failureSummary}) => `${html} ${failureSummary}`)]), passes.length]),
  (error) => done([[["axe", [`${error}`]]], 0]));
"""


class Looks(Browsing):
    options = ("--chunk", 16)

    def tearDown(self):
        self.screen(1280, 800)
        super().tearDown()

    def talk(self, name, width, height, dark):
        """A conversation and its device view; the screenshots are for people to look at."""
        self.screen(width, height, dark)
        self.set_up({**GREEDY, "max_tokens": 60},
                    conversation("rich", "Show me all.", RICH, changed=2),
                    conversation("other", "Another one?", "Yes."), opened="rich")
        self.wait(lambda: self.find(".hljs-keyword") and self.find("math"))
        self.shot(f"text-{name}")
        self.browser.execute_script("document.getElementById('scroller').scrollTop = 0")
        self.shot(f"text-top-{name}")
        self.check(name)
        self.find("#new-chat").click()
        self.shot(f"empty-{name}")
        self.say(LONG)
        self.answered(2)
        self.shot(f"chat-{name}")
        self.find("#to-device").click()
        self.shown(".saved")
        self.shot(f"device-{name}")
        self.check(name)
        self.find("#to-chat").click()
        self.assertEqual(self.browser.execute_script(
            "return document.documentElement.dataset.theme"), "dark" if dark else "light")

    def check(self, name):
        """Nothing is wider than the screen, and axe-core finds nothing."""
        wide = self.browser.execute_script(
            "return [document.documentElement, ...document.querySelectorAll('.scroller')]"
            ".filter((node) => node.scrollWidth > node.clientWidth).length")
        self.assertEqual(wide, 0, name)
        if AXE:
            self.browser.execute_script(AXE.read_text(encoding="utf-8"))
            violations, passes = self.browser.execute_async_script(RUN, RULES)
            self.assertEqual(violations, [], f"{name}: {json.dumps(violations, indent=1)}")
            self.assertGreater(passes, 20)

    def test_desktop(self):
        self.talk("light", 1280, 800, False)

    def test_dark(self):
        self.talk("dark", 1280, 800, True)

    def test_phone(self):
        self.talk("phone", 390, 844, False)

    def test_phone_in_the_dark(self):
        self.talk("phone-dark", 390, 844, True)
        self.find("#open-history").click()
        self.shown("#drawer #search")
        self.check("drawer")
        self.shot("drawer-phone-dark")
        self.click("[aria-label='More for Another one?']")
        self.shot("menu-phone-dark")
        self.focused().send_keys(Keys.ESCAPE)
        self.click("#conversations li:last-child .open")
        self.assertFalse(self.find("#drawer").is_displayed())
        self.assertEqual(self.texts(), ["Another one?", "Yes."])

    def test_dialogs_and_menus(self):
        self.set_up(GREEDY, conversation("one", "One?", "Yes."), opened="one")
        self.find("#open-settings").click()
        self.check("settings")
        self.find("#settings-cancel").click()
        self.click("[aria-label='More for One?']")
        self.check("menu")
        self.shot("menu-light")
        self.click("#menu-discard")
        self.check("undo")
        self.shot("undo-light")

    def test_the_meter_counts_the_context(self):
        self.say(PROMPT)
        self.answered(2)
        answer = self.wait(lambda: [message for message in self.kept()[0]["messages"]
                                    if message.get("state") == "length"])
        used = answer[0]["used"]
        last = json.loads(self.server.get("/stint/last"))
        self.assertEqual(used, last["prompt_tokens"] + last["generated_tokens"])
        self.wait(lambda: self.find("#context-text").text == f"{used} of 2,048 tokens")
        self.find("#prompt").send_keys("And then?")
        _, counted = self.server.post("/tokenize", content="And then?")
        wanted = f"{used + len(counted['tokens'])} of 2,048 tokens"
        self.wait(lambda: self.find("#context-text").text == wanted)
        meter = self.find("#context-meter")
        self.assertEqual(meter.get_attribute("aria-valuetext"), wanted)
        self.browser.execute_script("const prompt = document.getElementById('prompt');"
                                    "prompt.value += 'x y '.repeat(1500);"
                                    "prompt.dispatchEvent(new Event('input'))")
        self.wait(lambda: "too long" in self.find("#context-text").text)
        self.shot("context-full")

    def test_the_meter_forgets_what_was_sent(self):
        """The tokens of a prompt are counted after its answer is there: they count once."""
        self.browser.execute_script(
            "const real = window.fetch; window.held = 0; window.settled = false;"
            "window.fetch = async (what, options) => {"
            "  if (!String(what).endsWith('tokenize')) return real(what, options);"
            "  held++;"
            "  await new Promise((resolve) => window.release = resolve);"
            "  try { return await real(what, options); }"
            "  finally { setTimeout(() => window.settled = true, 100); }"
            "};")
        self.find("#prompt").send_keys(PROMPT)
        self.wait(lambda: self.browser.execute_script("return held"))
        self.find("#prompt").send_keys(Keys.ENTER)
        self.answered(2)
        answer = self.wait(lambda: [message for message in self.kept()[0]["messages"]
                                    if message.get("state") == "length"])
        self.browser.execute_script("release()")
        self.wait(lambda: self.browser.execute_script("return settled"))
        self.assertEqual(self.find("#context-text").text, f"{answer[0]['used']} of 2,048 tokens")

    def test_the_keyboard_is_enough(self):
        self.find("body").send_keys(Keys.TAB)
        self.assertIn("skip", self.focused().get_attribute("class"))
        self.tab_to("open-settings")
        self.focused().send_keys(Keys.ENTER)
        self.wait(lambda: self.find("dialog[open]"))
        self.focused().send_keys(Keys.ESCAPE)
        self.wait(lambda: not self.find("dialog[open]"))
        self.tab_to("prompt")
        self.focused().send_keys("First", Keys.SHIFT + Keys.ENTER)
        self.focused().send_keys("Second", Keys.ENTER)
        self.answered(2)
        self.assertEqual(self.texts()[0], "First\nSecond")
        self.assertEqual(self.focused().get_attribute("id"), "prompt")

    def tab_to(self, name):
        for _ in range(40):
            if self.focused().get_attribute("id") == name:
                return
            self.focused().send_keys(Keys.TAB)
        self.fail(f"{name} is not reached by the Tab key")


if __name__ == "__main__":
    if not AXE:
        print("skipped: no axe-core: scripts/bootstrap browser installs it")
    unittest.main()
