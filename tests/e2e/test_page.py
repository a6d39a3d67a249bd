#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of stint serve in a browser: asking and answering, the device, and trouble. More of it
is in test_page_history.py, test_page_text.py and test_page_looks.py."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from page import GREEDY, Browsing, Keys, Reader
from command import COMMAND, MODEL, PROMPT
from scripted import write_model
from server import KEY, Server

LONG = " ".join([PROMPT] * 9)


class Page(Browsing):
    options = ("--npu-threads", 1, "--cpu-threads", 1, "--chunk", 16, "--schedule", "uniform:4")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = f"{cls.folder.name}/novels.stint"
        subprocess.run([COMMAND, "prepare", MODEL, "-o", cls.model, "--calib-tokens", "300",
                        "--bits", "2..4"], check=True, capture_output=True)
        super().setUpClass()

    def wanted(self, *messages, **settings):
        roles = ["user", "assistant"]
        talk = [{"role": roles[i % 2], "content": text} for i, text in enumerate(messages)]
        _, answer = self.server.post("/v1/chat/completions", messages=talk,
                                     **{**GREEDY, **settings})
        return answer["choices"][0]["message"]["content"]

    def used(self):
        """Tokens of the context, as the meter below the field says them."""
        said = re.match(r"[\d,]*", self.find("#context-text").text).group()
        return int(said.replace(",", "") or 0)

    def stop(self):
        """An answer that comes fast, or a slow browser: it must not end before the click."""
        with self.server.held():
            self.find("#stop").click()

    def assert_says(self, shown, wanted):
        """The page draws paragraphs: blanks may differ, words may not."""
        self.assertEqual(shown.split(), wanted.split())

    # ---- the chat

    def test_send_and_stream(self):
        self.say(PROMPT)
        self.assert_says(self.answered(2), self.wanted(PROMPT))
        self.assertIn("24 tokens", self.find(".facts").text)
        self.assertFalse(self.find("#thinking").is_displayed())  # the template knows no reasoning
        self.shot("chat-light")

    def test_text_grows_as_it_comes_and_stops(self):
        self.set_up({"temperature": 0, "max_tokens": 1800})
        self.say(PROMPT)
        grown = self.wait(lambda: self.find(".turn.answer.growing .text"))
        with self.server.held():
            first, used = len(grown.text), self.used()
        self.wait(lambda: len(grown.text) > first and self.used() > used)
        self.stop()
        self.answered(2)
        self.assertIn("Stopped", self.find(".turn.answer .note").text)
        self.server.wait(lambda health: health["busy"] == 0)
        self.say("And then?")
        self.wait(lambda: self.find(".turn.answer.growing"))
        self.stop()
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
        before = self.texts()
        self.click(".turn.user button[aria-label^=Edit]")
        area = self.find(".turn.user textarea")
        area.clear()
        area.send_keys("The old man said", Keys.ENTER)
        self.assert_says(self.answered(2), self.wanted("The old man said"))
        self.assertEqual(self.texts()[0], "The old man said")
        self.click("button[aria-label='Answer again']")
        self.assert_says(self.answered(2), self.wanted("The old man said"))
        self.assertEqual([node.text for node in self.all(".versions span") if node.is_displayed()],
                         ["2/2", "2/2"])
        self.click(".turn.user button[aria-label='Previous version']")
        self.assertEqual(self.texts(), before)
        self.browser.refresh()
        self.wait(lambda: self.texts() == before)
        self.click(".turn.user button[aria-label='Next version']")
        self.assertEqual(self.texts()[0], "The old man said")
        self.click(".turn.answer button[aria-label='Previous version']")
        self.assertFalse(self.find(".turn.answer [aria-label='Previous version']").is_enabled())
        self.assertEqual(len(self.kept()[0]["messages"]), 7)

    def test_a_conversation_is_sent_whole(self):
        self.say(PROMPT)
        self.answered(2)
        kept = self.kept()[0]["messages"][1]["text"]
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
        saved = {part.text.split("\n")[0]: part.text for part in self.all(".saved > div")}
        self.assertIn("50 %\n4 bits of each weight", saved["Fewer bits"])
        drafted = f"{last['accepted_tokens']} of {last['drafted_tokens']} token"
        self.assertIn(drafted if last["drafted_tokens"] else "nothing", saved["Drafts"])
        units = {"cpu": "INT8 units", "amx": "AMX units"}[last["device"]]
        self.assertEqual([node.text for node in self.all(".names strong")], [units, "Float units"])
        self.assertNotIn("NPU", self.find("#view-device").text)
        self.shot("device-light")
        self.find(".lanes").send_keys(Keys.ARROW_RIGHT)
        self.assertRegex(self.find(".timeline + .readout").text,
                         r"(INT8|AMX|Float) units, .*layer \d+")
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


