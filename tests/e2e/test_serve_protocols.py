#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The protocols of Anthropic and Ollama, as bytes on the wire; test_clients.py has the clients."""
import json
import os
import pathlib
import tempfile
import unittest

from scripted import write_model
from server import KEY, Server

TEMPLATE = "{# <tool_call> tools <think> #}{{ messages[-1].content }}"
SCRIPT = {
    "?": ["<thin", "k>Is ", "it?</th", "ink>", "Yes, ", "it is."],
    "!": ["Let me ", "see.\n", "<tool_call>", '{"name": "f", ', '"arguments": {"x": 1}}',
          "</tool_call>"],
}
CALL_TOOL = {"name": "f", "input_schema": {"type": "object"}}
OLLAMA_TOOL = {"type": "function", "function": {"name": "f"}}


class Protocols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model = write_model(pathlib.Path(folder.name) / "scripted", SCRIPT, TEMPLATE)
        cls.server = Server(model=model, environment={**os.environ, "STINT_API_KEY": KEY})
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def ask(self, path, expected=200, method="POST", headers=None, **body):
        status, got, text = self.server.ask(method, path, body,
                                            headers or {"X-Api-Key": KEY})
        self.assertEqual(status, expected, text)
        return got, text.decode()

    def message(self, text, **more):
        return {"model": "scripted", "max_tokens": 64, "temperature": 0,
                "messages": [{"role": "user", "content": text}], **more}

    def events(self, **body):
        headers, text = self.ask("/v1/messages", stream=True, **body)
        self.assertIn("text/event-stream", headers["Content-Type"])
        parts = [part.split("\n") for part in text.strip().split("\n\n")]
        found = [(name[7:], json.loads(data[6:])) for name, data in parts]
        self.assertTrue(all(name == data["type"] for name, data in found))
        return found

    def test_messages(self):
        answer = json.loads(self.ask("/v1/messages", **self.message("?"))[1])
        self.assertEqual([(block["type"], block.get("text") or block.get("thinking"))
                          for block in answer["content"]],
                         [("thinking", "Is it?"), ("text", "Yes, it is.")])
        self.assertEqual((answer["type"], answer["role"], answer["stop_reason"]),
                         ("message", "assistant", "end_turn"))
        self.assertGreater(answer["usage"]["output_tokens"], 4)
        cut = json.loads(self.ask("/v1/messages", **self.message("?", max_tokens=5))[1])
        self.assertEqual(cut["stop_reason"], "max_tokens")

    def test_messages_with_calls(self):
        body = self.message("!", tools=[CALL_TOOL])
        answer = json.loads(self.ask("/v1/messages", **body)[1])
        text, call = answer["content"]
        self.assertEqual((text["text"], call["name"], call["input"]),
                         ("Let me see.", "f", {"x": 1}))
        self.assertEqual(answer["stop_reason"], "tool_use")
        self.ask("/v1/messages", **{**body, "messages": [
            *body["messages"], {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"],
                                          "content": "1"}, {"type": "text", "text": "?"}]}]})

    def test_streamed_messages(self):
        found = self.events(**self.message("?"))
        self.assertEqual(found[0][0], "message_start")
        self.assertEqual([name for name, _ in found[-2:]], ["message_delta", "message_stop"])
        blocks, kinds = {}, {}
        for name, data in found:
            if name == "content_block_start":
                kinds[data["index"]] = data["content_block"]["type"]
            if name == "content_block_delta":
                piece = data["delta"].get("text") or data["delta"].get("thinking")
                blocks[data["index"]] = blocks.get(data["index"], "") + piece
        self.assertEqual(kinds, {0: "thinking", 1: "text"})
        self.assertEqual(blocks, {0: "Is it?", 1: "Yes, it is."})
        self.assertEqual(found[-2][1]["delta"]["stop_reason"], "end_turn")

    def test_streamed_calls(self):
        found = self.events(**self.message("!", tools=[CALL_TOOL]))
        deltas = [data for name, data in found if name == "content_block_delta"]
        self.assertEqual("".join(d["delta"].get("text", "") for d in deltas), "Let me see.")
        arguments, = [d["delta"]["partial_json"] for d in deltas if "partial_json" in d["delta"]]
        self.assertEqual(json.loads(arguments), {"x": 1})
        starts = [data["content_block"] for name, data in found if name == "content_block_start"]
        self.assertEqual([block["type"] for block in starts], ["text", "tool_use"])
        self.assertEqual(found[-2][1]["delta"]["stop_reason"], "tool_use")

    def test_refused_messages(self):
        for more in ({"max_tokens": None}, {"mcp_servers": [{}]}, {"tools": [{"type": "bash_1"}]},
                     {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
                     {"tool_choice": {"type": "tool", "name": "g"}}, {"temperature": 9}):
            error = json.loads(self.ask("/v1/messages", 400, **self.message("?", **more))[1])
            self.assertEqual((error["type"], error["error"]["type"]),
                             ("error", "invalid_request_error"))
        error = json.loads(self.ask("/v1/messages", 401, headers={"X-Api-Key": "x"})[1])
        self.assertEqual(error["error"]["type"], "authentication_error")

    def responses(self, text, **more):
        answer = json.loads(self.ask("/v1/responses", model="scripted", input=text, temperature=0,
                                     **more)[1])
        self.assertEqual((answer["object"], answer["error"]), ("response", None))
        return answer

    def test_responses(self):
        answer = self.responses("?", instructions="Be kind.")
        thought, message = answer["output"]
        self.assertEqual(thought["content"][0]["text"], "Is it?")
        self.assertEqual(message["content"][0]["text"], "Yes, it is.")
        self.assertEqual((answer["status"], message["status"]), ("completed", "completed"))
        self.assertEqual(answer["usage"]["total_tokens"],
                         answer["usage"]["input_tokens"] + answer["usage"]["output_tokens"])
        cut = self.responses("?", max_output_tokens=5)
        self.assertEqual((cut["status"], cut["incomplete_details"]),
                         ("incomplete", {"reason": "max_output_tokens"}))

    def test_responses_with_calls(self):
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
        question = [{"role": "user", "content": [{"type": "input_text", "text": "!"}]}]
        answer = self.responses(question, tools=tools)
        message, call = answer["output"]
        self.assertEqual(message["content"][0]["text"], "Let me see.")
        self.assertEqual((call["type"], call["name"], json.loads(call["arguments"])),
                         ("function_call", "f", {"x": 1}))
        found = {"type": "function_call_output", "call_id": call["call_id"], "output": "?"}
        end = self.responses([*question, *answer["output"], found], tools=tools)
        self.assertEqual(end["output"][-1]["content"][0]["text"], "Yes, it is.")

    def streamed_responses(self, text, **more):
        _, text = self.ask("/v1/responses", model="scripted", input=text, temperature=0,
                           stream=True, **more)
        parts = [part.split("\n") for part in text.strip().split("\n\n")]
        found = [json.loads(data[6:]) for _, data in parts]
        self.assertEqual([name[7:] for name, _ in parts], [data["type"] for data in found])
        self.assertEqual([data["sequence_number"] for data in found], list(range(len(found))))
        return found

    def test_streamed_responses(self):
        for text, more in (("?", {}), ("?", {"max_output_tokens": 5}), ("!", {
                "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]})):
            found = self.streamed_responses(text, **more)
            end = found[-1]["response"]
            whole = self.responses(text, **more)
            self.assertEqual([self.no_ids(item) for item in end["output"]],
                             [self.no_ids(item) for item in whole["output"]])
            self.assertEqual((end["status"], found[-1]["type"]),
                             (whole["status"], "response." + whole["status"]))
            done = [data["item"] for data in found if data["type"] == "response.output_item.done"]
            self.assertEqual(done, end["output"])
            texts = {}
            for data in found:
                if data["type"].endswith(".delta"):
                    at = data["output_index"]
                    texts[at] = texts.get(at, "") + data["delta"]
                elif data["type"].endswith((".text.done", "_text.done", "arguments.done")):
                    self.assertEqual(texts.get(data["output_index"], "").strip(),
                                     (data.get("text") or data.get("arguments") or "").strip())

    def no_ids(self, item):
        return {key: value for key, value in item.items() if key not in ("id", "call_id")}

    def test_refused_responses(self):
        for more, named in (({"previous_response_id": "resp_1"}, "previous_response_id"),
                            ({"made_up": 1}, "made_up"), ({"truncation": "auto"}, "truncation"),
                            ({"input": [{"type": "item_reference", "id": "a"}]}, "input"),
                            ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
                             "input"), ({"input": 1}, "input"),
                            ({"tools": [{"type": "web_search"}]}, "tools"),
                            ({"include": ["file_search_call.results"]}, "include"),
                            ({"text": {"verbosity": "low"}}, "text.verbosity"),
                            ({"reasoning": {"made_up": 1}}, "reasoning.made_up")):
            body = {"model": "scripted", "input": "?", **more}
            error = json.loads(self.ask("/v1/responses", 400, **body)[1])["error"]
            self.assertEqual(error["param"], named)

    def lines(self, path, **body):
        headers, text = self.ask(path, model="scripted:latest", options={"temperature": 0}, **body)
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        return [json.loads(line) for line in text.splitlines()]

    def test_ollama_chat(self):
        user = [{"role": "user", "content": "?"}]
        lines = self.lines("/api/chat", messages=user)
        self.assertEqual("".join(line["message"]["content"] for line in lines), "Yes, it is.")
        self.assertEqual("".join(line["message"].get("thinking", "") for line in lines), "Is it?")
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        self.assertEqual(lines[-1]["done_reason"], "stop")
        whole = json.loads(self.ask("/api/chat", model="scripted", stream=False, messages=user,
                                    options={"num_predict": 5, "temperature": 0})[1])
        self.assertEqual((whole["done_reason"], whole["eval_count"]), ("length", 5))
        for end in (lines[-1], whole):  # nanoseconds, of which clients make tokens per second
            parts = end["prompt_eval_duration"], end["eval_duration"]
            self.assertGreater(min(parts), 0)
            self.assertGreaterEqual(end["total_duration"], sum(parts))

    def test_ollama_calls(self):
        body = {"messages": [{"role": "user", "content": "!"}], "tools": [OLLAMA_TOOL]}
        lines = self.lines("/api/chat", **body)
        messages = [line["message"] for line in lines]
        calls, = [message["tool_calls"] for message in messages if "tool_calls" in message]
        self.assertEqual(calls, [{"function": {"name": "f", "arguments": {"x": 1}}}])
        self.ask("/api/chat", model="scripted", tools=[OLLAMA_TOOL], stream=False, messages=[
            *body["messages"], {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": "1"}, {"role": "user", "content": "?"}])

    def test_ollama_generate(self):
        lines = self.lines("/api/generate", prompt="?", system="Be kind.")
        self.assertEqual("".join(line["response"] for line in lines), "Yes, it is.")
        whole = json.loads(self.ask("/api/generate", model="scripted", prompt="?",
                                    stream=False)[1])
        self.assertEqual((whole["response"], whole["thinking"]), ("Yes, it is.", "Is it?"))

    def test_ollama_models(self):
        tags = json.loads(self.ask("/api/tags", method="GET")[1])
        self.assertEqual([model["name"] for model in tags["models"]], ["scripted"])
        shown = json.loads(self.ask("/api/show", model="scripted:latest")[1])
        self.assertEqual(shown["template"], TEMPLATE)
        self.ask("/api/show", 404, model="other")
        self.assertTrue(json.loads(self.ask("/api/version", method="GET")[1])["version"])

    def test_refused_by_ollama_s_routes(self):
        user = [{"role": "user", "content": "?"}]
        for path, body in (("/api/chat", {"messages": user}),
                           ("/api/chat", {"model": "scripted", "messages": []}),
                           ("/api/chat", {"model": "scripted", "messages": user, "format": 1}),
                           ("/api/chat", {"model": "scripted", "messages": user,
                                          "options": {"mirostat": 1}}),
                           ("/api/generate", {"model": "scripted", "prompt": "a", "raw": True})):
            self.assertIsInstance(json.loads(self.ask(path, 400, **body)[1])["error"], str)
        self.ask("/api/chat", 404, model="other", messages=user)


if __name__ == "__main__":
    unittest.main()
