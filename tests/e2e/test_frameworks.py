#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frameworks for agents, unmodified, against stint serve, on a model whose answers are written
beforehand: it calls f with x = 1 when asked "!", and says "Yes, it is." when asked "?".
`scripts/bootstrap frameworks` puts them into build/frameworks, some hundred packages; skips itself
without, and each test without its package."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from frameworks import FOLDER, enter, needs

enter()

# pylint: disable=wrong-import-position,import-outside-toplevel,import-error
from scripted import write_model
from server import KEY, Server
from test_serve_protocols import SCRIPT

# Without reasoning, which not every framework expects.
TEMPLATE = "{# <tool_call> tools #}{{ messages[-1].content }}"
ANSWERS = {"?": ["Yes, ", "it is."], "!": SCRIPT["!"]}
os.environ.update(OPENAI_API_KEY=KEY, OPENAI_AGENTS_DISABLE_TRACING="1", LITELLM_LOG="ERROR",
                  DO_NOT_TRACK="1")


def f(x: int) -> str:
    """Asks again, so that the model ends.

    Args:
        x: any number
    """
    return "?" * x


class Frameworks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", ANSWERS, TEMPLATE)
        server = Server("--temp", "0", model=model,
                        environment={**os.environ, "STINT_API_KEY": KEY}).__enter__()
        cls.addClassCleanup(server.__exit__)
        cls.url = server.address + "/v1"

    @needs("langchain_openai")
    def test_langchain(self):
        from langchain_openai import ChatOpenAI
        model = ChatOpenAI(model="scripted", base_url=self.url, api_key=KEY, max_retries=0)
        self.assertEqual(model.invoke("?").content, "Yes, it is.")
        self.assertEqual("".join(part.content for part in model.stream("?")), "Yes, it is.")
        call, = model.bind_tools([f]).invoke("!").tool_calls
        self.assertEqual((call["name"], call["args"]), ("f", {"x": 1}))
        form = {"title": "Who", "type": "object", "required": ["old"],
                "properties": {"old": {"enum": ["yes"]}}, "additionalProperties": False}
        made = model.with_structured_output(form, method="json_schema").invoke("?")
        self.assertEqual(made, {"old": "yes"})
        responses = ChatOpenAI(model="scripted", base_url=self.url, api_key=KEY,
                               use_responses_api=True)
        self.assertEqual(responses.invoke("?").text, "Yes, it is.")

    @needs("llama_index.llms.openai_like")
    def test_llama_index(self):
        from llama_index.core.llms import ChatMessage
        from llama_index.core.tools import FunctionTool
        from llama_index.llms.openai_like import OpenAILike
        model = OpenAILike(model="scripted", api_base=self.url, api_key=KEY, is_chat_model=True,
                           is_function_calling_model=True, max_retries=0)
        self.assertEqual(model.chat([ChatMessage(content="?")]).message.content, "Yes, it is.")
        self.assertEqual(model.complete("?").text, "Yes, it is.")
        answer = model.chat_with_tools([FunctionTool.from_defaults(f)], user_msg="!")
        call, = model.get_tool_calls_from_response(answer)
        self.assertEqual((call.tool_name, call.tool_kwargs), ("f", {"x": 1}))

    @needs("litellm")
    def test_litellm(self):
        import litellm
        user = [{"role": "user", "content": "?"}]
        body = {"model": "openai/scripted", "api_base": self.url, "api_key": KEY}
        answer = litellm.completion(messages=user, **body)
        self.assertEqual(answer.choices[0].message.content, "Yes, it is.")
        parts = litellm.completion(messages=user, stream=True, **body)
        self.assertEqual("".join(part.choices[0].delta.content or "" for part in parts),
                         "Yes, it is.")
        answer = litellm.text_completion(prompt="?", max_tokens=9, model="text-completion-openai/"
                                         "scripted", api_base=self.url, api_key=KEY)
        self.assertEqual(answer.choices[0].text, "Yes, it is.")

    @needs("pydantic_ai")
    def test_pydantic_ai(self):
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
        model = OpenAIChatModel("scripted",
                                provider=OpenAIProvider(base_url=self.url, api_key=KEY))
        result = Agent(model, tools=[f]).run_sync("!")
        self.assertEqual(result.output, "Yes, it is.")
        self.assertEqual([message.kind for message in result.all_messages()],
                         ["request", "response"] * 2)

    @needs("instructor")
    def test_instructor(self):
        import instructor
        import openai
        import pydantic

        class Inner(pydantic.BaseModel):
            sure: bool

        class Answer(pydantic.BaseModel):
            kind: str = pydantic.Field(pattern="^[ab]$")
            inner: Inner

        for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT,
                     instructor.Mode.JSON_SCHEMA):
            client = instructor.from_openai(openai.OpenAI(base_url=self.url, api_key=KEY),
                                            mode=mode)
            answer = client.chat.completions.create(
                model="scripted", response_model=Answer, max_retries=0,
                messages=[{"role": "user", "content": "?"}])
            self.assertIn(answer.kind, "ab")
            self.assertIsInstance(answer.inner.sure, bool)

    @needs("smolagents")
    def test_smolagents(self):
        from smolagents import OpenAIServerModel
        model = OpenAIServerModel("scripted", api_base=self.url, api_key=KEY)
        text = [{"type": "text", "text": "?"}]
        self.assertEqual(model([{"role": "user", "content": text}]).content, "Yes, it is.")

    @needs("agents")
    def test_openai_agents(self):
        import agents
        client = agents.AsyncOpenAI(base_url=self.url, api_key=KEY)
        for kind in (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel):
            agent = agents.Agent("helper", instructions="Be kind.", tools=[agents.function_tool(f)],
                                 model=kind("scripted", client))
            result = agents.Runner.run_sync(agent, "!")
            self.assertEqual(result.final_output, "Yes, it is.")
            self.assertEqual(len(result.raw_responses), 2)

    @needs("llm")
    def test_llm(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "extra-openai-models.yaml").write_text(
                f"- model_id: ours\n  model_name: scripted\n  api_base: {self.url}\n"
                "  api_key_name: ours\n", "utf-8")
            (path / "keys.json").write_text(json.dumps({"ours": KEY}), "utf-8")
            done = subprocess.run([FOLDER / "llm", "-m", "ours", "?"], check=False,
                                  env={**os.environ, "LLM_USER_PATH": folder}, text=True,
                                  capture_output=True)
            self.assertEqual((done.stdout.strip(), done.returncode), ("Yes, it is.", 0),
                             done.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
