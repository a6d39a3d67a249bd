#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's own Python client, unmodified, against stint serve. Needs the package `openai`, which
`scripts/bootstrap clients` puts into build/venv; skips itself without."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["STINT_SOURCE_DIR"])
VENV = SOURCE / "build" / "venv" / "bin" / "python"

try:
    import openai
except ImportError:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print("no package 'openai': scripts/bootstrap clients installs it into build/venv")
    sys.exit(77)

# pylint: disable=wrong-import-position
from command import PROMPT, stint_json
from scripted import write_model
from server import KEY, Server

MODEL = "novels-10m"
USER = [{"role": "user", "content": PROMPT}]
WHO = {"type": "object", "additionalProperties": False, "required": ["name", "old"],
       "properties": {"name": {"type": "string", "enum": ["Oliver", "Fagin"]},
                      "old": {"type": "boolean"}}}
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "Tells the weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"], "additionalProperties": False}}}


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(environment={**os.environ, "STINT_API_KEY": KEY}).__enter__()
        cls.addClassCleanup(cls.server.__exit__)
        cls.client = openai.OpenAI(base_url=cls.server.address + "/v1", api_key=KEY, max_retries=0)
        cls.addClassCleanup(cls.client.close)

    def chat(self, **options):
        return self.client.chat.completions.create(model=MODEL, **{"messages": USER, **options})

    def complete(self, **options):
        return self.client.completions.create(model=MODEL, **{"prompt": PROMPT, **options})

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).owned_by, "stint")

    def test_chat(self):
        answer = self.chat(max_tokens=8, temperature=0)
        choice, = answer.choices
        self.assertEqual((choice.message.role, choice.finish_reason), ("assistant", "length"))
        self.assertTrue(choice.message.content)
        self.assertEqual(answer.usage.completion_tokens, 8)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 8)

    def test_streams_are_the_whole_in_pieces(self):
        for n in (1, 2):
            whole = self.chat(max_tokens=12, seed=1, n=n)
            texts, ends, usage = [""] * n, [None] * n, None
            for chunk in self.chat(max_tokens=12, seed=1, n=n, stream=True,
                                   stream_options={"include_usage": True}):
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    texts[choice.index] += choice.delta.content or ""
                    ends[choice.index] = choice.finish_reason or ends[choice.index]
            self.assertEqual(texts, [choice.message.content for choice in whole.choices])
            self.assertEqual(ends, ["length"] * n)
            self.assertEqual(usage.completion_tokens, 12 * n)

    def test_completions_and_their_stream(self):
        whole = self.complete(max_tokens=12, temperature=0).choices[0].text
        stream = self.complete(max_tokens=12, temperature=0, stream=True)
        self.assertEqual("".join(chunk.choices[0].text for chunk in stream), whole)

    def test_two_choices_differ(self):
        one, two = self.chat(max_tokens=16, n=2, seed=5).choices
        self.assertNotEqual(one.message.content, two.message.content)

    def test_stop(self):
        text = self.complete(max_tokens=24, temperature=0).choices[0].text
        choice, = self.complete(max_tokens=24, temperature=0, stop=[text[8:12]]).choices
        self.assertEqual(choice.text, text[:text.index(text[8:12])])
        self.assertEqual(choice.finish_reason, "stop")

    def test_seeds_decide(self):
        def text(seed):
            return self.chat(max_tokens=16, seed=seed).choices[0].message.content
        self.assertEqual(text(3), text(3))
        self.assertNotEqual(text(3), text(4))
        self.assertEqual(self.chat(max_tokens=1).system_fingerprint,
                         self.chat(max_tokens=1).system_fingerprint)

    def test_logprobs(self):
        choice, = self.chat(max_tokens=5, temperature=0, logprobs=True, top_logprobs=3).choices
        tokens = choice.logprobs.content
        self.assertEqual("".join(token.token for token in tokens), choice.message.content)
        for token in tokens:
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual(token.top_logprobs[0].token, token.token)
            self.assertLess(token.logprob, 0)
        told = self.complete(max_tokens=5, temperature=0, logprobs=2).choices[0].logprobs
        self.assertEqual(len(told.tokens), 5)
        self.assertEqual(len(told.top_logprobs[0]), 2)

    def test_json_schema(self):
        answer = self.chat(max_tokens=400, seed=1, response_format={
            "type": "json_schema", "json_schema": {"name": "who", "strict": True, "schema": WHO}})
        value = json.loads(answer.choices[0].message.content)
        self.assertIn(value["name"], ("Oliver", "Fagin"))
        self.assertIsInstance(value["old"], bool)

    def test_tool_call_and_its_stream(self):
        options = {"max_tokens": 400, "seed": 1, "tools": [WEATHER], "tool_choice": "required"}
        choice, = self.chat(**options).choices
        call, = choice.message.tool_calls
        self.assertEqual((call.type, call.function.name), ("function", "weather"))
        self.assertIn(json.loads(call.function.arguments)["city"], ("Paris", "Rome"))
        self.assertEqual(choice.finish_reason, "tool_calls")
        arguments = "".join(delta.function.arguments or ""
                            for chunk in self.chat(**options, stream=True)
                            for delta in chunk.choices[0].delta.tool_calls or [])
        self.assertEqual(arguments, call.function.arguments)

    def test_logit_bias(self):
        word = self.chat(max_tokens=1, temperature=0, logprobs=True).choices[0].logprobs.content[0]
        one, = stint_json("tokenize", SOURCE / "models" / MODEL, text=word.token)["ids"]
        tokens = self.chat(max_tokens=8, temperature=0, logprobs=True,
                           logit_bias={str(one): -100}).choices[0].logprobs.content
        self.assertNotIn(word.token, [token.token for token in tokens])

    def test_reasoning(self):
        """The field that OpenAI's package does not know and hands on."""
        with tempfile.TemporaryDirectory() as folder:
            model = write_model(pathlib.Path(folder) / "scripted", {
                "?": ["<thin", "k>Is ", "it?</th", "ink>", "\nYes, ", "it is."]},
                "{# <think> #}{{ messages[-1].content }}")
            with Server(model=model) as server, openai.OpenAI(
                    base_url=server.address + "/v1", api_key="none", max_retries=0) as client:
                ask = {"model": "scripted", "messages": [{"role": "user", "content": "Is it?"}]}
                answer = client.chat.completions.create(**ask)
                message = answer.choices[0].message
                self.assertEqual((message.reasoning_content, message.content),
                                 ("Is it?", "Yes, it is."))
                self.assertEqual(answer.usage.completion_tokens_details.reasoning_tokens, 4)
                thoughts = text = ""
                for chunk in client.chat.completions.create(**ask, stream=True):
                    delta = chunk.choices[0].delta
                    thoughts += getattr(delta, "reasoning_content", None) or ""
                    text += delta.content or ""
                self.assertEqual((thoughts, text), ("Is it?", "Yes, it is."))

    def test_errors_become_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=3)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.chat.completions.create(model="gpt-4", messages=USER)
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-4")
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.client.with_options(api_key="wrong").models.list()
        self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_a_full_queue_is_a_rate_limit(self):
        with Server("--slots", "1", "--queue", "0") as server:
            busy = server.open_stream(prompt=PROMPT, max_tokens=1900)
            server.wait(lambda health: health["busy"] == 1)
            url = server.address + "/v1"
            with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
                with self.assertRaises(openai.RateLimitError):
                    client.completions.create(model=MODEL, prompt="a", max_tokens=1)
            busy.close()
            # Its retries, which heed Retry-After, get through.
            with openai.OpenAI(base_url=url, api_key="none", max_retries=8) as client:
                client.completions.create(model=MODEL, prompt="a", max_tokens=1)

    def test_a_stream_that_is_closed_frees_its_slot(self):
        stream = self.complete(max_tokens=1900, stream=True)
        next(iter(stream))
        stream.close()
        self.server.wait(lambda health: health["busy"] == 0)


if __name__ == "__main__":
    unittest.main()
