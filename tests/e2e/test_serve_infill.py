#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is between two texts (/infill, `suffix`), and answers that continue what the assistant has
begun, on a model whose answers are written beforehand."""
import json
import pathlib
import tempfile
import unittest

from command import MODEL
from scripted import write_model
from server import Server, Shared

MARKS = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"]
SCRIPT = {
    "#": [*MARKS[:3], "mid", "dle", MARKS[3], "unseen"],
    "~": ["it ", "is."],
}
TEMPLATE = "{# <think> #}{{ messages[-1].content }}"


class Infill(Shared):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", SCRIPT, TEMPLATE, MARKS)
        cls.server = Server("--temp", "0", model=model).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def test_suffix(self):
        answer = self.server.complete("ab", suffix="cde", max_tokens=9)
        choice, = answer["choices"]
        self.assertEqual((choice["text"], choice["finish_reason"]), ("middle", "stop"))
        self.assertEqual(answer["usage"]["prompt_tokens"], 2 + 3 + 3)
        text = self.stream("/v1/completions", prompt="ab", suffix="cde", max_tokens=9)
        self.assertEqual("".join(part["choices"][0]["text"] for part in text), "middle")
        cut = self.server.complete("ab", suffix="cde", max_tokens=1)["choices"][0]
        self.assertEqual((cut["text"], cut["finish_reason"]), ("mid", "length"))

    def test_infill(self):
        body = {"input_prefix": "def f(", "prompt": "x", "input_suffix": ")", "n_predict": 9,
                "id_slot": 0, "cache_prompt": True}
        status, answer = self.server.post("/infill", **body)
        self.assertEqual((status, answer["content"], answer["stop_type"]), (200, "middle", "eos"))
        self.assertEqual(answer["tokens_evaluated"], 6 + 1 + 1 + 3)
        status, _, text = self.server.ask("POST", "/infill", {**body, "stream": True})
        parts = [json.loads(line[6:]) for line in text.decode().splitlines() if line]
        self.assertEqual((status, "".join(part["content"] for part in parts)), (200, "middle"))
        self.assertEqual([part["stop"] for part in parts], [False] * (len(parts) - 1) + [True])

    def test_refused_infill(self):
        for body, named in (({"input_extra": [{"text": "a"}]}, "input_extra"),
                            ({"made_up": 1}, "made_up"), ({"input_suffix": 1}, "input_suffix")):
            self.assertEqual(self.refused("/infill", **body)["param"], named)
        for body, named in (({"prompt": ["a", "b"], "suffix": "c"}, "suffix"),
                            ({"prompt": "a", "suffix": 1}, "suffix"),
                            ({"prompt": "a", "suffix": "b", "echo": True}, "echo")):
            self.assertEqual(self.refused("/v1/completions", **body)["param"], named)
        with Server(model=MODEL) as other:
            status, answer = other.post("/v1/completions", prompt="a", suffix="b")
            self.assertEqual((status, answer["error"]["param"]), (400, "suffix"))

    def begun(self, text="Yes~", **more):
        return {"messages": [{"role": "user", "content": "?"},
                             {"role": "assistant", "content": text}],
                "continue_final_message": True, "max_tokens": 9, **more}

    def test_begun_answers(self):
        path = "/v1/chat/completions"
        status, answer = self.server.post(path, **self.begun(add_generation_prompt=False))
        self.assertEqual((status, answer["choices"][0]["message"]["content"]), (200, "it is."))
        parts = self.stream(path, **self.begun())
        self.assertEqual("".join(part["choices"][0]["delta"].get("content", "")
                                 for part in parts), "it is.")
        messages = self.begun()["messages"]
        status, answer = self.server.post("/v1/messages", max_tokens=9, messages=messages)
        self.assertEqual((status, answer["content"][0]["text"]), (200, "it is."))
        blocks = [messages[0], {"role": "assistant",
                                "content": [{"type": "text", "text": "Yes~"}]}]
        status, answer = self.server.post("/v1/messages", max_tokens=9, messages=blocks)
        self.assertEqual((status, answer["content"][0]["text"]), (200, "it is."))
        status, answer = self.server.post("/api/chat", model="scripted", stream=False,
                                          messages=messages)
        self.assertEqual((status, answer["message"]["content"]), (200, "it is."))

    def test_refused_beginnings(self):
        path = "/v1/chat/completions"
        for more, named in (({"add_generation_prompt": True}, "add_generation_prompt"),
                            ({"messages": [{"role": "user", "content": "?"}]},
                             "continue_final_message"),
                            ({"response_format": {"type": "json_object"}},
                             "continue_final_message"),
                            ({"continue_final_message": 1}, "continue_final_message")):
            self.assertEqual(self.refused(path, **self.begun(**more))["param"], named)
        only = {"messages": [{"role": "user", "content": "?"}], "add_generation_prompt": False}
        self.assertEqual(self.refused(path, **only)["param"], "add_generation_prompt")


if __name__ == "__main__":
    unittest.main()
