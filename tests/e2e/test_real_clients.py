#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients and frameworks, unmodified, against stint serve with two real models: SmolLM2 answers,
Qwen2.5-Coder calls tools. What an answer must be by its request is held: its form, that a stream
has the same text, that calls fit their schemas, that loops of agents end. What it says is the
model's affair. Skips itself without build/frameworks (scripts/bootstrap frameworks) or without the
models (real_models.py)."""
import asyncio
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from frameworks import FOLDER, enter, needs

enter()

# pylint: disable=wrong-import-position,import-outside-toplevel,import-error
from real_models import QWEN, SMOLLM2
from server import KEY, Server

CAPITAL = "What is the capital of France?"
RAIN = "Will it rain in Paris tomorrow?"
CITIES = ["Paris", "Rome", "Oslo"]
os.environ.update(OPENAI_API_KEY=KEY, OPENAI_AGENTS_DISABLE_TRACING="1", LITELLM_LOG="ERROR",
                  DO_NOT_TRACK="1")


def user(text):
    return [{"role": "user", "content": text}]


def weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: the city's name
    """
    return f"In {city} it will rain."


class RealModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers, cls.calls = SMOLLM2.stem, QWEN.stem
        server = Server("--temp", "0", "--ctx", "2048", SMOLLM2, model=QWEN,
                        environment={**os.environ, "STINT_API_KEY": KEY}).__enter__()
        cls.addClassCleanup(server.__exit__)
        cls.host, cls.url = server.address, server.address + "/v1"

    def is_call(self, name, arguments, tools=("weather",)):
        self.assertIn(name, tools)
        if name == "weather":
            self.assertEqual(list(arguments), ["city"])
            self.assertIsInstance(arguments["city"], str)


