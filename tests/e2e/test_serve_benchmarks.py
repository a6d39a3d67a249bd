#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clients that measure and score ask for beside an answer: guidellm's requests for texts of a
fixed length with the usage so far, and lm-eval's for the tokenizer."""
import json
import pathlib
import tempfile
import unittest

from scripted import write_model
from server import Server, events

TEMPLATE = "{{ messages[-1].content }}"


class Benchmarks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", {"?": ["Yes, ", "it is."]},
                            TEMPLATE)
        cls.server = Server("--temp", "0", model=model).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def stream(self, path, **body):
        status, _, text = self.server.ask("POST", path, {**body, "stream": True, "stop": None})
        self.assertEqual(status, 200, text)
        return events(text)

    def test_texts_of_a_fixed_length(self):
        message = {"messages": [{"role": "user", "content": "?"}]}
        for path, body, limit in (("/v1/chat/completions", message, "max_completion_tokens"),
                                  ("/v1/completions", {"prompt": "?"}, "max_tokens")):
            ended = self.server.post(path, **body, max_tokens=20)[1]
            self.assertEqual(ended["choices"][0]["finish_reason"], "stop")
            for n in (9, 20):
                status, whole = self.server.post(path, **body, **{limit: n}, ignore_eos=True)
                self.assertEqual((status, whole["choices"][0]["finish_reason"],
                                  whole["usage"]["completion_tokens"]), (200, "length", n))
        for wrong in ({"ignore_eos": 1}, {"ignore_eos": "yes"}):
            status, answer = self.server.post("/v1/completions", prompt="?", **wrong)
            self.assertEqual((status, answer["error"]["param"]), (400, "ignore_eos"))

    def test_the_usage_so_far(self):
        options = {"include_usage": True, "continuous_usage_stats": True}
        for more, n in (({}, 12), ({"n": 2}, 24)):
            found = self.stream("/v1/completions", prompt="?", max_tokens=12, ignore_eos=True,
                                stream_options=options, **more)
            counts = [chunk["usage"]["completion_tokens"] for chunk in found]
            self.assertEqual(counts, sorted(counts))
            self.assertEqual(counts[-1], n)
            self.assertGreater(len(set(counts)), n // 2)
            self.assertEqual(found[-1]["choices"], [])
            self.assertEqual(len({chunk["usage"]["prompt_tokens"] for chunk in found}), 1)
        found = self.stream("/v1/completions", prompt="??", max_tokens=3, echo=True, logprobs=0,
                            ignore_eos=True, stream_options=options)
        self.assertEqual(found[0]["usage"]["completion_tokens"], 0)  # an echo is none
        self.assertEqual(found[-1]["usage"]["completion_tokens"], 3)
        alone = self.stream("/v1/completions", prompt="?", max_tokens=3, ignore_eos=True,
                            stream_options={"continuous_usage_stats": True})
        self.assertTrue(alone[-1]["choices"])
        self.assertEqual(alone[-1]["usage"]["completion_tokens"], 3)
        without = self.stream("/v1/completions", prompt="?", stream_options={"include_usage": True})
        self.assertTrue(all(chunk["usage"] is None for chunk in without[:-1]))

    def test_the_tokenizer(self):
        info = json.loads(self.server.get("/tokenizer_info"))
        self.assertEqual(info["chat_template"], TEMPLATE)
        self.assertEqual(set(info), {"bos_token", "eos_token", "chat_template"})
        status, answer = self.server.post("/tokenize", prompt=info["eos_token"],
                                          add_special_tokens=False)
        self.assertEqual((status, len(answer["tokens"])), (200, 1))


if __name__ == "__main__":
    unittest.main()