class Trouble(Reader):
    def test_a_server_that_is_gone(self):
        with Server() as server:
            self.browser.get(server.address)
            self.shown("#model strong")
        self.say(PROMPT)
        self.assertIn("cannot be reached", self.shown(".turn.answer .error").text)
        self.shown(".turn.answer .retry")

    def test_a_full_queue(self):
        with Server("--slots", 1, "--queue", 0) as server:
            self.browser.get(server.address)
            self.shown("#model strong")
            other = server.open_stream(prompt=PROMPT, max_tokens=1900, temperature=0)
            server.wait(lambda health: health["busy"] == 1)
            self.say(PROMPT)
            error = self.shown(".turn.answer .error")
            self.assertIn("busy", error.text)
            other.close()
            server.wait(lambda health: health["busy"] == 0)
            self.click(".turn.answer .retry")
            self.shown(".turn.answer .text p")

    def test_reasoning_is_folded_and_not_sent_back(self):
        """The script goes by the prompt's last letter, and the template shows what was sent."""
        scripts = {"?": ["<thi", "nk>", "- So", " **it** is.", "</think", ">\n", "\nYes."],
                   "!": ["You ", "see."]}
        template = "{# <think> #}{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}"
        with tempfile.TemporaryDirectory() as folder:
            model = write_model(pathlib.Path(folder) / "scripted", scripts, template)
            with Server(model=model) as server:
                self.browser.get(server.address)
                self.shown("#model strong")
                self.say("Is it?")
                self.assertEqual(self.shown(".turn.answer .text p").text, "Yes.")
                thoughts = self.find(".reasoning .thoughts")
                self.assertFalse(thoughts.is_displayed())
                summary = self.shown(".reasoning summary")
                self.assertEqual(summary.accessible_name, "Reasoning")
                summary.send_keys(Keys.ENTER)
                self.assertEqual(self.shown(".reasoning .thoughts li").text, "So it is.")
                self.shot("reasoning")
                self.shown(".turn.answer .facts")
                self.say("Well!")
                self.shown(".turn.answer:nth-child(4) .facts")
                usage = server.chat("Is it?", max_tokens=40)["usage"]
                whole = "user Is it?assistant Yes.user Well!"
                self.assertEqual(server.metric("stint_prompt_tokens_total"),
                                 2 * usage["prompt_tokens"] + len(whole))
                self.browser.refresh()
                self.shown(".turn.answer:nth-child(4) .facts")
                self.assertEqual(len(self.all(".reasoning")), 1)

    def test_the_switch_for_reasoning(self):
        """The template says by its last letter what was asked for, and the script goes by it."""
        scripts = {"?": ["As ", "ever."], "+": ["Thou", "ght."], "-": ["At o", "nce."]}
        template = "{# <think> #}{% for m in messages %}{{ m.content }}{% endfor %}" \
            "{% if enable_thinking is defined %}{{ '+' if enable_thinking else '-' }}{% endif %}"
        with tempfile.TemporaryDirectory() as folder:
            model = write_model(pathlib.Path(folder) / "scripted", scripts, template)
            with Server(model=model) as server:
                self.browser.get(server.address)
                for i, (choice, text) in enumerate((("", "As ever."), ("Thinks first", "Thought."),
                                                    ("Answers at once", "At once."))):
                    self.shown("#thinking").send_keys(choice)
                    self.say("Is it?")
                    self.assertEqual(self.answered(2 * i + 2), text)
                self.browser.refresh()
                self.wait(lambda: self.find("#thinking").get_attribute("value") == "off")

    def test_a_model_is_chosen_and_another_one_goes_on(self):
        """Two models that say who they are; a conversation remembers which one answers."""
        template = "{{ messages[-1].content }}"
        with tempfile.TemporaryDirectory() as folder:
            for name in ("first", "second"):
                write_model(pathlib.Path(folder) / name, {"?": ["The ", f"{name} one."]}, template)
            with Server(model=folder) as server:
                self.browser.get(server.address)
                for i, name in enumerate(("second", "first")):
                    self.shown("#model-choice").send_keys(name)
                    self.say("Who?")
                    self.assertEqual(self.answered(2 * i + 2), f"The {name} one.")
                    self.assertIn(name, self.all(".facts")[-1].text)
                self.assertEqual(self.texts()[1], "The second one.")
                self.browser.refresh()
                self.wait(lambda: self.shown("#model-choice").get_attribute("value") == "first")
                states = {model["id"]: model["stint"]["state"]
                          for model in json.loads(server.get("/v1/models"))["data"]}
                self.assertEqual(states, {"first": "loaded", "second": "loaded"})

    def test_a_key_is_asked_for(self):
        with Server(environment={**os.environ, "STINT_API_KEY": KEY}) as server:
            self.browser.get(server.address)
            self.shown("#key-text").send_keys("wrong", Keys.ENTER)
            self.wait(lambda: self.find("#key-text").get_attribute("value") == "")
            self.shown("#key-text").send_keys(KEY, Keys.ENTER)
            self.shown("#model strong")


if __name__ == "__main__":
    unittest.main()