class Clients(RealModels):
    @needs("openai")
    def test_openai(self):
        import openai
        client = openai.OpenAI(base_url=self.url, api_key=KEY, max_retries=0)
        chat, body = client.chat.completions, {"model": self.answers, "messages": user(CAPITAL)}
        answer = chat.create(max_tokens=24, **body)
        text = answer.choices[0].message.content
        self.assertTrue(text)
        self.assertEqual(answer.usage.total_tokens,
                         answer.usage.prompt_tokens + answer.usage.completion_tokens)
        parts = chat.create(max_tokens=24, stream=True, **body)
        self.assertEqual("".join(part.choices[0].delta.content or "" for part in parts), text)
        one = chat.create(max_tokens=1, logprobs=True, top_logprobs=20, **body).choices[0]
        likeliest = one.logprobs.content[0].top_logprobs
        self.assertEqual(likeliest[0].token, one.message.content)
        self.assertLessEqual(sum(math.exp(token.logprob) for token in likeliest), 1.0001)
        several = chat.create(n=2, seed=3, temperature=1, max_tokens=8, **body)
        self.assertEqual(len(several.choices), 2)
        texts = [choice.message.content for choice in several.choices]
        again = chat.create(seed=4, temperature=1, max_tokens=8, **body)
        self.assertEqual(again.choices[0].message.content, texts[1])
        vector = client.embeddings.create(model=self.answers, input=CAPITAL).data[0].embedding
        self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)
        code = client.completions.create(model=self.calls, prompt="def add(a, b):\n    return ",
                                         suffix="\n\nprint(add(1, 2))\n", max_tokens=8)
        self.assertTrue(code.choices[0].text.strip())

    @needs("openai")
    def test_openai_responses(self):
        import openai
        client = openai.OpenAI(base_url=self.url, api_key=KEY, max_retries=0)
        body = {"model": self.answers, "input": CAPITAL, "max_output_tokens": 24}
        answer = client.responses.create(**body)
        self.assertTrue(answer.output_text)
        with client.responses.stream(**body) as stream:
            pieces = [event.delta for event in stream
                      if event.type == "response.output_text.delta"]
        self.assertEqual("".join(pieces), answer.output_text)

    @needs("anthropic")
    def test_anthropic(self):
        import anthropic
        client = anthropic.Anthropic(base_url=self.host, api_key=KEY, max_retries=0)
        self.addCleanup(client.close)
        body = {"max_tokens": 24, "messages": user(CAPITAL)}
        answer = client.messages.create(model=self.answers, **body)
        with client.messages.stream(model=self.answers, **body) as stream:
            self.assertEqual("".join(stream.text_stream), answer.content[0].text)
        tool = {"name": "weather", "input_schema": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
            "additionalProperties": False}}
        for choice in ({"type": "any"}, {"type": "tool", "name": "weather"}):
            answer = client.messages.create(model=self.calls, max_tokens=64, messages=user(RAIN),
                                            tools=[tool], tool_choice=choice)
            self.assertEqual(answer.stop_reason, "tool_use")
            self.is_call(answer.content[-1].name, answer.content[-1].input)

    @needs("ollama")
    def test_ollama(self):
        import ollama
        client = ollama.Client(self.host, headers={"Authorization": f"Bearer {KEY}"})
        self.assertEqual({model.model for model in client.list().models},
                         {self.answers, self.calls})
        short = {"num_predict": 24}
        answer = client.chat(self.answers, messages=user(CAPITAL), options=short)
        parts = client.chat(self.answers, messages=user(CAPITAL), options=short, stream=True)
        self.assertEqual("".join(part.message.content for part in parts), answer.message.content)
        self.assertEqual(client.generate(self.answers, CAPITAL, options=short).response,
                         answer.message.content)
        form = {"type": "object", "required": ["city"], "additionalProperties": False,
                "properties": {"city": {"enum": CITIES}}}
        answer = client.chat(self.answers, messages=user(CAPITAL), format=form)
        self.assertIn(json.loads(answer.message.content)["city"], CITIES)
        answer = client.chat(self.calls, messages=user(RAIN), tools=[weather],
                             options={"num_predict": 64})
        for call in answer.message.tool_calls or []:
            self.is_call(call.function.name, call.function.arguments)

    @needs("llm")
    def test_llm(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "extra-openai-models.yaml").write_text(
                f"- model_id: ours\n  model_name: {self.answers}\n  api_base: {self.url}\n"
                "  api_key_name: ours\n  supports_schema: true\n", "utf-8")
            (path / "keys.json").write_text(json.dumps({"ours": KEY}), "utf-8")

            def run(*words):
                done = subprocess.run([FOLDER / "llm", "-m", "ours", *words], check=False,
                                      env={**os.environ, "LLM_USER_PATH": folder}, text=True,
                                      capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                return done.stdout.strip()

            answer = run(CAPITAL, "-o", "max_tokens", "16")
            self.assertTrue(answer)
            self.assertEqual(run(CAPITAL, "-o", "max_tokens", "16", "--no-stream"), answer)
            self.assertIsInstance(json.loads(run(CAPITAL, "--schema", "big bool"))["big"], bool)


class Frameworks(RealModels):
    @needs("langchain_openai")
    def test_langchain(self):
        from langchain_openai import ChatOpenAI

        def model(name):
            return ChatOpenAI(model=name, base_url=self.url, api_key=KEY, max_retries=0,
                              max_tokens=64)

        answer = model(self.answers).invoke(CAPITAL).content
        self.assertTrue(answer)
        self.assertEqual("".join(part.content for part in model(self.answers).stream(CAPITAL)),
                         answer)
        for choice in ("any", "weather"):
            call, = model(self.calls).bind_tools([weather], tool_choice=choice).invoke(
                RAIN).tool_calls
            self.is_call(call["name"], call["args"])
        form = {"title": "Capital", "type": "object", "required": ["city"],
                "properties": {"city": {"enum": CITIES}}, "additionalProperties": False}
        made = model(self.answers).with_structured_output(form, method="json_schema").invoke(
            CAPITAL)
        self.assertIn(made["city"], CITIES)

    @needs("llama_index.llms.openai_like")
    def test_llama_index(self):
        from llama_index.core.llms import ChatMessage
        from llama_index.core.tools import FunctionTool
        from llama_index.llms.openai_like import OpenAILike

        def model(name):
            return OpenAILike(model=name, api_base=self.url, api_key=KEY, is_chat_model=True,
                              is_function_calling_model=True, max_retries=0, max_tokens=48,
                              temperature=0)

        asked = [ChatMessage(content=CAPITAL)]
        answer = model(self.answers).chat(asked).message.content
        self.assertTrue(answer)
        *_, last = model(self.answers).stream_chat(asked)
        self.assertEqual(last.message.content, answer)
        answer = model(self.calls).chat_with_tools([FunctionTool.from_defaults(weather)],
                                                   user_msg=RAIN, tool_required=True)
        call, = model(self.calls).get_tool_calls_from_response(answer)
        self.is_call(call.tool_name, call.tool_kwargs)

    @needs("litellm")
    def test_litellm(self):
        import litellm
        body = {"api_base": self.url, "api_key": KEY, "max_tokens": 32}
        asked = {"model": f"openai/{self.answers}", "messages": user(CAPITAL), **body}
        answer = litellm.completion(**asked).choices[0].message.content
        self.assertTrue(answer)
        parts = litellm.completion(stream=True, **asked)
        self.assertEqual("".join(part.choices[0].delta.content or "" for part in parts), answer)
        tool = {"type": "function", "function": {"name": "weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
            "additionalProperties": False}}}
        answer = litellm.completion(model=f"openai/{self.calls}", messages=user(RAIN),
                                    tools=[tool], tool_choice="required", **body)
        call, = answer.choices[0].message.tool_calls
        self.is_call(call.function.name, json.loads(call.function.arguments))

    @needs("pydantic_ai")
    def test_pydantic_ai(self):
        import pydantic
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        class Forecast(pydantic.BaseModel):
            city: str
            rain: bool

        model = OpenAIChatModel(self.calls,
                                provider=OpenAIProvider(base_url=self.url, api_key=KEY))
        result = Agent(model, tools=[weather]).run_sync(RAIN)
        self.assertIsInstance(result.output, str)
        kinds = [message.kind for message in result.all_messages()]
        self.assertEqual(kinds, ["request", "response"] * (len(kinds) // 2))
        result = Agent(model, output_type=Forecast).run_sync("In Rome it will rain.")
        self.assertIsInstance(result.output.rain, bool)

    @needs("instructor")
    def test_instructor(self):
        import instructor
        import openai
        import pydantic

        class City(pydantic.BaseModel):
            name: str = pydantic.Field(pattern="^[A-Z][a-z]{1,20}$")
            coast: bool

        class Country(pydantic.BaseModel):
            capital: City
            others: list[City] = pydantic.Field(min_length=1, max_length=2)

        for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT,
                     instructor.Mode.JSON_SCHEMA):
            with self.subTest(mode):
                client = instructor.from_openai(openai.OpenAI(base_url=self.url, api_key=KEY),
                                                mode=mode)
                country = client.chat.completions.create(
                    model=self.answers, response_model=Country, max_retries=0,
                    messages=user("Italy"))
                self.assertRegex(country.capital.name, "^[A-Z][a-z]{1,20}$")
                self.assertIn(len(country.others), (1, 2))

    @needs("smolagents")
    def test_smolagents(self):
        from smolagents import OpenAIServerModel, ToolCallingAgent, tool
        model = OpenAIServerModel(self.calls, api_base=self.url, api_key=KEY, max_tokens=128)
        agent = ToolCallingAgent(tools=[tool(weather)], model=model, max_steps=2, verbosity_level=0)
        result = agent.run(RAIN, return_full_result=True)
        self.assertIn(result.state, ("success", "max_steps_error"))
        calls = [call for step in agent.memory.steps
                 for call in getattr(step, "tool_calls", None) or []]
        self.assertTrue(calls)
        for call in calls:
            self.is_call(call.name, call.arguments, ("weather", "final_answer"))

    @needs("agents")
    def test_openai_agents(self):
        import agents
        client = agents.AsyncOpenAI(base_url=self.url, api_key=KEY)
        for kind in (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel):
            asked = []

            def forecast(city: str) -> str:
                """The weather of a city."""
                asked.append(city)
                return weather(city)

            agent = agents.Agent("helper", instructions="Answer in one sentence.",
                                 tools=[agents.function_tool(forecast)],
                                 model=kind(self.calls, client),
                                 model_settings=agents.ModelSettings(tool_choice="required",
                                                                     max_tokens=96))
            result = asyncio.run(agents.Runner.run(agent, RAIN))
            self.assertTrue(asked and all(isinstance(city, str) for city in asked))
            self.assertTrue(result.final_output)


if __name__ == "__main__":
    if not (SMOLLM2 and QWEN):
        print("no models: 'stint pull smollm2-135m' and 'stint pull qwen2.5-coder-0.5b' fetch them")
        sys.exit(77)
    unittest.main(warnings="ignore")
