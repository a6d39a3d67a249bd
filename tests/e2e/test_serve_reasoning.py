#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that think aloud, on stint serve: what stands between <think> and </think> comes in
reasoning_content, however tokens cut the marks, and nothing else of a request is about it."""
import json
import pathlib
import tempfile
import unittest

from scripted import write_model
from server import Server, events

SCRIPTS = {
    # thinks, and says so itself
    "A": ["<th", "ink>", "\nI see", ".\n\n", "</thi", "nk>\n", "\nYes, ", "it is."],
    # does not think
    "B": ["No, ", "never <", "think>."],
    # the prompt has opened it
    ">": ["Hm <", "/ b.", " </t", "hink>", "Surely", " so."],
    # thinks about JSON, and would like to say something before it
    "J": ["<thin", "k>{no}", "</thin", "k>\n", "Sure: ", '{"a"'],
    # writes JSON without a thought
    "Q": ['{ "a"'],
    # calls a function
    "T": ["<t", "hink>Call", "</think", ">\n\n", "<tool_c", 'all>{"name": "f", ',
          '"arguments": {}}', "</tool_", "call>"],
    # what follows reasoning that was closed before it began
    "\n": ["Plain", " text."],
}
TEMPLATE = "{# <think> <tool_call> tools #}{{ messages[-1].content }}"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {}, "additionalProperties": False}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {
    "type": "object", "required": ["a"], "additionalProperties": False,
    "properties": {"a": {"enum": [1, 2]}}}}}


class Reasoning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", SCRIPTS, TEMPLATE)
        cls.server = Server("--ctx", "400", model=model).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def chat(self, prompt, **body):
        return self.server.chat(prompt, **{"temperature": 0, "max_tokens": 200, **body})

    def message(self, prompt, **body):
        return self.chat(prompt, **body)["choices"][0]["message"]

    def parts(self, prompt, **body):
        message = self.message(prompt, **body)
        return message.get("reasoning_content"), message["content"]

    def stream(self, prompt, **body):
        status, _, text = self.server.ask("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": prompt}], "temperature": 0, "max_tokens": 200,
            "stream": True, **body})
        self.assertEqual(status, 200, text)
        return events(text)

    def test_reasoning_and_answer_are_told_apart(self):
        self.assertEqual(self.parts("A"), ("I see.", "Yes, it is."))
        self.assertEqual(self.parts("B"), (None, "No, never <think>."))
        self.assertEqual(self.parts("<think>"), ("Hm </ b.", "Surely so."))

    def test_streams_are_the_whole_in_pieces(self):
        for prompt in ("A", "B", "<think>"):
            for n in (1, 3):
                thoughts, texts = [""] * n, [""] * n
                for chunk in self.stream(prompt, n=n):
                    for choice in chunk["choices"]:
                        i, delta = choice["index"], choice["delta"]
                        self.assertFalse(texts[i] and "reasoning_content" in delta)
                        thoughts[i] += delta.get("reasoning_content", "")
                        texts[i] += delta.get("content", "")
                whole = self.parts(prompt)
                self.assertEqual(thoughts, [whole[0] or ""] * n)
                self.assertEqual(texts, [whole[1]] * n)

    def test_stop_texts_are_of_the_answer(self):
        self.assertEqual(self.parts("A", stop=["see", "\n", "is"]), ("I see.", "Yes, it "))
        self.assertEqual(self.parts("A", stop=["think>"]), ("I see.", "Yes, it is."))
        self.assertEqual(self.parts("B", stop=["<thi"]), (None, "No, never "))
        self.assertEqual(self.parts("B", stop=["No"]), (None, ""))

    def test_an_answer_that_is_cut_off_in_its_reasoning(self):
        for n, reasoning in ((2, None), (3, "I see"), (5, "I see.\n\n</thi")):
            answer = self.chat("A", max_tokens=n)
            choice = answer["choices"][0]
            self.assertEqual(choice["finish_reason"], "length")
            self.assertEqual(choice["message"].get("reasoning_content"), reasoning)
            self.assertEqual(choice["message"]["content"], "")
            self.assertEqual(answer["usage"]["completion_tokens_details"], {"reasoning_tokens": n})

    def test_log_probabilities_are_the_answer_s(self):
        for prompt in ("A", "B", "<think>"):
            answer = self.chat(prompt, logprobs=True, top_logprobs=2)
            choice = answer["choices"][0]
            tokens = [token["token"] for token in choice["logprobs"]["content"]]
            self.assertEqual("".join(tokens).lstrip(), choice["message"]["content"])
            usage = answer["usage"]
            self.assertEqual(len(tokens) + usage["completion_tokens_details"]["reasoning_tokens"],
                             usage["completion_tokens"])
            told = [token["token"] for chunk in self.stream(prompt, logprobs=True)
                    for one in chunk["choices"] if one["logprobs"]
                    for token in one["logprobs"]["content"]]
            self.assertEqual(told, tokens)

    def test_a_schema_holds_the_answer_alone(self):
        for prompt, reasoning in (("J", "{no}"), ("A", "I see."), ("<think>", "Hm </ b."),
                                  ("Q", None)):
            got, content = self.parts(prompt, response_format=SCHEMA)
            self.assertEqual(got, reasoning)
            self.assertIn(json.loads(content), ({"a": 1}, {"a": 2}))

    def test_calls(self):
        for choice in ("auto", "required"):
            answer = self.chat("T", tools=TOOLS, tool_choice=choice)["choices"][0]
            self.assertEqual(answer["finish_reason"], "tool_calls")
            self.assertEqual(answer["message"]["reasoning_content"], "Call")
            self.assertIsNone(answer["message"]["content"])
            call, = answer["message"]["tool_calls"]
            self.assertEqual(call["function"], {"name": "f", "arguments": "{}"})
            deltas = [chunk["choices"][0]["delta"]
                      for chunk in self.stream("T", tools=TOOLS, tool_choice=choice)]
            self.assertEqual("".join(d.get("reasoning_content", "") for d in deltas), "Call")
            self.assertEqual("".join(d.get("content", "") for d in deltas), "")
            self.assertEqual([d["tool_calls"][0]["function"]["name"] for d in deltas
                              if "tool_calls" in d], ["f"])

    def test_biases(self):
        """With a schema too; what bans all tokens is refused."""
        ask = {"response_format": SCHEMA, "chat_template_kwargs": {"enable_thinking": False}}
        for digit, other in ((1, 2), (2, 1)):
            content = self.message("Q", **ask, logit_bias={ord(str(digit)): -100})["content"]
            self.assertEqual(json.loads(content), {"a": other})
        status, answer = self.server.post("/v1/completions", prompt="A", logit_bias={
            id: -100 for id in range(256 + sum(map(len, SCRIPTS.values())) + 1)})
        self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))
        self.assertIn("ban all", answer["error"]["message"])

    def test_thinking_can_be_left_out(self):
        self.assertEqual(self.parts("<think>", chat_template_kwargs={"enable_thinking": False}),
                         (None, "Plain text."))
        got, content = self.parts("A", chat_template_kwargs={"enable_thinking": False},
                                  response_format=SCHEMA)
        self.assertIsNone(got)
        self.assertIn(json.loads(content), ({"a": 1}, {"a": 2}))

    def test_a_continuation_is_what_the_model_writes(self):
        answer = self.server.complete("A", temperature=0, max_tokens=60)
        self.assertEqual(answer["choices"][0]["text"], "".join(SCRIPTS["A"]))
        self.assertNotIn("completion_tokens_details", answer["usage"])

    def test_marks_may_be_special_tokens(self):
        scripts = {"?": ["<think>", "So.", "</think>", "\n\nIt", " is."]}
        with tempfile.TemporaryDirectory() as folder:
            model = write_model(pathlib.Path(folder) / "scripted", scripts, TEMPLATE,
                                special=("<think>", "</think>"))
            with Server(model=model) as server:
                for body in ({}, {"tools": TOOLS}):
                    message = server.chat("Is it?", **body)["choices"][0]["message"]
                    self.assertEqual(message["reasoning_content"], "So.")
                    self.assertEqual(message["content"], "It is.")
                message = server.chat("Is it?", max_tokens=200, response_format=SCHEMA)["choices"][
                    0]["message"]
                self.assertEqual(message["reasoning_content"], "So.")
                self.assertIn(json.loads(message["content"]), ({"a": 1}, {"a": 2}))


if __name__ == "__main__":
    unittest.main()
