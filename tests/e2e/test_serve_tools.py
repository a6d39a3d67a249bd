#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tool calls of stint serve that the model itself decides on."""
import json
import pathlib
import tempfile
import unittest

from command import MODEL, PROMPT, SOURCE
from scripted import write_model
from server import Server, events

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "required": ["city"], "additionalProperties": False,
    "properties": {"city": {"enum": ["Paris", "Rome"]}}}}}


class BareCalls(unittest.TestCase):
    """A model that writes calls as JSON without its template's marks."""
    answers = {"?": ["Let me ", "see.\n", "```json\n", '{"name": "f", ', '"arguments": {}}',
                     "\n```"],
               "!": ["Plain ", "text", " comes."]}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", cls.answers,
                            "{# <tool_call> tools #}{{ messages[-1].content }}")
        cls.server = Server(model=model).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def ask(self, text, **more):
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0,
                "tools": [{"type": "function", "function": {"name": "f"}}], **more}
        status, _, answer = self.server.ask("POST", "/v1/chat/completions", body)
        self.assertEqual(status, 200, answer)
        return answer

    def test_fenced_json_is_a_call(self):
        choice, = json.loads(self.ask("?"))["choices"]
        call, = choice["message"]["tool_calls"]
        self.assertEqual(call["function"], {"name": "f", "arguments": "{}"})
        self.assertEqual(choice["message"]["content"], "Let me see.")

    def test_text_before_a_call_streams(self):
        deltas = [c["choices"][0]["delta"] for c in events(self.ask("?", stream=True))]
        texts = [d["content"] for d in deltas if d.get("content")]
        self.assertEqual(texts, ["Let me", " see."])
        self.assertEqual(sum("tool_calls" in d for d in deltas), 1)

    def test_text_without_calls_streams(self):
        deltas = [c["choices"][0]["delta"] for c in events(self.ask("!", stream=True))]
        texts = [d["content"] for d in deltas if d.get("content")]
        self.assertEqual("".join(texts), "Plain text comes.")
        self.assertGreater(len(texts), 1)


class Tools(unittest.TestCase):
    """The bundled model with a chat template that knows of tools."""
    tools = [WEATHER]

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = pathlib.Path(folder.name)
        jinja = (SOURCE / "tests" / "chat" / "golden" / "hermes-2-pro.jinja").read_text("utf-8")
        for file in MODEL.iterdir():
            if file.name != "tokenizer_config.json":
                (model / file.name).symlink_to(file)
        config = json.loads((MODEL / "tokenizer_config.json").read_text(encoding="utf-8"))
        (model / "tokenizer_config.json").write_text(
            json.dumps({**config, "chat_template": jinja}), encoding="utf-8")
        cls.server = Server(model=model).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def test_tools_that_are_not_called(self):
        body = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 8,
                "temperature": 0, "tools": self.tools}
        _, answer = self.server.post("/v1/chat/completions", **body)
        _, _, text = self.server.ask("POST", "/v1/chat/completions", {**body, "stream": True})
        streamed = "".join(c["choices"][0]["delta"].get("content", "") for c in events(text))
        self.assertEqual(streamed, answer["choices"][0]["message"]["content"])
        _, none = self.server.post("/v1/chat/completions", **{**body, "tool_choice": "none"})
        self.assertLess(none["usage"]["prompt_tokens"], answer["usage"]["prompt_tokens"])

    def test_a_call_and_its_result_go_back(self):
        user = {"role": "user", "content": "Will it rain?"}
        choice, = self.server.chat("Will it rain?", seed=1, max_tokens=100, tools=self.tools,
                                   tool_choice="required")["choices"]
        call, = choice["message"]["tool_calls"]
        for content in ("yes", [{"type": "text", "text": "yes"}]):
            status, answer = self.server.post(
                "/v1/chat/completions", max_tokens=4, tools=self.tools,
                messages=[user, choice["message"],
                          {"role": "tool", "tool_call_id": call["id"], "content": content}])
            self.assertEqual(status, 200, answer)


if __name__ == "__main__":
    unittest.main()
