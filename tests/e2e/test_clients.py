#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python clients of Anthropic, Ollama and OpenAI's responses, unmodified, against stint serve.
`scripts/bootstrap clients` puts them into build/venv; skips itself without."""
import os
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["STINT_SOURCE_DIR"])
VENV = SOURCE / "build" / "venv" / "bin" / "python"

try:
    import anthropic
    import ollama
    import openai
except ImportError:
    if VENV.exists() and pathlib.Path(sys.executable) != VENV:
        os.execv(VENV, [str(VENV), *sys.argv])
    print("no packages: scripts/bootstrap clients installs them into build/venv")
    sys.exit(77)

# pylint: disable=wrong-import-position
from scripted import write_model
from server import KEY, Server
from test_serve_protocols import CALL_TOOL, OLLAMA_TOOL, SCRIPT, TEMPLATE


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", SCRIPT, TEMPLATE)
        server = Server(model=model, environment={**os.environ, "STINT_API_KEY": KEY}).__enter__()
        cls.addClassCleanup(server.__exit__)
        cls.anthropic = anthropic.Anthropic(base_url=server.address, api_key=KEY, max_retries=0)
        cls.addClassCleanup(cls.anthropic.close)
        cls.openai = openai.OpenAI(base_url=server.address + "/v1", api_key=KEY, max_retries=0)
        cls.addClassCleanup(cls.openai.close)
        cls.ollama = ollama.Client(server.address, headers={"Authorization": f"Bearer {KEY}"})

    def message(self, text, **more):
        return {"model": "scripted", "max_tokens": 64,
                "messages": [{"role": "user", "content": text}], **more}

    def test_anthropic(self):
        answer = self.anthropic.messages.create(**self.message("?"))
        self.assertEqual([block.type for block in answer.content], ["thinking", "text"])
        self.assertEqual(answer.content[1].text, "Yes, it is.")
        with self.anthropic.messages.stream(**self.message("?")) as stream:
            self.assertEqual("".join(stream.text_stream), "Yes, it is.")
            self.assertEqual(stream.get_final_message().stop_reason, "end_turn")

    def test_anthropic_tools(self):
        for streamed in (False, True):
            body = self.message("!", tools=[CALL_TOOL])
            if streamed:
                with self.anthropic.messages.stream(**body) as stream:
                    answer = stream.get_final_message()
            else:
                answer = self.anthropic.messages.create(**body)
            self.assertEqual(answer.stop_reason, "tool_use")
            text, call = answer.content
            self.assertEqual((text.text, call.name, call.input), ("Let me see.", "f", {"x": 1}))

    def test_anthropic_errors(self):
        with self.assertRaises(anthropic.NotFoundError):
            self.anthropic.messages.create(**self.message("?", model="other"))
        with self.assertRaises(anthropic.BadRequestError):
            self.anthropic.messages.create(**self.message("?", max_tokens=0))
        with self.assertRaises(anthropic.AuthenticationError):
            self.anthropic.with_options(api_key="x").messages.create(**self.message("?"))

    def test_responses(self):
        answer = self.openai.responses.create(model="scripted", input="?", temperature=0)
        self.assertEqual(answer.output_text, "Yes, it is.")
        self.assertEqual(answer.output[0].content[0].text, "Is it?")
        with self.openai.responses.stream(model="scripted", input="?", temperature=0) as stream:
            pieces = [event.delta for event in stream
                      if event.type == "response.output_text.delta"]
            self.assertEqual("".join(pieces), "Yes, it is.")
            self.assertEqual(stream.get_final_response().output_text, "Yes, it is.")

    def test_responses_with_tools(self):
        tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
        body = {"model": "scripted", "tools": [tool], "temperature": 0}
        asked = [{"role": "user", "content": "!"}]
        answer = self.openai.responses.create(input=asked, **body)
        call = answer.output[-1]
        self.assertEqual((call.type, call.name, call.arguments), ("function_call", "f", '{"x": 1}'))
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "?"}
        again = self.openai.responses.create(input=[*asked, *answer.output, result], **body)
        self.assertEqual(again.output_text, "Yes, it is.")
        with self.openai.responses.stream(input=asked, **body) as stream:
            self.assertEqual(stream.get_final_response().output[-1].arguments, '{"x": 1}')
        with self.assertRaises(openai.BadRequestError) as caught:
            self.openai.responses.create(input="?", previous_response_id="resp_1", **body)
        self.assertEqual(caught.exception.param, "previous_response_id")

    def test_ollama(self):
        user = [{"role": "user", "content": "?"}]
        answer = self.ollama.chat("scripted", messages=user)
        self.assertEqual((answer.message.content, answer.message.thinking),
                         ("Yes, it is.", "Is it?"))
        pieces = self.ollama.chat("scripted", messages=user, stream=True)
        self.assertEqual("".join(piece.message.content for piece in pieces), "Yes, it is.")
        self.assertEqual(self.ollama.generate("scripted", "?").response, "Yes, it is.")
        pieces = self.ollama.generate("scripted", "?", stream=True)
        self.assertEqual("".join(piece.response for piece in pieces), "Yes, it is.")

    def test_ollama_tools(self):
        call, = self.ollama.chat("scripted", messages=[{"role": "user", "content": "!"}],
                                 tools=[OLLAMA_TOOL]).message.tool_calls
        self.assertEqual((call.function.name, call.function.arguments), ("f", {"x": 1}))

    def test_ollama_models(self):
        self.assertEqual([model.model for model in self.ollama.list().models], ["scripted"])
        self.assertEqual(self.ollama.show("scripted").details.family, "llama")
        with self.assertRaises(ollama.ResponseError) as caught:
            self.ollama.chat("other", messages=[{"role": "user", "content": "?"}])
        self.assertIn("other", caught.exception.error)


if __name__ == "__main__":
    unittest.main()
