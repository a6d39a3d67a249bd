#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conversations that the page of stint serve keeps, in a browser: list, search, rename, delete
and undo, export and import, two tabs."""
import json
import pathlib
import tempfile
import unittest

from page import GREEDY, Browsing, Keys, conversation
from command import PROMPT

BRIDGES = conversation("bridges", "How long is a bridge?", "It depends on the river.", changed=3)
NAMED = conversation("named", "Is tea warm?", "Mostly.", title="About tea", changed=2)
OLD = conversation("old", "Who was Fagin?", "A man of London.", changed=1)


class History(Browsing):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.downloads = pathlib.Path(folder.name)
        super().setUpClass()

    def setUp(self):
        self.set_up(GREEDY, BRIDGES, NAMED, OLD)
        self.wait(lambda: len(self.titles()) == 3)

    def titles(self):
        return [node.text for node in self.all("#conversations .title")]

    def menu(self, title, entry):
        self.click(f"[aria-label='More for {title}']")
        self.click(f"#menu-{entry}")

    def downloaded(self, name):
        path = self.downloads / name
        return self.wait(lambda: path.exists() and path.read_text(encoding="utf-8"))

    def close_but(self, window):
        for other in self.browser.window_handles:
            if other != window:
                self.browser.switch_to.window(other)
                self.browser.close()
        self.browser.switch_to.window(window)

    def test_newest_first_and_each_opens(self):
        self.assertEqual(self.titles(), ["How long is a bridge?", "About tea", "Who was Fagin?"])
        self.assertEqual(self.texts(), [])
        self.all("#conversations .open")[1].click()
        self.assertEqual(self.texts(), ["Is tea warm?", "Mostly."])
        self.assertEqual(self.find("#conversations [aria-current=true] .title").text, "About tea")
        self.browser.refresh()
        self.wait(lambda: self.texts() == ["Is tea warm?", "Mostly."])

    def test_a_new_one_comes_first_and_nothing_is_discarded(self):
        self.say(PROMPT)
        self.answered(2)
        self.assertEqual(self.titles(), [PROMPT, "How long is a bridge?", "About tea",
                                         "Who was Fagin?"])
        self.find("#new-chat").click()
        self.assertEqual(self.texts(), [])
        self.assertEqual(len(self.titles()), 4)
        self.assertEqual(len(self.kept()), 4)

    def test_search_finds_titles_and_texts(self):
        for words, found in (("tea", ["About tea"]), ("LONDON man", ["Who was Fagin?"]),
                             ("nowhere", [])):
            self.find("#search").clear()
            self.find("#search").send_keys(words)
            self.wait(lambda found=found: self.titles() == found)
        self.assertEqual(self.find("#history-note").text, "0 conversations found.")

    def test_rename(self):
        self.menu("About tea", "rename")
        field = self.focused()
        self.assertEqual(field.accessible_name, "New title")
        field.send_keys("Coffee", Keys.ENTER)
        self.wait(lambda: "Coffee" in self.titles())
        self.menu("Coffee", "rename")
        self.focused().send_keys("Milk", Keys.ESCAPE)
        self.wait(lambda: "Coffee" in self.titles())
        self.wait(lambda: "Coffee" in [one["title"] for one in self.kept()])

    def test_delete_and_undo(self):
        self.all("#conversations .open")[1].click()
        self.menu("About tea", "discard")
        self.wait(lambda: len(self.titles()) == 2)
        self.wait(lambda: len(self.kept()) == 2)
        self.assertEqual(self.texts(), [])
        self.assertEqual(self.focused().text, "Undo")
        self.focused().send_keys(Keys.ENTER)
        self.wait(lambda: len(self.titles()) == 3)
        self.wait(lambda: len(self.kept()) == 3)
        self.assertEqual(self.find("#undo").text, "")

    def test_export_and_import(self):
        self.menu("About tea", "export-text")
        self.assertEqual(self.downloaded("About tea.md"),
                         "# About tea\n\n## You\n\nIs tea warm?\n\n## Answer\n\nMostly.\n")
        self.find("#export-all").click()
        whole = json.loads(self.downloaded("stint conversations.json"))
        self.assertEqual({one["id"] for one in whole["conversations"]}, {"bridges", "named", "old"})
        self.set_up(GREEDY)
        self.assertEqual(self.titles(), [])
        self.find("#import-file").send_keys(str(self.downloads / "stint conversations.json"))
        self.wait(lambda: len(self.titles()) == 3)
        self.wait(lambda: len(self.kept()) == 3)
        self.assertEqual(self.kept()[0]["messages"], BRIDGES["messages"])

    def test_files_of_others_are_refused(self):
        hostile = [{"id": "x", "messages": [{"id": "a", "parent": "a", "role": "user", "text": "t"},
                                            {"id": "b", "parent": None, "role": "admin"}, 7, None]}]
        kind = "stint conversations"
        for i, (text, said) in enumerate((
                ("{", "no conversations of stint"), ("[]", "no conversations of stint"),
                (json.dumps({"kind": kind, "conversations": [3, {}]}), "0 conversations"),
                (json.dumps({"kind": kind, "conversations": hostile}), "1 conversation"))):
            path = self.downloads / f"other{i}.json"
            path.write_text(text, encoding="utf-8")
            self.find("#import-file").send_keys(str(path))
            self.wait(lambda said=said: said in self.find("#history-note").text)
        self.wait(lambda: "New chat" in self.titles())  # of the last one nothing could be used

    def test_an_answer_goes_on_while_another_one_is_read(self):
        self.set_up({"temperature": 0, "max_tokens": 200}, NAMED)
        self.say(PROMPT)
        self.wait(lambda: self.find(".turn.answer.growing"))
        self.click("#conversations li:nth-child(2) .open")
        self.assertEqual(self.texts(), ["Is tea warm?", "Mostly."])
        self.wait(lambda: "is being answered" not in self.find("#conversations").text)
        self.click("#conversations li:first-child .open")
        self.answered(2)
        self.assertIn("200 tokens", self.find(".facts").text)

    def test_two_tabs_keep_what_both_say(self):
        self.click("#conversations li:nth-child(2) .open")
        first = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.addCleanup(self.close_but, first)
        self.browser.get(self.server.address)
        self.wait(lambda: len(self.titles()) == 3)
        self.click("#conversations li:nth-child(2) .open")
        self.say(PROMPT)
        self.answered(4)
        self.browser.switch_to.window(first)
        self.wait(lambda: len(self.texts()) == 4)  # told by the other tab
        self.say("Why?")
        self.answered(6)
        self.wait(lambda: [len(one["messages"]) for one in self.kept()
                           if one["id"] == "named"] == [6])

    def test_what_an_older_page_kept_is_taken_over(self):
        self.browser.get(f"{self.server.address}/health")
        self.keep("conversation", [{"role": "user", "text": "Before?"},
                                   {"role": "assistant", "text": "After.", "state": "done"}])
        self.browser.get(self.server.address)
        self.wait(lambda: self.titles()[:1] == ["Before?"])
        self.click("#conversations .open")
        self.assertEqual(self.texts(), ["Before?", "After."])
        self.assertIsNone(self.browser.execute_script(
            "return localStorage.getItem('stint.conversation')"))


if __name__ == "__main__":
    unittest.main()
